"""Commands that write beside a dataset or out of one, killed, and run again.

    python tests/faults/upkeep.py FOLDER COMMAND                   a report, as JSON: a kill at each of its calls
    python tests/faults/upkeep.py FOLDER COMMAND EIO               an error of the disk, once at each place that calls
    python tests/faults/upkeep.py FOLDER COMMAND KILLS SEED        real commands, killed at random moments of their work

Run again, the command has to leave what an undisturbed one leaves, and nothing else. Where a killed one had made
everything, it may say that it is all there (exit code 2).
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from children import copy, in_children, load, load_command, run, undisturbed
from PIL import Image
from scenarios import CREATE, write_csv
from shardmill.transforms.dataset.storage.record_file import write_records

_LATEST, _MOST_TRIES = 1.2, 20
"""The latest moment of a kill, in times of the work; how often a command is started to die."""

OWN = {".out", ".err", ".report"}
"""Files of the children."""


def _dataset(folder: str) -> None:
    os.makedirs(folder)
    for number, name in enumerate("ab"):
        write_csv(f"{folder}/{name}.csv", 1000 * number, 25)
    undisturbed(CREATE, folder)


def _without_statistics(folder: str) -> None:
    _dataset(folder)
    for name in ("stats.json", "stats.tfdv"):
        os.unlink(f"{folder}/out/{name}")


def _records(folder: str) -> None:
    _dataset(folder)
    shards = sorted(name for name in os.listdir(f"{folder}/out") if name.endswith(".tfrecord"))
    for name in os.listdir(f"{folder}/out"):
        if name not in shards:
            path = f"{folder}/out/{name}"
            shutil.rmtree(path) if os.path.isdir(path) else os.unlink(path)


def _pictures(folder: str) -> None:
    for name in ("cat", "dog"):
        os.makedirs(f"{folder}/pets/{name}")
        data = io.BytesIO()
        Image.new("RGB", (8, 8), (name == "cat" and "red") or "blue").save(data, "PNG")
        for number in range(3):
            with open(f"{folder}/pets/{name}/{number}.png", "wb") as file:
                file.write(data.getvalue())
    undisturbed(["convert", "pets", "-o", "out", "-q", "--workers", "1"], folder)


def _broken(folder: str) -> None:
    os.makedirs(folder)
    write_records(f"{folder}/a.tfrecord", (bytes([number]) * 5000 for number in range(200)))
    with open(f"{folder}/a.tfrecord", "r+b") as file:
        file.seek(300_000)
        file.write(b"damaged")


COMMANDS: dict[str, tuple[list[str], Callable[[str], None]]] = {
    "adopt": (["adopt", "out", "-q"], _records),
    "index": (["index", "out", "-q"], _records),
    "index-again": (["index", "out", "-q", "--overwrite"], _dataset),
    "stats": (["stats", "out", "--write", "--full", "-q"], _without_statistics),
    "export": (["export", "out", "-o", "x/table.jsonl", "--split", "train", "-q"], _dataset),
    "export-pictures": (["export", "out", "-o", "x", "-q"], _pictures),
    "report": (["report", "out", "-o", "report.html", "-q"], _dataset),
    "salvage": (["salvage", "a.tfrecord", "-o", "saved", "-q"], _broken),
}


def _tree(folder: str) -> dict[str, str]:
    """Return all files and folders, with a digest of each file, of a manifest without its block of the run."""
    found = {}
    for above, folders, names in os.walk(folder):
        found |= {os.path.relpath(os.path.join(above, name), folder): "folder" for name in folders}
        for name in names:
            path = os.path.join(above, name)
            with open(path, "rb") as file:
                data = file.read()
            if "manifest" in os.path.relpath(path, folder) and not name.startswith("."):
                document = json.loads(data)
                del document["run"]
                data = json.dumps(document).encode()
            found[os.path.relpath(path, folder)] = hashlib.sha256(data).hexdigest()
    return {name: digest for name, digest in found.items() if name not in OWN}


class _Undisturbed:
    """A command, the folder that it begins with, and what it leaves there and how it ends when nothing disturbs it."""

    def __init__(self, folder: str, name: str) -> None:
        load()
        self.command, prepare = COMMANDS[name]
        self.begun = f"{folder}/begun"
        prepare(self.begun)
        with suppress(SystemExit):  # salvage ends with 3
            load_command(self.command, copy(self.begun, f"{folder}/loaded"))
        made = copy(self.begun, f"{folder}/made")
        self.ended = run(self.command, made)
        assert self.ended.code == (3 if name == "salvage" else 0), self.ended
        self.whole = _tree(made)

    def after_a_kill(self, place: str) -> dict[str, Any]:
        """Run the command again in a folder; return what is wrong then, and whether the folder was half done before."""
        left, problems = _tree(place), []
        again = run(self.command, place)
        now = _tree(place)
        if again.code != self.ended.code and not (again.code == 2 and now == self.whole):
            problems.append(f"run again, it ended with {again.code}: {again.err}")
        if now != self.whole:
            problems.append(f"run again, it left other files: {sorted(set(now.items()) ^ set(self.whole.items()))[:6]}")
        shutil.rmtree(place)
        return {"problems": problems, "half": left not in (self.whole, _tree(self.begun))}


def kill_at_each_call(folder: str, name: str) -> dict[str, Any]:
    """Kill a command at its calls; return of each how it ended when it was run again, and what is wrong then."""
    one = _Undisturbed(folder, name)
    calls = [call for call in one.ended.made if call[0] != "look"]

    def case(number: int) -> dict[str, Any]:
        place = copy(one.begun, f"{folder}/{number}")
        killed = run(one.command, place, calls[number], "KILL")
        found = one.after_a_kill(place)
        if killed.code != -9:
            found["problems"].append(f"it was not killed, but ended with {killed.code}: {killed.err}")
        return {"call": calls[number], **found}

    return {"cases": in_children(case, len(calls))}


def fail_at_each_place(folder: str, name: str) -> dict[str, Any]:
    """Fail a command once at each line of the product that calls; return what it said, and what is wrong afterwards."""
    one = _Undisturbed(folder, name)
    places = {(call[0], place): call for call, place in zip(one.ended.made, one.ended.places, strict=True)}
    calls = [*places.values()]

    def case(number: int) -> dict[str, Any]:
        place = copy(one.begun, f"{folder}/{number}")
        failed = run(one.command, place, calls[number], "EIO")
        return {"call": calls[number], "code": failed.code, "err": failed.err, **one.after_a_kill(place)}

    return {"cases": in_children(case, len(calls))}


def kill_at_random(folder: str, name: str, kills: int, seed: int) -> dict[str, Any]:
    """Kill the processes of a real command at random moments, from the first thing that it makes or removes on."""
    one = _Undisturbed(folder, name)
    _start(one.command, copy(one.begun, f"{folder}/first")).wait()  # it compiles modules
    process, started = _start(one.command, copy(one.begun, f"{folder}/timed")), time.time_ns()
    process.wait()
    seconds = max((max(_marks(f"{folder}/timed").values()) - started) / 1e9, 0)

    def case(number: int) -> dict[str, Any]:
        chance = random.Random(f"{seed}:{number}")
        for tries in range(1, _MOST_TRIES + 1):  # one that ends before its moment is not counted
            place = copy(one.begun, f"{folder}/{number}-{tries}")
            process = _start(one.command, place)
            with suppress(subprocess.TimeoutExpired):
                process.wait(chance.uniform(0, _LATEST * seconds))
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            if process.wait() == -signal.SIGKILL:
                break
            shutil.rmtree(place)
        else:
            return {"problems": [f"it ended before it was killed, {_MOST_TRIES} times"], "half": False}
        return one.after_a_kill(place)

    return {"cases": in_children(case, kills), "seconds": seconds}


def _start(command: list[str], folder: str) -> subprocess.Popen[bytes]:
    """Start a real command, and return it when it has made or removed something, or has ended."""
    before = _marks(folder)
    process = subprocess.Popen(
        [sys.executable, "-m", "shardmill.pipelines", *command],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    while process.poll() is None and _marks(folder) == before:
        time.sleep(0.001)
    return process


def _marks(folder: str) -> dict[str, int]:
    """Return what changes when something is made or removed below a folder."""
    found = {}
    for above, _, _ in os.walk(folder):
        with suppress(FileNotFoundError):
            found[above] = os.stat(above).st_mtime_ns
    return found


if __name__ == "__main__":
    _, where, what, *rest = sys.argv
    where = os.path.realpath(where)
    if rest == ["EIO"]:
        report = fail_at_each_place(where, what)
    else:
        report = kill_at_random(where, what, int(rest[0]), int(rest[1])) if rest else kill_at_each_call(where, what)
    sys.stdout.write(json.dumps(report) + "\n")
