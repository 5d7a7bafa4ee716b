"""Files that are written once, from front to back, and are durable in the end.

Writeback overlaps with work: what has been written is handed to the kernel to sync by a thread of its own, a stretch
at a time, so that little is left to wait for when the task ends. A stretch that is durable leaves the page cache: the
kernel writes the next one into the same pages, which are at hand, where fresh ones cost up to five times as much
processor time (on a virtual machine, whose host has to find each of them first), and a conversion of any size drives
nothing else out of memory. The end of a part stays: it is a tail as a rule, and copied soon.

    write ██████████████░░  ...the encoder works...  ░░██████████████░░  close
    sync                 ▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓              ▓▓▓▓▓ wait
    cache ██████████████████████████████                 ██████████████████
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache
from typing import Final, Protocol

_STRETCH_BYTES: Final = 16 << 20
"""Enough for the disk to work at its full speed, little enough to be on its way while the part grows."""

_BUFFERS_PER_CALL: Final = min(os.sysconf("SC_IOV_MAX"), 1024)


class PartFile(Protocol):
    """A file that is being written."""

    def write(self, buffers: Sequence[memoryview]) -> None:
        """Append the bytes of all buffers."""
        ...

    def close(self) -> None:
        """Take no more bytes, and begin to make the file durable."""
        ...

    def wait(self) -> None:
        """Return when the closed file is durable.

        Raises:
            OSError: it could not be made so.
        """
        ...

    def abandon(self) -> None:
        """Let go of the file, whatever is in it: its attempt has failed."""
        ...


class LocalPartFile:
    """A file of the local file system, written without a buffer of its own: blocks are large already."""

    def __init__(self, file: int, path: str) -> None:
        self._file = file
        self._path = path
        self._bytes = 0
        self._unsynced = 0
        self._syncs: list[Future[None]] = []
        self._done: Future[None] | None = None

    def write(self, buffers: Sequence[memoryview]) -> None:
        """Append the bytes of all buffers, with as few calls as the system allows."""
        for start in range(0, len(buffers), _BUFFERS_PER_CALL):
            _write_vector(self._file, buffers[start : start + _BUFFERS_PER_CALL])
        size = sum(buffer.nbytes for buffer in buffers)
        self._bytes += size
        self._unsynced += size
        if self._unsynced >= _STRETCH_BYTES:
            self._unsynced = 0
            if not self._syncs or self._syncs[-1].done():
                self._syncs.append(_syncer().submit(_sync_stretch, self._file, self._bytes))

    def close(self) -> None:
        """Take no more bytes; sync and close the file in the background."""
        if self._done is None:
            self._done = _syncer().submit(self._finish)

    def wait(self) -> None:
        """Return when the closed file is durable."""
        assert self._done is not None, "wait follows close"
        self._done.result()

    def abandon(self) -> None:
        """Let go of the file, whatever is in it; nothing waits for the disk."""
        if self._done is None:
            for sync in self._syncs:
                sync.cancel()
            self._done = _syncer().submit(os.close, self._file)

    def _finish(self) -> None:
        try:
            for sync in self._syncs:  # an error is reported once: to whoever synced first
                sync.result()
            os.fsync(self._file)
        except OSError as error:
            raise OSError(error.errno, error.strerror, self._path) from error
        finally:
            os.close(self._file)


def _sync_stretch(file: int, end: int) -> None:
    """Make a file durable up to `end`, and let go of the pages that hold it."""
    os.fdatasync(file)
    drop_pages(file, 0, end)


def drop_pages(file: int, offset: int, length: int) -> None:
    """Let go of the cached pages of a range that is durable: their memory is the kernel's next to use."""
    with contextlib.suppress(OSError):  # advice: a file system that takes none keeps the pages
        os.posix_fadvise(file, offset, length, os.POSIX_FADV_DONTNEED)


@lru_cache(maxsize=1)
def _syncer() -> ThreadPoolExecutor:
    """Return this process's one syncing thread: the disk gets no faster by more, and tasks run in order of need."""
    return ThreadPoolExecutor(1, thread_name_prefix="shardmill-sync")


def _write_vector(file: int, buffers: Sequence[memoryview]) -> None:
    written = os.writev(file, buffers)
    rest = sum(buffer.nbytes for buffer in buffers) - written
    if not rest:
        return
    for buffer in buffers:  # the system took only some: write what is left of the one it stopped in, and the others
        if written >= buffer.nbytes:
            written -= buffer.nbytes
            continue
        view = buffer[written:]
        written = 0
        while view:
            view = view[os.write(file, view) :]
