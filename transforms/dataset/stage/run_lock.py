"""Lock a staging folder, so that one run at a time works in it.

The same source and config always stage in the same folder, which a run clears when it begins: a second one at the
same time would take the parts away from under the first. The kernel lets go of the lock when its process ends, however
it ends. It holds among the processes of one machine, where runs are launched; it is not part of the commit, which is
safe without it. Stores have no locks: there each run has a folder of its own.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from collections.abc import Iterator
from typing import Final

from ...errors import TargetError
from ...format.manifest.naming import STAGING_FOLDER
from ...format.wording.printable import printable_path
from ..storage.contract import Storage
from ..storage.manifest_files import check_own_folders
from .spec import DatasetSpec

_FLAGS: Final = os.O_CLOEXEC | os.O_NOFOLLOW


@contextlib.contextmanager
def hold_run(spec: DatasetSpec, *, wait: bool = False) -> Iterator[None]:
    """Hold the staging folder of a run from before `prepare_target` until it is published; with `wait`, until it can.

    Without `wait`, another process that holds it is a `TargetError`.
    """
    if not spec.storage.has_locks:  # its folder is its own: see `decisions.md`
        yield
        return
    check_own_folders(spec.path)
    storage, path = spec.storage, f"{spec.storage.path(spec.staging)}.lock"
    try:
        file = _locked(path, wait=wait)
    except BlockingIOError as error:
        raise TargetError(
            f"{spec.path}: another process is converting the same source with the same config there: let it end, or "
            f"choose another folder (-o)"
        ) from error
    except OSError as error:
        raise TargetError(f"{spec.path}: cannot be written: {error.strerror}; choose another folder (-o)") from error
    del spec  # it lists all inputs
    try:
        yield
    finally:
        _unlock(storage, path, file)


@contextlib.contextmanager
def hold_sidecars(storage: Storage) -> Iterator[None]:
    """Wait until nobody else replaces sidecars: of two generations at once the older must not come last."""
    if not storage.has_locks:  # versions are compared there: see `publish`
        yield
        return
    check_own_folders(storage.root)
    path = storage.path(f"{STAGING_FOLDER}/sidecars.lock")
    file = _locked(path, wait=True)
    try:
        yield
    finally:
        _unlock(storage, path, file)


@contextlib.contextmanager
def hold_if_dead(storage: Storage, run_id: str) -> Iterator[bool]:
    """Return whether no process holds the staging folder of a run, and hold it if so.

    Where there are no locks nobody can tell, and it might be held.
    """
    if not storage.has_locks:
        yield False
        return
    path = storage.path(f"{STAGING_FOLDER}/{run_id}.lock")
    try:
        file = _locked(path, wait=False)
    except BlockingIOError:
        yield False
        return
    try:
        yield True
    finally:
        _unlock(storage, path, file)


def is_held(storage: Storage, run_id: str) -> bool:
    """Return whether a process of this machine holds the staging folder of a run, without making anything."""
    if not storage.has_locks:
        return False
    try:
        file = os.open(storage.path(f"{STAGING_FOLDER}/{run_id}.lock"), os.O_RDONLY | _FLAGS)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ELOOP):
            return False
        raise
    try:
        return _is_locked(file)
    finally:
        os.close(file)


def _is_locked(file: int) -> bool:
    """Return whether another process holds the lock of an open file.

    To ask is to share the lock for that moment; `_locked` does not confuse that with holding it.
    """
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False


def _unlock(storage: Storage, path: str, file: int) -> None:
    os.unlink(path)
    os.close(file)
    storage.remove_if_empty(STAGING_FOLDER)


def _locked(path: str, *, wait: bool) -> int:
    """Return the open and locked file of that name; a holder that ends removes the name it held."""
    while True:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        try:
            file = os.open(path, os.O_RDWR | os.O_CREAT | _FLAGS, 0o666)
        except FileNotFoundError:  # another run ended, and took the empty folder away meanwhile
            continue
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise TargetError(f"{printable_path(path)}: a link; a lock of Shardmill is a file: remove it") from None
            raise
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            if os.path.exists(path) and os.path.samestat(os.fstat(file), os.stat(path)):
                return file
        except BlockingIOError:
            if _is_locked(file):
                os.close(file)
                raise
        except OSError:
            os.close(file)
            raise
        os.close(file)  # its holder removed it, or somebody asked who holds it: lock the one that has the name now
