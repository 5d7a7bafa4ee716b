"""The rows that annotations become, whatever their files look like.

    file_name  image/source_id  image/caption  objects
    7.jpg      "7"              ["a cat"]      {bbox: [[1, 2, 3, 4]], category: [17], label: ["cat"], area: [12], ...}

`objects` is what `recipe/steps/boxes.py` makes the keys of TensorFlow's detection of.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa

from ...recipe.steps.objects import ID, OBJECTS, SIZE
from ..contract.source import SourceEntry
from ..files.formats import has_suffix, suffixes_of

FILE_NAME: Final = "file_name"
SOURCE_ID: Final = "image/source_id"
CAPTION: Final = "image/caption"

_FIELDS: Final[dict[str, pa.DataType]] = {
    "bbox": pa.list_(pa.float64()),
    "center_box": pa.list_(pa.float64()),
    "category": pa.int64(),
    "label": pa.string(),
    "iscrowd": pa.int64(),
    "area": pa.float64(),
    "difficult": pa.int64(),
    "truncated": pa.int64(),
    "view": pa.string(),
    "segmentation": pa.string(),
    "num_keypoints": pa.int64(),
    "keypoints": pa.list_(pa.float64()),
    "keypoint_names": pa.list_(pa.string()),
    ID: pa.string(),
}
_NEEDED: Final = ("bbox", "center_box", "category")
"""Fields that stay where an object lacks them, which makes its picture a reject."""

MOST_BYTES: Final = 16 << 20
"""The largest file of one picture: XML of 20,000 objects has 6 MB."""


@dataclass(frozen=True, slots=True)
class PictureFolder:
    """A folder of pictures, absolute, and what their names in records begin with: one name may be in two folders."""

    path: str = ""
    prefix: str = ""

    def named(self, name: str) -> str:
        return os.path.join("" if self.prefix == "." else self.prefix, name)


@dataclass(frozen=True, slots=True)
class AnnotationOptions:
    """What a user may say of annotations of any kind: without `masks` segmentations are left out.

    `label_offset` is the number of the first class, where files have no numbers of their own or begin with 0. `names`
    are the classes by number, where files have numbers alone. `folders` are those of the pictures, each with the file
    or folder of annotations that is of them. `held` are the classes of the dataset of an append, by number, None where
    it has no names of them. `numeric` names of classes that files do not number are whole numbers, in the order of
    these.
    """

    masks: bool = True
    label_offset: int = 0
    names: tuple[str, ...] | None = None
    folders: tuple[tuple[bytes, PictureFolder], ...] = ()
    held: tuple[str, ...] | None = None
    numeric: bool = False

    def folder_of(self, entry: SourceEntry) -> PictureFolder:
        """Return where the pictures of a file of annotations are; nowhere, if nobody says."""
        if len({folder for _, folder in self.folders}) == 1:
            return self.folders[0][1]
        path = entry.path + b"/"
        found = (folder for files, folder in self.folders if path.startswith(files + b"/"))
        return next(found, None) or self.folder_above(entry.path) or PictureFolder()

    def folder_above(self, picture: bytes) -> PictureFolder | None:
        """Return the innermost folder of pictures that a picture is below."""
        above = [one for _, one in self.folders if picture.startswith(os.fsencode(one.path) + b"/")]
        return max(above, key=lambda one: len(one.path), default=None)

    def bare_picture(self, entry: SourceEntry) -> Picture | None:
        """Return the picture that an entry is itself, as nothing is said of it."""
        if not has_suffix(entry.name, suffixes_of("images")):
            return None
        folder = self.folder_of(entry)
        name = folder.named(os.path.relpath(os.fsdecode(entry.path), folder.path))
        return Picture(0, name, os.path.splitext(name)[0])


@dataclass(slots=True)
class Picture:
    """What is said of one picture, first in the file `entry`; objects have values of some fields each.

    `unread` are the keys of objects that are not read, one for each object that has it.
    """

    entry: int
    file_name: str
    source_id: str
    size: tuple[int, int] | None = None
    captions: list[str] = field(default_factory=list)
    objects: list[dict[str, Any]] = field(default_factory=list)
    unread: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Annotated:
    """The columns and rows of all files, by file; what is wrong with files that have no row; what to say of them.

    `classes` are the names of those that files list, by number, and `used` the numbers of those that objects have.
    """

    schema: pa.Schema
    rows: dict[int, list[dict[str, Any]]]
    errors: dict[int, str]
    warnings: tuple[str, ...]
    classes: dict[int, str]
    used: frozenset[int]


def annotated(
    pictures: Sequence[Picture],
    files: int,
    classes: Mapping[int, str],
    *,
    errors: dict[int, str] | None = None,
    warnings: Sequence[str] = (),
) -> Annotated:
    """Return the rows of some pictures; a field that only some objects have is left out, with a warning."""
    total = sum(len(picture.objects) for picture in pictures)
    there = Counter(
        name for picture in pictures for one in picture.objects for name, value in one.items() if value is not None
    )
    known = {name for picture in pictures for one in picture.objects for name in one}
    named = there["label"] > 0 and there["label"] == there["category"]  # objects without a class are rejects
    needed = (*_NEEDED, "label") if named else _NEEDED
    fields = [name for name in _FIELDS if name in known and (there[name] == total or name in needed)]
    lacking = [name for name in _FIELDS if 0 < there[name] < total and name not in (*fields, ID)]
    said = [f'"{name}" is left out: not all objects have it, but {there[name]:,} of {total:,}' for name in lacking]
    columns = [pa.field(FILE_NAME, pa.string(), nullable=False), pa.field(SOURCE_ID, pa.string(), nullable=False)]
    if any(picture.captions for picture in pictures):
        columns.append(pa.field(CAPTION, pa.list_(pa.string())))
    if fields and any(picture.size is not None for picture in pictures):
        columns.append(pa.field(SIZE, pa.list_(pa.int64())))
    if fields:
        columns.append(pa.field(OBJECTS, pa.struct([(name, pa.list_(_FIELDS[name])) for name in fields])))
    rows: dict[int, list[dict[str, Any]]] = {number: [] for number in range(files)}
    for picture in pictures:
        objects = {name: [one.get(name) for one in picture.objects] for name in fields} if picture.objects else None
        rows[picture.entry].append({
            FILE_NAME: picture.file_name, SOURCE_ID: picture.source_id, CAPTION: picture.captions or None,
            OBJECTS: objects, SIZE: picture.size if picture.objects else None,
        })  # fmt: skip
    used = {one["category"] for picture in pictures for one in picture.objects if one["category"] is not None}
    return Annotated(pa.schema(columns), rows, errors or {}, (*warnings, *said), dict(classes), frozenset(used))


def numbered(names: Sequence[str], offset: int) -> dict[int, str]:
    """Return classes by number, with names for the numbers that are below the first, as classes of folders have them.

    >>> numbered(["cat"], 1), numbered([], 1)
    ({0: '_unused_0', 1: 'cat'}, {})
    """
    return dict(enumerate((*(f"_unused_{number}" for number in range(offset)), *names))) if names else {}


def too_large(entry: SourceEntry) -> str | None:
    if entry.bytes <= MOST_BYTES:
        return None
    return f"has {entry.bytes} bytes, and the most are {MOST_BYTES}: it is of one picture; leave it out"
