"""Stage one task: its blocks become parts in the staging folder, and one small result that describes them.

Every attempt at a task writes files of its own names; only what an attempt returned counts. So a task may be tried
again, or twice at once, and leaves orphans at most.

    .staging/<run>/
      parts/000003-1f0c…/train-0000.part     task 3, one attempt
      parts/000003-1f0c…/rejects.jsonl
      tasks/000003.json                      what that attempt returned
"""

from __future__ import annotations

import json
import re
import uuid
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from ...errors import DamageError, RunError, UsageError
from ...format.batches.rejects import Reject
from ...format.batches.rows import Block, EntryCounts, Frames, TaskEnd
from ...format.batches.summaries import Summaries, merged, sealed
from ...format.manifest.naming import is_set_aside, is_split_name
from ...format.splits.shard_plan import CutTable, Part, SplitParts
from ...format.splits.splitter import TOO_MANY_SPLITS
from ...format.wording.printable import printable
from ..storage.contract import PartFile, Storage, check_shared
from ..storage.manifest_files import check_regular, read_file
from .spec import DatasetSpec
from .spill import SplitSpill, TaskSpill
from .split_stager import PART, SplitStager, StageSettings

# What one attempt at a task left in the staging folder: the only thing that crosses from stage to shard plan.
#
# It is also saved as `tasks/NNNNNN.json`, for the progress line and for people who look at a failed run.


NO_TASK = -1
"""The task of records that came from none, in a user's own pipeline; their attempt is then what names them."""

NO_ENTRY = -1
"""The source entry of such records, if they count towards none."""


@dataclass(frozen=True, slots=True)
class RejectFile:
    """The reject lines of a task: a file relative to the staging folder, its lines, and how many have each code."""

    path: str
    records: int
    by_code: dict[str, int]


@dataclass(frozen=True, slots=True)
class TaskResult:
    """One attempt at one task: `attempt` is unique; `rows_read` is the reader's, by source entry.

    `observed` is what observers found in its rows, `spilled` their files, relative to the staging folder.
    """

    task: int
    attempt: str
    splits: dict[str, SplitParts]
    counts: tuple[EntryCounts, ...] = ()
    rows_read: dict[int, int] = field(default_factory=dict)
    rejects: RejectFile | None = None
    observed: Summaries = field(default_factory=dict)
    spilled: dict[str, str] = field(default_factory=dict)
    failures: tuple[str, ...] = ()

    @property
    def records(self) -> int:
        return sum(part.records for split in self.splits.values() for part in split.parts)

    @property
    def part_bytes(self) -> int:
        return sum(part.bytes for split in self.splits.values() for part in split.parts)

    @property
    def path(self) -> str:
        """Where the result is, relative to the staging folder."""
        return f"tasks/{self.task:06d}.json" if self.task != NO_TASK else f"tasks/bundle-{self.attempt}.json"

    def to_json(self) -> bytes:
        document = {
            "task": self.task,
            "attempt": self.attempt,
            "records": self.records,
            "bytes": self.part_bytes,
            "splits": {
                name: {"digest": f"{split.digest:032x}", "parts": [_part_to_json(part) for part in split.parts]}
                for name, split in self.splits.items()
            },
            "counts": [[c.entry, c.read, c.written, c.rejected, c.dropped] for c in self.counts],
            "rows_read": list(self.rows_read.items()),
            "rejects": self.rejects and [self.rejects.path, self.rejects.records, self.rejects.by_code],
            "observed": self.observed,
            "spilled": self.spilled,
            "failures": self.failures,
        }
        return json.dumps(document).encode() + b"\n"

    @classmethod
    def from_json(cls, data: bytes) -> TaskResult:
        document = json.loads(data)
        task = document["task"]
        return cls(
            task=task,
            attempt=document["attempt"],
            splits={
                name: SplitParts(tuple(_part_from_json(task, p) for p in split["parts"]), int(split["digest"], 16))
                for name, split in document["splits"].items()
            },
            counts=tuple(EntryCounts(*row) for row in document["counts"]),
            rows_read=dict(document["rows_read"]),
            rejects=document["rejects"] and RejectFile(*document["rejects"]),
            observed=document["observed"],
            spilled=document["spilled"],
            failures=tuple(document["failures"]),
        )


