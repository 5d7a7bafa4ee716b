"""The outcome of a run: the generation that it committed, or why it committed none."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from ...errors import CommitError
from ...format.manifest.manifest import Manifest
from ..shards.plan_step import read_refusal
from ..shards.refusal import Refusal
from ..shards.source_list import read_notes
from ..stage.spec import DatasetSpec
from .commit_generation import Commit, find_commit


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
