"""From where the passes over an epoch begin."""

from __future__ import annotations

import numpy as np
from shardmill.transforms.dataset.rows.epoch import SIZE, EpochPosition


def position() -> EpochPosition:
    return EpochPosition(np.zeros(SIZE, np.int64))


def test_the_first_pass_begins_where_a_state_says_with_all_its_workers_and_each_one_behind_it_at_the_front() -> None:
    place = position()
    place.begin(2, 47)
    assert [place.start_of_pass(worker, (1234, 1)) for worker in (2, 0, 1)] == [47, 47, 47]
    assert [place.start_of_pass(worker, (999, 1)) for worker in (1, 0, 2)] == [0, 0, 0]
    assert (place.epoch, place.start) == (2, 0)


class Interrupted:
    """Shared memory in which another worker begins, from its start to its end, before the given access."""

    def __init__(self, at: int) -> None:
        self.values, self.left, self.started = np.zeros(SIZE, np.int64), at, 0

    def other_begins(self) -> None:
        self.left -= 1
        if self.left == 0:
            self.started = EpochPosition(self.values).start_of_pass(1, (1234, 1))

    def __getitem__(self, place: int) -> int:
        self.other_begins()
        return int(self.values[place])

    def __setitem__(self, place: int, value: int) -> None:
        self.other_begins()
        self.values[place] = value


def test_workers_that_begin_a_pass_at_the_same_moment_have_its_start() -> None:
    for access in range(1, 10):
        shared = Interrupted(access)
        EpochPosition(shared.values).begin(2, 47)
        assert (EpochPosition(shared).start_of_pass(0, (1234, 1)), shared.started) == (47, 47), access


def test_workers_that_persist_begin_a_pass_each_time() -> None:
    place = position()
    place.begin(0, 5)
    assert [place.start_of_pass(0, (7, number)) for number in (1, 2, 3)] == [5, 0, 0]


def test_a_pass_with_the_seed_of_the_one_before_is_another_one_as_its_workers_begin_again() -> None:
    place = position()
    place.begin(0, 5)
    assert [place.start_of_pass(worker, (7, 1)) for worker in (0, 1)] == [5, 5]
    assert [place.start_of_pass(worker, (7, 1)) for worker in (1, 0)] == [0, 0]
    assert [place.start_of_pass(worker, (7, 1)) for worker in (0, 1)] == [0, 0]


def test_a_worker_that_loads_the_state_of_the_pass_behind_the_first_one_has_its_start_too() -> None:
    place = position()
    place.begin(1, 9)
    assert place.start_of_pass(0, (7, 1)) == 9
    place.begin(1, 9)
    assert place.start_of_pass(1, (7, 1)) == 9
    assert place.start_of_pass(0, (8, 1)) == 0


def test_another_epoch_begins_at_the_front() -> None:
    place = position()
    place.begin(1, 9)
    place.begin(2)
    assert not place.is_claimed
    assert (place.start_of_pass(0, (7, 1)), place.epoch, place.is_claimed) == (0, 2, True)
