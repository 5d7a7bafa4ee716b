"""Where all shards of a generation are: on disk by a look at each, in a store by a few lists of its folders.

A store is asked for the staging folder first, and for the final names after that: so whatever is published meanwhile
is in the one or the other.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ...errors import DamageError, InputError
from ...format.manifest.manifest import Manifest, ShardEntry
from ...format.manifest.naming import staged_file
from ..storage.contract import FileStatus, Storage
from ..storage.storage_at import storage_at
from .manifest_files import locate_shard, read_manifest


@dataclass(frozen=True, slots=True)
class ShardPlace:
    """Where a shard is, relative to the folder (see `locate_shard`), or why that is unknown.

    `status` is what the list said that it was found in; None where none was made.
    """

    entry: ShardEntry
    file: str | DamageError
    status: FileStatus | None = None

    def located(self) -> str:
        if isinstance(self.file, DamageError):
            raise self.file
        return self.file


def locate_shards(root: str, manifest: Manifest, entries: Iterable[ShardEntry]) -> Iterator[ShardPlace]:
    storage, wanted = storage_at(root), list(entries)
    lists = None if storage.has_locks else _Lists(storage, manifest, wanted)
    for entry in wanted:
        found = None if lists is None else lists.place_of(entry)
        if found is not None:
            yield found
            continue
        try:
            yield ShardPlace(entry, locate_shard(root, manifest, entry))
        except DamageError as error:
            yield ShardPlace(entry, error)


class _Lists:
    """What is in the folders of a store that shards may be in."""

    def __init__(self, storage: Storage, manifest: Manifest, entries: list[ShardEntry]) -> None:
        self._storage = storage
        self._manifest = manifest
        self._staged: dict[int, tuple[str, dict[str, FileStatus]]] = {}
        if any(entry.generation == manifest.generation for entry in entries):
            self._staged_by(manifest.generation)
        self._final = dict(storage.entries(""))

    def place_of(self, entry: ShardEntry) -> ShardPlace | None:
        """Return where a shard is; None where the lists do not tell."""
        final = self._final.get(entry.path)
        if entry.generation == self._manifest.generation or final is None or final.size != entry.bytes:
            staging, names = self._staged_by(entry.generation)
            if entry.path in names:
                return ShardPlace(entry, staged_file(staging, entry.path), names[entry.path])
        return ShardPlace(entry, entry.path, final) if final is not None and final.is_file else None

    def _staged_by(self, generation: int) -> tuple[str, dict[str, FileStatus]]:
        if generation not in self._staged:
            staging, own = "", generation == self._manifest.generation
            with contextlib.suppress(InputError, DamageError):  # the caller finds that the shard is missing
                manifest = self._manifest if own else read_manifest(self._storage.root, generation)
                staging = manifest.run.staging
            folder = staged_file(staging, "").rstrip("/")
            self._staged[generation] = staging, dict(self._storage.entries(folder)) if staging else {}
        return self._staged[generation]
