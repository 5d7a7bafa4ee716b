"""Find the records in the bytes of a TFRecord file, and check their CRCs.

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

import contextlib
import itertools
import threading
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
from crc32c import crc32c

from .framing import FOOTER_BYTES, FRAME_BYTES, HEADER_BYTES, Payloads, crc32c_of_lengths, mask, mask_each, unmask_each

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
    """What is wrong with a record: its number from 0, its byte offset, and why; never its payload.

    The offset counts from the file's first byte (of a compressed file: from the first byte of its contents).
    """

    record: int
    offset: int
    reason: str

    def __str__(self) -> str:
        return f"record {self.record} at byte {self.offset}: {self.reason}"


@dataclass(frozen=True, slots=True)
class ScanStart:
    """Where a piece of a file is: the number of its first record (from 0) and that record's byte offset."""

    record: int = 0
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


# Find records again where the walk from one to the next is broken.
#
# A header proves itself: 8 bytes of length, then their CRC. So the next record is at the first byte whose twelve
# bytes are a header; by chance that is one of 2**32 places, and what is to be believed needs a second proof beside
# it: the CRC of its data, or another header right after it.


_FLIPS: Final = np.uint64(1) << np.arange(64, dtype=np.uint64)


def find_headers(data: npt.NDArray[np.uint8], limit: int) -> npt.NDArray[np.int64]:
    """Return where the headers of records are in the data, of payloads of at most `limit` bytes (below 2**62).

    Most places are out by their length alone, which is then over the limit: one comparison a byte.
    """
    places = len(data) - HEADER_BYTES + 1
    if places <= 0:
        return np.empty(0, np.int64)
    lengths = np.ndarray((places,), "<u8", data, strides=(1,))
    stored = np.ndarray((places,), "<u4", data, offset=8, strides=(1,))
    near = np.flatnonzero(lengths <= np.uint64(limit))
    crcs = mask_each(crc32c_of_lengths(lengths[near].astype(np.int64)))
    found: npt.NDArray[np.int64] = near[crcs == stored[near]]
    return found


def likely_lengths(head: bytes, limit: int) -> list[int]:
    """Return what the length in a damaged header may have been, the likeliest first; each is to be proven by its data.

    It is what is there, if only its CRC was hit; or the one that a single flipped bit made of it.
    """
    length, stored = int.from_bytes(head[:8], "little"), int.from_bytes(head[8:HEADER_BYTES], "little")
    flipped = (np.uint64(length) ^ _FLIPS).astype(np.uint64)
    flipped = flipped[flipped <= np.uint64(limit)]
    right = mask_each(crc32c_of_lengths(flipped.astype(np.int64))) == np.uint32(stored)
    return [int(value) for value in flipped[right]] + [length] * (length <= limit)


# Walk from record to record by their lengths: many records at once, where they are small.
#
# Where a record begins is known only when the one before it is. But a header proves itself by the CRC of its length,
# so that some can be found in the middle, and as many walks advance in lock-step, each up to the start of the next:
#
#     found    ▼              ▼              ▼              ▼          a header each, in a short window
#     walks    ├─┼──┼─┼──┼────┼──┼─┼───┼─┼───┼─┼──┼──┼─┼────┼─┼──┼─    one step of all of them is four calls of numpy
#                             ╵ each must come to the next one's start, exactly; else all is walked in turn
#
# The first walk begins where the data do, so that what is returned is what one walk in turn finds.


I64 = npt.NDArray[np.int64]

_WALKS: Final = 256
_LEAST_BYTES: Final = 512 << 10
_FIRST_RECORDS: Final = 16
"""Records that are walked in turn, to know how long they are."""

_SMALL_BYTES: Final = 300
"""From this length on a walk in turn is as fast."""

_WINDOW_RECORDS: Final = 1.3
"""Length of a window, in records: long enough for nearly all walks, and to search it is most of the work."""

_LONGEST_WALK: Final = 4
"""In units of the length that all would have if each began at its place: the longest decides the number of steps."""

_MOST_HITS: Final = 64
"""Places for each walk that may look like a length: data full of zeros have many, and to prove them takes long."""


