"""What has to hold of a dataset's folder at any moment, whatever was failed or killed."""

from __future__ import annotations

import hashlib
import json
import os
import re
from dataclasses import dataclass
from pathlib import Path

from shardmill.transforms.dataset.integrity.verify import verify_dataset
from shardmill.transforms.dataset.reading.open_dataset import Dataset
from shardmill.transforms.dataset.storage.manifest_files import list_generations, read_manifest
from shardmill.transforms.errors import ShardmillError

_HALF_WRITTEN = re.compile(r"\.[^/]+\.([0-9a-f]{32}|[0-9a-f]{12}\.incomplete)")
"""What a writer that was killed may leave, and gc removes."""

_RANDOM = re.compile(
    rb"[0-9a-f]{32}|[0-9a-f]{16}|[0-9a-f]{12}(?=\.incomplete)|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|"
    rb'"created": ?"[^"]*"'
)


@dataclass(frozen=True)
class Known:
    """The generations that a dataset may have, by number: the manifest without its `run`, and what its records are."""

    generations: dict[int, tuple[str, str]]
    first: int
    """The generation that was there before; 0 if there was none."""

    garbage: frozenset[str]
    """Files that were there before and that the command removes: until then they are named by no generation."""


def known(out: str, before: str, first: int) -> Known:
    """Return what an undisturbed run made in the folder `out`, given a copy of what was there before it."""
    numbers = list_generations(out)
    garbage = frozenset(tree(before).keys() - tree(out).keys()) if os.path.isdir(before) else frozenset()
    return Known({number: _generation(out, number) for number in numbers}, first, garbage)


def _generation(out: str, number: int) -> tuple[str, str]:
    manifest = read_manifest(out, number)
    dataset = Dataset(out, manifest)
    digest = hashlib.sha256()
    try:
        for split in dataset.splits:
            digest.update(split.encode())
            for record in dataset.records(split):
                digest.update(len(record).to_bytes(8, "little") + record)
    except ShardmillError as error:  # of a generation that was replaced, whose shards are gone
        digest.update(type(error).__name__.encode())
    document = json.loads(manifest.to_bytes())
    del document["run"]
    return json.dumps(document), digest.hexdigest()


def problems_of(out: str, expected: Known) -> tuple[int, list[str]]:
    """Return the newest generation in a folder (0: none), and what is wrong with the folder."""
    problems = []
    numbers = list_generations(out) if os.path.isdir(out) else []
    newest = numbers[-1] if numbers else 0
    if newest < expected.first:
        problems.append(f"generation {expected.first} is gone, {newest} is the newest")
    if newest:
        if newest not in expected.generations:
            problems.append(f"generation {newest} is none that could have been committed")
        elif _generation(out, newest) != expected.generations[newest]:
            problems.append(f"generation {newest} is not what it was, or what an undisturbed run commits")
        report = verify_dataset(out)
        strays = {f"{name}: no generation names this file" for name in expected.garbage}
        problems += [
            f"verify: {finding}" for finding in report.findings if str(finding).split(": remove")[0] not in strays
        ]
    named = {shard.path for n in numbers for split in read_manifest(out, n).splits.values() for shard in split.shards}
    named |= {name for n in numbers for name in read_manifest(out, n).sidecars if name.startswith("index/")}
    there = {
        os.path.relpath(os.path.join(folder, name), out)
        for folder, _, names in os.walk(out)
        for name in names
        if ".tfrecord" in name and not name.startswith(".") and "/.staging" not in folder
    }
    problems += [
        f"{path} has a shard's name, and was not committed" for path in sorted(there - named - expected.garbage)
    ]
    return newest, problems


def tree(out: str) -> dict[str, str]:
    """Return every file of a dataset and the digest of its bytes; of manifests, all but their `run`."""
    found = {}
    for path in sorted(Path(out).rglob("*")):
        if path.is_dir():
            continue
        name, data = str(path.relative_to(out)), path.read_bytes()
        if name == "manifest.json" or name.startswith("manifests/0"):
            document = json.loads(data)
            document.pop("run", None)
            data = json.dumps(document).encode()
        found[name] = hashlib.sha256(data).hexdigest()
    return found


def half_written(out: str) -> list[str]:
    """Return what killed writers left outside of the staging folder, which gc removes."""
    return [name for name in tree(out) if _HALF_WRITTEN.fullmatch(os.path.basename(name))]


def shape(out: str) -> str:
    """Return a digest of all that a command can find in a folder, random names and commit ids left out."""
    found = []
    for folder, folders, names in os.walk(out):
        found += [_starred(os.path.relpath(os.path.join(folder, name), out) + "/") for name in folders]
        for name in names:
            path = os.path.join(folder, name)
            with open(path, "rb") as file:
                data = file.read()
            if data.startswith(b"{"):
                data = _RANDOM.sub(b"*", data)
            where = _starred(os.path.relpath(path, out))
            found.append(f"{where} {os.lstat(path).st_nlink} {hashlib.sha256(data).hexdigest()}")
    return hashlib.sha256("\n".join(sorted(found)).encode()).hexdigest()


def _starred(path: str) -> str:
    return _RANDOM.sub(b"*", path.encode()).decode()
