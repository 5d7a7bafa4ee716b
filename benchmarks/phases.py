"""What one step of a run takes, and runs that are measured in a process of their own."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

PROGRAM: Final = Path(__file__).with_name("scale.py")


@dataclass
class Phase:
    """One step: CPU seconds, seconds of wall clock, and the peak of memory in it, in bytes."""

    name: str
    cpu: float
    wall: float
    peak: int


class Phases:
    """Measures one step after the other."""

    def __init__(self) -> None:
        self.done: list[Phase] = []

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here
        cpu, wall = time.process_time(), time.monotonic()
        yield
        self.done.append(Phase(name, time.process_time() - cpu, time.monotonic() - wall, _peak()))


def _peak() -> int:
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) << 10


def apart(images: int, seed: int | None, work: Path, command: str | None = None) -> dict[str, Any]:
    """Return what one size takes, or one command that reads what was made of it, measured in a process of its own."""
    options = [] if seed is None else ["--seed", str(seed)]
    options += [] if command is None else ["--command", command]
    line = [sys.executable, str(PROGRAM), "--one", str(images), "--work", str(work), *options]
    done = subprocess.run(line, check=True, stdout=subprocess.PIPE, text=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))
