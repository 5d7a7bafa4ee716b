"""Boxes of the objects in pictures become the keys of TensorFlow's detection, normalised by the size of their picture.

    image/width 10, image/height 20     objects {bbox: [[1, 2, 3, 4]], categories: [7], area: [12.0]}
                                                        │ x, y, width, height in pixels
    image/object/bbox/xmin [0.1]  ymin [0.1]  xmax [0.4]  ymax [0.3]      image/object/class/label [7]
    image/object/area [12.0]      keypoints [[5, 2, 2, ...]]: image/object/keypoint/x [0.5, ...]  y  visibility

A picture without objects has none of these keys. The source of the keys: tensorflow/models, `tf_example_decoder.py`
and `create_coco_tf_record.py`; that of `objects`: huggingface/datasets, as imagefolder has it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ...errors import SchemaError
from ...format.buffers.arrow_memory import raw_values, true_mask
from ...format.flow.rejects import CellError, CellProblem
from ...format.nested.flatten import empty_array
from ...format.nested.keys import is_any_list, is_flat, stored_type
from ...format.schema.class_names import classes_of
from ...format.wording.hints import Set, set_column
from ...format.wording.nearest import first_names
from ...format.wording.printable import printable
from ...pictures.facts import APPLY, BOXES_OF_TURNED
from ...pictures.masks import mask_png
from ..step import Column, Labels, Step, StepByType, Stepped, Types, is_text
from .objects import CENTER, CLASS_KEY, MASK, MASK_KEY, OBJECTS, SIZE, Objects, fields_of, has_masks, keys_of, left_over
from .placements import OUT_OF_FRAME, PLACEMENT, Placements, with_counts

CLIP: Final = f"{Set('schema.boxes', 'clip')}"
CORNERS: Final = f"{Set('schema.box_format', 'xyxy')}"
NO_MASKS: Final = f"{Set('input.annotations.masks', False)}"

BoxFormat: TypeAlias = Literal["xywh", "xyxy"]
_SIDES: Final = {"xywh": "x, y, width and height", "xyxy": "xmin, ymin, xmax and ymax"}

_NO_BOXES: Final = (
    '"objects" has no field "bbox" that is a list of boxes, [[x, y, width, height], ...], so that it becomes no boxes '
    "of the pictures"
)
_NO_PICTURE: Final = (
    '"objects" has boxes, and there is not one picture that they are of ({}), so that they stay a column; name it: '
    f"{Set('schema.columns.NAME.name', 'image')}"
)

_TURNED: Final = f" (perhaps it is turned by its EXIF orientation: {APPLY})"
_SHOWN: Final = 80
_EDGE: Final = 1e-6
"""A box may be so much over the edge, as a part of the picture's size: decimals in files are rounded."""


