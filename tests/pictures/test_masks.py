from __future__ import annotations

import io
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from pycocotools import mask as coco
from shardmill.transforms.pictures.masks import MaskProblem, mask_png


def mask(segmentation: object, width: int, height: int) -> npt.NDArray[np.uint8]:
    picture = Image.open(io.BytesIO(mask_png(segmentation, width, height)))
    assert (picture.mode, picture.size) == ("L", (width, height))
    return np.asarray(picture)


def test_a_rectangle_holds_as_many_pixels_as_its_sides_say() -> None:
    found = mask([[2, 1, 7, 1, 7, 4, 2, 4]], 10, 6)
    assert found.sum() == 5 * 3
    assert found[1:4, 2:7].all()


def test_several_polygons_are_joined_and_those_over_the_edge_end_there() -> None:
    found = mask([[-5, -5, 2, -5, 2, 2, -5, 2], [8, 4, 20, 4, 20, 20, 8, 20]], 10, 6)
    assert found.sum() == 4 + 4
    assert found[:2, :2].all()
    assert found[4:, 8:].all()


@given(st.lists(st.tuples(st.floats(-5, 45), st.floats(-5, 35)), min_size=3, max_size=9))
def test_a_polygon_is_what_pycocotools_makes_of_it(corners: list[tuple[float, float]]) -> None:
    polygons = [[side for corner in corners for side in corner]]
    (wanted,) = coco.frPyObjects(polygons, 30, 40)
    assert np.array_equal(mask(polygons, 40, 30), coco.decode(wanted))


def test_no_polygon_is_an_empty_mask() -> None:
    assert not mask([], 10, 6).any()


@given(st.lists(st.booleans(), min_size=12, max_size=12))
def test_run_lengths_go_down_each_column_packed_or_not(pixels: list[bool]) -> None:
    turns = [0, *(i for i in range(1, 12) if pixels[i] != pixels[i - 1]), 12]
    counts = [stop - start for start, stop in pairwise(turns)]
    counts = [0, *counts] if pixels[0] else counts
    wanted = np.array(pixels, np.uint8).reshape(4, 3).T
    packed = coco.encode(np.asfortranarray(wanted))["counts"].decode()
    for runs in (counts, packed):
        assert np.array_equal(mask({"size": [3, 4], "counts": runs}, 4, 3), wanted)


@pytest.mark.parametrize(
    ("segmentation", "message"),
    [
        ([[0, 0, 1, 1]], "three or more corners"),
        ([[0, 0, 1, 1, 2]], "three or more corners"),
        ([[0, 0, 1, 1, 2, "x"]], "three or more corners"),
        ([[0, 0, 1, 1, 2, float("nan")]], "three or more corners"),
        ([[0, 0, 1, 1, 2, 10**400]], "three or more corners"),
        ([5], "three or more corners"),
        ([[0, 0, 1, 1, 2, 1e12]], "corners near the picture"),
        ([[0, 0, 1e5, 1e5] * 10], "corners near the picture"),
        ("x", "neither a list of polygons nor run lengths"),
        ({"size": [3, 4], "counts": [5]}, "run lengths of more or fewer than the 12 pixels of its picture"),
        ({"size": [3, 4], "counts": [5, 8]}, "more or fewer than the 12 pixels"),
        ({"size": [3, 4], "counts": []}, "more or fewer than the 12 pixels"),
        ({"size": [3, 4], "counts": ""}, "more or fewer than the 12 pixels"),
        ({"size": [3, 4], "counts": "5"}, "more or fewer than the 12 pixels"),
        ({"size": [3, 4], "counts": "=N"}, "more or fewer than the 12 pixels"),
        ({"size": [4, 3], "counts": [12]}, "is of .4, 3. pixels .height, width., and its picture of .3, 4."),
        ({"size": [3, 4], "counts": [-1, 13]}, "run lengths that are none"),
        ({"size": [3, 4], "counts": [12.0]}, "run lengths that are none"),
        ({"size": [3, 4], "counts": "\u00ff"}, "run lengths that are none"),
        ({"size": [3, 4], "counts": "oo"}, "run lengths that are none"),
        ({"size": [3, 4], "counts": "oooooo0"}, "run lengths that are none"),
    ],
)
def test_what_is_no_segmentation_is_named(segmentation: object, message: str) -> None:
    with pytest.raises(MaskProblem, match=message):
        mask_png(segmentation, 4, 3)


def test_run_lengths_of_one_pixel_too_few_are_named_in_a_picture_of_one_pixel() -> None:
    assert mask({"size": [1, 1], "counts": "01"}, 1, 1) == 1
    with pytest.raises(MaskProblem, match="more or fewer than the 1 pixels"):
        mask_png({"size": [1, 1], "counts": "0"}, 1, 1)
