"""Exact fractions by counts: within one record of each, or with a `key` as near as whole groups allow.

    split: {fractions: {train: 0.8, val: 0.2}, by: exact, stratify: kind}

Only written records count. A task deals them as they come, and sets a few of each class aside; the shard plan deals
these to make up for what each split lacks.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ...errors import RunError, SchemaError, UsageError
from ..batches.arrow_memory import I64
from ..batches.summaries import DEALT
from ..manifest.naming import set_aside
from ..schema.column_types import column_type
from ..schema.schema import Schema
from ..tfrecord.framing import split_mix
from ..wording.printable import printable
from .by_row import FractionSplits, binary_values, hash_numbers, without_key
from .splitter import Assigned, Candidates, Settlement, Settling, present_rows, scalar_feature

_KEY: Final = "split.stratify"
_MOST_CLASSES: Final = 10_000
"""Classes of a task: each has records that are set aside, and counts in the task's result."""

_NULL: Final = "null"
"""The class of rows without a value; those of values begin with a sign."""


@dataclass(frozen=True, slots=True)
class ExactSplits(FractionSplits, Settling):
    """`fractions` of the records, of each value of the feature `stratify` if it is given; no value is a class too."""

    stratify: str | None = None

    in_order = True

    @property
    def reads(self) -> tuple[str, ...]:
        return () if self.stratify is None else (self.stratify,)

    def check(self, schema: Schema) -> None:
        """A class is a scalar, and not a float."""
        if self.stratify is None:
            return
        feature = scalar_feature(schema, self.stratify, _KEY)
        if feature.kind == "float" or column_type(feature).own_limit:
            raise SchemaError(
                f'{_KEY}: "{printable(self.stratify)}" holds {feature.type}, whose values are no classes; choose a '
                f"column of text, whole numbers or bools"
            )

    def assign(self, given: Candidates) -> Assigned:
        """The first records of each class are set aside. Raises `RunError` where there are too many classes."""
        counts: dict[str, int] = given.memory.setdefault("counts", {})
        classes, which = _classes(given, self.stratify)
        places = _places(which, np.array([counts.get(one, 0) for one in classes], np.int64))
        aside = aside_of(len(self.names))
        order = self._order(given, int(places.max(initial=0)) + 1 - aside)
        later = places >= aside
        codes = np.full(given.rows, len(self.names), np.int64)
        codes[later] = order[places[later] - aside]
        table = np.zeros((len(classes), len(self.names) + 1), np.int64)
        np.add.at(table, (which, codes), 1)
        found = {}
        for one, row in zip(classes, table.tolist(), strict=True):
            counts[one] = counts.get(one, 0) + sum(row)
            found[one] = [row[-1], *row[:-1]]
        if len(counts) > _MOST_CLASSES:
            raise RunError(
                f'{_KEY}: "{printable(self.stratify or "")}" has more than {_MOST_CLASSES:,} values; choose a column '
                f"with fewer"
            )
        return Assigned((*self.names, set_aside(0)), codes, {DEALT: found} if found else {})

    def settle(
        self,
        records: Mapping[str, int],  # noqa: ARG002
        observed: Any,
        look: Callable[[str], Iterable[Candidates]],  # noqa: ARG002
    ) -> Settlement:
        counts: Mapping[str, list[int]] = observed or {}
        classes = sorted(counts)
        lacks = lacking(self.fractions, [(counts[one][0], counts[one][1:]) for one in classes])
        splits = {one: spread(lack, seed) for seed, (one, lack) in enumerate(zip(classes, lacks, strict=True))}
        done = dict.fromkeys(classes, 0)

        def deal(given: Candidates) -> Assigned:
            found, which = _classes(given, self.stratify)
            starts = np.array([done[one] for one in found], np.int64)
            places = _places(which, starts)
            codes = np.empty(given.rows, np.int64)
            for number, one in enumerate(found):
                rows = np.flatnonzero(which == number)
                codes[rows] = splits[one][places[rows]]
                done[one] += len(rows)
            return Assigned(self.names, codes)

        return Settlement((), (set_aside(0),), deal)

    def _order(self, given: Candidates, count: int) -> I64:
        """Return the splits of the first records that are dealt in a task, and of some more."""
        known: I64 | None = given.memory.get("order")
        if known is None or len(known) < count:
            known = given.memory["order"] = dealt(self.fractions, max(2 * count, 1024), given.task)
        return known


def _classes(given: Candidates, column: str | None) -> tuple[list[str], I64]:
    """Return the classes that occur, and which of them each row is of."""
    if column is None:
        return [""] if given.rows else [], np.zeros(given.rows, np.int64)
    values, rows = given.columns[column], given.rows
    there = present_rows(values, rows)
    if values.kind == "int64":
        found, codes = np.unique(values.values[there], return_inverse=True)
        names = [f"={number}" for number in found.tolist()]
    else:
        encoded = binary_values(values, rows).cast(pa.large_binary()).filter(pa.array(there)).dictionary_encode()
        codes = pc.cast(encoded.indices, pa.int64()).to_numpy(zero_copy_only=False)
        names = [f"={value.decode('utf-8', 'surrogateescape')}" for value in encoded.dictionary.to_pylist()]
    which = np.full(rows, len(names), np.int64)
    which[there] = codes
    return names if there.all() else [*names, _NULL], which


