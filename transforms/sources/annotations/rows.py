"""Turn annotations of any format into rows: a picture, its id, captions and objects.

    file_name  image/source_id  image/caption  objects
    7.jpg      "7"              ["a cat"]      {bbox: [[1, 2, 3, 4]], category: [17], label: ["cat"], area: [12], ...}

`objects` is what `recipe/steps/boxes.py` makes the keys of TensorFlow's detection of.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ...format.batches.arrow_memory import array_of, bitmap_of, raw_values, text_array
from ...format.wording.hints import Set
from ...format.wording.printable import counted, first_names
from ...inputs.contract.source import ParallelMap, SourceEntry
from ...inputs.files.file_names import has_suffix, suffixes_of
from ...pictures.masks import pycocotools
from ...recipe.steps.label import in_order_of_numbers
from ...recipe.steps.objects import ID, MASK, OBJECTS, SIZE

T = TypeVar("T")

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
_NUMBERS: Final = {pa.int32(): np.int32, pa.int64(): np.int64, pa.float64(): np.float64}
PICTURE: Final = "picture"
UNREAD: Final = ""
"""The segmentation of an object that has one, where masks are not asked for."""

_MASKS: Final = Set("input.annotations.masks", True)
_TABLE: Final = pa.schema([(PICTURE, pa.int32()), *_FIELDS.items()])
PART: Final = 10_000
"""Objects that wait to become rows of Arrow."""

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
    """What a user may say of annotations of any kind: segmentations are read as `masks` where they are asked for.

    `label_offset` is the number of the first class, where files have no numbers of their own or begin with 0. `names`
    are the classes by number, where files have numbers alone. `folders` are those of the pictures, each with the file
    or folder of annotations that is of them. `held` are the classes of the dataset of an append, by number, None where
    it has no names of them. `numeric` names of classes that files do not number are whole numbers, in the order of
    these. `dense` classes, whose ids have gaps, are numbered from 0 in the order of these ids.
    """

    masks: bool = False
    label_offset: int = 0
    names: tuple[str, ...] | None = None
    folders: tuple[tuple[bytes, PictureFolder], ...] = ()
    held: tuple[str, ...] | None = None
    numeric: bool = False
    dense: bool = False

    def __post_init__(self) -> None:
        if self.masks:
            pycocotools()  # before anything is read

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
    """What is said of one picture, first in the file `entry`, beside its objects."""

    entry: int
    file_name: str
    source_id: str
    size: tuple[int, int] | None = None
    captions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Annotated:
    """The rows of all files, and where those of each end; what is wrong with files that have no row; what to say.

    `classes` are the names of those that files list, by number, and `used` the numbers of those that objects have.
    """

    rows: pa.RecordBatch
    ends: npt.NDArray[np.int64]
    errors: dict[int, str]
    warnings: tuple[str, ...]
    classes: dict[int, str]
    used: frozenset[int]
    notes: tuple[str, ...] = ()


class ObjectRows:
    """Objects as they are met, a row of Arrow each, with the number of its picture: as dicts they take ten times it."""

    def __init__(self) -> None:
        self.names = set[str]()
        self.count = 0
        self._waiting: list[dict[str, Any]] = []
        self._parts: list[pa.RecordBatch] = []

    def add(self, picture: int, one: Mapping[str, Any]) -> int:
        self.names.update(one)
        self._waiting.append({PICTURE: picture, **one})
        if len(self._waiting) == PART:
            self._end_part()
        self.count += 1
        return self.count - 1

    def table(self) -> pa.Table:
        """Return the objects, with the columns that some had a key of."""
        self._end_part()
        found = pa.Table.from_batches(self._parts, _TABLE)
        return found.select([name for name in _TABLE.names if name in self.names or name == PICTURE])

    def _end_part(self) -> None:
        columns = [_array([one.get(name) for one in self._waiting], _TABLE.field(name).type) for name in _TABLE.names]
        self._parts.append(pa.RecordBatch.from_arrays(columns, schema=_TABLE))
        self._waiting = []


def _array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Return values of a kind of `_FIELDS`, None for a null, as `pa.array` does."""
    if pa.types.is_string(kind):
        return text_array(values)
    valid = bitmap_of(np.array([one is not None for one in values], bool))
    if pa.types.is_list(kind):
        ends = np.cumsum([0, *(len(one or ()) for one in values)], dtype=np.int32)
        items = _array([*chain.from_iterable(one or () for one in values)], kind.value_type)
        return pa.Array.from_buffers(kind, len(values), [valid, pa.py_buffer(ends)], children=[items])
    numbers = np.array([0 if one is None else one for one in values], _NUMBERS[kind])
    return pa.Array.from_buffers(kind, len(values), [valid, pa.py_buffer(numbers)])


def in_parts(run: ParallelMap, function: Callable[[SourceEntry], T], entries: Sequence[SourceEntry]) -> Iterator[T]:
    """Yield what a function returns of each file; what it returns of all of them would take much memory."""
    for start in range(0, len(entries), PART):
        yield from run(function, entries[start : start + PART])


def labels_in(objects: pa.Table) -> set[str]:
    return {*pc.unique(objects["label"]).drop_null().to_pylist()} if "label" in objects.column_names else set()


