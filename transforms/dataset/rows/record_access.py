"""Read records by their number: the index of a shard, or one pass over it, says where each record begins.

    record 1,700,000 ─▶ shard 3, row 41,012 ─▶ bytes 8,940,616 to 8,940,850 ─▶ one read, both CRCs checked

Where records begin is in the index of a shard, binary or text, where it has one; otherwise the shard is read once, when
it is first asked for. Gzip shards are entered at the members that begin with a record, and read on from there.
"""

from __future__ import annotations

import os
import resource
import threading
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from io import FileIO, RawIOBase
from itertools import accumulate
from typing import Any, ClassVar, Final, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...errors import DamageError, UsageError
from ...format.manifest.manifest import ShardEntry
from ...format.manifest.naming import index_path
from ...format.sidecars.sidecar_files import offsets_in
from ...format.tfrecord.framing import (
    FOOTER_BYTES,
    FRAME_BYTES,
    HEADER_BYTES,
    Payloads,
    crc32c,
    crc32c_of_lengths,
    crc32c_of_pieces,
    mask,
    mask_each,
)
from ...format.wording.hints import Command
from ...format.wording.printable import counted, printable_path
from ...stores.object_store import ObjectReader
from ...stores.store_url import is_store_url
from ..storage.object_storage import storage_at
from ..storage.opened_generation import OpenedGeneration
from ..storage.record_file import RecordRun, offsets_of, open_regular, scan_opened

# Files that are read at places all over them: the most recently used ones stay open.


MOST_OPEN: Final = min(max(resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2, 8), 8192)
"""The most files that all datasets of a process keep open together: half of what the process may have."""


class OpenFile:
    """A file that stays open as long as anything refers to this; `os.pread` has no place, so that threads share it."""

    __slots__ = ("number",)

    def __init__(self, opened: RawIOBase) -> None:
        with opened:
            self.number = os.dup(opened.fileno())

    def __del__(self, close: Callable[[int], None] = os.close) -> None:  # at its end a process takes `os` apart
        if hasattr(self, "number"):
            close(self.number)


class OpenFiles:
    """Open files by number; one that has not been asked for in a long time is closed when its readers are done."""

    _open: ClassVar[OrderedDict[tuple[int, int], OpenFile]] = OrderedDict()
    """All open files of this process, by the identity of their `OpenFiles` and their number; used last, last."""

    _lock: ClassVar = threading.RLock()  # the garbage collector may call `__del__` in a thread that holds it

    def __del__(self) -> None:
        with self._lock:
            for key in [key for key in self._open if key[0] == id(self)]:
                del self._open[key]

    def at(self, number: int, open_it: Callable[[], RawIOBase]) -> OpenFile:
        """Return the file of a number, which `open_it` opens where it is not open."""
        key = (id(self), number)
        with self._lock:
            file = self._open.get(key)
            if file is not None:
                self._open.move_to_end(key)
                return file
            while len(self._open) >= MOST_OPEN:
                self._open.popitem(last=False)
        file = OpenFile(open_it())  # without the lock, as a slow disk would stop all readers
        with self._lock:
            self._open[key] = file
        return file


def _renew_lock() -> None:
    OpenFiles._lock = threading.RLock()


os.register_at_fork(after_in_child=_renew_lock)  # another thread of the parent may have held it


# The records of one shard by their rows, from 0: read one by one, or many at once.
#
# plain    offsets of the records ─▶ a read of each, or one read of those that are near each other ─▶ both CRCs
# gzip     the members that begin with a record ─▶ read on from the last one before the record


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
        return DamageError(f"{self.name} record {row} at byte {self.offsets[row]}: {what}")


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
            return run.payloads[row - run.first_record]

    def payloads(self, rows: I64) -> Payloads:
        """Return the payloads of rows, each member inflated once."""
        return Payloads.from_bytes([self.payload(row) for row in rows.tolist()])

    def _run_with(self, row: int) -> RecordRun:
        if self._last is not None and 0 <= row - self._last.first_record < len(self._last):
            return self._last
        member = bisect_right(self.rows, row) - 1
        start, first = self.members[member], self.rows[member]

        def scan(opened: FileIO | ObjectReader) -> RecordRun:
            runs = scan_opened(opened, self.name, start, first_record=first)
            return next(run for run in runs if row < run.first_record + len(run))

        self._last = self.file.scanned(scan)
        return self._last