def _part_to_json(part: Part) -> dict[str, Any]:
    return {
        "number": part.number,
        "path": part.path,
        "kind": part.kind,
        "unit_bytes": part.unit_bytes,
        "cuts": list(part.cuts),
    }


def _part_from_json(task: int, document: Mapping[str, Any]) -> Part:
    cuts = CutTable.of(document["cuts"])
    return Part(**{**document, "task": task, "cuts": cuts})


# The finished tasks of a stopped run, which need not be done again.
#
#     tasks/000003.json ──▶ parts/000003-1f0c…/train-0000.part     there, of the size that was staged: of use
#     tasks/000004.json ──▶ parts/000004-77ab…/train-0000.part     missing or cut: task 4 is done again
#                           parts/000005-02c4…/train-0000.part     no result names it: an attempt that was killed
#
# A result is written when all that it names is durable, and in one step, so that it stands for its task whenever the
# run stopped. All else in the folder is made again from the results.


_RESULT_LIMIT: Final = 256 << 20
"""Bytes: cut points of `order: source` take about 25 each, 256 for each shard of a task."""

_ANY_TASK: Final = 10**9

_RESULT_NAME: Final = re.compile(r"[0-9]{6,9}\.json")
_ATTEMPT: Final = re.compile(r"[0-9a-f]{16}")

_MAY_PASS: Final = frozenset({"MISSING_FILE", "UNREADABLE"})
"""Rejects that may go away without the file changing, such as a permission error."""


def read_done_tasks(storage: Storage, staging: str, tasks: int) -> tuple[TaskResult, ...]:
    """Return the results of a run's `tasks` that are in its staging folder, in order.

    Where all of them are done, those of the second pass of a shuffle follow, whose numbers begin with `tasks`.
    """
    found = (_read(storage, staging, f"tasks/{name}", _ANY_TASK) for name in _results(storage, staging))
    done = sorted((result for result in found if result is not None), key=lambda result: result.task)
    first = [result for result in done if result.task < tasks]
    return tuple(done if len(first) == tasks else first)


def read_result(storage: Storage, staging: str, task: int) -> TaskResult:
    """Return the result of one task, which was found to be of use when the run was planned."""
    path = f"tasks/{task:06d}.json"
    result = _read(storage, staging, path, task + 1)
    if result is None:
        raise RunError(
            f"{staging}/{path}: was there when the run was planned; the staging folder was changed; run again"
        )
    return result


def count_results(storage: Storage, staging: str) -> int:
    """Return how many tasks have left a result, whatever it is worth."""
    return len(_results(storage, staging))


def keep_only(storage: Storage, staging: str, done: Sequence[TaskResult], kept: Collection[str] = ()) -> None:
    """Remove from a run's staging folder all but some results, their parts, and the files of the names `kept`."""
    if not done:
        storage.remove_tree(staging)
        return
    tasks = {result.path.removeprefix("tasks/") for result in done}
    attempts = {_attempt(result) for result in done}
    for folder, wanted in (("/tasks", tasks), ("/parts", attempts), ("", {"tasks", "parts", *kept})):
        for name in storage.list(f"{staging}{folder}"):
            if name not in wanted:
                storage.remove_any(f"{staging}{folder}/{name}")


def _results(storage: Storage, staging: str) -> list[str]:
    return [name for name in storage.list(f"{staging}/tasks") if _RESULT_NAME.fullmatch(name)]


def _attempt(result: TaskResult) -> str:
    return f"{result.task:06d}-{result.attempt}"


