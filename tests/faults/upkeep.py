"""Commands that write beside a dataset or out of one, killed at each of their calls, and run again.

    python tests/faults/upkeep.py FOLDER COMMAND [KILLS SEED]      a report, as JSON; KILLS of the calls, or all of them

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
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from children import copy, in_children, load, load_command, run, undisturbed
from PIL import Image
from scenarios import CREATE, write_csv
from shardmill.transforms.dataset.records.record_file import write_records

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


def kill_at_each_call(folder: str, name: str, kills: int | None, seed: int) -> dict[str, Any]:
    """Kill a command at its calls; return of each how it ended when it was run again, and what is wrong then."""
    load()
    command, prepare = COMMANDS[name]
    begun = f"{folder}/begun"
    prepare(begun)
    with suppress(SystemExit):  # salvage ends with 3
        load_command(command, copy(begun, f"{folder}/loaded"))
    made = copy(begun, f"{folder}/made")
    ended = run(command, made)
    assert ended.code == (3 if name == "salvage" else 0), ended
    whole, code = _tree(made), ended.code
    calls = [call for call in ended.made if call[0] != "look"]
    if kills is not None:
        calls = random.Random(seed).choices(calls, k=kills)

    def one(number: int) -> dict[str, Any]:
        place = copy(begun, f"{folder}/{number}")
        killed = run(command, place, calls[number], "KILL")
        left = _tree(place) if killed.code == -9 else {}
        again = run(command, place)
        now = _tree(place)
        problems = [] if killed.code == -9 else [f"it was not killed, but ended with {killed.code}: {killed.err}"]
        if again.code != code and not (again.code == 2 and now == whole):
            problems.append(f"run again, it ended with {again.code}: {again.err}")
        if now != whole:
            problems.append(f"run again, it left other files: {sorted(set(now.items()) ^ set(whole.items()))[:6]}")
        shutil.rmtree(place)
        return {"call": calls[number], "problems": problems, "half": left not in ({}, whole, _tree(begun))}

    return {"cases": in_children(one, len(calls))}


if __name__ == "__main__":
    _, where, what, *rest = sys.argv
    how_many, first = (int(rest[0]), int(rest[1])) if rest else (None, 0)
    sys.stdout.write(json.dumps(kill_at_each_call(os.path.realpath(where), what, how_many, first)) + "\n")
