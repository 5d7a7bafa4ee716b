"""Divide what a task has of one split into parts of at most the shard size; a larger record is a part by itself.

    units   ├─┼──┼─┼───┼──┼──┼─┼─┼──┼────┼─┼─┼──┼─┤      a unit is a framed record, or a gzip member
    parts   │ 0: full     │ 1: full          │ 2: tail│      a part ends where the next unit would make it too large

A unit over the shard size gets a part of its own. With gzip, records are gathered into members first, at places that
depend on the records of the (task, split) alone, and not on how they came in blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ...format.batches.observers import Observer
from ...format.batches.rows import Frames
from ...format.sidecars.sidecar_files import index_data
from ...format.splits.shard_plan import CUTS_PER_SHARD, CutChooser, CutPoint, CutTable, Part, PartKind, SplitParts
from ...format.tfrecord.framing import add_digests, crc32c, crc32c_through
from ...format.tfrecord.gzip_members import compress_member
from ..storage.contract import PartFile
from ..storage.direct_file import FrameSlices
from .spill import Shuffle

_MEMBER_BYTES: Final = 1 << 20
"""Input of a gzip member: enough for the ratio, little enough to seek to; S/8 where that is less, to fill shards."""

_MEMBERS_PER_SHARD: Final = 8

Take = Callable[[int], Sequence[memoryview]]

Create = Callable[[int, str], tuple[PartFile, str]]
"""Open a file of a (task, split): its number, its suffix; returns it with its path."""

PART: Final = ".part"
OFFSETS: Final = ".offsets"
"""Where the records of a part begin, beside it: see `format/sidecars/sidecar_files`."""


@dataclass(frozen=True, slots=True)
class StageSettings:
    """What stage must know of the dataset.

    shard_size   in bytes
    compression  `none` or `gzip`
    order        `task`, or `source`: then parts keep all cut points, since a shard may begin at any of them
    in_append    the schema was there before, which rejects then tell
    proof        a file of the launcher's that a worker must see before it stages anything: see `check_shared`
    observers    merge what they have seen
    most_splits  bounds splits that the data name, None where they do not
    sets_aside   records may wait for the shard plan to know their split
    shuffle      how records are spilled for a second pass, which stages them; None where they are staged at once
    index        where its records begin is left beside each part
    """

    shard_size: int
    compression: str = "none"
    order: str = "task"
    in_append: bool = False
    proof: str | None = None
    observers: tuple[Observer, ...] = ()
    most_splits: int | None = None
    sets_aside: bool = False
    shuffle: Shuffle | None = None
    index: bool = False


class SplitStager:
    """The parts of one (task, split): `create(number, suffix)` opens a file of part `number`."""

    def __init__(self, task: int, settings: StageSettings, create: Create) -> None:
        self._task = task
        self._settings = settings
        self._create = create
        self._open: PartWriter | None = None
        self._files: list[PartFile] = []
        self._parts: list[Part] = []
        self._digest = 0
        self._members = _MemberGatherer(settings.shard_size) if settings.compression == "gzip" else None

    def add(self, frames: Frames) -> None:
        if not frames.records:
            return
        self._digest = add_digests((self._digest, frames.digest))
        if self._members is None:
            self._add_units(FrameSlices(frames.buffers).take, frames.ends, crcs=frames.crcs)
        else:
            for raw, records in self._members.add(frames):
                self._add_member(raw, records)

    def finish(self) -> SplitParts:
        if self._members is not None and (last := self._members.finish()) is not None:
            self._add_member(*last)
        self._close("tail")
        for file in self._files:
            file.wait()
        return SplitParts(self._trimmed(), self._digest)

    def abandon(self) -> None:
        for file in self._files:
            file.abandon()

    def _add_member(self, raw: Sequence[memoryview], records: int) -> None:
        data = raw[0] if len(raw) == 1 else b"".join(raw)
        member = memoryview(compress_member(data))
        self._add_units(lambda end: [member[:end]], np.array([member.nbytes]), records=np.array([records]))

    def _add_units(
        self,
        take: Take,
        ends: npt.NDArray[np.int64],
        *,
        records: npt.NDArray[np.int64] | None = None,
        crcs: npt.NDArray[np.uint32] | None = None,
    ) -> None:
        """Append units to parts, rolling over where a part would become larger than a shard."""
        size = self._settings.shard_size
        start, done = 0, 0  # units taken, and their bytes
        while start < len(ends):
            part = self._open
            room = done + size - (part.bytes if part else 0)
            stop = int(np.searchsorted(ends, room, side="right"))
            if stop > start:
                writer = part or self._roll()
                units = slice(start, stop)
                writer.add(_shifted(take, done), ends[units] - done, _at(records, units), _at(crcs, units))
                start, done = stop, int(ends[stop - 1])
            elif part is not None:
                oversize = int(ends[start]) - done > size
                self._close("tail" if oversize or part.bytes * 16 < size * 15 else "full")
            else:
                unit = slice(start, start + 1)
                self._roll().add(_shifted(take, done), ends[unit] - done, _at(records, unit), _at(crcs, unit))
                self._close("oversize")
                done = int(ends[start])
                start += 1

    def _roll(self) -> PartWriter:
        file, path = self._create(len(self._parts), PART)
        self._files.append(file)
        gap = 0 if self._members is not None else self._settings.shard_size // CUTS_PER_SHARD
        self._open = PartWriter(file, path, gap, keeps_offsets=self._settings.index)
        return self._open

    def _close(self, kind: PartKind) -> None:
        writer, self._open = self._open, None
        if writer is None:
            return
        cuts = writer.close()
        if self._settings.index:
            file, _ = self._create(len(self._parts), OFFSETS)
            self._files.append(file)
            file.write([memoryview(index_data(writer.offsets(), "binary"))])
            file.close()
        part = Part(self._task, len(self._parts), writer.path, kind, writer.unit_bytes, CutTable.of(cuts))
        self._parts.append(part)

    def _trimmed(self) -> tuple[Part, ...]:
        """Return the parts with the cut points that a shard plan can need: descriptors stay small."""
        if self._settings.order == "source":
            return tuple(self._parts)
        last_full = max((part.number for part in self._parts if part.kind == "full"), default=-1)
        return tuple(
            part if part.kind == "tail" or part.number == last_full else replace(part, cuts=part.cuts[-1:])
            for part in self._parts
        )


def _shifted(take: Take, by: int) -> Take:
    return lambda end: take(end + by)


def _at(values: npt.NDArray[Any] | None, units: slice) -> npt.NDArray[Any] | None:
    return None if values is None else values[units]


class _MemberGatherer:
    """Gathers the input of gzip members.

    A member ends at the first record end at or after the bound; and before a record that alone reaches the bound, so
    that a member over a shard's size is one record.
    """

    def __init__(self, shard_size: int) -> None:
        self._bound = min(_MEMBER_BYTES, shard_size // _MEMBERS_PER_SHARD)
        self._views: list[memoryview] = []
        self._bytes = 0
        self._records = 0

    def add(self, frames: Frames) -> list[tuple[list[memoryview], int]]:
        """Take records, and return the members that they complete: their bytes, and how many records each has."""
        members: list[tuple[list[memoryview], int]] = []
        slices = FrameSlices(frames.buffers)
        ends = frames.ends
        lengths = np.diff(ends, prepend=0)
        large = np.flatnonzero(lengths >= self._bound)
        start, done = 0, 0
        while start < len(ends):
            stop = int(np.searchsorted(ends, done + self._bound - self._bytes, side="left")) + 1
            next_large = int(large[np.searchsorted(large, start)]) if len(large) and large[-1] >= start else len(ends)
            if next_large == start and self._records:
                members.append(self._take())
                continue
            # up to the bound, to the end, or to a large record, which comes alone
            stop = min(stop, len(ends), next_large if next_large > start else start + 1)
            self._views += slices.take(int(ends[stop - 1]))
            self._bytes += int(ends[stop - 1]) - done
            self._records += stop - start
            start, done = stop, int(ends[stop - 1])
            if self._bytes >= self._bound:
                members.append(self._take())
        return members

    def finish(self) -> tuple[list[memoryview], int] | None:
        return self._take() if self._records else None

    def _take(self) -> tuple[list[memoryview], int]:
        member = self._views, self._records
        self._views, self._bytes, self._records = [], 0, 0
        return member


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
