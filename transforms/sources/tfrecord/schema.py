"""Find the files of a `tfrecord` input, and one schema that holds for all their records.

All records are read, so that what is stated is true of all: a feature is nullable if a record lacks it, a scalar if
each that has it has one value, else a list of a fixed or of any length. Types are those of the lists: what an int64
means (a label, a time) is known only to its writer.

Records whose keys are sorted are decoded together; others, like TensorFlow's own, are parsed one by one.
"""

from __future__ import annotations

import glob
import math
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ...dataset.storage.manifest_files import locate_shard, read_manifest
from ...dataset.storage.opened_generation import OpenedGeneration
from ...dataset.storage.record_file import RecordRun
from ...errors import InputError, SchemaError
from ...format.examples.decode_examples import (
    ExampleDecoder,
    feature_values,
    iter_features,
    other_message,
    parse_example,
)
from ...format.manifest.manifest import ColumnEntry, Manifest, ShardEntry
from ...format.schema.column_types import is_kept_as
from ...format.schema.schema import Feature, Kind, Schema, differing_features, schemas_side_by_side
from ...format.sidecars.tfds import labels_file_name
from ...format.tfrecord.framing import Payloads
from ...format.wording.hints import Command, Set
from ...format.wording.printable import counted, printable
from ...inputs.contract.selection import UNITE
from ...inputs.contract.source import Recognised, SourceEntry
from ...inputs.files.file_names import RECORD_NAMES, LeftOut
from ...inputs.files.listing import entry_name, find_entries, holds_dataset, list_file
from ...inputs.files.open_file import is_object
from ...recognise.evidence.tfds import FEATURES, StatedFeature, StatedFiles
from ...stores.object_store import store_at
from ...stores.store_url import parse_store_url

# The files that the paths of a `tfrecord` input name: the shards of a generation, or plain files.
#
#     out/people                      a dataset: the shards of its latest generation, in the manifest's order
#     out/people/train-*.tfrecord     the same shards, one by one: their dataset's manifest says what they hold
#     data/  a.tfrecord  b.gz         anyone's files; of a folder those with a suffix of TFRecord files
#
# A file in a dataset's folder that no manifest names is refused: it may be half of something.


_REQUESTS_AT_ONCE: Final = 8
"""Each shard of a dataset in a store is looked at by a request or two.

Not in the threads of `stores/object_store`: what is looked at may be read ahead by those."""


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


# What Examples hold.


_TYPES: Final[dict[str, str]] = {"int64": "int64", "float": "float32", "bytes": "binary"}

_SIZES: Final = 9
"""Lists of at least this number of lengths are of any length by design, and not by a few records."""

_EXCEPTIONS: Final = 10
"""At most one record in this number may have another number of values than most, to be called an exception."""

_WIDENED: Final = 20
"""The most features that are named because a record made them optional, or lists of any length."""

_FIRST_RECORDS: Final = 64
"""Records that are parsed one by one, to know what to look for in the others."""


