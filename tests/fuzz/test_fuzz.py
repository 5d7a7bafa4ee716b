"""Every reader of bytes from outside, against thousands of hostile inputs: no crash, no hang, no bomb.

A target's inputs are mutations of sound ones (`mutate.py`), each made from the seed, the target and its number alone.
They are fed to it in child processes (`child.py`) that may take 1 GiB more of memory than an idle one, and 2 seconds of
processor time for each: an allocation by a number that lies fails there, and is a failure here, and so is every error
that is not ours, every process that is ended by a signal, and every broken invariant of a target.

    SHARDMILL_FUZZ_INPUTS=100000 uv run pytest tests/fuzz      more inputs than the 2,000 of CI
    SHARDMILL_FUZZ_SEED=7 ...                                  other ones
    SHARDMILL_FUZZ_FIRST=20000 ...                             those from number 20,000 on
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

INPUTS = int(os.environ.get("SHARDMILL_FUZZ_INPUTS", "2000"))
SEED = int(os.environ.get("SHARDMILL_FUZZ_SEED", "20261121"))
FIRST = int(os.environ.get("SHARDMILL_FUZZ_FIRST", "0"))
TARGETS = (
    "tfrecord", "gzip", "example", "manifest", "schema", "config", "csv_split", "csv", "parquet_footer", "parquet",
    "numpy", "image", "image_decode",
)  # fmt: skip
CHILD_INPUTS = 10_000
"""In one process: what leaks a little is seen, and a failure does not lose hours."""

HERE = Path(__file__).parent


def feed(name: str, first: int, count: int, progress: Path) -> dict[str, Any]:
    """Return the report of a child that was fed some inputs, or fail by the number of the input that ended it."""
    progress.write_bytes(bytes(8))
    command = [sys.executable, str(HERE / "child.py"), name, str(SEED), str(first), str(count), str(progress)]
    environment = os.environ | {
        "ARROW_DEFAULT_MEMORY_POOL": "system",  # mimalloc takes a GiB of addresses before it is used
        "MALLOC_ARENA_MAX": "1",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "PYTHONWARNINGS": "ignore",
    }
    done = subprocess.run(command, check=False, capture_output=True, env=environment, timeout=60 + count)
    last = done.stdout.decode().splitlines()[-1:]
    report: dict[str, Any] = json.loads(last[0]) if last and last[0].startswith("{") else {}
    if done.returncode or not report:
        number = report.get("failed", int.from_bytes(progress.read_bytes(), "little"))
        again = f"python tests/fuzz/child.py {name} {SEED} {number} > input"
        why = report.get("error") or f"ended with {done.returncode}: {done.stderr.decode(errors='replace')[-4000:]}"
        pytest.fail(f"{name}: input {number} of seed {SEED} ({again}): {why}")
    return report


@pytest.mark.timeout(36_000)
@pytest.mark.parametrize("name", TARGETS)
def test_hostile_input_is_read_or_refused_in_bounded_time_and_memory(
    name: str, tmp_path: Path, fuzz_reports: list[str]
) -> None:
    started = time.monotonic()
    outcomes: dict[str, int] = {}
    slowest, peak = 0.0, 0
    for first in range(FIRST, FIRST + INPUTS, CHILD_INPUTS):
        report = feed(name, first, min(CHILD_INPUTS, FIRST + INPUTS - first), tmp_path / "progress")
        for outcome, count in report["outcomes"].items():
            outcomes[outcome] = outcomes.get(outcome, 0) + count
        slowest, peak = max(slowest, report["slowest"]), max(peak, report["peak_bytes"])
    assert sum(outcomes.values()) == INPUTS
    assert peak < 1 << 30
    assert len(outcomes) > 1, f"every input ended alike: {outcomes}"
    fuzz_reports.append(
        f"{name}: {INPUTS:,} inputs from {FIRST:,}, seed {SEED}, {time.monotonic() - started:.0f} s; slowest "
        f"{slowest * 1000:.0f} ms, {peak >> 20} MiB at most; {outcomes}"
    )


def test_a_fault_of_each_kind_is_seen(tmp_path: Path) -> None:
    (tmp_path / "targets.py").write_text(
        "import os, time\nfrom dataclasses import dataclass\n"
        "@dataclass\nclass Target:\n make: object\n check: object\n"
        "def check(data):\n"
        " if data == b'bomb': bytearray(2 << 30)\n"
        " if data == b'hang':\n  start = time.process_time()\n  while time.process_time() < start + 2.1: pass\n"
        " if data == b'crash': os.abort()\n"
        " if data == b'wrong': raise KeyError(data)\n"
        " return 'fine'\n"
        "def target(name):\n"
        " return Target(lambda rng, calls=[]: calls.append(1) or (name.encode() if len(calls) > 22 else b''), check)\n"
    )
    (tmp_path / "child.py").write_text((HERE / "child.py").read_text())
    for kind, told in (("bomb", "MemoryError"), ("hang", "over 2.0 s"), ("wrong", "KeyError"), ("crash", "")):
        (tmp_path / "progress").write_bytes(bytes(8))
        command = [sys.executable, str(tmp_path / "child.py"), kind, "1", "0", "5", str(tmp_path / "progress")]
        done = subprocess.run(command, check=False, capture_output=True, timeout=60)
        assert done.returncode
        assert int.from_bytes((tmp_path / "progress").read_bytes(), "little") == 2
        if told:
            report = json.loads(done.stdout.decode().splitlines()[-1])
            assert report["failed"] == 2
            assert told in report["error"]
