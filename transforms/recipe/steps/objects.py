"""What is drawn on pictures (boxes, classes, masks, keypoints) as flat arrays, for the step `boxes` and its sources.

objects {bbox: [[1, 2, 3, 4], [0, 0, 1, 1]], category: [7, 9]}    struct of lists, or list of structs
objects {bbox: [], category: []}                                     │
                                                                     ▼
bbox  [1, 2, 3, 4]  [0, 0, 1, 1]      category  7  9      ends  0  2  2
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ...errors import SchemaError
from ...format.batches.arrow_memory import array_of, raw_values, true_mask
from ...format.batches.rejects import CellError
from ...format.columns.flatten import list_ends, stored
from ...format.columns.keys import is_any_list, is_scalar, stored_type
from ...format.schema.arrow_types import OBJECT_CLASSES
from ...format.schema.column_types import is_string
from ...format.wording.printable import printable

OBJECTS: Final = "objects"
CENTER: Final = "center_box"
BOX: Final = ("bbox", "bboxes", CENTER)
MASK: Final = "segmentation"
MASK_KEY: Final = "mask"
CLASS_KEY: Final = "class/label"
POINTS: Final = "keypoints"
POINT_NAMES: Final = "keypoint_names"
SIZE: Final = "annotated_size"
"""A column of the width and height, in pixels, of the pictures that boxes were drawn on."""

ID: Final = "annotated_id"
"""A field of objects that names them where something is wrong with them, and becomes no key."""

SIDES: Final = ("xmin", "ymin", "xmax", "ymax")

_NO_KEYS: Final = (*BOX, MASK, ID)
_KEYS: Final = {"iscrowd": "is_crowd", "num_keypoints": "keypoint/num"}
"""Fields of objects whose keys have other names."""


T = TypeVar("T")

Points = dict[str, tuple[pa.Array, npt.NDArray[np.int64]]]
"""The values of keys of keypoints, and where those of each row end."""


@dataclass(frozen=True, slots=True, eq=False)
class Objects:
    """The objects of a batch: `fields` hold a value for each, and row i has those from `ends[i]` to `ends[i + 1]`.

    `counts` are the numbers of values of each field in each row, where fields are lists of their own.
    """

    fields: dict[str, pa.Array]
    ends: npt.NDArray[np.int64]
    counts: dict[str, npt.NDArray[np.int64]]

    @classmethod
    def of(cls, column: pa.Array) -> Objects:
        values = stored(column)
        if is_any_list(values.type):
            lists = values.cast(pa.large_list(values.type.value_type))
            items = stored(lists.flatten())
            names = [field.name for field in items.type]
            return cls({name: stored(pc.struct_field(items, name)) for name in names}, list_ends(lists), {})
        lists = {field.name: stored(pc.struct_field(values, field.name)) for field in values.type}
        lists = {
            name: one.cast(pa.large_list(one.type.value_type)) for name, one in lists.items() if is_any_list(one.type)
        }
        starts = {name: list_ends(one) for name, one in lists.items()}
        ends = starts[next(name for name in BOX if name in lists)]
        fields = {name: _aligned(stored(one.flatten()), starts[name], ends) for name, one in lists.items()}
        return cls(fields, ends, {name: np.diff(own) for name, own in starts.items()})

    @property
    def kinds(self) -> dict[str, pa.DataType]:
        return {name: field.type for name, field in self.fields.items()}

    @property
    def rows(self) -> npt.NDArray[np.int64]:
        return np.repeat(np.arange(len(self.ends) - 1), np.diff(self.ends))

    def with_class(self, name: str | None) -> Objects:
        """Return objects whose class is in this field, whatever it is called."""
        return self if name is None else replace(self, fields=with_class(self.fields, name))

    def where(self, stays: npt.NDArray[np.bool_]) -> Objects:
        if stays.all():
            return self
        ends = np.concatenate([[0], np.cumsum(stays)])[self.ends]
        chosen = array_of(stays)
        return Objects({name: field.filter(chosen) for name, field in self.fields.items()}, ends, self.counts)

    def uneven(self, column: str) -> dict[int, CellError]:
        """Return what is wrong with rows whose fields have other numbers of values than there are boxes."""
        errors: dict[int, CellError] = {}
        own = np.diff(self.ends)
        for name, counts in self.counts.items():
            for row in np.flatnonzero(counts != own).tolist():
                boxes = "is 1 box" if own[row] == 1 else f"are {own[row]} boxes"
                values = f'{counts[row] or "no"} value{"s" * bool(counts[row] != 1)} of "{printable(name)}"'
                text = f"there {boxes} and {values}; give one for each box"
                errors.setdefault(row, CellError(column, "BAD_BOX", str(counts[row]), f"{own[row]} {name}", text))
        return errors

    def called(self, index: int) -> str:
        """Return how a message calls an object: its number in its picture, and its id if it has one."""
        number = index - int(self.ends[int(self.rows[index])]) + 1
        ids = next((self.fields[name] for name in (ID, "id") if name in self.fields), None)
        known = None if ids is None else ids[index].as_py()
        return str(number) if known is None else f"{number} (id {printable(str(known))})"

    def boxes(self) -> npt.NDArray[np.float64]:
        """Return x, y, width and height of each box in pixels, NaN where that is not what is there."""
        boxes = next(self.fields[name] for name in BOX if name in self.fields)
        sides, ends = _numbers_of(boxes)
        four = true_mask(boxes.is_valid()) & (np.diff(ends) == len(SIDES))
        found = np.full((len(boxes), 4), np.nan)
        found[four] = sides[ends[:-1][four][:, None] + np.arange(len(SIDES))]
        return found

    def values(self, corners: npt.NDArray[np.float64]) -> dict[str, pa.Array]:
        values = {f"bbox/{side}": array_of(corners[:, i].astype(np.float32)) for i, side in enumerate(SIDES)}
        for name, field in self.fields.items():
            if name not in _NO_KEYS and _is_plain(field.type):
                values[key_of(name, field.type)] = field
        return values

    @property
    def classes(self) -> pa.Array | None:
        fields = (
            field for name, field in self.fields.items() if name in OBJECT_CLASSES and pa.types.is_integer(field.type)
        )
        return next(fields, None)

    def points(self, sizes: npt.NDArray[np.float64]) -> Points:
        """Return the values of the keys of keypoints, several for each object, and where those of each row end.

        keypoints of two objects    [5, 2, 2, 9, 4, 1]  [7, 7, 2]      x, y, visibility of each point
        counts 2 1                  keypoint/x  5  9  7, divided by the width of the picture
        """
        found: Points = {}
        if _has_points(self.kinds):
            numbers, ends, counts = self._triples()
            numbers = np.where(np.isfinite(numbers), numbers, 0)  # others are bad_points
            row_ends = np.concatenate([[0], np.cumsum(counts)])[self.ends]
            starts = np.repeat(ends[:-1], counts)
            starts += 3 * (np.arange(len(starts)) - np.repeat(np.cumsum(counts) - counts, counts))
            size = np.maximum(sizes[np.repeat(self.rows, counts)], 1)
            found["keypoint/x"] = array_of((numbers[starts] / size[:, 0]).astype(np.float32)), row_ends
            found["keypoint/y"] = array_of((numbers[starts + 1] / size[:, 1]).astype(np.float32)), row_ends
            found["keypoint/visibility"] = array_of(numbers[starts + 2].astype(np.int64)), row_ends
        if _has_point_names(self.kinds):
            lists = self.fields[POINT_NAMES].cast(pa.large_list(pa.string()))
            found["keypoint/text"] = lists.flatten(), list_ends(lists)[self.ends]
        return found

    def rest(self, column: pa.Array, names: Sequence[str]) -> pa.Array:
        values = stored(column)
        if not is_any_list(values.type):
            ends = array_of(self.ends)
            gone = [stored(pc.struct_field(values, name)).is_null() for name in names]
            pairs = zip(names, gone, strict=True)
            kept = [pa.LargeListArray.from_arrays(ends, self.fields[name], mask=mask) for name, mask in pairs]
            return pa.StructArray.from_arrays(kept, names=list(names), mask=values.is_null())
        kept = [self.fields[name] for name in names]
        items = pa.StructArray.from_arrays(kept, names=list(names))
        return pa.LargeListArray.from_arrays(array_of(self.ends), items, mask=values.is_null())

    def bad_points(self) -> npt.NDArray[np.int64]:
        if not _has_points(self.kinds):
            return np.zeros(0, np.int64)
        numbers, ends, counts = self._triples()
        sizes = np.diff(ends)
        owners = np.repeat(np.arange(len(sizes)), sizes)[~np.isfinite(numbers)]
        return np.flatnonzero((3 * counts != sizes) | (np.bincount(owners, minlength=len(sizes)) > 0))

    def _triples(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return all numbers of keypoints, where those of each object end, and how many keypoints it has."""
        numbers, ends = _numbers_of(self.fields[POINTS])
        sizes = np.diff(ends)
        return numbers, ends, np.where(sizes % 3 == 0, sizes // 3, 0)

    @property
    def point_counts(self) -> npt.NDArray[np.int64]:
        return self._triples()[2]

    def in_rows(
        self, values: pa.Array, keep: npt.NDArray[np.bool_], ends: npt.NDArray[np.int64] | None = None
    ) -> pa.Array:
        """Return the values as lists, which end as objects do; a row to leave out has none, nor one without objects."""
        mask = ~keep | (np.diff(self.ends) == 0)
        return pa.LargeListArray.from_arrays(array_of(self.ends if ends is None else ends), values, mask=array_of(mask))


def _aligned(values: pa.Array, own: npt.NDArray[np.int64], ends: npt.NDArray[np.int64]) -> pa.Array:
    """Return a value for each box, of lists that end at `own`; arbitrary ones in rows with another number of them."""
    if np.array_equal(own, ends):
        return values
    rows = np.repeat(np.arange(len(ends) - 1), np.diff(ends))
    places = own[rows] + np.arange(ends[-1]) - ends[rows]
    known = places < own[rows + 1]
    if not known.any():
        return pa.nulls(len(rows), values.type)
    return values.take(array_of(np.where(known, places, places[known][0])))


def _numbers_of(column: pa.Array) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Return the numbers of all lists, NaN for a null, and where those of each list end."""
    lists = column.cast(pa.large_list(pa.float64()))
    values = lists.flatten()
    return np.where(true_mask(values.is_valid()), raw_values(values, np.float64), np.nan), list_ends(lists)


def fields_of(kind: pa.DataType) -> dict[str, pa.DataType]:
    """Return the fields of objects, which are structs of lists or lists of structs; nothing for another type."""
    plain = stored_type(kind)
    if is_any_list(plain) and pa.types.is_struct(stored_type(plain.value_type)):
        fields = {field.name: stored_type(field.type) for field in stored_type(plain.value_type)}
    elif pa.types.is_struct(plain):
        lists = {field.name: stored_type(field.type) for field in plain}
        fields = {name: stored_type(one.value_type) for name, one in lists.items() if is_any_list(one)}
    else:
        return {}
    return fields if any(_are_numbers(fields[name]) for name in BOX if name in fields) else {}


def class_field(fields: Mapping[str, pa.DataType], named: Collection[str]) -> str | None:
    """Return the field of objects that is their class though it is not called so: the only one with `named` classes."""
    numbers = {name for name, kind in fields.items() if pa.types.is_integer(kind)}
    found = [name for name in named if name in numbers]
    return found[0] if len(found) == 1 and not numbers & {*OBJECT_CLASSES} else None


def with_class(fields: Mapping[str, T], name: str) -> dict[str, T]:
    """Return the fields of objects under names by which the field `name` is their class."""
    free = next(one for one in OBJECT_CLASSES if one not in fields)
    return {free if one == name else one: value for one, value in fields.items()}


def keys_of(fields: dict[str, pa.DataType]) -> dict[str, pa.DataType]:
    """Return the type of one value for each key. Raises `SchemaError` where two fields would have one key."""
    keys: dict[str, pa.DataType] = {f"bbox/{side}": pa.float32() for side in SIDES}
    if has_masks(fields):
        keys[MASK_KEY] = pa.large_binary()
    if _has_points(fields):
        keys |= {"keypoint/x": pa.float32(), "keypoint/y": pa.float32(), "keypoint/visibility": pa.int64()}
    if _has_point_names(fields):
        keys["keypoint/text"] = pa.string()
    names = dict.fromkeys(keys, "bbox")
    for name, kind in fields.items():
        if name in _NO_KEYS or not _is_plain(kind):
            continue
        key = key_of(name, kind)
        if key in keys:
            raise SchemaError(
                f'the fields "{printable(names[key])}" and "{printable(name)}" of objects would both be '
                f"image/object/{key}; leave one out"
            )
        keys[key], names[key] = kind, name
    return keys


def left_over(fields: dict[str, pa.DataType]) -> list[str]:
    """Return the fields that become no key, like lists of attributes: they stay in the column."""
    read = {*BOX, *((MASK,) if has_masks(fields) else ())}
    read |= {POINTS} if _has_points(fields) else set()
    read |= {POINT_NAMES} if _has_point_names(fields) else set()
    return [name for name, kind in fields.items() if name not in read and not _is_plain(kind)]


def has_masks(fields: dict[str, pa.DataType]) -> bool:
    return MASK in fields and is_string(fields[MASK])


def _has_points(fields: dict[str, pa.DataType]) -> bool:
    return POINTS in fields and _are_numbers(fields[POINTS])


def _has_point_names(fields: dict[str, pa.DataType]) -> bool:
    return POINT_NAMES in fields and is_any_list(fields[POINT_NAMES])


def _are_numbers(kind: pa.DataType) -> bool:
    item = stored_type(kind.value_type) if is_any_list(kind) else kind
    return is_any_list(kind) and (pa.types.is_integer(item) or pa.types.is_floating(item))


def key_of(name: str, kind: pa.DataType) -> str:
    if name in OBJECT_CLASSES:
        return "class/text" if is_string(kind) else CLASS_KEY
    return _KEYS.get(name, name)


def _is_plain(kind: pa.DataType) -> bool:
    return is_scalar(kind) and not pa.types.is_decimal(kind)
