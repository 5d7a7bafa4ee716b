"""The boxes of objects as `objects` of a metadata.jsonl: x, y, width and height in pixels, as COCO has them.

    image/object/bbox/xmin [0.1]  xmax [0.4]  ...       objects {"bbox": [[1.0, 2.0, 3.0, 4.0]],
    image/object/class/label [7]  class/text ["car"]             "categories": [7], "category": ["car"],
    image/object/is_crowd [0]     mask [PNG]                     "iscrowd": [0], "segmentation": [RUN LENGTHS]}

Pixels are the shortest decimals that give the same float32 when they are divided by the size of the picture again.
Source of the names: huggingface/datasets, as imagefolder has them; of run lengths: cocodataset/cocoapi.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from PIL import Image

from ...errors import DamageError

OBJECTS: Final = "objects"
MASKS: Final = "segmentation"

_SIDES: Final = ("xmin", "xmax", "ymin", "ymax")
_FIELDS: Final = {
    "class/label": "categories",
    "class/text": "category",
    "is_crowd": "iscrowd",
    "area": "area",
    "mask": MASKS,
}
_MOST_DIGITS: Final = 12


@dataclass(frozen=True, slots=True)
class Objects:
    """The features of the objects in the pictures `stem`; `fields` are those beside the boxes, by their features."""

    stem: str
    fields: dict[str, str]

    @classmethod
    def of(cls, stem: str, names: Sequence[str]) -> Objects | None:
        """Return what there is of objects, None without boxes or without the size of pictures."""
        folder = f"{stem}/object"
        needed = [*(f"{folder}/bbox/{side}" for side in _SIDES), f"{stem}/width", f"{stem}/height"]
        if not set(names).issuperset(needed):
            return None
        known = {f"{folder}/{key}": field for key, field in _FIELDS.items()}
        return cls(stem, {name: field for name, field in known.items() if name in names})

    @property
    def features(self) -> list[str]:
        return [*(f"{self.stem}/object/bbox/{side}" for side in _SIDES), *self.fields]

    def value(self, row: Mapping[str, Any], place: str) -> dict[str, list[Any]]:
        """Return the objects of a row, whose values are Python's; `place` says where it is."""
        width, height = row[f"{self.stem}/width"], row[f"{self.stem}/height"]
        sides = [row[f"{self.stem}/object/bbox/{side}"] or [] for side in _SIDES]
        others = {field: row[name] or [] for name, field in self.fields.items()}
        if len({len(one) for one in sides}) > 1 or (sides[0] and not (width and height)):
            raise DamageError(f"{place}: the sides of its boxes do not belong together")
        if any(one and len(one) != len(sides[0]) for one in others.values()):
            raise DamageError(f"{place}: its objects have other numbers of values than boxes")
        if MASKS in others:
            others[MASKS] = [_run_lengths(png) for png in others[MASKS]]
        across = [_from_to(low, high, width) for low, high in zip(sides[0], sides[1], strict=True)]
        down = [_from_to(low, high, height) for low, high in zip(sides[2], sides[3], strict=True)]
        boxes = [[x, y, wide, high] for (x, wide), (y, high) in zip(across, down, strict=True)]
        return {"bbox": boxes} | others


def _from_to(low: float, high: float, size: int) -> tuple[float, float]:
    """Return where an extent begins, and how long it is, in pixels: what gives both parts of the size again."""
    for digits in range(_MOST_DIGITS):
        start, length = round(low * size, digits), round((high - low) * size, digits)
        if np.float32(start / size) == low and np.float32((start + length) / size) == high:
            return start, length
    return low * size, (high - low) * size


def _run_lengths(png: bytes) -> str:
    """Return a mask as COCO's run lengths in JSON: zeros, ones, zeros ... down each column, from the left."""
    with Image.open(io.BytesIO(png)) as image:
        mask = np.asarray(image) != 0
    mask = mask if mask.ndim == 2 else mask.any(axis=2)
    flat = mask.T.ravel()
    turns = np.flatnonzero(np.diff(flat)) + 1
    ends = np.concatenate(([0] if not (len(flat) and flat[0]) else [0, 0], turns, [len(flat)]))
    return json.dumps({"size": list(mask.shape), "counts": np.diff(ends).tolist()})
