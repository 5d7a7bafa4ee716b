"""Rows on their way to the encoder, and encoded records on their way to the stage step.

A batch of rows knows where each of them came from.

The steps, and what each passes on:

    source ──read──▶ Rows, Rows, ..., TaskEnd ──encode──▶ Block, Block, ..., TaskEnd ──stage──▶ TaskResult
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..schema.schema import Kind
from .arrow_memory import I64
from .rejects import CellProblem, Place, Reject

Notes = dict[tuple[int, str], int]
"""What the user should know of rows that are in order: (source entry, "animated images, of which ...") -> how many."""


class Origin(Protocol):
    """The place in the source of each row of one batch; picklable."""

    def place(self, row: int) -> Place:
        """Return the place of row `row`, counted from 0 in the batch."""

    def number(self, row: int) -> tuple[str, int | None]:
        """Return the file of a row and its number there, None where it is the file: `place` may take longer."""


@dataclass(frozen=True, slots=True)
class RowOrigin:
    """The origin of rows that follow each other in one file: `first_row` is the file's number (from 1) of row 0."""

    source: str
    first_row: int
    row_group: int | None = None

    def place(self, row: int) -> Place:
        return Place(self.source, row=self.first_row + row, row_group=self.row_group)

    def number(self, row: int) -> tuple[str, int]:
        return self.source, self.first_row + row


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """One batch of a task. Rows read = `batch.num_rows + len(rejects)`, and the `dropped` ones.

    ordinal       counts the batches of the task from 0
    entry         the index of the source entry (a file; images: a folder) in the listing: one, or one for each row
    batch         column names are feature names; types are those that the schema was frozen from
    problems      bad cells of rows in `batch`: the cell itself is null there
    rejects       rows that are not in `batch` at all
    split_codes   an index into the survey's `splits` for each row, where the source splits by directory
    dropped       rows that a step of the recipe left out, by entry: they were read, and are no longer in `batch`
    warned        the warnings of pictures, as they are shown
    """

    task: int
    ordinal: int
    entry: int | npt.NDArray[np.int64]
    batch: pa.RecordBatch
    origin: Origin
    problems: tuple[CellProblem, ...] = ()
    rejects: tuple[Reject, ...] = ()
    split_codes: npt.NDArray[np.int64] | None = None
    notes: Notes = field(default_factory=dict)
    dropped: dict[int, int] = field(default_factory=dict)
    warned: tuple[str, ...] = ()

    def entry_of(self, row: int) -> int:
        return self.entry if isinstance(self.entry, int) else int(self.entry[row])

    def entry_counts(self, errors: Iterable[int]) -> tuple[EntryCounts, ...]:
        """Return what became of the rows of each entry, in the order of entries; `errors` are rows that are rejects."""
        read: dict[int, int] = defaultdict(int)
        if isinstance(self.entry, int):
            read[self.entry] += self.batch.num_rows
        else:
            for entry, count in zip(*np.unique(self.entry, return_counts=True), strict=True):
                read[int(entry)] += int(count)
        rejected: dict[int, int] = defaultdict(int)
        for row in errors:
            rejected[self.entry_of(row)] += 1
        for reject in self.rejects:
            read[reject.entry] += 1
            rejected[reject.entry] += 1
        dropped = Counter(self.dropped)
        for entry, count in dropped.items():
            read[entry] += count
        return tuple(
            EntryCounts(entry, count, count - rejected[entry] - dropped[entry], rejected[entry], dropped[entry])
            for entry, count in sorted(read.items())
            if count
        )

    def count_into(self, rows_read: dict[int, int]) -> None:
        """Add the rows of this batch, rejected and dropped ones included, to the counts of their entries."""
        if isinstance(self.entry, int):
            entries, counts = [self.entry], [self.batch.num_rows]
        else:
            found, numbers = np.unique(self.entry, return_counts=True)
            entries, counts = found.tolist(), numbers.tolist()
        for entry, count in zip(entries, counts, strict=True):
            rows_read[entry] = rows_read.get(entry, 0) + count
        for reject in self.rejects:
            rows_read[reject.entry] = rows_read.get(reject.entry, 0) + 1
        for entry, count in self.dropped.items():
            rows_read[entry] = rows_read.get(entry, 0) + count


