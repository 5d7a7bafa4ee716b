"""Files of pixels as a source: their sizes are checked while planning, and each record becomes a PNG picture.

The pictures have the features of those of a folder: `image/encoded`, `image/class/label` and so on.
"""

from __future__ import annotations

import io
import os
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from PIL import Image

from ...errors import InputError, SchemaError
from ...format.buffers.arrow_memory import array_of, binary_array, text_array
from ...format.flow.rejects import CellError, Place, Reject
from ...format.flow.rows import Rows
from ...format.schema.schema import Choice, Feature, Schema
from ...format.sidecars.tfds import labels_file_name
from ...format.wording.printable import printable
from ..archives.columns import CLASS_TEXT, PICTURE
from ..contract.source import Frozen, Listing, ParallelMap, SourceEntry, Survey, Task, Traits
from ..files.listing import list_entries
from ..files.open_file import open_listed, open_unbuffered
from ..files.stamp import check_stamp
from ..images.rows import LABEL
from ..registry.conform import DatasetSchema
from ..registry.formats import suffixes_of
from .cifar import look_at_cifar, names_beside
from .idx import is_labels, labels_beside, look_at_idx, most_label
from .raw_file import RawFile, RawPiece, bytes_of, open_bytes, split_of

COARSE: Final = "image/class/coarse_label"
COARSE_TEXT: Final = "image/class/coarse_text"
IMAGE: Final = "image"

_PIECE_BYTES: Final = 1 << 20
_BATCH_ROWS: Final = 256
_BATCH_BYTES: Final = 8 << 20


