"""Row groups of many columns, some columns at a time: a reader holds a page of each of its columns, and more than once.

columns 0 to 584     ──decode──▶ temporary file ─┐
columns 585 to 1169  ──decode──▶ temporary file ─┼──▶ batches of all columns
...                                              ┘
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import BinaryIO, Final, cast

import pyarrow as pa

from ...errors import SourceError

_READERS_BYTES: Final = 192 << 20
_AT_ONCE_BYTES: Final = 64 << 20
"""Readers that would hold more than the first are opened for some columns at a time, which hold the second."""

_PAGE_BYTES: Final = 1 << 20
"""What writers put into a page, or into a dictionary."""

_COPIES: Final = 3
"""A page as it is in the file, unpacked, and its dictionary: so much a column took of 8,000 to 1,000,000 values."""

_LEAST_BYTES: Final = 16 << 10
_FEWEST: Final = 16
_BUFFER_BYTES: Final = 1 << 20

Read = Callable[[Sequence[int]], Iterator[pa.RecordBatch]]


def columns_at_once(columns: int, unpacked: int) -> int:
    """Return how many columns of a row group, whose values take so many bytes, are to be read at once."""
    held = _COPIES * min(unpacked // max(columns, 1), _PAGE_BYTES) + _LEAST_BYTES
    return columns if columns * held <= _READERS_BYTES else min(max(_AT_ONCE_BYTES // held, _FEWEST), columns)


def slices_of(leaves: Sequence[int], counts: Sequence[int], at_once: int) -> list[Sequence[int]]:
    """Return the leaves in slices of so many; those of one column, of which `counts` has the numbers, stay together.

    >>> slices_of([0, 1, 2, 5], [1, 2, 1], 2)
    [[0], [1, 2], [5]]
    """
    slices, start, end = [], 0, 0
    for count in counts:
        if end > start and end + count - start > at_once:
            slices.append(leaves[start:end])
            start = end
        end += count
    return [*slices, leaves[start:]]


def side_by_side(read: Read, slices: Sequence[Sequence[int]]) -> Iterator[pa.RecordBatch]:
    """Yield batches of the columns of all slices, each slice being read to its end first.

    Raises `pa.ArrowInvalid` where slices differ in their rows.
    """
    with ExitStack() as stack:
        files = [cast(BinaryIO, stack.enter_context(tempfile.TemporaryFile())) for _ in slices]
        streams = [_kept(read(leaves), file) for leaves, file in zip(slices, files, strict=True)]
        parts: list[pa.RecordBatch | None] = [None] * len(streams)
        while True:
            parts = [_next_rows(stream, part) for stream, part in zip(streams, parts, strict=True)]
            there = [part for part in parts if part is not None]
            if not there:
                return
            if len(there) < len(parts):
                raise pa.ArrowInvalid("its columns differ in their rows")
            rows = min(part.num_rows for part in there)
            arrays = [array for part in there for array in part.slice(0, rows).columns]
            yield pa.RecordBatch.from_arrays(arrays, names=[name for part in there for name in part.schema.names])
            parts = [part.slice(rows) for part in there]


def _next_rows(stream: Iterator[pa.RecordBatch], part: pa.RecordBatch | None) -> pa.RecordBatch | None:
    while part is None or not part.num_rows:
        part = next(stream, None)
        if part is None:
            return None
    return part


def _kept(batches: Iterator[pa.RecordBatch], file: BinaryIO) -> Iterator[pa.RecordBatch]:
    """Write batches into a file, and return what reads them again."""
    writer: pa.ipc.RecordBatchStreamWriter | None = None
    out = pa.BufferedOutputStream(pa.PythonFile(file, "w"), _BUFFER_BYTES)
    for batch in batches:
        try:
            writer = writer or pa.ipc.new_stream(out, batch.schema)
            writer.write_batch(batch)
        except OSError as error:
            raise _not_kept(error) from error
    if writer is None:
        return iter(())
    try:
        writer.close()
        out.detach()  # flushed, where closing would close the file
    except OSError as error:
        raise _not_kept(error) from error
    file.seek(0)
    return iter(pa.ipc.open_stream(pa.PythonFile(file, "r")))


def _not_kept(error: OSError) -> SourceError:
    why = str(error) if error.errno is None else os.strerror(error.errno)
    return SourceError(
        tempfile.gettempdir(),
        f"the folder for temporary files takes no columns of a wide row group: {why}; free some space, or let TMPDIR "
        "name another folder",
    )