def _read(storage: Storage, staging: str, path: str, tasks: int) -> TaskResult | None:
    try:
        result = TaskResult.from_json(read_file(storage.root, f"{staging}/{path}", _RESULT_LIMIT))
        stands = result.path == path and result.task < tasks and _stands(storage, staging, result)
    except (DamageError, ValueError, TypeError, KeyError, AttributeError, IndexError, RecursionError):
        return None  # another release wrote it, or a disk that lost it: the task is done again
    return result if stands else None


def _stands(storage: Storage, staging: str, result: TaskResult) -> bool:
    """Return whether a finished task can be reused: none of its rejects may go away, and all files it lists exist."""
    if result.failures or _ATTEMPT.fullmatch(result.attempt) is None:
        return False
    folder = f"parts/{_attempt(result)}"
    if result.rejects is not None:
        if result.rejects.path != f"{folder}/rejects.jsonl" or _MAY_PASS.intersection(result.rejects.by_code):
            return False
        check_regular(storage.root, f"{staging}/{result.rejects.path}")
    for name, split in result.splits.items():
        if not is_split_name(name) and not is_set_aside(name):
            return False
        for number, part in enumerate(split.parts):
            if (part.number, part.path) != (number, f"{folder}/{name}-{number:04d}.part"):
                return False
            check_regular(storage.root, f"{staging}/{part.path}")
            if storage.size(f"{staging}/{part.path}") != part.bytes:
                return False
    return True


# One attempt at a task.


_FIX: Final = (
    "a step before it left out, repeated or moved batches: return each batch once (ReadRows(map=...) leaves out rows), "
    "and put no GroupByKey, Reshuffle, side input or state between reading and writing"
)


