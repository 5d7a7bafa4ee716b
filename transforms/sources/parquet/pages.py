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

from ...inputs.files.open_file import ReadAt

# Walk over Thrift's compact protocol, and keep only the fields that are asked for.
#
#     struct   [distance to the field's number : 4 bits | type : 4 bits] value ... 00
#     list     [size : 4 bits | type : 4 bits] element ...           (size 15: a varint follows)
#     numbers  zigzag varints        binary   varint length, bytes
#
# Every length is checked against what is left of the data before it is used, and nesting against a limit.
#
# https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md


STOP: Final = 0
TRUE: Final = 1
FALSE: Final = 2
BYTE: Final = 3
NUMBERS: Final = (4, 5, 6)
DOUBLE: Final = 7
BINARY: Final = 8
LISTS: Final = (9, 10)
MAP: Final = 11
STRUCT: Final = 12

_DEEPEST: Final = 64
_LONGEST_VARINT: Final = 10


class ThriftError(ValueError):
    """The data is not compact Thrift."""


class ThriftReader:
    """Reads from front to back; each method leaves the reader after what it read."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def at(self) -> int:
        return self._at

    def fields(self) -> Iterator[tuple[int, int]]:
        """Yield number and type of each field of a struct; the caller reads or skips its value before the next."""
        number = 0
        while (head := self._byte()) != STOP:
            distance = head >> 4
            number = number + distance if distance else self.number()
            yield number, head & 0x0F

    def numbers(self, wanted: frozenset[int]) -> dict[int, int]:
        """Read a struct; return those of its wanted fields that are integers, and skip all others."""
        found = {}
        for number, kind in self.fields():
            if kind in NUMBERS and number in wanted:
                found[number] = self.number()
            else:
                self.skip(kind)
        return found

    def list_head(self, kind: int) -> tuple[int, int]:
        """Read the start of a list, whose field has type `kind`; return its size and the type of its elements."""
        if kind not in LISTS:
            raise ThriftError(f"type {kind} where a list should be")
        head = self._byte()
        size = head >> 4
        if size == 15:
            size = self._varint()
        self._need(size)
        return size, head & 0x0F

    def elements(self, kind: int) -> Iterator[int]:
        """Yield the type of each element of a list; the caller reads or skips each."""
        size, element = self.list_head(kind)
        for _ in range(size):
            yield element

    def number(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)

    def binary(self) -> bytes:
        size = self._varint()
        at = self._at
        self._advance(size)
        return bytes(self._data[at : at + size])

    def skip(self, kind: int, depth: int = 0) -> None:
        if depth > _DEEPEST:
            raise ThriftError("nested too deep")
        if kind in NUMBERS:
            self._varint()
        elif kind == BINARY:
            self._advance(self._varint())
        elif kind == STRUCT:
            for _, inner in self.fields():
                self.skip(inner, depth + 1)
        elif kind in LISTS:
            for inner in self.elements(kind):
                self._skip_element(inner, depth)
        elif kind == MAP:
            self._skip_map(depth)
        elif kind in (BYTE, DOUBLE):
            self._advance(1 if kind == BYTE else 8)
        elif kind not in (TRUE, FALSE):
            raise ThriftError(f"there is no type {kind}")

    def _skip_map(self, depth: int) -> None:
        size = self._varint()
        if size:
            self._need(size)
            kinds = self._byte()
            for _ in range(size):
                self._skip_element(kinds >> 4, depth)
                self._skip_element(kinds & 0x0F, depth)

    def _skip_element(self, kind: int, depth: int) -> None:
        """Skip an element of a list or map: there, unlike in a struct, a boolean is a byte."""
        if kind in (TRUE, FALSE):
            self._advance(1)
        else:
            self.skip(kind, depth + 1)

    def _byte(self) -> int:
        at = self._at
        self._advance(1)
        return self._data[at]

    def _varint(self) -> int:
        value = shift = 0
        for _ in range(_LONGEST_VARINT):
            byte = self._byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7
        raise ThriftError("a number of more than ten bytes")

    def _advance(self, count: int) -> None:
        self._need(count)
        self._at += count

    def _need(self, count: int) -> None:
        if count > len(self._data) - self._at:
            raise ThriftError(f"{count} bytes where {len(self._data) - self._at} are left")


# Read the row groups out of a Parquet footer's bytes: where column chunks are, how large they are, their nulls.
#
# pyarrow has these numbers too, but its accessors end the process on a footer that is encrypted in part or damaged in
# certain places (`ColumnChunk` and `statistics` throw C++ exceptions through code that cannot pass them on). Here
# such a footer is an error with a text.
#
# https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift


_FILE_SCHEMA, _FILE_ROWS, _FILE_ROW_GROUPS, _FILE_ENCRYPTION = 2, 3, 4, 8
_CHILDREN: Final = 5
_OF_GROUPS: Final = frozenset({_CHILDREN})
MOST_LEVELS: Final = 200
_FEW: Final = 1000
_GROUP_COLUMNS, _GROUP_ROWS = 1, 3
_CHUNK_FILE, _CHUNK_META, _CHUNK_CRYPTO = 1, 3, 8
_TYPE, _VALUES, _UNCOMPRESSED, _COMPRESSED, _DATA_PAGE, _DICTIONARY_PAGE = 1, 5, 6, 7, 9, 11
_META_NUMBERS: Final = frozenset({_TYPE, _VALUES, _UNCOMPRESSED, _COMPRESSED, _DATA_PAGE, _DICTIONARY_PAGE})
_WIDTHS: Final = {1: 4, 2: 8, 3: 12, 4: 4, 5: 8}
"""Bytes of a value in memory by physical type (int32, int64, int96, float, double): in a file with a dictionary, or of
long runs, values take a small part of that."""
_META_STATISTICS, _META_SIZES = 12, 16
_NULL_COUNT: Final = 3

_UNENCODED_BYTES: Final = 1


class EncryptedError(ValueError):
    """The footer says that the file, or a column of it, is encrypted."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """One column of one row group: where it starts, its size in the file, and that of its values in memory or so.

    `nulls` is None where no statistics count them.
    """

    start: int
    values: int
    compressed: int
    unpacked: int
    nulls: int | None


@dataclass(frozen=True, slots=True)
class ChunkGroup:
    """One row group: its rows, and the wanted ones of its chunks, in the order of `leaves`."""

    rows: int
    chunks: tuple[Chunk, ...]


def count_columns(footer: bytes, most: int) -> int:
    """Return how many columns the schema has, those within nested ones too.

    Where they must be more than `most`, groups such as lists count as well. Raises `ThriftError` where the footer is
    damaged, or nested so deep that pyarrow would end the process.
    """
    reader = ThriftReader(footer)
    for number, kind in reader.fields():
        if number != _FILE_SCHEMA:
            reader.skip(kind)
            continue
        size, _ = reader.list_head(kind)
        if size > max(8 * most, _FEW):
            return size - 1
        columns, within = 0, list[int]()
        for _ in range(size):
            if (children := reader.numbers(_OF_GROUPS).get(_CHILDREN, 0)) > 0:
                within.append(children)
                if len(within) > MOST_LEVELS:
                    raise ThriftError(f"its columns are nested more than {MOST_LEVELS} levels deep")
                continue
            columns += 1
            while within:
                within[-1] -= 1
                if within[-1]:
                    break
                within.pop()
        return columns
    return 0


def read_groups(footer: bytes, leaves: Sequence[int], columns: int) -> tuple[int, tuple[ChunkGroup, ...]]:
    """Return the rows of the file and its row groups, with the chunks of the wanted `leaves` (sorted) of `columns`.

    Raises `ThriftError` where the footer is damaged, `EncryptedError` where the file is encrypted.
    """
    reader = ThriftReader(footer)
    rows = 0
    groups: list[ChunkGroup] = []
    for number, kind in reader.fields():
        if number == _FILE_ROWS and kind in NUMBERS:
            rows = reader.number()
        elif number == _FILE_ROW_GROUPS and kind in LISTS:
            wanted = frozenset(leaves)
            groups = [_read_group(reader, element, wanted, columns) for element in reader.elements(kind)]
        elif number == _FILE_ENCRYPTION:
            raise EncryptedError
        else:
            reader.skip(kind)
    return rows, tuple(groups)


def _read_group(reader: ThriftReader, kind: int, wanted: frozenset[int], columns: int) -> ChunkGroup:
    if kind != STRUCT:
        raise ThriftError(f"type {kind} where a row group should be")
    rows = count = 0
    chunks: list[Chunk] = []
    for number, field_kind in reader.fields():
        if number == _GROUP_COLUMNS and field_kind in LISTS:
            for count, element in enumerate(reader.elements(field_kind), start=1):
                if count - 1 in wanted:
                    chunks.append(_read_chunk(reader, element))
                else:
                    reader.skip(element)
        elif number == _GROUP_ROWS and field_kind in NUMBERS:
            rows = reader.number()
        else:
            reader.skip(field_kind)
    if count != columns:
        raise ThriftError(f"a row group has {count} columns of {columns}")
    if rows < 0:
        raise ThriftError(f"a row group has {rows} rows")
    return ChunkGroup(rows, tuple(chunks))


def _read_chunk(reader: ThriftReader, kind: int) -> Chunk:
    if kind != STRUCT:
        raise ThriftError(f"type {kind} where a column chunk should be")
    chunk = None
    for number, field_kind in reader.fields():
        if number == _CHUNK_META and field_kind == STRUCT:
            chunk = _read_meta(reader)
        elif number == _CHUNK_CRYPTO:
            raise EncryptedError
        elif number == _CHUNK_FILE:
            raise ThriftError("a column is in another file, which is not supported")
        else:
            reader.skip(field_kind)
    if chunk is None:
        raise ThriftError("a column chunk has no metadata")
    return chunk


def _read_meta(reader: ThriftReader) -> Chunk:
    numbers: dict[int, int] = {}
    nulls = None
    unencoded = 0
    for number, kind in reader.fields():
        if number in _META_NUMBERS and kind in NUMBERS:
            numbers[number] = reader.number()
        elif number == _META_STATISTICS and kind == STRUCT:
            nulls = reader.numbers(frozenset({_NULL_COUNT})).get(_NULL_COUNT)
        elif number == _META_SIZES and kind == STRUCT:
            unencoded = reader.numbers(frozenset({_UNENCODED_BYTES})).get(_UNENCODED_BYTES, 0)
        else:
            reader.skip(kind)
    try:
        start, values = numbers[_DATA_PAGE], numbers[_VALUES]
        compressed, uncompressed = numbers[_COMPRESSED], numbers[_UNCOMPRESSED]
    except KeyError as error:
        raise ThriftError("a column chunk lacks its offset or its size") from error
    dictionary = numbers.get(_DICTIONARY_PAGE, 0)
    # Writers without a dictionary may say 0 or nothing.
    start = min(start, dictionary) if dictionary > 0 else start
    if min(start, values, compressed) < 0:
        raise ThriftError("a column chunk has a negative offset or size")
    decoded = values * _WIDTHS.get(numbers.get(_TYPE, -1), 0)
    return Chunk(start, values, compressed, max(uncompressed, compressed, unencoded, decoded), nulls)


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
