from __future__ import annotations

from decimal import Context, Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st
from shardmill.transforms.format.columns.numbers import decimal_floats

from ...tiers import examples

SCALE = 25
WIDE = Context(prec=80)


def middle_of(value: np.float32) -> Decimal:
    """Return the middle of a float32 and the next one, exactly."""
    both = Fraction(float(value)) + Fraction(float(np.nextafter(value, np.float32(np.inf))))
    return WIDE.divide(Decimal(both.numerator), Decimal(both.denominator * 2))


def is_nearest(found: np.float32, exact: Fraction) -> bool:
    around = (np.nextafter(found, np.float32(-np.inf)), np.nextafter(found, np.float32(np.inf)))
    return all(abs(Fraction(float(found)) - exact) <= abs(Fraction(float(one)) - exact) for one in around)


@given(st.lists(st.tuples(st.floats(0.5, 1e6, width=32), st.integers(-3, 3)), min_size=1, max_size=50))
@settings(max_examples=examples(100))
def test_a_decimal_beside_the_middle_of_two_floats_goes_to_the_nearer_one(given: list[tuple[float, int]]) -> None:
    step = Decimal(1).scaleb(-SCALE)
    values = [
        WIDE.quantize(WIDE.add(middle_of(np.float32(value)), WIDE.multiply(Decimal(steps), step)), step)
        for value, steps in given
    ]
    floats = np.asarray(decimal_floats(pa.array(values, pa.decimal256(60, SCALE)))).astype(np.float32)
    assert all(is_nearest(found, Fraction(value)) for found, value in zip(floats, values, strict=True))


@given(st.lists(st.none() | st.decimals(-(10**12), 10**12, places=9), max_size=50))
@settings(max_examples=examples(100))
def test_any_decimal_becomes_the_nearest_float32_and_a_null_stays_one(values: list[Decimal | None]) -> None:
    found = decimal_floats(pa.array(values, pa.decimal128(38, 9)))
    assert [one is None for one in found.to_pylist()] == [one is None for one in values]
    floats = np.asarray(found.fill_null(0.0)).astype(np.float32)
    assert all(is_nearest(one, Fraction(value)) for one, value in zip(floats, values, strict=True) if value is not None)
