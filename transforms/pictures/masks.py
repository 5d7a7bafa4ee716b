"""Draw the mask of an object as a PNG of ones and zeros, from the polygons or run lengths that COCO writes.

    polygons     [[x, y, x, y, ...], ...]                 of YOLO as parts of the picture's size
    run lengths  {"size": [height, width], "counts": [zeros, ones, zeros, ...]}      down each column, from the left
                 {"size": ..., "counts": "PP2o..."}       the same numbers, packed as text

pycocotools draws them, as it does wherever such masks are compared. Wrong numbers make it read and write outside of its
memory, so this module checks them first. Source of the formats: cocodataset/cocoapi, `maskApi.c`.
"""

from __future__ import annotations

import io
import re
import zlib
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any, Final

import numpy as np
from PIL import Image

from ..errors import UsageError
from ..format.wording.hints import install_line

_FAR: Final = 1_000_000
"""The most pixels along a polygon, from the picture's corner on: pycocotools makes five points of each."""

_PACKED: Final = re.compile("(?:[P-o]{0,5}[0-O])*")
"""Whole numbers of up to six characters: more bits are in no count of a picture."""


class MaskProblem(ValueError):
    """Why a segmentation is none: the message says it."""


def pycocotools() -> ModuleType:
    """Return what draws masks. Raises `UsageError` where the extra that has it is not installed."""
    try:
        from pycocotools import mask
    except ImportError:
        raise UsageError(f"masks take pycocotools, which is not installed; {install_line('coco')}") from None
    found: ModuleType = mask
    return found


def mask_png(segmentation: object, width: int, height: int, *, relative: bool = False) -> bytes:
    """Return a PNG picture of one channel, 1 where the object is, of the size of its picture in pixels.

    Corners of polygons are in pixels, or, where they are `relative`, parts of the width and height. What is neither
    polygons nor run lengths, or is of another size, is a `MaskProblem`.
    """
    if isinstance(segmentation, dict):
        runs = _of_runs(segmentation, width, height)
    elif isinstance(segmentation, list):
        runs = _of_polygons(segmentation, width, height, (width, height) if relative else (1, 1))
    else:
        raise MaskProblem("is neither a list of polygons nor run lengths")
    sink = io.BytesIO()
    Image.fromarray(pycocotools().decode(runs)).save(sink, "png", compress_type=zlib.Z_RLE)  # a third of the time
    return sink.getvalue()


def _of_polygons(polygons: Sequence[object], width: int, height: int, unit: tuple[int, int]) -> dict[str, Any]:
    found = []
    for polygon in polygons or [[0] * 6]:
        corners = np.array(polygon, float).reshape(-1, 2) * unit if _are_corners(polygon) else np.full((1, 2), np.inf)
        if np.abs(np.diff(corners, axis=0, prepend=0)).sum() > _FAR:
            raise MaskProblem("has a polygon that is not x and y of three or more corners near the picture")
        found.append(corners.ravel().tolist())
    masks = pycocotools()
    runs: dict[str, Any] = masks.merge(masks.frPyObjects(found, height, width))
    return runs


def _of_runs(runs: Mapping[str, Any], width: int, height: int) -> dict[str, Any]:
    size, counts, pixels = runs.get("size"), runs.get("counts"), width * height
    if size != [height, width]:
        raise MaskProblem(f"is of {size} pixels (height, width), and its picture of [{height}, {width}]")
    found = {"size": size, "counts": counts}
    if isinstance(counts, list) and all(type(one) is int and 0 <= one <= pixels for one in counts):
        found = pycocotools().frPyObjects(found, height, width)
    elif not isinstance(counts, str) or not _PACKED.fullmatch(counts):
        raise MaskProblem("has run lengths that are none")
    if _fit(found, pixels - 1) or not _fit(found, pixels):
        raise MaskProblem(f"has run lengths of more or fewer than the {pixels:,} pixels of its picture")
    return found


def _fit(runs: Mapping[str, Any], pixels: int) -> bool:
    """Return whether run lengths have at most so many pixels: fewer leave others as they were in memory."""
    try:
        pycocotools().decode({"size": [pixels, 1], "counts": runs["counts"]})
    except ValueError:
        return False
    return True


def _are_corners(polygon: object) -> bool:
    if not isinstance(polygon, list) or len(polygon) < 6 or len(polygon) % 2:
        return False
    return all(type(one) in (int, float) and abs(one) <= _FAR for one in polygon)
