"""TFRecord framing: each record between a header and a footer.

    uint64 length | uint32 masked CRC32C of the length | payload | uint32 masked CRC32C of the payload

All numbers are little-endian. A batch is framed by one concatenation: a matrix of three views a record, where header
and footer are in the view itself and the payload is a reference to the bytes that the encoder wrote:

    [ 12 | length, crc ] [ n | ──▶ payload ] [ 4 | crc ]

Of records that are read, `Payloads` says where they are: one buffer, and a start and an end for each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..batches.arrow_memory import BUFFER_LIMIT, I64, Views, concatenate, gather, inline_views, reference_views
from ..batches.rows import Frames
from .checksum import (
    U32,
    add_digests,
    crc32c_each,
    crc32c_followed_by,
    crc32c_of_lengths,
    crc32c_shift_each,
    mask_each,
    record_digests,
)

HEADER_BYTES: Final = 12
FOOTER_BYTES: Final = 4
FRAME_BYTES: Final = HEADER_BYTES + FOOTER_BYTES

_RUN_RECORDS: Final = 8192  # matrix and records of a run stay in the second cache


def header_words(lengths: I64) -> U32:
    """Return the header of each record with these payload lengths in bytes: `uint32[n, 3]`, in the file's order."""
    words = np.empty((len(lengths), 3), np.uint32)
    words[:, 0] = lengths & 0xFFFFFFFF
    words[:, 1] = lengths >> 32
    words[:, 2] = mask_each(crc32c_of_lengths(lengths))
    return words


def header_views(lengths: I64) -> Views:
    return inline_views(header_words(lengths), HEADER_BYTES)


def footer_views(crcs: U32) -> Views:
    """Return the footer of each record with these (unmasked) payload CRC32Cs."""
    return inline_views(mask_each(crcs).reshape(-1, 1), FOOTER_BYTES)


def framed_crcs(lengths: I64, crcs: U32) -> U32:
    """Return the CRC32C of each record with its framing, from the length and the CRC32C of its payload."""
    of_lengths = crc32c_of_lengths(lengths)
    headers = crc32c_followed_by(of_lengths, mask_each(of_lengths))
    return crc32c_followed_by(crc32c_shift_each(headers, lengths) ^ crcs, mask_each(crcs))


def frame_records(
    payloads: pa.LargeBinaryArray, *, run_records: int = _RUN_RECORDS, reach: int = BUFFER_LIMIT
) -> Frames:
    """Frame `run_records` at once, no more bytes than views `reach`. Raises `ValueError` for a null, or 2 GiB."""
    if payloads.null_count:
        raise ValueError("a record's payload is null")
    if not len(payloads):
        return Frames((), np.zeros(0, np.int64), 0)
    _, offset_buffer, data = payloads.buffers()
    offsets = np.frombuffer(offset_buffer, np.int64)[payloads.offset : payloads.offset + len(payloads) + 1]
    runs = _runs(offsets, run_records, reach)
    return join_frames([_frame_run(data, offsets[start : end + 1]) for start, end in runs])


def _runs(offsets: I64, most: int, reach: int) -> Iterator[tuple[int, int]]:
    """Cut records into runs that are framed at once: short enough to stay in cache, and in reach of a view's int32."""
    start, records = 0, len(offsets) - 1
    while start < records:
        near = int(np.searchsorted(offsets, offsets[start] + reach, "right")) - 1
        end = min(max(near, start + 1), start + most, records)
        yield start, end
        start = end


def _frame_run(data: pa.Buffer | None, offsets: I64) -> Frames:
    first = int(offsets[0])
    payloads = pa.py_buffer(b"") if data is None else data.slice(first, int(offsets[-1]) - first)
    lengths = np.diff(offsets)
    crcs = crc32c_each(payloads, lengths)
    pieces = (header_views(lengths), reference_views(offsets[:-1] - first, lengths, payloads, 0), footer_views(crcs))
    framed, ends = gather(pieces, len(lengths), (payloads,))
    return Frames((framed,), ends[:, -1], record_digests(lengths, crcs))


def join_frames(parts: Sequence[Frames]) -> Frames:
    if len(parts) == 1:
        return parts[0]
    starts = np.cumsum([0, *(part.bytes for part in parts)])
    ends = [part.ends + start for part, start in zip(parts, starts, strict=False)]
    crcs = [part.crcs for part in parts if part.crcs is not None]
    return Frames(
        tuple(buffer for part in parts for buffer in part.buffers),
        np.concatenate(ends) if ends else np.zeros(0, np.int64),
        add_digests(part.digest for part in parts),
        np.concatenate(crcs) if crcs and len(crcs) == len(parts) else None,
    )