@dataclass(frozen=True, slots=True)
class TaskEnd:
    """The end mark of a task: how many batches it had, what was read of each entry, and what broke it.

    `failures` are the texts of `SourceError`s: they make the shard plan refuse the run, and are never raised inside
    an engine, which would only retry them.
    """

    task: int
    batches: int
    rows_read: dict[int, int] = field(default_factory=dict)
    failures: tuple[str, ...] = ()


# The values of a feature on their way: what columns become, and records are written from.


@dataclass(frozen=True, slots=True, eq=False)
class FeatureColumn:
    """The values of one feature for each row of a batch.

    `values` are int64, float32 or, for bytes, views into `buffers`. A scalar feature has one value for each row and no
    `offsets`; row i of a list has the values from `offsets[i]` to `offsets[i + 1]`. `present` is None where every row
    has the feature; what stands for the others is arbitrary. A sparse column has the values of `rows` alone, which are
    all that have the feature.
    """

    name: str
    kind: Kind
    values: npt.NDArray[Any]
    buffers: tuple[pa.Buffer, ...] = ()
    offsets: I64 | None = None
    present: npt.NDArray[np.bool_] | None = None
    rows: I64 | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Frames:
    """Framed TFRecord records of one split, in order.

    `buffers`, one after the other, are the bytes as they are in the file; `ends[i]` is where record i ends in them
    (int64). `digest` is the sum modulo 2**128 of the records' mixes (`record_digests`), as `records_digest` adds up.
    `crcs` are the CRC32Cs of the framed records (uint32), where they came at less than the price of reading them.
    """

    buffers: tuple[pa.Buffer, ...]
    ends: npt.NDArray[np.int64]
    digest: int
    crcs: npt.NDArray[np.uint32] | None = None

    @property
    def records(self) -> int:
        return len(self.ends)

    @property
    def bytes(self) -> int:
        return int(self.ends[-1]) if len(self.ends) else 0


@dataclass(frozen=True, slots=True)
class EntryCounts:
    """What became of the rows of one source entry: read = written + rejected + dropped."""

    entry: int
    read: int = 0
    written: int = 0
    rejected: int = 0
    dropped: int = 0

    def plus(self, more: EntryCounts) -> EntryCounts:
        return EntryCounts(
            self.entry,
            self.read + more.read,
            self.written + more.written,
            self.rejected + more.rejected,
            self.dropped + more.dropped,
        )


def added(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one + other


@dataclass(frozen=True, slots=True)
class Narrowing:
    """What float64 values lost as float32: how many values, the largest relative error, how many became zero.

    `integers_changed` counts those that changed where all are integers, as ids are; None where some is no integer.
    """

    name: str
    from_: str
    to: str
    values: int
    max_relative_error: float
    underflows: int
    integers_changed: int | None = None

    def plus(self, more: Narrowing) -> Narrowing:
        return replace(
            self,
            values=self.values + more.values,
            max_relative_error=max(self.max_relative_error, more.max_relative_error),
            underflows=self.underflows + more.underflows,
            integers_changed=added(self.integers_changed, more.integers_changed),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """The encoded records of one batch by split, and its rejects in row order.

    task       None for blocks that come from no task (a user's own pipeline): their task is then the bundle
    observed   what observers found in it, by their names
    spilled    what goes into the observers' files of the task
    failures   why the batch was not encoded, and no retry helps: they make the shard plan refuse the run
    """

    task: int | None
    ordinal: int
    splits: dict[str, Frames]
    counts: tuple[EntryCounts, ...] = ()
    rejects: tuple[Reject, ...] = ()
    observed: dict[str, Any] = field(default_factory=dict)
    spilled: dict[str, bytes] = field(default_factory=dict)
    failures: tuple[str, ...] = ()
