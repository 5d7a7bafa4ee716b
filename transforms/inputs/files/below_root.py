"""Read files whose paths are data, as cells of a table are: whole, below a root folder, and never outside it.

    root/                the folder that paths start at
    ├── a/1.wav          "a/1.wav"
    └── b.wav -> /x.wav  a link that leaves the root, as "../x.wav", "/x.wav" and URLs do: OUTSIDE_ROOT

    datasets--me--pets/snapshots/1f2e/b.wav -> ../../blobs/3c4d    a cache of Hugging Face's hub: its own file

Nothing is opened but a regular file: a named pipe would block, and a device has no end.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from typing import Final

from ...errors import SourceError
from ...format.wording.hints import Set
from ...format.wording.printable import printable, printable_path
from .file_names import FORMATS
from .open_file import not_here

MACHINE_ERRORS: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ESTALE, errno.ETIMEDOUT})
"""The machine's trouble and not the file's: another run may succeed, so it must not become a reject."""

OPEN_FLAGS: Final = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
"""A link is opened only after it was resolved, and a named pipe that took a file's place cannot block."""

_MISSING: Final = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG})
_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")
_SNAPSHOT: Final = re.compile(rb"(.*/(?:datasets|models|spaces)--[^/]+)/snapshots/[^/]+(?:/|\Z)", re.DOTALL)
"""A snapshot in a cache of the hub holds links to the blobs of its repository: huggingface_hub, `file_download.py`."""

_KINDS: Final = {
    stat.S_IFDIR: "a folder", stat.S_IFIFO: "a named pipe", stat.S_IFSOCK: "a socket", stat.S_IFBLK: "a device",
    stat.S_IFCHR: "a device",
}  # fmt: skip


class FileProblem(Exception):
    """Why one file is not read; no error of the tree, since it always becomes a reject with this code."""

    def __init__(self, code: str, message: str, expected: str = "a file below the root") -> None:
        super().__init__(message)
        self.code = code
        self.expected = expected


