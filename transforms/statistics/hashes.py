"""64-bit hashes of many values at once: equal values have equal hashes, on any machine and in any batch.

They are not made to withstand an adversary: what is estimated by them is how many values are different, and which rows
are in a sample. The mixing function is that of SplitMix64 (G. Steele, D. Lea and C. Flood, 2014).
"""

from __future__ import annotations

import base64
import zlib
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

U64 = npt.NDArray[np.uint64]

_STEP: Final = np.uint64(0x9E3779B97F4A7C15)
_FIRST: Final = np.uint64(0xBF58476D1CE4E5B9)
_SECOND: Final = np.uint64(0x94D049BB133111EB)
_WORD: Final = 8


def mix(words: U64) -> U64:
    words ^= words >> np.uint64(30)
    words *= _FIRST
    words ^= words >> np.uint64(27)
    words *= _SECOND
    words ^= words >> np.uint64(31)
    return words


def keys_of_rows(name: str, rows: npt.NDArray[np.int64]) -> U64:
    """Return the key of each row of a batch, by which a sample takes it; `name` is unlike that of any other batch.

    >>> keys_of_rows("task 0", np.array([0, 1])).tolist()
    [16424935815287481101, 5985678363413888359]
    """
    data = name.encode()
    start = np.uint64(zlib.crc32(data) | zlib.adler32(data) << 32)
    with np.errstate(over="ignore"):
        return mix(rows.astype(np.uint64) * _STEP + start)


def hashes_of_numbers(values: npt.NDArray[Any]) -> U64:
    """Return the hash of each int64 or float32; a zero has one, whatever its sign."""
    if values.dtype == np.float32:
        words = (values + np.float32(0)).view(np.uint32).astype(np.uint64)
    else:
        words = values.astype(np.int64, copy=True).view(np.uint64)
    words += _STEP
    return mix(words)


def hashes_of_bytes(values: pa.LargeBinaryArray) -> U64:
    _, offset_buffer, data = values.buffers()
    offsets = np.frombuffer(offset_buffer, np.int64)[values.offset : values.offset + len(values) + 1]
    lengths = np.diff(offsets)
    words = lengths.astype(np.uint64) + _STEP
    most = int(lengths.max()) if len(lengths) else 0
    if not most:
        return mix(words)
    first = int(offsets[0])
    padded = np.zeros(int(offsets[-1]) - first + _WORD, np.uint8)
    padded[:-_WORD] = np.frombuffer(data, np.uint8)[first : int(offsets[-1])]
    eights = np.ndarray((len(padded) - _WORD + 1,), "<u8", padded, strides=(1,))
    starts, whole = offsets[:-1] - first, int(lengths.min()) // _WORD * _WORD
    for at in range(0, whole, _WORD):
        words = _stirred(words, eights[starts + at])
    for at in range(whole, most, _WORD):
        rows = np.flatnonzero(lengths > at)
        gone = np.maximum(_WORD - (lengths[rows] - at), 0).astype(np.uint64) * np.uint64(8)
        parts = eights[starts[rows] + at] << gone
        words[rows] = _stirred(words[rows], parts)
    return mix(words)


def packed(numbers: npt.NDArray[Any]) -> str:
    """Return numbers as text: their bytes, little-endian, in base64.

    >>> packed(np.array([1], np.uint64))
    'AQAAAAAAAAA='
    """
    return base64.b64encode(numbers.astype(numbers.dtype.newbyteorder("<"), copy=False).tobytes()).decode()


def unpacked(text: str, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    data = base64.b64decode(text, validate=True)
    return np.frombuffer(data, np.dtype(dtype).newbyteorder("<")).astype(dtype)


def _stirred(words: U64, more: U64) -> U64:
    more ^= words
    more *= _FIRST
    more ^= more >> np.uint64(29)
    return more


def least_of(hashes: U64, most: int) -> U64:
    """Return the least of some hashes, each once, in order."""
    if len(hashes) > 8 * most:  # few of them are the same, if any
        near = _once(np.partition(hashes, 4 * most)[: 4 * most])
        if len(near) >= most:
            return near[:most]
    return _once(hashes)[:most]


def _once(hashes: U64) -> U64:
    ordered = np.sort(hashes)
    new = np.ones(len(ordered), bool)
    np.not_equal(ordered[1:], ordered[:-1], out=new[1:])
    return ordered if new.all() else ordered[new]
