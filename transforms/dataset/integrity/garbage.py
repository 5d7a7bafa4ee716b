"""Find and remove what is in a dataset's folder and no kept generation needs (`gc`).

    kept         the latest generations, and all that they were made from; by default all there are
    may go       manifests and files of the others; files with Shardmill's names that no generation has; what a writer
                 that was killed left half written; staging folders of runs that are dead
    stays        whatever is younger than a week, in doubt by the clock of the file system; whatever a live run works
                 in; the staging folder that any manifest on disk names, as its files may not be published yet;
                 files of names that are not ours: they belong to someone else

The folder is listed before the manifests are read: a commit comes before its files get their names, so a name that is
listed and belongs to a generation is found in its manifest.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any, Final

from ...errors import DamageError, InputError, UsageError
from ...format.manifest.manifest import LIMITS, Manifest, is_part_path, parts_named_in
from ...format.manifest.naming import STAGING_FOLDER, generation_file, index_paths, shard_name_pattern
from ...format.wording.printable import printable_path
from ..stage.run_lock import hold_if_dead, is_held
from ..storage.contract import FileStatus, Storage
from ..storage.manifest_files import (
    PartCache,
    check_own_folders,
    lineage,
    list_generations,
    read_manifest,
    replacements,
)
from ..storage.object_storage import storage_at

WEEK_SECONDS: Final = 7 * 86400

_RUN_ID: Final = re.compile(r"[0-9a-f]{16}")
_INDEX: Final = re.compile(r"index/[A-Za-z0-9._=-]+\.(idx|offsets)")
_LISTED: Final = ("", "manifests", "sources", "rejects", "index")
_MANIFEST: Final = re.compile(r"manifests/[0-9]{8,19}\.json")
_LIST: Final = re.compile(r"(sources|rejects)/[0-9]{8,19}\.jsonl")
_HALF_WRITTEN: Final = re.compile(r"(.*/)?\.[^/]+\.([0-9a-f]{32}|[0-9a-f]{12}\.incomplete)", re.DOTALL)
_SPOOLED: Final = re.compile(r"data-[0-9a-f]{16}\.arrow|tmp[a-z0-9_]+\.part")


_LOOKED_AT_ONCE: Final = 1000
"""The most names that a store lists, or removes, in one request."""


@dataclass(frozen=True, slots=True)
class Garbage:
    """One thing that may go: a file, or the staging folder of a dead run; `path` is relative to the dataset's folder.

    `bytes` is what its removal frees: a file that has another name frees nothing. `age` is in seconds.
    """

    path: str
    reason: str
    files: int
    bytes: int
    age: int


@dataclass(frozen=True, slots=True)
class GarbageReport:
    """What may go of the dataset in the folder `path`, or went, if `deleted`.

    `kept` are the generations that stay; of those that were `replaced` only manifests and lists. `dropped` are those
    whose manifests go. `young` is how many things stay only since they are not old enough, `live` how many staging
    folders since a run works in them.
    """

    path: str
    kept: tuple[int, ...]
    dropped: tuple[int, ...]
    items: tuple[Garbage, ...]
    young: int
    live: int
    deleted: bool
    replaced: tuple[int, ...] = ()

    @property
    def files(self) -> int:
        return sum(item.files for item in self.items)

    @property
    def bytes(self) -> int:
        return sum(item.bytes for item in self.items)

    def to_json(self) -> dict[str, Any]:
        return {
            "path": printable_path(self.path),
            "deleted": self.deleted,
            "kept": list(self.kept),
            "replaced": list(self.replaced),
            "dropped": list(self.dropped),
            "files": self.files,
            "bytes": self.bytes,
            "young": self.young,
            "live": self.live,
            "items": [asdict(item) for item in self.items],
        }


def collect_garbage(
    path: str | os.PathLike[str],
    *,
    older_than: int = WEEK_SECONDS,
    keep: int | None = None,
    delete: bool = False,
    now: float | None = None,
) -> GarbageReport:
    """Find what no kept generation of a dataset needs, and remove it if `delete` says so.

    Where a first run failed there is no generation yet: then that is what its run staged.

        collect_garbage("out/trips").bytes                   # what could be freed
        collect_garbage("out/trips", keep=1, delete=True)    # the latest generation, and what it was made from, stay

    `older_than` is in seconds, `keep` is a number of generations (None: all of them), `now` is the time to count from,
    in seconds since 1970. Where the manifest of a generation that stays is damaged nobody knows what it needs: that is
    a `DamageError`.
    """
    if (keep is not None and keep < 1) or older_than < 0:
        raise UsageError(f"keep is {keep} and older_than {older_than}: keep at least 1, from 0 seconds on")
    storage = storage_at(path)
    check_own_folders(storage.root)
    search = _Search(storage, older_than, time.time() if now is None else now)
    listed, staged = search.listing(), storage.list(STAGING_FOLDER)
    kept, dropped = _kept(storage.root, keep, search, only_staged=any(map(_is_staged, staged)))
    found = search.unnamed(listed, kept, dropped) if kept else []
    if delete:
        found = search.remove_files(found)
    for name in staged:
        found += search.staged(name, delete=delete)
    if delete and not kept:
        storage.remove_if_empty(STAGING_FOLDER)
    return GarbageReport(
        path=storage.root,
        kept=tuple(manifest.generation for manifest in kept),
        dropped=dropped,
        items=tuple(found),
        young=search.young,
        live=search.live,
        deleted=delete,
        replaced=tuple(replacements({manifest.generation: manifest.parent for manifest in kept})),
    )


def _is_staged(name: str) -> bool:
    return _RUN_ID.fullmatch(name.removesuffix(".lock")) is not None


def _kept(root: str, keep: int | None, search: _Search, *, only_staged: bool) -> tuple[list[Manifest], tuple[int, ...]]:
    """Return the generations that stay, in order, and the numbers of the others.

    One stays with all that it was made from: their manifests and lists are its history. A manifest that is not old
    enough to go keeps what it names. There may be none where runs have staged something, and none of them finished.
    """
    parts = search.parts
    numbers = list_generations(root)
    if only_staged and not numbers and not storage_at(root).lies_at("manifest.json"):
        return [], ()
    latest = read_manifest(root, parts=parts)
    search.generations = set(numbers)
    if not numbers:
        return [latest], ()
    manifests: dict[int, Manifest] = {}
    for number in reversed(numbers if keep is None else numbers[-keep:]):
        if number not in manifests:
            for manifest in lineage(root, read_manifest(root, number, parts), parts):
                manifests.setdefault(manifest.generation, manifest)
    for number in numbers:
        if number not in manifests and not search.is_old(generation_file("manifests", number, "json")):
            search.young += 1
            manifests[number] = read_manifest(root, number, parts)
    return [manifests[number] for number in sorted(manifests)], tuple(n for n in numbers if n not in manifests)


def _names(manifest: Manifest) -> Iterator[str]:
    yield generation_file("manifests", manifest.generation, "json")
    yield from (path for path in (manifest.source.list, manifest.rejects.path) if path is not None)
    yield from manifest.sidecars
    for split in manifest.splits.values():
        for shard in split.shards:
            yield shard.path
            yield from index_paths(shard.path)  # also those that `shardmill index` has made since


class _Search:
    """What is old enough, and what of it may go."""

    def __init__(self, storage: Storage, older_than: int, now: float) -> None:
        self._storage = storage
        self._older_than = older_than
        self._now = now
        self.parts = PartCache(storage.root)  # the generations that stay are read with it first
        self._files: dict[str, FileStatus] = {}
        self._staging: dict[int, str] = {}
        self.generations: set[int] = set()
        self.young = 0
        self.live = 0

    def listing(self) -> list[str]:
        for folder in _LISTED:
            self._files |= {path: status for path, status in _entries(self._storage, folder) if status.is_file}
        return list(self._files)

    def is_old(self, path: str) -> bool:
        return path in self._files and self._age(self._files[path]) >= self._older_than

    def unnamed(self, listed: Sequence[str], kept: Sequence[Manifest], dropped: Sequence[int]) -> list[Garbage]:
        needed = {"manifest.json", *self.parts.named}.union(*map(_names, kept))
        known = set[str]().union(*(_names_of_dropped(self._storage.root, number, self.parts) for number in dropped))
        known |= self.parts.named
        patterns = {shard_name_pattern(manifest.shard_name) for manifest in kept}
        found = []
        for path in sorted(set(listed) - needed):
            if path in known:
                reason = "only generations that are not kept name it"
            elif _HALF_WRITTEN.fullmatch(path):
                reason = "left half written by a writer that was ended"
            elif is_part_path(path) or any(
                pattern.fullmatch(path) for pattern in (_MANIFEST, _LIST, _INDEX, *patterns)
            ):
                reason = "no generation names it"
            else:
                continue
            if self.is_old(path):
                status = self._files[path]
                found.append(Garbage(path, reason, 1, status.freed, self._age(status)))
            else:
                self.young += 1
        return found

    def remove_files(self, found: Sequence[Garbage]) -> list[Garbage]:
        """Remove files; return those that are gone. Manifests go first: none is left that names what is not."""
        gone = self._removed(item.path for item in found if _MANIFEST.fullmatch(item.path))
        if gone:
            self._storage.sync("manifests")
        gone |= self._removed(
            item.path for item in found if not (_MANIFEST.fullmatch(item.path) or is_part_path(item.path))
        )
        gone |= self._removed_parts(item.path for item in found if is_part_path(item.path))
        went = [item for item in found if item.path in gone]
        return sorted(went, key=lambda item: _MANIFEST.fullmatch(item.path) is None)

    def _removed_parts(self, paths: Iterable[str]) -> set[str]:
        """Remove parts of manifests, and put back what a commit of this moment names (see `Documents.put`)."""
        gone = set()
        for path in paths:
            data = None
            if self._files[path].size <= LIMITS.part_bytes:  # else it is none that a manifest could name
                with contextlib.suppress(FileNotFoundError):
                    data = self._storage.read(path)
            if path in self._removed([path]):
                gone.add(path)
                if data is not None and path in self._named_since():
                    self._storage.put_if_absent(path, data)
                    gone.remove(path)
        return gone

    def _named_since(self) -> set[str]:
        new = set(list_generations(self._storage.root)) - self.generations
        documents = (self._storage.read(generation_file("manifests", number, "json")) for number in new)
        return set[str]().union(*map(parts_named_in, documents))

    def _removed(self, paths: Iterable[str]) -> set[str]:
        """Look at files again, a thousand names of their folder at a time, and remove those that are what they were."""
        wanted, gone = set(paths), set[str]()
        for folder in sorted({os.path.dirname(path) for path in wanted}):
            entries = _entries(self._storage, folder)
            while names := dict(islice(entries, _LOOKED_AT_ONCE)):
                same = {p: now for p, now in names.items() if p in wanted and now.identity == self._files[p].identity}
                gone |= self._storage.remove_seen(same) if same else set()
        return gone

    def staged(self, name: str, *, delete: bool) -> list[Garbage]:
        path, run_id = f"{STAGING_FOLDER}/{name}", name.removesuffix(".lock")
        status = self._status(path)
        if status is None:  # its run ended
            return []
        folder = status.is_folder
        if not folder and _SPOOLED.fullmatch(name):
            if any(is_held(self._storage, run.removesuffix(".lock")) for run in self._storage.list(STAGING_FOLDER)):
                self.live += 1
                return []
            return self._old_tree(path, "data given in Python to a run that is dead", delete=delete)
        if _RUN_ID.fullmatch(run_id) is None or folder != (name == run_id):
            return []
        if is_held(self._storage, run_id):
            self.live += folder
            return []
        if not folder and self._status(f"{STAGING_FOLDER}/{run_id}") is not None:
            return []  # it goes with the folder
        if not delete:
            return self._dead_run(path, delete=False)
        if not self._storage.has_locks:  # its age has to do: a run that works in it adds to it
            return self._dead_run(path, delete=True)
        with hold_if_dead(self._storage, run_id) as dead:  # and the holder of a lock removes it in the end
            return self._dead_run(path, delete=True) if dead else []

    def _dead_run(self, path: str, *, delete: bool) -> list[Garbage]:
        if path in staging_folders(self._storage.root, self._staging):
            return []
        return self._old_tree(path, "staged by a run that is dead", delete=delete)

    def _old_tree(self, path: str, reason: str, *, delete: bool) -> list[Garbage]:
        """Return a file or a folder with all that is in it, if none of it is young."""
        files = list(self._storage.tree(path))
        if not files:  # its run ended
            return []
        folder = files[0].is_folder or not self._storage.has_locks
        age = min(self._age(status) for status in files)
        if age < self._older_than:
            self.young += 1
            return []
        regular = [status for status in files if not status.is_folder]
        if delete and folder:
            self._storage.remove_tree(path)
        elif delete and not path.endswith(".lock"):
            self._storage.remove(path)
        return [Garbage(path, reason, len(regular), sum(status.freed for status in regular), age)]

    def _status(self, path: str) -> FileStatus | None:
        return self._storage.status(path)

    def _age(self, status: FileStatus) -> int:
        return int(self._now - status.changed)


def _entries(storage: Storage, folder: str) -> Iterator[tuple[str, FileStatus]]:
    return ((f"{folder}/{name}" if folder else name, status) for name, status in storage.entries(folder))


def _names_of_dropped(root: str, number: int, parts: PartCache) -> set[str]:
    try:
        return set(_names(read_manifest(root, number, parts)))
    except DamageError:  # its files are found by their names
        return {generation_file("manifests", number, "json")}


def staging_folders(root: str, known: dict[int, str] | None = None) -> set[str]:
    """Return the staging folders of all runs that committed a generation which is there still.

    `known` are those of generations that were read before, and takes the others: a manifest never changes.
    """
    folders = {} if known is None else known
    numbers, parts = list_generations(root), PartCache(root)
    for number in numbers:
        if number not in folders:
            with contextlib.suppress(DamageError, InputError):  # gone, or damaged, and not kept: nothing reads it again
                folders[number] = "/".join(read_manifest(root, number, parts).run.staging.split("/")[:2])
    return {folders[number] for number in numbers if number in folders}


# The work of unfinished runs in a dataset's folder: it is not removed automatically, since it may be resumed.


def staged_by_dead_runs(storage: Storage, besides: str = "") -> int:
    """Return the bytes that runs which are dead have staged, `besides` the run of this name; 0 in a store.

    In a store nobody can tell which runs are dead, and asking takes requests.
    """
    return sum(_sizes(storage, besides)) if storage.has_locks else 0


def _sizes(storage: Storage, besides: str) -> Iterator[int]:
    names = [name for name in storage.list(STAGING_FOLDER) if _RUN_ID.fullmatch(name) and name != besides]
    committed = staging_folders(storage.root) if names else set()
    for name in names:
        path = f"{STAGING_FOLDER}/{name}"
        if path not in committed and not is_held(storage, name):
            with contextlib.suppress(FileNotFoundError):  # it is gone: its run, or a gc, has ended meanwhile
                yield sum(status.freed for status in storage.tree(path) if status.is_file)
