"""The mask of an object as a PNG picture of ones and zeros, of the polygons or the run lengths that COCO writes.

    polygons     [[x, y, x, y, ...], ...]                 pixels whose middle is inside; of YOLO parts of its size
    run lengths  {"size": [height, width], "counts": [zeros, ones, zeros, ...]}      down each column, from the left
                 {"size": ..., "counts": "PP2o..."}       the same numbers, packed as text

Packed counts are numbers of six bits to a character, from the character 48 on: five of value, the lowest first, and one
that says that more follow; from the fourth on each is the difference to the number before the last. Source of the
format: cocodataset/cocoapi, `maskApi.c`, `rleFrString`.
"""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from PIL import Image

_CORNERS: Final = 3
_FIRST: Final = 48
_MORE: Final = 0x20
_SIGN: Final = 0x10
_DIFFERENCES_FROM: Final = 3


class MaskProblem(ValueError):
    """Why a segmentation is none: the message says it."""


def mask_png(segmentation: object, width: int, height: int, *, relative: bool = False) -> bytes:
    """Return a PNG picture of one channel, 1 where the object is, of the size of its picture in pixels.

    Corners of polygons are in pixels, or, where they are `relative`, parts of the width and height. What is neither
    polygons nor run lengths, or is of another size, is a `MaskProblem`.
    """
    if isinstance(segmentation, dict):
        mask = _of_runs(segmentation, width, height)
    elif isinstance(segmentation, list):
        mask = _of_polygons(segmentation, width, height, (width, height) if relative else (1, 1))
    else:
        raise MaskProblem("is neither a list of polygons nor run lengths")
    sink = io.BytesIO()
    mask.save(sink, "png")
    return sink.getvalue()


def _of_polygons(polygons: Sequence[object], width: int, height: int, unit: tuple[int, int]) -> Image.Image:
    mask = np.zeros((height, width), np.uint8)
    for polygon in polygons:
        numbers = polygon if isinstance(polygon, list) else []
        if len(numbers) < 2 * _CORNERS or len(numbers) % 2 or not all(_is_number(one) for one in numbers):
            raise MaskProblem("has a polygon that is not x and y of three or more corners")
        mask |= _inside(np.array(numbers, float).reshape(-1, 2) * unit, width, height)
    return Image.fromarray(mask)


def _inside(corners: npt.NDArray[np.float64], width: int, height: int) -> npt.NDArray[np.uint8]:
    """Return 1 where the middle of a pixel is inside a polygon: an odd number of its edges are left of it."""
    turns = np.zeros((height, width + 1), np.uint8)
    for (x, y), (to_x, to_y) in zip(corners, np.roll(corners, -1, axis=0), strict=True):
        low, high = sorted((y, to_y))
        rows = np.arange(max(math.ceil(low - 0.5), 0), min(math.ceil(high - 0.5), height))
        if len(rows):
            crossings = x + (rows + 0.5 - y) * (to_x - x) / (to_y - y)
            turns[rows, np.clip(np.ceil(crossings - 0.5), 0, width).astype(int)] ^= 1
    return np.bitwise_xor.accumulate(turns, axis=1)[:, :width]


def _of_runs(runs: Mapping[str, Any], width: int, height: int) -> Image.Image:
    size, counts = runs.get("size"), runs.get("counts")
    if size != [height, width]:
        raise MaskProblem(f"is of {size} pixels (height, width), and its picture of [{height}, {width}]")
    if isinstance(counts, str):
        counts = _unpacked(counts)
    if not isinstance(counts, list) or not all(type(one) is int and one >= 0 for one in counts):
        raise MaskProblem("has run lengths that are none")
    if sum(counts) != width * height:
        raise MaskProblem(f"has run lengths of {sum(counts):,} pixels, and its picture has {width * height:,}")
    ones = np.arange(len(counts), dtype=np.uint8) % 2
    flat: npt.NDArray[np.uint8] = np.repeat(ones, counts)
    return Image.fromarray(np.ascontiguousarray(flat.reshape(width, height).T))


def _unpacked(text: str) -> list[int]:
    counts: list[int] = []
    position = 0
    while position < len(text):
        value, shift, more = 0, 0, True
        while more:
            if position == len(text):
                raise MaskProblem("has packed run lengths that end within a number")
            six = ord(text[position]) - _FIRST
            if not 0 <= six < 2 * _MORE:
                raise MaskProblem(f"has packed run lengths with the character {text[position]!r}")
            value |= (six & (_MORE - 1)) << shift
            more = bool(six & _MORE)
            position, shift = position + 1, shift + 5
            if not more and six & _SIGN:
                value |= -1 << shift
        counts.append(value + counts[-2] if len(counts) >= _DIFFERENCES_FROM else value)
    return counts


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < float("inf")
