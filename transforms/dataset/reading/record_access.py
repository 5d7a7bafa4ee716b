"""Records by their number: of a shard that is asked for, it is known from then on where each record begins.

    record 1,700,000 ─▶ shard 3, row 41,012 ─▶ bytes 8,940,616 to 8,940,850 ─▶ one read, both CRCs checked

Where records begin is in the text index of a shard, where it has one; otherwise the shard is read once, when it is
first asked for. Gzip shards are entered at the members that begin with a record, and read on from there.
"""

from __future__ import annotations

import os
import threading
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt

from ...errors import DamageError
from ...format.buffers.checksum import crc32c, crc32c_of_lengths, mask, mask_each
from ...format.buffers.payloads import Payloads
from ...format.manifest.manifest import Manifest, ShardEntry
from ...format.sidecars.dali_index import index_path
from ...format.tfrecord.framing import FOOTER_BYTES, FRAME_BYTES, HEADER_BYTES
from ...format.wording.printable import counted, printable_path
from ...stores.common.store_url import is_store_url, parse_store_url
from ...stores.connect import store_at
from ..generations.manifest_files import locate_shard
from ..records.record_file import open_regular, read_record_batches
from ..records.record_scan import RecordRun
from ..storage.storage_at import storage_at

I64 = npt.NDArray[np.int64]

_MOST_OPEN: Final = 256
"""The most files that are open at a time: a process may have 1,024."""

_GAP_ON_DISK: Final = 4 << 10
_GAP_IN_STORE: Final = 256 << 10
"""Bytes between two records from which these are read by themselves: reading them too costs less than another read."""

_HEADER: Final = "its header is damaged or cut"
_DATA: Final = "its data do not have their CRC"

_MOST_AT_ONCE: Final = 8 << 20
"""Bytes after which another read begins."""


class _Shard(Protocol):
    """A shard whose records can be had by their rows, from 0."""

    def payload(self, row: int) -> bytes:
        """Return the payload of a row.

        Raises:
            DamageError: the record is damaged.
        """
        ...

    def payloads(self, rows: I64) -> Payloads:
        """Return the payloads of rows in ascending order, each once.

        Raises:
            DamageError: a record is damaged.
        """
        ...


class RecordAccess:
    """The records of some shards, by their number from 0; threads may share it, and processes that are forked."""

    def __init__(self, path: str, manifest: Manifest, entries: Sequence[ShardEntry]) -> None:
        self._path, self._manifest, self._entries = path, manifest, tuple(entries)
        self._stops = list(accumulate(entry.records for entry in entries))
        self._known: dict[int, _Shard] = {}
        self._files = _Files()
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[type[RecordAccess], tuple[object, ...]]:
        return type(self), (self._path, self._manifest, self._entries)

    def __len__(self) -> int:
        return self._stops[-1] if self._stops else 0

    def record(self, index: int) -> bytes:
        """Return a record, unparsed.

        Raises:
            IndexError: there is none of this number.
            DamageError: its shard is missing, damaged or cut.
        """
        number = self._checked(index)
        shard, first = self._place(number)
        return self._shard(shard).payload(number - first)

    def take(self, indices: Sequence[int] | npt.NDArray[np.integer]) -> Payloads:
        """Return records in the order of their numbers as given, unparsed.

        Raises:
            IndexError: there is none of a number.
            DamageError: a shard is missing, damaged or cut.
        """
        numbers = np.asarray(indices, np.int64).reshape(-1)
        beyond = numbers[(numbers < -len(self)) | (numbers >= len(self))]
        if len(beyond):
            self._checked(int(beyond[0]))
        wanted, places = np.unique(np.where(numbers < 0, numbers + len(self), numbers), return_inverse=True)
        shards = np.searchsorted(self._stops, wanted, side="right")
        found: list[Payloads] = []
        for shard in np.unique(shards).tolist():
            first = self._stops[shard - 1] if shard else 0
            found.append(self._shard(shard).payloads(wanted[shards == shard] - first))
        return _joined(found).take(places)

    def place(self, index: int) -> str:
        """Return the shard and the number of a record in it, for a message."""
        shard, first = self._place(index)
        return f"{self._name(shard)} record {index - first + 1}"

    def _place(self, number: int) -> tuple[int, int]:
        """Return the shard of a record, and the number of its first record."""
        shard = bisect_right(self._stops, number)
        return shard, self._stops[shard - 1] if shard else 0

    def _checked(self, index: int) -> int:
        number = index + len(self) if index < 0 else index
        if not 0 <= number < len(self):
            raise IndexError(f"no record {index}; there are {len(self):,}")
        return number

    def _name(self, shard: int) -> str:
        return printable_path(os.path.join(self._path, self._entries[shard].path))

    def _shard(self, number: int) -> _Shard:
        known = self._known.get(number)
        if known is None:
            with self._lock:
                known = self._known.get(number) or self._open(number)
                self._known[number] = known
        return known

    def _open(self, number: int) -> _Shard:
        entry, name = self._entries[number], self._name(number)
        path = os.path.join(self._path, locate_shard(self._path, self._manifest, entry))
        if self._manifest.compression != "none":
            return _GzipShard.read(path, name, entry)
        ends = self._indexed(entry)
        if ends is None:
            ends = _ends_of(read_record_batches(path, check_crc=False))
        if len(ends) != entry.records or (len(ends) and ends[-1] != entry.bytes):
            found = f"{counted(len(ends), 'record')} to byte {ends[-1] if len(ends) else 0}"
            raise DamageError(
                f"{name}: {found}, the manifest states {entry.records} to byte {entry.bytes}: the file, or its index, "
                f"was cut or replaced; shardmill verify {printable_path(self._path)} finds the place"
            )
        read = _object_reader(path) if is_store_url(path) else self._files.reader(path, name)
        gap = _GAP_IN_STORE if is_store_url(path) else _GAP_ON_DISK
        return _PlainShard(name, read, np.concatenate([np.zeros(1, np.int64), ends]), gap)

    def _indexed(self, entry: ShardEntry) -> I64 | None:
        """Return where the records of a shard end, by its text index; None where it has none."""
        path = index_path(entry.path)
        storage = storage_at(self._path)
        if path not in self._manifest.sidecars or not storage.lies_at(path):
            return None
        numbers = np.array(storage.read(path).split(), np.int64).reshape(-1, 2)
        ends: I64 = numbers.sum(axis=1)
        return ends


