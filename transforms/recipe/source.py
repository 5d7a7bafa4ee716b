"""A source with a recipe: it gives rows after the steps, and is used like any other source."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from typing import Any, Final

import numpy as np
import pyarrow as pa

from ..errors import RunError, SchemaError
from ..format.batches.rows import Rows
from ..format.columns.feature_column import cast_lists
from ..format.columns.flatten import JSON, fit_times
from ..format.columns.keys import is_any_list, is_flat
from ..format.schema.arrow_types import (
    arrow_type_of,
    classes_of,
    default_unit,
    feature_of,
    in_unit,
    is_list,
    named_fields,
)
from ..format.schema.column_types import UNITS, is_binary, is_string
from ..format.schema.schema import Choice, ColumnRule, Feature, Schema
from ..format.sidecars.tfds import labels_file_name
from ..format.wording.printable import printable
from ..inputs.contract.selection import Selection
from ..inputs.contract.source import (
    Frozen,
    LastRow,
    LazyPieces,
    Limit,
    Listing,
    ParallelMap,
    Piece,
    Source,
    Survey,
    Task,
)
from ..recognise.splits.find import UNUSED, not_used
from .recipe import NO_STEPS, Flatten, Recipe, column_entries, joined_rows
from .step import Column, Step, StepByType

# Hold batches to the columns that were planned, before the steps and after: a schema is fixed before the first row.


def is_untyped(kind: pa.DataType) -> bool:
    """Return whether a type is that of nulls, or of lists of nothing else: what `pa.array([])` has."""
    return bool(pa.types.is_null(kind) or (is_list(kind) and is_untyped(kind.value_type)))


def as_surveyed(rows: Rows, fields: pa.Schema) -> Rows:
    """Return a batch whose columns have the types of the survey: those of one file may be narrower, or null.

    A time that has no exact number of the surveyed unit is a problem of its row.
    """
    batch, problems = rows.batch, list(rows.problems)
    wanted = [fields.field(name).type for name in batch.schema.names]
    if batch.schema.types == wanted:
        return rows
    arrays = []
    for name, column, kind in zip(batch.schema.names, batch.columns, wanted, strict=True):
        fitted, found = fit_times(name, column, kind)
        as_it_is = fitted.type == kind or (not is_flat(kind) and is_string(fitted.type))  # JSON, as a line has it
        arrays.append(fitted if as_it_is else cast_lists(fitted, kind))
        problems += found
    return replace(rows, batch=pa.RecordBatch.from_arrays(arrays, names=batch.schema.names), problems=tuple(problems))


def as_planned(batch: pa.RecordBatch, planned: Mapping[str, Column], file: str) -> pa.RecordBatch:
    """Return a batch whose columns have the planned types, where these hold the values as they are.

    Raises `RunError` where columns are missing, new, or of another type.
    """
    where = f" in rows of {file}" if file else ""
    names = batch.schema.names
    if len(names) != len(planned) or set(names) != set(planned):
        raise RunError(f"map: the columns are {_shown(names)}{where}, and {_shown(planned)} were planned")
    arrays = []
    for name, array in zip(names, batch.columns, strict=True):
        column = planned[name]
        wanted = array.type if column.origin is not None else column.field.type
        if array.type != wanted:
            try:
                array = array.cast(wanted) if _holds(wanted, array.type) else None
            except pa.ArrowInvalid:
                array = None
            if array is None:
                raise RunError(
                    f'map: column "{printable(name)}" is {batch[name].type}{where}, and {wanted} was planned '
                    f"({column.reason}); give every batch the same types, as in pa.array(values, pa.int64())"
                )
        arrays.append(array)
    return pa.RecordBatch.from_arrays(arrays, names=names)


def _holds(wanted: pa.DataType, kind: pa.DataType) -> bool:
    """Return whether a type can hold the values of another unchanged, or a cast says that it does not."""
    if pa.types.is_dictionary(kind):
        return _holds(wanted, kind.value_type)
    if is_list(wanted) and is_list(kind):
        return _holds(wanted.value_type, kind.value_type)
    return bool(
        kind == wanted
        or pa.types.is_null(kind)
        or (pa.types.is_integer(kind) and pa.types.is_integer(wanted))
        or (pa.types.is_floating(kind) and pa.types.is_floating(wanted) and kind.bit_width <= wanted.bit_width)
        or (is_string(kind) and is_string(wanted))
        or (is_binary(kind) and is_binary(wanted))
    )


def _shown(names: Iterable[str]) -> str:
    return ", ".join(f'"{printable(name)}"' for name in names)


@dataclass(frozen=True, slots=True)
class RecipeFrozen(Frozen):
    """What tasks share behind a recipe.

    `inner` is what the source itself froze, `fields` the Arrow fields before the first step, `origins` the new names of
    unchanged columns, `planned` the columns after the last step; reading ends at `last`.
    """

    inner: Frozen = field(kw_only=True)
    fields: pa.Schema = field(kw_only=True)
    origins: dict[str, str] = field(kw_only=True)
    planned: dict[str, Column] = field(kw_only=True)
    last: LastRow | None = field(default=None, kw_only=True)


@dataclass(frozen=True, slots=True)
class RecipeSource(Source):
    """Read a source, and run a recipe over its rows; only the first `limit` rows are read, None for all.

    After the steps of the recipe come those of `by_type`. Then nested columns and decimals are flattened, as `rules`
    say of columns of the source. `stated` are the classes of columns that a file beside names.
    """

    source: Source
    recipe: Recipe = NO_STEPS
    limit: int | None = None
    rules: dict[str, ColumnRule] = field(default_factory=dict)
    by_type: tuple[StepByType, ...] = ()
    stated: dict[str, Sequence[str]] = field(default_factory=dict)

    def list_files(self) -> Listing:
        return self.source.list_files()

    def survey(self, listing: Listing, run: ParallelMap) -> Survey:
        found = self.of_files(listing)
        survey = found.source.survey(listing, run)
        found = replace(found, source=survey.source or found.source).beginning(survey, listing)
        survey = found.after(survey, run) if found.has_work(survey) else replace(survey, source=found)
        return in_splits(survey, listing)

    def beginning(self, survey: Survey, listing: Listing) -> RecipeSource:
        """Return the source whose recipe begins with the steps for what its columns, or files beside, say they are."""
        fields = fields_of(survey) if survey.fields or listing.classes else ()
        own = {one.name for one in fields if classes_of(one)}
        found = replace(self, stated={name: one for name, one in listing.classes.items() if name not in own})
        steps = self._first_steps([Column(one, one.name) for one in named_fields(fields, found.stated)])
        return replace(found, recipe=Recipe((*steps, *self.recipe.steps)))

    def _first_steps(self, columns: Sequence[Column]) -> list[Step]:
        return [step for one in self.by_type if one.is_first and (step := one.step(columns)) is not None]

    def has_work(self, survey: Survey) -> bool:
        """Return whether rows change on their way, or not all are read, given the source's own survey."""
        nested = any(not is_flat(one.type) for one in survey.fields)
        asked = any(one.is_asked_for for one in self.by_type)
        return bool(self.recipe.steps) or self.limit is not None or nested or asked

    def of_files(self, listing: Listing) -> RecipeSource:
        recipe = self.recipe.of_files(listing)
        source, told = self.source, recipe.told_by_files
        if told and source.selection is not None:
            selection = source.selection.without(told)
            if selection.columns == ():
                raise SchemaError("input.columns names columns of folders alone; keep a column of the files too")
            source = source.selecting(selection)
        return replace(self, source=source, recipe=recipe)

    def after(self, survey: Survey, run: ParallelMap) -> Survey:
        """Return the survey of the rows after the recipe, and what reads them, given the source's own.

        `self` is what `of_files` found.
        """
        if self.limit is not None:
            survey = first_rows(self.source, survey, self.limit)
        inner = survey.frozen
        fields = _in_units(fields_of(survey), survey.frozen.schema, self.rules)
        named = named_fields(fields, self.stated)
        given = [Column(column, column.name, labels=inner.labels.get(column.name)) for column in named]
        found = replace(self, recipe=learn(self.source, survey, self.recipe, given, run))
        columns = found.recipe.plan(given)
        for more in self.by_type:
            if not more.is_first and (step := more.step(columns)) is not None:
                found = replace(found, recipe=Recipe((*found.recipe.steps, step)))
                columns = found.recipe.plan(given)
        flatten = Flatten.of(columns, self.rules)
        entries = column_entries(columns, flatten)
        flat = Recipe((*found.recipe.steps, flatten)) if flatten is not None else found.recipe
        made = [one for one in flat.plan(given) if one.origin is None and classes_of(one.field)]
        if flatten is not None or made:
            steps = self._first_steps(made) if made else []
            found = replace(found, recipe=learn(self.source, survey, Recipe((*flat.steps, *steps)), given, run))
            columns = found.recipe.plan(given)
        features, choices = _features(columns, survey)
        new = {read: column.name for column in columns if (read := column.origin or column.form) is not None}
        formed = {column.origin or column.form: column.name for column in columns}
        labels = {formed[name]: classes for name, classes in inner.labels.items() if name in formed}
        labels |= {column.name: column.labels for column in columns if column.labels is not None}
        frozen = RecipeFrozen(
            Schema(tuple(sorted(features, key=lambda feature: feature.name))),
            inner.splits or found.recipe.splits,
            {one.name: labels[one.name] for one in features if one.type == "label"},
            inner.opaque,
            entries,
            inner=inner,
            fields=fields,
            origins=new,
            planned={column.name: column for column in columns},
            last=None if survey.limit is None else survey.limit.last,
        )
        detected = (*survey.detected, *found.recipe.detected)
        resizes = any(one.is_asked_for for one in self.by_type)
        return replace(survey, frozen=frozen, choices=choices, detected=detected, resizes=resizes, source=found)

    def read(self, task: Task, frozen: Frozen) -> Iterator[Rows]:
        """Rows that the recipe drops are counted; each row has the split of its file."""
        batches = self._read(task, frozen)
        return joined_rows(rows_in_splits(batches, frozen) if frozen.by_entry or not frozen.splits else batches)

    def _read(self, task: Task, frozen: Frozen) -> Iterator[Rows]:
        if not isinstance(frozen, RecipeFrozen):
            yield from self.source.read(task, frozen)
            return
        files = {piece.entry: piece for piece in task.pieces}
        recipe, ordinal = self.recipe, 0
        rows = self.source.read(task, frozen.inner)
        rows = rows if frozen.last is None else until(rows, frozen.last)
        if not recipe.steps:
            yield from rows
            return
        for batch in rows if recipe.is_of_file else joined_rows(rows):
            file = files[batch.entry] if isinstance(batch.entry, int) else None
            name, here = ("", recipe) if file is None else (file.name, recipe.at(file.path))
            for part in here.parts(as_surveyed(batch, frozen.fields), name, frozen.origins):
                yield replace(part, ordinal=ordinal, batch=as_planned(part.batch, frozen.planned, name))
                del part
                ordinal += 1
            del batch


