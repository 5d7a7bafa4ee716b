"""The generation that an append makes from the last one: shards numbered on, splits added up, sidecars of the whole.

    generation 4   train-00000  train-00001
    planned for 5                            train-00002  train-00003
    lost to another append, whose these are: ──────┘            │
    tried as 6                               train-00004  train-00005     the same bytes under second names

What is staged bears the names that were planned. An append that loses renumbers: nothing is read or written again, the
shards get second links in a folder of that try, which its manifest then names as its staging folder.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from ...errors import DamageError
from ...format.batches.rows import Narrowing
from ...format.manifest.manifest import Manifest, SplitEntry
from ...format.manifest.naming import INDEX_FOLDER, index_path, shard_file_name, staged_file, staged_sidecar
from ...format.manifest.parts import LIMITS
from ...format.sidecars.sidecar_files import groups_of
from ...format.tfrecord.checksum import add_digests
from ...format.wording.printable import printable_path
from ..stage.spec import AppendTo, DatasetSpec
from ..storage.manifest_files import PartCache, list_generations, read_file, read_manifest
from .plan_step import ShardJob
from .source_list import read_held_sources

_STILL: Final = ("-1", "-1", "3")
_FILM: Final = ("-1", "-1", "-1", "3")
"""The shapes of TFDS's Image: of still images, and of GIFs."""


@dataclass(frozen=True, slots=True)
class Try:
    """One try at a generation: the `latest` before it, its staging folder, and the jobs as they are named there."""

    latest: Manifest
    staging: str
    jobs: tuple[ShardJob, ...]


def append_to(manifest: Manifest, constants: str | None = None, *, force: bool = False) -> AppendTo:
    shards = {name: len(split.shards) for name, split in manifest.splits.items()}
    return AppendTo(manifest.generation, shards, constants, force)


def conflict_with(spec: DatasetSpec, to: AppendTo) -> str | None:
    """Return why what was staged cannot follow the generations that came after it was planned, or None."""
    prints = {info.fingerprint for info in spec.source_entries}
    parts = PartCache(spec.path)
    for generation in (number for number in list_generations(spec.path) if number > to.generation):
        manifest = read_manifest(spec.path, generation, parts)
        if manifest.run.run_id == spec.run_id:
            return f"generation {generation} is of this very run"
        if manifest.parent is None or manifest.schema != spec.schema:
            return f"generation {generation} replaced the dataset"
        for feature, classes in spec.labels.items():
            others = manifest.labels.get(feature, ())
            common = min(len(classes), len(others))
            if classes[:common] != others[:common]:
                return f"generation {generation} gave the numbers of new classes of {feature} to others"
        if not to.force:
            for held in read_held_sources(spec.path, manifest):
                if held.fingerprint in prints:
                    return f"generation {generation} appended {held.name} too"
    return None


def renumber(spec: DatasetSpec, to: AppendTo, jobs: Sequence[ShardJob], latest: Manifest) -> Try:
    """Return the try at the generation after `latest`, and stage its shards; it may be made again."""
    shifts = {name: len(split.shards) - to.shards.get(name, 0) for name, split in latest.splits.items()}
    if latest.generation == to.generation:
        return Try(latest, spec.staging, tuple(jobs))
    staging, storage = f"{spec.staging}/try-{latest.generation + 1:08d}", spec.storage
    renamed = []
    for job in jobs:
        index = job.index + shifts.get(job.split, 0)
        path = shard_file_name(spec.shard_name, job.split, index, 0, spec.compression)
        storage.place(staged_file(spec.staging, job.path), staged_file(staging, path))
        for kind in spec.index_kinds:
            before, after = index_path(job.path, kind), index_path(path, kind)
            storage.place(staged_sidecar(spec.staging, before), staged_sidecar(staging, after))
        renamed.append(replace(job, index=index, path=path))
    for name in ("rejects.jsonl", "sources.jsonl"):
        if storage.size(f"{spec.staging}/{name}") is not None:
            storage.place(f"{spec.staging}/{name}", f"{staging}/{name}")
            storage.sync(staging)
    if renamed and spec.index_kinds:
        storage.sync(staged_sidecar(staging, INDEX_FOLDER))
    return Try(latest, staging, tuple(renamed))


