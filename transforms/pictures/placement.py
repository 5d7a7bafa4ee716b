"""Where the pixels of a picture go: numbers only.

    stored 500 x 375 ──scaled──▶ 341 x 256 ──frame──▶ 256 x 256 from column 42 (center_crop)
                                                      256 x 256 from row -32    (border: what is outside is filled)

The scaled picture is the whole one; the frame is the part of it that is written, or more than it. All of it is in the
orientation in which the picture is written: a picture on its side is turned before.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from .facts import Content
from .preprocess_options import Resize

if TYPE_CHECKING:
    from PIL import Image


SIDEWAYS: Final = frozenset({5, 6, 7, 8})
"""The orientations of EXIF that swap width and height."""


@dataclass(frozen=True, slots=True)
class Placement:
    """A picture of `scaled` (width, height) pixels, of which a `frame` (width, height) is written.

    The frame begins at `left` and `top` of the scaled picture, which are negative where it is padded.
    """

    scaled: tuple[int, int]
    frame: tuple[int, int]

    @property
    def left(self) -> int:
        return (self.scaled[0] - self.frame[0]) // 2

    @property
    def top(self) -> int:
        return (self.scaled[1] - self.frame[1]) // 2

    def points(self, points: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return points (n, 2), x and y as parts of the whole picture, as parts of the frame.

        >>> Placement((341, 256), (256, 256)).points(np.array([[0.5, 0.5], [42 / 341, 0.0]])).tolist()
        [[0.501953125, 0.5], [0.0, 0.0]]
        """
        placed = (points * self.scaled - (self.left, self.top)) / self.frame
        return np.asarray(placed, np.float64)


def place(width: int, height: int, resize: Resize | None) -> Placement:
    """Return where the pixels of a picture of some size go; without `upscale` no side grows, but by padding.

    >>> place(500, 375, Resize(256, 256)).scaled, place(500, 375, Resize(256, 256, "keep_ratio_largest")).scaled
    ((341, 256), (256, 192))
    >>> place(100, 50, Resize(256, 256, "border"))
    Placement(scaled=(100, 50), frame=(256, 256))
    """
    if resize is None:
        return Placement((width, height), (width, height))
    target = (resize.width, resize.height)
    if resize.mode == "exact":
        size = target if resize.upscale else (min(width, target[0]), min(height, target[1]))
        return Placement(size, size)
    inside = resize.mode in ("keep_ratio_largest", "border")
    by_width = (target[0] * height < target[1] * width) == inside  # which side decides
    to, side = (target[0], width) if by_width else (target[1], height)
    if to >= side and not resize.upscale:
        to = side
    scaled = (_scaled(width, to, side), _scaled(height, to, side))
    if resize.mode == "center_crop":
        return Placement(scaled, (min(scaled[0], target[0]), min(scaled[1], target[1])))
    return Placement(scaled, target if resize.mode == "border" else scaled)


def _scaled(length: int, to: int, side: int) -> int:
    """Return a length times `to / side`, to the nearest pixel, and half of one up."""
    return max(1, (2 * length * to + side) // (2 * side))


def turned_points(points: npt.NDArray[np.float64], orientation: int) -> npt.NDArray[np.float64]:
    """Return points (n, 2), as parts of a stored picture, as parts of the picture turned by its EXIF orientation.

    >>> turned_points(np.array([[0.25, 0.0]]), 6).tolist()  # a quarter to the right: the top is on the right
    [[1.0, 0.25]]
    """
    x, y = points[:, 0], points[:, 1]
    if orientation in SIDEWAYS:
        x, y = y, x
    if orientation in (2, 3, 6, 7):
        x = 1 - x
    if orientation in (3, 4, 7, 8):
        y = 1 - y
    return np.column_stack([x, y])


def turned(pixels: npt.NDArray[Any], orientation: int) -> npt.NDArray[Any]:
    """Return pixels (height, width, ...), turned by an EXIF orientation (1 to 8; CIPA DC-008, tag 274); a view.

    >>> turned(np.array([[1, 2], [3, 4]]), 6).tolist()
    [[3, 1], [4, 2]]
    """
    if orientation in SIDEWAYS:
        pixels = pixels.swapaxes(0, 1)
    if orientation in (2, 3, 6, 7):
        pixels = pixels[:, ::-1]
    if orientation in (3, 4, 7, 8):
        pixels = pixels[::-1]
    return pixels


def framed(pixels: npt.NDArray[Any], placement: Placement, fill: int) -> npt.NDArray[Any]:
    """Return the frame of scaled pixels (height, width, channels): a part of them, or padded with a value."""
    (width, height), left, top = placement.frame, placement.left, placement.top
    if left >= 0 and top >= 0:
        return pixels[top : top + height, left : left + width]
    out = np.full((height, width, *pixels.shape[2:]), fill, pixels.dtype)
    part = pixels[max(top, 0) : max(top, 0) + height, max(left, 0) : max(left, 0) + width]
    out[max(-top, 0) :, max(-left, 0) :][: part.shape[0], : part.shape[1]] = part
    return out


# Masks, whose pixels are numbers: those of objects, and of classes. They go where the pixels of their picture go.
#
# Each pixel is the nearest one of the mask, so that no number appears which was not there; palettes stay.


NUMBERS: Final = ("1", "L", "LA", "P", "RGB", "RGBA", "I;16")
"""Pillow's modes of pixels that PNG holds as they are."""

_TRANSPOSED: Final = {
    2: "FLIP_LEFT_RIGHT", 3: "ROTATE_180", 4: "FLIP_TOP_BOTTOM", 5: "TRANSPOSE", 6: "ROTATE_270", 7: "TRANSVERSE",
    8: "ROTATE_90",
}  # fmt: skip
"""What Pillow calls the turns of EXIF orientations."""


def placed_mask(data: Content, turn: int, placement: Placement) -> bytes:
    """Return the PNG of a mask, turned by an EXIF orientation, resized, and cropped or padded with 0."""
    from PIL import Image

    with Image.open(io.BytesIO(data), formats=["PNG"]) as image:
        image.load()
        return png_of(place_mask(image, turn, placement))


def place_mask(mask: Image.Image, turn: int, placement: Placement) -> Image.Image:
    from PIL import Image

    if turn in _TRANSPOSED:
        mask = mask.transpose(Image.Transpose[_TRANSPOSED[turn]])
    if mask.size != placement.scaled:
        mask = mask.resize(placement.scaled, Image.Resampling.NEAREST)
    (width, height), left, top = placement.frame, placement.left, placement.top
    return mask.crop((left, top, left + width, top + height))


def png_of(mask: Image.Image) -> bytes:
    file = io.BytesIO()
    mask.info = {}
    mask.save(file, "PNG")
    return file.getvalue()
