from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Literal

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from shardmill.transforms.format.splits.shard_plan import (
    CUTS_PER_SHARD,
    CutChooser,
    CutPoint,
    Part,
    PartKind,
    PlannedShard,
    plan_shards,
    unit_bound,
)

from ...tiers import examples

Order = Literal["task", "source"]


def is_one_part(shard: PlannedShard) -> bool:
    """Return whether no byte of a shard needs to be copied."""
    return len(shard.ranges) == 1 and shard.ranges[0].is_whole


def greedy_cuts(units: Sequence[int], gap: int) -> tuple[CutPoint, ...]:
    """The rule of the cut points, one unit at a time, all units known."""
    ends = list(accumulate(units))
    cuts = [0]
    for i, end in enumerate(ends):
        if i + 1 == len(ends) or ends[i + 1] > cuts[-1] + gap:
            cuts.append(end)
    return tuple(CutPoint(cut, ends.index(cut) + 1, 0) for cut in cuts[1:])


def roll(task: int, units: Sequence[int], shard_size: int, *, every_unit: bool = False) -> list[Part]:
    """Stage the units of one task and split, slowly: what `TaskStager` must do to them."""
    groups: list[tuple[list[int], PartKind]] = []
    open_units: list[int] = []
    for unit in units:
        if unit > shard_size:
            if open_units:
                groups.append((open_units, "tail"))
            groups.append(([unit], "oversize"))
            open_units = []
            continue
        if sum(open_units) + unit > shard_size:
            groups.append((open_units, "full" if sum(open_units) * 16 >= shard_size * 15 else "tail"))
            open_units = []
        open_units.append(unit)
    if open_units:
        groups.append((open_units, "tail"))
    gap = 0 if every_unit else shard_size // CUTS_PER_SHARD
    return [Part(task, i, f"{task}-{i}", kind, max(g), greedy_cuts(g, gap)) for i, (g, kind) in enumerate(groups)]


def check_covers(parts: Sequence[Part], shards: Sequence[PlannedShard]) -> None:
    """Every byte and record of every part is in one shard, and no shard is empty."""
    seen: dict[tuple[int, int], list[tuple[CutPoint, CutPoint]]] = {}
    for shard in shards:
        assert shard.records > 0
        assert shard.bytes > 0
        for piece in shard.ranges:
            seen.setdefault((piece.part.task, piece.part.number), []).append((piece.start, piece.end))
    assert sorted(seen) == sorted((part.task, part.number) for part in parts)
    for part in parts:
        ranges = sorted(seen[part.task, part.number])
        assert ranges[0][0].offset == 0
        assert ranges[-1][1] == part.cuts[-1]
        for (_, before), (after, _) in pairwise(ranges):
            assert before == after


def check_promise(parts: Sequence[Part], shards: Sequence[PlannedShard], shard_size: int) -> None:
    """Promise 2 of docs/guarantees.md, word by word."""
    if any(part.kind == "oversize" for part in parts):
        alone = [s for s in shards if s.bytes > shard_size]
        assert all(len(s.ranges) == 1 and s.ranges[0].part.kind == "oversize" and s.records == 1 for s in alone)
        return
    bound = unit_bound(parts, shard_size)
    sizes = [shard.bytes for shard in shards]
    assert max(sizes) <= shard_size
    assert all(size > shard_size - bound for size in sizes[:-2])
    if sum(sizes) >= shard_size - bound:
        assert 2 * min(sizes) >= shard_size - bound


def check_order(shards: Sequence[PlannedShard], order: Order) -> None:
    places = [(p.part.task, p.part.number, p.start.offset) for s in shards for p in s.ranges]
    if order == "source":
        assert places == sorted(places)
        return
    kept = [p.part for s in shards for p in s.ranges if is_one_part(s) and p.part.kind != "tail"]
    full = [(part.task, part.number) for part in kept]
    assert full == sorted(full)


shard_sizes = st.sampled_from([256, 1000, 4096, 65536])


