from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shardmill.transforms.format.batches.arrow_memory import (
    array_of,
    beginning_of,
    binary_array,
    int_array,
    joined_arrays,
    null_of,
    text_array,
    true_mask,
    views_of,
)


@given(st.lists(st.text(max_size=9) | st.none(), max_size=20))
def test_texts_become_the_array_that_arrow_makes_of_them(values: list[str | None]) -> None:
    array = text_array(values)
    array.validate(full=True)
    assert array.equals(pa.array(values, pa.string()))


@given(st.lists(st.binary(max_size=9) | st.none(), max_size=20))
def test_bytes_become_the_array_that_arrow_makes_of_them(values: list[bytes | None]) -> None:
    array = binary_array(values)
    array.validate(full=True)
    assert array.equals(pa.array(values, pa.binary()))


@given(st.lists(st.booleans() | st.none(), max_size=40), st.integers(0, 9))
def test_true_is_what_is_neither_false_nor_null_wherever_a_slice_begins(values: list[bool | None], start: int) -> None:
    flags = pa.array(values, pa.bool_()).slice(start)
    assert true_mask(flags).tolist() == [value is True for value in values[start:]]


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int32", "int64", "float16", "float32", "float64"])
@pytest.mark.parametrize("step", [1, 2])
def test_numbers_become_the_array_that_arrow_makes_of_them(dtype: str, step: int) -> None:
    values = np.array([0, 1, 1, 0, 5, 9, 0, 0, 1, 1, 2], dtype)[::step]
    array = array_of(values)
    array.validate(full=True)
    assert array.equals(pa.array(values))
    assert array_of(values[:0]).equals(pa.array(values[:0]))


def test_a_null_has_its_type() -> None:
    assert null_of(pa.timestamp("us", "UTC")).equals(pa.scalar(None, pa.timestamp("us", "UTC")))


@given(st.lists(st.integers(-(2**63), 2**63 - 1) | st.none(), max_size=20))
def test_whole_numbers_and_nulls_become_the_array_that_arrow_makes_of_them(values: list[int | None]) -> None:
    array = int_array(values)
    array.validate(full=True)
    assert array.equals(pa.array(values, pa.int64()))


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), pa.binary_view()], ids=str)
@given(values=st.lists(st.binary(max_size=30) | st.none(), max_size=20), start=st.integers(0, 9))
def test_views_are_the_values_wherever_a_slice_begins(
    kind: pa.DataType, values: list[bytes | None], start: int
) -> None:
    array = pa.array(values, kind).slice(start)
    assert [None if one is None else bytes(one) for one in views_of(array)] == values[start:]


@given(st.lists(st.none() | st.integers(-9, 9), min_size=12, max_size=12), st.integers(0, 3))
def test_slices_that_follow_each_other_are_joined_without_a_copy(values: list[int | None], start: int) -> None:
    whole = pa.array(values, pa.int64())
    slices = [whole.slice(start + 3 * number, 3) for number in range(3)]
    found = joined_arrays(slices)
    assert found.to_pylist() == values[start : start + 9]
    assert found.buffers()[1].address == whole.buffers()[1].address


def test_arrays_that_only_share_their_values_are_joined_with_their_own_nulls() -> None:
    whole = pa.array([1, None, 3, 4], pa.int64())
    data = whole.buffers()[1]
    other = pa.Array.from_buffers(pa.int64(), 2, [None, data], offset=2)
    for slices in ([whole.slice(0, 2), other], [whole.slice(0, 2), whole.slice(0, 2)], [whole.slice(0, 1), whole]):
        assert joined_arrays(slices).to_pylist() == [value for one in slices for value in one.to_pylist()]


def test_the_beginning_of_a_cell_is_its_first_bytes() -> None:
    cells = pa.array([b"abc", None, b"", b"defgh"]).slice(1)
    assert [beginning_of(cells, row, 4) for row in range(3)] == [b"", b"", b"defg"]
