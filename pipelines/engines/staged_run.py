"""Tasks on a Beam pipeline: encoded by the pipeline's own steps, or each handed to a worker process as a whole."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from ...transforms.task_staging import TaskStaging
from ..prepare.prepared import Prepared
from .beam_pipeline import plain_labels
from .read_encode_write import add_steps, sink

if TYPE_CHECKING:
    import apache_beam as beam

    from ..workers.worker_processes import WorkerProcesses


def run_on(
    engine: AbstractContextManager[beam.Pipeline],
    prepared: Prepared,
    processes: WorkerProcesses | None,
) -> None:
    """Run what is prepared on a pipeline: by its own steps, or by worker processes where they are wanted."""
    if processes is None or not processes.wanted(prepared.plan.work):
        with engine as pipeline:
            add_steps(pipeline, prepared)
        return
    staging = TaskStaging.of(prepared.spec, prepared.source, prepared.plan.survey.frozen, prepared.encoder)
    processes.begin(staging, prepared.plan.tasks)
    try:
        _run_in_processes(engine, prepared, processes)
    except Exception:
        if processes.broken is not None:
            raise processes.broken from None
        raise


def _run_in_processes(
    engine: AbstractContextManager[beam.Pipeline], prepared: Prepared, processes: WorkerProcesses
) -> None:
    from ...transforms.stage_tasks import StageTasks

    with engine as pipeline, plain_labels():
        _ = (
            pipeline
            | "Stage" >> StageTasks(prepared.plan.tasks, processes.stage)
            # TaskResult
            | "Write" >> sink(prepared)
            # WriteOutcome
        )
