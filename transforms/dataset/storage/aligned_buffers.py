"""Memory at page borders, for files that bypass the page cache; recycled, since a page used again costs nothing.

A fresh page may cost 10 us (in a virtual machine, whose host takes free ones back), so a buffer that was written goes
to the next user, and a new one is touched only as far as it is filled.

    idle  [████████]  [████    ]            a few, the one used last is taken first
    out   [██████  ]  [████████]  [█ ]      large ones up to a bound, then small ones: any number of files may be open

What is read into passes through many hands, so that nobody could say when it is done with: there it is the end of the
last reference that gives the memory back (`recycled_array`).
"""

from __future__ import annotations

import mmap
import threading
import weakref
from typing import Final

import numpy as np
import numpy.typing as npt

BUFFER_BYTES: Final = 1 << 20
"""Enough for the disk to work at nearly its full speed."""

SMALL_BYTES: Final = 64 << 10
"""The buffer of a file if many are open; a multiple of any block."""

LARGE_BYTES_OUT: Final = 24 << 20
"""Bound of large buffers that are in use in a process."""

_IDLE_BUFFERS: Final = 8

RECYCLED_BYTES: Final = 4 << 20
"""An array up to this size is recycled; of a larger one fresh pages are the least of its price."""

_IDLE_ARRAYS: Final = 6

_WITHOUT_GIL_BYTES: Final = 16 << 10
"""numpy lets other threads run while it copies, and takes a microsecond to begin; memoryview does neither."""


class AlignedBuffer:
    """Bytes that are gathered at a page border."""

    def __init__(self, size: int) -> None:
        self.size: Final = size
        self.filled = 0
        self.view: Final = memoryview(mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))
        self._array: Final = np.frombuffer(self.view, np.uint8)

    def append(self, data: memoryview) -> int:
        """Take as many bytes as there is room for, and return how many that were."""
        start = self.filled
        taken = min(data.nbytes, self.size - start)
        if taken >= _WITHOUT_GIL_BYTES:
            np.copyto(self._array[start : start + taken], np.frombuffer(data, np.uint8, taken))
        else:
            self.view[start : start + taken] = data[:taken]
        self.filled += taken
        return taken


class BufferPool:
    """The buffers of a process; safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[AlignedBuffer] = []
        self._out = 0

    @property
    def bytes_out(self) -> int:
        return self._out

    def take(self) -> AlignedBuffer:
        """Return an empty buffer: a large one, or a small one while very many are out."""
        with self._lock:
            if self._out + BUFFER_BYTES > LARGE_BYTES_OUT:
                return AlignedBuffer(SMALL_BYTES)
            self._out += BUFFER_BYTES
            if self._idle:
                return self._idle.pop()
        return AlignedBuffer(BUFFER_BYTES)

    def give(self, buffer: AlignedBuffer) -> None:
        if buffer.size != BUFFER_BYTES:
            return
        buffer.filled = 0
        with self._lock:
            self._out -= BUFFER_BYTES
            if len(self._idle) < _IDLE_BUFFERS:
                self._idle.append(buffer)


_idle_arrays: Final[list[mmap.mmap]] = []


def recycled_array(size: int) -> npt.NDArray[np.uint8]:
    """Return so many bytes at a page border, whatever is in them: memory that nothing refers to any more."""
    if size > RECYCLED_BYTES:
        memory = np.empty(size + mmap.PAGESIZE, np.uint8)
        first = -address_of(memory) % mmap.PAGESIZE
        return memory[first : first + size]
    try:
        mapped = _idle_arrays.pop()
    except IndexError:
        mapped = mmap.mmap(-1, RECYCLED_BYTES, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    whole: npt.NDArray[np.uint8] = np.frombuffer(mapped, np.uint8)
    weakref.finalize(whole, _recycle, mapped).atexit = False  # every slice of it refers to it
    return whole[:size]


def _recycle(mapped: mmap.mmap) -> None:
    if len(_idle_arrays) < _IDLE_ARRAYS:
        _idle_arrays.append(mapped)


def address_of(data: memoryview | npt.NDArray[np.uint8]) -> int:
    return int(np.frombuffer(data, np.uint8).__array_interface__["data"][0])
