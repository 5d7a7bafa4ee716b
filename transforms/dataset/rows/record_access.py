"""Records by their number: of a shard that is asked for, it is known from then on where each record begins.

    record 1,700,000 ─▶ shard 3, row 41,012 ─▶ bytes 8,940,616 to 8,940,850 ─▶ one read, both CRCs checked

Where records begin is in the index of a shard, binary or text, where it has one; otherwise the shard is read once, when
it is first asked for. Gzip shards are entered at the members that begin with a record, and read on from there.
"""

from __future__ import annotations

import os
import threading
from bisect import bisect_right
from collections.abc import Sequence
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...errors import DamageError, UsageError
from ...format.buffers.payloads import Payloads
from ...format.manifest.manifest import ShardEntry
from ...format.manifest.naming import index_path
from ...format.sidecars.record_index import offsets_in
from ...format.wording.hints import Command
from ...format.wording.printable import counted, printable_path
from ...stores.common.store_url import is_store_url
from ..generations.opened_generation import OpenedGeneration
from ..records.record_file import open_regular, scan_opened
from ..records.record_offsets import offsets_of
from ..storage.storage_at import storage_at
from .open_files import OpenFiles
from .shard_records import GAP_IN_STORE, GAP_ON_DISK, GzipShard, PlainShard, ShardFile, payloads_in

I64 = npt.NDArray[np.int64]


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
        return f"{self._generation.name(self._entries[shard])} record {index - first + 1}"

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
        """Return how an index of a shard is made again, and where the records begin by it; None where it has none.

        An index that `shardmill index` has made is there, though the manifest does not name it.
        """
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
    """Return payloads one after the other, in one buffer."""
    if len(parts) == 1:
        return parts[0]
    begins = np.cumsum([0, *(len(part.data) for part in parts)])[:-1]
    data = np.concatenate([np.empty(0, np.uint8), *(part.data for part in parts)])
    starts = [part.starts + begin for part, begin in zip(parts, begins, strict=True)]
    ends = [part.ends + begin for part, begin in zip(parts, begins, strict=True)]
    nothing = np.empty(0, np.int64)
    return Payloads(data, np.concatenate([nothing, *starts]), np.concatenate([nothing, *ends]))
