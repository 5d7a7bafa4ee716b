"""Annotations as a source: all are read while planning, and each piece holds its own rows."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Final, TypeAlias

import pyarrow as pa
from isal import isal_zlib

from ...errors import InputError, SchemaError, SourceError
from ...format.batches.rejects import NEW_DATASET, CellError, Place, Reject
from ...format.batches.rows import Rows
from ...format.columns.keys import is_flat
from ...format.schema.arrow_types import feature_of
from ...format.schema.schema import Choice, Schema
from ...format.wording.hints import Set
from ...format.wording.printable import printable
from ...inputs.contract.selection import FileSplits
from ...inputs.contract.source import (
    DatasetSchema,
    Frozen,
    Listing,
    ParallelMap,
    Piece,
    Source,
    SourceEntry,
    Survey,
    Task,
    Traits,
)
from ...inputs.files.file_names import is_other_file
from ...inputs.files.listing import entry_name, list_entries, list_file
from ...inputs.files.open_file import check_stamp
from ...recipe.steps.label import numbers_note
from ...recipe.steps.objects import OBJECTS
from ...recognise.evidence.label_names import is_label, labels_of
from ...recognise.evidence.lists import Without, pictures_without_files
from ...recognise.rules import recognise
from .rows import FILE_NAME, Annotated, AnnotationOptions

KINDS: Final = {"coco": ".json", "voc": ".xml", "yolo": ".txt", "boxes": ".csv"}
_A_FILE_EACH: Final = ("voc", "yolo")
_BY_NAMES: Final = ("voc", "boxes")
"""Kinds whose classes have no numbers in the files."""


_ROWS: Final = 256
"""Rows of a piece: as many pictures as a batch of images has at most."""

_PLAIN: Final = "{}, so that image/object/class/label has plain numbers, without names in TFDS and the manifest{}"
_NEW: Final = f"leave the key out, or convert to a new dataset ({NEW_DATASET})"
_DENSE: Final = f"; to number them 0 to {{}}: {Set('input.annotations.classes', 'dense')}"
_IN_TEXT: Final = "; the names are in image/object/class/text"

_Read: TypeAlias = Callable[[Sequence[SourceEntry], AnnotationOptions, ParallelMap], Annotated]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotationPiece(Piece):
    """Some rows of a file: `data` is them as Arrow's message, packed; or none, and why the file has none."""

    data: bytes
    error: str = ""


@dataclass(frozen=True, slots=True)
class PictureOrigin:
    """The origin of the rows of a file of annotations: its pictures, or without `names` the file, which is of one."""

    source: str
    first_row: int
    names: tuple[str, ...] = ()

    def place(self, row: int) -> Place:
        return Place(self.source, picture=self.names[row] if self.names else None)

    def number(self, row: int) -> tuple[str, int | None]:
        return self.source, self.first_row + row if self.names else None


