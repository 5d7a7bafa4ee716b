"""Eight processes append to one dataset at once: each lands, nothing is lost or doubled.

    python tests/faults/races.py FOLDER ROUNDS      a report, as JSON

In even rounds each appends a file of its own; in odd ones all append the same two files, in another order each.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from typing import Any

from children import copy, in_children, load, load_command, run, undisturbed
from scenarios import APPEND, CREATE, write_csv
from shardmill.transforms.dataset.integrity.verify import verify_dataset
from shardmill.transforms.dataset.reading.open_dataset import open_dataset
from shardmill.transforms.dataset.storage.manifest_files import list_generations, read_manifest

WRITERS = 8
ROWS = 25


def race(folder: str, rounds: int) -> dict[str, Any]:
    """Run appends that race; return what each round left."""
    load()
    begun = f"{folder}/begun"
    os.makedirs(begun)
    for i in range(WRITERS + 2):
        write_csv(f"{begun}/{'ab'[i] if i < 2 else i}.csv", 1000 * i, ROWS)
    undisturbed(CREATE, begun)
    load_command([APPEND[0], "2.csv", *APPEND[3:]], copy(begun, f"{folder}/loaded"))
    return {"rounds": [_round(copy(begun, f"{folder}/{number}"), same=number % 2 == 1) for number in range(rounds)]}


def _round(folder: str, *, same: bool) -> dict[str, Any]:
    def one(number: int) -> tuple[int, str]:
        files = [["2.csv", "3.csv"], ["3.csv", "2.csv"]][number % 2] if same else [f"{number + 2}.csv"]
        place = f"{folder}/{number}"
        os.mkdir(place)
        ended = run([APPEND[0], *(f"../{name}" for name in files), "-o", "../out", *APPEND[5:]], place)
        return ended.code, ended.err

    ended = in_children(one, WRITERS, at_once=WRITERS)
    out = f"{folder}/out"
    dataset = open_dataset(out)
    ids = Counter(i for split in dataset.splits for i in dataset.to_arrow(split, ["id"])["id"].to_pylist())
    report = verify_dataset(out)
    return {
        "same": same,
        "ended": ended,
        "generations": list_generations(out),
        "operations": [read_manifest(out, number).operation for number in list_generations(out)],
        "ids": sorted(ids),
        "doubled": [i for i, count in ids.items() if count > 1],
        "findings": [*map(str, report.findings), *report.notes],
        "left": [name for name in os.listdir(out) if name.startswith(".")],
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(race(os.path.realpath(sys.argv[1]), int(sys.argv[2]))) + "\n")
