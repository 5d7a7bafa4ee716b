"""Shuffle a split: each record gets a key of its own, is spilled by key into buckets, and read back sorted.

The place is the number of its task and its number among what the task wrote for the split, which say the file and the
row: how a source is cut into tasks depends on nothing but the source and the config. The bijection is the finalizer of
SplitMix64 (Steele, Lea and Flood, *Fast splittable pseudorandom number generators*, 2014) on `place + mixed seed`: it
passes for random, and sorting by it is a random permutation.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from io import BufferedIOBase
from typing import IO, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...errors import DamageError, RunError
from ...format.batches.arrow_memory import array_of
from ...format.batches.rows import Frames
from ...format.splits import shard_plan
from ...format.splits.shard_plan import CutPoint, CutTable, Part, SplitParts
from ...format.tfrecord.framing import add_digests, split_mix
from ..storage.contract import PartFile

_TASK_SHIFT: Final = 36
MOST_RECORDS: Final = (1 << 32) - 1
"""The records of one task and split: their numbers are 32 bits in a file."""

_MOST_TASKS: Final = 1 << (64 - _TASK_SHIFT)
_GAMMA: Final = 0x9E3779B97F4A7C15
_MASK: Final = (1 << 64) - 1


def row_keys(seed: int, task: int, numbers: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return the keys of records of a task and split, given by their numbers there."""
    if task >= _MOST_TASKS:
        raise RunError(f"a shuffle takes at most {_MOST_TASKS:,} tasks; raise output.shard_size")
    start = (int(split_mix(np.array([(seed + 1) * _GAMMA & _MASK], np.uint64))[0]) + (task << _TASK_SHIFT)) & _MASK
    return split_mix(numbers + np.uint64(start))


def bucket_of(keys: npt.NDArray[np.uint64], bits: int) -> npt.NDArray[np.uint32]:
    """Return the bucket of each key: its leading bits, so buckets are in key order."""
    if not bits:
        return np.zeros(len(keys), np.uint32)
    return (keys >> np.uint64(64 - bits)).astype(np.uint32)


# A file of spilled records, of one task and split: runs, each of them by bucket, and where each bucket is.
#
#     run 0    │ frames, by bucket │ (length, number) of each record, as two uint32
#     run 1    │ ...
#     index    │ where frames and numbers of each run start: int64 │ by bucket, of each run: records before it │ bytes
#     footer   │ "SHUFFLED", bits of buckets, number of runs: uint32; records, where the index starts: uint64
#
# All numbers are little-endian. A bucket of a run, or some that follow each other, is one range of frames and one of
# numbers. `number` is the record's place in its task and split, which its key is made of.


KNOWN_BYTES: Final = 8
"""What is known of a record beside its frame: its length and its number."""

_FOOTER: Final = struct.Struct("<8sIIQQ")
_MAGIC: Final = b"SHUFFLED"

U32 = npt.NDArray[np.uint32]
U64 = npt.NDArray[np.uint64]


def joined_record(lengths: U64, numbers: U64) -> U64:
    """Return what is known of records beside their frames, as it is in the file: (length, number), a uint64 each."""
    return lengths | numbers << np.uint64(32)


def split_record(records: U64) -> tuple[npt.NDArray[np.int64], U64]:
    return (records & np.uint64(0xFFFFFFFF)).astype(np.int64), records >> np.uint64(32)


class SpillWriter:
    """Writes a file, a run at a time; `2**bits` is the number of buckets."""

    def __init__(self, file: PartFile, bits: int) -> None:
        self._file = file
        self._bits = bits
        self._starts: list[tuple[int, int]] = []
        self._tables: list[tuple[U32, U32]] = []
        self.records = 0
        self.bytes = 0
        self.largest = 0

    def add_run(self, data: Sequence[memoryview], records: U64, counts: npt.NDArray[np.int64]) -> None:
        """Append a run: its frames by bucket, what is known of each, and the number of records of each bucket."""
        lengths, _ = split_record(records)
        ends = np.cumsum(lengths)
        before = np.concatenate(([0], np.cumsum(counts)))
        byte_ends = np.concatenate(([0], ends))[before]
        self._starts.append((self.bytes, self.bytes + int(byte_ends[-1])))
        self._tables.append((before.astype("<u4"), byte_ends.astype("<u4")))
        self.records += len(records)
        self.largest = max(self.largest, int(lengths.max()))
        self._write([*data, memoryview(records.astype("<u8").tobytes())])

    def close(self) -> None:
        """Write the index and the footer, and begin to make the file durable."""
        index = self.bytes
        starts = np.array(self._starts, "<i8")
        tables = [np.stack(tables, axis=1) for tables in zip(*self._tables, strict=True)]
        footer = _FOOTER.pack(_MAGIC, self._bits, len(starts), self.records, index)
        self._write([memoryview(one.tobytes()) for one in (starts, *tables)] + [memoryview(footer)])
        self._file.close()

    def _write(self, buffers: Sequence[memoryview]) -> None:
        self._file.write([one for one in buffers if one.nbytes])
        self.bytes += sum(one.nbytes for one in buffers)


