"""Choosing the cut points of a part while it is written, in one pass.

From one cut point the next is the last unit end at most `gap` bytes on; if the next unit is longer than that, its end:

    units  ├──┼─┼───┼──┼───────────────┼─┼──┤        cut points are at most max(gap, unit) apart, wherever they start
    cuts   ╎      ╎    ╎               ╎    ╎        ╎ the end of the part is always one
           ├ gap ──┤

Whether a unit end is the last in reach shows only when the next one is known, which may come with the next block.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .shard_plan import CutPoint


class CutChooser:
    """The cut points of one part.

    For each batch of units call `wanted`, which says at which of them the CRC is needed, then `add` each of those
    points; after the last batch, `finish`.
    """

    def __init__(self, gap: int) -> None:
        self._gap = gap
        self._cuts: list[CutPoint] = []
        self._last: CutPoint | None = None  # the newest point: a cut if the next unit ends out of reach

    def wanted(self, ends: npt.NDArray[np.int64]) -> list[int]:
        """Return the positions in `ends`, offsets in the part, of the cut points, and that of the last end."""
        reach = (self._cuts[-1].offset if self._cuts else 0) + self._gap
        if self._last is not None and int(ends[0]) > reach:
            self._cuts.append(self._last)
            reach = self._last.offset + self._gap
        self._last = None
        positions: list[int] = []
        at = 0
        while at < len(ends):
            at = max(at, int(np.searchsorted(ends, reach, side="right")) - 1)
            positions.append(at)
            reach = int(ends[at]) + self._gap
            at += 1
        return positions

    def add(self, points: list[CutPoint]) -> None:
        """Take the points that `wanted` asked for; the last of them stays open until the next batch."""
        self._cuts += points[:-1]
        self._last = points[-1]

    def finish(self) -> tuple[CutPoint, ...]:
        """Return the cut points, the end of the part last."""
        if self._last is not None:
            self._cuts.append(self._last)
            self._last = None
        return tuple(self._cuts)
