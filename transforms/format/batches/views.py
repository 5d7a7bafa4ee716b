"""Many small pieces of bytes put together at memory speed: writev, vectorised.

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
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

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