@dataclass(frozen=True, slots=True)
class RawPictureSource:
    """Read files of one `kind`, idx or cifar.

    `paths` are files, folders and globs, relative to the folder `base`. `labels` are the classes of a dataset that is
    appended to, by feature.
    """

    kind: str
    paths: tuple[str, ...]
    base: str = ""
    labels: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def following(self, dataset: DatasetSchema) -> RawPictureSource:
        """Return the source whose classes are those of a dataset."""
        return replace(self, labels=dict(dataset.labels))

    def list_files(self) -> Listing:
        """Return the files, and those of labels beside them.

        Raises:
            InputError: a path matches nothing, or no file holds pictures.
        """
        traits = Traits(in_tables=True, names_pictures=False)
        listing = list_entries(self.paths, self.base, suffixes_of(self.kind), file_format=self.kind, traits=traits)
        if self.kind == "idx":
            known = {entry.path: entry for entry in listing.entries}
            for entry in listing.entries:
                if not is_labels(entry.name) and (labels := labels_beside(entry)) is not None:
                    known.setdefault(labels.path, labels)
            entries = tuple(known[path] for path in sorted(known))
            listing = replace(listing, entries=entries, files=len(entries), bytes=sum(entry.bytes for entry in entries))
            _refuse_twice(entries)
            if all(is_labels(entry.name) for entry in entries):
                raise InputError(f"{entries[0].name}: holds labels, and no pictures; name the file of pictures too")
        return listing

    def survey(self, listing: Listing, run: ParallelMap) -> Survey:
        """Check the sizes of all files; return the classes, the splits, and pieces of about 1 MiB.

        Raises:
            SourceError: a file is damaged, or is of another kind.
            SchemaError: only some files have labels, or the classes are not those of the dataset.
        """
        look = {"idx": look_at_idx, "cifar": look_at_cifar}[self.kind]
        found: list[RawFile | None] = run(look, listing.entries, heavy=True)
        files = [(index, one) for index, one in enumerate(found) if one is not None]
        classes = self._classes([(listing.entries[index], one) for index, one in files])
        names = [split_of(listing.entries[index].name) for index, _ in files]
        splits = () if None in names else tuple(sorted({name for name in names if name is not None}))
        pieces: list[RawPiece] = []
        rows: dict[str, int] = {}
        for (index, file), name in zip(files, names, strict=True):
            kept = file if classes else file.without_labels()
            pieces += _pieces(index, listing.entries[index], kept, splits.index(name) if splits and name else 0)
            if splits and name is not None:
                rows[name] = rows.get(name, 0) + file.rows
        features = [Feature(name, "int64", "label", labels=labels_file_name(name)) for name in classes]
        features += [Feature(_TEXTS[name], "bytes", "string") for name in classes]
        schema = Schema(tuple(sorted(features, key=lambda feature: feature.name)))
        choices = [
            Choice(name, "label", f"{len(known)} classes, as the files have them") for name, known in classes.items()
        ]
        choices += [Choice(_TEXTS[name], "string", "the name of the class") for name in classes]
        if splits:
            choices.append(Choice("split", "file", f"from the names of files: {', '.join(splits)}"))
        fields = [pa.field(IMAGE, PICTURE, nullable=False)]
        fields += [pa.field(name, pa.int64(), nullable=False) for name in classes]
        fields += [pa.field(_TEXTS[name], pa.string(), nullable=False) for name in classes]
        detected = (f"splits {', '.join(splits)}, from the names of files",) if splits else ()
        frozen = Frozen(schema, splits=splits, labels=classes)
        return Survey(frozen, tuple(choices), pieces, (), rows, detected=detected, fields=tuple(fields))

    def read(self, task: Task, frozen: Frozen) -> Iterator[Rows]:
        """Yield the pictures of a task; one with a label that is no class is a reject.

        Raises:
            SourceError: a file is not what was listed.
        """
        ordinal = 0
        for _, group in groupby(task.pieces, key=lambda piece: piece.entry):
            pieces = [piece for piece in group if isinstance(piece, RawPiece)]
            check_stamp(pieces[0])
            for piece, first, records, labels in _batches(pieces):
                yield self._rows(piece, first, records, labels, frozen, task.ordinal, ordinal)
                ordinal += 1
            check_stamp(pieces[0])

    def _rows(
        self,
        piece: RawPiece,
        first: int,
        records: npt.NDArray[np.uint8],
        labels: npt.NDArray[np.uint8],
        frozen: Frozen,
        task: int,
        ordinal: int,
    ) -> Rows:
        names = [frozen.labels[name] for name in _features_of(labels.shape[1]) if name in frozen.labels]
        good = np.ones(len(records), bool)
        for column, known in enumerate(names):
            good &= labels[:, column] < len(known)
        rejects = tuple(_bad_label(piece, first + row, labels[row], names) for row in np.flatnonzero(~good).tolist())
        kept = np.flatnonzero(good)
        stem = os.path.basename(piece.name)
        width = len(str(piece.file.rows - 1))
        pictures = binary_array([_png(records[row], piece.file.shape) for row in kept.tolist()])
        paths = text_array([f"{stem}/{first + row:0{width}d}.png" for row in kept.tolist()])
        arrays = {IMAGE: pa.StructArray.from_arrays([pictures, paths], fields=list(PICTURE))}
        for column, (feature, known) in enumerate(zip(_features_of(labels.shape[1]), names, strict=False)):
            numbers = labels[kept, column].astype(np.int64)
            arrays[feature] = array_of(numbers)
            arrays[_TEXTS[feature]] = text_array([known[number] for number in numbers.tolist()])
        wanted = {one.name for one in frozen.schema} | {IMAGE}
        arrays = {name: array for name, array in arrays.items() if name in wanted}
        codes = np.full(len(kept), piece.split, np.int64) if frozen.splits else None
        batch = pa.RecordBatch.from_arrays(list(arrays.values()), names=list(arrays))
        origin = _RecordOrigin(piece.name, tuple((kept + first).tolist()), piece.file)
        return Rows(task, ordinal, piece.entry, batch, origin, (), rejects, codes)

    def _classes(self, files: Sequence[tuple[SourceEntry, RawFile]]) -> dict[str, tuple[str, ...]]:
        """Return the names of classes, by feature; none where no file has labels."""
        if self.kind == "cifar":
            kinds = {file.label_bytes: entry for entry, file in files}
            if len(kinds) > 1:
                one, other = kinds.values()
                raise SchemaError(f"{one.name} and {other.name} are of CIFAR-10 and CIFAR-100; convert them one by one")
            ((labels, entry),) = kinds.items()
            classes = dict(zip(_features_of(labels), names_beside(entry, labels), strict=True))
        else:
            bare = next((entry for entry, file in files if file.labels is None), None)
            if bare is not None and all(file.labels is None for _, file in files):
                return {}
            if bare is not None:
                text = (
                    "put the file of its labels beside it, as train-labels-idx1-ubyte is beside train-images-idx3-ubyte"
                )
                raise SchemaError(f"{bare.name}: has no labels, and other files have some; {text}")
            classes = {LABEL: tuple(map(str, range(max(most_label(file) for _, file in files) + 1)))}
        return {name: self._known(name, own) for name, own in classes.items()}

    def _known(self, feature: str, own: tuple[str, ...]) -> tuple[str, ...]:
        known = self.labels.get(feature, ())
        for number, (old, new) in enumerate(zip(known, own, strict=False)):
            if old != new:
                raise SchemaError(
                    f'{feature}: class {number} is "{printable(new)}" in these files, and "{printable(old)}" in the '
                    f"dataset; convert to a new dataset (shardmill convert ... -o FOLDER)"
                )
        return max(known, own, key=len)


