"""The flags of commands: those that set a key of the config, in the table `FLAGS`, and options that commands share.

An unknown option gets a suggestion: what other tools call it, or a near miss. Nothing here takes time to import, since
every command starts with it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass
from functools import wraps
from typing import Annotated, Any, Final, NoReturn, TypeAlias, TypeVar

import typer
from typer.core import TyperCommand
from typer.exceptions import TyperException

from ...transforms.format.wording.hints import Add, Set
from ...transforms.format.wording.hints import Command as Proposed
from .session import Body, run

F = TypeVar("F", bound=Callable[..., Any])

_INPUT: Final = "Input options"
_SPLITS: Final = "Split options"
RUN_PANEL: Final = "Output and engine options"
_DATAFLOW: Final = "Dataflow options"


def number_or_text(text: str) -> object:
    """Return a number as an int, so that the config sees what a file would give it; other text as it is."""
    return int(text) if text.removeprefix("-").isdecimal() else text


def names_in(text: str) -> list[str]:
    """Return names that commas separate; one that holds a comma is in double quotes.

    >>> names_in('id, name,"a,b"')
    ['id', 'name', 'a,b']
    """
    import csv

    return [name for line in csv.reader([text], skipinitialspace=True) for name in line]


def fractions_in(text: str) -> dict[str, float]:
    """Read `NAME=FRACTION` pairs; a fraction over 1 and a name that is given twice are a `typer.BadParameter`.

    >>> fractions_in("train=0.9, val=0.1")
    {'train': 0.9, 'val': 0.1}
    """
    fractions: dict[str, float] = {}
    for part in text.split(","):
        name, sign, share = (word.strip() for word in part.partition("="))
        try:
            fraction = float(share)
        except ValueError:
            sign = ""
        if not sign or name in fractions:
            wrong = f"{part.strip()!r} is not NAME=FRACTION, each name once, like train=0.9,val=0.1"
            raise typer.BadParameter(wrong, param_hint="--split-fractions")
        if fraction > 1:
            wrong = f"{part.strip()!r} is more than 1, and fractions add up to 1, like train=0.9,val=0.1"
            raise typer.BadParameter(wrong, param_hint="--split-fractions")
        fractions[name] = fraction
    return fractions


@dataclass(frozen=True, slots=True)
class Flag:
    """A flag: the key of the config that it sets, how its value is shown (None: it takes none), and its help.

    `commands` have it, with `others` where a command needs other words. `read` makes the value of the text, `value` is
    that of a flag that takes none, `short` its other name.
    """

    name: str
    key: str
    metavar: str | None
    help: str
    commands: str = "convert append"
    read: Callable[[str], object] = str
    value: object = None
    short: str | None = None
    panel: str | None = None
    others: tuple[tuple[str, str], ...] = ()

    @property
    def typed(self) -> str:
        return f"--{self.name.replace('_', '-')}"

    def parameter(self, command: str) -> inspect.Parameter:
        text = dict(self.others).get(command, self.help)
        names = [self.short, self.typed] if self.short else [self.typed]
        kind: Any = str | None
        default = None
        if self.value is not None:
            kind, default = bool, False
        elif self.metavar is None:
            kind, names = bool | None, [f"{self.typed}/--no-{self.name}"]
        option = typer.Option(*names, metavar=self.metavar, help=text, rich_help_panel=self.panel)
        annotation = Annotated[kind, option]
        return inspect.Parameter(self.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)

    def given(self, value: object) -> tuple[str, object] | None:
        """Return how the flag was typed and what its key is set to, None if it was not given."""
        if value is None:
            return None
        if self.value is not None:
            return (self.typed, self.value) if value else None
        if self.metavar is None:
            return self.typed if value else f"--no-{self.name}", value
        return self.short or self.typed, self.read(str(value))


FLAGS: Final = (
    Flag("output", "output.path", "FOLDER", "The folder of the dataset.", short="-o"),
    Flag(
        "shard_size", "output.shard_size", "SIZE", "Bytes of a shard, like 128MiB or 1GB.",
        "convert append merge rebuild", others=(("append", "Bytes of a new shard; the dataset's if not given."),),
    ),
    Flag(
        "split_fractions", "split.fractions", "A=X,B=Y", "Cut rows into splits: train=0.9,val=0.1.",
        "convert append merge rebuild", fractions_in,
    ),
    Flag(
        "shuffle", "shuffle.seed", "SEED", "A random order of records: a number, like 7.",
        "convert append merge rebuild", number_or_text,
    ),
    Flag(
        "columns", "input.columns", "A,B", "Keep only these columns; globs like feat_* too.", "convert append init",
        names_in,
    ),
    Flag("limit", "input.limit", "N", "Read the first N rows or images only.", read=number_or_text),
    Flag(
        "max_rejects", "max_rejects", "N", 'Rows that may be rejected: a number, or "1%".',
        "convert append merge rebuild",
        others=tuple(
            (command, 'Damaged records that are left out: a number, or "1%".') for command in ("merge", "rebuild")
        ),
    ),
    Flag(
        "overwrite", "output.if_exists", None, "Replace the dataset that is there.", "convert merge rebuild",
        value="replace",
    ),
    Flag(
        "records", "input.records", "KIND", "example, or opaque for records that are not Examples.", "merge"
    ),
    Flag(
        "format", "input.format", "NAME",
        "csv, parquet, images, numpy, tfrecord, jsonl, arrow, txt, coco, voc, yolo, boxes, tar or zip.",
        "convert append init", panel=_INPUT,
    ),
    Flag(
        "delimiter", "input.delimiter", "SIGN", "CSV: what separates columns, like ; or tab.", "convert append init",
        panel=_INPUT,
    ),
    Flag(
        "no_header", "input.header", None, "CSV: the first line is data.", "convert append init", value=False,
        panel=_INPUT,
    ),
    Flag(
        "exclude_columns", "input.exclude_columns", "A,B", "Leave these columns out; globs too.", "convert append init",
        names_in, panel=_INPUT,
    ),
    Flag(
        "where", "input.where", "EXPRESSION", 'Only rows for which it is true: "age >= 18".', "convert append rebuild",
        panel=_INPUT,
    ),
    Flag(
        "drop", "input.drop", "KEYS.csv", "Leave out rows with these keys: a table whose header names columns.",
        "rebuild", panel=_INPUT,
    ),
    Flag(
        "drop_where", "input.drop_where", "EXPRESSION", 'Leave out rows for which it is true: "age < 18".', "rebuild",
        panel=_INPUT,
    ),
    Flag(
        "split_key", "split.key", "COLUMN", "Rows of one value of this column stay in one split.",
        "convert append merge rebuild", panel=_SPLITS,
    ),
    Flag(
        "split", "output.split", "NAME", "The name of the split, where the source has none.", "convert append merge",
        others=(
            ("append", "The split to append to, where the source has none."),
            ("merge", "The split of files that are of no dataset."),
        ),
        panel=_SPLITS,
    ),
    Flag(
        "order", "output.order", "ORDER", "task (in order in each shard), source (throughout).", "convert",
        panel=_SPLITS,
    ),
    Flag("compression", "output.compression", "KIND", "none or gzip.", "convert merge rebuild", panel=RUN_PANEL),
    Flag("name", "name", "NAME", "The name of the dataset.", "convert merge rebuild", panel=RUN_PANEL),
    Flag(
        "workers", "runner.workers", "N", "How many workers, or auto.", "convert append merge rebuild", number_or_text,
        panel=RUN_PANEL,
    ),
    Flag("runner", "runner.name", "NAME", "The engine: local, flink or dataflow.", panel=RUN_PANEL),
    Flag("project", "runner.project", "ID", "The project of Google Cloud.", panel=_DATAFLOW),
    Flag("region", "runner.region", "REGION", "Where the job runs.", panel=_DATAFLOW),
    Flag("staging", "runner.staging", "GS_URL", "A folder for the job's files.", panel=_DATAFLOW),
    Flag("image", "runner.image", "IMAGE", "The workers' image, with a tag.", panel=_DATAFLOW),
    Flag("wait", "runner.wait", None, "Wait for the job to end.", "convert", panel=_DATAFLOW),
)  # fmt: skip
"""The flags of all commands, in the order of their help."""


def with_flags(command: str) -> Callable[[F], F]:
    """Return a decorator that gives a function, which takes `**flags`, the flags of a command as options of typer."""

    def decorate(function: F) -> F:
        signature = inspect.signature(function, eval_str=True)
        own = [one for one in signature.parameters.values() if one.kind is not inspect.Parameter.VAR_KEYWORD]
        flags = [flag.parameter(command) for flag in FLAGS if command in flag.commands.split()]
        first = [one for one in own if one.kind is not inspect.Parameter.KEYWORD_ONLY]
        rest = [one for one in own if one.kind is inspect.Parameter.KEYWORD_ONLY]
        ordered = sorted([*flags, *rest], key=lambda one: one.name != "output")
        function.__signature__ = signature.replace(parameters=[*first, *ordered])  # type: ignore[attr-defined]
        return function

    return decorate


def flags_of(values: dict[str, object]) -> dict[str, tuple[str, object]]:
    """Return the flags that were given, as `load_config` takes them: key to flag and value."""
    given = {flag.key: flag.given(values.get(flag.name)) for flag in FLAGS}
    return {key: found for key, found in given.items() if found is not None}


_NEAR: Final = 0.8
"""So alike a guess must be to what was typed: --shard-sise is --shard-size, and --overwrite is not --no-wait."""

_CONVERT: Final = Proposed("convert", "FILES", "-o", "FOLDER")
_OVERWRITE: Final = Proposed("convert", "FILES", "-o", "FOLDER", "--overwrite")
_FRACTIONS: Final = Add("--split-fractions", "train=0.9,val=0.1")
_NO_HEADER: Final = Add("--no-header")
_SHUFFLE: Final = Add("--shuffle", "7")
_SIZE: Final = Add("--shard-size", "256MiB")
_REPLACE: Final = (
    ("--overwrite", f"to replace the dataset that is there: {Add('--overwrite')}"),
    ("--force", f"an append only adds; to replace the dataset: {_OVERWRITE}"),
)

_MEANT: Final = {
    "--force": _REPLACE,
    "--replace": _REPLACE,
    "--overwrite": _REPLACE,
    "--num-shards": (("--shard-size", f"shards have a size here, and their number follows: {_SIZE}"),),
    "--output-dir": (("--output", f"the folder of the dataset: {Add('--output', 'FOLDER')}"),),
    "--input": (("--output", f"what to read is named without an option: {_CONVERT}"),),
    "--num-workers": (("--workers", f"how many work at once: {Add('--workers', '4')}"),),
    "--sep": (("--delimiter", f"what separates the columns: {Add('--delimiter', ';')}"),),
    "--header": (("--no-header", f"the first line is the header; where it is none: {_NO_HEADER}"),),
    "--names": (
        (
            "--no-header",
            f"names in place of the header's: {Set('input.names', '[a, b]')}; where there is none, {_NO_HEADER} too",
        ),
    ),
    "--encoding": (("--columns", f"the encoding of text: {Set('input.encoding', 'cp1252')}"),),
    "--fields": (("--columns", f"the columns to keep: {Add('--columns', 'a,b')}"),),
    "--gzip": (("--compression", f"compressed shards: {Add('--compression', 'gzip')}"),),
    "--val-split": (("--split-fractions", f"rows cut into splits: {_FRACTIONS}"),),
    "--stratify": (
        ("--split-fractions", f"exact in every class: {Set('split.by', 'exact')} {Set('split.stratify', 'COLUMN')}"),
    ),
    "--group": (("--split-key", f"rows of one value in one split: {Add('--split-key', 'COLUMN')}"),),
    "--folds": (("--split-fractions", f"folds for cross-validation: {Set('split.folds', 5)}"),),
    "--seed": (("--shuffle", f"a random order of the records: {_SHUFFLE}"),),
    "--schema": (("--split-fractions", f"the type of a column: {Set('schema.columns.NAME.type', 'string')}"),),
    "--resume": (("--set", "the same command resumes by itself"),),
    "--no-resume": (("--set", f"to start over: {Set('runner.resume', False)}"),),
    "--verbose": (("--debug", f"the traceback of an unexpected error: {Add('--debug')}"),),
}
"""What options of other tools are here: an option that the command must have, and the words."""

_SAME: Final = {
    "--num-shards": ("--shards", "--n-shards", "--num_shards", "--number-of-shards"),
    "--output-dir": ("--out", "--out-dir", "--output_dir", "--output-path", "--dest", "--destination", "-d"),
    "--input": ("--inputs", "--input-path", "--input-dir", "--source", "--data", "-i"),
    "--num-workers": ("--jobs", "--threads", "--processes", "--parallel", "--num_workers", "-j"),
    "--sep": ("--separator", "--delim", "--field-delimiter"),
    "--header": ("--has-header", "--skip-header"),
    "--names": ("--column-names", "--header-names"),
    "--fields": ("--select", "--cols", "--usecols"),
    "--gzip": ("--compress", "--gz"),
    "--val-split": ("--splits", "--split-ratio", "--validation-split", "--test-size", "--train-size", "--test-split"),
    "--stratify": ("--stratify-by", "--stratified"),
    "--group": ("--groups", "--group-by", "--key", "--split-by"),
    "--folds": ("--n-splits", "--kfold", "--k-folds"),
    "--seed": ("--random-seed", "--shuffle-seed"),
    "--schema": ("--dtype", "--dtypes", "--types"),
    "--resume": ("--continue",),
    "--no-resume": ("--restart", "--fresh"),
    "--verbose": ("-v", "-vv"),
}

_VALUES: Final = {
    "--shuffle": f"a seed: {_SHUFFLE}",
    "--shard-size": f"a size: {_SIZE}",
    "--split-fractions": f"the share of each split: {_FRACTIONS}",
}
"""What the value of an option is, with one that works, where the name of the value does not say it."""


def option(metavar: str, text: str, *names: str, panel: str | None = None) -> Any:
    return typer.Option(*names, metavar=metavar, help=text, rich_help_panel=panel)


Json: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")]
Quiet: TypeAlias = Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only.")]
Verbose: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--verbose",
        "-v",
        help="With --dry-run, show the conversion in ten lines, too.",
        rich_help_panel="Output and engine options",
    ),
]
Debug: TypeAlias = Annotated[bool, typer.Option("--debug", help="Show the traceback of an unexpected error.")]


_OF_ALL_COMMANDS: Final = ("as_json", "quiet", "debug", "help")


def answer(body: Body, *, as_json: bool, quiet: bool, debug: bool) -> NoReturn:
    raise typer.Exit(run(body, as_json=as_json, quiet=quiet, debug=debug))


def answered(*, may_be_quiet: bool = True) -> Callable[[Callable[..., int | None]], Callable[..., NoReturn]]:
    """Return a decorator that makes a command of its body, which takes a session; options that all have come last."""

    def decorate(body: Callable[..., int | None]) -> Callable[..., NoReturn]:
        shared = {"as_json": Json, **({"quiet": Quiet} if may_be_quiet else {}), "debug": Debug}
        own = list(inspect.signature(body, eval_str=True).parameters.values())[1:]
        parameters = own + [
            inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=False, annotation=kind)
            for name, kind in shared.items()
        ]

        @wraps(body)
        def command(*, as_json: bool, debug: bool, quiet: bool = False, **given: object) -> NoReturn:
            answer(lambda session: body(session, **given), as_json=as_json, quiet=quiet, debug=debug)

        command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        command.__annotations__ = {one.name: one.annotation for one in parameters}
        return command

    return decorate


class Command(TyperCommand):
    """A command that says what an unknown option was meant to be, or nothing: a far-fetched guess misleads."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        known = {name: option for option in self.get_params(ctx) for name in option.opts + option.secondary_opts}
        values = {name: option.metavar for name, option in known.items() if not getattr(option, "is_flag", True)}
        try:
            return super().parse_args(ctx, _cut_after_lone_option(args, values, known))
        except TyperException as wrong:
            asked = getattr(wrong, "option_name", None)
            if isinstance(asked, str) and hasattr(wrong, "possibilities"):
                wrong.message = f"No such option: {asked}{meant(asked, known)}"
                wrong.possibilities = None
            elif asked in values:
                wrong.message = f"{asked} takes {_VALUES.get(asked, f'a value: {asked} {values[asked]}')}"
            raise

    def format_options(self, ctx: Any, formatter: Any) -> None:
        panels: dict[str, list[tuple[str, str]]] = {}
        parameters = self.get_params(ctx)
        in_panels = any(getattr(parameter, "rich_help_panel", None) for parameter in parameters)
        for parameter in parameters:
            record = parameter.get_help_record(ctx)
            if record is None:
                continue
            heading = "Arguments" if parameter.param_type_name == "argument" else "Options"
            if in_panels and parameter.name in _OF_ALL_COMMANDS:
                heading = "Screen options"
            panels.setdefault(getattr(parameter, "rich_help_panel", None) or heading, []).append(record)
        for heading, records in panels.items():
            with formatter.section(heading):
                formatter.write_dl(records)


