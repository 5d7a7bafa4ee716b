"""Run the steps of a recipe, and do the bookkeeping that no step's author should: places, splits, counts, problems."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from ..errors import SchemaError
from ..format.batches.arrow_memory import take_rows, true_mask
from ..format.batches.rejects import CellProblem, Place, warning_at
from ..format.batches.rows import Notes, Origin, Rows
from ..format.columns.flatten import JSON, Flattened, empty_array, flatten_column, refuse_unsupported, without_json
from ..format.columns.keys import (
    FLAT_VALUES,
    MASK,
    PRESENT,
    has_decimals,
    is_flat,
    stored_type,
    type_document,
    type_of_document,
    with_floats,
)
from ..format.manifest.manifest import ColumnEntry
from ..format.schema.arrow_types import (
    ColumnLayout,
    classes_of,
    classes_within,
    times_within,
    type_words,
    with_own_classes,
)
from ..format.schema.column_types import named_type
from ..format.schema.schema import ColumnRule
from ..format.wording.hints import set_column
from ..format.wording.printable import printable
from ..inputs.contract.selection import exclude_columns
from ..inputs.contract.source import Listing
from .step import Column, Labels, Step, Stepped, Types


@dataclass(frozen=True, slots=True)
class PickedOrigin:
    """The origin of some rows of a batch: row i is row `rows[i]` of the batch that `origin` knows."""

    origin: Origin
    rows: npt.NDArray[np.int64]

    def place(self, row: int) -> Place:
        return self.origin.place(int(self.rows[row]))

    def number(self, row: int) -> tuple[str, int | None]:
        return self.origin.number(int(self.rows[row]))


@dataclass(frozen=True, slots=True)
class JoinedOrigin:
    """The origins of batches that are one after the other in one batch; `starts` are the rows with which they begin."""

    origins: tuple[Origin, ...]
    starts: tuple[int, ...]

    def place(self, row: int) -> Place:
        origin, row = self._found(row)
        return origin.place(row)

    def number(self, row: int) -> tuple[str, int | None]:
        origin, row = self._found(row)
        return origin.number(row)

    def _found(self, row: int) -> tuple[Origin, int]:
        part = bisect_right(self.starts, row) - 1
        return self.origins[part], row - self.starts[part]


@dataclass(frozen=True, slots=True)
class Recipe:
    """The steps between reading and encoding, in order."""

    steps: tuple[Step, ...] = ()

    def of_files(self, listing: Listing) -> Recipe:
        steps = (step.of_files(listing) for step in self.steps)
        return Recipe(tuple(step for step in steps if step is not None))

    @property
    def told_by_files(self) -> tuple[str, ...]:
        return tuple(name for step in self.steps for name in step.told_by_files)

    @property
    def detected(self) -> tuple[str, ...]:
        return tuple(step.detected for step in self.steps if step.detected)

    @property
    def splits(self) -> tuple[str, ...]:
        return next((step.splits for step in self.steps if step.splits), ())

    def under(self, dataset: Types, labels: Labels) -> Recipe:
        return Recipe(tuple(step.under(dataset, labels) for step in self.steps))

    @property
    def is_of_file(self) -> bool:
        return any(step.is_of_file for step in self.steps)

    @property
    def learning(self) -> tuple[Step, ...]:
        return tuple(step for step in self.steps if step.learns)

    def look(self, rows: Rows, file: str) -> list[Any]:
        """Return what each of the steps that learn finds in a batch, as it is before any of them."""
        batch, found, wanted = rows.batch, [], len(self.learning)
        for step in self.steps:
            if step.learns:
                found.append(step.look(batch))
            elif len(found) < wanted:
                stepped = _applied(step, batch, file)
                batch = stepped.batch
                if stepped.keep is not None:
                    batch = take_rows(batch, _chosen(stepped.keep, np.arange(batch.num_rows), stepped.problems))
        return found

    def merge(self, one: Sequence[Any] | None, other: Sequence[Any] | None) -> Sequence[Any] | None:
        if one is None or other is None:
            return other if one is None else one
        return [step.merge(*pair) for step, *pair in zip(self.learning, one, other, strict=True)]

    def learned(self, summaries: Sequence[Any]) -> Recipe:
        known = iter(summaries)
        return Recipe(tuple(step.learned(next(known)) if step.learns else step for step in self.steps))

    def plan(self, columns: Sequence[Column]) -> tuple[Column, ...]:
        for step in self.steps:
            columns = step.plan(columns)
            counts = Counter(column.name for column in columns)
            twice = next((name for name, count in counts.items() if count > 1), None)
            if twice is not None:
                raise SchemaError(_named_twice(twice, [column for column in columns if column.name == twice]))
        return tuple(columns)

    def apply(self, rows: Rows, file: str, origins: dict[str, str]) -> Rows:
        """Return what the steps make of a batch; `origins` are the names of unchanged columns, by their source's."""
        problems = [_under_new_name(problem, origins) for problem in rows.problems]
        kept = np.arange(rows.batch.num_rows)
        batch = rows.batch
        for step in self.steps:
            stepped = _applied(step, batch, file)
            batch = stepped.batch
            if batch.num_rows != len(kept):
                raise ValueError(f"{step!r} returned {batch.num_rows} rows of {len(kept)}")
            if stepped.split_codes is not None:
                codes = np.full(rows.batch.num_rows, -1, np.int64)
                codes[kept] = stepped.split_codes
                rows = replace(rows, split_codes=codes)
            problems += _others(problems, [replace(one, row=int(kept[one.row])) for one in stepped.problems])
            if stepped.notes:
                rows = replace(rows, notes=_noted(rows, [(int(kept[row]), note) for row, note in stepped.notes]))
            warned = [warning_at(rows.origin.place(int(kept[row])), text) for row, text in stepped.warned]
            rows = replace(rows, warned=(*rows.warned, *warned)) if warned else rows
            if stepped.keep is not None:
                reads = step.reads or ()
                if step.drops_bad_rows and problems:
                    problems = _of_kept(problems, stepped.keep, kept, {*reads, *map(origins.get, reads)})
                chosen = _chosen(stepped.keep, kept, problems)
                batch, kept = take_rows(batch, chosen), kept[chosen]
        if len(kept) == rows.batch.num_rows:
            return replace(rows, batch=batch, problems=tuple(problems))
        return _picked(rows, batch, kept, problems)

    def at(self, path: bytes) -> Recipe:
        return Recipe(tuple(step.at(path) for step in self.steps))

    def parts(self, rows: Rows, file: str, origins: dict[str, str]) -> Iterator[Rows]:
        """Yield what the steps make of a batch, as `apply` does: in several parts, where a step reads much for it."""
        first = next((i for i, step in enumerate(self.steps) if step.takes_parts), None)
        if first is None:
            yield self.apply(rows, file, origins)
            return
        step, after = self.steps[first], Recipe(self.steps[first + 1 :])
        rows, start = Recipe(self.steps[:first]).apply(rows, file, origins), 0
        while start < rows.batch.num_rows or start == 0:
            stepped, count = step.take(rows.batch.slice(start))
            part = _part_of(rows, start, count)
            part = replace(part, batch=stepped.batch, problems=(*part.problems, *stepped.problems))
            yield from after.parts(part, file, {})
            start += max(count, 1)


