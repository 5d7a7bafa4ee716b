"""Read the row groups out of a Parquet footer's bytes: where column chunks are, how large they are, their nulls.

pyarrow has these numbers too, but its accessors end the process on a footer that is encrypted in part or damaged in
certain places (`ColumnChunk` and `statistics` throw C++ exceptions through code that cannot pass them on). Here such
a footer is an error with a text.

https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from .thrift_compact import LISTS, NUMBERS, STRUCT, ThriftError, ThriftReader

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
