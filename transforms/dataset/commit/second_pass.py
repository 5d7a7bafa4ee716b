"""The second pass of a shuffle: sort spilled records and stage them, without those that observers leave out.

    pass 1   task 0 ─▶ parts/000000-…/train-0000.part    run: │ 0 │ 1 │ 2 │ 3 │ run: │ 0 │ 1 │ 2 │ 3 │
             task 1 ─▶ parts/000001-…/train-0000.part    run: │ 0 │ 1 │ 2 │ 3 │
    pass 2   task 2 (train, buckets 0 and 1) ─▶ parts/000002-…/train-0000.part, as without a shuffle
             task 3 (train, buckets 2 and 3) ─▶ ...

A bucket holds the records whose keys begin with its number, so sorted buckets, one after the other, are a sorted
split. About 16 MiB are sorted at a time. From a store, the ranges of a task are first copied to this machine. Of more
than 100 GB a task first spills its buckets once more, in smaller ones (`Regrouped`).

What observers found is left between the passes:

findings.json    {"checks": {...}, "dropped": [[entry, records], ...], "left_out": {task: [[split, path], ...]}}
shuffle/...u32   the numbers of the records that are left out of a task and split, ascending
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import astuple, dataclass, replace
from functools import lru_cache
from io import BufferedIOBase, BufferedReader
from tempfile import TemporaryFile
from typing import IO, Any, Final, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...errors import DamageError
from ...format.batches.observers import LeftOut
from ...format.batches.rows import Frames
from ...format.examples.encode_rows import frames_in_place
from ...format.splits.shard_plan import MOST_SHARDS, Part, SplitParts, plan_tasks
from ...format.tfrecord.framing import FRAME_BYTES, add_digests, record_digests, unmask_each
from ..stage.spec import DatasetSpec
from ..stage.spill import (
    KNOWN_BYTES,
    U32,
    U64,
    SpillIndex,
    TaskSpill,
    read_buckets,
    read_index,
    row_keys,
    split_record,
    taken_records,
)
from ..stage.task_stager import TaskResult, TaskStager, new_parts
from ..storage.object_storage import storage_at
from ..storage.record_file import read_record_batches

# Tasks of the second pass: each sorts some buckets of a split, and stages what is in them.


@dataclass(frozen=True, slots=True)
class ShuffleTask:
    """The buckets `first` to `stop` (not with it) of a split, spilled in the files that `listing` names."""

    number: int
    split: str
    first: int
    stop: int
    listing: str


SORTED_BYTES: Final = 16 << 20
"""What is sorted at a time, where buckets are no larger."""

_MOST_TASKS: Final = 1024
"""Tasks of a split, unless they would have fewer than 8 shards each: of a run 8 KiB are read at once."""


def plan_second_pass(spec: DatasetSpec, results: Sequence[TaskResult]) -> Iterator[ShuffleTask]:
    """Yield the tasks of the second pass, given the results of all tasks of the first.

    They follow from what was spilled and the shard size, so that a plan made again is the same.
    """
    spilled: dict[str, list[Part]] = {}
    for result in sorted(results, key=lambda result: result.task):
        for name, split in result.splits.items():
            spilled.setdefault(name, []).extend(split.parts)
    number = spec.tasks or 0
    for name, parts in sorted(spilled.items()):
        gone = {task: path for task, (path, _) in left_out_of(spec, name).items()}
        files = [SpilledFile(part.task, part.path, part.bytes, gone.get(part.task)) for part in parts]
        sizes = _bucket_sizes(spec, files)
        listing = leave_listing(spec, name, files)
        most = max(MOST_SHARDS, int(sizes.sum()) // (spec.shard_size * _MOST_TASKS))
        for buckets in plan_tasks(sizes, spec.shard_size, most):
            yield ShuffleTask(number, name, buckets.start, buckets.stop, listing)
            number += 1


def run_shuffle_task(spec: DatasetSpec, task: ShuffleTask) -> TaskResult:
    assert spec.shuffle is not None
    settings = replace(spec.stage_settings, shuffle=None, observers=())
    stager = TaskStager(spec.storage, spec.staging, task.number, settings)
    try:
        with ExitStack() as stack:
            two_levels = spec.shuffle.levels == 2
            files = SpilledFiles(spec, task, stack, copies=not spec.storage.has_locks and not two_levels)
            buckets = _regrouped(spec, task, files, stack) if two_levels else files
            for first, stop in _groups(buckets.sizes):
                stager.add_frames(task.split, _sorted(buckets.read(first, stop)))
        return stager.finish()
    except BaseException:
        stager.abandon()
        raise


def lost_between(spec: DatasetSpec, first: Sequence[TaskResult], second: Sequence[TaskResult]) -> str | None:
    """Return what the second pass of a shuffle has not staged as the first has spilled it, in words.

    Where records are left out, only their number is compared: the digest of those is not known.
    """
    (records, digest), (found, found_digest) = _sum(first), _sum(second)
    gone = sum(count for _, count in _document(spec)["dropped"])
    if found + gone == records and (gone or found_digest == digest):
        return None
    out = f" and {gone} left out" if gone else ""
    return f"{records} records were spilled, {found} were staged{out}, or others"


def _sum(results: Sequence[TaskResult]) -> tuple[int, int]:
    return sum(result.records for result in results), add_digests(
        split.digest for result in results for split in result.splits.values()
    )


def _bucket_sizes(spec: DatasetSpec, files: Sequence[SpilledFile]) -> npt.NDArray[np.int64]:
    sizes: npt.NDArray[np.int64] | None = None
    for one in files:
        path = f"{spec.staging}/{one.path}"
        with spec.storage.open(path) as file:
            more = read_index(file, one.size, path).bucket_bytes
        if sizes is not None and len(sizes) != len(more):
            raise DamageError(f"{path}: is not what was spilled: it has {len(more)} buckets, not {len(sizes)}")
        sizes = more if sizes is None else sizes + more
    return np.zeros(0, np.int64) if sizes is None else sizes


def _groups(sizes: npt.NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Yield ranges of buckets that are sorted at a time, given the bytes of each."""
    first, held = 0, 0
    for bucket, size in enumerate(sizes.tolist()):
        if held and held + size > SORTED_BYTES:
            yield first, bucket
            first, held = bucket, 0
        held += size
    if held:
        yield first, len(sizes)


