"""Requests to one bucket of S3: what the answers mean, which are made again, and the writes of one request."""

from __future__ import annotations

import base64
import errno
import uuid
from collections.abc import Callable
from typing import Any, ClassVar, Final, TypeVar

from ...errors import StoreError
from ...format.buffers.checksum import crc32c
from ..common import failures
from ..common.object_store import MARK, ObjectInfo, ObjectStore, PastEnd, PreconditionFailed
from ..common.retries import PassingFailure
from ..common.store_url import StoreUrl

T = TypeVar("T")

_PASSING_CODES: Final = frozenset(
    {
        "SlowDown", "ServiceUnavailable", "InternalError", "RequestTimeout", "Throttling", "ThrottlingException",
        "TooManyRequests", "OperationAborted", "ConditionalRequestConflict", "RequestThrottled", "503", "429", "500",
    }
)  # fmt: skip
"""ConditionalRequestConflict: another write of the same key was under way; who was first is known the next time."""

_CREDENTIAL_CODES: Final = frozenset(
    {"InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken", "TokenRefreshRequired", "401"}
)
_DENIED_CODES: Final = frozenset({"AccessDenied", "AllAccessDisabled", "AccountProblem", "403"})
_ABSENT_CODES: Final = frozenset({"NoSuchKey", "404", "NotFound"})
_PRECONDITION_CODES: Final = frozenset({"PreconditionFailed", "412"})


class S3Client(ObjectStore):
    """The part of an `S3Store` that uploads need too."""

    scheme = "s3"
    conditions: ClassVar = {
        "if_absent": "If-None-Match",
        "if_version": "If-Match",
        "copy_if_absent": "If-None-Match of CompleteMultipartUpload",
    }

    def __init__(self, bucket: str, client: Any) -> None:
        super().__init__(bucket)
        self.client = client

    def head(self, key: str) -> ObjectInfo | None:
        try:
            found = self.call("look at it", key, self.client.head_object, Key=key, ChecksumMode="ENABLED")
        except FileNotFoundError:
            return None
        return ObjectInfo(
            key=key,
            size=found["ContentLength"],
            version=found["ETag"],
            modified=found["LastModified"].timestamp(),
            crc32c=decoded_crc(found.get("ChecksumCRC32C")),
            mark=found["Metadata"].get(MARK),
        )

    def put(
        self, key: str, data: bytes | memoryview, *, if_absent: bool = False, if_version: str | None = None
    ) -> bool:
        mark = uuid.uuid4().hex
        more: dict[str, object] = {"IfNoneMatch": "*"} if if_absent else {}
        if if_version is not None:
            more["IfMatch"] = if_version
        try:
            self.call(
                "write it", key, self.client.put_object, Key=key, Body=bytes(data), Metadata={MARK: mark},
                ChecksumAlgorithm="CRC32C", ChecksumCRC32C=encoded_crc(crc32c(data)), **more,
            )  # fmt: skip
        except PreconditionFailed:
            return self.is_marked(key, mark)
        except FileNotFoundError:  # it was to be replaced, and is gone
            return False
        return True

    def call(self, action: str, key: str, request: Callable[..., T], /, **arguments: Any) -> T:
        return super().call(action, key, request, Bucket=self.bucket, **arguments)

    def failure_of(self, error: Exception, key: str, action: str) -> Exception | None:
        from botocore.exceptions import BotoCoreError, ClientError

        if isinstance(error, ClientError):
            status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
            return self.failure(key, action, str(error.response.get("Error", {}).get("Code")), status)
        if isinstance(error, BotoCoreError):
            return self._trouble(error)
        return PassingFailure(error) if isinstance(error, OSError) else None  # of a connection: boto3 lets some through

    def failure(self, key: str, action: str, code: str, status: int) -> Exception:
        url = self.url(key)
        if code in _PASSING_CODES or status == 429 or status >= 500:
            return PassingFailure(StoreError(code))
        if code in _PRECONDITION_CODES:
            return PreconditionFailed(code)
        if code == "NoSuchBucket":
            return failures.no_bucket(url)
        if code in _ABSENT_CODES:
            return FileNotFoundError(errno.ENOENT, "no such object", str(url))
        if code == "InvalidRange":
            return PastEnd(code)
        if code in _CREDENTIAL_CODES:
            return failures.bad_credentials(url, code)
        if code in _DENIED_CODES:
            return failures.denied(url, action)
        return UnexpectedAnswer(url, action, code)

    def _trouble(self, error: Exception) -> Exception:
        """Return what an error of boto3 itself means: credentials that are not there, or a connection that was lost."""
        from botocore import exceptions

        missing = (
            exceptions.NoCredentialsError, exceptions.PartialCredentialsError, exceptions.CredentialRetrievalError,
            exceptions.TokenRetrievalError, exceptions.SSOError,
        )  # fmt: skip
        if isinstance(error, missing):
            return failures.no_credentials(self.url(""))
        if isinstance(error, (exceptions.ParamValidationError, exceptions.NoRegionError)):
            return failures.unexpected(self.url(""), "take the request", type(error).__name__)
        return PassingFailure(error)


class UnexpectedAnswer(StoreError):
    """An answer that means nothing that can be fixed by trying again; `code` is the store's word for it."""

    def __init__(self, url: StoreUrl, action: str, code: str) -> None:
        super().__init__(str(failures.unexpected(url, action, code)))
        self.url, self.action, self.code = url, action, code

    def __reduce__(self) -> tuple[type[UnexpectedAnswer], tuple[StoreUrl, str, str]]:
        return type(self), (self.url, self.action, self.code)


def encoded_crc(crc: int) -> str:
    """Return a CRC32C as S3 takes it: big-endian, in base64."""
    return base64.b64encode(crc.to_bytes(4, "big")).decode()


def decoded_crc(text: str | None) -> int | None:
    """Return the CRC32C of a whole object that S3 reports; None for one of a list of parts, which ends with `-n`."""
    return None if text is None or "-" in text else int.from_bytes(base64.b64decode(text), "big")
