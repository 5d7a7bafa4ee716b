"""Read tables of a flatbuffer, of which Arrow's metadata is made: as much of it as finding record batches takes.

A table is data from outside: what points out of the buffer is an error.

https://flatbuffers.dev/internals/
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass


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
