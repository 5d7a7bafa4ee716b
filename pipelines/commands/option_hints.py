"""The options that commands share, and suggestions for unknown ones: those of other tools, and near misses.

Nothing here takes time to import: every command starts with it.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Annotated, Any, Final, NoReturn, TypeAlias

import typer
from typer.core import TyperCommand
from typer.exceptions import TyperException

from ...transforms.format.wording.hints import Add, Set
from ...transforms.format.wording.hints import Command as Proposed
from .session import Body, run

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
