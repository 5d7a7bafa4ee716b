"""The contract `object_store` on S3, over boto3, and on whatever speaks its protocol.

AWS_ENDPOINT_URL says where, as for every program of AWS.

What a copy must not overwrite is copied as parts of a multipart upload: its last request takes `If-None-Match`, which
stores other than Amazon's know there, and not with CopyObject. CopyObject ends at 5 GiB besides.
"""

from __future__ import annotations

import base64
import errno
import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, Final, TypeVar

from ..errors import StoreAccessError, StoreError
from ..format.tfrecord.framing import crc32c
from . import object_store
from .object_store import (
    MARK,
    Level,
    ObjectInfo,
    ObjectStore,
    PassingFailure,
    PastEnd,
    PieceSender,
    PreconditionFailed,
    at_once,
    number_of,
    whole_or_copy,
)
from .store_url import StoreUrl

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
            return object_store.no_bucket(url)
        if code in _ABSENT_CODES:
            return FileNotFoundError(errno.ENOENT, "no such object", str(url))
        if code == "InvalidRange":
            return PastEnd(code)
        if code in _CREDENTIAL_CODES:
            return object_store.bad_credentials(url, code)
        if code in _DENIED_CODES:
            return object_store.denied(url, action)
        return UnexpectedAnswer(url, action, code)

    def _trouble(self, error: Exception) -> Exception:
        """Return what an error of boto3 itself means: credentials that are not there, or a connection that was lost."""
        from botocore import exceptions

        missing = (
            exceptions.NoCredentialsError, exceptions.PartialCredentialsError, exceptions.CredentialRetrievalError,
            exceptions.TokenRetrievalError, exceptions.SSOError,
        )  # fmt: skip
        if isinstance(error, missing):
            return object_store.no_credentials(self.url(""))
        if isinstance(error, (exceptions.ParamValidationError, exceptions.NoRegionError)):
            return object_store.unexpected(self.url(""), "take the request", type(error).__name__)
        return PassingFailure(error)


class UnexpectedAnswer(StoreError):
    """An answer that means nothing that can be fixed by trying again; `code` is the store's word for it."""

    def __init__(self, url: StoreUrl, action: str, code: str) -> None:
        super().__init__(str(object_store.unexpected(url, action, code)))
        self.url, self.action, self.code = url, action, code

    def __reduce__(self) -> tuple[type[UnexpectedAnswer], tuple[StoreUrl, str, str]]:
        return type(self), (self.url, self.action, self.code)


def encoded_crc(crc: int) -> str:
    """Return a CRC32C as S3 takes it: big-endian, in base64."""
    return base64.b64encode(crc.to_bytes(4, "big")).decode()


def decoded_crc(text: str | None) -> int | None:
    """Return the CRC32C of a whole object that S3 reports; None for one of a list of parts, which ends with `-n`."""
    return None if text is None or "-" in text else int.from_bytes(base64.b64decode(text), "big")


_COPY_LIMIT: Final = 5 << 30
"""CopyObject takes no larger object, and a part of a copy is no larger."""

_PART_COPY_BYTES: Final = 512 << 20
"""A part of a copy: several are copied side by side."""


def connect(bucket: str) -> S3Store:
    try:
        import boto3
        from botocore.config import Config
        from botocore.exceptions import BotoCoreError
    except ImportError:
        raise object_store.missing_client("s3") from None
    url = StoreUrl("s3", bucket)
    config = Config(
        retries={"mode": "standard", "total_max_attempts": 1},  # ours: see `retries`
        max_pool_connections=32,
        connect_timeout=10,
        read_timeout=60,
        tcp_keepalive=True,
        request_checksum_calculation="when_required",  # ours are of the whole content
        response_checksum_validation="when_required",
    )
    try:
        session = boto3.session.Session()
        if session.get_credentials() is None:
            raise object_store.no_credentials(url)
        return S3Store(bucket, session.client("s3", config=config))
    except (BotoCoreError, ValueError) as error:
        if isinstance(error, StoreAccessError):
            raise
        raise StoreAccessError(
            f"s3://{bucket}: the environment's settings for AWS cannot be used ({type(error).__name__}); look at "
            f"AWS_PROFILE, AWS_REGION, AWS_ENDPOINT_URL and ~/.aws/config"
        ) from None


