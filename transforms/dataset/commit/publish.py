"""Publish: give the files of a committed generation their final names. Also checks the target before a run.

Every step may run again, also in another process after a crash: a staged file is linked under its final name, never
over another file; when all names are durable the sidecars and `manifest.json` are replaced, and the staging folder
goes. Until then readers find a shard in the staging folder that its manifest names.

`write_generation` is all of it without an engine, from the results of all tasks; `WriteShards` takes the same steps,
each of them over many workers: shuffle, plan, assemble, commit, publish, complete.
"""

from __future__ import annotations

import errno
import fnmatch
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any, Final

from ...errors import CommitError, TargetError
from ...format.manifest.manifest import Manifest, is_part_path
from ...format.manifest.naming import STAGING_FOLDER, generation_file, index_paths, staged_file, staged_sidecar
from ...format.sidecars.sidecar_files import in_publishing_order
from ...format.wording.hints import Add
from ...format.wording.printable import printable
from ..stage.run_lock import hold_if_dead, hold_sidecars
from ..stage.spec import NO_FINGERPRINT, DatasetSpec
from ..stage.task_stager import TaskResult
from ..storage.contract import FileStatus, Storage
from ..storage.manifest_files import (
    check_own_folders,
    copy_in_part,
    is_replaced,
    lineage,
    list_generations,
    read_manifest,
)
from ..storage.object_storage import ObjectStorage, storage_at
from .accounting import Refusal
from .assemble_shards import assemble_shard
from .commit_generation import Commit, WriteOutcome, commit_generation, plan_generation, read_decision
from .plan_step import plan_shuffle
from .second_pass import run_shuffle_task

_AGAIN: Final = f"convert again with {Add('--overwrite')}"


_SMALL_AT_ONCE: Final = 64

_REMOVED_AT_ONCE: Final = 1000
"""The most objects that S3 removes in one request."""


@dataclass(frozen=True, slots=True)
class Move:
    """A staged file and its final path, both relative to the dataset's folder; sizes and CRCs where known.

    `replaces` allows it to be where a file of the superseded generation was. `generation` is the one that the file
    belongs to: if another has replaced that meanwhile, the move is not made.
    """

    source: str
    target: str
    bytes: int | None = None
    crc: str | None = None
    replaces: bool = False
    generation: int | None = None


def moves_of(commit: Commit) -> list[Move]:
    """Return the files to move to publish a generation; the sidecars that change are replaced at the end."""
    manifest, staging, number = commit.manifest, commit.manifest.run.staging, commit.manifest.generation
    replaces = commit.superseded is not None
    moves = [
        Move(staged_file(staging, shard.path), shard.path, shard.bytes, shard.crc32c, replaces, number)
        for shard in manifest.own_shards
    ]
    stated = set(manifest.sidecars)
    indexes = sorted(name for shard in manifest.own_shards for name in index_paths(shard.path) if name in stated)
    moves += [Move(staged_sidecar(staging, name), name, replaces=replaces, generation=number) for name in indexes]
    for listed, name in ((manifest.rejects.path, "rejects.jsonl"), (manifest.source.list, "sources.jsonl")):
        if listed is not None:
            moves.append(Move(f"{staging}/{name}", listed, replaces=replaces, generation=number))
    return moves


def grouped_moves(commit: Commit) -> Iterator[tuple[Move, ...]]:
    """Yield the moves of `moves_of` for an engine, which takes 4 KB of memory for each element.

    Those of shards come alone, since in a store each is a copy, and those of small files many at once.
    """
    moves = moves_of(commit)
    yield from ((move,) for move in moves if move.bytes is not None)
    small = [move for move in moves if move.bytes is None]
    yield from (tuple(small[first : first + _SMALL_AT_ONCE]) for first in range(0, len(small), _SMALL_AT_ONCE))


def publish_file(storage: Storage, move: Move, *, held: bool = False) -> None:
    """Make one move, or find it made; `held` says that the caller holds the sidecars.

    Raise `CommitError` if another file has the name, or the staged file is gone.
    """
    if move.replaces:
        # a later replacement may have published its own file by now: it looks again while it holds the sidecars
        with nullcontext() if held else hold_sidecars(storage):
            if is_replaced(storage.root, move.generation):
                return
            _move(storage, move)
        return
    try:
        _move(storage, move)
    except FileNotFoundError:
        if storage.size(move.source) is not None:
            raise
        _move(storage, move)  # it was staged, and published by another process at this moment


