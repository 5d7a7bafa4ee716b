"""Walk many serialized Examples in lock-step: one cursor a record, one feature after the other.

Records are canonical when their keys are sorted (`SerializeToString(deterministic=True)`, and our encoder). So all
records are walked at once, feature by feature in the order of their keys: a cursor that is at the feature's key
takes its value and moves after it; a cursor that is at another key stays, and the feature is absent there.

    record 0   ▷ [a][b][c]      a: all move    b: 0 and 2 move    c: all move
    record 1   ▷ [a]   [c]                        1 stays: b is absent in record 1
    record 2   ▷ [a][b][c]      a cursor that is not at the end of its record after the last feature: not canonical

A small value's entry (up to 127 bytes, which is nearly every one) is compared with its template, whole words at once:

    0A e  0A k <key>  12 f  tag l  [0A p]  payload       p: bytes of payload; l = p + 2; f = p + 4; e = p + k + 8

Every byte before the payload is constant but the four sizes, and those are p and a constant. A word of the template is
therefore `constant + p * ones`, where `ones` has a 1 in the bytes of sizes: no size reaches 128, so no byte carries.
Only entries that differ (larger, empty, absent or foreign) are read byte by byte, again all of them at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from ..buffers.varints import varint
from ..schema.schema import Feature

U8 = npt.NDArray[np.uint8]
U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

WORD: Final = 8

_TAGS: Final = {"bytes": 0x0A, "float": 0x12, "int64": 0x1A}
"""The tag of each kind's list in the oneof of a Feature."""

CONTINUES: Final = np.uint64(0x8080808080808080)
_GROUPS: Final = np.uint64(0x7F7F7F7F7F7F7F7F)
_STEPS: Final = tuple(
    (np.uint64(low), np.uint64(high), np.uint64(by))
    for low, high, by in (
        (0x007F007F007F007F, 0x7F007F007F007F00, 1),
        (0x00003FFF00003FFF, 0x3FFF00003FFF0000, 2),
        (0x000000000FFFFFFF, 0x0FFFFFFF00000000, 4),
    )
)
FEW_RECORDS: Final = 1024
"""Up to here it is the calls that cost, and not the values."""

_LONGEST_SIZE: Final = 5
"""A size below 2 GiB, which is what protobuf allows a message, takes five bytes at most."""


def words_of(data: U8) -> U64:
    """Return the little-endian 64-bit word that begins at each byte: `uint64[len(data) - 7]`, nothing copied."""
    return np.ndarray((len(data) - WORD + 1,), "<u8", data, strides=(1,))


def join_groups(words: U64, longest: int = WORD) -> U64:
    """Join the low seven bits of each byte; `longest` is the number of bytes that the longest number takes."""
    words = words & _GROUPS
    for (low, high, by), bytes_ in zip(_STEPS, (1, 2, 4), strict=True):
        if longest > bytes_:
            words = (words & low) | ((words & high) >> by)
    return words


@dataclass(frozen=True, slots=True, eq=False)
class Span:
    """Where a feature's payload is in each record: packed numbers, one bytes value, or (`repeated`) its list of values.

    Where the feature is not `present`, start and size are 0.
    """

    start: I64
    size: I64
    present: Mask


@dataclass(frozen=True, slots=True, eq=False)
class Walk:
    """What a walk found: a span for each feature, in the order that was asked for, and which records are `odd`.

    An odd record is not canonical, or not of these features; its spans say nothing.
    """

    spans: tuple[Span, ...]
    odd: Mask


