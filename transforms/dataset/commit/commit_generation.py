"""Commit: one file, made if absent, turns staged shards into a generation.

    staged shards ──▶ sidecars staged ──▶ manifests/0000000N.json ──▶ published under their final names
                                          ▲ before it nothing has happened; after it all has (see `Documents.put`)

The run that creates number N owns the file names in it. A create that finds another one has lost, and stops. An append
that loses renumbers what it staged, and tries N + 1.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from ...errors import CommitError, DamageError
from ...format.batches.rows import Narrowing
from ...format.manifest.manifest import (
    LIMITS,
    Details,
    Manifest,
    ManifestLimits,
    RejectSummary,
    RunInfo,
    ShardEntry,
    SourceSummary,
    SplitEntry,
    parse_part,
)
from ...format.manifest.naming import (
    INDEX_FOLDER,
    generation_file,
    index_path,
    shard_file_name,
    staged_file,
    staged_sidecar,
)
from ...format.sidecars.sidecar_files import groups_of, sidecar_files
from ...format.tfrecord.framing import add_digests
from ...format.wording.printable import format_size, printable_path
from ...observers.tally import Tally
from ..stage.spec import AppendTo, DatasetSpec
from ..stage.task_stager import TaskResult
from ..storage.contract import Storage
from ..storage.manifest_files import (
    PartCache,
    is_replaced,
    list_generations,
    read_file,
    read_manifest,
    read_tally,
    statistics_files,
)
from .accounting import Refusal, RefusalKind, read_counted, read_held_sources, read_notes
from .assemble_shards import ShardJob
from .plan_step import Draft, Plan, leave_refusal, plan_dataset, read_refusal

# The commit itself: sidecars staged, the manifest put, and what to do when another run was first.


APPEND_TRIES: Final = 10
"""How many races an append may lose before it gives up. Each loss means another append succeeded."""


@dataclass(frozen=True, slots=True)
class Commit:
    """A committed generation; `superseded` is the one that it replaces, whose files it may overwrite.

    `notes` are those of the run that committed it, where it is that run that asks.
    """

    manifest: Manifest
    superseded: Manifest | None = None
    notes: dict[str, int] = field(default_factory=dict)


def commit_generation(
    spec: DatasetSpec, draft: Draft, jobs: Sequence[ShardJob], limits: ManifestLimits = LIMITS
) -> Commit | Refusal:
    """Commit the assembled shards; trying again after an unknown outcome finds what the first try did."""
    decided: Commit | Refusal | None = find_commit(spec)
    if decided is None:
        to = spec.append_to
        decided = _commit(spec, draft, jobs, limits) if to is None else _append(spec, to, draft, jobs, limits)
    return replace(decided, notes=draft.notes) if isinstance(decided, Commit) else decided


def commit_arrived(spec: DatasetSpec, arrived: Iterable[Draft | ShardJob | Refusal]) -> Commit | Refusal:
    """Commit what an engine delivered of a plan: the draft and its jobs, in any order, or a refusal.

    What it delivered twice counts once; if anything is missing, the run is refused.
    """
    draft: Draft | None = None
    jobs: dict[str, ShardJob] = {}
    for value in arrived:
        if isinstance(value, Refusal):
            return value
        if isinstance(value, Draft):
            draft = value
        else:
            jobs[value.path] = value
    if draft is not None and len(jobs) == draft.shards:
        return commit_generation(spec, draft, list(jobs.values()))
    if draft is None and not jobs and (refusal := read_refusal(spec)) is not None:
        return refusal  # it is the element that was lost
    lost = "the plan" if draft is None else f"{draft.shards - len(jobs)} of {draft.shards} planned shards"
    message = f"the engine lost {lost} between two of its steps; nothing was committed; run it again"
    return _refused(spec, "failed", message, again=True)


def plan_generation(spec: DatasetSpec, results: Iterable[TaskResult]) -> Plan | Refusal:
    """Plan the dataset, or refuse it: also if this very run has committed something else, as its pipeline ran before.

    A plan of what was committed passes: an engine may try a step again after the commit, and finds it. Nothing that is
    committed and not yet published is changed.
    """
    commit = find_commit(spec)
    plan = plan_dataset(spec, results, committed=commit is not None)
    if commit is None or isinstance(plan, Refusal):
        return plan
    manifest = commit.manifest
    if is_replaced(spec.path, manifest.generation):
        problem = f"generation {list_generations(spec.path)[-1]} has replaced it"
    elif spec.settling is not None or any(one.get("action") == "drop" for one in manifest.details.checks.values()):
        return Plan(replace(plan.draft, shards=0), ())  # what became of records is no longer to be known
    elif not _states(manifest, plan):
        problem = "this is not what it held"
    else:
        return plan
    return _refused(
        spec,
        "commit",
        f"this pipeline has run before, and committed generation {manifest.generation}; {problem}; a pipeline writes "
        f"one generation: build it again (WriteShards and all) to write another",
    )


def _states(manifest: Manifest, plan: Plan) -> bool:
    """Return whether a manifest states what was planned; shards of an append may have got other numbers."""
    planned = sorted((job.split, job.index, job.records, job.bytes, f"{job.crc:08x}") for job in plan.jobs)
    held = [
        (name, shard.records, shard.bytes, shard.crc32c)
        for name, split in manifest.splits.items()
        for shard in split.shards
        if shard.generation == manifest.generation
    ]
    draft = plan.draft
    return (
        [(split, *sizes) for split, _, *sizes in planned] == held
        and draft.counts == manifest.counts
        and draft.by_code == manifest.rejects.by_code
    )


def _commit(spec: DatasetSpec, draft: Draft, jobs: Sequence[ShardJob], limits: ManifestLimits) -> Commit | Refusal:
    generations = list_generations(spec.path)
    if generations and (spec.if_exists == "refuse" or spec.replaces not in (None, generations[-1])):
        return _lost(spec, generations[-1])
    superseded = read_manifest(spec.path) if generations else None
    manifest = _manifest(spec, draft, jobs, generations[-1] + 1 if generations else 1)
    statistics = run_statistics(spec, manifest, draft, jobs, None)
    manifest = _stage_sidecars(spec, manifest, draft.image_formats or None, statistics)
    documents = Documents(manifest, limits)
    if (problem := documents.problem()) is not None:
        return _too_large(spec, manifest, problem)
    if superseded is None and (refusal := _in_the_way(spec, manifest)) is not None:
        return refusal
    if _put(spec, manifest, documents):
        return Commit(manifest, superseded)
    return find_commit(spec) or _lost(spec, manifest.generation)


def _append(
    spec: DatasetSpec, to: AppendTo, draft: Draft, jobs: Sequence[ShardJob], limits: ManifestLimits
) -> Commit | Refusal:
    for _ in range(APPEND_TRIES):
        conflict = conflict_with(spec, to)
        if conflict is not None:
            return _refused(spec, "stale", f"{conflict} while this append ran; nothing of this run was committed")
        held = PartCache(spec.path)
        latest = read_manifest(spec.path, parts=held)
        attempt = renumber(spec, to, jobs, latest)
        manifest = _manifest(spec, draft, attempt.jobs, latest.generation + 1)
        manifest = continued(replace(manifest, run=replace(manifest.run, staging=attempt.staging)), latest)
        formats = image_formats_in_all(spec, latest, draft.image_formats)
        kept = [name for name in latest.sidecars if name.startswith("index/")]
        statistics = run_statistics(spec, manifest, draft, jobs, latest)
        manifest = _stage_sidecars(spec, manifest, formats, statistics, kept)
        documents = Documents(manifest, limits)
        if (problem := documents.problem()) is not None:
            return _too_large(spec, manifest, problem)
        refusal = _in_the_way(spec, manifest)
        if refusal is not None and list_generations(spec.path)[-1] == latest.generation:
            return refusal
        if refusal is None and _put(spec, manifest, documents, held.named):
            return Commit(manifest)
        known = find_commit(spec)
        if known is not None:
            return known
    return _refused(
        spec,
        "commit",
        f"{APPEND_TRIES} other appends were faster, the last of them as generation {manifest.generation}; nothing of "
        f"this run was committed; run it again",
        again=True,
    )


def _too_large(spec: DatasetSpec, manifest: Manifest, problem: str) -> Refusal:
    """Refuse what no reader would take: a generation that cannot be read would be the end of its dataset."""
    shards = sum(len(split.shards) for split in manifest.splits.values())
    return _refused(
        spec,
        "commit",
        f"the manifest of {shards:,} shards would have {problem}; nothing of this run was committed; take a larger "
        f"shard size",
    )


def _in_the_way(spec: DatasetSpec, manifest: Manifest) -> Refusal | None:
    """Refuse a generation one of whose names is taken, by a file or a link: it could never be published.

    A store would be asked for each name; there a conditional copy finds the same later.
    """
    if not spec.storage.has_locks:
        return None
    storage, shards = spec.storage, manifest.own_shards
    # a file of a shard's size may be that shard: publishing compares their checksums
    free = {shard.path for shard in shards if storage.size(shard.path) == shard.bytes}
    names = [shard.path for shard in shards]
    names += [index_path(path, kind) for path in names for kind in spec.index_kinds]
    names += [name for name in (manifest.rejects.path, manifest.source.list) if name is not None]
    taken = next((name for name in names if name not in free and storage.lies_at(name)), None)
    if taken is None:
        return None
    return _refused(
        spec,
        "commit",
        f"{taken} is in the way: it is no file of this dataset; move it elsewhere and run again",
        again=True,
    )


def _put(spec: DatasetSpec, manifest: Manifest, documents: Documents, held: Collection[str] = ()) -> bool:
    """Make the manifest, if there is none of its number, when all that it names is durable."""
    if manifest.own_shards:
        spec.storage.sync(staged_file(manifest.run.staging, "").rstrip("/"))
    return documents.put(spec.storage, held)


def find_commit(spec: DatasetSpec) -> Commit | None:
    """Return what this very run has committed, known by its commit id, or None."""
    generations = list_generations(spec.path)
    first = spec.append_to.generation if spec.append_to else 0
    parts = PartCache(spec.path)
    for i, generation in enumerate(generations):
        if generation <= first:
            continue
        manifest = read_manifest(spec.path, generation, parts)
        if manifest.run.commit_id == spec.commit_id:
            replaced = spec.if_exists == "replace" and i > 0
            return Commit(manifest, read_manifest(spec.path, generations[i - 1], parts) if replaced else None)
    return None


def _lost(spec: DatasetSpec, generation: int) -> Refusal:
    message = f"generation {generation} was committed by another writer; nothing of this run was; "
    if spec.if_exists == "replace":
        return _refused(spec, "commit", f"{message}to write over that one too, run it again", again=True)
    return _refused(spec, "commit", f"{message}{spec.ways_out}")


def _refused(spec: DatasetSpec, kind: RefusalKind, message: str, *, again: bool = False) -> Refusal:
    refusal = Refusal(kind, f"{spec.path}: {message}", again=again)
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
        operation=spec.operation,
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
        details=Details(spec.columns, spec.image, draft.checks),
        conversion=spec.conversion,
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


def _stage_sidecars(
    spec: DatasetSpec,
    manifest: Manifest,
    image_formats: Collection[str] | None,
    statistics: Mapping[str, bytes],
    kept: Sequence[str] = (),
) -> Manifest:
    files = {**sidecar_files(manifest, spec.sidecars, image_formats), **statistics}
    for name, data in files.items():
        spec.storage.replace(staged_sidecar(manifest.run.staging, name), data)
    names = [*files, *kept]
    names += [index_path(shard.path, kind) for shard in manifest.own_shards for kind in spec.index_kinds]
    return replace(manifest, sidecars=tuple(sorted(names)))


def run_statistics(
    spec: DatasetSpec, manifest: Manifest, draft: Draft, jobs: Sequence[ShardJob], latest: Manifest | None
) -> dict[str, bytes]:
    """Return the files of the statistics of a generation by their names; none where not all of it is counted.

    `jobs` are those that were planned, `latest` is the generation that an append adds to.
    """
    if manifest.schema is None or not (spec.statistics or draft.is_counted):
        return {}
    tally = _tally(spec, draft, jobs, latest)
    if tally is None or tally.records != {name: split.records for name, split in manifest.splits.items()}:
        return {}
    return statistics_files(tally, manifest)


def _tally(spec: DatasetSpec, draft: Draft, jobs: Sequence[ShardJob], latest: Manifest | None) -> Tally | None:
    counted = read_counted(spec, None if draft.is_counted else [job.path for job in sorted(jobs, key=_in_order)])
    if latest is None or counted is None:
        return counted
    try:
        total = read_tally(spec.path, latest) if latest.splits else Tally(counted.level)
    except DamageError:  # the records are whole, and can be counted again
        return None
    if total is not None:
        total.merge(counted)
    return total


def _in_order(job: ShardJob) -> tuple[str, int]:
    return job.split, job.index


# The outcome of a run: the generation that it committed, or why it committed none.


@dataclass(frozen=True, slots=True)
class WriteOutcome:
    """The outcome of a run on the dataset at `path`: either `manifest` or `refusal` is set.

    `notes` are what the user should know of rows that are in order, and of how many rows.
    """

    path: str
    manifest: Manifest | None = None
    refusal: Refusal | None = None
    notes: dict[str, int] = field(default_factory=dict)


def empty_warnings(manifest: Manifest) -> list[str]:
    counts = manifest.counts
    if any(shard.records for shard in manifest.own_shards):
        return []
    why = "no rows were read" if not counts.read else f"none of the {counts.read:,} rows became a record"
    what = "holds no record" if not any(split.records for split in manifest.splits.values()) else "adds no record"
    return [f"{why}: generation {manifest.generation} {what}"]


def read_outcome(spec: DatasetSpec) -> WriteOutcome:
    decided = read_decision(spec)
    if isinstance(decided, Refusal):
        return WriteOutcome(spec.path, refusal=decided)
    return WriteOutcome(spec.path, manifest=decided.manifest, notes=decided.notes)


def read_decision(spec: DatasetSpec) -> Commit | Refusal:
    """Return what a run has committed, or why it refused, as its folder states it; raise `CommitError` if neither."""
    commit = find_commit(spec)
    if commit is not None:
        return replace(commit, notes=read_notes(spec.path, commit.manifest))
    refusal = read_refusal(spec)
    if refusal is not None:
        return refusal
    raise CommitError(
        f"{spec.path}: the run ended, and neither committed (id {spec.commit_id}) nor refused; its staged work is in "
        f"{spec.staging}; run again"
    )


# The parts of a manifest are put first, and then, in one step that one writer wins, the document that names them.
#
#     manifests/shards-….json  ... ──▶ durable ──▶ manifests/0000000N.json, if absent ──▶ are all parts there still?
#
# A part may be there already: the generation before names it, or a run left it that lost or died, and `gc` is about
# to remove it. So the commit checks again afterwards, and so does `gc`:
#
#     commit    part is there ── puts manifest ── is the part there still?            else it is written again
#     gc                  removes part ── does a manifest name it that is new?        then it is put back
#
# Whichever of the two looks last sees what the other one did.


class Documents:
    """The documents of a manifest, serialized once."""

    def __init__(self, manifest: Manifest, limits: ManifestLimits = LIMITS) -> None:
        self._limits = limits
        self._path = generation_file("manifests", manifest.generation, "json")
        self._main, self._parts = manifest.to_documents()

    def problem(self) -> str | None:
        """Return the limit that no reader would take the manifest above, or None if it is below all."""
        limits, largest = self._limits, max(map(len, self._parts.values()), default=0)
        if len(self._main) > limits.bytes:
            return f"{format_size(len(self._main))}, over the limit of {format_size(limits.bytes)}"
        if len(self._parts) > limits.parts:
            return f"{len(self._parts)} parts, over the limit of {limits.parts}"
        if largest > limits.part_bytes:
            return f"a part of {format_size(largest)}, over the limit of {format_size(limits.part_bytes)}"
        try:
            for path, data in self._parts.items():
                parse_part(data, path, path)
        except DamageError as error:
            return f"a part that cannot be read ({error})"
        return None

    def put(self, storage: Storage, held: Collection[str] = ()) -> bool:
        """Create the manifest, if there is none of its number; return whether this run's manifest has the number.

        `held` are the parts that the generation before names, which have just been read.
        """
        for path, data in self._parts.items():
            # one that is there is of these bytes, or damaged
            if path not in held and not storage.put_if_absent(path, data) and storage.read(path) != data:
                storage.replace(path, data)
        if not storage.put_if_absent(self._path, self._main):
            return False
        there = {f"manifests/{name}" for name in storage.list("manifests")} if self._parts else set()
        for path in self._parts.keys() - there:
            storage.replace(path, self._parts[path])
        return True


# The generation that an append makes from the last one: shards numbered on, splits added up, sidecars of the whole.
#
#     generation 4   train-00000  train-00001
#     planned for 5                            train-00002  train-00003
#     lost to another append, whose these are: ──────┘            │
#     tried as 6                               train-00004  train-00005     the same bytes under second names
#
# What is staged bears the names that were planned. An append that loses renumbers: nothing is read or written again,
# and the shards get second links in a folder of that try, which its manifest then names as its staging folder.


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
