"""Boxes of the objects in pictures become the keys of TensorFlow's detection, normalised by the size of their picture.

    image/width 10, image/height 20     objects {bbox: [[1, 2, 3, 4]], categories: [7], area: [12.0]}
                                                        │ x, y, width, height in pixels
    image/object/bbox/xmin [0.1]  ymin [0.1]  xmax [0.4]  ymax [0.3]      image/object/class/label [7]
    image/object/area [12.0]

A picture without objects has none of these keys. The source of the keys: tensorflow/models, `tf_example_decoder.py`
and `create_coco_tf_record.py`; that of `objects`: huggingface/datasets, as imagefolder has it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ...format.buffers.arrow_memory import array_of, raw_values, true_mask
from ...format.flow.rejects import CellError, CellProblem
from ...format.nested.flatten import stored
from ...format.nested.keys import is_any_list, is_scalar, stored_type
from ...format.schema.column_types import is_string
from ...format.wording.printable import printable
from ...pictures.masks import mask_png
from ..step import Column, Stepped

CLIP: Final = "--set schema.boxes=clip"
NO_MASKS: Final = "--set input.annotations.masks=false"
OBJECTS: Final = "objects"

_CENTER: Final = "center_box"
_BOX: Final = ("bbox", "bboxes", _CENTER)
_CLASS: Final = ("categories", "category", "label", "labels")
_KEYS: Final = {"iscrowd": "is_crowd"}
"""Fields of objects whose keys have other names."""

_MASK: Final = "segmentation"
_MASK_KEY: Final = "mask"
_SHOWN: Final = 80
_SIDES: Final = ("xmin", "ymin", "xmax", "ymax")
_EDGE: Final = 1e-6
"""A box may be so much over the edge, as a part of the picture's size: decimals in files are rounded."""


@dataclass(frozen=True, slots=True)
class Boxes:
    """Make the keys of the objects in a `column`, which are in the picture `image`; a step has looked at that before.

    A box that goes over the edge of its picture is a problem, or with `clip` ends there; one without extent is always a
    problem.
    """

    column: str
    image: str
    clip: bool = False

    def plan(self, columns: Sequence[Column]) -> Sequence[Column]:
        """Return the columns, that of the objects as their keys."""
        planned: list[Column] = []
        for column in columns:
            fields = _fields_of(column.field.type) if column.name == self.column else {}
            planned += [self._planned(key, kind) for key, kind in _keys_of(fields).items()] if fields else [column]
        return planned

    def apply(self, batch: pa.RecordBatch, file: str) -> Stepped:  # noqa: ARG002
        """Return the batch with the keys of its objects; an object that is none is a problem of its row."""
        if self.column not in batch.schema.names:
            return Stepped(batch)
        arrays = dict(zip(batch.schema.names, batch.columns, strict=True))
        objects = _Objects.of(arrays.pop(self.column))
        sizes = [raw_values(arrays[f"{self.image}/{side}"], np.int64).astype(float) for side in ("width", "height")]
        seen = true_mask(arrays[f"{self.image}/width"].is_valid())
        errors = objects.uneven(self.column)
        corners, found = self._corners(objects, np.column_stack(sizes), errors)
        errors |= found
        masks = self._masks(objects, np.column_stack(sizes), seen, errors)
        bad = np.zeros(batch.num_rows, bool)
        bad[list(errors)] = True
        keep = seen & ~bad
        for key, values in {**objects.values(corners), **masks}.items():
            arrays[f"{self.image}/object/{key}"] = objects.in_rows(values, keep)
        problems = tuple(CellProblem(row, errors[row]) for row in sorted(errors) if seen[row])
        return Stepped(pa.RecordBatch.from_arrays(list(arrays.values()), names=list(arrays)), None, problems)

    def _planned(self, key: str, kind: pa.DataType) -> Column:
        field = pa.field(f"{self.image}/object/{key}", pa.large_list(kind), nullable=True)
        return Column(field, reason=f'of "{self.column}"')

    def _corners(
        self, objects: _Objects, sizes: npt.NDArray[np.float64], uneven: dict[int, CellError]
    ) -> tuple[npt.NDArray[np.float64], dict[int, CellError]]:
        """Return the corners of boxes as parts of their pictures, by box, and what is wrong, by row."""
        boxes, rows = objects.boxes(), objects.rows
        width_height = np.maximum(sizes[rows], 1)
        if _CENTER in objects.fields:  # parts of the picture already, and the middle of the box
            boxes = np.hstack([boxes[:, :2] - boxes[:, 2:] / 2, boxes[:, 2:]]) * np.tile(width_height, 2)
        with np.errstate(invalid="ignore", over="ignore"):
            corners = np.hstack([boxes[:, :2], boxes[:, :2] + boxes[:, 2:]]) / np.tile(width_height, 2)
            over = ((corners < -_EDGE) | (corners > 1 + _EDGE)).any(axis=1)
            corners = np.clip(corners, 0, 1)
            flat = ~np.isfinite(boxes).all(axis=1) | (boxes[:, 2:] <= 0).any(axis=1)
            flat |= (corners[:, 2:] <= corners[:, :2]).any(axis=1) & (self.clip | ~over)
        bad = flat | (over & (not self.clip))
        errors: dict[int, CellError] = {}
        for index in np.flatnonzero(bad).tolist():
            row = int(rows[index])
            if row not in errors and row not in uneven:
                size = "{:.0f} x {:.0f}".format(*sizes[row])
                errors[row] = self._error(boxes[index], index - int(objects.ends[row]), size, flat=bool(flat[index]))
        return corners, errors

    def _masks(
        self,
        objects: _Objects,
        sizes: npt.NDArray[np.float64],
        seen: npt.NDArray[np.bool_],
        errors: dict[int, CellError],
    ) -> dict[str, pa.Array]:
        """Return the masks of objects as PNG pictures; what is wrong is added to the errors."""
        if not _has_masks({name: one.type for name, one in objects.fields.items()}):
            return {}
        masks: list[bytes] = []
        for row, text in zip(objects.rows.tolist(), objects.fields[_MASK].to_pylist(), strict=True):
            png = b""
            if seen[row] and row not in errors:
                try:
                    png = mask_png(json.loads(text or "null"), *map(int, sizes[row]))
                except ValueError as problem:
                    number = len(masks) - int(objects.ends[row]) + 1
                    message = f"the segmentation of object {number} {problem}; fix it, or read no masks: {NO_MASKS}"
                    shown = printable(str(text)[:_SHOWN])
                    errors[row] = CellError(self.column, "BAD_BOX", shown, "polygons or run lengths", message)
            masks.append(png)
        return {_MASK_KEY: pa.array(masks, pa.large_binary())}

    def _error(self, box: npt.NDArray[np.float64], number: int, size: str, *, flat: bool) -> CellError:
        shown = f"[{', '.join(f'{side:g}' for side in box)}]"
        if flat:
            what, fix = "has no extent within it", "fix it, or take it out of the table"
        else:
            what, fix = "goes over its edge", f"fix it, or let boxes end there: {CLIP}"
        text = f"box {number + 1} {shown} of a picture of {size} pixels {what}; {fix}"
        return CellError(self.column, "BAD_BOX", shown, "x, y, width and height of a box within the picture", text)


