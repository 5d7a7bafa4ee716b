"""Open the files of a source: the one place where all of them are opened, but images, which are read whole.

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
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from io import BufferedReader, FileIO
from itertools import groupby
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar, Union

from ...errors import SourceError
from ...format.wording.printable import printable, printable_path
from ...stores.store_url import is_store_url
from ..contract.source import ListedFile, Piece, Task

if TYPE_CHECKING:
    from .object_file import ObjectFile


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
    """Announce what will be read: (start, stop) each, from front to back, or several of them `in_turn`.

    The kernel reads local files ahead by itself.
    """
    if not isinstance(opened, _LOCAL):
        opened.expect(ranges, in_turn=in_turn)


def _open_object(file: ListedFile) -> ObjectFile:
    from .object_file import ObjectFile

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
