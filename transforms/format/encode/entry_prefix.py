r"""The bytes before the payload of a feature: everything about it that its size alone decides.

    0A varint(entry)                       Features.feature, an entry of the map
       0A varint(key) key                    its key
       12 varint(feature)                    its value
          TT varint(list)                      Feature.{bytes,float,int64}_list
             0A varint(size)                     the packed numbers, or the one bytes value; not of a `bare` payload
                payload

For one key and kind the prefix is a function of the payload's size: it is built once for each size that occurs, and
looked up for every row. An integer's whole entry is a function of its value: if all values are near each other, as what
is counted or enumerated does, entries are built once for the range and looked up by value.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..buffers.varints import varint, varint_views
from ..buffers.views import I64, Views, at_index, gather, lengths_of, reference_views
from ..schema.schema import Kind

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
