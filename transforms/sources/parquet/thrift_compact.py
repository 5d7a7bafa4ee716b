"""Walk over Thrift's compact protocol, and keep only the fields that are asked for.

    struct   [distance to the field's number : 4 bits | type : 4 bits] value ... 00
    list     [size : 4 bits | type : 4 bits] element ...           (size 15: a varint follows)
    numbers  zigzag varints        binary   varint length, bytes

Every length is checked against what is left of the data before it is used, and nesting against a limit.

https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

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
