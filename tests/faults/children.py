"""Commands in children of a process that has everything loaded: each starts in milliseconds, and may be killed.

The engine is left out, unless it is asked for: the steps of a conversion are taken one after the other in one thread,
by the functions that the engine calls. The calls are the same (a test says so), in a tenth of the time.
"""

from __future__ import annotations

import functools
import gc
import glob
import json
import os
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import typer
from calls import Call, Calls, Fault
from plain_run import run_plainly
from scenarios import Scenario
from shardmill.pipelines.cli import main as shardmill
from shardmill.pipelines.engines.engine import LocalEngine
from shardmill.transforms.format.splits import shard_plan as task_planning
from states import Known, half_written, known, problems_of, tree

STUCK_SECONDS = 300
AT_ONCE = 2
"""Cases at a time: one for each processor that CI has."""


@dataclass
class Ended:
    """How a command ended: its exit code, or minus the signal; what it said; whether its fault came to be.

    `made` are its calls, `places` the lines of the product that made them, and `unseen` the files that it made by
    other ones.
    """

    code: int
    err: str = ""
    fired: bool = False
    made: list[Call] = field(default_factory=list)
    places: list[str] = field(default_factory=list)
    unseen: list[str] = field(default_factory=list)


def load(*, engine: bool = False, small_tasks: bool = True) -> None:
    """Make this process one whose children start soon, and, with `small_tasks`, cut little data into several tasks."""
    if small_tasks:
        task_planning.MIN_TASK_BYTES = 60_000  # type: ignore[misc]
    typer.main.get_command = functools.cache(typer.main.get_command)
    if not engine:
        LocalEngine.run = lambda _, prepared, processes: run_plainly(prepared)  # type: ignore[method-assign]


def load_command(command: Sequence[str], folder: str) -> None:
    """Run a command, and what looks at its work, in this process: what is loaded by it, all children have."""
    before = os.getcwd()
    os.chdir(folder)
    try:
        shardmill(command)
    except SystemExit as ended:
        if ended.code:
            raise
    problems_of(f"{folder}/out", known(f"{folder}/out", "", 0))
    os.chdir(before)
    gc.collect()
    gc.freeze()


def run(args: Sequence[str], folder: str, fail: Call | None = None, fault: Fault | None = None) -> Ended:
    """Run a command in a child, in a folder; one of its calls fails."""
    fired, tell = os.pipe()
    child = os.fork()
    if not child:
        os.close(fired)
        _be_command(args, folder, fail, fault, tell)
    os.close(tell)
    ended = Ended(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), fired=os.read(fired, 1) == b"!")
    os.close(fired)
    with open(f"{folder}/.err", encoding="utf-8") as file:
        ended.err = file.read()
    with open(f"{folder}/.report", encoding="utf-8") as file:
        report = json.loads(file.read() or "{}")
    ended.made = [(call[0], call[1], call[2]) for call in report.get("made", [])]
    ended.places = report.get("places", [])
    ended.unseen = report.get("unseen", [])
    return ended


def _be_command(args: Sequence[str], folder: str, fail: Call | None, fault: Fault | None, tell: int) -> None:
    code = 99
    try:
        signal.alarm(STUCK_SECONDS)
        os.chdir(folder)
        for number, name in ((1, ".out"), (2, ".err")):
            os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644), number)
        report = open(".report", "w")  # noqa: SIM115  (it is closed by the end of the process)
        with Calls(folder, fail, fault, lambda: os.write(tell, b"!") and None) as calls:
            try:
                shardmill(args)
            except SystemExit as ended:
                code = ended.code if isinstance(ended.code, int) else 98
        threading._shutdown()  # type: ignore[attr-defined]  # as at the end of any process: threads may hang
        unseen = calls.unseen("out") if os.path.isdir("out") else []
        report.write(json.dumps({"made": calls.made, "places": calls.places, "unseen": unseen}))
        report.flush()
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:  # noqa: BLE001 - the case fails by its code, and says why
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(code)


def undisturbed(args: Sequence[str], folder: str) -> None:
    """Run a command that has to end well."""
    ended = run(args, folder)
    assert ended.code == 0, ended


def copy(begun: str, folder: str) -> str:
    """Copy a folder, hard links, times and all."""
    subprocess.run(["cp", "-a", begun, folder], check=True)
    return folder


@dataclass
class Begun:
    """A scenario's folder before its command, what the command makes of it undisturbed, and the calls by which."""

    folder: str
    expected: Known
    whole: dict[str, str]
    ended: Ended


def begin(scenario: Scenario, folder: str) -> Begun:
    """Make what a scenario begins with, and run its command undisturbed."""
    begun = f"{folder}/begun"
    scenario.prepare(begun, undisturbed)
    load_command(scenario.command, copy(begun, f"{folder}/loaded"))
    made = copy(begun, f"{folder}/undisturbed")
    ended = run(scenario.command, made)
    assert ended.code == 0, ended
    expected = known(f"{made}/out", f"{begun}/out", scenario.first)
    _, problems = problems_of(f"{made}/out", expected)
    assert not problems, problems
    return Begun(begun, expected, tree(f"{made}/out"), ended)


def problems_of_rerun(scenario: Scenario, folder: str, begun: Begun) -> Iterator[str]:
    """Run a command again where a fault ended it; yield what keeps it from ending as if there had been none."""
    out = f"{folder}/out"
    again = run(scenario.command, folder)
    if again.code != 0:
        yield f"run again, it ended with {again.code}: {again.err}"
        return
    if half_written(out) or glob.glob(f"{out}/.staging/*.lock"):
        cleared = run(["gc", "out", "--older-than", "0s", "--delete", "-q"], folder)
        if cleared.code:
            yield f"gc ended with {cleared.code}: {cleared.err}"
    now = tree(out)
    if now != begun.whole:  # which was looked at when it was made
        yield f"run again, it did not converge: {sorted(set(now.items()) ^ set(begun.whole.items()))[:6]}"
        yield from (f"run again: {problem}" for problem in problems_of(out, begun.expected)[1])


def in_children(one: Callable[[int], Any], count: int, at_once: int = AT_ONCE) -> list[Any]:
    """Return what a function gives for 0, 1, ... count - 1, by so many children that work at a time; it is JSON."""
    children = []
    for first in range(min(at_once, count)):
        reader, writer = os.pipe()
        child = os.fork()
        if not child:
            try:
                with os.fdopen(writer, "w") as file:
                    json.dump([one(number) for number in range(first, count, at_once)], file)
            finally:
                os._exit(0)
        os.close(writer)
        children.append((child, reader))
    results: list[Any] = [None] * count
    for first, (child, reader) in enumerate(children):
        with os.fdopen(reader) as file:
            results[first::at_once] = json.load(file)
        os.waitpid(child, 0)
    return results
