"""PyTorch reads a dataset in a bucket: in blocks, each of which is fetched once, by the reader that needs it."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from shardmill.pipelines import convert, open_dataset
from shardmill.transforms.stores.object_store import ObjectStore
from torch.utils.data import DataLoader

ROWS, BLOCK = 60_000, 1 << 18


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is asked of the store from now on, by key."""
    made: list[str] = []
    lock, real = threading.Lock(), ObjectStore.retried

    def counted(self: ObjectStore, key: str, once: Callable[[], Any]) -> Any:
        with lock:
            made.append(key)
        return real(self, key, once)

    monkeypatch.setattr(ObjectStore, "retried", counted)
    return made


@pytest.mark.parametrize("bucket_url", ["s3"], indirect=True)
def test_blocks_are_the_default_in_a_store_and_each_is_fetched_once(
    bucket_url: str, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shardmill.transforms.dataset.rows.torch_batches.BLOCK_BYTES", BLOCK)
    data = {"n": np.arange(ROWS), "x": np.random.default_rng(1).random((ROWS, 16), np.float32)}
    convert(data=data, output=f"{bucket_url}/out", shard_size="2MiB")
    dataset = open_dataset(f"{bucket_url}/out")["train"]
    batches = dataset.torch(["n", "x"], batch_rows=128, seed=1)
    asked.clear()
    rows = [n for batch in batches for n in batch["n"].tolist()]
    assert sorted(rows) == list(range(ROWS)) != rows
    mebibytes = sum(shard.bytes for shard in dataset.manifest.splits["train"].shards) / (1 << 20)
    # where each shard lies is asked once, which is no block
    fetched = [key for key in asked if key.endswith(".tfrecord") and ".staging" not in key]
    blocks = mebibytes * (1 << 20) / BLOCK
    assert blocks <= len(fetched) < 1.5 * blocks  # a block that is in two shards takes two requests
    asked.clear()
    batches.set_epoch(1)
    assert sorted(n for batch in batches for n in batch["n"].tolist()) == list(range(ROWS))
    assert len(asked) < 1.5 * blocks  # the indexes are known


@pytest.mark.parametrize("bucket_url", ["s3"], indirect=True)
def test_workers_and_ranks_read_a_store_together(bucket_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shardmill.transforms.dataset.rows.torch_batches.BLOCK_BYTES", BLOCK)
    convert(data={"n": np.arange(ROWS)}, output=f"{bucket_url}/out", shard_size="128KiB")
    dataset = open_dataset(f"{bucket_url}/out")["train"]
    found = []
    for rank in range(2):
        batches = dataset.torch(["n"], batch_rows=512, rank=rank, world=2, even="none")
        loader = DataLoader(batches, batch_size=None, num_workers=2)
        found += [batch["n"].tolist() for batch in loader]
    assert sorted(itertools.chain(*found)) == list(range(ROWS))
