"""Open an archive to read it from front to back, on a disk or in a store, compressed or not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, Protocol

from ...errors import SourceError
from ...inputs.contract.source import ListedFile
from ...inputs.files.open_file import DiskErrors, OpenFile, expect, open_listed, open_unbuffered, read_at, size_of
from ..text.open_text import file_blocks, sniff_packing, unpacked
from .members import Archive, Damage
from .tar import PlainBytes, StreamBytes, TarArchive
from .zip import ZipArchive

HEADERS: Final = 4 << 10
"""What is read at once where only headers are wanted: those of small members are near each other."""

WHOLE: Final = 1 << 20
"""What is read at once where all is wanted."""

_HEAD_BYTES: Final = 16


class OpenArchive(Archive, Protocol):
    """An archive that can be asked to fetch what will be read; `guessed` is a name whose encoding is a guess."""

    guessed: bytes

    def expect(self, start: int, stop: int | None) -> None:
        """Announce which bytes will be read, or without a `stop` that members will be looked at."""


class _Tar(TarArchive):
    guessed = b""

    def __init__(self, file: ListedFile, opened: OpenFile, window: int, encoding: str | None) -> None:  # noqa: ARG002
        self._opened, self._size = opened, size_of(opened)
        packing = sniff_packing(read_at(opened)(_HEAD_BYTES, 0))
        self.streamed = packing is not None
        if packing is None:
            super().__init__(PlainBytes(read_at(opened), self._size, window))
        else:
            super().__init__(StreamBytes(_unpacked(file, packing)))

    def expect(self, start: int, stop: int | None) -> None:
        if not self.streamed:
            expect(self._opened, [(start, self._size if stop is None else min(stop, self._size))])


def _unpacked(file: ListedFile, packing: str) -> Iterator[bytes]:
    unread: list[SourceError] = []

    def blocks() -> Iterator[bytes]:
        try:
            yield from file_blocks(file, 0, whole=True)
        except SourceError as error:
            unread.append(error)
            raise

    try:
        yield from unpacked(blocks(), packing, file.name)
    except SourceError as error:
        if unread:
            raise
        text = f"{error.problem}; make or copy the archive again"
        raise Damage(0, "CORRUPT", text, of_all=True) from error


class _Zip(ZipArchive):
    streamed = False

    def __init__(self, file: ListedFile, opened: OpenFile, window: int, encoding: str | None) -> None:  # noqa: ARG002
        self._opened = opened
        super().__init__(read_at(opened), size_of(opened), encoding)

    def expect(self, start: int, stop: int | None) -> None:
        directory = (self.directory.start, self.directory.stop)
        expect(self._opened, [directory] if stop is None else [(start, stop), directory])


_OPEN: Final[dict[str, Callable[[ListedFile, OpenFile, int, str | None], OpenArchive]]] = {"tar": _Tar, "zip": _Zip}


@contextmanager
def open_archive(file: ListedFile, kind: str, window: int, encoding: str | None = None) -> Iterator[OpenArchive]:
    """Read `window` bytes at once. Raises `SourceError` where the archive cannot be read."""
    with open_listed(file, open_unbuffered) as opened, DiskErrors(file.name):
        yield _OPEN[kind](file, opened, window, encoding)
