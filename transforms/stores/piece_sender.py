"""Bytes that come in any number become pieces of a fixed size, which are sent side by side.

    write   ├──┼─┼────┼──┼─────┼┼──┤
    pieces  │ 1       │ 2       │ 3          at most three at once: one that fills, two that are sent

So an object of any size takes three pieces of memory, and few objects are completed at once. Pieces are used again, and
sent by few threads: each thread's part of malloc's heap keeps some of what is freed.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final, Generic, TypeVar

from ..format.tfrecord.checksum import crc32c, crc32c_combine

T = TypeVar("T")
S = TypeVar("S")

PIECE_BYTES: Final = 8 << 20
"""A piece, where a store says nothing else."""

_UNDER_WAY: Final = 2
_THREADS: Final = 8
"""Threads of a process that fetch, copy and remove: they wait for the network, and take hardly any processor time."""

_SENDING_THREADS: Final = 3
"""Threads that send pieces: what clients copy for it stays in each one's part of malloc's heap (`allocator`)."""

_FINISHING_THREADS: Final = 2

_KEPT_BUFFERS: Final = 12
"""The buffers of one size: two workers fill and send them, while another upload is completed."""

_free_buffers: dict[int, deque[bytearray]] = {}

_pools: dict[tuple[int, str], ThreadPoolExecutor] = {}
_free_finishers: dict[int, threading.Semaphore] = {}
_pools_lock = threading.Lock()


def pool() -> ThreadPoolExecutor:
    """Return the threads of this process that talk to stores; none of them may wait for another one."""
    return _pool("store", _THREADS)


def finished_later(finish: Callable[[], None]) -> Future[None]:
    """Complete an upload in another thread, which may wait for those that send, and those of `pool`.

    Waits where several are at it: each holds pieces, and a slow store would gather all that is written.
    """
    with _pools_lock:
        free = _free_finishers.setdefault(os.getpid(), threading.Semaphore(_FINISHING_THREADS))
    free.acquire()
    future = _pool("store-finish", _FINISHING_THREADS).submit(finish)
    future.add_done_callback(lambda _: free.release())
    return future


def _pool(name: str, threads: int) -> ThreadPoolExecutor:
    with _pools_lock:
        key = (os.getpid(), name)
        if key not in _pools:
            _pools[key] = ThreadPoolExecutor(threads, name)
        return _pools[key]


def at_once(work: Callable[[S], T], items: Iterable[S]) -> list[T]:
    """Return what a function makes of each item, in order; some are worked on at once."""
    return list(pool().map(work, items))


class PieceSender(Generic[T]):
    """Cuts a stream into pieces: `send(number, piece, crc)` sends one, from 0 on; `size_of(number)` is its size."""

    def __init__(
        self,
        send: Callable[[int, memoryview, int], T],
        size_of: Callable[[int], int] = lambda _: PIECE_BYTES,
    ) -> None:
        self.bytes = 0
        self.crc = 0
        self.sent: list[T] = []
        self._send = send
        self._size_of = size_of
        self._piece: bytearray | None = None
        self.filled = 0  # of the piece that is not sent yet
        self._number = 0
        self._under_way: deque[Future[T]] = deque()

    @property
    def pieces(self) -> int:
        return self._number

    def write(self, data: memoryview) -> None:
        """Take bytes, which are copied."""
        data = data.cast("B")
        while data:
            if self._piece is None:
                self._piece, self.filled = _buffer(self._size_of(self._number)), 0
            elif self.filled == len(self._piece):
                self._begin()
                continue
            count = min(len(data), len(self._piece) - self.filled)
            self._piece[self.filled : self.filled + count] = data[:count]
            self.filled += count
            data = data[count:]

    def rest(self) -> memoryview:
        """Return the piece that is not sent yet, and leave its sending to the caller."""
        piece = self._taken()
        self._count(piece)
        return piece

    def finish(self) -> list[T]:
        if self.filled:
            self._begin()
        while self._under_way:
            self.sent.append(self._under_way.popleft().result())
        return self.sent

    def abandon(self) -> None:
        """Send nothing more, and return when nothing is under way."""
        self._taken()
        for future in self._under_way:
            future.cancel()
        while self._under_way:
            future = self._under_way.popleft()
            if not future.cancelled():
                future.exception()

    def _begin(self) -> None:
        piece, number = self._taken(), self._number
        self._number += 1
        crc = self._count(piece)
        while len(self._under_way) >= _UNDER_WAY:
            self.sent.append(self._under_way.popleft().result())
        self._under_way.append(_pool("store-send", _SENDING_THREADS).submit(self._sent, number, piece, crc))

    def _sent(self, number: int, piece: memoryview, crc: int) -> T:
        try:
            return self._send(number, piece, crc)
        finally:
            _give_back(piece.obj)

    def _taken(self) -> memoryview:
        piece, self._piece = self._piece, None
        filled, self.filled = self.filled, 0
        return memoryview(piece or b"")[:filled]

    def _count(self, piece: memoryview) -> int:
        crc = crc32c(piece)
        self.crc = crc32c_combine(self.crc, crc, len(piece))
        self.bytes += len(piece)
        return crc


def _buffer(size: int) -> bytearray:
    try:
        return _free_buffers[size].pop()
    except (KeyError, IndexError):
        return bytearray(size)


def _give_back(buffer: object) -> None:
    if isinstance(buffer, bytearray):
        _free_buffers.setdefault(len(buffer), deque(maxlen=_KEPT_BUFFERS)).append(buffer)


def whole_or_copy(piece: memoryview) -> bytes | bytearray:
    """Return the bytes of a piece as clients take them: its buffer, where that is full."""
    return piece.obj if isinstance(piece.obj, bytearray) and len(piece.obj) == len(piece) else bytes(piece)
