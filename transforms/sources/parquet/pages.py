"""Walk the page headers of Parquet column chunks before anything is decoded, and refuse those with false sizes.

    column chunk   [header | dictionary page] [header | data page] [header | data page] ...
    header         type, size unpacked, size in the file, checksum, how many values

A decoder allocates by these numbers before it looks at a page: a flipped bit in one can ask for gigabytes. So each is
checked against what a page of its size in the file can be.

https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from ..files.open_file import ReadAt
from .column_chunks import Chunk
from .thrift_compact import NUMBERS, STRUCT, ThriftError, ThriftReader

_TYPE, _UNPACKED, _PACKED = 1, 2, 3
_VALUES_OF: Final = {5: 1, 7: 1, 8: 1}
"""The structs of a header (data page, dictionary page, data page of version 2), and their field that counts values."""

_DICTIONARY: Final = 2
_HEADER_BYTES: Final = (256, 64 << 10, 1 << 20)
"""What is read of a header: it is longer only where the statistics in it hold long values."""

_BOMB_BYTES: Final = 256 << 20
_BOMB_RATIO: Final = 1000
_BOMB_VALUES: Final = 16 << 20
_VALUES_A_BYTE: Final = 8000
"""Runs of one value take a few bytes each, whatever their length: more values than these are not a table but a bomb."""


_BATCH_BYTES: Final = 256 << 20
_BATCH_ROWS: Final = 1 << 20
"""What a command that is proposed reads at a time."""

PackedSpans = bytes
"""Where the chunks of a row group are, and how many values they hold: three int64 each."""


@dataclass(frozen=True, slots=True)
class ChunkSpan:
    """Where a column chunk is, and how many values it holds, and each row of its row group about.

    `number` counts the chunks of the row group that are read.
    """

    number: int
    start: int
    size: int
    values: int
    row_values: int


class PageBombError(ValueError):
    """A page unpacks to more than a table has.

    `chunk` is the number of its column chunk, of those that were walked; `rows` are about as many as fit memory.
    """

    def __init__(self, chunk: ChunkSpan, values: int, unpacked: int, text: str) -> None:
        super().__init__(text)
        self.chunk = chunk.number
        row_bytes = chunk.row_values * (8 + unpacked // max(values, 1))
        self.rows = min(max(_BATCH_BYTES // row_bytes, 1), _BATCH_ROWS)


def pack_spans(chunks: Sequence[Chunk]) -> PackedSpans:
    """Return the places of some chunks, packed: there are as many as a table has columns and row groups."""
    return np.array([(chunk.start, chunk.compressed, chunk.values) for chunk in chunks], np.int64).tobytes()


def chunk_ranges(spans: PackedSpans) -> Iterator[tuple[int, int]]:
    for start, size, _ in np.frombuffer(spans, np.int64).reshape(-1, 3).tolist():
        yield start, start + size


def check_pages(read: ReadAt, spans: PackedSpans, rows: int) -> None:
    """Walk the pages of the chunks of one row group, which `pack_spans` has packed; `read` reads in their file.

    Raises `ThriftError` where a header is damaged, or a number in it is none that its page can have; `PageBombError`
    where a page unpacks to more than it may.
    """
    for number, (start, size, values) in enumerate(np.frombuffer(spans, np.int64).reshape(-1, 3).tolist()):
        _check_chunk(read, ChunkSpan(number, start, size, values, -(-values // max(rows, 1))))


def _check_chunk(read: ReadAt, chunk: ChunkSpan) -> None:
    at, end, values = chunk.start, chunk.start + chunk.size, 0
    while at < end and values < chunk.values:
        header, numbers, found = _read_header(read, at)
        _check_page(numbers, found, chunk, at)
        if numbers[_TYPE] != _DICTIONARY:
            values += found
        at += header + numbers[_PACKED]


def _read_header(read: ReadAt, at: int) -> tuple[int, dict[int, int], int]:
    """Return the size of a page header, its numbers, and its count of values."""
    for size in _HEADER_BYTES:
        data = read(size, at)
        reader = ThriftReader(data)
        try:
            numbers, values = _parse(reader)
        except ThriftError as error:
            if size == _HEADER_BYTES[-1] or len(data) < size:
                raise ThriftError(f"the page header at byte {at}: {error}") from error
            continue
        if not {_TYPE, _UNPACKED, _PACKED} <= numbers.keys():
            raise ThriftError(f"the page header at byte {at} lacks its type or its size")
        return reader.at, numbers, values
    raise AssertionError  # the last size returns or raises


def _parse(reader: ThriftReader) -> tuple[dict[int, int], int]:
    numbers: dict[int, int] = {}
    values = 0
    for number, kind in reader.fields():
        if kind in NUMBERS:
            numbers[number] = reader.number()
        elif kind == STRUCT and number in _VALUES_OF:
            field = _VALUES_OF[number]
            values = reader.numbers(frozenset({field})).get(field, 0)
        else:
            reader.skip(kind)
    return numbers, values


def _check_page(numbers: dict[int, int], values: int, chunk: ChunkSpan, at: int) -> None:
    unpacked, packed = numbers[_UNPACKED], numbers[_PACKED]
    where = f"the page at byte {at}"
    if packed < 0 or packed > chunk.start + chunk.size - at:
        raise ThriftError(f"{where} has {packed} bytes, of a column chunk of {chunk.size}")
    if unpacked < 0:
        raise ThriftError(f"{where} claims to unpack {packed} bytes to {unpacked}")
    if unpacked > max(_BOMB_BYTES, _BOMB_RATIO * packed):
        most = f"beyond {_BOMB_BYTES >> 20} MiB at most {_BOMB_RATIO:,} times as many"
        text = f"{where} unpacks {packed:,} bytes to {unpacked:,}; {most} are read"
        raise PageBombError(chunk, values, unpacked, text)
    possible = unpacked if numbers[_TYPE] == _DICTIONARY else chunk.values
    if not 0 <= values <= possible:
        raise ThriftError(f"{where} claims {values} values, where there can be {possible}")
    if chunk.row_values > 1 and values > max(_BOMB_VALUES, _VALUES_A_BYTE * packed):
        most = f"beyond {_BOMB_VALUES:,} values at most {_VALUES_A_BYTE:,} a byte"
        text = f"{where} has {values:,} values of lists in {packed:,} bytes; {most} are read"
        raise PageBombError(chunk, values, unpacked, text)
