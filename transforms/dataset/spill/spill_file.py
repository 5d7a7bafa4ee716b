"""A file of spilled records, of one task and split: runs, each of them by bucket, and where each bucket is.

    run 0    │ frames, by bucket │ (length, number) of each record, as two uint32
    run 1    │ ...
    index    │ where frames and numbers of each run start: int64 │ by bucket, of each run: records before it │ bytes
    footer   │ "SHUFFLED", bits of buckets, number of runs: uint32; records, where the index starts: uint64

All numbers are little-endian. A bucket of a run, or some that follow each other, is one range of frames and one of
numbers. `number` is the record's place in its task and split, which its key is made of.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from io import BufferedIOBase
from typing import IO, Final

import numpy as np
import numpy.typing as npt

from ...errors import DamageError
from ..storage.contract import PartFile

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
