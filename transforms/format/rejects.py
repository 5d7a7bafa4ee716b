"""Rows that could not become Examples: where they came from, and why."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

CODES: Final = (
    "BAD_WIDTH", "BAD_TYPE", "BAD_UTF8", "INT_OVERFLOW", "FLOAT_OVERFLOW", "PRECISION_LOSS", "FLOAT_UNDERFLOW",
    "NULL_IN_LIST", "FIELD_TOO_LARGE", "RECORD_TOO_LARGE", "NOT_AN_IMAGE", "TRUNCATED", "CORRUPT", "UNSUPPORTED",
    "TOO_MANY_PIXELS", "MISSING_FILE", "UNREADABLE", "NOT_A_FILE", "OUTSIDE_ROOT", "BAD_DTYPE", "DECLARED_NOT_NULL",
)  # fmt: skip
"""The closed list of reject codes."""

VALUE_LIMIT: Final = 80
"""A value is cut at this many characters wherever it is shown: a cell may be megabytes long."""


def printable(value: object) -> str:
    r"""Return a value as one line of at most 80 characters that is safe to print on a terminal.

    Bytes are read as UTF-8; whatever is not printable is escaped, so that data cannot forge a line or move a cursor.

    >>> printable(b"caf\xc3\xa9\x1b[2J")
    'café\\x1b[2J'
    """
    text = value.decode("utf-8", "backslashreplace") if isinstance(value, (bytes, bytearray)) else str(value)
    cut = text[: VALUE_LIMIT + 1]
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape", "backslashreplace").decode() for c in cut)
    return shown if len(shown) <= VALUE_LIMIT else shown[: VALUE_LIMIT - 1] + "…"


def printable_path(path: str | bytes) -> str:
    r"""Return a path as one line that is safe to print, escaped like a value and never cut: its end tells the file.

    >>> printable_path(b"data/caf\xe9\n.csv")
    'data/caf\\xe9\\n.csv'
    """
    held = path if isinstance(path, bytes) else path.encode("utf-8", "surrogateescape")
    text = held.decode("utf-8", "backslashreplace")
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a row came from. Rows, lines and records count from 1 without the header; offsets and row groups from 0."""

    source: str
    row: int | None = None
    line: int | None = None
    offset: int | None = None
    row_group: int | None = None
    record: int | None = None


@dataclass(frozen=True, slots=True)
class CellError:
    """What is wrong with one cell (or, where `column` is None, with the whole row)."""

    column: str | None
    code: str
    value: str
    expected: str
    message: str


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

    def to_json_line(self) -> str:
        """Return the row's line of the reject file, without its newline."""
        document: dict[str, Any] = {"source": self.place.source, "split": self.split}
        for key in ("row", "line", "offset", "row_group", "record"):
            value = getattr(self.place, key)
            if value is not None:
                document[key] = value
        document["errors"] = [
            {"column": e.column, "code": e.code, "value": e.value, "expected": e.expected, "message": e.message}
            for e in self.errors
        ]
        return json.dumps(document, ensure_ascii=False)