class RecordAccess:
    """The records of some shards, by their number from 0; threads may share it, and processes that are forked."""

    def __init__(self, generation: OpenedGeneration, entries: Sequence[ShardEntry]) -> None:
        self._generation, self._entries = generation, tuple(entries)
        self._path, self._manifest = generation.path, generation.manifest
        self._stops = list(accumulate(entry.records for entry in entries))
        self._known: dict[int, PlainShard | GzipShard] = {}
        self._files = OpenFiles()
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[type[RecordAccess], tuple[object, ...]]:
        return type(self), (self._generation, self._entries)

    def __len__(self) -> int:
        return self._stops[-1] if self._stops else 0

    def record(self, index: int) -> bytes:
        number = self._checked(index)
        shard, first = self._place(number)
        return self._shard(shard).payload(number - first)

    def take(self, indices: Sequence[int] | npt.NDArray[np.integer]) -> Payloads:
        given = np.asarray(indices)
        if given.ndim != 1 or (given.size and given.dtype.kind not in "iu"):
            raise UsageError(_not_numbers(given))
        numbers = given.astype(np.int64)
        beyond = numbers[(numbers < -len(self)) | (numbers >= len(self))]
        if len(beyond):
            self._checked(int(beyond[0]))
        wanted, places = np.unique(np.where(numbers < 0, numbers + len(self), numbers), return_inverse=True)
        bounds = np.searchsorted(wanted, [0, *self._stops]).tolist()
        found: list[Payloads] = []
        for shard in range(len(self._stops)):
            if bounds[shard] < bounds[shard + 1]:
                first = self._stops[shard - 1] if shard else 0
                rows, known = wanted[bounds[shard] : bounds[shard + 1]] - first, self._shard(shard)
                found.append(known.frames(rows) if isinstance(known, PlainShard) else known.payloads(rows))
        taken = joined_payloads(found)
        if self._manifest.compression == "none":
            taken, damaged = payloads_in(taken)
            if damaged is not None:
                raise self._damage(int(wanted[damaged[0]]), damaged[1])
        return taken.take(places)

    def _damage(self, number: int, what: str) -> DamageError:
        shard, first = self._place(number)
        known = self._shard(shard)
        assert isinstance(known, PlainShard)
        return known.damage(number - first, what)

    def begin_of(self, shard: int, row: int) -> int:
        """Return the byte at which a row of a shard begins, 0 where that is in no index of an uncompressed shard."""
        entry = self._entries[shard]
        if self._manifest.compression != "none" or (shard not in self._known and self._indexed(entry) is None):
            return 0
        known = self._shard(shard)
        assert isinstance(known, PlainShard)
        return int(known.offsets[row])

    @cached_property
    def record_bytes(self) -> float:
        """The mean size of a framed record: of compressed shards, that of the first records, inflated."""
        number = next((number for number, entry in enumerate(self._entries) if entry.records), None)
        if number is None:
            return 1.0
        if self._manifest.compression == "none":
            return sum(entry.bytes for entry in self._entries) / len(self)
        entry = self._entries[number]
        name, file = self._generation.name(entry), ShardFile(self._generation, entry, self._files, number)
        with self._generation.explained():
            run = file.scanned(lambda opened: next(scan_opened(opened, name, check_crc=False)))
        return (run.end - run.offset) / len(run)

    def place(self, index: int) -> str:
        shard, first = self._place(index)
        return f"{self._generation.name(self._entries[shard])} record {index - first}"

    def _place(self, number: int) -> tuple[int, int]:
        """Return the shard of a record, and the number of its first record."""
        shard = bisect_right(self._stops, number)
        return shard, self._stops[shard - 1] if shard else 0

    def _checked(self, index: int) -> int:
        number = index + len(self) if index < 0 else index
        if not 0 <= number < len(self):
            raise IndexError(f"no record {index}; there are {len(self):,}")
        return number

    def _shard(self, number: int) -> PlainShard | GzipShard:
        known = self._known.get(number)
        if known is None:
            with self._lock:
                known = self._known.get(number) or self._open(number)
                self._known[number] = known
        return known

    def _open(self, number: int) -> PlainShard | GzipShard:
        entry = self._entries[number]
        name, file = self._generation.name(entry), ShardFile(self._generation, entry, self._files, number)
        with self._generation.explained():
            if self._manifest.compression != "none":
                return GzipShard.read(file, name, entry)
            return self._open_plain(number, file, name)

    def _open_plain(self, number: int, file: ShardFile, name: str) -> PlainShard:
        """Open an uncompressed shard: its index first, as the check comes after all that was opened."""
        entry, in_store = self._entries[number], is_store_url(self._path)
        fix, offsets = self._indexed(entry)
        if offsets is None:
            offsets = file.scanned(lambda opened: offsets_of(scan_opened(opened, name, check_crc=False)))
        if len(offsets) != entry.records + 1 or offsets[0] != 0 or offsets[-1] != entry.bytes:
            found = f"{counted(max(len(offsets) - 1, 0), 'record')} to byte {offsets[-1] if len(offsets) else 0}"
            raise self._cut(entry, f"{name}: {found}")
        if in_store:
            return PlainShard(name, file.read_in_store, offsets, GAP_IN_STORE, entry.bytes, fix)
        size = os.fstat(file.held().number).st_size
        self._generation.check()  # the shard may have been open before its index was mapped
        if size != entry.bytes:
            raise self._cut(entry, f"{name}: {counted(size, 'byte')}")
        return PlainShard(name, file.reader_on_disk(), offsets, GAP_ON_DISK, entry.bytes, fix)

    def _cut(self, entry: ShardEntry, found: str) -> DamageError:
        return DamageError(
            f"{found}, the manifest states {entry.records} to byte {entry.bytes}: the file, or its index, was cut or "
            f"replaced; {self._generation.verify} finds the place"
        )

    def _indexed(self, entry: ShardEntry) -> tuple[str, I64 | None]:
        """Return how an index of a shard is made again, and where the records begin by it; None where it has none."""
        storage = storage_at(self._path)
        for kind in ("binary", "text"):
            path = index_path(entry.path, kind)
            if kind == "text" and path not in self._manifest.sidecars:
                continue
            if storage.has_locks and not storage.lies_at(path):
                continue
            as_text = ["--text"] if kind == "text" else []
            fix = f"{Command('index', '--overwrite', *as_text, self._path)} makes it again"
            try:
                if kind == "binary" and storage.has_locks:
                    return fix, _mapped(storage.path(path))
                return fix, offsets_in(storage.read(path), kind)
            except FileNotFoundError:
                continue
            except ValueError as error:
                raise DamageError(f"{printable_path(storage.path(path))}: it is no index; {fix}") from error
        return "", None


