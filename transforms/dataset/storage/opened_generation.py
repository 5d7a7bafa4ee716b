"""A generation that a reader has opened: whatever happens to the folder, its own records are read, or none.

    open a shard ─▶ then look: is the manifest still the one that was opened, and is no newer one made from nothing?
                    yes: the open shard is of this generation      no: `ReplacedError`, before a record of it is read

A commit comes before the files of its generation get their names. So a shard of another generation that was opened
under one of these names is always noticed by a look that comes after. A file on a disk stays what it is while it is
open. An object is pinned by its version. A generation is known by its commit: a folder that was removed and converted
again holds another generation of the same number.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import FileIO

from ...errors import DamageError, InputError, ReplacedError
from ...format.manifest.manifest import LIMITS, Manifest, ShardEntry
from ...format.manifest.naming import generation_file, staged_file
from ...format.manifest.parser import parse_overview
from ...format.wording.hints import Command
from ...format.wording.printable import printable_path
from ...stores.object_store import ObjectReader
from ...stores.store_url import is_store_url
from .contract import FileStatus, Storage
from .manifest_files import list_generations, locate_shard, numbers_in, read_file, read_manifest
from .object_storage import storage_at
from .record_file import open_regular


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


Identity = tuple[object, ...]
"""What tells a file from any other of its name."""


class OpenedGeneration:
    """One generation of the dataset at `path`; threads may share it, and each process has its own copy."""

    def __init__(self, path: str, manifest: Manifest, identity: Identity | None = None) -> None:
        """Take a manifest that was read; `identity` is that of its file before it was read, where that is known."""
        self.path, self.manifest = path, manifest
        self._identity = identity
        self._last = manifest.generation  # of itself and the appends to it that were seen

    def name(self, entry: ShardEntry) -> str:
        return printable_path(os.path.join(self.path, entry.path))

    @property
    def verify(self) -> Command:
        return Command("verify", self.path)

    def open_again(self, entry: ShardEntry) -> ObjectReader:
        """Open the object of a shard whose object was open and is no longer there.

        Raise `DamageError` also where the object is not that of the manifest.
        """
        opened = self.open(entry)
        assert isinstance(opened, ObjectReader)
        crc = opened.info.crc32c
        if opened.size != entry.bytes or (crc is not None and f"{crc:08x}" != entry.crc32c):
            raise DamageError(
                f"{self.name(entry)}: changed while it was read, and is not the shard of the manifest: {self.verify}"
            )
        return opened

    def open(self, entry: ShardEntry) -> FileIO | ObjectReader:
        """Open a shard under the name that it has by now; raise `ReplacedError` if the generation was replaced."""
        while True:
            located = None
            try:
                located = locate_shard(self.path, self.manifest, entry)
                opened = open_regular(os.path.join(self.path, located), self.name(entry))
            except (DamageError, InputError):
                self.check()
                if located in (None, entry.path) or storage_at(self.path).lies_at(located):
                    raise
                continue  # it was published at this moment
            try:
                self.check()
            except BaseException:
                opened.close()
                raise
            return opened

    def check(self) -> None:
        """Raise `ReplacedError` if the generation was replaced: if not, whatever was opened before belongs to it."""
        found = self.replacement()
        if found is not None:
            raise ReplacedError(
                f"{printable_path(self.path)}: generation {self.manifest.generation} {found} after it was opened; "
                f"open the dataset again, or run the command again"
            )

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Raise `ReplacedError` in place of the error of a file that is missing or damaged as it was replaced."""
        try:
            yield
        except (DamageError, InputError, FileNotFoundError):
            self.check()
            raise

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """Check at the end that all that was read within was of this generation, before its result is used."""
        with self.explained():
            yield
        self.check()

    def replacement(self) -> str | None:
        """Return what has happened to the generation, None while the dataset holds it."""
        storage, number = storage_at(self.path), self.manifest.generation
        while True:
            numbers, identity = _look(storage, number)
            if identity is None:
                return "was removed"
            if identity != self._identity:
                own = _overview(storage, number if numbers else None)
                if own is None:
                    continue
                if own.run.commit_id != self.manifest.run.commit_id:
                    return f"was removed, and another dataset was made there ({own.run.created}),"
                self._identity = identity
            for one in (one for one in numbers if one > self._last):
                newer = _overview(storage, one)
                if newer is None:
                    break
                if newer.parent != self._last:
                    return f"was replaced by generation {one}"
                self._last = one
            else:
                return None


def open_generation(path: str | os.PathLike[str], generation: int | None = None) -> OpenedGeneration:
    """Open a generation of a dataset, by default the latest; a link to the folder is followed now, and never again."""
    root = os.fspath(path)
    if is_store_url(root):
        root = root.rstrip("/")
    elif os.path.realpath(root) != os.path.abspath(root):
        root = os.path.realpath(root)
    numbers, identity = _look(storage_at(root), generation)
    opened = OpenedGeneration(root, read_manifest(root, generation or (numbers[-1] if numbers else None)), identity)
    found = opened.replacement() if opened.manifest.generation in numbers[:-1] else None
    if found is not None:
        raise InputError(
            f"{printable_path(root)}: generation {generation} {found}: its rows are no longer there; without a number "
            f"the latest is read, which is {numbers[-1]}"
        )
    return opened


def _look(storage: Storage, number: int | None) -> tuple[tuple[int, ...], Identity | None]:
    """Return the numbers of all generations, and what identifies the manifest of one: by default of the latest.

    A store is asked once. The lone `manifest.json` of a copy stands for any number.
    """
    listed = None if storage.has_locks else dict(storage.entries("manifests"))
    numbers = list_generations(storage.root) if listed is None else numbers_in(listed)
    if not numbers:
        status = storage.status("manifest.json")
    else:
        path = generation_file("manifests", number or numbers[-1], "json")
        status = storage.status(path) if listed is None else listed.get(os.path.basename(path))
    return numbers, None if status is None else (*status.identity, status.size, status.changed)


def _overview(storage: Storage, number: int | None) -> Manifest | None:
    """Return what a manifest states but for its parts, None if it is no longer there."""
    path = "manifest.json" if number is None else generation_file("manifests", number, "json")
    try:
        return parse_overview(read_file(storage.root, path, LIMITS.bytes), printable_path(storage.path(path)))[0]
    except DamageError:
        if storage.status(path) is not None:
            raise
        return None