def with_steps(
    source: Source,
    steps: Sequence[Step] = (),
    limit: int | None = None,
    rules: Mapping[str, ColumnRule] | None = None,
    by_type: tuple[StepByType, ...] = (),
) -> Source:
    """Return a source whose rows go through these steps, after those that they go through already.

    With a `limit` only that many rows are read; `by_type` gives the last steps, and `rules` say how nested columns are
    flattened.
    """
    if limit is None and isinstance(source, RecipeSource):
        return replace(source, recipe=Recipe((*source.recipe.steps, *steps)))
    return RecipeSource(source, Recipe(tuple(steps)), limit, dict(rules or {}), by_type)


def fields_of(survey: Survey) -> pa.Schema:
    if survey.fields:
        return pa.schema(survey.fields)
    return pa.schema([pa.field(one.name, arrow_type_of(one), one.nullable) for one in survey.frozen.schema])


def _in_units(fields: pa.Schema, schema: Schema, rules: Mapping[str, ColumnRule]) -> pa.Schema:
    """Return the fields of a source with the units in which times are kept: in nested columns us, ns or the declared.

    A flat column keeps its unit, unless it is kept in a coarser one. So no file's times pass through a finer unit,
    which does not hold far ones.
    """
    kept = {feature.name: feature.unit for feature in schema}
    found = []
    for one in fields:
        rule, kind = rules.get(one.name, ColumnRule()), one.type
        if not is_flat(kind):
            kind = kind if rule.as_ == JSON and rule.unit is None else in_unit(kind, rule.unit or default_unit)
        elif (unit := kept.get(one.name)) is not None:
            kind = in_unit(kind, partial(_coarser, unit=unit))
        found.append(one.with_type(kind))
    return pa.schema(found)


