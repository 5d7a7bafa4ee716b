"""The findings of `verify`: each damage with its place, and the report of them all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Finding:
    """One damage: the file (relative to the dataset's folder, printable), where in it, and what is wrong.

    `record` counts from 1; `offset` is the byte at which that record begins, from 0 (of a compressed file: of its
    contents). Both are None where the damage is not that of one record.
    """

    file: str
    reason: str
    record: int | None = None
    offset: int | None = None

    def __str__(self) -> str:
        if self.record is None:
            return f"{self.file}: {self.reason}"
        return f"{self.file} record {self.record} at byte {self.offset}: {self.reason}"

    def to_json(self) -> dict[str, Any]:
        return {"file": self.file, "record": self.record, "offset": self.offset, "reason": self.reason}


@dataclass(frozen=True, slots=True)
class Report:
    """The result of `verify`. `notes` are worth knowing and no damage. `bytes` are those of shards.

    `generation` is None for a TFRecord file that belongs to no dataset. After a `quick` look only sizes are known, and
    `records` are those that the manifest states.
    """

    path: str
    generation: int | None
    shards: int
    records: int
    bytes: int
    findings: tuple[Finding, ...]
    notes: tuple[str, ...] = ()
    quick: bool = False

    @property
    def ok(self) -> bool:
        return not self.findings

    def to_json(self) -> dict[str, Any]:
        return {
            "path": self.path,
            "generation": self.generation,
            "ok": self.ok,
            "quick": self.quick,
            "shards": self.shards,
            "records": self.records,
            "bytes": self.bytes,
            "findings": [finding.to_json() for finding in self.findings],
            "notes": list(self.notes),
        }
