"""Write files once, from front to back, past the page cache. A file that is closed is durable.

A write through the cache costs the processor ten times as much as one past it: a page has to be found for every 4 KiB,
filled, handed to the disk, and taken back, and in the end the cache holds nothing but what nobody reads soon. So bytes
are gathered in page-aligned buffers, and a separate thread writes full ones to the disk (O_DIRECT) meanwhile.
If the disk falls behind, the writer waits for it.

    write(...)   ├──┼─┼────┼──────┼──┼─┼─┼───────┼─┤ close()
                  copied, the GIL released
    buffers      │ full │ full │ full │ full │ fu  │      1 MiB each
                    ▼      ▼      ▼      ▼     ▼└─ the end, less than a block: through the cache
    disk         │ direct                      ││▒│       then fsync: size and extents are durable as well

Bytes that are in memory as they will be in the file, page for page, need no copy: code that reads records to write
them again places them so (`record_file`). Only what completes a block is copied, and what is left over at the end:

    memory       │    ▒▒▒▒│████████│████████│▒▒       │     page borders of the writer's bytes
    file         │XXXX▒▒▒▒│████████│████████│▒▒...    │     and of the file: the X were there before
                   copied   lent, written from there  copied

A file that does not fill one buffer goes through the cache as a whole: it is a tail as a rule, and copied soon. A file
system without O_DIRECT gets the same bytes through the cache too; there what is durable leaves the cache at once, which
makes the kernel write the next bytes into the same pages, and drives nothing else out of memory.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import io
import mmap
import os
import re
import shutil
import threading
import uuid
import weakref
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import Any, BinaryIO, Final

import numpy as np
import numpy.typing as npt

from ...errors import TargetError
from ...format.wording.hints import Add
from ...format.wording.printable import printable_path
from ...stores.store_url import is_store_url

# Memory at page borders, for files that bypass the page cache; recycled, since a page used again costs nothing.
#
# A fresh page may cost 10 us (in a virtual machine, whose host takes free ones back), so a buffer that was written
# goes to the next user, and a new one is touched only as far as it is filled.
#
#     idle  [████████]  [████    ]            a few, the one used last is taken first
#     out   [██████  ]  [████████]  [█ ]      large ones up to a bound, then small ones: any number of files may be open
#
# What is read into passes through many hands, so that nobody could say when it is done with: there it is the end of
# the last reference that gives the memory back (`recycled_array`).


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


_BLOCK_BYTES: Final = 4096
"""Offsets, lengths and memory are multiples of this. Where a disk wants more it says EINVAL, and gets cached writes."""

_STRETCH_BYTES: Final = 16 << 20
"""What is written through the cache is synced and dropped in stretches of this."""

_ON_THE_WAY: Final = 4
"""Full buffers in a process that wait for the disk."""

_LEAST_LENT_BYTES: Final = 64 << 10
"""Below this a copy is cheaper than a call."""

_MOST_LENT_BYTES: Final = 4 << 20
"""Above this bytes are copied: while they wait for the disk, what they are in is not freed."""


class _Disk:
    """What the files of a process share: a thread that writes, threads that sync, and the buffers."""

    def __init__(self) -> None:
        self.writer: Final = ThreadPoolExecutor(1, thread_name_prefix="shardmill-write")
        self.syncer: Final = ThreadPoolExecutor(2, thread_name_prefix="shardmill-sync")
        self.buffers: Final = BufferPool()
        self.room: Final = threading.Semaphore(_ON_THE_WAY)


class DirectFile:
    """A local file that is being written past the page cache. It owns the descriptor; `path` is for its errors."""

    def __init__(self, file: int, path: str) -> None:
        self._file = file
        self._path = path
        self._disk = _disk()
        self._buffer: AlignedBuffer | None = None
        self._bytes = 0  # of the buffers that were handed over
        self._last: Future[None] | None = None  # the last buffer's write, which follows those before it
        self._done: Future[None] | None = None
        self._direct: bool | None = None  # None: not tried yet
        self._unsynced = 0
        self._abandoned = False

    def write(self, buffers: Sequence[memoryview]) -> None:
        for view in buffers:
            self.copy(view[self._lend(view) :])

    def copy(self, view: memoryview) -> None:
        """Append bytes that may change as soon as this returns."""
        if self._last is not None and self._last.done():
            self._last.result()
        while view.nbytes:
            if self._buffer is None:
                self._buffer = self._disk.buffers.take()
            view = view[self._buffer.append(view) :]
            if self._buffer.filled == self._buffer.size:
                self._hand_over()

    def close(self) -> None:
        if self._done is not None:
            return
        if self._buffer is not None and self._last is not None:
            self._hand_over()
        elif self._buffer is not None:
            with errors_named(self._path):
                _write_all(self._file, [self._buffer.view[: self._buffer.filled]], 0)
            self._disk.buffers.give(self._buffer)
            self._buffer = None
        self._done = self._disk.syncer.submit(self._finish)

    def wait(self) -> None:
        assert self._done is not None, "wait follows close"
        self._done.result()

    def abandon(self) -> None:
        if self._done is None:
            self._abandoned = True
            if self._buffer is not None:
                self._disk.buffers.give(self._buffer)
                self._buffer = None
            self._done = self._disk.writer.submit(os.close, self._file)  # after its writes: the thread is one

    def _lend(self, view: memoryview) -> int:
        """Hand over what is in memory as it will in the file; return how many bytes are done, none if it does not."""
        at = self._bytes + (self._buffer.filled if self._buffer else 0)
        if not _LEAST_LENT_BYTES <= view.nbytes <= _MOST_LENT_BYTES:
            return 0
        if (self._last is None and at + view.nbytes < BUFFER_BYTES) or (address_of(view) - at) % _BLOCK_BYTES:
            return 0
        head = -at % _BLOCK_BYTES
        self.copy(view[:head])
        end = view.nbytes - (view.nbytes - head) % _BLOCK_BYTES
        self._hand_over(view[head:end])
        return end

    def _hand_over(self, lent: memoryview | None = None) -> None:
        buffer, self._buffer = self._buffer, None
        views = [] if buffer is None else [buffer.view[: buffer.filled]]
        if lent is not None:
            views.append(lent)
        offset, self._bytes = self._bytes, self._bytes + _bytes_of(views)
        self._disk.room.acquire()
        self._last = self._disk.writer.submit(self._write_out, self._last, buffer, views, offset)

    def _write_out(
        self, before: Future[None] | None, buffer: AlignedBuffer | None, views: list[memoryview], offset: int
    ) -> None:
        """Write views, in the thread that writes, unless something before them could not be written."""
        try:
            if before is not None:
                before.result()
            if not self._abandoned:
                with errors_named(self._path):
                    self._put(views, offset)
        finally:
            if buffer is not None:
                self._disk.buffers.give(buffer)
            self._disk.room.release()

    def _put(self, views: list[memoryview], offset: int) -> None:
        """Write whole blocks past the cache, and through it what is left of them or what was refused."""
        if self._direct is None:
            self._direct = go_past_cache(self._file)
        size, done = _bytes_of(views), 0
        if self._direct:
            done = _write_blocks(self._file, views, offset)
            if done < size:
                self._direct = False
                go_through_cache(self._file)
        _write_all(self._file, _without(views, done), offset + done)
        self._unsynced += size - done
        if self._unsynced >= _STRETCH_BYTES:
            self._unsynced = 0
            os.fdatasync(self._file)
            drop_pages(self._file, 0, offset + size)

    def _finish(self) -> None:
        try:
            if self._last is not None:
                self._last.result()
            with errors_named(self._path):
                os.fsync(self._file)
        finally:
            os.close(self._file)


@contextlib.contextmanager
def errors_named(path: str) -> Iterator[None]:
    """Add its path to errors of what is done to an open file: the system's own do not have it."""
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, path) from error


