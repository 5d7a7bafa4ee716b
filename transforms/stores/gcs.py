"""The contract `object_store` on Google Cloud Storage, over google-cloud-storage.

STORAGE_EMULATOR_HOST says where, for tests.
"""

from __future__ import annotations

import base64
import email
import errno
import re
import uuid
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Final
from urllib.parse import quote

from ..errors import StoreAccessError, StoreError
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
)
from .store_url import StoreUrl


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
            raise object_store.no_bucket(self.url(key)) from None
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
                return object_store.no_bucket(url)
            return FileNotFoundError(errno.ENOENT, "no such object", str(url))
        if status == 401:
            return object_store.bad_credentials(url, "401")
        if status == 403:
            return object_store.denied(url, action)
        if status == 416:
            return PastEnd(str(status))
        return object_store.unexpected(url, action, str(status))

    def _auth_failure(self, error: Exception) -> Exception:
        from google.auth.exceptions import TransportError

        if isinstance(error, TransportError) or isinstance(error.__cause__, TransportError):  # as wrapped at a refresh
            return PassingFailure(error)
        return object_store.bad_credentials(self.url(""), type(error).__name__)


def info_of(blob: Any) -> ObjectInfo:
    return ObjectInfo(
        key=blob.name,
        size=int(blob.size),
        version=str(blob.generation),
        modified=blob.updated.timestamp() if blob.updated else 0.0,
        crc32c=int.from_bytes(base64.b64decode(blob.crc32c), "big") if blob.crc32c else None,
        mark=(blob.metadata or {}).get(MARK),
    )


_FIELDS: Final = "items(name,size,generation,crc32c,updated),prefixes,nextPageToken"


def connect(bucket: str) -> GcsStore:
    try:
        from google.auth.exceptions import GoogleAuthError
        from google.cloud import storage
        from requests.adapters import HTTPAdapter
    except ImportError:
        raise object_store.missing_client("gs") from None
    try:
        client = storage.Client(project=None)
    except GoogleAuthError:
        raise object_store.no_credentials(StoreUrl("gs", bucket)) from None
    except ValueError as error:
        raise StoreAccessError(
            f"gs://{bucket}: the environment's settings for Google Cloud cannot be used ({type(error).__name__}); look "
            f"at GOOGLE_APPLICATION_CREDENTIALS"
        ) from None
    client._bucket_metadata_cache = None  # else it asks for the bucket itself, in a thread, which takes a right more
    for scheme in ("https://", "http://"):
        client._http.mount(scheme, HTTPAdapter(pool_maxsize=32))  # no public way to keep more connections
    return GcsStore(bucket, client.bucket(bucket))


class GcsStore(GcsClient):
    """A bucket of Google Cloud Storage; see `ObjectStore`."""

    removed_at_once = 100

    def walk(self, prefix: str) -> Iterator[ObjectInfo]:
        for objects, _ in self._pages(prefix, None):
            yield from objects

    def level_pages(self, prefix: str) -> Iterator[Level]:
        for page, names in self._pages(prefix, "/"):
            yield Level(tuple(found for found in page if found.key != prefix), tuple(names))

    def _pages(self, prefix: str, delimiter: str | None) -> Iterator[tuple[list[ObjectInfo], list[str]]]:
        token: str | None = None

        def request() -> tuple[list[ObjectInfo], list[str], str | None]:
            found = self.handle.client.list_blobs(
                self.bucket,
                prefix=prefix,
                delimiter=delimiter,
                page_token=token,
                page_size=self.limits.page_keys,
                fields=_FIELDS,
                retry=None,
            )
            objects = [info_of(blob) for blob in next(found.pages, ())]
            return objects, sorted(found.prefixes), found.next_page_token

        while True:
            try:
                objects, prefixes, token = self.call("list it", prefix, request)
            except FileNotFoundError:
                raise object_store.no_bucket(self.url(prefix)) from None
            yield objects, prefixes
            if not token:
                return

    def read(self, key: str, start: int = 0, end: int | None = None, *, version: str | None = None) -> bytes:
        if end is not None and end <= start:
            return b""
        blob = self.handle.blob(key, generation=None if version is None else int(version))
        last = None if end is None else end - 1

        def request() -> bytes:
            data: bytes = blob.download_as_bytes(
                start=start or None, end=last, raw_download=True, checksum=None, retry=None
            )
            return data

        try:
            return self.call("read it", key, request)
        except PastEnd:
            return b""
        except FileNotFoundError:
            if version is not None and self.head(key) is not None:
                raise self.changed(key) from None
            raise

    def read_numbered(self, key: str, start: int, end: int, number: int) -> bytes:
        return self.read(key, start, end, version=str(number))

    def upload(self, key: str) -> GcsUpload:
        return GcsUpload(self, key)

    def copy(self, source: str, target: str, *, if_absent: bool = False) -> bool:
        found = self.found(source)
        blob, mark = self.handle.blob(target), uuid.uuid4().hex
        if if_absent:
            if self.head(target) is not None:
                return False
            blob.metadata, blob.content_type = {MARK: mark}, "application/octet-stream"
        token: str | None = None

        def request() -> Any:
            return blob.rewrite(
                self.handle.blob(source), token=token, if_generation_match=0 if if_absent else None,
                if_source_generation_match=int(found.version), retry=None,
            )  # fmt: skip

        while True:
            try:
                token, _, _ = self.call("copy it", source, request)
            except PreconditionFailed:
                return self.is_marked(target, mark)
            if token is None:
                break
        self.check(target, found.crc32c, info_of(blob).crc32c)
        return True

    def remove_some(self, objects: Sequence[tuple[str, str | None]]) -> set[str]:
        if len(objects) == 1:
            return set() if self.remove(*objects[0]) else {objects[0][0]}

        def request() -> list[int]:
            statuses = remove_batch(self.handle, objects)
            for (key, _), status in zip(objects, statuses, strict=True):
                if status not in (200, 204, 404, 412):
                    raise self.failure(key, "remove it", status, "")
            return statuses

        statuses = self.call("remove it", objects[0][0], request)
        refused = (key for (key, _), status in zip(objects, statuses, strict=True) if status == 412)
        return {key for key in refused if self.head(key) is not None}


