"""Cutting framed records into byte ranges, without copying them.

The bytes of a block are one buffer (tables) or many (images: three a record). Ranges are asked for from front to back:

    buffers  │████████████│██│██████████████████│██│████████│
    ranges   ├──── take(a) ───┤── take(b) ──┤     ...each as a list of views into the buffers
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


class FrameSlices:
    """The bytes of some buffers, handed out from front to back as views."""

    def __init__(self, buffers: Iterable[Any]) -> None:
        self._buffers = iter(buffers)
        self._view = memoryview(b"")
        self._offset = 0

    def take(self, end: int) -> list[memoryview]:
        """Return the bytes from where the last call ended up to offset `end` of them all, as views."""
        views: list[memoryview] = []
        while self._offset < end:
            if not self._view.nbytes:
                self._view = memoryview(next(self._buffers)).cast("B")
                continue
            views.append(self._view[: end - self._offset])
            self._view = self._view[end - self._offset :]
            self._offset += views[-1].nbytes
        return views
