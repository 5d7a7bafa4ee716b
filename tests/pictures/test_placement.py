"""Where the pixels of a picture go: sizes by mode, points of turned pictures, frames."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageOps
from shardmill.transforms.pictures.options import Mode, Resize
from shardmill.transforms.pictures.preprocess import Placement, framed, place, turned, turned_points

SIDES = st.integers(1, 5000)


@pytest.mark.parametrize(
    ("mode", "scaled", "frame"),
    [
        ("keep_ratio", (341, 256), (341, 256)),
        ("keep_ratio_largest", (256, 192), (256, 192)),
        ("center_crop", (341, 256), (256, 256)),
        ("border", (256, 192), (256, 256)),
        ("exact", (256, 256), (256, 256)),
    ],
)
def test_each_mode_gives_the_size_that_img2dataset_gives(
    mode: Mode, scaled: tuple[int, int], frame: tuple[int, int]
) -> None:
    assert place(500, 375, Resize(256, 256, mode)) == Placement(scaled, frame)


@given(width=SIDES, height=SIDES, side=SIDES)
def test_the_shorter_side_is_the_size_and_the_ratio_stays_within_half_a_pixel(
    width: int, height: int, side: int
) -> None:
    scaled = place(width, height, Resize(side, side, upscale=True)).scaled
    assert min(scaled) == side
    factor = side / min(width, height)
    assert abs(max(scaled) - max(width, height) * factor) <= 0.5


@given(width=SIDES, height=SIDES, to=st.tuples(SIDES, SIDES), mode=st.sampled_from(["keep_ratio_largest", "border"]))
def test_a_picture_that_fits_inside_is_no_larger_than_its_frame_and_touches_it(
    width: int, height: int, to: tuple[int, int], mode: Mode
) -> None:
    scaled = place(width, height, Resize(*to, mode, upscale=True)).scaled
    assert scaled[0] <= to[0]
    assert scaled[1] <= to[1]
    assert scaled[0] == to[0] or scaled[1] == to[1]


@given(width=SIDES, height=SIDES, to=st.tuples(SIDES, SIDES))
def test_a_cropped_picture_covers_its_frame(width: int, height: int, to: tuple[int, int]) -> None:
    placement = place(width, height, Resize(*to, "center_crop", upscale=True))
    assert placement.frame == to
    assert placement.left >= 0
    assert placement.top >= 0


@given(
    width=SIDES,
    height=SIDES,
    to=st.tuples(SIDES, SIDES),
    mode=st.sampled_from(["keep_ratio", "keep_ratio_largest", "center_crop", "border", "exact"]),
)
def test_without_upscale_no_picture_gets_more_pixels_but_by_padding(
    width: int, height: int, to: tuple[int, int], mode: Mode
) -> None:
    to = (to[0], to[0]) if mode == "keep_ratio" else to
    placement = place(width, height, Resize(*to, mode))
    assert placement.scaled[0] <= width
    assert placement.scaled[1] <= height
    assert placement.frame == (to if mode == "border" else tuple(map(min, placement.scaled, placement.frame)))


@pytest.mark.parametrize("orientation", range(1, 9))
def test_pixels_and_points_turn_as_pillow_turns_a_picture(orientation: int) -> None:
    pixels = np.zeros((4, 6), np.uint8)
    pixels[1, 4] = 255
    image = Image.fromarray(pixels)
    image.getexif()[0x0112] = orientation
    upright = np.asarray(ImageOps.exif_transpose(image))
    assert np.array_equal(turned(pixels, orientation), upright)
    ((x, y),) = turned_points(np.array([[4.5 / 6, 1.5 / 4]]), orientation)
    row, column = np.argwhere(upright == 255)[0]
    assert (x, y) == pytest.approx(((column + 0.5) / upright.shape[1], (row + 0.5) / upright.shape[0]))


@given(
    scaled=st.tuples(st.integers(1, 30), st.integers(1, 30)),
    frame=st.tuples(st.integers(1, 30), st.integers(1, 30)),
    data=st.data(),
)
def test_a_pixel_is_where_its_point_is(scaled: tuple[int, int], frame: tuple[int, int], data: st.DataObject) -> None:
    placement = Placement(scaled, frame)
    pixels = np.zeros((scaled[1], scaled[0], 1), np.uint8)
    x, y = data.draw(st.integers(0, scaled[0] - 1)), data.draw(st.integers(0, scaled[1] - 1))
    pixels[y, x] = 1
    found = np.argwhere(framed(pixels, placement, 0)[..., 0])
    ((part_x, part_y),) = placement.points(np.array([[(x + 0.5) / scaled[0], (y + 0.5) / scaled[1]]]))
    inside = 0 < part_x < 1 and 0 < part_y < 1
    assert len(found) == inside
    if inside:
        assert (part_y * frame[1] - 0.5, part_x * frame[0] - 0.5) == pytest.approx(tuple(found[0]))
