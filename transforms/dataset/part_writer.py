"""One part while it is written: its bytes, its CRC, its cut points."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from ..format.checksum import crc32c
from .cut_points import CutChooser
from .part_file import PartFile
from .shard_plan import CutPoint


class PartWriter:
    """Writes units (records or gzip members) into one part."""

    def __init__(self, file: PartFile, path: str, gap: int) -> None:
        self.path = path
        self.file = file
        self.bytes = 0
        self.unit_bytes = 0
        self._records = 0
        self._crc = 0
        self._cuts = CutChooser(gap)

    def add(
        self,
        take: Callable[[int], Sequence[memoryview]],
        ends: npt.NDArray[np.int64],
        records: npt.NDArray[np.int64] | None = None,
    ) -> None:
        """Append units: `ends` are the offsets in their own bytes at which they end, one after the other.

        `take(end)` returns the bytes up to `end` that it has not returned before. `records[i]` is the number of
        records up to the end of unit i; without it a unit is a record.
        """
        base, before = self.bytes, self._records
        self.unit_bytes = max(self.unit_bytes, int(np.diff(ends, prepend=0).max()))
        points: list[CutPoint] = []
        for i in self._cuts.wanted(ends + base):
            views = take(int(ends[i]))
            for view in views:
                self._crc = crc32c(view, self._crc)
            self.file.write(views)  # at once, while the processor has the bytes in its cache
            count = i + 1 if records is None else int(records[i])
            points.append(CutPoint(base + int(ends[i]), before + count, self._crc))
        self._cuts.add(points)
        self.bytes, self._records = points[-1].offset, points[-1].records

    def close(self) -> tuple[CutPoint, ...]:
        """Close the part, and return its cut points, its end last."""
        self.file.close()
        return self._cuts.finish()
