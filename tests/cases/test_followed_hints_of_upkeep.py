"""Commands that `info`, `stats` and `append` propose for datasets, and for shards in none, do what they say."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest
from shardmill.transforms.dataset.reading.open_dataset import open_dataset

from ..command_line import Shardmill
from .test_sets_that_people_bring import counts_of

pytestmark = pytest.mark.usefixtures("without_engine")


@pytest.fixture(autouse=True)
def _shards(shardmill: Shardmill) -> None:
    Path("a.csv").write_text("a\n1\n2\n")
    assert shardmill("convert", "a.csv", "-o", "out").code == 0
    Path("loose").mkdir()
    (shard,) = Path("out").glob("*.tfrecord*")
    shutil.copy(shard, "loose/x-train.tfrecord")


def command_in(screen: str, before: str) -> list[str]:
    found = re.search(rf"{before}: shardmill (.*)", screen)
    assert found, screen
    return shlex.split(found[1])


def test_shards_in_no_dataset_become_one_by_the_commands_of_info(shardmill: Shardmill) -> None:
    screen = shardmill("info", "loose").out
    for before, path in (("copies of their records", "FOLDER"), ("where they are, unchanged", "loose")):
        assert shardmill(*command_in(screen, before)).code == 0
        assert counts_of(path) == {"train": 2}
    stated = shardmill("info", "loose/x-train.tfrecord").out
    assert "loose" in shardmill(*command_in(stated, "to see it")).out


def test_shards_in_no_dataset_get_statistics_by_the_command_of_stats(shardmill: Shardmill) -> None:
    refused = shardmill("stats", "loose", "--write")
    assert shardmill(*command_in(refused.err, "make one")).code == 0
    assert counts_of("FOLDER") == {"train": 2}
    assert shardmill("append", "a.csv", "-o", "FOLDER", "--set", "stats=true").code == 0


def test_an_append_counts_after_the_command_that_counts_what_is_there(shardmill: Shardmill) -> None:
    Path("b.csv").write_text("a\n3\n")
    append = ["append", "b.csv", "-o", "out", "--set", "stats=true"]
    refused = shardmill(*append)
    assert shardmill(*command_in(refused.err, "count all of it")).code == 0
    assert shardmill(*append).code == 0
    assert [row["a"] for row in open_dataset("out")["train"]] == [1, 2, 3]
