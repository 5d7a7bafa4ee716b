"""Compare this version with another one: CPU, wall clock and memory of whole commands, in turn, in one run.

    git worktree add ../before COMMIT && (cd ../before && uv sync)
    python -m compileall -q ../before/.venv .venv ../before . # where PYTHONDONTWRITEBYTECODE is set
    uv run python benchmarks/compare.py ../before --runs 5

Each round runs every workload by one version and then by the other, which of them is first in turn. The table has the
medians, and how this version's relate to the other's: none may be worse by more than a twentieth.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
from pathlib import Path

from measure import Measured, measure, warm_files
from workloads import WORKLOADS, prepare

HERE = Path(__file__).parent
ROWS = {
    "csv": 2_000_000,
    "parquet": 4_000_000,
    "jsonl": 1_000_000,
    "floats": 200_000,
    "images": 10_000,
    "tar": 10_000,
}
START_UP = "start-up (--help)"


def run_once(checkout: Path, source: Path | None, work: Path) -> Measured:
    """Convert a source once, or print the help."""
    command = [str(checkout / ".venv/bin/shardmill")]
    if source is None:
        return measure([*command, "--help"], work / "log")
    out = work / "out"
    shutil.rmtree(out, ignore_errors=True)
    warm_files(source)
    return measure([*command, "convert", str(source), "-o", str(out), "--workers", "2"], work / "log")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path, help="a checkout of the other version, with its environment in .venv")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--work", type=Path, default=HERE / ".work")
    args = parser.parse_args()
    args.work.mkdir(exist_ok=True)
    versions = {"before": args.before, "now": HERE.parent}
    sources = {name: prepare(WORKLOADS[name], rows, args.work) for name, rows in ROWS.items()} | {START_UP: None}
    found: dict[tuple[str, str], list[Measured]] = {}
    for number in range(args.runs):
        for name, source in sources.items():
            for version in sorted(versions, reverse=bool(number % 2)):
                found.setdefault((name, version), []).append(run_once(versions[version], source, args.work))
    print("| workload | CPU, s | ratio | wall clock, s | peak memory, MB | ratio |")
    print("| --- | --: | --: | --: | --: | --: |")
    for name in sources:
        cpu, wall, peak = (
            [statistics.median(getattr(run, what) for run in found[name, version]) for version in versions]
            for what in ("cpu", "wall", "peak")
        )
        print(
            f"| {name} | {cpu[0]:.2f} → {cpu[1]:.2f} | {cpu[1] / cpu[0]:.2f} | {wall[0]:.2f} → {wall[1]:.2f} "
            f"| {peak[0] / 1e6:.0f} → {peak[1] / 1e6:.0f} | {peak[1] / max(peak[0], 1):.2f} |"
        )


if __name__ == "__main__":
    main()
