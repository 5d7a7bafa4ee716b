from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from shardmill.pipelines.commands.upkeep import verify_command
from shardmill.pipelines.screens.summary_screen import Screen
from shardmill.pipelines.workers.worker_processes import Spread, map_in_processes
from shardmill.transforms.errors import RunError

pytestmark = pytest.mark.engine


def test_results_come_in_order_and_from_other_processes() -> None:
    assert list(map_in_processes(abs, [-3, 2, -1], 2)) == [3, 2, 1]
    assert os.getpid() not in map_in_processes(lambda _: os.getpid(), range(4), 2)


def test_a_worker_that_is_killed_ends_the_command_with_words() -> None:
    with pytest.raises(RunError, match="ended from outside"):
        list(map_in_processes(lambda _: os.kill(os.getpid(), signal.SIGKILL), [1, 2], 2))


def test_a_dataset_is_verified_in_processes_with_the_same_report(
    dataset_with_damage: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert verify_command(str(dataset_with_damage), Screen()) == 3
    alone = capsys.readouterr().out
    in_processes = Spread(lambda _: 0, from_bytes=0, workers=2)
    assert verify_command(str(dataset_with_damage), Screen(), run=in_processes) == 3
    assert capsys.readouterr().out == alone
    assert "record 1 at byte" in alone


@pytest.fixture
def dataset_with_damage(dataset: Path) -> Path:
    shard = dataset / "train-00000.tfrecord"
    data = bytearray(shard.read_bytes())
    data[len(data) // 3 + 14] ^= 1
    shard.write_bytes(data)
    return dataset
