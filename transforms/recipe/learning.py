"""Look at all rows of a source for the steps that learn from them: only the columns that they look at are read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any

import pyarrow as pa

from ..format.schema.schema import Schema
from ..sources.contract.selection import Selection
from ..sources.contract.source import Frozen, LastRow, ParallelMap, Piece, Source, Survey, Task
from .first_rows import until
from .planned import as_surveyed
from .recipe import Recipe
from .step import Column


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

    Raises `SourceError` where a file is damaged, `SchemaError` where a step cannot use what is there.
    """
    if not recipe.learning:
        return recipe
    recipe.plan(columns)  # what does not fit is refused before anything is read
    source, frozen = _narrow(source, survey.frozen, recipe, columns)
    last = None if survey.limit is None else survey.limit.last
    look = partial(_look_at_piece, look=_Look(source, frozen, recipe, pa.schema([one.field for one in columns]), last))
    summaries = reduce(recipe.merge, run(look, survey.pieces, heavy=True), None)
    return recipe.learned([None] * len(recipe.learning) if summaries is None else summaries)


def _look_at_piece(piece: Piece, look: _Look) -> Sequence[Any] | None:
    rows, recipe = look.source.read(Task(0, (piece,)), look.frozen), look.recipe.at(piece.path)
    found: Sequence[Any] | None = None
    for batch in rows if look.last is None else until(rows, look.last):
        if batch.batch.num_rows:
            found = recipe.merge(found, recipe.look(as_surveyed(batch, look.fields), piece.name))
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
