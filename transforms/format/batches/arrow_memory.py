"""Arrow arrays as numpy sees them, and numpy's as Arrow sees them, without a copy where that can be.

`pa.array`, `pa.scalar`, `to_numpy` and functions of Arrow that are given a value of Python do the same, but they import
pandas to see whether a value is its own: 0.2 s in each process. What every run goes through does without them.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import types

from .views import I64

_INLINE: Final = 12
"""The most bytes of a value that a binary_view holds in the view itself."""


def raw_values(array: pa.Array, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return the fixed-width values of an array; what is under its nulls is arbitrary."""
    kind = np.dtype(dtype)
    buffer = array.buffers()[1] if len(array) else None
    if buffer is None:
        return np.zeros(len(array), kind)
    return np.frombuffer(buffer, kind, len(array), array.offset * kind.itemsize)


def valid_mask(array: pa.Array) -> npt.NDArray[np.bool_] | None:
    """Return which values are not null, or None if all are not."""
    if array.null_count == 0:
        return None
    valid = array.is_valid()
    return bits(valid.buffers()[1], valid.offset, len(valid))


def bits(buffer: pa.Buffer, offset: int, count: int) -> npt.NDArray[np.bool_]:
    octets = np.frombuffer(buffer, np.uint8)[offset // 8 : (offset + count + 7) // 8]
    return np.unpackbits(octets, bitorder="little")[offset % 8 :][:count].view(np.bool_)


def bitmap_of(there: npt.NDArray[np.bool_]) -> pa.Buffer | None:
    return None if there.all() else pa.py_buffer(np.packbits(there, bitorder="little"))


def offsets_of(array: pa.Array, dtype: npt.DTypeLike) -> I64:
    kind = np.dtype(dtype)
    buffer = array.buffers()[1]
    if buffer is None or not buffer.size:
        return np.zeros(len(array) + 1, np.int64)
    return np.frombuffer(buffer, kind, len(array) + 1, array.offset * kind.itemsize).astype(np.int64)


def joined_arrays(arrays: Sequence[pa.Array]) -> pa.Array:
    """Return arrays of one type, one after the other; without a copy if they are slices that follow each other."""
    first, rows = arrays[0], len(arrays[0])
    if pa.types.is_primitive(first.type) and rows:
        places = _addresses(first)
        if all(
            len(one) == rows and one.offset == first.offset + number * rows and _addresses(one) == places
            for number, one in enumerate(arrays)
        ):
            return pa.Array.from_buffers(first.type, rows * len(arrays), first.buffers(), offset=first.offset)
    return pa.concat_arrays(arrays)


def _addresses(array: pa.Array) -> list[int]:
    return [0 if buffer is None else buffer.address for buffer in array.buffers()]


def beginning_of(cells: pa.Array, row: int, size: int) -> bytes:
    """Return the first bytes of a binary cell; a scalar of Arrow would be a copy of all of it."""
    start, stop = offsets_of(cells.slice(row, 1), np.int32).tolist()
    return bytes(memoryview(cells.buffers()[2] or b"")[start : min(start + size, stop)])


def true_mask(flags: pa.BooleanArray) -> npt.NDArray[np.bool_]:
    """Return which of some flags are true; a null is not."""
    values = flags.buffers()[1]
    found = bits(values, flags.offset, len(flags)) if values is not None else np.zeros(len(flags), bool)
    valid = valid_mask(flags)
    return found if valid is None else found & valid


def array_of(values: npt.NDArray[Any]) -> pa.Array:
    if values.dtype == bool:
        return pa.Array.from_buffers(
            pa.bool_(), len(values), [None, pa.py_buffer(np.packbits(values, bitorder="little"))], null_count=0
        )
    data = pa.py_buffer(np.ascontiguousarray(values))
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [None, data], null_count=0)


def null_of(kind: pa.DataType) -> pa.Scalar:
    return pa.nulls(1, kind)[0]


def int_array(values: Sequence[int | None]) -> pa.Array:
    numbers = np.array([0 if value is None else value for value in values], np.int64)
    valid = bitmap_of(np.array([value is not None for value in values], bool))
    return pa.Array.from_buffers(pa.int64(), len(values), [valid, pa.py_buffer(numbers)])


def text_array(values: Sequence[str | None]) -> pa.Array:
    return binary_array([None if value is None else value.encode() for value in values]).view(pa.string())


def views_of(array: pa.Array) -> list[memoryview | None]:
    """Return the bytes of each value of binary, large_binary or binary_view, None for a null.

    They are the array's own memory; a scalar of Arrow is a copy. An inline value of a binary_view is in the view: the
    Arrow columnar format, "Variable-size Binary View Layout".
    """
    buffers = [memoryview(b"" if one is None else one).cast("B") for one in array.buffers()]
    if pa.types.is_binary_view(array.type):
        places = [
            (1, 16 * row + 4, length) if length <= _INLINE else (2 + buffer, start, length)
            for row, (length, _, buffer, start) in enumerate(np.frombuffer(buffers[1], "<i4").reshape(-1, 4).tolist())
        ][array.offset : array.offset + len(array)]
    else:
        ends = offsets_of(array, np.int64 if pa.types.is_large_binary(array.type) else np.int32).tolist()
        places = [(2, start, stop - start) for start, stop in pairwise(ends)]
    found: list[memoryview | None] = [buffers[buffer][start : start + size] for buffer, start, size in places]
    valid = valid_mask(array)
    return found if valid is None else [one if there else None for one, there in zip(found, valid, strict=True)]


def binary_array(values: Sequence[bytes | memoryview | None], *, large: bool = False) -> pa.Array:
    """Return values as an Arrow array of (large) binary; None is a null. A single value is not copied."""
    width = np.int64 if large else np.int32
    ends = np.cumsum([0, *(0 if value is None else len(value) for value in values)], dtype=width)
    valid = bitmap_of(np.array([value is not None for value in values], bool))
    found = [value for value in values if value is not None]
    data = pa.py_buffer(found[0] if len(found) == 1 else b"".join(found))
    kind = pa.large_binary() if large else pa.binary()
    return pa.Array.from_buffers(kind, len(values), [valid, pa.py_buffer(ends), data])


# Take rows out of a batch, also where its columns are views, which Arrow cannot take from.


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
