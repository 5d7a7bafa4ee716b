"""The commands whose calls are failed, each with the dataset that it finds: as small as they can be with all that is
written in them: two splits, rejects, several tasks, whole parts and tails, sidecars and index files.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass

Run = Callable[[Sequence[str], str], None]
"""Runs a command in a folder, undisturbed."""


@dataclass(frozen=True)
class Scenario:
    """A command, how the folder is made that it runs in, and the generation that is there before (0: none).

    `works_in` are patterns of folders: in the first one something is made or removed as soon as the command works, in
    the second one when it does what it is there for.
    """

    command: list[str]
    prepare: Callable[[str, Run], None]
    first: int = 0
    works_in: tuple[str, str] = (".staging", ".staging/*/parts")


def write_csv(path: str, start: int, rows: int) -> None:
    """Write rows of about 1.6 KB; every 20th has no number where one must be."""
    with open(path, "w") as file:
        file.write("id,n,text\n")
        for i in range(start, start + rows):
            file.write(f"{i},{'bad' if i % 20 == 7 else i * i},{f'{i * 7919 % 1000:03d}' * 500}\n")


_COMMON = ["--workers", "1", "-q", "--max-rejects", "10%", "--set", "schema.columns.n.type=int64"]
_SPLIT = ["--set", "split.fractions={train: 0.8, val: 0.2}", "--set", "split.key=id"]
_SIDECARS = ["--set", "output.sidecars=[tfds, tfx, index]", "--shard-size", "64KiB"]
CREATE = ["convert", "a.csv", "b.csv", "-o", "out", *_COMMON, *_SPLIT, *_SIDECARS]
EXACT = [*CREATE, "--set", "split={fractions: {train: 0.8, val: 0.2}, by: exact, stratify: kind}"]
SHUFFLE = [*CREATE, "--set", "shuffle.seed=7"]
APPEND = ["append", "c.csv", "d.csv", "-o", "out", *_COMMON, *_SPLIT]
MERGE = ["merge", "one", "two", "-o", "out", "--workers", "1", "-q", "--shard-size", "64KiB"]
REBUILD = ["rebuild", "one", "-o", "out", "--workers", "1", "-q", "--shard-size", "64KiB", "--set", "shuffle.seed=7"]
GC = ["gc", "out", "--older-than", "0s", "--keep", "1", "--delete", "-q"]


def _sources(folder: str, names: str) -> None:
    os.makedirs(folder)
    for name in names:
        write_csv(f"{folder}/{name}.csv", 1000 * "abcd".index(name), 50)


def _for_create(folder: str, run: Run) -> None:
    _sources(folder, "ab")


def _for_exact(folder: str, run: Run) -> None:
    _sources(folder, "ab")
    for name in "ab":
        with open(f"{folder}/{name}.csv") as file:
            lines = file.read().splitlines()
        kinds = ["kind", *("cat" if number % 3 else "dog" for number in range(len(lines) - 1))]
        with open(f"{folder}/{name}.csv", "w") as file:
            file.writelines(f"{kind},{line}\n" for kind, line in zip(kinds, lines, strict=True))


def _for_append(folder: str, run: Run) -> None:
    _sources(folder, "abcd")
    run(CREATE, folder)


def _for_merge(folder: str, run: Run) -> None:
    _sources(folder, "ab")
    run([*CREATE[:1], "a.csv", "-o", "one", *CREATE[5:]], folder)
    run([*CREATE[:1], "b.csv", "-o", "two", *CREATE[5:]], folder)


def _for_rebuild(folder: str, run: Run) -> None:
    _sources(folder, "ab")
    run([*CREATE[:4], "one", *CREATE[5:]], folder)


def _for_gc(folder: str, run: Run) -> None:
    _sources(folder, "abcd")
    run(CREATE, folder)
    shutil.copy(f"{folder}/out/train-00000.tfrecord", f"{folder}/keep.tfrecord")
    run([*CREATE[:1], "c.csv", "-o", "out", *CREATE[5:], "--set", "output.if_exists=replace"], folder)
    for name in ("train-00007.tfrecord", "index/train-00007.tfrecord.idx", f".manifest.json.{'0' * 32}"):
        shutil.copy(f"{folder}/keep.tfrecord", f"{folder}/out/{name}")
    for run_id in ("0123456789abcdef", "fedcba9876543210"):
        os.makedirs(f"{folder}/out/.staging/{run_id}/parts/000000-0123456789abcdef")
        shutil.copy(f"{folder}/keep.tfrecord", f"{folder}/out/.staging/{run_id}/parts/000000-0123456789abcdef/a.part")
        open(f"{folder}/out/.staging/{run_id}.lock", "w").close()


def _for_gc_much(folder: str, run: Run) -> None:
    _for_gc(folder, run)
    for i in range(1000, 4000):
        os.link(f"{folder}/out/train-00007.tfrecord", f"{folder}/out/train-{i:05d}.tfrecord")


SCENARIOS = {
    "create": Scenario(CREATE, _for_create),
    "exact": Scenario(EXACT, _for_exact),
    "shuffle": Scenario(SHUFFLE, _for_create),
    "append": Scenario(APPEND, _for_append, 1),
    "merge": Scenario(MERGE, _for_merge),
    "rebuild": Scenario(REBUILD, _for_rebuild),
    "gc": Scenario(GC, _for_gc, 2),
    "gc-much": Scenario(GC, _for_gc_much, 2, ("manifests", "index")),
}