def _regrouped(spec: DatasetSpec, task: ShuffleTask, files: SpilledFiles, stack: ExitStack) -> Regrouped:
    """Spill the buckets of a task once more: into the staging folder, or for a store into a file of this machine."""
    assert spec.shuffle is not None
    folder = spec.storage.path(spec.staging) if spec.storage.has_locks else None
    scratch = stack.enter_context(TemporaryFile(dir=folder))  # noqa: SIM115 - of the caller
    shift = 64 - spec.shuffle.bits
    keys = range(task.first << shift, task.stop << shift)
    found = Regrouped(scratch, keys, int(files.sizes.sum()), spec.shuffle.run_bytes)
    found.add(files.read_each())
    return found


def _sorted(records: SpilledRecords) -> Frames:
    if not len(records.keys):  # all of them are left out
        return Frames((), np.zeros(0, np.int64), 0)
    order = np.argsort(records.keys)
    data, lengths = taken_records(records.frames, records.lengths, order), records.lengths[order]
    ends = np.cumsum(lengths)
    words = np.ndarray((data.size - 3,), "<u4", data, strides=(1,))  # the four bytes from each place on
    masked = words[ends - 4]
    return Frames((data,), ends, record_digests(lengths - FRAME_BYTES, unmask_each(masked)))


# The spilled files of a split, of which a task of the second pass reads some buckets that follow each other.


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
                gone = spec.storage.read(f"{spec.staging}/{one.gone}")
                self._gone[one.path] = np.frombuffer(gone, "<u4").astype(np.uint64)

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


# The second level of a large shuffle: what a task sorts is spilled once more, in buckets that can be sorted.
#
#     spilled files     run: │ ... │ a task's buckets │ ... │ run: │ ... │ a task's buckets │ ...   one read of each run
#     scratch file      run: │ 0 │ 1 │ ... │ 255 │ run: │ 0 │ 1 │ ...                         buckets of about 4 MiB
#
# With one level each sort reads a piece of every run, and the pieces become small: of 1 TB, 130 bytes. With two a task
# reads its part of a run at once, 9 KB of that.


_BUCKET_BYTES: Final = 4 << 20


@dataclass(frozen=True, slots=True)
class _Run:
    """Where a run starts in the scratch file, and the records and bytes before each bucket; frames, keys, lengths."""

    start: int
    rows: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]


