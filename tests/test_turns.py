"""What is large takes turns over all threads and worker processes of a run."""

from __future__ import annotations

import fcntl
import threading
from pathlib import Path

import pytest
from shardmill.pipelines.workers.worker_processes import WorkerProcesses
from shardmill.transforms.limits.turns import PIXELS, ROW_BYTES, Shared, Turn, taking_turns, turns_path


def is_free(shared: Shared, how: int) -> bool:
    """Return whether another worker would get its turn."""
    with (Path(turns_path()) / shared.name).open("ab") as file:
        try:
            fcntl.flock(file, how | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


@pytest.mark.parametrize(
    ("shared", "size", "beside", "alone"),
    [
        (PIXELS, 49_000_000, False, False),
        (PIXELS, 12_000_000, True, False),
        (PIXELS, 250_000, True, True),
        (ROW_BYTES, 200 << 20, False, False),
        (ROW_BYTES, 40 << 20, True, False),
        (ROW_BYTES, 8 << 20, True, True),
    ],
)
def test_what_is_large_is_alone_and_what_is_smaller_is_beside_its_like(
    shared: Shared, size: int, beside: bool, alone: bool
) -> None:
    with taking_turns(shared, size):
        assert is_free(shared, fcntl.LOCK_SH) is beside
        assert is_free(shared, fcntl.LOCK_EX) is alone
    assert is_free(shared, fcntl.LOCK_EX)


def test_a_turn_that_grows_waits_for_the_others_and_is_alone_then() -> None:
    there, free = threading.Event(), threading.Event()

    def other() -> None:
        with taking_turns(ROW_BYTES, 40 << 20):
            there.set()
            free.wait(30)

    thread = threading.Thread(target=other)
    thread.start()
    assert there.wait(30)
    with Turn(ROW_BYTES) as turn:
        turn.take(40 << 20)
        assert not is_free(ROW_BYTES, fcntl.LOCK_EX)
        free.set()
        turn.take(200 << 20)
        assert not is_free(ROW_BYTES, fcntl.LOCK_SH)
        turn.give_back()
        assert is_free(ROW_BYTES, fcntl.LOCK_EX)
    thread.join()


def test_a_picture_in_a_large_batch_is_decoded_while_its_thread_has_that_batch() -> None:
    with taking_turns(ROW_BYTES, 900 << 20), taking_turns(PIXELS, 49_000_000):
        assert not is_free(ROW_BYTES, fcntl.LOCK_SH)
        assert not is_free(PIXELS, fcntl.LOCK_SH)


def test_a_thread_that_reads_two_large_files_side_by_side_does_not_wait_for_itself() -> None:
    with taking_turns(ROW_BYTES, 900 << 20), taking_turns(ROW_BYTES, 900 << 20):
        assert not is_free(ROW_BYTES, fcntl.LOCK_SH)
    assert is_free(ROW_BYTES, fcntl.LOCK_EX)


def test_all_worker_processes_of_a_run_take_turns_with_each_other() -> None:
    with WorkerProcesses(2, asked=True) as processes:
        assert set(processes.planning(1 << 30)(lambda _: turns_path(), range(4), heavy=True)) == {turns_path()}
