"""GIF: the header and the structure of a file, without decoding it (GIF89a specification).

    GIF89a | screen | colours? | 21 label n ... 0 | 2C frame colours? lzw n ... n ... 0 | 3B
             descriptor          extension          at least one frame                   trailer

What follows the trailer is allowed.
"""

from __future__ import annotations

import struct
from typing import Final

from .facts import Content, ImageFacts, corrupt, truncated

_SCREEN: Final = struct.Struct("<HHB").unpack_from
_FRAME: Final = struct.Struct("<HHHHB").unpack_from
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
        colours = _colours(data, 13, flags)
        position = 13 + len(colours)
        while (kind := data[position]) != 0x3B:
            if kind == 0x21:
                position = _skip_blocks(data, position + 2)
            elif kind == 0x2C:
                left, top, frame_width, frame_height, flags = _FRAME(data, position + 1)
                own = _colours(data, position + 10, flags)
                if facts is None:
                    mode = "L" if _GREYS.startswith(own or colours) else "P"
                    size = max(width, left + frame_width), max(height, top + frame_height)
                    facts = ImageFacts("gif", *size, 1, mode)
                    if not structure:
                        break
                frames += 1
                position = _skip_blocks(data, position + 11 + len(own))
            else:
                raise corrupt("GIF", f"an unknown block at byte {position}", f"{kind:#04x}")
    except (struct.error, IndexError):
        raise truncated("GIF", len(data), "its trailer is missing") from None
    if facts is None:
        raise corrupt("GIF", "it holds no frame")
    if not (facts.width and facts.height):
        raise corrupt("GIF", f"a size of {facts.width} x {facts.height}")
    return facts._replace(animated=True) if frames > 1 else facts


def _colours(data: Content, position: int, flags: int) -> bytes:
    if not flags & 0x80:
        return b""
    size = 3 << ((flags & 7) + 1)
    colours = bytes(data[position : position + size])
    if len(colours) < size:
        raise IndexError
    return colours


def _skip_blocks(data: Content, position: int) -> int:
    """Return the position after a series of blocks, each its size and as many bytes, ended by a size of 0."""
    while size := data[position]:
        position += 1 + size
    return position + 1
