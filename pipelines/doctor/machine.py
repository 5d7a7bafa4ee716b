"""The machine: processors, memory, and room on disks."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from ...transforms.format.wording.printable import counted, printable_path
from ...transforms.format.wording.sizes import format_size
from .finding import CORE, Finding, State

_WORKER_BYTES: Final = 300 * 10**6
"""Two workers take less than 600 MB, whatever the size of the data."""

_ROOM_BYTES: Final = 1 << 30
"""With less room a conversion of any size ends with a full disk."""

_CGROUP: Final = Path("/sys/fs/cgroup")


def machine_findings(places: Iterable[str]) -> Iterator[Finding]:
    yield _memory()
    yield _temporary_folder()
    yield _disk("working folder", os.getcwd(), "datasets that are written below it", required=False)
    for place in places:
        yield _disk("disk", os.path.abspath(place), "what is read or written there", required=True)


def available_bytes() -> int:
    """Return the memory that is free: of the machine, or less where a container has a limit."""
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for line in _text(Path("/proc/meminfo")).splitlines():
        if line.startswith("MemAvailable:"):
            free = int(line.split()[1]) * 1024
    for most, used in (
        (_CGROUP / "memory.max", _CGROUP / "memory.current"),
        (_CGROUP / "memory/memory.limit_in_bytes", _CGROUP / "memory/memory.usage_in_bytes"),
    ):
        limit, taken = _text(most).strip(), _text(used).strip()
        if limit.isdecimal() and taken.isdecimal():
            free = min(free, max(int(limit) - int(taken), 0))
    return free


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def _memory() -> Finding:
    workers, free = len(os.sched_getaffinity(0)), available_bytes()
    state: State = "ok" if free >= workers * _WORKER_BYTES else "poor"
    fits = max(free // _WORKER_BYTES, 1)
    found = f"{format_size(free)} free, {counted(workers, 'processor')}"
    use = f"{counted(workers, 'worker')} at once, which take up to {_WORKER_BYTES // 10**6} MB each"
    return Finding("memory", state, found, use, f"fewer workers: --workers {fits}", CORE)


def _temporary_folder() -> Finding:
    use = "Flink, data from Python, checks.duplicates and checks.leaks"
    try:
        folder = tempfile.gettempdir()
    except FileNotFoundError as error:
        where = str(error.strerror or error)
        return Finding("temporary folder", "missing", where, use, "set TMPDIR to a folder that is writable", CORE)
    finding = _disk("temporary folder", folder, use, required=True)
    asked = os.environ.get("TMPDIR")
    if asked and os.path.abspath(asked) != os.path.abspath(folder):
        found = f"{finding.found}; TMPDIR is {printable_path(asked)}, which cannot be written"
        return Finding(finding.what, "poor", found, use, "set TMPDIR to a folder that is writable", CORE)
    return finding


def _disk(what: str, folder: str, use: str, *, required: bool) -> Finding:
    """Return how much room there is at a path, or where it would be made; `required` it must be writable."""
    there = folder
    while not os.path.exists(there):
        there = os.path.dirname(there)
    shown, need = printable_path(folder), CORE if required else ""
    free = shutil.disk_usage(there).free
    found = f"{shown}: {format_size(free)} free"
    target = there if os.path.isdir(there) else os.path.dirname(there)
    if what == "disk" and os.path.exists(folder):
        if not os.access(folder, os.R_OK):
            return Finding(what, "missing", f"{shown}: cannot be read", use, "let this user read it", need)
    elif not os.access(target, os.W_OK | os.X_OK):
        found = f"{shown}: {printable_path(target)} cannot be written"
        return Finding(what, "missing", found, use, "let this user write there, or write elsewhere", need)
    state: State = "ok" if free >= _ROOM_BYTES else "poor"
    return Finding(what, state, found, use, "make room there, or write elsewhere", need)