class S3Store(S3Client):
    """A bucket of S3; see `ObjectStore`."""

    removed_at_once = 1000

    def walk(self, prefix: str) -> Iterator[ObjectInfo]:
        for page in self._pages(prefix, {}):
            yield from _listed(page)

    def level_pages(self, prefix: str) -> Iterator[Level]:
        for page in self._pages(prefix, {"Delimiter": "/"}):
            objects = (found for found in _listed(page) if found.key != prefix)
            yield Level(tuple(objects), tuple(entry["Prefix"] for entry in page.get("CommonPrefixes", ())))

    def _pages(self, prefix: str, more: dict[str, str]) -> Iterator[dict[str, Any]]:
        while True:
            most = self.limits.page_keys
            page = self.call("list it", prefix, self.client.list_objects_v2, Prefix=prefix, MaxKeys=most, **more)
            yield page
            if not page.get("IsTruncated"):
                return
            more = {**more, "ContinuationToken": page["NextContinuationToken"]}

    def read(self, key: str, start: int = 0, end: int | None = None, *, version: str | None = None) -> bytes:
        if end is not None and end <= start:
            return b""
        more = {} if version is None else {"IfMatch": version}
        if start or end is not None:
            more["Range"] = f"bytes={start}-" if end is None else f"bytes={start}-{end - 1}"

        def request(**arguments: Any) -> bytes:
            data: bytes = self.client.get_object(**arguments)["Body"].read()
            return data

        try:
            return self.call("read it", key, request, Key=key, **more)
        except PastEnd:
            return b""
        except PreconditionFailed:
            raise self.changed(key) from None

    def read_numbered(self, key: str, start: int, end: int, number: int) -> bytes:
        def request(**arguments: Any) -> tuple[bytes, str]:
            answer = self.client.get_object(**arguments)
            return answer["Body"].read(), answer["ETag"]

        try:
            # a byte at least: no range is empty
            data, etag = self.call("read it", key, request, Key=key, Range=f"bytes={start}-{max(end, start + 1) - 1}")
        except PastEnd:  # it is empty, as every empty object is
            data, etag = b"", None
        if len(data) != end - start or (etag is not None and number_of(etag) != number):
            raise self.changed(key)
        return data

    def upload(self, key: str) -> S3Upload:
        return S3Upload(self, key)

    def copy(self, source: str, target: str, *, if_absent: bool = False) -> bool:
        found = self.found(source)
        if found.size == 0:
            return self.put(target, b"", if_absent=if_absent)
        if if_absent or found.size > _COPY_LIMIT:
            upload = S3Upload(self, target, if_absent=if_absent)
            upload.copy_parts(found, _PART_COPY_BYTES)
            return upload.complete()
        result = self.call(
            "copy it", source, self.client.copy_object, Key=target, ChecksumAlgorithm="CRC32C",
            CopySource={"Bucket": self.bucket, "Key": source}, CopySourceIfMatch=found.version,
        )["CopyObjectResult"]  # fmt: skip
        self.check(target, found.crc32c, decoded_crc(result.get("ChecksumCRC32C")))
        return True

    def remove_some(self, objects: Sequence[tuple[str, str | None]]) -> set[str]:
        wanted = [{"Key": key} if version is None else {"Key": key, "ETag": version} for key, version in objects]

        def request(**arguments: Any) -> set[str]:
            stay = set()
            for error in self.client.delete_objects(**arguments).get("Errors", ()):
                failure = self.failure(error.get("Key", ""), "remove it", str(error.get("Code")), 200)
                if isinstance(failure, PreconditionFailed):
                    stay.add(error["Key"])
                elif not isinstance(failure, FileNotFoundError):  # it is what was wanted; a lost reply looks so too
                    raise failure
            return stay

        return self.call("remove it", objects[0][0], request, Delete={"Objects": wanted, "Quiet": True})