NO_STEPS: Final = Recipe()


def _named_twice(name: str, columns: Sequence[Column]) -> str:
    known = [one.origin for one in columns if one.origin is not None]
    given = sorted(known, key=lambda origin: origin != name)  # what is named so itself is the one to rename
    fix = set_column(given[0], "name", f"{name}_2") if given else "schema.columns.NAME.name"
    of = " and ".join(f'"{printable(origin)}"' for origin in known) if len(known) == len(columns) else ""
    return f'two columns would be named "{printable(name)}"{f": {of} in the source" if of else ""}; rename one: {fix}'


def _applied(step: Step, batch: pa.RecordBatch, file: str) -> Stepped:
    done = step.apply(batch, file)
    return done if isinstance(done, Stepped) else Stepped(done)


def _noted(rows: Rows, found: Sequence[tuple[int, str]]) -> Notes:
    entry = rows.entry
    more = Counter((entry if isinstance(entry, int) else int(entry[row]), note) for row, note in found)
    return dict(Counter(rows.notes) + more)


def _others(known: Sequence[CellProblem], found: Sequence[CellProblem]) -> list[CellProblem]:
    """Return those of the problems found that are not of a cell which is known to be bad, and is null for that."""
    bad = {(problem.row, problem.error.column) for problem in known} if found else set()
    return [problem for problem in found if (problem.row, problem.error.column) not in bad]


