"""Decoded batches: of the size in which they are read, or of as many rows as are asked for."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Final

import pyarrow as pa

from ...format.decode.decode_examples import ExampleDecoder
from ..records.record_scan import RecordRun
from ..rows.numbered_rows import decoded, joined

Progress = Callable[[int, int], None]
"""Is called with the rows that have been read, and those that there are."""

_BETWEEN: Final = 0.2
"""Seconds between two lines of progress."""


def decoded_runs(
    runs: Iterable[tuple[str, RecordRun]], decoder: ExampleDecoder
) -> Iterator[tuple[str, int, pa.RecordBatch]]:
    """Yield the name of the shard, the number of the batch's first record in it, from 1, and the batch."""
    for shard, run in runs:
        for first, batch in decoded(run.payloads, decoder, partial(_place, shard, run)):
            yield shard, run.first_record + first, batch


def _place(shard: str, run: RecordRun, row: int) -> str:
    return f"{shard} record {run.first_record + row} at byte {run.offsets[row]}"


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
    """Shows on standard error how many rows have been read: a line that changes, or in a log one at each tenth."""

    def __init__(self) -> None:
        self._begun = time.monotonic()
        self._shown, self._tenths = 0.0, 0
        self._changes = sys.stderr.isatty() or "ipykernel" in sys.modules

    def __call__(self, done: int, rows: int) -> None:
        now, share = time.monotonic(), done / rows if rows else 1.0
        tenths = int(share * 10)
        is_due = now - self._shown >= _BETWEEN if self._changes else tenths > self._tenths
        if not is_due and done < rows:
            return
        self._shown, self._tenths = now, tenths
        begin, end = ("\r", "\n" if done >= rows else "") if self._changes else ("", "\n")
        sys.stderr.write(f"{begin}{done:,} of {rows:,} rows, {share:.0%}, {now - self._begun:.1f} s{end}")
        sys.stderr.flush()
