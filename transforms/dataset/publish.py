"""Publish: give the files of a committed generation their final names.

Every step may run again, also in another process after a crash: a staged file is linked under its final name, never
over another file; when all names are durable the sidecars and `manifest.json` are replaced, and the staging folder
goes. Until then readers find a shard in the staging folder that its manifest names.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from ..errors import CommitError
from ..format.manifest import Manifest
from ..format.naming import STAGING_FOLDER, generation_file, staged_file, staged_sidecar
from ..format.sidecars import in_publishing_order
from .commit import Commit
from .generations import check_own_folders, list_generations, read_manifest
from .storage import LocalStorage


@dataclass(frozen=True, slots=True)
class Move:
    """A staged file and its final path, both relative to the dataset's folder; sizes and CRCs where known.

    `replaces` allows it to stand where a file of the superseded generation stood.
    """

    source: str
    target: str
    bytes: int | None = None
    crc: str | None = None
    replaces: bool = False


def moves_of(commit: Commit) -> list[Move]:
    """Return what has to be moved to publish a generation; sidecars are replaced at the end."""
    manifest, staging = commit.manifest, commit.manifest.run.staging
    replaces = commit.superseded is not None
    moves = [
        Move(staged_file(staging, shard.path), shard.path, shard.bytes, shard.crc32c, replaces)
        for split in manifest.splits.values()
        for shard in split.shards
        if shard.generation == manifest.generation
    ]
    for listed, name in ((manifest.rejects.path, "rejects.jsonl"), (manifest.source.list, "sources.jsonl")):
        if listed is not None:
            moves.append(Move(f"{staging}/{name}", listed, replaces=replaces))
    return moves


def publish_file(storage: LocalStorage, move: Move) -> None:
    """Make one move, or find it made.

    Raises:
        CommitError: another file has the name, or the staged file is gone.
    """
    if storage.size(move.source) is None:
        if move.bytes in (None, storage.size(move.target)) and _has_crc(storage, move):
            return
        raise CommitError(
            f"{storage.path(move.target)} was committed, but is neither there nor in {move.source}: its staging folder "
            f"was changed; convert again with --set output.if_exists=replace"
        )
    if move.replaces:
        storage.place(move.source, move.target)
    elif not storage.publish(move.source, move.target):
        size = storage.size(move.source)
        if storage.size(move.target) != size or storage.crc32c(move.target) != storage.crc32c(move.source):
            raise CommitError(
                f"{storage.path(move.target)} is in the way: it is not the committed file of that name, which lies in "
                f"{move.source}; move it elsewhere and run again"
            )


def _has_crc(storage: LocalStorage, move: Move) -> bool:
    if storage.size(move.target) is None:
        return False
    return move.crc is None or f"{storage.crc32c(move.target):08x}" == move.crc


def complete_publish(storage: LocalStorage, commit: Commit) -> None:
    """Replace the sidecars and `manifest.json` when all moves are made, then remove the staging folder."""
    manifest, staging = commit.manifest, commit.manifest.run.staging
    for folder in sorted({os.path.dirname(move.target) for move in moves_of(commit)} | {""}):
        storage.sync(folder)
    if list_generations(storage.root)[-1] == manifest.generation:
        for name in in_publishing_order(manifest.sidecars):
            staged = staged_sidecar(staging, name)
            if storage.size(staged) is not None:
                storage.place(staged, name)
            elif storage.size(name) is None:
                raise CommitError(f"{storage.path(name)} was committed, but is neither there nor in {staged}")
        storage.replace("manifest.json", manifest.to_bytes())
        if commit.superseded is not None:
            _remove_superseded(storage, commit.superseded, manifest)
        for folder in sorted({os.path.dirname(name) for name in manifest.sidecars} | {""}):
            storage.sync(folder)
    storage.remove_tree(staging)
    storage.remove_if_empty(STAGING_FOLDER)


def finish_publish(path: str) -> Manifest | None:
    """Complete the publishing of the latest generation, if a crash left it undone; return it.

    Returns None where there is no dataset. Every command that opens a dataset for writing calls this first.

    Raises:
        CommitError: a file is in the way, or is gone.
        DamageError: the manifest is damaged.
        TargetError: a folder of the dataset is a link.
    """
    storage = LocalStorage(os.path.abspath(path))
    check_own_folders(storage.root)
    generations = list_generations(storage.root)
    if not generations:
        return None
    manifest = read_manifest(storage.root)
    published = generation_file("manifests", manifest.generation, "json")
    done = storage.size("manifest.json") is not None and storage.read("manifest.json") == storage.read(published)
    if done and not storage.list(manifest.run.staging):
        return manifest
    replaced = manifest.operation == "create" and len(generations) > 1
    commit = Commit(manifest, read_manifest(storage.root, generations[-2]) if replaced else None)
    if not done or storage.list(f"{manifest.run.staging}/shards"):
        for move in moves_of(commit):
            publish_file(storage, move)
    complete_publish(storage, commit)
    return manifest


def _remove_superseded(storage: LocalStorage, old: Manifest, new: Manifest) -> None:
    """Remove the files of a replaced generation that the new one has none of; its manifest stays."""
    kept = {shard.path for split in new.splits.values() for shard in split.shards} | set(new.sidecars)
    gone = {shard.path for split in old.splits.values() for shard in split.shards} | set(old.sidecars)
    for path in sorted(gone - kept):
        storage.remove(path)
