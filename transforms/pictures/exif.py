"""The EXIF orientation of a picture: read from the block that the walks of `jpeg`, `png` and `webp` find, and written.

    JPEG    FF E1 len "Exif" 0 0 ...    a segment before the picture's data (CIPA DC-008, 4.5.4)
    PNG     len "eXIf" ... CRC          a chunk (PNG, third edition, 11.3.3.3)
    WebP    "EXIF" len ...              a chunk of the container (RFC 9649, 2.7.1.4)

A block that cannot be read, or a number that is none, is orientation 1.
"""

from __future__ import annotations

import struct
from typing import Final

from .facts import UPRIGHT, Content

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
