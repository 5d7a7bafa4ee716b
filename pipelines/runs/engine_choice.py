"""The engine that a config names, and the workers of this machine that it asks for."""

from __future__ import annotations

from collections.abc import Sequence

from ...transforms.errors import UsageError
from ...transforms.format.wording.hints import Command
from ..config.runners import AnyRunner, DataflowRunner, FlinkRunner, LocalRunner
from ..engines.dataflow import DataflowEngine
from ..engines.engine import Engine
from ..engines.flink.pipeline import FlinkEngine
from ..engines.local import LocalEngine
from ..workers.worker_processes import WorkerProcesses


def engine_of(runner: AnyRunner, beam_options: Sequence[str] = ()) -> Engine:
    match runner:
        case LocalRunner():
            return LocalEngine(beam_options)
        case FlinkRunner():
            return FlinkEngine(runner, beam_options)
        case DataflowRunner():
            return DataflowEngine(runner, beam_options)


def require_waiting(engine: Engine) -> None:
    if not engine.waits:
        raise UsageError(
            "runner.wait: what is written is known when the job has ended, so this waits for it; leave the key out, or "
            f"submit with the command line: {Command('convert', '...', '--no-wait')}"
        )


def workers_of(runner: AnyRunner) -> WorkerProcesses:
    """Return the workers of this machine: they plan, and convert where the engine is this machine too."""
    return WorkerProcesses(runner.planners, asked=runner.processes)
