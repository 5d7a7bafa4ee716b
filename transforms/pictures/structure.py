"""Check that a picture is whole, and say what it is: by header and structure, in each format, or decoded."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from isal.isal_zlib import crc32

from ..errors import UsageError
from ..format.wording.hints import Set, install_line
from ..format.wording.printable import printable
from .facts import (
    CHANNELS,
    EXIF,
    UPRIGHT,
    Check,
    Content,
    ImageFacts,
    ImageProblem,
    corrupt,
    orientation_in,
    too_many_pixels,
    truncated,
    unsupported,
)
from .pillow_decode import HEIC, PILLOW_NAMES, SOUND, decode_image, has_simplejpeg, jpeg_warning

# Detect the format of an image by its content, and whether it is whole.
#
#     bytes ──tell──▶ jpeg | png | gif | webp | bmp ──▶ header or structure rules ──▶ ImageFacts
#                     tiff | avif | jpeg2000, where `formats` names them ──▶ Pillow
#                     anything else ──▶ NOT_AN_IMAGE or UNSUPPORTED
#
# The name of the file plays no part. The five formats are read without Pillow, in about 2 us for a JPEG; `decode` then
# also loads the pixels. The others have no rules here, so they are loaded where more than the header is asked for.


DEFAULT_FORMATS: Final = ("jpeg", "png", "gif", "webp", "bmp")
"""The formats that pass unless a config says otherwise; TensorFlow reads these and no others."""

READABLE_FORMATS: Final = (*DEFAULT_FORMATS, "tiff", "avif", HEIC, "jpeg2000")
"""The formats that pass where all pictures are written in one of TensorFlow's."""

CHECKS: Final = ("header", "structure", "decode", "strict")
DECODED: Final = ("decode", "strict")

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


# JPEG (ITU T.81, annex B)
#
#   FF D8 | FF E1 len ... | FF DB len ... | FF C0 len P Y X N ... | FF C4 len ... | FF DA len ... | entropy data | FF D9
#    SOI      APP1            DQT             SOF0: the header        DHT             SOS           FF is stuffed    EOI
#
# In entropy data FF is followed by 00 or a restart marker, so FF D9 after the first SOS ends the picture. A cut file
# lacks it; whatever comes after it (a second picture, a maker's trailer) is allowed. Flipped bits inside the entropy
# data cannot be seen: the format carries no checksum.

_SEGMENT: Final = struct.Struct(">BBH").unpack_from
_JPEG_FRAME: Final = struct.Struct(">HBHHB").unpack_from
_PASSED_OVER: Final = "decoders may pass over that"
_EOI: Final = b"\xff\xd9"
_EOI_PATTERN: Final = re.compile(_EOI)
_SOS: Final = 0xDA
_APP1: Final = 0xE1
_FRAMES: Final = frozenset({0xC0, 0xC1, 0xC2})
_OTHER_FRAMES: Final = {
    0xC3: "lossless", 0xC5: "hierarchical", 0xC6: "hierarchical", 0xC7: "hierarchical", 0xC9: "arithmetic-coded",
    0xCA: "arithmetic-coded", 0xCB: "lossless", 0xCD: "hierarchical", 0xCE: "hierarchical", 0xCF: "hierarchical",
}  # fmt: skip
_STEPS: Final = {0xFF: 1, 0x01: 2} | dict.fromkeys(range(0xD0, 0xD8), 2)
"""How far to step over what has no length: a fill byte (any number may be before a marker), TEM, RST0 to RST7."""
_REFUSED: Final = frozenset(_OTHER_FRAMES) | {0x00, 0xD8, 0xD9}
_JPEG_MODES: Final = {1: "L", 3: "RGB", 4: "CMYK"}


