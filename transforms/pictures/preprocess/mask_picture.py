"""Make a mask of classes ready: a picture whose pixels are numbers, beside the picture that it is of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...limits.turns import PIXELS, taking_turns
from ..facts import UPRIGHT, Content, ImageFacts, unsupported
from ..pillow_decode import jpeg_warning, opened
from .masks import NUMBERS, place_mask, png_of
from .picture import PictureMaker, Ready
from .placement import SIDEWAYS, Placement, place

if TYPE_CHECKING:
    from PIL import Image


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
