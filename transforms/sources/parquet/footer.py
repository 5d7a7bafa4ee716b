"""Read the footer of a Parquet file: its columns, its row groups, and what it proves about nulls.

    PAR1 | column chunk, column chunk, ... | row group 1: ... | footer | footer length (4 bytes) | PAR1

A footer is data from outside: every number used in planning is checked against the file's size first.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from ...errors import SchemaError, SourceError
from ...format.batches.arrow_memory import free_rows, may_be_free
from ...format.schema.arrow_types import check_names, in_unit, named_classes, period_mark, storage_type, with_classes
from ...format.schema.column_types import DEFAULT_UNIT
from ...format.wording.hints import Set
from ...format.wording.printable import printable
from ...inputs.contract.selection import Selection
from ...inputs.contract.source import ListedFile, SourceEntry
from ...inputs.files.open_file import DiskErrors, OpenFile, check_stamp, is_object, open_file, open_listed, size_of
from .as_written import has_int96, is_fixed_list
from .pages import ChunkGroup, EncryptedError, PackedSpans, count_columns, pack_spans, read_groups

READ_ERRORS: Final = (pa.ArrowException, OSError, ValueError, TypeError, MemoryError, OverflowError)
"""The errors that pyarrow raises on damaged files; UnicodeDecodeError is a ValueError."""

_MAGIC: Final = b"PAR1"
_ENCRYPTED_MAGIC: Final = b"PARE"
_SMALLEST: Final = 12
WRITE_AGAIN: Final = "copy or write the file again"
_UNCHECKED: Final = f"{Set('input.checksums', False)}"
_DAMAGED: Final = "its Parquet footer is damaged"
_UNSUPPORTED: Final = (
    ("map keys must be annotated as required", "map keys that are required, as the format demands"),
    ("precision", "decimals of at most 76 digits, or as text"),
    ("bit width", "integers of at most 64 bits, or as text"),
    ("unknown encoding", "encodings that it reads, such as PLAIN and dictionaries"),
    ("cannot be applied to primitive type", "types that it reads"),
    ("not implemented", "types and compressions that it reads"),
    ("not supported", "types and compressions that it reads"),
    ("unsupported", "types and compressions that it reads"),
)
"""What pyarrow says of sound files that it does not read, and with what they are to be written again."""

_ENCRYPTED: Final = "encrypted Parquet is not supported; decrypt it first"
_BUFFERS_BYTES: Final = 16 << 20
_SMALLEST_BUFFER_BYTES: Final = 4 << 10
_LARGEST_BUFFER_BYTES: Final = 64 << 10
_PAGE_HEADER_BYTES: Final = 64
_SMALL_FOOTER: Final = 1 << 10
"""Up to that a footer has few columns, and few within each other."""

_INT32_FIELD: Final = b"\x15"


@dataclass(frozen=True, slots=True)
class RowGroup:
    """One row group: `bytes` of the chosen columns in the file, `row_bytes` of one row of them, uncompressed.

    `null_lists` says that a fixed-size list in it may be null; `spans` are the places of its chunks, packed.
    """

    rows: int
    bytes: int
    row_bytes: int
    null_lists: bool
    spans: PackedSpans


@dataclass(frozen=True, slots=True)
class Footer:
    """The data of one file that planning needs.

    `schema` has the chosen columns in the file's order, and `columns` the names of all. `null_reasons` says, for each
    chosen one, why it is or is not nullable: its field's `nullable` is the answer. `checksums` is None where there is
    no page to tell.
    """

    name: str
    columns: tuple[str, ...]
    schema: pa.Schema
    null_reasons: tuple[str, ...]
    groups: tuple[RowGroup, ...]
    checksums: bool | None


ChangeFooter = Callable[[bytes], bytes]
"""A function that changes the schema in a footer (the bytes between the pages and its length), for the same pages."""


def unreadable(error: BaseException, damaged: str) -> str:
    """Return what is wrong with a file, given what pyarrow said of it; `damaged` is what is damaged unless it is sound.

    Checksums are said to be wrong by pyarrow too where writers computed them in another way.
    """
    if isinstance(error, OSError) and error.errno is not None:  # pyarrow's own have none
        return f"cannot be read: {os.strerror(error.errno)}; look after its disk, and run the command again"
    says = printable(str(error).rstrip("."))
    ours = not isinstance(error, pa.ArrowException | OSError)
    again = None if ours else next((fix for words, fix in _UNSUPPORTED if words in says.lower()), None)
    if again is not None:
        return f"pyarrow does not support what the file holds: {says}; write it again with {again}"
    unchecked = f", or read it without checksums: {_UNCHECKED}" if "CRC" in says else ""
    return f"{damaged}: {says}; {WRITE_AGAIN}{unchecked}"


def open_parquet(
    file: ListedFile,
    opened: OpenFile,
    *,
    checksums: bool = True,
    columns: int = 1,
    changes: Sequence[ChangeFooter] = (),
    check: Callable[[bytes], None] | None = None,
) -> pq.ParquetFile:
    """Open a file after a look at both of its ends; `columns` are to be read, each through a buffer of its own.

    `opened` is the same file, open to read. INT96 has the type `timestamp[us]`. With `changes` columns are what the
    changed footer says: see `footer_of_plain_lists`, `footer_of_raw_int96`. Raises `SourceError` where it is not a
    Parquet file, cut, encrypted, or its footer cannot be read.
    """
    footer_bytes = _check_ends(opened, file.name)
    buffer_bytes = min(max(_BUFFERS_BYTES // max(columns, 1), _SMALLEST_BUFFER_BYTES), _LARGEST_BUFFER_BYTES)
    try:
        if check is not None and footer_bytes > _SMALL_FOOTER:
            check(_footer_bytes(opened))
        # Without `pre_buffer` and with a small buffer a row group of any size passes through little memory:
        # 33 MB for one of 88 MB, against 116 MB, at the same speed.
        return pq.ParquetFile(
            pa.PythonFile(opened, mode="r") if is_object(file.path) else pa.OSFile(file.path),
            metadata=_changed_metadata(_footer_bytes(opened), changes) if changes else None,
            pre_buffer=False,
            buffer_size=buffer_bytes,
            page_checksum_verification=checksums,
            coerce_int96_timestamp_unit=DEFAULT_UNIT,
        )
    except SchemaError:
        raise
    except READ_ERRORS as error:
        raise SourceError(file.name, unreadable(error, _DAMAGED)) from error


def read_footer(entry: SourceEntry, selection: Selection, units: Mapping[str, str | None], most_columns: int) -> Footer:
    """Return what the footer of a listed file says of the chosen columns (None: all of them).

    `units` are declared, by column: INT96 has none of its own. Raises `SchemaError` where a chosen column is not there,
    or there are too many; `SourceError` where the file is damaged, two of its columns have one name, or it is not what
    was listed.
    """

    def check(footer: bytes) -> None:
        selection.check_width(entry.name, count_columns(footer, most_columns), most_columns)

    check_stamp(entry)
    with open_listed(entry, open_file) as opened, open_parquet(entry, opened, check=check) as file:
        try:
            return _footer_of(file, opened, entry, selection, units)
        except (SourceError, SchemaError):
            raise
        except EncryptedError as error:
            raise SourceError(entry.name, _ENCRYPTED) from error
        except READ_ERRORS as error:
            raise SourceError(entry.name, unreadable(error, _DAMAGED)) from error


def choose_columns(schema: pa.Schema, selection: Selection, name: str) -> tuple[list[int], list[int]]:
    """Return the indices of the chosen columns, and of their leaves in the file.

    By index, since a Parquet reader that is asked for `a.b` also returns the field `b` of a struct `a`. Raises
    `SchemaError` where a chosen column is not there, `SourceError` where two columns have one name.
    """
    twice = [column for column, count in Counter(schema.names).items() if count > 1]
    if twice:
        raise SourceError(name, f'two columns are named "{printable(twice[0])}"; rename one of them')
    wanted = set(selection.pick_of_file(schema.names, where=f"{name}: "))
    fields: list[int] = []
    leaves: list[int] = []
    first = 0
    for index, field in enumerate(schema):
        count = leaf_count(field.type)
        if field.name in wanted:
            fields.append(index)
            leaves.extend(range(first, first + count))
        first += count
    return fields, leaves


def _check_ends(opened: OpenFile, name: str) -> int:
    with DiskErrors(name):
        size = size_of(opened)
        opened.seek(0)
        head = opened.read(4)
        opened.seek(max(size - 8, 0))
        tail = opened.read(8)
    if size == 0:
        raise SourceError(name, "is empty (0 bytes), so it is not a Parquet file")
    if _ENCRYPTED_MAGIC in (head, tail[-4:]):
        raise SourceError(name, _ENCRYPTED)
    if head != _MAGIC:
        shown = "".join(chr(b) if 32 < b < 127 else f"\\x{b:02x}" for b in head)
        raise SourceError(name, f'is not a Parquet file: it begins with "{shown}" and not with "PAR1"')
    if size < _SMALLEST or tail[-4:] != _MAGIC:
        raise SourceError(name, f'does not end with "PAR1": it is cut, or bytes were added to it ({size} bytes)')
    footer_bytes = int.from_bytes(tail[:4], "little")
    if footer_bytes > size - _SMALLEST:
        raise SourceError(
            name, f"is cut or damaged: a footer of {footer_bytes} bytes in a file of {size} bytes; {WRITE_AGAIN}"
        )
    return footer_bytes


def _footer_of(
    file: pq.ParquetFile, opened: OpenFile, entry: SourceEntry, selection: Selection, units: Mapping[str, str | None]
) -> Footer:
    schema: pa.Schema = file.schema_arrow
    fields, leaves = choose_columns(schema, selection, entry.name)
    rows, chunk_groups = read_groups(_footer_bytes(opened), leaves, sum(leaf_count(field.type) for field in schema))
    fixed = _fixed_lists(schema, fields)
    groups = tuple(_row_group(group, i, entry, fixed) for i, group in enumerate(chunk_groups))
    in_groups = sum(group.rows for group in groups)
    if rows not in (in_groups, 0):  # parquet-rs wrote 0 up to version 0.3; pages are checked against their row group
        raise SourceError(
            entry.name, f"{_DAMAGED}: {rows} rows, but its row groups add up to {in_groups}; {WRITE_AGAIN}"
        )
    if may_be_free(in_groups, entry.bytes):
        raise SourceError(entry.name, free_rows(in_groups, entry.bytes))
    chosen, reasons, first = [], [], 0
    for index in fields:
        field = schema.field(index)
        check_names(field.type)
        nullable, reason = _nullable(field, first, chunk_groups)
        kind, unit = storage_type(field.type), units.get(field.name)
        if unit is not None and has_int96(file.schema, leaves[first : first + leaf_count(field.type)]):
            kind = in_unit(kind, unit)
        first += leaf_count(field.type)
        chosen.append(pa.field(field.name, kind, nullable=nullable, metadata=period_mark(field)))
        reasons.append(reason)
    checksums = _has_checksums(opened, chunk_groups)
    names = tuple(schema.names)
    named = with_classes(pa.schema(chosen), named_classes(schema))
    return Footer(entry.name, names, named, tuple(reasons), groups, checksums)


def _footer_bytes(opened: OpenFile) -> bytes:
    opened.seek(-8, os.SEEK_END)
    length = int.from_bytes(opened.read(4), "little")
    opened.seek(-8 - length, os.SEEK_END)
    return opened.read(length)


def _changed_metadata(footer: bytes, changes: Sequence[ChangeFooter]) -> pq.FileMetaData:
    for change in changes:
        footer = change(footer)
    return pq.read_metadata(pa.BufferReader(_MAGIC + footer + len(footer).to_bytes(4, "little") + _MAGIC))


def _fixed_lists(schema: pa.Schema, fields: Sequence[int]) -> list[tuple[int, int]]:
    """Return which of the chosen columns' leaves hold fixed-size lists that may be null, and the values of a row.

    Of lists of structs no writer counts the nulls: there are fewer values than rows have. 0 where rows differ.
    """
    leaves, first = [], 0
    for field in (schema.field(index) for index in fields):
        if field.nullable and is_fixed_list(field.type):
            leaves.append((first, _values_of(field.type)))
        first += leaf_count(field.type)
    return leaves


def _values_of(kind: pa.DataType) -> int:
    """Return how many values a row of a type has in its first leaf, 0 where rows differ."""
    if isinstance(kind, pa.BaseExtensionType):
        return _values_of(kind.storage_type)
    if pa.types.is_fixed_size_list(kind):
        return int(kind.list_size) * _values_of(kind.value_type)
    if pa.types.is_struct(kind):
        return _values_of(kind.field(0).type) if kind.num_fields else 0
    return 0 if pa.types.is_nested(kind) else 1


def _row_group(group: ChunkGroup, index: int, entry: SourceEntry, fixed: Sequence[tuple[int, int]]) -> RowGroup:
    """Check the numbers of a row group against the file, and add up its chosen columns."""
    for chunk in group.chunks:
        if chunk.start + chunk.compressed > entry.bytes:
            raise SourceError(
                entry.name, f"{_DAMAGED}: row group {index} has a column at {chunk.start} of {chunk.compressed} bytes, "
                f"and the file has {entry.bytes}; {WRITE_AGAIN}"
            )  # fmt: skip
    unpacked = sum(chunk.unpacked for chunk in group.chunks)
    compressed = sum(chunk.compressed for chunk in group.chunks)
    null_lists = any(
        group.chunks[leaf].nulls != 0 or (values and group.chunks[leaf].values != group.rows * values)
        for leaf, values in fixed
    )  # None: nobody counted them
    return RowGroup(group.rows, compressed, -(-unpacked // max(group.rows, 1)), null_lists, pack_spans(group.chunks))


def _nullable(field: pa.Field, leaf: int, groups: Sequence[ChunkGroup]) -> tuple[bool, str]:
    """Return whether a column may hold nulls, and how that is known; `leaf` is the first of its chunks."""
    if pa.types.is_null(field.type):
        return True, "nullable: its type is null"
    if not field.nullable:
        return False, "not null: required in the file"
    if pa.types.is_nested(field.type) or isinstance(field.type, pa.BaseExtensionType):
        return True, "nullable: optional in the file"
    counts = [group.chunks[leaf].nulls for group in groups if group.rows]
    nulls = sum(count for count in counts if count is not None)
    if nulls:
        return True, f"{nulls:,} {'null' if nulls == 1 else 'nulls'} (file statistics)"
    if None in counts:
        return True, "nullable: optional in the file, which does not count nulls"
    return False, "no nulls (file statistics)"


def leaf_count(kind: pa.DataType) -> int:
    if isinstance(kind, pa.BaseExtensionType):
        return leaf_count(kind.storage_type)
    if pa.types.is_map(kind):
        return leaf_count(kind.key_type) + leaf_count(kind.item_type)
    if pa.types.is_struct(kind):
        return sum(leaf_count(field.type) for field in kind)
    return leaf_count(kind.value_type) if pa.types.is_nested(kind) else 1


def _has_checksums(opened: OpenFile, groups: Sequence[ChunkGroup]) -> bool | None:
    """Return whether the first page of the chosen columns carries a CRC32; None where there is no page."""
    chunk = next((chunk for group in groups for chunk in group.chunks if chunk.values), None)
    if chunk is None:
        return None
    opened.seek(chunk.start)
    return page_has_checksum(opened.read(_PAGE_HEADER_BYTES))


def page_has_checksum(header: bytes) -> bool:
    """Return whether a page header has its field 4, `crc`.

    A header is a Thrift compact struct: each field begins with a byte of which the high half is the distance from the
    number of the field before, and the low half the type (5: int32, as a varint). Fields 1 to 3 (type, uncompressed
    and compressed size) are required int32s, so the fourth field's byte tells.

    https://parquet.apache.org/docs/file-format/data-pages/checksumming/
    """
    position = 0
    for _ in range(3):
        if header[position : position + 1] != _INT32_FIELD:
            return False
        position += 1
        while position < len(header) and header[position] & 0x80:
            position += 1
        position += 1
    return header[position : position + 1] == _INT32_FIELD
