"""Convert numbers, decimals, dates and times to values of features; report those that do not fit or are narrowed."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from ..batches.arrow_memory import I64, bits, raw_values, valid_mask
from ..batches.rejects import TYPE_IS_THE_DATASETS, UNIT_IS_THE_DATASETS, CellError
from ..batches.rows import Narrowing
from ..schema.column_types import DEFAULT_UNIT, UNITS
from ..schema.schema import Feature
from ..wording.hints import set_column
from ..wording.printable import printable

F32 = npt.NDArray[np.float32]

_INT64_MAX: Final = (1 << 63) - 1
_EXACT_IN_FLOAT32: Final = 16
"""Bits of an integer of which float32, which has 24, holds every value."""

_DAY_MS: Final = 86_400_000
_AS_MOMENT: Final = ("type", str(pa.timestamp(DEFAULT_UNIT)).partition("[")[0])


@dataclass(frozen=True, slots=True, eq=False)
class BadValues:
    """Values, by their position, that have no exact feature: `show` returns one as text, `says` what is wrong with it.

    `fix` is what to declare, if that helps.
    """

    positions: I64
    code: str
    expected: str
    show: Callable[[int], str]
    says: str
    fix: str = ""

    def error(self, column: str, position: int) -> CellError:
        value = printable(self.show(position))
        quoted = f'"{value}"' if self.code == "BAD_UTF8" else value
        text = f"{quoted} {self.says}"
        if not self.fix:
            return CellError(column, self.code, value, self.expected, text)
        in_append = f"{text}; {UNIT_IS_THE_DATASETS if '.unit=' in self.fix else TYPE_IS_THE_DATASETS}"
        return CellError(column, self.code, value, self.expected, f"{text}; {self.fix}", in_append)


def int64_values(values: pa.Array, feature: Feature) -> tuple[I64, list[BadValues]]:
    """Return booleans, integers, dates or times as int64; what is under nulls is arbitrary."""
    arrow = values.type
    if types.is_boolean(arrow):
        if not len(values):
            return np.zeros(0, np.int64), []
        return bits(values.buffers()[1], values.offset, len(values)).astype(np.int64), []
    if types.is_uint64(arrow):
        return _unsigned(values, feature)
    if types.is_date(arrow) and feature.unit is not None:
        return _times(values.cast(pa.timestamp("ms")), feature)
    if types.is_date64(arrow):
        return _days(values, feature)
    if types.is_timestamp(arrow) or types.is_duration(arrow) or types.is_time(arrow):
        return _times(values, feature)
    if types.is_floating(arrow):
        return _whole_numbers(values.cast(pa.float64()), feature)
    width = arrow.bit_width // 8
    signed = "u" if types.is_unsigned_integer(arrow) else "i"
    return raw_values(values, f"<{signed}{width}").astype(np.int64, copy=False), []


def _unsigned(values: pa.Array, feature: Feature) -> tuple[I64, list[BadValues]]:
    raw = raw_values(values, np.uint64)
    over = _positions(raw > np.uint64(_INT64_MAX), values)
    if not len(over):
        return raw.view(np.int64), []
    says = f"is above {_INT64_MAX}, the largest int64"
    fix = f"keep its digits: {set_column(feature.name, 'type', 'string')}"
    return raw.view(np.int64), [BadValues(over, "INT_OVERFLOW", "int64", lambda i: str(raw[i]), says, fix)]


def _whole_numbers(values: pa.Array, feature: Feature) -> tuple[I64, list[BadValues]]:
    raw = raw_values(values, np.float64)
    whole = (np.trunc(raw) == raw) & (raw >= -(2.0**63)) & (raw < 2.0**63)
    bad = _positions(~whole, values)
    integers = np.where(whole, raw, 0).astype(np.int64)
    if not len(bad):
        return integers, []
    says = "is not a whole number that int64 holds"
    fix = f"keep fractions exact: {set_column(feature.name, 'as', 'bytes')}"
    return integers, [BadValues(bad, "PRECISION_LOSS", "int64", lambda i: repr(float(raw[i])), says, fix)]


def _positions(mask: npt.NDArray[np.bool_], values: pa.Array) -> I64:
    if not mask.any():
        return np.zeros(0, np.int64)
    valid = valid_mask(values)
    return np.flatnonzero(mask if valid is None else mask & valid)


def _times(values: pa.Array, feature: Feature) -> tuple[I64, list[BadValues]]:
    held, wanted = values.type.unit, feature.unit or DEFAULT_UNIT
    steps = UNITS.index(wanted) - UNITS.index(held)
    if steps == 0:
        return _ticks(values), []
    if steps < 0:
        return _rescale(values, 1000**-steps, held, feature, wanted, _exact_in(feature, held))
    raw = _ticks(values)
    factor = 1000**steps
    bound = _INT64_MAX // factor
    far = _positions((raw > bound) | (raw < -bound), values)
    bad = []
    if len(far):
        largest = max(int(raw[far].max()), -int(raw[far].min()))
        finer = enumerate(UNITS[UNITS.index(held) : UNITS.index(wanted)])
        unit = next(unit for step, unit in reversed(list(finer)) if not step or largest <= _INT64_MAX // 1000**step)
        fix = _exact_in(feature, unit)
        says = f"is beyond the int64 range in {wanted}"
        bad.append(BadValues(far, "INT_OVERFLOW", f"int64 {wanted}", lambda i: f"{raw[i]} {held}", says, fix))
    return raw * np.int64(factor), bad


def _exact_in(feature: Feature, unit: str) -> str:
    return f"keep it exact: {set_column(feature.name, 'unit', unit)}"


def _ticks(values: pa.Array) -> I64:
    return raw_values(values, f"<i{values.type.bit_width // 8}").astype(np.int64, copy=False)


def _days(values: pa.Array, feature: Feature) -> tuple[I64, list[BadValues]]:
    """Return dates that count milliseconds as days; a time of day would be lost, and is bad."""
    raw = _ticks(values)
    days, rest = np.divmod(raw, np.int64(_DAY_MS))
    timed = _positions(rest != 0, values)
    if not len(timed):
        return days, []
    says = "is not a whole day, as a date is"
    fix = f"keep the time too: {set_column(feature.name, *_AS_MOMENT)}"
    return days, [
        BadValues(timed, "PRECISION_LOSS", "date in days", lambda i: str(raw[i].astype("datetime64[ms]")), says, fix)
    ]


def _rescale(
    values: pa.Array, divisor: int, held: str, feature: Feature, wanted: str, fix: str
) -> tuple[I64, list[BadValues]]:
    """Divide by a power of the unit; a remainder would be lost, and is bad."""
    raw = _ticks(values)
    scaled, rest = np.divmod(raw, np.int64(divisor))
    lossy = _positions(rest != 0, values)
    if not len(lossy):
        return scaled, []
    says = f"is not a whole number of {wanted}"
    expected = f"{feature.type} in {wanted}"
    return scaled, [BadValues(lossy, "PRECISION_LOSS", expected, lambda i: f"{raw[i]} {held}", says, fix)]


def float_values(values: pa.Array, feature: Feature) -> tuple[F32, list[BadValues], Narrowing | None]:
    """Return floats as float32, bit for bit where they are; float64 is narrowed, and what that lost reported."""
    if types.is_integer(values.type) or types.is_boolean(values.type):
        return *_whole_floats(values, feature), None
    if not types.is_float64(values.type):
        width = np.float32 if types.is_float32(values.type) else np.float16
        return raw_values(values, width).astype(np.float32, copy=False), [], None
    wide: npt.NDArray[np.float64] = raw_values(values, np.float64)
    with np.errstate(all="ignore"):
        narrow = wide.astype(np.float32)
    narrowing = _narrowing(wide, narrow, values, feature)
    bad = []
    if np.isinf(narrowing.max_relative_error):
        over = _positions(np.isinf(narrow) & np.isfinite(wide), values)
        says = "is beyond the largest float32, 3.4028235e+38"
        fix = f"keep it exact: {set_column(feature.name, 'as', 'bytes')}"
        if re.fullmatch(r"[0-9]+e\+[0-9]+", repr(float(wide[over[0]]))):  # what "1e64" becomes
            fix += f"; if it is a code, in CSV or JSON lines: {set_column(feature.name, 'type', 'string')}"
        bad.append(BadValues(over, "FLOAT_OVERFLOW", "float32", lambda i: repr(float(wide[i])), says, fix))
    return narrow, bad, narrowing


def _whole_floats(values: pa.Array, feature: Feature) -> tuple[F32, list[BadValues]]:
    """Return integers or booleans as float32; one that it does not hold exactly is bad."""
    if types.is_boolean(values.type):
        return int64_values(values, feature)[0].astype(np.float32), []
    signed = "u" if types.is_unsigned_integer(values.type) else "i"
    raw = raw_values(values, f"<{signed}{values.type.bit_width // 8}")
    floats = raw.astype(np.float32)
    if values.type.bit_width <= _EXACT_IN_FLOAT32:
        return floats, []
    lossy = _positions(~_equal_to_floats(raw, floats), values)
    if not len(lossy):
        return floats, []
    says = "is not a whole number that float32 holds"
    fix = f"keep it exact: {set_column(feature.name, 'type', 'int64')}"
    return floats, [BadValues(lossy, "PRECISION_LOSS", "float32", lambda i: str(raw[i]), says, fix)]


def _equal_to_floats(raw: npt.NDArray[Any], floats: F32) -> npt.NDArray[np.bool_]:
    """Return where floats equal their integers: 2**63 and 2**64 are floats, and no integers that come back."""
    with np.errstate(invalid="ignore"):
        back = floats.astype(raw.dtype)
    exact: npt.NDArray[np.bool_] = (back == raw) & (
        floats < np.float32(2.0 ** (8 * raw.itemsize - (raw.dtype.kind == "i")))
    )
    return exact


def _narrowing(wide: npt.NDArray[np.float64], narrow: F32, values: pa.Array, feature: Feature) -> Narrowing:
    valid = valid_mask(values)
    if valid is not None:
        wide, narrow = wide[valid], narrow[valid]
    with np.errstate(all="ignore"):
        # 0/0 and inf-inf are NaN, which fmax passes over: they lost nothing. An overflow is infinitely wrong.
        errors: npt.NDArray[Any] = np.abs((narrow - wide) / wide)
    largest = float(np.fmax.reduce(errors, initial=0.0))
    underflows = int(np.count_nonzero((narrow == 0) & (wide != 0))) if largest >= 1 else 0
    changed = int(np.count_nonzero(errors > 0)) if _all_whole(wide) else None
    return Narrowing(feature.name, "float64", "float32", len(wide), largest, underflows, changed)


def _all_whole(wide: npt.NDArray[np.float64]) -> bool:
    """Return whether all are integers that float64 counts by ones, as ids and counts are; NaN stands for none."""
    for values in (wide[:64], wide):  # most columns of floats show a fraction soon
        with np.errstate(invalid="ignore"):
            if not (((np.trunc(values) == values) & (np.abs(values) <= 2.0**53)) | np.isnan(values)).all():
                return False
    return True


# Decimals as text, as scaled integers and as floats, and back.


_BELOW_FLOAT32: Final = (1 << 29) - 1
"""The bits of a float64 that float32 has no place for."""

_MIDDLE: Final = 1 << 28
_EXACT: Final = 2.0**53
"""Up to here float64 holds every integer."""

_STEPS: Final = 8  # Arrow's own cast may be some of the least steps beside the nearest float64


def decimal_text(values: pa.Array) -> pa.Array:
    """Return decimals as exact text, never with an exponent: as many digits after the point as the type has."""
    text = values.cast(pa.string())
    if not pc.any(pc.match_substring(text, "E")).as_py():
        return text
    written = [None if value is None else format(value, "f") for value in values.to_pylist()]
    return pa.array(written, pa.string())


def decimal_floats(values: pa.Array) -> pa.Array:
    """Return float64 values whose nearest float32, which records hold, is the nearest of the decimal itself.

    A decimal just beside the middle of two float32 values may be that middle as float64, and then go to the wrong one;
    and an integer beyond 2**53 may be a float32 as float64, so that nothing would seem lost. Such values are moved by
    the least step towards the decimal.
    """
    floats = np.asarray(values.cast(pa.float64()).fill_null(0.0)).copy()
    below = floats.view(np.int64) & _BELOW_FLOAT32
    near = np.flatnonzero(np.abs(below - _MIDDLE) <= _STEPS)
    for position in near.tolist():
        value = values[position].as_py()
        if value is not None:
            exact = Fraction(value)
            middle = _middle(float(floats[position]))
            beside = np.inf if exact > middle else -np.inf
            floats[position] = middle if exact == middle else np.nextafter(middle, beside)
    large = np.flatnonzero((np.abs(floats) >= _EXACT) & (floats.view(np.int64) & _BELOW_FLOAT32 == 0))
    for position in large.tolist():
        if (value := values[position].as_py()) is not None and value != int(floats[position]):
            floats[position] = np.nextafter(floats[position], np.inf if value > int(floats[position]) else -np.inf)
    return pa.array(floats, pa.float64(), mask=np.asarray(values.is_null()) if values.null_count else None)


def _middle(value: float) -> float:
    bits = np.array([value]).view(np.int64)
    bits = (bits & ~np.int64(_BELOW_FLOAT32)) | np.int64(_MIDDLE)
    return float(bits.view(np.float64)[0])


def scaled_integers(values: pa.Array) -> tuple[pa.Array, npt.NDArray[np.int64]]:
    """Return the integers that decimals are without their point, and the positions of those that int64 cannot hold.

    Arrow keeps a decimal as that integer: two's complement, little-endian, of as many bits as the type.
    """
    if not len(values):
        return pa.nulls(0, pa.int64()), np.zeros(0, np.int64)
    width = values.type.bit_width // 32
    words = np.frombuffer(values.buffers()[1], np.int32, (values.offset + len(values)) * width).reshape(-1, width)
    words = words[values.offset :]
    if width == 1:
        integers, over = words[:, 0].astype(np.int64), np.zeros(len(values), np.bool_)
    else:
        integers = np.ascontiguousarray(words[:, :2]).view(np.int64)[:, 0]
        over = (words[:, 2:] != (integers >> 63).astype(np.int32)[:, None]).any(axis=1)
    valid = np.asarray(values.is_valid())
    return pa.array(integers, pa.int64(), mask=~valid), np.flatnonzero(over & valid)


def from_scaled(integers: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return decimals of a type of 128 or 256 bits, given the integers that they are without their point."""
    raw = np.asarray(integers.fill_null(0)).astype(np.int64)
    words = np.empty((len(raw), kind.bit_width // 64), np.int64)
    words[:, 0] = raw
    words[:, 1:] = (raw >> 63)[:, None]
    valid = None if not integers.null_count else pc.if_else(integers.is_valid(), True, None)
    found = pa.Array.from_buffers(kind, len(raw), [None, pa.py_buffer(words.tobytes())])
    return found if valid is None else pc.if_else(valid, found, pa.scalar(None, kind))