@dataclass(slots=True)
class _Seen:
    """One feature: its kind, in how many records it is, and the fewest and the most values that it has.

    `sizes` are up to eight such numbers, with how many records have each and the place of the first. `first_lacking` is
    the place of the first record without it. Where its type is stated, also the `least` and the `greatest` integer, and
    whether all bytes are text.
    """

    kind: str
    records: int = 0
    fewest: int = 1 << 62
    most: int = 0
    sizes: dict[int, tuple[int, str]] = field(default_factory=dict)
    first_lacking: str = ""
    least: int = 0
    greatest: int = 0
    is_text: bool = True

    def look(self, values: Sequence[Any] | pa.Array) -> None:
        """Look at the values of a feature whose type is stated."""
        if self.kind == "int64" and len(values):
            ends = pc.min_max(values).as_py() if isinstance(values, pa.Array) else None
            least, greatest = (min(values), max(values)) if ends is None else (ends["min"], ends["max"])
            self.least, self.greatest = min(self.least, least), max(self.greatest, greatest)
        elif self.kind == "bytes" and self.is_text:
            self.is_text = _is_utf8(values if isinstance(values, pa.Array) else pa.array(values, pa.large_binary()))

    def why_not(self, stated: StatedFeature, *, unlabelled: bool = False) -> str | None:
        """Return what is there that is not of the stated type, None where all is; -1 may be a class of `unlabelled`."""
        if self.kind == "bytes":
            return "bytes that are not UTF-8" if stated.type == "string" and not self.is_text else None
        if self.kind != "int64":
            return None
        low, high = -int(unlabelled), len(stated.names) - 1 if stated.type == "label" else 1
        if stated.type not in ("label", "bool"):
            low, high = int(np.iinfo(stated.type).min), int(np.iinfo(stated.type).max)
        return next((str(one) for one in (self.least, self.greatest) if not low <= one <= high), None)

    def add(self, size: int, records: int, place: str) -> None:
        """Count records with so many values, of which the first is at a place."""
        self.records += records
        self.fewest, self.most = min(self.fewest, size), max(self.most, size)
        if size in self.sizes or len(self.sizes) < _SIZES:
            known, first = self.sizes.get(size, (0, place))
            self.sizes[size] = known + records, first


@dataclass(frozen=True, slots=True)
class Places:
    """Where records are in their file: the `numbers`, from 0, and the bytes where they begin; both may be unknown."""

    numbers: npt.NDArray[np.int64] | tuple[int, ...] = ()
    offsets: npt.NDArray[np.int64] | tuple[int, ...] = ()

    def behind(self, count: int) -> Places:
        return Places(self.numbers[count:], self.offsets[count:])

    def of(self, row: int) -> str:
        return f"record {self.numbers[row]} at byte {self.offsets[row]}" if len(self.numbers) else ""


def places_of(run: RecordRun, rows: npt.NDArray[np.int64] | None = None) -> Places:
    """Return the places of the records of a run, or of some rows of it."""
    numbers = np.arange(run.first_record, run.first_record + len(run))
    return Places(numbers, run.offsets) if rows is None else Places(numbers[rows], run.offsets[rows])


