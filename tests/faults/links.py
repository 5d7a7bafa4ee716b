"""Commands meet a link where a dataset has a file or folder: what it leads to is neither read nor changed.

python tests/faults/links.py FOLDER dataset      each command, each name that a dataset holds, and those to come
python tests/faults/links.py FOLDER records      `adopt` of TFRecord files, in whose folder there are such links
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import threading
from typing import Any

from children import copy, in_children, load, load_command, run, undisturbed
from scenarios import write_csv

CONVERT = (
    "convert a.csv -o out -q --workers 1 --max-rejects 10% --set schema.columns.n.type=int64 --set stats=true "
    "--set output.sidecars=[tfds,tfx,croissant]"
)

ADOPT = "adopt out -q"
COMMANDS = (
    "append b.csv -o out -q --workers 1 --max-rejects 10%",
    CONVERT,
    f"{CONVERT} --overwrite",
    "convert b.csv -o new -q --workers 1 --max-rejects 10% --like out",
    "merge out -o new -q --workers 1",
    "rebuild out -o new -q --workers 1",
    "rebuild out -o out -q --workers 1 --overwrite",
    "export out -o table.jsonl -q",
    ADOPT,
    "index out -q",
    "index out -q --overwrite",
    "stats out --write --full -q",
    "stats out -q",
    "report out -o report.html -q",
    "verify out",
    "verify out --quick",
    "info out",
    "inspect out",
    "log out",
    "diff out out",
    "gc out --older-than 0s --delete -q",
)
TO_COME = (
    "manifests/00000002.json",
    "sources/00000002.jsonl",
    "rejects/00000002.jsonl",
    "train-00001.tfrecord",
    "index/train-00001.offsets",
    "index/train-00000.idx",
)
WRITTEN_BY_ADOPT = (
    ".staging",
    "index",
    "manifests",
    "index/train-00000.offsets",
    "dataset_info.json",
    "features.json",
    "schema.pbtxt",
    "manifest.json",
    "manifests/00000001.json",
    "train-00000.tfrecord",
)
BEHIND = "behind"
"""What a link leads to lies in this folder beside the dataset."""

_watched = threading.Event()


def _note_what_is_read(at: str) -> None:
    """Let each process write down which files behind a link it opens through the link."""
    notes = os.open(at, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def hear(event: str, args: tuple[Any, ...]) -> None:
        if event != "open" or not _watched.is_set() or not isinstance(args[0], str | bytes):
            return
        path = os.fsdecode(args[0])
        if f"/{BEHIND}" in os.path.realpath(path) and not (args[2] & os.O_NOFOLLOW and os.path.islink(path)):
            os.write(notes, f"{os.path.realpath(path)}\n".encode())

    sys.addaudithook(hear)


def _tree(folder: str) -> dict[str, bytes]:
    found = {}
    for above, folders, names in os.walk(folder):
        found |= {os.path.join(above, name): b"folder" for name in folders}
        for name in names:
            with open(os.path.join(above, name), "rb") as file:
                found[os.path.join(above, name)] = file.read()
    return found


def put_links(folder: str, what: str) -> list[dict[str, Any]]:
    """Run each command with each link; return its end, what it read behind the link, and whether it changed it."""
    load()
    begun = f"{folder}/begun"
    os.makedirs(begun)
    write_csv(f"{begun}/a.csv", 0, 50)
    write_csv(f"{begun}/b.csv", 1000, 50)
    load_command(CONVERT.split(), begun)
    names = [*_names(f"{begun}/out"), ".staging", *TO_COME]
    commands = COMMANDS
    if what == "records":
        names, commands = list(WRITTEN_BY_ADOPT), (ADOPT,)
        for name in os.listdir(f"{begun}/out"):
            path = f"{begun}/out/{name}"
            if not name.endswith(".tfrecord"):
                shutil.rmtree(path) if os.path.isdir(path) else os.unlink(path)
    for command in commands:
        if what == "records" or command != ADOPT:
            undisturbed(command.split(), copy(begun, f"{folder}/{command}"))
    _note_what_is_read(f"{folder}/read")
    cases = [(name, command) for name in names for command in commands]

    def case(number: int) -> dict[str, Any]:
        name, command = cases[number]
        place = copy(begun, f"{folder}/{number}")
        os.mkdir(f"{place}/{BEHIND}")
        own, target = f"{place}/out/{name}", f"{place}/{BEHIND}/it"
        os.makedirs(os.path.dirname(own), exist_ok=True)
        if os.path.exists(own):
            os.rename(own, target)
        elif name in (".staging", "index", "manifests"):
            os.mkdir(target)
        os.symlink(target, own)
        before = _tree(f"{place}/{BEHIND}")
        _watched.set()
        ended = run(command.split(), place)
        _watched.clear()
        changed = _tree(f"{place}/{BEHIND}") != before
        shutil.rmtree(place)
        return {"name": name, "command": command, "code": ended.code, "err": ended.err, "changed": changed}

    results = in_children(case, len(cases))
    with open(f"{folder}/read") as file:
        read = file.read().splitlines()
    for number, result in enumerate(results):
        result["read"] = [path for path in read if path.startswith(f"{folder}/{number}/")]
    return results


def _names(folder: str) -> list[str]:
    found = []
    for above, folders, names in os.walk(folder):
        found += [os.path.relpath(os.path.join(above, name), folder) for name in [*folders, *names]]
    return sorted(found)


if __name__ == "__main__":
    report = {"cases": put_links(os.path.realpath(sys.argv[1]), sys.argv[2])}
    sys.stdout.write(json.dumps(report) + "\n")
