"""A file or a folder that appears whole or not at all: it is hidden beside its name until then.

A hidden one is locked while its writer lives. What a killed writer left has no lock, and the next writer of the same
name removes it.
"""

from __future__ import annotations

import fcntl
import io
import os
import re
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, BinaryIO, Final

from ...errors import TargetError
from ...format.wording.hints import Add
from ...format.wording.printable import printable_path
from ...stores.store_url import is_store_url
from .direct_file import errors_named

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