def append_range(target: DirectFile, path: str, name: str, start: int, end: int | None = None) -> None:
    """Append bytes [start, end) of the file at `path`, or from `start` to its end; `name` is for the error.

    A long range is read past the cache, in whole blocks around it, one step while the last is written; a short one
    through it, since a file of that length was just written there.
    """
    source = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    buffers = _disk().buffers
    buffer = buffers.take()
    try:
        end = os.fstat(source).st_size if end is None else end
        direct = end - start >= BUFFER_BYTES and go_past_cache(source)
        at = start
        while at < end:
            base = at - at % _BLOCK_BYTES
            try:
                got = os.preadv(source, [buffer.view[: _whole_blocks(end - base)]], base)
            except OSError as error:
                if error.errno != errno.EINVAL or not direct:
                    raise
                go_through_cache(source)
                direct = False
                continue
            stop = min(base + got, end)
            if stop <= at:
                raise OSError(f"{name} ends {end - at} bytes early: it was cut while the run went on")
            target.copy(buffer.view[at - base : stop - base])
            at = stop
        if not direct:
            drop_pages(source, start, end - start)  # the next range is read into this memory
    finally:
        buffers.give(buffer)
        os.close(source)


def go_past_cache(file: int) -> bool:
    """Make reads and writes of a file bypass the page cache; return False if its file system cannot."""
    try:
        fcntl.fcntl(file, fcntl.F_SETFL, fcntl.fcntl(file, fcntl.F_GETFL) | os.O_DIRECT)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        return False
    return True


