"""Check whether a run may write to its target, before it reads a row."""

from __future__ import annotations

import fnmatch
from dataclasses import replace
from typing import Final

from ...errors import TargetError
from ...format.manifest.manifest import Manifest
from ...format.manifest.parts import is_part_path
from ...format.wording.printable import printable
from ..stage.spec import NO_FINGERPRINT, DatasetSpec
from ..storage.manifest_files import copy_in_part, lineage, list_generations
from ..storage.object_storage import ObjectStorage
from .publish import finish_publish

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
    _check_writable(spec, clear=clear)
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
    """Clear the staging folder of a failed run, if `clear`, and prove that files can be made and linked in it.

    What an earlier run left half published has been completed before this run was planned.
    """
    _check_writable(spec, clear=clear)


def _check_writable(spec: DatasetSpec, *, clear: bool) -> None:
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
    """Return the condition that the store takes no notice of, None if it keeps all of them."""
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
