"""The operations of an object store. Both stores keep this contract; one suite of tests runs on both.

    an object      appears whole or not at all, and never changes: it is replaced by another one of the same key
    if_absent      of any number of writers one wins, and learns that it did, also where the reply was lost
    failures       that are transient (503, 429, lost connections) are retried, and then reported in one line

A reply can be lost after the store has acted. So each conditional write bears a mark of its own in the object's
metadata: a writer that gets the answer "already exists" checks whether it wrote that object itself.
"""

from __future__ import annotations

import errno
import hashlib
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar, Final, Protocol, TypeVar

from ..errors import StoreError
from . import failures
from .failures import FIRST_PAUSE, retried
from .piece_sender import at_once
from .store_url import STORES, StoreUrl

T = TypeVar("T")

MARK: Final = "shardmill-write"


class ChangedObject(FileNotFoundError):
    """The object of a version is not there any more: another one has its key, or none."""


class PreconditionFailed(Exception):
    """The condition of a request does not hold."""


class PastEnd(Exception):
    """The range that was asked for begins after the object's end."""


@dataclass(frozen=True, slots=True)
class StoreLimits:
    """The most keys that a store lists in one request, and the first pause after a transient failure, in seconds."""

    page_keys: int = 1000
    first_pause: float = FIRST_PAUSE


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

    def finish(self) -> None:
        """Complete the object, in place of any that has its key.

        Raises:
            StoreError: the store holds other bytes than were sent, by its own checksum.
        """

    def abandon(self) -> None:
        """Leave nothing of it; does nothing after `finish`."""


class ObjectStore(ABC):
    """One bucket; safe to use from several threads. Keys that do not exist are `FileNotFoundError`s where read.

    Raises, everywhere:
        StoreAccessError: no credentials, no such bucket, no permission.
        StoreError: the store could not be reached, or failed at each of several tries.
    """

    scheme: str
    removed_at_once: ClassVar[int]
    """The most objects that the store removes in one request."""

    conditions: ClassVar[dict[str, str]]
    """The names that the store has for the conditions `if_absent` and `if_version`, and for `copy_if_absent`."""

    def __init__(self, bucket: str) -> None:
        self.bucket = bucket
        self.limits = StoreLimits()

    @abstractmethod
    def head(self, key: str) -> ObjectInfo | None:
        """Return what the store says of an object, or None if there is none."""

    @abstractmethod
    def walk(self, prefix: str) -> Iterator[ObjectInfo]:
        """Yield the objects whose keys begin with a prefix, sorted by the bytes of their keys."""

    def level(self, prefix: str) -> Level:
        """Return what is directly below a prefix, which is empty or ends with `/`."""
        return Level.of(self.level_pages(prefix))

    @abstractmethod
    def level_pages(self, prefix: str) -> Iterator[Level]:
        """Yield the same page by page: a level may have ten million objects."""

    @abstractmethod
    def read(self, key: str, start: int = 0, end: int | None = None, *, version: str | None = None) -> bytes:
        """Return the bytes of an object from `start` up to `end`, or its end; with `version`, of no other content.

        Raises:
            FileNotFoundError: there is no such object; as a `ChangedObject`, none of this version.
        """

    @abstractmethod
    def read_numbered(self, key: str, start: int, end: int, number: int) -> bytes:
        """Return bytes of an object that has them, of the version with this `number_of`.

        Raises:
            FileNotFoundError: there is no such object; as a `ChangedObject`, none of this version.
        """

    @abstractmethod
    def put(
        self, key: str, data: bytes | memoryview, *, if_absent: bool = False, if_version: str | None = None
    ) -> bool:
        """Make an object of bytes, checked by their CRC32C on arrival; return whether this very call made it.

        `if_absent` makes it where there is none of its key, `if_version` where the one there is of that version.
        """

    @abstractmethod
    def upload(self, key: str) -> Upload:
        """Begin to write an object of any size."""

    @abstractmethod
    def copy(self, source: str, target: str, *, if_absent: bool = False) -> bool:
        """Have the store copy an object of any size, and compare both checksums; return whether it was copied.

        Raises:
            FileNotFoundError: there is no such source.
        """

    def delete(self, keys: Iterable[str]) -> None:
        """Remove objects; those that are not there are no matter."""
        self._remove([(key, None) for key in keys])

    def delete_seen(self, seen: Mapping[str, str]) -> set[str]:
        """Remove objects, by key, that are still of the versions that were seen; return the keys of those that stay.

        Stores that do not keep the condition (of S3's kind, other than Amazon's) remove them all.
        """
        return self._remove(list(seen.items()))

    @abstractmethod
    def remove_some(self, objects: Sequence[tuple[str, str | None]]) -> set[str]:
        """Remove some objects in one request, by key, each if it is of a version (None: of any); return what stays."""

    @abstractmethod
    def failure_of(self, error: Exception, key: str, action: str) -> Exception | None:
        """Return what an error of the client means, or None if it is none."""

    def _remove(self, objects: Sequence[tuple[str, str | None]]) -> set[str]:
        size = min(self.removed_at_once, self.limits.page_keys)
        batches = [objects[i : i + size] for i in range(0, len(objects), size)]
        return set[str]().union(*at_once(self.remove_some, batches))

    def found(self, key: str) -> ObjectInfo:
        """Return what the store says of an object; raise `FileNotFoundError` if there is none."""
        found = self.head(key)
        if found is None:
            raise FileNotFoundError(errno.ENOENT, "no such object", str(self.url(key)))
        return found

    def changed(self, key: str) -> ChangedObject:
        return ChangedObject(errno.ENOENT, "the object has changed", str(self.url(key)))

    def is_marked(self, key: str, mark: str) -> bool:
        found = self.head(key)
        return found is not None and found.mark == mark

    def check(self, key: str, sent: int | None, stored: int | None) -> None:
        """Compare the checksums of what was sent and what the store has, where both are known."""
        if sent is not None and stored is not None and sent != stored:
            raise failures.corrupted(self.url(key), sent, stored)

    def url(self, key: str) -> StoreUrl:
        return StoreUrl(self.scheme, self.bucket, key)

    def call(self, action: str, key: str, request: Callable[..., T], /, **arguments: Any) -> T:
        """Return the answer to a request on this bucket, repeated after a transient failure.

        Raises:
            FileNotFoundError: there is no such object.
            PreconditionFailed: the request's condition does not hold.
            StoreAccessError: the store lets nobody in.
            StoreError: it failed at each try, or refuses for another reason.
        """

        def once() -> T:
            try:
                return request(**arguments)
            except Exception as error:
                failure = self.failure_of(error, key, action)
                if failure is None:
                    raise
                raise failure from error

        return self.retried(key, once)

    def retried(self, key: str, once: Callable[[], T]) -> T:
        def refused(cause: Exception) -> StoreError:
            return failures.unreachable(self.url(key), _reason(cause))

        return retried(once, refused, self.limits.first_pause)


def _reason(cause: Exception) -> str:
    return str(cause) if isinstance(cause, StoreError) else type(cause).__name__


# The client of a bucket: one for each process, made when it is first asked for, with the environment's credentials.


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