U8 = npt.NDArray[np.uint8]

_FEW_BYTES: Final = 1 << 14
"""Up to here it costs less to name each byte than to make a view of each piece."""


@dataclass(frozen=True, slots=True, eq=False)
class Payloads:
    """Payload i is `data[starts[i]:ends[i]]`.

    `data` is the uint8 buffer, with anything between the payloads (TFRecord headers and footers); `starts` and `ends`
    are int64, one for each record.
    """

    data: U8
    starts: I64
    ends: I64

    @classmethod
    def from_bytes(cls, payloads: Sequence[bytes]) -> Payloads:
        ends = np.cumsum(np.fromiter((len(p) for p in payloads), np.int64, len(payloads)), dtype=np.int64)
        data = np.frombuffer(b"".join(payloads), np.uint8)
        return cls(data, np.concatenate((np.zeros(1, np.int64), ends))[: len(ends)], ends)

    @classmethod
    def from_arrow(cls, payloads: pa.Array) -> Payloads:
        """Raise `ValueError` where a payload is null. Binary and large binary are not copied."""
        if payloads.null_count:
            raise ValueError("a payload is null; a record has bytes, if none at all")
        if not (pa.types.is_binary(payloads.type) or pa.types.is_large_binary(payloads.type)):
            payloads = payloads.cast(pa.large_binary())
        _, offsets, data = payloads.buffers()
        bounds = np.zeros(1, np.int64)
        if len(payloads):
            width = "<i4" if pa.types.is_binary(payloads.type) else "<i8"
            bounds = np.frombuffer(offsets, width)[payloads.offset :][: len(payloads) + 1].astype(np.int64)
        bytes_ = np.frombuffer(data, np.uint8) if data is not None and data.size else np.empty(0, np.uint8)
        return cls(bytes_, bounds[:-1], bounds[1:])

    def to_arrow(self) -> pa.LargeBinaryArray:
        """Return the payloads as one Arrow array, in a new buffer of nothing else."""
        sizes = self.ends - self.starts
        bounds = np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes)))
        return pa.LargeBinaryArray.from_buffers(
            pa.large_binary(), len(self), [None, pa.py_buffer(bounds), pa.py_buffer(self.gather(self.starts, sizes))]
        )

    def take(self, rows: I64 | npt.NDArray[np.bool_]) -> Payloads:
        return Payloads(self.data, self.starts[rows], self.ends[rows])

    def head(self, stop: int) -> Payloads:
        return Payloads(self.data, self.starts[:stop], self.ends[:stop])

    def tail(self, start: int) -> Payloads:
        return Payloads(self.data, self.starts[start:], self.ends[start:])

    def gather(self, starts: I64, sizes: I64) -> U8:
        return gather_pieces(self.data, starts, sizes)

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, row: int) -> bytes:
        return self.data[self.starts[row] : self.ends[row]].tobytes()

    def __iter__(self) -> Iterator[bytes]:
        view = self.data.data
        for start, end in zip(self.starts.tolist(), self.ends.tolist(), strict=True):
            yield bytes(view[start:end])


def gather_pieces(data: U8, starts: I64, sizes: I64) -> U8:
    """Return the pieces `data[start:start + size]`, one after the other in a new buffer, at memcpy speed."""
    ends = np.cumsum(sizes)
    total = int(ends[-1]) if len(ends) else 0
    if total <= _FEW_BYTES:
        return data[np.repeat(starts - (ends - sizes), sizes) + np.arange(total)]
    used = sizes > 0
    low, high = int(starts[used].min()), int((starts + sizes)[used].max())
    if high - low > BUFFER_LIMIT:
        view = data.data
        pairs = zip(starts.tolist(), (starts + sizes).tolist(), strict=True)
        return np.frombuffer(b"".join([view[start:end] for start, end in pairs]), np.uint8)
    window = pa.py_buffer(data[low:high])
    views = reference_views(np.where(used, starts - low, 0), sizes, window, 0)
    joined, _ = concatenate(views, (window,))
    return np.frombuffer(joined, np.uint8)[:total]
