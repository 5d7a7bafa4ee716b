"""Serialize columns as `tf.train.Example`s, byte for byte what protobuf's deterministic mode writes.

A record is `0A varint(size)` and then, for every feature that the row has, in `map_key_order`, its entry prefix and
its payload. Each of these is a piece, described by a view (`arrow_memory`), and one concatenation writes all:

              record head   a: prefix  payload     b: prefix   payload
    row 0    [ 0A 1F     ] [ ──▶      ][ 07     ] [ ──▶      ][ ──▶     ]      short payloads are in their view,
    row 1    [ 0A 0C     ] [ ──▶      ][ 80 01  ] [          ][         ]      long ones in the column's own memory;
                                                                               row 1 has no b: views of length zero

Three things make it faster than one copy a piece. Features that always have the same size (float scalars) and follow
each other are one piece: a row template, broadcast, with the values written into it. Integers of a small range are one
piece with their prefix, looked up by value. And large payloads (images) are no piece at all: the record is written
around them, and they are spliced in by reference (`framed_records.SegmentedRecords`).

A row without features is `0A 00`: an Example whose map is there, and empty.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..batches.arrow_memory import (
    I64,
    INLINE_BYTES,
    Views,
    at_index,
    concatenate,
    gather,
    inline_views,
    lengths_of,
    reference_views,
    varint,
    varint_views,
    words_of,
)
from ..batches.rows import FeatureColumn, Frames
from ..schema.schema import Kind
from .framed_records import OPENING_TEXTS, OPENINGS, SHORT_HEADS, SegmentedRecords, frame_in_place, tagged_lengths

# The order in which protobuf's deterministic mode writes the keys of a map.


def map_key_order(name: str) -> tuple[int, ...]:
    """Return what the features of a record are sorted by.

    Keys are in the order of their UTF-8 bytes, but one that another begins with comes after it: upb, which is what
    protobuf's Python package runs on, negates the comparison of the bytes and not that of the lengths
    (`_upb_mapsorter_cmpstr` in upb/message/map_sorter.c). Records are byte-equal to what it writes.

    >>> sorted(["z", "f1", "f10", "f2", ""], key=map_key_order)
    ['f10', 'f1', 'f2', 'z', '']
    """
    return (*name.encode(), 256)  # the end of a key is above every byte


# The bytes before the payload of a feature: everything about it that its size alone decides.
#
#     0A varint(entry)                       Features.feature, an entry of the map
#        0A varint(key) key                    its key
#        12 varint(feature)                    its value
#           TT varint(list)                      Feature.{bytes,float,int64}_list
#              0A varint(size)                     the packed numbers, or the one bytes value; not of a `bare` payload
#                 payload
#
# For one key and kind the prefix is a function of the payload's size: it is built once for each size that occurs, and
# looked up for every row. An integer's whole entry is a function of its value: if all values are near each other, as
# what is counted or enumerated does, entries are built once for the range and looked up by value.


LIST_TAGS: Final[dict[Kind, bytes]] = {"bytes": b"\x0a", "float": b"\x12", "int64": b"\x1a"}

_ENTRIES_LIMIT: Final = 1 << 14
"""Values of a range with entries of their own: with their views some 600 KiB a key, so that they stay in cache."""

_TABLE_LIMIT: Final = 1 << 14
"""Sizes below it are looked up in a table by size (256 KiB a key, in the end); larger payloads are worth a search."""


def entry_prefix(key: bytes, kind: Kind, size: int, *, bare: bool = False) -> bytes:
    r"""Return the bytes before a payload of `size` bytes.

    >>> entry_prefix(b"a", "int64", 1)
    b'\n\n\n\x01a\x12\x05\x1a\x03\n\x01'
    """
    inner = b"" if bare else b"\x0a" + varint(size)
    list_ = LIST_TAGS[kind] + varint(len(inner) + size) + inner
    feature = b"\x0a" + varint(len(key)) + key + b"\x12" + varint(len(list_) + size) + list_
    return b"\x0a" + varint(len(feature) + size) + feature


class EntryPrefixes:
    """The prefixes of one feature, by payload size, as they occur.

    A `bare` payload brings its own tags: a list of bytes values. Numbers of no size at all are bare too, since
    protobuf writes no packed field for an empty list. Not to be shared between threads.
    """

    def __init__(self, key: bytes, kind: Kind, *, bare: bool) -> None:
        self._key = key
        self._kind: Kind = kind
        self._bare = bare
        self._texts: dict[int, bytes] = {}
        self._table: Views = np.zeros(0, np.complex128)
        self._known: npt.NDArray[np.bool_] = np.zeros(0, np.bool_)
        self._buffer = pa.py_buffer(b"")
        self._entries: Views = np.zeros(0, np.complex128)
        self._entries_buffer = self._buffer
        self._lowest = 0

    def of(self, size: int) -> bytes:
        if size not in self._texts:
            bare = self._bare or (size == 0 and self._kind != "bytes")
            self._texts[size] = entry_prefix(self._key, self._kind, size, bare=bare)
        return self._texts[size]

    def views(self, sizes: I64, index: int) -> tuple[Views, pa.Buffer]:
        """Return the prefix of each size as a view into the returned buffer, which is number `index`."""
        if int(sizes.max()) >= _TABLE_LIMIT:
            distinct, rows = np.unique(sizes, return_inverse=True)
            table, buffer = table_of([self._fresh(size) for size in distinct.tolist()])
        else:
            self._learn(sizes)
            table, buffer, rows = self._table, self._buffer, sizes
        return at_index(table, index).take(rows), buffer

    def knows(self, values: I64) -> bool:
        """Return whether all values have `entries`; more are learned if that pays for so many."""
        low, high = int(values.min()), int(values.max())
        if self._lowest <= low and high < self._lowest + len(self._entries):
            return True
        if len(self._entries):  # one step further in either direction, so that a range that grows is rarely learned
            low, high = min(low, self._lowest), max(high, self._lowest + len(self._entries) - 1)
        if high - low >= _ENTRIES_LIMIT or high - low >= 4 * len(values):
            return False
        spare = (high - low) // 4
        self._learn_entries(max(low - spare, -(1 << 63)), min(high + spare, (1 << 63) - 1))
        return True

    def entries(self, values: I64, index: int) -> tuple[Views, pa.Buffer]:
        return at_index(self._entries, index).take(values - self._lowest), self._entries_buffer

    def _learn_entries(self, low: int, high: int) -> None:
        payloads = varint_views(np.arange(high - low + 1, dtype=np.int64) + low)
        prefixes, buffer = self.views(lengths_of(payloads), 0)
        self._entries_buffer, ends = gather([prefixes, payloads], len(payloads), [buffer])
        stops = ends[:, 1]
        starts = np.concatenate([[0], stops[:-1]])
        self._entries = reference_views(starts, stops - starts, self._entries_buffer, 0)
        self._lowest = low

    def _fresh(self, size: int) -> bytes:
        # Large sizes rarely come twice: remembering them would only fill memory.
        return self.of(size) if size < _TABLE_LIMIT else entry_prefix(self._key, self._kind, size, bare=self._bare)

    def _learn(self, sizes: I64) -> None:
        top = int(sizes.max())
        if top < len(self._known) and bool(self._known.take(sizes).all()):
            return
        known = np.zeros(max(top + 1, len(self._known)), np.bool_)
        known[: len(self._known)] = self._known
        known[sizes] = True
        found = np.flatnonzero(known)
        views, self._buffer = table_of([self.of(size) for size in found.tolist()])
        self._table = np.zeros(len(known), np.complex128)
        self._table[found] = views
        self._known = known


def table_of(texts: list[bytes]) -> tuple[Views, pa.Buffer]:
    buffer = pa.py_buffer(b"".join(texts))
    lengths = np.array([len(text) for text in texts], np.int64)
    return reference_views(np.cumsum(lengths) - lengths, lengths, buffer, 0), buffer


SPLICE_BYTES: Final = 16 << 10
"""Payloads of this many bytes on average are spliced: from here on a copy costs more than a buffer of its own."""

_VARINT_SIZES: Final = 11
"""A varint of an int64 has at most ten bytes."""

_FEW_ROWS: Final = 1 << 10
_NUMBERS_AT_ONCE: Final = 1 << 16
"""Integers of at most this number of rows are encoded with those of the next features, up to this number."""


class ExampleEncoder:
    """Encodes batches of columns; remembers the entry prefixes. One thread at a time."""

    def __init__(self) -> None:
        self._prefixes: dict[tuple[str, Kind, bool], EntryPrefixes] = {}

    def lay_out(
        self, columns: Sequence[FeatureColumn], rows: int, *, splice_bytes: int | None = SPLICE_BYTES
    ) -> ExampleLayout:
        """Describe the pieces of every row, without writing any yet; `splice_bytes` None splices nothing."""
        layout = ExampleLayout(rows, splice_bytes)
        for column in sorted(columns, key=lambda column: map_key_order(column.name)):
            bare = column.kind == "bytes" and column.offsets is not None
            key = (column.name, column.kind, bare)
            if key not in self._prefixes:
                self._prefixes[key] = EntryPrefixes(column.name.encode(), column.kind, bare=bare)
            layout.add(column, self._prefixes[key])
        layout.flush()
        return layout


class ExampleLayout:
    """The pieces of a batch of records: `lengths` are the records' sizes so far, without their heads."""

    def __init__(self, rows: int, splice_bytes: int | None) -> None:
        self._rows = rows
        self._splice_bytes = splice_bytes
        self._pieces: list[Views] = []
        self._buffers: list[pa.Buffer] = []
        self._fixed: list[tuple[bytes, npt.NDArray[np.uint32]]] = []
        self._spliced_pieces: list[int] = []
        self._splices: list[list[pa.Buffer | None]] = []
        self._splice_lengths: list[I64] = []
        self._sizes = np.zeros(rows, np.int64)
        self._sparse: list[tuple[I64, Views]] = []
        self._sparse_numbers: list[tuple[I64, I64, EntryPrefixes]] = []
        self._numbers: list[tuple[FeatureColumn, EntryPrefixes]] = []

    @property
    def lengths(self) -> I64:
        return self._sizes + lengths_of(self._heads())

    def add(self, column: FeatureColumn, prefixes: EntryPrefixes) -> None:
        if not self._rows or (column.present is not None and not column.present.any()):
            return
        if column.rows is not None:
            self._add_sparse(column, column.rows, prefixes)
            return
        if column.kind == "float" and column.offsets is None and column.present is None:
            self._flush_numbers()
            self._flush_sparse()
            self._fixed.append((prefixes.of(4), column.values.view(np.uint32)))
            return
        if column.kind == "int64" and column.offsets is None and self._rows <= _FEW_ROWS:
            if not self._numbers:
                self.flush()
            self._numbers.append((column, prefixes))
            if len(self._numbers) * self._rows > _NUMBERS_AT_ONCE:
                self._flush_numbers()
            return
        self.flush()
        if column.kind == "int64" and column.offsets is None and prefixes.knows(column.values):
            entries, buffer = prefixes.entries(column.values, len(self._buffers))
            self._buffers.append(buffer)
            self._append(entries if column.present is None else np.where(column.present, entries, 0))
            return
        payload = self._payload(column)
        if column.present is not None:
            payload = np.where(column.present, payload, 0)
        sizes = lengths_of(payload)
        prefix, buffer = prefixes.views(sizes, len(self._buffers))
        self._buffers.append(buffer)
        if column.present is not None:
            prefix[~column.present] = 0
        self._append(prefix)
        self._append_payload(payload, sizes)

    def _add_sparse(self, column: FeatureColumn, rows: I64, prefixes: EntryPrefixes) -> None:
        if not self._sparse and not self._sparse_numbers:
            self.flush()
        if column.kind == "int64" and column.offsets is None:
            self._sparse_numbers.append((rows, column.values, prefixes))
            return
        self._end_sparse_numbers()
        payload = self._payload(column)
        prefix, buffer = prefixes.views(lengths_of(payload), len(self._buffers))
        self._buffers.append(buffer)
        self._sparse += [(rows, prefix), (rows, payload)]

    def _end_sparse_numbers(self) -> None:
        """Encode the sparse integers that wait at once: with thousands of features, calls for each take longest."""
        if not self._sparse_numbers:
            return
        entries = np.stack(self._numbers_of([(values, of) for _, values, of in self._sparse_numbers]), axis=1)
        self._sparse.append(
            (np.repeat(np.concatenate([rows for rows, _, _ in self._sparse_numbers]), 2), entries.reshape(-1))
        )
        self._sparse_numbers = []

    def _numbers_of(self, columns: Sequence[tuple[I64, EntryPrefixes]]) -> tuple[Views, Views]:
        """Return the prefixes and the payloads of the integers of some columns, one column after the other."""
        payload = varint_views(np.concatenate([values for values, _ in columns]))
        keys = np.repeat(np.arange(len(columns)) * _VARINT_SIZES, [len(values) for values, _ in columns])
        keys += lengths_of(payload)
        there = np.zeros(len(columns) * _VARINT_SIZES, np.bool_)
        there[keys] = True
        texts = [columns[key // _VARINT_SIZES][1].of(key % _VARINT_SIZES) for key in np.flatnonzero(there).tolist()]
        table, buffer = table_of(texts)
        prefix = at_index(table, len(self._buffers)).take((np.cumsum(there) - 1).take(keys))
        self._buffers.append(buffer)
        return prefix, payload

    def _flush_numbers(self) -> None:
        """Encode the integers that wait at once: with few rows, calls for each of their features take longest."""
        if not self._numbers:
            return
        found = self._numbers_of([(column.values, of) for column, of in self._numbers])
        shape = len(self._numbers), self._rows
        for (column, _), *both in zip(self._numbers, *(views.reshape(shape) for views in found), strict=True):
            if column.present is not None:
                for views in both:
                    views[~column.present] = 0
            self._pieces += both
        for views in found:
            self._sizes += words_of(views)[:, 0].reshape(shape).sum(axis=0)
        self._numbers = []

    def _flush_sparse(self) -> None:
        """Turn the sparse features that wait into one piece: their values, row by row."""
        self._end_sparse_numbers()
        if not self._sparse:
            return
        rows = np.concatenate([of for of, _ in self._sparse])
        views = np.concatenate([of for _, of in self._sparse])
        self._sparse = []
        order = np.argsort(rows, kind="stable")
        data, ends = concatenate(views[order], self._buffers)
        bounds = np.concatenate([[0], ends])[np.searchsorted(rows[order], np.arange(self._rows + 1))]
        self._append(self._refer(bounds[:-1], np.diff(bounds), data))

    def flush(self) -> None:
        """Turn the features of fixed size that wait into one piece: a template in every row, and the values in it."""
        self._flush_numbers()
        self._flush_sparse()
        if not self._fixed:
            return
        template = b"".join(prefix + bytes(4) for prefix, _ in self._fixed)
        width = len(template)
        block = np.empty((self._rows, width), np.uint8)
        block[:] = np.frombuffer(template, np.uint8)
        end = 0
        for prefix, values in self._fixed:
            end += len(prefix)
            slots: npt.NDArray[Any] = np.ndarray((self._rows,), "<u4", block.data, end, (width,))
            slots[:] = values
            end += 4
        self._fixed = []
        starts = np.arange(self._rows, dtype=np.int64) * width
        self._append(self._refer(starts, np.full(self._rows, width), pa.py_buffer(block)))

    def write(self) -> SegmentedRecords:
        pieces = [self._heads(), *self._pieces]
        data, ends = gather(pieces, self._rows, self._buffers)
        cuts = [*(1 + piece for piece in self._spliced_pieces), len(pieces) - 1]
        lengths = np.stack(self._splice_lengths, axis=1) if self._splices else np.zeros((self._rows, 0), np.int64)
        return SegmentedRecords(data, ends[:, cuts], tuple(self._splices), lengths)

    def write_framed(self) -> Frames | None:
        """Write the records as framed ones, at once; None if payloads were spliced, so that this cannot be done."""
        if self._splices:
            return None
        heads = self._heads()
        lengths = self._sizes + lengths_of(heads)
        if int(self._sizes.max(initial=0)) >= len(SHORT_HEADS):
            return frame_in_place([heads, *self._pieces], lengths, self._buffers)
        openings = at_index(OPENINGS, len(self._buffers)).take(self._sizes)
        return frame_in_place([openings, *self._pieces], lengths, [*self._buffers, OPENING_TEXTS], opened=True)

    def _heads(self) -> Views:
        return tagged_lengths(self._sizes)

    def _append(self, views: Views) -> None:
        self._pieces.append(views)
        self._sizes += words_of(views)[:, 0]

    def _refer(self, offsets: I64, lengths: I64, data: pa.Buffer) -> Views:
        self._buffers.append(data)
        return reference_views(offsets, lengths, data, len(self._buffers) - 1)

    def _append_payload(self, payload: Views, sizes: I64) -> None:
        """Append payloads, or splice the long ones of them if they are large on average."""
        if self._splice_bytes is None or int(sizes.sum()) < self._splice_bytes * self._rows:
            self._append(payload)
            return
        self._sizes += sizes
        long = sizes > INLINE_BYTES
        words = words_of(payload)
        self._splices.append(
            [
                self._buffers[index].slice(offset, length) if is_long else None
                for is_long, (length, _, index, offset) in zip(long.tolist(), words.tolist(), strict=True)
            ]
        )
        self._splice_lengths.append(np.where(long, sizes, 0))
        self._pieces.append(np.where(long, 0, payload))
        self._spliced_pieces.append(len(self._pieces) - 1)

    def _payload(self, column: FeatureColumn) -> Views:
        if column.offsets is not None:
            return self._list_payload(column, column.offsets)
        if column.kind == "int64":
            return varint_views(column.values)
        if column.kind == "float":
            return inline_views(column.values.view(np.uint32).reshape(-1, 1), 4)
        views = at_index(column.values, len(self._buffers))
        self._buffers.extend(column.buffers)
        return views

    def _list_payload(self, column: FeatureColumn, offsets: I64) -> Views:
        if column.kind == "float":
            bounds, data = offsets * 4, pa.py_buffer(column.values)
        else:
            if column.kind == "bytes":
                pieces = [tagged_lengths(lengths_of(column.values)), column.values]
            else:
                pieces = [varint_views(column.values)]
            data, ends = gather(pieces, len(column.values), column.buffers)
            bounds = np.concatenate([[0], ends[:, -1]]).astype(np.int64)[offsets]
        return self._refer(bounds[:-1], np.diff(bounds), data)
