"""Memory is bounded, and time linear, in every direction in which an input can be large.

Millions of images and tens of thousands of shards are simulated by `benchmarks/scale.py`; rows, columns, keys, files
and annotations are converted by `benchmarks/directions.py`. Both at sizes that a test has time for: their figures for
large ones stand in `benchmarks/RESULTS.md`.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parent.parent.parent / "benchmarks"
BENCHMARK = BENCHMARKS / "scale.py"
SMALL, LARGE = 500_000, 2_000_000

MEMORY_LIMIT = 1e9
MOST_EXPONENT = 1.1

GRAPH_BYTES = 350_000
"""The steps take 70 KB; tasks take up to 256 KiB, and lie in files if they take more (transforms/test_tasks.py).

The pieces of ten million images would take 550 MB.
"""

pytestmark = [
    pytest.mark.engine,
    pytest.mark.thorough("two sizes of many large inputs are converted"),
    pytest.mark.timeout(1800),
]


@pytest.fixture(scope="module")
def runs() -> tuple[dict[str, Any], dict[str, Any]]:
    """Both sizes; the large one once more if a busy machine took more memory or time than the bounds allow.

    Threads that wait hold memory, and work beside them takes the caches that theirs needs: both only add to a run.
    """
    small, large = simulated(SMALL), simulated(LARGE)
    if peak_at_ten_million(small, large) >= MEMORY_LIMIT or exponent(small, large) >= MOST_EXPONENT:
        again = simulated(LARGE)
        large = {**min(large, again, key=cpu), "peak": min(large["peak"], again["peak"])}
    return small, large


def peak_at_ten_million(small: dict[str, Any], large: dict[str, Any]) -> float:
    """Return the peak that the line through both gives."""
    an_image = (large["peak"] - small["peak"]) / (LARGE - SMALL)
    return float(large["peak"] + an_image * (10_000_000 - LARGE))


def simulated(images: int) -> dict[str, Any]:
    """Simulate on a disk: the tests' folder may be in memory, and what is mapped from there counts as the process's."""
    with tempfile.TemporaryDirectory(prefix="shardmill-scale-") as work:
        command = [sys.executable, str(BENCHMARK), "--one", str(images), "--work", work]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout.splitlines()[-1]))


def exponent(small: dict[str, Any], large: dict[str, Any]) -> float:
    """Return the power of the images by which the CPU time grows."""
    return math.log(cpu(large) / cpu(small)) / math.log(LARGE / SMALL)


def cpu(run: dict[str, Any]) -> float:
    return float(sum(phase["cpu"] for phase in run["phases"]))


def test_ten_million_images_would_take_less_than_a_gigabyte(runs: tuple[dict[str, Any], dict[str, Any]]) -> None:
    small, large = runs
    assert (large["images"], large["shards"]) == (LARGE, pytest.approx(LARGE / 99.3, rel=0.01))
    assert small["peak"] < 350e6
    assert peak_at_ten_million(small, large) < MEMORY_LIMIT, "by the line through these; measured it is 840 MB"


def test_time_grows_as_the_images_do(runs: tuple[dict[str, Any], dict[str, Any]]) -> None:
    small, large = runs
    assert exponent(small, large) < MOST_EXPONENT, "1 is linear"
    assert cpu(large) < LARGE * 100e-6


def test_the_graph_names_files_and_carries_no_image(runs: tuple[dict[str, Any], dict[str, Any]]) -> None:
    small, large = runs
    assert max(small["graph_bytes"], large["graph_bytes"]) < GRAPH_BYTES
    assert large["plan_bytes"] < 40 * LARGE


def test_a_manifest_of_a_hundred_thousand_shards_is_read_in_parts(runs: tuple[dict[str, Any], dict[str, Any]]) -> None:
    for run in runs:
        classes = 25 * run["folders"]
        in_parts = run["shards"] // 10_000 * 10_000
        assert run["part_bytes"] < 120 * in_parts + 1000
        assert run["manifest_bytes"] < 120 * (run["shards"] - in_parts) + classes + 6000


DIRECTIONS = (
    "rows_of_csv", "rows_of_parquet", "rows_of_jsonl", "columns_of_csv", "columns_of_parquet", "keys_of_jsonl",
    "sparse_keys_of_jsonl", "files_of_csv", "files_of_jsonl", "files_of_parquet", "objects_of_coco",
    "files_of_voc", "files_of_yolo",
)  # fmt: skip
TIMES = 4
MOST_GROWTH = 2 * TIMES
"""Four times as much takes at most eight times the CPU on a busy machine, start-up left out; a square, sixteen."""

LEAST_SECONDS = 0.5
"""What start-up varies by: a small input is counted as taking so much."""


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_four_times_as_much_takes_about_four_times_the_time_and_less_than_600_megabytes(direction: str) -> None:
    growth, peak = growth_of(direction)
    for _ in range(3):  # start-up, which is taken off, varies on a busy machine
        if growth <= MOST_GROWTH and peak < 600e6:
            break
        growth, peak = growth_of(direction)
    assert growth <= MOST_GROWTH
    assert peak < 600e6


def growth_of(direction: str) -> tuple[float, float]:
    """Return how many times the CPU of the small size the large one takes, and the memory of the large one."""
    with tempfile.TemporaryDirectory(prefix="shardmill-scale-") as work:  # on a disk, as above
        share = "0.03" if direction in ("files_of_voc", "files_of_yolo") else "0.25"  # 3,000 pictures, and 750
        command = [sys.executable, str(BENCHMARKS / "directions.py"), direction, "--share", share, "--json"]
        done = subprocess.run([*command, "--work", work], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    small, large = found["runs"]
    assert large["size"] == TIMES * small["size"]
    beyond = [one["cpu"] - found["start"]["cpu"] for one in (small, large)]
    return beyond[1] / max(beyond[0], LEAST_SECONDS), large["peak"]
