"""Read INT96 timestamps as the 12 bytes that they are: Arrow's own decoding wraps or cuts silently.

Arrow multiplies them into int64 nanoseconds, modulo 2^64: 9999-12-31 becomes 1816-03-29. It can be asked for
microseconds (`coerce_int96_timestamp_unit`): then 1500 ns are 1 us, and negative nanoseconds are nonsense. So the
footer that it is given says something else of these columns, for which the pages are the same, bit for bit:

    footer    type: INT96    read as    type: FIXED_LEN_BYTE_ARRAY, type_length: 12
    pages     8 bytes, 4 bytes; plain or in a dictionary

A file has these bytes read once, like all others; a file without INT96 is opened as it is.

https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow.parquet as pq

from .int96 import RAW_BYTES
from .thrift_compact import LISTS, NUMBERS, STRUCT, ThriftError, ThriftReader

_FILE_SCHEMA: Final = 2
_ELEMENT_TYPE: Final = 1
_INT96: Final = 3
_FIXED_BYTES: Final = b"\x0e"
"""7, FIXED_LEN_BYTE_ARRAY, as a zigzag varint."""

_LENGTH: Final = bytes((0x05, 2 << 1, RAW_BYTES << 1))
"""Field 2, `type_length`, an int32 of 12: its number is written in full, so it may come after any other field."""


def has_int96(schema: pq.ParquetSchema, leaves: Sequence[int]) -> bool:
    return any(schema.column(leaf).physical_type == "INT96" for leaf in leaves)


def footer_of_raw_int96(footer: bytes) -> bytes:
    """Return a footer (the bytes between the pages and its length) whose INT96 columns are 12 bytes a value."""
    reader = ThriftReader(footer)
    parts = []
    done = 0
    for number, kind in reader.fields():
        if number != _FILE_SCHEMA or kind not in LISTS:
            reader.skip(kind)
            continue
        for element in reader.elements(kind):
            found = _find_int96(reader, element)
            if found is not None:
                start, stop = found
                end = reader.at - 1  # of the fields: the struct ends with one byte
                parts += [footer[done:start], _FIXED_BYTES, footer[stop:end], _LENGTH]
                done = end
        break
    return b"".join((*parts, footer[done:]))


def _find_int96(reader: ThriftReader, kind: int) -> tuple[int, int] | None:
    """Read an element of the schema; return where its type begins and ends, if that is INT96."""
    if kind != STRUCT:
        raise ThriftError(f"type {kind} where an element of the schema should be")
    found = None
    for number, field_kind in reader.fields():
        start = reader.at
        if number == _ELEMENT_TYPE and field_kind in NUMBERS:
            found = (start, reader.at) if reader.number() == _INT96 else None
        else:
            reader.skip(field_kind)
    return found
