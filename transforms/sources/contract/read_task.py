"""Read one task to its end: its batches of rows, and the mark that closes it."""

from __future__ import annotations

from collections.abc import Iterator

from ...errors import SourceError
from ...format.flow.rows import Rows, TaskEnd
from .source import Frozen, Source, StoredPieces, Task


def read_task(source: Source, task: Task, frozen: Frozen) -> Iterator[Rows | TaskEnd]:
    if isinstance(task.pieces, StoredPieces):
        task = Task(task.ordinal, task.pieces.load())
    batches = 0
    rows_read: dict[int, int] = {}
    failures: tuple[str, ...] = ()
    try:
        for rows in source.read(task, frozen):
            rows.count_into(rows_read)
            batches += 1
            yield rows
            del rows  # and so below: what is large is freed before more is read
    except SourceError as error:
        failures = (str(error), *_further_failures(source, task, frozen, error))
    except OSError as error:  # of the disk: the engine may try again
        if error.errno is not None and error.filename is None:
            names = dict.fromkeys((task.pieces[0].name, task.pieces[-1].name))
            error.filename = " to ".join(names)
        raise
    yield TaskEnd(task.ordinal, batches, rows_read, failures)


def _further_failures(source: Source, task: Task, frozen: Frozen, error: SourceError) -> Iterator[str]:
    """Read the files of a task that follow a corrupt one, for their errors only: one run names all corrupt files."""
    while True:
        last = max((i for i, piece in enumerate(task.pieces) if piece.name == error.source), default=len(task.pieces))
        task = Task(task.ordinal, task.pieces[last + 1 :])
        if not task.pieces:
            return
        try:
            for _ in source.read(task, frozen):
                pass
            return
        except SourceError as another:
            yield str(another)
            error = another
