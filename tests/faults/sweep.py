"""Fail every call of a command, and look at what that leaves.

    python tests/faults/sweep.py FOLDER SCENARIO            a report, as JSON: a death at every call, the other faults
                                                            once at each place of the code that calls
    python tests/faults/sweep.py FOLDER SCENARIO all        every fault at every call
    python tests/faults/sweep.py FOLDER SCENARIO kinds      every fault at one call of each kind
    python tests/faults/sweep.py FOLDER SCENARIO engine 9   every 9th of the cases, on the engine
    python tests/faults/sweep.py FOLDER SCENARIO parts      those at the parts of manifests, of two shards each

A case is a call of an undisturbed run, and a fault. A place is a line of the product that calls, and the lines by which
the command came to it: a disk that fails at the second call from there is met by the same code as at the first.
A child runs the command until the fault ends it, and what is left is looked at; then the command runs again, without
faults: once for each state that was left, as many are the same.
"""

from __future__ import annotations

import glob
import json
import os
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from calls import FAULTS, Call, Fault
from children import Begun, Ended, begin, copy, in_children, load, problems_of_rerun, run
from scenarios import SCENARIOS, Scenario
from shardmill.transforms.format.manifest import manifest as manifest_parts
from states import half_written, problems_of, shape, tree

_MAY_END_WELL = ("unlink", "rmdir", "mkdir", "look")
"""Calls that may fail without harm: what is not removed is so later, a folder may be there, a look is taken again."""


@dataclass
class Case:
    """A fault, and what came of it: `problems` is empty if all promises were kept."""

    call: Call
    fault: Fault
    code: int = 0
    generation: int = 0
    err: str = ""
    problems: list[str] = field(default_factory=list)


def sweep(
    scenario: Scenario, folder: str, *, engine: bool = False, every: int = 1, parts: bool = False, which: str = "places"
) -> dict[str, Any]:
    """Fail the calls of a command; return what was tried and what came of it."""
    load(engine=engine)
    if parts:
        manifest_parts.PART_SHARDS = 2  # type: ignore[misc]
    begun = begin(scenario, folder)
    os.mkdir(f"{folder}/states")
    placed = [
        (call, place)
        for call, place in zip(begun.ended.made, begun.ended.places, strict=True)
        if not parts or "manifests/shards-" in call[1].replace(".shards", "shards")
    ]
    wanted = _cases(placed, which)[::every]

    def one(number: int) -> dict[str, Any]:
        case = Case(*wanted[number])
        try:
            _try(case, scenario, copy(begun.folder, f"{folder}/{number}"), begun)
        except Exception as error:  # noqa: BLE001 - whatever it is: the case failed
            case.problems.append(f"{type(error).__name__}: {error}")
        shutil.rmtree(f"{folder}/{number}", ignore_errors=True)
        return asdict(case)

    started = time.monotonic()
    tried = in_children(one, len(wanted))
    return {
        "calls": [call for call, _ in placed],
        "places": [place for _, place in placed],
        "unseen": begun.ended.unseen,
        "cases": tried,
        "states": len(os.listdir(f"{folder}/states")),
        "seconds": time.monotonic() - started,
    }


def _cases(placed: list[tuple[Call, str]], which: str) -> list[tuple[Call, Fault]]:
    """Return the faults to try at which calls: see the module's docstring; calls that only look fail by EIO alone."""
    cases: list[tuple[Call, Fault]] = []
    met: set[tuple[str, str, Fault]] = set()
    for call, place in placed:
        for fault in FAULTS if call[0] != "look" else FAULTS[2:]:
            here = (call[0], "" if which == "kinds" else place, fault)
            if here not in met or which == "all" or (fault == "KILL" and which == "places"):
                cases.append((call, fault))
            met.add(here)
    return cases


def _try(case: Case, scenario: Scenario, folder: str, begun: Begun) -> None:
    ended = run(scenario.command, folder, case.call, case.fault)
    out = f"{folder}/out"
    case.code, case.err = ended.code, ended.err
    case.generation, case.problems = problems_of(out, begun.expected)
    if not ended.fired:
        case.problems.append("the call was not made")
    if case.fault == "KILL":
        if ended.code != -signal.SIGKILL:
            case.problems.append(f"killed, it ended with {ended.code}")
    else:
        case.problems += _problems_of_end(case, ended, folder, begun)
    state = f"{os.path.dirname(folder)}/states/{shape(out)}"
    if not os.path.exists(state):
        case.problems += problems_of_rerun(scenario, folder, begun)
        if not case.problems:
            open(state, "w").close()


def _problems_of_end(case: Case, ended: Ended, folder: str, begun: Begun) -> Iterator[str]:
    """Yield what is wrong with how a command told an error of the disk, and with what it left."""
    out = f"{folder}/out"
    left = tree(out) if os.path.isdir(out) else {}
    if ended.code == 0:
        unstaged = {name: digest for name, digest in left.items() if not name.startswith(".staging/")}
        if case.call[0] not in _MAY_END_WELL or unstaged != begun.whole:
            yield "it ended well"
        return
    before = tree(f"{begun.folder}/out") if os.path.isdir(f"{begun.folder}/out") else {}
    if case.call[0] != "unlink":
        yield from (f"{name} is left" for name in half_written(out) if name not in before and ".staging" not in name)
    if ended.code not in (1, 2):
        yield f"it ended with {ended.code}"
    errors = [line for line in ended.err.splitlines() if line.startswith("error: ")]
    if len(errors) != 1 or any(word in ended.err for word in ("unexpected", "Traceback", "report it")):
        yield f"it said: {ended.err}"
        return
    if os.strerror({"ENOSPC": 28, "EIO": 5}[case.fault]) not in errors[0]:
        yield f"it does not say why: {errors[0]}"
    runs = {os.path.basename(run) for run in glob.glob(f"{out}/.staging/*") if os.path.isdir(f"{run}/parts")}
    runs -= set(glob.glob("*", root_dir=f"{begun.folder}/out/.staging"))
    told = "was committed before" in ended.err or any(f"out/.staging/{run}" in ended.err for run in runs)
    if runs and not told:
        yield f"it does not name its staging folder: {ended.err}"


if __name__ == "__main__":
    more = sys.argv[3:]
    report = sweep(
        SCENARIOS[sys.argv[2]],
        os.path.realpath(sys.argv[1]),
        engine="engine" in more,
        parts="parts" in more,
        which=next((word for word in ("all", "kinds") if word in more), "places"),
        every=int(more[-1]) if more and more[-1].isdecimal() else 1,
    )
    sys.stdout.write(json.dumps(report) + "\n")