def _move(storage: Storage, move: Move) -> None:
    if storage.size(move.source) is None:
        if move.bytes in (None, storage.size(move.target)) and _has_crc(storage, move):
            return
        if is_replaced(storage.root, move.generation):
            return
        raise CommitError(
            f"{storage.path(move.target)} was committed, but is neither there nor in {move.source}: its staging folder "
            f"was changed; {_AGAIN}"
        )
    if move.replaces:
        storage.place(move.source, move.target)
    elif not storage.publish(move.source, move.target):
        size = storage.size(move.source)
        if size is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), move.source)
        there = storage.size(move.target)
        other = there != (size if move.bytes is None else move.bytes) or not _is_committed(storage, move)
        if other and not is_replaced(storage.root, move.generation):
            raise CommitError(
                f"{storage.path(move.target)} is in the way: it is not the committed file of that name, which is in "
                f"{move.source}; move it elsewhere and run again"
            )


def _is_committed(storage: Storage, move: Move) -> bool:
    """Return whether the target, of the right size, has the committed bytes, by the manifest's CRC if there is one."""
    return storage.crc32c(move.target) == (storage.crc32c(move.source) if move.crc is None else int(move.crc, 16))


def _has_crc(storage: Storage, move: Move) -> bool:
    if storage.size(move.target) is None:
        return False
    return move.crc is None or f"{storage.crc32c(move.target):08x}" == move.crc


def _publish_left(storage: Storage, moves: list[Move], *, held: bool = False) -> None:
    """Make moves that an earlier run, or an engine that loses elements, has left; `held` as for `publish_file`.

    The staged files are checked against the manifest first: whatever happened to them since, only committed bytes get a
    final name.
    """
    for move in moves:
        if _is_other_file(storage, move):
            raise CommitError(
                f"{storage.path(move.source)} is not the committed {move.target}: its staging folder was changed; "
                f"{_AGAIN}"
            )
        publish_file(storage, move, held=held)


def _is_other_file(storage: Storage, move: Move) -> bool:
    """Return whether what is staged has another size or CRC than the manifest states; a store is asked, never read."""
    size = storage.size(move.source)
    if move.crc is None or size is None:
        return False
    try:
        crc = storage.crc32c(move.source) if storage.has_locks else storage.stated_crc32c(move.source)
    except FileNotFoundError:  # another process has published it, and removed it, at this moment
        return False
    return size != move.bytes or crc not in (None, int(move.crc, 16))


def complete_publish(storage: Storage, commit: Commit) -> None:
    """Replace the sidecars and `manifest.json` when all moves are made, then remove the staging folder.

    Sidecars describe all generations: where an older one is not wholly published yet, its files are moved before.
    """
    _complete(storage, commit)
    storage.remove_tree(_run_folder(commit.manifest))
    storage.remove_if_empty(STAGING_FOLDER)


def finish_publish(path: str, run_id: str | None = None) -> Manifest | None:
    """Complete the publishing of all generations that a crash left undone; return the latest.

    Returns None where there is no dataset. Every command that opens a dataset for writing calls this first. `run_id` is
    the run whose staging folder the caller holds itself, if any: that of any other live process stays.
    """
    storage = storage_at(path)
    check_own_folders(storage.root)
    generations = list_generations(storage.root)
    if not generations:
        return None
    manifest = read_manifest(storage.root)
    published = generation_file("manifests", manifest.generation, "json")
    done = storage.size("manifest.json") is not None and storage.read("manifest.json") == storage.read(published)
    staged = not done or bool(storage.list(f"{manifest.run.staging}/shards"))
    replaced = manifest.operation != "append" and len(generations) > 1
    # what it replaces is removed after all else, and before its staging folder
    if staged or (replaced and storage.lies_at(_run_folder(manifest))):
        commit = Commit(manifest, read_manifest(storage.root, generations[-2]) if replaced else None)
        if staged:
            _publish_left(storage, _left_to_make(storage, moves_of(commit)))
        _complete(storage, commit)
    _remove_published(storage, manifest, run_id)
    return manifest


