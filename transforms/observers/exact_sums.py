"""Sums of values and of their squares without any rounding: no order and no cut of the rows can change them.

A float64 adds up exactly as long as all terms are multiples of one unit and the sum stays below 2**53 units. So
values are taken apart into pieces of 20 bits, of which 8,192 products, of 40 bits each, stay below that:

    float32   0.7853982 = 0.785398482... (20 bits under the largest) + the rest of its 24 bits
    int64     x - smallest = a + b * 2**20 + c * 2**40 + ...

What is summed up so becomes a Python integer, in the unit of the least float32. Floats that are too small for the
two pieces are summed up in a round of their own. After S. M. Rump, T. Ogita and S. Oishi, *Accurate floating-point
summation*, 2008, section 3, and with no more than that of it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import lshift
from typing import Final

import numpy as np
import numpy.typing as npt

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]

FLOAT_BITS: Final = 149
"""The least positive float32 is 2**-149: sums of floats are in this unit, those of squares in its square."""

_VALUES_AT_ONCE: Final = 1 << 13
_PIECE_BITS: Final = 20
_PIECE: Final = (1 << _PIECE_BITS) - 1
_SIGNIFICANT: Final = 24
_DIGITS: Final = 53
FEW: Final = 32
"""Up to this number integers are added one by one: each call of numpy takes as long as ten of them."""


def sums_of_floats(values: npt.NDArray[np.float32]) -> tuple[int, int]:
    """Return the sum of finite float32 values in units of 2**-149, and that of their squares in units of 2**-298.

    >>> total, squares = sums_of_floats(np.array([0.5, 2.0], np.float32))
    >>> total / 2**149, squares / 2**298
    (2.5, 4.25)
    """
    total = squares = 0
    for start in range(0, len(values), _VALUES_AT_ONCE):
        some = values[start : start + _VALUES_AT_ONCE]
        while len(some):
            some, one, two = _sum_large(some)
            total, squares = total + one, squares + two
    return total, squares


def _sum_large(values: npt.NDArray[np.float32]) -> tuple[npt.NDArray[np.float32], int, int]:
    """Sum up the values that are not far below the largest one; return the others, and both sums."""
    if len(values) <= FEW:
        units = [_units(value, FLOAT_BITS) for value in values.tolist()]
        return values[:0], sum(units), sum(unit * unit for unit in units)
    sizes = np.abs(values)
    exponent = math.frexp(float(sizes.max()))[1]
    least = math.ldexp(1.0, exponent - 2 * _PIECE_BITS - 1 + _SIGNIFICANT - 1)
    wide = values.astype(np.float64)
    rest = values[:0]
    below = sizes < least
    if below.any():
        rest = values[below]
        rest = rest[rest != 0]
        wide[below] = 0
    shift = math.ldexp(1.5, exponent - _PIECE_BITS + 52)
    high = wide + shift
    high -= shift
    wide -= high
    total = _units(float(np.add.reduce(high)), FLOAT_BITS) + _units(float(np.add.reduce(wide)), FLOAT_BITS)
    products = (float(np.dot(high, high)), 2 * float(np.dot(high, wide)), float(np.dot(wide, wide)))
    return rest, total, sum(_units(product, 2 * FLOAT_BITS) for product in products)


def sums_of_float_rows(table: npt.NDArray[np.float32], largest: F64) -> list[tuple[int, int]]:
    """Return what `sums_of_floats` does, for each row of a table of finite values; `largest` are their sizes."""
    exponents = np.frexp(largest)[1]
    least = np.ldexp(1.0, exponents - 2 * _PIECE_BITS - 1 + _SIGNIFICANT - 1)
    wide = table.astype(np.float64)
    below = (np.abs(wide) < least[:, None]) & (wide != 0)
    small = np.flatnonzero(below.any(axis=1)).tolist()
    if small:
        wide[below] = 0
    shift = np.ldexp(1.5, exponents - _PIECE_BITS + 52)[:, None]
    high = wide + shift
    high -= shift
    wide -= high
    linear = _units_of([high.sum(axis=1), wide.sum(axis=1)], FLOAT_BITS)
    products = [np.einsum("ij,ij->i", one, other) for one, other in ((high, high), (high, wide), (wide, wide))]
    products[1] *= 2
    found = list(zip(linear, _units_of(products, 2 * FLOAT_BITS), strict=True))
    for row in small:
        total, squares = sums_of_floats(table[row][below[row]])
        found[row] = found[row][0] + total, found[row][1] + squares
    return found


def _units_of(parts: Sequence[F64], bits: int) -> list[int]:
    """Return for each place the sum of what the parts hold there, all multiples of 2**-bits, in this unit."""
    fractions, exponents = np.frexp(np.stack(parts))
    whole = np.ldexp(fractions, _DIGITS).astype(np.int64)
    up = exponents + (bits - _DIGITS)
    whole >>= np.clip(-up, 0, 63)  # of zeros alone, or of bits that are zero
    pairs = zip(whole.T.tolist(), np.maximum(up, 0).T.tolist(), strict=True)
    return [sum(map(lshift, numbers, by)) for numbers, by in pairs]


def _units(value: float, bits: int) -> int:
    """Return a value that is a multiple of 2**-bits in this unit."""
    over, under = value.as_integer_ratio()
    return over << (bits - under.bit_length() + 1)


def sums_of_integers(values: npt.NDArray[np.int64], least: int, most: int) -> tuple[int, int]:
    """Return the sum of int64 values from `least` to `most`, and that of their squares.

    >>> sums_of_integers(np.array([3, -4]), -4, 3)
    (-1, 25)
    """
    total = squares = 0
    base = 0 if least >= 0 and most <= _PIECE else least
    pieces = max(-(-(most - base).bit_length() // _PIECE_BITS), 1)
    for start in range(0, len(values), _VALUES_AT_ONCE):
        some = values[start : start + _VALUES_AT_ONCE]
        above = _pieces(some, base, pieces)
        one = two = 0
        for i, piece in enumerate(above):
            one += int(np.add.reduce(piece)) << (i * _PIECE_BITS)
            for j in range(i, pieces):
                product = int(np.dot(piece, above[j])) << ((i + j) * _PIECE_BITS)
                two += product if i == j else 2 * product
        total += one + len(some) * base
        squares += two + 2 * base * one + len(some) * base * base
    return total, squares


def sums_of_integer_rows(table: npt.NDArray[np.int64], least: I64, most: I64) -> list[tuple[int, int]]:
    base = np.where((least >= 0) & (most <= _PIECE), 0, least)
    above = table.view(np.uint64) - base.view(np.uint64)[:, None]  # modulo 2**64, and so right
    furthest = int((most.view(np.uint64) - base.view(np.uint64)).max())
    pieces = max(-(-furthest.bit_length() // _PIECE_BITS), 1)
    parts = [
        (above >> np.uint64(i * _PIECE_BITS) & np.uint64(_PIECE)).view(np.int64).astype(np.float64)
        for i in range(pieces)
    ]
    ones, twos = [0] * len(table), [0] * len(table)
    for i, piece in enumerate(parts):
        by = i * _PIECE_BITS
        ones = [one + (more << by) for one, more in zip(ones, _whole(piece.sum(axis=1)), strict=True)]
        for j in range(i, pieces):
            by = (i + j) * _PIECE_BITS + (i != j)
            products = _whole(np.einsum("ij,ij->i", piece, parts[j]))
            twos = [two + (more << by) for two, more in zip(twos, products, strict=True)]
    count = table.shape[1]
    return [
        (one + count * low, two + 2 * low * one + count * low * low)
        for one, two, low in zip(ones, twos, base.tolist(), strict=True)
    ]


def _whole(sums: F64) -> list[int]:
    found: list[int] = sums.astype(np.int64).tolist()
    return found


def _pieces(values: npt.NDArray[np.int64], base: int, pieces: int) -> list[F64]:
    """Return pieces of 20 bits of how far values are above the base, the lowest first."""
    if pieces == 1:
        return [(values - np.int64(base) if base else values).astype(np.float64)]
    above = values.view(np.uint64) - np.array(base, np.int64).view(np.uint64)  # modulo 2**64, and so right
    shifted = [above >> np.uint64(i * _PIECE_BITS) for i in range(1, pieces)]
    whole = [above, *shifted]
    return [(one & np.uint64(_PIECE)).view(np.int64).astype(np.float64) for one in whole]
