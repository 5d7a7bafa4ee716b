"""Open the files of a source, on a disk or in a store, and check that they are what was listed.

    open_file(file)      a file to read from, as `open` gives it
    size_of(opened)      its size, as it is now
    mapped(opened)       all of it, to be parsed
    let_go(mapping)      the memory of what was looked at of it until now
    read_at(opened)      a function that reads anywhere in it, whatever was read before
    expect(opened, ...)  what will be read of it: an object of a store is on its way then

What is opened is a `ListedFile`: an entry of the listing, or a piece. One whose path is a URL is an `ObjectFile`; local
files are opened as ever.
"""

from __future__ import annotations

import mmap
import os
import socket
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from io import BufferedReader, FileIO
from itertools import groupby
from typing import Final, TypeAlias, TypeVar, Union

from ...errors import SourceError, StoreAccessError, StoreError
from ...format.wording.printable import printable, printable_path
from ...stores.object_store import ChangedObject, SeekableObject, pool, read_ahead, store_at
from ...stores.store_url import StoreUrl, is_store_url, parse_store_url
from ..contract.source import ListedFile, Piece, Task

OpenFile: TypeAlias = Union[FileIO, BufferedReader, "ObjectFile"]

ReadAt: TypeAlias = Callable[[int, int], bytes]
"""Reads so many bytes from an offset on: fewer only at the end of the file."""

SHORTER: Final = "became shorter while it was read; run again"

_LOCAL: Final = (FileIO, BufferedReader)


def is_object(path: bytes) -> bool:
    """Return whether a path is the URL of an object in a store.

    >>> is_object(b"gs://bucket/a.csv"), is_object(b"/data/a.csv")
    (True, False)
    """
    return not path.startswith(b"/") and is_store_url(os.fsdecode(path))


def open_file(file: ListedFile) -> BufferedReader | ObjectFile:
    return _open_object(file) if is_object(file.path) else open(file.path, "rb")


def open_unbuffered(file: ListedFile) -> FileIO | ObjectFile:
    """Open a file of which large pieces are read, which a buffer would only copy."""
    return _open_object(file) if is_object(file.path) else open(file.path, "rb", buffering=0)


