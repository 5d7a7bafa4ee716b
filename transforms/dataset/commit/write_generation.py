"""From the results of all tasks to a published generation, without an engine.

`WriteShards` takes the same steps, each of them over many workers: shuffle, plan, assemble, commit, publish, complete.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ..shards.accounting import Refusal
from ..shards.plan_step import assemble_shard, plan_shuffle
from ..shards.second_pass import run_shuffle_task
from ..stage.spec import DatasetSpec
from ..stage.task_result import TaskResult
from .commit_generation import Commit, WriteOutcome, commit_generation, plan_generation, read_decision
from .publish import complete_publish, moves_of, publish_file


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
