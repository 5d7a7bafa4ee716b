"""Records that were set aside, and are in a split now, are spilled like those that were in it from the start.

Their numbers begin behind all that a task can have spilled itself, so that no two keys are the same.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from ...format.encode.framed_rows import frames_in_place
from ..records.record_file import read_record_batches
from ..shard_plan.shard_plan import SplitParts
from ..spill.spiller import TaskSpill
from ..stage.new_parts import new_parts
from ..stage.spec import DatasetSpec
from ..stage.task_result import TaskResult

_FIRST_NUMBER: Final = 1 << 31


def respill(spec: DatasetSpec, result: TaskResult) -> TaskResult:
    """Return the result of a task with all of its parts spilled; those that were staged stay where they are."""
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
