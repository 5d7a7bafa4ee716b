"""The memory of an Arrow array as numpy sees it, without a copy and without pandas (`to_numpy` may import it)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from .views import I64


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
    """Return bits of a bitmap as booleans."""
    octets = np.frombuffer(buffer, np.uint8)[offset // 8 : (offset + count + 7) // 8]
    return np.unpackbits(octets, bitorder="little")[offset % 8 :][:count].view(np.bool_)


def offsets_of(array: pa.Array, dtype: npt.DTypeLike) -> I64:
    """Return the `len(array) + 1` offsets of an array of binary, string or list type, as int64."""
    kind = np.dtype(dtype)
    buffer = array.buffers()[1]
    if buffer is None or not buffer.size:
        return np.zeros(len(array) + 1, np.int64)
    return np.frombuffer(buffer, kind, len(array) + 1, array.offset * kind.itemsize).astype(np.int64)


def int64_array(values: I64) -> pa.Array:
    """Return int64 values as an Arrow array; `pa.array` would look whether they are pandas', and import it."""
    return pa.Array.from_buffers(pa.int64(), len(values), [None, pa.py_buffer(np.ascontiguousarray(values))])


def text_array(values: Sequence[str | None]) -> pa.Array:
    """Return texts as an Arrow array of strings, without pandas too; None is a null."""
    encoded = [b"" if value is None else value.encode() for value in values]
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int32)
    there = np.array([value is not None for value in values], bool)
    valid = None if there.all() else pa.py_buffer(np.packbits(there, bitorder="little"))
    return pa.StringArray.from_buffers(len(encoded), pa.py_buffer(ends), pa.py_buffer(b"".join(encoded)), valid)
