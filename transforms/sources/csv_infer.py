"""Tell the types of CSV columns from their text: what some rows prove, and what several proofs prove together.

    no value  ->  int64  ->  float64  ->  string         each step takes all texts of the steps before it
    no value  ->  bool   ->  string

A text counts as a number only if the number is all that it says: `00123`, `-0`, `+5` and integers beyond int64 make the
column a string. Dates are strings unless they are declared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..format.rejects import printable
from .csv_cast import cast_column, prove_column
from .csv_parse import Cells, Parser

Kind = Literal["null", "int64", "float64", "bool", "string"]

AUTO_BYTES: Final = 64 << 20
"""Up to this size `infer: auto` reads the whole source: a fraction of a second."""

AUTO_ROWS: Final = 10_000
"""Above it, `infer: auto` reads this many rows of each file."""

_INTEGER_LIKE: Final = r"^[+-]?[0-9]+$"
_LEADING_ZERO: Final = r"^[+-]?0[0-9]"


@dataclass(frozen=True, slots=True)
class Evidence:
    """What some rows say of a column: its type, its nulls, and for text a value that is nothing else, and its row."""

    kind: Kind
    nulls: int
    because: str = ""


def look_at_columns(parser: Parser, cells: Cells, *, typed: Sequence[str] = ()) -> tuple[Evidence, ...]:
    """Return the evidence of one chunk; columns named in `typed` are declared, and only their nulls are counted."""
    return tuple(
        Evidence("string", column.null_count) if name in typed else _look_at(column, cells)
        for name, column in zip(parser.kept, cells.columns, strict=True)
    )


def join_evidence(first: Evidence, second: Evidence) -> Evidence:
    """Return what two pieces of evidence say together.

    >>> join_evidence(Evidence("int64", 0), Evidence("float64", 2))
    Evidence(kind='float64', nulls=2, because='')
    """
    nulls = first.nulls + second.nulls
    kinds: set[Kind] = {first.kind, second.kind}
    kinds.discard("null")
    if len(kinds) <= 1:
        kind: Kind = next(iter(kinds), "null")
    elif kinds == {"int64", "float64"}:
        kind = "float64"
    else:
        kind = "string"
    because = first.because if first.kind == kind else second.because if second.kind == kind else ""
    if kind == "string" and not because and len(kinds) > 1:
        because = " and ".join(f"{name} values" for name in sorted(kinds)) + " in one column"
    return Evidence(kind, nulls, because)


def explain(evidence: Evidence, rows: int, *, whole: bool) -> str:
    """Return the reason for a column's type in words: `rows` were read, all there are if `whole`."""
    seen = f"{rows:,} rows" if whole else f"the first {rows:,} rows"
    nulls = f", {evidence.nulls:,} null" if evidence.nulls else ""
    if evidence.kind == "null":
        text = f"no value in {seen}; declare the type if there will be one"
    elif evidence.kind == "string":
        text = f"{evidence.because or 'text'}; {seen}{nulls}"
    else:
        what = {"int64": "an integer", "float64": "a number", "bool": "true or false"}[evidence.kind]
        text = f"every value is {what} in {seen}{nulls}"
    return text if whole else text + "; nullable, since not all rows were read"


def _look_at(column: pa.Array, cells: Cells) -> Evidence:
    nulls = column.null_count
    if nulls == len(column):
        return Evidence("null", nulls)
    if prove_column(column, pa.int64()) is not None:
        return Evidence("int64", nulls)
    if prove_column(column, pa.float64()) is not None and _first(column, _odd_integers(column), cells) is None:
        return Evidence("float64", nulls)
    if prove_column(column, pa.bool_()) is not None:
        return Evidence("bool", nulls)
    return Evidence("string", nulls, _why_text(column, cells))


def _odd_integers(column: pa.Array) -> pa.Array:
    """Mark the cells that look like integers and are none, or are numbers with a leading zero."""
    integers = pc.match_substring_regex(column, _INTEGER_LIKE)
    bad = np.zeros(len(column), bool)
    masked = pc.if_else(integers, column, pa.scalar(None, column.type))
    if prove_column(masked, pa.int64()) is None:
        _, problems = cast_column(masked, pa.int64(), "")
        bad[[problem.row for problem in problems]] = True
    return pc.or_(pa.array(bad), pc.match_substring_regex(column, _LEADING_ZERO).fill_null(False))


def _why_text(column: pa.Array, cells: Cells) -> str:
    _, problems = cast_column(column, pa.float64(), "")
    if problems:
        return f"{_shown(column, problems[0].row, cells)} is not a number"
    zeros = _first(column, pc.match_substring_regex(column, _LEADING_ZERO), cells)
    if zeros is not None:
        return f"{zeros} has a leading zero, which a number would lose"
    _, problems = cast_column(column, pa.int64(), "")
    for problem in problems:
        if problem.error.code == "INT_OVERFLOW":
            return f"{_shown(column, problem.row, cells)} is beyond int64"
    return f"{_first(column, _odd_integers(column), cells)} is not how a number is written"


def _first(column: pa.Array, marks: pa.Array, cells: Cells) -> str | None:
    rows = np.flatnonzero(marks.fill_null(False).to_numpy(zero_copy_only=False))
    return _shown(column, int(rows[0]), cells) if len(rows) else None


def _shown(column: pa.Array, row: int, cells: Cells) -> str:
    place = cells.origin.place(row)
    return f'"{printable(column[row].as_py())}" ({place.source} row {place.row})'
