from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shardmill.transforms.format.splits.exact import BLOCK, aside_of, dealt, lacking, spread

SHARES = st.lists(st.integers(1, 1000), min_size=2, max_size=6).map(
    lambda weights: [Fraction(weight, sum(weights)) for weight in weights]
)


def deal(fractions: list[Fraction], tasks: list[list[int]]) -> list[list[int]]:
    """Deal `tasks[t][c]` records of class c in task t, as tasks and the shard plan do; return the counts of classes."""
    classes = [(0, [0] * len(fractions)) for _ in tasks[0]]
    for task, sizes in enumerate(tasks):
        for number, size in enumerate(sizes):
            aside = min(size, aside_of(len(fractions)))
            had = np.bincount(dealt(fractions, size - aside, task), minlength=len(fractions)).tolist()
            before, counts = classes[number]
            classes[number] = before + aside, [a + b for a, b in zip(counts, had, strict=True)]
    lacks = lacking(fractions, classes)
    assert [sum(one) for one in lacks] == [aside for aside, _ in classes]
    assert all(count >= 0 for one in lacks for count in one)
    return [[a + b for a, b in zip(one, had, strict=True)] for one, (_, had) in zip(lacks, classes, strict=True)]


@given(SHARES, st.integers(1, 12), st.integers(1, 12), st.data())
def test_every_class_is_within_one_record_of_its_share(
    fractions: list[Fraction], tasks: int, classes: int, data: st.DataObject
) -> None:
    sizes = st.lists(st.integers(0, 60) | st.integers(0, 3000), min_size=classes, max_size=classes)
    given_sizes = data.draw(st.lists(sizes, min_size=tasks, max_size=tasks))
    counts = deal(fractions, given_sizes)
    totals = [sum(sizes) for sizes in zip(*given_sizes, strict=True)]
    for total, found in zip(totals, counts, strict=True):
        assert sum(found) == total
        assert all(abs(count - share * total) < 1 for count, share in zip(found, fractions, strict=True))
    for split, share in enumerate(fractions):  # and so is the whole: roundings do not add up
        assert abs(sum(found[split] for found in counts) - share * sum(totals)) < (1 if len(fractions) == 2 else 2)


@given(SHARES, st.integers(0, 3000), st.integers(0, 2**40))
def test_no_split_is_dealt_more_than_its_share_of_what_was_dealt_and_set_aside(
    fractions: list[Fraction], count: int, seed: int
) -> None:
    splits = dealt(fractions, count, seed)
    aside = aside_of(len(fractions))
    for split, share in enumerate(fractions):
        have = np.cumsum(splits == split)
        most = np.array([float(share * (n + aside)) for n in range(1, count + 1)])
        assert (have <= most + 1e-9).all()
    assert splits.tolist() == dealt(fractions, count + 7, seed)[:count].tolist()


def test_two_hundred_classes_in_forty_tasks_err_by_less_than_one_record() -> None:
    rng = np.random.default_rng(1)
    fractions = [Fraction(8, 10), Fraction(1, 10), Fraction(1, 10)]
    sizes = rng.poisson(rng.gamma(0.7, 180, (1, 200)), (40, 200))
    counts = deal(fractions, sizes.tolist())
    worst = max(
        abs(found[split] - share * int(total))
        for found, total in zip(counts, sizes.sum(axis=0), strict=True)
        for split, share in enumerate(fractions)
    )
    set_aside = np.minimum(sizes, aside_of(3)).sum() / sizes.sum()
    assert float(worst) < 0.91
    assert set_aside < 0.055


@given(st.lists(st.integers(0, 50), min_size=1, max_size=5), st.integers(0, 2**40))
def test_records_that_were_set_aside_are_dealt_to_the_last_one(lacks: list[int], seed: int) -> None:
    found = Counter(spread(lacks, seed).tolist())
    assert [found[split] for split in range(len(lacks))] == lacks


def test_the_order_of_dealing_is_frozen_and_differs_from_task_to_task() -> None:
    fractions = [Fraction(8, 10), Fraction(2, 10)]
    shown = ["".join(map(str, dealt(fractions, 20, task))) for task in range(3)]
    assert shown == ["00001000000100010001", "00000100000100010100", "00000010100001000100"]
    assert BLOCK == 4


def test_every_place_of_a_block_goes_to_each_split() -> None:
    fractions = [Fraction(3, 4), Fraction(1, 4)]
    places = np.flatnonzero(dealt(fractions, 4000, 5) == 1) % BLOCK
    assert np.bincount(places, minlength=BLOCK).min() > 200


@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_few_records_are_dealt_too(count: int) -> None:
    assert len(dealt([Fraction(1, 2), Fraction(1, 2)], count, 0)) == count
