"""Count statistics of records that exist already, and index them: of a dataset, or of any TFRecord files.

Both are made of a dataset, or of TFRecord files of any other writer.

file of a split ──decode──▶ Tally of the file ──merge──▶ Tally of all ──▶ figures, stats.json
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any

from ...errors import DamageError, RunError
from ...format.examples.decode_examples import ExampleError
from ...format.manifest.manifest import Manifest
from ...format.manifest.naming import IndexKind, index_path
from ...format.schema.schema import Schema
from ...format.sidecars.sidecar_files import index_data
from ...format.wording.printable import counted, printable_path
from ...observers.figures import Level
from ...observers.tally import Tally
from ..commit.accounting import count_file
from ..stage.run_lock import hold_sidecars
from ..storage.contract import Storage
from ..storage.local_storage import LocalStorage
from ..storage.manifest_files import list_generations, locate_shard
from ..storage.object_storage import storage_at
from ..storage.opened_generation import OpenedGeneration
from ..storage.record_file import open_regular, read_offsets, tell_form

Run = Callable[[Callable[["FileCount"], Tally], Iterable["FileCount"]], Iterable[Tally]]
"""`map`, or what applies a function in several processes and returns the results in order."""


@dataclass(frozen=True, slots=True)
class FileCount:
    """A file to count: its path or URL, split and size, and the records and CRC32C that a manifest states."""

    path: str
    split: str
    bytes: int
    records: int | None
    schema: Schema
    level: Level
    crc32c: str | None = None


def counts_of(root: str, manifest: Manifest, level: Level) -> list[FileCount]:
    assert manifest.schema is not None
    return [
        FileCount(
            os.path.join(root, locate_shard(root, manifest, shard)),
            name,
            shard.bytes,
            shard.records,
            manifest.schema,
            level,
            shard.crc32c,
        )
        for name, split in manifest.splits.items()
        for shard in split.shards
    ]


def count_records(files: Iterable[FileCount], level: Level, run: Run = map) -> Tally:
    total = Tally(level)
    for tally in run(count_one, files):
        total.merge(tally)
    return total


def count_one(file: FileCount) -> Tally:
    name = printable_path(file.path)
    try:
        tally = count_file(file.path, file.split, file.schema, file.level, file.crc32c)
    except ExampleError as error:
        raise DamageError(f"{name} record {error.row} at byte {error.offset}: {error.reason}") from error
    found = sum(tally.records.values())
    if file.records is not None and found != file.records:
        raise DamageError(f"{name}: {counted(found, 'record')}, the manifest states {file.records}")
    return tally


def write_statistics(root: str, manifest: Manifest, files: Mapping[str, bytes]) -> list[str]:
    """Write the statistics of a dataset's latest generation beside its shards; return the names of the files.

    Files that hold these bytes already stay. What a killed writer of them has left is removed.
    """
    storage = storage_at(root)
    with hold_sidecars(storage):
        OpenedGeneration(root, manifest).check()
        latest = (*list_generations(root), manifest.generation)[-2:][0]
        if latest != manifest.generation:
            raise RunError(
                f"{printable_path(root)}: generation {latest} was committed, and {manifest.generation} was counted: "
                f"run it again"
            )
        if isinstance(storage, LocalStorage):
            storage.remove_unfinished(files)
        changed = {name: data for name, data in files.items() if not _holds(storage, name, data)}
        for name, data in changed.items():
            storage.replace(name, data)
    return sorted(changed)


def _holds(storage: Storage, name: str, data: bytes) -> bool:
    return storage.size(name) == len(data) and storage.read(name) == data


# Indexes.
#
#     train-00000.tfrecord  ──read once──▶  index/train-00000.offsets     or  index/train-00000.idx, as text
#
# The files are not touched. Nothing has to name an index: its name, and what it states, say of which file it is.


Map = Callable[[Callable[[str], "MadeIndex"], Iterable[str]], Iterable["MadeIndex"]]


@dataclass(frozen=True, slots=True)
class MadeIndex:
    """What came of one file: its index was made, was there already, or cannot be, as the file is compressed.

    `records` are those that were counted, None where the file was not read.
    """

    file: str
    index: str
    outcome: str
    records: int | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "file": printable_path(self.file),
            "index": printable_path(self.index),
            "outcome": self.outcome,
            "records": self.records,
        }


def make_indexes(
    files: Sequence[str], kind: IndexKind = "binary", *, overwrite: bool = False, run: Map = map
) -> list[MadeIndex]:
    """Make the index of each TFRecord file that has none, in the folder `index` beside it; with `overwrite` of all.

    `files` are paths or URLs; `run` is `map`, or one that works on several at once. Where a file is damaged, the
    indexes of those before it are made.
    """
    names = defaultdict[str, list[str]](list)
    for path in files:
        names[os.path.dirname(path)].append(index_path(os.path.basename(path), kind))
    with ExitStack() as held:
        for folder, own in sorted(names.items()):  # in one order, so that two commands do not wait for each other
            storage = storage_at(folder)
            held.enter_context(hold_sidecars(storage))
            if isinstance(storage, LocalStorage):
                storage.remove_unfinished(own)
        return list(run(partial(_make_one, kind=kind, overwrite=overwrite), files))


def _make_one(path: str, kind: IndexKind, *, overwrite: bool) -> MadeIndex:
    folder, name = os.path.split(path)
    storage, index = storage_at(folder), index_path(name, kind)
    made = partial(MadeIndex, path, storage.path(index))
    if _is_compressed(path):
        return made("compressed")
    if not overwrite and storage.size(index) is not None:
        return made("there")
    offsets = read_offsets(path)
    storage.replace(index, index_data(offsets, kind))
    return made("made", len(offsets) - 1)


def _is_compressed(path: str) -> bool:
    with open_regular(path, printable_path(path)) as file:
        return tell_form(file, 0) is not None
