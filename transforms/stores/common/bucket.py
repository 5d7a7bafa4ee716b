"""The common part of requests to one bucket, in either store."""

from __future__ import annotations

import errno
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from ...errors import StoreError
from . import failures
from .object_store import ChangedObject, Level, ObjectInfo
from .piece_sender import at_once
from .retries import FIRST_PAUSE, retried
from .store_url import StoreUrl

T = TypeVar("T")


class PreconditionFailed(Exception):
    """The condition of a request does not hold."""


class PastEnd(Exception):
    """The range that was asked for begins after the object's end."""


@dataclass(frozen=True, slots=True)
class StoreLimits:
    """The most keys that a store lists in one request, and the first pause after a transient failure, in seconds."""

    page_keys: int = 1000
    first_pause: float = FIRST_PAUSE


class Bucket(ABC):
    """A bucket, `scheme://bucket`; see `ObjectStore`."""

    scheme: str
    removed_at_once: ClassVar[int]
    """The most objects that the store removes in one request."""

    def __init__(self, bucket: str) -> None:
        self.bucket = bucket
        self.limits = StoreLimits()

    @abstractmethod
    def head(self, key: str) -> ObjectInfo | None:
        """Return what the store says of an object, or None if there is none."""

    @abstractmethod
    def level_pages(self, prefix: str) -> Iterator[Level]:
        """Yield what is directly below a prefix, page by page."""

    @abstractmethod
    def remove_some(self, objects: Sequence[tuple[str, str | None]]) -> set[str]:
        """Remove some objects in one request, by key, each if it is of a version (None: of any); return what stays."""

    @abstractmethod
    def failure_of(self, error: Exception, key: str, action: str) -> Exception | None:
        """Return what an error of the client means, or None if it is none."""

    def level(self, prefix: str) -> Level:
        """Return what is directly below a prefix."""
        return Level.of(self.level_pages(prefix))

    def delete(self, keys: Iterable[str]) -> None:
        """Remove objects; those that are not there are no matter."""
        self._remove([(key, None) for key in keys])

    def delete_seen(self, seen: Mapping[str, str]) -> set[str]:
        """Remove objects that are still of the versions that were seen; return the keys of those that stay."""
        return self._remove(list(seen.items()))

    def _remove(self, objects: Sequence[tuple[str, str | None]]) -> set[str]:
        size = min(self.removed_at_once, self.limits.page_keys)
        batches = [objects[i : i + size] for i in range(0, len(objects), size)]
        return set[str]().union(*at_once(self.remove_some, batches))

    def found(self, key: str) -> ObjectInfo:
        """Return what the store says of an object.

        Raises:
            FileNotFoundError: there is none.
        """
        found = self.head(key)
        if found is None:
            raise FileNotFoundError(errno.ENOENT, "no such object", str(self.url(key)))
        return found

    def changed(self, key: str) -> ChangedObject:
        """Return the error of an object that is of another version."""
        return ChangedObject(errno.ENOENT, "the object has changed", str(self.url(key)))

    def is_marked(self, key: str, mark: str) -> bool:
        """Return whether the object of this key was made by the write that has a mark."""
        found = self.head(key)
        return found is not None and found.mark == mark

    def check(self, key: str, sent: int | None, stored: int | None) -> None:
        """Compare the checksums of what was sent and what the store has, where both are known.

        Raises:
            StoreError: they differ.
        """
        if sent is not None and stored is not None and sent != stored:
            raise failures.corrupted(self.url(key), sent, stored)

    def url(self, key: str) -> StoreUrl:
        """Return the place of a key."""
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
        """Return what a request about a key returns, repeated after a transient failure.

        Raises:
            StoreError: it failed at each try.
        """

        def refused(cause: Exception) -> StoreError:
            return failures.unreachable(self.url(key), _reason(cause))

        return retried(once, refused, self.limits.first_pause)


def _reason(cause: Exception) -> str:
    return str(cause) if isinstance(cause, StoreError) else type(cause).__name__
