"""This machine as the engine: Beam's local runner, with threads or worker processes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...prepare.prepared import Prepared
from ..beam_pipeline import make_pipeline
from ..engine import Engine
from ..staged_run import run_on

if TYPE_CHECKING:
    from ...workers.worker_processes import WorkerProcesses


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
