"""Infer the types of CSV columns from their text: what some rows prove, and what several proofs prove together.

    no value  ->  int64  ->  float64  ->  string         each step takes all texts of the steps before it
    no value  ->  bool   ->  string

A text counts as a number only if the number is all that it says: `00123`, `+5` and integers beyond int64 make the
column a string. So does `-0` among integers, which have no such number; in a column that has floats too it is the float
-0.0. Dates are strings unless they are declared.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ...format.buffers.arrow_memory import array_of, beginning_of, true_mask
from ...format.wording.printable import VALUE_LIMIT, printable
from ..text.cast import cell_bytes, first_problem, leading_zeros, nullify, prove_column
from .obstacles import (
    GROUPED,
    NULL_OF_DUMPS,
    Look,
    Obstacles,
    find_obstacles,
    look_at_bools,
    look_at_escaped_nulls,
    look_at_escapes,
    look_at_floats,
    look_at_nulls,
    look_at_points,
    look_at_rows,
    look_at_text,
)
from .parse import Cells, Parser

Kind = Literal["null", "int64", "float64", "bool", "string"]

AUTO_ROWS: Final = 10_000
"""Above `CsvLimits.auto_bytes`, `infer: auto` reads this many rows of each file."""

_TRIED_ROWS: Final = 64
_DATE: Final = rb"[0-9]{4}-[0-9]{2}-[0-9]{2}(?![0-9])"
_INTEGER_LIKE: Final = r"^[+-]?[0-9]+$"
_NEGATIVE_ZERO: Final = b"-0"
_LONG: Final = 16
"""An integer of fewer characters is a float64."""

_MORE_DIGITS: Final = "has more digits than a float64 can hold"


@dataclass(frozen=True, slots=True)
class Evidence:
    """What some rows say of a column: its type, its nulls, and for text a value that is nothing else, and its row.

    `obstacles` are the values without which text would be numbers, where they are few. With `float_elsewhere` these are
    integers and `-0`, text by themselves and floats in a column that has floats in other rows. `rounded` is an integer
    that float64 does not hold, and its row: beside floats these are text. `look` is what the first cells look like.
    """

    kind: Kind
    nulls: int
    because: str = ""
    obstacles: Obstacles | None = None
    float_elsewhere: bool = False
    rounded: str = ""
    look: Look | None = None


def look_at_columns(parser: Parser, cells: Cells, *, typed: Sequence[str] = ()) -> tuple[Evidence, ...]:
    """Return the evidence of one chunk; columns named in `typed` are declared, and only their nulls are counted."""
    return tuple(
        Evidence("string", column.null_count) if name in typed else _look_at(column, cells)
        for name, column in zip(parser.kept, cells.columns, strict=True)
    )


def join_evidence(first: Evidence, second: Evidence) -> Evidence:
    """Return what two pieces of evidence say together.

    >>> join_evidence(Evidence("int64", 0), Evidence("float64", 2)).kind
    'float64'
    """
    look = first.look or second.look
    if look is not None and look.kind == GROUPED:  # all floats look so, or none
        floats = [one.look for one in (first, second) if one.kind == "float64"]
        look = next((one for one in floats if one is None or one.kind != GROUPED), look)
    return replace(_join(first, second), look=look)


def _join(first: Evidence, second: Evidence) -> Evidence:
    nulls, rounded = first.nulls + second.nulls, first.rounded or second.rounded
    first, second = _beside(first, second), _beside(second, first)
    kinds: set[Kind] = {first.kind, second.kind}
    kinds.discard("null")
    if len(kinds) <= 1:
        kind: Kind = next(iter(kinds), "null")
    elif kinds == {"int64", "float64"}:
        kind = "float64"
    else:
        kind = "string"
    because = first.because if first.kind == kind else second.because if second.kind == kind else ""
    if kinds == {"int64", "float64"} and rounded:
        return Evidence("string", nulls, f"{rounded} {_MORE_DIGITS}")
    if kind == "string" and not because and len(kinds) > 1:
        because = " and ".join(f"{name} values" for name in sorted(kinds)) + " in one column"
    if kind != "string":
        return Evidence(kind, nulls, because, rounded=rounded)
    elsewhere = all(one.float_elsewhere or one.kind in ("null", "int64") for one in (first, second))
    return Evidence(kind, nulls, because, _join_obstacles(first, second), elsewhere)


def _beside(evidence: Evidence, other: Evidence) -> Evidence:
    """Return evidence as it counts beside other evidence of the same column."""
    is_float = evidence.float_elsewhere and other.kind == "float64"
    return Evidence("float64", evidence.nulls) if is_float else evidence


def explain(evidence: Evidence, rows: int, *, whole: bool) -> str:
    """Return the reason for a column's type in words: `rows` were read, all there are if `whole`."""
    seen = f"{rows:,} row{'' if rows == 1 else 's'}"
    seen = seen if whole else f"the first {seen}"
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
    if _is_all(column, pa.int64()):
        return Evidence("int64", nulls, rounded=_rounded(column, cells))
    if _is_all(column, pa.float64()):
        odd = _odd_integer(column, cells)
        if odd is None:
            look = look_at_floats(column, lambda row: _place(row, cells))
            if look is None and cells.origin.dialect.delimiter == ord(";"):
                look = look_at_points(column, lambda row: _place(row, cells))
            return Evidence("float64", nulls, look=look)
        zeros = nullify(column, _true_rows(pc.equal(column, _NEGATIVE_ZERO)))
        elsewhere = zeros.null_count > nulls and (zeros.null_count == len(zeros) or _is_all(zeros, pa.int64()))
        return Evidence("string", nulls, odd, _obstacles(column, cells), elsewhere)
    if _is_all(column, pa.bool_()):
        return Evidence("bool", nulls)
    origin = cells.origin
    look = look_at_text(column, lambda row: _place(row, cells)) if origin.chunk.before.records == 0 else None
    if look is None and origin.dialect.quote is not None and origin.dialect.quote in origin.chunk.text:
        look = look_at_rows(column, origin.dialect.delimiter, len(cells.names), lambda row: _place(row, cells))
    look = look or look_at_bools(column, lambda row: _place(row, cells))
    if look is None and NULL_OF_DUMPS in origin.chunk.text and b'"' + NULL_OF_DUMPS not in origin.chunk.text:
        look = look_at_nulls(column, lambda row: _place(row, cells))
        if look is None and origin.dialect.escape is None:
            look = look_at_escapes(column, lambda row: _place(row, cells))
        elif look is None:
            text, sign = origin.chunk.text, origin.dialect.delimiter
            look = look_at_escaped_nulls(column, text, sign, lambda row: _place(row, cells))
    return Evidence("string", nulls, _why_text(column, cells), _obstacles(column, cells), look=look)


