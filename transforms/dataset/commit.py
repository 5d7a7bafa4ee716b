"""Commit: one file, made if absent, turns staged shards into a generation.

    staged shards ──▶ sidecars staged ──▶ manifests/0000000N.json ──▶ published under their final names
                                          ▲ before it nothing has happened; after it all has

Whoever makes number N owns the file names in it. A create that finds another one there has lost, and stops.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from ..format.index import index_path
from ..format.manifest import Manifest, RejectSummary, RunInfo, ShardEntry, SourceSummary, SplitEntry
from ..format.naming import generation_file, staged_file, staged_sidecar
from ..format.sidecars import sidecar_files
from .generations import list_generations, read_manifest
from .plan_step import Draft, ShardJob, leave_refusal
from .refusal import Refusal
from .spec import DatasetSpec


@dataclass(frozen=True, slots=True)
class Commit:
    """A committed generation; `superseded` is the one that it replaces, whose files it may overwrite.

    `notes` are those of the run that committed it, where it is that run that asks.
    """

    manifest: Manifest
    superseded: Manifest | None = None
    notes: dict[str, int] = field(default_factory=dict)


def commit_generation(spec: DatasetSpec, draft: Draft, jobs: Sequence[ShardJob]) -> Commit | Refusal:
    """Commit the assembled shards; trying again after an unknown outcome finds what the first try did.

    Raises:
        RuntimeError: not all shards of the draft are there.
    """
    if len(jobs) != draft.shards:
        raise RuntimeError(f"{len(jobs)} shards were made, {draft.shards} were planned")
    decided = find_commit(spec) or _commit(spec, draft, jobs)
    return replace(decided, notes=draft.notes) if isinstance(decided, Commit) else decided


def _commit(spec: DatasetSpec, draft: Draft, jobs: Sequence[ShardJob]) -> Commit | Refusal:
    generations = list_generations(spec.path)
    if generations and spec.if_exists == "refuse":
        return _lost(spec, generations[-1])
    superseded = read_manifest(spec.path) if generations else None
    manifest = _manifest(spec, draft, jobs, generations[-1] + 1 if generations else 1)
    manifest = _stage_sidecars(spec, draft, manifest)
    if jobs:
        spec.storage.sync(staged_file(spec.staging, "").rstrip("/"))
    path = generation_file("manifests", manifest.generation, "json")
    if spec.storage.put_if_absent(path, manifest.to_bytes()):
        return Commit(manifest, superseded)
    return find_commit(spec) or _lost(spec, manifest.generation)


def find_commit(spec: DatasetSpec) -> Commit | None:
    """Return what this very run has committed, known by its commit id, or None."""
    generations = list_generations(spec.path)
    for i, generation in enumerate(generations):
        manifest = read_manifest(spec.path, generation)
        if manifest.run.commit_id == spec.commit_id:
            replaced = spec.if_exists == "replace" and i > 0
            return Commit(manifest, read_manifest(spec.path, generations[i - 1]) if replaced else None)
    return None


def _lost(spec: DatasetSpec, generation: int) -> Refusal:
    """Leave and return the refusal of a run that another writer was faster than."""
    refusal = Refusal(
        "commit",
        f"{spec.path}: generation {generation} was committed by another writer; nothing of this run was; write "
        f"elsewhere, or over it: --set output.if_exists=replace",
    )
    leave_refusal(spec, refusal)
    return refusal


def _manifest(spec: DatasetSpec, draft: Draft, jobs: Sequence[ShardJob], generation: int) -> Manifest:
    ordered = sorted(jobs, key=lambda job: (job.split, job.index))
    splits: dict[str, SplitEntry] = {}
    for name, totals in draft.splits.items():
        shards = tuple(
            ShardEntry(job.path, generation, job.records, job.bytes, f"{job.crc:08x}")
            for job in ordered
            if job.split == name
        )
        splits[name] = SplitEntry(
            records=sum(shard.records for shard in shards),
            bytes=sum(shard.bytes for shard in shards),
            unit_bytes=totals.unit_bytes,
            records_digest=f"sum128:{totals.digest:032x}",
            shards=shards,
        )
    rejects = generation_file("rejects", generation, "jsonl") if draft.counts.rejected else None
    sources = generation_file("sources", generation, "jsonl") if spec.source_entries else None
    return Manifest(
        generation=generation,
        parent=None,
        operation="create",
        name=spec.name,
        version=f"1.{generation - 1}.0",
        order=spec.order,
        compression=spec.compression,
        shard_size=spec.shard_size,
        shard_name=spec.shard_name,
        config_fingerprint=spec.config_fingerprint,
        schema_fingerprint=spec.schema.fingerprint() if spec.schema is not None else None,
        source=SourceSummary(spec.source_format, spec.source_files, spec.source_bytes, sources, spec.skipped),
        counts=draft.counts,
        rejects=RejectSummary(rejects, draft.counts.rejected, draft.by_code),
        schema=spec.schema,
        labels=spec.labels,
        narrowed=draft.narrowed,
        splits=splits,
        sidecars=(),
        run=RunInfo(
            created=spec.created,
            run_id=spec.run_id,
            commit_id=spec.commit_id,
            staging=spec.staging,
            source_fingerprint=spec.source_fingerprint,
            runner=spec.runner,
            tool=spec.tool,
        ),
    )


def _stage_sidecars(spec: DatasetSpec, draft: Draft, manifest: Manifest) -> Manifest:
    """Write the sidecars into staging, and return the manifest that names them."""
    files = sidecar_files(manifest, spec.sidecars, draft.image_formats or None)
    for name, data in files.items():
        spec.storage.replace(staged_sidecar(spec.staging, name), data)
    names = list(files)
    if spec.wants_index:
        names += [index_path(shard.path) for split in manifest.splits.values() for shard in split.shards]
    return replace(manifest, sidecars=tuple(sorted(names)))
