"""Rows that are framed records already: they pass the encoder as they are, byte for byte.

csv, parquet, ...   Rows ──encode──▶ Block ──▶ stage
tfrecord            FramedRows ─────▶ Block ──▶ stage      the same bytes, not even copied
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..buffers.checksum import record_digests
from ..buffers.payloads import Payloads
from ..flow.blocks import Block, EntryCounts, Frames, Narrowing
from ..flow.observers import IMAGE_FORMATS, narrowed_summary
from ..flow.rows import Rows
from ..tfrecord.framing import FOOTER_BYTES, FRAME_BYTES, HEADER_BYTES

_NOTHING: Final = pa.RecordBatch.from_arrays([pa.Array.from_buffers(pa.null(), 1 << 40, [None])], ["record"])
"""More rows than any batch has, in no memory at all (`pa.nulls` would fill a bit for each)."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class FramedRows(Rows):
    """A batch of records of one split and one file.

    `batch` has as many rows as there are records, and nothing in them. `narrowed` is what the dataset that they come
    from lost when it was made, reported once.
    """

    split: str
    frames: Frames
    image_formats: tuple[str, ...] = ()
    narrowed: tuple[Narrowing, ...] = ()

    def to_block(self) -> Block:
        """Return the records as the encoder's block.

        Raises:
            ValueError: rows were taken out of the batch, which the records do not follow.
        """
        assert isinstance(self.entry, int), "framed rows come from one file"
        if self.batch.num_rows != self.frames.records:
            raise ValueError(
                f"{self.frames.records} existing records are passed on as they are, and their batch was cut to "
                f"{self.batch.num_rows} rows; to change or pick records, decode them: open_dataset"
            )
        written, rejected = self.frames.records, len(self.rejects)
        counts = (EntryCounts(self.entry, written + rejected, written, rejected),) if written + rejected else ()
        return Block(
            self.task,
            self.ordinal,
            {self.split: self.frames} if written else {},
            counts,
            self.rejects,
            narrowed_summary(self.narrowed) | ({IMAGE_FORMATS: list(self.image_formats)} if self.image_formats else {}),
        )


def empty_batch(rows: int) -> pa.RecordBatch:
    """Return a batch that only counts: so many rows, and no values."""
    return _NOTHING.slice(0, rows)


def frames_in_place(payloads: Payloads, crcs: npt.NDArray[np.uint32], left_out: Collection[int] = ()) -> Frames:
    """Return records that are framed, one after the other, in the payloads' buffer, as frames in that same buffer.

    `crcs` are the (unmasked) CRC32Cs of the payloads. Rows that are `left_out` cut the buffer into several.
    """
    if left_out:
        rows = np.delete(np.arange(len(payloads)), list(left_out))
        payloads, crcs = payloads.take(rows), crcs[rows]
    starts, ends = payloads.starts - HEADER_BYTES, payloads.ends + FOOTER_BYTES
    if not len(starts):
        return Frames((), np.zeros(0, np.int64), 0)
    sizes = ends - starts
    breaks = np.flatnonzero(starts[1:] != ends[:-1]) + 1
    firsts, lasts = starts[np.append(0, breaks)], ends[np.append(breaks, len(starts)) - 1]
    pairs = zip(firsts.tolist(), lasts.tolist(), strict=True)
    buffers = tuple(pa.py_buffer(payloads.data[first:last]) for first, last in pairs)
    return Frames(buffers, np.cumsum(sizes), record_digests(sizes - FRAME_BYTES, crcs))
