"""Make batches of rows of images, without copying the images.

An `image/encoded` column is an Arrow *binary view* array: 16 bytes for each row, and the files' own bytes beside them.

    views    | length | first 4 bytes | buffer 0 | offset 0 |     buffers   0: FF D8 FF E0 ...  (as it was read)
             | length | first 4 bytes | buffer 1 | offset 0 |               1: 89 50 4E 47 ...

So a batch of images costs 16 bytes a row, and the encoder hands the same bytes to the file system.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from ..format.rejects import Place
from ..format.schema import Feature, Schema
from .image_facts import ImageFacts
from .listing import shown

LABEL: Final = "image/class/label"
LABELS_FILE: Final = "image-class-label.labels.txt"
_INLINE_BYTES: Final = 12
"""Arrow keeps values of up to 12 bytes in the view itself; no format has an image that small."""

_ALWAYS: Final = (
    Feature("image/channels", "int64", "int64"),
    Feature("image/colorspace", "bytes", "string"),
    Feature("image/encoded", "bytes", "image"),
    Feature("image/filename", "bytes", "string"),
    Feature("image/format", "bytes", "string"),
    Feature("image/height", "int64", "int64"),
    Feature("image/width", "int64", "int64"),
)
_LABELLED: Final = (
    Feature(LABEL, "int64", "label", labels=LABELS_FILE),
    Feature("image/class/text", "bytes", "string"),
)
_HASHED: Final = (Feature("image/key/sha256", "bytes", "string"),)


class ImageRow(NamedTuple):
    """One good image: its bytes, what its header says, and what its folder says of it; a tuple, for its price."""

    data: bytes
    facts: ImageFacts
    filename: str
    label: int | None
    class_name: str | None
    sha256: str | None


@dataclass(frozen=True, slots=True)
class ImageOrigin:
    """The origin of rows that are one file each: the shown name of its folder and its own name."""

    files: tuple[tuple[str, bytes], ...]

    def place(self, row: int) -> Place:
        """Return the file of a row."""
        return image_place(*self.files[row])


def image_place(folder: str, name: bytes) -> Place:
    """Return the place of a file in a folder whose shown name is given."""
    return Place(shown(name) if folder == "." else f"{folder}/{shown(name)}")


def image_schema(*, labelled: bool, hashed: bool) -> Schema:
    """Return the features of images: with a class where they are labelled, with a digest where it is asked for."""
    features = _ALWAYS + (_LABELLED if labelled else ()) + (_HASHED if hashed else ())
    return Schema(tuple(sorted(features, key=lambda feature: feature.name)))


def image_batch(rows: Sequence[ImageRow], schema: Schema) -> pa.RecordBatch:
    """Return the batch of some images; the buffers of `image/encoded` are the rows' own bytes."""
    facts = [row.facts for row in rows]
    columns = {
        "image/channels": pa.array([f.channels for f in facts], pa.int64()),
        "image/class/label": pa.array([row.label for row in rows], pa.int64()),
        "image/class/text": pa.array([row.class_name for row in rows], pa.string()),
        "image/colorspace": pa.array([f.colorspace for f in facts], pa.string()),
        "image/encoded": view_array([row.data for row in rows]),
        "image/filename": pa.array([row.filename for row in rows], pa.string()),
        "image/format": pa.array([f.format for f in facts], pa.string()),
        "image/height": pa.array([f.height for f in facts], pa.int64()),
        "image/key/sha256": pa.array([row.sha256 for row in rows], pa.string()),
        "image/width": pa.array([f.width for f in facts], pa.int64()),
    }
    names = [feature.name for feature in schema]
    return pa.RecordBatch.from_arrays([columns[name] for name in names], names)


def view_array(values: Sequence[bytes]) -> pa.Array:
    """Return a binary view array over values of more than 12 and less than 2**31 bytes each, without copying them."""
    views = np.zeros((len(values), 4), "<i4")
    views[:, 0] = [len(value) for value in values]
    views[:, 1] = np.frombuffer(b"".join([value[:4] for value in values]), "<i4")
    views[:, 2] = np.arange(len(values))
    assert not len(values) or views[:, 0].min() > _INLINE_BYTES
    buffers = [None, pa.py_buffer(views), *map(pa.py_buffer, values)]
    return pa.Array.from_buffers(pa.binary_view(), len(values), buffers, null_count=0)
