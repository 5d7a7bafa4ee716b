"""Which batches each rank and each worker takes."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st
from shardmill.transforms.dataset.rows.epoch import EpochBatches, InOrder

sizes, batch_sizes, worlds = st.integers(0, 300), st.integers(1, 40), st.integers(1, 5)


def rows_of_rank(
    size: int, batch_rows: int, rank: int, world: int, even: str, start: int, workers: int
) -> list[list[int]]:
    """Return the batches of a rank as a DataLoader gives them: of its workers in turn."""
    order, batches = InOrder(size, batch_rows), EpochBatches(size, batch_rows, rank, world, even, start)
    of_workers = [list(batches.of_worker(worker, workers)) for worker in range(workers)]
    turns = itertools.chain(*itertools.zip_longest(*of_workers))
    found = [batches.rows_of(number, order).tolist() for number in turns if number is not None]
    assert len(found) == len(batches)
    return found


@given(sizes, batch_sizes, worlds, st.integers(1, 4))
def test_without_even_all_ranks_together_read_each_row_once(size: int, rows: int, world: int, workers: int) -> None:
    ranks = [rows_of_rank(size, rows, rank, world, "none", 0, workers) for rank in range(world)]
    assert sorted(row for rank in ranks for batch in rank for row in batch) == list(range(size))
    in_turn = [batch for turn in itertools.zip_longest(*ranks) for batch in turn if batch is not None]
    assert [row for batch in in_turn for row in batch] == list(range(size))


@given(sizes, batch_sizes, worlds, st.integers(1, 4))
def test_drop_gives_each_rank_as_many_full_batches_and_counts_what_it_leaves_out(
    size: int, rows: int, world: int, workers: int
) -> None:
    ranks = [rows_of_rank(size, rows, rank, world, "drop", 0, workers) for rank in range(world)]
    assert len({len(rank) for rank in ranks}) == 1
    assert {len(batch) for rank in ranks for batch in rank} <= {rows}
    read = sum(len(batch) for rank in ranks for batch in rank)
    assert EpochBatches(size, rows, 0, world, "drop").left_out == size - read < rows * world


@given(st.integers(1, 300), batch_sizes, worlds, st.integers(1, 4))
def test_pad_gives_each_rank_as_many_full_batches_with_every_row_and_counts_those_it_repeats(
    size: int, rows: int, world: int, workers: int
) -> None:
    ranks = [rows_of_rank(size, rows, rank, world, "pad", 0, workers) for rank in range(world)]
    assert len({len(rank) for rank in ranks}) == 1
    assert {len(batch) for rank in ranks for batch in rank} == {rows}
    read = [row for rank in ranks for batch in rank for row in batch]
    assert set(read) == set(range(size))
    assert EpochBatches(size, rows, 0, world, "pad").repeated == len(read) - size


@given(sizes, batch_sizes, worlds, worlds, st.integers(0, 6), st.integers(1, 3))
def test_an_epoch_goes_on_under_another_number_of_ranks_and_workers_where_it_was(
    size: int, rows: int, before: int, after: int, consumed: int, workers: int
) -> None:
    first = [rows_of_rank(size, rows, rank, before, "none", 0, workers)[:consumed] for rank in range(before)]
    start = min(consumed * before, -(-size // rows))
    then = [rows_of_rank(size, rows, rank, after, "none", start, workers) for rank in range(after)]
    assert sorted(row for rank in first + then for batch in rank for row in batch) == list(range(size))


def test_a_worker_goes_on_behind_the_batches_that_it_has_given() -> None:
    batches = EpochBatches(1000, 10, 1, 2, "none")
    assert list(batches.of_worker(1, 3, 2)) == list(batches.of_worker(1, 3))[2:]
    assert list(batches.of_worker(1, 3)) == list(range(3, 100, 6))