def _coarser(kind: pa.DataType, unit: str) -> str:
    return min(str(kind.unit), unit, key=UNITS.index)


def _features(columns: Sequence[Column], survey: Survey) -> tuple[list[Feature], tuple[Choice, ...]]:
    own = {feature.name: feature for feature in survey.frozen.schema}
    why = {choice.column: choice for choice in survey.choices}
    features, choices = [], []
    for column in columns:
        if column.origin is not None:
            features.append(dataclasses.replace(own[column.origin], name=column.name))
            choice = why.pop(column.origin, None)
            if choice is not None:
                also = "" if column.name == column.origin else f'; "{printable(column.origin)}" in the source'
                choices.append(replace(choice, column=column.name, reason=f"{choice.reason}{also}"))
        elif column.form is not None:
            features.append(dataclasses.replace(own[column.form], name=column.name, nullable=column.field.nullable))
            choice = why.pop(column.form, None)
            reason = column.reason if choice is None else f"{choice.reason}; {column.reason}"
            choices.append(Choice(column.name, features[-1].type, reason))
        elif column.labels is not None:
            file = labels_file_name(column.name)
            shape = (-1,) if is_any_list(column.field.type) else ()
            features.append(Feature(column.name, "int64", "label", shape, column.field.nullable, labels=file))
            choices.append(Choice(column.name, "label", column.reason))
        else:
            feature, reason = feature_of(column.field, column.rule)
            features.append(feature)
            choices.append(Choice(column.name, feature.type, f"{reason}; {column.reason}"))
        if column.length is not None:
            features[-1] = replace(features[-1], shape=(column.length,))
    others = [choice for name, choice in why.items() if name not in own]  # such as the layout of folders
    return features, (*choices, *others)


