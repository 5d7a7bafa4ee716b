"""Dataflow as the engine: a job of Google Cloud, which is waited for or left alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ...config.runners import DataflowRunner
from ...prepare.prepared import Prepared
from ...report.summary import Count, Submitted
from ..engine import Engine
from .submission import DataflowJob, check_dataflow, only_builds, submit

if TYPE_CHECKING:
    from ...workers.worker_processes import WorkerProcesses


@dataclass(frozen=True, slots=True)
class DataflowEngine(Engine):
    """A job of Dataflow for each run; `beam_options` is what came after `--`.

    What jobs before have staged is never taken over: one of them may still be at work there. Dataflow itself refuses a
    second job of the same command.
    """

    runner: DataflowRunner
    beam_options: Sequence[str] = ()
    resumes: bool = False
    sees_this_machine: bool = False
    _job: DataflowJob = field(default_factory=DataflowJob)

    @property
    def waits(self) -> bool:
        return self.runner.wait and not only_builds(self.beam_options)

    def check(self) -> None:
        check_dataflow(self.runner, self.beam_options)

    def run(self, prepared: Prepared, processes: WorkerProcesses) -> Submitted | None:  # noqa: ARG002
        if not self.waits:
            return submit(prepared, self.runner, self.beam_options)
        submit(prepared, self.runner, self.beam_options, self._job)
        return None

    def count(self, name: str) -> Count | None:  # noqa: ARG002
        return self._job.count
