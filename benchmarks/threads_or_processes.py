"""Threads or worker processes: from which size of the output on do processes repay their start?

    uv run python benchmarks/threads_or_processes.py --workload parquet --rows 250000 500000 --runs 5

Both ways convert the same files with two workers, one after the other, in turn (A B, A B, ...); medians of the whole
commands. `worker_processes.PROCESSES_FROM_BYTES` is drawn from this table, which is in docs/dev/decisions.md.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import sys
from pathlib import Path

from measure import Measured, measure, warm_files, warm_memory
from workloads import WORKLOADS, prepare

HERE = Path(__file__).parent
WAYS = {"threads": "false", "processes": "true"}


def run_once(way: str, source: Path, work: Path) -> tuple[Measured, int]:
    """Convert once; return what it took, and the bytes of the shards."""
    out = work / "out"
    shutil.rmtree(out, ignore_errors=True)
    command = [sys.executable, "-m", "shardmill.pipelines", "convert", str(source), "-o", str(out), "--json"]
    log = work / "log.json"
    measured = measure([*command, "--workers", "2", "--set", f"runner.processes={WAYS[way]}"], log)
    splits = json.loads((out / "manifest.json").read_bytes())["splits"]
    return measured, sum(split["bytes"] for split in splits.values())


def main() -> None:
    """Print a line of the table for each size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workload", choices=list(WORKLOADS), required=True)
    parser.add_argument("--rows", type=int, nargs="+", required=True)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--work", type=Path, default=HERE / ".work")
    args = parser.parse_args()
    work: Path = args.work
    for rows in args.rows:
        source = prepare(WORKLOADS[args.workload], rows, work / "data")
        warm_files(source)
        taken: dict[str, list[Measured]] = {way: [] for way in WAYS}
        size = 0
        for _ in range(args.runs):
            for way, runs in taken.items():
                warm_memory()
                measured, size = run_once(way, source, work)
                runs.append(measured)
        cells = [f"{args.workload}, {rows:,}", f"{size / (1 << 20):,.0f} MiB"]
        for figure in ("wall", "cpu"):
            cells += [f"{statistics.median(getattr(run, figure) for run in runs):.2f} s" for runs in taken.values()]
        print(f"| {' | '.join(cells)} |", flush=True)
    shutil.rmtree(work / "out", ignore_errors=True)


if __name__ == "__main__":
    main()