Read = Callable[[int, int], bytes]
"""Read so many bytes from an offset on; fewer only at the end."""


@dataclass(frozen=True, slots=True)
class _PlainShard:
    """An uncompressed shard: record i is `starts[i]` to `starts[i + 1]`, framing included."""

    name: str
    read: Read
    starts: I64
    gap: int

    def payload(self, row: int) -> bytes:
        """Return the payload of a row, by one read."""
        start, stop = self.starts[row : row + 2].tolist()
        framed = self.read(stop - start, start)
        payload = framed[HEADER_BYTES:-FOOTER_BYTES]
        header = (stop - start - FRAME_BYTES).to_bytes(8, "little")
        if not framed.startswith(header) or framed[8:HEADER_BYTES] != mask(crc32c(header)).to_bytes(4, "little"):
            raise self._damage(row, _HEADER)
        if framed[-FOOTER_BYTES:] != mask(crc32c(payload)).to_bytes(4, "little"):
            raise self._damage(row, _DATA)
        return payload

    def payloads(self, rows: I64) -> Payloads:
        """Return the payloads of rows, those that are near each other by one read."""
        starts, stops = self.starts[rows], self.starts[rows + 1]
        parts, places, at = [], np.empty(len(rows), np.int64), 0
        for first, last in self._runs(starts.tolist(), stops.tolist()):
            begin, end = int(starts[first]), int(stops[last])
            parts.append(self.read(end - begin, begin))
            if len(parts[-1]) < end - begin:
                raise self._damage(int(rows[last]), "the file ends before it")
            places[first : last + 1] = starts[first : last + 1] - begin + at
            at += end - begin
        data = np.frombuffer(b"".join(parts), np.uint8)
        found = Payloads(data, places + HEADER_BYTES, places + (stops - starts) - FOOTER_BYTES)
        self._check(found, rows)
        return found

    def _check(self, found: Payloads, rows: I64) -> None:
        lengths = found.ends - found.starts
        headers = found.data[(found.starts - HEADER_BYTES)[:, None] + np.arange(HEADER_BYTES)]
        good = (headers[:, :8] == lengths.astype("<u8").view(np.uint8).reshape(-1, 8)).all(axis=1)
        crcs = mask_each(crc32c_of_lengths(lengths)).astype("<u4").view(np.uint8).reshape(-1, 4)
        good &= (headers[:, 8:] == crcs).all(axis=1)
        if not good.all():
            raise self._damage(int(rows[np.flatnonzero(~good)[0]]), _HEADER)
        view = found.data.data
        pairs = zip(found.starts.tolist(), found.ends.tolist(), strict=True)
        computed = mask_each(np.array([crc32c(view[start:end]) for start, end in pairs], np.uint32))
        stated = found.data[found.ends[:, None] + np.arange(FOOTER_BYTES)].view("<u4").reshape(-1)
        if (computed != stated).any():
            raise self._damage(int(rows[np.flatnonzero(computed != stated)[0]]), _DATA)

    def _damage(self, row: int, what: str) -> DamageError:
        return DamageError(f"{self.name} record {row + 1} at byte {self.starts[row]}: {what}")

    def _runs(self, starts: list[int], stops: list[int]) -> Iterator[tuple[int, int]]:
        """Yield the first and the last of records that are read at once."""
        first = 0
        for at in range(1, len(starts) + 1):
            ends = at == len(starts) or starts[at] - stops[at - 1] > self.gap
            if ends or stops[at] - starts[first] > _MOST_AT_ONCE:
                yield first, at - 1
                first = at


