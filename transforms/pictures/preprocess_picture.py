"""Make one picture ready: say what has to change, and change it; where nothing has, the bytes stay as they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from ..format.wording.hints import Set
from ..limits.turns import PIXELS, taking_turns
from .codec import Codec, Pixels
from .facts import UPRIGHT, Content, ImageFacts, ImageProblem, unsupported
from .pillow_decode import jpeg_warning, opened
from .pixels import WHITE, decode, encode, has_deep_colors, in_8_bits, in_gray, in_rgb, mode_of, without_alpha
from .placement import NUMBERS, SIDEWAYS, Placement, framed, place, place_mask, png_of, turned
from .preprocess_options import Preprocess

if TYPE_CHECKING:
    from PIL import Image


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
