"""The operations of an object store. Both stores keep this contract; one suite of tests runs on both.

    an object      appears whole or not at all, and never changes: it is replaced by another one of the same key
    if_absent      of any number of writers one wins, and learns that it did, also where the reply was lost
    failures       that are transient (503, 429, lost connections) are retried, and then reported in one line

A reply can be lost after the store has acted. So each conditional write bears a mark of its own in the object's
metadata: a writer that gets the answer "already exists" checks whether it wrote that object itself.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, Final, Protocol

MARK: Final = "shardmill-write"
"""The name of the mark in an object's metadata."""


class ChangedObject(FileNotFoundError):
    """The object of a version is not there any more: another one has its key, or none."""


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """The metadata of an object in a store.

    `version` tells this content from any other that the key had or gets (S3's etag, GCS's generation). `crc32c` is the
    store's own checksum of the whole content; None where it reports none (as lists of S3 do). `modified` is in seconds
    since 1970. `mark` is that of the write that made it, if `head` was asked.
    """

    key: str
    size: int
    version: str
    modified: float
    crc32c: int | None = None
    mark: str | None = None


@dataclass(frozen=True, slots=True)
class Level:
    """One level of a bucket's tree: objects directly below a prefix, and the longer prefixes, which end with `/`."""

    objects: tuple[ObjectInfo, ...]
    prefixes: tuple[str, ...]

    @classmethod
    def of(cls, pages: Iterable[Level]) -> Level:
        """Return a level that came in pages; a prefix may be on several of them."""
        objects: list[ObjectInfo] = []
        prefixes: dict[str, None] = {}
        for page in pages:
            objects += page.objects
            prefixes.update(dict.fromkeys(page.prefixes))
        return cls(tuple(objects), tuple(sorted(prefixes)))


def number_of(version: str) -> int:
    """Return a number of 63 bits that stands for a version, where there are too many of them to keep each as a text.

    A generation is one already; of an etag it is a digest.
    """
    if version.isdecimal():
        return int(version)
    return int.from_bytes(hashlib.sha256(version.encode()).digest()[:8], "big") >> 1


class Upload(Protocol):
    """An object that is being written piece by piece; nothing of it can be seen before `finish`."""

    def write(self, data: memoryview) -> None:
        """Append bytes; they are copied or sent before this returns."""
        ...

    def finish(self) -> None:
        """Complete the object, in place of any that has its key.

        Raises:
            StoreError: the store holds other bytes than were sent, by its own checksum.
        """
        ...

    def abandon(self) -> None:
        """Leave nothing of it; does nothing after `finish`."""
        ...


class ObjectStore(Protocol):
    """One bucket; safe to use from several threads. Keys that do not exist are `FileNotFoundError`s where read.

    Raises, everywhere:
        StoreAccessError: no credentials, no such bucket, no permission.
        StoreError: the store could not be reached, or failed at each of several tries.
    """

    scheme: str
    bucket: str
    conditions: ClassVar[dict[str, str]]
    """The names that the store has for the conditions `if_absent` and `if_version`, and for `copy_if_absent`."""

    def head(self, key: str) -> ObjectInfo | None:
        """Return what the store says of an object, or None if there is none."""
        ...

    def walk(self, prefix: str) -> Iterator[ObjectInfo]:
        """Yield the objects whose keys begin with a prefix, sorted by the bytes of their keys."""
        ...

    def level(self, prefix: str) -> Level:
        """Return what is directly below a prefix, which is empty or ends with `/`."""
        ...

    def level_pages(self, prefix: str) -> Iterator[Level]:
        """Yield the same page by page: a level may have ten million objects."""
        ...

    def read(self, key: str, start: int = 0, end: int | None = None, *, version: str | None = None) -> bytes:
        """Return the bytes of an object from `start` up to `end`, or its end; with `version`, of no other content.

        Raises:
            FileNotFoundError: there is no such object; as a `ChangedObject`, none of this version.
        """
        ...

    def read_numbered(self, key: str, size: int, number: int) -> bytes:
        """Return the whole of an object of `size` bytes, of the version with this `number_of`.

        Raises:
            FileNotFoundError: there is no such object; as a `ChangedObject`, none of this version.
        """
        ...

    def put(
        self, key: str, data: bytes | memoryview, *, if_absent: bool = False, if_version: str | None = None
    ) -> bool:
        """Make an object of bytes, checked by their CRC32C on arrival; return whether this very call made it.

        `if_absent` makes it where there is none of its key, `if_version` where the one there is of that version.
        """
        ...

    def upload(self, key: str) -> Upload:
        """Begin to write an object of any size."""
        ...

    def copy(self, source: str, target: str, *, if_absent: bool = False) -> bool:
        """Have the store copy an object of any size, and compare both checksums; return whether it was copied.

        Raises:
            FileNotFoundError: there is no such source.
        """
        ...

    def delete(self, keys: Iterable[str]) -> None:
        """Remove objects; those that are not there are no matter."""
        ...

    def delete_seen(self, seen: Mapping[str, str]) -> set[str]:
        """Remove objects, by key, that are still of the versions that were seen; return the keys of those that stay.

        Stores that do not keep the condition (of S3's kind, other than Amazon's) remove them all.
        """
        ...
