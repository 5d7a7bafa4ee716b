"""Decimals as text, as scaled integers and as floats, and back."""

from __future__ import annotations

from fractions import Fraction
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

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
