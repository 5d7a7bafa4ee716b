"""The options of CSV files: the keys of `input`, with their checks."""

from __future__ import annotations

import re
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints, model_validator

from ...format.wording.printable import quoted
from ..registry.options import Columns, Encoding, TableOptions
from .hints import wrong_signs

_BY_NAME: Final = {"\\t": "\t", "tab": "\t", "space": " "}
"""Characters as they are typed on a command line."""


def _check_one_byte(value: str) -> str:
    value = _BY_NAME.get(value, value)
    if re.fullmatch(r"\\x[0-7][0-9a-fA-F]", value):
        value = chr(int(value[2:], 16))
    if len(value) != 1 or not value.isascii() or value in "\r\n\0":
        raise ValueError(f"{quoted(value)} is not one ASCII character")
    return value


OneByte: TypeAlias = Annotated[str, AfterValidator(_check_one_byte)]


ShortRows: TypeAlias = Annotated[
    Literal["reject"] | None,
    BeforeValidator(
        lambda value: None if value == "null" else value, json_schema_input_type=Literal["reject", "null"] | None
    ),
]
"""What a row with too few cells is; YAML reads `null` as None."""


class CsvInput(TableOptions):
    """CSV files; `names` are the column names where there is no header, or instead of it; no `quote` is null.

    `skip_lines` are before the header, and lines that begin with `comment` are no rows; the character after an `escape`
    means itself; `trim` takes blanks around cells away; rows with too few cells are rejects, or have null ones more.
    With `repeated_header: drop` rows that are the header again are left out, as in files that were joined.
    `row_names` is the name of the first column, where the header lacks one for it, as headers that R writes do.

    `load_config` sets `delimiter` where it is left out, as the first records show it.
    """

    format: Literal["csv"] = "csv"
    delimiter: OneByte = ","
    quote: OneByte | None = '"'
    header: bool = True
    names: Columns = None
    row_names: Annotated[str, StringConstraints(min_length=1)] | None = None
    encoding: Encoding = "utf-8"
    null_values: list[str] = Field([""])
    skip_lines: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    comment: OneByte | None = None
    escape: OneByte | None = None
    trim: bool = False
    short_rows: ShortRows = "reject"
    repeated_header: Literal["keep", "drop"] = "keep"

    @model_validator(mode="after")
    def _signs_differ(self) -> CsvInput:
        if why := wrong_signs(self.delimiter, self.quote, self.escape, self.comment, self.null_values, self.trim):
            raise ValueError(why)
        if self.repeated_header == "drop" and (not self.header or self.limit is not None):
            raise ValueError("repeated_header: drop goes with a header, and without limit; leave one out")
        if self.row_names is not None and not self.header:
            raise ValueError("row_names goes with a header that lacks one name; without a header give all in names")
        return self
