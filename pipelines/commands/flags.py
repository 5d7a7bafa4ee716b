"""The flags of commands that set a key of the config: one line each. To add a flag is to add a line to `FLAGS`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Final, TypeVar

import typer

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
        "format", "input.format", "NAME", "csv, parquet, images, numpy, tfrecord, jsonl, arrow or txt.",
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
        "where", "input.where", "EXPRESSION", 'Only rows for which it is true: "age >= 18".', panel=_INPUT,
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
