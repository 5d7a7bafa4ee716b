"""Take rows out of a batch, also where its columns are views, which Arrow cannot take from."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from pyarrow import types

from .arrow_memory import array_of
from .views import I64


def take_rows(batch: pa.RecordBatch, rows: I64) -> pa.RecordBatch:
    arrays = [_take_array(array, rows) for array in batch.columns]
    return pa.RecordBatch.from_arrays(arrays, schema=batch.schema) if arrays else batch.slice(0, len(rows))


def _take_array(array: pa.Array, rows: I64) -> pa.Array:
    if not _has_views(array.type):
        return array.take(array_of(rows))
    # Arrow cannot take views: join the runs of rows that follow each other.
    breaks = np.flatnonzero(np.diff(rows) != 1) + 1
    parts = [array.slice(int(part[0]), len(part)) for part in np.split(rows, breaks) if len(part)]
    return pa.concat_arrays(parts) if parts else array.slice(0, 0)


def _has_views(arrow: pa.DataType) -> bool:
    if types.is_string_view(arrow) or types.is_binary_view(arrow):
        return True
    if isinstance(arrow, pa.BaseExtensionType):
        return _has_views(arrow.storage_type)
    return types.is_nested(arrow) and any(_has_views(arrow.field(i).type) for i in range(arrow.num_fields))
