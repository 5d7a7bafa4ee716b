"""Facts about an image from its bytes, words for its problems, and what may be done to it; no library is imported."""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass, fields
from typing import Any, Final, Literal, NamedTuple

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


# The EXIF orientation of a picture: read from the block that the walks of `structure` find, and written.
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


def exif_block(orientation: int) -> bytes:
    from PIL import Image

    exif = Image.Exif()
    exif[ORIENTATION] = orientation
    return exif.tobytes()


def with_orientation(jpeg: bytes, orientation: int) -> bytes:
    """Return a JPEG file, which begins with its JFIF segment, with the orientation behind that."""
    block = exif_block(orientation)
    at = 4 + int.from_bytes(jpeg[4:6], "big")
    return b"".join((jpeg[:at], b"\xff\xe1", (len(block) + 2).to_bytes(2, "big"), block, jpeg[at:]))


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


# What may be done to pictures: the options of the section `image`, and how a manifest states them.


Mode = Literal["keep_ratio", "keep_ratio_largest", "center_crop", "border", "exact"]
Color = Literal["keep", "rgb", "gray"]
Format = Literal["keep", "jpeg", "png", "webp"]


@dataclass(frozen=True, slots=True)
class Resize:
    """How pictures get another size, in pixels: a side of `width` x `height`, which are equal for most modes."""

    width: int
    height: int
    mode: Mode = "keep_ratio"
    upscale: bool = False


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which pictures stay, by their header: None for no bound; sides and areas are of the stored picture, in pixels.

    `max_aspect` is the longer side over the shorter one.
    """

    min_side: int | None = None
    max_aspect: float | None = None
    min_pixels: int | None = None
    max_pixels: int | None = None

    @property
    def bounds(self) -> dict[str, int | float]:
        named = {one.name: getattr(self, one.name) for one in fields(self)}
        return {name: bound for name, bound in named.items() if bound is not None}

    def takes(self, width: int, height: int) -> bool:
        """Return whether a picture of this size stays.

        >>> Wanted(min_side=64, max_aspect=2.0).takes(200, 100), Wanted(max_aspect=2.0).takes(201, 100)
        (True, False)
        """
        short, long = sorted((width, height))
        return (
            (self.min_side is None or short >= self.min_side)
            and (self.max_aspect is None or long <= self.max_aspect * short)
            and (self.min_pixels is None or width * height >= self.min_pixels)
            and (self.max_pixels is None or width * height <= self.max_pixels)
        )


@dataclass(frozen=True, slots=True)
class Preprocess:
    """What is done to each picture of a row, in this order: left out, turned, resized, given its colours, encoded.

    Boxes were drawn on the stored picture, or on the turned one, as `boxes_on` says; None where the annotations say it.
    `masks` are the pictures whose pixels are numbers of classes: these are resized to their nearest pixels, and PNG.
    """

    resize: Resize | None = None
    format: Format = "keep"
    quality: int = 95
    orientation: Literal["keep", "apply"] = "keep"
    color: Color = "keep"
    wanted: Wanted = Wanted()
    masks: tuple[str, ...] = ()
    boxes_on: Literal["stored", "turned"] | None = None

    @property
    def changes_pictures(self) -> bool:
        """Whether a picture may be written otherwise than it is."""
        return (self.resize, self.format, self.orientation, self.color) != (None, "keep", "keep", "keep")

    def to_json(self) -> dict[str, Any]:
        """Return the steps as a manifest states them: scalars by option, without those at their defaults.

        >>> Preprocess(Resize(256, 256), color="rgb").to_json()
        {'resize': 256, 'mode': 'keep_ratio', 'color': 'rgb', 'quality': 95}
        """
        steps: dict[str, Any] = {}
        if self.resize is not None:
            one = self.resize
            square = one.width == one.height
            steps |= {"resize": one.width} if square else {"width": one.width, "height": one.height}
            steps |= {"mode": one.mode} | ({"upscale": True} if one.upscale else {})
        for name in ("format", "orientation", "color"):
            if (value := getattr(self, name)) != "keep":
                steps[name] = value
        steps |= {"quality": self.quality} if self.changes_pictures else {}
        steps |= {"boxes_on": self.boxes_on} if self.boxes_on is not None else {}
        steps |= self.wanted.bounds
        return steps | ({"masks": json.dumps(self.masks)} if self.masks else {})