class FeatureWalker:
    """Moves the cursors over one feature."""

    def __init__(self, feature: Feature) -> None:
        key = feature.name.encode()
        self._tag = _TAGS[feature.kind]
        self._repeated = feature.kind == "bytes" and feature.shape != ()
        keyed = b"\x0a" + varint(len(key)) + key + b"\x12"
        self._keyed = _Template(keyed)
        # p of the docstring, or where the list itself is the payload, l.
        inner = b"" if self._repeated else b"\x0a\x00"
        rest = bytes((self._tag, len(inner))) + inner
        after_key = 1 + len(rest)  # the byte f, and the rest
        constant = bytes((0x0A, (len(keyed) + after_key) & 0x7F)) + keyed + bytes((len(rest),)) + rest
        sizes = [1, 2 + len(keyed), 4 + len(keyed)] + ([] if self._repeated else [len(constant) - 1])
        ones = bytes(int(i in sizes) for i in range(len(constant)))
        self.prefix_bytes = len(constant)
        self.largest = 127 - (len(keyed) + after_key)
        # The last word ends with the prefix, so that its top byte is the size; a prefix has ten bytes or more.
        offsets = [*range(0, len(constant) - WORD, WORD), len(constant) - WORD]
        self.words = tuple((at, _word(constant, at), _word(ones, at)) for at in offsets)

    @property
    def reach(self) -> int:
        """How many bytes after a record's end the walker may look."""
        return self.prefix_bytes + 4 * _LONGEST_SIZE + 2 * WORD

    def move(self, words: U64, cursors: I64, ends: I64) -> Span:
        """Return the span of the feature, and move the cursors of the records that have it."""
        if self.largest < 1:
            odd_one_out = np.ones(len(cursors), np.bool_)
            size = np.zeros(len(cursors), np.int64)
        else:
            last, constant, ones = self.words[-1]
            word = words[cursors + last]
            sizes = word >> np.uint64(56)
            # A size that is too large makes a sum that carries, and must not match by chance.
            differs = word ^ (constant + sizes * ones)
            for at, constant, ones in self.words[:-1]:
                differs |= words[cursors + at] ^ (constant + sizes * ones)
            size = sizes.view(np.int64)
            odd_one_out = (differs != 0) | (size > self.largest)
        start = cursors + self.prefix_bytes
        stop = start + size
        odd_one_out |= stop > ends
        if not odd_one_out.any():
            cursors[:] = stop
            return Span(start, size, np.ones(len(cursors), np.bool_))
        others = np.flatnonzero(odd_one_out)
        present = ~odd_one_out
        start[others], size[others], present[others], stop[others] = self._read(words, cursors[others], ends[others])
        cursors[:] = stop
        return Span(start, size, present)

    def _read(self, words: U64, cursors: I64, ends: I64) -> tuple[I64, I64, Mask, I64]:
        """Read entries of any size; return start, size, present, and where the cursors are after it."""
        start, size, stop = np.zeros_like(cursors), np.zeros_like(cursors), cursors.copy()
        present = np.zeros(len(cursors), np.bool_)
        # Most of these are absent: rows without the key are done.
        entry, at = read_size(words, cursors, 0x0A)
        mine = np.flatnonzero((entry >= 0) & (at + entry <= ends))
        mine = mine[self._keyed.matches(words, at[mine])]
        if not len(mine):
            return start, size, present, stop
        entry_end = at[mine] + entry[mine]
        feature, at_feature = read_size(words, at[mine] + self._keyed.bytes - 1, 0x12)
        kindless = feature == 0
        content, at_list = read_size(words, at_feature, self._tag)
        good = (feature >= 0) & (at_feature + feature == entry_end)
        filled = good & ~kindless & (content >= 0) & (at_list + content == entry_end)
        begin, length = at_list, np.maximum(content, 0)
        if not self._repeated:
            inner, at_inner = read_size(words, at_list, 0x0A)
            empty = content == 0
            filled &= empty | ((inner >= 0) & (at_inner + inner == entry_end))
            begin, length = np.where(empty, at_list, at_inner), np.where(empty, 0, inner)
            if self._tag == _TAGS["bytes"]:
                filled &= ~empty  # a list of no value; one empty value has an inner size of 0
        start[mine], size[mine] = np.where(filled, begin, 0), np.where(filled, length, 0)
        present[mine] = filled
        stop[mine] = np.where(filled | (good & kindless), entry_end, cursors[mine])
        return start, size, present, stop


