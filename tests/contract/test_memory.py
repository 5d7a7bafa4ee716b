"""Memory is bounded by a few blocks per worker, whatever the size of the data."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from shardmill.transforms.dataset.generations import read_manifest

LIMIT = 600e6
OUTPUT = 3e9
SAMPLE_SECONDS = 0.05
VALUES, GROUP_ROWS, GROUPS = 256, 50_000, 60


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Path]:
    free = shutil.disk_usage(tmp_path).free
    assert free > 3 * OUTPUT, f"{free} bytes are free in {tmp_path}: too few to convert {OUTPUT:.0f} bytes"
    yield tmp_path
    shutil.rmtree(tmp_path / "out", ignore_errors=True)


def peak_bytes(command: list[str], cwd: Path) -> float:
    """Run a command and return the largest PSS of its process tree, sampled all the while."""
    peak = 0
    with subprocess.Popen(command, cwd=cwd) as process:
        root = psutil.Process(process.pid)
        while True:
            try:
                process.wait(SAMPLE_SECONDS)
                break
            except subprocess.TimeoutExpired:
                peak = max(peak, sum(_pss(each) for each in [root, *root.children(recursive=True)]))
    assert process.returncode == 0
    return peak


def _pss(process: psutil.Process) -> int:
    try:
        return int(process.memory_full_info().pss)
    except psutil.NoSuchProcess:  # it ended between the listing and the look
        return 0


@pytest.mark.thorough("two sizes are converted while memory is sampled")
def test_three_gigabytes_of_output_stay_under_600_megabytes_of_memory(room: Path) -> None:
    floats = np.tile(np.arange(1000, dtype=np.float32), GROUP_ROWS * VALUES // 1000)
    column = pa.FixedSizeListArray.from_arrays(pa.array(floats), VALUES)
    with pq.ParquetWriter(room / "a.parquet", pa.schema({"x": column.type, "id": pa.int64()})) as writer:
        for group in range(GROUPS):
            ids = pa.array(np.arange(group * GROUP_ROWS, (group + 1) * GROUP_ROWS))
            writer.write_table(pa.table({"x": column, "id": ids}, writer.schema), row_group_size=GROUP_ROWS)
    command = [sys.executable, "-m", "shardmill.pipelines", "convert", "a.parquet", "-o", "out", "-q", "--workers", "2"]
    peak = peak_bytes(command, room)
    manifest = read_manifest(str(room / "out"))
    assert manifest.counts.written == GROUPS * GROUP_ROWS
    assert manifest.splits["train"].bytes > OUTPUT

    assert peak < LIMIT
