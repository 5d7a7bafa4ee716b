"""A dataset in an object store: `s3://bucket/folder`, `gs://bucket/folder`.

There are no folders, only keys that have them in their names; no links, so that a second name is a copy, made by the
store; and no locks, so that no run stages in the folder of another one (see `decisions.md`). All else is as it is on
disk: an object appears whole or not at all, is durable when it appears, and of several that put it if absent one wins.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import ClassVar, Final

from ...format.manifest.naming import STAGING_FOLDER
from ...format.splits.shard_plan import PartRange
from ...format.tfrecord.framing import crc32c
from ...stores.object_store import (
    ObjectInfo,
    ObjectReader,
    ObjectStore,
    Upload,
    at_once,
    finished_later,
    read_ahead,
    store_at,
)
from ...stores.store_url import is_store_url, parse_store_url
from .contract import FileStatus, Storage
from .local_storage import LocalStorage

_BUFFER_BYTES: Final = 1 << 20

_PASSED_BYTES: Final = 2 << 20
"""A piece that is fetched to be sent again: four are on their way, for each worker."""


_FOLDER: Final = FileStatus(0, 0.0, (), 0, is_file=False, is_folder=True)


@dataclass(frozen=True, slots=True)
class ObjectStorage:
    """A folder of a bucket; `root` is its URL, without a slash at its end."""

    root: str
    has_locks: ClassVar[bool] = False

    @property
    def store(self) -> ObjectStore:
        return store_at(parse_store_url(self.root))

    def key(self, path: str) -> str:
        return parse_store_url(self.root).below(path).key

    def path(self, path: str) -> str:
        return f"{self.root}/{path}" if path else self.root

    def open(self, path: str) -> io.BufferedReader:
        return io.BufferedReader(ObjectReader(self.store, self.key(path)), _BUFFER_BYTES)

    def lies_at(self, path: str) -> bool:
        return self.size(path) is not None or self._has_below(path)

    def status(self, path: str) -> FileStatus | None:
        found = self.store.head(self.key(path))
        if found is not None:
            return _status(found)
        return _FOLDER if self._has_below(path) else None

    def entries(self, folder: str) -> Iterator[tuple[str, FileStatus]]:
        prefix = self._prefix(folder)
        for page in self.store.level_pages(prefix):
            for found in page.objects:
                yield found.key.removeprefix(prefix), _status(found)
            for below in page.prefixes:
                yield below.removeprefix(prefix).rstrip("/"), _FOLDER

    def tree(self, path: str) -> Iterator[FileStatus]:
        found = self.status(path)
        if found is not None and found.is_file:
            yield found
        else:
            for info in self.store.walk(self._prefix(path)):
                yield _status(info)

    def files_below(self, folder: str) -> Iterator[tuple[str, int]]:
        prefix = self._prefix(folder)
        for info in self.store.walk(prefix):
            path = info.key.removeprefix(prefix)
            if folder or not path.startswith(f"{STAGING_FOLDER}/"):
                yield path, info.size

    def create_part(self, path: str) -> UploadedFile:
        return UploadedFile(self.store.upload(self.key(path)))

    def assemble(self, path: str, ranges: Sequence[PartRange], base: str) -> None:
        pieces = ((f"{base}/{part.path}", start.offset, end.offset) for part, start, end in ranges)
        self._write_through(path, pieces)

    def concatenate(self, path: str, sources: Sequence[str]) -> None:
        self._write_through(path, ((source, 0, None) for source in sources))

    def place(self, source: str, target: str) -> None:
        self.store.copy(self.key(source), self.key(target))

    def publish(self, source: str, target: str) -> bool:
        if self.store.copy(self.key(source), self.key(target), if_absent=True):
            return True
        one, other = self.store.head(self.key(source)), self.store.head(self.key(target))
        return (
            one is not None
            and other is not None
            and one.crc32c is not None
            and (one.size, one.crc32c) == (other.size, other.crc32c)
        )

    def put_if_absent(self, path: str, data: bytes) -> bool:
        return self.store.put(self.key(path), data, if_absent=True)

    def replace(self, path: str, data: bytes) -> None:
        self.store.put(self.key(path), data)

    def replace_if(self, path: str, data: bytes, version: str | None) -> bool:
        """Replace an object, or make it (None), if it is still of the version that was seen; return whether it was."""
        return self.store.put(self.key(path), data, if_absent=version is None, if_version=version)

    def version(self, path: str) -> str | None:
        found = self.store.head(self.key(path))
        return None if found is None else found.version

    def read(self, path: str) -> bytes:
        return self.store.read(self.key(path))

    def size(self, path: str) -> int | None:
        found = self.store.head(self.key(path))
        return None if found is None else found.size

    def list(self, folder: str) -> list[str]:
        prefix = self._prefix(folder)
        level = self.store.level(prefix)
        names = {found.key.removeprefix(prefix) for found in level.objects}
        return sorted(names | {found.removeprefix(prefix).rstrip("/") for found in level.prefixes})

    def sync(self, folder: str) -> None:
        """Do nothing: what is there is durable."""

    def stated_crc32c(self, path: str) -> int | None:
        found = self.store.head(self.key(path))
        return None if found is None else found.crc32c

    def stated_crcs(self, seen: Mapping[str, FileStatus]) -> dict[str, int | None]:
        unknown = [path for path, status in seen.items() if status.crc32c is None]
        known = {path: status.crc32c for path, status in seen.items()}
        return known | dict(zip(unknown, at_once(self.stated_crc32c, unknown), strict=True))

    def crc32c(self, path: str) -> int:
        stated = self.stated_crc32c(path)
        if stated is not None:
            return stated
        crc = 0
        for piece in self._pieces(path, 0, None):
            crc = crc32c(piece, crc)
        return crc

    def remove(self, path: str) -> None:
        self.store.delete([self.key(path)])

    def remove_seen(self, seen: Mapping[str, FileStatus]) -> set[str]:
        stay = self.store.delete_seen({self.key(path): str(status.identity[0]) for path, status in seen.items()})
        return {path for path in seen if self.key(path) not in stay}

    def remove_tree(self, folder: str) -> None:
        self.store.delete(found.key for found in self.store.walk(self._prefix(folder)))

    def remove_if_empty(self, folder: str) -> None:
        """Do nothing: a folder is there as long as something is in it."""

    def remove_any(self, path: str) -> None:
        self.remove(path)
        self.remove_tree(path)

    def _prefix(self, folder: str) -> str:
        key = self.key(folder)
        return f"{key}/" if key else ""

    def _has_below(self, path: str) -> bool:
        return next(self.store.walk(self._prefix(path)), None) is not None

    def _write_through(self, path: str, ranges: Iterator[tuple[str, int, int | None]]) -> None:
        upload = self.store.upload(self.key(path))
        try:
            for source, start, end in ranges:
                for piece in self._pieces(source, start, end):
                    upload.write(memoryview(piece))
            upload.finish()
        except BaseException:
            upload.abandon()
            raise

    def _pieces(self, path: str, start: int, end: int | None) -> Iterator[bytes]:
        store, key = self.store, self.key(path)
        if end is None:
            with ObjectReader(store, key) as opened:
                end = opened.size
        return read_ahead(store, key, start, end, piece_bytes=_PASSED_BYTES)


def _status(found: ObjectInfo) -> FileStatus:
    """Return what is known of an object; S3 gives equal bytes one version, so the second when it came counts too."""
    identity = (found.version, int(found.modified))
    return FileStatus(found.size, found.modified, identity, found.size, crc32c=found.crc32c)


class UploadedFile:
    """An object that is being written; see `PartFile`."""

    def __init__(self, upload: Upload) -> None:
        self._upload = upload
        self._finished: Future[None] | None = None

    def write(self, buffers: Sequence[memoryview]) -> None:
        for buffer in buffers:
            self._upload.write(buffer)

    def close(self) -> None:
        self._finished = finished_later(self._upload.finish)

    def wait(self) -> None:
        if self._finished is not None:
            self._finished.result()

    def abandon(self) -> None:
        """Leave nothing of the object, unless it was finished: then it stays, and counts for nothing."""
        if self._finished is None:
            self._upload.abandon()
        elif not self._finished.cancel():
            self._finished.exception()


def storage_at(root: str | os.PathLike[str]) -> Storage:
    """Return the folder that a path or URL names.

    >>> storage_at("s3://bucket/out/").root, storage_at("/data/out").root
    ('s3://bucket/out', '/data/out')
    """
    text = os.fspath(root)
    return ObjectStorage(text.rstrip("/")) if is_store_url(text) else LocalStorage(os.path.abspath(text))


def absolute(root: str) -> str:
    return storage_at(root).root
