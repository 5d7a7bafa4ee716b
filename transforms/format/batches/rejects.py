"""Rejects, rows that could not become Examples: where they came from, why, and how many a run may have."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final

from ...errors import UsageError
from ..wording.hints import Command
from ..wording.printable import quoted, safe_json

CODES: Final = (
    "BAD_WIDTH", "BAD_TYPE", "BAD_UTF8", "INT_OVERFLOW", "FLOAT_OVERFLOW", "PRECISION_LOSS", "FLOAT_UNDERFLOW",
    "NULL_IN_LIST", "FIELD_TOO_LARGE", "RECORD_TOO_LARGE", "NOT_AN_IMAGE", "TRUNCATED", "CORRUPT", "UNSUPPORTED",
    "TOO_MANY_PIXELS", "MISSING_FILE", "UNREADABLE", "NOT_A_FILE", "OUTSIDE_ROOT", "BAD_DTYPE", "DECLARED_NOT_NULL",
    "UNKNOWN_CLASS", "NO_SPLIT", "BAD_BOX", "BAD_QUOTE",
)  # fmt: skip
"""The closed list of reject codes."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a row came from. Rows and lines count from 1 without the header; records, offsets and row groups from 0.

    `picture` is the one that a file of annotations names, whose rows a user does not see.
    """

    source: str
    row: int | None = None
    line: int | None = None
    offset: int | None = None
    row_group: int | None = None
    record: int | None = None
    picture: str | None = None


def warning_at(place: Place, text: str) -> str:
    """Return a warning with its place, as it is shown.

    >>> warning_at(Place("pets/1.jpg"), "bad Huffman code"), warning_at(Place("a.csv", row=3), "bad Huffman code")
    ('pets/1.jpg (bad Huffman code)', 'a.csv row 3 (bad Huffman code)')
    """
    numbers = {key: getattr(place, key) for key in ("row", "line", "record")}
    where = "".join(f" {key} {number}" for key, number in numbers.items() if number is not None)
    return f"{place.picture or place.source}{'' if place.picture else where} ({text})"


TYPE_IS_THE_DATASETS: Final = "the type is the dataset's: fix the file"
NEW_DATASET: Final = Command("convert", "...", "-o", "FOLDER")
UNIT_IS_THE_DATASETS: Final = (
    f"the unit is the dataset's: fix the file, or convert all files to a new dataset ({NEW_DATASET})"
)
"""The fix of a cell that does not fit, in an append: there no other type can be declared."""


@dataclass(frozen=True, slots=True)
class CellError:
    """What is wrong with one cell (or, where `column` is None, with the whole row).

    `message` ends with the fix; `append_message` is the message in an append, where the fix would be to declare
    something, since there the schema is the dataset's.
    """

    column: str | None
    code: str
    value: str
    expected: str
    message: str
    append_message: str | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class CellProblem:
    """A bad cell of a batch, before its row is known by its place: `row` counts from 0 in the batch."""

    row: int
    error: CellError


@dataclass(frozen=True, slots=True)
class Reject:
    """One rejected row with all its bad cells; `entry` is the index of its file (images: folder) in the listing."""

    entry: int
    place: Place
    errors: tuple[CellError, ...]
    split: str | None = None

    def to_json_line(self, *, in_append: bool = False) -> str:
        document: dict[str, Any] = {"source": self.place.source, "split": self.split}
        for key in ("row", "line", "offset", "row_group", "record", "picture"):
            value = getattr(self.place, key)
            if value is not None:
                document[key] = value
        document["errors"] = [
            {"column": e.column, "code": e.code, "value": e.value, "expected": e.expected, "message": message}
            for e in self.errors
            for message in ((e.append_message if in_append else None) or e.message,)
        ]
        return safe_json(json.dumps(document, ensure_ascii=False))


_PERCENT: Final = re.compile(r"(?:100(?:\.0+)?|[0-9]{1,2}(?:\.[0-9]+)?) ?%")


def parse_max_rejects(value: object) -> int | str:
    """Return a number of rows, or a percentage of them as text; raise `ValueError` if it is neither.

    >>> parse_max_rejects("7"), parse_max_rejects("0.5 %")
    (7, '0.5%')
    """
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    if isinstance(value, str) and value.isdecimal():
        return int(value)
    if isinstance(value, str) and _PERCENT.fullmatch(value):
        return value.replace(" ", "")
    raise ValueError(f'{quoted(value)} is not a number of rows (0 or more) or a percentage of them ("1%")')


def rejects_allowed(max_rejects: int | str, rows_read: int) -> int:
    """Return how many rejects `max_rejects` allows; a percentage of the rows read is rounded down.

    >>> rejects_allowed(3, 10), rejects_allowed("1%", 250)
    (3, 2)
    """
    try:
        most = parse_max_rejects(max_rejects)
    except ValueError as error:
        raise UsageError(f"max_rejects: {error}") from error
    return most if isinstance(most, int) else int(Decimal(most.removesuffix("%")) * rows_read / 100)


def may_be_left_out(rejected: int, read: int) -> bool:
    """Return whether a message may propose to leave rejects out: of more than half the cause is to be fixed."""
    return 2 * rejected <= read