@dataclass(frozen=True, slots=True)
class _Look:
    """What looking at a piece takes, in any process."""

    source: Source
    frozen: Frozen
    recipe: Recipe
    fields: pa.Schema
    last: LastRow | None


def learn(source: Source, survey: Survey, recipe: Recipe, columns: Sequence[Column], run: ParallelMap) -> Recipe:
    """Return the recipe whose steps have learned what they want to know of all rows; `columns` are the source's.

    Only the columns that the steps look at are read.

    Raises `SourceError` where a file is damaged, `SchemaError` where a step cannot use what is there.
    """
    if not recipe.learning:
        return recipe
    recipe.plan(columns)  # what does not fit is refused before anything is read
    source, frozen = _narrow(source, survey.frozen, recipe, columns)
    last = None if survey.limit is None else survey.limit.last
    look = partial(_look_at, look=_Look(source, frozen, recipe, pa.schema([one.field for one in columns]), last))
    summaries = merged(run(look, _looked_at_together(survey.pieces, recipe), heavy=True), recipe)
    return recipe.learned([None] * len(recipe.learning) if summaries is None else summaries)


def merged(summaries: Iterable[Sequence[Any] | None], recipe: Recipe) -> Sequence[Any] | None:
    """Merge neighbours that are of as many pieces: one after the other, n growing summaries would cost n squared."""
    waiting: list[tuple[int, Sequence[Any] | None]] = []
    for one in summaries:
        count, merged = 1, one
        while waiting and waiting[-1][0] == count:
            merged = recipe.merge(waiting.pop()[1], merged)
            count *= 2
        waiting.append((count, merged))
    return reduce(lambda after, before: recipe.merge(before, after), (one for _, one in reversed(waiting)), None)


