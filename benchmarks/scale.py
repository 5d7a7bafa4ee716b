"""Plan, stage and commit conversions of millions of images to a hundred thousand shards, without their data.

    uv run python benchmarks/scale.py                                  # 1.25, 2.5, 5 and 10 million images
    uv run python benchmarks/scale.py --images 1250000 10000000 --check    # memory and slopes are held to their bounds

Everything that the launcher does is the product's own: listing, survey, tasks, plan files, the job's graph, the
engine's steps over all descriptors, shard plan, manifest, commit, publish, and the commands that read a dataset. Not
real are

    the folders    `os.scandir` is replaced, at the listing's own seam, by one that makes up entries of 1.05 MB
    the data       workers read no image: they roll records of the right sizes into parts that are holes (sparse files)
    the copies     shards that are pooled of tails are holes, too, and their syncs are left out

Each size runs in a process of its own, and so does each command that reads what it made. Times are CPU seconds (user
+ system), which other work on the machine does not change much; memory is the peak resident set of each phase.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import simulated
from phases import Phases, apart

SIZES = (1_250_000, 2_500_000, 5_000_000, 10_000_000)
MEMORY_LIMIT = 1_000_000_000
MOST_SLOPE = 1.15
"""The exponent of CPU over images: 1 is linear, n log n comes to 1.05 between a million and ten."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--seed", type=int, help="shuffle, so that each task has images of many folders")
    parser.add_argument("--check", action="store_true", help="fail where memory or a slope is over its bound")
    parser.add_argument("--work", help="a folder for the staged holes, by default a temporary one")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--command", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one is not None:
        print(json.dumps(simulate(args.one, args.seed, Path(args.work), args.command)))
        return 0
    runs = [_in_new_folder(images, args.seed, args.work) for images in args.images]
    print(table(runs))
    print(json.dumps({"runs": runs, "slopes": slopes(runs)}), file=sys.stderr)
    problems = find_problems(runs) if args.check else []
    for problem in problems:
        print(f"error: {problem}", file=sys.stderr)
    return 1 if problems else 0


def _in_new_folder(images: int, seed: int | None, work: str | None) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(dir=work) as folder:
        return apart(images, seed, Path(folder))


def simulate(images: int, seed: int | None, work: Path, command: str | None) -> dict[str, Any]:
    """Run it all at one size, or one command that reads what was made, and return what was measured."""
    if command is None:
        return simulated.run(images, seed, work, Phases())
    return simulated.look(command, images, seed, work, Phases())


def slopes(runs: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Return the exponent of CPU over images, of each phase of two seconds and more, and of all."""
    last = {phase["name"]: phase["cpu"] for phase in runs[-1]["phases"]}
    found = {name: _slope(runs, name) for name, cpu in last.items() if cpu >= 2} if len(runs) > 1 else {}
    return found | ({"all": _slope(runs, None)} if len(runs) > 1 else {})


def _slope(runs: Sequence[dict[str, Any]], name: str | None) -> float:
    points = []
    for run in runs:
        cpu = sum(phase["cpu"] for phase in run["phases"] if name in (None, phase["name"]))
        points.append((math.log(run["images"]), math.log(max(cpu, 1e-3))))
    mean_x, mean_y = (sum(axis) / len(points) for axis in zip(*points, strict=True))
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / sum((x - mean_x) ** 2 for x, _ in points)


def memory_at(images: int, runs: Sequence[dict[str, Any]]) -> float:
    """Return the peak that a straight line through the smallest and the largest run gives for some images."""
    first, last = runs[0], runs[-1]
    step = (last["peak"] - first["peak"]) / max(last["images"] - first["images"], 1)
    return float(last["peak"] + step * (images - last["images"]))


def find_problems(runs: Sequence[dict[str, Any]]) -> list[str]:
    problems = [
        f"{run['images']} images took {run['peak']} bytes of memory" for run in runs if run["peak"] > MEMORY_LIMIT
    ]
    most = memory_at(SIZES[-1], runs)
    if most > MEMORY_LIMIT:
        problems.append(f"{SIZES[-1]} images would take {most:.0f} bytes of memory, by the line through these")
    problems += [
        f"{name}: CPU grows as images ** {slope:.2f}" for name, slope in slopes(runs).items() if slope > MOST_SLOPE
    ]
    return problems


def table(runs: Sequence[dict[str, Any]]) -> str:
    """Return the table of all runs: CPU seconds and the peak of memory by phase."""
    grown = slopes(runs)
    names = [phase["name"] for phase in runs[0]["phases"]]
    head = [f"{run['images']:,} images" for run in runs]
    lines = ["| CPU s (peak MB) | " + " | ".join(head) + " | exponent |", "|---|" + "---|" * (len(runs) + 1)]
    for i, name in enumerate(names):
        cells = [f"{run['phases'][i]['cpu']:.1f} ({run['phases'][i]['peak'] / 1e6:.0f})" for run in runs]
        lines.append(f"| {name} | " + " | ".join(cells) + f" | {_shown(grown.get(name))} |")
    totals = [f"{sum(p['cpu'] for p in run['phases']):.1f} (**{run['peak'] / 1e6:.0f}**)" for run in runs]
    lines.append("| all | " + " | ".join(totals) + f" | {_shown(grown.get('all'))} |")
    keys = ("folders", "tasks", "shards", "graph_bytes", "plan_bytes", "manifest_bytes", "part_bytes", "sources_bytes")
    lines += [f"| {key.replace('_', ' ')} | " + " | ".join(f"{run[key]:,}" for run in runs) + " | |" for key in keys]
    return "\n".join(lines)


def _shown(slope: float | None) -> str:
    return "" if slope is None else f"{slope:.2f}"


if __name__ == "__main__":
    sys.exit(main())
