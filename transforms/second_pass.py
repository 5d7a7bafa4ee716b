"""The second pass of a shuffle, as steps of a pipeline.

results of tasks ─▶ Plan shuffle ─▶ Shuffle ─▶ results of both passes
(0, TaskResult)     one step        per range of buckets
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import apache_beam as beam

from .dataset.shards.plan_step import plan_shuffle
from .dataset.shuffle.second_pass import run_shuffle_task
from .dataset.shuffle.spilled_files import ShuffleTask
from .dataset.stage.done_tasks import read_result
from .dataset.stage.spec import DatasetSpec
from .dataset.stage.task_result import TaskResult
from .dataset.storage.shared_folder import check_shared
from .gather import KEYED, Gather, gathered_values, packed, unpacked


@dataclass(eq=False)
class SecondPass(beam.PTransform):
    """Sort what was spilled, and stage it; `done` are the tasks whose results a run before has left.

    `light` is the spec without what is large. The results of the first pass go through unchanged.
    """

    spec: DatasetSpec
    light: DatasetSpec
    done: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        super().__init__()

    def expand(self, pcoll: beam.PCollection) -> beam.PCollection:
        return (
            pcoll
            | "Gather spills" >> Gather()
            | "Plan shuffle" >> beam.ParDo(_PlanShuffleFn(self.spec, self.done))  # TaskResults and ShuffleTasks
            | "Spread buckets" >> beam.Reshuffle()
            | "Shuffle" >> beam.ParDo(_ShuffleFn(self.light)).with_output_types(KEYED)
            # (0, TaskResult)
        )


class StepOverResults(beam.DoFn):
    """A step that sees the results of all tasks: those of this run, and of a run before it (`done`)."""

    def __init__(self, spec: DatasetSpec, done: tuple[int, ...]) -> None:
        self.spec = spec
        self.done = done

    def results(self, gathered: tuple[int, Iterable[bytes]]) -> Iterator[TaskResult]:
        yield from gathered_values(gathered)
        yield from (read_result(self.spec.storage, self.spec.staging, task) for task in self.done)


class _PlanShuffleFn(StepOverResults):
    def process(self, gathered: tuple[int, Iterable[bytes]]) -> Iterator[bytes]:
        check_shared(self.spec.storage, self.spec.proof)
        results = list(self.results(gathered))
        yield from (packed(result) for result in results)
        yield from (packed(task) for task in plan_shuffle(self.spec, results))


class _ShuffleFn(beam.DoFn):
    """Stages some buckets of a split, sorted."""

    def __init__(self, spec: DatasetSpec) -> None:
        self.spec = spec

    def process(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """Yield the result of a task of the second pass; those of the first pass unchanged."""
        task = unpacked(data)
        if isinstance(task, ShuffleTask):
            data = packed(run_shuffle_task(self.spec, task))
        yield 0, data
