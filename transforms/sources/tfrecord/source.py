"""TFRecord files as a source: records stay byte for byte, except for numbers of classes where datasets are united.

    list      datasets in the order of their manifests, files in the order of their paths
    survey    schema and labels that hold for all of them; where to cut
    read      2 MiB at a time: both CRCs of each record are checked, and its frame is passed on where it is

Records of a dataset have its splits. Those of other files go to the split that is asked for, or that the file's name
states (`val-00001-of-00010.tfrecord`), or the folder that it is in (`val/a.tfrecord`, `Split-eval/`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from ...format.batches.rows import Rows
from ...format.examples.decode_examples import ExampleDecoder
from ...format.manifest.manifest import ColumnEntry
from ...format.schema.schema import Schema
from ...format.splits.splitter import DEFAULT_SPLIT
from ...format.wording.hints import Set
from ...format.wording.printable import printable
from ...inputs.contract.source import DatasetSchema, Frozen, Listing, ParallelMap, Survey, Task, Traits
from ...inputs.files.listing import entry_name
from ...inputs.files.open_file import check_stamp
from ...recognise.evidence.tfds import missing_files, stated_of
from ...recognise.rules import recognise
from ..registry.file_source import FileSource
from .picking import Keys, Picking, columns_of, read_keys
from .pieces import PieceReader, RecordsPiece, cut_run, is_compressed, pass_over, read_runs, rows_without, whole_file
from .schema import (
    InputFile,
    Inputs,
    Labels,
    Observation,
    Renumbered,
    Stated,
    agree_on_classes,
    agree_on_columns,
    agree_on_labels,
    agree_on_schema,
    agree_with_files,
    allows_more,
    find_inputs,
    hold_no_examples,
    joined_labels,
    places_of,
    renumbered,
    stated_by,
    united,
    widened_by,
    with_types,
)

if TYPE_CHECKING:
    from ..registry.options import TfrecordInput


@dataclass(frozen=True, slots=True)
class _Agreement:
    """What the inputs hold together; each record of the files in `checked` is checked against the schema."""

    schema: Schema
    labels: Labels = field(default_factory=dict)
    checked: frozenset[bytes] = frozenset()
    opaque: bool = False
    columns: tuple[ColumnEntry, ...] = ()
    said: tuple[str, ...] = ()
    renumbered: Mapping[int, Renumbered] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class RecordListing(Listing):
    """A listing with all that was found of its files and datasets."""

    inputs: Inputs = field(kw_only=True, repr=False)


_OPAQUE: Final = _Agreement(Schema(()), opaque=True)


@dataclass(frozen=True, slots=True)
class TfrecordSource(FileSource):
    """TFRecord files and datasets; where `records` is not given, they are opaque if no file holds an Example.

    Records of foreign files go to the split of the settings, those of a dataset keep theirs.

    shard_size      files are cut where shards of that size will end; None: they are read whole
    in_turn         files stay in the order of the paths; else they are sorted
    dataset         the dataset that the records are added to, which they must agree with
    keys            the keys of the records that are left out, which planning reads
    """

    traits = Traits(whole_records=True)

    options: TfrecordInput
    shard_size: int | None = None
    in_turn: bool = False
    dataset: Stated | None = None
    keys: Keys | None = None

    def following(self, dataset: DatasetSchema) -> TfrecordSource:
        """Return the source whose records agree with the dataset; files may say themselves of which split they are."""
        stated = Stated(dataset.name, dataset.schema, dataset.labels, dataset.columns)
        return replace(self, dataset=stated, settings=replace(self.settings, split=dataset.wanted_split))

    def list_files(self) -> Listing:
        inputs = self._inputs()
        entries = tuple(file.entry for file in inputs.files)
        size, datasets = sum(entry.bytes for entry in entries), tuple(inputs.whole_datasets())
        left = inputs.left.by_kind()
        return RecordListing(
            "tfrecord", entries, len(entries), size, left, self.traits, datasets, inputs.recognised, inputs=inputs
        )

    def survey(self, listing: Listing, run: ParallelMap) -> Survey:
        if not isinstance(listing, RecordListing):
            raise TypeError("a listing of records comes from TfrecordSource.list_files")
        wanted = set(listing.entries)  # an append lists those only that the dataset lacks
        files = [file for file in listing.inputs.files if file.entry in wanted]
        inputs = replace(listing.inputs, files=files)
        found = self._agree(inputs, run)
        frozen = Frozen(found.schema, (), found.labels, found.opaque, found.columns)
        source, said = self._with_keys(frozen, files, run)
        pieces, groups = self._cut(inputs, found)
        splits = tuple(sorted({piece.split for piece in pieces if piece.split is not None}))
        maps = {key: one.by for key, one in inputs.stated.features.items() if one.by.endswith(".pbtxt")}
        named = [f"names of the classes of {key}, from {printable(maps[key])}" for key in found.labels if key in maps]
        return Survey(
            replace(frozen, splits=splits),
            (),
            tuple(pieces),
            (*listing.recognised.warnings, *self._warnings(inputs, found), *said),
            _split_rows(pieces),
            groups if self.shard_size is not None else None,
            detected=(*listing.recognised.lines, *named, *inputs.stated.notes({one.name for one in found.schema})),
            source=source,
        )

    def _with_keys(
        self, frozen: Frozen, files: Sequence[InputFile], run: ParallelMap
    ) -> tuple[TfrecordSource, list[str]]:
        """Return the source with the keys of the records to leave out, and in words those that no record has."""
        keys = None
        if self.options.drop is not None:
            path, base = os.path.join(self.settings.base, self.options.drop), os.fsencode(self.settings.base)
            keys = read_keys(path, entry_name(os.fsencode(path), base), columns_of(frozen).schema)
        picking = Picking.plan(frozen, self.options, keys)
        if picking is None or keys is None:
            return self, []
        only = replace(picking, where=None, drop_where=None)
        seen = run(partial(_keys_in, picking=only, schema=frozen.schema), files, heavy=True)
        return replace(self, keys=keys), keys.warnings(np.logical_or.reduce([keys.none, *seen]))

    def read(self, task: Task, frozen: Frozen) -> Iterator[Rows]:
        """Damaged records are rejects. Raises `SourceError` where the framing is damaged, or the file changed."""
        ordinal = before = 0
        picking = Picking.plan(frozen, self.options, self.keys)
        record_bytes, looked_at = self.settings.limits.record_bytes, self.settings.looked_at
        for piece in task.pieces:
            assert isinstance(piece, RecordsPiece)
            check_stamp(piece)
            reader = PieceReader(piece, frozen, record_bytes, before, looked_at, picking)
            for rows in reader.read(task.ordinal, ordinal):
                yield rows
                ordinal += 1
                before += rows.bytes
            check_stamp(piece)

    @property
    def _is_told(self) -> bool:
        return "records" in self.options.model_fields_set

    def _inputs(self) -> Inputs:
        paths, base = self.options.paths, self.settings.base
        inputs = find_inputs(paths, base, tuple(self.options.ignore))
        foreign = [index for index, file in enumerate(inputs.files) if file.dataset is None]
        entries = tuple(inputs.files[index].entry for index in foreign)
        listing = Listing("tfrecord", entries, len(entries), 0, notable=tuple(sorted(inputs.left.notable)))
        listing = recognise(listing, paths, base, self.settings.splits)
        inputs.recognised = listing.recognised
        if self.settings.splits.looks:
            inputs.stated = stated_of([os.fsdecode(entry.path) for entry in entries])
        for index, entry in zip(foreign, listing.entries, strict=True):
            inputs.files[index] = replace(inputs.files[index], stated=entry.split)
        if not self.in_turn:
            inputs.files.sort(key=lambda file: file.entry.path)
        return inputs

    def _agree(self, inputs: Inputs, run: ParallelMap) -> _Agreement:
        """Return what all inputs agree on; foreign files are read for it.

        an append               the schema of the dataset
        datasets                their one schema; with `columns_differ: union` all columns, classes numbered again
        files beside datasets   the same, and each file has to fit
        files alone             what all their records hold, in the types that files beside them state
        """
        stated = list(map(stated_by, inputs.datasets))
        foreign = [file for file in inputs.files if file.dataset is None]
        bare = not foreign and self.dataset is None and all(one.schema is None for one in stated)
        if self.options.records == "opaque" or (bare and stated):
            return _OPAQUE
        datasets = [*([self.dataset] if self.dataset else []), *stated]
        beside = [Stated(name, None, labels) for name, labels in inputs.stated.folders.items()]
        unite = self.options.columns_differ == "union" and self.dataset is None
        joined = [Stated(datasets[0].name, None, joined_labels(datasets))] if unite and datasets else datasets
        labels = agree_on_labels([*joined, *beside], unites=self.dataset is None)
        changed = {index: renumbered(one, labels) for index, one in enumerate(stated)} if unite else {}
        known = agree_on_schema(datasets, unite=None if self.dataset is not None else unite) if datasets else None
        types = inputs.stated.types | dict.fromkeys(labels, "label")
        observed = run(partial(self._observe, types=types), foreign, heavy=True)
        counted = [(file, one.records + one.bad) for file, one in zip(foreign, observed, strict=True)]
        found = [(os.fsdecode(file.entry.path), file.entry.name, records) for file, records in counted]
        said = inputs.stated.compare(found)
        if not self._is_told and known is None and hold_no_examples(observed):
            return replace(_OPAQUE, said=tuple(said))
        if self.dataset is not None:
            known = self.dataset.schema
        elif known is not None and unite:
            for one in observed:
                known = united(known, one.schema()) if one.records else known
        schema = agree_with_files(
            datasets[0].name if datasets else "these files", known, observed, unites=not self.dataset
        )
        if not datasets:
            schema, labels, untyped = with_types(schema, observed, inputs.stated.features)
            said += untyped
        if not datasets or unite:
            said += widened_by(observed)
        labels = {one.name: labels[one.name] for one in schema if one.name in labels and one.type == "label"}
        if datasets:
            agree_on_classes(datasets[0].name, schema, labels, observed)
            schema = schema.with_any_sizes() if foreign and self.dataset is None else schema
        unproven = {file.entry.path for file, one in zip(foreign, observed, strict=True) if datasets or one.bad}
        loose = {index for index, one in enumerate(stated) if allows_more(one, schema)}
        unproven |= {file.entry.path for file in inputs.files if file.dataset in loose}
        columns = agree_on_columns(datasets, unite=unite)
        said += [
            f"{stated[index].name}: the classes of {printable(feature)} get the numbers that {datasets[0].name} and "
            f"the others before it give to their names"
            for index, features in changed.items()
            for feature, _ in features
        ]
        return _Agreement(schema, labels, frozenset(unproven), columns=columns, said=tuple(said), renumbered=changed)

    def _observe(self, file: InputFile, types: Mapping[str, str]) -> Observation:
        """Read a foreign file for its schema; records with damaged data are left to the second reading."""
        seen = Observation(file.entry.name, types=types)
        for run in read_runs(file.entry, on_damage=pass_over, record_bytes_limit=self.settings.limits.record_bytes):
            payloads, places = run.payloads, places_of(run)
            if run.damaged:
                sound = rows_without(len(run), run.damaged)
                payloads, places = payloads.take(sound), places_of(run, sound)
                seen.bad += len(run.damaged)
            seen.add(payloads, places)
        return seen

    def _split_of(self, file: InputFile) -> str | None:
        if self.settings.splits_anew:
            return None
        return file.split or self.settings.split or file.stated or self.settings.default_split

    def _cut(self, inputs: Inputs, found: _Agreement) -> tuple[list[RecordsPiece], tuple[range, ...]]:
        numbered = [(self._split_of(file), index, file) for index, file in enumerate(inputs.files) if file.entry.bytes]
        numbered.sort(key=lambda item: item[0] or "")
        reported: set[int] = set()
        pieces: list[RecordsPiece] = []
        tasks: list[range] = []
        for (_, compressed), group in groupby(numbered, key=lambda item: (item[0], is_compressed(item[2].entry))):
            whole: list[RecordsPiece] = []
            for split, index, file in group:
                piece = whole_file(file.entry, index, split, file.records, compressed=compressed)
                classes = () if file.dataset is None else found.renumbered.get(file.dataset, ())
                piece = replace(piece, check=file.entry.path in found.checked, crc32c=file.crc32c, classes=classes)
                if file.dataset is not None and file.dataset not in reported and not found.opaque:
                    reported.add(file.dataset)
                    piece = replace(piece, narrowed=inputs.datasets[file.dataset].manifest.narrowed)
                whole.append(piece)
            for members in cut_run(whole, None if compressed else self.shard_size):
                tasks.append(range(len(pieces), len(pieces) + len(members)))
                pieces += members
        return pieces, tuple(tasks)

    def _warnings(self, inputs: Inputs, found: _Agreement) -> Iterator[str]:
        yield from found.said
        foreign = [file.entry.name for file in inputs.files if file.dataset is None]
        yield from missing_files(foreign)
        counts = inputs.stated.counts
        unknown = [
            file.entry.name
            for file in inputs.files
            if file.dataset is None and os.fsdecode(file.entry.path) not in counts
        ]
        if unknown:
            more = f" and {len(unknown) - 1:,} more" if len(unknown) > 1 else ""
            yield (
                f"{unknown[0]}{more}: no manifest states the number of records: a file that was cut between two "
                f"records looks whole"
            )
        if found.opaque and not self._is_told and foreign:
            yield "no record is a tf.train.Example: they are taken as plain bytes, without a schema"
        wanted = self.settings.split
        kept = sorted({file.split for file in inputs.files if file.split is not None} - {wanted})
        if wanted is not None and kept and not self.settings.splits_anew:
            yield (
                f"split {wanted} is for files of no dataset, and records of datasets keep their splits: "
                f"{', '.join(kept)}"
            )
        if self.settings.splits_anew:
            for dataset in inputs.datasets:
                splits = tuple(dataset.manifest.splits)
                if len(splits) > 1:
                    cut = DEFAULT_SPLIT if DEFAULT_SPLIT in splits else splits[0]
                    yield (
                        f"{dataset.name}: is split again, so that records of one of its splits ({', '.join(splits)}) "
                        f"may go to another; to cut one of them: {Set('split.of', cut)}"
                    )
        if unknown and found.labels and (inputs.datasets or self.dataset is not None):
            names = ", ".join(map(printable, sorted(found.labels)))
            yield f"{names}: the numbers in foreign files are taken for the labels of the datasets"


def _keys_in(file: InputFile, picking: Picking, schema: Schema) -> npt.NDArray[np.bool_]:
    """Return which keys some record of a file has; what is damaged is left to the second reading."""
    assert picking.keys is not None
    seen = picking.keys.none
    decoder = ExampleDecoder(schema, picking.columns.features)
    for run in read_runs(file.entry, on_damage=pass_over, check_crc=False):
        found = decoder.try_decode(run.payloads).batch
        numbers = picking.keys.numbers(picking.columns.batch(found, file.entry.name))
        seen[numbers[numbers >= 0]] = True
    return seen


def _split_rows(pieces: Sequence[RecordsPiece]) -> dict[str, int]:
    """Return the records of each split, where all are known; else their bytes, which say as much of their shares.

    Those of no split are under "".
    """
    known = all(piece.rows is not None for piece in pieces)
    rows: dict[str, int] = {}
    for piece in pieces:
        split = piece.split or ""
        rows[split] = rows.get(split, 0) + ((piece.rows or 0) if known else (piece.output_bytes or 0))
    return rows