@dataclass(frozen=True, slots=True)
class SpillIndex:
    """Where buckets of a file are, which follow each other.

    `starts` are where the frames of each run start, and its numbers; `rows` and `bytes` what is before each bucket in
    the run, and the end of the last.
    """

    bits: int
    records: int
    starts: npt.NDArray[np.int64]
    rows: U32
    bytes: U32

    @property
    def bucket_bytes(self) -> npt.NDArray[np.int64]:
        """The bytes of each bucket, frames alone."""
        sizes: npt.NDArray[np.int64] = np.diff(self.bytes.astype(np.int64), axis=1).sum(axis=0)
        return sizes

    def size_of(self, first: int, stop: int) -> tuple[int, int]:
        """Return the records and the bytes of buckets that follow each other, of all runs."""
        rows, sizes = (table[:, stop].astype(np.int64) - table[:, first] for table in (self.rows, self.bytes))
        return int(rows.sum()), int(sizes.sum())


def read_index(file: IO[bytes], size: int, path: str, first: int = 0, stop: int | None = None) -> SpillIndex:
    """Return the index of an open file of `size` bytes: of some buckets that follow each other, or of all."""
    file.seek(max(size - _FOOTER.size, 0))
    data = file.read(_FOOTER.size)
    if len(data) < _FOOTER.size or data[:8] != _MAGIC:
        raise DamageError(f"{path}: is not what was spilled: it has no footer")
    _, bits, runs, records, index = _FOOTER.unpack(data)
    width = (1 << bits) + 1
    starts_bytes, bucket_bytes = runs * 16, runs * 4
    if index + starts_bytes + 2 * width * bucket_bytes + _FOOTER.size != size:
        raise DamageError(f"{path}: is not what was spilled: its index is cut short")
    until = width if stop is None else stop + 1

    def read(offset: int, length: int) -> bytes:
        file.seek(index + offset)
        found = file.read(length)
        if len(found) != length:
            raise DamageError(f"{path}: is not what was spilled: it is cut short")
        return found

    def table(number: int) -> U32:
        found = read(starts_bytes + (number * width + first) * bucket_bytes, (until - first) * bucket_bytes)
        return np.frombuffer(found, "<u4").reshape(until - first, runs).T

    starts = np.frombuffer(read(0, starts_bytes), "<i8").reshape(runs, 2)
    return SpillIndex(bits, records, starts, table(0), table(1))


def read_buckets(
    file: BufferedIOBase, index: SpillIndex, first: int, stop: int, frames: memoryview, records: memoryview, path: str
) -> None:
    """Read buckets that follow each other, run by run: their frames, and what is known of each record (bytes)."""
    frames_at = records_at = 0
    rows, sizes = (table[:, [first, stop]].tolist() for table in (index.rows, index.bytes))
    for (start, numbers), (above, below), (low, high) in zip(index.starts.tolist(), rows, sizes, strict=True):
        if low == high:
            continue
        frames_end, records_end = frames_at + high - low, records_at + (below - above) * KNOWN_BYTES
        file.seek(start + low)
        got = file.readinto(frames[frames_at:frames_end])
        file.seek(numbers + above * KNOWN_BYTES)
        more = file.readinto(records[records_at:records_end])
        if (got, more) != (frames_end - frames_at, records_end - records_at):
            raise DamageError(f"{path}: is not what was spilled: it is cut short")
        frames_at, records_at = frames_end, records_end


# What stage hands the records of a task to, where they are shuffled: they are gathered, and spilled as runs.


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
        return cls(seed, (max(output - 1, 0) // shard_plan.MIN_TASK_BYTES).bit_length())


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
