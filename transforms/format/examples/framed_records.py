"""Write records and frame them in one pass over memory, with their checksums filled in afterwards.

Fresh memory is what costs most here, so a record is not written first and then copied between header and footer.
All pieces of a batch are concatenated once, with room for the frames, and the checksum of each payload is then
computed in place. To cut the buffer without gaps (the cheapest cut in Python is a sequential read), what is before
a payload is part of what is read; for that time it is *neutral*: 16 bytes whose CRC32C is 0, the CRC32C of no bytes
at all, so that reading them first changes nothing.

    pad  header payload         footer header payload    footer       room for frames, the payloads written
    0000 nnnnnn ppppppppppppppp 0000   nnnnnn pppppppp   0000
    └────── first read ───────┘ └──── second read ────┘               CRC32C of 0000 nnnnnn is 0
         LLLLcc ppppppppppppppp CCCC   LLLLcc pppppppp   CCCC         footer and next header, 16 bytes, stored at once

A record with s spliced payloads is s + 1 segments of `data` and, between them, bytes that are elsewhere:

    record i    [ segment 0 ] [ splice 0 ] [ segment 1 ]          s = 1: an image
                      |             |            |
                    data      the file's own   data

With s = 0 a record is one segment, and `data` is all records, one after the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..batches.arrow_memory import (
    I64,
    Views,
    gather,
    inline_views,
    lengths_of,
    reference_views,
    varint,
    varint_views,
    words_of,
)
from ..batches.rows import Frames
from ..tfrecord.framing import (
    FOOTER_BYTES,
    FRAME_BYTES,
    U32,
    Payloads,
    crc32c,
    crc32c_each,
    cut,
    footer_views,
    framed_crcs,
    header_views,
    header_words,
    join_frames,
    mask_each,
    record_digests,
)


def tagged_lengths(lengths: I64) -> Views:
    """Return `0A varint(length)` for each length in bytes: the head of a record, and of a value in a list of bytes."""
    if int(lengths.max(initial=0)) < len(SHORT_HEADS):
        return SHORT_HEADS.take(lengths)
    return _tag(varint_views(lengths))


def _tag(varints: Views) -> Views:
    """Return varints of at most five bytes with a tag in front of each: a length is below 2**35."""
    words = words_of(varints)
    content = words[:, 1:].view(np.uint32)
    tagged = np.empty((len(words), 2), np.uint32)
    tagged[:, 0] = content[:, 0] << 8 | 0x0A
    tagged[:, 1] = content[:, 1] << 8 | content[:, 0] >> 24
    return inline_views(tagged, words[:, 0] + 1)


NEUTRAL: Final = bytes(12) + bytes.fromhex("f62e80b0")
"""A footer's room and a header's: 16 bytes whose CRC32C is 0. The last four are solved for, the others are zero."""

SHORT_HEADS: Final = _tag(varint_views(np.arange(1 << 14, dtype=np.int64)))
"""The views of lengths of at most two bytes: of a table's records, looked up in little time and few cache lines."""

OPENING_TEXTS: Final = pa.py_buffer(b"".join(NEUTRAL + b"\x0a" + varint(size) for size in range(len(SHORT_HEADS))))
OPENINGS: Final = reference_views(
    np.concatenate([[0], np.cumsum(len(NEUTRAL) + lengths_of(SHORT_HEADS))[:-1]]),
    len(NEUTRAL) + lengths_of(SHORT_HEADS),
    OPENING_TEXTS,
    0,
)
"""The same heads with the room before them in which records are framed (`frame_in_place`): one piece instead of two."""

_NEUTRAL: Final = pa.py_buffer(NEUTRAL)
_ZERO: Final = np.zeros(1, np.int64)
_NEUTRAL_LENGTH: Final = np.full(1, len(NEUTRAL), np.int64)

_STRETCH_BYTES: Final = 4 << 20
"""About the bytes of a stretch of records. Threads take turns at Python between the steps of a stretch: with 1 MiB
two of them blocked each other twice as often, which cost 6 % of the CPU and 8 % of the wall clock."""


def frame_in_place(
    pieces: Sequence[Views],
    lengths: I64,
    buffers: Sequence[pa.Buffer],
    *,
    opened: bool = False,
    stretch_bytes: int = _STRETCH_BYTES,
) -> Frames:
    """Write one record for each row of the pieces, with these payload lengths in bytes, and frame it.

    Each row's pieces are its payload; of `opened` rows the first piece begins with `NEUTRAL`, which saves one piece.
    """
    rows = len(lengths)
    if not opened:
        pieces = [reference_views(_ZERO, _NEUTRAL_LENGTH, _NEUTRAL, len(buffers)), *pieces]
        buffers = [*buffers, _NEUTRAL]
    step = max(rows * stretch_bytes // max(int(lengths.sum()), 1), 1)
    stretches = []
    for start in range(0, rows, step):
        rows_of = slice(start, start + step)
        of_stretch = [views if len(views) == 1 else views[rows_of] for views in pieces]
        stretches.append(_frame_stretch(of_stretch, lengths[rows_of], buffers))
    return join_frames(stretches)


def _frame_stretch(pieces: Sequence[Views], lengths: I64, buffers: Sequence[pa.Buffer]) -> Frames:
    rows = len(lengths)
    room = inline_views(np.zeros((1, 1), np.uint32), FOOTER_BYTES)
    data, ends = gather(pieces, rows, buffers, after=room)
    framed: npt.NDArray[np.uint8] = np.frombuffer(data, np.uint8)
    if not framed.flags.writeable:
        framed = framed.copy()
        data = pa.py_buffer(framed)
    crcs = crc32c_each(data.slice(0, len(framed) - FOOTER_BYTES), lengths + FRAME_BYTES)
    masked = mask_each(crcs)
    joints = np.empty((rows, 4), np.uint32)
    joints[0, 0] = 0
    joints[1:, 0] = masked[:-1]
    joints[:, 1:] = header_words(lengths)
    # Every 16 bytes of the buffer, wherever they begin: the views overlap, the ones that are written do not.
    anywhere = np.ndarray((len(framed) - FRAME_BYTES + 1,), np.complex128, framed.data, 0, (1,))
    ends = ends[:, -1]
    anywhere[ends - (lengths + FRAME_BYTES)] = joints.view(np.complex128).reshape(-1)
    framed[-FOOTER_BYTES:] = masked[-1:].view(np.uint8)
    # The slice begins a footer's room later, and a record ends with its footer: the ends stay what they are.
    return Frames((data.slice(FOOTER_BYTES),), ends, record_digests(lengths, crcs))


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
