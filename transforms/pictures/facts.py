"""Facts about a picture from its bytes, words for its problems and for users. No library is imported."""

from __future__ import annotations

import struct
from typing import Final, Literal, NamedTuple

from ..format.batches.rejects import CellError
from ..format.wording.hints import Set
from ..format.wording.printable import printable

Content = bytes | memoryview
"""The bytes of a file: a view, of unsigned bytes, where they are among those of other files."""

Check = Literal["header", "structure", "decode", "strict"]
"""How far an image is looked at: its header; its structure to the end, undecoded; or its pixels, too.

With `strict` a JPEG that libjpeg warns of is damaged.
"""

CHANNELS: Final = {"1": 1, "L": 1, "P": 1, "I;16": 1, "LA": 2, "RGB": 3, "RGBA": 4, "CMYK": 4}
"""Bands of the Pillow modes that the five formats have: a palette image has one, as stored."""


UPRIGHT: Final = 1
"""The EXIF orientation of a picture that is stored as it is shown."""


class ImageFacts(NamedTuple):
    """The header of an image; a tuple and no dataclass, since one is made for every image.

    `format` is lower case; `width` and `height` are pixels as stored (an EXIF orientation is not applied);
    `colorspace` is Pillow's mode and `channels` its number of bands; `animated` means more than one frame. `warning` is
    what libjpeg warned of when it was decoded. `orientation` (1 to 8) is that of its EXIF.
    """

    format: str
    width: int
    height: int
    channels: int
    colorspace: str
    animated: bool = False
    warning: str | None = None
    orientation: int = UPRIGHT


class ImageProblem(Exception):
    """Why one file cannot become a record; no error of the tree, since it always becomes a reject with this code."""

    def __init__(self, code: str, message: str, *, value: object = "", expected: str = "an image") -> None:
        super().__init__(message)
        self.code = code
        self.value = value
        self.expected = expected

    def to_cell_error(self, column: str | None = None) -> CellError:
        """Return the reject's form of this problem; the value is escaped and cut."""
        return CellError(column, self.code, printable(self.value), self.expected, str(self))


def truncated(kind: str, size: int, missing: str) -> ImageProblem:
    """Return the problem of a file of `size` bytes that ends too early; `missing` is what was still to come."""
    message = f"the {kind} is cut short: {missing}; copy it again, or leave it out"
    return ImageProblem("TRUNCATED", message, value=f"{size} bytes", expected=f"a whole {kind}")


def corrupt(kind: str, what: str, value: object = "") -> ImageProblem:
    message = f"the {kind} is damaged: {what}; copy it again, or leave it out"
    return ImageProblem("CORRUPT", message, value=value, expected=f"an undamaged {kind}")


def unsupported(kind: str, what: str, value: object = "") -> ImageProblem:
    """Return the problem of an image of a known kind that TensorFlow does not read; `what` ends with the fix."""
    return ImageProblem("UNSUPPORTED", f"{kind}: {what}", value=value, expected="an image that TensorFlow decodes")


def too_many_pixels(width: int, height: int, limit: int) -> ImageProblem:
    message = f"{width} x {height} pixels are more than limits.pixels = {limit}; raise it if they are meant"
    return ImageProblem("TOO_MANY_PIXELS", message, value=f"{width}x{height}", expected=f"at most {limit} pixels")


# The EXIF orientation of a picture: read from the block that the walks of `structure` find.
#
#     JPEG    FF E1 len "Exif" 0 0 ...    a segment before the picture's data (CIPA DC-008, 4.5.4)
#     PNG     len "eXIf" ... CRC          a chunk (PNG, third edition, 11.3.3.3)
#     WebP    "EXIF" len ...              a chunk of the container (RFC 9649, 2.7.1.4)
#
# A block that cannot be read, or a number that is none, is orientation 1.


ORIENTATION: Final = 0x0112
EXIF: Final = b"Exif\x00\x00"
"""How a block begins in JPEG, and often elsewhere."""


def orientation_in(block: Content) -> int:
    """Return the orientation that an EXIF block states: a TIFF header, then the entries of its first directory."""
    tiff = block[len(EXIF) :] if block[: len(EXIF)] == EXIF else block
    order = {b"II*\0": "<", b"MM\0*": ">"}.get(bytes(tiff[:4]))
    if order is None:
        return UPRIGHT
    try:
        (first,) = struct.unpack_from(f"{order}I", tiff, 4)
        (count,) = struct.unpack_from(f"{order}H", tiff, first)
        for at in range(first + 2, first + 2 + 12 * count, 12):
            tag, kind, values, value = struct.unpack_from(f"{order}HHIH", tiff, at)
            if tag == ORIENTATION:
                return value if (kind, values) == (3, 1) and 1 <= value <= 8 else UPRIGHT
    except struct.error:  # the block ends within its directory
        pass
    return UPRIGHT


# What a user should know of images that are written: counted by file, and shown at the end of a run.


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
