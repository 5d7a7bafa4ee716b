"""Stage the tasks of a plan by one call each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import apache_beam as beam

from .dataset.stage.task_result import TaskResult
from .sources.contract.source import Task


@dataclass(eq=False)
class StageTasks(beam.PTransform):
    """Hand each task to `stage`, which returns what it staged, as input for `WriteShards`.

    It replaces `ReadRows | EncodeExamples` and the first step of `WriteShards`, and gives the same
    bytes: for an engine whose own workers are not the ones that do the work.
    """

    tasks: Sequence[Task] = field(repr=False)
    stage: Callable[[Task], TaskResult]

    def __post_init__(self) -> None:
        super().__init__()

    def expand(self, pbegin: beam.pvalue.PBegin) -> beam.PCollection:
        return (
            pbegin
            | "List tasks" >> beam.Create(self.tasks, reshuffle=False)
            # Task
            | "Spread tasks" >> beam.Reshuffle()
            | "Stage tasks" >> beam.Map(self.stage)
            # TaskResult
        )
