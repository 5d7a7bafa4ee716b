"""Parts of a task that are written once more, after it was staged: without some records, or in another split.

They are in a folder of their own, and the parts that were staged stay. So a plan that is made again, after a crash or
because an engine repeats the step, is the same.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

from ..shard_plan.shard_plan import SplitParts
from ..spill.spiller import SplitSpill
from ..storage.contract import PartFile
from .spec import DatasetSpec
from .split_stager import PART, SplitStager

_Stager: TypeAlias = SplitStager | SplitSpill
_Make: TypeAlias = Callable[[Callable[..., tuple[PartFile, str]]], _Stager]


class NewParts:
    """The new parts of one task: `of` a split writes them, `finished` are those of all splits when the block ends."""

    def __init__(self, spec: DatasetSpec, task: int, make: _Make | None) -> None:
        self.finished: dict[str, SplitParts] = {}
        self.stagers: dict[str, _Stager] = {}
        self.folder = f"{spec.staging}/parts/{max(task, 0):06d}-{uuid.uuid4().hex[:16]}"
        self._storage, self._staging = spec.storage, spec.staging
        self._make = make or (lambda create: SplitStager(task, spec.stage_settings, create))

    def of(self, split: str) -> _Stager:
        def create(number: int, suffix: str = PART) -> tuple[PartFile, str]:
            path = f"{self.folder}/{split}-{number:04d}{suffix}"
            return self._storage.create_part(path), path.removeprefix(f"{self._staging}/")

        if split not in self.stagers:
            self.stagers[split] = self._make(create)
        return self.stagers[split]


@contextmanager
def new_parts(spec: DatasetSpec, task: int, make: _Make | None = None) -> Iterator[NewParts]:
    """Write parts of a task that are durable when the block ends; `make` is how a split is staged, if not as usual."""
    parts = NewParts(spec, task, make)
    try:
        yield parts
        parts.finished = {name: stager.finish() for name, stager in parts.stagers.items()}
    except BaseException:
        for stager in parts.stagers.values():
            stager.abandon()
        raise
    if any(split.parts for split in parts.finished.values()):
        spec.storage.sync(parts.folder)
