"""Requests to one bucket of Google Cloud Storage: what the answers mean, which are made again."""

from __future__ import annotations

import base64
import errno
import uuid
from collections.abc import Callable
from typing import Any, TypeVar

from ..errors import StoreError
from . import failures
from .object_store import MARK, ObjectInfo
from .retries import PassingFailure, retried
from .store_url import StoreUrl

T = TypeVar("T")


class GcsClient:
    """The part of a `GcsStore` that uploads need too: `handle` is the client's bucket."""

    scheme = "gs"

    def __init__(self, bucket: str, handle: Any) -> None:
        self.bucket = bucket
        self.handle = handle

    def head(self, key: str) -> ObjectInfo | None:
        """Return what the store says of an object, or None if there is none."""
        blob = self.handle.blob(key)
        try:
            self.call("look at it", key, lambda: blob.reload(retry=None))
        except FileNotFoundError:
            return None
        return info_of(blob)

    def put_whole(self, key: str, data: bytes, *, if_absent: bool = False) -> bool:
        """Make an object of bytes at once, checked by its CRC32C on arrival; say whether this very call made it."""
        blob = self.handle.blob(key)
        mark = uuid.uuid4().hex
        blob.metadata = {MARK: mark}
        condition = 0 if if_absent else None
        try:
            self.call(
                "write it",
                key,
                lambda: blob.upload_from_string(
                    data, "application/octet-stream", if_generation_match=condition, checksum="crc32c", retry=None
                ),
            )
        except PreconditionFailed:
            return self.is_marked(key, mark)
        except FileNotFoundError:
            raise failures.no_bucket(self.url(key)) from None
        return True

    def is_marked(self, key: str, mark: str) -> bool:
        """Tell whether the object of this key was made by the write that bears a mark."""
        found = self.head(key)
        return found is not None and found.mark == mark

    def check(self, key: str, sent: int | None, stored: int | None) -> None:
        """Compare the checksums of what was sent and what the store has, where both are known.

        Raises:
            StoreError: they differ.
        """
        if sent is not None and stored is not None and sent != stored:
            raise failures.corrupted(self.url(key), sent, stored)

    def remove(self, key: str) -> None:
        """Remove an object, if it is there."""
        blob = self.handle.blob(key)
        try:
            self.call("remove it", key, lambda: blob.delete(retry=None))
        except FileNotFoundError:  # it is what was wanted; a lost reply looks so too
            return

    def call(self, action: str, key: str, request: Callable[[], T]) -> T:
        """Return the answer to a request on this bucket, made again where it fails for the moment.

        Raises:
            FileNotFoundError: there is no such object.
            PreconditionFailed: the request's condition does not hold.
            StoreAccessError: the store lets nobody in.
            StoreError: it failed at each try, or refuses for another reason.
        """
        import requests
        import urllib3
        from google.api_core.exceptions import GoogleAPICallError
        from google.auth.exceptions import GoogleAuthError
        from google.cloud.storage.exceptions import DataCorruption, InvalidResponse

        def once() -> T:
            try:
                return request()
            except GoogleAPICallError as error:
                raise self._failure(key, action, int(error.code or 0), str(error.message)) from error
            except InvalidResponse as error:
                raise self._failure(key, action, int(error.response.status_code), "") from error
            except GoogleAuthError as error:
                raise self._auth_failure(error) from error
            except (requests.RequestException, urllib3.exceptions.HTTPError, OSError, DataCorruption) as error:
                raise PassingFailure(error) from error

        return retried(once, lambda cause: failures.unreachable(self.url(key), _reason(cause)))

    def _failure(self, key: str, action: str, status: int, message: str) -> Exception:
        """Return the error that an answer of the store means."""
        url = self.url(key)
        if status in (408, 429) or status >= 500:
            return PassingFailure(StoreError(str(status)))
        if status in (304, 412):
            return PreconditionFailed(str(status))
        if status == 404:
            if "bucket does not exist" in message:
                return failures.no_bucket(url)
            return FileNotFoundError(errno.ENOENT, "no such object", str(url))
        if status == 401:
            return failures.bad_credentials(url, "401")
        if status == 403:
            return failures.denied(url, action)
        if status == 416:
            return PastEnd(str(status))
        return failures.unexpected(url, action, str(status))

    def _auth_failure(self, error: Exception) -> Exception:
        from google.auth.exceptions import TransportError

        if isinstance(error, TransportError):
            return PassingFailure(error)
        return failures.bad_credentials(self.url(""), type(error).__name__)

    def url(self, key: str) -> StoreUrl:
        """Return the place of a key."""
        return StoreUrl("gs", self.bucket, key)


class PreconditionFailed(Exception):
    """The condition of a request does not hold."""


class PastEnd(Exception):
    """The range that was asked for begins behind the object's end."""


def info_of(blob: Any) -> ObjectInfo:
    """Return what the client has learnt of an object."""
    return ObjectInfo(
        key=blob.name,
        size=int(blob.size),
        version=str(blob.generation),
        modified=blob.updated.timestamp() if blob.updated else 0.0,
        crc32c=int.from_bytes(base64.b64decode(blob.crc32c), "big") if blob.crc32c else None,
        mark=(blob.metadata or {}).get(MARK),
    )


def _reason(cause: Exception) -> str:
    return str(cause) if isinstance(cause, StoreError) else type(cause).__name__
