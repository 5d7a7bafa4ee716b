"""Many inputs for every target, in pieces: interrupt it at any time, and the same command goes on where it was.

    uv run python tests/fuzz/campaign.py                    100,000 inputs for each target, on all processors
    uv run python tests/fuzz/campaign.py --seconds 60       a minute of it: no piece is begun that would take longer
    uv run python tests/fuzz/campaign.py --table            what was done so far, as docs/dev/proofs.md shows it

Each piece that ended well is a line of tests/fuzz/.work/SEED.jsonl; remove the file to begin anew. A fault ends the
command with 1, is told by its input, and is tried again by the next.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from feed import HERE, SEED, TARGETS, FaultError, feed, total

PIECE_INPUTS = 5_000

USUAL_SECONDS = 15.0
"""What a piece is taken to need before one of its target was timed."""


@dataclass(frozen=True)
class Piece:
    name: str
    first: int
    count: int


def main(arguments: Sequence[str] | None = None, *, here: Path = HERE, piece_inputs: int = PIECE_INPUTS) -> int:
    options = _parser().parse_args(arguments)
    log = here / ".work" / f"{options.seed}.jsonl"
    log.parent.mkdir(exist_ok=True)
    done = _done(log)
    if options.table:
        sys.stdout.write(_table(done, options.seed))
        return 0
    left = [
        Piece(name, first, min(piece_inputs, options.inputs - first))
        for name in options.targets
        for first in range(0, options.inputs, piece_inputs)
    ]
    left = [piece for piece in left if (piece.name, piece.first, piece.count) not in {_key(line) for line in done}]
    times = {line["target"]: line["seconds"] for line in done}
    faults = _run(left, times, options.seed, log, options.jobs, options.seconds)
    sys.stdout.write(_table(_done(log), options.seed))
    for fault in faults:
        sys.stderr.write(f"{fault}\n")
    return 1 if faults else 0


def _run(
    left: list[Piece], times: dict[str, float], seed: int, log: Path, jobs: int, seconds: float | None
) -> list[FaultError]:
    """Run pieces until there are none, or the time is up, or a fault is found."""
    end = time.monotonic() + (seconds or 1e9)
    commit = _commit()
    faults: list[FaultError] = []
    with ThreadPoolExecutor(jobs) as pool, tempfile.TemporaryDirectory() as folder, log.open("a") as file:
        running: dict[Future[dict[str, Any]], tuple[Piece, float]] = {}
        while running or (left and not faults):
            while left and not faults and len(running) < jobs:
                if time.monotonic() + times.get(left[0].name, USUAL_SECONDS) * 1.2 > end:
                    left.clear()
                    break
                piece = left.pop(0)
                progress = Path(folder) / f"{piece.name}-{piece.first}"
                task = pool.submit(feed, piece.name, seed, piece.first, piece.count, progress)
                running[task] = (piece, time.monotonic())
            for task in wait(running, return_when=FIRST_COMPLETED).done:
                piece, started = running.pop(task)
                try:
                    report = task.result()
                except FaultError as fault:
                    faults.append(fault)
                    continue
                times[piece.name] = time.monotonic() - started
                line = {"target": piece.name, "first": piece.first, "count": piece.count, "commit": commit}
                file.write(json.dumps(line | {"seconds": round(times[piece.name], 1)} | report) + "\n")
                file.flush()
    return faults


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Feed many hostile inputs to every target; go on where it was left.")
    parser.add_argument("targets", nargs="*", default=list(TARGETS), metavar="TARGET", help="by default all")
    parser.add_argument("--inputs", type=int, default=100_000, help="for each target")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seconds", type=float, help="begin no piece that would end later")
    parser.add_argument("--table", action="store_true", help="run nothing")
    return parser


def _done(log: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


def _key(line: dict[str, Any]) -> tuple[str, int, int]:
    return line["target"], line["first"], line["count"]


def _commit() -> str:
    answer = subprocess.run(["git", "rev-parse", "--short", "HEAD"], check=False, capture_output=True, cwd=HERE)
    return answer.stdout.decode().strip() or "unknown"


def _table(done: list[dict[str, Any]], seed: int) -> str:
    """Return what was done as a table: seconds are those of all processes together, starts included."""
    lines = [
        f"seed {seed}",
        "",
        "| target | inputs | seconds | slowest | memory | outcomes |",
        "| --- | --: | --: | --: | --: | --- |",
    ]
    for name in TARGETS:
        pieces = [line for line in done if line["target"] == name]
        if pieces:
            report = total(pieces)
            outcomes = ", ".join(f"{what} {count:,}" for what, count in report["outcomes"].items())
            lines.append(
                f"| `{name}` | {sum(line['count'] for line in pieces):,} | "
                f"{sum(line['seconds'] for line in pieces):.0f} | {report['slowest'] * 1000:.0f} ms | "
                f"{report['peak_bytes'] >> 20} MiB | {outcomes} |"
            )
    commits = sorted({line["commit"] for line in done})
    return "\n".join([*lines, "", f"commits: {', '.join(commits)}\n"])


if __name__ == "__main__":
    sys.exit(main())
