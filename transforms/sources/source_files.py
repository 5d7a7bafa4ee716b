"""Open the files of a source: the one place where all of them are opened, but images, which are read whole.

    open_file(file)      a file to read from, as `open` gives it
    size_of(opened)      its size, as it is now
    read_at(opened)      a function that reads anywhere in it, whatever was read before

What is opened is a `ListedFile`: an entry of the listing, or a piece.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from io import BufferedReader, FileIO
from typing import TypeAlias, TypeVar

from ..errors import SourceError
from .source import ListedFile

OpenFile: TypeAlias = FileIO | BufferedReader
"""A file that is open to read."""

ReadAt: TypeAlias = Callable[[int, int], bytes]
"""Reads so many bytes from an offset on: fewer only at the end of the file."""


T = TypeVar("T", FileIO, BufferedReader)


def open_file(file: ListedFile) -> BufferedReader:
    """Open a file to read, through a buffer.

    Raises:
        OSError: it cannot be read.
    """
    return open(file.path, "rb")


def open_unbuffered(file: ListedFile) -> FileIO:
    """Open a file of which large pieces are read, which a buffer would only copy.

    Raises:
        OSError: it cannot be read.
    """
    return open(file.path, "rb", buffering=0)


@contextmanager
def open_listed(file: ListedFile, opener: Callable[[ListedFile], T]) -> Iterator[T]:
    """Open a file by one of the two for the length of a `with`.

    Raises:
        SourceError: it cannot be opened.
    """
    try:
        opened = opener(file)
    except OSError as error:
        raise SourceError(file.name, f"cannot be read: {error.strerror}") from error
    with opened:
        yield opened


def size_of(opened: OpenFile) -> int:
    """Return the size of an open file in bytes."""
    return os.fstat(opened.fileno()).st_size


def read_at(opened: OpenFile) -> ReadAt:
    """Return what reads `size` bytes of an open file from an offset on, and moves no position."""
    return partial(os.pread, opened.fileno())
