"""Facts about an image from its bytes, and the words for its problems."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

from ..format.flow.rejects import CellError
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
