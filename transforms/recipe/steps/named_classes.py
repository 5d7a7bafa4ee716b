"""Columns of numbers whose classes their files name: labels, without a word in the config.

    classes of the file   neg pos        0  1  -1   [0, 1]
    of the dataset        pos neg        1  0  null [1, 0]

In an append the classes of the dataset keep their numbers, and new ones come at the end. -1 is no class, as Hugging
Face has it, and becomes a null; in a list, and with any other number that has no name, its row is a reject.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from ...format.buffers.arrow_memory import array_of, int_array
from ...format.columns.lists import lists_of
from ...format.flow.rejects import CellError, CellProblem
from ...format.nested.flatten import stored
from ...format.nested.keys import is_any_list, stored_type
from ...format.schema.class_names import classes_of
from ...format.wording.hints import set_column
from ...format.wording.nearest import first_names
from ...format.wording.printable import printable
from ..step import Column, Labels, Step, StepByType, Stepped, Types, with_column

_NONE: Final = -1
_SHOWN: Final = 8


@dataclass(frozen=True, slots=True)
class NamedClasses(Step):
    """Make columns of numbers labels: each has a name, the classes of its file, and those of the dataset, by number.

    `unlabelled` are the columns in which a row has no class; None before all rows were looked at.
    """

    columns: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...]
    unlabelled: tuple[str, ...] | None = None

    @property
    def reads(self) -> tuple[str, ...]:
        return tuple(name for name, _, _ in self.columns)

    @property
    def learns(self) -> bool:
        return self.unlabelled is None

    def look(self, batch: pa.RecordBatch) -> list[str]:
        scalars = {name: stored(batch[name]) for name in self.reads if not is_any_list(stored_type(batch[name].type))}
        return [name for name, values in scalars.items() if pc.any(pc.equal(values, _NONE)).as_py()]

    def merge(self, one: list[str], other: list[str]) -> list[str]:
        return list(dict.fromkeys([*one, *other]))

    def learned(self, summary: list[str] | None) -> NamedClasses:
        return replace(self, unlabelled=tuple(sorted(summary or ())))

    def plan(self, columns: Sequence[Column]) -> Sequence[Column]:
        known = {name: classes for name, _, classes in self.columns}
        return [_planned(one, known[one.name], self.unlabelled or ()) if one.name in known else one for one in columns]

    def apply(self, batch: pa.RecordBatch, file: str) -> Stepped:  # noqa: ARG002
        problems: list[CellProblem] = []
        for name, own, classes in self.columns:
            values = stored(batch[name])
            cells = lists_of(values) if is_any_list(values.type) else None
            numbers, unknown = _numbered(values if cells is None else cells.values, own, classes, lists=bool(cells))
            for at in unknown:
                row = at if cells is None else cells.row_of(at)
                problems.append(CellProblem(row, _unknown(name, values[row].as_py(), own)))
            if cells is not None and cells.offsets is not None:
                mask = values.is_null() if values.null_count else None
                numbers = pa.LargeListArray.from_arrays(array_of(cells.offsets), numbers.fill_null(0), mask=mask)
            batch = with_column(batch, name, numbers)
        return Stepped(batch, None, tuple({one.row: one for one in reversed(problems)}.values()))

    @property
    def detected(self) -> str:
        named = "; ".join(f"{printable(name)}: {first_names(own, _SHOWN)}" for name, own, _ in self.columns)
        none = f"; without a class (-1), and so null, are rows of {first_names(self.unlabelled or (), _SHOWN)}"
        keep = f"; to keep plain numbers: {set_column(self.columns[0][0], 'type', 'int64')}"
        return f"classes that the files name: {named}{none if self.unlabelled else ''}{keep}"


@dataclass(frozen=True, slots=True)
class ClassesOfFiles(StepByType):
    """Columns of numbers whose classes their files name are labels, but for those that are `declared`.

    `held` are the classes of the dataset of an append, by the columns of the source.
    """

    is_first = True

    declared: frozenset[str] = frozenset()
    held: Labels = field(default_factory=dict)

    def under(self, dataset: Types, labels: Labels) -> ClassesOfFiles:  # noqa: ARG002
        return replace(self, held=labels)

    def step(self, columns: Sequence[Column]) -> Step | None:
        found = []
        for one in columns:
            names, kind = classes_of(one.field), stored_type(one.field.type)
            is_number = types.is_signed_integer(kind) or (
                is_any_list(kind) and types.is_signed_integer(stored_type(kind.value_type))
            )
            if names and is_number and one.name not in self.declared:
                found.append((one.name, names, tuple(dict.fromkeys([*self.held.get(one.name, ()), *names]))))
        return NamedClasses(tuple(found)) if found else None


def _planned(column: Column, classes: Sequence[str], unlabelled: Sequence[str]) -> Column:
    listed = is_any_list(stored_type(column.field.type))
    kind = pa.large_list(pa.int64()) if listed else pa.int64()
    nullable = column.field.nullable or column.name in unlabelled
    count = "1 class" if len(classes) == 1 else f"{len(classes):,} classes"
    made = pa.field(column.name, kind, nullable)
    return Column(made, reason=f"{count}, named by the files", labels=tuple(classes))


def _numbered(
    values: pa.Array, own: Sequence[str], classes: Sequence[str], *, lists: bool
) -> tuple[pa.Array, list[int]]:
    """Return the numbers that classes of a file have in the dataset, and the places of those that have no name."""
    least = 0 if lists else _NONE
    unnamed = pc.or_(pc.less(values, least), pc.greater_equal(values, len(own)))
    known = pc.and_(pc.invert(unnamed), pc.greater_equal(values, 0))
    numbers = pc.if_else(known, values, pa.scalar(None, values.type)).cast(pa.int64())
    if list(own) != list(classes[: len(own)]):
        numbers = int_array([classes.index(name) for name in own]).take(numbers)
    return numbers, np.flatnonzero(unnamed.fill_null(False).to_numpy(zero_copy_only=False)).tolist()


def _unknown(name: str, value: object, own: Sequence[str]) -> CellError:
    shown = first_names(own, _SHOWN)
    text = f"the file names the classes 0 to {len(own) - 1} ({shown}); fix the row"
    return CellError(name, "UNKNOWN_CLASS", printable(str(value)), f"0 to {len(own) - 1}", text)
