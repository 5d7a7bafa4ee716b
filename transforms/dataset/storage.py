"""Where a dataset lies: the few operations that stage, commit and publish are built on.

Paths are relative to the dataset's folder, with `/`. What makes a commit safe is `put_if_absent`: of any number of
writers one wins, and a file is there whole or not at all, also after `kill -9` or a power cut.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from ..format.checksum import crc32c
from .direct_file import DirectFile, append_range, errors_named
from .part_file import PartFile
from .shard_plan import PartRange

_READ_BYTES: Final = 8 << 20
"""One step of reading a file through."""


class Storage(Protocol):
    """A folder that a dataset is written into; picklable, and safe to use from several threads."""

    def create_part(self, path: str) -> PartFile:
        """Return a new file to write, its folders made."""
        ...

    def assemble(self, path: str, ranges: Sequence[PartRange], base: str) -> None:
        """Make a durable file of ranges of files; their paths are relative to `base`."""
        ...

    def concatenate(self, path: str, sources: Sequence[str]) -> None:
        """Make a durable file of other files, one after the other."""
        ...

    def place(self, source: str, target: str) -> None:
        """Let `target` be the file `source` too, whatever it was before."""
        ...

    def publish(self, source: str, target: str) -> bool:
        """Let `target` be the file `source` too, if there is no file of that name; say whether it is now."""
        ...

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Make a durable file, whole or not at all; say whether it is ours (False: another one was there)."""
        ...

    def replace(self, path: str, data: bytes) -> None:
        """Make or replace a file, durably; readers see the old one or the new one."""
        ...

    def read(self, path: str) -> bytes:
        """Return a whole (small) file."""
        ...

    def size(self, path: str) -> int | None:
        """Return the size of a regular file in bytes, or None if there is none of that name."""
        ...

    def list(self, folder: str) -> list[str]:
        """Return the names in a folder, sorted; none if there is no such folder."""
        ...

    def sync(self, folder: str) -> None:
        """Wait until the names in a folder are durable."""
        ...

    def crc32c(self, path: str) -> int:
        """Return the CRC32C of a file."""
        ...

    def remove(self, path: str) -> None:
        """Remove a file, if it is there."""
        ...

    def remove_tree(self, folder: str) -> None:
        """Remove a folder and what is in it, if it is there."""
        ...


