"""Generations made without an engine, on disk and in stores: of three tasks of so many rows, in shards of 64 KiB."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from shardmill.transforms.dataset.commit.assemble_shards import assemble_shard
from shardmill.transforms.dataset.commit.commit_generation import Commit, append_to, commit_generation
from shardmill.transforms.dataset.commit.plan_step import Plan, plan_dataset
from shardmill.transforms.dataset.commit.publish import finish_publish
from shardmill.transforms.dataset.stage.spec import DatasetSpec, EntryInfo
from shardmill.transforms.dataset.storage.manifest_files import read_manifest

from ..dataset.commit.test_commit_generation import spec_of, stage_all, write


def spec_at(out: str, number: int, **changes: Any) -> DatasetSpec:
    """Return the spec of a run that bears a number."""
    values = {
        "path": out,
        "run_id": f"{number:016x}",
        "commit_id": f"commit-{number}",
        "source_entries": tuple(EntryInfo(f"{number}-{name}.csv", 15, f"sha256:{number}{name}") for name in "ab"),
        "sidecars": ("tfds", "tfx", "index"),
    }
    return spec_of(Path(), **(values | changes))


def create(out: str, number: int, rows: int, **changes: Any) -> int:
    """Write a new dataset, or over it; return its generation."""
    outcome = write(spec_at(out, number, **changes), rows=rows)
    assert outcome.manifest is not None
    return outcome.manifest.generation


def add(out: str, number: int, rows: int, **changes: Any) -> int:
    """Append, as the command does it: what was left half published is completed first. Return the generation."""
    assert finish_publish(out) is not None
    return create(out, number, rows, append_to=append_to(read_manifest(out), "sha256:options"), **changes)


def commit(out: str, number: int, rows: int, **changes: Any) -> Commit:
    """Write a generation as far as its commit: nothing of it is published."""
    spec = spec_at(out, number, **changes)
    plan = plan_dataset(spec, stage_all(spec, rows=rows))
    assert isinstance(plan, Plan)
    for job in plan.jobs:
        assemble_shard(spec, job)
    made = commit_generation(spec, plan.draft, plan.jobs)
    assert isinstance(made, Commit)
    return made
