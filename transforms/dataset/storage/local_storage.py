"""A dataset in a folder of the local file system. The operations are those of `contract`."""

from __future__ import annotations

import contextlib
import glob
import os
import re
import shutil
import stat
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import BufferedReader
from typing import ClassVar, Final

from ...errors import InputError, TargetError
from ...format.manifest.naming import STAGING_FOLDER
from ...format.splits.shard_plan import PartRange
from ...format.tfrecord.framing import crc32c
from ...format.wording.printable import nearest, printable_path
from .contract import FileStatus
from .direct_file import DirectFile, append_range, errors_named

_READ_BYTES: Final = 8 << 20
"""One step of reading a file through."""

_TEMPORARY: Final = re.compile(r"\.(.+)\.[0-9a-f]{32}", re.DOTALL)
"""The hidden name under which a file is made; see `_temporary`."""

_SUFFIXES: Final = (".tfrecord", ".tfrecord.gz")


@dataclass(frozen=True, slots=True)
class LocalStorage:
    """A folder of the local file system; `root` is absolute. It is made when the first file in it is."""

    root: str
    has_locks: ClassVar[bool] = True

    def open(self, path: str) -> BufferedReader:
        return open(self.path(path), "rb")

    def lies_at(self, path: str) -> bool:
        return os.path.lexists(self.path(path))

    def status(self, path: str) -> FileStatus | None:
        try:
            return _status(self.path(path))
        except (FileNotFoundError, NotADirectoryError):
            return None

    def entries(self, folder: str) -> Iterator[tuple[str, FileStatus]]:
        for name in self.list(folder):
            found = self.status(f"{folder}/{name}" if folder else name)
            if found is not None:
                yield name, found

    def tree(self, path: str) -> Iterator[FileStatus]:
        full = self.path(path)
        yield _status(full)
        for folder, folders, names in os.walk(full):
            yield from (_status(os.path.join(folder, name)) for name in (*folders, *names))

    def files_below(self, folder: str) -> Iterator[tuple[str, int]]:
        """Report a folder that is a link, or has a shard's name, like a file: to a glob it is one."""
        root = self.path(folder)
        for below, folders, files in os.walk(root, onerror=_refuse):
            if not folder and below == root:
                folders[:] = [name for name in folders if name != STAGING_FOLDER]
            odd = (name for name in folders if name.endswith(_SUFFIXES) or os.path.islink(os.path.join(below, name)))
            for name in (*files, *odd):
                full = os.path.join(below, name)
                yield os.path.relpath(full, root), os.lstat(full).st_size

    def path(self, path: str) -> str:
        return os.path.join(self.root, path) if path else self.root

    def create_part(self, path: str) -> DirectFile:
        full = self._with_folders(path)
        return DirectFile(_create(full), full)

    def assemble(self, path: str, ranges: Sequence[PartRange], base: str) -> None:
        with self._replacing(path) as temporary, _durable(temporary) as target:
            for part, start, end in ranges:
                append_range(target, self.path(f"{base}/{part.path}"), part.path, start.offset, end.offset)

    def concatenate(self, path: str, sources: Sequence[str]) -> None:
        with self._replacing(path) as temporary, _durable(temporary) as target:
            for name in sources:
                append_range(target, self.path(name), name, 0)

    def place(self, source: str, target: str) -> None:
        temporary = self._temporary(target)
        os.link(self.path(source), temporary)
        try:
            os.replace(temporary, self.path(target))
        finally:
            if os.path.exists(temporary):  # rename does nothing where both names were links to one file already
                os.unlink(temporary)

    def publish(self, source: str, target: str) -> bool:
        try:
            os.link(self.path(source), self._with_folders(target))
        except FileExistsError:
            return os.path.samefile(self.path(source), self.path(target))
        return True

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Link a synced temporary file: bare `O_EXCL` would leave a torn one on kill -9."""
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
        with self._replacing(path) as temporary:
            _write_synced(temporary, data)

    def read(self, path: str) -> bytes:
        with open(self.path(path), "rb") as file:
            return file.read()

    def size(self, path: str) -> int | None:
        full = self.path(path)
        return os.path.getsize(full) if os.path.isfile(full) and not os.path.islink(full) else None

    def list(self, folder: str) -> list[str]:
        try:
            return sorted(os.listdir(self.path(folder)))
        except (FileNotFoundError, NotADirectoryError):
            return []

    def sync(self, folder: str) -> None:
        _sync_folder(self.path(folder))

    def stated_crc32c(self, path: str) -> int | None:
        """Return None: a file system knows no checksums."""

    def stated_crcs(self, seen: Mapping[str, FileStatus]) -> dict[str, int | None]:
        return dict.fromkeys(seen)

    def crc32c(self, path: str) -> int:
        crc = 0
        with open(self.path(path), "rb") as file:
            while data := file.read(_READ_BYTES):
                crc = crc32c(data, crc)
        return crc

    def remove(self, path: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._own(path))

    def remove_seen(self, seen: Mapping[str, FileStatus]) -> set[str]:
        gone = set()
        for path, status in seen.items():
            found = self.status(path)
            if found is None or found.identity == status.identity:
                self.remove(path)
                gone.add(path)
        return gone

    def remove_unfinished(self, paths: Iterable[str]) -> None:
        """Remove what killed writers of these files have left beside them; the caller sees to it that none is alive."""
        names: dict[str, set[str]] = {}
        for path in paths:
            folder, name = os.path.split(path)
            names.setdefault(folder, set()).add(name)
        for folder, own in names.items():
            for found in self.list(folder):
                left = _TEMPORARY.fullmatch(found)
                if left is not None and left[1] in own:
                    self.remove(f"{folder}/{found}" if folder else found)

    def remove_if_empty(self, folder: str) -> None:
        with contextlib.suppress(OSError):  # it is not there, or another run put something into it
            os.rmdir(self.path(folder))

    def remove_tree(self, folder: str) -> None:
        """Remove the folder while another process may be doing the same."""
        full = self._own(folder)
        while os.path.lexists(full):
            with contextlib.suppress(FileNotFoundError), errors_named(full):
                shutil.rmtree(full)

    def remove_any(self, path: str) -> None:
        full = self.path(path)
        if os.path.isdir(full) and not os.path.islink(full):
            self.remove_tree(path)
        else:
            self.remove(path)

    def _own(self, path: str) -> str:
        """Return the absolute path of a file to make or remove, which no link leads out of the dataset's folder."""
        folder = self.root
        for name in path.split("/")[:-1]:
            folder = os.path.join(folder, name)
            if os.path.islink(folder):
                raise linked_folder(folder)
        return self.path(path)

    def _with_folders(self, path: str) -> str:
        full = self._own(path)
        _make_folders(os.path.dirname(full))
        return full

    def _temporary(self, path: str) -> str:
        full = self._with_folders(path)
        return os.path.join(os.path.dirname(full), f".{os.path.basename(full)}.{uuid.uuid4().hex}")

    @contextlib.contextmanager
    def _replacing(self, path: str) -> Iterator[str]:
        temporary = self._temporary(path)
        try:
            yield temporary
            os.rename(temporary, self.path(path))
        except BaseException:
            with contextlib.suppress(FileNotFoundError):  # it was not made
                os.unlink(temporary)
            raise
        self.sync(os.path.dirname(path))


