"""Turn the boxes of objects in pictures into the keys of TensorFlow's detection, as parts of the picture's size.

    image/width 10, image/height 20     objects {bbox: [[1, 2, 3, 4]], categories: [7], area: [12.0]}
                                                        │ x, y, width, height in pixels
    image/object/bbox/xmin [0.1]  ymin [0.1]  xmax [0.4]  ymax [0.3]      image/object/class/label [7]
    image/object/area [12.0]      keypoints [[5, 2, 2, ...]]: image/object/keypoint/x [0.5, ...]  y  visibility

A picture without objects has none of these keys. The source of the keys: tensorflow/models, `tf_example_decoder.py`
and `create_coco_tf_record.py`; that of `objects`: huggingface/datasets, as imagefolder has it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ...errors import SchemaError
from ...format.batches.arrow_memory import array_of, raw_values, true_mask
from ...format.batches.rejects import CellError, CellProblem
from ...format.columns.flatten import empty_array
from ...format.columns.keys import is_any_list, is_flat, stored_type
from ...format.schema.arrow_types import classes_of, classes_within, with_classes_within, with_own_classes
from ...format.wording.hints import Set, set_column
from ...format.wording.printable import first_names, printable
from ...pictures.facts import APPLY, BOXES_OF_TURNED, UPRIGHT
from ...pictures.masks import mask_png, pycocotools
from ...pictures.preprocess import SIDEWAYS, Placement, Ready, placed_mask, turned_points
from ..step import Column, Labels, Step, StepByType, Stepped, Types, is_text
from .objects import (
    CENTER,
    CLASS_KEY,
    MASK,
    MASK_KEY,
    OBJECTS,
    SIZE,
    Objects,
    Points,
    class_field,
    fields_of,
    has_masks,
    key_of,
    keys_of,
    left_over,
    with_class,
)

CLIP: Final = f"{Set('schema.boxes', 'clip')}"
CORNERS: Final = f"{Set('schema.box_format', 'xyxy')}"
BOXES_OF_UPRIGHT: Final = f"if boxes were drawn on the upright picture: {Set('image.boxes_on', 'turned')}"
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
_PART: Final = 1.5
"""Parts of a picture are at most 1, or a little over; a box in pixels with no larger number is hardly one."""

LIKE_PARTS: Final = (
    "pictures whose boxes have fractions and no number over 1.5, and are read as pixels (if they are parts of the "
    "picture, multiply them by its width and height first)"
)
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
    `named` are the classes of fields that have names for their numbers, and `class_field` is the one of these that is
    the class, where that is not seen by its name.
    """

    column: str
    image: str
    clip: bool = False
    classes: tuple[str, ...] | None = None
    boxes_on: Literal["stored", "turned"] | None = None
    form: BoxFormat | None = None
    class_field: str | None = None
    named: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

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
            called = fields if self.class_field is None else with_class(fields, self.class_field)
            planned += [self._planned(key, kind) for key, kind in keys_of(called).items()] if fields else [column]
            if has_masks(fields):
                pycocotools()  # or a refusal, before rows are read
            if fields and (rest := left_over(fields)):
                empty = empty_array(stored_type(column.field.type))
                kind = Objects.of(empty).rest(empty, rest).type
                left = with_classes_within(pa.field(column.name, kind, nullable=True), column.field)
                planned.append(Column(left, reason="of the objects"))
        return planned

    def apply(self, batch: pa.RecordBatch, file: str) -> Stepped:  # noqa: ARG002
        if self.column not in batch.schema.names:
            return Stepped(batch)
        arrays = dict(zip(batch.schema.names, batch.columns, strict=True))
        column = arrays.pop(self.column)
        stated = arrays.pop(SIZE, None)
        objects = Objects.of(column).with_class(self.class_field)
        placed = arrays.pop(f"{self.image}/{PLACEMENT}", None)
        placements = None if placed is None else self._placements(Placements.of(placed), objects, stated)
        sides = [raw_values(arrays[f"{self.image}/{side}"], np.int64).astype(float) for side in ("width", "height")]
        sizes = np.column_stack(sides) if placements is None else placements.sizes
        seen = true_mask(arrays[f"{self.image}/width"].is_valid())
        errors = objects.uneven(self.column) | self._other_sizes(stated, sizes)
        sideways = np.isin([] if placements is None or self.boxes_on else placements.turns, [*SIDEWAYS])
        corners, found = self._corners(objects, sizes, errors, np.flatnonzero(sideways).tolist())
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
        notes = tuple((row, LIKE_PARTS) for row in self._like_parts(objects, keep))
        if placements is not None:
            corners, stays = placements.corners(corners, objects.rows, keep)
            notes += tuple((int(row), OUT_OF_FRAME) for row in objects.rows[~stays])
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

    def _like_parts(self, objects: Objects, keep: npt.NDArray[np.bool_]) -> list[int]:
        """Return the rows of boxes that are read as pixels, and whose numbers are fractions that parts would have."""
        if CENTER in objects.fields or not len(objects.rows):
            return []
        boxes, rows = objects.boxes(), objects.rows
        small = np.bincount(rows, (np.nan_to_num(boxes, nan=2) > _PART).any(axis=1), len(keep)) == 0
        fractions = np.bincount(rows, (boxes != np.floor(boxes)).any(axis=1), len(keep)) > 0
        return [int(row) for row in np.flatnonzero(small & fractions & keep)]

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
        if pa.types.is_integer(kind) and key != CLASS_KEY:
            named = {key_of(name, kind): classes for name, classes in self.named.items()}
            field = with_own_classes(field, named.get(key))
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
        first, end = array_of(np.array([0, len(self.classes)]))  # Arrow imports pandas for plain numbers
        known = pc.and_(pc.greater_equal(values, first), pc.less(values, end))
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
        self, objects: Objects, sizes: npt.NDArray[np.float64], uneven: dict[int, CellError], sideways: Sequence[int]
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
                if row in sideways and over[index]:
                    errors[row] = replace(errors[row], message=f"{errors[row].message}; {BOXES_OF_UPRIGHT}")
        return corners, errors

    def _masks(
        self,
        objects: Objects,
        sizes: npt.NDArray[np.float64],
        seen: npt.NDArray[np.bool_],
        errors: dict[int, CellError],
    ) -> dict[str, pa.Array]:
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
        fields = fields_of(known.field.type)
        within = {name: tuple(names) for name, names in classes_within(known.field).items()} if self.named else {}
        of_class = None if known.labels else class_field(fields, within)
        own = within[of_class] if of_class else classes_of(known.field) if self.named else ()
        classes = known.labels or own or None
        if self.held is not None:
            known_before = self.held.get(f"{image}/object/{CLASS_KEY}")
            classes = known_before and (classes or known_before)
            _refuse_other_classes(classes or (), known_before or ())
        form = None if CENTER in fields else self.form
        return Boxes(OBJECTS, image, self.clip, classes, self.boxes_on, form, of_class, within)