def _cut_after_lone_option(args: list[str], values: Container[str], known: Container[str]) -> list[str]:
    """Return the arguments up to an option that lacks its value, because another option follows.

    >>> _cut_after_lone_option(["a.csv", "--shuffle", "--overwrite"], {"--shuffle"}, {"--shuffle", "--overwrite"})
    ['a.csv', '--shuffle']
    """
    place = 0
    while place + 1 < len(args) and args[place] != "--":
        takes_value = args[place] in values
        if takes_value and args[place + 1] in known:
            return args[: place + 1]
        place += 1 + takes_value
    return args


def meant(asked: str, known: Iterable[str]) -> str:
    """Return what an unknown option was meant to be in a command that knows some, as the end of a sentence.

    >>> meant("--num-shards", ["--shard-size"])
    '; shards have a size here, and their number follows: --shard-size 256MiB'
    >>> meant("--shard-sise", ["--shard-size"]), meant("--overwrite", ["--no-wait"])
    ('; did you mean --shard-size?', '')
    """
    from difflib import get_close_matches

    choices = [name for name in known if name.startswith("--")]
    name = next((first for first, others in _SAME.items() if asked in others), asked)
    for needed, words in _MEANT.get(name, ()):
        if needed in choices:
            return f"; {words}"
    near = get_close_matches(asked, choices, n=1, cutoff=_NEAR)
    return f"; did you mean {near[0]}?" if near else ""