class Regrouped:
    """Records whose keys are in a range, `size` bytes of them, in a scratch file of their own."""

    def __init__(self, scratch: IO[bytes], keys: range, size: int, run_bytes: int) -> None:
        count = max(size // _BUCKET_BYTES, 1)
        span = keys.stop - keys.start  # `len` takes less than 2**63
        inner = [keys.start + span * number // count for number in range(1, count)]
        self._inner = np.array(inner, np.uint64)
        self._scratch = scratch
        self._run_bytes = run_bytes
        self._runs: list[_Run] = []

    def add(self, runs: Iterable[SpilledRecords]) -> None:
        held: list[SpilledRecords] = []
        size = 0
        for run in runs:
            held.append(run)
            size += run.frames.size
            if size >= self._run_bytes:
                self._spill(held)
                held, size = [], 0
        self._spill(held)

    @property
    def sizes(self) -> npt.NDArray[np.int64]:
        sizes = np.zeros(len(self._inner) + 1, np.int64)
        for run in self._runs:
            sizes += np.diff(run.ends)
        return sizes

    def read(self, first: int, stop: int) -> SpilledRecords:
        return _joined([self._read(run, first, stop) for run in self._runs])

    def _read(self, run: _Run, first: int, stop: int) -> SpilledRecords:
        (low, high), (frames_at, frames_end) = (table[[first, stop]].tolist() for table in (run.rows, run.ends))
        keys_at = run.start + int(run.ends[-1])
        lengths_at = keys_at + 8 * int(run.rows[-1])
        frames = self._read_at(run.start + frames_at, frames_end - frames_at)
        keys = np.frombuffer(self._read_at(keys_at + 8 * low, 8 * (high - low)), np.uint64)
        lengths = np.frombuffer(self._read_at(lengths_at + 4 * low, 4 * (high - low)), np.uint32)
        return SpilledRecords(keys, lengths.astype(np.int64), pa.py_buffer(frames))

    def _read_at(self, offset: int, size: int) -> bytes:
        self._scratch.seek(offset)
        return self._scratch.read(size)

    def _spill(self, held: Sequence[SpilledRecords]) -> None:
        if not held:
            return
        records = _joined(held)
        order = np.argsort(records.keys)
        data, keys = taken_records(records.frames, records.lengths, order), records.keys[order]
        lengths = records.lengths[order]
        rows = np.concatenate(([0], np.searchsorted(keys, self._inner), [len(keys)])).astype(np.int64)
        ends = np.concatenate(([0], np.cumsum(lengths)))[rows]
        self._runs.append(_Run(self._scratch.tell(), rows, ends))
        small: U32 = lengths.astype(np.uint32)
        for part in (data, pa.py_buffer(keys), pa.py_buffer(small)):
            self._scratch.write(memoryview(part))


def _joined(all_: Sequence[SpilledRecords]) -> SpilledRecords:
    keys = np.concatenate([np.empty(0, np.uint64), *(one.keys for one in all_)])
    lengths = np.concatenate([np.empty(0, np.int64), *(one.lengths for one in all_)])
    return SpilledRecords(keys, lengths, pa.py_buffer(b"".join(one.frames for one in all_)))


_FIRST_NUMBER: Final = 1 << 31
"""It is behind all numbers that a task can have spilled itself, so that no two keys are the same."""


def respill(spec: DatasetSpec, result: TaskResult) -> TaskResult:
    """Return the result of a task with all of its parts spilled; those that were staged stay where they are.

    Records that were set aside, and are in a split now, are spilled like those that were in it from the start.
    """
    assert spec.shuffle is not None
    plain = {name: [part for part in split.parts if part.kind != "spilled"] for name, split in result.splits.items()}
    if not any(plain.values()):
        return result
    spill = TaskSpill(result.task, spec.shuffle, _FIRST_NUMBER)
    splits = dict(result.splits)
    with new_parts(spec, result.task, spill.split) as spilled:
        for name, part in ((name, part) for name, parts in plain.items() for part in parts):
            for run in read_record_batches(spec.storage.path(f"{spec.staging}/{part.path}")):
                spilled.of(name).add(frames_in_place(run.payloads, run.crcs))
    for name, more in spilled.finished.items():
        split = splits[name]
        kept = [part for part in split.parts if part.kind == "spilled"]
        splits[name] = SplitParts((*kept, *(replace(part, number=len(kept)) for part in more.parts)), split.digest)
    return replace(result, splits=splits)


# What observers found in the first pass, for the second.


FOLDER: Final = "shuffle"
"""In the run's staging folder: files for the second pass."""

_FILE: Final = "findings.json"


def leave_findings(
    spec: DatasetSpec, checks: Mapping[str, Mapping[str, Any]], left_out: Sequence[tuple[int, LeftOut]]
) -> None:
    dropped: Counter[int] = Counter()
    paths: dict[str, list[tuple[str, str, int]]] = {}
    for task, left in left_out:
        dropped.update(left.entries)
        for split, numbers in left.records.items():
            path = f"{FOLDER}/left-out-{task:06d}-{split}.u32"
            spec.storage.replace(f"{spec.staging}/{path}", numbers.astype("<u4").tobytes())
            paths.setdefault(str(task), []).append((split, path, len(numbers)))
    document = {"checks": checks, "dropped": sorted(dropped.items()), "left_out": paths}
    spec.storage.replace(f"{spec.staging}/{_FILE}", json.dumps(document).encode())


def read_findings(spec: DatasetSpec) -> tuple[dict[str, dict[str, Any]], dict[int, int]]:
    """Return what checks found, and how many records of each entry are left out; nothing where no pass was planned."""
    document = _document(spec)
    return document["checks"], dict(document["dropped"])


def left_out_of(spec: DatasetSpec, split: str) -> dict[int, tuple[str, int]]:
    """Return where the numbers of the records are that are left out of a split, by task, and how many these are."""
    found = _document(spec)["left_out"]
    return {int(task): (path, count) for task, all_ in found.items() for name, path, count in all_ if name == split}


def _document(spec: DatasetSpec) -> dict[str, Any]:
    path = f"{spec.staging}/{_FILE}"
    if spec.storage.size(path) is None:
        return {"checks": {}, "dropped": [], "left_out": {}}
    document: dict[str, Any] = json.loads(spec.storage.read(path))
    return document
