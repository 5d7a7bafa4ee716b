"""This machine as the engine: Beam's local runner or none, with threads or worker processes.

Without Beam: for records that need no encoding, Beam would be started longer than a gigabyte takes.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ...transforms.dataset.commit.publish import write_generation
from ...transforms.tasks.task_files import TaskStaging
from ..prepare.prepared import Prepared
from .beam_pipeline import make_pipeline, run_on
from .engine import Engine

if TYPE_CHECKING:
    from ..workers.worker_processes import WorkerProcesses


@dataclass(frozen=True, slots=True)
class LocalEngine(Engine):
    """Beam's engine of this process; `beam_options` is what came after `--`."""

    beam_options: Sequence[str] = ()

    def check(self) -> None:
        if self.beam_options:
            make_pipeline(1, self.beam_options)

    def run(self, prepared: Prepared, processes: WorkerProcesses) -> None:
        workers = min(processes.workers, max(len(prepared.plan.tasks), 1))
        run_on(make_pipeline(workers, self.beam_options), prepared, processes)


_PROCESSES_FROM_BYTES: Final = 2 << 30
"""Below this, worker processes are started longer than a second of the records takes."""


@dataclass(frozen=True, slots=True)
class PlainEngine(Engine):
    """Threads, or worker processes, that stage; the generation is ended by the functions that Beam's steps call."""

    def check(self) -> None:
        """Do nothing: there are no options."""

    def run(self, prepared: Prepared, processes: WorkerProcesses) -> None:
        plan, spec = prepared.plan, prepared.spec
        workers = min(processes.workers, max(len(plan.tasks), 1))
        staging = TaskStaging.of(spec, prepared.source, plan.survey.frozen, prepared.encoder)
        with ExitStack() as stack:
            pool = ThreadPoolExecutor(workers)
            stack.callback(pool.shutdown, wait=False, cancel_futures=True)
            if processes.wanted(plan.work if workers > 1 else 0, _PROCESSES_FROM_BYTES):
                processes.begin(staging, plan.tasks)
                results = [processes.stage(task) for task in plan.tasks]
            else:
                results = list(pool.map(staging.stage, plan.tasks))
            write_generation(spec, [*prepared.done, *results], pool.map)