def go_through_cache(file: int) -> None:
    fcntl.fcntl(file, fcntl.F_SETFL, fcntl.fcntl(file, fcntl.F_GETFL) & ~os.O_DIRECT)


def drop_pages(file: int, offset: int, length: int) -> None:
    """Release the cached pages of a range that is durable: their memory is the kernel's next to use."""
    with contextlib.suppress(OSError):  # advice: a file system that takes none keeps the pages
        os.posix_fadvise(file, offset, length, os.POSIX_FADV_DONTNEED)


@lru_cache(maxsize=1)
def _disk() -> _Disk:
    return _Disk()


os.register_at_fork(after_in_child=_disk.cache_clear)  # which has none of its parent's threads


def _whole_blocks(size: int) -> int:
    return size + -size % _BLOCK_BYTES


def _write_blocks(file: int, views: list[memoryview], offset: int) -> int:
    """Write the whole blocks of the views; return how far it came before the disk refused to take more this way."""
    end = _whole_blocks(_bytes_of(views) - _BLOCK_BYTES + 1)
    done, rest = 0, FrameSlices(views).take(end)
    try:
        while done < end:
            count = os.pwritev(file, rest, offset + done)
            done, rest = done + count, _without(rest, count)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
    return done


def _write_all(file: int, views: list[memoryview], offset: int) -> None:
    while views:
        done = os.pwritev(file, views, offset)
        views, offset = _without(views, done), offset + done


def _bytes_of(views: list[memoryview]) -> int:
    return sum(view.nbytes for view in views)


def _without(views: list[memoryview], size: int) -> list[memoryview]:
    rest = []
    for view in views:
        rest.append(view[size:])
        size -= view.nbytes - rest[-1].nbytes
    return [view for view in rest if view.nbytes]


class FrameSlices:
    """The bytes of some buffers, handed out from front to back as views, and not copied.

    The bytes of a block are one buffer (tables) or many (images: three a record):

        buffers  │████████████│██│██████████████████│██│████████│
        ranges   ├──── take(a) ───┤── take(b) ──┤     ...each as a list of views into the buffers
    """

    def __init__(self, buffers: Iterable[Any]) -> None:
        self._buffers = iter(buffers)
        self._view = memoryview(b"")
        self._offset = 0

    def take(self, end: int) -> list[memoryview]:
        """Return the bytes from where the last call ended up to offset `end` of them all, as views."""
        views: list[memoryview] = []
        while self._offset < end:
            if not self._view.nbytes:
                self._view = memoryview(next(self._buffers)).cast("B")
                continue
            views.append(self._view[: end - self._offset])
            self._view = self._view[end - self._offset :]
            self._offset += views[-1].nbytes
        return views


# A file or a folder that appears whole or not at all: it is hidden beside its name until then.
#
# A hidden one is locked while its writer lives. What a killed writer left has no lock, and the next writer of the same
# name removes it.


_LEFT: Final = re.compile(rb"[0-9a-f]{12}\.incomplete")

_NAME_BYTES: Final = 200
"""A name may have 255 bytes in all."""


