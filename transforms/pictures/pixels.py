"""Pixels of pictures: what is stored in a file, as an array, and an array as a file.

stored                                        pixels
1-bit, gray                                   1 channel
gray with alpha                               2
16-bit gray                                   1, of 16 bits
palette                                       3, or 4 where it has transparency
RGB, YCbCr, CMYK                              3
RGB with alpha                                4
floats, 32-bit integers, Lab                  UNSUPPORTED: no range of values is known to be black to white

Only the first frame of an animation is read. Colour profiles are not applied, as readers apply none.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from .codec import Codec, Pixels, converted
from .facts import UPRIGHT, Content, ImageFacts, exif_block, unsupported, with_orientation
from .pillow_decode import opened

if TYPE_CHECKING:
    from PIL import Image

WHITE: Final = 255
_ROWS_AT_ONCE: Final = 256
_PNG_BITS: Final = 24
"""The byte of the header of a PNG that says how many bits a sample has."""

_DEEP: Final = 16
_TIFF_BITS: Final = 258
"""The tag of a TIFF that says it."""

_WIDE: Final = ("I;16", "I;16B", "I;16L", "I;16N")
_AS_THEY_ARE: Final = ("L", "LA", "RGB", "RGBA")
_NO_RANGE: Final = ("F", "I", "LAB")


def decode(
    data: Content, facts: ImageFacts, codec: Codec, at_least: tuple[int, int], *, gray: bool
) -> tuple[Pixels, str | None]:
    """Return the pixels of a picture, as they are stored, or fewer of a JPEG: `at_least` so many (width, height).

    And libjpeg's warning, None where nobody reports one. With `gray` those of a JPEG may be gray.
    """
    if facts.format == "jpeg" and facts.colorspace in ("L", "RGB"):
        gray = gray or facts.colorspace == "L"
        return codec.decode_jpeg(data, (facts.width, facts.height), at_least, gray=gray)
    if facts.format == "jpeg" and facts.colorspace == "CMYK":
        found = codec.decode_cmyk(data, (facts.width, facts.height), at_least)
        if found is not None:
            return found
    with opened(data, facts.format) as image:
        mode = image.mode
        if mode not in _NO_RANGE:
            return _values(image), None
    raise unsupported(facts.format.upper(), f"pixels of mode {mode} are not resized or encoded; make them 8 or 16 bits")


def _values(image: Image.Image) -> Pixels:
    if image.mode in _WIDE:
        return np.asarray(image).astype(np.uint16)[..., None]
    if image.has_transparency_data:
        mode = "LA" if image.mode in ("1", "L", "LA", "La") else "RGBA"
    else:
        mode = "L" if image.mode in ("1", "L") else "RGB"
    return converted(image, mode)


def has_deep_colors(data: Content, facts: ImageFacts) -> bool:
    """Return whether a picture has colours of 16 bits, which Pillow reads as 8."""
    if facts.colorspace == "I;16":
        return False
    if facts.format == "png":
        return data[_PNG_BITS] == _DEEP
    if facts.format != "tiff":
        return False
    with opened(data, "tiff") as image:
        bits: tuple[int, ...] = image.tag_v2.get(_TIFF_BITS, (8,))  # type: ignore[attr-defined]
    return max(bits) == _DEEP


def without_alpha(pixels: Pixels) -> Pixels:
    """Return pixels laid on white: `c` with alpha `a` is `(c a + 255 (255 - a)) / 255`, rounded."""
    if pixels.shape[2] not in (2, 4):
        return pixels
    found = np.empty((*pixels.shape[:2], pixels.shape[2] - 1), np.uint8)
    for first in range(0, len(pixels), _ROWS_AT_ONCE):
        rows = pixels[first : first + _ROWS_AT_ONCE].astype(np.uint32)
        colors, alpha = rows[..., :-1], rows[..., -1:]
        found[first : first + _ROWS_AT_ONCE] = (colors * alpha + WHITE * (WHITE - alpha) + WHITE // 2) // WHITE
    return found


def in_8_bits(pixels: Pixels) -> Pixels:
    """Return pixels of 8 bits: `v / 257`, rounded, so that black and white stay what they are."""
    if pixels.dtype == np.uint8:
        return pixels
    found = np.empty(pixels.shape, np.uint8)
    for first in range(0, len(pixels), _ROWS_AT_ONCE):
        found[first : first + _ROWS_AT_ONCE] = (pixels[first : first + _ROWS_AT_ONCE].astype(np.uint32) + 128) // 257
    return found


def in_rgb(pixels: Pixels) -> Pixels:
    """Return pixels of three channels, those of gray ones three times, and of four where they have alpha."""
    gray = pixels.shape[2] < 3
    return np.concatenate([pixels[..., :1]] * 3 + [pixels[..., 1:]], axis=2) if gray else pixels


def in_gray(pixels: Pixels) -> Pixels:
    """Return pixels of one channel: luma after ITU-R BT.601, as Pillow and JPEG have it; they have no alpha."""
    if pixels.shape[2] == 1:
        return pixels
    from PIL import Image

    found = np.empty((*pixels.shape[:2], 1), np.uint8)
    for first in range(0, len(pixels), _ROWS_AT_ONCE):
        rows = Image.fromarray(np.ascontiguousarray(pixels[first : first + _ROWS_AT_ONCE]))
        found[first : first + _ROWS_AT_ONCE] = np.asarray(rows.convert("L"))[..., None]
    return found


def encode(pixels: Pixels, name: str, quality: int, codec: Codec, orientation: int) -> bytes:
    """Return the file of pixels, in a format that has room for them; an orientation but 1 is stated in its EXIF."""
    if name == "jpeg":
        data = codec.encode_jpeg(pixels, quality)
        return data if orientation == UPRIGHT else with_orientation(data, orientation)
    from PIL import Image

    more: dict[str, Any] = {} if orientation == UPRIGHT else {"exif": exif_block(orientation)}
    more |= {"quality": quality} if name == "webp" else {}
    flat = np.ascontiguousarray(pixels[..., 0] if pixels.shape[2] == 1 else pixels)
    file = io.BytesIO()
    Image.fromarray(flat).save(file, name.upper(), **more)
    return file.getvalue()


def mode_of(pixels: Pixels) -> str:
    """Return Pillow's mode of pixels.

    >>> mode_of(np.zeros((1, 1, 3), np.uint8)), mode_of(np.zeros((1, 1, 1), np.uint16))
    ('RGB', 'I;16')
    """
    return "I;16" if pixels.dtype == np.uint16 else _AS_THEY_ARE[pixels.shape[2] - 1]
