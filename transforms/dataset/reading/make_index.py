"""Indexes for TFRecord files that are there already: a dataset's shards, or files of any other writer.

    train-00000.tfrecord  ──read once──▶  index/train-00000.offsets     or  index/train-00000.idx, as text

The files are not touched. Nothing has to name an index: its name, and what it states, say of which file it is.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any

from ...format.manifest.naming import IndexKind, index_path
from ...format.sidecars.sidecar_files import index_data
from ...format.wording.printable import printable_path
from ..stage.run_lock import hold_sidecars
from ..storage.local_storage import LocalStorage
from ..storage.object_storage import storage_at
from ..storage.record_file import open_regular, read_offsets, tell_form

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