@dataclass(frozen=True, slots=True)
class Boxes(Step):
    """Make the keys of the objects in a `column`, which are in the picture `image`; a step has looked at that before.

    A box that goes over the edge of its picture is a problem, or with `clip` ends there; one without extent is always a
    problem. `classes` are the names of classes by number, if the numbers are 0 to n - 1: another number is a problem.
    `boxes_on` is the picture that boxes were drawn on, None where nobody says so: with YOLO it is the upright one.
    `form` is what the four numbers of a box are, None where the format of the annotations says it.
    """

    column: str
    image: str
    clip: bool = False
    classes: tuple[str, ...] | None = None
    boxes_on: Literal["stored", "turned"] | None = None
    form: BoxFormat | None = None

    @property
    def detected(self) -> str:
        if self.form != "xywh":
            return ""
        return f'boxes of "{self.column}" are read as {_SIDES["xywh"]}; if they are {_SIDES["xyxy"]}: {CORNERS}'

    def plan(self, columns: Sequence[Column]) -> Sequence[Column]:
        planned: list[Column] = []
        for column in columns:
            if column.name in (SIZE, f"{self.image}/{PLACEMENT}"):
                continue
            fields = fields_of(column.field.type) if column.name == self.column else {}
            planned += [self._planned(key, kind) for key, kind in keys_of(fields).items()] if fields else [column]
            if fields and (rest := left_over(fields)):
                empty = empty_array(stored_type(column.field.type))
                kind = Objects.of(empty).rest(empty, rest).type
                planned.append(Column(pa.field(column.name, kind, nullable=True), reason="of the objects"))
        return planned

    def apply(self, batch: pa.RecordBatch, file: str) -> Stepped:  # noqa: ARG002
        if self.column not in batch.schema.names:
            return Stepped(batch)
        arrays = dict(zip(batch.schema.names, batch.columns, strict=True))
        column = arrays.pop(self.column)
        stated = arrays.pop(SIZE, None)
        objects = Objects.of(column)
        placed = arrays.pop(f"{self.image}/{PLACEMENT}", None)
        placements = None if placed is None else self._placements(Placements.of(placed), objects, stated)
        sides = [raw_values(arrays[f"{self.image}/{side}"], np.int64).astype(float) for side in ("width", "height")]
        sizes = np.column_stack(sides) if placements is None else placements.sizes
        seen = true_mask(arrays[f"{self.image}/width"].is_valid())
        errors = objects.uneven(self.column) | self._other_sizes(stated, sizes)
        corners, found = self._corners(objects, sizes, errors)
        errors |= found
        errors = self._no_classes(objects) | errors
        for index in objects.bad_points().tolist():
            row = int(objects.rows[index])
            text = f"the keypoints of object {objects.called(index)} are not x, y and visibility of each; fix them"
            errors.setdefault(row, CellError(self.column, "BAD_BOX", "", "three numbers for each keypoint", text))
        masks = self._masks(objects, sizes, seen, errors)
        bad = np.zeros(batch.num_rows, bool)
        bad[list(errors)] = True
        keep = seen & ~bad
        notes: tuple[tuple[int, str], ...] = ()
        if placements is not None:
            corners, stays = placements.corners(corners, objects.rows, keep)
            notes = tuple((int(row), OUT_OF_FRAME) for row in objects.rows[~stays])
            if self.boxes_on is None:
                unsure = placements.unsure(stated) & keep & (np.diff(objects.ends) > 0)
                notes += tuple((row, BOXES_OF_TURNED) for row in np.flatnonzero(unsure).tolist())
            masks = {key: placements.masks(pngs, objects.rows, stays) for key, pngs in masks.items()}
            objects, corners = placements.areas(objects).where(stays), corners[stays]
        points = objects.points(sizes)
        if placements is not None:
            points = placements.keypoints(points)
            objects = with_counts(objects, points)
        if rest := left_over(fields_of(column.type)):
            arrays[self.column] = objects.rest(column, rest)
        for key, values in {**objects.values(corners), **masks}.items():
            arrays[f"{self.image}/object/{key}"] = objects.in_rows(values, keep)
        for key, (values, ends) in points.items():
            arrays[f"{self.image}/object/{key}"] = objects.in_rows(values, keep, ends)
        problems = tuple(CellProblem(row, errors[row]) for row in sorted(errors) if seen[row])
        return Stepped(
            pa.RecordBatch.from_arrays(list(arrays.values()), names=list(arrays)), None, problems, notes=notes
        )

    def _placements(self, placements: Placements, objects: Objects, stated: pa.Array | None) -> Placements:
        if self.boxes_on is None and CENTER in objects.fields:
            return placements.upright()
        return placements.drawn_on(stated)

    def _other_sizes(self, stated: pa.Array | None, sizes: npt.NDArray[np.float64]) -> dict[int, CellError]:
        """Return the rows whose annotations are of a picture of another size: their boxes would be wrong."""
        errors: dict[int, CellError] = {}
        for row, size in enumerate(stated.to_pylist() if stated is not None else ()):
            own = [int(side) for side in sizes[row]]
            if size is not None and size != own:
                shown = f"{size[0]} x {size[1]}"
                turned = _TURNED if size == own[::-1] else ""
                text = (
                    f"the boxes are of a picture of {shown} pixels, and this one is of {own[0]} x {own[1]}{turned}; "
                    "give the picture that they were drawn on"
                )
                errors[row] = CellError(self.column, "BAD_BOX", shown, f"{own[0]} x {own[1]} pixels", text)
        return errors

    def _planned(self, key: str, kind: pa.DataType) -> Column:
        field = pa.field(f"{self.image}/object/{key}", pa.large_list(kind), nullable=True)
        reason = f'of "{self.column}"'
        if key != CLASS_KEY or self.classes is None or not pa.types.is_integer(kind):
            return Column(field, reason=reason)
        count = "1 class" if len(self.classes) == 1 else f"{len(self.classes):,} classes"
        return Column(field, reason=f"{count}, {reason}", labels=self.classes)

    def _no_classes(self, objects: Objects) -> dict[int, CellError]:
        values = objects.classes
        errors: dict[int, CellError] = {}
        if values is None:
            return errors
        for index in pc.indices_nonzero(values.is_null()).to_pylist():
            row = int(objects.rows[index])
            text = f"object {objects.called(index)} has no class; give it one, or take it out"
            errors.setdefault(row, CellError(self.column, "UNKNOWN_CLASS", "", "the number of a class", text))
        if self.classes is None:
            return errors
        known = pc.and_(pc.greater_equal(values, 0), pc.less(values, len(self.classes)))
        for index in pc.indices_nonzero(pc.invert(known)).to_pylist():
            number, row = str(values[index]), int(objects.rows[index])
            shown = first_names(self.classes, 8)
            text = (
                f"object {objects.called(index)} is of class {number}, and the classes of the dataset are "
                f"0 to {len(self.classes) - 1} ({shown}); fix it, or convert to a new dataset"
            )
            errors.setdefault(row, CellError(self.column, "UNKNOWN_CLASS", number, f"one of {shown}", text))
        return errors

    def _corners(
        self, objects: Objects, sizes: npt.NDArray[np.float64], uneven: dict[int, CellError]
    ) -> tuple[npt.NDArray[np.float64], dict[int, CellError]]:
        """Return the corners of boxes as parts of their pictures, by box, and what is wrong, by row."""
        given, rows = objects.boxes(), objects.rows
        boxes = np.hstack([given[:, :2], given[:, 2:] - given[:, :2]]) if self.form == "xyxy" else given
        width_height = np.maximum(sizes[rows], 1)
        if CENTER in objects.fields:  # parts of the picture already, and the middle of the box
            boxes = np.hstack([boxes[:, :2] - boxes[:, 2:] / 2, boxes[:, 2:]]) * np.tile(width_height, 2)
        with np.errstate(invalid="ignore", over="ignore"):
            corners = np.hstack([boxes[:, :2], boxes[:, :2] + boxes[:, 2:]]) / np.tile(width_height, 2)
            over = ((corners < -_EDGE) | (corners > 1 + _EDGE)).any(axis=1)
            corners = np.clip(corners, 0, 1)
            flat = ~np.isfinite(boxes).all(axis=1) | (boxes[:, 2:] <= 0).any(axis=1)
            written = corners.astype(np.float32)
            flat |= (written[:, 2:] <= written[:, :2]).any(axis=1) & (self.clip | ~over)
        bad = flat | (over & (not self.clip))
        errors: dict[int, CellError] = {}
        for index in np.flatnonzero(bad).tolist():
            row = int(rows[index])
            if row not in errors and row not in uneven:
                shown = given if self.form == "xyxy" else boxes
                errors[row] = self._error(shown[index], objects.called(index), sizes[row], flat=bool(flat[index]))
        return corners, errors

    def _masks(
        self,
        objects: Objects,
        sizes: npt.NDArray[np.float64],
        seen: npt.NDArray[np.bool_],
        errors: dict[int, CellError],
    ) -> dict[str, pa.Array]:
        """Return the masks of objects as PNG pictures; what is wrong is added to the errors."""
        if not has_masks(objects.kinds):
            return {}
        masks: list[bytes] = []
        relative = CENTER in objects.fields
        for row, text in zip(objects.rows.tolist(), objects.fields[MASK].to_pylist(), strict=True):
            png = b""
            if seen[row] and row not in errors:
                try:
                    png = mask_png(json.loads(text or "null"), *map(int, sizes[row]), relative=relative)
                except ValueError as problem:
                    called = objects.called(len(masks))
                    message = f"the segmentation of object {called} {problem}; fix it, or read no masks: {NO_MASKS}"
                    shown = printable(str(text)[:_SHOWN])
                    errors[row] = CellError(self.column, "BAD_BOX", shown, "polygons or run lengths", message)
            masks.append(png)
        return {MASK_KEY: pa.array(masks, pa.large_binary())}

    def _error(
        self, box: npt.NDArray[np.float64], called: str, size: npt.NDArray[np.float64], *, flat: bool
    ) -> CellError:
        sides = _SIDES[self.form or "xywh"]
        shown = f"[{', '.join(f'{side:g}' for side in box)}]"
        if np.isnan(box).any():
            shown, what, fix = "", "is not four numbers", f"give {sides}, or take it out"
        elif flat:
            what, fix = "has no extent within it", "fix it, or take it out of the table"
        else:
            what, fix = "goes over its edge", f"fix it, or let boxes end there: {CLIP}"
            if self.form == "xywh" and (box[:2] < box[2:]).all() and (box[2:] <= size).all():
                fix = f"its numbers may be {_SIDES['xyxy']}: {CORNERS}; otherwise {fix}"
        place = f"a picture of {size[0]:.0f} x {size[1]:.0f} pixels"
        text = f"box {called}{f' {shown}' if shown else ''} of {place} {what}; {fix}"
        return CellError(self.column, "BAD_BOX", shown, f"{sides} of a box within the picture", text)


