"""Count the values of records on their way to the shards: an observer, whose summary is a `Tally`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..format.flow.blocks import FeatureColumn
from ..format.flow.observers import Observation, Observer, Seen
from .figures import Level
from .hashes import keys_of_rows
from .tally import Tally

STATISTICS: Final = "statistics"

I64 = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class CountValues(Observer):
    """Count the values of all features, by split; the shard plan takes the summary, so that `checks` states nothing."""

    name = STATISTICS

    level: Level = "basic"

    @property
    def takes_sparse(self) -> bool:
        """Whether columns may be sparse: a sample of rows needs them whole."""
        return self.level == "basic"

    def observe(self, seen: Seen) -> Observation:
        tally = Tally(self.level)
        batch = "task {} batch {}".format(*seen.number)
        for run in seen.runs:
            keys = keys_of_rows(batch, run.rows) if self.level == "full" else None
            for code, columns, some in _by_split(seen.splits[run.rows], run.columns):
                chosen = keys if keys is None or some is None else keys[some]
                rows = len(run.rows) if some is None else len(some)
                tally.add(seen.names[code], seen.schema, columns, rows, chosen)
        return Observation(tally)

    def merge(self, one: Any, other: Any) -> Tally:
        """Add the other tally to the first one, or to a new one if the first is JSON."""
        total = self.tally(one)
        total.merge(self.tally(other))
        return total

    def sealed(self, summary: Any) -> Any:
        return self.tally(summary).to_json()

    def tally(self, summary: Tally | Mapping[str, Any]) -> Tally:
        return summary if isinstance(summary, Tally) else Tally.from_json(summary, self.level)


def _by_split(
    codes: I64, columns: Sequence[FeatureColumn]
) -> Iterator[tuple[int, Sequence[FeatureColumn], I64 | None]]:
    """Yield the code of each split that rows are in, the values of these rows, and which they are, None for all."""
    counts = np.bincount(codes) if len(codes) else codes
    there = np.flatnonzero(counts).tolist()
    if len(there) == 1:
        yield there[0], columns, None
        return
    order = np.argsort(codes, kind="stable")
    ends = np.cumsum(counts)
    for code in there:
        rows = order[ends[code] - counts[code] : ends[code]]
        yield code, [_rows_of(column, rows) for column in columns], rows


def _rows_of(column: FeatureColumn, rows: I64) -> FeatureColumn:
    if column.rows is not None:
        taken = np.flatnonzero(np.isin(column.rows, rows))
        found = _rows_of(replace(column, rows=None), taken)
        return replace(found, rows=np.searchsorted(rows, column.rows[taken]))
    present = None if column.present is None else column.present[rows]
    if column.offsets is None:
        return replace(column, values=column.values[rows], present=present)
    lengths = np.diff(column.offsets)[rows]
    offsets = np.zeros(len(rows) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    positions = np.arange(offsets[-1]) + np.repeat(column.offsets[:-1][rows] - offsets[:-1], lengths)
    return replace(column, values=column.values[positions], offsets=offsets, present=present)