_SECONDS: Final = 60


def remove_batch(handle: Any, objects: Sequence[tuple[str, str | None]]) -> list[int]:
    """Remove objects of a bucket, by key, each if it is of a version (None: of any); return the status of each.

    `handle` is the client's bucket. A call that is not answered has the status 500: it is to be made again.
    The client's own batches give their answers in no public way, and their calls no names by which answers could be
    known.
    """
    from google.api_core import exceptions

    errors: Any = exceptions
    boundary, client = uuid.uuid4().hex, handle.client
    calls = "".join(
        f"--{boundary}\r\nContent-Type: application/http\r\nContent-ID: <{number}>\r\n\r\n"
        f"DELETE {_path(handle.name, key, version)} HTTP/1.1\r\n\r\n\r\n"
        for number, (key, version) in enumerate(objects)
    )
    answer = client._http.request(  # with the client's credentials; no public way either
        "POST",
        f"{client._connection.API_BASE_URL}/batch/storage/v1",
        data=f"{calls}--{boundary}--\r\n".encode(),
        headers={"Content-Type": f"multipart/mixed; boundary={boundary}"},
        timeout=_SECONDS,
    )
    if answer.status_code != 200:
        raise errors.from_http_response(answer)
    statuses = [500] * len(objects)
    for number, status in _answers(answer.headers.get("Content-Type", ""), answer.content):
        statuses[number] = status
    return statuses


def _path(bucket: str, key: str, version: str | None) -> str:
    condition = "" if version is None else f"?ifGenerationMatch={version}"
    return f"/storage/v1/b/{quote(bucket, safe='')}/o/{quote(key, safe='')}{condition}"


def _answers(content_type: str, body: bytes) -> list[tuple[int, int]]:
    message = email.message_from_bytes(f"Content-Type: {content_type}\r\n\r\n".encode() + body)
    found = []
    for part in message.walk():
        number = re.search(r"(\d+)>?$", part.get("Content-ID", ""))
        status = re.match(r"\s*HTTP/\S+ (\d{3})", "" if part.is_multipart() else str(part.get_payload()))
        if number and status:
            found.append((int(number[1]), int(status[1])))
    return found


_COMPOSED_AT_ONCE: Final = 32
"""GCS takes no more sources of one compose."""

_CHUNK_BYTES: Final = 4 << 20
"""The client makes two copies of what it sends, so that a chunk takes three times its size meanwhile."""


class GcsUpload:
    """An object that is being written (see `Upload`), in chunks of their own, which the store composes into one.

        chunks      .name.<mark>/0-000000  0-000001 ... 0-000031  │  0-000032 ...      put if absent, side by side
        composed    .name.<mark>/1-000000 ────────────────────────┘                    32 at a time
        object      name, by the last compose; then the others are removed

    GCS has resumable uploads too. They send one chunk after the other, and where the reply to one is lost the client
    has to ask how much arrived. A chunk of its own is put as often as need be, and is the same in the end. What a
    killed process leaves is under a hidden name beside the object, never under its own.
    """

    def __init__(self, store: GcsClient, key: str) -> None:
        self._store = store
        self._key = key
        self._mark = uuid.uuid4().hex
        folder, slash, name = key.rpartition("/")
        self._chunks = f"{folder}{slash}.{name}.{self._mark}"
        self._left: list[str] = []
        self._sender: PieceSender[str] = PieceSender(self._send, lambda _: _CHUNK_BYTES)

    def write(self, data: memoryview) -> None:
        self._sender.write(data)

    def finish(self) -> None:
        if not self._sender.pieces:
            self._store.put(self._key, self._sender.rest())
            return
        try:
            chunks, level = self._sender.finish(), 1
            while len(chunks) > _COMPOSED_AT_ONCE:
                groups = [chunks[i : i + _COMPOSED_AT_ONCE] for i in range(0, len(chunks), _COMPOSED_AT_ONCE)]
                names = [f"{self._chunks}/{level}-{number:06d}" for number in range(len(groups))]
                self._left += names
                at_once(lambda pair: self._compose(*pair), zip(names, groups, strict=True))
                chunks, level = names, level + 1
            made = self._compose(self._key, chunks)
            self._store.check(self._key, self._sender.crc, info_of(made).crc32c)
        finally:
            self.abandon()

    def abandon(self) -> None:
        self._sender.abandon()
        left, self._left = self._left, []
        at_once(self._store.remove, left)

    def _send(self, number: int, piece: memoryview, _crc: int) -> str:
        key = f"{self._chunks}/0-{number:06d}"
        self._left.append(key)
        self._store.put(key, piece, if_absent=True)
        return key

    def _compose(self, key: str, sources: list[str]) -> Any:
        handle = self._store.handle
        blob: Any = handle.blob(key)
        blob.content_type = "application/octet-stream"
        blobs = [handle.blob(source) for source in sources]
        self._store.call("write it", key, lambda: blob.compose(blobs, retry=None))
        return blob
