"""Records that were set aside, and are in a split now, are spilled like those that were in it from the start.

Their numbers begin behind all that a task can have spilled itself, so that no two keys are the same.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from ...format.encode.framed_rows import frames_in_place
from ..records.record_file import read_record_batches
from ..shard_plan.shard_plan import Part, SplitParts
from ..spill.spiller import SplitSpill, TaskSpill
from ..stage.spec import DatasetSpec
from ..stage.task_result import TaskResult
from ..storage.contract import PartFile

_FIRST_NUMBER: Final = 1 << 31


def respill(spec: DatasetSpec, result: TaskResult) -> TaskResult:
    """Return the result of a task with all of its parts spilled; those that were staged stay where they are."""
    assert spec.shuffle is not None
    plain = {name: [part for part in split.parts if part.kind != "spilled"] for name, split in result.splits.items()}
    if not any(plain.values()):
        return result
    folder = f"parts/{result.task:06d}-{uuid.uuid4().hex[:16]}"
    spill = TaskSpill(result.task, spec.shuffle, _FIRST_NUMBER)
    splits = dict(result.splits)
    spilled = {name: spill.split(_creator(spec, f"{folder}/{name}")) for name, parts in plain.items() if parts}
    try:
        for name, stager in spilled.items():
            _add(spec, stager, plain[name])
        found = {name: stager.finish() for name, stager in spilled.items()}
    except BaseException:
        for stager in spilled.values():
            stager.abandon()
        raise
    spec.storage.sync(f"{spec.staging}/{folder}")
    for name, more in found.items():
        split = splits[name]
        kept = [part for part in split.parts if part.kind == "spilled"]
        splits[name] = SplitParts((*kept, *(replace(part, number=len(kept)) for part in more.parts)), split.digest)
    return replace(result, splits=splits)


def _add(spec: DatasetSpec, stager: SplitSpill, parts: Sequence[Part]) -> None:
    for part in parts:
        for run in read_record_batches(spec.storage.path(f"{spec.staging}/{part.path}")):
            stager.add(frames_in_place(run.payloads, run.crcs))


def _creator(spec: DatasetSpec, prefix: str) -> Callable[[int], tuple[PartFile, str]]:
    def create(number: int) -> tuple[PartFile, str]:
        path = f"{prefix}-{number:04d}.part"
        return spec.storage.create_part(f"{spec.staging}/{path}"), path

    return create
