"""Ranges of one object, several of them on their way at once: a store answers late, and then fast.

object   ├──── 0 ────┼──── 1 ────┼──── 2 ────┼──── 3 ────┤
given    0                       while 1, 2 and 3 are on their way
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future
from typing import Final

from .object_store import ObjectStore
from .piece_sender import PIECE_BYTES, pool

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