_LOOKED_AT: Final = 256 << 10
_MOST_TOGETHER: Final = 256
"""Bytes and pieces that are looked at together."""


def _looked_at_together(pieces: Sequence[Piece], recipe: Recipe) -> list[Sequence[Piece]]:
    """Return neighbours that are small, many at a time: to begin with a piece takes longer than to look at its rows."""
    alone = recipe.is_of_file or isinstance(pieces, LazyPieces)
    size = 0 if alone else _LOOKED_AT * len(pieces) // max(sum(piece.bytes for piece in pieces), 1)
    size = min(max(size, 1), _MOST_TOGETHER)
    return [pieces[start : start + size] for start in range(0, len(pieces), size)]


def _look_at(pieces: Sequence[Piece], look: _Look) -> Sequence[Any] | None:
    rows, recipe = look.source.read(Task(0, pieces), look.frozen), look.recipe.at(pieces[0].path)
    rows = rows if look.last is None else until(rows, look.last)
    found: Sequence[Any] | None = None
    for batch in rows if recipe.is_of_file else joined_rows(rows):
        if batch.batch.num_rows:
            found = recipe.merge(found, recipe.look(as_surveyed(batch, look.fields), pieces[0].name))
    return found


def _narrow(source: Source, frozen: Frozen, recipe: Recipe, columns: Sequence[Column]) -> tuple[Source, Frozen]:
    """Return the source that reads no other columns than those that are looked at, if it can.

    The steps before one that learns look at columns too: which rows there are may depend on any of them.
    """
    names: dict[str, None] = {}
    known = columns
    for step in recipe.steps[: 1 + max(recipe.steps.index(step) for step in recipe.learning)]:
        if step.reads is None:
            return source, frozen
        origins = {column.name: column.origin or column.form for column in known}
        # What has no origin was made by a step before, of what that looks at.
        names |= {origin: None for name in step.reads if (origin := origins.get(name)) is not None}
        known = Recipe((step,)).plan(known)
    if source.selection is None or not names:
        return source, frozen
    features = tuple(feature for feature in frozen.schema if feature.name in names)
    return source.selecting(Selection(tuple(names))), replace(frozen, schema=Schema(features))


def in_splits(survey: Survey, listing: Listing) -> Survey:
    """Return the survey of files that have splits; where the source itself splits rows, it knows better."""
    recognised = listing.recognised
    survey = replace(survey, warnings=(*survey.warnings, *recognised.warnings))
    if recognised.said and survey.frozen.splits:
        detected = (*survey.detected, *not_used(survey.frozen.splits, recognised.said, recognised.split))
        frozen, rule = replace(survey.frozen, splits=()), survey.rule and UNUSED
        return replace(survey, frozen=frozen, split_rows={}, detected=detected, rule=rule)
    names = tuple(sorted({entry.split for entry in listing.entries if entry.split is not None}))
    if names and survey.frozen.splits:
        return survey
    survey = replace(survey, detected=(*recognised.lines, *survey.detected))
    if not names:
        return survey
    codes = bytes(names.index(entry.split or "") for entry in listing.entries)
    frozen = replace(survey.frozen, splits=names, by_entry=codes)
    rows = _split_rows(survey, frozen)
    empty = [name for name in names if rows.get(name, 0) == 0] if any(rows.values()) else []
    told = (f"no rows: {', '.join(empty)}; the dataset has no split of that name",) if empty else ()
    return replace(survey, frozen=frozen, split_rows=rows, warnings=(*survey.warnings, *told))


