"""Tasks of the second pass: each sorts some buckets of a split, and stages what is in them.

    pass 1   task 0 ─▶ parts/000000-…/train-0000.part    run: │ 0 │ 1 │ 2 │ 3 │ run: │ 0 │ 1 │ 2 │ 3 │
             task 1 ─▶ parts/000001-…/train-0000.part    run: │ 0 │ 1 │ 2 │ 3 │
    pass 2   task 2 (train, buckets 0 and 1) ─▶ parts/000002-…/train-0000.part, as without a shuffle
             task 3 (train, buckets 2 and 3) ─▶ ...

A bucket holds the records whose keys begin with its number, so sorted buckets, one after the other, are a sorted split.
About 8 MiB are sorted at a time. From a store, the ranges of a task are first copied to this machine.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import astuple, dataclass, replace
from functools import lru_cache
from io import BufferedReader
from tempfile import TemporaryFile
from typing import IO, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...errors import RunError
from ...format.buffers.checksum import add_digests, record_digests, unmask_each
from ...format.flow.blocks import Frames
from ...format.tfrecord.framing import FRAME_BYTES
from ..shard_plan.shard_plan import Part
from ..shard_plan.task_ranges import plan_tasks
from ..spill.keys import row_keys
from ..spill.spill_file import U64, SpillIndex, cut_index, read_buckets, read_index, split_record
from ..spill.spiller import taken_records
from ..stage.spec import DatasetSpec
from ..stage.task_result import TaskResult
from ..stage.task_stager import TaskStager
from ..storage.storage_at import storage_at
from .findings import FOLDER, left_out_in_all, left_out_of, read_left_out

SORTED_BYTES: Final = 8 << 20
"""What is sorted at a time, where buckets are no larger."""


@dataclass(frozen=True, slots=True)
class ShuffleTask:
    """The buckets `first` to `stop` (not with it) of a split, spilled in the files that `listing` names."""

    number: int
    split: str
    first: int
    stop: int
    listing: str


@dataclass(frozen=True, slots=True)
class _Spilled:
    """A file of spilled records, and the number of the task that left it; `gone` names those that are left out."""

    task: int
    path: str
    size: int
    gone: str | None = None


def plan_second_pass(spec: DatasetSpec, results: Sequence[TaskResult]) -> Iterator[ShuffleTask]:
    """Yield the tasks of the second pass, given the results of all tasks of the first.

    They follow from what was spilled and the shard size, so that a plan made again is the same.

    Raises:
        RunError: files were spilled in other buckets, by another plan.
    """
    spilled: dict[str, list[Part]] = {}
    for result in sorted(results, key=lambda result: result.task):
        for name, split in result.splits.items():
            spilled.setdefault(name, []).extend(split.parts)
    number = spec.tasks or 0
    for name, parts in sorted(spilled.items()):
        gone = {task: path for task, (path, _) in left_out_of(spec, name).items()}
        files = [_Spilled(part.task, part.path, part.bytes, gone.get(part.task)) for part in parts]
        sizes = _bucket_sizes(spec, files)
        listing = _leave_listing(spec, name, files)
        for buckets in plan_tasks(sizes, spec.shard_size):
            yield ShuffleTask(number, name, buckets.start, buckets.stop, listing)
            number += 1


def run_shuffle_task(spec: DatasetSpec, task: ShuffleTask) -> TaskResult:
    """Sort the records of a task's buckets, stage them, and return what was staged.

    Raises:
        DamageError: a spilled file is not what was spilled.
    """
    assert spec.shuffle is not None
    settings = replace(spec.stage_settings, shuffle=None, observers=())
    stager = TaskStager(spec.storage, spec.staging, task.number, settings)
    try:
        with ExitStack() as stack:
            files = _Files(spec, task, stack)
            for first, stop in files.groups():
                stager.add_frames(task.split, _sorted(files.read(first, stop), spec.shuffle.seed))
        return stager.finish()
    except BaseException:
        stager.abandon()
        raise


def lost_between(spec: DatasetSpec, first: Sequence[TaskResult], second: Sequence[TaskResult]) -> str | None:
    """Return what the second pass of a shuffle has not staged as the first has spilled it, in words.

    Where records are left out, only their number is compared: the digest of those is not known.
    """
    (records, digest), (found, found_digest) = _sum(first), _sum(second)
    gone = left_out_in_all(spec)
    if found + gone == records and (gone or found_digest == digest):
        return None
    out = f" and {gone} left out" if gone else ""
    return f"{records} records were spilled, {found} were staged{out}, or others"


def _sum(results: Sequence[TaskResult]) -> tuple[int, int]:
    """Return how many records there are, and the sum of their digests."""
    return sum(result.records for result in results), add_digests(
        split.digest for result in results for split in result.splits.values()
    )


def _bucket_sizes(spec: DatasetSpec, files: Sequence[_Spilled]) -> npt.NDArray[np.int64]:
    sizes: npt.NDArray[np.int64] | None = None
    for one in files:
        path = f"{spec.staging}/{one.path}"
        with spec.storage.open(path) as file:
            more = read_index(file, one.size, path).bucket_bytes
        if sizes is not None and len(sizes) != len(more):
            raise RunError(f"{path} was spilled by another plan; begin again: --set runner.resume=false")
        sizes = more if sizes is None else sizes + more
    return np.zeros(0, np.int64) if sizes is None else sizes


def _leave_listing(spec: DatasetSpec, split: str, files: Sequence[_Spilled]) -> str:
    """Write the list of spilled files into the staging folder; its name says what is in it."""
    data = json.dumps([astuple(one) for one in files]).encode()
    path = f"{spec.staging}/{FOLDER}/{split}-{hashlib.sha256(data).hexdigest()[:16]}.json"
    spec.storage.replace(path, data)
    return path


@lru_cache(maxsize=4)
def _listing(root: str, path: str) -> tuple[_Spilled, ...]:
    return tuple(_Spilled(*one) for one in json.loads(storage_at(root).read(path)))


class _Files:
    """The spilled files of a task's split, of which some buckets are read."""

    def __init__(self, spec: DatasetSpec, task: ShuffleTask, stack: ExitStack) -> None:
        self._spec, self._task = spec, task
        self._copied: dict[str, IO[bytes]] = {}
        self._files: list[tuple[_Spilled, SpillIndex]] = []
        self._gone: dict[str, U64] = {}
        for one in _listing(spec.path, task.listing):
            with self._open(one) as file:
                index = cut_index(read_index(file, one.size, one.path), task.first, task.stop)
                if not spec.storage.has_locks:
                    self._copied[one.path] = stack.enter_context(TemporaryFile())  # noqa: SIM115 - of the caller
                    index = _copy(file, index, one.path, self._copied[one.path])
            self._files.append((one, index))
            if one.gone is not None:
                self._gone[one.path] = read_left_out(spec, one.gone)

    def groups(self) -> Iterator[tuple[int, int]]:
        """Yield ranges of buckets that are sorted at a time, counted from the task's first."""
        sizes = sum(
            (index.bucket_bytes for _, index in self._files), np.zeros(self._task.stop - self._task.first, np.int64)
        )
        first, held = 0, 0
        for bucket, size in enumerate(sizes.tolist()):
            if held and held + size > SORTED_BYTES:
                yield first, bucket
                first, held = bucket, 0
            held += size
        if held:
            yield first, len(sizes)

    def read(self, first: int, stop: int) -> Iterator[tuple[int, bytes, U64]]:
        """Yield the frames of some buckets, what is known of each, and the number of their task before both."""
        for one, index in self._files:
            if index.rows[:, stop].sum() == index.rows[:, first].sum():
                continue
            gone = self._gone.get(one.path)
            copied = self._copied.get(one.path)
            with nullcontext(copied) if copied is not None else self._open(one) as file:
                for frames, records in read_buckets(file, index, first, stop, one.path):
                    yield one.task, *((frames, records) if gone is None else _without(frames, records, gone))

    def _open(self, one: _Spilled) -> BufferedReader:
        return self._spec.storage.open(f"{self._spec.staging}/{one.path}")