def check_jpeg(data: Content, *, structure: bool) -> ImageFacts:
    """Return the facts of a JPEG file; with `structure`, only if it is whole up to its end marker."""
    facts: ImageFacts | None = None
    position, turn = 2, UPRIGHT
    try:
        while True:
            lead, marker, length = _SEGMENT(data, position)
            if lead != 0xFF:
                raise _junk(f"no marker at byte {position}", f"{lead:#04x}")
            if marker in _FRAMES:
                facts = _jpeg_frame(data, position, facts)
                if not structure:
                    break
            elif marker == _SOS:
                break
            elif marker in _STEPS:
                position += _STEPS[marker]
                continue
            elif marker in _REFUSED or length < 2:
                raise _refusal(marker, length, position)
            elif marker == _APP1 and turn == UPRIGHT:
                turn = _orientation(data[position + 4 : position + 2 + length])
            position += 2 + length
    except struct.error:
        missing = "its frame header is missing" if facts is None else "its picture data is missing"
        raise truncated("JPEG", len(data), missing) from None
    if facts is None:
        raise corrupt("JPEG", "picture data without a frame header")
    if structure:
        _check_jpeg_end(data, position + 2 + length)
    return facts if turn == UPRIGHT else facts._replace(orientation=turn)


def _orientation(segment: Content) -> int:
    return orientation_in(segment) if segment[: len(EXIF)] == EXIF else UPRIGHT  # others are XMP


def _refusal(marker: int, length: int, position: int) -> ImageProblem:
    if marker in _OTHER_FRAMES:
        return unsupported("JPEG", f"{_OTHER_FRAMES[marker]} coding; convert it to a baseline JPEG", f"{marker:#04x}")
    if marker in _REFUSED:
        return _junk(f"marker {marker:#04x} at byte {position}, before the picture", f"{marker:#04x}")
    return corrupt("JPEG", f"a segment of length {length} at byte {position}")


def _junk(what: str, value: str) -> ImageProblem:
    return corrupt("JPEG", f"{what} ({_PASSED_OVER}: {Set('input.check', 'decode')})", value)