@dataclass(slots=True)
class Observation:
    """What Examples were seen to hold; `name` is the file's. `bad` counts records that are not Examples.

    `other` is what one of these is: a SequenceExample, or an ExampleListWithContext. `first_bad` is the place of the
    first one, `first` that of the first Example. `types` are those that are stated.
    """

    name: str
    records: int = 0
    bad: int = 0
    other: str | None = None
    first_bad: str = ""
    first: str = ""
    features: dict[str, _Seen] = field(default_factory=dict)
    types: Mapping[str, str] = field(default_factory=dict)
    _decoder: ExampleDecoder | None = None

    def at(self, place: str) -> str:
        return f"{self.name} {place}" if place else self.name

    @property
    def is_foreign(self) -> bool:
        """Return whether records were seen, and none of them was an Example that holds anything."""
        return self.bad > 0 and not self.features

    def add(self, payloads: Payloads, places: Places | None = None) -> None:
        """Look at some more records, which are at `places`. Raises `SchemaError` where a feature is of two kinds."""
        places = places or Places()
        if not self.features:
            first = payloads.head(_FIRST_RECORDS)
            self._add_one_by_one(first, range(len(first)), places)
            payloads, places = payloads.tail(len(first)), places.behind(len(first))
        if not len(payloads) or not self.features:
            self._add_one_by_one(payloads, range(len(payloads)), places)
            return
        if self._decoder is None:
            kinds = sorted((name, cast(Kind, seen.kind)) for name, seen in self.features.items())
            features = (Feature(name, kind, _TYPES[kind], (-1,), nullable=True) for name, kind in kinds)
            self._decoder = ExampleDecoder(Schema(tuple(features)))
        batch, odd = self._decoder.decode_canonical(payloads)
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            seen, there = self.features[name], np.asarray(column.is_valid())
            lengths = np.asarray(pc.list_value_length(column).fill_null(0))
            rows = np.flatnonzero(there)
            found = np.unique(lengths[rows], return_index=True, return_counts=True)
            for size, first, count in zip(*(part.tolist() for part in found), strict=True):
                seen.add(size, count, places.of(int(rows[first])))
            if len(rows):
                self._look(name, column.flatten())
            if not seen.first_lacking and len(gone := np.flatnonzero(~there & ~odd)):
                seen.first_lacking = places.of(int(gone[0]))
        self.records += len(payloads) - int(odd.sum())
        self._add_one_by_one(payloads, odd.nonzero()[0].tolist(), places)

    def _add_one_by_one(self, payloads: Payloads, rows: Iterable[int], places: Places) -> None:
        for row in rows:
            other = other_message(payloads[row])
            example = parse_example(payloads[row]) if other is None else None
            if example is None:
                self.bad += 1
                self.other = self.other or other
                self.first_bad = self.first_bad or places.of(row)
                continue
            place, there = places.of(row), set()
            self.first = self.first or place
            for name, feature in iter_features(example):
                kind, values = feature_values(feature)
                if kind != "none":
                    self._seen(name, kind, place).add(len(values), 1, place)
                    self._look(name, values)
                    there.add(name)
            for name in self.features.keys() - there:
                self.features[name].first_lacking = self.features[name].first_lacking or place
            self.records += 1

    def _look(self, name: str, values: Sequence[Any] | pa.Array) -> None:
        if self.types.get(name, "image") != "image":
            self.features[name].look(values)

    def _seen(self, name: str, kind: str, place: str) -> _Seen:
        seen = self.features.get(name)
        if seen is None:
            seen = self.features[name] = _Seen(kind, first_lacking=self.first if self.records else "")
            self._decoder = None
        elif seen.kind != kind:
            first = place and f", first in {place}"
            raise SchemaError(
                f'{self.name}: feature "{printable(name)}" holds {seen.kind} values in some records and {kind} values '
                f"in others{first}; such records have no schema; to keep them as plain bytes: "
                f"{Set('input.records', 'opaque')}"
            )
        return seen

    def schema(self) -> Schema:
        return Schema(tuple(self._feature(name) for name in sorted(self.features)))

    def _feature(self, name: str) -> Feature:
        seen = self.features[name]
        shape: tuple[int, ...] = (-1,)
        if seen.fewest == seen.most:
            shape = () if seen.most == 1 else (seen.most,) if seen.most else (-1,)
        return Feature(name, cast(Kind, seen.kind), _TYPES[seen.kind], shape, nullable=seen.records < self.records)


def observe_together(observations: Iterable[Observation], name: str) -> Observation:
    """Return what several files hold, taken as one: what one of them lacks, some records lack."""
    total = Observation(name)
    for one in observations:
        if not one.records:
            continue
        total.records += one.records
        total.bad += one.bad
        for feature, seen in one.features.items():
            known = total.features.setdefault(feature, _Seen(seen.kind))
            known.records += seen.records
            known.fewest, known.most = min(known.fewest, seen.fewest), max(known.most, seen.most)
            known.least, known.greatest = min(known.least, seen.least), max(known.greatest, seen.greatest)
            known.is_text = known.is_text and seen.is_text
    return total


def widened_by(observations: Sequence[Observation]) -> Iterator[str]:
    """Yield by which records features are optional, or lists of any length: how many, and the first of them."""
    read = [one for one in observations if one.records]
    total, notes = sum(one.records for one in read), list[str]()
    for name in sorted({name for one in read for name in one.features}):
        there = [one for one in read if name in one.features]
        without = [(one, one.records - (one.features[name].records if name in one.features else 0)) for one in read]
        lacking = [(one, count) for one, count in without if count]
        if lacking:
            first, count = lacking[0][0], sum(count for _, count in lacking)
            place = first.features[name].first_lacking if name in first.features else first.first
            lack = f"{_of_all(count, total)} {'lacks' if count == 1 else 'lack'} it"
            notes.append(f'feature "{printable(name)}" may be null: {lack}, first {first.at(place)}')
        sizes: dict[int, tuple[int, str]] = {}
        for one in there:
            for size, (count, place) in one.features[name].sizes.items():
                known, at = sizes.get(size, (0, one.at(place)))
                sizes[size] = known + count, at
        usual = max(sizes, key=lambda size: sizes[size][0])
        others = [found for size, found in sizes.items() if size != usual]
        count, records = sum(found[0] for found in others), sum(one.features[name].records for one in there)
        if others and len(sizes) < _SIZES and count * _EXCEPTIONS <= records:
            notes.append(
                f'feature "{printable(name)}" is a list of any length: {_of_all(count, records)} '
                f"{'has' if count == 1 else 'have'} another number of values than {usual:,}, first {others[0][1]}"
            )
    yield from notes[:_WIDENED]
    if len(notes) > _WIDENED:
        yield f"and {len(notes) - _WIDENED:,} more features that some records lack, or have as other lists"