def _complete(storage: Storage, commit: Commit) -> None:
    """Replace the sidecars when every file of the generation, and of those before it, has its final name.

    If another generation has replaced this one, all names are that one's, and nothing is left to do.
    """
    manifest, moves = commit.manifest, moves_of(commit)
    with hold_sidecars(storage):
        if is_replaced(storage.root, manifest.generation):
            return
        older = _publish_older(storage, manifest)
        left = _left_to_make(storage, moves, listed_only=commit.superseded is None)
        _publish_left(storage, left, held=True)
        for folder in sorted({os.path.dirname(move.target) for move in [*older, *moves]} | {""}):
            storage.sync(folder)
        if isinstance(storage, ObjectStorage):
            if replace_sidecars(storage, manifest) and commit.superseded is not None:
                _remove_superseded(storage, commit.superseded, manifest)
        elif list_generations(storage.root)[-1] == manifest.generation:
            _replace_sidecars(storage, manifest)
            if commit.superseded is not None:
                _remove_superseded(storage, commit.superseded, manifest)
            for folder in sorted({os.path.dirname(name) for name in manifest.sidecars} | {""}):
                storage.sync(folder)


def _publish_older(storage: Storage, latest: Manifest) -> list[Move]:
    made: list[Move] = []
    for manifest in _staged_lineage(storage, latest):
        if manifest.generation != latest.generation:
            moves = moves_of(Commit(manifest))
            there = _files(storage, {move.target for move in moves})
            missing = [move for move in moves if move.target not in there]
            _publish_left(storage, missing)
            made += missing
    return made


def _staged_lineage(storage: Storage, latest: Manifest) -> Iterator[Manifest]:
    left = {f"{STAGING_FOLDER}/{name}" for name in storage.list(STAGING_FOLDER) if "." not in name}
    generations = lineage(storage.root, latest)
    while left and (manifest := next(generations, None)) is not None:
        folder = _run_folder(manifest)
        if folder in left:
            left.remove(folder)
            yield manifest


def _remove_published(storage: Storage, latest: Manifest, run_id: str | None) -> None:
    """Remove the staging folders of published generations, except those of live runs, which do that themselves."""
    for manifest in _staged_lineage(storage, latest):
        if manifest.run.run_id == run_id:
            storage.remove_tree(_run_folder(manifest))
            continue
        with hold_if_dead(storage, manifest.run.run_id) as dead:
            # without locks: another publisher finds its files published
            if dead or not storage.has_locks:
                targets = {move.target for move in moves_of(Commit(manifest))}
                if len(_files(storage, targets)) == len(targets):
                    storage.remove_tree(_run_folder(manifest))
    storage.remove_if_empty(STAGING_FOLDER)


def _run_folder(manifest: Manifest) -> str:
    """Return the staging folder of a run: a generation was staged in it, or in a folder in it."""
    return "/".join(manifest.run.staging.split("/")[:2])


def _replace_sidecars(storage: Storage, manifest: Manifest) -> None:
    for name in in_publishing_order(name for name in manifest.sidecars if not name.startswith("index/")):
        staged = staged_sidecar(manifest.run.staging, name)
        try:
            storage.place(staged, name)
        except FileNotFoundError:
            if storage.size(name) is None:
                raise CommitError(f"{storage.path(name)} was committed, but is neither there nor in {staged}") from None
    storage.replace("manifest.json", storage.read(generation_file("manifests", manifest.generation, "json")))


def _remove_superseded(storage: Storage, old: Manifest, new: Manifest) -> None:
    """Remove the files of a replaced generation that the new one has none of; its manifest stays.

    In a store an append may run meanwhile, and may take any of these names. The files that have them are
    noted first: if the new generation is the latest after that, they are of the old one, and only they are removed. An
    append removes them all before it begins.
    """
    kept = {shard.path for split in new.splits.values() for shard in split.shards} | set(new.sidecars)
    replaced = [shard.path for split in old.splits.values() for shard in split.shards]
    gone = {*replaced, *old.sidecars}.union(*map(index_paths, replaced))
    seen = _files(storage, gone - kept)
    names = sorted(seen)
    for start in range(0, len(names), _REMOVED_AT_ONCE):
        if list_generations(storage.root)[-1] != new.generation:
            return
        storage.remove_seen({name: seen[name] for name in names[start : start + _REMOVED_AT_ONCE]})


def _files(storage: Storage, paths: set[str]) -> dict[str, FileStatus]:
    found = {}
    for folder in sorted({os.path.dirname(path) for path in paths}):
        for name, status in storage.entries(folder):
            path = f"{folder}/{name}" if folder else name
            if path in paths and status.is_file:
                found[path] = status
    return found


