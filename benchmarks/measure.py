"""Run one command and measure it: wall clock, CPU of all its processes, peak memory of the process tree."""

from __future__ import annotations

import contextlib
import os
import resource
import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

SAMPLE_SECONDS = 0.25
"""Between two looks at the memory: each walks the page tables of all processes, at the cost of those that are measured.

At 0.05 s it took a tenth of both processors. (The test of the memory bound looks that often.)
"""


@dataclass(frozen=True)
class Measured:
    """One run: seconds of wall clock and of CPU, and the peak of the tree's proportional set size in bytes."""

    wall: float
    cpu: float
    peak: int


def warm_memory(size: int = 4 << 30) -> None:
    """Touch as much memory as a run takes, and free it.

    In a virtual machine whose host takes free pages back, using such a page again costs some 10 us: far more than the
    work that is measured, and at random, since it depends on what ran before. So every tool starts from pages that were
    in use a moment ago.
    """
    np.empty(size, np.uint8)[::4096] = 1


def warm_files(folder: Path) -> None:
    """Read all files of a folder once, so that every tool finds its input in the page cache.

    Virtual machines take back cached pages that lie idle: a run would otherwise read more or less of its input from the
    disk, as chance has it.
    """
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            with path.open("rb", buffering=0) as file:
                while file.read(1 << 20):
                    pass


def tree_pss(pid: int) -> int:
    """Return the proportional set size in bytes of a process and its descendants: shared pages count once."""
    total = 0
    for each in [pid, *_descendants(pid)]:
        try:
            rollup = Path(f"/proc/{each}/smaps_rollup").read_text()
        except OSError:  # it ended between the listing and the reading
            continue
        total += sum(int(line.split()[1]) << 10 for line in rollup.splitlines() if line.startswith("Pss:"))
    return total


def _descendants(pid: int) -> list[int]:
    """Return the processes that a process and its descendants started, as the kernel lists them for each thread."""
    found = []
    with contextlib.suppress(OSError):  # it ended between the listing and the reading
        for listing in Path(f"/proc/{pid}/task").glob("*/children"):
            children = [int(child) for child in listing.read_text().split()]
            found += [each for child in children for each in (child, *_descendants(child))]
    return found


def measure(command: Sequence[str], log: Path, env: dict[str, str] | None = None) -> Measured:
    """Run a command to its end, its output in `log`.

    Raises:
        RuntimeError: the command failed; the message has the end of its output.
    """
    os.sync()  # what an earlier run left to be written is not this run's to pay for
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    peak = 0
    stop = threading.Event()
    with log.open("wb") as out:
        start = time.perf_counter()
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, env=env)

        def sample() -> None:
            nonlocal peak
            while not stop.wait(SAMPLE_SECONDS):
                peak = max(peak, tree_pss(process.pid))

        sampler = threading.Thread(target=sample)
        sampler.start()
        code = process.wait()
        wall = time.perf_counter() - start
        stop.set()
        sampler.join()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if code != 0:
        raise RuntimeError(f"{' '.join(command)} ended with {code}:\n{log.read_text(errors='replace')[-2000:]}")
    return Measured(wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, peak)