def _chosen(
    keep: pa.BooleanArray, kept: npt.NDArray[np.int64], problems: Sequence[CellProblem]
) -> npt.NDArray[np.int64]:
    """Return the rows to keep, counted in the batch as it is now: those with a bad cell stay, to be rejected."""
    flags = keep.fill_null(False).to_numpy(zero_copy_only=False)
    if problems:
        flags = flags | np.isin(kept, [problem.row for problem in problems])
    return np.flatnonzero(flags)


def _of_kept(
    problems: Sequence[CellProblem],
    keep: pa.BooleanArray,
    kept: npt.NDArray[np.int64],
    looked_at: Collection[str | None],
) -> list[CellProblem]:
    """Return problems without those of rows that a step drops by columns in which they have no bad cell."""
    gone = {*kept[np.flatnonzero(true_mask(pc.invert(keep)))].tolist()}
    gone -= {one.row for one in problems if one.error.column is None or one.error.column in looked_at}
    return [one for one in problems if one.row not in gone]


def _under_new_name(problem: CellProblem, origins: dict[str, str]) -> CellProblem:
    name = problem.error.column
    if name is None or origins.get(name, name) == name:
        return problem
    return replace(problem, error=replace(problem.error, column=origins[name]))


def _part_of(rows: Rows, start: int, count: int) -> Rows:
    """Return some rows of a batch that follow each other; its notes, rejects and counts are in the first part."""
    if start == 0 and count == rows.batch.num_rows:
        return rows
    stop, first = start + count, start == 0
    return replace(
        rows,
        entry=rows.entry if isinstance(rows.entry, int) else rows.entry[start:stop],
        batch=rows.batch.slice(start, count),
        origin=PickedOrigin(rows.origin, np.arange(start, stop)),
        problems=tuple(replace(one, row=one.row - start) for one in rows.problems if start <= one.row < stop),
        rejects=rows.rejects if first else (),
        split_codes=None if rows.split_codes is None else rows.split_codes[start:stop],
        notes=rows.notes if first else {},
        dropped=rows.dropped if first else {},
        warned=rows.warned if first else (),
    )


_SMALL_ROWS: Final = 1024
_SMALL_BYTES: Final = 256 << 10
"""Smaller batches are joined: with small files all that is done for a batch takes longer than its rows."""

_MOST_PARTS: Final = 512
"""Batches that wait to be joined: each takes some 10 KB, also of one row."""


def joined_rows(batches: Iterator[Rows]) -> Iterator[Rows]:
    """Yield the rows of a task in the same order, those of small batches in batches of some thousands of rows."""
    ordinal = 0
    for parts in _alike(batches):
        yield replace(parts[0], ordinal=ordinal) if len(parts) == 1 else _joined(parts, ordinal)
        del parts  # what is large is freed before more is read
        ordinal += 1  # noqa: SIM113 (enumerate keeps what it gave last)


def _alike(batches: Iterator[Rows]) -> Iterator[list[Rows]]:
    parts: list[Rows] = []
    count = size = 0
    for rows in batches:
        batch = rows.batch
        few = 0 < batch.num_columns * batch.num_rows <= _SMALL_BYTES and batch.num_rows <= _SMALL_ROWS
        few = few and type(rows) is Rows  # others have payloads
        taken = batch.nbytes if few else 0
        is_small = few and taken <= _SMALL_BYTES
        is_full = count >= 8 * _SMALL_ROWS or size >= 4 * _SMALL_BYTES or len(parts) == _MOST_PARTS
        if parts and (is_full or not is_small or parts[0].batch.schema != batch.schema):
            yield parts
            parts, count, size = [], 0, 0
        parts.append(rows)
        count, size = count + batch.num_rows, size + taken
        del rows, batch
        if not is_small:
            yield parts
            parts, count, size = [], 0, 0
    if parts:
        yield parts


def _joined(parts: Sequence[Rows], ordinal: int) -> Rows:
    counts = [part.batch.num_rows for part in parts]
    starts = tuple(accumulate(counts, initial=0))[:-1]
    entries = [
        np.full(count, part.entry) if isinstance(part.entry, int) else part.entry
        for count, part in zip(counts, parts, strict=True)
    ]
    codes = [part.split_codes for part in parts if part.split_codes is not None]
    (batch,) = pa.Table.from_batches([part.batch for part in parts]).combine_chunks().to_batches() or (parts[0].batch,)
    return Rows(
        parts[0].task,
        ordinal,
        np.concatenate(entries),
        batch,
        JoinedOrigin(tuple(part.origin for part in parts), starts),
        tuple(
            replace(one, row=one.row + start)
            for start, part in zip(starts, parts, strict=True)
            for one in part.problems
        ),
        tuple(one for part in parts for one in part.rejects),
        split_codes=np.concatenate(codes) if codes else None,
        notes=dict(sum((Counter(part.notes) for part in parts), Counter())),
        dropped=dict(sum((Counter(part.dropped) for part in parts), Counter())),
        warned=tuple(one for part in parts for one in part.warned),
    )