def _of_all(count: int, total: int) -> str:
    return f"{count:,} of {counted(total, 'record')}"


def with_types(
    schema: Schema, observations: Iterable[Observation], stated: Mapping[str, StatedFeature]
) -> tuple[Schema, dict[str, tuple[str, ...]], list[str]]:
    """Return the schema with the types that are stated, the names of classes, and which types the values are not of."""
    seen = observe_together(observations, "").features if stated else {}
    features, labels, said = [], dict[str, tuple[str, ...]](), []
    texts = {feature.name for feature in schema if feature.kind == "bytes"}
    for feature in schema:
        one = stated.get(feature.name)
        if one is None or not is_kept_as(one.type, feature.kind):
            features.append(feature)
            continue
        unlabelled = one.type == "label" and one.by == FEATURES and feature.shape == one.shape == ()
        why = seen[feature.name].why_not(one, unlabelled=unlabelled)
        none = why is None and one.type == "label" and seen[feature.name].least < 0
        said += [f'feature "{printable(feature.name)}" holds -1, which is no class, and reads as null'] if none else []
        if why is not None:
            text = f"{feature.name.removesuffix('label')}text"
            names = f", which are in {printable(text)}" if text in texts and feature.name.endswith("label") else ""
            said.append(
                f'feature "{printable(feature.name)}" is {one.type} in {one.by}, and holds {why}: it is read as '
                f"{feature.type}{', without names of classes' + names if one.names else ''}"
            )
        elif one.type == "label":
            labels[feature.name] = one.names
        kind = feature.type if why else one.type
        file = labels_file_name(feature.name) if kind == "label" else None
        shape = one.shape if one.shape == (-1,) or math.prod(one.shape) == _values(feature) else feature.shape
        nullable = feature.nullable or none
        features.append(
            replace(feature, type=kind, shape=shape, labels=file, nullable=nullable, pixels=None if why else one.pixels)
        )
    return Schema(tuple(features)), labels, said


def _values(feature: Feature) -> int | None:
    return None if feature.shape == (-1,) else math.prod(feature.shape)


def _is_utf8(values: pa.Array) -> bool:
    try:
        values.cast(pa.large_string())
    except pa.ArrowInvalid:
        return False
    return True


# Records are bytes, and are not rewritten: so what they hold must mean the same everywhere. Two label maps go together
# if one begins with the other, since then each number has one name; the longer one is taken. Others are joined where
# the user asks for that: then the numbers are changed in the records. A feature that may be absent in one input may be
# absent in all. Nothing else is reconciled.

