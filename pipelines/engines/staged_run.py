"""Tasks on a Beam pipeline: encoded by the pipeline's own steps, or each handed to a worker process as a whole."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from ...transforms.tasks import TaskStaging
from ..prepare.prepared import Prepared
from .beam_pipeline import plain_labels

if TYPE_CHECKING:
    import apache_beam as beam

    from ...transforms.write import WriteShards
    from ..workers.worker_processes import WorkerProcesses


# The paragraph of the product, as a pipeline on any engine: read, encode, write.


def add_steps(pipeline: beam.Pipeline, prepared: Prepared, *, raise_refusal: bool = False) -> None:
    """Put what is prepared on a pipeline; with `raise_refusal` a refusal fails it, in its very last step."""
    from ...transforms.encode import EncodeExamples
    from ...transforms.read import ReadRows

    with plain_labels():
        _ = (
            pipeline
            | "Read" >> ReadRows(prepared.source, prepared.plan)
            # Rows, ..., TaskEnd
            | "Encode" >> EncodeExamples(prepared.encoder)
            # Block, ..., TaskEnd
            | "Write" >> sink(prepared, raise_refusal=raise_refusal)
            # WriteOutcome
        )


def sink(prepared: Prepared, *, raise_refusal: bool = False) -> WriteShards:
    from ...transforms.write import WriteShards

    return WriteShards(prepared.spec.path, spec=prepared.spec, raise_refusal=raise_refusal, done=prepared.done)


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
    from ...transforms.elements import StageTasks

    with engine as pipeline, plain_labels():
        _ = (
            pipeline
            | "Stage" >> StageTasks(prepared.plan.tasks, processes.stage)
            # TaskResult
            | "Write" >> sink(prepared)
            # WriteOutcome
        )
