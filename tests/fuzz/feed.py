"""Feed a stretch of a target's inputs to a child process, and bring its report home."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

SEED = 20261121
"""Of CI's inputs, and of those that docs/dev/proofs.md counts."""

TARGETS = (
    "tfrecord", "salvage", "gzip", "example", "manifest", "manifest_parts", "schema", "config", "csv_split", "csv",
    "parquet_footer", "parquet", "arrow", "numpy", "image", "image_decode",
)  # fmt: skip

HERE = Path(__file__).parent


class FaultError(AssertionError):
    """An input ended its child, or broke what its target holds to; the text says which input, and how to make it."""


def feed(name: str, seed: int, first: int, count: int, progress: Path) -> dict[str, Any]:
    """Return the report of a child that was fed some inputs; `progress` is a file for it to write to.

    Raises:
        FaultError: one of the inputs did harm.
    """
    progress.write_bytes(bytes(8))
    command = [sys.executable, str(HERE / "child.py"), name, str(seed), str(first), str(count), str(progress)]
    environment = os.environ | {
        "ARROW_DEFAULT_MEMORY_POOL": "system",  # mimalloc takes a GiB of addresses before it is used
        "MALLOC_ARENA_MAX": "1",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "PYTHONWARNINGS": "ignore",
    }
    done = subprocess.run(command, check=False, capture_output=True, env=environment, timeout=600 + count)
    last = done.stdout.decode().splitlines()[-1:]
    report: dict[str, Any] = json.loads(last[0]) if last and last[0].startswith("{") else {}
    if done.returncode or not report:
        number = report.get("failed", int.from_bytes(progress.read_bytes(), "little"))
        again = f"python tests/fuzz/child.py {name} {seed} {number} > input"
        why = report.get("error") or f"ended with {done.returncode}: {done.stderr.decode(errors='replace')[-4000:]}"
        raise FaultError(f"{name}: input {number} of seed {seed} ({again}): {why}")
    assert sum(report["outcomes"].values()) == count
    return report


def total(reports: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the reports of one target's pieces as one."""
    outcomes: dict[str, int] = {}
    for report in reports:
        for outcome, count in report["outcomes"].items():
            outcomes[outcome] = outcomes.get(outcome, 0) + count
    return {
        "outcomes": dict(sorted(outcomes.items(), key=lambda pair: -pair[1])),
        "slowest": max(report["slowest"] for report in reports),
        "peak_bytes": max(report["peak_bytes"] for report in reports),
    }
