"""Folders of images as a source: they are listed, cut into pieces, and read as batches of files' own bytes.

root/cat/1.jpg ─┐ list_files: folders are entries, files have sizes; nothing is opened
root/cat/2.png ─┤ survey: layout -> labels and splits; paths in order, or shuffled; cut into pieces
root/dog/1.jpg ─┘ read: one read and one check per file; a file that fails is a reject
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from ...errors import UsageError
from ...format.batches.rejects import Reject, warning_at
from ...format.batches.rows import Notes, Rows
from ...format.schema.schema import Choice
from ...inputs.contract.source import DatasetSchema, Frozen, Listing, ParallelMap, Survey, Task
from ...inputs.files.open_file import is_object
from ...limits.turns import ROW_BYTES, taking_turns
from ...pictures.facts import ImageProblem, notes_of
from ...pictures.structure import DECODED, READABLE_FORMATS, ImageCheck
from ...recipe.steps.label import in_order_of_numbers, numbers_note, refuse_other_numbers
from ...recognise.pictures.layout import Layout, Meaning, class_warnings, empty_classes, unknown_class, unknown_warning
from ...recognise.rules import recognise_pictures
from ...recognise.strangers.files import pictures_twice
from ..registry.file_source import FileSource
from .bytes import Batch, Fetched, fetch_ahead, read_image_bytes, read_object_into
from .listing import OF_FOLDERS, ImageListing, list_images, mask_warning, shuffled
from .pieces import (
    ENCODED,
    LABEL,
    ImageOrigin,
    ImagePiece,
    ImagePieces,
    ImageRow,
    ReadFolder,
    cut_images,
    image_batch,
    image_fields,
    image_place,
    image_schema,
)
from .walk import ImageFile

if TYPE_CHECKING:
    from ..registry.options import ImagesInput

_UNUSED: Final = "_unused_"

_COLUMNS: Final = {"BAD_UTF8": "image/filename", "UNKNOWN_CLASS": LABEL}
"""The features that problems of some codes are about; the others are about the whole file."""

_LARGEST_IMAGE: Final = 2**30
"""The buffer of a batch must stay below 2 GiB: a view's offsets are int32."""


def unused_labels(classes: Sequence[str]) -> int:
    """Return how many numbers are below that of the first class, by the names of all labels.

    >>> unused_labels(["_unused_0", "cat", "dog"])
    1
    """
    return next((i for i, name in enumerate(classes) if name != f"{_UNUSED}{i}"), len(classes))


@dataclass(frozen=True, slots=True)
class ImageLimits:
    """A batch ends at a number of files or bytes, a piece after some bytes.

    That is enough to make the cost of a batch small, and a few fit in any memory; and tasks can be cut close to whole
    shards.
    """

    batch_rows: int = 256
    batch_bytes: int = 8 << 20
    piece_bytes: int = 1 << 20


