"""A multipart upload to S3: parts are sent side by side, and become an object in the last request.

    piece 1  piece 2  ...           UploadPart, or UploadPartCopy from another object
    CompleteMultipartUpload         If-None-Match: *, and the CRC32C of the whole, which S3 compares with its own

Where another request for the same key was under way (409), or the upload is not there any more, Amazon wants it begun
again: parts of a copy are copied again, while those of a stream, whose bytes are gone, can only be completed again.

What fits one piece is put in one request instead. What a killed process leaves is not an object, and cannot be seen; it
takes space until a rule of the bucket (AbortIncompleteMultipartUpload) removes it.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any, Final

from ...errors import StoreError
from ..common.object_store import MARK, ObjectInfo, PreconditionFailed
from ..common.piece_sender import PieceSender, at_once, whole_or_copy
from ..common.retries import PassingFailure
from .client import S3Client, UnexpectedAnswer, encoded_crc

_MOST_PARTS: Final = 10_000
"""S3 takes no more parts of one object."""

_PART_BYTES: Final = 5 << 20
"""S3 takes none that is smaller, but for the last; three are in memory at once."""

_PARTS_OF_ONE_SIZE: Final = 1000
"""Parts of 5 MiB, then as many of 10 MiB, and so on: the largest object has 268 GiB, in pieces of 50 MiB."""

_CONFLICT: Final = "ConditionalRequestConflict"
_NO_UPLOAD: Final = "NoSuchUpload"


class S3Upload:
    """An object that is being written; see `Upload`."""

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
