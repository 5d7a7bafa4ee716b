"""Count how often each value of a feature occurs: exact up to 10,000 different ones, estimated beyond.

    values ──▶ waiting (up to 65,536) ──▶ counts by value, while these are few ──▶ the least hashes

What is beyond is estimated by the least of the hashes: where k of n hashes are below a share s of all numbers, n is
about k / s (Z. Bar-Yossef and others, *Counting distinct elements in a data stream*, 2002). With k = 2,048 the standard
error is 2.2 %. Which values are counted, and which hashes are kept, depends on the set of values alone.
"""

from __future__ import annotations

import base64
import hashlib
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..format.batches.arrow_memory import Views, array_of, binary_array, binary_array_of, lengths_of
from .figures import Distinct, ValueCount

# 64-bit hashes of many values at once: equal values have equal hashes, on any machine and in any batch.
#
# They are not made to withstand an adversary: what is estimated by them is how many values are different, and which
# rows are in a sample. The mixing function is that of SplitMix64 (G. Steele, D. Lea and C. Flood, 2014).


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


MOST_EXACT: Final = 10_000

TOP: Final = 20
"""The most frequent values that are stated, as many as TFDV states."""

_LEAST_HASHES: Final = 2048
_WAITING: Final = 1 << 16
_PROBE: Final = 3 << 12
"""Values that are counted at once, and those of the first time: of identifiers these are too many already."""

_LONG: Final = 128
_KEPT: Final = 96

Value = int | float | str


@dataclass(slots=True)
class Values:
    """What is known of the values of one feature: `counts` by value, or where they are too many, the least `hashes`."""

    counts: dict[Any, int] | None = field(default_factory=dict)
    hashes: U64 = field(default_factory=lambda: np.zeros(0, np.uint64))
    _waiting: list[Any] = field(default_factory=list)
    _number: int = 0
    _new_hashes: list[U64] = field(default_factory=list)

    def add_numbers(self, values: npt.NDArray[Any]) -> None:
        """Count int64 or float32 values; those that are not finite do not count."""
        if values.dtype == np.float32:
            finite = np.isfinite(values)
            values = (values if finite.all() else values[finite]) + np.float32(0)  # -0.0 is 0.0
        if self.counts is None:
            self._take_hashes(hashes_of_numbers(values))
        else:
            self._wait(values)

    def add_views(self, views: Views, buffers: Sequence[pa.Buffer]) -> None:
        """Count texts; of a long one its beginning is kept, and a digest."""
        if len(views):
            values = short_texts(views, buffers)
            if self.counts is None:
                self._take_hashes(hashes_of_bytes(values))
            else:
                self._wait(values)

    def merge(self, other: Values) -> None:
        for values in other._waiting:
            if self.counts is None:
                self._take_hashes(_hashes(values))
            else:
                self._wait(values)
        if self._number > _PROBE and not self.counts:
            self.settle()
        if other.counts is None:
            self._forget()
            for hashes in (other.hashes, *other._new_hashes):
                self._take_hashes(hashes)
        else:
            self._count(other.counts.items(), len(other.counts))

    def settle(self) -> None:
        if not self._waiting:
            return
        if not self.counts and self._are_many():
            self._forget()
            return
        waiting, self._waiting, self._number = self._waiting, [], 0
        values, counts = _counted(_joined(waiting))
        if len(values) > MOST_EXACT:
            self._forget()
            self._take_hashes(_hashes(values))
            return
        keys = values.to_pylist()
        if isinstance(values, pa.LargeBinaryArray):
            keys = [key.decode("utf-8", "replace") for key in keys]
        self._count(zip(keys, counts.to_pylist(), strict=True), len(keys))

    def _are_many(self) -> bool:
        """Return whether the first values alone show that there are too many, as in a column of identifiers."""
        first, number = [], 0
        for values in self._waiting:
            first.append(values[: _PROBE - number])
            number += len(first[-1])
        return number >= _PROBE and len(least_of(np.concatenate([*map(_hashes, first)]), number)) > MOST_EXACT

    def estimate(self) -> None:
        """Give up the counts of more values than are shown."""
        self.settle()
        if self.counts is not None and len(self.counts) > TOP:
            self._forget()

    def distinct(self) -> Distinct:
        self.settle()
        if self.counts is not None:
            return Distinct(len(self.counts), exact=True)
        self._keep_least()
        if len(self.hashes) < _LEAST_HASHES:
            return Distinct(len(self.hashes), exact=False)
        share = (int(self.hashes[-1]) + 1) / 2.0**64
        return Distinct(round((len(self.hashes) - 1) / share), exact=False)

    def top(self) -> tuple[ValueCount, ...]:
        """Return the most frequent values, none where they are not counted."""
        self.settle()
        return top_of(self.counts or {})

    def to_json(self) -> dict[str, Any]:
        self.settle()
        if self.counts is not None:
            return {"counts": [list(one) for one in sorted(self.counts.items())]}
        self._keep_least()
        return {"hashes": packed(self.hashes)}

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Values:
        if "counts" in document:
            counts = {value: int(count) for value, count in document["counts"]}
            if len(set(map(type, counts))) > 1:
                raise ValueError("values of several types are counted")
            return cls(counts)
        hashes = unpacked(document["hashes"], np.uint64)
        if len(hashes) > _LEAST_HASHES:
            raise ValueError(f"{len(hashes)} hashes, more than {_LEAST_HASHES}")
        return cls(None, hashes)

    def _wait(self, values: Any) -> None:
        self._waiting.append(values)
        self._number += len(values)
        if self._number >= _WAITING:  # fewer may be of a batch, and go to what has counted others
            self.settle()

    def _count(self, found: Iterable[tuple[Any, int]], number: int) -> None:
        if self.counts is None:
            self._take_hashes(_hashes_of_keys([value for value, _ in found]))
            return
        if not self.counts and number <= MOST_EXACT:
            self.counts = dict(found)
            return
        counts = self.counts
        for value, count in found:
            counts[value] = counts.get(value, 0) + count
        if len(counts) > MOST_EXACT:
            self._forget()

    def _forget(self) -> None:
        if self.counts is not None:
            keys, self.counts = list(self.counts), None
            self._take_hashes(_hashes_of_keys(keys))
        waiting, self._waiting, self._number = self._waiting, [], 0
        for values in waiting:
            self._take_hashes(_hashes(values))

    def _take_hashes(self, hashes: U64) -> None:
        if len(self.hashes) == _LEAST_HASHES:
            hashes = hashes[hashes < self.hashes[-1]]
        if len(hashes):
            self._new_hashes.append(hashes)
            if len(self.hashes) < _LEAST_HASHES or sum(map(len, self._new_hashes)) > _LEAST_HASHES:
                self._keep_least()

    def _keep_least(self) -> None:
        if self._new_hashes:
            self.hashes = least_of(np.concatenate((self.hashes, *self._new_hashes)), _LEAST_HASHES)
            self._new_hashes = []


