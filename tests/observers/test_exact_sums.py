"""Sums of values and of squares are exact, whatever the values are and however they are cut."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from shardmill.transforms.observers.exact_sums import sums_of_floats, sums_of_integers
from shardmill.transforms.observers.tally import Numbers

from ..tiers import examples

FLOATS = npst.arrays(
    np.float32, st.integers(0, 300), elements=st.floats(width=32, allow_nan=False, allow_infinity=False)
)
INTEGERS = npst.arrays(np.int64, st.integers(1, 300), elements=st.integers(-(2**63), 2**63 - 1))


def slow_sums(values: np.ndarray) -> tuple[Fraction, Fraction]:
    exact = [Fraction(value) for value in values.tolist()]
    return sum(exact, Fraction()), sum((one * one for one in exact), Fraction())


def exact_floats(values: np.ndarray) -> tuple[Fraction, Fraction]:
    total, squares = sums_of_floats(values)
    return Fraction(total, 2**149), Fraction(squares, 2**298)


@given(FLOATS)
@settings(max_examples=examples(300))
def test_sums_of_floats_of_any_size_are_exact(values: np.ndarray) -> None:
    assert exact_floats(values) == slow_sums(values)


@given(FLOATS, st.integers(0, 300))
@settings(max_examples=examples(100))
def test_floats_add_up_to_the_same_however_they_are_cut(values: np.ndarray, at: int) -> None:
    parts = (sums_of_floats(values[:at]), sums_of_floats(values[at:]))
    assert tuple(map(sum, zip(*parts, strict=True))) == sums_of_floats(values)


@pytest.mark.parametrize("low", [-45, -30, -3, 0])
@pytest.mark.parametrize("high", [0, 4, 19, 38])
def test_sums_of_many_floats_are_exact(low: int, high: int) -> None:
    rng = np.random.default_rng(high - low)
    values = (rng.normal(0, 1, 20_000) * 10.0 ** rng.integers(low, high + 1, 20_000)).astype(np.float32)
    values = values[np.isfinite(values)]
    assert exact_floats(values) == slow_sums(values)
    assert exact_floats(np.full(9000, values.max())) == slow_sums(np.full(9000, values.max()))


@given(INTEGERS)
@settings(max_examples=examples(300))
def test_sums_of_integers_are_exact(values: np.ndarray) -> None:
    exact = values.tolist()
    assert sums_of_integers(values, min(exact), max(exact)) == (sum(exact), sum(one * one for one in exact))


@pytest.mark.parametrize("bits", [1, 19, 20, 21, 39, 40, 41, 60, 61, 63, 64])
def test_sums_of_many_integers_of_as_many_bits_are_exact(bits: int) -> None:
    rng = np.random.default_rng(bits)
    low, high = (0, 2**bits) if bits < 64 else (-(2**63), 2**63)
    values = rng.integers(low, high, 20_000, dtype=np.int64)
    values[:3], values[3:6] = low, high - 1
    exact = values.tolist()
    assert sums_of_integers(values, low, high - 1) == (sum(exact), sum(one * one for one in exact))


def one_by_one(table: np.ndarray) -> list[Numbers]:
    found = [Numbers(table.dtype == np.float32) for _ in table]
    for numbers, values in zip(found, table, strict=True):
        numbers.add(values)
    return found


def together(table: np.ndarray) -> list[Numbers]:
    found = [Numbers(table.dtype == np.float32) for _ in table]
    Numbers.add_rows(found, table)
    return found


SHAPES = st.tuples(st.integers(1, 6), st.integers(1, 80))
ANY_FLOATS = npst.arrays(np.float32, SHAPES, elements=st.floats(width=32))
ANY_INTEGERS = npst.arrays(np.int64, SHAPES, elements=st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 2**20))


@given(ANY_FLOATS | ANY_INTEGERS)
@settings(max_examples=examples(300))
def test_rows_of_a_table_are_counted_as_one_by_one(table: np.ndarray) -> None:
    assert repr(together(table)) == repr(one_by_one(table))


def test_many_rows_of_floats_of_all_sizes_are_counted_as_one_by_one() -> None:
    rng = np.random.default_rng(5)
    table = (rng.normal(0, 1, (40, 1000)) * 10.0 ** rng.integers(-45, 38, (40, 1000))).astype(np.float32)
    table[1], table[2], table[3, :5] = np.nan, -0.0, (np.inf, -np.inf, np.nan, 0, -0.0)
    assert repr(together(table)) == repr(one_by_one(table))