class DiskErrors:
    """Raises an error of the disk within its `with` as `SourceError` with the name of the file."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError):
            raise SourceError(self._name, f"cannot be read: {error.strerror or printable(error)}") from error


def read_blocks(opened: OpenFile, size: int, most: int, name: str) -> Iterator[bytes]:
    """Yield the next `size` bytes of a file, at `most` so many at a time; raise `SourceError` where it is shorter."""
    while size:
        data = opened.read(min(size, most))
        if not data:
            raise SourceError(name, SHORTER)
        size -= len(data)
        yield data


@contextmanager
def open_listed(file: ListedFile, opener: Callable[[ListedFile], OpenFile]) -> Iterator[OpenFile]:
    """Name the file in an error of the disk within the `with`: `SourceError`."""
    with DiskErrors(file.name):
        opened = opener(file)
    with opened:
        try:
            yield opened
        except OSError as error:
            if error.errno is not None and error.filename is None:
                error.filename = file.name
            raise


def size_of(opened: OpenFile) -> int:
    return os.fstat(opened.fileno()).st_size if isinstance(opened, _LOCAL) else opened.size


def mapped(opened: OpenFile) -> mmap.mmap | bytes:
    """Return all of a file that is not empty: of a local one what is looked at is read, and takes no memory."""
    return mmap.mmap(opened.fileno(), 0, prot=mmap.PROT_READ) if isinstance(opened, _LOCAL) else opened.read()


def let_go(mapping: mmap.mmap | bytes) -> None:
    """Give back the memory of what is mapped: what is looked at again is read again."""
    if isinstance(mapping, mmap.mmap):
        mapping.madvise(mmap.MADV_DONTNEED)


def read_at(opened: OpenFile) -> ReadAt:
    return partial(os.pread, opened.fileno()) if isinstance(opened, _LOCAL) else opened.read_at


def expect(opened: OpenFile, ranges: Iterable[tuple[int, int]], *, in_turn: bool = False) -> None:
    """Announce what will be read: (start, stop) each, from front to back, or several of them `in_turn`."""
    if not isinstance(opened, _LOCAL):
        opened.expect(ranges, in_turn=in_turn)


def _open_object(file: ListedFile) -> ObjectFile:

    return ObjectFile(file)


# An input file is proven to be the one that was listed by its size and its time of change. Each request that reads an
# object in a store names the version that was listed.


PieceT = TypeVar("PieceT", bound=Piece)


def files_of(task: Task, kind: type[PieceT]) -> Iterator[list[PieceT]]:
    """Yield the pieces of each file of a task, and check its stamp before they are read and after."""
    for _, group in groupby(task.pieces, key=lambda piece: piece.entry):
        pieces = [piece for piece in group if isinstance(piece, kind)]
        check_stamp(pieces[0])
        yield pieces
        check_stamp(pieces[0])


def check_stamp(file: ListedFile) -> None:
    """Raise `SourceError` where a file is gone, or is not what it was when it was listed."""
    if is_object(file.path):
        return
    try:
        status = os.stat(file.path)
    except FileNotFoundError as error:
        raise SourceError(file.name, not_here(error, os.path.dirname(file.path))) from error
    except OSError as error:
        raise SourceError(file.name, f"cannot be read any more: {error.strerror}; run again") from error
    size = file.stamp[0]
    if status.st_size != size:
        raise SourceError(
            file.name, f"changed while it was read: {size} bytes when listed, {status.st_size} now; run again"
        )
    if status.st_mtime_ns != file.stamp[1]:
        raise SourceError(file.name, "changed while it was read: it was written to after it was listed; run again")


def not_here(error: OSError, folder: bytes) -> str:
    """Return what is to be said of a file that was listed and is not here: deleted, or never on this machine."""
    return (
        f"cannot be read any more: {error.strerror} (on {socket.gethostname()}). Either it was deleted after it was "
        f"listed, or only the launching machine has {printable_path(folder)}; put that where all workers have it under "
        f"the same path, or run again"
    )


# An object of a store as a file to read: ranges of it, never the whole, and each of one version only.
#
# A store answers late and then fast. So readers announce what they will read (`expect`), and it comes in blocks, of
# which the next ones are on their way while one is worked on; what nobody announced comes in windows, which grow as
# long as the reading continues where one ends:
#
#     object     ├─────────┬─────────┬─────────┬─────────┬─────┬──────────────────────────────────────────────┬─┤
#     expected   │ block 0 │ block 1 │ block 2 │ block 3 │     │              a window, where somebody looked │▓│
#                  given     given now  on their way                                                           footer
#
# Every request names the version that was listed, so an object that was replaced meanwhile is an error, and never two
# halves of two files.


AHEAD: Final = 2
"""The number of blocks that are fetched while one is processed, each by its own thread."""


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """How many bytes of an object are fetched at a time, and how many are kept.

    `block` is one request if the reading was announced: at 25 ms a request, two on their way bring some 200 MB/s.
    `kept` may be in memory if several places are read in turn, like the columns of a row group; `windows` are what
    nobody announced. A gap of up to `near` is read, because another request would take longer.
    """

    block: int = 4 << 20
    smallest_block: int = 64 << 10
    smallest_window: int = 64 << 10
    kept: int = 64 << 20
    windows: int = 32 << 20
    near: int = 256 << 10


_LIMITS: Final = FetchLimits()


class ObjectFile(SeekableObject):
    """An object, open to read at any place; for one thread at a time. `size` is what it had when it was listed."""

    def __init__(self, file: ListedFile, limits: FetchLimits = _LIMITS) -> None:
        super().__init__(file.stamp.size)
        self._file = file
        self._limits = limits
        self._url = parse_store_url(file.path.decode())
        self._blocks = _Blocks((), limits)
        self._coming: OrderedDict[int, Future[bytes]] = OrderedDict()
        self._windows: OrderedDict[int, bytes] = OrderedDict()

    def read(self, size: int | None = -1, /) -> bytes:
        data = self.read_at(self.size if size is None or size < 0 else size, self._at)
        self._at += len(data)
        return data

    def readinto(self, buffer: memoryview, /) -> int:  # type: ignore[override]
        view = memoryview(buffer).cast("B")
        data = self.read(len(view))
        view[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._forget()
        self._windows.clear()
        super().close()

    def expect(self, ranges: Iterable[tuple[int, int]], *, in_turn: bool = False) -> None:
        """Announce what will be read: (start, stop) each, from front to back, or several of them `in_turn`."""
        self._forget()
        self._blocks = _Blocks(ranges, self._limits, in_turn=in_turn)

    def read_at(self, size: int, at: int) -> bytes:
        """Read so many bytes from a place on, whatever was read before; fewer only at the end."""
        stop = min(at + size, self.size)
        pieces: list[bytes] = []
        while at < stop:
            index = self._blocks.find(at)
            piece = self._window(at, stop) if index is None else self._block(index, at, stop)
            pieces.append(piece)
            at += len(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _block(self, index: int, at: int, stop: int) -> bytes:
        """Return the bytes of a block from `at` to `stop`, and start to fetch the next ones."""
        blocks = self._blocks
        for number in range(index, blocks.ends[index]):
            if number not in self._coming:
                self._coming[number] = pool().submit(self._fetch, *blocks.bounds(number))
            self._coming.move_to_end(number)  # of others, what was not read for longest is forgotten
        data = self._coming[index].result()
        while len(self._coming) > blocks.kept:
            self._coming.popitem(last=False)[1].cancel()
        start, _ = blocks.bounds(index)
        return data[at - start : stop - start]

    def _window(self, at: int, stop: int) -> bytes:
        end, limits = self._blocks.next_start(at, self.size), self._limits
        if stop - at > limits.block:
            return self._whole(at, min(stop, end))
        grown = 0
        for start, data in self._windows.items():
            if start <= at < start + len(data):
                self._windows.move_to_end(start)
                return data[at - start : stop - start]
            if at == start + len(data):
                grown = 2 * len(data)
        wanted = max(stop - at, min(grown, limits.block), limits.smallest_window)
        # after the end of a file, the bytes right before it are read: footers and directories are there
        start = at if grown or at + wanted <= self.size else max(self.size - wanted, 0)
        data = self._fetch(start, min(start + wanted, end))
        self._windows[start] = data
        while len(self._windows) > 1 and sum(map(len, self._windows.values())) > limits.windows:
            self._windows.popitem(last=False)
        return data[at - start : stop - start]

    def _whole(self, start: int, stop: int) -> bytes:
        """Return a large range, with its pieces fetched in parallel."""
        try:
            store = store_at(self._url)
            return b"".join(read_ahead(store, self._url.key, start, stop, version=self._file.stamp.version))
        except (StoreError, StoreAccessError, FileNotFoundError, EOFError) as error:
            raise read_error(self._file, self._url, error) from error

    def _fetch(self, start: int, stop: int) -> bytes:
        try:
            data = store_at(self._url).read(self._url.key, start, stop, version=self._file.stamp.version)
        except (StoreError, StoreAccessError, FileNotFoundError) as error:
            raise read_error(self._file, self._url, error) from error
        if len(data) != stop - start:
            raise SourceError(self._file.name, "became shorter while it was read; run again")
        return data

    def _forget(self) -> None:
        for coming in self._coming.values():
            coming.cancel()
        self._coming.clear()


class _Blocks:
    """The blocks of some ranges that will be read, in the order of their places.

    `ends[i]` is after the last block that is on its way while block i is worked on, and `kept` is how many stay in
    memory: where the ranges are read in turn, all of them if they are not too large together, else of each the block
    that was read, the one that is, and the one that comes.
    """

    def __init__(self, ranges: Iterable[tuple[int, int]], limits: FetchLimits, *, in_turn: bool = False) -> None:
        apart = _joined(ranges, 0)
        size, ahead, self.kept = limits.block, AHEAD, AHEAD + 2
        columns = in_turn and sum(stop - start for start, stop in apart) > limits.kept
        if columns:
            size = min(max(limits.kept // (3 * len(apart)), limits.smallest_block), limits.block)
            ahead, self.kept = 1, 3 * len(apart) + 1
        else:
            apart = _joined(apart, limits.near)
        self._bounds: list[tuple[int, int]] = []
        self.ends: list[int] = []
        for start, stop in apart:
            new = [(at, min(at + size, stop)) for at in range(start, stop, size)]
            first = len(self._bounds)
            self._bounds += new
            self.ends += [min(index + 1 + ahead, len(self._bounds)) for index in range(first, len(self._bounds))]
        if not columns:  # also over the gap between two ranges
            self.ends = [min(index + 1 + ahead, len(self._bounds)) for index in range(len(self._bounds))]
            self.kept = max(self.kept, len(self._bounds)) if in_turn else self.kept
        self._starts = [start for start, _ in self._bounds]

    def bounds(self, index: int) -> tuple[int, int]:
        return self._bounds[index]

    def find(self, at: int) -> int | None:
        index = bisect_right(self._starts, at) - 1
        return index if index >= 0 and at < self._bounds[index][1] else None

    def next_start(self, at: int, size: int) -> int:
        index = bisect_right(self._starts, at)
        return self._starts[index] if index < len(self._starts) else size


def _joined(ranges: Iterable[tuple[int, int]], near: int) -> list[tuple[int, int]]:
    """Return ranges in order, joined where they overlap, or less than `near` bytes are between them."""
    joined: list[tuple[int, int]] = []
    for start, stop in sorted(ranges):
        if joined and start < joined[-1][1] + near:
            joined[-1] = joined[-1][0], max(stop, joined[-1][1])
        elif start < stop:
            joined.append((start, stop))
    return joined


def read_error(file: ListedFile, url: StoreUrl, error: Exception) -> SourceError:
    """Return what a store's answer means for a file that was listed."""
    if isinstance(error, ChangedObject):
        return SourceError(file.name, "changed while it was read: it was replaced after it was listed; run again")
    if isinstance(error, FileNotFoundError):
        return SourceError(file.name, "cannot be read any more: there is no such object; run again")
    if isinstance(error, EOFError):
        return SourceError(file.name, "became shorter while it was read; run again")
    reason = str(error).removeprefix(f"{url}: ").removeprefix(f"{url.scheme}://{url.bucket}: ")
    return SourceError(file.name, f"cannot be read: {reason}")
