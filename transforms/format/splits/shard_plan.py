"""Plan which pieces make a task, and which bytes of which parts make a shard: integers in, integers out.

A unit is what cannot be divided: a framed record, or a gzip member. S is the shard size, u the largest unit of at most
S bytes, or S/256 where that is more. A part that was closed because it was full becomes a shard as it is. What tasks
had left over, their tails, are pooled in task order and cut again at cut points, which are at most u apart:

    task 0 │ full │ full │ tail ┐
    task 1 │ full │ tail ┐      │              pool, while it is over 2S - u:   ├── at most S ──┤ rest
    task 2 │ full │ full │ tail ┘ = pool ──▶   what is left, over S:            ├── half ──┤── half ──┤
                                               what is left, up to S:           ├── one shard ──┤

Cut at the last cut point up to S, a shard is larger than S - u. If a rest between S and 2S - u is cut at the cut point
nearest its middle, both halves are at most (2S - u)/2 + u/2 = S, and at least (S - u)/2. A pool smaller than that
takes in the last full part, if there is one. So in a split without a unit over S: no shard is larger than S; all but
the last two pooled ones are larger than S - u; if the split holds at least S - u, none is smaller than (S - u)/2.

A unit over S is in a part, and a shard, of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final, Literal, NamedTuple, overload

import numpy as np
import numpy.typing as npt

MIN_TASK_BYTES: Final = 8 << 20
"""A task of a small conversion has at least 8 MiB of output: below that, starting it costs more than it saves."""

MOST_SHARDS: Final = 8
"""The most shards that a task fills, so that a large output has many tasks."""

SMALL_TASKS: Final = 16
"""A conversion of less than 8 shards is cut into 16 tasks at most, so that a few workers have even loads."""


def shards_of_a_task(output: int, shard_size: int, most: int = MOST_SHARDS) -> int:
    """Return how many shards a task should fill, of so many bytes of output: a 128th of all, and at most `most`."""
    return min(max(round(output / (128 * shard_size)), 1), most)


def plan_tasks(
    outputs: Sequence[int] | npt.NDArray[np.int64],
    shard_size: int,
    most_shards: int = MOST_SHARDS,
    at_least: int | None = None,
) -> list[range]:
    """Group pieces, whose expected bytes of output are given, into tasks: ranges of piece indices, in order.

    From 8 shards of output on, a task aims at 1.03 m shards with m = clamp(round(output / 128 shards), 1, most_shards);
    below that at a sixteenth of the output and `at_least` so many bytes, by default 8 MiB. The number of tasks is
    rounded down.

    >>> plan_tasks([10 << 20] * 4, 128 << 20)
    [range(0, 1), range(1, 2), range(2, 3), range(3, 4)]
    >>> plan_tasks([1 << 20] * 4, 128 << 20)
    [range(0, 4)]
    """
    before = np.cumsum(np.asarray(outputs, np.int64))
    if not len(before):
        return []
    total = int(before[-1])
    if total >= 8 * shard_size:
        goal = shard_size * shards_of_a_task(total, shard_size, most_shards) * 103 // 100
    else:
        goal = max(total // SMALL_TASKS, MIN_TASK_BYTES if at_least is None else at_least)
    count = max(total // goal, 1)
    # Task k begins with the first piece that has at least k / count of the output before it; for k = count that are
    # pieces at the end that give nothing.
    shares = np.array([-(-k * total // count) for k in range(1, count + 1) if total], np.int64)
    starts = np.unique(np.append(0, 1 + np.searchsorted(before, shares)))
    bounds = [*starts[starts < len(before)].tolist(), len(before)]
    return [range(start, stop) for start, stop in pairwise(bounds)]


CUTS_PER_SHARD: Final = 256
"""Cut points are S / 256 apart: finer would not make shards more even than 0.4 %, and costs memory for each."""

PartKind = Literal["full", "tail", "oversize", "spilled"]


class CutPoint(NamedTuple):
    """A place where a part may be cut: the bytes and records before it, and the CRC32C of those bytes."""

    offset: int
    records: int
    crc: int


class CutTable(Sequence[CutPoint]):
    """Cut points as one table of numbers: 24 bytes each. As tuples, those of a hundred thousand shards fill 16 GB.

    >>> CutTable.of([CutPoint(10, 1, 7), CutPoint(30, 2, 9)])[-1]
    CutPoint(offset=30, records=2, crc=9)
    """

    __slots__ = ("_table",)

    def __init__(self, table: npt.NDArray[np.int64]) -> None:
        self._table = table

    @classmethod
    def of(cls, cuts: Sequence[Sequence[int]]) -> CutTable:
        """Return the table of some cut points; raise `ValueError` if they are not triples of numbers."""
        try:
            return cls(np.array(cuts, np.int64).reshape(len(cuts), 3))
        except OverflowError as error:
            raise ValueError("a cut point is beyond 2**63") from error

    @classmethod
    def from_bytes(cls, data: bytes) -> CutTable:
        return cls(np.frombuffer(data, np.int64).reshape(-1, 3))

    @property
    def offsets(self) -> npt.NDArray[np.int64]:
        return self._table[:, 0]

    def __len__(self) -> int:
        return len(self._table)

    @overload
    def __getitem__(self, index: int) -> CutPoint: ...
    @overload
    def __getitem__(self, index: slice) -> CutTable: ...
    def __getitem__(self, index: int | slice) -> CutPoint | CutTable:
        if isinstance(index, slice):
            return CutTable(self._table[index].copy())
        return CutPoint(*self._table[index].tolist())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return f"CutTable.of({list(self)})"

    def __reduce__(self) -> tuple[object, tuple[bytes]]:
        return CutTable.from_bytes, (self._table.tobytes(),)


# Cut points are chosen while a part is written, in one pass. From one cut point the next is the last unit end at most
# `gap` bytes on; if the next unit is longer than that, its end:
#
#     units  ├──┼─┼───┼──┼───────────────┼─┼──┤        cut points are at most max(gap, unit) apart, wherever they start
#     cuts   ╎      ╎    ╎               ╎    ╎        ╎ the end of the part is always one
#            ├ gap ──┤
#
# Whether a unit end is the last in reach shows only when the next one is known, which may come with the next block.


class CutChooser:
    """The cut points of one part.

    For each batch of units call `wanted`, which says at which of them the CRC is needed, then `add` each of those
    points; after the last batch, `finish`.
    """

    def __init__(self, gap: int) -> None:
        self._gap = gap
        self._cuts: list[CutPoint] = []
        self._last: CutPoint | None = None  # the newest point: a cut if the next unit ends out of reach

    def wanted(self, ends: npt.NDArray[np.int64]) -> list[int]:
        """Return the positions in `ends`, offsets in the part, of the cut points, and that of the last end."""
        reach = (self._cuts[-1].offset if self._cuts else 0) + self._gap
        if self._last is not None and int(ends[0]) > reach:
            self._cuts.append(self._last)
            reach = self._last.offset + self._gap
        self._last = None
        positions: list[int] = []
        at = 0
        while at < len(ends):
            at = max(at, int(np.searchsorted(ends, reach, side="right")) - 1)
            positions.append(at)
            reach = int(ends[at]) + self._gap
            at += 1
        return positions

    def add(self, points: list[CutPoint]) -> None:
        """Take the points that `wanted` asked for; the last of them stays open until the next batch."""
        self._cuts += points[:-1]
        self._last = points[-1]

    def finish(self) -> tuple[CutPoint, ...]:
        """Return the cut points, the end of the part last."""
        if self._last is not None:
            self._cuts.append(self._last)
            self._last = None
        return tuple(self._cuts)


@dataclass(frozen=True, slots=True)
class Part:
    """A file that one attempt at a task staged: part `number` (from 0) of (task, split).

    `path` is relative to the staging folder. `unit_bytes` is its largest unit. `cuts` end with the end of the part;
    where they are only that, the part cannot be divided.
    """

    task: int
    number: int
    path: str
    kind: PartKind
    unit_bytes: int
    cuts: Sequence[CutPoint]

    @property
    def bytes(self) -> int:
        return self.cuts[-1].offset

    @property
    def records(self) -> int:
        return self.cuts[-1].records

    @property
    def crc(self) -> int:
        return self.cuts[-1].crc


_START: Final = CutPoint(0, 0, 0)


@dataclass(frozen=True, slots=True)
class SplitParts:
    """The parts of one (task, split), in order, and the sum of the digests of their records."""

    parts: tuple[Part, ...]
    digest: int


class PartRange(NamedTuple):
    """The bytes of `part` from one of its cut points to another."""

    part: Part
    start: CutPoint
    end: CutPoint

    @property
    def is_whole(self) -> bool:
        return self.start.offset == 0 and self.end.offset == self.part.bytes


@dataclass(frozen=True, slots=True)
class PlannedShard:
    """The ranges that make one shard, in order."""

    ranges: tuple[PartRange, ...]

    @property
    def light(self) -> tuple[PartRange, ...]:
        """The ranges, of parts whose other cut points are left out: all that copying them takes."""
        return tuple(
            PartRange(replace(part, cuts=(part.cuts[-1],)), start, end) if len(part.cuts) > 1 else whole
            for whole in self.ranges
            for part, start, end in [whole]
        )

    @property
    def bytes(self) -> int:
        return sum(piece.end.offset - piece.start.offset for piece in self.ranges)

    @property
    def records(self) -> int:
        return sum(piece.end.records - piece.start.records for piece in self.ranges)


def unit_bound(parts: Iterable[Part], shard_size: int) -> int:
    """Return u: the largest unit of at most `shard_size`, or shard_size / 256 where that is more."""
    units = [part.unit_bytes for part in parts if part.kind != "oversize"]
    return max([shard_size // CUTS_PER_SHARD, *units])


def plan_shards(parts: Sequence[Part], shard_size: int, order: Literal["task", "source"]) -> list[PlannedShard]:
    """Return the shards of one split, in the order of their indices.

    `parts` may come in any order. With `order="task"`, full parts come first, in task order, then the pooled ones;
    with `order="source"` records keep the order of the source, and more bytes are copied.
    """
    ordered = sorted((part for part in parts if part.records), key=lambda part: (part.task, part.number))
    bound = unit_bound(ordered, shard_size)
    if order == "source":
        return _plan_in_source_order(ordered, shard_size, bound)
    kept = [part for part in ordered if part.kind != "tail"]
    pool = [part for part in ordered if part.kind == "tail"]
    pooled_bytes = sum(part.bytes for part in pool)
    if 0 < 2 * pooled_bytes < shard_size - bound:
        last = next((part for part in reversed(kept) if part.kind == "full"), None)
        if last is not None:
            kept.remove(last)
            pool = sorted([*pool, last], key=lambda part: (part.task, part.number))
    return [_whole(part) for part in kept] + _cut_pool(pool, shard_size, bound)


def _plan_in_source_order(ordered: Sequence[Part], shard_size: int, bound: int) -> list[PlannedShard]:
    """Pool everything; only a part that is one unit over S is between two pools."""
    shards: list[PlannedShard] = []
    pool: list[Part] = []
    for part in ordered:
        if part.kind == "oversize":
            shards += [*_cut_pool(pool, shard_size, bound), _whole(part)]
            pool = []
        else:
            pool.append(part)
    return shards + _cut_pool(pool, shard_size, bound)


def _whole(part: Part) -> PlannedShard:
    return PlannedShard((PartRange(part, _START, part.cuts[-1]),))


def _cut_pool(pool: Sequence[Part], shard_size: int, bound: int) -> list[PlannedShard]:
    """Cut the concatenation of the parts into shards, as the module's drawing shows."""
    marks, firsts = _marks(pool)
    base = int(marks[-1]) if len(marks) else 0
    shards: list[PlannedShard] = []
    start, first = 0, 0  # where the rest begins, and the first mark after it
    while first < len(marks):
        rest = base - start
        if rest > 2 * shard_size - bound:
            stop = int(np.searchsorted(marks, start + shard_size, side="right")) - 1
        elif rest > shard_size:
            stop = _nearest(marks, first, start, base)
        else:
            stop = len(marks) - 1
        shards.append(_between(pool, _place(firsts, first), _place(firsts, stop)))
        start, first = int(marks[stop]), stop + 1
    return shards


