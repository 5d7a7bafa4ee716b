"""Find the record batches of an Arrow file: where each is, its rows, and its nulls, without reading its body.

    file format     ARROW1 | schema | dictionary, ... | record batch, ... | footer, with the place of each | ARROW1
    stream format   schema | dictionary or record batch, ...

A message is its length, metadata as a flatbuffer, and a body. The metadata of a record batch states its rows, and the
nulls of every array in it. All numbers are checked against the file's size.

https://arrow.apache.org/docs/format/Columnar.html#serialization-and-interprocess-communication-ipc
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

import pyarrow as pa

from ...format.batches.arrow_memory import free_rows, may_be_free
from ...format.wording.hints import Set

# Read tables of a flatbuffer, of which Arrow's metadata is made: as much of it as finding record batches takes.
#
# A table is data from outside: what points out of the buffer is an error.
#
# https://flatbuffers.dev/internals/


class DamagedTable(Exception):
    """A flatbuffer points out of itself."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table in a buffer; its fields are given by their numbers."""

    data: bytes
    at: int

    @classmethod
    def root(cls, data: bytes) -> Table:
        return cls(data, _read(data, "<I", 0))

    def number(self, field: int, form: str, default: int = 0) -> int:
        """Return a field that is a number, in a form of `struct`."""
        place = self._place(field)
        return default if place is None else _read(self.data, form, place)

    def has(self, field: int) -> bool:
        return self._place(field) is not None

    def table(self, field: int) -> Table:
        place = self._place(field)
        if place is None:
            raise DamagedTable(f"field {field} is missing")
        return Table(self.data, place + _read(self.data, "<I", place))

    def count(self, field: int) -> int:
        return len(self._vector(field, 4))

    def tables(self, field: int) -> Iterator[Table]:
        for at in self._vector(field, 4):
            yield Table(self.data, at + _read(self.data, "<I", at))

    def structs(self, field: int, form: str) -> list[tuple[int, ...]]:
        """Return a field that is a vector of structs, in a form of `struct`; empty if it is missing."""
        places = self._vector(field, struct.calcsize(form))
        return list(struct.iter_unpack(form, self.data[places.start : places.stop]))

    def _vector(self, field: int, size: int) -> range:
        """Return the places of the elements of a vector, each of so many bytes."""
        place = self._place(field)
        if place is None:
            return range(0)
        start = place + _read(self.data, "<I", place)
        count = _read(self.data, "<I", start)
        if start + 4 + count * size > len(self.data):
            raise DamagedTable(f"{count} elements of {size} bytes in {len(self.data)} bytes")
        return range(start + 4, start + 4 + count * size, size)

    def _place(self, field: int) -> int | None:
        vtable = self.at - _read(self.data, "<i", self.at)
        slot = 4 + 2 * field
        if slot + 2 > _read(self.data, "<H", vtable):
            return None
        offset = _read(self.data, "<H", vtable + slot)
        return self.at + offset if offset else None


def _read(data: bytes, form: str, at: int) -> int:
    if not 0 <= at <= len(data) - struct.calcsize(form):
        raise DamagedTable(f"it points to byte {at} of {len(data)}")
    found: int = struct.unpack_from(form, data, at)[0]
    return found


FILE_MAGIC: Final = b"ARROW1"
FEATHER_V1: Final = b"FEA1"
_CONTINUED: Final = b"\xff\xff\xff\xff"
_SCHEMA: Final = 1
_DICTIONARY: Final = 2
_BATCH: Final = 3
_SWAPPED: Final = -1
"""The schema of numbers whose high byte is first."""

_NULLS_IN_DICTIONARY: Final = -2
"""A dictionary with a null among its values."""

MOST_METADATA: Final = 256 << 20
_FIELDS: Final = 1
_CHILDREN: Final = 5
_NODE: Final = "<qq"
_BUFFER: Final = "<qq"
_BLOCK: Final = "<qi4xq"
_LENGTH_BYTES: Final = 8
_THREE_BUFFERS: Final = (
    pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary, pa.types.is_list_view,
    pa.types.is_large_list_view,
)  # fmt: skip


class DamagedFile(Exception):
    """A file is not what its metadata says."""


class TooLarge(Exception):
    """A compressed batch takes too much memory when it is inflated, which can only be done as a whole."""

    def __init__(self, what: str, inflated: int, most: int) -> None:
        super().__init__(
            f"{what} takes {inflated} bytes when it is inflated, more than limits.batch_bytes ({most}); raise it: "
            f"{Set('limits.batch_bytes', inflated)}; or write the file again in smaller batches: "
        )


