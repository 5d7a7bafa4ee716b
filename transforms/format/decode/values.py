"""Values of one feature, from where they are in the records to an Arrow array of the type that they came from."""

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

from ..buffers.payloads import gather_pieces
from ..buffers.varints import MAX_VARINT_BYTES
from ..schema.arrow_types import arrow_type_of
from ..schema.column_types import Form, form_of
from ..schema.schema import Feature
from .walk import CONTINUES, FEW_RECORDS, I64, U8, U64, WORD, Mask, Span, join_groups, read_size, words_of

_FIRST_BYTES: Final = np.array([(1 << 8 * min(n, WORD)) - 1 for n in range(MAX_VARINT_BYTES + 1)], np.uint64)
"""By the size of a varint: the bits of its bytes in the word where it begins."""

_HIGH_BITS: Final = np.array(
    [0] + [0x8080808080808080 & ((1 << 8 * min(n - 1, WORD)) - 1) for n in range(1, MAX_VARINT_BYTES + 1)], np.uint64
)
"""By the size of a varint: the high bits of that word, set on every byte but the last one."""

_FEW_ROWS: Final = 16
"""Lists of bytes are split one value of every row at a time; below so many rows a loop in Python is faster."""

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
    offsets = np.zeros(len(values) + 1, np.int64)
    np.cumsum(values.sizes, out=offsets[1:])
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
