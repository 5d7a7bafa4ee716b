"""Make a picture smaller, turned, of one format: where its pixels go, and the picture itself.

    stored 500 x 375 ──scaled──▶ 341 x 256 ──frame──▶ 256 x 256 from column 42 (center_crop)
                                                      256 x 256 from row -32    (border: what is outside is filled)

The scaled picture is the whole one; the frame is the part of it that is written, or more than it. All of it is in the
orientation in which the picture is written: a picture on its side is turned before.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from ..format.wording.hints import Set
from ..limits.turns import PIXELS, taking_turns
from .codec import (
    WHITE,
    Codec,
    Pixels,
    decode,
    encode,
    has_deep_colors,
    in_8_bits,
    in_gray,
    in_rgb,
    mode_of,
    without_alpha,
)
from .facts import UPRIGHT, Content, ImageFacts, ImageProblem, unsupported
from .options import Preprocess, Resize
from .pillow_decode import jpeg_warning, opened

if TYPE_CHECKING:
    from PIL import Image


# Where the pixels of a picture go: numbers only.


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


# Make one picture ready: say what has to change, and change it; where nothing has, the bytes stay as they are.


FIRST_FRAME: Final = "animated images, of which the first frame was kept"
ON_WHITE: Final = "images with transparency, which were laid on white"
FEWER_BITS: Final = "images of 16 bits, which were written with 8"

_KEPT: Final = frozenset({"jpeg", "png", "webp"})
_PHOTOS: Final = frozenset({"avif", "heic", "jpeg2000"})
_LONGEST: Final = {"jpeg": 65_500, "webp": 16_383}
"""The most pixels of a side."""

_GRAY: Final = frozenset({"1", "L", "I;16"})


class Ready(NamedTuple):
    """A picture that is ready: `data` is None where its bytes stay; `notes` are what was lost, to be counted.

    `stored` is its size (width, height) in pixels before, and `turn` the orientation by which it was turned then.
    `warning` is what libjpeg warned of when the picture was decoded.
    """

    data: bytes | None
    facts: ImageFacts
    stored: tuple[int, int]
    turn: int
    placement: Placement
    notes: tuple[str, ...] = ()
    warning: str | None = None


def _check_sides(name: str, width: int, height: int) -> None:
    most = _LONGEST.get(name)
    if most is not None and max(width, height) > most:
        text = f"{width} x {height} pixels, and a side of {name.upper()} has at most {most}; resize it, or write PNG"
        raise ImageProblem("UNSUPPORTED", f"{text}: {Set('image.encode.format', 'png')}", value=f"{width}x{height}")


@dataclass(frozen=True, slots=True)
class PictureMaker:
    """Makes pictures ready by some options, with a codec."""

    options: Preprocess
    codec: Codec
    pixels_limit: int = 50_000_000

    def make(self, data: Content, facts: ImageFacts) -> Ready:
        """Return a picture as the options have it, given its bytes, which have been checked."""
        stored = (facts.width, facts.height)
        turn = facts.orientation if self.options.orientation == "apply" else UPRIGHT
        placement = place(*(stored[::-1] if turn in SIDEWAYS else stored), self.options.resize)
        if self._stays(facts, turn, placement):
            return Ready(None, facts, stored, turn, placement)
        self.check_pixels(placement)
        width, height = placement.frame
        with taking_turns(PIXELS, max(facts.width * facts.height, width * height)):
            return self._made(data, facts, turn, placement)

    def _made(self, data: Content, facts: ImageFacts, turn: int, placement: Placement) -> Ready:
        scaled = placement.scaled[::-1] if turn in SIDEWAYS else placement.scaled
        pixels, warning = decode(data, facts, self.codec, scaled, gray=self.options.color == "gray")
        name = self._format(facts, pixels)
        pixels, notes = self._colored(pixels, name)
        if has_deep_colors(data, facts):
            notes += (FEWER_BITS,)
        pixels = self.codec.resize(pixels, scaled)
        white = 65535 if pixels.itemsize == 2 else WHITE
        pixels = framed(turned(pixels, turn), placement, white)
        kept = facts.orientation if self.options.orientation == "keep" else UPRIGHT
        _check_sides(name, pixels.shape[1], pixels.shape[0])
        file = encode(pixels, name, self.options.quality, self.codec, kept)
        made = ImageFacts(name, pixels.shape[1], pixels.shape[0], pixels.shape[2], mode_of(pixels), orientation=kept)
        notes += (FIRST_FRAME,) if facts.animated else ()
        return Ready(file, made, (facts.width, facts.height), turn, placement, notes, warning or None)

    def check_pixels(self, placement: Placement) -> None:
        for (width, height), what in ((placement.scaled, "resized"), (placement.frame, "padded")):
            if width * height > self.pixels_limit:
                text = (
                    f"{what} to {width} x {height} it has more pixels than limits.pixels = {self.pixels_limit}; choose "
                    f"another image.resize.mode, or raise the limit"
                )
                raise ImageProblem("TOO_MANY_PIXELS", text, value=f"{width}x{height}")

    def _stays(self, facts: ImageFacts, turn: int, placement: Placement) -> bool:
        size = (facts.width, facts.height)
        colors = {"keep": True, "rgb": facts.colorspace == "RGB", "gray": facts.colorspace in _GRAY}
        return (
            turn == UPRIGHT
            and placement == Placement(size, size)
            and self.options.format in ("keep", facts.format)
            and colors[self.options.color]
        )

    def _format(self, facts: ImageFacts, pixels: Pixels) -> str:
        if self.options.format != "keep":
            return self.options.format
        if facts.format in _KEPT:
            return "png" if facts.format == "webp" and self.options.color == "gray" else facts.format
        opaque = self.options.color != "keep" or pixels.shape[2] in (1, 3)
        return "jpeg" if facts.format in _PHOTOS and opaque and pixels.itemsize == 1 else "png"

    def _colored(self, pixels: Pixels, name: str) -> tuple[Pixels, tuple[str, ...]]:
        """Return pixels in the colours that are asked for, as far as the format has room for them, and what is lost."""
        notes: tuple[str, ...] = ()
        color = self.options.color
        if pixels.itemsize == 2 and (name != "png" or color == "rgb"):
            pixels, notes = in_8_bits(pixels), (FEWER_BITS,)
        if pixels.shape[2] in (2, 4) and (name == "jpeg" or color != "keep"):
            seen = pixels[..., -1].min() < WHITE
            pixels, notes = without_alpha(pixels), notes + ((ON_WHITE,) if seen else ())
        if name == "webp" and pixels.shape[2] in (2, 4) and pixels[..., -1].min() == WHITE:
            pixels = pixels[..., :-1]  # libwebp leaves out alpha that hides nothing
        if color == "rgb" or name == "webp":
            pixels = in_rgb(pixels)
        return (in_gray(pixels) if color == "gray" else pixels), notes


# Make a mask of classes ready: a picture whose pixels are numbers, beside the picture that it is of.


def make_mask(data: Content, facts: ImageFacts, maker: PictureMaker, of: Ready | None) -> Ready:
    """Return a mask where the picture goes that it is `of`, if it is as large; it becomes PNG if it has to change.

    A mask that is as large as the turned picture was drawn on that, and is not turned again. One of another size goes
    where a picture of its own size would.
    """
    stored = (facts.width, facts.height)
    turn = UPRIGHT
    if of is not None and of.turn != UPRIGHT and stored == of.stored:
        turn = of.turn
    placement = place(*(stored[::-1] if turn in SIDEWAYS else stored), maker.options.resize)
    if turn == UPRIGHT and placement == Placement(stored, stored):
        return Ready(None, facts, stored, turn, placement)
    maker.check_pixels(placement)
    mask: Image.Image | None = None
    pixels = facts.width * facts.height
    with taking_turns(PIXELS, pixels), opened(data, facts.format) as image:
        mode = image.mode
        if mode in NUMBERS:
            image.load()
            mask = place_mask(image, turn, placement)
    if mask is None:
        text = f"a mask with pixels of mode {mode} has no numbers that PNG holds; write it as PNG of 8 or 16 bits"
        raise unsupported(facts.format.upper(), text, mode)
    warning = jpeg_warning(data, pixels) if facts.format == "jpeg" and maker.codec.is_fast else None
    made = ImageFacts("png", *mask.size, len(mask.getbands()), mask.mode)
    return Ready(png_of(mask), made, stored, turn, placement, warning=warning or None)
