"""One task from its source to its staged parts in a single call, without an engine between the steps.

    Task ─▶ read_task ─▶ RowEncoder.encode ─▶ TaskStager ─▶ TaskResult

What `ReadRows | EncodeExamples | WriteShards` do with a task as one fused stage, for a caller with the whole task: the
worker processes of the local engine, which therefore need not load Beam.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from .dataset.stage.spec import DatasetSpec
from .dataset.stage.split_stager import StageSettings
from .dataset.stage.task_result import TaskResult
from .dataset.stage.task_stager import TaskStager
from .dataset.storage.contract import Storage
from .format.encode.encode_rows import RowEncoder
from .format.flow.rows import TaskEnd
from .sources.contract.planning import read_task
from .sources.contract.source import Frozen, Source, Task


@dataclass(frozen=True, slots=True)
class TaskStaging:
    """Everything that staging a task needs but the task: the same for all tasks of a run, and soon pickled."""

    source: Source
    frozen: Frozen = field(repr=False)
    encoder: RowEncoder = field(repr=False)
    storage: Storage
    staging: str
    settings: StageSettings

    @classmethod
    def of(cls, spec: DatasetSpec, source: Source, frozen: Frozen, encoder: RowEncoder) -> TaskStaging:
        """Return what the tasks of a run are staged with: not the whole spec, which lists all inputs."""
        return cls(source, frozen, encoder, spec.storage, spec.staging, spec.stage_settings)

    def stage(self, task: Task) -> TaskResult:
        """Make one attempt at a task; return what it staged, when that is durable.

        A corrupt file, and rows in too many splits, are reported in the result, as everywhere; other errors are raised.
        """
        stager = TaskStager(self.storage, self.staging, task.ordinal, self.settings)
        try:
            for element in read_task(self.source, task, self.frozen):
                if isinstance(element, TaskEnd):
                    return stager.finish(element)
                stager.add(self.encoder.encode(element))
                del element
                if stager.has_failed:
                    return stager.finish()
        except BaseException:
            stager.abandon()
            raise
        raise AssertionError("read_task closes every task with its end")
