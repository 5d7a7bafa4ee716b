"""One part while it is written: its bytes, its CRC, its cut points."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from ...format.buffers.checksum import crc32c, crc32c_through
from ...format.buffers.frame_slices import FrameSlices
from ..shard_plan.cut_points import CutChooser
from ..shard_plan.shard_plan import CutPoint
from ..storage.contract import PartFile


class PartWriter:
    """Writes units (records or gzip members) into one part."""

    def __init__(self, file: PartFile, path: str, gap: int, *, keeps_offsets: bool = False) -> None:
        self.path = path
        self.file = file
        self.bytes = 0
        self.unit_bytes = 0
        self._records = 0
        self._crc = 0
        self._cuts = CutChooser(gap)
        self._ends: list[npt.NDArray[np.int64]] | None = [] if keeps_offsets else None

    def add(
        self,
        take: Callable[[int], Sequence[memoryview]],
        ends: npt.NDArray[np.int64],
        records: npt.NDArray[np.int64] | None = None,
        crcs: npt.NDArray[np.uint32] | None = None,
    ) -> None:
        """Append units: `ends` are the offsets in their own bytes at which they end, one after the other.

        `take(end)` returns the bytes up to `end` that it has not returned before. `records[i]` is the number of
        records up to the end of unit i; without it a unit is a record. `crcs` are the CRC32Cs of the units, where they
        are known: then the bytes are not read for the part's.
        """
        base, before = self.bytes, self._records
        self.unit_bytes = max(self.unit_bytes, int(np.diff(ends, prepend=0).max()))
        ends_in_part = ends + base
        positions = self._cuts.wanted(ends_in_part)
        if self._ends is not None:
            self._ends.append(ends_in_part)
        if crcs is None:
            through = self._write_reading(take, ends[positions])
        else:
            self.file.write(take(int(ends[-1])))
            through = crc32c_through(self._crc, crcs, ends, np.array(positions)).tolist()
        points = []
        for i, crc in zip(positions, through, strict=True):
            count = i + 1 if records is None else int(records[i])
            points.append(CutPoint(base + int(ends[i]), before + count, crc))
        self._cuts.add(points)
        self.bytes, self._records, self._crc = points[-1].offset, points[-1].records, points[-1].crc

    def _write_reading(self, take: Callable[[int], Sequence[memoryview]], ends: npt.NDArray[np.int64]) -> list[int]:
        """Write the bytes up to the last of some ends, and return the part's CRC at each of them.

        A single buffer is written whole, since it may be as it will in the file (`direct_file`). Of many, each range
        is written as soon as it is read, while the processor has it in its cache.
        """
        crcs = []
        crc = self._crc
        whole = take(int(ends[-1]))
        ranges = FrameSlices(whole)
        for end in ends.tolist():
            views = ranges.take(end)
            for view in views:
                crc = crc32c(view, crc)
            crcs.append(crc)
            if len(whole) > 1:
                self.file.write(views)
        if len(whole) == 1:
            self.file.write(whole)
        return crcs

    def offsets(self) -> npt.NDArray[np.int64]:
        """Return where the units begin, and the size of the part; only of a writer that keeps them."""
        return np.concatenate([np.zeros(1, np.int64), *(self._ends or ())])

    def close(self) -> tuple[CutPoint, ...]:
        self.file.close()
        return self._cuts.finish()