def continued(manifest: Manifest, latest: Manifest) -> Manifest:
    """Return the manifest of an append, given one of what it added alone.

    What it read, counted and rejected is its own, and with what it made pictures ready; labels, splits, other details
    and what was narrowed are the dataset's, and so is the schema, but for features that it adds.
    """
    known = {feature.name for feature in latest.schema or ()}
    added = {one.name: manifest.generation for one in manifest.schema or () if one.name not in known}
    splits = {name: _joined(latest.splits.get(name), entry) for name, entry in manifest.splits.items()}
    return replace(
        manifest,
        parent=latest.generation,
        operation="append",
        labels=_longer(latest.labels, manifest.labels),
        narrowed=_narrowed_in_all(latest.narrowed, manifest.narrowed),
        details=replace(
            latest.details,
            checks=manifest.details.checks,
            image=manifest.details.image or latest.details.image,
            added=latest.details.added | added,
        ),
        splits=dict(sorted({**latest.splits, **splits}.items())),
    )


def sidecar_groups(manifest: Manifest) -> tuple[str, ...]:
    """Return the groups of sidecars that a dataset has: an append keeps them in step, and adds no other."""
    names = manifest.sidecars
    groups = dict.fromkeys(groups_of(names), True)
    groups["index"] = any(name.endswith(".idx") for name in names)
    groups["offsets"] = any(name.endswith(".offsets") for name in names) or not any(
        split.shards for split in manifest.splits.values()
    )
    return tuple(group for group, there in groups.items() if there)


def image_formats_in_all(spec: DatasetSpec, latest: Manifest, added: Sequence[str]) -> tuple[str, ...] | None:
    """Return image formats that TFDS reads as it reads those of the whole dataset, None where it reads bytes.

    No manifest states them, but `features.json` says how those of the generations before are read.
    """
    if not latest.splits:
        return tuple(added) or None
    if "features.json" not in latest.sidecars:
        return None
    for path in (staged_sidecar(latest.run.staging, "features.json"), "features.json"):  # as it is published
        try:
            data = read_file(spec.path, path, LIMITS.bytes)
        except DamageError:
            if spec.storage.lies_at(path):
                raise
            continue
        shape = _image_shape(_parsed(data, spec.storage.path(path)))
        return {_STILL: ("jpeg", *added), _FILM: ("gif", *added)}.get(shape)
    return None


def _joined(before: SplitEntry | None, added: SplitEntry) -> SplitEntry:
    if before is None:
        return added
    digests = (int(entry.records_digest.removeprefix("sum128:"), 16) for entry in (before, added))
    return SplitEntry(
        records=before.records + added.records,
        bytes=before.bytes + added.bytes,
        unit_bytes=max(before.unit_bytes, added.unit_bytes),
        records_digest=f"sum128:{add_digests(digests):032x}",
        shards=before.shards + added.shards,
    )


def _longer(one: dict[str, tuple[str, ...]], other: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    return {name: max(one.get(name, ()), other.get(name, ()), key=len) for name in sorted(one.keys() | other.keys())}


def _narrowed_in_all(before: Sequence[Narrowing], added: Sequence[Narrowing]) -> tuple[Narrowing, ...]:
    narrowed = {entry.name: entry for entry in before}
    for entry in added:
        narrowed[entry.name] = narrowed[entry.name].plus(entry) if entry.name in narrowed else entry
    return tuple(narrowed[name] for name in sorted(narrowed))


def _parsed(data: bytes, path: str) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        raise DamageError(f"{printable_path(path)}: is not JSON; remove it, and run the command again") from None


def _image_shape(document: Any) -> tuple[str, ...]:
    """Return the shape of the TFDS Image in `features.json`; one of no dimension where there is none."""
    if not isinstance(document, dict):
        return ()
    if "image" in document and str(document.get("pythonClassName", "")).endswith(".Image"):
        return tuple(document["image"]["shape"]["dimensions"])
    return next((shape for value in document.values() if (shape := _image_shape(value))), ())
