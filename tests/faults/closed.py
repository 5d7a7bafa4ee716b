"""Commands meet folders and files that they may not read or write; then they may, and run again.

    python tests/faults/closed.py FOLDER                 a report of all cases, as JSON
    python tests/faults/closed.py FOLDER unprinted       of commands whose standard output is a full disk

Root may read and write anything: the process gives that up first, and is refused what any user would be.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
from contextlib import suppress
from typing import Any

from children import Begun, begin, copy, load, problems_of_rerun, run, undisturbed
from scenarios import SCENARIOS, Scenario
from states import problems_of, tree
from upkeep import COMMANDS

READ_ONLY, UNREADABLE, CLOSED = 0o555, 0o333, 0o000

CASES = (
    ("create", ".", READ_ONLY),
    ("create", "a.csv", CLOSED),
    ("append", "out", READ_ONLY),
    ("append", "out", UNREADABLE),
    ("append", "out", CLOSED),
    ("append", "out/manifests", READ_ONLY),
    ("append", "out/manifests", UNREADABLE),
    ("append", "out/manifests", CLOSED),
    ("append", "out/sources", READ_ONLY),
    ("append", "out/rejects", READ_ONLY),
    ("append", "out/index", READ_ONLY),
    ("append", "out/manifests/00000001.json", CLOSED),
    ("append", "c.csv", CLOSED),
    ("merge", ".", READ_ONLY),
    ("merge", "one", UNREADABLE),
    ("merge", "one", CLOSED),
    ("merge", "one/train-00000.tfrecord", CLOSED),
    ("merge", "two/manifests", CLOSED),
    ("gc", "out", READ_ONLY),
    ("gc", "out", CLOSED),
    ("gc", "out/manifests", READ_ONLY),
    ("gc", "out/index", READ_ONLY),
    ("gc", "out/.staging", READ_ONLY),
    ("gc", "out/.staging/0123456789abcdef", CLOSED),
)
"""The scenario, what is closed to its command, and how."""

_CAP_DAC_OVERRIDE, _CAP_DAC_READ_SEARCH = 1, 2
_CAP_VERSION_3 = 0x20080522


def be_anybody() -> None:
    """Drop the capabilities by which root reads and writes what modes forbid."""
    libc = ctypes.CDLL(None, use_errno=True)
    header = (ctypes.c_uint32 * 2)(_CAP_VERSION_3, 0)
    data = (ctypes.c_uint32 * 6)()
    assert libc.capget(header, data) == 0
    for number in (0, 1):  # effective and permitted, of the first 32
        data[number] &= ~(1 << _CAP_DAC_OVERRIDE | 1 << _CAP_DAC_READ_SEARCH)
    assert libc.capset(header, data) == 0, os.strerror(ctypes.get_errno())


def close_and_try(folder: str) -> list[dict[str, Any]]:
    """Run each scenario's command where something is closed; return how it ended, and what was left."""
    load()
    be_anybody()
    os.mkdir(f"{folder}/closed", 0o500)
    try:
        os.mkdir(f"{folder}/closed/any")
    except PermissionError:
        pass
    else:
        raise AssertionError("modes do not hold: this process may do anything")
    begun: dict[str, Begun] = {}
    for name in dict.fromkeys(name for name, _, _ in CASES):
        os.mkdir(f"{folder}/{name}")
        begun[name] = begin(SCENARIOS[name], f"{folder}/{name}")
    cases = []
    for number, (name, path, mode) in enumerate(CASES):
        case = _try(SCENARIOS[name], copy(begun[name].folder, f"{folder}/{number}"), path, mode, begun[name])
        cases.append({"command": name, "path": path, "mode": oct(mode), **case})
    return cases


def print_nowhere(folder: str) -> list[dict[str, Any]]:
    """Run each command that writes where standard output is a full disk; return how it and the same one again ended."""
    load()
    cases = []
    commands = {name: (SCENARIOS[name].command, SCENARIOS[name].prepare) for name in ("create", "append", "merge")}
    commands["rebuild"] = (["rebuild", "out", "-o", "again", "-q"], SCENARIOS["append"].prepare)
    commands |= {name: (command, lambda at, _, make=prepare: make(at)) for name, (command, prepare) in COMMANDS.items()}
    for number, (name, (command, prepare)) in enumerate(commands.items()):
        begun = f"{folder}/unprinted-{name}"
        prepare(begun, undisturbed)
        for more in ([], ["--json"]) if name == "create" else [["--json"] * (number % 2)]:
            at = copy(begun, f"{begun}{len(more)}")
            with suppress(FileNotFoundError):
                os.unlink(f"{at}/.out")
            os.symlink("/dev/full", f"{at}/.out")
            loud = [*(word for word in command if word != "-q"), *more]
            ended, again = run(loud, at), run(command, at)
            cases.append({"command": loud, "code": ended.code, "err": ended.err, "again": [again.code, again.err]})
    return cases


def _try(scenario: Scenario, folder: str, path: str, mode: int, begun: Begun) -> dict[str, Any]:
    for name in (".err", ".out", ".report"):  # which the harness writes, be the folder read-only or not
        open(f"{folder}/{name}", "a").close()
    before = tree(f"{folder}/out") if scenario.first else {}
    closed = f"{folder}/{path}"
    opened = os.stat(closed).st_mode
    os.chmod(closed, mode)
    try:
        ended = run(scenario.command, folder)
    finally:
        os.chmod(closed, opened)
    generation, problems = problems_of(f"{folder}/out", begun.expected)
    changed = os.path.isdir(f"{folder}/out") and tree(f"{folder}/out") != before
    problems += problems_of_rerun(scenario, folder, begun)
    return {"code": ended.code, "err": ended.err, "generation": generation, "changed": changed, "problems": problems}


if __name__ == "__main__":
    where = os.path.realpath(sys.argv[1])
    report = {"unprinted": print_nowhere(where)} if sys.argv[2:] else {"cases": close_and_try(where)}
    sys.stdout.write(json.dumps(report) + "\n")
