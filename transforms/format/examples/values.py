"""Decode the values of a feature, from where they are in the records to an Arrow array of their first type."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import repeat
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import types

from ..batches.arrow_memory import MAX_VARINT_BYTES, ends_of, varint
from ..schema.arrow_types import arrow_type_of
from ..schema.column_types import Form, form_of
from ..schema.schema import Feature
from ..tfrecord.framing import gather_pieces

# Walk many serialized Examples in lock-step: one cursor a record, one feature after the other.
#
# Records are canonical when their keys are sorted (`SerializeToString(deterministic=True)`, and our encoder). So all
# records are walked at once, feature by feature in the order of their keys: a cursor that is at the feature's key
# takes its value and moves after it; a cursor that is at another key stays, and the feature is absent there.
#
#     record 0   ▷ [a][b][c]      a: all move    b: 0 and 2 move    c: all move
#     record 1   ▷ [a]   [c]                        1 stays: b is absent in record 1
#     record 2   ▷ [a][b][c]      a cursor that is not at the end of its record after the last feature: not canonical
#
# A small value's entry (up to 127 bytes, which is nearly every one) is compared with its template, whole words at
# once:
#
#     0A e  0A k <key>  12 f  tag l  [0A p]  payload       p: bytes of payload; l = p + 2; f = p + 4; e = p + k + 8
#
# Every byte before the payload is constant but the four sizes, and those are p and a constant. A word of the template
# is therefore `constant + p * ones`, where `ones` has a 1 in the bytes of sizes: no size reaches 128, so no byte
# carries. Only entries that differ (larger, empty, absent or foreign) are read byte by byte, again all of them at
# once.


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


_FIRST_BYTES: Final = np.array([(1 << 8 * min(n, WORD)) - 1 for n in range(MAX_VARINT_BYTES + 1)], np.uint64)
"""By the size of a varint: the bits of its bytes in the word where it begins."""

_HIGH_BITS: Final = np.array(
    [0] + [0x8080808080808080 & ((1 << 8 * min(n - 1, WORD)) - 1) for n in range(1, MAX_VARINT_BYTES + 1)], np.uint64
)
"""By the size of a varint: the high bits of that word, set on every byte but the last one."""

_FEW_ROWS: Final = 16
"""Lists of bytes are split one value of every row at a time; for fewer rows a loop in Python is faster."""

_PLAIN: Final = {"int64": pa.int64(), "float": pa.float32(), "bytes": pa.binary()}
"""The values of each kind, as what a form makes its own of."""


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """The values of a feature, one for each record; in `bad` records the payload does not fit the feature."""

    array: pa.Array
    bad: Mask


@dataclass(frozen=True, slots=True, eq=False)
class _Pieces:
    data: U8
    starts: I64
    sizes: I64

    def __len__(self) -> int:
        return len(self.starts)


_Values = I64 | npt.NDArray[np.float32] | _Pieces


@lru_cache(maxsize=4096)
def _type_and_form(feature: Feature) -> tuple[pa.DataType, Form]:
    return arrow_type_of(feature), form_of(feature)


def decode_columns(features: Sequence[Feature], data: U8, spans: Sequence[Span]) -> list[Column]:
    """Return the values of features: of few records, numbers of one kind are read at once, whatever feature has them.

    `data` must hold two words more after the last payload.
    """
    read: list[tuple[_Values, Mask] | None] = [None] * len(features)
    rows = len(spans[0].start) if spans else 0
    for kind in ("float", "int64") if rows <= FEW_RECORDS else ():
        places = [i for i, feature in enumerate(features) if feature.shape == () and feature.kind == kind]
        if len(places) > 1:
            starts, sizes = (np.concatenate([getattr(spans[i], name) for i in places]) for name in ("start", "size"))
            values, bad = _read_numbers(kind, data, starts, sizes)
            for number, place in enumerate(places):
                here = slice(number * rows, (number + 1) * rows)
                read[place] = values[here], bad[here]
    return [decode_column(*one) for one in zip(features, repeat(data), spans, read)]


def decode_column(feature: Feature, data: U8, span: Span, read: tuple[_Values, Mask] | None = None) -> Column:
    """Return the values of a feature whose payloads are where `span` says, as `arrow_type_of(feature)`.

    `data` must hold two words more after the last payload. `read` are the numbers, where they have been read.
    """
    type_, form = _type_and_form(feature)
    if feature.shape == ():
        values, bad = read or _read_scalars(feature, data, span)
        array, unfit = _to_arrow(values, type_, form, span.present)
        return Column(array, (bad | unfit) & span.present)
    values, counts, bad = _read_lists(feature, data, span)
    child, unfit = _to_arrow(values, type_.value_type, form, None)
    if unfit.any():
        bad[np.repeat(np.arange(len(counts)), counts)[unfit]] = True
    if feature.shape != (-1,):
        bad |= counts != math.prod(feature.shape)
    if types.is_fixed_size_list(type_):
        array = _fixed_lists(type_, child, counts, span.present & ~bad)
    else:
        offsets = np.zeros(len(counts) + 1, np.int32)
        np.cumsum(counts, out=offsets[1:])
        buffers = [_validity(span.present), pa.py_buffer(offsets)]
        array = pa.Array.from_buffers(type_, len(counts), buffers, children=[child])
    return Column(array, bad & span.present)


def read_varints(words: U64, starts: I64, sizes: I64) -> tuple[I64, Mask]:
    """Return the varints of these sizes, and which of them are none; one of no bytes is 0, and one.

    `words` is the word at each byte of the data that hold them.
    """
    longest = int(sizes.max(initial=0))
    bad = np.zeros(len(sizes), np.bool_)
    if longest > MAX_VARINT_BYTES:
        bad = sizes > MAX_VARINT_BYTES
        sizes = np.where(bad, 0, sizes)
        longest = MAX_VARINT_BYTES
    found = words[starts] & _FIRST_BYTES[sizes]
    bad |= (found & CONTINUES) != _HIGH_BITS[sizes]
    values = join_groups(found, longest)
    if longest > WORD:
        long = np.flatnonzero(sizes > WORD)
        rest, ten = words[starts[long] + WORD], sizes[long] == MAX_VARINT_BYTES
        sign = np.where(ten, rest >> np.uint64(8) & np.uint64(0xFF), np.uint64(0))
        bad[long] |= ((rest & np.uint64(0x80) != 0) != ten) | (sign > 1)
        values[long] |= (rest & np.uint64(0x7F)) << np.uint64(56) | sign << np.uint64(63)
    return values.view(np.int64), bad


def _read_scalars(feature: Feature, data: U8, span: Span) -> tuple[_Values, Mask]:
    if feature.kind == "bytes":
        return _Pieces(data, span.start, span.size), np.zeros(len(span.start), np.bool_)
    return _read_numbers(feature.kind, data, span.start, span.size)


def _read_numbers(kind: str, data: U8, starts: I64, sizes: I64) -> tuple[I64 | npt.NDArray[np.float32], Mask]:
    words = words_of(data)
    if kind == "float":
        return words[starts].astype(np.uint32).view(np.float32), sizes != 4
    values, bad = read_varints(words, starts, sizes)
    return values, bad | (sizes == 0)


def _read_lists(feature: Feature, data: U8, span: Span) -> tuple[_Values, I64, Mask]:
    """Return all values one after the other, how many each record has, and the records that are bad."""
    if feature.kind == "bytes":
        return _split_bytes_lists(data, span)
    if feature.kind == "float":
        bad = span.size % 4 != 0
        sizes = np.where(bad, 0, span.size)
        return gather_pieces(data, span.start, sizes).view("<f4"), sizes // 4, bad
    return _split_varints(data, span.start, span.size)


def _split_varints(data: U8, starts: I64, sizes: I64) -> tuple[I64, I64, Mask]:
    r"""Split runs of varints: a byte without its high bit ends one.

    bytes     05  ac 02  07 | ff 01        runs end at 4 and 6
    ends       0      2   3       5        so 3 of the varints are of the first run, 1 of the second
    """
    joined = gather_pieces(data, starts, sizes)
    last = np.flatnonzero(joined < 0x80)
    run_ends = np.cumsum(sizes)
    counts = np.diff(np.searchsorted(last, run_ends, "left"), prepend=0)
    bad = np.zeros(len(sizes), np.bool_)
    filled = np.flatnonzero(sizes)
    bad[filled] = joined[run_ends[filled] - 1] >= 0x80
    if bad.any():
        # The first varint of the next run would begin in this one: look again without it.
        values, counts, _ = _split_varints(data, starts, np.where(bad, 0, sizes))
        return values, counts, bad
    if len(last) == len(joined):
        return joined.astype(np.int64), counts, bad
    first = np.concatenate((np.zeros(1, np.int64), last[:-1] + 1))
    padded = np.concatenate((joined, np.zeros(2 * WORD, np.uint8)))
    values, wrong = read_varints(words_of(padded), first, last - first + 1)
    if wrong.any():
        bad[np.searchsorted(run_ends, first[wrong], "right")] = True
    return values, counts, bad


def _split_bytes_lists(data: U8, span: Span) -> tuple[_Pieces, I64, Mask]:
    """Split lists of bytes values, each `0A size value`: the first value of every list, then the second, ..."""
    words = words_of(data)
    bad = np.zeros(len(span.start), np.bool_)
    rows = np.flatnonzero(span.size)
    at, ends = span.start[rows], (span.start + span.size)[rows]
    found: list[tuple[I64, I64, I64]] = []
    while len(rows) > _FEW_ROWS:
        size, begin = read_size(words, at, 0x0A)
        good = (size >= 0) & (begin + size <= ends)
        bad[rows[~good]] = True
        found.append((rows[good], begin[good], size[good]))
        at = begin + size
        more = np.flatnonzero(good & (at < ends))
        rows, at, ends = rows[more], at[more], ends[more]
    for row, start, end in zip(rows.tolist(), at.tolist(), ends.tolist(), strict=True):
        begins, sizes, whole = _split_one_list(data.data[start:end])
        bad[row] = not whole
        found.append((np.full(len(begins), row), np.array(begins, np.int64) + start, np.array(sizes, np.int64)))
    if not found:
        return _Pieces(data, span.start[:0], span.size[:0]), np.zeros(len(bad), np.int64), bad
    owners, starts, sizes_ = (np.concatenate(parts) for parts in zip(*found, strict=True))
    order = np.argsort(owners, kind="stable")
    return _Pieces(data, starts[order], sizes_[order]), np.bincount(owners, minlength=len(bad)), bad


def _split_one_list(data: memoryview) -> tuple[list[int], list[int], bool]:
    """Return where the values of one list begin in its bytes, their sizes, and whether it is whole."""
    begins: list[int] = []
    sizes: list[int] = []
    at, end = 0, len(data)
    while at < end:
        if data[at] != 0x0A:
            return begins, sizes, False
        at, size, shift = at + 1, 0, 0
        while at < end and shift < 35:
            byte = data[at]
            size |= (byte & 0x7F) << shift
            at, shift = at + 1, shift + 7
            if byte < 0x80:
                break
        else:
            return begins, sizes, False
        if at + size > end:
            return begins, sizes, False
        begins.append(at)
        sizes.append(size)
        at += size
    return begins, sizes, True


def _to_arrow(values: _Values, type_: pa.DataType, form: Form, present: Mask | None) -> tuple[pa.Array, Mask]:
    """Return values as Arrow values of a type, null where not present, and which ones do not fit the type."""
    if form.read is not None:
        plain, _ = _to_arrow(values, _PLAIN[form.kind], replace(form, read=None), present)
        return form.read(plain, type_)
    if isinstance(values, _Pieces):
        return _bytes_to_arrow(values, type_, present)
    stored, unfit = _store_floats(values, type_) if types.is_floating(type_) else _store_integers(values, type_)
    return pa.Array.from_buffers(type_, len(values), [_validity(present), pa.py_buffer(stored)]), unfit


def _store_floats(values: npt.NDArray[Any], type_: pa.DataType) -> tuple[npt.NDArray[Any], Mask]:
    if not types.is_float16(type_):
        return values, np.zeros(len(values), np.bool_)
    with np.errstate(over="ignore"):
        stored = values.astype(np.float16)
    return stored, (stored != values) & ~np.isnan(values)


def _store_integers(values: npt.NDArray[Any], type_: pa.DataType) -> tuple[npt.NDArray[Any], Mask]:
    if types.is_boolean(type_):
        return np.packbits(values != 0, bitorder="little"), (values & ~1) != 0
    if type_.bit_width < 64:
        stored = values.astype(f"{'u' if types.is_unsigned_integer(type_) else 'i'}{type_.bit_width // 8}")
        return stored, stored != values
    return values, values < 0 if types.is_uint64(type_) else np.zeros(len(values), np.bool_)


def _bytes_to_arrow(values: _Pieces, type_: pa.DataType, present: Mask | None) -> tuple[pa.Array, Mask]:
    unfit = np.zeros(len(values), np.bool_)
    if types.is_float64(type_):  # kept exact: eight bytes a value
        stored = words_of(values.data)[values.starts]
        unfit = values.sizes != WORD
        return pa.Array.from_buffers(type_, len(values), [_validity(present), pa.py_buffer(stored)]), unfit
    offsets = ends_of(values.sizes)
    if offsets[-1] > np.iinfo(np.int32).max:
        raise ValueError("more than 2 GiB of bytes values in one column of a batch; decode fewer records at once")
    joined = gather_pieces(values.data, values.starts, values.sizes)
    buffers = [_validity(present), pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(joined)]
    is_ascii = types.is_string(type_) and (not len(joined) or int(joined.max()) < 0x80)
    array = pa.Array.from_buffers(pa.string() if is_ascii else pa.binary(), len(values), buffers)
    if is_ascii or not types.is_string(type_):
        return array, unfit
    try:
        return array.cast(pa.string()), unfit
    except pa.ArrowInvalid:
        unfit = np.fromiter(map(_is_not_utf8, array.to_pylist()), np.bool_, len(values))
        sizes = np.where(unfit, 0, values.sizes)
        blanked, _ = _bytes_to_arrow(_Pieces(values.data, values.starts, sizes), type_, present)
        return blanked, unfit


def _is_not_utf8(value: bytes | None) -> bool:
    try:
        (value or b"").decode()
    except UnicodeDecodeError:
        return True
    return False


def _fixed_lists(type_: pa.DataType, child: pa.Array, counts: I64, good: Mask) -> pa.Array:
    """Return lists of a fixed size; Arrow wants the values of null ones to be there too."""
    if not good.all():
        slots = np.zeros((len(counts), type_.list_size), np.int64)
        slots[good] = (np.cumsum(counts) - counts)[good, None] + np.arange(type_.list_size)
        missing = np.repeat(~good, type_.list_size)
        child = child.take(pa.array(slots.reshape(-1), mask=missing))
    return pa.Array.from_buffers(type_, len(counts), [_validity(good)], children=[child])


def _validity(present: Mask | None) -> pa.Buffer | None:
    if present is None or present.all():
        return None
    return pa.py_buffer(np.packbits(present, bitorder="little"))
