"""A manifest of many shards has one line for all their indexes, so that it stays small."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from shardmill.pipelines import append, convert, open_dataset
from shardmill.transforms.dataset.integrity.garbage import collect_garbage
from shardmill.transforms.dataset.integrity.verify import verify_dataset
from shardmill.transforms.format.manifest.manifest import MOST_NAMED, shortened
from shardmill.transforms.format.manifest.naming import index_path


@pytest.mark.parametrize("index", ["binary", "none"])
def test_the_indexes_of_many_shards_are_one_line_of_the_manifest_and_are_found(tmp_path: Path, index: str) -> None:
    out, rows = tmp_path / "out", MOST_NAMED + 1
    convert(data={"text": ["x" * 66_000] * rows}, output=out, shard_size="64KiB", index=index)
    append(data={"text": ["y" * 66_000]}, output=str(out))
    listed = json.loads((out / "manifest.json").read_text())["sidecars"]
    assert [name for name in listed if name.startswith("index/")] == ["index/*.offsets"] * (index == "binary")
    dataset = open_dataset(out)
    named = {name for name in dataset.manifest.sidecars if name.startswith("index/")}
    shards = [shard.path for shard in dataset.manifest.splits["train"].shards]
    assert len(shards) == rows + 1
    assert named == ({index_path(shard, "binary") for shard in shards} if index == "binary" else set())
    assert verify_dataset(str(out)).findings == ()
    assert collect_garbage(str(out), older_than=0).files == 0
    assert dataset["train"][rows]["text"][0] == "y"


def test_few_indexes_and_those_of_some_shards_alone_are_named_one_by_one() -> None:
    shards = [f"train-{i:05d}.tfrecord" for i in range(MOST_NAMED + 1)]
    every = tuple(index_path(shard, "binary") for shard in shards)
    assert shortened(every, shards) == ("index/*.offsets",)
    assert shortened(every[:-1], shards) == every[:-1]
    assert shortened(every[:-1], shards[:-1]) == every[:-1]
