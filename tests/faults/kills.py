"""Kill a real command at random moments, by `kill -9`, and look at what that leaves.

    python tests/faults/kills.py FOLDER SCENARIO KILLS SEED      a report of all kills, as JSON

The command is a process of its own, started as its user starts it, with its engine. The moment is drawn from the time
in which it works in the dataset's folder, since what comes before is loading; every other one from the time in which it
writes records, as loading the engine takes most of the time before. A command that ends before its moment is not
counted, and another one is started.
"""

from __future__ import annotations

import contextlib
import glob
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, field
from typing import Any

from children import Begun, begin, copy, in_children, load, problems_of_rerun
from scenarios import SCENARIOS, Scenario
from states import problems_of, tree

_WATCH_SECONDS = 0.001
"""How often it is looked whether a command has begun to work."""

_LATEST = 1.2
"""The latest moment, in times of the work: some die with all of it done."""

_MOST_TRIES = 20


@dataclass
class Kill:
    """One command that was killed: after how many seconds of work, what it left, and what was wrong with that."""

    after: float = 0.0
    tries: int = 0
    generation: int = 0
    unfinished: bool = False
    problems: list[str] = field(default_factory=list)


def kill_at_random(scenario: Scenario, folder: str, kills: int, seed: int) -> dict[str, Any]:
    """Kill a command so many times; return what came of it."""
    load(small_tasks=False)  # as the real command does
    begun = begin(scenario, folder)
    _seconds_of_work(scenario, copy(begun.folder, f"{folder}/first"), scenario.works_in[0])  # it compiles modules
    times = [
        _seconds_of_work(scenario, copy(begun.folder, f"{folder}/timed-{i}"), pattern)
        for i, pattern in enumerate(scenario.works_in)
    ]

    def one(number: int) -> dict[str, Any]:
        kill, chance = Kill(), random.Random(f"{seed}:{number}")
        try:
            which = number % 2
            _kill(kill, scenario, f"{folder}/{number}", begun, chance, scenario.works_in[which], times[which])
        except Exception as error:  # noqa: BLE001 - whatever it is: the kill failed
            kill.problems.append(f"{type(error).__name__}: {error}")
        shutil.rmtree(f"{folder}/{number}", ignore_errors=True)
        return asdict(kill)

    started = time.monotonic()
    return {"seconds_of_work": times, "kills": in_children(one, kills), "seconds": time.monotonic() - started}


def _start(scenario: Scenario, folder: str, pattern: str) -> subprocess.Popen[bytes]:
    """Start a command, and return it when it has made or removed something in a folder of the dataset."""
    before = _mark(f"{folder}/out/{pattern}")
    process = subprocess.Popen(
        [sys.executable, "-m", "shardmill.pipelines", *scenario.command],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    while process.poll() is None and _mark(f"{folder}/out/{pattern}") == before:
        time.sleep(_WATCH_SECONDS)
    return process


def _mark(pattern: str) -> list[tuple[str, int]]:
    """Return what changes when something is made or removed in folders."""
    marks = []
    for path in glob.glob(pattern):
        with contextlib.suppress(FileNotFoundError):
            marks.append((path, os.stat(path).st_mtime_ns))
    return marks


def _seconds_of_work(scenario: Scenario, folder: str, pattern: str) -> float:
    """Return the seconds from the first change in some folders to the last one in any of the dataset's."""
    process = _start(scenario, folder, pattern)
    started = time.time()
    assert process.wait() == 0
    changed = max(os.stat(parent).st_mtime for parent, _, _ in os.walk(f"{folder}/out"))
    return max(changed - started, 0.0)


def _kill(
    kill: Kill,
    scenario: Scenario,
    folder: str,
    begun: Begun,
    chance: random.Random,
    pattern: str,
    longest: float,
) -> None:
    for kill.tries in range(1, _MOST_TRIES + 1):
        shutil.rmtree(folder, ignore_errors=True)
        process = _start(scenario, copy(begun.folder, folder), pattern)
        kill.after = chance.uniform(0, _LATEST * longest)
        try:
            process.wait(kill.after)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
        if process.wait() == -signal.SIGKILL:
            break
    else:
        kill.problems.append(f"it ended before it was killed, {_MOST_TRIES} times")
    out = f"{folder}/out"
    kill.generation, problems = problems_of(out, begun.expected)
    kill.problems += problems
    kill.unfinished = not os.path.isdir(out) or tree(out) != begun.whole
    kill.problems += problems_of_rerun(scenario, folder, begun)


if __name__ == "__main__":
    report = kill_at_random(SCENARIOS[sys.argv[2]], os.path.realpath(sys.argv[1]), int(sys.argv[3]), int(sys.argv[4]))
    sys.stdout.write(json.dumps(report) + "\n")