@dataclass(frozen=True, slots=True)
class NoBoxes(Step):
    """Leave the columns as they are, and say why that of objects becomes no boxes."""

    detected: str


def _other_name(column: Column) -> str:
    name = column.origin or column.name
    option = set_column(name, "name", OBJECTS)
    return f'"{printable(name)}" has boxes; to make those of the pictures of them: {option}'


def _refuse_other_classes(classes: Sequence[str], held: Sequence[str]) -> None:
    other = next((number for number, (one, two) in enumerate(zip(classes, held, strict=False)) if one != two), None)
    if other is not None:
        raise SchemaError(
            f'column "{OBJECTS}": its class {other} is "{printable(classes[other])}", and "{printable(held[other])}" '
            f"in the dataset; give the classes the numbers that they have there, or convert to a new dataset"
        )


@dataclass(frozen=True, slots=True)
class BoxesByType(StepByType):
    """A column `objects` with boxes is of the picture beside it, where there is one; but not where it is `declared`.

    Its classes have the names that its file gives them, if it does (`named`).
    Of a column of another name with boxes the user is reminded. `held` are the classes of each label of the dataset of
    an append, None where there is no dataset yet.
    """

    declared: frozenset[str] = frozenset()
    clip: bool = False
    held: Labels | None = None
    boxes_on: Literal["stored", "turned"] | None = None
    form: BoxFormat | None = None
    named: bool = True

    def under(self, dataset: Types, labels: Labels) -> BoxesByType:  # noqa: ARG002
        return replace(self, held=labels)

    def step(self, columns: Sequence[Column]) -> Boxes | NoBoxes | None:
        names = {column.name for column in columns}
        known = next((column for column in columns if column.name == OBJECTS), None)
        pictures = [name.removesuffix("/encoded") for name in names if name.endswith("/encoded")]
        kinds = {column.name: column.field.type for column in columns}
        single = [name for name in pictures if not is_any_list(stored_type(kinds[f"{name}/encoded"]))]
        images = [name for name in single if {f"{name}/width", f"{name}/height"} <= names]
        image = "image" if "image" in images else images[0] if len(images) == 1 else None
        if OBJECTS in self.declared or not pictures:
            return None
        if known is None:
            others = [one for one in columns if one.name not in self.declared and fields_of(one.field.type)]
            return NoBoxes(_other_name(others[0])) if others else None
        if is_flat(known.field.type) and not is_text(known):
            return None
        if not fields_of(known.field.type):
            return NoBoxes(_NO_BOXES)
        if image is None:
            return NoBoxes(_NO_PICTURE.format(first_names(sorted(pictures), 8)))
        classes = known.labels or ((classes_of(known.field) or None) if self.named else None)
        if self.held is not None:
            known_before = self.held.get(f"{image}/object/{CLASS_KEY}")
            classes = known_before and (classes or known_before)
            _refuse_other_classes(classes or (), known_before or ())
        form = None if CENTER in fields_of(known.field.type) else self.form
        return Boxes(OBJECTS, image, self.clip, classes, self.boxes_on, form)
