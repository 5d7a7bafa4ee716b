"""What commands cost in CPU time, beside what a yardstick costs: one machine is five times as slow as the next."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

STANDARD_IMPORTS: Final = (
    "asyncio, http.client, xml.dom.minidom, unittest.mock, decimal, multiprocessing.pool, logging.config, ctypes"
)
STANDARD_SECONDS: Final = 0.2
"""What these imports take on the machine that the budgets are for."""


def cpu_of_python(*args: str, cwd: Path | None = None) -> tuple[float, subprocess.CompletedProcess[str]]:
    """Run this Python with the arguments, its modules compiled; return the seconds of CPU, and how it ended."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, *args], cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done


def cpu_of_imports(names: str) -> float:
    """Return the seconds of CPU that a Python process takes which imports the modules and ends."""
    seconds, done = cpu_of_python("-c", f"import {names}")
    assert done.returncode == 0, done.stderr
    return seconds


def slowness_by_the_clock() -> float:
    """Return how many times longer than on that machine a process takes here just now, others beside it; at least 1.

    It is the longest of three: what else runs comes and goes.
    """
    longest = STANDARD_SECONDS
    for _ in range(3):
        started = time.monotonic()
        cpu_of_imports(STANDARD_IMPORTS)
        longest = max(longest, time.monotonic() - started)
    return longest / STANDARD_SECONDS


def slowness() -> float:
    """Return how many times slower than the machine of the budgets this one is just now; at least 1."""
    return max(1.0, cpu_of_imports(STANDARD_IMPORTS) / STANDARD_SECONDS)
