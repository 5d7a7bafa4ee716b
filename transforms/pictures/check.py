"""Detect the format of an image by its content, and whether it is whole.

    bytes ──tell──▶ jpeg | png | gif | webp | bmp ──▶ header or structure rules (structure.py) ──▶ ImageFacts
                    tiff | avif | jpeg2000, where `formats` names them ──▶ Pillow
                    anything else ──▶ NOT_AN_IMAGE or UNSUPPORTED

The name of the file plays no part. The five formats are read without Pillow, in about 2 us for a JPEG; `decode` then
also loads the pixels. The others have no rules here, so they are loaded where more than the header is asked for.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from ..errors import UsageError
from ..format.wording.hints import Set, install_line
from .facts import Check, Content, ImageFacts, ImageProblem, corrupt, too_many_pixels, unsupported
from .pillow_decode import HEIC, PILLOW_NAMES, SOUND, decode_image, has_simplejpeg, jpeg_warning
from .structure import (
    BMP_HEADER_SIZES,
    PNG_SIGNATURE,
    check_bmp,
    check_gif,
    check_jpeg,
    check_png,
    check_webp,
    may_be_passed_over,
)

DEFAULT_FORMATS: Final = ("jpeg", "png", "gif", "webp", "bmp")
"""The formats that pass unless a config says otherwise; TensorFlow reads these and no others."""

READABLE_FORMATS: Final = (*DEFAULT_FORMATS, "tiff", "avif", HEIC, "jpeg2000")
"""The formats that pass where all pictures are written in one of TensorFlow's."""

CHECKS: Final = ("header", "structure", "decode", "strict")
DECODED: Final = ("decode", "strict")

_CHECKERS: Final[dict[str, Callable[..., ImageFacts]]] = {
    "jpeg": check_jpeg,
    "png": check_png,
    "gif": check_gif,
    "webp": check_webp,
    "bmp": check_bmp,
}
_FOREIGN: Final = {
    "pnm": re.compile(rb"P[1-6]\s+[0-9#]"),
    "psd": re.compile(rb"8BPS\x00[\x01\x02]"),
    "exr": re.compile(rb"\x76\x2f\x31\x01"),
}
"""Formats that are named, and not read."""

_BOX: Final = struct.Struct(">I4s").unpack_from


@dataclass(frozen=True, slots=True)
class ImageCheck:
    """Checks the bytes of a file: the level, the formats that pass, and the largest number of pixels.

    With `by_key` the formats that pass are those of `input.formats`. Without `loads_others` only the headers of formats
    without rules are read, as they are decoded later.

    Raises:
        UsageError: the level or a format is unknown, or what the level needs is not installed.
    """

    level: Check = "structure"
    formats: tuple[str, ...] = DEFAULT_FORMATS
    pixels_limit: int = 50_000_000
    loads_others: bool = True
    by_key: bool = True

    def __post_init__(self) -> None:
        if self.level not in CHECKS:
            raise UsageError(f'input.check: "{self.level}" is not a check; choose one of {", ".join(CHECKS)}')
        if self.level == "strict" and not has_simplejpeg():
            raise UsageError(f"input.check: strict takes simplejpeg, which is not installed; {install_line('images')}")
        if not self.formats:
            raise UsageError(f"input.formats is empty; choose from {', '.join(PILLOW_NAMES)}")
        for name in self.formats:
            if name not in PILLOW_NAMES:
                raise UsageError(f'input.formats: "{name}" is not a format; choose from {", ".join(PILLOW_NAMES)}')

    def check(self, data: Content) -> ImageFacts:
        name = tell_image_format(data)
        if name is None:
            what = "the file is empty" if not data else "the content is not an image of a known format"
            raise ImageProblem("NOT_AN_IMAGE", what, value=bytes(data[:32]))
        if name not in self.formats:
            raise _not_passed(name, by_key=self.by_key)
        checker = _CHECKERS.get(name)
        if checker is None:
            load = self.level in DECODED or (self.level == "structure" and self.loads_others)
            return decode_image(data, name, pixels_limit=self.pixels_limit, load=load)
        try:
            facts = checker(data, structure=self.level != "header")
        except ImageProblem as problem:
            if self.level not in DECODED or not may_be_passed_over(problem, data):
                raise
            return self._decoded(data, name)
        if facts.width * facts.height > self.pixels_limit:
            raise too_many_pixels(facts.width, facts.height, self.pixels_limit)
        return facts._replace(warning=self._decoded(data, name).warning) if self.level in DECODED else facts

    def _decoded(self, data: Content, name: str) -> ImageFacts:
        """Return the facts of an image after decoding it: a JPEG once, unless there is a warning."""
        if name != "jpeg":
            return decode_image(data, name, pixels_limit=self.pixels_limit, load=True)
        facts = decode_image(data, name, pixels_limit=self.pixels_limit, load=False)
        warning = jpeg_warning(data, facts.width * facts.height)
        if warning == SOUND:
            return facts
        decode_image(data, name, pixels_limit=self.pixels_limit, load=True)
        return self.judged(facts._replace(warning=warning))

    def judged(self, facts: ImageFacts) -> ImageFacts:
        """Return the facts of a decoded image; with `strict` a warning of libjpeg's is an `ImageProblem`."""
        if self.level == "strict" and facts.warning:
            raise corrupt("JPEG", f"libjpeg warns: {facts.warning} (input.check=decode accepts it)")
        return facts


