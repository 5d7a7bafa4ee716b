"""Flink as the engine: embedded in the run, or a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...config.runners import FlinkRunner
from ...outcomes.summary import Count
from ...prepare.prepared import Prepared
from ..beam_pipeline import run_on
from ..engine import Engine
from .pipeline import Slots, check_flink, end_orphan, flink_pipeline, slots_of
from .watch import count_on

if TYPE_CHECKING:
    from ...workers.worker_processes import WorkerProcesses


@dataclass(frozen=True, slots=True)
class FlinkEngine(Engine):
    """A job of Flink for each run; `beam_options` is what came after `--`."""

    runner: FlinkRunner
    beam_options: Sequence[str] = ()

    def check(self) -> None:
        check_flink(self.runner, self.beam_options)

    def end_orphan(self, name: str) -> None:
        end_orphan(self.runner, name)

    def run(self, prepared: Prepared, processes: WorkerProcesses) -> None:
        slots = Slots(processes.workers, 1) if self.runner.is_embedded else slots_of(self.runner)
        pipeline = flink_pipeline(self.runner, slots, len(prepared.plan.tasks), self.beam_options, prepared.name)
        run_on(pipeline, prepared, processes if self.runner.is_embedded else None)

    def count(self, name: str) -> Count | None:
        return count_on(self.runner, name)
