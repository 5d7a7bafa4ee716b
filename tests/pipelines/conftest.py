"""A small dataset, written by hand: two splits, three shards."""

from __future__ import annotations

from pathlib import Path

import pytest
from shardmill.transforms.dataset.storage.record_file import write_records
from shardmill.transforms.format.manifest.manifest import (
    RowCounts,
    RunInfo,
    ShardEntry,
    SplitEntry,
)
from shardmill.transforms.format.schema.schema import Feature, Schema
from shardmill.transforms.format.tfrecord.framing import crc32c

from ..examples import example_from_values
from ..manifests import manifest_with

RUN_ID = "5f0c9b1e2a7d4c88"


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    """Return the folder of a dataset whose records are {"a": [0]} to {"a": [4]}; the last is split `val`."""
    root = tmp_path / "dataset"
    (root / "manifests").mkdir(parents=True)
    values = {"train": [[0, 1, 2], [3]], "val": [[4]]}
    splits = {
        name: _split(tuple(_shard(root, f"{name}-{index:05d}.tfrecord", rows) for index, rows in enumerate(shards)))
        for name, shards in values.items()
    }
    schema = Schema((Feature("a", "int64", "int64"),))
    manifest = manifest_with(
        schema_fingerprint=schema.fingerprint(),
        counts=RowCounts(5, 5, 0, 0),
        schema=schema,
        splits=splits,
        run=RunInfo(
            "2026-01-31T12:00:00Z", RUN_ID, "0b7e6d52", f".staging/{RUN_ID}", "sha256:" + "2" * 64, "local", {}
        ),
    )
    (root / "manifests/00000001.json").write_bytes(manifest.to_bytes())
    (root / "manifest.json").write_bytes(manifest.to_bytes())
    return root


def _shard(root: Path, name: str, rows: list[int]) -> ShardEntry:
    write_records(root / name, [example_from_values({"a": [row]}).SerializeToString() for row in rows])
    data = (root / name).read_bytes()
    return ShardEntry(name, 1, len(rows), len(data), f"{crc32c(data):08x}")


def _split(shards: tuple[ShardEntry, ...]) -> SplitEntry:
    records, size = sum(shard.records for shard in shards), sum(shard.bytes for shard in shards)
    return SplitEntry(records, size, 256, "sum128:" + "0" * 32, shards)
