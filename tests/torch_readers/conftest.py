"""A dataset of many small shards, and what the tests ask of PyTorch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from shardmill.pipelines import convert, open_dataset
from shardmill.transforms.dataset.reading.open_dataset import Dataset

ROWS = 10_007

OTHERS_WARNINGS = (
    "ignore:This process .* is multi-threaded, use of fork:DeprecationWarning",
    "ignore:This DataLoader will create .* worker processes:UserWarning",
    "ignore:'set_vital' is deprecated:UserWarning",
)
"""Warnings that other libraries raise about themselves; ours stay errors."""


def pytest_configure(config: pytest.Config) -> None:
    for line in OTHERS_WARNINGS:
        config.addinivalue_line("filterwarnings", line)


@pytest.fixture(scope="session")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("numbers") / "out"
    random = np.random.default_rng(1)
    n = np.arange(ROWS)
    table = pa.table(
        {
            "n": n,
            "x": pa.FixedSizeListArray.from_arrays(pa.array(random.random(4 * ROWS, dtype=np.float32)), 4),
            "text": [f"row {i}" for i in range(ROWS)],
            "maybe": pa.array(n, mask=n % 3 == 0),
            "tags": [list(range(i % 4)) for i in range(ROWS)],
            "pet": [("cat", "dog", "owl")[i % 3] for i in range(ROWS)],
        }
    )
    convert(data=table, output=path, shard_size="128KiB", schema={"columns": {"pet": {"label": True}}})
    return path


@pytest.fixture
def numbers(out: Path, monkeypatch: pytest.MonkeyPatch) -> Dataset:
    monkeypatch.setattr("shardmill.transforms.dataset.rows.torch_batches.BLOCK_BYTES", 16 << 10)  # 60 blocks
    return open_dataset(out)["train"]
