"""The EXIF orientation of a picture: read from its header, and written into a small block of its own.

JPEG    FF E1 len "Exif" 0 0 ...    a segment before the picture's data (CIPA DC-008, 4.5.4)
PNG     len "eXIf" ... CRC          a chunk (PNG, third edition, 11.3.3.3)
WebP    "EXIF" len ...              a chunk of the container (RFC 9649, 2.7.1.4)

The others are opened with Pillow. A block that cannot be read, or a number that is none, is orientation 1.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final

from ..facts import Content

ORIENTATION: Final = 0x0112
UPRIGHT: Final = 1
_UPRIGHT: Final = frozenset({"gif", "bmp", "tiff"})
"""Formats without an orientation; Pillow turns a TIFF by itself."""

_HEADER: Final = b"Exif\x00\x00"


def orientation_of(data: Content, name: str) -> int:
    """Return the orientation (1 to 8) of a picture of a format, whose header has been checked."""
    find = _FIND.get(name)
    if find is None:
        return UPRIGHT if name in _UPRIGHT else _by_pillow(data, name)
    try:
        block = find(data)
    except struct.error:  # the header ends within a chunk
        block = None
    return UPRIGHT if block is None else _orientation_in(block)


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


def _in_jpeg(data: Content) -> bytes | None:
    position = 2
    while True:
        lead, marker, length = struct.unpack_from(">BBH", data, position)
        if lead != 0xFF or marker == 0xDA:
            return None
        if marker == 0xFF:  # a fill byte
            position += 1
            continue
        if marker == 0xE1 and bytes(data[position + 4 : position + 10]) == _HEADER:
            return bytes(data[position + 4 : position + 2 + length])
        position += 2 if marker == 0x01 or 0xD0 <= marker <= 0xD7 else 2 + length


def _in_png(data: Content) -> bytes | None:
    position = 8
    while True:
        length, kind = struct.unpack_from(">I4s", data, position)
        if kind == b"eXIf":
            return _HEADER + bytes(data[position + 8 : position + 8 + length])
        if kind == b"IEND":
            return None
        position += 12 + length


def _in_webp(data: Content) -> bytes | None:
    position = 12
    while position + 8 <= len(data):
        kind, length = struct.unpack_from("<4sI", data, position)
        if kind == b"EXIF":
            block = bytes(data[position + 8 : position + 8 + length])
            return block if block.startswith(_HEADER) else _HEADER + block
        position += 8 + length + length % 2
    return None


_FIND: Final[dict[str, Callable[[Content], bytes | None]]] = {"jpeg": _in_jpeg, "png": _in_png, "webp": _in_webp}


def _orientation_in(block: bytes) -> int:
    """Return the orientation that an EXIF block states: a TIFF header, then the entries of its first directory."""
    tiff = block[len(_HEADER) :]
    order = {b"II": "<", b"MM": ">"}.get(tiff[:2])
    if order is None:
        return UPRIGHT
    try:
        (first,) = struct.unpack_from(f"{order}I", tiff, 4)
        (count,) = struct.unpack_from(f"{order}H", tiff, first)
        for at in range(first + 2, first + 2 + 12 * count, 12):
            tag, kind, values, value = struct.unpack_from(f"{order}HHIH", tiff, at)
            if tag == ORIENTATION:
                return _sound(value) if (kind, values) == (3, 1) else UPRIGHT
    except struct.error:
        pass
    return UPRIGHT


def _by_pillow(data: Content, name: str) -> int:
    from ..pillow_decode import opened

    with opened(data, name) as image:
        return _sound(image.getexif().get(ORIENTATION))


def _sound(value: object) -> int:
    return value if isinstance(value, int) and 1 <= value <= 8 else UPRIGHT
