"""Which batches of an epoch a reader takes: global batch g is of rank g mod world, and of its workers in turn.

                 g   0  1  2  3  4  5  6  7  8  9 10        11 batches, of which the last is not full
world 2, rank 0      0     2     4     6     8    (10)      `even`: drop leaves out 10, none takes it,
rank 1                  1     3     5     7     9  (11)     pad fills 10 and makes 11 of rows of the beginning
2 workers of rank 0  a     b     a     b     a
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ...errors import UsageError
from .row_order import I64, Order


def too_much_left_out(rows: int, left_out: int, batch_rows: int, world: int, fix: str) -> str | None:
    """Return the warning of an epoch that leaves out more than a tenth of its rows; if it leaves out all, raise."""
    ranks = f" for each of world={world} ranks" if world > 1 else ""
    if 0 < rows == left_out:
        raise UsageError(
            f"an epoch has no batch at all: {rows:,} rows are less than one of batch_rows={batch_rows:,}{ranks}; take "
            f"batch_rows={max(rows // world, 1)} or less, or {fix}"
        )
    if 10 * left_out <= rows:
        return None
    return (
        f"each epoch leaves out {left_out:,} of {rows:,} rows: it has only full batches of batch_rows={batch_rows:,}"
        f"{ranks}; take a smaller batch_rows, or {fix}"
    )


@dataclass(frozen=True, slots=True)
class EpochBatches:
    """The batches of one epoch of `size` rows from global batch `start` on, as `rank` of `world` takes them."""

    size: int
    batch_rows: int
    rank: int
    world: int
    even: str
    start: int = 0

    @property
    def stop(self) -> int:
        """The global batch at which the epoch ends for all ranks."""
        full, all_ = self.size // self.batch_rows, -(-self.size // self.batch_rows)
        if self.even == "none":
            return max(all_, self.start)
        if self.even == "drop":
            return self.start + max(full - self.start, 0) // self.world * self.world
        return self.start + -(-max(all_ - self.start, 0) // self.world) * self.world

    @property
    def left_out(self) -> int:
        """The rows that no rank reads, as `even` is `drop`."""
        return max(self.size - self.stop * self.batch_rows, 0)

    @property
    def repeated(self) -> int:
        """The rows that are read twice, as `even` is `pad`."""
        return max(self.stop * self.batch_rows - self.size, 0) if self.even == "pad" else 0

    def __len__(self) -> int:
        return len(range(self.start + self.rank, self.stop, self.world))

    def of_worker(self, worker: int, workers: int, taken: int = 0) -> Iterator[int]:
        """Yield the global batches of a worker of this rank behind the first `taken` ones of its own."""
        mine = range(self.start + self.rank, self.stop, self.world)
        yield from mine[worker::workers][taken:]

    def rows_of(self, batch: int, order: Order) -> I64:
        """Return the rows of a global batch; where `even` is `pad` it is full, with rows of the beginning."""
        count = -(-self.size // self.batch_rows)
        rows = order.batch(batch) if batch < count else np.empty(0, np.int64)
        if self.even != "pad" or len(rows) == self.batch_rows or not self.size:
            return rows
        missing, found = self.batch_rows - len(rows), [rows]
        at = max(batch - count, 0) if batch >= count else 0
        while missing > 0:
            more = order.batch(at % count)[:missing]
            found.append(more)
            missing, at = missing - len(more), at + 1
        return np.concatenate(found)
