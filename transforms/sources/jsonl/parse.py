"""Parse JSON lines into typed columns; every bad line and every bad value is named by its place."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ...format.batches.arrow_memory import array_of, binary_array, bitmap_of, raw_values, true_mask, valid_mask
from ...format.batches.rejects import TYPE_IS_THE_DATASETS, CellError, CellProblem, Reject
from ...format.wording.hints import Add, Set, set_column
from ...format.wording.printable import printable
from ..text.cast import cast_column, holds_integer, null_fix, without_words
from ..text.lines import I64, LineOrigin, Lines, origin_of
from .lanes import both_lanes, is_sparse, parts_by_cells, run_arrow
from .values import (
    Integer,
    LineError,
    MixedTypes,
    Number,
    Value,
    Words,
    count_keys,
    is_list,
    noun,
    parse_line,
    type_of,
    values_of_line,
    without_nulls,
)

_SHOWN: Final = 400


@dataclass(frozen=True, slots=True)
class LineParser:
    """How lines become rows: what all files of a source share.

    `columns` are read, as `targets`. Other keys may be those in `others`, which are parsed to see that there is none
    but these; with `ignores` they may be any, and are not looked at.
    """

    columns: tuple[Column, ...]
    targets: tuple[pa.DataType, ...]
    others: tuple[pa.Field, ...] = ()
    ignores: bool = False
    record_bytes: int = 1 << 30

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([*(pa.field(one.name, one.wire) for one in self.columns), *self.others])

    def of(self, keys: frozenset[str]) -> LineParser:
        kept = [i for i, column in enumerate(self.columns) if column.name in keys]
        return replace(
            self,
            columns=tuple(self.columns[i] for i in kept),
            targets=tuple(self.targets[i] for i in kept),
            others=tuple(one for one in self.others if one.name in keys),
        )


@dataclass(frozen=True, slots=True, eq=False)
class ParsedLines:
    """The rows of some lines, the bad cells among them, and the lines that are no rows."""

    batch: pa.RecordBatch
    origin: LineOrigin
    problems: tuple[CellProblem, ...]
    rejects: tuple[Reject, ...]


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """What became of a range of lines: columns, the records that are in them, problems by row, lines that are none."""

    arrays: list[pa.Array]
    kept: I64
    problems: list[CellProblem]
    errors: list[tuple[int, CellError]]


def parse_in_parts(parser: LineParser, lines: Lines, name: str, entry: int) -> Iterator[ParsedLines]:
    """Parse some lines of a file, in parts whose memory is bounded: columns without a value share one array."""
    known = {one.name: count_keys([one.wire]) for one in parser.columns}
    known |= {one.name: count_keys([one.type]) for one in parser.others}
    for part, keys in parts_by_cells(lines, known):
        if keys is None:
            yield parse_lines(parser, part, name, entry)
            continue
        parsed = parse_lines(parser.of(keys), part, name, entry)
        there = dict(zip(parsed.batch.schema.names, parsed.batch.columns, strict=True))
        rows = len(parsed.origin.rows)
        nulls = {target: pa.nulls(rows, target) for target in dict.fromkeys(parser.targets)}
        arrays = [
            there.get(column.name, nulls[target]) for column, target in zip(parser.columns, parser.targets, strict=True)
        ]
        batch = pa.RecordBatch.from_arrays(arrays, names=[column.name for column in parser.columns])
        yield replace(parsed, batch=batch)


def parse_lines(parser: LineParser, lines: Lines, name: str, entry: int) -> ParsedLines:
    work = _Work.of(parser, lines)
    sparse = is_sparse(lines.text, len(work.index) * len(parser.columns))
    parts = list(both_lanes(lines, len(work.index), None if sparse else work.fast, work.slow))
    kept = np.concatenate([part.kept for part in parts]) if parts else np.empty(0, np.int64)
    order = np.argsort(kept, kind="stable")
    in_order = bool((order[1:] > order[:-1]).all())
    row_of = np.argsort(order, kind="stable")
    problems, done = [], 0
    for part in parts:
        problems += [CellProblem(int(row_of[done + problem.row]), problem.error) for problem in part.problems]
        done += len(part.kept)
    arrays = []
    for number, (column, target) in enumerate(zip(parser.columns, parser.targets, strict=True)):
        chunks = [part.arrays[number] for part in parts]
        wire = chunks[0] if len(chunks) == 1 else pa.concat_arrays(chunks) if chunks else pa.nulls(0, column.wire)
        wire = wire if in_order else wire.take(array_of(order))
        if column.nulls and pa.types.is_string(wire.type):
            wire = without_words(wire.view(pa.binary()), column.nulls).view(wire.type)
        array, found = finish(wire, target, column.name, column.nulls)
        arrays.append(array)
        problems += found
    if len(problems) > 1:
        place = {column.name: i for i, column in enumerate(parser.columns)}
        problems.sort(key=lambda p: (p.row, place[p.error.column or ""]))
    names = [column.name for column in parser.columns]
    errors = sorted((one for part in parts for one in part.errors), key=lambda one: one[0])
    rejects = tuple(Reject(entry, lines.place(name, record), (error,)) for record, error in errors)
    batch = pa.RecordBatch.from_arrays(arrays, names=names)
    return ParsedLines(batch, origin_of(lines, name, kept[order]), tuple(problems), rejects)


@dataclass(frozen=True, slots=True, eq=False)
class _Work:
    """How to parse some lines; those are `plain` of which all members are read, and none as it is written."""

    parser: LineParser
    lines: Lines
    index: I64
    known: Mapping[str, Column]
    others: frozenset[str]
    plain: bool
    nulls: Words

    @classmethod
    def of(cls, parser: LineParser, lines: Lines) -> _Work:
        known = {column.name: column for column in parser.columns}
        others = frozenset(field.name for field in parser.others)
        plain = not (parser.ignores or others or any(column.as_json for column in parser.columns))
        nulls = {column.name: column.nulls for column in parser.columns if column.nulls}
        return cls(parser, lines, lines.records, known, others, plain, nulls)

    def fast(self, text: bytes, part: I64) -> _Part | None:
        parser = self.parser
        if self._sizes(part).max(initial=0) > parser.record_bytes:
            return None
        table = run_arrow(text, len(part), parser.schema, "ignore" if parser.ignores else "error")
        if table is None:
            return None
        columns = [table.column(column.name) for column in parser.columns]
        arrays = [one.chunk(0) if one.num_chunks == 1 else one.combine_chunks() for one in columns]
        return _Part(arrays, part, [], [])

    def slow(self, part: I64) -> _Part:
        names: list[str] = []
        values: list[Any] = []
        sizes, kept, errors = [], [], []
        for record in part.tolist():
            try:
                members = self._members(record)
            except LineError as error:
                errors.append((record, self._error(record, error)))
                continue
            names += members
            values += members.values()
            sizes.append(len(members))
            kept.append(record)
        rows = np.repeat(np.arange(len(kept)), sizes)
        arrays, problems = build_sparse(self.parser.columns, SparseCells(names, rows, values), len(kept))
        return _Part(arrays, np.array(kept, np.int64), problems, errors)

    def _sizes(self, part: I64) -> I64:
        lines = self.lines
        if len(lines.text) <= self.parser.record_bytes:
            return np.empty(0, np.int64)
        index = self.index[part]
        return lines.ends[index] - lines.starts[index]

    def _members(self, record: int) -> dict[str, Any]:
        parser, lines = self.parser, self.lines
        index = self.index[record]
        if (large := lines.too_large(int(index), parser.record_bytes)) is not None:
            raise LineError(*large)
        line = lines.text[lines.starts[index] : lines.ends[index]]
        if self.plain:
            members = values_of_line(line)
        else:
            ignores = (lambda name: name not in self.known) if parser.ignores else self.others.__contains__
            found = parse_line(line, ignores)
            members = {n: kept_value(self.known[n], one) if n in self.known else None for n, one in found.items()}
        if not members.keys() <= self.known.keys():
            name = next(name for name in members if name not in self.known)
            what = f'has a key "{printable(name)}" that no row has that was looked at for types'
            fix = f"declare it: {set_column(name, 'type', 'TYPE')}, or {Set('schema.infer', 'full')}"
            raise LineError("BAD_WIDTH", f"{what}; {fix}")
        return without_nulls(members, self.nulls)

    def _error(self, record: int, error: LineError) -> CellError:
        lines = self.lines
        index = self.index[record]
        shown = printable(lines.text[lines.starts[index] : min(lines.ends[index], lines.starts[index] + _SHOWN)])
        return CellError(None, error.code, shown, "a JSON object", error.text)


def finish(
    wire: pa.Array, target: pa.DataType, column: str, nulls: Sequence[str] | None
) -> tuple[pa.Array, list[CellProblem]]:
    if wire.type == target:
        return wire, []
    if is_list(target):
        inner, found = finish(wire.flatten(), target.value_type, column, None)
        owner = pc.list_parent_indices(wire).to_pylist() if found else []
        problems = [CellProblem(owner[problem.row], problem.error) for problem in found]
        rows = np.array(sorted({problem.row for problem in problems}), np.int64)
        mask = true_mask(wire.is_null()) | np.isin(np.arange(len(wire)), rows)
        lengths, valid = raw_values(pc.list_value_length(wire).cast(pa.int32()), np.int32), valid_mask(wire)
        sizes = lengths if valid is None else np.where(valid, lengths, 0)
        offsets = array_of(np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32))
        return pa.ListArray.from_arrays(offsets, inner, target, mask=array_of(mask)), problems
    if pa.types.is_floating(target):
        return _narrowed(wire, target, column)
    return cast_column(wire.view(pa.binary()), target, column, nulls=nulls)


def _narrowed(wire: pa.Array, target: pa.DataType, column: str) -> tuple[pa.Array, list[CellProblem]]:
    """Return float64 values in fewer bits; those that would become infinite, or zero, are problems."""
    values = wire.to_numpy(zero_copy_only=False)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        narrow = values.astype(np.float16 if target.bit_width == 16 else np.float32)
        lost = [
            (np.isinf(narrow) & np.isfinite(values), "FLOAT_OVERFLOW", "is beyond what a {} can hold"),
            ((narrow == 0) & (values != 0), "FLOAT_UNDERFLOW", "would become 0 as a {}"),
        ]
    problems: list[CellProblem] = []
    bad = wire.is_null().to_numpy(zero_copy_only=False)
    for rows, code, text in lost:
        bad = bad | rows
        problems += [_too_fine(row, values[row], code, text, target, column) for row in np.flatnonzero(rows).tolist()]
    return pa.array(narrow, target, mask=bad), sorted(problems, key=lambda problem: problem.row)


def _too_fine(row: int, value: Any, code: str, text: str, target: pa.DataType, column: str) -> CellProblem:
    message = f'"{float(value)!r}" {text.format(f"float{target.bit_width}")}'
    fix = f"keep it exact: {Add(set_column(column, 'type', 'float64'), set_column(column, 'as', 'bytes'))}"
    error = CellError(
        column, code, repr(float(value)), "float", f"{message}; {fix}", f"{message}; {TYPE_IS_THE_DATASETS}"
    )
    return CellProblem(row, error)


# Columns of values that Python parsed are made by the casts of text: such as pyarrow makes of the same lines.

_AT_ONCE: Final = 256
"""Columns that are made at once: of 3,000 rows they take some 10 MB beside their values."""

_LONG_INTEGER: Final = re.compile("-?[0-9]{16,}")
_SURE_DIGITS: Final = 15
"""The digits up to which a float64 holds every integer."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column to make: its name, the type to parse it as, whether its type is declared, its words for null.

    Of a column that is declared text or times (`as_json`) each value is kept as it is written in the line, numbers with
    the `decimal` sign of the column's texts. Members of `mixed` objects are text where they are of several types.
    """

    name: str
    wire: pa.DataType
    declared: bool = False
    as_json: bool = False
    nulls: tuple[str, ...] = ()
    decimal: str = "."
    mixed: bool = False


def kept_value(column: Column, cell: Value) -> Any:
    if not column.as_json or cell.value is None or _is_text(cell.value):
        return cell.value
    return cell.text.replace(".", column.decimal) if isinstance(cell.value, Number) else cell.text


@dataclass(frozen=True, slots=True, eq=False)
class SparseCells:
    """The values of some rows, one after the other, each with the name of its column and its row."""

    names: Sequence[str]
    rows: npt.NDArray[np.int64]
    values: Sequence[Any]

    def by_column(self, columns: Sequence[Column]) -> tuple[npt.NDArray[np.int64], SparseCells, list[int]]:
        """Return the column of each cell, the cells column by column, and where those of each column begin and end."""
        number = {column.name: n for n, column in enumerate(columns)}
        which = np.fromiter(map(number.__getitem__, self.names), np.int64, len(self.names))
        small = which.astype(np.uint16) if len(columns) <= 1 << 16 else which  # sorted by its digits
        order = np.argsort(small, kind="stable")
        which, values = which[order], self.values
        ends = np.searchsorted(which, np.arange(len(columns) + 1)).tolist()
        return which, SparseCells((), self.rows[order], [values[n] for n in order.tolist()]), ends


def build_column(column: Column, values: Sequence[Any]) -> tuple[pa.Array, list[CellProblem]]:
    """Return the values of a column, those that it cannot hold as nulls and problems."""
    array, problems = _Builder(column).build(values, column.wire)
    return array, list({problem.row: problem for problem in reversed(problems)}.values())[::-1]


def build_sparse(columns: Sequence[Column], cells: SparseCells, rows: int) -> tuple[list[pa.Array], list[CellProblem]]:
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
    there = np.zeros(count, np.bool_)
    there[rows] = True
    is_number = pa.types.is_int64(values.type) or pa.types.is_float64(values.type)
    memory = pa.allocate_buffer(count * (8 if is_number else 4))  # Arrow keeps what is freed: new pages take longer
    if is_number:
        dense = np.frombuffer(memory, np.int64 if pa.types.is_int64(values.type) else np.float64)
        dense.fill(0)
        dense[rows] = raw_values(values, dense.dtype)
        if (valid := valid_mask(values)) is not None:
            there[rows] = valid
        return pa.Array.from_buffers(values.type, count, [bitmap_of(there), memory])
    index = np.frombuffer(memory, np.int32)
    index.fill(0)
    index[rows] = np.arange(len(rows), dtype=np.int32)
    return values.take(pa.Array.from_buffers(pa.int32(), count, [bitmap_of(there), memory]))


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

    @property
    def _nulls(self) -> tuple[str, ...] | None:
        """Words that are null can be named for values alone, not for those within lists and objects."""
        return None if self.column.wire.num_fields else self.column.nulls

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
            return cast_column(plain, kind, self.column.name, nulls=self._nulls)
        problems: list[CellProblem] = []
        cells: list[bytes | None] = []
        for row, value in enumerate(values):
            cell, problem = self._cell(row, value, kind)
            cells.append(cell)
            if problem is not None:
                problems.append(problem)
        array, found = cast_column(binary_array(cells), kind, self.column.name, nulls=self._nulls)
        return array, problems + found

    def _cell(self, row: int, value: Any, kind: pa.DataType) -> tuple[bytes | None, CellProblem | None]:
        if value is None:
            return None, None
        if self.column.mixed and pa.types.is_string(kind) and isinstance(value, (Number, bool)):
            return _as_json(value).encode(), None
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
        is_cell = kind == self.column.wire and _is_text(value)
        null = null_fix(value, self.column.name, self.column.nulls) if is_cell else ""
        return self._problem(
            row, value, "BAD_TYPE", f"is {found}, and not {noun(kind)}", expected=noun(kind), null=null
        )

    def _problem(
        self, row: int, value: Any, code: str, text: str, fix: str | None = None, expected: str = "", null: str = ""
    ) -> CellProblem:
        shown = printable(value if isinstance(value, str) else _as_json(value))
        declare = f"declare it: {set_column(self.column.name, 'type', 'string')}"
        message, lead, also = f'"{shown}" {text}', f"{null}; or " if null else "", f", or, {null}" if null else ""
        return CellProblem(
            row,
            CellError(
                self.column.name, code, shown, expected or noun(self.column.wire),
                f"{message}; {fix or f'{lead}{declare}, which keeps the text of values'}",
                f"{message}; {fix or TYPE_IS_THE_DATASETS}{also}",
            ),
        )  # fmt: skip


def _as_json(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f'"{name}": {_as_json(item)}' for name, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_as_json, value[:20])) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return "null" if value is None else value if isinstance(value, Number) else f'"{value}"'
