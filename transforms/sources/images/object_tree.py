"""The folders of stores, as `os.scandir` tells those of a disk: a level of keys for each, which comes in pages.

What stands for the mtime of an object is the number of its version (see `number_of`).
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import chain

from ...errors import InputError
from ...stores.common.object_store import Level, ObjectInfo, number_of
from ...stores.common.store_url import parse_store_url
from ...stores.connect import store_at
from ..files.listing import holds_dataset
from ..files.object_listing import object_name
from ..files.open_file import is_object
from .walk import FolderEntry

_MANIFEST, _GENERATIONS = "manifest.json", "manifests/"


@dataclass(frozen=True, slots=True)
class ObjectEntry:
    """An object or a folder, below a folder: `info` is None for a folder."""

    name: bytes
    path: bytes
    info: ObjectInfo | None

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:  # noqa: ARG002 - there are no links
        return self.info is None

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:  # noqa: ARG002
        assert self.info is not None
        size, number = measure_object(self.info)
        return os.stat_result((stat.S_IFREG, 0, 0, 0, 0, 0, size, 0, 0, 0), {"st_mtime_ns": number})


def measure_object(info: ObjectInfo) -> tuple[int, int]:
    return info.size, number_of(info.version)


class ObjectTree:
    """Scans folders, wherever they are; those on disks as ever."""

    def __init__(self) -> None:
        self._begun: dict[bytes, Iterator[Level]] = {}

    def scan(self, folder: bytes) -> AbstractContextManager[Iterable[FolderEntry]]:
        """Raise `StoreAccessError` or `StoreError`, and `InputError` for a folder without a name."""
        if not is_object(folder):
            return os.scandir(folder)
        return nullcontext(self._entries(folder))

    def holds_dataset(self, folder: bytes) -> bool:
        if not is_object(folder):
            return holds_dataset(folder)
        url = parse_store_url(folder.decode() + "/")
        pages = store_at(url).level_pages(url.key)
        first = next(pages, Level((), ()))
        second = next(pages, None)
        self._begun[folder] = chain([first], [] if second is None else [second], pages)  # it will be scanned
        if second is None:
            keys = {info.key for info in first.objects} | set(first.prefixes)
            return {url.key + _MANIFEST, url.key + _GENERATIONS} <= keys
        store = store_at(url)
        return store.head(url.key + _MANIFEST) is not None and any(store.walk(url.key + _GENERATIONS))

    def _entries(self, folder: bytes) -> Iterator[ObjectEntry]:
        url = parse_store_url(folder.decode() + "/")
        pages = self._begun.pop(folder, None) or store_at(url).level_pages(url.key)
        at = len(url.key)
        seen: set[str] = set()
        for page in pages:
            for info in page.objects:
                name = info.key[at:].encode()
                yield ObjectEntry(name, folder + b"/" + name, info)
            for prefix in page.prefixes:
                if prefix in seen:
                    continue
                seen.add(prefix)
                name = prefix[at:-1].encode()
                if not name:
                    raise InputError(f"{object_name(folder)}//: a folder without a name is not read; rename its keys")
                yield ObjectEntry(name, folder + b"/" + name, None)