class TaskStager:
    """One attempt at one task. `staging` is the run's staging folder, relative to the dataset's.

    Feed it the task's blocks in order, then `finish`; call `abandon` instead if anything was raised. Where this process
    does not see the launcher's folder, making one is an `UnseenError`.
    """

    def __init__(self, storage: Storage, staging: str, task: int | None, settings: StageSettings) -> None:
        check_shared(storage, settings.proof)
        self._storage = storage
        self._staging = staging
        self._task = NO_TASK if task is None else task
        self._attempt = uuid.uuid4().hex[:16]
        name = "bundle" if task is None else f"{task:06d}"
        self._folder = f"parts/{name}-{self._attempt}"
        self._settings = settings
        self._splits: dict[str, SplitStager | SplitSpill] = {}
        self._spill = None if settings.shuffle is None else TaskSpill(self._task, settings.shuffle)
        self._blocks = 0
        self._counts: dict[int, EntryCounts] = {}
        self._observed: Summaries = {}
        self._spilled: dict[str, PartFile] = {}
        self._rejects: PartFile | None = None
        self._rejected = 0
        self._codes: Counter[str] = Counter()
        self._failures: tuple[str, ...] = ()

    @property
    def has_failed(self) -> bool:
        """Whether the run will be refused: no more blocks of the task are needed."""
        return bool(self._failures)

    def add(self, block: Block) -> None:
        if block.task is not None and (block.task, block.ordinal) != (self._task, self._blocks):
            raise RuntimeError(
                f"not fused: block {block.ordinal} of task {block.task} came where block {self._blocks} of task "
                f"{self._task} was due; {_FIX}"
            )
        self._blocks += 1
        self._failures += block.failures
        if self._failures:  # the run will be refused
            return
        for split, frames in block.splits.items():
            self.add_frames(split, frames)
        for counts in block.counts:
            self._count(counts)
        self._observed = merged(self._observed, block.observed, self._settings.observers)
        for name, data in block.spilled.items():
            if name not in self._spilled:
                self._spilled[name], _ = self._create(f"{name}.observed")
            self._spilled[name].write([memoryview(data)])
        if block.rejects:
            self._add_rejects(block.rejects)

    def add_frames(self, split: str, frames: Frames) -> None:
        if not frames.records:
            return
        stager = self._splits.get(split)
        if stager is None:
            if not is_split_name(split) and not (self._settings.sets_aside and is_set_aside(split)):
                raise UsageError(
                    f'"{printable(split)}" cannot name a split: use [a-z][a-z0-9_]*, at most 64 characters'
                )
            if len(self._splits) == self._settings.most_splits:
                self._failures += (TOO_MANY_SPLITS,)
                return
            stager = self._splits[split] = self._split_stager(split)
        stager.add(frames)

    def _split_stager(self, split: str) -> SplitStager | SplitSpill:
        create_part, staging, folder = self._storage.create_part, self._staging, self._folder

        def create(number: int, suffix: str = PART) -> tuple[PartFile, str]:
            # without `self`, which would keep all that was counted until Python searches for cycles
            path = f"{folder}/{split}-{number:04d}{suffix}"
            return create_part(f"{staging}/{path}"), path

        if self._spill is not None and not is_set_aside(split):
            return self._spill.split(create)
        return SplitStager(self._task, self._settings, create)

    def add_plain(self, split: str, frames: Frames) -> None:
        """Stage records that count as rows of no source entry."""
        self.add_frames(split, frames)
        self._count(EntryCounts(NO_ENTRY, read=frames.records, written=frames.records))

    def finish(self, end: TaskEnd | None = None) -> TaskResult:
        """Close all parts; return what was staged when it is durable, and has been left as `tasks/NNNNNN.json`."""
        if end is not None and (end.task, end.batches) != (self._task, self._blocks):
            raise RuntimeError(
                f"not fused: task {end.task} ended after {end.batches} blocks, {self._blocks} of task {self._task} "
                f"came; {_FIX}"
            )
        for file in self._spilled.values():
            file.close()
        if self._rejects is not None:
            self._rejects.close()
        splits = {name: stager.finish() for name, stager in sorted(self._splits.items())}
        own = [file for file in (self._rejects, *self._spilled.values()) if file is not None]
        for file in own:
            file.wait()
        if splits or own:
            self._storage.sync(f"{self._staging}/{self._folder}")
        observed = sealed(self._observed, self._settings.observers)
        rejects = RejectFile(f"{self._folder}/rejects.jsonl", self._rejected, dict(sorted(self._codes.items())))
        result = TaskResult(
            task=self._task,
            attempt=self._attempt,
            splits=splits,
            counts=tuple(self._counts[entry] for entry in sorted(self._counts)),
            rows_read=dict(end.rows_read) if end else {},
            rejects=rejects if self._rejected else None,
            observed=json.loads(json.dumps(observed)),  # as a run finds it that resumes this one
            spilled={name: f"{self._folder}/{name}.observed" for name in sorted(self._spilled)},
            failures=(*dict.fromkeys(self._failures), *(end.failures if end else ())),
        )
        self._storage.replace(f"{self._staging}/{result.path}", result.to_json())
        return result

    def abandon(self) -> None:
        """Close all files of a failed attempt; they stay where they are, and are ignored."""
        for stager in self._splits.values():
            stager.abandon()
        for file in (self._rejects, *self._spilled.values()):
            if file is not None:
                file.abandon()

    def _create(self, name: str) -> tuple[PartFile, str]:
        path = f"{self._folder}/{name}"
        return self._storage.create_part(f"{self._staging}/{path}"), path

    def _add_rejects(self, rejects: tuple[Reject, ...]) -> None:
        if self._rejects is None:
            self._rejects, _ = self._create("rejects.jsonl")
        in_append = self._settings.in_append
        lines = [reject.to_json_line(in_append=in_append) + "\n" for reject in rejects]
        self._rejects.write([memoryview("".join(lines).encode("utf-8", "backslashreplace"))])
        self._rejected += len(rejects)
        for reject in rejects:
            self._codes.update({error.code for error in reject.errors})

    def _count(self, counts: EntryCounts) -> None:
        known = self._counts.get(counts.entry)
        self._counts[counts.entry] = known.plus(counts) if known else counts


# Parts of a task that are written once more, after it was staged: without some records, or in another split.
#
# They are in a folder of their own, and the parts that were staged stay. So a plan that is made again, after a crash or
# because an engine repeats the step, is the same.


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
