"""WebP: the header and the structure of a file, without decoding it (RFC 9649).

    RIFF size WEBP | VP8  n frame                                   lossy
                   | VP8L n bits                                    lossless
                   | VP8X 10 flags canvas | ICCP? | ALPH? VP8  ...  extended: still, or ANIM with ANMF frames

Chunks fill up to even sizes. WebP carries no checksum: a zeroed tail shows only when it is decoded.
"""

from __future__ import annotations

import struct
from typing import Final

from .facts import UPRIGHT, Content, ImageFacts, corrupt, orientation_in, truncated

_CHUNK: Final = struct.Struct("<4sI").unpack_from
_SIZE: Final = struct.Struct("<I").unpack_from
_LOSSY: Final = struct.Struct("<HB3sHH").unpack_from
_LOSSLESS: Final = struct.Struct("<BI").unpack_from
_ALPHA: Final = 0x10


def check_webp(data: Content, *, structure: bool) -> ImageFacts:
    """Return the facts of a WebP file; with `structure`, only if its chunks fill it as their lengths say."""
    try:
        end = 8 + _SIZE(data, 4)[0]
        kind, size = _CHUNK(data, 12)
        if kind == b"VP8X":
            facts = _canvas(data, size)
        elif kind in (b"VP8 ", b"VP8L"):
            width, height, alpha = _picture(data, 12)
            facts = _facts(width, height, alpha=alpha)
        else:
            raise corrupt("WebP", "its first chunk is none of VP8, VP8L, VP8X", kind)
    except struct.error:
        raise truncated("WebP", len(data), "its header is incomplete") from None
    if not structure:
        return facts
    if end > len(data):
        raise truncated("WebP", len(data), f"{end} bytes are announced")
    return _walk(data, end, facts)


def _facts(width: int, height: int, *, alpha: bool) -> ImageFacts:
    return ImageFacts("webp", width, height, 4 if alpha else 3, "RGBA" if alpha else "RGB")


def _canvas(data: Content, size: int) -> ImageFacts:
    if size < 10:
        raise corrupt("WebP", f"its VP8X chunk has {size} bytes, not 10")
    flags = _SIZE(data, 20)[0]
    width = _SIZE(data, 23)[0] >> 8  # three bytes each, little-endian, minus one
    height = _SIZE(data, 26)[0] >> 8
    return _facts(width + 1, height + 1, alpha=bool(flags & _ALPHA))


def _picture(data: Content, position: int) -> tuple[int, int, bool]:
    """Return width, height and alpha of the VP8 or VP8L chunk at a position.

    A `struct.error` if the file ends in its header.
    """
    kind, size = _CHUNK(data, position)
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


def _walk(data: Content, end: int, facts: ImageFacts) -> ImageFacts:
    position = 12
    pictures = frames = 0
    turn = UPRIGHT
    try:
        while position + 8 <= end:
            kind, size = _CHUNK(data, position)
            if position + 8 + size > end:
                raise corrupt("WebP", f"its chunk {kind!r} at byte {position} is longer than the file says")
            if kind in (b"VP8 ", b"VP8L"):
                pictures += 1
                if _picture(data, position)[:2] != (facts.width, facts.height):
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