def _picked(rows: Rows, batch: pa.RecordBatch, kept: npt.NDArray[np.int64], problems: Sequence[CellProblem]) -> Rows:
    new = {int(old): number for number, old in enumerate(kept)}
    gone = np.setdiff1d(np.arange(rows.batch.num_rows), kept)
    if isinstance(rows.entry, int):
        entry: int | npt.NDArray[np.int64] = rows.entry
        dropped = {rows.entry: len(gone)}
    else:
        entry = rows.entry[kept]
        found, counts = np.unique(rows.entry[gone], return_counts=True)
        dropped = dict(zip(found.tolist(), counts.tolist(), strict=True))
    dropped = dict(Counter(rows.dropped) + Counter(dropped))
    return replace(
        rows,
        entry=entry,
        batch=batch,
        origin=PickedOrigin(rows.origin, kept),
        problems=tuple(CellProblem(new[problem.row], problem.error) for problem in problems),
        split_codes=None if rows.split_codes is None else rows.split_codes[kept],
        dropped=dropped,
    )


# The last step of every recipe: nested columns and decimals become columns that one feature holds each.


_DECIMAL_FORMS = ("float", "scaled")


@dataclass(frozen=True, slots=True)
class Flattening:
    """How a column is flattened: whether nulls are allowed, the form of its values.

    `source` is the column of the source that a config names it by, None where a step made it.
    """

    nullable: bool
    as_: str | None
    source: str | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Flatten(Step):
    """Flatten columns, given by name. `classes` has the names of classes that the files state, by flat column."""

    columns: tuple[tuple[str, Flattening], ...]
    classes: Mapping[str, Sequence[str]] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(cls, columns: Sequence[Column], rules: Mapping[str, ColumnRule]) -> Flatten | None:
        """Return the step for the columns that no feature holds as they are, None if there are none of them.

        `rules` are declared forms, by the columns of the source. Raises `SchemaError` where no features hold a column,
        or a rule does not fit it.
        """
        nested = [column for column in columns if not is_flat(column.field.type)]
        if not nested:
            return None
        declared = {column.name: rules.get(column.origin or "", ColumnRule()) for column in nested}
        fields = [column.field for column in columns]
        refuse_unsupported(without_json(fields, declared), "", exclude_columns)
        found = []
        for column in nested:
            rule = declared[column.name]
            nullable = column.field.nullable if rule.nullable is None else rule.nullable
            found.append((column.name, Flattening(nullable, _form(column, rule), column.origin)))
        named: dict[str, Sequence[str]] = {one.name: classes_of(one.field) for one in nested}
        named |= {f"{one.name}/{path}": names for one in nested for path, names in classes_within(one.field).items()}
        return cls(tuple(found), {name: names for name, names in named.items() if names})

    @property
    def reads(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.columns)

    def plan(self, columns: Sequence[Column]) -> Sequence[Column]:
        planned: list[Column] = []
        wanted = self._wanted()
        for column in columns:
            if column.name not in wanted:
                planned.append(column)
                continue
            kind = column.field.type
            reason = f'of "{printable(column.name)}" ({_short(kind)})'
            for flat in _flattened(column.name, empty_array(kind), wanted[column.name]).columns:
                field = pa.field(flat.name, flat.values.type, flat.nullable)
                field = with_own_classes(field, self.classes.get(flat.name.removesuffix(f"/{FLAT_VALUES}")))
                rule = ColumnRule(unit=getattr(ColumnLayout.of(field.name, field.type).scalar, "unit", None))
                own = _short(kind) if flat.name == column.name else reason
                planned.append(Column(field, reason=own, rule=rule))
        return planned

    def apply(self, batch: pa.RecordBatch, file: str) -> Stepped:  # noqa: ARG002
        wanted, names, arrays = self._wanted(), list[str](), list[pa.Array]()
        problems: list[CellProblem] = []
        for name, array in zip(batch.schema.names, batch.columns, strict=True):
            if name not in wanted:
                names.append(name)
                arrays.append(array)
                continue
            found = _flattened(name, array, wanted[name])
            names += [flat.name for flat in found.columns]
            arrays += [flat.values for flat in found.columns]
            problems += found.problems
        return Stepped(pa.RecordBatch.from_arrays(arrays, names=names), None, tuple(problems))

    def entry(self, column: Column) -> ColumnEntry | None:
        kind, name, wanted = column.field.type, column.name, self._wanted()
        if name not in wanted:
            return None
        how = wanted[name]
        names = tuple(flat.name for flat in _flattened(name, empty_array(kind), how).columns)
        document = "string" if how.as_ == JSON else type_document(kind)
        document = with_floats(document) if how.as_ == "float" else document
        null = "present" if how.nullable and f"{name}/{PRESENT}" in names else column.null
        return ColumnEntry(name, document, names, null)

    def _wanted(self) -> dict[str, Flattening]:
        return dict(self.columns)