class TooManyRows(Exception):
    """A file states rows that its values cannot be."""


@dataclass(frozen=True, slots=True)
class BatchPlace:
    """A record batch: the offsets of its message and of its end, its rows, and the nulls of each array in it.

    `longest` is the length of the longest of its arrays: values within rows may be more than those.
    """

    start: int
    stop: int
    rows: int
    nulls: tuple[int, ...]
    longest: int


def count_columns(data: pa.NativeFile, size: int, most: int, *, stream: bool) -> int:
    """Return how many columns the schema has, those within nested ones too.

    Where there are far more than `most`, it is the number that was reached.
    """
    columns = seen = 0
    try:
        fields = [_schema(data, size, stream=stream).tables(_FIELDS)]
        while fields:
            field = next(fields[-1], None)
            if field is None:
                fields.pop()
            elif seen > 8 * most:
                return seen
            elif field.count(_CHILDREN):
                seen += 1
                fields.append(field.tables(_CHILDREN))
            else:
                seen, columns = seen + 1, columns + 1
    except DamagedTable as error:
        raise DamagedFile(f"its schema is damaged: {error}") from error
    return columns


def _schema(data: pa.NativeFile, size: int, *, stream: bool) -> Table:
    if stream:
        prefix, length = _lengths(data, 0, size)
        return Table.root(_bytes(data, prefix, length, size)).table(2)
    return _footer(data, size).table(1)


def batches_of_file(data: pa.NativeFile, size: int) -> list[BatchPlace]:
    """Raise `DamagedFile` where the file is cut, or its footer or metadata are damaged."""
    try:
        blocks = _footer(data, size).structs(3, _BLOCK)
    except DamagedTable as error:
        raise DamagedFile(f"its footer is damaged: {error}") from error
    found = []
    for start, metadata, body in blocks:
        if metadata < 0 or body < 0:
            raise DamagedFile("its footer is damaged: a length is below 0")
        kind, place = _message(_bytes(data, start, metadata, size), start, start + metadata + body, size)
        if kind != _BATCH or place is None:
            raise DamagedFile(f"its footer names a record batch at byte {start}, where there is none")
        found.append(place)
    return found


def batches_of_stream(data: pa.NativeFile, size: int) -> tuple[list[BatchPlace], bool]:
    """Return the record batches of a file in the stream format, and whether they can only be read in turn.

    That is so where there are dictionaries among them, or numbers have their high byte first: what reads a stream from
    its start puts the bytes in this machine's order, what reads one record batch does not. Raises `DamagedFile`.
    """
    found, in_turn = [], False
    for kind, _, place in _messages(data, size):
        in_turn = in_turn or kind in (_DICTIONARY, _NULLS_IN_DICTIONARY, _SWAPPED)
        if place is not None:
            found.append(place)
    return found, in_turn


def dictionaries_have_nulls(data: pa.NativeFile, size: int, most: int, *, in_turn: bool) -> bool:
    """Return whether a value of a dictionary is null: rows that name it are null, and no record batch counts them.

    `in_turn` says that the file is in the stream format. Raises `TooLarge` where the dictionaries that are held at a
    time take more than `most` bytes when they are inflated.
    """
    have_nulls = False
    held: dict[int, int] = {}
    for start, kind in _dictionaries(data, size, in_turn=in_turn):
        have_nulls |= kind == _NULLS_IN_DICTIONARY
        number, is_delta, inflated = _dictionary_bytes(data, start, size)
        held[number] = inflated + (held.get(number, 0) if is_delta else 0)
        if sum(held.values()) > most:
            raise TooLarge(f"with the dictionary at byte {start} what its dictionaries hold", sum(held.values()), most)
    return have_nulls


def _dictionaries(data: pa.NativeFile, size: int, *, in_turn: bool) -> Iterator[tuple[int, int]]:
    if in_turn:
        kinds = (_DICTIONARY, _NULLS_IN_DICTIONARY)
        yield from ((start, kind) for kind, start, _ in _messages(data, size) if kind in kinds)
        return
    try:
        blocks = _footer(data, size).structs(2, _BLOCK)
    except DamagedTable as error:
        raise DamagedFile(f"its footer is damaged: {error}") from error
    for start, metadata, body in blocks:
        yield start, _message(_bytes(data, start, metadata, size), start, start + metadata + body, size)[0]


