"""TFRecord framing: each record between a header and a footer.

    uint64 length | uint32 masked CRC32C of the length | payload | uint32 masked CRC32C of the payload

All numbers are little-endian. A batch is framed by one concatenation: a matrix of three views a record, where header
and footer are in the view itself and the payload is a reference to the bytes that the encoder wrote:

    [ 12 | length, crc ] [ n | ──▶ payload ] [ 4 | crc ]
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import pyarrow as pa

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
from ..batches.views import BUFFER_LIMIT, I64, Views, gather, inline_views, reference_views

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
