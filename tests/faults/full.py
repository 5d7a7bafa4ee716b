"""Commands meet a file system that is full, on a real one of little room; then it gets more, and they run again.

    unshare -m python tests/faults/full.py FOLDER SCENARIO                 a report of all sizes, as JSON
    unshare -m python tests/faults/full.py FOLDER SCENARIO read-only       one that cannot be written at all

The process must be allowed to mount: it has to have a mount namespace of its own, and to be root in it.
"""

from __future__ import annotations

import contextlib
import glob
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from children import Begun, Ended, begin, copy, load, problems_of_rerun, run
from scenarios import SCENARIOS, Scenario
from states import problems_of

STEP_BYTES = 48 << 10
ENOUGH_BYTES = 64 << 20
_NOTES = (".err", ".out", ".report")  # of the harness


def fill(scenario: Scenario, folder: str) -> dict[str, Any]:
    """Run a command where there is a little more room each time, until it ends well; return how each run ended."""
    load()
    begun = begin(scenario, folder)
    for name in _NOTES:  # they take no room: see `_copied`
        open(f"{begun.folder}/{name}", "w").close()
    sizes: list[dict[str, Any]] = []
    while not sizes or sizes[-1]["code"]:
        room = _bytes_of(begun.folder) + (len(sizes) + 1) * STEP_BYTES
        with _mounted(f"{folder}/room", room) as at:
            case = _copied(begun, at)
            ended = run(scenario.command, case)
            generation, problems = problems_of(f"{case}/out", begun.expected)
            if ended.code:
                subprocess.run(["mount", "-o", f"remount,size={ENOUGH_BYTES}", at], check=True)
                problems += problems_of_rerun(scenario, case, begun)
        sizes.append(_told(ended, generation, problems) | {"room": room})
    return {"sizes": sizes}


def be_read_only(scenario: Scenario, folder: str) -> dict[str, Any]:
    """Run a command where the file system can only be read."""
    load()
    begun = begin(scenario, folder)
    with _mounted(f"{folder}/room", ENOUGH_BYTES) as at:
        case = _copied(begun, at)
        subprocess.run(["mount", "-o", "remount,ro", at], check=True)
        ended = run(scenario.command, case)
        generation, problems = problems_of(f"{case}/out", begun.expected)
    return {"read_only": _told(ended, generation, problems)}


def _told(ended: Ended, generation: int, problems: list[str]) -> dict[str, Any]:
    return {"code": ended.code, "err": ended.err, "generation": generation, "problems": problems}


@contextlib.contextmanager
def _mounted(at: str, room: int) -> Iterator[str]:
    os.makedirs(at, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={room}", "none", at], check=True)
    try:
        yield at
    finally:
        subprocess.run(["umount", at], check=True)


def _copied(begun: Begun, at: str) -> str:
    """Copy what a command begins with; what is written down of it by the harness lies elsewhere, and takes no room."""
    case = copy(begun.folder, f"{at}/case")
    for name in _NOTES:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"{case}/{name}")
        os.symlink(f"{os.path.dirname(at)}/notes{name}", f"{case}/{name}")
    return case


def _bytes_of(folder: str) -> int:
    """Return the room that a folder takes on a tmpfs, a page for each file at least."""
    paths = glob.glob(f"{folder}/**", recursive=True, include_hidden=True)
    return sum(-(-max(os.lstat(path).st_size, 1) // 4096) * 4096 for path in paths)


if __name__ == "__main__":
    tried = be_read_only if sys.argv[3:] else fill
    sys.stdout.write(json.dumps(tried(SCENARIOS[sys.argv[2]], os.path.realpath(sys.argv[1]))) + "\n")