def _marks(pool: Sequence[Part]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return where the cut points of all parts are on one axis, and for each part which of them is its first."""
    bases = np.cumsum([0, *(part.bytes for part in pool)], dtype=np.int64)
    offsets = [_offsets(part.cuts) + base for part, base in zip(pool, bases, strict=False)]
    firsts = np.cumsum([0, *map(len, offsets)], dtype=np.int64)[:-1]
    return np.concatenate([np.zeros(0, np.int64), *offsets]), firsts


def _offsets(cuts: Sequence[CutPoint]) -> npt.NDArray[np.int64]:
    return cuts.offsets if isinstance(cuts, CutTable) else np.array([cut.offset for cut in cuts], np.int64)


def _place(firsts: npt.NDArray[np.int64], mark: int) -> tuple[int, int]:
    """Return the part that a mark is a cut point of, and which one of it."""
    part = int(np.searchsorted(firsts, mark, side="right")) - 1
    return part, mark - int(firsts[part])


def _nearest(marks: npt.NDArray[np.int64], first: int, start: int, end: int) -> int:
    above = max(int(np.searchsorted(marks, -(-(start + end) // 2))), first)
    if above > first and (start + end) - 2 * int(marks[above - 1]) <= 2 * int(marks[above]) - (start + end):
        return above - 1
    return above


def _between(pool: Sequence[Part], first: tuple[int, int], stop: tuple[int, int]) -> PlannedShard:
    part, index = first
    last_part, last_index = stop
    ranges: list[PartRange] = []
    for i in range(part, last_part + 1):
        cuts = pool[i].cuts
        begin = cuts[index - 1] if i == part and index else _START
        end = cuts[last_index] if i == last_part else cuts[-1]
        ranges.append(PartRange(pool[i], begin, end))
    return PlannedShard(tuple(ranges))