@dataclass(frozen=True, slots=True)
class ImageSource(FileSource):
    """Images below root folders (or named one by one), one record each.

    A file name that is not UTF-8 is a reject: as a feature it would be another name. The order of a seed depends on
    it and on the paths below the roots only, so that it is the same on every machine.

    known_classes   those that have numbers already, from 0: new ones come after them, and no offset counts
    limits          the sizes of batches and pieces
    """

    traits = OF_FOLDERS

    options: ImagesInput
    known_classes: tuple[str, ...] | None = None
    limits: ImageLimits = field(default_factory=ImageLimits, compare=False, repr=False)

    def __post_init__(self) -> None:
        self._checker()
        if self._limit > _LARGEST_IMAGE:
            raise UsageError(f"limits.image_bytes: {self._limit} is more than {_LARGEST_IMAGE}, which is 1GiB")

    @property
    def _layout(self) -> str:
        alone = self.options.detect == "none" and self.options.layout == "auto"
        return "flat" if alone else self.options.layout

    @property
    def _labels(self) -> list[str] | None:
        return self.options.labels if isinstance(self.options.labels, list) else None

    @property
    def _hashed(self) -> bool:
        """Whether the digest of a file is a feature: by default that of files which are not kept as they are."""
        given = "sha256" in self.options.model_fields_set
        return self.options.sha256 or (self.settings.pictures.changes_pictures and not given)

    @property
    def _limit(self) -> int:
        return self.settings.limits.image_bytes

    def following(self, dataset: DatasetSchema) -> ImageSource:
        """Take the dataset's class numbers. Raises `SchemaError` where `labels` give a class another number."""
        if self._labels is not None:
            known = dataset.labels.get(LABEL, ())
            refuse_other_numbers("input.labels", self._labels, known[unused_labels(known) :])
        return replace(self, known_classes=dataset.labels[LABEL]) if LABEL in dataset.labels else self

    def list_files(self) -> Listing:
        """Raise `InputError`: a path matches nothing, a folder is empty or cannot be read, or two paths overlap."""
        return self.recognised(list_images(self.options.paths, self.settings.base, ignore=self.options.ignore))

    def recognised(self, listing: ImageListing) -> ImageListing:
        """Return a listing with what its folders mean, and the split of each entry."""
        paths, options = self.options.paths, self.options
        said = [key for key in options.model_fields_set if getattr(options, key) is not None]
        found = recognise_pictures(listing.as_found(), paths, self._layout, self.settings.splits, said)
        entries = tuple(replace(one, split=split) for one, split in zip(listing.entries, found.splits, strict=True))
        listing = replace(listing, entries=entries, recognised=found.recognised, above=found.above)
        return replace(listing, meaning=found.meaning, beside=found.beside)

    def survey(self, listing: Listing, run: ParallelMap) -> Survey:  # noqa: ARG002 - no file needs to be opened
        if not isinstance(listing, ImageListing) or (meaning := listing.meaning) is None:
            raise TypeError("a listing of images comes from ImageSource.list_files")
        if self._labels is not None:
            meaning.refuse_labels()
        layout, classes, splits = meaning.layout, meaning.classes, meaning.splits
        schema = image_schema(labelled=meaning.is_labelled, hashed=self._hashed, selection=self.selection)
        kept, how = {feature.name for feature in schema}, self.settings.splits
        classes = in_order_of_numbers(classes, "input.labels") if self.options.labels == "numeric" else classes
        names = self._class_names(classes if self._labels is None else self._labels)
        pieces = cut_images(
            listing.images,
            None if self.settings.seed is None else shuffled(listing, self.settings.seed),
            self._read_folders(listing, meaning, names),
            piece_bytes=self.limits.piece_bytes,
            piece_rows=self.limits.batch_rows,
            with_bytes=ENCODED in kept,
        )
        return Survey(
            Frozen(schema, splits=splits, labels={LABEL: names} if LABEL in kept else {}),
            tuple(c for c in self._choices(layout, classes, splits) if c.column in kept | {"layout", "split"}),
            pieces,
            (
                *self._warnings(classes, names, layout),
                *mask_warning(listing.images, self.options.ignore),
                *(pictures_twice(listing.copies(), self.options.ignore) if how.looks else ()),
                *listing.as_found().hints(how.call.afterwards),
            ),
            _split_rows(meaning, listing),
            detected=(
                *self._detected(layout, classes, splits),
                *listing.beside,
                *(numbers_note(names, "input.labels") if self._labels is None and not self.known_classes else ()),
                *empty_classes(listing.below(empty=True), layout, names),
            ),
            fields=image_fields(schema),
        )

    def read(self, task: Task, frozen: Frozen) -> Iterator[Rows]:
        """What is not a good image is a reject. Raises `SourceError` where a file is not what was listed."""
        checker = self._checker()
        limit = self._limit
        soon = min(limit, ROW_BYTES.beside)  # larger ones are fetched in their turn
        batches = fetch_ahead(_batches(task, limit, self.limits), lambda image: image.size <= soon)
        for ordinal, (files, ahead) in enumerate(batches):
            room = sum(_room(image, limit) for _, image in files)
            with taking_turns(ROW_BYTES, room):
                rows = self._read_batch(task, ordinal, frozen, checker, files, ahead, room)
                del ahead
                yield rows
                del rows

    def _read_batch(
        self,
        task: Task,
        ordinal: int,
        frozen: Frozen,
        checker: ImageCheck,
        files: Batch,
        ahead: Sequence[Fetched],
        room: int,
    ) -> Rows:
        # Arrow's own pool keeps what is freed, for the next batch.
        pool = pa.system_memory_pool() if room > ROW_BYTES.beside else None
        buffer = pa.allocate_buffer(room, memory_pool=pool)
        memory = memoryview(buffer).cast("B")  # Arrow's own are signed: FF would be -1
        gathered = _Gathered(memory, noted=not self.settings.pictures.changes_pictures)
        for (folder, image), fetched in zip(files, ahead, strict=True):
            try:
                row = self._read_one(folder, image, checker, frozen, gathered, fetched)
                gathered.add(folder, image, row)
            except ImageProblem as problem:
                gathered.reject(folder, image, problem, frozen.splits)
        return gathered.to_rows(task, ordinal, frozen, buffer)

    def _read_one(
        self,
        folder: ReadFolder,
        image: ImageFile,
        checker: ImageCheck,
        frozen: Frozen,
        gathered: _Gathered,
        fetched: Fetched,
    ) -> ImageRow:
        try:
            filename = image.name.decode() if folder.prefix is not None else ""
        except UnicodeDecodeError:
            filename = ""
        if not filename:
            raise _bad_name(folder, image)
        if folder.class_name is not None and folder.label is None:
            raise unknown_class(folder.class_name, self._labels or (), self.options.ignore)
        limit = self._limit
        if image.size > limit:
            message = f"{image.size} bytes are more than limits.image_bytes = {limit}; raise it if they are meant"
            raise ImageProblem("FIELD_TOO_LARGE", message, value=image.size, expected=f"at most {limit} bytes")
        memory = gathered.memory[gathered.bytes :]
        if is_object(folder.path):
            if fetched is None:
                read_object_into(memory, folder.path + image.name, image)
            else:
                memory[: image.size] = fetched.result()
            data = memory[: image.size]
        else:
            data = read_image_bytes(folder.path + image.name, folder.root, image.size, image.mtime_ns, memory)
        facts = checker.check(data)
        if folder.split is None and frozen.splits:
            message = "no split folder holds the image; move it into one, or set input.layout to flat"
            raise ImageProblem("DECLARED_NOT_NULL", message, expected="an image in a split folder")
        if folder.label is None and LABEL in frozen.labels:
            message = "no class folder holds the image; move it into one, or set input.layout to flat"
            raise ImageProblem("DECLARED_NOT_NULL", message, expected="an image in a class folder")
        digest = hashlib.sha256(data).hexdigest() if self._hashed else None
        name = f"{folder.prefix}{filename}"
        return ImageRow(gathered.bytes, image.size, facts, name, folder.label, folder.class_name, digest)

    def _checker(self) -> ImageCheck:
        pictures, options = self.settings.pictures, self.options
        level = "structure" if options.check in DECODED and pictures.changes_pictures else options.check
        kept = pictures.format == "keep"
        formats = tuple(options.formats) if kept or "formats" in options.model_fields_set else READABLE_FORMATS
        return ImageCheck(level, formats, self.settings.limits.pixels, loads_others=kept)

    def _class_names(self, classes: Sequence[str]) -> tuple[str, ...]:
        known = self.known_classes
        if known is None:
            known = tuple(f"{_UNUSED}{i}" for i in range(self.options.label_offset))
        return known + tuple(name for name in classes if name not in known)

    def _warnings(self, classes: Sequence[str], names: Sequence[str], layout: Layout) -> tuple[str, ...]:
        alike = class_warnings([name for name in names if not name.startswith(_UNUSED)], layout)
        return alike if self._labels is None else (*alike, *unknown_warning(classes, self._labels, self.options.ignore))

    def _read_folders(self, listing: ImageListing, meaning: Meaning, classes: Sequence[str]) -> list[ReadFolder]:
        wanted = None if self._labels is None else set(self._labels)
        labels = {name: i for i, name in enumerate(classes) if wanted is None or name in wanted}
        codes = {name: i for i, name in enumerate(meaning.splits)}
        folders = []
        for entry, (found, role) in enumerate(zip(listing.folders, meaning.roles, strict=True)):
            try:
                below = found.below_apex.decode()
                prefix = f"{below}/" if below else ""
            except UnicodeDecodeError:
                prefix = None
            label = None if role.class_name is None else labels.get(role.class_name)
            split = None if role.split is None else codes[role.split]
            path = found.path.rstrip(b"/") + b"/"
            name = listing.entries[entry].name
            folders.append(ReadFolder(entry, path, found.root, name, prefix, label, role.class_name, split))
        return folders

    def _detected(self, layout: Layout, classes: Sequence[str], splits: Sequence[str]) -> tuple[str, ...]:
        if self._layout != "auto":
            return ()
        found = [f"splits {', '.join(splits)}"] if splits else []
        if layout != "split" and layout != "flat":
            here = "" if self.known_classes is None else " in these files"  # the dataset may have others
            found.append(f"{'1 class' if len(classes) == 1 else f'{len(classes)} classes'}{here}")
        what = f"{' and '.join(found)}, from the names of folders" if found else "pictures without classes and splits"
        return (f"{what} (input.layout: {layout})",)

    def _choices(self, layout: Layout, classes: Sequence[str], splits: Sequence[str]) -> tuple[Choice, ...]:
        origin = "from the names of folders" if self._layout == "auto" else "input.layout"
        choices = [Choice(ENCODED, "image", "the file's own bytes")]
        if layout == "flat":
            return (*choices, Choice("layout", "flat", f"{origin}: files without classes"))
        if layout != "split":
            known = classes if self._labels is None else self._labels
            count = f"{len(known)} class{'es' if len(known) != 1 else ''}"
            count += "" if self._labels is None else ", as declared (input.labels)"
            choices.append(Choice(LABEL, "label", f"layout {layout}, {origin}: {count}"))
        if splits:
            choices.append(Choice("split", "folder", f"layout {layout}, {origin}: {', '.join(splits)}"))
        return tuple(choices)