def _without(frames: bytes, records: U64, gone: U64) -> tuple[bytes, U64]:
    """Return the records whose numbers are not among some."""
    lengths, numbers = split_record(records)
    kept = np.flatnonzero(~np.isin(numbers, gone))
    return bytes(taken_records(pa.py_buffer(frames), lengths, kept)), records[kept]


def _copy(file: IO[bytes], index: SpillIndex, path: str, target: IO[bytes]) -> SpillIndex:
    """Copy all buckets of an index to another file, and return the index of that."""
    starts = []
    last = index.rows.shape[1] - 1
    for run in range(len(index.starts)):
        one = replace(
            index, starts=index.starts[run : run + 1], rows=index.rows[run : run + 1], bytes=index.bytes[run : run + 1]
        )
        at = target.tell()
        frames_at, numbers_at = at - int(one.bytes[0, 0]), at - int(one.rows[0, 0]) * 8
        for frames, records in read_buckets(file, one, 0, last, path):
            target.write(frames)
            numbers_at = at + len(frames) - int(one.rows[0, 0]) * 8
            target.write(records.tobytes())
        starts.append((frames_at, numbers_at))
    return replace(index, starts=np.array(starts, np.int64).reshape(-1, 2))


def _sorted(runs: Iterator[tuple[int, bytes, U64]], seed: int) -> Frames:
    """Return the records of some buckets in the order of their keys."""
    found = list(runs)
    keys = np.concatenate(
        [np.empty(0, np.uint64), *(row_keys(seed, task, split_record(records)[1]) for task, _, records in found)]
    )
    lengths, _ = split_record(np.concatenate([np.empty(0, np.uint64), *(records for _, _, records in found)]))
    data = pa.py_buffer(b"".join(frames for _, frames, _ in found))
    found.clear()
    if not len(keys):  # all of them are left out
        return Frames((), np.zeros(0, np.int64), 0)
    order = np.argsort(keys)
    data, lengths = taken_records(data, lengths, order), lengths[order]
    ends = np.cumsum(lengths)
    words = np.ndarray((data.size - 3,), "<u4", data, strides=(1,))  # the four bytes from each place on
    masked = words[ends - 4]
    return Frames((data,), ends, record_digests(lengths - FRAME_BYTES, unmask_each(masked)))
