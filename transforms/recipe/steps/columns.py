"""Steps that choose columns, name them and add them: some of them, other names, and columns of one value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import pyarrow as pa

from ...errors import SchemaError
from ...format.wording.printable import NoColumnError, printable
from ...inputs.contract.selection import Selection
from ..step import Column, Labels, Step, Types

Scalar: TypeAlias = str | bool | int | float


@dataclass(frozen=True, slots=True)
class Keep(Step):
    """Keep some columns only, of a source that reads all of them: names alone say which."""

    reads = ()

    selection: Selection

    def plan(self, columns: Sequence[Column]) -> Sequence[Column]:
        kept = set(self.selection.pick([column.name for column in columns]))
        return [column for column in columns if column.name in kept]

    def apply(self, batch: pa.RecordBatch, file: str) -> pa.RecordBatch:  # noqa: ARG002
        return batch.select(self.selection.of_some(batch.schema.names))


@dataclass(frozen=True, slots=True)
class Rename(Step):
    """Give columns other names: pairs of the name in the source and the name in the dataset."""

    reads = ()

    names: tuple[tuple[str, str], ...]

    def plan(self, columns: Sequence[Column]) -> Sequence[Column]:
        known = [column.name for column in columns]
        for name, _ in self.names:
            if name not in known:
                raise NoColumnError("schema.columns", name, known)
        new = dict(self.names)
        return [column.renamed(new.get(column.name, column.name)) for column in columns]

    def apply(self, batch: pa.RecordBatch, file: str) -> pa.RecordBatch:  # noqa: ARG002
        new = dict(self.names)
        return batch.rename_columns([new.get(name, name) for name in batch.schema.names])


@dataclass(frozen=True, slots=True)
class Constants(Step):
    """Add columns whose values are the same in every row: (name, value, Arrow type) each."""

    values: tuple[tuple[str, Scalar, pa.DataType], ...]

    @classmethod
    def of(cls, values: Mapping[str, Scalar]) -> Constants:
        """Take text, bool, int64, or float32 as floats are stored. Raises `SchemaError` for an integer beyond int64."""
        return cls(tuple((name, value, _type_of(name, value)) for name, value in sorted(values.items())))

    def under(self, dataset: Types, labels: Labels) -> Constants:  # noqa: ARG002
        """Return the step whose values have the types of a dataset, where they are exact in them."""
        changed = []
        for name, value, kind in self.values:
            wanted = dataset.get(name, kind)
            changed.append((name, value, wanted if _fits(value, wanted) else kind))
        return replace(self, values=tuple(changed))

    def plan(self, columns: Sequence[Column]) -> Sequence[Column]:
        known = {column.name for column in columns}
        for name, _, _ in self.values:
            if name in known:
                raise SchemaError(
                    f'schema.constants names "{printable(name)}", which is a column of the source; leave that out '
                    f"(input.exclude_columns), or choose another name"
                )
        return [
            *columns,
            *(Column(pa.field(name, kind, nullable=False), reason="schema.constants") for name, _, kind in self.values),
        ]

    def apply(self, batch: pa.RecordBatch, file: str) -> pa.RecordBatch:  # noqa: ARG002
        added = [pa.repeat(pa.scalar(value, kind), batch.num_rows) for _, value, kind in self.values]
        names = [*batch.schema.names, *(name for name, _, _ in self.values)]
        return pa.RecordBatch.from_arrays([*batch.columns, *added], names=names)


def _type_of(name: str, value: Scalar) -> pa.DataType:
    if isinstance(value, bool):
        return pa.bool_()
    if isinstance(value, int):
        if not -(2**63) <= value < 2**63:
            raise SchemaError(f'schema.constants: "{printable(name)}" is {value}, which int64 cannot hold')
        return pa.int64()
    return pa.float32() if isinstance(value, float) else pa.string()


def _fits(value: Scalar, kind: pa.DataType) -> bool:
    if isinstance(value, bool) != pa.types.is_boolean(kind):
        return False
    try:
        return bool(pa.scalar(value, kind).as_py() == value)
    except (pa.ArrowException, OverflowError):
        return False
