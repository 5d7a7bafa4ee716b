"""The records of one shard by their rows, from 0: read one by one, or many at once.

plain    offsets of the records ─▶ a read of each, or one read of those that are near each other ─▶ both CRCs
gzip     the members that begin with a record ─▶ read on from the last one before the record
"""

from __future__ import annotations

import os
import threading
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from io import FileIO
from typing import Final, TypeVar

import numpy as np
import numpy.typing as npt

from ...errors import DamageError
from ...format.buffers.checksum import crc32c, crc32c_of_lengths, crc32c_of_pieces, mask, mask_each
from ...format.buffers.payloads import Payloads
from ...format.manifest.manifest import ShardEntry
from ...format.tfrecord.framing import FOOTER_BYTES, FRAME_BYTES, HEADER_BYTES
from ...format.wording.printable import counted
from ...stores.common.object_reader import ObjectReader
from ..generations.opened_generation import OpenedGeneration
from ..records.record_file import scan_opened
from ..records.record_offsets import offsets_of
from ..records.record_scan import RecordRun
from .open_files import OpenFile, OpenFiles

I64 = npt.NDArray[np.int64]
T = TypeVar("T")

GAP_ON_DISK: Final = 4 << 10
GAP_IN_STORE: Final = 256 << 10
"""Bytes between two records from which these are read by themselves: reading them too costs less than another read."""

_MOST_AT_ONCE: Final = 8 << 20
"""Bytes after which another read begins."""

_HEADER: Final = "its header is damaged or cut"
_DATA: Final = "its data do not have their CRC"
_ENDS: Final = "the file ends before it"
_INDEX: Final = "its index states a place that no record can have"

ReadEach = Callable[[Sequence[tuple[int, int]]], list[bytes]]
"""Read so many bytes from an offset on, each (bytes, offset); fewer only at the end."""


class ShardFile:
    """A shard of a generation as a file, which is opened when it is needed, and again where it is no longer open.

    On a disk `files` keeps it open under its `number`. In a store the version that was opened first is read; where that
    is removed, as it was staged, the one of the shard's final name.
    """

    def __init__(self, generation: OpenedGeneration, entry: ShardEntry, files: OpenFiles, number: int) -> None:
        self._generation, self._entry, self._files, self._number = generation, entry, files, number
        self._object: ObjectReader | None = None

    def scanned(self, scan: Callable[[FileIO | ObjectReader], T]) -> T:
        while True:
            with self._generation.open(self._entry) if self._object is None else self._object.again() as opened:
                if isinstance(opened, ObjectReader):
                    self._object = opened
                try:
                    return scan(opened)
                except FileNotFoundError:
                    self._object = self._generation.open_again(self._entry)

    def held(self) -> OpenFile:
        return self._files.at(self._number, partial(self._generation.open, self._entry))

    def reader_on_disk(self) -> ReadEach:
        at, number, open_it = self._files.at, self._number, partial(self._generation.open, self._entry)

        def read(pieces: Sequence[tuple[int, int]]) -> list[bytes]:
            file = at(number, open_it)
            descriptor, pread = file.number, os.pread
            return [pread(descriptor, size, offset) for size, offset in pieces]

        return read

    def read_in_store(self, pieces: Sequence[tuple[int, int]]) -> list[bytes]:
        def scan(opened: FileIO | ObjectReader) -> list[bytes]:
            assert isinstance(opened, ObjectReader)
            return [opened.read_range(offset, offset + size) for size, offset in pieces]

        return self.scanned(scan)


