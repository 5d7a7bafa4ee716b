"""Find a record's start in the middle of a plain TFRecord file, without reading what is before it.

A header proves itself: 8 bytes of length and the CRC of them. By chance one place of four thousand million looks like
one, and a chain of headers that lead to each other is no chance. But a record may hold a TFRecord file, headers and
all: so a start that was found is believed only when the reader of the range before it has come to end there, exactly.
The first range begins at the start of the file, so by induction all are right.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from ...format.tfrecord.framing import FRAME_BYTES, HEADER_BYTES
from ...format.tfrecord.scan import find_headers, is_record_header
from ..files.open_file import ReadAt

_WINDOW_BYTES: Final = 256 << 10
_SEARCHED_BYTES: Final = 4 << 20
"""Beyond this no start is looked for: the file is cut elsewhere, or not at all."""

_CHAIN: Final = 8


def find_record_start(read: ReadAt, offset: int, size: int) -> int | None:
    """Return where the first record at or after `offset` seems to begin in a file of `size` bytes, or None."""
    for start in range(offset, min(offset + _SEARCHED_BYTES, size), _WINDOW_BYTES):
        window = read(min(_WINDOW_BYTES + HEADER_BYTES - 1, size - start), start)
        for place in find_headers(np.frombuffer(window, np.uint8), size).tolist():
            if _leads_on(read, start + place, size):
                return int(start + place)
    return None


def _leads_on(read: ReadAt, place: int, size: int) -> bool:
    """Return whether a header leads to another, and that to the next, or to the end of the file."""
    for _ in range(_CHAIN):
        if place == size:
            return True
        head = read(HEADER_BYTES, place)
        if not is_record_header(head):
            return False
        place += int.from_bytes(head[:8], "little") + FRAME_BYTES
    return place <= size