@contextmanager
def incomplete_file(path: str | bytes) -> Iterator[BinaryIO]:
    """Open a hidden file beside `path`; when the block ends, sync it and let it take the place of `path`.

    If the block raises, the hidden file is removed and `path` is what it was. The folder is synced too: the new name
    then outlives a power cut. An error of the disk has `path`.
    """
    target = os.fsencode(path)
    hidden = _hidden_beside(target)
    try:
        with new_file_named(hidden, target) as file:
            _lock(file.fileno())
            yield file
            file.flush()
            with errors_named(os.fsdecode(target)):
                os.fsync(file.fileno())
            os.replace(hidden, target)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(hidden)
        raise
    descriptor = os.open(os.path.dirname(target) or b".", os.O_RDONLY | os.O_DIRECTORY)
    try:
        with errors_named(os.fsdecode(target)):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def incomplete_folder(path: str) -> Iterator[str]:
    """Make a hidden folder beside `path`, which takes its place when the block ends: there is none or an empty one.

    If the block raises, the hidden folder is removed.
    """
    hidden = _hidden_beside(os.fsencode(path))
    os.makedirs(hidden)
    descriptor = os.open(hidden, os.O_RDONLY | os.O_DIRECTORY)
    try:
        _lock(descriptor)
        yield os.fsdecode(hidden)
        os.rename(hidden, path)
    except BaseException:
        shutil.rmtree(hidden, ignore_errors=True)
        raise
    finally:
        os.close(descriptor)


def new_file_named(path: str | bytes, name: str | bytes | None = None) -> io.BufferedWriter:
    """Open a new file, where an error of the disk has its path, or another name for it."""
    return io.BufferedWriter(_Raw(path, os.fsdecode(path if name is None else name)))


class _Raw(io.FileIO):
    def __init__(self, path: str | bytes, name: str) -> None:
        super().__init__(path, "xb")
        self._named = name

    def write(self, data: Any) -> int:
        with errors_named(self._named):
            return super().write(data)


def _hidden_beside(target: bytes) -> bytes:
    """Return a new hidden name beside a target, and remove those that dead writers of it have left."""
    folder, name = os.path.split(target)
    start = b"." + name[:_NAME_BYTES] + b"."
    with suppress(FileNotFoundError, NotADirectoryError):
        for found in os.listdir(folder or b"."):
            if found.startswith(start) and _LEFT.fullmatch(found, len(start)):
                _remove_if_dead(os.path.join(folder, found))
    return os.path.join(folder, start + uuid.uuid4().hex[:12].encode() + b".incomplete")


def _remove_if_dead(path: bytes) -> None:
    with suppress(OSError):  # it is gone, it is another user's, or its writer lives
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.isdir(path):
                shutil.rmtree(path)
            else:
                os.unlink(path)
        finally:
            os.close(descriptor)


def _lock(descriptor: int) -> None:
    with suppress(OSError):  # a file system without locks: nobody takes it for a dead one's there
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


# A file or a folder that an export makes: it appears whole or not at all, and takes nobody's place by accident.


def check_new(path: str, *, overwrite: bool) -> None:
    """Refuse a target that is there, before anything is read; a file may be replaced with `overwrite`."""
    shown = printable_path(path)
    if is_store_url(path):
        raise TargetError(f"{shown}: an export writes to a disk; write it there, and copy it to the store")
    plain = path.rstrip("/") or path
    if os.path.isdir(plain):
        if os.listdir(plain):
            raise TargetError(f"{shown}: is a folder that is not empty; choose another name, or remove it yourself")
    elif os.path.lexists(plain) and not overwrite:
        raise TargetError(f"{shown}: already exists; {Add('--overwrite')} replaces it")


@contextmanager
def new_file(path: str) -> Iterator[BinaryIO]:
    """Open a file that takes its name when the block ends; its folder is made."""
    with _refusals(path):
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        if os.path.isdir(path):
            raise TargetError(f"{printable_path(path)}: is a folder; choose another name")
        with incomplete_file(path) as file:
            yield file


@contextmanager
def new_folder(path: str) -> Iterator[str]:
    with _refusals(path), incomplete_folder(path.rstrip("/")) as hidden:
        yield hidden


@contextmanager
def _refusals(path: str) -> Iterator[None]:
    """Say where the system refuses to write; a full disk is said elsewhere."""
    try:
        yield
    except (PermissionError, NotADirectoryError, FileExistsError, IsADirectoryError) as error:
        raise TargetError(
            f"{printable_path(path)}: cannot be written: {error.strerror}; choose another name"
        ) from error
