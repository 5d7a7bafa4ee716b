from __future__ import annotations

import fcntl
from pathlib import Path

import pytest
from shardmill.pipelines.workers.worker_processes import WorkerProcesses
from shardmill.transforms.pictures.turns import taking_turns, turns_path


def is_free(how: int) -> bool:
    """Return whether another worker would get its turn."""
    with Path(turns_path()).open("rb") as file:
        try:
            fcntl.flock(file, how | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


@pytest.mark.parametrize(
    ("pixels", "beside", "alone"), [(49_000_000, False, False), (12_000_000, True, False), (250_000, True, True)]
)
def test_a_large_picture_is_decoded_alone_and_others_beside_each_other(pixels: int, beside: bool, alone: bool) -> None:
    with taking_turns(pixels):
        assert is_free(fcntl.LOCK_SH) is beside
        assert is_free(fcntl.LOCK_EX) is alone
    assert is_free(fcntl.LOCK_EX)


def test_all_worker_processes_of_a_run_take_turns_with_each_other() -> None:
    with WorkerProcesses(2, asked=True) as processes:
        assert set(processes.planning(1 << 30)(lambda _: turns_path(), range(4), heavy=True)) == {turns_path()}
