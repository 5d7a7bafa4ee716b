"""Parse lines into typed columns, with every line that is none and every bad value named by its place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...format.buffers.arrow_memory import array_of, raw_values, true_mask, valid_mask
from ...format.flow.rejects import TYPE_IS_THE_DATASETS, CellError, CellProblem, Reject
from ...format.wording.hints import Add, Set, set_column
from ...format.wording.printable import printable
from ..text.cast import cast_column
from ..text.lines import I64, LineOrigin, Lines, origin_of
from .build import Cells, Column, build_sparse, kept_value
from .lanes import both_lanes, is_sparse, parts_by_cells, run_arrow
from .strict import LineError, parse_line, values_of_line
from .types import count_keys, is_list

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
        array, found = finish(wire if in_order else wire.take(array_of(order)), target, column.name)
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

    @classmethod
    def of(cls, parser: LineParser, lines: Lines) -> _Work:
        known = {column.name: column for column in parser.columns}
        others = frozenset(field.name for field in parser.others)
        plain = not (parser.ignores or others or any(column.as_json for column in parser.columns))
        return cls(parser, lines, lines.records, known, others, plain)

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
        arrays, problems = build_sparse(self.parser.columns, Cells(names, rows, values), len(kept))
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
        return members

    def _error(self, record: int, error: LineError) -> CellError:
        lines = self.lines
        index = self.index[record]
        shown = printable(lines.text[lines.starts[index] : min(lines.ends[index], lines.starts[index] + _SHOWN)])
        return CellError(None, error.code, shown, "a JSON object", error.text)


def finish(wire: pa.Array, target: pa.DataType, column: str) -> tuple[pa.Array, list[CellProblem]]:
    if wire.type == target:
        return wire, []
    if is_list(target):
        inner, found = finish(wire.flatten(), target.value_type, column)
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
    return cast_column(wire.view(pa.binary()), target, column, null_words=False)


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
