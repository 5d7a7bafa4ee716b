"""Prove that a worker sees the folder that the launcher writes to, before it writes there itself.

    launcher   writes .staging/<run>/plan.json
    worker     looks for it: one look for a task, and none in a store, which is the same from everywhere

A worker without the folder would make one, fill it, and report a success that the launcher cannot see.
"""

from __future__ import annotations

import socket

from ...errors import UnseenError
from ...format.wording.printable import printable_path
from ...stores.common.store_url import places
from .contract import Storage


def check_shared(storage: Storage, proof: str | None) -> None:
    """Look for a file that the launcher has written; None where it wrote none."""
    if proof is not None and not storage.lies_at(proof):
        raise unseen(storage, proof)


def unseen(storage: Storage, path: str) -> UnseenError:
    return UnseenError(
        f"{printable_path(storage.root)}: the worker on {socket.gethostname()} does not see this folder as the "
        f"launching machine does: {path} is not there. Write to a folder that all workers have under this path, on a "
        f"file system that they share, or to {places(path='')}"
    )