class FilesBelow:
    """The files below `root`, of at most `most` bytes each; `shown` is how messages call the root."""

    def __init__(self, root: bytes, most: int, shown: str) -> None:
        self._root = root
        self._most = most
        self._shown = shown
        self._folders: dict[bytes, bytes | None] = {}
        self._last: tuple[str, bytes] | None = None  # rows often name one file several times, one after the other

    def read(self, path: str) -> bytes:
        """Return the bytes of a file whose path is relative to the root.

        Raises `FileProblem` with a code, `SourceError` where the file changes while it is read, the machine is out of
        something, or it has not the root.
        """
        if self._last is None or self._last[0] != path:
            self._check_text(path)
            try:
                self._last = path, self._read(path)
            except OSError as error:
                raise self._problem_of(error, path) from None
        return self._last[1]

    def _check_text(self, path: str) -> None:
        shown = printable(path)
        if not path or "\0" in path:
            what = "the path is empty" if not path else f'"{shown}" has a NUL, which no path has'
            raise FileProblem("MISSING_FILE", f"{what}; name a file, or make it null")
        if _URL.match(path):
            fix = f"copy the file below {self._shown}, and name that"
            raise FileProblem("OUTSIDE_ROOT", f'"{shown}" is a URL, which is not fetched; {fix}')
        if path.startswith("/") or ".." in path.split("/"):
            what = "is an absolute path" if path.startswith("/") else 'has ".." in it'
            raise FileProblem("OUTSIDE_ROOT", f'"{shown}" {what}; write it as it is below {self._shown}')

    def _read(self, path: str) -> bytes:
        folder, _, name = path.encode().rpartition(b"/")
        real = self._real_folder(folder)
        if real is None:
            raise self._outside(path)
        if name in (b"", b"."):
            raise self._not_a_file(path, stat.S_IFDIR)
        full = os.path.join(real, name)
        status = os.lstat(full)
        if stat.S_ISLNK(status.st_mode):
            status = os.stat(full)  # one that leads nowhere is missing, wherever it points
            full = os.path.realpath(full)
            if not _is_below(full, self._real_root()):
                raise self._outside(path)
        if not stat.S_ISREG(status.st_mode):
            raise self._not_a_file(path, stat.S_IFMT(status.st_mode))
        if status.st_size > self._most:
            raise FileProblem(
                "FIELD_TOO_LARGE",
                f'"{printable(path)}" has {status.st_size:,} bytes, and a value has at most {self._most:,}; raise '
                f"limits.field_bytes (and limits.record_bytes) if it is meant",
                f"at most {self._most} bytes",
            )
        return self._bytes_of(full, status, path)

    def _bytes_of(self, full: bytes, before: os.stat_result, path: str) -> bytes:
        size = before.st_size
        descriptor = os.open(full, OPEN_FLAGS)
        try:
            data = os.read(descriptor, size + 1)  # one more, so that a file that has grown shows
            while len(data) < size and (more := os.read(descriptor, size + 1 - len(data))):
                data += more
            after = os.fstat(descriptor)
        finally:
            os.close(descriptor)
        if len(data) != size or (after.st_size, after.st_mtime_ns) != (size, before.st_mtime_ns):
            raise SourceError(printable(path), "changed while it was read; run again when it is at rest")
        return data

    def _real_folder(self, folder: bytes) -> bytes | None:
        """Return a folder below the root with its links resolved, None if it is not below it then."""
        if folder not in self._folders:
            real = os.path.realpath(os.path.join(self._root, folder))
            root = real if not folder else self._real_root()
            self._folders[folder] = real if _is_below(real, root) else None
        return self._folders[folder]

    def _real_root(self) -> bytes:
        root = self._real_folder(b"")
        assert root is not None
        return root

    def _outside(self, path: str) -> FileProblem:
        text = f'"{printable(path)}" is a link, or below one, that leads out of {self._shown}; copy its target there'
        return FileProblem("OUTSIDE_ROOT", text)

    def _not_a_file(self, path: str, kind: int) -> FileProblem:
        what = _KINDS.get(kind, "no regular file")
        text = f'"{printable(path)}" is {what}; only regular files are read: fix the path'
        return FileProblem("NOT_A_FILE", text, "a regular file")

    def _problem_of(self, error: OSError, path: str) -> Exception:
        reason = error.strerror or type(error).__name__
        if error.errno in MACHINE_ERRORS:
            return SourceError(printable(path), f"cannot be read: {reason}; run again")
        if error.errno not in _MISSING:
            text = f'"{printable(path)}" cannot be read: {reason}; look at its permissions'
            return FileProblem("UNREADABLE", text, "a readable file")
        if is_missing_or_empty(self._root):
            return SourceError(printable_path(self._root), not_here(error, self._root))
        suffix = self._suffix_of(path)
        if suffix:
            text = (
                f'"{printable(path)}" is not below {self._shown}, and "{printable(path + suffix)}" is; add the suffix'
            )
            return FileProblem("MISSING_FILE", f"{text}: {Set('schema.files_suffix', suffix)}")
        slashes = ', and a path has "/" between its folders' if "\\" in path else ""
        text = (
            f'"{printable(path)}" is not below {self._shown}: {reason}{slashes}; restore it, fix the path, or name '
            f"another root: {Set('schema.files_root', 'FOLDER')}"
        )
        return FileProblem("MISSING_FILE", text)

    def _suffix_of(self, path: str) -> str:
        """Return the suffix with which there is a picture of a name, "" if there is none."""
        full = os.path.join(self._root, os.fsencode(path))
        suffixes = (end for end in FORMATS["images"].suffixes if os.path.isfile(full + end.encode()))
        return next(suffixes, "")


def is_missing_or_empty(folder: bytes) -> bool:
    """Return whether a folder is missing, or holds nothing, like one where nothing is mounted."""
    try:
        with os.scandir(folder) as entries:
            return next(entries, None) is None
    except FileNotFoundError:
        return True
    except OSError:
        return False


def is_inside(path: bytes, root: bytes) -> bool:
    return _is_below(os.path.realpath(path), os.path.realpath(root))


def _is_below(real: bytes, real_root: bytes) -> bool:
    if real == real_root or real.startswith(real_root.rstrip(b"/") + b"/"):
        return True
    cache = _SNAPSHOT.match(real_root)
    return cache is not None and real.startswith(cache[1] + b"/blobs/")
