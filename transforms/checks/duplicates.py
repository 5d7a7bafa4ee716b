"""Duplicates: records that are alike, in all of them or in some columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np

from ..format.flow.observers import Finding, LeftOut, Observation, Seen
from .groups import DIGEST, Groups, digests_of, find_groups
from .spilled import SpilledRows, encoded, more_of, spilled_of, table_of, tables_of

DUPLICATES: Final = "duplicates"


@dataclass(frozen=True, slots=True)
class Duplicates(SpilledRows):
    """Find records that are alike in `columns` (none: in everything), and leave out all but the first with `drop`.

    Two nulls are alike. A nested column stands for all of its features.
    """

    columns: tuple[str, ...] = ()
    action: Literal["report", "drop"] = "report"

    name = DUPLICATES

    def observe(self, seen: Seen) -> Observation:
        rows = seen.written()
        if not len(rows):
            return spilled_of(seen, rows, np.empty(0, DIGEST))
        if self.columns:
            return spilled_of(seen, rows, digests_of(encoded(seen, rows, self.columns)))
        # records are by split; a stable sort tells the rows of each
        frames = [seen.frames[split] for split in seen.names if split in seen.frames]
        digests = np.empty(len(rows), DIGEST)
        digests[np.argsort(seen.splits[rows], kind="stable")] = np.concatenate([digests_of(one) for one in frames])
        return spilled_of(seen, rows, digests)

    def finish(self, summary: Any, spilled: Sequence[bytes]) -> Finding:
        names, rows = ([], 0) if summary is None else (list(summary["splits"]), summary["rows"])
        found = find_groups(tables_of(spilled, names), rows, mark=self.action == "drop")
        check: dict[str, Any] = {"columns": list(self.columns), "records": found.repeats, "groups": found.groups}
        if self.action == "report":
            return Finding(check | more_of(found, names, spilled))
        check |= {"action": "drop"} | more_of(found, names, spilled)
        return Finding(check, lambda number: _left_out(spilled[number], found, number, names))


def _left_out(data: bytes, found: Groups, number: int, names: list[str]) -> LeftOut | None:
    if number not in found.gone:
        return None
    table = table_of(data, names)
    gone = np.unpackbits(found.gone[number], count=len(table), bitorder="little").astype(bool)
    records = {}
    for code in np.unique(table["split"][gone]).tolist():
        records[names[code]] = np.flatnonzero(gone[table["split"] == code])
    entries, counts = np.unique(table["entry"][gone], return_counts=True)
    return LeftOut(records, dict(zip(entries.tolist(), counts.tolist(), strict=True)))
