"""Cut a listing of images into pieces of about 1 MiB, and make rows of a piece; ten million pieces take 40 MB.

    images   │ 1.jpg │ 2.jpg │ 3.jpg │ 4.jpg │ 5.jpg │      the listing's table, or an order of it
    stops                    2               4       5      a piece is about 1 MiB, so a large image is one

Ten million pieces with a Python object each would take four gigabytes; so they take 4 bytes each. A task has a range
of them, which is a view; when a task goes to a worker, its own files and folders go with it, and no others.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Any, Final, NamedTuple, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...format.batches.arrow_memory import array_of, text_array
from ...format.batches.rejects import Place
from ...format.schema.schema import Feature, Schema
from ...format.wording.printable import printable_path
from ...inputs.contract.selection import EVERY_COLUMN, Selection
from ...inputs.contract.source import LazyPieces, Piece, Stamp
from ...pictures.facts import ImageFacts
from .walk import ImageFile, ImageTable

RECORD_OVERHEAD_BYTES: Final = 330
"""About what a record has beside the image: the keys, the small features and the framing."""

_AT_ONCE: Final = 1 << 16
"""Sizes that are gone through at once."""


@dataclass(frozen=True, slots=True)
class ReadFolder:
    """What reading needs to know of a folder: its path and root, how its files are named, what it means."""

    entry: int
    path: bytes
    root: bytes
    name: str
    prefix: str | None
    label: int | None
    class_name: str | None
    split: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ImagePiece(Piece):
    """A run of files in reading order, of one folder or several; `folders` has those that occur."""

    folders: Mapping[int, ReadFolder]
    images: ImageTable

    def rows_by_entry(self) -> dict[int, int | None]:
        entries, counts = np.unique(self.images.folders, return_counts=True)
        return dict(zip(entries.tolist(), counts.tolist(), strict=True))


@dataclass(frozen=True, slots=True, eq=False)
class ImagePieces(LazyPieces):
    """Pieces that follow each other: piece i ends before row `stops[i]` of the reading order.

    The first begins at row `start`. `order` are the rows of `table` in reading order (None: as they are), `folders`
    what is known of each, by the number in the table. `with_bytes` says that records hold the files' own bytes.
    """

    table: ImageTable
    order: npt.NDArray[np.int32] | None
    folders: Mapping[int, ReadFolder]
    start: int
    stops: npt.NDArray[np.int32]
    with_bytes: bool

    @property
    def outputs(self) -> npt.NDArray[np.int64]:
        outputs = np.empty(len(self), np.int64)
        for first in range(0, len(self), _AT_ONCE):
            stops = self.stops[first : first + _AT_ONCE].astype(np.int64)
            starts = np.append(self._begin(first), stops[:-1])
            outputs[first : first + len(stops)] = RECORD_OVERHEAD_BYTES * (stops - starts)
            if self.with_bytes:
                rows = slice(int(starts[0]), int(stops[-1]))
                sizes = self.table.sizes[rows] if self.order is None else self.table.sizes[self.order[rows]]
                outputs[first : first + len(stops)] += np.add.reduceat(sizes.clip(min=0), starts - starts[0])
        return outputs

    @property
    def rows(self) -> int:
        return int(self.stops[-1]) - self.start if len(self.stops) else 0

    def __len__(self) -> int:
        return len(self.stops)

    @overload
    def __getitem__(self, index: int) -> ImagePiece: ...
    @overload
    def __getitem__(self, index: slice) -> ImagePieces: ...
    def __getitem__(self, index: int | slice) -> ImagePiece | ImagePieces:
        if isinstance(index, slice):
            first, last, _ = index.indices(len(self))
            start, stops = self._begin(first), self.stops[first:last]
            return ImagePieces(self.table, self.order, self.folders, start, stops, self.with_bytes)
        index = range(len(self))[index]
        images = self._images(self._begin(index), int(self.stops[index]))
        size = int(images.sizes.clip(min=0).sum())
        head = self.folders[int(images.folders[0])]
        return ImagePiece(
            entry=head.entry,
            path=head.root,
            name=head.name,
            stamp=Stamp(0, 0),  # of no use for a folder: every file has its own
            rows=len(images),
            first_row=0,
            bytes=size,
            output_bytes=size * self.with_bytes + RECORD_OVERHEAD_BYTES * len(images),
            folders={number: self.folders[number] for number in np.unique(images.folders).tolist()},
            images=images,
        )

    def files(self) -> Iterator[ImageFile]:
        return iter(self._images(self.start, self.start + self.rows))

    def rows_by_entry(self) -> dict[int, int | None]:
        rows = slice(self.start, self.start + self.rows)
        folders = self.table.folders[rows] if self.order is None else self.table.folders[self.order[rows]]
        counts = np.bincount(folders)
        return {int(entry): int(counts[entry]) for entry in np.flatnonzero(counts)}

    def first(self, rows: int) -> ImagePieces:
        stop = self.start + min(rows, self.rows)
        stops = self.stops[: int(np.searchsorted(self.stops, stop)) + 1].clip(max=stop)
        return ImagePieces(self.table, self.order, self.folders, self.start, stops, self.with_bytes)

    def mark(self) -> bytes:
        digest = hashlib.sha256((self.stops - self.start).astype("<i4").data)
        digest.update(self.outputs.astype("<i8", copy=False).data)
        return digest.digest()

    def forget(self) -> None:
        self.table.forget()

    def to_document(self) -> dict[str, Any]:
        images = self._images(self.start, self.start + self.rows)
        used = np.unique(images.folders).tolist()
        return {
            "images": list(images.to_buffers()),
            "folders": [astuple(self.folders[number]) for number in used],
            "numbers": used,
            "stops": (self.stops - self.start).astype("<i4").tobytes(),
            "with_bytes": self.with_bytes,
        }

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> ImagePieces:
        folders = {n: ReadFolder(*f) for n, f in zip(document["numbers"], document["folders"], strict=True)}
        stops = np.frombuffer(document["stops"], "<i4")
        return cls(ImageTable.from_buffers(*document["images"]), None, folders, 0, stops, document["with_bytes"])

    def __reduce__(self) -> tuple[object, tuple[dict[str, Any]]]:
        return ImagePieces.from_document, (self.to_document(),)

    def _begin(self, index: int) -> int:
        return int(self.stops[index - 1]) if index else self.start

    def _images(self, start: int, stop: int) -> ImageTable:
        return self.table[start:stop] if self.order is None else self.table.take(self.order[start:stop])


def cut_images(
    table: ImageTable,
    order: npt.NDArray[np.int32] | None,
    folders: Sequence[ReadFolder],
    *,
    piece_bytes: int,
    piece_rows: int,
    with_bytes: bool,
) -> ImagePieces:
    """Cut files into pieces: each ends after `piece_bytes`, or `piece_rows` files.

    `with_bytes` says that the records hold the files' own bytes.
    """
    stops = array("i")
    size = rows = 0
    for start in range(0, len(table), _AT_ONCE):
        chosen = slice(start, start + _AT_ONCE) if order is None else order[start : start + _AT_ONCE]
        for stop, one in enumerate(table.sizes[chosen].clip(min=0).tolist(), start + 1):
            size += one
            rows += 1
            if size >= piece_bytes or rows == piece_rows or stop == len(table):
                stops.append(stop)
                size = rows = 0
    return ImagePieces(table, order, dict(enumerate(folders)), 0, np.frombuffer(stops, np.int32), with_bytes)


# Make batches of rows of images, without copying the images.
#
# The files of a batch are read one after the other into one buffer, and `image/encoded` is an Arrow *binary view* array
# over it: 16 bytes for each row, and a file that is rejected is read over by the next one.
#
#     views    | length | first 4 bytes | buffer 0 | offset |
#              | length | first 4 bytes | buffer 0 | offset |
#                                                      ▼
#     buffer   FF D8 FF E0 .......... FF D9 | 89 50 4E 47 .......... | (room for the rest of the batch)
#
# The encoder hands the same bytes to the file system. The buffer comes from Arrow's memory pool, which keeps what was
# used before: a fresh `bytes` object for each file costs a page fault for each 4 KiB, more than reading it (100 KB:
# 45 us of CPU instead of 18).


ENCODED: Final = "image/encoded"
LABEL: Final = "image/class/label"
SHA256: Final = "image/key/sha256"
LABELS_FILE: Final = "image-class-label.labels.txt"
_INLINE_BYTES: Final = 12
"""Arrow keeps values of up to 12 bytes in the view itself; no format has an image that small."""

_ALWAYS: Final = (
    Feature("image/channels", "int64", "int64"),
    Feature("image/colorspace", "bytes", "string"),
    Feature(ENCODED, "bytes", "image"),
    Feature("image/filename", "bytes", "string"),
    Feature("image/format", "bytes", "string"),
    Feature("image/height", "int64", "int64"),
    Feature("image/width", "int64", "int64"),
)
_LABELLED: Final = (
    Feature(LABEL, "int64", "label", labels=LABELS_FILE),
    Feature("image/class/text", "bytes", "string"),
)
_HASHED: Final = (Feature(SHA256, "bytes", "string"),)


class ImageRow(NamedTuple):
    """One good image: where its bytes are, and what its header and its folder say of it; a tuple, to be cheap."""

    offset: int
    size: int
    facts: ImageFacts
    filename: str
    label: int | None
    class_name: str | None
    sha256: str | None


_NUMBERS: Final[dict[str, Callable[[ImageRow], int | None]]] = {
    "image/channels": lambda row: row.facts.channels,
    LABEL: lambda row: row.label,
    "image/height": lambda row: row.facts.height,
    "image/width": lambda row: row.facts.width,
}
_TEXTS: Final[dict[str, Callable[[ImageRow], str | None]]] = {
    "image/class/text": lambda row: row.class_name,
    "image/colorspace": lambda row: row.facts.colorspace,
    "image/filename": lambda row: row.filename,
    "image/format": lambda row: row.facts.format,
    SHA256: lambda row: row.sha256,
}


@dataclass(frozen=True, slots=True)
class ImageOrigin:
    """The origin of rows that are one file each: the shown name of its folder and its own name."""

    files: tuple[tuple[str, bytes], ...]

    def place(self, row: int) -> Place:
        return image_place(*self.files[row])

    def number(self, row: int) -> tuple[str, None]:
        return self.place(row).source, None


def image_place(folder: str, name: bytes) -> Place:
    return Place(printable_path(name) if folder == "." else f"{folder}/{printable_path(name)}")


def image_schema(*, labelled: bool, hashed: bool, selection: Selection = EVERY_COLUMN) -> Schema:
    """Return the features of images, of which `selection` picks some. Raises `SchemaError` for a missing column."""
    features = sorted(_ALWAYS + (_LABELLED if labelled else ()) + (_HASHED if hashed else ()), key=lambda f: f.name)
    names = [feature.name for feature in features]
    kept = set(selection.pick(names))
    return Schema(tuple(feature for feature in features if feature.name in kept))


def image_fields(schema: Schema) -> tuple[pa.Field, ...]:
    kinds = {"int64": pa.int64(), "label": pa.int64(), "image": pa.binary_view()}
    return tuple(pa.field(one.name, kinds.get(one.type, pa.string()), one.nullable) for one in schema)


def image_batch(rows: Sequence[ImageRow], buffer: pa.Buffer, schema: Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [_column(one.name, rows, buffer) for one in schema], [feature.name for feature in schema]
    )


def _column(name: str, rows: Sequence[ImageRow], buffer: pa.Buffer) -> pa.Array:
    if name == ENCODED:
        return view_array([row.offset for row in rows], [row.size for row in rows], buffer)
    if name in _NUMBERS:
        numbers = [_NUMBERS[name](row) for row in rows]
        return pa.array(numbers, pa.int64()) if None in numbers else array_of(np.array(numbers, np.int64))
    return text_array([_TEXTS[name](row) for row in rows])


def view_array(offsets: Sequence[int], sizes: Sequence[int], buffer: pa.Buffer) -> pa.Array:
    """Return a binary view array over values of over 12 bytes each in a buffer of less than 2 GiB, without a copy."""
    views = np.zeros((len(offsets), 4), "<i4")
    views[:, 0] = sizes
    views[:, 3] = offsets
    assert not len(offsets) or views[:, 0].min() > _INLINE_BYTES
    if len(offsets):
        first_bytes = np.frombuffer(buffer, np.uint8)[views[:, 3:] + np.arange(4)]
        views[:, 1] = first_bytes.view("<i4")[:, 0]
    return pa.Array.from_buffers(pa.binary_view(), len(offsets), [None, pa.py_buffer(views), buffer], null_count=0)
