"""In which order an epoch goes through the rows."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shardmill.transforms.dataset.rows.epoch import BLOCKS_IN_WINDOW, Permutation, ShuffledBlocks, order_of

SHUFFLES = ("none", "global", "blocks")


@given(st.integers(1, 5000), st.integers(), st.integers(0, 10))
def test_a_permutation_has_each_number_once(size: int, seed: int, epoch: int) -> None:
    assert sorted(Permutation(size, seed, epoch)(np.arange(size)).tolist()) == list(range(size))


def test_any_part_of_a_permutation_is_that_of_the_whole_and_large_ones_cost_nothing() -> None:
    whole = Permutation(1000, 7)(np.arange(1000))
    assert Permutation(1000, 7)(np.array([5, 999, 5])).tolist() == whole[[5, 999, 5]].tolist()
    huge = Permutation(10**12, 7)(np.arange(1000))
    assert len(set(huge.tolist())) == 1000
    assert huge.max() < 10**12


def test_a_permutation_looks_random() -> None:
    size = 100_000
    found = Permutation(size, 1, 2)(np.arange(size))
    assert abs(np.corrcoef(np.arange(size), found)[0, 1]) < 0.02
    assert abs(np.corrcoef(found[:-1], found[1:])[0, 1]) < 0.02
    assert (found == np.arange(size)).sum() < 10
    counts = np.histogram(found[: size // 10], bins=20)[0]  # of the first tenth, where they come from
    assert counts.min() > 400


def test_the_order_of_a_seed_is_frozen() -> None:
    assert Permutation(10, 1, 0)(np.arange(10)).tolist() == [5, 3, 1, 2, 6, 0, 4, 7, 8, 9]


@pytest.mark.parametrize("shuffle", SHUFFLES)
@given(
    size=st.integers(0, 700),
    batch_rows=st.integers(1, 60),
    block_rows=st.integers(1, 90),
    lanes=st.integers(1, 9),
    seed=st.integers(0, 3),
)
def test_the_batches_of_an_epoch_have_each_row_once(
    shuffle: str, size: int, batch_rows: int, block_rows: int, lanes: int, seed: int
) -> None:
    order = order_of(shuffle, size, batch_rows, (block_rows, lanes), (seed, 0))
    batches = [order.batch(number).tolist() for number in range(-(-size // batch_rows))]
    assert sorted(itertools.chain(*batches)) == list(range(size))
    assert all(len(batch) == batch_rows for batch in batches[:-1])


def test_epochs_and_seeds_have_other_orders() -> None:
    for shuffle in ("global", "blocks"):
        found = {
            tuple(order_of(shuffle, 1000, 1000, (50, 2), key).batch(0).tolist()) for key in ((1, 0), (1, 1), (2, 0))
        }
        assert len(found) == 3


def test_a_reader_of_each_nth_batch_needs_an_nth_of_the_blocks() -> None:
    size, block_rows, lanes = 100_000, 100, 8
    order = ShuffledBlocks(size, 20, block_rows, lanes, 1)
    of_readers = [
        {block for g in range(reader, 4500, 4) for block in (order.batch(g) // block_rows).tolist()}
        for reader in range(4)
    ]
    assert all(not one & other for one, other in itertools.combinations(of_readers, 2))


def test_a_batch_of_shuffled_blocks_comes_from_all_blocks_of_a_window() -> None:
    order = ShuffledBlocks(100_000, 256, 100, 4, 1)
    assert len(set((order.batch(0) // 100).tolist())) == BLOCKS_IN_WINDOW


def test_batches_of_shuffled_blocks_do_not_stay_in_the_order_of_their_rows() -> None:
    order = ShuffledBlocks(100_000, 256, 1000, 4, 1)
    found = np.concatenate([order.batch(number) for number in range(390)])
    assert abs(np.corrcoef(np.arange(len(found)), found)[0, 1]) < 0.1
    assert (np.diff(found) == 1).mean() < 0.01