def tell_image_format(data: Content) -> str | None:
    r"""Return the lower-case name of the format that the first bytes are the signature of, or None.

    >>> tell_image_format(b"\xff\xd8\xff\xe0"), tell_image_format(b"<svg>")
    ('jpeg', None)
    """
    start = bytes(data[:18])
    if start.startswith(b"\xff\xd8\xff"):
        return "jpeg"
    if start.startswith(PNG_SIGNATURE):
        return "png"
    if start.startswith((b"GIF89a", b"GIF87a")):
        return "gif"
    if start.startswith(b"RIFF") and start[8:12] == b"WEBP":
        return "webp"
    if start.startswith(b"BM") and int.from_bytes(start[14:], "little") in BMP_HEADER_SIZES:
        return "bmp"  # two letters alone would take any text that begins with them
    if start.startswith((b"II*\x00", b"MM\x00*", b"II+\x00", b"MM\x00+")):
        return "tiff"
    if start.startswith((b"\x00\x00\x00\x0cjP  \r\n\x87\n", b"\xff\x4f\xff\x51")):
        return "jpeg2000"
    for name, signature in _FOREIGN.items():
        if signature.match(start):
            return name
    if start.startswith(b"\x00\x00\x00\x0cJXL \r\n\x87\n"):
        return "jxl"
    return _tell_heif(data) if start[4:8] == b"ftyp" else None


def _tell_heif(data: Content) -> str | None:
    """Return `avif` or `heic` for a HEIF file: a `ftyp` box with a picture's brand, and a `meta` box after it."""
    size = int.from_bytes(data[:4], "big")
    brands = {bytes(data[i : i + 4]) for i in range(8, min(size, 256), 4)}
    name = "avif" if brands & {b"avif", b"avis"} else "heic" if brands & {b"heic", b"heix", b"mif1", b"hevc"} else None
    position = size
    while size >= 8 and position + 8 <= len(data):
        size, kind = _BOX(data, position)
        if kind == b"meta":
            return name
        position += size
    return None


def _not_passed(name: str, *, by_key: bool) -> ImageProblem:
    if name in _CHECKERS:
        return unsupported(name, f"the format does not pass; add {name} to input.formats", name)
    if name in PILLOW_NAMES:
        fix = f"write all images as JPEG ({Set('image.encode.format', 'jpeg')})"
        fix += f", or let it pass: add {name} to input.formats" if by_key else ""
        return unsupported(name, f"TensorFlow cannot decode {name.upper()}; {fix}", name)
    return unsupported(name, "the format is not read; convert it to JPEG or PNG", name)