@dataclass(frozen=True, slots=True)
class AnnotationSource(Source):
    """Read files of annotations, of one `kind`; those of COCO say something of the same pictures.

    `dataset` is what they are appended to. `schema` is that of the rows, which planning finds.
    """

    kind: str
    paths: tuple[str, ...]
    base: str = ""
    options: AnnotationOptions = field(default_factory=AnnotationOptions)
    dataset: str = ""
    ignore: tuple[str, ...] = ()
    splits: FileSplits = field(default_factory=FileSplits)
    schema: pa.Schema = field(default=None, repr=False, compare=False)

    def following(self, dataset: DatasetSchema) -> AnnotationSource:
        held = next((names for feature, names in dataset.labels.items() if feature.endswith(CLASS)), None)
        if held is not None:
            return replace(self, dataset=dataset.name, options=replace(self.options, held=held))
        if self.kind in _BY_NAMES and self.options.names is None:
            raise SchemaError(
                f"classes are numbered by the names in these files alone, and {dataset.name} has numbers already; give "
                f"all classes in their order: {Set('input.annotations.classes', '[cat, dog]')}"
            )
        if self.options.dense:
            raise SchemaError(f"classes: dense gives classes names, and {dataset.name} has plain numbers; {_NEW}")
        return replace(self, dataset=dataset.name)

    def list_files(self) -> Listing:
        traits = Traits(names_pictures=True)
        suffixes = (KINDS[self.kind],)
        found = list_entries(self.paths, self.base, suffixes, file_format=self.kind, traits=traits, ignore=self.ignore)
        if self.kind == "yolo":
            found = found.keep([n for n, entry in enumerate(found.entries) if is_label(os.fsdecode(entry.path))])
        # pictures beside them are read by their names, and those that are not are counted
        others = {kind: n for kind, n in found.skipped.items() if kind[:1] != "." or is_other_file(os.fsencode(kind))}
        found = recognise(replace(found, skipped=others), self.paths, self.base, self.splits)
        local = self.kind in _A_FILE_EACH and not any("://" in one for one in self.paths)
        return self._with_bare_pictures(found) if local else found

    def _with_bare_pictures(self, found: Listing) -> Listing:
        """Return a listing with the pictures that have no file of annotations, where lists or a config name them."""
        files = [os.fsdecode(entry.path) for entry in found.entries]
        root = os.path.commonpath([os.path.abspath(os.path.join(self.base, one)) for one in self.paths])
        while not os.path.isdir(root):  # of a glob
            root = os.path.dirname(root)
        splits = {os.path.dirname(file): entry.split for file, entry in zip(files, found.entries, strict=True)}
        by_lists, has_splits = found.recognised.rule == "lists", any(splits.values())
        bare, warnings, base = dict[str, SourceEntry](), list[str](), os.path.abspath(os.fsencode(self.base))
        for one in pictures_without_files(root, files):
            ours = [it for it in one.pictures if self.options.folder_above(os.fsencode(it))]
            for picture in filter(os.path.isfile, ours):
                split = one.split if by_lists else splits.get(os.path.dirname(labels_of(picture)))
                if split or not has_splits:
                    entry = list_file(os.fsencode(picture), base)
                    bare[picture] = replace(entry, split=split if has_splits else None)
            lost = [it for it in ours if not os.path.isfile(it)]
            warnings += [_without_pictures(one, lost, base)] if lost else []
        recognised = replace(found.recognised, warnings=(*found.recognised.warnings, *warnings))
        if not bare:
            return replace(found, recognised=recognised)
        what = "1 picture has" if len(bare) == 1 else f"{len(bare):,} pictures have"
        line = f"{what} no file of annotations, as {next(iter(bare.values())).name}: a record without boxes for each"
        entries = tuple(sorted((*found.entries, *bare.values()), key=lambda entry: entry.path))
        recognised = replace(recognised, lines=(*found.recognised.lines, line))
        return replace(replace(found, entries=entries).keep(range(len(entries))), recognised=recognised)

    def survey(self, listing: Listing, run: ParallelMap) -> Survey:
        """Read all files. Raises `SourceError` where one is not of COCO's annotations, or no picture is named."""
        read: _Read = getattr(import_module(f".{self.kind}", __package__), f"read_{self.kind}")
        found = read(listing.entries, self.options, run)
        if not found.rows.num_rows:
            reason = next(iter(found.errors.values()), "names no picture")
            raise SourceError(listing.entries[min(found.errors, default=0)].name, reason)
        pieces = [piece for number, entry in enumerate(listing.entries) for piece in _pieces(number, entry, found)]
        fields = found.rows.schema
        features = [feature_of(one)[0] for one in fields if is_flat(one.type)]
        choices = tuple(Choice(one.name, one.type, f"of annotations ({self.kind})") for one in features)
        schema = Schema(tuple(sorted(features, key=lambda feature: feature.name)))
        held = self.options.held
        names, why = names_by_number(found.classes, found.used)
        if held is not None:
            names = names_after(held, found.classes, self.dataset)
        in_text = _IN_TEXT if _has_field(fields, "label") else ""
        said: tuple[str, ...] = ()
        if names is None and why and found.used and not self.dataset:
            count = len({*found.classes.values()})
            may_be_dense = self.kind == "coco" and count == len(found.classes) and found.used <= found.classes.keys()
            said = (_PLAIN.format(why, in_text) + _DENSE.format(count - 1) * may_be_dense,)
        if self.kind in _BY_NAMES and self.options.names is None and held is None:
            said = (*said, *numbers_note(names or (), "input.annotations.classes", "classes"))
        said = (*found.notes, *said)
        frozen = Frozen(schema, labels={} if names is None else {OBJECTS: names})
        source = replace(self, schema=fields)
        return Survey(frozen, choices, pieces, found.warnings, detected=said, fields=tuple(fields), source=source)

    def read(self, task: Task, frozen: Frozen) -> Iterator[Rows]:  # noqa: ARG002
        for ordinal, piece in enumerate(task.pieces):
            assert isinstance(piece, AnnotationPiece)
            check_stamp(piece)
            batch = pa.ipc.read_record_batch(pa.py_buffer(isal_zlib.decompress(piece.data)), self.schema)
            rejects: tuple[Reject, ...] = ()
            if piece.error:
                error = CellError(None, "CORRUPT", "", f"a file of {self.kind} annotations", piece.error)
                rejects = (Reject(piece.entry, Place(piece.name), (error,)),)
            names = tuple(batch[FILE_NAME].to_pylist()) if self.kind in ("coco", "boxes") else ()
            origin = PictureOrigin(piece.name, piece.first_row + 1, names)
            yield Rows(task.ordinal, ordinal, piece.entry, batch, origin, rejects=rejects)


