"""Tasks of the second pass: each sorts some buckets of a split, and stages what is in them.

    pass 1   task 0 ─▶ parts/000000-…/train-0000.part    run: │ 0 │ 1 │ 2 │ 3 │ run: │ 0 │ 1 │ 2 │ 3 │
             task 1 ─▶ parts/000001-…/train-0000.part    run: │ 0 │ 1 │ 2 │ 3 │
    pass 2   task 2 (train, buckets 0 and 1) ─▶ parts/000002-…/train-0000.part, as without a shuffle
             task 3 (train, buckets 2 and 3) ─▶ ...

A bucket holds the records whose keys begin with its number, so sorted buckets, one after the other, are a sorted split.
About 16 MiB are sorted at a time. From a store, the ranges of a task are first copied to this machine. Of more than
100 GB a task first spills its buckets once more, in smaller ones (`regroup`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from tempfile import TemporaryFile
from typing import Final

import numpy as np
import numpy.typing as npt

from ...errors import DamageError
from ...format.buffers.checksum import add_digests, record_digests, unmask_each
from ...format.encode.framed_rows import frames_in_place
from ...format.flow.blocks import Frames
from ...format.tfrecord.framing import FRAME_BYTES
from ..records.record_file import read_record_batches
from ..shard_plan.shard_plan import Part, SplitParts
from ..shard_plan.task_ranges import MOST_SHARDS, plan_tasks
from ..spill.spill_file import read_index
from ..spill.spiller import TaskSpill, taken_records
from ..stage.new_parts import new_parts
from ..stage.spec import DatasetSpec
from ..stage.task_result import TaskResult
from ..stage.task_stager import TaskStager
from .findings import left_out_in_all, left_out_of
from .regroup import Regrouped
from .spilled_files import ShuffleTask, SpilledFile, SpilledFiles, SpilledRecords, leave_listing

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
    gone = left_out_in_all(spec)
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
