"""A toy store, which the product has never heard of: `toy://bucket/key` is a file in memory of this process."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator, Sequence
from typing import ClassVar

from shardmill.transforms.format.tfrecord.framing import crc32c
from shardmill.transforms.stores.object_store import Level, ObjectInfo, ObjectStore, number_of

_lock = threading.Lock()
_versions = itertools.count(1)


def connect(bucket: str) -> ToyStore:
    return ToyStore(bucket)


class ToyUpload:
    def __init__(self, store: ToyStore, key: str) -> None:
        self.store, self.key, self.data = store, key, bytearray()

    def write(self, data: memoryview) -> None:
        self.data += data

    def finish(self) -> None:
        self.store.put(self.key, bytes(self.data))

    def abandon(self) -> None:
        self.data.clear()


class ToyStore(ObjectStore):
    scheme = "toy"
    removed_at_once = 100
    conditions: ClassVar = {"if_absent": "absent", "if_version": "version", "copy_if_absent": "absent"}

    def __init__(self, bucket: str) -> None:
        super().__init__(bucket)
        self.objects: dict[str, tuple[ObjectInfo, bytes]] = {}

    def head(self, key: str) -> ObjectInfo | None:
        found = self.objects.get(key)
        return None if found is None else found[0]

    def walk(self, prefix: str) -> Iterator[ObjectInfo]:
        keys = sorted((key for key in self.objects if key.startswith(prefix)), key=str.encode)
        yield from [self.objects[key][0] for key in keys]

    def level_pages(self, prefix: str) -> Iterator[Level]:
        found = [info for info in self.walk(prefix) if info.key != prefix]
        direct = tuple(info for info in found if "/" not in info.key[len(prefix) :])
        below = {prefix + info.key[len(prefix) :].partition("/")[0] + "/" for info in found if info not in direct}
        yield Level(direct, tuple(sorted(below)))

    def read(self, key: str, start: int = 0, end: int | None = None, *, version: str | None = None) -> bytes:
        if version not in (None, self.found(key).version):
            raise self.changed(key)
        return self.objects[key][1][start:end]

    def read_numbered(self, key: str, start: int, end: int, number: int) -> bytes:
        if number_of(self.found(key).version) != number:
            raise self.changed(key)
        return self.objects[key][1][start:end]

    def put(
        self, key: str, data: bytes | memoryview, *, if_absent: bool = False, if_version: str | None = None
    ) -> bool:
        with _lock:
            known = self.head(key)
            if (if_absent and known) or (if_version and (known is None or known.version != if_version)):
                return False
            content = bytes(data)
            info = ObjectInfo(key, len(content), str(next(_versions)), 0.0, crc32c(content))
            self.objects[key] = (info, content)
            return True

    def upload(self, key: str) -> ToyUpload:
        return ToyUpload(self, key)

    def copy(self, source: str, target: str, *, if_absent: bool = False) -> bool:
        return self.put(target, self.read(source), if_absent=if_absent)

    def remove_some(self, objects: Sequence[tuple[str, str | None]]) -> set[str]:
        stay = set()
        for key, version in objects:
            known = self.head(key)
            if known is not None and version not in (None, known.version):
                stay.add(key)
            else:
                self.objects.pop(key, None)
        return stay

    def failure_of(self, error: Exception, key: str, action: str) -> Exception | None:
        return None
