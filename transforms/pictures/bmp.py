"""BMP: the header and the size of a file (Windows bitmap headers, versions 1 to 5).

    BM size 0 offset | header size, width, height, planes, bits, compression ... | masks? palette? | rows, padded to 4

Read are 8, 24 and 32 bits without compression, which is what TensorFlow reads. A negative height means that the top row
comes first. BMP carries no checksum.
"""

from __future__ import annotations

import struct
from typing import Final

from .facts import CHANNELS, Content, ImageFacts, corrupt, truncated, unsupported

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
            mode, offset = _palette(data, header, offset)
        if compression == _BITFIELDS and bits == 32:
            mode = _bitfields(data, header)
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


def _palette(data: Content, header: int, offset: int) -> tuple[str, int]:
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


def _bitfields(data: Content, header: int) -> str:
    """Return the mode of 32-bit pixels with channel masks: blue, green, red, and alpha or nothing."""
    red, green, blue, alpha = _MASKS(data, 54)
    if header < 56:
        alpha = 0  # older headers have three masks; what follows them is no fourth
    if (red, green, blue) != _BGR or alpha not in (0, 0xFF000000):
        raise unsupported("BMP", "channel masks other than blue, green, red; convert it")
    return "RGBA" if alpha else "RGB"
