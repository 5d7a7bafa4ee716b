"""The client of a bucket: one for each process, made when it is first asked for, with the environment's credentials."""

from __future__ import annotations

import os
import threading
from importlib import import_module

from .object_store import ObjectStore
from .store_url import STORES, StoreUrl

_stores: dict[tuple[int, str, str], ObjectStore] = {}
_lock = threading.Lock()


def store_at(url: StoreUrl) -> ObjectStore:
    """Return the store in which a place is; no request is made."""
    with _lock:
        key = (os.getpid(), url.scheme, url.bucket)
        if key not in _stores:
            _stores[key] = import_module(STORES[url.scheme].module, __package__).connect(url.bucket)
        return _stores[key]


def check_environment(scheme: str) -> None:
    """Check that the environment has the client of a store, and credentials for it; no request is made."""
    import_module(STORES[scheme].module, __package__).connect("bucket")
