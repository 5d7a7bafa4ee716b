"""Where an object is: `s3://bucket/key`, `gs://bucket/key`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from ...errors import StoreAccessError
from ...format.wording.printable import printable_path
from .schemes import STORES, places, scheme_of

_URL: Final = re.compile(r"([a-z0-9]+)://([^/]*)(?:/(.*))?", re.DOTALL)


@dataclass(frozen=True, slots=True, order=True)
class StoreUrl:
    """A place in a store: an object, or the prefix of several. Keys are as the store has them, and never decoded."""

    scheme: str
    bucket: str
    key: str = ""

    def __str__(self) -> str:
        return f"{self.scheme}://{self.bucket}/{self.key}"

    def below(self, path: str) -> StoreUrl:
        """Return the place of a path below this one.

        >>> str(parse_store_url("s3://bucket/out/").below("manifest.json"))
        's3://bucket/out/manifest.json'
        """
        folder = self.key.rstrip("/")
        return StoreUrl(self.scheme, self.bucket, f"{folder}/{path}" if folder and path else folder or path)


def is_store_url(text: object) -> bool:
    """Return whether a text names a place in a store: one of another scheme, or a path, does not.

    >>> is_store_url("s3://bucket/a.csv"), is_store_url("data/a.csv"), is_store_url("https://host/a.csv")
    (True, False, False)
    """
    return isinstance(text, str) and scheme_of(text) is not None


def parse_store_url(text: str) -> StoreUrl:
    """Return the place that a URL names; raise `StoreAccessError` if it names none, or holds credentials.

    >>> parse_store_url("gs://bucket/data/a.csv")
    StoreUrl(scheme='gs', bucket='bucket', key='data/a.csv')
    """
    shown = printable_path(text)
    match = _URL.fullmatch(text)
    if match is None or match[1] not in STORES:
        raise StoreAccessError(f"{shown}: no place in a store; write {places()}")
    scheme, bucket, key = match.groups()
    if "@" in bucket:
        raise StoreAccessError(
            f"{shown}: credentials have no place in a URL; leave them to the environment (a profile, a role, variables)"
        )
    if STORES[scheme].bucket.fullmatch(bucket) is None:
        raise StoreAccessError(f"{shown}: no bucket can have this name; write {scheme}://bucket/path")
    return StoreUrl(scheme, bucket, key or "")