def _split_rows(survey: Survey, frozen: Frozen) -> dict[str, int]:
    """Return the rows of each split, where all are known; else their bytes, which say as much of their shares."""
    known = all(piece.rows is not None for piece in survey.pieces)
    rows = dict.fromkeys(frozen.splits, 0)
    for piece in survey.pieces:
        rows[frozen.splits[frozen.by_entry[piece.entry]]] += (piece.rows or 0) if known else piece.bytes
    return rows


def rows_in_splits(batches: Iterator[Rows], frozen: Frozen) -> Iterator[Rows]:
    """Yield batches with the split of each row, which is that of its file; without one where all rows go to one."""
    if not frozen.by_entry:
        for rows in batches:
            yield rows if rows.split_codes is None else replace(rows, split_codes=None)
            del rows  # and so below: what is large is freed before more is read
        return
    codes = np.frombuffer(frozen.by_entry, np.uint8).astype(np.int64)
    for rows in batches:
        found = np.full(rows.batch.num_rows, rows.entry, np.int64) if isinstance(rows.entry, int) else rows.entry
        rejects = (replace(one, split=frozen.splits[codes[one.entry]]) for one in rows.rejects)
        yield replace(rows, split_codes=codes[found], rejects=tuple(rejects))
        del rows


# The first rows of a whole source, exactly: later pieces are left out, and reading ends within the last one.


def first_rows(source: Source, survey: Survey, limit: int) -> Survey:
    """Return the survey of the first rows of a source.

    A piece whose rows nobody knows yet is read to count them, up to `limit` rows in all.
    """
    if isinstance(survey.pieces, LazyPieces):
        pieces = survey.pieces.first(limit)
        kept = pieces.rows_by_entry()
        partial = frozenset(entry for entry, rows in survey.pieces.rows_by_entry().items() if kept.get(entry) != rows)
        return replace(survey, pieces=pieces, limit=Limit(limit, None, partial))
    left, count, last = limit, 0, None
    for piece in survey.pieces:
        if left == 0:
            break
        rows = piece.rows if piece.rows is not None else _count(source, survey, piece, left)
        if rows > left or (rows == left and piece.rows is None):
            last = LastRow(piece.entry, piece.first_row + left)
        left -= min(rows, left)
        count += 1
    partial = frozenset(piece.entry for piece in survey.pieces[count:]) | ({last.entry} if last is not None else set())
    return replace(survey, pieces=survey.pieces[:count], tasks=None, limit=Limit(limit, last, partial))


def _count(source: Source, survey: Survey, piece: Piece, most: int) -> int:
    rows = 0
    for batch in source.read(Task(0, (piece,)), survey.frozen):
        rows += batch.batch.num_rows + len(batch.rejects)
        if rows >= most:
            return most
    return rows


def until(batches: Iterator[Rows], last: LastRow) -> Iterator[Rows]:
    for rows in batches:
        if rows.entry != last.entry:
            yield rows
            continue
        numbers = [rows.origin.place(row).row for row in (0, rows.batch.num_rows - 1)] if rows.batch.num_rows else []
        refused = [reject.place.row or 0 for reject in rows.rejects]
        if max([number or 0 for number in numbers] + refused, default=0) < last.row:
            yield rows
            continue
        yield _cut(rows, last)
        return


def _cut(rows: Rows, last: LastRow) -> Rows:
    count = _first_after(rows, last.row)
    return replace(
        rows,
        batch=rows.batch.slice(0, count),
        problems=tuple(problem for problem in rows.problems if problem.row < count),
        rejects=tuple(reject for reject in rows.rejects if (reject.place.row or 0) <= last.row),
        split_codes=None if rows.split_codes is None else np.asarray(rows.split_codes)[:count],
    )


def _first_after(rows: Rows, last: int) -> int:
    """Return how many rows of a batch are not after row `last` of their file: places grow, so by halving."""
    low, high = 0, rows.batch.num_rows
    while low < high:
        middle = (low + high) // 2
        if (rows.origin.place(middle).row or 0) <= last:
            low = middle + 1
        else:
            high = middle
    return low
