"""Requests to one bucket of Google Cloud Storage: what the answers mean, which are made again."""

from __future__ import annotations

import base64
import errno
import uuid
from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

from ...errors import StoreError
from ..common import failures
from ..common.bucket import Bucket, PastEnd, PreconditionFailed
from ..common.object_store import MARK, ObjectInfo
from ..common.retries import PassingFailure

T = TypeVar("T")


class GcsClient(Bucket):
    """The part of a `GcsStore` that uploads need too: `handle` is the client's bucket."""

    scheme = "gs"
    conditions: ClassVar = {
        "if_absent": "ifGenerationMatch",
        "if_version": "ifGenerationMatch",
        "copy_if_absent": "ifGenerationMatch of rewrite",
    }

    def __init__(self, bucket: str, handle: Any) -> None:
        super().__init__(bucket)
        self.handle = handle

    def head(self, key: str) -> ObjectInfo | None:
        """Return what the store says of an object, or None if there is none."""
        blob = self.handle.blob(key)
        try:
            self.call("look at it", key, lambda: blob.reload(retry=None))
        except FileNotFoundError:
            return None
        return info_of(blob)

    def put_whole(self, key: str, data: bytes, *, if_absent: bool = False, if_version: str | None = None) -> bool:
        """Make an object of bytes at once, checked by its CRC32C on arrival; say whether this very call made it."""
        blob = self.handle.blob(key)
        mark = uuid.uuid4().hex
        blob.metadata = {MARK: mark}
        condition = 0 if if_absent else None if if_version is None else int(if_version)
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

    def remove(self, key: str, version: str | None = None) -> bool:
        """Remove an object, if it is there, and of this version; say whether nothing is there any more."""
        blob = self.handle.blob(key)
        condition = None if version is None else int(version)
        try:
            self.call("remove it", key, lambda: blob.delete(if_generation_match=condition, retry=None))
        except FileNotFoundError:  # it is what was wanted; a lost reply looks so too
            return True
        except PreconditionFailed:
            return self.head(key) is None
        return True

    def call(self, action: str, key: str, request: Callable[[], T]) -> T:
        """Return the answer to a request on this bucket, repeated after a transient failure.

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
                raise self.failure(key, action, int(error.code or 0), str(error.message)) from error
            except InvalidResponse as error:
                raise self.failure(key, action, int(error.response.status_code), "") from error
            except GoogleAuthError as error:
                raise self._auth_failure(error) from error
            except (requests.RequestException, urllib3.exceptions.HTTPError, OSError, DataCorruption) as error:
                raise PassingFailure(error) from error

        return self.retried(key, once)

    def failure(self, key: str, action: str, status: int, message: str) -> Exception:
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

        if isinstance(error, TransportError) or isinstance(error.__cause__, TransportError):  # as wrapped at a refresh
            return PassingFailure(error)
        return failures.bad_credentials(self.url(""), type(error).__name__)


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