def _left_to_make(storage: Storage, moves: list[Move], *, listed_only: bool = False) -> list[Move]:
    """Return the moves that have not been made, as far as names, sizes and the checksums of a store tell.

    With `listed_only` a store is not asked for checksums that its lists do not state (S3's): a request a shard.
    """
    if storage.has_locks:
        return [move for move in moves if not _is_linked(storage, move)]
    there = _files(storage, {path for move in moves for path in (move.source, move.target)})
    alike = [move for move in moves if move.target in there and there[move.target].size == _wanted_size(move, there)]
    asked = {path for move in alike for path in (move.target, move.source if move.crc is None else move.target)}
    seen = {path: there[path] for path in asked if path in there}
    crcs = {path: status.crc32c for path, status in seen.items()} if listed_only else storage.stated_crcs(seen)
    made = set()
    for move in alike:
        crc = crcs[move.target]
        wanted = int(move.crc, 16) if move.crc else crcs.get(move.source, crc)
        if crc == wanted if crc is not None else listed_only:
            made.add(move.target)
    return [move for move in moves if move.target not in made]


def _is_linked(storage: Storage, move: Move) -> bool:
    """Return whether a staged file on a disk has its final name; one that is no longer staged has been moved."""
    source, target = storage.status(move.source), storage.status(move.target)
    if target is None or not target.is_file:
        return False
    if source is not None:
        return source.identity == target.identity
    return not move.replaces and move.bytes in (None, target.size)  # what it replaces may have the same size


def _wanted_size(move: Move, there: dict[str, FileStatus]) -> int:
    return there.get(move.source, there[move.target]).size if move.bytes is None else move.bytes


def replace_sidecars(storage: ObjectStorage, manifest: Manifest) -> bool:
    """Replace all sidecars and `manifest.json`; return whether they are this generation's now, and no newer one's.

    It takes no lock, and never replaces those of a newer generation:

        publisher of 5   sees version a ── lists: 5 is the latest ─────────────── put if still a ─▶ no: looks again
        publisher of 6                         commits 6 ── ... ── put: version b ─┘                lists: 6, and stops

    A writer that replaces a file looks at its version first, then at the generations. So if a newer generation came
    before, it is seen; and if it comes later, its publisher replaces what was put here.
    """
    names = in_publishing_order(name for name in manifest.sidecars if not name.startswith("index/"))
    files: list[tuple[str, Callable[[], bytes | None]]] = [(name, _staged(storage, manifest, name)) for name in names]
    committed = generation_file("manifests", manifest.generation, "json")
    for name, contents in [*files, ("manifest.json", lambda: storage.read(committed))]:
        data = contents()
        if data is None:
            continue  # published by another process, which removed what was staged
        while True:
            version = storage.version(name)
            if list_generations(storage.root)[-1] != manifest.generation:
                return False
            if storage.replace_if(name, data, version):
                break
    return True


def _staged(storage: ObjectStorage, manifest: Manifest, name: str) -> Callable[[], bytes | None]:
    def read() -> bytes | None:
        path = staged_sidecar(manifest.run.staging, name)
        try:
            return storage.read(path)
        except FileNotFoundError:
            if storage.size(name) is None:
                raise CommitError(f"{storage.path(name)} was committed, but is neither there nor in {path}") from None
            return None

    return read


def write_generation(
    spec: DatasetSpec,
    results: Iterable[TaskResult],
    run: Callable[[Callable[[Any], Any], Iterable[Any]], Iterator[Any]] = map,
) -> WriteOutcome:
    """Shuffle, plan, assemble, commit and publish; `run` maps a function over items, by default in this thread."""
    if spec.shuffle is not None:
        results = list(results)
        tasks = plan_shuffle(spec, results)
        results = [*results, *run(lambda task: run_shuffle_task(spec, task), tasks)]
    plan = plan_generation(spec, results)
    if isinstance(plan, Refusal):
        return WriteOutcome(spec.path, refusal=plan)
    for _ in run(lambda job: assemble_shard(spec, job), plan.jobs):
        pass
    decided = commit_generation(spec, plan.draft, plan.jobs)
    if isinstance(decided, Commit):
        for _ in run(lambda move: publish_file(spec.storage, move), moves_of(decided)):
            pass
    return complete_generation(spec, decided)


def complete_generation(spec: DatasetSpec, decided: Commit | Refusal | None = None) -> WriteOutcome:
    """Complete what was decided and published; without a decision, the one that the run left in its folder."""
    decided = decided or read_decision(spec)
    if isinstance(decided, Refusal):
        return WriteOutcome(spec.path, refusal=decided)
    complete_publish(spec.storage, decided)
    return WriteOutcome(spec.path, manifest=decided.manifest, notes=decided.notes)


# Check whether a run may write to its target, before it reads a row.


_OUR_NAMES: Final = (
    "*.tfrecord", "*.tfrecord.gz", "manifest.json", "manifests", "sources", "rejects", "index",
    "dataset_info.json", "features.json", "*.labels.txt", "schema.pbtxt",
)  # fmt: skip
"""What publishing makes: files of these names that no manifest names belong to someone else."""


