"""Decoded batches: of the size in which they are read, or of as many rows as are asked for."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Final

import pyarrow as pa

from ...errors import DamageError
from ...format.decode.decode_examples import ExampleDecoder, ExampleError
from ..records.record_scan import RecordRun
from ..rows.numbered_rows import joined

Progress = Callable[[int, int], None]
"""Is called with the rows that have been read, and those that there are."""

_BETWEEN: Final = 0.2
"""Seconds between two lines of progress."""


def decoded(
    runs: Iterable[tuple[str, RecordRun]], decoder: ExampleDecoder
) -> Iterator[tuple[str, int, pa.RecordBatch]]:
    """Yield the name of the shard, the number of the batch's first record in it, from 1, and the batch.

    Raises:
        DamageError: a record is not an Example of the schema.
    """
    for place, run in runs:
        for first in range(0, len(run), decoder.rows_at_once):
            try:
                batch = decoder.decode(run.payloads.tail(first).head(decoder.rows_at_once))
            except ExampleError as error:
                row = first + error.row
                at = f"record {run.first_record + row} at byte {run.offsets[row]}"
                raise DamageError(f"{place} {at}: {error.reason}") from error
            yield place, run.first_record + first, batch


def in_batches_of(rows: int, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the same rows, so many in each batch; the last one may have fewer."""
    held: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        first = 0
        while len(batch) - first >= rows - count:
            held.append(batch.slice(first, rows - count))
            first += rows - count
            yield joined(held)
            held, count = [], 0
        if first < len(batch):
            held.append(batch.slice(first))
            count += len(batch) - first
    if held:
        yield joined(held)


def counted(batches: Iterable[pa.RecordBatch], done: int, rows: int, progress: Progress) -> Iterator[pa.RecordBatch]:
    """Yield the batches, and report each one when the next is asked for; `done` rows were there before."""
    for batch in batches:
        yield batch
        done += len(batch)
        progress(done, rows)


class ProgressLine:
    """Shows on standard error how many rows have been read, in one line of a terminal or a notebook."""

    def __init__(self) -> None:
        self._begun = time.monotonic()
        self._shown = 0.0

    def __call__(self, done: int, rows: int) -> None:
        """Show the line, where the last one is some time ago or this is the last."""
        now = time.monotonic()
        if now - self._shown < _BETWEEN and done < rows:
            return
        self._shown = now
        share = done / rows if rows else 1.0
        end = "\n" if done >= rows else ""
        sys.stderr.write(f"\r{done:,} of {rows:,} rows, {share:.0%}, {now - self._begun:.1f} s{end}")
        sys.stderr.flush()