@st.composite
def splits(draw: st.DrawFn) -> tuple[int, list[list[int]], bool]:
    """A shard size, the units of each task, and whether every unit is a cut point (gzip)."""
    shard_size = draw(shard_sizes)
    seed = draw(st.integers(0, 2**32))
    mix = draw(st.sampled_from(["tiny", "small", "large", "any", "giants", "bimodal"]))
    top = {
        "tiny": max(1, shard_size // 200),
        "small": shard_size // 20,
        "large": shard_size,
        "any": shard_size,
        "giants": shard_size * 2,
        "bimodal": shard_size,
    }
    dice = random.Random(seed)
    tasks = []
    for _ in range(draw(st.integers(1, 12))):
        target = dice.random() * draw(st.sampled_from([0.2, 1, 3, 6])) * shard_size
        units: list[int] = []
        while sum(units) < target:
            low = shard_size // 3 if mix == "large" else 1
            high = top[mix] if mix != "bimodal" or dice.random() < 0.05 else max(1, shard_size // 100)
            units.append(dice.randint(low, max(low, high)))
        tasks.append(units)
    return shard_size, tasks, draw(st.booleans())


@settings(max_examples=examples(1500), deadline=None)
@given(splits(), st.sampled_from(["task", "source"]))
@example((256, [[256], [1]], False), "task")
@example((256, [[256, 256, 1]], False), "task")
@example((256, [[255], [255], [2]], True), "source")
def test_shards_keep_their_size_whatever_the_records(split: tuple[int, list[list[int]], bool], order: Order) -> None:
    shard_size, tasks, every_unit = split
    parts = [part for i, units in enumerate(tasks) for part in roll(i, units, shard_size, every_unit=every_unit)]
    shards = plan_shards(parts, shard_size, order)
    if not parts:
        assert shards == []
        return
    check_covers(parts, shards)
    check_promise(parts, shards, shard_size)
    check_order(shards, order)


def test_shards_keep_their_size_in_ten_thousand_pools_of_equal_records() -> None:
    dice = random.Random(3)
    for _ in range(10_000):
        unit = dice.randint(1, 300)
        tails = [[unit] * dice.randint(0, 300 // unit + 1) for _ in range(dice.randint(1, 5))]
        parts = [part for i, units in enumerate(tails) for part in roll(i, units, 300)]
        if parts:
            shards = plan_shards(parts, 300, "task")
            check_covers(parts, shards)
            check_promise(parts, shards, 300)


def test_the_order_in_which_parts_arrive_does_not_matter() -> None:
    parts = [part for i in range(4) for part in roll(i, [100] * (7 + 11 * i), 1000)]
    for order in ("task", "source"):
        wanted = plan_shards(parts, 1000, order)
        assert plan_shards(parts[::-1], 1000, order) == wanted


def test_full_parts_come_first_then_the_pooled_tails() -> None:
    parts = [*roll(0, [100] * 24, 1000), *roll(1, [100] * 15, 1000)]
    shards = plan_shards(parts, 1000, "task")
    assert [[(p.part.task, p.part.number, p.start.offset, p.end.offset) for p in s.ranges] for s in shards] == [
        [(0, 0, 0, 1000)],
        [(0, 1, 0, 1000)],
        [(1, 0, 0, 1000)],
        [(0, 2, 0, 400), (1, 1, 0, 500)],
    ]
    assert [is_one_part(s) for s in shards] == [True, True, True, False]


def test_a_small_pool_takes_in_the_last_full_part() -> None:
    shards = plan_shards(roll(0, [100] * 21, 1000), 1000, "task")
    assert [s.bytes for s in shards] == [1000, 500, 600]


def test_in_source_order_the_first_tasks_full_parts_are_renamed() -> None:
    parts = [*roll(0, [100] * 24, 1000), *roll(1, [100] * 24, 1000)]
    shards = plan_shards(parts, 1000, "source")
    assert [s.bytes for s in shards] == [1000, 1000, 1000, 900, 900]
    assert [is_one_part(s) for s in shards] == [True, True, False, False, False]


def test_a_record_over_the_size_stands_alone_and_in_its_place() -> None:
    parts = roll(0, [300, 300, 2000, 300], 1000)
    assert [[p.part.kind for p in s.ranges] for s in plan_shards(parts, 1000, "source")] == [
        ["tail"],
        ["oversize"],
        ["tail"],
    ]
    assert [[p.part.kind for p in s.ranges] for s in plan_shards(parts, 1000, "task")] == [
        ["oversize"],
        ["tail", "tail"],
    ]


def test_no_parts_make_no_shards() -> None:
    assert plan_shards([], 1000, "task") == []


@pytest.mark.parametrize("gap", [0, 1, 7, 100])
@settings(max_examples=examples(200), deadline=None)
@given(units=st.lists(st.integers(1, 60), min_size=1, max_size=80), batches=st.lists(st.integers(1, 9)))
def test_cut_points_do_not_depend_on_how_units_are_batched(gap: int, units: list[int], batches: list[int]) -> None:
    ends = np.cumsum(np.array(units, np.int64))
    chooser = CutChooser(gap)
    start = 0
    for size in [*batches, len(units)]:
        batch = ends[start : start + size]
        if len(batch):
            chooser.add([CutPoint(int(batch[i]), start + i + 1, 0) for i in chooser.wanted(batch)])
        start += size
    cuts = chooser.finish()
    assert cuts == greedy_cuts(units, gap)
    steps = np.diff([0, *(cut.offset for cut in cuts)])
    assert steps.max() <= max(gap, *units)
