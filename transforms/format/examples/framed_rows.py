"""Rows that are framed records already: they pass the encoder as they are, byte for byte.

csv, parquet, ...   Rows ──encode──▶ Block ──▶ stage
tfrecord            FramedRows ─────▶ Block ──▶ stage      the same bytes, not even copied
                        └── a rule of splits: of each record the features that it looks at are decoded
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..batches.arrow_memory import I64, take_rows
from ..batches.observers import IMAGE_FORMATS, READ, ReadRange, merged, narrowed_summary
from ..batches.rejects import Reject
from ..batches.rows import Block, EntryCounts, Frames, Narrowing, Rows
from ..columns.feature_column import columns_of
from ..schema.schema import Schema
from ..splits.by_column import FolderSplits
from ..splits.splitter import Candidates, OneSplit, Splitter
from ..tfrecord.checksum import record_digests
from ..tfrecord.framing import FOOTER_BYTES, FRAME_BYTES, HEADER_BYTES, Payloads

_NOTHING: Final = pa.RecordBatch.from_arrays([pa.Array.from_buffers(pa.null(), 1 << 40, [None])], ["record"])
"""More rows than any batch has, in no memory at all (`pa.nulls` would fill a bit for each)."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class FramedRows(Rows):
    """A batch of records of one file, which are in the split `split` unless a rule says otherwise.

    `payloads` are framed where they are, and `crcs` their (unmasked) CRC32Cs. `batch` has a row for each, of the
    features that a rule looks at. `narrowed` is what the dataset that they come from lost when it was made, reported
    once. `read` is the range of a shard that ends with this batch.
    """

    split: str | None
    payloads: Payloads
    crcs: npt.NDArray[np.uint32]
    image_formats: tuple[str, ...] = ()
    narrowed: tuple[Narrowing, ...] = ()
    read: ReadRange | None = None

    @property
    def bytes(self) -> int:
        return int((self.payloads.ends - self.payloads.starts).sum()) + FRAME_BYTES * len(self.payloads)

    def to_block(self) -> Block:
        """Raise `ValueError` where rows were taken out of the batch, which the records do not follow."""
        assert self.split is not None
        self._check()
        written = len(self.payloads)
        if not written:
            return self._block({}, 0)
        spread = bool(self.dropped)  # with so many gaps that one copy costs less
        frames = self._taken(np.arange(written)) if spread else frames_in_place(self.payloads, self.crcs)
        return self._block({self.split: frames}, written)

    def to_split_block(self, splitter: Splitter, schema: Schema, memory: dict[str, Any]) -> Block:
        """Return the block, each record in its own split or where a rule says. Raises as `to_block` does."""
        stated = self.split is not None and not isinstance(splitter, FolderSplits)  # and comes before a rule
        if stated or isinstance(splitter, OneSplit):
            return self.to_block()
        self._check()
        if not len(self.payloads):
            return self._block({}, 0)
        kept = np.arange(len(self.payloads))
        given = self._candidates(kept, splitter, schema, memory)
        errors = dict(splitter.problems(given))
        if errors:
            kept = np.delete(kept, list(errors))
            given = self._candidates(kept, splitter, schema, memory)
        assigned = splitter.assign(given)
        frames = {
            assigned.names[code]: self._taken(kept[assigned.codes == code])
            for code in np.unique(assigned.codes).tolist()
        }
        entry = self._entry
        found = tuple(Reject(entry, self.origin.place(row), (errors[row],), self.split) for row in sorted(errors))
        block = self._block(frames, len(kept), found)
        return replace(block, observed=merged(block.observed, assigned.observed))

    @property
    def _entry(self) -> int:
        assert isinstance(self.entry, int), "framed rows come from one file"
        return self.entry

    def _check(self) -> None:
        if self.batch.num_rows != len(self.payloads):
            raise ValueError(
                f"{len(self.payloads)} existing records are passed on as they are, and their batch was cut to "
                f"{self.batch.num_rows} rows; to change or pick records, decode them: open_dataset"
            )

    def _candidates(self, rows: I64, splitter: Splitter, schema: Schema, memory: dict[str, Any]) -> Candidates:
        payloads, batch = self.payloads.take(rows), take_rows(self.batch, rows)
        columns = columns_of(batch, schema, splitter.reads)
        folders, codes = ((), None) if self.split is None else ((self.split,), np.zeros(len(rows), np.int64))
        return Candidates(
            schema, columns, len(rows), payloads.take, folders, codes, self.task, memory, are_records=True,
            entry=self._entry,
        )  # fmt: skip

    def _taken(self, rows: I64) -> Frames:
        starts, sizes = self.payloads.starts[rows], (self.payloads.ends - self.payloads.starts)[rows]
        data = self.payloads.gather(starts - HEADER_BYTES, sizes + FRAME_BYTES)
        digest = record_digests(sizes, self.crcs[rows])
        return Frames((pa.py_buffer(data),), np.cumsum(sizes + FRAME_BYTES), digest)

    def _block(self, frames: dict[str, Frames], written: int, more: tuple[Reject, ...] = ()) -> Block:
        rejects = (*self.rejects, *more)
        dropped = self.dropped.get(self._entry, 0)
        read = written + len(rejects) + dropped
        return Block(
            self.task,
            self.ordinal,
            frames,
            (EntryCounts(self._entry, read, written, len(rejects), dropped),) if read else (),
            tuple(sorted(rejects, key=lambda reject: reject.place.record or 0)) if more else rejects,
            narrowed_summary(self.narrowed)
            | ({IMAGE_FORMATS: list(self.image_formats)} if self.image_formats else {})
            | ({READ: [self.read]} if self.read else {}),
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
