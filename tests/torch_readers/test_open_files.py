"""Epochs over more shards than a process may have files open."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from shardmill.pipelines import convert

ROWS = 200

PROGRAM = """
import resource, sys, warnings

resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))
from torch.utils.data import DataLoader
from shardmill.pipelines import open_dataset

warnings.simplefilter("ignore")
path = sys.argv[1]
kept = [open_dataset(path), open_dataset(path)]  # which stay open
for dataset in kept:
    for workers in (0, 2):
        ways = [
            DataLoader(dataset.torch(["id"], batch_rows=20, shuffle=way), batch_size=None, num_workers=workers)
            for way in ("global", "blocks", "none")
        ]
        ways.append(DataLoader(dataset.torch_map(["id"]), batch_size=20, shuffle=True, num_workers=workers))
        for batches in ways:
            print(sorted(number for batch in batches for number in batch["id"].tolist()))
"""


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("many") / "out"
    noise = np.random.default_rng(1).bytes(40_000)
    convert(data=pa.table({"id": np.arange(ROWS), "noise": [noise] * ROWS}), output=path, shard_size="64KiB")
    assert len([*path.glob("*.tfrecord")]) == ROWS
    return path


def test_an_epoch_reads_all_rows_of_more_shards_than_files_may_be_open(many: Path) -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM, str(many)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.splitlines() == [str([*range(ROWS)])] * 16


SHUFFLED = """
import resource, sys

resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
from shardmill.pipelines import open_dataset

dataset = open_dataset(sys.argv[1])
batches = dataset.torch(["id"], batch_rows=500)
print(len(dataset), sorted(number for batch in batches for number in batch["id"].tolist()))
print([dataset.record(number)[:0] for number in range(0, len(dataset), 7)].count(b""))
"""


def test_five_thousand_shards_are_read_under_a_limit_of_256_files(tmp_path: Path) -> None:
    rows, noise = 5_000, np.random.default_rng(1).bytes(40_000)
    table = pa.table({"id": np.arange(rows), "noise": pa.array([noise] * rows, pa.large_binary())})
    convert(data=table, output=tmp_path / "out", shard_size="64KiB")
    assert len([*(tmp_path / "out").glob("*.tfrecord")]) == rows
    done = subprocess.run(
        [sys.executable, "-c", SHUFFLED, str(tmp_path / "out")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout == f"{rows} {[*range(rows)]}\n{-(-rows // 7)}\n"