class _Gathered:
    """The batch that is being gathered: the first `bytes` of `memory` are those of its rows."""

    def __init__(self, memory: memoryview, *, noted: bool) -> None:
        self.memory = memory
        self.noted = noted
        self.rows: list[ImageRow] = []
        self.folders: list[ReadFolder] = []
        self.files: list[tuple[str, bytes]] = []
        self.rejects: list[Reject] = []
        self.warned: list[str] = []
        self.bytes = 0

    def add(self, folder: ReadFolder, image: ImageFile, row: ImageRow) -> None:
        self.rows.append(row)
        self.folders.append(folder)
        self.files.append((folder.name, image.name))
        self.bytes += image.size
        if row.facts.warning:
            self.warned.append(warning_at(image_place(folder.name, image.name), row.facts.warning))

    def reject(self, folder: ReadFolder, image: ImageFile, problem: ImageProblem, splits: tuple[str, ...]) -> None:
        column = _COLUMNS.get(problem.code)
        place = image_place(folder.name, image.name)
        split = None if folder.split is None else splits[folder.split]
        self.rejects.append(Reject(folder.entry, place, (problem.to_cell_error(column),), split))

    def to_rows(self, task: Task, ordinal: int, frozen: Frozen, buffer: pa.Buffer) -> Rows:
        codes = None
        if frozen.splits:
            codes = np.array([folder.split for folder in self.folders], np.int64)
        return Rows(
            task.ordinal,
            ordinal,
            np.array([folder.entry for folder in self.folders], np.int64),
            image_batch(self.rows, buffer, frozen.schema),
            ImageOrigin(tuple(self.files)),
            rejects=tuple(self.rejects),
            split_codes=codes,
            notes=self._notes(),
            warned=tuple(self.warned),
        )

    def _notes(self) -> Notes:
        notes: Counter[tuple[int, str]] = Counter()
        for folder, row in zip(self.folders, self.rows, strict=True) if self.noted else ():
            for note in notes_of(row.facts):
                notes[folder.entry, note] += 1
        return dict(notes)


