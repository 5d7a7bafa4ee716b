"""Memory is bounded by a few blocks per worker, whatever the size of the data."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
from shardmill.transforms.dataset.generations.manifest_files import read_manifest

from ..memory import Measured, peak_at, peak_bytes, write_floats

LIMIT = 600e6
OUTPUT = 3e9
GROUP_ROWS, SMALL_GROUPS, LARGE_GROUPS = 50_000, 4, 16
"""The output of a row group is 53 MB, and two of them are in memory at a time."""


def measured(folder: Path, groups: int) -> Measured:
    write_floats(folder / "a.parquet", groups, GROUP_ROWS)
    command = [sys.executable, "-m", "shardmill.pipelines", "convert", "a.parquet", "-o", "out", "-q", "--workers", "2"]
    peak = peak_bytes(command, folder)
    manifest = read_manifest(str(folder / "out"))
    assert manifest.counts.written == groups * GROUP_ROWS
    shutil.rmtree(folder / "out")
    return Measured(manifest.splits["train"].bytes, peak)


@pytest.mark.thorough("two sizes are converted while memory is sampled")
def test_three_gigabytes_of_output_would_stay_under_600_megabytes_of_memory(tmp_path: Path) -> None:
    small, large = (measured(tmp_path, groups) for groups in (SMALL_GROUPS, LARGE_GROUPS))
    assert large.written > 800e6
    assert large.peak < LIMIT
    assert peak_at(OUTPUT, small, large) < LIMIT, (small, large)