class FeatureWalkers:
    """The walkers of features whose keys are in `map_key_order`, and the words of all their templates as one table."""

    def __init__(self, features: Sequence[Feature]) -> None:
        self.each = tuple(map(FeatureWalker, features))
        table = [(number, *word) for number, walker in enumerate(self.each) for word in walker.words]
        self._owners = np.array([row[0] for row in table], np.int64)
        self._places = np.array([[row[1]] for row in table], np.int64)
        self._constants, self._ones = (np.array([[row[i]] for row in table], np.uint64) for i in (2, 3))
        self._prefixes = [walker.prefix_bytes for walker in self.each]
        self._largest = np.array([[walker.largest] for walker in self.each], np.int64)

    @property
    def reach(self) -> int:
        return max((walker.reach for walker in self.each), default=0)

    def spans_of_full(self, data: U8, cursors: I64, ends: I64) -> tuple[Span, ...] | None:
        """Return the spans of records that have every feature, each of them small; None where a record is not so.

        With few records it is the calls that cost. So the cursors go on by the bytes where sizes would be, and whether
        the entries are what they were taken for is compared at the end, for all features at once.
        """
        if not self.each:
            return None
        begins, sizes = np.empty((2, len(self.each), len(cursors)), np.int64)
        at, limit = cursors, len(data) - 1
        for number, prefix in enumerate(self._prefixes):
            begins[number] = at
            sizes[number] = data[np.minimum(at + (prefix - 1), limit)]
            at = at + prefix + sizes[number]
        if (at != ends).any() or (sizes > self._largest).any():
            return None
        expected = self._constants + sizes.view(np.uint64)[self._owners] * self._ones
        if (words_of(data)[begins[self._owners] + self._places] != expected).any():
            return None
        present = np.ones(len(cursors), np.bool_)
        rows = zip(begins, self._prefixes, sizes, strict=True)
        return tuple(Span(begin + prefix, size, present) for begin, prefix, size in rows)


class _Template:
    """Constant bytes, compared a word at a time."""

    def __init__(self, constant: bytes) -> None:
        self.bytes = len(constant)
        padded = constant + bytes(-len(constant) % WORD)
        kept = b"\xff" * len(constant) + bytes(-len(constant) % WORD)
        self._words = tuple((at, _word(padded, at), _word(kept, at)) for at in range(0, len(padded), WORD))

    def matches(self, words: U64, at: I64) -> Mask:
        differs = np.zeros(len(at), np.uint64)
        for offset, constant, kept in self._words:
            differs |= (words[at + offset] ^ constant) & kept
        same: Mask = differs == 0
        return same


def _word(data: bytes, at: int) -> np.uint64:
    return np.uint64(int.from_bytes(data[at : at + WORD], "little"))


def read_size(words: U64, at: I64, tag: int) -> tuple[I64, I64]:
    """Read a tag and a size; return the size (-1: another tag, or no size) and where what it measures begins."""
    word = words[at]
    rest = word >> np.uint64(8)
    # The lowest byte without its high bit ends the number: keep the bytes up to it.
    ends = ~rest & CONTINUES & np.uint64((1 << 8 * _LONGEST_SIZE) - 1)
    lowest = ends & (np.uint64(0) - ends)
    kept = (lowest << np.uint64(1)) - np.uint64(1)
    size = join_groups(rest & kept, _LONGEST_SIZE).view(np.int64)
    width = np.bitwise_count(kept).astype(np.int64) >> 3
    good = ((word & np.uint64(0xFF)) == np.uint64(tag)) & (lowest != 0) & (size < 1 << 31)
    return np.where(good, size, -1), np.where(good, at + 1 + width, at)


def walk_examples(data: U8, starts: I64, ends: I64, walkers: FeatureWalkers) -> Walk:
    """Walk the records `data[start:end]` over features whose keys are in `map_key_order`.

    `data` must hold as many bytes after the last record as the walkers reach (`FeatureWalker.reach`).
    """
    words = words_of(data)
    size, cursors = read_size(words, starts, 0x0A)
    empty = starts == ends
    odd = ~empty & ((size < 0) | (cursors + size != ends))
    if len(starts) <= FEW_RECORDS and not odd.any():
        spans = walkers.spans_of_full(data, cursors, ends)
        if spans is not None:
            return Walk(spans, odd)
    cursors = np.where(empty | odd, ends, cursors)
    spans = tuple(walker.move(words, cursors, ends) for walker in walkers.each)
    return Walk(spans, odd | (cursors != ends))
