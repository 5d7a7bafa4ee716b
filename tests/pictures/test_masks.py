from __future__ import annotations

import io
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from shardmill.transforms.pictures.masks import MaskProblem, mask_png


def mask(segmentation: object, width: int, height: int) -> npt.NDArray[np.uint8]:
    picture = Image.open(io.BytesIO(mask_png(segmentation, width, height)))
    assert (picture.mode, picture.size) == ("L", (width, height))
    return np.asarray(picture)


def packed(counts: list[int]) -> str:
    """Write run lengths as COCO's `rleToString` does."""
    text = ""
    for index, count in enumerate(counts):
        value, more = count - counts[index - 2] if index > 2 else count, True
        while more:
            five = value & 0x1F
            value >>= 5
            more = value != -1 if five & 0x10 else value != 0
            text += chr((five | 0x20 if more else five) + 48)
    return text


def test_a_rectangle_holds_as_many_pixels_as_its_sides_say() -> None:
    found = mask([[2, 1, 7, 1, 7, 4, 2, 4]], 10, 6)
    assert found.sum() == 5 * 3
    assert found[1:4, 2:7].all()


@pytest.mark.parametrize("shift", [0.0, 0.49, -0.49])
def test_a_pixel_is_inside_where_its_middle_is(shift: float) -> None:
    corners = [2 + shift, 1, 7 + shift, 1, 7 + shift, 4, 2 + shift, 4]
    assert np.array_equal(mask([corners], 10, 6), mask([[2, 1, 7, 1, 7, 4, 2, 4]], 10, 6))


def test_several_polygons_are_joined_and_those_over_the_edge_end_there() -> None:
    found = mask([[-5, -5, 2, -5, 2, 2, -5, 2], [8, 4, 20, 4, 20, 20, 8, 20]], 10, 6)
    assert found.sum() == 4 + 4
    assert found[:2, :2].all()
    assert found[4:, 8:].all()


def test_a_triangle_is_half_of_its_box() -> None:
    assert abs(int(mask([[0, 0, 100, 0, 0, 100]], 100, 100).sum()) - 5000) <= 50


@given(st.lists(st.booleans(), min_size=12, max_size=12))
def test_run_lengths_go_down_each_column_packed_or_not(pixels: list[bool]) -> None:
    turns = [0, *(i for i in range(1, 12) if pixels[i] != pixels[i - 1]), 12]
    counts = [stop - start for start, stop in pairwise(turns)]
    counts = [0, *counts] if pixels[0] else counts
    wanted = np.array(pixels, np.uint8).reshape(4, 3).T
    for runs in (counts, packed(counts)):
        assert np.array_equal(mask({"size": [3, 4], "counts": runs}, 4, 3), wanted)


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=9))
def test_packed_numbers_of_any_size_are_read(counts: list[int]) -> None:
    size = [1, sum(counts)]
    if 0 < size[1] <= 10**6:
        plain = mask({"size": size, "counts": counts}, size[1], 1)
        assert np.array_equal(mask({"size": size, "counts": packed(counts)}, size[1], 1), plain)


@pytest.mark.parametrize(
    ("segmentation", "message"),
    [
        ([[0, 0, 1, 1]], "three or more corners"),
        ([[0, 0, 1, 1, 2]], "three or more corners"),
        ([[0, 0, 1, 1, 2, "x"]], "three or more corners"),
        ([5], "three or more corners"),
        ("x", "neither a list of polygons nor run lengths"),
        ({"size": [3, 4], "counts": [5]}, "run lengths of 5 pixels, and its picture has 12"),
        ({"size": [4, 3], "counts": [12]}, "is of .4, 3. pixels .height, width., and its picture of .3, 4."),
        ({"size": [3, 4], "counts": [-1, 13]}, "run lengths that are none"),
        ({"size": [3, 4], "counts": "\u00ff"}, "with the character"),
        ({"size": [3, 4], "counts": "oo"}, "end within a number"),
    ],
)
def test_what_is_no_segmentation_is_named(segmentation: object, message: str) -> None:
    with pytest.raises(MaskProblem, match=message):
        mask_png(segmentation, 4, 3)
