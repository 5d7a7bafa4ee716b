"""What stage hands the records of a task to, where they are shuffled: they are gathered, and spilled as runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...errors import RunError
from ...format.buffers.arrow_memory import array_of
from ...format.buffers.checksum import add_digests
from ...format.flow.blocks import Frames
from ..shard_plan import task_ranges
from ..shard_plan.shard_plan import CutPoint, CutTable, Part, SplitParts
from ..storage.contract import PartFile
from .keys import MOST_RECORDS, bucket_of, row_keys
from .spill_file import SpillWriter, joined_record

_RUN_BYTES: Final = 8 << 20
ONE_LEVEL_BYTES: Final = 100_000_000_000
"""Of more, a bucket of one level has at most half a KB in each run, and the index is 1.6 % of what is spilled."""

_BITS_OF_TWO_LEVELS: Final = 12

Create = Callable[[int], tuple[PartFile, str]]


@dataclass(frozen=True, slots=True)
class Shuffle:
    """How records are shuffled: by `seed`, in `2**bits` buckets. A task spills what it has gathered at `run_bytes`.

    With two `levels`, buckets are spilled once more before they are sorted.
    """

    seed: int
    bits: int
    run_bytes: int = _RUN_BYTES
    levels: int = 1

    @classmethod
    def of(cls, seed: int, output: int) -> Shuffle:
        """Return a shuffle of about `output` bytes of records: a bucket is about half to all of the smallest task."""
        if output > ONE_LEVEL_BYTES:
            return cls(seed, _BITS_OF_TWO_LEVELS, levels=2)
        return cls(seed, (max(output - 1, 0) // task_ranges.MIN_TASK_BYTES).bit_length())


class TaskSpill:
    """The records of all splits of a task that are not spilled yet: together they bound what is in memory.

    Those of each split are numbered from `first_number` on.
    """

    def __init__(self, task: int, shuffle: Shuffle, first_number: int = 0) -> None:
        self._task = task
        self._shuffle = shuffle
        self._first = first_number
        self._splits: list[SplitSpill] = []
        self._bytes = 0

    def split(self, create: Create) -> SplitSpill:
        stager = SplitSpill(self._task, self._shuffle, create, self._gathered, self._first)
        self._splits.append(stager)
        return stager

    def _gathered(self, size: int) -> None:
        self._bytes += size
        if self._bytes >= self._shuffle.run_bytes:
            for split in self._splits:
                split.spill()
            self._bytes = 0


class SplitSpill:
    """The records of one (task, split): `create(0)` opens their file; `gathered` is called with each block's bytes.

    Records are sorted by bucket as they come, and written for each bucket from all that is gathered.
    """

    def __init__(
        self, task: int, shuffle: Shuffle, create: Create, gathered: Callable[[int], None], first_number: int
    ) -> None:
        self._task = task
        self._shuffle = shuffle
        self._create = create
        self._gathered = gathered
        self._blocks: list[_SortedBlock] = []
        self._digest = 0
        self._numbered = first_number
        self._file: PartFile | None = None
        self._writer: SpillWriter | None = None
        self._path = ""

    def add(self, frames: Frames) -> None:
        """Take records, in their order; raise `RunError` if they are more than can be numbered."""
        if not frames.records:
            return
        if self._numbered + frames.records > MOST_RECORDS:
            raise RunError(f"task {self._task} has more than {MOST_RECORDS:,} records: lower output.shard_size")
        self._digest = add_digests((self._digest, frames.digest))
        numbers = np.arange(self._numbered, self._numbered + frames.records, dtype=np.uint64)
        self._numbered += frames.records
        buckets = bucket_of(row_keys(self._shuffle.seed, self._task, numbers), self._shuffle.bits)
        self._blocks.append(_by_bucket(frames, numbers, buckets, 1 << self._shuffle.bits))
        self._gathered(frames.bytes)

    def spill(self) -> None:
        blocks, self._blocks = self._blocks, []
        if not blocks:
            return
        if self._writer is None:
            self._file, self._path = self._create(0)
            self._writer = SpillWriter(self._file, self._shuffle.bits)
        buckets = range(1 << self._shuffle.bits)
        records = [block.records[block.rows[i] : block.rows[i + 1]] for i in buckets for block in blocks]
        counts = np.sum([np.diff(block.rows) for block in blocks], axis=0)
        data = [view for i in buckets for block in blocks for view in block.bytes_of(i)]
        self._writer.add_run(data, np.concatenate(records), counts)

    def finish(self) -> SplitParts:
        """Spill what is left, and return the file as one part, when it is durable."""
        self.spill()
        if self._writer is None or self._file is None:
            return SplitParts((), 0)
        self._writer.close()
        end = CutPoint(self._writer.bytes, self._writer.records, 0)
        self._file.wait()
        part = Part(self._task, 0, self._path, "spilled", self._writer.largest, CutTable.of([end]))
        return SplitParts((part,), self._digest)

    def abandon(self) -> None:
        if self._file is not None:
            self._file.abandon()


@dataclass(frozen=True, slots=True)
class _SortedBlock:
    """Records of a block by bucket: their frames, what is known of each, and the rows and bytes before each bucket."""

    data: Sequence[memoryview]
    records: npt.NDArray[np.uint64]
    rows: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]

    def bytes_of(self, bucket: int) -> Sequence[memoryview]:
        if len(self.rows) == 2:
            return self.data
        start, stop = self.ends[bucket : bucket + 2].tolist()
        return [self.data[0][start:stop]] if start < stop else []


def _by_bucket(
    frames: Frames, numbers: npt.NDArray[np.uint64], buckets: npt.NDArray[np.uint32], count: int
) -> _SortedBlock:
    lengths = np.diff(frames.ends, prepend=0)
    records = joined_record(lengths.astype(np.uint64), numbers)
    rows = np.concatenate(([0], np.cumsum(np.bincount(buckets, minlength=count))))
    if count == 1:
        return _SortedBlock([memoryview(one).cast("B") for one in frames.buffers], records, rows, rows)
    order = np.argsort(buckets.astype(np.uint16), kind="stable")
    data = frames.buffers[0] if len(frames.buffers) == 1 else pa.py_buffer(b"".join(frames.buffers))
    taken = taken_records(data, lengths, order)
    ends = np.concatenate(([0], np.cumsum(lengths[order])))[rows]
    return _SortedBlock([memoryview(taken).cast("B")], records[order], rows, ends)


def taken_records(data: pa.Buffer, lengths: npt.NDArray[np.int64], order: npt.NDArray[np.int64]) -> pa.Buffer:
    """Reorder the records of a buffer."""
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    records = pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(lengths), [None, pa.py_buffer(offsets), data])
    return records.take(array_of(order)).buffers()[2]
