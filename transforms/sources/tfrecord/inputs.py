"""The files that the paths of a `tfrecord` input name: the shards of a generation, or plain files.

    out/people                      a dataset: the shards of its latest generation, in the manifest's order
    out/people/train-*.tfrecord     the same shards, one by one: their dataset's manifest says what they hold
    data/  a.tfrecord  b.gz         anyone's files; of a folder those with a suffix of TFRecord files

A file in a dataset's folder that no manifest names is refused: it may be half of something.
"""

from __future__ import annotations

import glob
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from ...dataset.storage.manifest_files import locate_shard, read_manifest
from ...dataset.storage.opened_generation import OpenedGeneration
from ...errors import InputError
from ...format.manifest.manifest import Manifest, ShardEntry
from ...format.wording.hints import Command
from ...inputs.contract.source import Recognised, SourceEntry
from ...inputs.files.formats import RECORD_NAMES
from ...inputs.files.listing import entry_name, find_entries, holds_dataset, list_file
from ...inputs.files.open_file import is_object
from ...inputs.files.skipped_names import LeftOut
from ...recognise.evidence.tfds import StatedFiles
from ...stores.object_store import store_at
from ...stores.store_url import parse_store_url

_REQUESTS_AT_ONCE: Final = 8
"""Each shard of a dataset in a store is looked at by a request or two.

Not in the threads of `stores/piece_sender`: what is looked at may be read ahead by those."""


@dataclass(frozen=True, slots=True)
class InputFile:
    """One file to read; the manifest of `dataset` (an index) states `split`, `records` and `crc32c` of a shard.

    `stated` is the split that the name of another file states, or its folders.
    """

    entry: SourceEntry
    dataset: int | None = None
    split: str | None = None
    records: int | None = None
    crc32c: str | None = None
    stated: str | None = None


@dataclass(frozen=True, slots=True)
class InputDataset:
    """A dataset that is read, wholly or in part; `name` is how it is shown, `root` its folder or URL."""

    name: str
    root: str
    manifest: Manifest


@dataclass(slots=True)
class Inputs:
    """All that is read, in the order of the paths."""

    files: list[InputFile] = field(default_factory=list)
    datasets: list[InputDataset] = field(default_factory=list)
    left: LeftOut = field(default_factory=LeftOut)
    recognised: Recognised = field(default_factory=lambda: Recognised("none"))
    stated: StatedFiles = field(default_factory=StatedFiles)

    def whole_datasets(self) -> Iterator[tuple[str, int]]:
        """Yield the folder and the generation of each dataset of which all shards are read."""
        read = Counter(file.dataset for file in self.files)
        for index, dataset in enumerate(self.datasets):
            if read[index] == sum(len(split.shards) for split in dataset.manifest.splits.values()):
                yield dataset.root, dataset.manifest.generation


def find_inputs(paths: Sequence[str], base: str, ignore: Sequence[str] = ()) -> Inputs:
    """Return what paths, relative to the folder `base`, name: datasets, files, folders and globs of files.

    Files that are no shards of a dataset may be left out by globs.

    Raises `InputError` where a path matches nothing, a file is named twice, or is in a dataset that does not name it;
    `ReplacedError` where a dataset was replaced meanwhile; `DamageError` where a manifest is damaged, or a shard is
    missing.
    """
    inputs = Inputs()
    finder = _Finder(inputs, os.path.abspath(os.fsencode(base)))
    for path in paths:
        finder.add(path, base, ignore)
    for opened in finder.opened:  # whose files have been seen now: reading compares them with that
        opened.check()
    seen: set[bytes] = set()
    for file in inputs.files:
        if file.entry.path in seen:
            raise InputError(f"{file.entry.name}: is named twice; its records would come twice")
        seen.add(file.entry.path)
    return inputs


class _Finder:
    def __init__(self, inputs: Inputs, base: bytes) -> None:
        self._inputs = inputs
        self._base = base
        self._known: dict[bytes, int] = {}
        self._looked_at: dict[bytes, bool] = {}
        self.opened: list[OpenedGeneration] = []

    def add(self, path: str, base: str, ignore: Sequence[str]) -> None:
        if is_object(os.fsencode(path)):
            folder = os.fsencode(path).rstrip(b"/")
            is_folder = not glob.has_magic(path)
        else:
            folder = os.path.abspath(os.path.join(self._base, os.fsencode(path)))
            is_folder = os.path.isdir(folder)
        if is_folder and self._is_dataset(folder):
            index = self._dataset(folder)
            shards = list(_shards(self._inputs.datasets[index]))
            look = partial(self._shard, folder, index)
            with ThreadPoolExecutor(_REQUESTS_AT_ONCE if is_object(folder) else 1) as pool:
                self._inputs.files += pool.map(look, shards)
            return
        entries, left = find_entries([path], base, RECORD_NAMES, ignore)
        self._inputs.left.add(left)
        self._inputs.files += [self._file(entry) for entry in entries]

    def _file(self, entry: SourceEntry) -> InputFile:
        path = entry.path
        folder, name = os.path.dirname(path), os.fsdecode(os.path.basename(path))
        if not self._is_dataset(folder):
            return InputFile(entry)
        index = self._dataset(folder)
        dataset = self._inputs.datasets[index]
        for split, shard in _shards(dataset):
            if shard.path == name:
                return self._shard(folder, index, (split, shard))
        raise InputError(
            f"{entry_name(path, self._base)}: is in a dataset whose generation {dataset.manifest.generation} does "
            f"not name it; move it elsewhere if it is to be read"
        )

    def _is_dataset(self, folder: bytes) -> bool:
        if folder not in self._looked_at:
            self._looked_at[folder] = is_dataset(folder)
        return self._looked_at[folder]

    def _dataset(self, folder: bytes) -> int:
        if folder not in self._known:
            manifest = read_manifest(os.fsdecode(folder))
            self.opened.append(OpenedGeneration(os.fsdecode(folder), manifest))
            self._known[folder] = len(self._inputs.datasets)
            self._inputs.datasets.append(InputDataset(entry_name(folder, self._base), os.fsdecode(folder), manifest))
        return self._known[folder]

    def _shard(self, folder: bytes, index: int, one: tuple[str, ShardEntry]) -> InputFile:
        split, shard = one
        manifest = self._inputs.datasets[index].manifest
        root = os.fsdecode(folder)
        with self.opened[index].explained():
            place = os.path.join(folder, os.fsencode(locate_shard(root, manifest, shard)))
            entry = list_file(place, self._base)
        if entry.bytes != shard.bytes:
            self.opened[index].check()
            raise InputError(
                f"{entry.name}: {entry.bytes} bytes, the manifest states {shard.bytes}; it was cut or replaced: "
                f"{Command('verify', root)}"
            )
        return InputFile(entry, index, split, shard.records, shard.crc32c)


def is_dataset(folder: bytes) -> bool:
    """Return whether a folder is a dataset, also while its first generation is not wholly published."""
    if is_object(folder):
        url = parse_store_url(folder.decode() + "/manifests/")
        return any(True for _ in store_at(url).walk(url.key))
    return holds_dataset(folder) or os.path.isdir(os.path.join(folder, b"manifests"))


def _shards(dataset: InputDataset) -> Iterator[tuple[str, ShardEntry]]:
    for name, split in dataset.manifest.splits.items():
        for shard in split.shards:
            yield name, shard
