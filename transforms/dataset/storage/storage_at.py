"""The storage of a path or URL: which of the two it is, is known here only."""

from __future__ import annotations

import os

from ...stores.common.store_url import is_store_url
from .contract import Storage
from .local_storage import LocalStorage
from .object_storage import ObjectStorage


def storage_at(root: str | os.PathLike[str]) -> Storage:
    """Return the folder that a path or URL names.

    >>> storage_at("s3://bucket/out/").root, storage_at("/data/out").root
    ('s3://bucket/out', '/data/out')
    """
    text = os.fspath(root)
    return ObjectStorage(text.rstrip("/")) if is_store_url(text) else LocalStorage(os.path.abspath(text))


def absolute(root: str) -> str:
    return storage_at(root).root
