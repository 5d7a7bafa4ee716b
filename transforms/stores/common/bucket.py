"""The common part of requests to one bucket, in either store."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TypeVar

from ...errors import StoreError
from . import failures
from .object_store import ObjectInfo
from .retries import retried
from .store_url import StoreUrl

T = TypeVar("T")


class PreconditionFailed(Exception):
    """The condition of a request does not hold."""


class PastEnd(Exception):
    """The range that was asked for begins after the object's end."""


class Bucket(ABC):
    """A bucket, `scheme://bucket`."""

    scheme: str

    def __init__(self, bucket: str) -> None:
        self.bucket = bucket

    @abstractmethod
    def head(self, key: str) -> ObjectInfo | None:
        """Return what the store says of an object, or None if there is none."""

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

    def retried(self, key: str, once: Callable[[], T]) -> T:
        """Return what a request about a key returns, repeated after a transient failure.

        Raises:
            StoreError: it failed at each try.
        """
        return retried(once, lambda cause: failures.unreachable(self.url(key), _reason(cause)))


def _reason(cause: Exception) -> str:
    return str(cause) if isinstance(cause, StoreError) else type(cause).__name__
