"""What a user should know of images that are written: counted by file, and shown at the end of a run."""

from __future__ import annotations

from typing import Final

from ..format.wording.hints import Set
from .facts import UPRIGHT, ImageFacts

ANIMATED: Final = "animated images, of which most readers decode the first frame only"
APPLY: Final = f"{Set('image.orientation', 'apply')}"
TURNED: Final = f"images with an EXIF orientation, which TensorFlow decodes without turning them; to turn them: {APPLY}"
TURNED_UNDER_BOXES: Final = (
    "images with boxes and an EXIF orientation, which TensorFlow decodes without turning them: boxes that were drawn "
    f"on the upright image are in the wrong place; to turn images and boxes: {APPLY}"
)
BOXES_OF_TURNED: Final = (
    "images that were turned by EXIF, with boxes that were turned too, as if they were drawn on the stored image; if "
    f"they were drawn on the upright one: {Set('image.boxes_on', 'turned')}"
)
_WRITE_ALL: Final = f"write all as JPEG or PNG ({Set('image.encode.format', 'jpeg')})"
SEEN: Final = {
    (
        "bmp",
        "P",
    ): "BMP images with a palette, of which TensorFlow gives the numbers of the colours, not the colours; to "
    f"write the colours: {Set('image.color', 'rgb')} {Set('image.encode.format', 'png')}",
    ("png", "P"): "PNG images with a palette, which TensorFlow decodes to 3 channels, or 4 with transparency: "
    "channels is 1, as stored",
    (
        "png",
        "I;16",
    ): "PNG images of gray with 16 bits, which TensorFlow decodes to 8 bits where no dtype=tf.uint16 is given",
    ("png", "LA"): "PNG images of gray with transparency, which TensorFlow decodes to 2 channels where no other number "
    "is given",
    ("jpeg", "CMYK"): "JPEG images in CMYK, which TensorFlow decodes to 3 channels: channels is 4, as stored",
}
"""What TensorFlow makes of images that are stored in another way than most, by format and mode."""

_PIXELS_IN_TFDS: Final = frozenset({"jpeg", "png", "bmp", "gif"})


def notes_of(facts: ImageFacts, *, boxes: bool = False) -> list[str]:
    """Return what to say of an image as it is written, with `boxes` or without.

    >>> notes_of(ImageFacts("gif", 1, 1, 3, "RGB", animated=True))
    ['animated images, of which most readers decode the first frame only']
    """
    notes = [ANIMATED] if facts.animated else []
    seen = SEEN.get((facts.format, facts.colorspace))
    notes += [] if seen is None else [seen]
    if facts.format not in _PIXELS_IN_TFDS:
        of_all = "so that it gives image/encoded of all records as bytes, not pixels"
        notes.append(f"{facts.format} images, which TFDS does not decode, {of_all}; {_WRITE_ALL}")
    if facts.orientation != UPRIGHT:
        notes.append(TURNED_UNDER_BOXES if boxes else TURNED)
    return notes
