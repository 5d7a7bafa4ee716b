"""Where the objects of pictures are, once their pictures were resized, turned, cropped or padded.

The step that makes pictures ready leaves a column `image/placement` beside them, and that of the boxes takes it away.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ...format.buffers.arrow_memory import array_of, raw_values, true_mask
from ...pictures.facts import UPRIGHT
from ...pictures.preprocess.picture import Ready
from ...pictures.preprocess.placement import SIDEWAYS, Placement, placed_mask, turned_points
from .objects import Objects, Points

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
        """Return the masks of the objects that are there; an empty one is that of a row with a problem."""
        found = zip(masks.filter(array_of(stays)).to_pylist(), rows[stays].tolist(), strict=True)
        placed = [placed_mask(png, int(self.turns[row]), self.places[row]) if png else png for png, row in found]
        return pa.array(placed, masks.type)
