"""Leave records out of what a task staged: its parts are written once more without them.

The parts that were staged stay, and so do the files of observers. So a plan that is made again, after a crash or
because an engine repeats the step, is the same.
"""

from __future__ import annotations

import uuid
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from ...format.encode.framed_rows import frames_in_place
from ...format.flow.observers import LeftOut
from ..records.record_file import read_record_batches
from ..shard_plan.shard_plan import SplitParts
from ..stage.spec import DatasetSpec
from ..stage.split_stager import SplitStager
from ..stage.task_result import TaskResult
from ..storage.contract import PartFile


def leave_out(spec: DatasetSpec, result: TaskResult, left: LeftOut) -> TaskResult:
    """Return the result of a task without some of its records; splits that keep all of theirs are as they were."""
    splits = dict(result.splits)
    for name, numbers in left.records.items():
        splits[name] = _without(spec, splits[name], name, numbers)
    return replace(result, splits={name: split for name, split in splits.items() if split.parts})


def _without(spec: DatasetSpec, split: SplitParts, name: str, numbers: npt.NDArray[np.int64]) -> SplitParts:
    """Write the parts of a split without the records of these numbers, counted from 0 over all of them."""
    storage, task = spec.storage, split.parts[0].task
    folder = f"parts/{max(task, 0):06d}-{uuid.uuid4().hex[:16]}"

    def create(number: int, suffix: str) -> tuple[PartFile, str]:
        path = f"{folder}/{name}-{number:04d}{suffix}"
        return storage.create_part(f"{spec.staging}/{path}"), path

    stager = SplitStager(task, spec.stage_settings, create)
    first = 0
    try:
        for part in split.parts:
            for run in read_record_batches(storage.path(f"{spec.staging}/{part.path}")):
                here = numbers[np.searchsorted(numbers, first) : np.searchsorted(numbers, first + len(run))] - first
                stager.add(frames_in_place(run.payloads, run.crcs, here.tolist()))
                first += len(run)
        kept = stager.finish()
    except BaseException:
        stager.abandon()
        raise
    if kept.parts:
        storage.sync(f"{spec.staging}/{folder}")
    return kept
