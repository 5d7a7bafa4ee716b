"""Make a mask of classes ready: a picture whose pixels are numbers, beside the picture that it is of."""

from __future__ import annotations

from ..facts import Content, ImageFacts
from ..pillow_decode import opened
from .exif import UPRIGHT
from .masks import place_mask, png_of
from .picture import PictureMaker, Ready
from .placement import SIDEWAYS, Placement, place


def make_mask(data: Content, facts: ImageFacts, maker: PictureMaker, of: Ready | None) -> Ready:
    """Return a mask where the picture goes that it is `of`, if it is as large; it becomes PNG if it has to change.

    A mask that is as large as the turned picture was drawn on that, and is not turned again. One of another size goes
    where a picture of its own size would.

    Raises:
        ImageProblem: it cannot be decoded.
    """
    stored = (facts.width, facts.height)
    turn = UPRIGHT
    if of is not None and of.turn != UPRIGHT and stored == of.stored:
        turn = of.turn
    placement = place(*(stored[::-1] if turn in SIDEWAYS else stored), maker.options.resize)
    if turn == UPRIGHT and placement == Placement(stored, stored):
        return Ready(None, facts, stored, turn, placement)
    with opened(data, facts.format) as image:
        image.load()
        mask = place_mask(image, turn, placement)
    made = ImageFacts("png", *mask.size, len(mask.getbands()), mask.mode)
    return Ready(png_of(mask), made, stored, turn, placement)