def prepare_target(spec: DatasetSpec, *, clear: bool = True) -> Manifest | None:
    """Complete what an earlier run left half published, and clear the staging folder of a failed one, if `clear`.

    Return the generation that states the same source and config, so that there is nothing to do; else None. A
    `TargetError` if the folder holds another dataset (and `if_exists` is "refuse"), or files of someone else that have
    Shardmill's names; or if it cannot be written.
    """
    latest = finish_publish(spec.path, spec.run_id)
    if latest is None:
        foreign = _foreign_names(spec)
        if foreign:
            raise TargetError(
                copy_in_part(spec.path)
                or f"{spec.path} holds {printable(foreign[0])}, and is not a dataset of Shardmill: choose another "
                "folder (-o), or move it elsewhere"
            )
    elif (held := _held_by(spec, latest)) is not None:
        return held
    elif spec.if_exists == "refuse":
        raise TargetError(
            f"{spec.path} holds dataset {latest.name}, generation {latest.generation}, from another source or config; "
            f"{spec.ways_out}"
        )
    prepare_folder(spec, clear=clear)
    return None


def replacing_what_is_there(spec: DatasetSpec) -> DatasetSpec:
    if spec.if_exists != "replace":
        return spec
    return replace(spec, replaces=max(list_generations(spec.path), default=0))


def _foreign_names(spec: DatasetSpec) -> list[str]:
    """Return Shardmill's names in a folder without a dataset, except `manifests` where a run died before its commit."""
    storage = spec.storage
    if all(name.startswith(".") or is_part_path(f"manifests/{name}") for name in storage.list("manifests")):
        ours = [name for name in _OUR_NAMES if name != "manifests" or storage.size(name) is not None]
    else:
        ours = list(_OUR_NAMES)
    return [name for name in storage.list("") if any(fnmatch.fnmatchcase(name, pattern) for pattern in ours)]


def prepare_folder(spec: DatasetSpec, *, clear: bool = True) -> None:
    """Clear the staging folder of a failed run, if `clear`, and prove that files can be made and linked in it."""
    probe = f"{spec.staging}/probe"
    try:
        if clear:
            spec.storage.remove_tree(spec.staging)
        if isinstance(spec.storage, ObjectStorage):
            _check_conditions(spec, spec.storage, probe)
        else:
            spec.storage.put_if_absent(probe, b"")
            spec.storage.remove(probe)
    except OSError as error:
        fix = "choose another folder (-o)" if spec.append_to is None else "fix that, and run the command again"
        raise TargetError(f"{spec.path}: files cannot be made and linked there: {error.strerror}; {fix}") from error


def _check_conditions(spec: DatasetSpec, storage: ObjectStorage, probe: str) -> None:
    """Prove that the store keeps the conditions on which commits and publishing rest."""
    other = f"{probe}-copy"
    try:
        broken = _ignored_condition(storage, probe, other)
    finally:
        storage.store.delete([storage.key(probe), storage.key(other)])
    if broken is not None:
        name = storage.store.conditions[broken]
        raise TargetError(
            f"{spec.path}: the store ignores {name}: of two writers both would take themselves for the first; write to "
            f"a store that keeps it"
        )


def _ignored_condition(storage: ObjectStorage, probe: str, other: str) -> str | None:
    first = storage.put_if_absent(probe, b"first")
    seen = storage.version(probe)
    if storage.put_if_absent(probe, b"second") or not first:
        return "if_absent"
    storage.replace(probe, b"third")
    if storage.replace_if(probe, b"fourth", seen):
        return "if_version"
    first, second = (storage.store.copy(storage.key(probe), storage.key(other), if_absent=True) for _ in range(2))
    return "copy_if_absent" if second or not first else None


def _held_by(spec: DatasetSpec, latest: Manifest) -> Manifest | None:
    """Return the generation that states this very source and config; what has no fingerprint equals nothing.

    That may be one which others were appended to, unless the dataset is to be replaced: then nothing else may stay.
    """
    wanted = (spec.config_fingerprint, spec.source_fingerprint)
    if NO_FINGERPRINT in wanted:
        return None
    generations = lineage(spec.path, latest) if spec.if_exists == "refuse" else iter([latest])
    for manifest in generations:
        made = manifest.operation != "append"
        if made and wanted == (manifest.config_fingerprint, manifest.run.source_fingerprint):
            return manifest
    return None