def with_numbers(objects: pa.Table, classes: Mapping[int, str]) -> pa.Table:
    if "label" not in objects.column_names:
        return objects
    numbers = {name: number for number, name in classes.items()}
    coded = pa.concat_arrays(objects["label"].chunks).dictionary_encode()
    known = _array([numbers.get(name) for name in coded.dictionary.to_pylist()], pa.int64())
    return objects.append_column("category", known.take(coded.indices))


def filled(table: pa.Table, more: pa.Table, rows: npt.ArrayLike) -> pa.Table:
    """Return a table with the values of `more`, each row of which is of one of the `rows`, where it has nulls."""
    if not more.num_rows:
        return table
    at = np.array(rows, np.int64)
    for number, name in enumerate(table.column_names):
        both = pa.concat_arrays([*table[name].chunks, *more[name].chunks])
        valid = both.is_valid().to_numpy(zero_copy_only=False)
        wanted = np.flatnonzero(~valid[at] & valid[table.num_rows :])
        if len(wanted):
            index = np.arange(table.num_rows)
            index[at[wanted[::-1]]] = table.num_rows + wanted[::-1]  # of several the first
            table = table.set_column(number, name, both.take(pa.array(index)))
    return table


def annotated(
    pictures: Sequence[Picture],
    files: int,
    classes: Mapping[int, str],
    objects: pa.Table,
    *,
    errors: dict[int, str] | None = None,
    warnings: Sequence[str] = (),
) -> Annotated:
    """Return the rows of some pictures and of the objects of all; a field that only some have is left out, and said."""
    unread = pc.sum(pc.equal(objects[MASK], text_array([UNREAD])[0])).as_py() if MASK in objects.column_names else 0
    if unread:
        objects = objects.drop_columns([MASK])
    total = objects.num_rows
    there = Counter({name: total - objects[name].null_count for name in objects.column_names})
    named = there["label"] > 0 and there["label"] == there["category"]  # objects without a class are rejects
    needed = (*_NEEDED, "label") if named else _NEEDED
    known = [name for name in _FIELDS if name in objects.column_names]
    fields = [name for name in known if there[name] == total or name in needed] if total else []
    lacking = [name for name in known if 0 < there[name] < total and name not in (*fields, ID)]
    said = [f'"{name}" is left out: not all objects have it, but {there[name]:,} of {total:,}' for name in lacking]
    used = frozenset(pc.unique(objects["category"]).drop_null().to_pylist()) if total else frozenset()
    batch = _batch_of(pictures, objects, fields)
    order = np.argsort([picture.entry for picture in pictures], kind="stable")
    ends = np.searchsorted(np.array([picture.entry for picture in pictures], np.int64)[order], np.arange(files + 1))
    batch = batch.take(array_of(order))
    notes: tuple[str, ...] = ()
    if unread:
        all_have = unread == total
        whose = counted(unread, "object") if all_have else f"{unread:,} of {total:,} objects"
        how = f"to read them as masks: {_MASKS}" if all_have else "masks need one for each object"
        notes = (f"segmentations of {whose} are not read; {how}",)
    return Annotated(batch, ends[1:], errors or {}, (*warnings, *said), dict(classes), used, notes)


def _batch_of(pictures: Sequence[Picture], objects: pa.Table, fields: Sequence[str]) -> pa.RecordBatch:
    owners = raw_values(pa.concat_arrays(objects[PICTURE].chunks), np.int32)
    counts = np.bincount(owners, minlength=len(pictures))
    has_some = counts > 0
    columns = {
        FILE_NAME: text_array([picture.file_name for picture in pictures]),
        SOURCE_ID: text_array([picture.source_id for picture in pictures]),
    }
    if any(picture.captions for picture in pictures):
        columns[CAPTION] = _array([picture.captions or None for picture in pictures], pa.list_(pa.string()))
    if fields and any(picture.size is not None for picture in pictures):
        sizes = zip(pictures, has_some.tolist(), strict=True)
        columns[SIZE] = _array([one.size if some else None for one, some in sizes], pa.list_(pa.int64()))
    if fields:
        ends = array_of(np.concatenate([[0], np.cumsum(counts)]).astype(np.int32))
        order = array_of(np.argsort(owners, kind="stable"))
        taken = (pa.concat_arrays(objects[name].take(order).chunks) for name in fields)
        lists = [pa.ListArray.from_arrays(ends, values) for values in taken]
        columns[OBJECTS] = pa.StructArray.from_arrays(lists, names=fields, mask=array_of(~has_some))
    schema = pa.schema(
        [pa.field(name, column.type, name not in (FILE_NAME, SOURCE_ID)) for name, column in columns.items()]
    )
    return pa.record_batch([*columns.values()], schema=schema)


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


def number_by_names(
    labels: set[str], options: AnnotationOptions, order: Sequence[str] = ()
) -> tuple[dict[int, str], list[str]]:
    """Return the classes of all labels of objects by their numbers, and warnings.

    New classes are in an `order`, with those that it lists and no object has, and others in that of their names.
    """
    held = options.held or ()
    new = labels - set(held)
    new_names = in_order_of_numbers(new, "input.annotations.classes") if options.numeric else sorted(new - {*order})
    new_names = [*(name for name in order if name not in held), *new_names]
    names = (*held, *new_names) if options.names is None else options.names
    classes = numbered(names, options.label_offset if options.names is not None or not held else 0)
    others = sorted(labels - {*classes.values()})
    warnings = [f"objects of classes that are not given make their pictures rejects: {first_names(others, 8)}"]
    return classes, warnings if others else []
