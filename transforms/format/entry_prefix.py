r"""The bytes before the payload of a feature: everything about it that its size alone decides.

    0A varint(entry)                       Features.feature, an entry of the map
       0A varint(key) key                    its key
       12 varint(feature)                    its value
          TT varint(list)                      Feature.{bytes,float,int64}_list
             0A varint(size)                     the packed numbers, or the one bytes value; not of a `bare` payload
                payload

For one key and kind the prefix is a function of the payload's size: it is built once for each size that occurs, and
looked up for every row.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from .schema import Kind
from .varints import varint
from .views import I64, Views, at_index, reference_views

LIST_TAGS: Final[dict[Kind, bytes]] = {"bytes": b"\x0a", "float": b"\x12", "int64": b"\x1a"}

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

    def of(self, size: int) -> bytes:
        """Return the prefix of a payload of `size` bytes."""
        if size not in self._texts:
            bare = self._bare or (size == 0 and self._kind != "bytes")
            self._texts[size] = entry_prefix(self._key, self._kind, size, bare=bare)
        return self._texts[size]

    def views(self, sizes: I64, index: int) -> tuple[Views, pa.Buffer]:
        """Return the prefix of each size as a view into the returned buffer, which is number `index`."""
        if int(sizes.max()) >= _TABLE_LIMIT:
            distinct, rows = np.unique(sizes, return_inverse=True)
            table, buffer = _table_of([self._fresh(size) for size in distinct.tolist()])
        else:
            self._learn(sizes)
            table, buffer, rows = self._table, self._buffer, sizes
        return at_index(table, index).take(rows), buffer

    def _fresh(self, size: int) -> bytes:
        # Large sizes seldom come twice: remembering them would only fill memory.
        return self.of(size) if size < _TABLE_LIMIT else entry_prefix(self._key, self._kind, size, bare=self._bare)

    def _learn(self, sizes: I64) -> None:
        """Extend the table to all of these sizes."""
        top = int(sizes.max())
        if top < len(self._known) and bool(self._known.take(sizes).all()):
            return
        known = np.zeros(max(top + 1, len(self._known)), np.bool_)
        known[: len(self._known)] = self._known
        known[sizes] = True
        found = np.flatnonzero(known)
        views, self._buffer = _table_of([self.of(size) for size in found.tolist()])
        self._table = np.zeros(len(known), np.complex128)
        self._table[found] = views
        self._known = known


def _table_of(texts: list[bytes]) -> tuple[Views, pa.Buffer]:
    buffer = pa.py_buffer(b"".join(texts))
    lengths = np.array([len(text) for text in texts], np.int64)
    return reference_views(np.cumsum(lengths) - lengths, lengths, buffer, 0), buffer