@dataclass(frozen=True, slots=True)
class BoxesByType:
    """A column `objects` with boxes is of the picture beside it, where there is one; but not where it is `declared`."""

    declared: bool = False
    clip: bool = False

    def step(self, columns: Sequence[Column]) -> Boxes | None:
        """Return the step for some columns, None where there are no boxes, or not one picture."""
        names = {column.name for column in columns}
        known = next((column for column in columns if column.name == OBJECTS), None)
        pictures = [name.removesuffix("/encoded") for name in names if name.endswith("/encoded")]
        images = [name for name in pictures if {f"{name}/width", f"{name}/height"} <= names]
        image = "image" if "image" in images else images[0] if len(images) == 1 else None
        if self.declared or known is None or image is None or not _fields_of(known.field.type):
            return None
        return Boxes(OBJECTS, image, self.clip)


@dataclass(frozen=True, slots=True, eq=False)
class _Objects:
    """The objects of a batch: `fields` hold a value for each, and row i has those from `ends[i]` to `ends[i + 1]`.

    `counts` are the numbers of values of each field in each row, where fields are lists of their own.
    """

    fields: dict[str, pa.Array]
    ends: npt.NDArray[np.int64]
    counts: dict[str, npt.NDArray[np.int64]]

    @classmethod
    def of(cls, column: pa.Array) -> _Objects:
        """Return the objects of a column of structs of lists, or of lists of structs."""
        values = stored(column)
        if is_any_list(values.type):
            lists = values.cast(pa.large_list(values.type.value_type))
            items = stored(lists.flatten())
            names = [field.name for field in items.type]
            return cls({name: stored(pc.struct_field(items, name)) for name in names}, _ends(lists), {})
        lists = {field.name: stored(pc.struct_field(values, field.name)) for field in values.type}
        lists = {
            name: one.cast(pa.large_list(one.type.value_type)) for name, one in lists.items() if is_any_list(one.type)
        }
        starts = {name: _ends(one) for name, one in lists.items()}
        ends = starts[next(name for name in _BOX if name in lists)]
        fields = {name: _aligned(stored(one.flatten()), starts[name], ends) for name, one in lists.items()}
        return cls(fields, ends, {name: np.diff(own) for name, own in starts.items()})

    @property
    def rows(self) -> npt.NDArray[np.int64]:
        """The row of each box."""
        return np.repeat(np.arange(len(self.ends) - 1), np.diff(self.ends))

    def uneven(self, column: str) -> dict[int, CellError]:
        """Return what is wrong with rows whose fields have other numbers of values than there are boxes."""
        errors: dict[int, CellError] = {}
        own = np.diff(self.ends)
        for name, counts in self.counts.items():
            for row in np.flatnonzero(counts != own).tolist():
                text = f"there are {own[row]} boxes and {counts[row]} {name}; give one for each box"
                errors.setdefault(row, CellError(column, "BAD_BOX", str(counts[row]), f"{own[row]} {name}", text))
        return errors

    def boxes(self) -> npt.NDArray[np.float64]:
        """Return x, y, width and height of each box in pixels, NaN where that is not what is there."""
        boxes = next(self.fields[name] for name in _BOX if name in self.fields)
        lists = boxes.cast(pa.large_list(pa.float64()))
        ends = _ends(lists)
        four = true_mask(lists.is_valid()) & (np.diff(ends) == len(_SIDES))
        found = np.full((len(lists), 4), np.nan)
        numbers = lists.flatten()
        sides = np.where(true_mask(numbers.is_valid()), raw_values(numbers, np.float64), np.nan)
        found[four] = sides[ends[:-1][four][:, None] + np.arange(len(_SIDES))]
        return found

    def values(self, corners: npt.NDArray[np.float64]) -> dict[str, pa.Array]:
        """Return the values of all keys, one for each object."""
        values = {f"bbox/{side}": array_of(corners[:, i].astype(np.float32)) for i, side in enumerate(_SIDES)}
        for name, field in self.fields.items():
            if name not in (*_BOX, _MASK) and _is_plain(field.type):
                values[_key_of(name, field.type)] = field
        return values

    def in_rows(self, values: pa.Array, keep: npt.NDArray[np.bool_]) -> pa.Array:
        """Return the values as lists; a row to leave out has none, nor has one without objects."""
        mask = ~keep | (np.diff(self.ends) == 0)
        return pa.LargeListArray.from_arrays(array_of(self.ends), values, mask=array_of(mask))


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