def _footer(data: pa.NativeFile, size: int) -> Table:
    tail = _bytes(data, size - 10, 10, size)
    if tail[4:] != FILE_MAGIC:
        raise DamagedFile(f'it does not end with "ARROW1": it is cut, or bytes were added to it ({size} bytes)')
    length = int.from_bytes(tail[:4], "little")
    return Table.root(_bytes(data, size - 10 - length, length, size))


def refuse_free_rows(data: pa.NativeFile, size: int, places: Sequence[BatchPlace]) -> None:
    """Raise `TooManyRows` where a file states more than its values can be: nulls, runs, values of no bytes are free."""
    rows = sum(place.rows for place in places)
    values = sum(max(place.longest, place.rows) for place in places)
    if not may_be_free(values, sum(place.stop - place.start for place in places)):
        return
    inflated = sum(max(unpacked_bytes(data, place.start, size), place.stop - place.start) for place in places)
    if may_be_free(values, inflated):
        raise TooManyRows(free_rows(values, inflated, what="rows" if values == rows else "values in its rows"))


def unpacked_bytes(
    data: pa.NativeFile, start: int, size: int, schema: pa.Schema | None = None, columns: Sequence[int] = ()
) -> int:
    """Return what the buffers of a compressed record batch take when they are inflated; 0 of others.

    Each begins with that number. Given a schema, only some of its columns count.
    """
    message, body = _message_at(data, start, size)
    try:
        batch = message.table(2)
        spans, more = batch.structs(2, _BUFFER), iter([count for (count,) in batch.structs(4, "<q")])
        if not batch.has(3):
            return 0
    except DamagedTable as error:
        raise DamagedFile(f"the message at byte {start} is damaged: {error}") from error
    if schema is not None:
        counts = [_buffers_in(field.type, more) for field in schema]
        before = [0, *accumulate(counts)]
        firsts = [before[index] for index in columns]
        spans = [spans[first + i] for first, index in zip(firsts, columns, strict=True) for i in range(counts[index])
                 if first + i < len(spans)]  # fmt: skip
    return _inflated(data, body, spans, size)


def _dictionary_bytes(data: pa.NativeFile, start: int, size: int) -> tuple[int, bool, int]:
    """Return the number of a dictionary, whether it adds to the one before, and what it takes when it is inflated."""
    message, body = _message_at(data, start, size)
    try:
        dictionary = message.table(2)
        batch = dictionary.table(1)
        spans = batch.structs(2, _BUFFER) if batch.has(3) else []
        number, is_delta = dictionary.number(0, "<q"), bool(dictionary.number(2, "<B"))
    except DamagedTable as error:
        raise DamagedFile(f"the message at byte {start} is damaged: {error}") from error
    return number, is_delta, _inflated(data, body, spans, size)


def _message_at(data: pa.NativeFile, start: int, size: int) -> tuple[Table, int]:
    """Return the metadata of a message, and the offset of its body."""
    prefix, length = _lengths(data, start, size)
    try:
        return Table.root(_bytes(data, start + prefix, length, size)), start + prefix + length
    except DamagedTable as error:
        raise DamagedFile(f"the message at byte {start} is damaged: {error}") from error


def _inflated(data: pa.NativeFile, body: int, spans: Sequence[tuple[int, ...]], size: int) -> int:
    total = 0
    for offset, length in spans:
        if length >= _LENGTH_BYTES:
            stated = int.from_bytes(_bytes(data, body + offset, _LENGTH_BYTES, size), "little", signed=True)
            total += length - _LENGTH_BYTES if stated == -1 else max(stated, 0)
    return total


def _buffers_in(kind: pa.DataType, more: Iterator[int]) -> int:
    """Return how many buffers hold a column of a type; `more` are the data buffers of each array of views."""
    if isinstance(kind, pa.BaseExtensionType):
        return _buffers_in(kind.storage_type, more)
    if pa.types.is_dictionary(kind):
        return 2
    if pa.types.is_string_view(kind) or pa.types.is_binary_view(kind):
        return 2 + next(more, 0)
    if pa.types.is_null(kind) or pa.types.is_run_end_encoded(kind):
        own = 0
    elif pa.types.is_struct(kind) or pa.types.is_fixed_size_list(kind):
        own = 1
    elif pa.types.is_union(kind):
        own = 1 + (kind.mode == "dense")
    elif any(test(kind) for test in _THREE_BUFFERS):
        own = 3
    else:
        own = 2
    return own + sum(_buffers_in(kind.field(index).type, more) for index in range(kind.num_fields))


