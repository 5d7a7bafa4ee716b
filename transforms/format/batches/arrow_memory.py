"""Take Arrow arrays apart into NumPy arrays and build them from such, without pandas; and join many small pieces.

`pa.array`, `pa.scalar`, `to_numpy` and functions of Arrow that are given a value of Python do the same, but they import
pandas to see whether a value is its own: 0.2 s in each process. What every run goes through does without them.

Nothing is copied where the layout allows it.

A piece is described by 16 bytes, an Arrow *binary view*: four int32, of which the first is the length in bytes.

    length <= 12    | length | the bytes themselves, padded with zeros |
    length > 12     | length | unused | buffer index | offset           |      into a buffer that exists already

For n rows of p pieces, the views laid out row by row, `int32[n, p, 4]`, *are* the data buffer of an Arrow `binary_view`
array. Casting that to `large_binary` copies every piece to its place, in order, in one call that holds no lock:

              piece 0   piece 1   piece 2
    row 0    [ view ]  [ view ]  [ view ]
    row 1    [ view ]  [ view ]  [ view ]   ──cast──▶   0:0 0:1 0:2 1:0 1:1 1:2 ...   and where each one ends

A view of length zero is an absent piece, so nulls need no branch. The third field of Arrow's reference, the first four
bytes, is for comparisons, which nobody makes here: it stays zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import types


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


def ends_of(lengths: I64) -> I64:
    """Return 0, and where each of the lengths ends that follow each other."""
    ends = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=ends[1:])
    return ends


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
            (1, 16 * row + 4, length) if length <= INLINE_BYTES else (2 + buffer, start, length)
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


Views = npt.NDArray[np.complex128]
"""Views, one an element. A complex number is never meant: it is numpy's one plain 16-byte item that it moves fast."""

I64 = npt.NDArray[np.int64]

INLINE_BYTES: Final = 12
"""Pieces of this length or less must be in the view itself; Arrow reads longer ones through the reference."""

BUFFER_LIMIT: Final = (1 << 31) - 1
"""A view's offset is an int32: a buffer that views refer to ends below 2 GiB."""


def inline_views(content: npt.NDArray[np.uint32], lengths: npt.NDArray[np.int32] | int) -> Views:
    """Return views whose bytes are the rows of `content`: `uint32[n, up to 3]`, zero beyond `lengths` bytes."""
    views = np.zeros((len(content), 4), np.int32)
    views[:, 0] = lengths
    views[:, 1 : 1 + content.shape[1]] = content.view(np.int32)
    return as_views(views)


def as_views(words: npt.NDArray[np.int32]) -> Views:
    """Return `int32[n, 4]`, C-contiguous, as `n` views."""
    return words.view(np.complex128).reshape(-1)


def words_of(views: Views) -> npt.NDArray[np.int32]:
    return views.reshape(-1, 1).view(np.int32)


def lengths_of(views: Views) -> I64:
    return words_of(views)[:, 0].astype(np.int64)


def reference_views(offsets: I64, lengths: I64, data: pa.Buffer, index: int) -> Views:
    """Return views of `data[offset:offset + length]`, `data` being buffer `index`. Raises `ValueError` beyond 2 GiB."""
    words = np.zeros((len(lengths), 4), np.int32)
    if len(lengths) and int((offsets + lengths).max()) > BUFFER_LIMIT:
        raise ValueError(f"a piece ends beyond {BUFFER_LIMIT} bytes of its buffer")
    words[:, 0] = lengths
    words[:, 2] = index
    words[:, 3] = offsets
    short = np.flatnonzero(lengths <= INLINE_BYTES)
    if len(short):
        content = np.zeros((len(short), INLINE_BYTES), np.uint8)
        if data.size:
            positions = offsets[short, None] + np.arange(INLINE_BYTES)
            source = np.frombuffer(data, np.uint8)
            content = source[np.minimum(positions, len(source) - 1)]
            content[np.arange(INLINE_BYTES) >= lengths[short, None]] = 0
        words[short, 1:] = content.view(np.int32)
    return as_views(words)


def at_index(views: Views, index: int) -> Views:
    """Return views into buffers 0, 1, ... as ones into buffers `index`, `index + 1`, ...; inline views stay."""
    if index == 0:
        return views
    words = words_of(views.copy())
    words[:, 2] += (words[:, 0] > INLINE_BYTES) * np.int32(index)
    return as_views(words)


def gather(
    pieces: Sequence[Views], rows: int, buffers: Sequence[pa.Buffer], *, after: Views | None = None
) -> tuple[pa.Buffer, I64]:
    """Put the pieces of every row together, row after row; `after`, one view, is after them all.

    Each of `pieces` holds one view a row, or a single view that all rows share. The result is the bytes, and
    `int64[rows, len(pieces)]`: where each piece ends in them.
    """
    count = rows * len(pieces)
    views = np.empty(count if after is None else count + 1, np.complex128)
    matrix = views[:count].reshape(rows, len(pieces))
    for column, piece in enumerate(pieces):
        matrix[:, column] = piece
    if after is not None:
        views[count:] = after
    data, ends = concatenate(views, buffers)
    return data, ends[:count].reshape(rows, len(pieces))


