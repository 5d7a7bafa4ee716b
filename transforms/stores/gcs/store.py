"""Google Cloud Storage over google-cloud-storage (STORAGE_EMULATOR_HOST says where, for tests)."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from typing import Any, Final

from ...errors import StoreAccessError
from ..common import failures
from ..common.object_store import MARK, Level, ObjectInfo, PastEnd, PreconditionFailed
from ..common.store_url import StoreUrl
from .batch import BATCH_CALLS, remove_batch
from .client import GcsClient, info_of
from .upload import GcsUpload

_FIELDS: Final = "items(name,size,generation,crc32c,updated),prefixes,nextPageToken"


def connect(bucket: str) -> GcsStore:
    try:
        from google.auth.exceptions import GoogleAuthError
        from google.cloud import storage
        from requests.adapters import HTTPAdapter
    except ImportError:
        raise failures.missing_client("gs") from None
    try:
        client = storage.Client(project=None)
    except GoogleAuthError:
        raise failures.no_credentials(StoreUrl("gs", bucket)) from None
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

    removed_at_once = BATCH_CALLS

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
                raise failures.no_bucket(self.url(prefix)) from None
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
