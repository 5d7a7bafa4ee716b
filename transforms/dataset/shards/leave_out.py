"""Leave records out of what a task staged: its parts are written once more without them (`stage/new_parts`)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from ...format.encode.framed_rows import frames_in_place
from ...format.flow.observers import LeftOut
from ..records.record_file import read_record_batches
from ..shard_plan.shard_plan import SplitParts
from ..stage.new_parts import new_parts
from ..stage.spec import DatasetSpec
from ..stage.task_result import TaskResult


def leave_out(spec: DatasetSpec, result: TaskResult, left: LeftOut) -> TaskResult:
    """Return the result of a task without some of its records; splits that keep all of theirs are as they were."""
    splits = dict(result.splits)
    for name, numbers in left.records.items():
        splits[name] = _without(spec, splits[name], name, numbers)
    return replace(result, splits={name: split for name, split in splits.items() if split.parts})


def _without(spec: DatasetSpec, split: SplitParts, name: str, numbers: npt.NDArray[np.int64]) -> SplitParts:
    """Write the parts of a split without the records of these numbers, counted from 0 over all of them."""
    first = 0
    with new_parts(spec, split.parts[0].task) as kept:
        for part in split.parts:
            for run in read_record_batches(spec.storage.path(f"{spec.staging}/{part.path}")):
                here = numbers[np.searchsorted(numbers, first) : np.searchsorted(numbers, first + len(run))] - first
                kept.of(name).add(frames_in_place(run.payloads, run.crcs, here.tolist()))
                first += len(run)
    return kept.finished[name]
