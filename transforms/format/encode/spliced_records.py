"""Serialized records around payloads that are not copied.

A record with s spliced payloads is s + 1 segments of `data` and, between them, bytes that are elsewhere:

    record i    [ segment 0 ] [ splice 0 ] [ segment 1 ]          s = 1: an image
                      |             |            |
                    data      the file's own   data

With s = 0 a record is one segment, and `data` is all records, one after the other.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ..buffers.checksum import U32, crc32c, crc32c_each, cut, record_digests
from ..buffers.payloads import Payloads
from ..buffers.views import I64, gather, reference_views
from ..flow.blocks import Frames
from ..tfrecord.framing import FRAME_BYTES, footer_views, framed_crcs, header_views


@dataclass(frozen=True, slots=True, eq=False)
class SegmentedRecords:
    """Records in order: `segment_ends` (int64[n, s + 1]) are ends in `data`, where segments follow each other.

    `splices[j][i]` is splice j of record i, or None; `splice_lengths` (int64[n, s]) are their lengths in bytes.
    """

    data: pa.Buffer
    segment_ends: I64
    splices: tuple[list[pa.Buffer | None], ...]
    splice_lengths: I64

    def __len__(self) -> int:
        return len(self.segment_ends)

    @property
    def segment_lengths(self) -> I64:
        """The length in bytes of each segment: int64[n, s + 1]."""
        return np.diff(self.segment_ends.reshape(-1), prepend=0).reshape(self.segment_ends.shape)

    @property
    def lengths(self) -> I64:
        lengths: I64 = self.segment_lengths.sum(axis=1) + self.splice_lengths.sum(axis=1)
        return lengths

    def checksums(self) -> U32:
        """Return the CRC32C of each record, chained over its segments and splices."""
        if not self.splices:
            return crc32c_each(self.data, self.segment_lengths[:, 0])
        view = memoryview(self.data)
        crcs, start = [], 0
        for ends, *splices in zip(self.segment_ends.tolist(), *self.splices, strict=True):
            crc = 0
            for end, splice in zip(ends, (*splices, None), strict=True):
                crc = crc32c(view[start:end], crc)
                start = end
                if splice is not None:
                    crc = crc32c(splice, crc)
            crcs.append(crc)
        return np.array(crcs, np.uint32)

    def payloads(self, rows: I64) -> Iterable[bytes]:
        if self.splices:
            return map(self._payload, rows.tolist())
        lengths = self.segment_lengths[:, 0]
        if np.array_equal(rows, np.arange(len(self))):
            return cut(self.data, lengths)
        ends = self.segment_ends[:, 0]
        return Payloads(np.frombuffer(self.data, np.uint8), ends - lengths, ends).take(rows)

    def _payload(self, record: int) -> bytes:
        first = record * self.segment_ends.shape[1]
        ends = self.segment_ends.reshape(-1)
        start = int(ends[first - 1]) if first else 0
        parts = []
        for index, end in enumerate(self.segment_ends[record].tolist()):
            parts.append(self.data.slice(start, end - start).to_pybytes())
            start = end
            splice = self.splices[index][record] if index < len(self.splices) else None
            parts.append(b"" if splice is None else splice.to_pybytes())
        return b"".join(parts)

    def frame(self, crcs: U32, rows: I64 | None = None) -> Frames:
        """Frame the records with these CRC32Cs, or only those of some rows, in the order given."""
        rows = np.arange(len(self)) if rows is None else rows
        if not len(rows):
            return Frames((), np.zeros(0, np.int64), 0)
        lengths, crcs = self.lengths[rows], crcs[rows]
        segments = self.segment_lengths[rows]
        starts = self.segment_ends[rows] - segments
        pieces = [
            header_views(lengths),
            *(reference_views(starts[:, j], segments[:, j], self.data, 0) for j in range(segments.shape[1])),
            footer_views(crcs),
        ]
        framed, ends = gather(pieces, len(rows), (self.data,))
        buffers = self._interleave(framed, ends[:, 1 : 1 + len(self.splices)], rows)
        digest = record_digests(lengths, crcs)
        return Frames(
            buffers, np.cumsum(lengths + FRAME_BYTES), digest, framed_crcs(lengths, crcs) if self.splices else None
        )

    def _interleave(self, framed: pa.Buffer, cuts: I64, rows: I64) -> tuple[pa.Buffer, ...]:
        """Return the framed bytes with the splices at their places: the bytes between two of them are one buffer."""
        if not self.splices:
            return (framed,)
        buffers, start = [], 0
        for row, ends in zip(rows.tolist(), cuts.tolist(), strict=True):
            for splices, end in zip(self.splices, ends, strict=True):
                splice = splices[row]
                if splice is not None:
                    buffers += [framed.slice(start, end - start), splice]
                    start = end
        return (*buffers, framed.slice(start))