def may_be_passed_over(problem: ImageProblem, data: Content) -> bool:
    """Return whether a problem is junk before a marker, which decoders pass over, in a file that has an end marker."""
    return _PASSED_OVER in str(problem) and _EOI_PATTERN.search(data, len(data) // 2) is not None


def _jpeg_frame(data: Content, position: int, before: ImageFacts | None) -> ImageFacts:
    if before is not None:
        raise corrupt("JPEG", f"a second frame header at byte {position}")
    length, precision, height, width, components = _JPEG_FRAME(data, position + 2)
    if precision != 8:
        raise unsupported("JPEG", f"{precision} bits per sample; convert it to 8", precision)
    if components not in _JPEG_MODES:
        raise unsupported("JPEG", f"{components} components; 1, 3 and 4 are read", components)
    if length != 8 + 3 * components:
        raise corrupt("JPEG", f"its frame header has length {length}, not {8 + 3 * components}")
    if not height:
        raise unsupported("JPEG", "its height comes after the picture (DNL); convert it")
    if not width:
        raise corrupt("JPEG", "a width of 0")
    return ImageFacts("jpeg", width, height, components, _JPEG_MODES[components])


def _check_jpeg_end(data: Content, scan: int) -> None:
    """Check that the end marker follows the scan that begins at byte `scan`."""
    end = len(data) - 2
    if data[-2:] != _EOI:
        found = _EOI_PATTERN.search(data, scan)  # a view has no `find`
        end = found.start() if found else -1
    if end < 0 or scan > len(data):
        raise truncated("JPEG", len(data), "its end marker FF D9 is missing")
    if end <= scan:
        raise corrupt("JPEG", "no picture data before its end marker")


# PNG (W3C PNG, section 5)
#
#     89 P N G ... | 13 IHDR ... crc | n PLTE ... crc | n IDAT ... crc | n IDAT ... crc | 0 IEND crc
#      signature     first, legal      (type 3 needs)   at least one, CRCs right           last
#
# Each chunk ends with the CRC-32 of its type and data: those of the critical chunks (upper-case first letter) are
# checked, and those of tRNS. Other ancillary chunks (text, colour profile, EXIF) are only stepped over: decoders ignore
# damaged ones.

PNG_SIGNATURE: Final = b"\x89PNG\r\n\x1a\n"
_PNG_HEADER: Final = struct.Struct(">I4sIIBBBBBI").unpack_from
_PNG_CHUNK: Final = struct.Struct(">I4s").unpack_from
_PNG_CRC: Final = struct.Struct(">I").unpack_from
_LARGEST_SIDE: Final = 2**31 - 1
_CHECKED: Final = frozenset({b"PLTE", b"IDAT", b"IEND", b"tRNS"})
"""Chunks after the header that decide the pixels; tRNS is ancillary by name, but a damaged one changes them too."""
_PNG_MODES: Final = {
    (1, 0): "1", (2, 0): "L", (4, 0): "L", (8, 0): "L", (16, 0): "I;16",
    (8, 2): "RGB", (16, 2): "RGB",
    (1, 3): "P", (2, 3): "P", (4, 3): "P", (8, 3): "P",
    (8, 4): "LA", (16, 4): "RGBA",
    (8, 6): "RGBA", (16, 6): "RGBA",
}  # fmt: skip
"""Pillow's mode of each legal (bit depth, colour type); 16-bit grey with alpha is RGBA there."""


def check_png(data: Content, *, structure: bool) -> ImageFacts:
    """Return the facts of a PNG file; with `structure`, only if it is whole and its critical CRCs are right."""
    try:
        length, kind, width, height, depth, colour, compression, filtering, interlace, crc = _PNG_HEADER(data, 8)
    except struct.error:
        raise truncated("PNG", len(data), "its header is incomplete") from None
    if kind != b"IHDR" or length != 13:
        raise corrupt("PNG", "its first chunk is not an IHDR of 13 bytes", kind)
    if crc32(memoryview(data)[12:29]) != crc:
        raise corrupt("PNG", "the CRC of its header (IHDR) is wrong")
    mode = _PNG_MODES.get((depth, colour))
    if mode is None:
        raise corrupt("PNG", f"bit depth {depth} with colour type {colour}")
    if compression or filtering or interlace > 1:
        raise corrupt("PNG", f"compression {compression}, filter {filtering}, interlace {interlace}")
    if not (0 < width <= _LARGEST_SIDE and 0 < height <= _LARGEST_SIDE):
        raise corrupt("PNG", f"a size of {width} x {height}")
    animated, turn = _walk_png(data, needs_palette=colour == 3) if structure else (False, UPRIGHT)
    return ImageFacts("png", width, height, CHANNELS[mode], mode, animated, orientation=turn)


def _walk_png(data: Content, *, needs_palette: bool) -> tuple[bool, int]:
    """Walk the chunks after the header to IEND; return whether the file is an animation (APNG), and its orientation."""
    view = memoryview(data)
    size = len(data)
    position = 33
    palette = animated = False
    turn = UPRIGHT
    before_picture = True
    while True:
        if position + 12 > size:
            raise truncated("PNG", size, "its end chunk IEND is missing")
        length, kind = _PNG_CHUNK(data, position)
        end = position + 8 + length
        if end + 4 > size:
            raise truncated("PNG", size, f"its chunk {printable(kind)} at byte {position} is incomplete")
        if kind in _CHECKED:
            if crc32(view[position + 4 : end]) != _PNG_CRC(data, end)[0]:
                raise corrupt("PNG", f"the CRC of its chunk {kind.decode()} at byte {position} is wrong")
            if kind == b"IEND":
                break
            before_picture = before_picture and kind != b"IDAT"
            palette = palette or (kind == b"PLTE" and before_picture)
        elif kind == b"acTL" and length >= 4:
            animated = _PNG_CRC(data, position + 8)[0] > 1
        elif kind == b"eXIf" and turn == UPRIGHT:
            turn = orientation_in(view[position + 8 : end])
        elif not kind[0] & 0x20 or kind.upper() in _CHECKED:
            raise _strange_chunk(kind, position)
        position = end + 4
    if before_picture:
        raise corrupt("PNG", "it has no picture data (IDAT)")
    if needs_palette and not palette:
        raise corrupt("PNG", "its palette (PLTE) is missing")
    return animated, turn


def _strange_chunk(kind: bytes, position: int) -> ImageProblem:
    if kind == b"CgBI":
        return unsupported("PNG", "Apple's CgBI variant, which no decoder but Apple's reads; convert it", kind)
    return corrupt("PNG", f"a chunk of an unknown critical type at byte {position}", kind)


# GIF (GIF89a specification)
#
#     GIF89a | screen | colours? | 21 label n ... 0 | 2C frame colours? lzw n ... n ... 0 | 3B
#              descriptor          extension          at least one frame                   trailer
#
# What follows the trailer is allowed.

_SCREEN: Final = struct.Struct("<HHB").unpack_from
_GIF_FRAME: Final = struct.Struct("<HHHHB").unpack_from
_GREYS: Final = bytes(level for level in range(256) for _ in range(3))


def check_gif(data: Content, *, structure: bool) -> ImageFacts:
    """Return the facts of a GIF file; with `structure`, only if its blocks are whole up to the trailer.

    The size is that of the screen, or of the first frame where that is larger; the mode is `P`, or `L` where the first
    frame's palette counts up the greys.
    """
    facts: ImageFacts | None = None
    frames = 0
    try:
        width, height, flags = _SCREEN(data, 6)
        colours = _gif_colours(data, 13, flags)
        position = 13 + len(colours)
        while (kind := data[position]) != 0x3B:
            if kind == 0x21:
                position = _skip_gif_blocks(data, position + 2)
            elif kind == 0x2C:
                left, top, frame_width, frame_height, flags = _GIF_FRAME(data, position + 1)
                own = _gif_colours(data, position + 10, flags)
                if facts is None:
                    mode = "L" if _GREYS.startswith(own or colours) else "P"
                    size = max(width, left + frame_width), max(height, top + frame_height)
                    facts = ImageFacts("gif", *size, 1, mode)
                    if not structure:
                        break
                frames += 1
                position = _skip_gif_blocks(data, position + 11 + len(own))
            else:
                raise corrupt("GIF", f"an unknown block at byte {position}", f"{kind:#04x}")
    except (struct.error, IndexError):
        raise truncated("GIF", len(data), "its trailer is missing") from None
    if facts is None:
        raise corrupt("GIF", "it holds no frame")
    if not (facts.width and facts.height):
        raise corrupt("GIF", f"a size of {facts.width} x {facts.height}")
    return facts._replace(animated=True) if frames > 1 else facts


def _gif_colours(data: Content, position: int, flags: int) -> bytes:
    if not flags & 0x80:
        return b""
    size = 3 << ((flags & 7) + 1)
    colours = bytes(data[position : position + size])
    if len(colours) < size:
        raise IndexError
    return colours


def _skip_gif_blocks(data: Content, position: int) -> int:
    """Return the position after a series of blocks, each its size and as many bytes, ended by a size of 0."""
    while size := data[position]:
        position += 1 + size
    return position + 1


# WebP (RFC 9649)
#
#     RIFF size WEBP | VP8  n frame                                   lossy
#                    | VP8L n bits                                    lossless
#                    | VP8X 10 flags canvas | ICCP? | ALPH? VP8  ...  extended: still, or ANIM with ANMF frames
#
# Chunks fill up to even sizes. WebP carries no checksum: a zeroed tail shows only when it is decoded.

_WEBP_CHUNK: Final = struct.Struct("<4sI").unpack_from
_WEBP_SIZE: Final = struct.Struct("<I").unpack_from
_LOSSY: Final = struct.Struct("<HB3sHH").unpack_from
_LOSSLESS: Final = struct.Struct("<BI").unpack_from
_ALPHA: Final = 0x10


def check_webp(data: Content, *, structure: bool) -> ImageFacts:
    """Return the facts of a WebP file; with `structure`, only if its chunks fill it as their lengths say."""
    try:
        end = 8 + _WEBP_SIZE(data, 4)[0]
        kind, size = _WEBP_CHUNK(data, 12)
        if kind == b"VP8X":
            facts = _webp_canvas(data, size)
        elif kind in (b"VP8 ", b"VP8L"):
            width, height, alpha = _webp_picture(data, 12)
            facts = _webp_facts(width, height, alpha=alpha)
        else:
            raise corrupt("WebP", "its first chunk is none of VP8, VP8L, VP8X", kind)
    except struct.error:
        raise truncated("WebP", len(data), "its header is incomplete") from None
    if not structure:
        return facts
    if end > len(data):
        raise truncated("WebP", len(data), f"{end} bytes are announced")
    return _walk_webp(data, end, facts)


def _webp_facts(width: int, height: int, *, alpha: bool) -> ImageFacts:
    return ImageFacts("webp", width, height, 4 if alpha else 3, "RGBA" if alpha else "RGB")


def _webp_canvas(data: Content, size: int) -> ImageFacts:
    if size < 10:
        raise corrupt("WebP", f"its VP8X chunk has {size} bytes, not 10")
    flags = _WEBP_SIZE(data, 20)[0]
    width = _WEBP_SIZE(data, 23)[0] >> 8  # three bytes each, little-endian, minus one
    height = _WEBP_SIZE(data, 26)[0] >> 8
    return _webp_facts(width + 1, height + 1, alpha=bool(flags & _ALPHA))


def _webp_picture(data: Content, position: int) -> tuple[int, int, bool]:
    """Return width, height and alpha of the VP8 or VP8L chunk at a position."""
    kind, size = _WEBP_CHUNK(data, position)
    if kind == b"VP8L":
        signature, bits = _LOSSLESS(data, position + 8)
        if signature != 0x2F or bits >> 29 or size < 5:
            raise corrupt("WebP", f"the header of its VP8L chunk at byte {position} is wrong")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1, bool(bits >> 28 & 1)
    low, high, start, width, height = _LOSSY(data, position + 8)
    width, height = width & 0x3FFF, height & 0x3FFF  # the two upper bits ask for scaling
    if low & 1 or start != b"\x9d\x01\x2a" or (low | high << 16) >> 5 > size - 10 or not (width and height):
        raise corrupt("WebP", f"the header of its VP8 chunk at byte {position} is wrong")
    return width, height, False


def _walk_webp(data: Content, end: int, facts: ImageFacts) -> ImageFacts:
    position = 12
    pictures = frames = 0
    turn = UPRIGHT
    try:
        while position + 8 <= end:
            kind, size = _WEBP_CHUNK(data, position)
            if position + 8 + size > end:
                raise corrupt("WebP", f"its chunk {kind!r} at byte {position} is longer than the file says")
            if kind in (b"VP8 ", b"VP8L"):
                pictures += 1
                if _webp_picture(data, position)[:2] != (facts.width, facts.height):
                    raise corrupt("WebP", "canvas and picture differ in size")
            elif kind == b"ANMF":
                frames += 1
            elif kind == b"EXIF" and turn == UPRIGHT:
                turn = orientation_in(data[position + 8 : position + 8 + size])
            position += 8 + size + (size & 1)
    except struct.error:
        raise truncated("WebP", len(data), "its picture is incomplete") from None
    if position < end:
        raise corrupt("WebP", f"{end - position} bytes that are not a chunk at byte {position}")
    if pictures + frames == 0 or pictures > 1 or (pictures and frames):
        raise corrupt("WebP", f"{pictures} pictures and {frames} frames")
    return facts._replace(animated=frames > 1, orientation=turn) if frames > 1 or turn != UPRIGHT else facts


# BMP (Windows bitmap headers, versions 1 to 5)
#
#     BM size 0 offset | header size, width, height, planes, bits, compression ... | masks? palette? | rows, padded to 4
#
# Read are 8, 24 and 32 bits without compression, which is what TensorFlow reads. A negative height means that the top
# row comes first. BMP carries no checksum.

BMP_HEADER_SIZES: Final = frozenset({12, 40, 52, 56, 64, 108, 124})
_START: Final = struct.Struct("<II").unpack_from
_CORE: Final = struct.Struct("<HHHH").unpack_from
_INFO: Final = struct.Struct("<iiHHI").unpack_from
_COLOURS: Final = struct.Struct("<I").unpack_from
_MASKS: Final = struct.Struct("<IIII").unpack_from
_BGR: Final = (0xFF0000, 0xFF00, 0xFF)
_RAW, _BITFIELDS = 0, 3


def check_bmp(data: Content, *, structure: bool) -> ImageFacts:
    """Return the facts of a BMP file; with `structure`, only if its pixel bytes fit into the file."""
    try:
        offset, header = _START(data, 10)
        if header == 12:
            width, height, _, bits = _CORE(data, 18)
            compression = _RAW
        else:
            width, height, _, bits, compression = _INFO(data, 18)
        if bits not in (8, 24, 32):
            raise unsupported("BMP", f"{bits} bits a pixel; 8, 24 and 32 are read: convert it", bits)
        mode = "RGB"
        if bits == 8:
            mode, offset = _bmp_palette(data, header, offset)
        if compression == _BITFIELDS and bits == 32:
            mode = _bmp_bitfields(data, header)
        elif compression != _RAW:
            raise unsupported("BMP", f"compression {compression}; convert it to an uncompressed one", compression)
    except struct.error:
        raise truncated("BMP", len(data), "its header is incomplete") from None
    height = abs(height)
    if width <= 0 or not height:
        raise corrupt("BMP", f"a size of {width} x {height}")
    if structure:
        if offset < 14 + header:
            raise corrupt("BMP", f"its pixels begin at byte {offset}, inside its header")
        needed = offset + (width * bits + 31) // 32 * 4 * height
        if needed > len(data):
            raise truncated("BMP", len(data), f"its pixels end at byte {needed}")
    return ImageFacts("bmp", width, height, CHANNELS[mode], mode)


def _bmp_palette(data: Content, header: int, offset: int) -> tuple[str, int]:
    """Return the mode that an 8-bit palette means, and the offset of the pixels.

    A palette that counts up the greys is `L`, any other `P`. Where the offset names the palette, the pixels follow it.
    """
    entry = 3 if header == 12 else 4
    colours = (0 if header == 12 else _COLOURS(data, 46)[0]) or 256
    if colours > 65536:
        raise corrupt("BMP", f"a palette of {colours} colours", colours)
    start = 14 + header
    palette = bytes(data[start : start + entry * colours])
    if len(palette) < entry * colours:
        raise truncated("BMP", len(data), "its palette is incomplete")
    if colours > 256:
        mode = "P"
    else:
        greys = b"\x00\xff" if colours == 2 else bytes(range(colours))
        grey = all(palette[band::entry] == greys for band in range(3))
        mode = ("1" if colours == 2 else "L") if grey else "P"
    return mode, offset + entry * colours if offset == start else offset


def _bmp_bitfields(data: Content, header: int) -> str:
    """Return the mode of 32-bit pixels with channel masks: blue, green, red, and alpha or nothing."""
    red, green, blue, alpha = _MASKS(data, 54)
    if header < 56:
        alpha = 0  # older headers have three masks; what follows them is no fourth
    if (red, green, blue) != _BGR or alpha not in (0, 0xFF000000):
        raise unsupported("BMP", "channel masks other than blue, green, red; convert it")
    return "RGBA" if alpha else "RGB"


_CHECKERS: Final[dict[str, Callable[..., ImageFacts]]] = {
    "jpeg": check_jpeg,
    "png": check_png,
    "gif": check_gif,
    "webp": check_webp,
    "bmp": check_bmp,
}
