"""Varints, vectorised: protobuf's base-128 numbers without a loop over their bytes.

A varint is the number's 7-bit groups, the lowest first, one a byte, with the high bit set on all but the last byte.
Three steps of shift and mask spread eight groups over the eight bytes of a word (here 4 groups in 32 bits):

    0000 ddddddd ccccccc bbbbbbb aaaaaaa   halve:      move the upper half of the groups up to the middle of the word
    00 ddddddd ccccccc 00 bbbbbbb aaaaaaa  and again:  within each half
    0 ddddddd 0 ccccccc 0 bbbbbbb 0 aaaaaaa

and the high bits come from a table by the number of groups. A negative int64 is its two's complement: ten bytes.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from .views import I64, Views

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