def _places(which: I64, starts: I64) -> I64:
    """Return for each row its number within its class, counted from where the class starts."""
    order = np.argsort(which, kind="stable")
    sizes = np.bincount(which, minlength=len(starts))
    firsts = np.cumsum(sizes) - sizes
    places = np.empty(len(which), np.int64)
    places[order] = np.arange(len(which)) - np.repeat(firsts - starts, sizes)
    return places


# With a key all rows of one value of a column are in one split:
#
#     split: {fractions: {train: 0.8, val: 0.2}, by: exact, key: user}
#
# Keys are in the order of their hash numbers, and each split gets those between two bounds. By a hash alone the
# bounds are at the fractions of all numbers; here they are at the fractions of the records, known when all are
# counted. So tasks set all records aside, in streams by spans of numbers: narrow ones around the bounds of the hash,
# where the bounds will be as a rule. A stream that a bound is in is dealt record by record, and the others go to a
# split whole:
#
#     numbers   0 ────────── aside.0 ──────────┤ 1 │2│3│4 │ 5  ├──── aside.6 ──── 2**64
#     bound                                       ↑ here: aside.1 is dealt, 0 is train, 2 to 6 are val


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


# Deal records to splits by counts: integers in, integers out.
#
# Each task deals the records of a class as they come, and sets the first `aside_of(splits)` of them aside. The others
# go in D'Hondt's order: split s gets its i-th record at the place of i / f_s among those of all splits. After n
# records split s then has at most f_s * (n + splits - 1). Within each block of `BLOCK` records the order is random,
# so a task may be `BLOCK - 1` records ahead. Those that it set aside are enough to make up for both: of N records of
# a class, in any number of tasks, no split was dealt more than f_s * N. So the shard plan, which knows N, gives each
# split what it lacks:
#
#     task 0   │ aside │ train train val train │ train train ...
#     task 1   │ aside │ train val train train │ ...               N and what was dealt ──▶ what each split lacks
#     task 2   │ as                                                the records set aside ──▶ dealt to make up for it


BLOCK: Final = 4
"""Records that are dealt in a random order: sorted data, or every fourth row alike, do not favour a split."""

_GOLDEN: Final = np.uint64(0x9E3779B97F4A7C15)


def aside_of(splits: int) -> int:
    """Return how many records of a class a task sets aside: `splits - 1 + BLOCK - 1`, and one for rounded numbers."""
    return splits + BLOCK - 1


def dealt(fractions: Sequence[Fraction], count: int, seed: int) -> I64:
    """Return the split of each of the first `count` records that are dealt; `seed` says the order in each block.

    More records have the same splits at their beginning.
    """
    blocks = -(-count // BLOCK)
    order = _dhondt(fractions, blocks * BLOCK).reshape(blocks, BLOCK)
    keys = mixed(np.arange(blocks * BLOCK, dtype=np.uint64), seed).reshape(blocks, BLOCK)
    return np.take_along_axis(order, np.argsort(keys, axis=1, kind="stable"), 1).reshape(-1)[:count]


def _dhondt(fractions: Sequence[Fraction], count: int) -> I64:
    """Return the splits of `count` records by D'Hondt; of two splits of one place the first comes first."""
    shares = [float(fraction) for fraction in fractions]
    most = [int(share * (count + len(shares))) + 1 for share in shares]
    places = np.concatenate([np.arange(1, n + 1) / share for n, share in zip(most, shares, strict=True)])
    splits = np.repeat(np.arange(len(shares)), most)
    return splits[np.argsort(places, kind="stable")[:count]]


def mixed(numbers: npt.NDArray[np.uint64], seed: int) -> npt.NDArray[np.uint64]:
    """Return numbers that look random, one for each (SplitMix64): the same on every machine."""
    with np.errstate(over="ignore"):
        return split_mix((numbers + np.uint64(1)) * _GOLDEN + np.uint64(seed) * np.uint64(0xD1B54A32D192ED03))


def lacking(fractions: Sequence[Fraction], classes: Iterable[tuple[int, Sequence[int]]]) -> list[list[int]]:
    """Return what each split lacks of each class: (records set aside, records dealt to each split) are given.

    A class of N records gets f_s * N in split s, rounded down or up, and the sums over all classes stay near their
    shares: what one class rounds up, another rounds down.
    """
    owed = [Fraction(0)] * len(fractions)
    found = []
    for aside, had in classes:
        total = aside + sum(had)
        exact = [fraction * total for fraction in fractions]
        whole = [max(int(share), have) for share, have in zip(exact, had, strict=True)]
        owed = [debt + share - count for debt, share, count in zip(owed, exact, whole, strict=True)]
        room = [split for split, share in enumerate(exact) if whole[split] < share]
        first = sorted(room, key=lambda split: (-owed[split], split))[: max(total - sum(whole), 0)]
        for split in first:
            whole[split] += 1
            owed[split] -= 1
        found.append([count - have for count, have in zip(whole, had, strict=True)])
    return found


def spread(lacks: Sequence[int], seed: int) -> I64:
    """Return the split of each record of a class that was set aside, in a random order."""
    splits = np.repeat(np.arange(len(lacks)), lacks)
    return splits[np.argsort(mixed(np.arange(len(splits), dtype=np.uint64), seed), kind="stable")]
