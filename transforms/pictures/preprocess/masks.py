"""Masks, whose pixels are numbers: those of objects, and of classes. They go where the pixels of their picture go.

Each pixel is the nearest one of the mask, so that no number appears which was not there; palettes stay.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Final

from ..facts import Content
from .placement import Placement

if TYPE_CHECKING:
    from PIL import Image

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
