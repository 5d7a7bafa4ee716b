"""The options of CSV files: the keys of `input`, with their checks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Final, Literal, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from ...format.wording.printable import quoted
from ..registry.options import Columns, TableOptions

if TYPE_CHECKING:
    from .records.quote_bits import Dialect

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


def wrong_signs(
    delimiter: str,
    quote: str | None,
    escape: str | None,
    comment: str | None,
    null_values: Sequence[str],
    trim: bool,  # noqa: FBT001 - all are keys of the config
) -> str | None:
    """Return why records cannot be read by these signs, None if they can."""
    signs = {"delimiter": delimiter, "quote": quote, "escape": escape, "comment": comment}
    seen: dict[str, str] = {}
    for key, sign in signs.items():
        if sign is not None and sign in seen:
            return f"{seen[sign]} and {key} are both {quoted(sign)}; they must differ"
        if sign is not None:
            seen[sign] = key
        if trim and key != "delimiter" and sign is not None and sign in " \t":
            return f"{key} is a blank, and trim takes blanks away; leave one of them out"
    if escape is not None and comment is not None:
        return "escape and comment do not go together: an escape at the end of a comment may or may not belong to it"
    for word in null_values:
        if escape is not None and escape in word:
            return (
                f"null_values: {quoted(word)} holds the escape {quoted(escape)}, which is taken out of cells before; "
                f"name the word without it ({quoted(word.replace(escape, ''))}), or leave the escape out"
            )
    return None


class CsvInput(TableOptions):
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

    @model_validator(mode="after")
    def _signs_differ(self) -> CsvInput:
        if why := wrong_signs(self.delimiter, self.quote, self.escape, self.comment, self.null_values, self.trim):
            raise ValueError(why)
        return self

    @property
    def dialect(self) -> Dialect:
        """What shapes a record."""
        from .records.quote_bits import Dialect  # it takes numpy

        return Dialect.of(self.delimiter, self.quote, self.escape, self.comment, trim=self.trim)