def _batches(task: Task, limit: int, limits: ImageLimits) -> Iterator[list[tuple[ReadFolder, ImageFile]]]:
    files: list[tuple[ReadFolder, ImageFile]] = []
    size = 0
    for folder, image in _files(task):
        files.append((folder, image))
        size += _room(image, limit)
        if len(files) == limits.batch_rows or size >= limits.batch_bytes:
            yield files
            files, size = [], 0
    if files:
        yield files


def _files(task: Task) -> Iterator[tuple[ReadFolder, ImageFile]]:
    if isinstance(task.pieces, ImagePieces):
        folders = task.pieces.folders
        yield from ((folders[image.folder], image) for image in task.pieces.files())
        return
    for piece in task.pieces:
        assert isinstance(piece, ImagePiece)
        yield from ((piece.folders[image.folder], image) for image in piece.images)


def _room(image: ImageFile, limit: int) -> int:
    """Return the bytes of memory that reading a file needs: one more than it has, so that growth shows."""
    return image.size + 1 if 0 <= image.size <= limit else 0


def _bad_name(folder: ReadFolder, image: ImageFile) -> ImageProblem:
    message = "the path is not UTF-8, so it cannot be a feature; rename the file or its folder"
    place = image_place(folder.name, image.name)
    return ImageProblem("BAD_UTF8", message, value=place.source, expected="a path in UTF-8")


def _split_rows(meaning: Meaning, listing: ImageListing) -> dict[str, int]:
    rows: Counter[str] = Counter()
    for role, entry in zip(meaning.roles, listing.entries, strict=True):
        if role.split is not None:
            rows[role.split] += entry.files
    return dict(rows)
