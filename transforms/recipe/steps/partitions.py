"""The columns in the names of folders, as Hive and Spark write them: `country=de/year=2024/part-0.parquet`.

Values are percent-decoded; `__HIVE_DEFAULT_PARTITION__` is null. A column is int64 where all its values are written as
integers are, `7` and not `007`; else it is text. The same is what pyarrow, DuckDB and Spark read.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import unquote

import pyarrow as pa

from ...errors import SchemaError
from ...format.wording.hints import Set
from ...format.wording.printable import printable
from ...inputs.contract.selection import EVERY_COLUMN, Selection
from ...inputs.contract.source import Listing
from ...recognise.evidence.names import partition_values
from ..step import Column, Labels, Step, Types

_NULL: Final = "__HIVE_DEFAULT_PARTITION__"
_REASON: Final = "from the names of folders"
_INTEGER: Final = re.compile(r"0|-?[1-9][0-9]{0,18}")


@dataclass(frozen=True, slots=True)
class Partitions(Step):
    """Add the columns that the folders of a file name, for files found below `paths`, as these were typed.

    `told_by_files` are the columns of all folders, `columns` those that are kept, with their Arrow types and whether
    they hold nulls.
    """

    is_of_file = True

    reads = ()

    paths: tuple[str, ...]
    selection: Selection = EVERY_COLUMN
    columns: tuple[tuple[str, pa.DataType, bool], ...] = ()
    told_by_files: tuple[str, ...] = ()

    @property
    def detected(self) -> str:
        shown = ", ".join(printable(name) for name, _, _ in self.columns)
        return f"columns {shown}, from the names of folders (input.partitions)"

    def of_files(self, listing: Listing) -> Partitions | None:
        """Return None where no folder names a column."""
        found, files = dict[str, set[str | None]](), [entry.name for entry in listing.entries]
        first: tuple[str, ...] | None = None
        for file in files:
            values = _values(file, self.paths)
            if first is None:
                first = tuple(values)
            elif set(values) != set(first):
                raise SchemaError(_difference(files[0], first, file, tuple(values)))
            for name, value in values.items():
                found.setdefault(name, set()).add(value)
        if not found:
            return None
        kept = self.selection.of_some(list(found))
        columns = tuple((name, _type_of(found[name]), None in found[name]) for name in kept)
        return replace(self, columns=columns, told_by_files=tuple(found))

    def under(self, dataset: Types, labels: Labels) -> Partitions:  # noqa: ARG002
        """Return the step whose columns are text where the dataset's are: new folders may all have numbers."""
        text = {name for name, kind in dataset.items() if pa.types.is_string(kind)}
        return replace(
            self,
            columns=tuple((name, pa.string() if name in text else kind, null) for name, kind, null in self.columns),
        )

    def plan(self, columns: Sequence[Column]) -> Sequence[Column]:
        known = {column.name for column in columns}
        for name, _, _ in self.columns:
            if name in known:
                raise SchemaError(
                    f'the files hold a column "{printable(name)}", and their folders name it too; to read the columns '
                    f"of the files alone: {Set('input.partitions', 'none')}"
                )
        return [
            *columns,
            *(Column(pa.field(name, kind, nullable=null), reason=_REASON) for name, kind, null in self.columns),
        ]

    def apply(self, batch: pa.RecordBatch, file: str) -> pa.RecordBatch:
        values = _values(file, self.paths)
        added = []
        for name, kind, _ in self.columns:
            text = values[name]
            value = int(text) if text is not None and pa.types.is_int64(kind) else text
            added.append(pa.repeat(pa.scalar(value, kind), batch.num_rows))
        names = [*batch.schema.names, *(name for name, _, _ in self.columns)]
        return pa.RecordBatch.from_arrays([*batch.columns, *added], names=names)


def _values(file: str, paths: Sequence[str]) -> dict[str, str | None]:
    values = {unquote(name): unquote(value) for name, value in partition_values(file, paths).items()}
    return {name: None if value == _NULL else value for name, value in values.items()}


def _type_of(values: set[str | None]) -> pa.DataType:
    whole = all(value is None or (_INTEGER.fullmatch(value) and -(2**63) <= int(value) < 2**63) for value in values)
    return pa.int64() if whole and values != {None} else pa.string()


def _difference(one: str, names: Sequence[str], other: str, others: Sequence[str]) -> str:
    def shown(found: Sequence[str]) -> str:
        return ", ".join(f'"{printable(name)}"' for name in found) or "no columns"

    return (
        f"the folders of {one} name {shown(names)}, and those of {other} {shown(others)}; convert them apart, or leave "
        f"these columns out: {Set('input.partitions', 'none')}"
    )
