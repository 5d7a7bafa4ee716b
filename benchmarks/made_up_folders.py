"""Folders of images that are not there, as `os.scandir` would list them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

FOLDER_FILES: Final = 1000


class MadeUpEntry:
    """An entry of a folder that is not there, as `os.scandir` would give it."""

    __slots__ = ("_size", "name", "path")

    def __init__(self, folder: bytes, name: bytes, size: int | None) -> None:
        self.name = name
        self.path = folder + b"/" + name
        self._size = size

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:  # noqa: ARG002 - there are no links
        return self._size is None

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:  # noqa: ARG002 - there are no links
        size = self._size or 0
        second = 1_700_000_000
        nanoseconds = second * 10**9 + size
        return os.stat_result(
            (
                0o100644,
                0,
                0,
                1,
                0,
                0,
                size,
                second,
                second,
                second,
                0.0,
                0.0,
                0.0,
                nanoseconds,
                nanoseconds,
                nanoseconds,
            )
        )


@dataclass(frozen=True)
class MadeUpFolders:
    """A root of folders of a thousand images each, in the order in which a file system might tell them."""

    root: bytes
    images: int

    @contextmanager
    def __call__(self, path: bytes) -> Iterator[Iterator[MadeUpEntry]]:
        yield self._folders() if path == self.root else self._files(path)

    def _folders(self) -> Iterator[MadeUpEntry]:
        for number in range(-(-self.images // FOLDER_FILES)):
            yield MadeUpEntry(self.root, b"n%08d" % number, None)

    def _files(self, path: bytes) -> Iterator[MadeUpEntry]:
        folder = int(path[-8:])
        for i in range(min(FOLDER_FILES, self.images - folder * FOLDER_FILES)):
            number = i * 7919 % FOLDER_FILES  # no file system tells names in order
            yield MadeUpEntry(
                path, b"n%08d_%05d.JPEG" % (folder, number), 1_000_000 + (folder * 31 + i * 7919) % 100_000
            )
