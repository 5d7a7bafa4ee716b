"""Requests to one bucket of Google Cloud Storage: what the answers mean, which are made again."""

from __future__ import annotations

import base64
import errno
import uuid
from typing import Any, ClassVar

from ...errors import StoreError
from ..common import failures
from ..common.object_store import MARK, ObjectInfo, ObjectStore, PastEnd, PreconditionFailed
from ..common.retries import PassingFailure


class GcsClient(ObjectStore):
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
        blob = self.handle.blob(key)
        try:
            self.call("look at it", key, blob.reload, retry=None)
        except FileNotFoundError:
            return None
        return info_of(blob)

    def put(
        self, key: str, data: bytes | memoryview, *, if_absent: bool = False, if_version: str | None = None
    ) -> bool:
        blob = self.handle.blob(key)
        mark = uuid.uuid4().hex
        blob.metadata = {MARK: mark}
        condition = 0 if if_absent else None if if_version is None else int(if_version)
        try:
            self.call(
                "write it", key, blob.upload_from_string, data=bytes(data), content_type="application/octet-stream",
                if_generation_match=condition, checksum="crc32c", retry=None,
            )  # fmt: skip
        except PreconditionFailed:
            return self.is_marked(key, mark)
        except FileNotFoundError:
            raise failures.no_bucket(self.url(key)) from None
        return True

    def remove(self, key: str, version: str | None = None) -> bool:
        """Remove an object, if it is there, and of this version; return whether nothing is there any more."""
        blob = self.handle.blob(key)
        condition = None if version is None else int(version)
        try:
            self.call("remove it", key, blob.delete, if_generation_match=condition, retry=None)
        except FileNotFoundError:  # it is what was wanted; a lost reply looks so too
            return True
        except PreconditionFailed:
            return self.head(key) is None
        return True

    def failure_of(self, error: Exception, key: str, action: str) -> Exception | None:
        import requests
        import urllib3
        from google.api_core.exceptions import GoogleAPICallError
        from google.auth.exceptions import GoogleAuthError
        from google.cloud.storage.exceptions import DataCorruption, InvalidResponse

        if isinstance(error, GoogleAPICallError):
            return self.failure(key, action, int(error.code or 0), str(error.message))
        if isinstance(error, InvalidResponse):
            return self.failure(key, action, int(error.response.status_code), "")
        if isinstance(error, GoogleAuthError):
            return self._auth_failure(error)
        passing = requests.RequestException, urllib3.exceptions.HTTPError, OSError, DataCorruption
        return PassingFailure(error) if isinstance(error, passing) else None

    def failure(self, key: str, action: str, status: int, message: str) -> Exception:
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
    return ObjectInfo(
        key=blob.name,
        size=int(blob.size),
        version=str(blob.generation),
        modified=blob.updated.timestamp() if blob.updated else 0.0,
        crc32c=int.from_bytes(base64.b64decode(blob.crc32c), "big") if blob.crc32c else None,
        mark=(blob.metadata or {}).get(MARK),
    )
