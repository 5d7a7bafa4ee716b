"""Read a source as batches of rows, one task after the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import apache_beam as beam

from .errors import SourceError
from .format.rows import Rows, TaskEnd
from .format.schema import Schema
from .sources.source import Frozen, Source, Task
from .sources.task_planning import Plan


@dataclass(eq=False)
class ReadRows(beam.PTransform):  # type: ignore[misc]
    """Read the planned tasks of a source: `Rows` batches, each task closed by its `TaskEnd`.

    The output stays in one fused chain with what follows, up to the stage step of `WriteShards`: a batch is never
    stored between stages. A corrupt file is told in the `TaskEnd`, and refused by `WriteShards` before anything is
    committed; it is never raised here, where an engine would only try again.

    `plan` comes from `shardmill.transforms.plan_rows`.
    """

    source: Source
    plan: Plan

    def __post_init__(self) -> None:
        super().__init__()

    @property
    def schema(self) -> Schema:
        """The features that the rows become."""
        return self.plan.survey.frozen.schema

    def expand(self, pbegin: beam.pvalue.PBegin) -> beam.PCollection:
        """Return the PCollection of `Rows | TaskEnd`."""
        return (
            pbegin
            | "List tasks" >> beam.Create(self.plan.tasks, reshuffle=False)
            # Task
            | "Spread tasks" >> beam.Reshuffle()
            | "Read rows" >> beam.ParDo(_ReadTaskFn(self.source, self.plan.survey.frozen))
            # Rows, Rows, ..., TaskEnd
        )


@dataclass
class _ReadTaskFn(beam.DoFn):  # type: ignore[misc]
    source: Source
    frozen: Frozen = field(repr=False)

    def process(self, task: Task) -> Iterator[Rows | TaskEnd]:
        yield from read_task(self.source, task, self.frozen)


def read_task(source: Source, task: Task, frozen: Frozen) -> Iterator[Rows | TaskEnd]:
    """Yield the batches of a task and its end mark, which counts what was read of each entry."""
    batches = 0
    rows_read: dict[int, int] = {}
    failures: tuple[str, ...] = ()
    notes: Counter[str] = Counter()
    try:
        for rows in source.read(task, frozen):
            rows.count_into(rows_read)
            notes.update(rows.notes)
            batches += 1
            yield rows
    except SourceError as error:
        failures = (str(error),)
    yield TaskEnd(task.ordinal, batches, rows_read, failures, dict(notes))
