"""Convert to more than 10,000 shards again and again, beside busy processes: no run loses a shard, or hangs.

    uv run python tests/campaigns/many_shards.py --runs 50

Beam's local engine lost elements in some runs, and only on busy machines (`transforms/beam_streams.py`): no single test
shows that it does not. Each run is the command itself, in a folder in memory where there is room; then every record is
counted, and every shard's size held against the manifest. The script ends with 1 if a run failed or took too long.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

MEMORY = Path("/dev/shm")
SHARD_BYTES = 66_000  # each row is a record over the shard size, and so a shard


def write_rows(path: Path, rows: int) -> None:
    texts = pa.array([chr(97 + i) * SHARD_BYTES for i in range(10)])
    column = pa.DictionaryArray.from_arrays(pa.array([i % 10 for i in range(rows)], pa.int32()), texts)
    pq.write_table(pa.table({"text": column.cast(pa.string())}), path, row_group_size=2000)


@contextlib.contextmanager
def busy(processes: int) -> Iterator[None]:
    """Keep the processors busy meanwhile."""
    started = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(processes)]
    try:
        yield
    finally:
        for process in started:
            process.kill()
            process.wait()


def convert(folder: Path, shards: int, processes: str, seconds: float) -> str | None:
    """Run the command and look at what it wrote; return what is wrong, None if nothing is."""
    from shardmill.pipelines import open_dataset
    from shardmill.transforms.dataset.integrity.verify import verify_dataset

    out = folder / "out"
    command = [sys.executable, "-m", "shardmill.pipelines", "convert", str(folder / "rows.parquet"), "-o", str(out)]
    options = ["--shard-size", "64KiB", "--set", f"runner.processes={processes}", "-q"]
    try:
        done = subprocess.run([*command, *options], capture_output=True, text=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        return f"hung: it had not ended after {seconds:.0f} s"
    if done.returncode:
        return f"exit code {done.returncode}: {done.stderr.strip()[-300:]}"
    if findings := verify_dataset(out, quick=True).findings:
        return f"damaged: {findings[0]}"
    records = sum(1 for _ in open_dataset(out).records("train"))
    found = sum(1 for name in os.listdir(out) if name.endswith(".tfrecord"))
    return None if records == found == shards else f"{records} records in {found} shards, {shards} are due"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--shards", type=int, default=10_001)
    parser.add_argument("--busy", type=int, default=3, help="processes that keep the processors busy meanwhile")
    parser.add_argument("--processes", default="auto", choices=["auto", "true", "false"], help="runner.processes")
    parser.add_argument("--seconds", type=float, default=600, help="a run that takes longer counts as hung")
    args = parser.parse_args()
    room = MEMORY if MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > 3 * args.shards * SHARD_BYTES else None
    took, wrong = [], []
    with tempfile.TemporaryDirectory(dir=room) as name, busy(args.busy):
        folder = Path(name)
        write_rows(folder / "rows.parquet", args.shards)
        for run in range(1, args.runs + 1):
            started = time.monotonic()
            problem = convert(folder, args.shards, args.processes, args.seconds)
            took.append(time.monotonic() - started)
            wrong += [problem] if problem else []
            print(f"run {run}: {took[-1]:.1f} s: {problem or 'whole'}", flush=True)
            shutil.rmtree(folder / "out", ignore_errors=True)
    whole, median = len(took) - len(wrong), statistics.median(took)
    print(
        f"{whole} of {len(took)} runs of {args.shards:,} shards beside {args.busy} busy processes were whole; "
        f"{min(took):.0f} to {max(took):.0f} s, median {median:.0f}"
    )
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
