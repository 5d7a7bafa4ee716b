"""Prove the checksums of many small records at once.

One call for each payload's CRC is most of what reading small records costs. But a CRC is linear, so one CRC over a
whole run says whether all of them are right. Take the run, and put into each gap between two payloads what would bring
the CRC's register back to its start, if the payload before it is what its CRC says:

    the run    ...payload │ footer       │ header    │ payload...      register after a payload: ~crc
    patched    ...payload │ ~crc (to 0)  │ 0 0 0     │ ~pay load...    after the first words: all ones ^ the first word

Then the register is 0 at the end. Nothing is patched: the exclusive or of both runs is zeros but for the gaps, and has
the same register. So two CRCs are compared, of the run and of that, each at the speed of memory.

With one damaged record in a run, the registers always differ. With several, they agree by chance once in 2**32, as does
the CRC of a damaged record itself.
"""

from __future__ import annotations

import threading
from typing import Final

import numpy as np
import numpy.typing as npt
from crc32c import crc32c

from ..buffers.payloads import Payloads

_ONES: Final = 0xFFFFFFFF
"""A CRC that is handed on as this begins with a register of zeros."""

_WORD: Final = 4
_GAP_BYTES: Final = 16
"""A footer, and the header after it."""

_PATCH_BYTES: Final = _GAP_BYTES + _WORD


class _Scratch(threading.local):
    """Zeros of this thread: a caller that writes to them sets them to zero again, which is cheaper than filling all."""

    bytes_: npt.NDArray[np.uint8] = np.zeros(0, np.uint8)

    def zeros(self, size: int) -> npt.NDArray[np.uint8]:
        if len(self.bytes_) < size:
            self.bytes_ = np.zeros(size, np.uint8)
        return self.bytes_[:size]


_scratch: Final = _Scratch()


def checksums_hold(payloads: Payloads, crcs: npt.NDArray[np.uint32]) -> bool:
    """Return whether all framed records have their CRC32C. Raises `ValueError` for none, or one below a word."""
    data, starts, ends = payloads.data, payloads.starts, payloads.ends
    if not len(payloads) or int((ends - starts).min()) < _WORD:
        raise ValueError("payloads of four bytes and more are checked together")
    first, last = int(starts[0]), int(ends[-1]) + _WORD
    gaps = ends[:-1]
    patches = np.empty((len(gaps), _PATCH_BYTES // _WORD), np.uint32)
    if len(gaps):
        framing = np.ndarray((len(data) - _GAP_BYTES + 1,), f"V{_GAP_BYTES}", data, strides=(1,))[gaps]
        patches[:, :-1] = framing.view(np.uint32).reshape(len(gaps), -1)
    patches[:, 0] ^= ~crcs[:-1]
    patches[:, -1] = _ONES
    patch = _scratch.zeros(last - first)
    places = np.ndarray((max(len(patch) - _PATCH_BYTES + 1, 0),), f"V{_PATCH_BYTES}", patch, strides=(1,))
    offsets = gaps - first
    places[offsets] = patches.view(f"V{_PATCH_BYTES}").reshape(-1)
    patch[:_WORD] = 0xFF
    patch[-_WORD:] ^= data[last - _WORD : last] ^ (~crcs[-1:]).view(np.uint8)
    try:
        return bool(crc32c(data.data[first:last], _ONES) == crc32c(patch.data, _ONES))
    finally:
        places[offsets] = np.zeros(1, places.dtype)
        patch[:_WORD] = patch[-_WORD:] = 0
