"""Many small pieces of bytes put together at memory speed: writev, vectorised.

A piece is described by 16 bytes, an Arrow *binary view*: four int32, of which the first is the length in bytes.

    length <= 12    | length | the bytes themselves, padded with zeros |
    length > 12     | length | unused | buffer index | offset           |      into a buffer that exists already

For n rows of p pieces, the views laid out row by row, `int32[n, p, 4]`, *are* the data buffer of an Arrow `binary_view`
array. Casting that to `large_binary` copies every piece to its place, in order, in one call that holds no lock:

              piece 0   piece 1   piece 2
    row 0    [ view ]  [ view ]  [ view ]
    row 1    [ view ]  [ view ]  [ view ]   ──cast──▶   0:0 0:1 0:2 1:0 1:1 1:2 ...   and where each one ends

A view of length zero is an absent piece, so nulls need no branch. The third field of Arrow's reference, the first four
bytes, is for comparisons, which nobody makes here: it stays zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Views = npt.NDArray[np.complex128]
"""Views, one an element. A complex number is never meant: it is numpy's one plain 16-byte item that it moves fast."""

I64 = npt.NDArray[np.int64]

INLINE_BYTES: Final = 12
"""Pieces of this length or less must be in the view itself; Arrow reads longer ones through the reference."""

BUFFER_LIMIT: Final = (1 << 31) - 1
"""A view's offset is an int32: a buffer that views refer to ends below 2 GiB."""


def inline_views(content: npt.NDArray[np.uint32], lengths: npt.NDArray[np.int32] | int) -> Views:
    """Return views whose bytes are the rows of `content`: `uint32[n, up to 3]`, zero beyond `lengths` bytes."""
    views = np.zeros((len(content), 4), np.int32)
    views[:, 0] = lengths
    views[:, 1 : 1 + content.shape[1]] = content.view(np.int32)
    return as_views(views)


def as_views(words: npt.NDArray[np.int32]) -> Views:
    """Return `int32[n, 4]`, C-contiguous, as `n` views."""
    return words.view(np.complex128).reshape(-1)


def words_of(views: Views) -> npt.NDArray[np.int32]:
    return views.reshape(-1, 1).view(np.int32)


def lengths_of(views: Views) -> I64:
    return words_of(views)[:, 0].astype(np.int64)


def reference_views(offsets: I64, lengths: I64, data: pa.Buffer, index: int) -> Views:
    """Return views of `data[offset:offset + length]`, `data` being buffer `index`. Raises `ValueError` beyond 2 GiB."""
    words = np.zeros((len(lengths), 4), np.int32)
    if len(lengths) and int((offsets + lengths).max()) > BUFFER_LIMIT:
        raise ValueError(f"a piece ends beyond {BUFFER_LIMIT} bytes of its buffer")
    words[:, 0] = lengths
    words[:, 2] = index
    words[:, 3] = offsets
    short = np.flatnonzero(lengths <= INLINE_BYTES)
    if len(short):
        content = np.zeros((len(short), INLINE_BYTES), np.uint8)
        if data.size:
            positions = offsets[short, None] + np.arange(INLINE_BYTES)
            source = np.frombuffer(data, np.uint8)
            content = source[np.minimum(positions, len(source) - 1)]
            content[np.arange(INLINE_BYTES) >= lengths[short, None]] = 0
        words[short, 1:] = content.view(np.int32)
    return as_views(words)


def at_index(views: Views, index: int) -> Views:
    """Return views into buffers 0, 1, ... as ones into buffers `index`, `index + 1`, ...; inline views stay."""
    if index == 0:
        return views
    words = words_of(views.copy())
    words[:, 2] += (words[:, 0] > INLINE_BYTES) * np.int32(index)
    return as_views(words)


def gather(
    pieces: Sequence[Views], rows: int, buffers: Sequence[pa.Buffer], *, after: Views | None = None
) -> tuple[pa.Buffer, I64]:
    """Put the pieces of every row together, row after row; `after`, one view, is after them all.

    Each of `pieces` holds one view a row, or a single view that all rows share. The result is the bytes, and
    `int64[rows, len(pieces)]`: where each piece ends in them.
    """
    count = rows * len(pieces)
    views = np.empty(count if after is None else count + 1, np.complex128)
    matrix = views[:count].reshape(rows, len(pieces))
    for column, piece in enumerate(pieces):
        matrix[:, column] = piece
    if after is not None:
        views[count:] = after
    data, ends = concatenate(views, buffers)
    return data, ends[:count].reshape(rows, len(pieces))


def binary_array_of(views: Views, buffers: Sequence[pa.Buffer]) -> pa.LargeBinaryArray:
    array = pa.Array.from_buffers(pa.binary_view(), len(views), [None, pa.py_buffer(views), *buffers])
    return array.cast(pa.large_binary())


def concatenate(views: Views, buffers: Sequence[pa.Buffer]) -> tuple[pa.Buffer, I64]:
    """Return the bytes of all pieces, one after the other, and where each one ends in them."""
    if not len(views):
        return pa.py_buffer(b""), np.zeros(0, np.int64)
    _, offsets, data = binary_array_of(views, buffers).buffers()
    ends = np.frombuffer(offsets, np.int64, len(views), offset=8)
    return pa.py_buffer(b"") if data is None else data, ends