def _refuse_twice(entries: Sequence[SourceEntry]) -> None:
    """Refuse a file that is there packed and unpacked, as torchvision leaves MNIST: its rows would come twice.

    Raises:
        InputError: there is one.
    """
    names = {entry.name for entry in entries if not is_labels(entry.name)}
    twice = next((name for name in sorted(names) if f"{name}.gz" in names), None)
    if twice is not None:
        fix = shlex.quote(os.path.join(os.path.dirname(twice), "*-ubyte"))
        raise InputError(f"{twice} and {twice}.gz: one file, packed and unpacked, would be read twice; name one: {fix}")


_TEXTS: Final = {LABEL: CLASS_TEXT, COARSE: COARSE_TEXT}


def _features_of(labels: int) -> tuple[str, ...]:
    """Return the features of the labels of a record, in their order."""
    return (COARSE, LABEL) if labels > 1 else (LABEL,)


@dataclass(frozen=True, slots=True)
class _RecordOrigin:
    """The places of records: their numbers in the file, from 0, and so their offsets."""

    source: str
    records: tuple[int, ...]
    file: RawFile

    def place(self, row: int) -> Place:
        """Return the file, the row and its offset."""
        return _place(self.source, self.records[row], self.file)

    def number(self, row: int) -> tuple[str, int]:
        """Return the file and the row."""
        return self.source, self.records[row] + 1


def _place(source: str, record: int, file: RawFile) -> Place:
    return Place(source, row=record + 1, offset=file.start + record * file.record_bytes)


def _bad_label(piece: RawPiece, record: int, labels: npt.NDArray[np.uint8], names: Sequence[tuple[str, ...]]) -> Reject:
    column = next(i for i, known in enumerate(names) if labels[i] >= len(known))
    value, most = str(labels[column]), len(names[column]) - 1
    place = _place(piece.name, record, piece.file)
    text = f'"{value}" is no class, which are 0 to {most}: the file is damaged here, or of another kind; copy it again'
    error = CellError(_features_of(len(names))[column], "UNKNOWN_CLASS", value, f"0 to {most}", text)
    return Reject(piece.entry, place, (error,))


def _pieces(index: int, entry: SourceEntry, file: RawFile, split: int) -> Iterator[RawPiece]:
    whole = entry.bytes != file.start + file.rows * file.record_bytes  # it is compressed
    step = file.rows if whole else max(_PIECE_BYTES // file.record_bytes, 1)
    for first in range(0, file.rows, max(step, 1)):
        rows = min(step, file.rows - first)
        yield RawPiece(
            entry=index, path=entry.path, name=entry.name, stamp=entry.stamp, rows=rows, first_row=first,
            bytes=entry.bytes * rows // file.rows, file=file, split=split,
        )  # fmt: skip


def _batches(
    pieces: Sequence[RawPiece],
) -> Iterator[tuple[RawPiece, int, npt.NDArray[np.uint8], npt.NDArray[np.uint8]]]:
    """Yield the pixels and labels of some records at a time, with the number of the first."""
    piece, file = pieces[0], pieces[0].file
    step = max(min(_BATCH_ROWS, _BATCH_BYTES // file.record_bytes), 1)
    stop = pieces[-1].first_row + (pieces[-1].rows or 0)
    with open_listed(piece, open_unbuffered) as opened, open_listed(file.labels or piece, open_unbuffered) as beside:
        source = open_bytes(piece, opened)
        others = None if file.labels is None else open_bytes(file.labels, beside)
        if file.labels is not None:
            check_stamp(file.labels)
        for first in range(piece.first_row, stop, step):
            rows = min(step, stop - first)
            data = bytes_of(source, piece.name, file.start + first * file.record_bytes, rows * file.record_bytes)
            records = data.reshape(rows, file.record_bytes)
            labels = records[:, : file.label_bytes]
            if others is not None and file.labels is not None:
                labels = bytes_of(others, file.labels.name, file.labels_start + first, rows).reshape(rows, 1)
            yield piece, first, records[:, file.label_bytes :], labels


def _png(pixels: npt.NDArray[np.uint8], shape: tuple[int, int, int]) -> bytes:
    """Return a PNG picture of pixels, which are without loss; those of several channels are a plane each."""
    height, width, channels = shape
    planes = pixels.reshape(channels, height, width)
    sink = io.BytesIO()
    Image.fromarray(planes[0] if channels == 1 else np.ascontiguousarray(planes.transpose(1, 2, 0))).save(sink, "png")
    return sink.getvalue()
