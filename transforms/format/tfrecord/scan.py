"""Find the records in TFRecord bytes, and prove them.

    ┌─────────────┬───────────────┬──────────────────┬───────────────┐
    │ 8 length    │ 4 masked CRC  │ payload          │ 4 masked CRC  │
    │ (uint64 LE) │ of the length │ (`length` bytes) │ of the payload│
    └─────────────┴───────────────┴──────────────────┴───────────────┘

Where a record begins is known only when the one before it is: that walk, and the CRC of each large payload, are the two
things that are done record by record. The walk believes the lengths; their CRCs are then checked all at once, and
what was found beyond the first wrong one is forgotten. Nothing is allocated for a length before it is known to fit.

Source: tensorflow/core/lib/io/record_reader.cc.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
from crc32c import crc32c

from ..buffers.checksum import crc32c_of_lengths, mask, mask_each, unmask_each
from ..buffers.payloads import Payloads
from .framing import FOOTER_BYTES, FRAME_BYTES, HEADER_BYTES
from .length_walk import walk_records
from .run_check import checksums_hold

RECORD_BYTES_LIMIT: Final = 1 << 30
"""The default of `limits.record_bytes`; of compressed files, whose size nobody knows, no longer record is believed."""

LARGEST_RECORD_BYTES: Final = (1 << 31) - 1
"""No message of protobuf is longer: what is believed of plain files, whose bytes are there."""

_SMALL_RECORD_BYTES: Final = 3 << 10
"""Below this, on average, payloads are checked together: that takes two passes over memory, and no call for each."""

_CHECKED_TOGETHER_BYTES: Final = 4

WRONG_DATA: Final = "the checksum of its data is wrong"
_WRONG_LENGTH: Final = "the checksum of its length is wrong"
_NO_TFRECORD: Final = "; this is probably no TFRecord file, unless its first bytes are damaged"


@dataclass(frozen=True, slots=True)
class Damage:
    """What is wrong with a record: its number from 1, its byte offset, and why; never its payload.

    The offset counts from the file's first byte (of a compressed file: from the first byte of its contents).
    """

    record: int
    offset: int
    reason: str

    def __str__(self) -> str:
        return f"record {self.record} at byte {self.offset}: {self.reason}"


@dataclass(frozen=True, slots=True)
class ScanStart:
    """Where a piece of a file is: the number of its first record (from 1) and that record's byte offset."""

    record: int = 1
    offset: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Scan:
    """What was found in one piece of a file.

    `crcs` are the payloads' CRC32Cs as the file states them (unmasked, uint32). `consumed` is how many bytes the
    records take. `wanted` is how many bytes the next record needs in all, as far as that is known.
    `damages` are those of payloads, in order; `damaged` are their rows, which stay among the payloads. `broken` is the
    damage to the framing after which no further record can be found.
    """

    payloads: Payloads
    crcs: npt.NDArray[np.uint32]
    consumed: int
    wanted: int = 0
    damages: tuple[Damage, ...] = ()
    damaged: tuple[int, ...] = ()
    broken: Damage | None = None


def scan_records(
    buffer: npt.NDArray[np.uint8],
    stop: int | None = None,
    *,
    at: ScanStart | None = None,
    left: int | None = None,
    check_crc: bool = True,
    record_bytes_limit: int = RECORD_BYTES_LIMIT,
) -> Scan:
    """Return the records that are whole in `buffer[:stop]`, which begins with a record.

    `left` is how many bytes the file has from the first of these on, None where that is not known: if it is `stop`,
    they are all. Without `check_crc` the payloads' CRCs are not computed; those of the lengths always are.
    """
    at = at or ScanStart()
    data = buffer[:stop]
    heads = np.concatenate((np.zeros(1, np.int64), walk_records(data)))
    lengths = np.diff(heads) - FRAME_BYTES
    good = _count_good_lengths(data, heads[:-1], lengths, record_bytes_limit)
    starts, stops = heads[:good] + HEADER_BYTES, heads[1 : good + 1] - FOOTER_BYTES
    payloads = Payloads(buffer, starts, stops)
    crcs = unmask_each(_uint32_at(data, stops))
    damaged = _find_damaged(payloads, crcs) if check_crc else ()
    damages = tuple(Damage(at.record + row, at.offset + int(heads[row]), WRONG_DATA) for row in damaged)
    consumed = int(heads[good])
    wanted, reason = _look_at_next(data[consumed:], None if left is None else left - consumed, record_bytes_limit)
    if reason == _WRONG_LENGTH and at.offset + consumed == 0:
        reason += _NO_TFRECORD
    broken = Damage(at.record + good, at.offset + consumed, reason) if reason else None
    return Scan(payloads, crcs, consumed, wanted, damages, damaged, broken)


def is_record_header(head: bytes) -> bool:
    return len(head) >= HEADER_BYTES and mask(crc32c(head[:8])) == int.from_bytes(head[8:HEADER_BYTES], "little")


def _count_good_lengths(
    data: npt.NDArray[np.uint8], heads: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64], limit: int
) -> int:
    """Return how many records come before the first whose length is wrong or over the limit."""
    if not len(heads):
        return 0
    bad = (mask_each(crc32c_of_lengths(lengths)) != _uint32_at(data, heads + 8)) | (lengths > limit)
    first = int(bad.argmax())
    return first if bad[first] else len(heads)


def _find_damaged(payloads: Payloads, crcs: npt.NDArray[np.uint32]) -> tuple[int, ...]:
    if not len(payloads):
        return ()
    lengths = payloads.ends - payloads.starts
    small = int(lengths.sum()) < _SMALL_RECORD_BYTES * len(payloads)
    if small and int(lengths.min()) >= _CHECKED_TOGETHER_BYTES and checksums_hold(payloads, crcs):
        return ()
    view = payloads.data.data
    pairs = zip(payloads.starts.tolist(), payloads.ends.tolist(), strict=True)
    found = np.array([crc32c(view[start:end]) for start, end in pairs], np.uint32)
    return tuple(np.flatnonzero(found != crcs).tolist())


def _look_at_next(rest: npt.NDArray[np.uint8], left: int | None, limit: int) -> tuple[int, str]:
    """Return how many bytes the record after the whole ones needs (0: not known yet), and what is wrong with it."""
    if left == 0:
        return 0, ""
    if len(rest) < HEADER_BYTES:
        if left is None or left >= HEADER_BYTES:
            return HEADER_BYTES, ""
        return (
            0,
            f"only {left} of the {HEADER_BYTES} bytes of its header are there: the file is cut, or continues wrongly",
        )
    head = rest[:HEADER_BYTES].tobytes()
    if not is_record_header(head):
        zeros = not any(head)
        return 0, "zeros where it should begin" if zeros else _WRONG_LENGTH
    length = int.from_bytes(head[:8], "little")
    if length > limit:
        bound = (
            "that of any Example" if limit == LARGEST_RECORD_BYTES else f"the limit of {limit} (limits.record_bytes)"
        )
        return 0, f"its length, {length} bytes, is over {bound}"
    if left is not None and length + FRAME_BYTES > left:
        return 0, f"its data is cut: it takes {length + FRAME_BYTES} bytes, and {left} are left in the file"
    return length + FRAME_BYTES, ""


def _uint32_at(data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.uint32]:
    if len(data) < 4:
        return np.empty(0, np.uint32)
    return np.ndarray((len(data) - 3,), "<u4", data, strides=(1,))[offsets]
