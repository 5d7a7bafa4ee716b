"""PNG: the header and the structure of a file, without inflating it (W3C PNG, section 5).

    89 P N G ... | 13 IHDR ... crc | n PLTE ... crc | n IDAT ... crc | n IDAT ... crc | 0 IEND crc
     signature     first, legal      (type 3 needs)   at least one, CRCs right           last

Each chunk ends with the CRC-32 of its type and data: those of the critical chunks (upper-case first letter) are
checked, and those of tRNS. Other ancillary chunks (text, colour profile, EXIF) are only stepped over: decoders ignore
damaged ones.
"""

from __future__ import annotations

import struct
from typing import Final

from isal.isal_zlib import crc32  # several times as fast as zlib's own

from ..format.wording.printable import printable
from .facts import CHANNELS, UPRIGHT, Content, ImageFacts, ImageProblem, corrupt, orientation_in, truncated, unsupported

PNG_SIGNATURE: Final = b"\x89PNG\r\n\x1a\n"
_HEADER: Final = struct.Struct(">I4sIIBBBBBI").unpack_from
_CHUNK: Final = struct.Struct(">I4s").unpack_from
_CRC: Final = struct.Struct(">I").unpack_from
_LARGEST_SIDE: Final = 2**31 - 1
_CHECKED: Final = frozenset({b"PLTE", b"IDAT", b"IEND", b"tRNS"})
"""Chunks after the header that decide the pixels; tRNS is ancillary by name, but a damaged one changes them too."""
_MODES: Final = {
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
        length, kind, width, height, depth, colour, compression, filtering, interlace, crc = _HEADER(data, 8)
    except struct.error:
        raise truncated("PNG", len(data), "its header is incomplete") from None
    if kind != b"IHDR" or length != 13:
        raise corrupt("PNG", "its first chunk is not an IHDR of 13 bytes", kind)
    if crc32(memoryview(data)[12:29]) != crc:
        raise corrupt("PNG", "the CRC of its header (IHDR) is wrong")
    mode = _MODES.get((depth, colour))
    if mode is None:
        raise corrupt("PNG", f"bit depth {depth} with colour type {colour}")
    if compression or filtering or interlace > 1:
        raise corrupt("PNG", f"compression {compression}, filter {filtering}, interlace {interlace}")
    if not (0 < width <= _LARGEST_SIDE and 0 < height <= _LARGEST_SIDE):
        raise corrupt("PNG", f"a size of {width} x {height}")
    animated, turn = _walk(data, needs_palette=colour == 3) if structure else (False, UPRIGHT)
    return ImageFacts("png", width, height, CHANNELS[mode], mode, animated, orientation=turn)


def _walk(data: Content, *, needs_palette: bool) -> tuple[bool, int]:
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
        length, kind = _CHUNK(data, position)
        end = position + 8 + length
        if end + 4 > size:
            raise truncated("PNG", size, f"its chunk {printable(kind)} at byte {position} is incomplete")
        if kind in _CHECKED:
            if crc32(view[position + 4 : end]) != _CRC(data, end)[0]:
                raise corrupt("PNG", f"the CRC of its chunk {kind.decode()} at byte {position} is wrong")
            if kind == b"IEND":
                break
            before_picture = before_picture and kind != b"IDAT"
            palette = palette or (kind == b"PLTE" and before_picture)
        elif kind == b"acTL" and length >= 4:
            animated = _CRC(data, position + 8)[0] > 1
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
