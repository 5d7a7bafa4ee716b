"""What statistics take: the same rows converted without, with the default ones, and with all of them, in turn.

    uv run python benchmarks/counting.py                         Parquet and CSV, 12 columns, seven runs in turn

CPU of a row is the difference of two sizes, so that start-up is left out, and what statistics take is the median of the
differences between neighbouring runs: other work beside them changes both.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
from pathlib import Path
from typing import Final

from measure import measure, warm_files, warm_memory
from workloads import WORKLOADS, Workload, prepare

SHARDMILL: Final = str(Path(sys.executable).with_name("shardmill"))
LEVELS: Final = ("none", "basic", "full")


def cpu_of_a_row(workload: Workload, level: str, sizes: tuple[int, int], work: Path) -> float:
    """Return the microseconds of CPU that a row takes with statistics of a level."""
    seconds = []
    for rows in sizes:
        source, out = prepare(workload, rows, work), work / "out"
        shutil.rmtree(out, ignore_errors=True)
        warm_memory(1 << 30)
        warm_files(source)
        command = [SHARDMILL, "convert", str(source), "-o", str(out), "--workers", "1", "-q", "--set", f"stats={level}"]
        seconds.append(measure(command, work / "counting.log").cpu)
        shutil.rmtree(out)
    return (seconds[1] - seconds[0]) / (sizes[1] - sizes[0]) * 1e6


def main() -> None:
    """Print a line of a table for each workload and level."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--workloads", nargs="+", default=["parquet", "csv"])
    parser.add_argument("--work", type=Path, default=Path("benchmark-work"))
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    sizes = (args.rows // 4, args.rows)
    print("| source | statistics | us of CPU a row | more than without (median; least and most) |")
    print("| --- | --- | --: | --: |")
    for name in args.workloads:
        found: dict[str, list[float]] = {level: [] for level in LEVELS}
        for _ in range(args.runs):
            for level in LEVELS:
                found[level].append(cpu_of_a_row(WORKLOADS[name], level, sizes, args.work))
        for level in LEVELS:
            more = [one - other for one, other in zip(found[level], found["none"], strict=True)]
            spread = f"{statistics.median(more):.3f} ({min(more):.3f} to {max(more):.3f})" if level != "none" else ""
            print(f"| {name} | {level} | {statistics.median(found[level]):.3f} | {spread} |", flush=True)


if __name__ == "__main__":
    main()