@dataclass(frozen=True, slots=True)
class LocalStorage:
    """A folder of the local file system; `root` is absolute. It is made when the first file in it is."""

    root: str

    def path(self, path: str) -> str:
        """Return the absolute path of a file of the dataset."""
        return os.path.join(self.root, path) if path else self.root

    def create_part(self, path: str) -> DirectFile:
        """Return a new file to write, its folders made; it must not be there."""
        full = self._with_folders(path)
        return DirectFile(_create(full), full)

    def assemble(self, path: str, ranges: Sequence[PartRange], base: str) -> None:
        """Make a durable file of ranges of files; their paths are relative to `base`."""
        with self._replacing(path) as temporary, _durable(temporary) as target:
            for part, start, end in ranges:
                append_range(target, self.path(f"{base}/{part.path}"), part.path, start.offset, end.offset)

    def concatenate(self, path: str, sources: Sequence[str]) -> None:
        """Make a durable file of other files, one after the other."""
        with self._replacing(path) as temporary, _durable(temporary) as target:
            for name in sources:
                append_range(target, self.path(name), name, 0)

    def place(self, source: str, target: str) -> None:
        """Let `target` be the file `source` too (a second link), whatever it was before."""
        temporary = self._temporary(target)
        os.link(self.path(source), temporary)
        try:
            os.replace(temporary, self.path(target))
        finally:
            if os.path.exists(temporary):  # rename does nothing where both names were links to one file already
                os.unlink(temporary)

    def publish(self, source: str, target: str) -> bool:
        """Link `source` as `target`, never over another file; say whether `target` is that file now."""
        try:
            os.link(self.path(source), self._with_folders(target))
        except FileExistsError:
            return os.path.samefile(self.path(source), self.path(target))
        return True

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Make a durable file by linking a synced temporary one; bare `O_EXCL` would leave a torn one on kill -9."""
        temporary = self._temporary(path)
        try:
            _write_synced(temporary, data)
            os.link(temporary, self.path(path))
        except FileExistsError:
            return False
        finally:
            with contextlib.suppress(FileNotFoundError):  # it was not made
                os.unlink(temporary)
        self.sync(os.path.dirname(path))
        return True

    def replace(self, path: str, data: bytes) -> None:
        """Make or replace a file by renaming a synced temporary one over it."""
        with self._replacing(path) as temporary:
            _write_synced(temporary, data)

    def read(self, path: str) -> bytes:
        """Return a whole (small) file."""
        with open(self.path(path), "rb") as file:
            return file.read()

    def size(self, path: str) -> int | None:
        """Return the size of a regular file in bytes, or None if there is none of that name."""
        full = self.path(path)
        return os.path.getsize(full) if os.path.isfile(full) and not os.path.islink(full) else None

    def list(self, folder: str) -> list[str]:
        """Return the names in a folder, sorted; none if there is no such folder."""
        try:
            return sorted(os.listdir(self.path(folder)))
        except (FileNotFoundError, NotADirectoryError):
            return []

    def sync(self, folder: str) -> None:
        """Wait until the names in a folder are durable."""
        _sync_folder(self.path(folder))

    def crc32c(self, path: str) -> int:
        """Return the CRC32C of a file, read a piece at a time."""
        crc = 0
        with open(self.path(path), "rb") as file:
            while data := file.read(_READ_BYTES):
                crc = crc32c(data, crc)
        return crc

    def remove(self, path: str) -> None:
        """Remove a file, if it is there."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path(path))

    def remove_if_empty(self, folder: str) -> None:
        """Remove a folder that holds nothing."""
        with contextlib.suppress(OSError):  # it is not there, or another run put something into it
            os.rmdir(self.path(folder))

    def remove_tree(self, folder: str) -> None:
        """Remove a folder and what is in it, if it is there; another process may be doing the same."""
        while os.path.lexists(self.path(folder)):
            with contextlib.suppress(FileNotFoundError), errors_named(self.path(folder)):
                shutil.rmtree(self.path(folder))

    def remove_any(self, path: str) -> None:
        """Remove a file, a link, or a folder and what is in it, if it is there."""
        full = self.path(path)
        if os.path.isdir(full) and not os.path.islink(full):
            self.remove_tree(path)
        else:
            self.remove(path)

    def _with_folders(self, path: str) -> str:
        full = self.path(path)
        _make_folders(os.path.dirname(full))
        return full

    def _temporary(self, path: str) -> str:
        """Return a hidden name beside a file, which no other attempt uses."""
        full = self._with_folders(path)
        return os.path.join(os.path.dirname(full), f".{os.path.basename(full)}.{uuid.uuid4().hex}")

    @contextlib.contextmanager
    def _replacing(self, path: str) -> Iterator[str]:
        """Give the name of a file to make that becomes `path` if nothing is raised, and is gone otherwise."""
        temporary = self._temporary(path)
        try:
            yield temporary
            os.rename(temporary, self.path(path))
        except BaseException:
            with contextlib.suppress(FileNotFoundError):  # it was not made
                os.unlink(temporary)
            raise
        self.sync(os.path.dirname(path))


def _create(path: str) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)


@contextlib.contextmanager
def _durable(path: str) -> Iterator[DirectFile]:
    """Give a new file to write, which is durable in the end."""
    file = DirectFile(_create(path), path)
    try:
        yield file
        file.close()
        file.wait()
    except BaseException:
        file.abandon()
        raise


def _make_folders(folder: str) -> None:
    """Make a folder and those above it, durably."""
    if os.path.isdir(folder):
        return
    above = os.path.dirname(folder)
    _make_folders(above)
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder)
    _sync_folder(above)


def _sync_folder(folder: str) -> None:
    file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with errors_named(folder):
            os.fsync(file)
    finally:
        os.close(file)


def _write_synced(path: str, data: bytes) -> None:
    file = _create(path)
    try:
        view = memoryview(data).cast("B")
        with errors_named(path):
            while view:
                view = view[os.write(file, view) :]
            os.fsync(file)
    finally:
        os.close(file)
