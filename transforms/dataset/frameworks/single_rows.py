"""One row for training without a batch of one, where all columns are plain: the same values, in a tenth of the time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import types

from ..rows.numbered_rows import NumberedRows
from ..rows.row_reader import RowReader
from ..rows.source_columns import SourceColumns
from .numpy_columns import PRESENT, NumpyColumns, numpy_type_of

Make = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class SingleRows:
    """Reads a record as the dict of its values; of each column its name, how a value is made, and its null, if any."""

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
