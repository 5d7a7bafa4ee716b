"""What one attempt at a task left in the staging folder: the only thing that crosses from stage to shard plan.

It is also saved as `tasks/NNNNNN.json`, for the progress line and for people who look at a failed run.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ...errors import DamageError, RunError
from ...format.batches.observers import Summaries
from ...format.batches.rows import EntryCounts
from ...format.manifest.naming import is_set_aside, is_split_name
from ...format.splits.shard_plan import CutTable, Part, SplitParts
from ..storage.contract import Storage
from ..storage.manifest_files import check_regular, read_file

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
