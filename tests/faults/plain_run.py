"""A conversion without an engine: its tasks one after the other in one thread, by the functions that engines call.

Most tests are about what is read, what is said and what is written; starting an engine for each of them would take nine
tenths of their time. That the local engine, Flink and worker processes make the same bytes and the same calls is what
tests/contract/test_promises.py, tests/flink and tests/faults/test_every_call.py are for.
"""

from __future__ import annotations

from typing import Any

from shardmill.transforms.dataset.commit.publish import write_generation
from shardmill.transforms.inputs.contract.tasks import TaskStaging


def run_plainly(prepared: Any, *_: Any) -> None:
    """Stage what is left of a run's tasks, and end its generation; in the place of `LocalEngine.run`."""
    staging = TaskStaging.of(prepared.spec, prepared.source, prepared.plan.survey.frozen, prepared.encoder)
    write_generation(prepared.spec, [*prepared.done, *map(staging.stage, prepared.plan.tasks)])
