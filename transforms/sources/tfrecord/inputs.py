"""The files that the paths of a `tfrecord` input name: the shards of a generation, or plain files.

    out/people                      a dataset: the shards of its latest generation, in the manifest's order
    out/people/train-*.tfrecord     the same shards, one by one: their dataset's manifest says what they hold
    data/  a.tfrecord  b.gz         anyone's files; of a folder those with a suffix of TFRecord files

A file in a dataset's folder that no manifest names is refused: it may be half of something.
"""

from __future__ import annotations

import glob
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import takewhile
from typing import Final

from ...dataset.generations.manifest_files import locate_shard, read_manifest
from ...dataset.generations.opened_generation import OpenedGeneration
from ...errors import InputError
from ...format.manifest.manifest import Manifest, ShardEntry
from ...format.wording.printable import shell_path
from ...stores.common.store_url import parse_store_url
from ...stores.connect import store_at
from ..contract.source import SourceEntry
from ..files.listing import entry_name, find_entries, holds_dataset, list_file
from ..files.open_file import is_object
from ..registry.formats import suffixes_of

_SPLITS: Final = "train|training|val|valid|validation|dev|test|testing|eval|evaluation"
_SUFFIX: Final = r"\.(?:tfrecords?|tfrec|record)"
_SPLIT_IN_NAME: Final = re.compile(
    rf"(?P<one>{_SPLITS})-[0-9]+(?:-of-[0-9]+)?{_SUFFIX}(?:\.gz)?|"
    rf"(?:[a-z0-9_]+-)?(?P<two>{_SPLITS}){_SUFFIX}-[0-9]+-of-[0-9]+(?:\.gz)?|"
    rf"[a-z0-9_]+_(?P<three>{_SPLITS})\.record-[0-9]+-of-[0-9]+"
)
"""A file name that says of which split it is: one of the well-known names, then nothing but its number.

The second form is that of TFDS, after the name of the dataset: `{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}`. The
third is that of the scripts of TensorFlow's Object Detection API: `coco_val.record-00000-of-00010`.
"""

_SPLIT_FOLDER: Final = re.compile(rf"(?:Split-)?({_SPLITS})", re.IGNORECASE)
"""`Split-train` is what TFX writes."""

_REQUESTS_AT_ONCE: Final = 8
"""Each shard of a dataset in a store is looked at by a request or two.

Not in the threads of `stores/common/piece_sender`: what is looked at may be read ahead by those."""


def split_in_name(path: bytes) -> str | None:
    """Return the split that a file's name states, if it is a well-known one and the name states nothing else.

    >>> split_in_name(b"/data/val-00001-of-00010.tfrecord"), split_in_name(b"/data/train-of-thought-1.tfrecord")
    ('val', None)
    """
    match = _SPLIT_IN_NAME.fullmatch(os.fsdecode(os.path.basename(path)))
    return (match["one"] or match["two"] or match["three"]) if match else None


def split_of_folder(name: str) -> str | None:
    """Return the split whose name a folder has.

    >>> split_of_folder("Valid"), split_of_folder("Split-eval"), split_of_folder("trains")
    ('valid', 'eval', None)
    """
    match = _SPLIT_FOLDER.fullmatch(name)
    return match[1].lower() if match else None


def _split_in_folders(path: bytes, root: bytes) -> str | None:
    folders = os.fsdecode(os.path.dirname(path)[len(root) :]).split("/")
    return next(filter(None, map(split_of_folder, folders)), None)


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
    skipped: dict[str, int] = field(default_factory=dict)

    def whole_datasets(self) -> Iterator[tuple[str, int]]:
        """Yield the folder and the generation of each dataset of which all shards are read."""
        read = Counter(file.dataset for file in self.files)
        for index, dataset in enumerate(self.datasets):
            if read[index] == sum(len(split.shards) for split in dataset.manifest.splits.values()):
                yield dataset.root, dataset.manifest.generation


def find_inputs(paths: Sequence[str], base: str) -> Inputs:
    """Return what paths, relative to the folder `base`, name: datasets, files, folders and globs of files.

    Raises `InputError` where a path matches nothing, a file is named twice, or is in a dataset that does not name it;
    `ReplacedError` where a dataset was replaced meanwhile; `DamageError` where a manifest is damaged, or a shard is
    missing.
    """
    inputs = Inputs()
    finder = _Finder(inputs, os.path.abspath(os.fsencode(base)))
    for path in paths:
        finder.add(path, base)
    for opened in finder.opened:  # whose files have been seen now: reading compares them with that
        opened.check()
    seen: set[bytes] = set()
    for file in inputs.files:
        if file.entry.path in seen:
            raise InputError(f"{file.entry.name}: is named twice; its records would come twice")
        seen.add(file.entry.path)
    inputs.files = list(_with_stated_splits(inputs.files, finder.roots))
    return inputs


def _with_stated_splits(files: Sequence[InputFile], roots: Mapping[bytes, bytes]) -> Iterator[InputFile]:
    """Yield the files with the splits that names and folders state: folders below a path, or below all files.

    `roots` are the folders that were given, by file.
    """
    foreign = [file.entry.path for file in files if file.dataset is None]
    common = _common_folder(foreign) if foreign else b""
    for file in files:
        path = file.entry.path
        if file.dataset is None:
            root = min(common, roots.get(path, common), key=len)
            file = replace(file, stated=split_in_name(path) or _split_in_folders(path, root))
        yield file


def _common_folder(paths: Sequence[bytes]) -> bytes:
    first, last = (os.path.dirname(path).split(b"/") for path in (min(paths), max(paths)))
    same = takewhile(lambda pair: pair[0] == pair[1], zip(first, last, strict=False))
    return b"/".join(one for one, _ in same)


class _Finder:
    def __init__(self, inputs: Inputs, base: bytes) -> None:
        self._inputs = inputs
        self.roots: dict[bytes, bytes] = {}
        self._base = base
        self._known: dict[bytes, int] = {}
        self._looked_at: dict[bytes, bool] = {}
        self.opened: list[OpenedGeneration] = []

    def add(self, path: str, base: str) -> None:
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
        entries, skipped = find_entries([path], base, suffixes_of("tfrecord"))
        for reason, count in skipped.items():
            self._inputs.skipped[reason] = self._inputs.skipped.get(reason, 0) + count
        self._inputs.files += [self._file(entry) for entry in entries]
        if is_folder:
            self.roots |= {entry.path: folder for entry in entries}

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
                f"shardmill verify {shell_path(folder)}"
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