def _not_numbers(given: npt.NDArray[Any]) -> str:
    if given.dtype == bool:
        return "rows are taken by their numbers; of a mask these are mask.nonzero()[0]"
    what = f"an array of {given.ndim} axes" if given.ndim > 1 else given.item() if given.ndim == 0 else given.dtype
    return f"rows are taken by a list of their numbers, and this is {what}: take([5, 0]), take(range(10))"


def _mapped(path: str) -> I64:
    """Return the offsets in a file, mapped: only what is asked for of them is read, and no descriptor stays open."""
    open_regular(path, printable_path(path)).close()
    with pa.memory_map(path) as file:
        return np.frombuffer(file.read_buffer(), "<i8")


def joined_payloads(parts: Sequence[Payloads]) -> Payloads:
    if len(parts) == 1:
        return parts[0]
    begins = np.cumsum([0, *(len(part.data) for part in parts)])[:-1]
    data = np.concatenate([np.empty(0, np.uint8), *(part.data for part in parts)])
    starts = [part.starts + begin for part, begin in zip(parts, begins, strict=True)]
    ends = [part.ends + begin for part, begin in zip(parts, begins, strict=True)]
    nothing = np.empty(0, np.int64)
    return Payloads(data, np.concatenate([nothing, *starts]), np.concatenate([nothing, *ends]))


# The records of some shards, one after the other, from any of them on.
#
# A shard that is published while it is read is found again under its final name. On disk an open file keeps its bytes.
# A store keeps nothing that is removed: there it is read again, as far as the record that is next.


@dataclass(frozen=True, slots=True)
class RecordStream:
    """The records of the shards `entries` of a generation; `access` knows where they begin in indexed ones.

    With `whole` each file that is read from its start has the CRC32C that the manifest states.
    """

    generation: OpenedGeneration
    entries: Sequence[ShardEntry]
    access: RecordAccess
    whole: bool = False

    def runs(self, start: int = 0) -> Iterator[tuple[str, RecordRun]]:
        """Yield the records from number `start` on, from 0: the printable name of the shard, and some of its records.

        Where the generation was replaced, no record of another one is yielded before the error.
        """
        before = 0
        for number, entry in enumerate(self.entries):
            left_out = max(start - before, 0)
            before += entry.records
            if left_out < entry.records or (not entry.records and start < before):
                yield from self._runs_of(number, entry, left_out)

    def _runs_of(self, number: int, entry: ShardEntry, left_out: int) -> Iterator[tuple[str, RecordRun]]:
        """Yield the records of a shard behind its first `left_out` ones."""
        begin = self.access.begin_of(number, left_out) if left_out else 0
        records = first = left_out if begin else 0
        stated = entry.crc32c if self.whole and not begin else None
        name, opened = self.generation.name(entry), self.generation.open(entry)
        while True:
            with opened:
                try:
                    for run in scan_opened(opened, name, begin, first_record=first, stated_crc=stated):
                        new = run.since(max(records, left_out))
                        records = max(records, run.first_record + len(run))
                        if len(new):
                            yield name, new
                    break
                except FileNotFoundError:  # an object that was removed or replaced
                    opened = self.generation.open_again(entry)
        if records != entry.records:
            raise DamageError(
                f"{name}: {records} records, the manifest states {entry.records}: the file was cut between two "
                f"records, or replaced; {self.generation.verify} finds the place"
            )
