"""The spilled files of a split, of which a task of the second pass reads some buckets that follow each other."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import astuple, dataclass, replace
from functools import lru_cache
from io import BufferedIOBase, BufferedReader
from tempfile import TemporaryFile
from typing import cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..spill.keys import row_keys
from ..spill.spill_file import KNOWN_BYTES, U64, SpillIndex, read_buckets, read_index, split_record
from ..spill.spiller import taken_records
from ..stage.spec import DatasetSpec
from ..storage.storage_at import storage_at
from .findings import FOLDER, read_left_out


@dataclass(frozen=True, slots=True)
class SpilledFile:
    """A file of spilled records, and the number of the task that left it; `gone` names those that are left out."""

    task: int
    path: str
    size: int
    gone: str | None = None


@dataclass(frozen=True, slots=True)
class SpilledRecords:
    """Records that were read: their keys, the lengths of their frames, and these, one after the other."""

    keys: U64
    lengths: npt.NDArray[np.int64]
    frames: pa.Buffer


@dataclass(frozen=True, slots=True)
class ShuffleTask:
    """The buckets `first` to `stop` (not with it) of a split, spilled in the files that `listing` names."""

    number: int
    split: str
    first: int
    stop: int
    listing: str


def leave_listing(spec: DatasetSpec, split: str, files: Sequence[SpilledFile]) -> str:
    """Write the list of spilled files into the staging folder, and return its name, which says what is in it."""
    data = json.dumps([astuple(one) for one in files]).encode()
    path = f"{spec.staging}/{FOLDER}/{split}-{hashlib.sha256(data).hexdigest()[:16]}.json"
    spec.storage.replace(path, data)
    return path


@lru_cache(maxsize=4)
def _listing(root: str, path: str) -> tuple[SpilledFile, ...]:
    return tuple(SpilledFile(*one) for one in json.loads(storage_at(root).read(path)))


class SpilledFiles:
    """The buckets of a task; with `copies` they are first copied to this machine, for as long as `stack` is open."""

    def __init__(self, spec: DatasetSpec, task: ShuffleTask, stack: ExitStack, *, copies: bool) -> None:
        assert spec.shuffle is not None
        self._spec, self._seed, self._count = spec, spec.shuffle.seed, task.stop - task.first
        self._copied: dict[str, BufferedIOBase] = {}
        self._files: list[tuple[SpilledFile, SpillIndex]] = []
        self._gone: dict[str, U64] = {}
        for one in _listing(spec.path, task.listing):
            with self._open(one) as file:
                index = read_index(file, one.size, one.path, task.first, task.stop)
                if copies:
                    copied = cast(BufferedIOBase, stack.enter_context(TemporaryFile()))  # noqa: SIM115 - of the caller
                    index = _copy(file, index, one.path, copied)
                    self._copied[one.path] = copied
            self._files.append((one, index))
            if one.gone is not None:
                self._gone[one.path] = read_left_out(spec, one.gone)

    @property
    def sizes(self) -> npt.NDArray[np.int64]:
        sizes = np.zeros(self._count, np.int64)
        for _, index in self._files:
            sizes += index.bucket_bytes
        return sizes

    def read(self, first: int, stop: int) -> SpilledRecords:
        """Return the records of some buckets, counted from the task's first."""
        return self._read(self._files, first, stop)

    def read_each(self) -> Iterator[SpilledRecords]:
        return (self._read([one], 0, self._count) for one in self._files)

    def _read(self, files: Sequence[tuple[SpilledFile, SpillIndex]], first: int, stop: int) -> SpilledRecords:
        counts = [index.size_of(first, stop) for _, index in files]
        frames = np.empty(sum(size for _, size in counts), np.uint8)
        records = np.empty(sum(count for count, _ in counts), "<u8")
        keys = np.empty(len(records), np.uint64)
        out: list[npt.NDArray[np.int64]] = []
        row = byte = 0
        for (one, index), (count, size) in zip(files, counts, strict=True):
            if not count:
                continue
            of_file, known = slice(row, row + count), records[row : row + count]
            copied = self._copied.get(one.path)
            with nullcontext(copied) if copied is not None else self._open(one) as file:
                read_buckets(file, index, first, stop, frames[byte : byte + size].data, known.data.cast("B"), one.path)
            _, numbers = split_record(known)
            keys[of_file] = row_keys(self._seed, one.task, numbers)
            if one.path in self._gone:
                out.append(row + np.flatnonzero(np.isin(numbers, self._gone[one.path])))
            row, byte = row + count, byte + size
        found = SpilledRecords(keys, split_record(records)[0], pa.py_buffer(frames))
        return _without(found, np.concatenate(out)) if out else found

    def _open(self, one: SpilledFile) -> BufferedReader:
        return self._spec.storage.open(f"{self._spec.staging}/{one.path}")


def _without(records: SpilledRecords, out: npt.NDArray[np.int64]) -> SpilledRecords:
    kept = np.delete(np.arange(len(records.keys)), out)
    frames = taken_records(records.frames, records.lengths, kept)
    return SpilledRecords(records.keys[kept], records.lengths[kept], frames)


def _copy(file: BufferedIOBase, index: SpillIndex, path: str, target: BufferedIOBase) -> SpillIndex:
    """Copy all buckets of an index to another file, frames before numbers, and return the index of that."""
    last = index.rows.shape[1] - 1
    count, size = index.size_of(0, last)
    frames, numbers = np.empty(size, np.uint8), np.empty(count * KNOWN_BYTES, np.uint8)
    read_buckets(file, index, 0, last, frames.data, numbers.data, path)
    target.write(frames.data)
    target.write(numbers.data)
    rows, sizes = (table[:, [0, last]].astype(np.int64) for table in (index.rows, index.bytes))
    frames_at = np.cumsum(sizes[:, 1] - sizes[:, 0]) - sizes[:, 1]
    numbers_at = size + KNOWN_BYTES * (np.cumsum(rows[:, 1] - rows[:, 0]) - rows[:, 1])
    return replace(index, starts=np.stack((frames_at, numbers_at), axis=1))
