"""What the launcher does for millions of images and a hundred thousand shards: bounded memory, linear time.

The simulation is `benchmarks/scale.py`, at sizes that a test has time for; its figures for ten million images stand in
`benchmarks/RESULTS.md`.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

BENCHMARK = Path(__file__).parent.parent.parent / "benchmarks" / "scale.py"
SMALL, LARGE = 100_000, 500_000
BYTES_AN_IMAGE = 160
"""Of memory, in the first half million, where half of it is buffers that fill; from one to ten million it is 65."""

GRAPH_BYTES = 200_000
"""The steps take 70 KB, and a file of tasks 0.15: the pieces of 500,000 images would take 27 MB."""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], dict[str, Any]]:
    return simulated(SMALL, tmp_path_factory), simulated(LARGE, tmp_path_factory)


def simulated(images: int, factory: pytest.TempPathFactory) -> dict[str, Any]:
    work = factory.mktemp(f"scale-{images}")
    command = [sys.executable, str(BENCHMARK), "--one", str(images), "--work", str(work)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout.splitlines()[-1]))


def cpu(run: dict[str, Any]) -> float:
    return float(sum(phase["cpu"] for phase in run["phases"]))


@pytest.mark.slow
def test_memory_grows_by_less_than_160_bytes_an_image(runs: tuple[dict[str, Any], dict[str, Any]]) -> None:
    small, large = runs
    assert small["peak"] < 350e6
    assert large["peak"] - small["peak"] < BYTES_AN_IMAGE * (LARGE - SMALL)


@pytest.mark.slow
def test_time_grows_no_faster_than_the_images(runs: tuple[dict[str, Any], dict[str, Any]]) -> None:
    small, large = runs
    assert (large["images"], large["shards"]) == (LARGE, pytest.approx(5031, rel=0.01))
    assert cpu(large) < 1.2 * LARGE / SMALL * cpu(small)
    assert cpu(large) < LARGE * 100e-6


@pytest.mark.slow
def test_the_graph_names_files_and_carries_no_image(runs: tuple[dict[str, Any], dict[str, Any]]) -> None:
    small, large = runs
    assert small["graph_bytes"] < large["graph_bytes"] < GRAPH_BYTES
    assert large["plan_bytes"] < 40 * LARGE


@pytest.mark.slow
def test_a_manifest_takes_under_120_bytes_a_shard(runs: tuple[dict[str, Any], dict[str, Any]]) -> None:
    for run in runs:
        classes = 20 * run["folders"]
        assert run["manifest_bytes"] < 120 * run["shards"] + classes + 4000
