"""Parse the URL of an object: `s3://bucket/key`, `gs://bucket/key`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from ..errors import StoreAccessError
from ..format.wording.printable import printable_path

# The stores: a line for each; what differs between them beyond it is in the module that the line names.
#
#     "az": StoreEntry(".azure", "azure", "run az login"),
#
# Nothing is imported before it is asked for: a URL can be checked without any client.


_LONGEST: Final = 32
"""No scheme is longer: a path of thousands of bytes need not be searched."""

_BUCKET: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,221}")
"""What S3 and Google Cloud Storage allow, the names of access points on S3 included."""


@dataclass(frozen=True, slots=True)
class StoreEntry:
    """The line of a store.

    module         has its `connect`, which takes a bucket: a name relative to `transforms.stores`, or an absolute one
    extra          installs its client
    login          how the environment gets credentials
    bucket         what the name of a bucket must match
    lists_crc32c   a list has the CRC32C of each object, which says more of its content than a version does
    in_tensorflow  TensorFlow reads the store
    """

    module: str
    extra: str
    login: str
    bucket: re.Pattern[str] = _BUCKET
    lists_crc32c: bool = False
    in_tensorflow: bool = True


STORES: Final[dict[str, StoreEntry]] = {
    "s3": StoreEntry(
        ".s3",
        "aws",
        "set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or run where a role is attached",
        in_tensorflow=False,
    ),
    "gs": StoreEntry(
        ".gcs",
        "gcp",
        "run gcloud auth application-default login, or set GOOGLE_APPLICATION_CREDENTIALS, or run where a service "
        "account is attached",
        lists_crc32c=True,
    ),
}
"""All stores, by the scheme of their URLs, in the order in which messages name them."""


def scheme_of(text: str) -> str | None:
    """Return the scheme of a URL of a store, None for a path and for URLs of anything else.

    >>> scheme_of("s3://bucket/a.csv"), scheme_of("data/a.csv"), scheme_of("https://host/a.csv")
    ('s3', None, None)
    """
    scheme, sign, _ = text[:_LONGEST].partition("://")
    return scheme if sign and scheme in STORES else None


def places(path: str = "bucket/path") -> str:
    """Return the URLs that a message proposes.

    >>> places()
    's3://bucket/path or gs://bucket/path'
    """
    return " or ".join(f"{scheme}://{path}" for scheme in STORES)


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
