"""An object as an open file: read from anywhere, and ahead where it is read through."""

from __future__ import annotations

import errno
import io
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final

from .object_store import PIECE_BYTES, ObjectInfo, ObjectStore, pool

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer


# Ranges of one object, several of them on their way at once: a store answers late, and then fast.
#
# object   ├──── 0 ────┼──── 1 ────┼──── 2 ────┼──── 3 ────┤
# given    0                       while 1, 2 and 3 are on their way


AHEAD: Final = 3
"""Pieces that are fetched while one is worked on: with 8 MiB each enough for 1 GB/s at 25 ms a request."""


def read_ahead(
    store: ObjectStore,
    key: str,
    start: int,
    end: int,
    *,
    version: str | None = None,
    piece_bytes: int = PIECE_BYTES,
    ahead: int = AHEAD,
) -> Iterator[bytes]:
    """Yield the bytes of an object from `start` to `end` in pieces, in order, of one content (see `ObjectStore.read`).

    Raise `EOFError` if it ends before `end`.
    """
    starts = iter(range(start, end, piece_bytes))
    under_way: deque[tuple[int, Future[bytes]]] = deque()

    def begin() -> None:
        at = next(starts, None)
        if at is not None:
            stop = min(at + piece_bytes, end)
            under_way.append((stop - at, pool().submit(store.read, key, at, stop, version=version)))

    try:
        for _ in range(1 + ahead):
            begin()
        while under_way:
            wanted, future = under_way.popleft()
            data = future.result()
            if len(data) != wanted:
                raise EOFError(f"{store.scheme}://{store.bucket}/{key}: ends before byte {end}")
            begin()
            yield data
    finally:
        for _, future in under_way:
            future.cancel()


class SeekableObject(io.RawIOBase):
    """An object that is open to read at any place of its `size` bytes; `_at` is where the next byte is read."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        place = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self.size}[whence] + offset
        if place < 0:
            raise OSError(errno.EINVAL, "Invalid argument")
        self._at = place
        return place


class ObjectReader(SeekableObject):
    """One content of an object; if another takes its place meanwhile, reading fails and mixes nothing.

    `size` is that of the content. What was read last is kept, so that a look at the first bytes costs no request more.
    """

    def __init__(self, store: ObjectStore, key: str, info: ObjectInfo | None = None) -> None:
        self.info = store.found(key) if info is None else info
        super().__init__(self.info.size)
        self._store = store
        self._piece, self._piece_start = memoryview(b""), 0
        self._coming: Iterator[bytes] | None = None

    def again(self) -> ObjectReader:
        """Open the same content once more, from its beginning; no request is made."""
        return ObjectReader(self._store, self.info.key, self.info)

    def read_range(self, start: int, end: int) -> bytes:
        """Return the bytes from `start` up to `end`, wherever the position is; threads may share it."""
        return self._store.read(self.info.key, start, end, version=self.info.version)

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        target = memoryview(buffer).cast("B")
        if self._at >= self.size or not target:
            return 0
        start = self._at - self._piece_start
        if not 0 <= start < len(self._piece):
            self._fetch()
            start = 0
        data = self._piece[start : start + len(target)]
        target[: len(data)] = data
        self._at += len(data)
        return len(data)

    def close(self) -> None:
        self._let_go()
        super().close()

    def _fetch(self) -> None:
        """Take as the piece the one that begins at the next byte to read."""
        if self._coming is None or self._at != self._piece_start + len(self._piece):
            self._let_go()
            self._coming = read_ahead(self._store, self.info.key, self._at, self.size, version=self.info.version)
        self._piece, self._piece_start = memoryview(next(self._coming)), self._at

    def _let_go(self) -> None:
        if self._coming is not None:
            generator: Any = self._coming
            with closing(generator):
                self._coming = None