# The step that makes pictures ready (resized, turned, cropped, padded) leaves a column `image/placement` beside them,
# and the step of boxes takes it away.

PLACEMENT: Final = "placement"
AREA: Final = "area"
POINT_X: Final = "keypoint/x"
POINT_Y: Final = "keypoint/y"
POINT_VISIBLE: Final = "keypoint/visibility"
OUT_OF_FRAME: Final = "objects that were left out, as they are outside the part of their image that was kept"

_NUMBERS: Final = ("width", "height", "turn", "scaled_width", "scaled_height", "frame_width", "frame_height")
PLACEMENT_TYPE: Final = pa.struct([pa.field(name, pa.int64()) for name in _NUMBERS])

Floats = npt.NDArray[np.float64]

_POINTS_SEEN: Final = "num_keypoints"


def with_counts(objects: Objects, points: Points) -> Objects:
    """Return objects whose numbers of keypoints are those of the ones that can be seen in the frames."""
    if _POINTS_SEEN not in objects.fields or POINT_VISIBLE not in points:
        return objects
    counts, seen = objects.point_counts, raw_values(points[POINT_VISIBLE][0], np.int64) > 0
    found = np.bincount(np.repeat(np.arange(len(counts)), counts), seen, len(counts)).astype(np.int64)
    kind = objects.fields[_POINTS_SEEN].type
    return replace(objects, fields=objects.fields | {_POINTS_SEEN: array_of(found).cast(kind)})


def placement_array(pictures: Sequence[Ready | None], *, drawn_turned: bool = False) -> pa.Array:
    """Return the column of the placements of pictures, null where there is none.

    Boxes are of pictures as they are stored, or with `drawn_turned` of turned ones.
    """
    rows = [
        None if one is None else dict(zip(_NUMBERS, _numbers(one, drawn_turned=drawn_turned), strict=True))
        for one in pictures
    ]  # fmt: skip
    return pa.array(rows, PLACEMENT_TYPE)


def _numbers(one: Ready, *, drawn_turned: bool) -> tuple[int, ...]:
    turn, size = (UPRIGHT if drawn_turned else one.turn), one.stored
    if drawn_turned and one.turn in SIDEWAYS:
        size = (size[1], size[0])
    return (*size, turn, *one.placement.scaled, *one.placement.frame)