Labels = dict[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Stated:
    """The schema that a dataset states; `name` is how it is shown, without a schema its records are plain bytes."""

    name: str
    schema: Schema | None
    labels: Mapping[str, tuple[str, ...]]
    columns: tuple[ColumnEntry, ...] = ()


_OPAQUE = f"or make a new dataset of all records as plain bytes: {Set('input.records', 'opaque')}"

_FIX = f"records stay as they are: convert one of the sources again so that both agree, {_OPAQUE}"


def stated_by(dataset: InputDataset) -> Stated:
    manifest = dataset.manifest
    return Stated(dataset.name, manifest.schema, manifest.labels, manifest.columns)


def agree_on_schema(datasets: Sequence[Stated], *, unite: bool | None = None) -> Schema:
    """Raise `SchemaError` where two of the datasets differ, or one has no schema.

    Those that `unite` may lack features of each other: these may be null. None: they cannot, as in an append.
    """
    agreed = _schema_of(datasets[0])
    for dataset in datasets[1:]:
        other = _schema_of(dataset)
        marked = differing_features(agreed, other)
        if unite:
            marked = {name: how for name, how in marked.items() if how == "re-typed"}
        if marked:
            raise _differ(datasets[0].name, agreed, dataset.name, other, marked, unites=unite is not None)
        agreed, other = united(agreed, other), united(other, agreed)
        agreed = Schema(tuple(map(_of_both, agreed, other)))
    return agreed


def united(schema: Schema, other: Schema) -> Schema:
    """Return a schema with the features of another that it lacks; what is in one of them alone may be null."""
    ours, theirs = ({feature.name: feature for feature in one} for one in (schema, other))
    both = ours.keys() & theirs.keys()
    found = [one if name in both else replace(one, nullable=True) for name, one in sorted((theirs | ours).items())]
    return Schema(tuple(found))


def agree_on_columns(datasets: Sequence[Stated], *, unite: bool = False) -> tuple[ColumnEntry, ...]:
    """Return nothing if no dataset states columns. Raises `SchemaError` where two say different things of one."""
    agreed: dict[str, ColumnEntry] = {}
    for dataset in datasets:
        found = {column.name: column for column in dataset.columns}
        if unite:
            found, agreed = agreed | found, found | agreed
        if dataset is not datasets[0] and found != agreed:
            name = next(name for name in {**agreed, **found} if agreed.get(name) != found.get(name))
            shown = [f"{one[name].type}" if name in one else "not stated" for one in (agreed, found)]
            raise SchemaError(
                f'column "{printable(name)}" is {shown[0]} in {datasets[0].name}, and {shown[1]} in {dataset.name}; '
                f"{_FIX}"
            )
        agreed = found
    return tuple(agreed.values())


Renumbered = tuple[tuple[str, tuple[int, ...]], ...]
"""Features with the new number of each class, by the number that the records have."""


def joined_labels(datasets: Sequence[Stated]) -> Labels:
    """Return the classes of all datasets by name: those of the first one, then those that each next one adds."""
    joined: dict[str, dict[str, None]] = {}
    for dataset in datasets:
        for feature, names in dataset.labels.items():
            joined.setdefault(feature, {}).update(dict.fromkeys(names))
    return {feature: tuple(names) for feature, names in joined.items()}


def renumbered(dataset: Stated, labels: Labels) -> Renumbered:
    """Return what is to be changed in the records of a dataset so that they have the numbers of these classes."""
    found = []
    for feature, names in sorted(dataset.labels.items()):
        numbers = {name: number for number, name in enumerate(labels[feature])}
        if labels[feature][: len(names)] != names:
            found.append((feature, tuple(numbers[name] for name in names)))
    return tuple(found)


def agree_on_labels(datasets: Sequence[Stated], *, unites: bool = False) -> Labels:
    """Return the longer label map, where one begins with the other; others may be united if it `unites`."""
    agreed: Labels = {}
    stated_by: dict[str, str] = {}
    for dataset in datasets:
        for feature, names in dataset.labels.items():
            known = agreed.get(feature, ())
            short, long = sorted((known, names), key=len)
            if long[: len(short)] != short:
                at = next(i for i, pair in enumerate(zip(known, names, strict=False)) if pair[0] != pair[1])
                fix = "convert one of the sources again with the classes of the other"
                if unites:
                    fix = f"to give each class one number, by its name: {UNITE}; or {fix}"
                raise SchemaError(
                    f'{printable(feature)}: label {at} is "{printable(known[at])}" in {stated_by[feature]} and '
                    f'"{printable(names[at])}" in {dataset.name}, and records stay as they are; {fix}'
                )
            if len(names) >= len(known):
                agreed[feature], stated_by[feature] = tuple(names), dataset.name
    return agreed


def agree_on_classes(name: str, schema: Schema, labels: Labels, observations: Sequence[Observation]) -> None:
    """Raise `SchemaError` where a file holds numbers of classes that the labels of the dataset `name` do not have."""
    unlabelled = {feature.name for feature in schema if feature.nullable and feature.shape == ()}
    for one in observations:
        for feature, names in labels.items():
            seen = one.features.get(feature)
            stated = StatedFeature("label", (), names)
            why = None if seen is None else seen.why_not(stated, unlabelled=feature in unlabelled)
            if why is not None:
                raise SchemaError(
                    f'{one.name}: feature "{printable(feature)}" holds class {why}, and {name} names {len(names)} '
                    f"classes, from 0 on; leave the file out, {_OPAQUE}"
                )


def agree_with_files(
    name: str, schema: Schema | None, observations: Sequence[Observation], *, unites: bool = False
) -> Schema:
    """Return the schema of files, or that of the dataset `name` if their records can be of it.

    Raises `SchemaError` where two files differ in the kind of a feature, or a file has other features than the dataset,
    or none.
    """
    first: dict[str, Observation] = {}
    for one in observations:
        if one.is_foreign:
            but = f", they are {one.other}" if one.other else ""
            raise SchemaError(f"{one.name}: none of its records is a tf.train.Example{but}; leave it out, {_OPAQUE}")
        for feature, seen in one.features.items():
            other = first.setdefault(feature, one)
            if other.features[feature].kind != seen.kind:
                raise _differ(other.name, other.schema(), one.name, one.schema(), {feature: "re-typed"})
        if schema is not None and one.records:
            conflicts = _conflicts(schema, one.schema())
            if conflicts:
                raise _differ(name, schema, one.name, one.schema(), conflicts, unites=unites)
    return schema if schema is not None else observe_together(observations, name).schema()


def hold_no_examples(observations: Sequence[Observation]) -> bool:
    """Return whether files hold records, and all are plain bytes: neither Examples nor messages that look like them."""
    seen = [one for one in observations if one.records or one.bad]
    return bool(seen) and all(one.is_foreign and one.other is None for one in seen)


def allows_more(dataset: Stated, expected: Schema) -> bool:
    needed = {feature.name for feature in expected if not feature.nullable}
    return any(feature.nullable and feature.name in needed for feature in dataset.schema or ())


def _conflicts(expected: Schema, found: Schema) -> dict[str, str]:
    """Return the features for which no record of a file can be of a schema; others are decided record by record."""
    ours, theirs = ({feature.name: feature for feature in schema} for schema in (expected, found))
    conflicts = {}
    for name in sorted(ours.keys() | theirs.keys()):
        if name not in ours:
            conflicts[name] = "added"
        elif name not in theirs:
            if not ours[name].nullable:
                conflicts[name] = "missing"
        elif theirs[name].kind != ours[name].kind or not _may_hold_as_many(ours[name], theirs[name]):
            conflicts[name] = "re-typed"
    return conflicts


def _may_hold_as_many(one: Feature, other: Feature) -> bool:
    return (-1,) in (one.shape, other.shape) or math.prod(one.shape) == math.prod(other.shape)


def _schema_of(dataset: Stated) -> Schema:
    if dataset.schema is None:
        raise SchemaError(f"{dataset.name}: its records are plain bytes without a schema; leave it out, {_OPAQUE}")
    return dataset.schema


def _of_both(one: Feature, other: Feature) -> Feature:
    pixels = None if one.pixels is None else one.pixels.joined(other.pixels)
    return replace(one, nullable=one.nullable or other.nullable, pixels=pixels)


def _differ(
    left_name: str, left: Schema, right_name: str, right: Schema, marked: dict[str, str], *, unites: bool = False
) -> SchemaError:
    table = schemas_side_by_side(left, right, (left_name, right_name), marked=marked)
    unite = (
        ""
        if "re-typed" in marked.values() or not unites
        else f"; to keep the columns of all, null where one lacks them: {UNITE}"
    )
    return SchemaError(f"{right_name} has another schema than {left_name}; {_FIX}{unite}\n{table}")
