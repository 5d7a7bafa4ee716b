"""Make columns of values that Python parsed, by the casts of text: such as pyarrow makes of the same lines."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...format.buffers.arrow_memory import binary_array, bitmap_of, raw_values, valid_mask
from ...format.flow.rejects import TYPE_IS_THE_DATASETS, CellError, CellProblem
from ...format.wording.hints import set_column
from ...format.wording.printable import printable
from ..text.cast import cast_column, holds_integer
from .strict import Integer, Number, Value
from .types import MixedTypes, is_list, noun, type_of

_AT_ONCE: Final = 256
"""Columns that are made at once: of 3,000 rows they take some 10 MB beside their values."""

_LONG_INTEGER: Final = re.compile("-?[0-9]{16,}")
_SURE_DIGITS: Final = 15
"""A float64 holds every integer of so many digits."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column to make: its name, the type to parse it as, and whether its type is declared.

    Of a column that is declared text (`as_json`) each value is kept as it is written in the line.
    """

    name: str
    wire: pa.DataType
    declared: bool = False
    as_json: bool = False


def kept_value(column: Column, cell: Value) -> Any:
    return cell.text if column.as_json and cell.value is not None and not _is_text(cell.value) else cell.value


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """The values of some rows, one after the other, each with the name of its column and its row."""

    names: Sequence[str]
    rows: npt.NDArray[np.int64]
    values: Sequence[Any]

    def by_column(self, columns: Sequence[Column]) -> tuple[npt.NDArray[np.int64], Cells, list[int]]:
        """Return the column of each cell, the cells column by column, and where those of each column begin and end."""
        number = {column.name: n for n, column in enumerate(columns)}
        which = np.fromiter(map(number.__getitem__, self.names), np.int64, len(self.names))
        order = np.argsort(which, kind="stable")
        which, values = which[order], self.values
        ends = np.searchsorted(which, np.arange(len(columns) + 1)).tolist()
        return which, Cells((), self.rows[order], [values[n] for n in order.tolist()]), ends


def build_column(column: Column, values: Sequence[Any]) -> tuple[pa.Array, list[CellProblem]]:
    """Return the values of a column, those that it cannot hold as nulls and problems."""
    array, problems = _Builder(column).build(values, column.wire)
    return array, list({problem.row: problem for problem in reversed(problems)}.values())[::-1]


def build_sparse(columns: Sequence[Column], cells: Cells, rows: int) -> tuple[list[pa.Array], list[CellProblem]]:
    """Return columns of so many rows, null where there is no cell, and what they cannot hold.

    Columns of one type are made at once: with thousands of them, a call for each takes longer than its values.
    """
    groups: dict[tuple[pa.DataType, bool], list[Column]] = defaultdict(list)
    for column in columns:
        groups[(column.wire, column.declared)].append(column)
    which, cells, ends = cells.by_column([column for alike in groups.values() for column in alike])
    arrays: dict[str, pa.Array] = {}
    problems: list[CellProblem] = []
    done = 0
    for alike in groups.values():
        at_once = 1 if alike[0].wire.num_fields else _AT_ONCE
        for start in range(0, len(alike), at_once):
            some = alike[start : start + at_once]
            first, end = ends[done], ends[done + len(some)]
            there = cells.rows[first:end] + rows * (which[first:end] - done)
            made, found = build_column(some[0], cells.values[first:end])
            if not found or len(some) == 1:
                made = made if len(made) == rows * len(some) else _spread(made, there, rows * len(some))
                problems += [CellProblem(int(there[problem.row]), problem.error) for problem in found]
                arrays |= {column.name: made.slice(n * rows, rows) for n, column in enumerate(some)}
            else:  # a value is bad: its column names it
                for n, column in enumerate(some, done):
                    made, found = build_column(column, cells.values[ends[n] : ends[n + 1]])
                    there = cells.rows[ends[n] : ends[n + 1]]
                    arrays[column.name] = made if len(made) == rows else _spread(made, there, rows)
                    problems += [CellProblem(int(there[problem.row]), problem.error) for problem in found]
            done += len(some)
    return [arrays[column.name] for column in columns], problems


def _spread(values: pa.Array, rows: npt.NDArray[np.int64], count: int) -> pa.Array:
    """Return values in the rows that have them, of so many rows; the others are null."""
    absent = np.ones(count, np.bool_)
    absent[rows] = False
    if pa.types.is_int64(values.type) or pa.types.is_float64(values.type):
        dense = np.zeros(count, np.int64 if pa.types.is_int64(values.type) else np.float64)
        dense[rows] = raw_values(values, dense.dtype)
        if (valid := valid_mask(values)) is not None:
            absent[rows] = ~valid
        return pa.Array.from_buffers(values.type, count, [bitmap_of(~absent), pa.py_buffer(dense)])
    index = np.zeros(count, np.int32)
    index[rows] = np.arange(len(rows), dtype=np.int32)
    return values.take(pa.Array.from_buffers(pa.int32(), count, [bitmap_of(~absent), pa.py_buffer(index)]))


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and not isinstance(value, Number)


def _plain_cells(values: Sequence[Any], kind: pa.DataType) -> pa.Array | None:
    """Return the cells of values that all are ASCII text, or numbers, as the type has them; else None."""
    if not set(map(type, values)) <= ({str} if pa.types.is_string(kind) else {Integer, Number}) or not len(values):
        return None
    if pa.types.is_boolean(kind):
        return None
    if pa.types.is_integer(kind) and "-0" in values:
        return None
    sizes = np.fromiter(map(len, values), np.int32, len(values))
    text = "".join(values)
    if (pa.types.is_floating(kind) and sizes.max() > _SURE_DIGITS) or not text.isascii() or len(text) >= 1 << 31:
        return None
    ends = np.append(np.int32(0), np.cumsum(sizes, dtype=np.int32))
    return pa.Array.from_buffers(
        pa.binary(), len(values), [None, pa.py_buffer(ends), pa.py_buffer(text.encode())], null_count=0
    )


@dataclass(frozen=True, slots=True)
class _Builder:
    column: Column

    def build(self, values: Sequence[Any], kind: pa.DataType) -> tuple[pa.Array, list[CellProblem]]:
        if is_list(kind):
            return self._lists(values, kind)
        if pa.types.is_struct(kind):
            return self._structs(values, kind)
        return self._scalars(values, kind)

    def _lists(self, values: Sequence[Any], kind: pa.DataType) -> tuple[pa.Array, list[CellProblem]]:
        problems = [
            self._misfit(row, value, kind)
            for row, value in enumerate(values)
            if value is not None and not isinstance(value, list)
        ]
        lists = [value if isinstance(value, list) else None for value in values]
        flat = [item for value in lists if value is not None for item in value]
        inner, found = self.build(flat, kind.value_type)
        owner = [row for row, value in enumerate(lists) if value is not None for _ in value]
        problems += [CellProblem(owner[problem.row], problem.error) for problem in found]
        bad = {problem.row for problem in problems}
        sizes = [len(value) if value is not None else 0 for value in lists]
        offsets = pa.array(np.concatenate([[0], np.cumsum(sizes)]), pa.int32())
        mask = pa.array([value is None or row in bad for row, value in enumerate(lists)], pa.bool_())
        return pa.ListArray.from_arrays(offsets, inner, kind, mask=mask), problems

    def _structs(self, values: Sequence[Any], kind: pa.DataType) -> tuple[pa.Array, list[CellProblem]]:
        known = {field.name for field in kind}
        problems, rows = [], []
        for row, value in enumerate(values):
            if value is not None and not isinstance(value, dict):
                problems.append(self._misfit(row, value, kind))
            elif value is not None and not known.issuperset(value):
                name = next(name for name in value if name not in known)
                problems.append(self._problem(row, value, "BAD_WIDTH", f'has a key "{printable(name)}" that is new'))
            rows.append(value if isinstance(value, dict) else {})
        arrays = []
        for field in kind:
            array, found = self.build([row.get(field.name) for row in rows], field.type)
            arrays.append(array)
            problems += found
        mask = pa.array([not isinstance(value, dict) for value in values], pa.bool_())
        return pa.StructArray.from_arrays(arrays, fields=list(kind), mask=mask), problems

    def _scalars(self, values: Sequence[Any], kind: pa.DataType) -> tuple[pa.Array, list[CellProblem]]:
        if (plain := _plain_cells(values, kind)) is not None:
            return cast_column(plain, kind, self.column.name, null_words=False)
        problems: list[CellProblem] = []
        cells: list[bytes | None] = []
        for row, value in enumerate(values):
            cell, problem = self._cell(row, value, kind)
            cells.append(cell)
            if problem is not None:
                problems.append(problem)
        array, found = cast_column(binary_array(cells), kind, self.column.name, null_words=False)
        return array, problems + found

    def _cell(self, row: int, value: Any, kind: pa.DataType) -> tuple[bytes | None, CellProblem | None]:
        if value is None:
            return None, None
        if isinstance(value, Number):
            if pa.types.is_string(kind) or pa.types.is_boolean(kind):
                return None, self._misfit(row, value, kind)
            if pa.types.is_floating(kind) and _LONG_INTEGER.fullmatch(value) and not holds_integer(value):
                return None, self._problem(row, value, "PRECISION_LOSS", "has more digits than a float64 can hold")
            return b"0" if value == "-0" and pa.types.is_integer(kind) else value.encode(), None
        if isinstance(value, bool) and pa.types.is_boolean(kind):
            return (b"true" if value else b"false"), None
        if not isinstance(value, str) or not (pa.types.is_string(kind) or self.column.declared):
            return None, self._misfit(row, value, kind)
        try:
            return value.encode(), None
        except UnicodeEncodeError:
            text = "holds half a character (a lone surrogate)"
            return None, self._problem(row, value, "BAD_UTF8", text, "fix the file")

    def _misfit(self, row: int, value: Any, kind: pa.DataType) -> CellProblem:
        try:
            found = noun(type_of(value))
        except MixedTypes:
            found = "a list of several types"
        return self._problem(row, value, "BAD_TYPE", f"is {found}, and not {noun(kind)}", expected=noun(kind))

    def _problem(
        self, row: int, value: Any, code: str, text: str, fix: str | None = None, expected: str = ""
    ) -> CellProblem:
        shown = printable(value if isinstance(value, str) else _as_json(value))
        declare = f"declare it: {set_column(self.column.name, 'type', 'string')}"
        message = f'"{shown}" {text}'
        return CellProblem(
            row,
            CellError(
                self.column.name, code, shown, expected or noun(self.column.wire),
                f"{message}; {fix or f'{declare}, which keeps the text of values'}",
                f"{message}; {fix or TYPE_IS_THE_DATASETS}",
            ),
        )  # fmt: skip


def _as_json(value: Any) -> str:
    """Return a value about as it was written."""
    if isinstance(value, dict):
        return "{" + ", ".join(f'"{name}": {_as_json(item)}' for name, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_as_json, value[:20])) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return "null" if value is None else value if isinstance(value, Number) else f'"{value}"'
