"""Rows by their number as dicts of NumPy values: torch's map-style dataset, and grain's `RandomAccessDataSource`."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import types

from ...format.wording.printable import printable
from .numbered_rows import NumberedRows, RowReader, SourceColumns
from .numpy_columns import PRESENT, NumpyColumns, Ragged, Values, numpy_type_of


class RowSource:
    """What has a length and rows by number, one or many at a time; threads may share it, and processes get their own.

    A row is a dict: numbers and fixed shapes are NumPy values, lists of any length are arrays, text is str. Where a
    column may be null, `NAME/present` says whether it is not. Times are NumPy's, or of the dtype `times`.
    """

    def __init__(
        self,
        rows: NumberedRows,
        columns: Sequence[str] | None,
        *,
        decode: bool,
        times: np.dtype[np.int64] | None = None,
    ) -> None:
        self._rows, self._times = rows, times
        self._numpy = NumpyColumns.plan(rows.schema, columns, decode=decode)
        self._decodes = decode
        self._single = SingleRows.plan(rows, self._numpy, rows.plan(self._numpy.columns)[0], times)

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(RowSource, decode=self._decodes, times=self._times), (self._rows, self._numpy.columns)

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        """Return what the rows are of, wherever they are: checkpoints of grain compare it."""
        name, generation = self._rows.manifest.name, self._rows.manifest.generation
        columns = "all columns" if self._numpy.columns is None else ", ".join(self._numpy.columns)
        what = f"{len(self):,} rows of shards {self._rows.digest}, {columns}, decode={self._decodes}"
        return f"<RowSource {printable(name)}: generation {generation}, {what}>"

    def __getitem__(self, index: int) -> dict[str, Any]:
        """Return the row of a number.

        Raises:
            IndexError: there is none.
            DamageError: its shard is missing, damaged or cut, or the record is not an Example of the schema.
        """
        number = operator.index(index)
        row = None if self._single is None else self._single.row(self._rows.access.record(number))
        return self.__getitems__([number])[0] if row is None else row

    def __getitems__(self, indices: Sequence[int]) -> list[dict[str, Any]]:
        numbers = np.asarray(indices, np.int64)
        columns = self._numpy.read_filled(self._rows.take(numbers, self._numpy.columns))
        each = {name: _each(self._timed(values), len(numbers)) for name, values in columns.items()}
        return [{name: values[row] for name, values in each.items()} for row in range(len(numbers))]

    def _timed(self, values: Values) -> Values:
        if isinstance(values, Ragged):
            return Ragged(self._timed(values.values), values.row_splits)
        return values.view(self._times) if self._times is not None and values.dtype.kind in "mM" else values


def _each(values: Values, count: int) -> Sequence[Any]:
    if not isinstance(values, Ragged):
        return values  # type: ignore[return-value]  # an array is one
    splits = values.row_splits.tolist()
    if not isinstance(values.values, Ragged):
        return [values.values[splits[row] : splits[row + 1]] for row in range(count)]
    inner = _each(values.values, len(values.values.row_splits) - 1)
    return [inner[splits[row] : splits[row + 1]] for row in range(count)]


Make = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class SingleRows:
    """Reads a record as the dict of its values, without a batch of one: the same values, in a tenth of the time.

    `columns` are plain: of each its name, how a value is made, and its null, if any.
    """

    reader: RowReader
    columns: tuple[tuple[str, Make, Any, bool], ...]

    @classmethod
    def plan(
        cls, rows: NumberedRows, numpy: NumpyColumns, columns: SourceColumns, times: np.dtype[Any] | None
    ) -> SingleRows | None:
        """Return what reads single rows, None where a column takes a batch; times are NumPy's, or of `times`."""
        reader = RowReader.plan(rows.schema, columns, stored=True)
        if reader is None or numpy.arrays or numpy.pictures:
            return None
        found = []
        for field in columns.schema:
            made = _maker(field.type, numpy.shapes.get(field.name), times)
            if made is None or (field.nullable and types.is_nested(field.type)):
                return None
            found.append((field.name, *made, field.nullable))
        return cls(reader, tuple(found))

    def row(self, payload: bytes) -> dict[str, Any] | None:
        """Return the values of a record, None where a batch has to be made of it."""
        values = self.reader.row(payload)
        if values is None:
            return None
        found = {}
        for name, make, null, nullable in self.columns:
            value = values[name]
            found[name] = null if value is None else make(value)
            if nullable:
                found[name + PRESENT] = np.bool_(value is not None)
        return found


def _maker(kind: pa.DataType, shape: tuple[int, ...] | None, times: np.dtype[Any] | None) -> tuple[Make, Any] | None:
    """Return how a value of protobuf becomes one of NumPy, and what stands for null; None where that takes a batch."""
    if types.is_list(kind) or types.is_fixed_size_list(kind):
        dtype = _dtype(kind.value_type, times)
        if dtype is None and shape is not None:
            return None
        if dtype is None:
            return _objects, None
        return (lambda values: np.array(values, dtype).reshape(shape or -1)), None
    if types.is_string(kind):
        return str, ""
    if types.is_binary(kind):
        return bytes, b""
    dtype = _dtype(kind, times)
    if dtype is None:
        return None
    if dtype.kind in "mM":
        unit, _ = np.datetime_data(dtype)
        return (lambda value: dtype.type(value, unit)), dtype.type(0, unit)
    return dtype.type, dtype.type(np.nan if dtype.kind == "f" else 0)


def _dtype(kind: pa.DataType, times: np.dtype[Any] | None) -> np.dtype[Any] | None:
    found = numpy_type_of(kind.index_type if types.is_dictionary(kind) else kind)
    return times if times is not None and found is not None and found.kind in "mM" else found


def _objects(values: list[Any]) -> Any:
    found = np.empty(len(values), object)
    found[:] = values
    return found