@dataclass(slots=True)
class _GzipShard:
    """A gzip shard: `members` are where in the file those begin that begin with a record, `rows` which record that is.

    The run of records that was read last is kept.
    """

    path: str
    members: list[int]
    rows: list[int]
    _last: RecordRun | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def read(cls, path: str, name: str, entry: ShardEntry) -> _GzipShard:
        """Read a shard to find its members.

        Raises:
            DamageError: it is damaged, or has another number of records.
        """
        begun: list[tuple[int, int]] = []
        runs = read_record_batches(path, check_crc=False, on_member=lambda start, made: begun.append((start, made)))
        ends = _ends_of(runs)
        if len(ends) != entry.records:
            raise DamageError(f"{name}: {counted(len(ends), 'record')}, the manifest states {entry.records}")
        starts = np.concatenate([np.zeros(1, np.int64), ends])[:-1]
        rows = np.searchsorted(starts, [made for _, made in begun])
        pairs = zip(begun, rows.tolist(), strict=True)
        usable = [(at, row) for (at, made), row in pairs if row < len(starts) and starts[row] == made]
        return cls(path, [at for at, _ in usable], [row for _, row in usable])

    def payload(self, row: int) -> bytes:
        """Return the payload of a row."""
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
        runs = read_record_batches(self.path, self.members[member], first_record=self.rows[member] + 1)
        self._last = next(run for run in runs if row + 1 < run.first_record + len(run))
        return self._last


class _Files:
    """Open files, the most recently used ones of them; `os.pread` has no place, so that threads may share one."""

    def __init__(self) -> None:
        self._open: OrderedDict[str, int] = OrderedDict()
        self._lock = threading.Lock()

    def reader(self, path: str, name: str) -> Read:
        """Return what reads a file, which is opened when it is needed."""

        def read(size: int, offset: int) -> bytes:
            with self._lock:
                file = self._open.pop(path, None)
                if file is None:
                    with open_regular(path, name) as opened:
                        file = os.dup(opened.fileno())
                self._open[path] = file
                if len(self._open) > _MOST_OPEN:
                    os.close(self._open.popitem(last=False)[1])
                return os.pread(file, size, offset)

        return read

    def __del__(self) -> None:
        for file in self._open.values():
            os.close(file)


def _joined(parts: Sequence[Payloads]) -> Payloads:
    """Return payloads one after the other, in one buffer."""
    if len(parts) == 1:
        return parts[0]
    begins = np.cumsum([0, *(len(part.data) for part in parts)])[:-1]
    data = np.concatenate([np.empty(0, np.uint8), *(part.data for part in parts)])
    starts = [part.starts + begin for part, begin in zip(parts, begins, strict=True)]
    ends = [part.ends + begin for part, begin in zip(parts, begins, strict=True)]
    nothing = np.empty(0, np.int64)
    return Payloads(data, np.concatenate([nothing, *starts]), np.concatenate([nothing, *ends]))


def _object_reader(path: str) -> Read:
    """Return what reads ranges of an object."""
    url = parse_store_url(path)
    store = store_at(url)
    return lambda size, offset: store.read(url.key, offset, offset + size)


def _ends_of(runs: Iterator[RecordRun]) -> I64:
    """Return where the records of some runs end, framing included."""
    ends = [np.append(run.offsets[1:], run.end) for run in runs if len(run)]
    return np.concatenate(ends) if ends else np.zeros(0, np.int64)
