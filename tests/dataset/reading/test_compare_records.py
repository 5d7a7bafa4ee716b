"""Records of two datasets as multisets: whatever their order and their shards, and however few digests are held."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shardmill.pipelines import convert
from shardmill.transforms.dataset.reading.compare_records import RecordDifference, _count, compare_records
from shardmill.transforms.dataset.storage.manifest_files import read_manifest
from shardmill.transforms.errors import DamageError
from shardmill.transforms.observers.groups import DIGEST


def made(folder: Path, values: list[int], **keys: Any) -> Path:
    table = pa.table({"id": pa.array(values, pa.int64())})
    output = {"path": str(folder), "order": "source"} | keys.pop("output", {})
    convert({"version": 1, "output": output | keys}, data=table)
    return folder


def compared(a: Path, b: Path, split: str = "train", **limits: int) -> RecordDifference:
    return compare_records(split, [(str(path), read_manifest(str(path))) for path in (a, b)], **limits)


@pytest.mark.parametrize("in_memory", [1 << 22, 700])
def test_records_in_one_alone_are_counted_with_how_often_they_are_there(tmp_path: Path, in_memory: int) -> None:
    random = np.random.default_rng(5)
    ours, theirs = (random.integers(0, 4000, 3000).tolist() for _ in range(2))
    a, b = made(tmp_path / "a", ours), made(tmp_path / "b", theirs, compression="gzip")
    found = compared(a, b, in_memory=in_memory)
    assert found.only_a == (Counter(ours) - Counter(theirs)).total() > 0
    assert found.only_b == (Counter(theirs) - Counter(ours)).total() > 0
    assert (found.read, found.skipped) == (6000, 0)


def test_the_order_and_the_shards_of_records_do_not_count(tmp_path: Path) -> None:
    values = list(range(20_000))
    a = made(tmp_path / "a", values, shard_size="64KiB")
    b = made(tmp_path / "b", values[::-1], shard_size="128KiB")
    found = compared(a, b)
    assert (found.only_a, found.only_b, found.read) == (0, 0, 40_000)


def test_shards_that_both_have_are_not_read(tmp_path: Path) -> None:
    a = made(tmp_path / "a", list(range(20_000)), shard_size="64KiB")
    b = made(tmp_path / "b", [*range(20_000), 7], shard_size="64KiB")
    shards = [{path.read_bytes() for path in folder.glob("*.tfrecord")} for folder in (a, b)]
    assert len(shards[0] & shards[1]) > 5
    for path in a.glob("*.tfrecord"):
        if path.read_bytes() in shards[1]:
            path.unlink()
    found = compared(a, b)
    assert (found.only_a, found.only_b) == (0, 1)
    assert found.skipped > 10_000
    assert found.skipped * 2 + found.read == 40_001


def test_a_split_of_one_side_alone_and_equal_datasets(tmp_path: Path) -> None:
    a = made(tmp_path / "a", [1, 2, 3])
    b = made(tmp_path / "b", [1, 2, 3, 3], output={"split": "val"})
    assert compared(a, b) == RecordDifference("train", 3, 0, 3, (a / "train-00000.tfrecord").stat().st_size, 0)
    assert (compared(a, b, "val").only_a, compared(a, b, "val").only_b) == (0, 4)
    assert compared(a, a) == RecordDifference("train", 0, 0, 0, 0, 3)


def test_damage_is_an_error_with_its_place(tmp_path: Path) -> None:
    a, b = made(tmp_path / "a", [1, 2]), made(tmp_path / "b", [1, 3])
    shard = b / "train-00000.tfrecord"
    shard.write_bytes(shard.read_bytes()[:-3] + b"???")
    with pytest.raises(DamageError, match=r"train-00000\.tfrecord: record 1 at byte 31"):
        compared(a, b)


digests = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), max_size=30)


@given(digests, digests)
def test_digests_that_are_equal_in_one_half_alone_are_two(
    ours: list[tuple[int, int]], theirs: list[tuple[int, int]]
) -> None:
    a, b = Counter(ours), Counter(theirs)
    found = _count(np.array(ours, DIGEST), np.array(theirs, DIGEST))
    assert found == ((a - b).total(), (b - a).total())
