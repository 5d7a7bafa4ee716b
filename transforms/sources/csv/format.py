"""CSV in the registry: its options, the source that they make, its starter text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from ...format.wording.printable import quoted
from ..contract.call import Call
from ..registry.format import Detected, Format, partition_steps
from ..registry.options import Columns, ColumnsDiffer, Options, Partitions
from ..registry.settings import Settings
from .signs import wrong_signs

if TYPE_CHECKING:
    from ...recipe.step import Step
    from ..contract.source import Source


_BY_NAME: Final = {"\\t": "\t", "tab": "\t", "space": " "}
"""Characters as they are typed on a command line."""


def _check_one_byte(value: str) -> str:
    value = _BY_NAME.get(value, value)
    if len(value) != 1 or not value.isascii() or value in "\r\n\0":
        raise ValueError(f"{quoted(value)} is not one ASCII character")
    return value


def _check_encoding(value: str) -> str:
    try:
        "".encode(value)
    except (LookupError, ValueError) as error:
        raise ValueError(
            f"{quoted(value)} is not an encoding that Python knows, like utf-8, latin-1, utf-16"
        ) from error
    return value


OneByte: TypeAlias = Annotated[str, AfterValidator(_check_one_byte)]


ShortRows: TypeAlias = Annotated[
    Literal["reject"] | None,
    BeforeValidator(
        lambda value: None if value == "null" else value, json_schema_input_type=Literal["reject", "null"] | None
    ),
]
"""What a row with too few cells is; YAML reads `null` as None."""


class CsvInput(Options):
    """CSV files; `names` are the column names where there is no header, or instead of it; no `quote` is null.

    `skip_lines` are before the header, and lines that begin with `comment` are no rows; the character after an `escape`
    means itself; `trim` takes blanks around cells away; rows with too few cells are rejects, or have null ones more.

    `load_config` sets `delimiter` where it is left out, as the first records show it.
    """

    format: Literal["csv"] = "csv"
    delimiter: OneByte = ","
    quote: OneByte | None = '"'
    header: bool = True
    names: Columns = None
    encoding: Annotated[str, AfterValidator(_check_encoding)] = "utf-8"
    null_values: list[str] = Field([""])
    skip_lines: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    comment: OneByte | None = None
    escape: OneByte | None = None
    trim: bool = False
    short_rows: ShortRows = "reject"
    partitions: Partitions = None
    columns_differ: ColumnsDiffer = "refuse"

    @model_validator(mode="after")
    def _signs_differ(self) -> CsvInput:
        if why := wrong_signs(self.delimiter, self.quote, self.escape, self.comment, self.null_values, self.trim):
            raise ValueError(why)
        return self


_STARTER: Final = """\
  delimiter: "{sign}"
  header: true                # false: give the names of the columns in `names`
  encoding: utf-8
  null_values: [""]           # unquoted cells that are null; NA is text
  # columns: {columns}
schema:
  infer: auto                 # full: look at every row | none: all columns are text
  columns: {{}}                 # {{{column}: {{type: string}}}}
"""


class CsvFormat(Format[CsvInput]):
    """Text whose records are lines, but for line ends in quotes."""

    options = CsvInput
    choosing_keys = ("columns_differ",)
    detected_option = "delimiter"
    projects = True
    takes_types = True
    shows_columns = True

    def source(self, options: CsvInput, settings: Settings) -> Source:
        """Return the source of CSV files; a header that was not asked for may turn out to be data."""
        from .parse import CsvLimits
        from .source import CsvSource

        limits = settings.limits
        return CsvSource(
            tuple(options.paths),
            settings.base,
            delimiter=options.delimiter,
            quote=options.quote,
            header=options.header,
            names=None if options.names is None else tuple(options.names),
            columns=options.kept,
            exclude=tuple(options.exclude_columns),
            encoding=options.encoding,
            null_values=tuple(options.null_values),
            skip_lines=options.skip_lines,
            comment=options.comment,
            escape=options.escape,
            trim=options.trim,
            fill_short_rows=options.short_rows is None,
            infer=settings.infer,
            rules=dict(settings.rules),
            limits=CsvLimits(limits.field_bytes, limits.record_bytes, limits.columns),
            partitions=options.partitions or "read",
            union=options.columns_differ == "union",
            check_header="header" not in options.model_fields_set,
            detected=settings.detected,
            call=settings.call,
        )

    def steps(self, options: CsvInput) -> tuple[Step, ...]:
        return partition_steps(options, options.partitions)

    def detect(self, given: Mapping[str, Any], paths: Sequence[str], base: str, call: Call) -> Detected:  # noqa: ARG002
        """Return the delimiter that the first records show; a sign that is none is the options' to refuse."""
        from .delimiter import SampleOptions, detect_delimiter

        found = detect_delimiter(paths, base, SampleOptions.of(given))
        return Detected(found.sign, found.evidence)

    def starter(self, options: CsvInput, columns: str, column: str) -> str:
        sign = options.delimiter.replace("\t", "\\t")
        return _STARTER.format(sign=sign, columns=columns, column=column)


FORMAT: Final = CsvFormat()