def _rounded(column: pa.Array, cells: Cells) -> str:
    if int(cell_bytes(column).max()) < _LONG:
        return ""
    problem = first_problem(column, pa.float64())
    return "" if problem is None else _shown(column, problem[0], cells)


def _obstacles(column: pa.Array, cells: Cells) -> Obstacles | None:
    origin = cells.origin
    found = find_obstacles(column, lambda row: _place(row, cells), origin.chunk.text, origin.dialect.quote)
    if found is None or _is_text(nullify(column, found[0]), cells):
        return None
    return found[1]


def _is_text(column: pa.Array, cells: Cells) -> bool:
    """Return whether a column without words is text all the same: such numbers would lose something."""
    numbers = _is_all(column, pa.int64()) or (_is_all(column, pa.float64()) and _odd_integer(column, cells) is None)
    return not numbers and column.null_count < len(column)


def _join_obstacles(first: Evidence, second: Evidence) -> Obstacles | None:
    found = [Obstacles() if e.kind in ("null", "int64", "float64") else e.obstacles for e in (first, second)]
    return None if found[0] is None or found[1] is None else found[0].plus(found[1])


def _is_all(column: pa.Array, target: pa.DataType) -> bool:
    # Arrow's cast makes a message for every cell that fails, so that a failing column costs ten times a good one
    head = column.slice(0, _TRIED_ROWS)
    return all(prove_column(part, target) is not None for part in (head, column))


def _odd_integer(column: pa.Array, cells: Cells) -> str | None:
    """Return why a column of floats is not one: a cell that looks like an integer and is none, or a leading zero."""
    zeros = leading_zeros(column)
    if len(zeros):
        return f"{_shown(column, int(zeros[0]), cells)} has a leading zero, which a number would lose"
    # most floats have a point: only the others are checked against the pattern, which takes longer than the cast
    rows = _true_rows(pc.invert(pc.match_substring(column, ".")))
    rows = rows[_true_rows(pc.match_substring_regex(column.take(array_of(rows)), _INTEGER_LIKE))]
    problem = first_problem(column.take(array_of(rows)), pa.int64()) if len(rows) else None
    if problem is not None and len(rows) < len(column) - column.null_count:  # beside floats "-0" is one
        rows = rows[_true_rows(pc.not_equal(column.take(array_of(rows)), _NEGATIVE_ZERO))]
        problem = first_problem(column.take(array_of(rows)), pa.int64()) if len(rows) else None
    if problem is None:
        return None
    row, code = int(rows[problem[0]]), problem[1]
    what = "is beyond int64" if code == "INT_OVERFLOW" else "is not how an integer is written"
    return f"{_shown(column, row, cells)} {what}"


def _true_rows(flags: pa.Array) -> npt.NDArray[np.int64]:
    return np.flatnonzero(true_mask(flags))


def _why_text(column: pa.Array, cells: Cells) -> str:
    problem = first_problem(column, pa.float64())
    if problem is not None:
        shown = _shown(column, problem[0], cells)
        if re.match(_DATE, _beginning(column, problem[0])):
            return f"{shown} looks like a date; dates stay text unless declared (type: date or timestamp)"
        if problem[1] == "PRECISION_LOSS":
            is_int64 = prove_column(column.slice(problem[0], 1), pa.int64()) is not None
            return f"{shown} {_MORE_DIGITS if is_int64 else 'is beyond int64'}"
        return f"text, e.g. {shown}"
    return _odd_integer(column, cells) or "text"


def _shown(column: pa.Array, row: int, cells: Cells) -> str:
    return f'"{printable(_beginning(column, row))}" ({_place(row, cells)})'


def _beginning(column: pa.Array, row: int) -> bytes:
    """Return what is shown of a cell at the most, without a copy of the whole."""
    return beginning_of(column, row, 4 * (VALUE_LIMIT + 1))


def _place(row: int, cells: Cells) -> str:
    place = cells.origin.place(row)
    return f"{place.source} row {place.row}"