def _has_field(schema: pa.Schema, name: str) -> bool:
    return OBJECTS in schema.names and schema.field(OBJECTS).type.get_field_index(name) >= 0


def _without_pictures(listed: Without, lost: Sequence[str], base: bytes) -> str:
    """Return the warning of a list that names `lost` pictures, if none of its pictures are there.

    Raises `InputError` where others are.
    """
    path, name = (entry_name(os.fsencode(one), base) for one in (listed.path, lost[0]))
    others = f" (so are {len(lost) - 1:,} others)" if len(lost) > 1 else ""
    what = f"{path}: names {name}{others}, which is not there and has no file of annotations"
    if len(lost) == listed.count:
        return f"{what}; nothing of this list is read"
    raise InputError(f"{what}; restore it, or take its line out of the list")


def _pieces(number: int, entry: SourceEntry, found: Annotated) -> Iterator[AnnotationPiece]:
    first = int(found.ends[number - 1]) if number else 0
    rows = found.rows.slice(first, int(found.ends[number]) - first)
    if number in found.errors:
        yield _piece(number, entry, rows.slice(0, 0), 0, 1, found.errors[number])
    for start in range(0, rows.num_rows, _ROWS):
        yield _piece(number, entry, rows.slice(start, _ROWS), start, rows.num_rows)


def _piece(
    number: int, entry: SourceEntry, batch: pa.RecordBatch, start: int, of: int, error: str = ""
) -> AnnotationPiece:
    data = isal_zlib.compress(batch.serialize(), 1)  # a fiftieth of the time of a compressed stream of one row
    count = 1 if error else batch.num_rows
    return AnnotationPiece(
        **entry.place(number), rows=count, first_row=start,
        bytes=entry.bytes * count // of, data=data, error=error,
    )  # fmt: skip


CLASS: Final = "/object/class/label"
"""How the name of the feature with the numbers of the classes of boxes ends."""


def names_by_number(classes: Mapping[int, str], used: Collection[int]) -> tuple[tuple[str, ...] | None, str]:
    """Return the names of classes and "", or None and why their numbers stay plain.

    Names take numbers from 0 to n - 1, as those of TFDS's ClassLabel are; COCO's own numbers have gaps.

    >>> names_by_number({0: "cat", 1: "dog"}, {1})
    (('cat', 'dog'), '')
    >>> print(names_by_number({1: "cat", 90: "dog"}, {1})[1])
    the numbers of classes are not 0 to 1, but 1 to 90
    """
    counts, unknown = Counter(classes.values()), sorted(set(used) - classes.keys())
    name, most = counts.most_common(1)[0] if counts else ("", 0)
    if not classes:
        return None, ""
    if unknown:
        return None, f"class {unknown[0]} has no name"
    if sorted(classes) != [*range(len(classes))]:
        return None, f"the numbers of classes are not 0 to {len(classes) - 1}, but {min(classes)} to {max(classes)}"
    if most > 1:
        return None, f'{most} classes are called "{printable(name)}"'
    return tuple(classes[number] for number in range(len(classes))), ""


def names_after(held: tuple[str, ...], classes: Mapping[int, str], dataset: str) -> tuple[str, ...]:
    """Return the classes of a dataset, which keep their numbers in an append, and the new ones behind them.

    Raises `SchemaError` where a class has another number in the dataset, or a new one does not follow its last.
    """
    names = [*held]
    for number, name in sorted(classes.items()):
        if number == len(names) and name not in names:
            names.append(name)
        elif not 0 <= number < len(names) or names[number] != name:
            there = f'"{printable(names[number])}"' if 0 <= number < len(names) else "no class"
            known = f"; there it is {names.index(name)}" if name in names else f", whose next is {len(names)}"
            raise SchemaError(
                f'class {number} is "{printable(name)}" in these files, and {there} in {dataset}{known}; classes keep '
                f"their numbers: number these as the dataset does, or convert to a new dataset (-o)"
            )
    return tuple(names)