def _messages(data: pa.NativeFile, size: int) -> Iterator[tuple[int, int, BatchPlace | None]]:
    """Yield the kind of each message of a stream, its offset, and the place of a record batch."""
    at = 0
    while at + 4 <= size:
        prefix, length = _lengths(data, at, size)
        if length == 0:
            if size - at - prefix:
                raise DamagedFile(f"{size - at - prefix} bytes follow the end of its stream")
            return
        metadata = _bytes(data, at, prefix + length, size)
        try:
            body = Table.root(metadata[prefix:]).number(3, "<q")
        except DamagedTable as error:
            raise DamagedFile(f"the message at byte {at} is damaged: {error}") from error
        if body < 0:
            raise DamagedFile(f"the message at byte {at} has a body of {body} bytes")
        stop = at + prefix + length + body
        kind, place = _message(metadata, at, stop, size)
        yield kind, at, place
        at = stop
    if at != size:
        raise DamagedFile(f"{size - at} bytes follow the end of its stream")


def _lengths(data: pa.NativeFile, at: int, size: int) -> tuple[int, int]:
    """Return the bytes before the metadata of a message of a stream, and those of its metadata."""
    head = _bytes(data, at, min(8, size - at), size)
    prefix = 8 if head[:4] == _CONTINUED else 4
    length = int.from_bytes(head[prefix - 4 : prefix], "little")
    if length > MOST_METADATA:
        raise DamagedFile(f"at byte {at} there is no message of Arrow")
    return prefix, length


def _message(metadata: bytes, start: int, stop: int, size: int) -> tuple[int, BatchPlace | None]:
    """Return the kind of a message, and of a record batch where it is and what it states."""
    if stop > size:
        raise DamagedFile(f"the message at byte {start} ends at byte {stop}, and the file has {size}: it is cut")
    try:
        message = Table.root(metadata[8 if metadata[:4] == _CONTINUED else 4 :])
        kind = message.number(1, "<B")
        if kind == _SCHEMA and message.table(2).number(0, "<h"):
            return _SWAPPED, None
        body = message.number(3, "<q")
        if not 0 <= body <= stop - start - len(metadata):
            raise DamagedFile(f"the message at byte {start} has a body of {body} bytes, and ends at byte {stop}")
        if kind == _DICTIONARY:
            batch = message.table(2).table(1)
            _check_buffers(batch, body, start)
            nodes = batch.structs(1, _NODE)
            return (_NULLS_IN_DICTIONARY if any(nulls for _, nulls in nodes[:1]) else kind), None
        if kind != _BATCH:
            return kind, None
        batch = message.table(2)
        _check_buffers(batch, body, start)
        rows, nodes = batch.number(0, "<q"), batch.structs(1, _NODE)
    except DamagedTable as error:
        raise DamagedFile(f"the message at byte {start} is damaged: {error}") from error
    if rows < 0:
        raise DamagedFile(f"the record batch at byte {start} has {rows} rows")
    return kind, BatchPlace(
        start, stop, rows, tuple(nulls for _, nulls in nodes), max((count for count, _ in nodes), default=0)
    )


def _check_buffers(batch: Table, body: int, start: int) -> None:
    """Check where the buffers of a record batch are: Arrow allocates what their lengths say before it reads."""
    for offset, length in batch.structs(2, _BUFFER):
        if offset < 0 or length < 0 or offset + length > body:
            raise DamagedFile(
                f"the message at byte {start} has a buffer of {length} bytes at byte {offset} of its body of {body}"
            )


def _bytes(data: pa.NativeFile, start: int, length: int, size: int) -> bytes:
    if start < 0 or length < 0 or start + length > size:
        raise DamagedFile(f"{length} bytes at byte {start} are not in a file of {size} bytes: it is cut or damaged")
    data.seek(start)
    found: bytes = data.read(length)
    if len(found) != length:
        raise DamagedFile(f"it ends at byte {start + len(found)}, and {size} bytes were listed")
    return found


def arrays_in(kind: pa.DataType) -> int:
    """Return how many arrays hold a column of a type, as the metadata of record batches counts them.

    >>> arrays_in(pa.struct([("a", pa.int8()), ("b", pa.list_(pa.int8()))]))
    4
    """
    if isinstance(kind, pa.BaseExtensionType):
        return arrays_in(kind.storage_type)
    if pa.types.is_dictionary(kind):
        return 1
    return 1 + sum(arrays_in(kind.field(index).type) for index in range(kind.num_fields))
