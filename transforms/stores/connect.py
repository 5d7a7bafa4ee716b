"""The client of a bucket: one for each process, made when it is first asked for, with the environment's credentials."""

from __future__ import annotations

import os
import threading

from .common.object_store import ObjectStore
from .common.store_url import StoreUrl

_stores: dict[tuple[int, str, str], ObjectStore] = {}
_lock = threading.Lock()


def store_at(url: StoreUrl) -> ObjectStore:
    """Return the store in which a place is; no request is made.

    Raises:
        StoreAccessError: the store's client is not installed, or finds no credentials.
    """
    with _lock:
        key = (os.getpid(), url.scheme, url.bucket)
        if key not in _stores:
            _stores[key] = _connected(url)
        return _stores[key]


def _connected(url: StoreUrl) -> ObjectStore:
    if url.scheme == "s3":
        from .s3.store import connect_s3

        return connect_s3(url.bucket)
    from .gcs.store import connect_gcs

    return connect_gcs(url.bucket)