def _flattened(name: str, array: pa.Array, how: Flattening) -> Flattened:
    return flatten_column(name, array, nullable=how.nullable, as_=how.as_, source=how.source)


def column_entries(columns: Sequence[Column], flatten: Flatten | None) -> tuple[ColumnEntry, ...]:
    """Return what the manifest says of columns before they are flattened; nothing where each is a feature as it is."""
    if flatten is None and all(column.null == "absent" and column.file is None for column in columns):
        return ()
    masks = {f"{column.name}/{MASK}" for column in columns if column.null == MASK}
    entries = []
    for column in columns:
        entry = None if flatten is None else flatten.entry(column)
        if entry is None and column.name not in masks:
            names = (column.name, f"{column.name}/{MASK}") if column.null == MASK else (column.name,)
            entry = ColumnEntry(
                column.name, type_document(column.field.type), names, column.null, column.fill, column.file
            )
        entries += [] if entry is None else [entry]
    return tuple(entries)


def following(
    rules: Mapping[str, ColumnRule],
    columns: Sequence[Column],
    kinds: Mapping[str, str],
    entries: Sequence[ColumnEntry],
) -> dict[str, ColumnRule]:
    """Return rules for an append: columns are kept as the dataset keeps them, whose features have these kinds.

    A decimal has its form, and a nested column is one that may be null where it is so in the dataset, with times in
    the unit that they have there.
    """
    found, known = dict(rules), {entry.name: entry for entry in entries}
    for column in columns:
        if column.origin is None:
            continue
        rule, entry = found.get(column.origin, ColumnRule()), known.get(column.name)
        if types.is_decimal(stored_type(column.field.type)) and rule.as_ is None:
            rule = replace(rule, as_={"int64": "scaled", "float": "float"}.get(kinds.get(column.name, "")))
        elif entry is not None and entry.type == "string" and rule.as_ is None and types.is_nested(column.field.type):
            rule = replace(rule, as_=JSON)
        elif entry is not None and entry.features != (column.name,) and rule.nullable is None:
            rule = replace(rule, nullable=entry.null == "present")
        if entry is not None and rule.unit is None and types.is_nested(column.field.type):
            units = times_within(type_of_document(entry.type))
            rule = replace(rule, unit=units.pop()) if len(units) == 1 else rule
        found[column.origin] = rule
    return found


def _form(column: Column, rule: ColumnRule) -> str | None:
    kind, name = column.field.type, printable(column.name)
    if rule.unit is not None and not times_within(kind):
        raise SchemaError(f'column "{name}": a unit does not fit {_short(kind)}, which holds no times')
    forms = (*((*_DECIMAL_FORMS,) if has_decimals(kind) else ()), *(() if types.is_decimal(kind) else (JSON,)))
    if rule.as_ is not None and rule.as_ not in forms:
        raise SchemaError(
            f'column "{name}": "as: {printable(rule.as_)}" does not fit {_short(kind)}; '
            f"the choices are {', '.join(forms)}"
        )
    if rule.type is None:
        return rule.as_
    declared = named_type("float32" if rule.type == "float" else rule.type)
    if types.is_decimal(kind) and declared is not None and declared.name in ("string", "float32", "float64"):
        return rule.as_ or (None if declared.name == "string" else "float")
    raise SchemaError(
        f'column "{name}": schema.columns declares type "{printable(rule.type)}", but it holds {_short(kind)}; leave '
        f"the type out"
    )


def _short(kind: pa.DataType) -> str:
    return printable(type_words(kind))