def _listed(page: dict[str, Any]) -> Iterator[ObjectInfo]:
    for found in page.get("Contents", ()):
        yield ObjectInfo(found["Key"], found["Size"], found["ETag"], found["LastModified"].timestamp())


_MOST_PARTS: Final = 10_000
"""S3 takes no more parts of one object."""

_PART_BYTES: Final = 5 << 20
"""S3 takes none that is smaller, but for the last; three are in memory at once."""

_PARTS_OF_ONE_SIZE: Final = 1000
"""Parts of 5 MiB, then as many of 10 MiB, and so on: the largest object has 268 GiB, in pieces of 50 MiB."""

_CONFLICT: Final = "ConditionalRequestConflict"
_NO_UPLOAD: Final = "NoSuchUpload"


class S3Upload:
    """An object that is being written (see `Upload`): parts are sent side by side, and the last request joins them.

        piece 1  piece 2  ...           UploadPart, or UploadPartCopy from another object
        CompleteMultipartUpload         If-None-Match: *, and the CRC32C of the whole, which S3 compares with its own

    Where another request for the same key was under way (409), or the upload is not there any more, Amazon wants it
    begun again: parts of a copy are copied again, while those of a stream, whose bytes are gone, can only be completed
    again. What fits one piece is put in one request instead. What a killed process leaves is not an object, and cannot
    be seen; it takes space until a rule of the bucket (AbortIncompleteMultipartUpload) removes it.
    """

    def __init__(self, store: S3Client, key: str, *, if_absent: bool = False) -> None:
        self._store = store
        self._key = key
        self._if_absent = if_absent
        self._mark = uuid.uuid4().hex
        self._id: str | None = None
        self._sender: PieceSender[dict[str, Any]] = PieceSender(self._send, _part_bytes)
        self._parts: list[dict[str, Any]] = []
        self._crc: int | None = None
        self._copied: tuple[ObjectInfo, int] | None = None

    def write(self, data: memoryview) -> None:
        if self._id is None and self._sender.filled + len(data) > _PART_BYTES:
            self._begin()
        self._sender.write(data)

    def copy_parts(self, source: ObjectInfo, part_bytes: int) -> None:
        self._begin()
        self._copied = source, part_bytes
        starts = range(0, source.size, part_bytes)
        parts = [(i + 1, start, min(start + part_bytes, source.size)) for i, start in enumerate(starts)]
        try:
            self._parts = at_once(lambda part: self._copy_part(source, *part), parts)
        except BaseException:
            self.abandon()
            raise
        self._crc = source.crc32c

    def finish(self) -> None:
        if self._id is None:
            self._store.put(self._key, self._sender.rest())
            return
        try:
            parts = self._sender.finish()
        except BaseException:
            self.abandon()
            raise
        self._crc = self._sender.crc
        self._parts = parts
        self.complete()

    def complete(self) -> bool:
        """Make an object of the parts that have been sent or copied, and compare its checksum; return whether it is."""
        try:
            done = self._store.retried(self._key, self._complete)
        except BaseException:
            self.abandon()
            raise
        if not done:
            self.abandon()
            return False
        self._id = None
        found = self._store.head(self._key)
        if found is not None and found.mark == self._mark:
            self._store.check(self._key, self._crc, found.crc32c)
        return True

    def abandon(self) -> None:
        self._sender.abandon()
        if self._id is None:
            return
        upload, self._id = self._id, None
        client = self._store.client
        self._tolerating_absence(client.abort_multipart_upload, UploadId=upload)

    def _begin(self) -> None:
        made = self._store.call(
            "write it", self._key, self._store.client.create_multipart_upload, Key=self._key,
            Metadata={MARK: self._mark}, ChecksumAlgorithm="CRC32C", ChecksumType="FULL_OBJECT",
        )  # fmt: skip
        self._id = made["UploadId"]

    def _send(self, number: int, piece: memoryview, crc: int) -> dict[str, Any]:
        if number >= _MOST_PARTS:
            raise StoreError(
                f"s3://{self._store.bucket}/{self._key}: over 268 GiB, the most that is written as one object"
            )
        sent = self._store.call(
            "write it", self._key, self._store.client.upload_part, Key=self._key, UploadId=self._id,
            PartNumber=number + 1, Body=whole_or_copy(piece),
            ChecksumAlgorithm="CRC32C", ChecksumCRC32C=encoded_crc(crc),
        )  # fmt: skip
        return {"PartNumber": number + 1, "ETag": sent["ETag"], "ChecksumCRC32C": encoded_crc(crc)}

    def _copy_part(self, source: ObjectInfo, number: int, start: int, end: int) -> dict[str, Any]:
        more = {} if (start, end) == (0, source.size) else {"CopySourceRange": f"bytes={start}-{end - 1}"}
        result = self._store.call(
            "copy it", source.key, self._store.client.upload_part_copy, Key=self._key, UploadId=self._id,
            PartNumber=number, CopySource={"Bucket": self._store.bucket, "Key": source.key},
            CopySourceIfMatch=source.version, **more,
        )["CopyPartResult"]  # fmt: skip
        part = {"PartNumber": number, "ETag": result["ETag"]}
        return {**part, "ChecksumCRC32C": result["ChecksumCRC32C"]} if "ChecksumCRC32C" in result else part

    def _complete(self) -> bool:
        """Complete the upload, or find it completed, its reply lost; return whether it is.

        Raise `PassingFailure` if it is to be tried again, with parts that have been copied again where it is a copy.
        """
        more: dict[str, object] = {"IfNoneMatch": "*"} if self._if_absent else {}
        if self._crc is not None:
            more |= {"ChecksumCRC32C": encoded_crc(self._crc), "ChecksumType": "FULL_OBJECT"}
        try:
            self._store.call(
                "write it", self._key, self._complete_or_conflict, Key=self._key, UploadId=self._id,
                MultipartUpload={"Parts": self._parts}, **more,
            )  # fmt: skip
        except PreconditionFailed:
            return self._store.is_marked(self._key, self._mark)
        except UnexpectedAnswer as error:
            if error.code not in (_CONFLICT, _NO_UPLOAD):
                raise
            found = self._store.head(self._key)
            if found is not None and (self._if_absent or found.mark == self._mark):
                return found.mark == self._mark
            if self._copied is not None:
                self.abandon()
                self.copy_parts(*self._copied)
            elif error.code == _NO_UPLOAD:
                raise
            raise PassingFailure(StoreError(error.code)) from error
        return True

    def _complete_or_conflict(self, **arguments: Any) -> object:
        """Request completion; a conflict, after which other requests are simply repeated, is raised to the caller."""
        from botocore.exceptions import ClientError

        try:
            return self._store.client.complete_multipart_upload(**arguments)
        except ClientError as error:
            if error.response.get("Error", {}).get("Code") == _CONFLICT:
                raise UnexpectedAnswer(self._store.url(self._key), "write it", _CONFLICT) from error
            raise

    def _tolerating_absence(self, request: Callable[..., object], **arguments: Any) -> None:
        try:
            self._store.call("abandon it", self._key, request, Key=self._key, **arguments)
        except UnexpectedAnswer as error:
            if error.code != _NO_UPLOAD:
                raise


def _part_bytes(number: int) -> int:
    return _PART_BYTES * (1 + number // _PARTS_OF_ONE_SIZE)
