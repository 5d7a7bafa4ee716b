"""Make batches of rows of images, without copying the images.

The files of a batch are read one after the other into one buffer, and `image/encoded` is an Arrow *binary view* array
over it: 16 bytes for each row, and a file that is rejected is read over by the next one.

    views    | length | first 4 bytes | buffer 0 | offset |
             | length | first 4 bytes | buffer 0 | offset |
                                                     ▼
    buffer   FF D8 FF E0 .......... FF D9 | 89 50 4E 47 .......... | (room for the rest of the batch)

The encoder hands the same bytes to the file system. The buffer comes from Arrow's memory pool, which keeps what was
used before: a fresh `bytes` object for each file costs a page fault for each 4 KiB, more than reading it (100 KB: 45 us
of CPU instead of 18).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from ...format.batches.arrow_memory import array_of, text_array
from ...format.batches.rejects import Place
from ...format.schema.schema import Feature, Schema
from ...format.wording.printable import printable_path
from ...inputs.contract.selection import EVERY_COLUMN, Selection
from ...pictures.facts import ImageFacts

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