def walk_records(data: npt.NDArray[np.uint8], *, walks: int = _WALKS, least_bytes: int = _LEAST_BYTES) -> I64:
    """Return where each record ends that is wholly in the data, as far as its length can be believed."""
    if len(data) < least_bytes:
        return _walk_in_turn(data)
    first = _walk_in_turn(data, _FIRST_RECORDS)
    if len(first) < _FIRST_RECORDS or int(first[-1]) > _SMALL_BYTES * _FIRST_RECORDS:
        return _walk_in_turn(data)
    starts = _find_starts(data, round(_WINDOW_RECORDS * int(first[-1]) / _FIRST_RECORDS), walks)
    longest = int(np.diff(starts, prepend=0, append=len(data)).max())
    ends = _walk_together(data, starts) if longest <= _LONGEST_WALK * (len(data) // walks) else None
    return _walk_in_turn(data) if ends is None else ends


def _walk_in_turn(data: npt.NDArray[np.uint8], most: int | None = None) -> I64:
    stop = len(data)
    if stop < HEADER_BYTES:
        return np.empty(0, np.int64)
    length_at = np.ndarray((stop - 7,), "<u8", data, strides=(1,)).item
    ends: list[int] = []
    append, head, framing = ends.append, 0, FRAME_BYTES
    with contextlib.suppress(IndexError, OverflowError):  # the way out: no length is where the next head would be
        for _ in itertools.repeat(None) if most is None else itertools.repeat(None, most):
            head += length_at(head) + framing
            append(head)
    while ends and ends[-1] > stop:
        ends.pop()
    return np.array(ends, np.int64)


def _find_starts(data: npt.NDArray[np.uint8], window: int, count: int) -> I64:
    """Return places of headers, in order: the first in the window after each of some places, where there is one."""
    apart = len(data) // count
    window = min(window, apart - HEADER_BYTES)
    shape, strides = (count - 1, window), (apart, 1)
    lengths = np.ndarray(shape, "<u8", data, apart, strides)
    walks, places = np.nonzero(lengths < np.uint64(apart))
    if len(walks) > _MOST_HITS * count:
        return np.empty(0, np.int64)
    crcs = np.ndarray(shape, "<u4", data, apart + 8, strides)[walks, places]
    sound = mask_each(crc32c_of_lengths(lengths[walks, places].astype(np.int64))) == crcs
    walks, places = walks[sound], places[sound]
    first = np.diff(walks, prepend=-1) > 0
    starts: I64 = (walks[first] + 1) * apart + places[first]
    return starts


def _walk_together(data: npt.NDArray[np.uint8], starts: I64) -> I64 | None:
    """Return where records end, or None if a walk passed the start of the next one by."""
    stop = len(data)
    lengths = np.ndarray((stop - 7,), "<u8", data, strides=(1,))
    heads = np.append(0, starts)
    bounds = np.append(starts, stop)
    steps: list[I64] = []
    while (heads < bounds).any():
        found = np.minimum(lengths[np.minimum(heads, stop - 8)], np.uint64(stop)).astype(np.int64)
        heads = heads + found + FRAME_BYTES
        steps.append(heads)
    ends = np.stack(steps, axis=1)
    inside = ends <= bounds[:, None]
    counts = inside.sum(axis=1)
    walks = np.arange(len(starts))
    if len(starts) and (not counts[:-1].all() or (ends[walks, counts[:-1] - 1] != starts).any()):
        return None
    found_ends: I64 = ends[inside]
    return found_ends


# Prove the checksums of many small records at once.
#
# One call for each payload's CRC is most of what reading small records costs. But a CRC is linear, so one CRC over a
# whole run says whether all of them are right. Take the run, and put into each gap between two payloads what would
# bring the CRC's register back to its start, if the payload before it is what its CRC says:
#
#     the run    ...payload │ footer       │ header    │ payload...     register after a payload: ~crc
#     patched    ...payload │ ~crc (to 0)  │ 0 0 0     │ ~pay load...   after the first words: all ones ^ the first word
#
# Then the register is 0 at the end. Nothing is patched: the exclusive or of both runs is zeros but for the gaps, and
# has the same register. So two CRCs are compared, of the run and of that, each at the speed of memory.
#
# With one damaged record in a run, the registers always differ. With several, they agree by chance once in 2**32, as
# does the CRC of a damaged record itself.


_ONES: Final = 0xFFFFFFFF
"""A CRC that is handed on as this begins with a register of zeros."""

_WORD: Final = 4
_GAP_BYTES: Final = 16
"""A footer, and the header after it."""

_PATCH_BYTES: Final = _GAP_BYTES + _WORD


class _Scratch(threading.local):
    """Zeros of this thread: a caller that writes to them sets them to zero again, which is cheaper than filling all."""

    bytes_: npt.NDArray[np.uint8] = np.zeros(0, np.uint8)

    def zeros(self, size: int) -> npt.NDArray[np.uint8]:
        if len(self.bytes_) < size:
            self.bytes_ = np.zeros(size, np.uint8)
        return self.bytes_[:size]


_scratch: Final = _Scratch()


def checksums_hold(payloads: Payloads, crcs: npt.NDArray[np.uint32]) -> bool:
    """Return whether all framed records have their CRC32C. Raises `ValueError` for none, or one below a word."""
    data, starts, ends = payloads.data, payloads.starts, payloads.ends
    if not len(payloads) or int((ends - starts).min()) < _WORD:
        raise ValueError("payloads of four bytes and more are checked together")
    first, last = int(starts[0]), int(ends[-1]) + _WORD
    gaps = ends[:-1]
    patches = np.empty((len(gaps), _PATCH_BYTES // _WORD), np.uint32)
    if len(gaps):
        framing = np.ndarray((len(data) - _GAP_BYTES + 1,), f"V{_GAP_BYTES}", data, strides=(1,))[gaps]
        patches[:, :-1] = framing.view(np.uint32).reshape(len(gaps), -1)
    patches[:, 0] ^= ~crcs[:-1]
    patches[:, -1] = _ONES
    patch = _scratch.zeros(last - first)
    places = np.ndarray((max(len(patch) - _PATCH_BYTES + 1, 0),), f"V{_PATCH_BYTES}", patch, strides=(1,))
    offsets = gaps - first
    places[offsets] = patches.view(f"V{_PATCH_BYTES}").reshape(-1)
    patch[:_WORD] = 0xFF
    patch[-_WORD:] ^= data[last - _WORD : last] ^ (~crcs[-1:]).view(np.uint8)
    try:
        return bool(crc32c(data.data[first:last], _ONES) == crc32c(patch.data, _ONES))
    finally:
        places[offsets] = np.zeros(1, places.dtype)
        patch[:_WORD] = patch[-_WORD:] = 0
