"""The work of unfinished runs in a dataset's folder: it is not removed automatically, since it may be resumed."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import Final

from ...format.manifest.naming import STAGING_FOLDER
from ..stage.run_lock import is_held
from ..storage.contract import Storage
from .garbage import staging_folders

_RUN_ID: Final = re.compile(r"[0-9a-f]{16}")


def staged_by_dead_runs(storage: Storage, besides: str = "") -> int:
    """Return the bytes that runs which are dead have staged, `besides` the run of this name; 0 in a store.

    In a store nobody can tell which runs are dead, and asking takes requests.
    """
    return sum(_sizes(storage, besides)) if storage.has_locks else 0


def _sizes(storage: Storage, besides: str) -> Iterator[int]:
    names = [name for name in storage.list(STAGING_FOLDER) if _RUN_ID.fullmatch(name) and name != besides]
    committed = staging_folders(storage.root) if names else set()
    for name in names:
        path = f"{STAGING_FOLDER}/{name}"
        if path not in committed and not is_held(storage, name):
            with contextlib.suppress(FileNotFoundError):  # it is gone: its run, or a gc, has ended meanwhile
                yield sum(status.freed for status in storage.tree(path) if status.is_file)
