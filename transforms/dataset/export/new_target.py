"""A file or a folder that an export makes: it appears whole or not at all, and takes nobody's place by accident."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from ...errors import TargetError
from ...format.wording.hints import Add
from ...format.wording.printable import printable_path
from ...stores.common.store_url import is_store_url
from ..storage.incomplete_file import incomplete_file, incomplete_folder


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
