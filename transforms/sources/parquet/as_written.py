"""Read what pyarrow reads otherwise than it was written: INT96 times, and lists of a fixed size of which some are null.

Both are asked for by another footer, of which the pages are the same, and made from what is read by it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from ...format.batches.arrow_memory import I64, raw_values, valid_mask
from ...format.batches.rejects import CellError, CellProblem
from ...format.columns.flatten import fit_times
from ...format.columns.numbers import BadValues
from ...format.schema.arrow_types import meaning, storage_column, storage_type
from ...format.schema.column_types import DEFAULT_UNIT, UNITS, is_binary
from ...format.schema.schema import Feature
from ...format.wording.hints import set_column
from .pages import LISTS, NUMBERS, STRUCT, ThriftError, ThriftReader

# INT96 timestamps, the 12 bytes that old Parquet writers store: exact Arrow timestamps, or problems.
#
#     [nanoseconds of the day: int64][Julian day: int32]    little-endian; day 2440588 is 1970-01-01
#
# They reach over millions of years in nanoseconds, and no int64 does. So they are computed in the unit of their
# feature, and a value that is not exact there is a problem of its row.
#
# Some writers store nanoseconds that are negative or longer than a day (pyarrow 19: every time before 1970). They count
# from the beginning of the day, whatever they are.
#
# They are read as the 12 bytes that they are, as Arrow's own decoding wraps or cuts silently. It multiplies them into
# int64 nanoseconds, modulo 2^64: 9999-12-31 becomes 1816-03-29. It can be asked for microseconds
# (`coerce_int96_timestamp_unit`): then 1500 ns are 1 us, and negative nanoseconds are nonsense. So the footer that it
# is given says something else of these columns, for which the pages are the same, bit for bit:
#
#     footer    type: INT96    read as    type: FIXED_LEN_BYTE_ARRAY, type_length: 12
#     pages     8 bytes, 4 bytes; plain or in a dictionary
#
# A file has these bytes read once, like all others; a file without INT96 is opened as it is.
#
# https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift

_FILE_SCHEMA: Final = 2
_ELEMENT_TYPE: Final = 1
_INT96: Final = 3
_FIXED_BYTES: Final = b"\x0e"
"""7, FIXED_LEN_BYTE_ARRAY, as a zigzag varint."""

RAW_BYTES: Final = 12
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


_RAW: Final = np.dtype([("nanos", "<i8"), ("day", "<i4")])
_EPOCH_DAY: Final = 2_440_588
_DAY: Final = 86_400 * 10**9

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """Points in time: whole `days` since 1970-01-01, and `nanos` from 0 to less than a day. A null is the epoch."""

    days: I64
    nanos: I64

    @classmethod
    def of(cls, values: pa.Array) -> Moments:
        """Take binary values of 12 bytes apart; raise `pa.ArrowInvalid` for another length."""
        raw = raw_values(values.cast(pa.binary(RAW_BYTES)), _RAW)
        days, nanos = raw["day"].astype(np.int64) - _EPOCH_DAY, raw["nanos"].astype(np.int64)
        valid = valid_mask(values)
        if valid is not None:
            days, nanos = np.where(valid, days, 0), np.where(valid, nanos, 0)
        if len(nanos) and (nanos.min() < 0 or nanos.max() >= _DAY):
            more, nanos = np.divmod(nanos, _DAY)
            days += more
        return cls(days, nanos)

    def ticks(self, unit: str) -> tuple[I64, Mask]:
        """Return the moments as numbers of a unit, and which of them are exact: the others are arbitrary."""
        step = _nanos_of(unit)
        a_day = _DAY // step
        whole, rest = (self.nanos, None) if step == 1 else np.divmod(self.nanos, step)
        (low_day, low), (high_day, high) = divmod(-(1 << 63), a_day), divmod((1 << 63) - 1, a_day)
        exact = (self.days > low_day) | ((self.days == low_day) & (whole >= low))
        exact &= (self.days < high_day) | ((self.days == high_day) & (whole <= high))
        if rest is not None:
            exact &= rest == 0
        return self.days * a_day + whole, exact

    def total(self, position: int) -> int:
        return int(self.days[position]) * _DAY + int(self.nanos[position])


def exact_timestamps(name: str, column: pa.Array, kind: pa.DataType) -> tuple[pa.Array, tuple[CellProblem, ...]]:
    """Return a column whose raw INT96 values, at any depth, are times of the units of `kind`, and its inexact rows.

    The cells of these rows are null. Raises `pa.ArrowException` where a value is not of 12 bytes.
    """
    return fit_times(name, column, kind, _ticks_of, is_binary)


def _ticks_of(values: pa.Array, feature: Feature) -> tuple[I64, list[tuple[int, CellError]]]:
    moments, unit = Moments.of(values), feature.unit or DEFAULT_UNIT
    ticks, exact = moments.ticks(unit)
    bad = np.flatnonzero(~exact).tolist()
    return ticks, [(at, _bad_value(moments.total(at), feature, unit).error(feature.name, 0)) for at in bad]


def _bad_value(total: int, feature: Feature, unit: str) -> BadValues:
    exact_in = next((other for other in reversed(UNITS) if _is_exact(total, other)), None)
    if exact_in is None:
        fix = "no unit keeps it exact: round it in the file"
    else:
        fix = f"keep it exact: {set_column(feature.name, 'unit', exact_in)}"
    code, expected, says = "INT_OVERFLOW", f"int64 {unit}", f"is beyond the int64 range in {unit}"
    if total % _nanos_of(unit):
        code, expected, says = "PRECISION_LOSS", f"{feature.type} in {unit}", f"is not a whole number of {unit}"
    return BadValues(np.zeros(1, np.int64), code, expected, lambda _: f"{total} ns", says, fix)


def _is_exact(total: int, unit: str) -> bool:
    ticks, rest = divmod(total, _nanos_of(unit))
    return not rest and -(1 << 63) <= ticks < 1 << 63


def _nanos_of(unit: str) -> int:
    return int(1000 ** (len(UNITS) - 1 - UNITS.index(unit)))


# Read fixed-size lists of which some are null, which pyarrow (19 to 25) writes but refuses to read.
#
# Parquet has lists of any length only. That a list is of fixed size is in the Arrow schema that its writer left in
# the footer; the reader believes it, finds no values after a null, and takes the page for damaged. So a row group
# that may hold such a null is read as if the footer had no Arrow schema, and its columns are cast to what that schema
# says: the cast knows that a null has no values, and refuses any other list of a wrong length.
#
#     footer   "ARROW:schema" = fixed_size_list[2], ...   read as   "ARROW-schema" = ..., which means nothing
#     column   list  [1, 2], [3, 4], null                 cast to   fixed_size_list[2]  [1, 2], [3, 4], null


_KEY: Final = b"ARROW:schema"
_UNKNOWN_KEY: Final = b"ARROW-schema"


def is_fixed_list(kind: pa.DataType) -> bool:
    """Return whether a column of this type holds lists of a fixed size: tensors do too."""
    return bool(pa.types.is_fixed_size_list(kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind))


def footer_of_plain_lists(footer: bytes) -> bytes:
    """Return a footer (the bytes between the pages and its length) without its Arrow schema.

    A column that has the key's name is read under another one: only the order of columns counts here.
    """
    return footer.replace(_KEY, _UNKNOWN_KEY)


def cast_as_written(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return a column that was read without the Arrow schema as a type that holds what `kind`, its type there, holds.

    Raises `pa.ArrowInvalid` where a list has another length.
    """
    if isinstance(kind, pa.FixedShapeTensorType):
        return pa.ExtensionArray.from_storage(kind, column.cast(kind.storage_type))
    column, kind = storage_column(column), meaning(storage_type(kind))
    return column if meaning(column.type) == kind else column.cast(kind)
