"""What one attempt at a task left in the staging folder: the only thing that crosses from stage to shard plan.

It is also saved as `tasks/NNNNNN.json`, for the progress line and for people who look at a failed run.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...format.flow.blocks import EntryCounts
from ...format.flow.observers import Summaries
from ..shard_plan.shard_plan import CutTable, Part, SplitParts

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
