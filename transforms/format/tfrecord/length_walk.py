"""Walk from record to record by their lengths: many records at once, where they are small.

Where a record begins is known only when the one before it is. But a header proves itself by the CRC of its length, so
that some can be found in the middle, and as many walks advance in lock-step, each up to the start of the next:

    found    ▼              ▼              ▼              ▼          a header each, in a short window
    walks    ├─┼──┼─┼──┼────┼──┼─┼───┼─┼───┼─┼──┼──┼─┼────┼─┼──┼─    one step of all of them is four calls of numpy
                            ╵ each must come to the next one's start, exactly; else all is walked in turn

The first walk begins where the data do, so that what is returned is what one walk in turn finds.
"""

from __future__ import annotations

import contextlib
import itertools
from typing import Final

import numpy as np
import numpy.typing as npt

from ..buffers.checksum import crc32c_of_lengths, mask_each
from .framing import FRAME_BYTES, HEADER_BYTES

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
