"""S3 over boto3, and whatever speaks its protocol (AWS_ENDPOINT_URL says where, as for every program of AWS).

What a copy must not overwrite is copied as parts of a multipart upload: its last request takes `If-None-Match`, which
stores other than Amazon's know there, and not with CopyObject. CopyObject ends at 5 GiB besides.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from ...errors import StoreAccessError
from ..common import failures
from ..common.object_store import Level, ObjectInfo, PastEnd, PreconditionFailed, number_of
from ..common.store_url import StoreUrl
from .client import S3Client, decoded_crc
from .upload import S3Upload

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
        raise failures.missing_client("s3") from None
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
            raise failures.no_credentials(url)
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
