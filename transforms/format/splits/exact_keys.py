"""Fractions of the records by counts, where all rows of one value of a column are in one split.

    split: {fractions: {train: 0.8, val: 0.2}, by: exact, key: user}

Keys are in the order of their hash numbers, and each split gets those between two bounds. By a hash alone the bounds
are at the fractions of all numbers; here they are at the fractions of the records, known when all are counted.
So tasks set all records aside, in streams by spans of numbers: narrow ones around the bounds of the hash, where the
bounds will be as a rule. A stream that a bound is in is dealt record by record, and the others go to a split whole:

    numbers   0 ────────── aside.0 ──────────┤ 1 │2│3│4 │ 5  ├──── aside.6 ──── 2**64
    bound                                       ↑ here: aside.1 is dealt, 0 is train, 2 to 6 are val
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ...errors import UsageError
from ..buffers.views import I64
from ..manifest.naming import set_aside
from ..schema.schema import Schema
from .by_hash import FractionSplits, hash_numbers, without_key
from .splitter import Assigned, Candidates, Settlement, Settling, scalar_feature

MOST_EXACT_SPLITS: Final = 16
"""The most splits: each of their bounds takes seven streams, which are files that a task keeps open."""

_WIDTHS: Final = (Fraction(1, 512), Fraction(1, 128), Fraction(1, 32))
"""How far from a bound of the hash spans end. The first holds the bound where there are some 60,000 keys of equal size,
the last from some 300 on. With fewer keys a wide stream is dealt."""

_ALL: Final = 1 << 64


@dataclass(frozen=True, slots=True)
class ExactKeySplits(FractionSplits, Settling):
    """`fractions` of the records, with all rows of one value of the feature `key` in one split.

    A row without the key is a group of its own, or with rows of the same record.
    """

    key: str

    in_order = False  # the stream of a row depends on its key alone

    def __post_init__(self) -> None:
        FractionSplits.__post_init__(self)  # super() is another class here, by slots
        if len(self.names) > MOST_EXACT_SPLITS:
            raise UsageError(
                f"split: {len(self.names)} splits are more than {MOST_EXACT_SPLITS}, the most with by: exact and a key"
            )

    @property
    def reads(self) -> tuple[str, ...]:
        return (self.key,)

    def check(self, schema: Schema) -> None:
        scalar_feature(schema, self.key, "split.key")

    def assign(self, given: Candidates) -> Assigned:
        edges = self._edges()
        streams = tuple(set_aside(number) for number in range(len(edges) + 1))
        codes = np.searchsorted(edges, self._numbers(given), "right").astype(np.int64)
        return Assigned(streams, codes, without_key(given, self.key))

    def settle(
        self,
        records: Mapping[str, int],
        observed: Any,  # noqa: ARG002
        look: Callable[[str], Iterable[Candidates]],
    ) -> Settlement:
        """Put each bound after the group whose end is nearest to its fraction of all records."""
        edges = self._edges()
        counts = [records.get(set_aside(number), 0) for number in range(len(edges) + 1)]
        ends = list(accumulate(counts))
        total = ends[-1]
        bounds: list[int] = []
        dealt: dict[str, _Groups] = {}
        for share in list(accumulate(self.fractions))[:-1]:
            wanted = share * total
            stream = bisect_left(ends, wanted)
            start = ends[stream] - counts[stream]
            low, high = int(edges[stream - 1]) if stream else 0, int(edges[stream]) if stream < len(edges) else _ALL
            if wanted in (start, ends[stream]):
                bounds.append(low if wanted == start else high)
                continue
            name = set_aside(stream)
            if name not in dealt:
                dealt[name] = _Groups.of(map(self._numbers, look(name)))
            bounds.append(dealt[name].nearest(wanted - start, low, high))
        lows = [0, *map(int, edges)]
        whole = tuple(
            (set_aside(number), self.names[bisect_right(bounds, low)])
            for number, low in enumerate(lows)
            if set_aside(number) not in dealt
        )
        inner = np.array([bound for bound in bounds if bound < _ALL], np.uint64)

        def deal(given: Candidates) -> Assigned:
            return Assigned(self.names, np.searchsorted(inner, self._numbers(given), "right").astype(np.int64))

        return Settlement(whole, tuple(dealt), deal)

    def _numbers(self, given: Candidates) -> npt.NDArray[np.uint64]:
        return hash_numbers(given.columns[self.key], given.rows, given.payloads)

    def _edges(self) -> npt.NDArray[np.uint64]:
        """Return where the streams end: around each bound, and not beyond the middle between two bounds."""
        sums = [Fraction(0), *accumulate(self.fractions)]
        edges = set()
        for below, bound, above in zip(sums, sums[1:], sums[2:], strict=False):
            edges.add(bound)
            for width in _WIDTHS:
                edges |= {max(bound - width, (below + bound) / 2), min(bound + width, (bound + above) / 2)}
        return np.array(sorted({int(edge * _ALL) for edge in edges}), np.uint64)


@dataclass(frozen=True, slots=True, eq=False)
class _Groups:
    """The numbers of the keys of a stream, sorted, and how many records are before each, and in all."""

    numbers: npt.NDArray[np.uint64]
    before: I64

    @classmethod
    def of(cls, batches: Iterable[npt.NDArray[np.uint64]]) -> _Groups:
        numbers, sizes = np.unique(np.concatenate([np.empty(0, np.uint64), *batches]), return_counts=True)
        return cls(numbers, np.append(0, np.cumsum(sizes)))

    def nearest(self, wanted: Fraction, low: int, high: int) -> int:
        """Return the bound with nearly `wanted` records before it; `low` and `high` are those of the stream."""
        above = int(np.searchsorted(self.before, float(wanted)))
        places = (at for at in (above - 1, above) if 0 <= at < len(self.before))
        near = min(places, key=lambda at: abs(int(self.before[at]) - wanted))
        if near == 0:
            return low
        return high if near == len(self.numbers) else int(self.numbers[near])