@dataclass(frozen=True, slots=True, eq=False)
class Placements:
    """The placements of a batch of pictures: `sizes` (rows, 2) are those on which boxes were drawn, in pixels.

    `turns` (rows) are the orientations by which boxes are turned, `places` where they go then.
    """

    sizes: Floats
    turns: npt.NDArray[np.int64]
    places: tuple[Placement, ...]

    @classmethod
    def of(cls, column: pa.Array) -> Placements:
        width, height, turn, *others = (raw_values(one.fill_null(1), np.int64) for one in column.flatten())
        sizes = zip(*(one.tolist() for one in others), strict=True)
        places = tuple(Placement((a, b), (c, d)) for a, b, c, d in sizes)
        return cls(np.column_stack([width, height]).astype(float), turn, places)

    def drawn_on(self, stated: pa.Array | None) -> Placements:
        """Return those of boxes that were drawn on turned pictures, where a size is stated that says so."""
        sizes, turns = self.sizes.copy(), self.turns.copy()
        for row, size in enumerate(stated.to_pylist() if stated is not None else ()):
            own = [int(side) for side in sizes[row]]
            if size is not None and size != own and size == own[::-1] and turns[row] in SIDEWAYS:
                sizes[row], turns[row] = size, 1
        return replace(self, sizes=sizes, turns=turns)

    def upright(self) -> Placements:
        """Return the placements of boxes that were drawn on upright pictures."""
        sideways = np.isin(self.turns, [*SIDEWAYS])
        sizes = np.where(sideways[:, None], self.sizes[:, ::-1], self.sizes)
        return replace(self, sizes=sizes, turns=np.full_like(self.turns, UPRIGHT))

    def unsure(self, stated: pa.Array | None) -> npt.NDArray[np.bool_]:
        """Return the rows whose boxes are turned although no stated size says that they were drawn before."""
        known = np.zeros(len(self.turns), bool) if stated is None else true_mask(stated.is_valid())
        known &= np.isin(self.turns, [*SIDEWAYS]) & (self.sizes[:, 0] != self.sizes[:, 1])
        unsure: npt.NDArray[np.bool_] = (self.turns != UPRIGHT) & ~known
        return unsure

    def points(self, points: Floats, rows: npt.NDArray[np.int64]) -> Floats:
        """Return points (n, 2), as parts of the pictures of some rows, as parts of the frames of these."""
        placed = np.zeros_like(points)
        if not len(rows):
            return placed
        order = np.argsort(rows, kind="stable")
        found, starts = np.unique(rows[order], return_index=True)
        for row, of_row in zip(found.tolist(), np.split(order, starts[1:]), strict=True):
            placed[of_row] = self.places[row].points(turned_points(points[of_row], int(self.turns[row])))
        return placed

    def corners(
        self, corners: Floats, rows: npt.NDArray[np.int64], keep: npt.NDArray[np.bool_]
    ) -> tuple[Floats, npt.NDArray[np.bool_]]:
        """Return the corners (n, 4) of boxes within their frames, and which are there: all in rows not to keep."""
        one, other = self.points(corners[:, :2], rows), self.points(corners[:, 2:], rows)
        inside = np.clip(np.hstack([np.minimum(one, other), np.maximum(one, other)]), 0, 1)
        written = inside.astype(np.float32)
        return inside, (written[:, 2:] > written[:, :2]).all(axis=1) | ~keep[rows]

    def areas(self, objects: Objects) -> Objects:
        """Return objects whose areas are in the pixels of the pictures as they are written; a crop takes none away."""
        field = objects.fields.get(AREA)
        if field is None or not (pa.types.is_floating(field.type) or pa.types.is_integer(field.type)):
            return objects
        scaled = np.array([one.scaled for one in self.places], float).reshape(-1, 2)
        factors = (np.prod(scaled, axis=1) / np.prod(self.sizes, axis=1))[objects.rows]
        areas = pc.multiply(field.cast(pa.float64()), array_of(factors))
        areas = areas if pa.types.is_floating(field.type) else pc.round(areas)
        return replace(objects, fields=objects.fields | {AREA: areas.cast(field.type)})

    def keypoints(self, points: Points) -> Points:
        """Return the keys of keypoints within their frames: one that is not there is at 0, 0, and not visible."""
        if POINT_X not in points:
            return points
        x, ends = points[POINT_X]
        y, visible = points[POINT_Y][0], points[POINT_VISIBLE][0]
        rows = np.repeat(np.arange(len(ends) - 1), np.diff(ends))
        known = raw_values(visible, np.int64) > 0
        pairs = np.column_stack([raw_values(one, np.float32).astype(float) for one in (x, y)])
        placed = self.points(pairs, rows)
        known &= ((placed >= 0) & (placed <= 1)).all(axis=1)
        placed[~known] = 0
        left = array_of(np.where(known, raw_values(visible, np.int64), 0))
        axes = [array_of(placed[:, axis].astype(np.float32)) for axis in (0, 1)]
        return points | {POINT_X: (axes[0], ends), POINT_Y: (axes[1], ends), POINT_VISIBLE: (left, ends)}

    def masks(self, masks: pa.Array, rows: npt.NDArray[np.int64], stays: npt.NDArray[np.bool_]) -> pa.Array:
        found = zip(masks.filter(array_of(stays)).to_pylist(), rows[stays].tolist(), strict=True)
        placed = [placed_mask(png, int(self.turns[row]), self.places[row]) if png else png for png, row in found]
        return pa.array(placed, masks.type)
