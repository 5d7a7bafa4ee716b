"""Find records again where the walk from one to the next is broken.

A header proves itself: 8 bytes of length, then their CRC. So the next record is at the first byte whose twelve bytes
are a header; by chance that is one of 2**32 places, and what is to be believed needs a second proof beside it: the CRC
of its data, or another header right after it.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from ..buffers.checksum import crc32c_of_lengths, mask_each
from .framing import HEADER_BYTES

_FLIPS: Final = np.uint64(1) << np.arange(64, dtype=np.uint64)


def find_headers(data: npt.NDArray[np.uint8], limit: int) -> npt.NDArray[np.int64]:
    """Return where the headers of records are in the data, of payloads of at most `limit` bytes (below 2**62).

    Most places are out by their length alone, which is then over the limit: one comparison a byte.
    """
    places = len(data) - HEADER_BYTES + 1
    if places <= 0:
        return np.empty(0, np.int64)
    lengths = np.ndarray((places,), "<u8", data, strides=(1,))
    stored = np.ndarray((places,), "<u4", data, offset=8, strides=(1,))
    near = np.flatnonzero(lengths <= np.uint64(limit))
    crcs = mask_each(crc32c_of_lengths(lengths[near].astype(np.int64)))
    found: npt.NDArray[np.int64] = near[crcs == stored[near]]
    return found


def likely_lengths(head: bytes, limit: int) -> list[int]:
    """Return what the length in a damaged header may have been, the likeliest first; each is to be proven by its data.

    It is what is there, if only its CRC was hit; or the one that a single flipped bit made of it.
    """
    length, stored = int.from_bytes(head[:8], "little"), int.from_bytes(head[8:HEADER_BYTES], "little")
    flipped = (np.uint64(length) ^ _FLIPS).astype(np.uint64)
    flipped = flipped[flipped <= np.uint64(limit)]
    right = mask_each(crc32c_of_lengths(flipped.astype(np.int64))) == np.uint32(stored)
    return [int(value) for value in flipped[right]] + [length] * (length <= limit)