def binary_array_of(views: Views, buffers: Sequence[pa.Buffer]) -> pa.LargeBinaryArray:
    array = pa.Array.from_buffers(pa.binary_view(), len(views), [None, pa.py_buffer(views), *buffers])
    return array.cast(pa.large_binary())


def concatenate(views: Views, buffers: Sequence[pa.Buffer]) -> tuple[pa.Buffer, I64]:
    """Return the bytes of all pieces, one after the other, and where each one ends in them."""
    if not len(views):
        return pa.py_buffer(b""), np.zeros(0, np.int64)
    _, offsets, data = binary_array_of(views, buffers).buffers()
    ends = np.frombuffer(offsets, np.int64, len(views), offset=8)
    return pa.py_buffer(b"") if data is None else data, ends


# Varints, vectorised: protobuf's base-128 numbers without a loop over their bytes.
#
# A varint is the number's 7-bit groups, the lowest first, one a byte, with the high bit set on all but the last byte.
# Three steps of shift and mask spread eight groups over the eight bytes of a word (here 4 groups in 32 bits):
#
#     0000 ddddddd ccccccc bbbbbbb aaaaaaa   halve:      move the upper half of the groups up to the middle of the word
#     00 ddddddd ccccccc 00 bbbbbbb aaaaaaa  and again:  within each half
#     0 ddddddd 0 ccccccc 0 bbbbbbb 0 aaaaaaa
#
# and the high bits come from a table by the number of groups. A negative int64 is its two's complement: ten bytes.


U64 = npt.NDArray[np.uint64]

MAX_VARINT_BYTES: Final = 10

_STEPS: Final = tuple(
    (np.uint64(low), np.uint64(high), np.uint64(by))
    for low, high, by in (
        (0x000000000FFFFFFF, 0x00FFFFFFF0000000, 4),
        (0x00003FFF00003FFF, 0x0FFFC0000FFFC000, 2),
        (0x007F007F007F007F, 0x3F803F803F803F80, 1),
    )
)
_HIGH_BITS: Final = np.array(  # by size: the high bit of every byte but the last one, of the first eight bytes
    [0] + [int.from_bytes(b"\x80" * min(size - 1, 8), "little") for size in range(1, MAX_VARINT_BYTES + 1)], np.uint64
)
_TABLE_SIZE: Final = 1 << 14  # 256 KiB of views: all one and two byte varints, and still in the second cache


def varint(value: int) -> bytes:
    r"""Return one unsigned number as a varint.

    >>> varint(300)
    b'\xac\x02'
    """
    groups = bytearray()
    while value > 0x7F:
        groups.append(value & 0x7F | 0x80)
        value >>= 7
    groups.append(value)
    return bytes(groups)


def _sizes(words: U64) -> npt.NDArray[np.int32]:
    sizes = np.ones(len(words), np.uint8)
    top = int(words.max(initial=0))
    for size in range(1, (max(top.bit_length(), 1) + 6) // 7):
        sizes += (words >= np.uint64(1 << 7 * size)).view(np.uint8)
    return sizes.astype(np.int32)


def _spread(values: I64) -> Views:
    words = values.view(np.uint64)
    sizes = _sizes(words)
    spread = words & np.uint64((1 << 56) - 1)
    high_part = np.empty_like(spread)
    for low, high, by in _STEPS:
        np.bitwise_and(spread, high, out=high_part)
        np.left_shift(high_part, by, out=high_part)
        np.bitwise_and(spread, low, out=spread)
        np.bitwise_or(spread, high_part, out=spread)
    spread |= _HIGH_BITS.take(sizes)
    # The view as two words: the size, and then the bytes, which begin in its upper half.
    views = np.empty((len(words), 2), np.uint64)
    np.left_shift(spread, np.uint64(32), out=high_part)
    np.bitwise_or(high_part, sizes.view(np.uint32), out=views[:, 0])
    spread >>= np.uint64(32)
    if int(words.max()) >> 56:
        rest = words >> np.uint64(56)  # the ninth group, and the tenth: the sign bit alone
        tail = np.where(sizes > MAX_VARINT_BYTES - 1, rest & 0x7F | 0x80 | (rest >> 7) << 8, rest)
        spread |= tail << np.uint64(32)
    views[:, 1] = spread
    return views.view(np.complex128).reshape(-1)


_SMALL: Final = _spread(np.arange(_TABLE_SIZE, dtype=np.int64))


def varint_views(values: I64) -> Views:
    if not len(values):
        return np.zeros(0, np.complex128)
    words = values.view(np.uint64)
    if int(words.max()) < _TABLE_SIZE:
        return _SMALL.take(values)
    return _spread(values)


# Refuse files whose rows cost nothing: a short file may state billions of nulls, runs and empty values.


FREE_ROWS: Final = 1 << 24
ROWS_PER_BYTE: Final = 64
"""More rows than that are no values: bools are eight in a byte, and their runs fewer."""


def may_be_free(values: int, size: int) -> bool:
    return values > FREE_ROWS + ROWS_PER_BYTE * size


def free_rows(values: int, size: int, *, what: str = "rows") -> str:
    return (
        f"states {values} {what}, whose values take {size} bytes: above {FREE_ROWS} rows there must be a byte for "
        f"each {ROWS_PER_BYTE} of them; write a column of values beside nulls, runs and empty values"
    )
