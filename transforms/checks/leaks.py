"""Leaks: values of a column that are in several splits, like a user by whom a model is both trained and judged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ..format.flow.observers import Finding, Observation, Seen
from .groups import DIGEST, Table, digests_of, digests_of_values, find_groups
from .spilled import SpilledRows, encoded, features_of, more_of, spilled_of, tables_of

LEAKS: Final = "leaks"


@dataclass(frozen=True, slots=True)
class Leaks(SpilledRows):
    """Find values of some columns, taken together, that are in several splits; where all are null there is none."""

    columns: tuple[str, ...]

    name = LEAKS

    def observe(self, seen: Seen) -> Observation:
        rows = seen.written()
        names = {name for column in self.columns for name in features_of(seen.schema, column)}
        there = np.zeros(seen.batch.num_rows, bool)
        for name in names & set(seen.batch.schema.names):
            there |= np.asarray(seen.batch[name].is_valid())
        digests = digests_of(encoded(seen, rows, self.columns)) if len(rows) else np.empty(0, DIGEST)
        nulls = np.flatnonzero(~there[rows])
        if len(nulls):  # alike to none: their place stands for a value
            places = [repr(seen.origin.number(row)).encode() for row in rows[nulls].tolist()]
            digests[nulls] = digests_of_values(places)
        found = spilled_of(seen, rows, digests)
        return Observation(found.summary | {"values": len(rows) - len(nulls)}, found.spilled)

    def merge(self, one: Any, other: Any) -> Any:
        return SpilledRows.merge(self, one, other) | {"values": one["values"] + other["values"]}

    def finish(self, summary: Any, spilled: Sequence[bytes]) -> Finding:
        """Return a finding whose `records` have values that are in several splits, of which there are `groups`."""
        names, rows = ([], 0) if summary is None else (list(summary["splits"]), summary["rows"])
        splits = set[int]()

        def tables() -> Iterator[Table]:
            for table in tables_of(spilled, names):
                splits.update(np.unique(table["split"]).tolist())
                yield table

        found = find_groups(tables(), rows, across=True)
        check: dict[str, Any] = {"columns": list(self.columns)}
        check |= {"records": found.repeats + found.groups, "groups": found.groups}
        if not summary or not summary["values"] or len(splits) < 2:
            check["not_compared"] = "one split" if len(splits) == 1 else "no value"
        return Finding(check | more_of(found, names, spilled))
