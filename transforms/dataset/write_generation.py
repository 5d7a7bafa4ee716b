"""From the results of all tasks to a published generation, without an engine.

The Beam face takes the same five steps, each of them over many workers: plan, assemble, commit, publish, complete.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from .assemble import assemble_shard
from .commit import Commit, commit_generation
from .outcome import WriteOutcome
from .plan_step import plan_dataset
from .publish import complete_publish, moves_of, publish_file
from .refusal import Refusal
from .spec import DatasetSpec
from .task_result import TaskResult


def write_generation(
    spec: DatasetSpec,
    results: Iterable[TaskResult],
    run: Callable[[Callable[[Any], None], Iterable[Any]], Iterator[None]] = map,
) -> WriteOutcome:
    """Plan, assemble, commit and publish; `run` maps a function over items, by default in this thread."""
    plan = plan_dataset(spec, results)
    if isinstance(plan, Refusal):
        return WriteOutcome(spec.path, refusal=plan)
    for _ in run(lambda job: assemble_shard(spec, job), plan.jobs):
        pass
    commit = commit_generation(spec, plan.draft, plan.jobs)
    if isinstance(commit, Refusal):
        return WriteOutcome(spec.path, refusal=commit)
    return publish_generation(spec, commit, run)


def publish_generation(
    spec: DatasetSpec, commit: Commit, run: Callable[[Callable[[Any], None], Iterable[Any]], Iterator[None]] = map
) -> WriteOutcome:
    """Publish what was committed."""
    for _ in run(lambda move: publish_file(spec.storage, move), moves_of(commit)):
        pass
    complete_publish(spec.storage, commit)
    return WriteOutcome(spec.path, manifest=commit.manifest, notes=commit.notes)