def no_such_path(path: str, root: bytes) -> InputError:
    """Return the error of a path that names nothing, with the nearest name where its first missing step is."""
    said = f"{printable_path(path)}: no such file or folder (looked in {printable_path(root)})"
    folder, missing = path, ""
    while folder and not os.path.lexists(os.path.join(root, os.fsencode(folder))):
        folder, missing = os.path.split(folder.rstrip("/"))
    if missing and not glob.has_magic(missing):
        with contextlib.suppress(OSError):
            near = nearest(missing, sorted(map(os.fsdecode, os.listdir(os.path.join(root, os.fsencode(folder))))))
            said += f'; did you mean "{printable_path(os.path.join(folder, near))}"?' if near else ""
    return InputError(said)


def linked_folder(path: str) -> TargetError:
    return TargetError(f"{printable_path(path)}: a link; a dataset's folders are its own: move what it leads to here")


def _status(path: str) -> FileStatus:
    found = os.lstat(path)
    return FileStatus(
        size=found.st_size,
        changed=max(found.st_mtime, found.st_ctime),
        identity=(found.st_dev, found.st_ino),
        freed=found.st_size if found.st_nlink == 1 else 0,
        is_file=stat.S_ISREG(found.st_mode),
        is_folder=stat.S_ISDIR(found.st_mode),
    )


def _refuse(error: OSError) -> None:
    raise InputError(
        f"{printable_path(error.filename)}: cannot be read: {error.strerror}; what is there is unknown"
    ) from error


def _create(path: str) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)


@contextlib.contextmanager
def _durable(path: str) -> Iterator[DirectFile]:
    file = DirectFile(_create(path), path)
    try:
        yield file
        file.close()
        file.wait()
    except BaseException:
        file.abandon()
        raise


def _make_folders(folder: str) -> None:
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


# A worker proves that it sees the folder that the launcher writes to, before it writes there itself.
#
#     launcher   writes .staging/<run>/plan.json
#     worker     looks for it: one look for a task, and none in a store, which is the same from everywhere
#
# A worker without the folder would make one, fill it, and report a success that the launcher cannot see.