def top_of(counts: dict[Any, int]) -> tuple[ValueCount, ...]:
    found = sorted(counts.items(), key=lambda one: (-one[1], one[0]))[:TOP]
    return tuple(ValueCount(value, count) for value, count in found)


def short_texts(views: Views, buffers: Sequence[pa.Buffer]) -> pa.LargeBinaryArray:
    """Return texts, of long ones the beginning and a digest of all."""
    values = binary_array_of(views, buffers)
    if int(lengths_of(views).max(initial=0)) <= _LONG:
        return values
    return _texts([_shortened(value) for value in values.to_pylist()])


def _shortened(value: bytes) -> bytes:
    if len(value) <= _LONG:
        return value
    start = value[:_KEPT].decode("utf-8", "ignore").encode()  # no part of a letter
    return start + b"..." + hashlib.blake2b(value, digest_size=12).hexdigest().encode()


def _counted(values: pa.Array) -> tuple[pa.Array, pa.Array]:
    found = values.value_counts()
    return found.field("values"), found.field("counts")


def _texts(values: Sequence[bytes]) -> pa.LargeBinaryArray:
    return binary_array(values).cast(pa.large_binary())


def _joined(values: Sequence[Any]) -> pa.Array:
    if isinstance(values[0], np.ndarray):
        return array_of(np.concatenate(values))
    return pa.concat_arrays(values)


def _hashes(values: Any) -> U64:
    if isinstance(values, pa.LargeBinaryArray):
        return hashes_of_bytes(values)
    return hashes_of_numbers(values if isinstance(values, np.ndarray) else values.to_numpy(zero_copy_only=False))


def _hashes_of_keys(keys: Sequence[Any]) -> U64:
    if not keys:
        return np.zeros(0, np.uint64)
    if isinstance(keys[0], str):
        return hashes_of_bytes(_texts([key.encode() for key in keys]))
    kind = np.float32 if isinstance(keys[0], float) else np.int64
    return hashes_of_numbers(np.array(keys, kind))