def _ends(lists: pa.Array) -> npt.NDArray[np.int64]:
    """Return where the values of each list begin in those of all, and where the last ends; a null has none."""
    sizes = np.zeros(len(lists), np.int64)
    valid = true_mask(lists.is_valid())
    sizes[valid] = raw_values(pc.list_value_length(lists), np.int64)[valid]
    return np.concatenate([[0], np.cumsum(sizes)])


def _fields_of(kind: pa.DataType) -> dict[str, pa.DataType]:
    """Return the fields of objects, which are structs of lists or lists of structs; nothing for another type."""
    plain = stored_type(kind)
    if is_any_list(plain) and pa.types.is_struct(stored_type(plain.value_type)):
        fields = {field.name: stored_type(field.type) for field in stored_type(plain.value_type)}
    elif pa.types.is_struct(plain):
        lists = {field.name: stored_type(field.type) for field in plain}
        fields = {name: stored_type(one.value_type) for name, one in lists.items() if is_any_list(one)}
    else:
        return {}
    sides = [stored_type(fields[name].value_type) for name in _BOX if name in fields and is_any_list(fields[name])]
    return fields if any(pa.types.is_integer(one) or pa.types.is_floating(one) for one in sides) else {}


def _keys_of(fields: dict[str, pa.DataType]) -> dict[str, pa.DataType]:
    keys: dict[str, pa.DataType] = {f"bbox/{side}": pa.float32() for side in _SIDES}
    if _has_masks(fields):
        keys[_MASK_KEY] = pa.large_binary()
    return keys | {
        _key_of(name, kind): kind for name, kind in fields.items() if name not in (*_BOX, _MASK) and _is_plain(kind)
    }


def _has_masks(fields: dict[str, pa.DataType]) -> bool:
    return _MASK in fields and is_string(fields[_MASK])


def _key_of(name: str, kind: pa.DataType) -> str:
    if name in _CLASS:
        return "class/text" if is_string(kind) else "class/label"
    return _KEYS.get(name, name)


def _is_plain(kind: pa.DataType) -> bool:
    return is_scalar(kind) and not pa.types.is_decimal(kind)