@dataclass(frozen=True, slots=True)
class PlainShard:
    """An uncompressed shard: record i is `offsets[i]` to `offsets[i + 1]`, framing included.

    `name` and `index_fix` are for messages.
    """

    name: str
    read: ReadEach
    offsets: I64
    gap: int
    size: int
    index_fix: str

    def payload(self, row: int) -> bytes:
        start, stop = self.offsets[row : row + 2].tolist()
        if not 0 <= start <= stop - FRAME_BYTES <= self.size - FRAME_BYTES:
            raise self.damage(row, f"{_INDEX}; {self.index_fix}")
        (framed,) = self.read([(stop - start, start)])
        payload = framed[HEADER_BYTES:-FOOTER_BYTES]
        header = (stop - start - FRAME_BYTES).to_bytes(8, "little")
        if not framed.startswith(header) or framed[8:HEADER_BYTES] != mask(crc32c(header)).to_bytes(4, "little"):
            raise self.damage(row, _HEADER)
        if framed[-FOOTER_BYTES:] != mask(crc32c(payload)).to_bytes(4, "little"):
            raise self.damage(row, _DATA)
        return payload

    def frames(self, rows: I64) -> Payloads:
        """Return the framed records of rows in ascending order, unchecked; those near each other are read at once."""
        starts, stops = self.offsets[rows], self.offsets[rows + 1]
        overlaps = starts < np.concatenate(([0], stops[:-1]))
        wrong = np.flatnonzero((stops - starts < FRAME_BYTES) | overlaps | (stops > self.size))
        if len(wrong):
            raise self.damage(int(rows[wrong[0]]), f"{_INDEX}; {self.index_fix}")
        firsts = self._firsts_of_reads(starts, stops)
        begins, ends = starts[firsts], stops[np.concatenate((firsts[1:], [len(rows)])) - 1]
        sizes = ends - begins
        parts = self.read(list(zip(sizes.tolist(), begins.tolist(), strict=True)))
        data = np.frombuffer(b"".join(parts), np.uint8)
        stops_of_reads = np.cumsum(sizes)
        if len(data) != stops_of_reads[-1]:
            short = [len(part) < size for part, size in zip(parts, sizes.tolist(), strict=True)].index(True)
            raise self.damage(int(rows[firsts[short]]), _ENDS)
        moved = (stops_of_reads - ends)[np.searchsorted(firsts, np.arange(len(rows)), side="right") - 1]
        return Payloads(data, starts + moved, stops + moved)

    def _firsts_of_reads(self, starts: I64, stops: I64) -> I64:
        """Return which of some records are the first of those that are read at once."""
        begins = np.concatenate(([True], starts[1:] - stops[:-1] > self.gap))
        firsts = np.flatnonzero(begins)
        if (stops[np.concatenate((firsts[1:], [len(starts)])) - 1] - starts[firsts]).max() > _MOST_AT_ONCE:
            first = 0
            for at in range(1, len(starts)):
                begins[at] = begins[at] or int(stops[at] - starts[first]) > _MOST_AT_ONCE
                first = at if begins[at] else first
            firsts = np.flatnonzero(begins)
        return firsts

    def damage(self, row: int, what: str) -> DamageError:
        return DamageError(f"{self.name} record {row + 1} at byte {self.offsets[row]}: {what}")


def payloads_in(frames: Payloads) -> tuple[Payloads, tuple[int, str] | None]:
    """Return the payloads of framed records, and the first record that is damaged, with what is wrong with it."""
    starts, ends = frames.starts + HEADER_BYTES, frames.ends - FOOTER_BYTES
    words = np.ndarray((max(len(frames.data) - 7, 0),), "<u8", frames.data, strides=(1,))
    halves = np.ndarray((max(len(frames.data) - 3, 0),), "<u4", frames.data, strides=(1,))
    lengths = ends - starts
    good = words[frames.starts] == lengths.view(np.uint64)
    good &= halves[frames.starts + 8] == mask_each(crc32c_of_lengths(lengths))
    if not good.all():
        return frames, (int(good.argmin()), _HEADER)
    good = halves[ends] == mask_each(crc32c_of_pieces(frames.data.data, starts, ends))
    return Payloads(frames.data, starts, ends), None if good.all() else (int(good.argmin()), _DATA)


@dataclass(slots=True)
class GzipShard:
    """A gzip shard: `members` are where in the file those begin that begin with a record, `rows` which record that is.

    The run of records that was read last is kept.
    """

    file: ShardFile
    name: str
    members: list[int]
    rows: list[int]
    _last: RecordRun | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def read(cls, file: ShardFile, name: str, entry: ShardEntry) -> GzipShard:
        def scan(opened: FileIO | ObjectReader) -> tuple[I64, list[tuple[int, int]]]:
            begun: list[tuple[int, int]] = []
            runs = scan_opened(opened, name, check_crc=False, on_member=lambda start, made: begun.append((start, made)))
            return offsets_of(runs)[:-1], begun

        starts, begun = file.scanned(scan)
        if len(starts) != entry.records:
            raise DamageError(f"{name}: {counted(len(starts), 'record')}, the manifest states {entry.records}")
        rows = np.searchsorted(starts, [made for _, made in begun])
        pairs = zip(begun, rows.tolist(), strict=True)
        usable = [(at, row) for (at, made), row in pairs if row < len(starts) and starts[row] == made]
        return cls(file, name, [at for at, _ in usable], [row for _, row in usable])

    def payload(self, row: int) -> bytes:
        with self._lock:
            run = self._run_with(row)
            return run.payloads[row + 1 - run.first_record]

    def payloads(self, rows: I64) -> Payloads:
        """Return the payloads of rows, each member inflated once."""
        return Payloads.from_bytes([self.payload(row) for row in rows.tolist()])

    def _run_with(self, row: int) -> RecordRun:
        if self._last is not None and 0 <= row + 1 - self._last.first_record < len(self._last):
            return self._last
        member = bisect_right(self.rows, row) - 1
        start, first = self.members[member], self.rows[member] + 1

        def scan(opened: FileIO | ObjectReader) -> RecordRun:
            runs = scan_opened(opened, self.name, start, first_record=first)
            return next(run for run in runs if row + 1 < run.first_record + len(run))

        self._last = self.file.scanned(scan)
        return self._last
