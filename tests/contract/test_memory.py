"""Memory is bounded by a few blocks per worker, whatever the size of the data."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from shardmill.transforms.dataset.generations.manifest_files import read_manifest

from ..memory import Ended, Measured, peak_at, peak_bytes, run_sampled, write_floats

LIMIT = 600e6
SECONDS = 30
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


def converted(folder: Path, name: str) -> Ended:
    """Convert a file with two worker processes; it ends within the limits."""
    command = [sys.executable, "-m", "shardmill.pipelines", "convert", name, "-o", "out", "--workers", "2"]
    ended = run_sampled(command, folder)
    assert ended.peak < LIMIT, ended
    assert ended.seconds < SECONDS, ended
    return ended


def counts(folder: Path) -> int:
    return read_manifest(str(folder / "out")).counts.written


class TestSmallInput:
    """Input of a few megabytes ends within the same memory, whatever it states or repeats."""

    def test_lines_of_200_000_different_keys_are_refused_by_the_limit_of_columns(self, tmp_path: Path) -> None:
        (tmp_path / "a.jsonl").write_text("".join(f'{{"k{i}":1}}\n' for i in range(200_000)))
        ended = converted(tmp_path, "a.jsonl")
        assert ended.code != 0
        assert "200000 keys are more than limits.columns (100000)" in ended.text

    @pytest.mark.thorough("5,000 columns are written")
    def test_lines_that_each_have_another_key_are_converted(self, tmp_path: Path) -> None:
        (tmp_path / "a.jsonl").write_text("".join(f'{{"k{i}":1}}\n' for i in range(5_000)))
        ended = converted(tmp_path, "a.jsonl")
        assert (ended.code, counts(tmp_path)) == (0, 5_000), ended.text

    @pytest.mark.thorough("20,000 rows of 3,000 columns are written")
    def test_lines_with_few_of_many_keys_are_converted(self, tmp_path: Path) -> None:
        choose = np.random.default_rng(1)
        rows = ({f"k{key}": int(key) for key in choose.choice(3000, 20, replace=False)} for _ in range(20_000))
        (tmp_path / "a.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        ended = converted(tmp_path, "a.jsonl")
        assert (ended.code, counts(tmp_path)) == (0, 20_000), ended.text
