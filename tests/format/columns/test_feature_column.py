from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shardmill.transforms.errors import SchemaError
from shardmill.transforms.format.batches.rejects import CellProblem
from shardmill.transforms.format.batches.rows import Narrowing
from shardmill.transforms.format.columns.feature_column import (
    DEFAULT_FIELD_BYTES,
    Conversion,
    bytes_values,
    feature_column,
)
from shardmill.transforms.format.schema.arrow_types import feature_of
from shardmill.transforms.format.schema.schema import ColumnRule, Feature


def convert(array: pa.Array, rule: ColumnRule | None = None, **options: Any) -> Conversion:
    feature, _ = feature_of(pa.field("x", array.type), rule)
    return feature_column(array, feature, **options)


def found(problems: tuple[CellProblem, ...]) -> list[tuple[int, str, str]]:
    return [(problem.row, problem.error.code, problem.error.value) for problem in problems]


def invalid_strings(cells: list[bytes | None], arrow: pa.DataType) -> pa.Array:
    binary = {pa.string(): pa.binary(), pa.large_string(): pa.large_binary(), pa.string_view(): pa.binary_view()}[arrow]
    held = pa.array(cells, binary)
    return pa.Array.from_buffers(arrow, len(held), held.buffers())


def test_a_uint64_above_int64_is_a_problem_and_the_largest_int64_is_none() -> None:
    array = pa.array([0, 2**64 - 1, 2**64 - 1, 2**63 - 1, 2**63, None], pa.uint64())
    array = pa.concat_arrays([array, pa.array([], pa.uint64())]).slice(2)
    problems = convert(array).problems
    assert found(problems) == [(0, "INT_OVERFLOW", str(2**64 - 1)), (2, "INT_OVERFLOW", str(2**63))]
    assert problems[0].error.message == (
        "18446744073709551615 is above 9223372036854775807, the largest int64; "
        "keep its digits: --set schema.columns.x.type=string"
    )


def test_a_uint64_declared_as_string_keeps_all_its_digits() -> None:
    conversion = convert(pa.array([2**64 - 1], pa.uint64()), ColumnRule(type="string"))
    assert conversion.problems == ()
    assert bytes(conversion.column.buffers[0]).startswith(b"18446744073709551615")


@pytest.mark.parametrize(
    "array",
    [
        pa.array([[1], [1, None, None], None, []], pa.list_(pa.int64())),
        pa.array([[1], [1, None, None], None, []], pa.large_list(pa.int64())),
        pa.array([["a"], ["a", None, None], None, []], pa.list_(pa.string())),
        pa.ListViewArray.from_arrays(
            pa.array([1, 1, 0, 0], pa.int32()),
            pa.array([1, 3, 0, 0], pa.int32()),
            pa.array([None, 1, None, None]),
            mask=pa.array([False, False, True, False]),
        ),
    ],
)
def test_a_null_in_a_list_is_one_problem_of_its_row(array: pa.Array) -> None:
    assert found(convert(array).problems) == [(1, "NULL_IN_LIST", "null")]
    assert found(convert(array.slice(1, 2)).problems) == [(0, "NULL_IN_LIST", "null")]


def test_what_lies_under_a_null_list_is_no_value() -> None:
    values = pa.array([1, None, 2, 2**63], pa.uint64())
    mask = pa.array([False, True, False])
    array = pa.ListArray.from_arrays(pa.array([0, 1, 2, 2], pa.int32()), values, mask=mask)
    fixed = pa.FixedSizeListArray.from_arrays(values.slice(0, 3), 1, mask=mask)
    for column in (array, fixed):
        conversion = convert(column)
        assert conversion.problems == ()
        assert conversion.column.present is not None
        assert conversion.column.present.tolist() == [True, False, True]


def test_floats_beyond_float32_are_problems_and_infinities_are_none() -> None:
    array = pa.array([1.0, 1e39, float("inf"), float("nan"), -3.5e38, None])
    problems = convert(array).problems
    assert found(problems) == [(1, "FLOAT_OVERFLOW", "1e+39"), (4, "FLOAT_OVERFLOW", "-3.5e+38")]
    assert "--set schema.columns.x.as=bytes" in problems[0].error.message


def test_what_narrowing_lost_is_reported() -> None:
    array = pa.array([0.5, 0.1, None, float("nan"), float("-inf"), 0.0])
    error = abs(float(np.float32(0.1)) - 0.1) / 0.1
    assert convert(array).narrowing == Narrowing("x", "float64", "float32", 5, error, 0)
    assert convert(pa.array([1e-60, -1e-60, 1.0])).narrowing == Narrowing("x", "float64", "float32", 3, 1.0, 2)
    assert convert(pa.array([1.0], pa.float32())).narrowing is None


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False, max_value=3e38, min_value=-3e38), min_size=1))
def test_the_largest_relative_error_is_that_of_the_slow_way(values: list[float]) -> None:
    narrowing = convert(pa.array(values, pa.float64())).narrowing
    assert narrowing is not None
    slow = [abs(float(np.float32(v)) - v) / abs(v) for v in values if v]
    assert narrowing.max_relative_error == max(slow, default=0.0)
    assert narrowing.underflows == sum(v != 0 and float(np.float32(v)) == 0 for v in values)


@given(st.lists(st.integers(-(2**53), 2**53).map(float) | st.just(float("nan")) | st.none(), min_size=1))
def test_integers_that_are_another_number_as_float32_are_counted_where_all_are_integers(
    values: list[float | None],
) -> None:
    narrowing = convert(pa.array(values, pa.float64())).narrowing
    changed = sum(v is not None and v == v and float(np.float32(v)) != v for v in values)
    assert narrowing is not None
    assert narrowing.integers_changed == changed
    other = convert(pa.array([*values, 0.5], pa.float64())).narrowing
    assert other is not None
    assert narrowing.plus(other).integers_changed is other.integers_changed is None


def test_floats_as_int64_are_whole_numbers_or_problems() -> None:
    array = pa.array([1.0, 0.5, None, float("nan"), 2.0**63, -(2.0**63), float("-inf"), 2.0**53])
    conversion = convert(array, ColumnRule(as_="int64"))
    rows = [(1, "0.5"), (3, "nan"), (4, repr(2.0**63)), (6, "-inf")]
    assert found(conversion.problems) == [(row, "PRECISION_LOSS", text) for row, text in rows]
    assert conversion.column.values[[0, 5, 7]].tolist() == [1, -(2**63), 2**53]


@given(st.lists(st.floats()))
def test_float64_as_bytes_is_exact(values: list[float]) -> None:
    conversion = convert(pa.array(values, pa.float64()), ColumnRule(as_="bytes"))
    words = conversion.column.values.view(np.int32).reshape(-1, 4)
    assert words[:, 0].tolist() == [8] * len(values)
    assert words[:, 1:3].tobytes() == np.array(values, "<f8").tobytes()
    assert conversion.narrowing is None


@pytest.mark.parametrize(
    ("array", "rule", "problem"),
    [
        (pa.array([1001, 1000], pa.timestamp("ns")), ColumnRule(unit="us"), (0, "PRECISION_LOSS", "1001 ns")),
        (pa.array([1001, 1000], pa.time64("ns")), ColumnRule(unit="us"), (0, "PRECISION_LOSS", "1001 ns")),
        (pa.array([-1, -1000], pa.duration("ns")), ColumnRule(unit="us"), (0, "PRECISION_LOSS", "-1 ns")),
        (pa.array([2**62, 1], pa.timestamp("s")), None, (0, "INT_OVERFLOW", f"{2**62} s")),
        (pa.array([1500, 1000], pa.timestamp("ms")), ColumnRule(unit="s"), (0, "PRECISION_LOSS", "1500 ms")),
    ],
)
def test_a_time_that_would_lose_digits_is_a_problem(array: pa.Array, rule: ColumnRule | None, problem: Any) -> None:
    conversion = convert(array, rule)
    assert found(conversion.problems) == [problem]
    mend = conversion.problems[0].error.message.rpartition("--set ")[2]
    assert mend == f"schema.columns.x.unit={array.type.unit}"
    assert convert(array, ColumnRule(unit=array.type.unit)).problems == ()


def test_a_date64_within_a_day_is_a_problem() -> None:
    array = pa.Array.from_buffers(pa.date64(), 2, [None, pa.py_buffer(np.array([86400000, 86400001], np.int64))])
    conversion = convert(array)
    assert found(conversion.problems) == [(1, "PRECISION_LOSS", "1970-01-02T00:00:00.001")]
    assert conversion.column.values[0] == 1


@pytest.mark.parametrize(("arrow", "held"), [(pa.date64(), 86_400_001), (pa.date32(), 1)])
def test_a_date_that_is_declared_a_timestamp_is_one(arrow: pa.DataType, held: int) -> None:
    array = pa.array([held, None], pa.int64() if arrow == pa.date64() else pa.int32()).view(arrow)
    conversion = convert(array, ColumnRule("timestamp"))
    assert conversion.problems == ()
    assert conversion.column.values[0] == (86_400_001_000 if arrow == pa.date64() else 86_400_000_000)


@pytest.mark.parametrize("arrow", [pa.string(), pa.large_string(), pa.string_view()])
def test_a_string_that_is_not_utf8_is_a_problem(arrow: pa.DataType) -> None:
    cells = [b"a", b"caf\xe9", None, "café".encode(), b"\xff" * 40]
    problems = convert(invalid_strings(cells, arrow)).problems
    assert [(row, code) for row, code, _ in found(problems)] == [(1, "BAD_UTF8"), (4, "BAD_UTF8")]
    assert problems[0].error.message == (
        '"caf\\xe9" is not UTF-8; declare it as bytes: --set schema.columns.x.type=bytes'
    )
    assert convert(invalid_strings(cells, arrow), ColumnRule(type="bytes")).problems == ()
    assert convert(invalid_strings(cells, arrow).slice(2, 2)).problems == ()


def test_characters_cut_apart_by_cell_borders_are_not_utf8() -> None:
    whole = "é".encode()
    array = invalid_strings([whole[:1], whole[1:]], pa.string())
    assert [row for row, _, _ in found(convert(array).problems)] == [0, 1]


def test_binary_declared_as_string_is_checked() -> None:
    array = pa.array([b"ok", b"\xff", "é".encode()])
    assert found(convert(array, ColumnRule(type="string")).problems) == [(1, "BAD_UTF8", "\\xff")]


@given(st.lists(st.binary(max_size=5) | st.text(max_size=3).map(str.encode) | st.none(), max_size=12), st.data())
def test_utf8_is_what_python_decodes(cells: list[bytes | None], data: st.DataObject) -> None:
    arrow = data.draw(st.sampled_from([pa.string(), pa.large_string(), pa.string_view()]))
    start = data.draw(st.integers(0, len(cells)))

    def decodes(cell: bytes | None) -> bool:
        try:
            return cell is None or cell.decode() is not None
        except UnicodeDecodeError:
            return False

    problems = convert(invalid_strings(cells, arrow).slice(start)).problems
    assert [p.row for p in problems] == [i for i, cell in enumerate(cells[start:]) if not decodes(cell)]


def test_a_null_where_none_is_declared_is_a_problem_but_not_of_an_excused_row() -> None:
    array = pa.array([1, None, None])
    conversion = convert(array, ColumnRule(nullable=False), excused={2})
    assert found(conversion.problems) == [(1, "DECLARED_NOT_NULL", "null")]
    assert "--set schema.columns.x.nullable=true" in conversion.problems[0].error.message


def test_a_missing_column_is_null_in_every_row() -> None:
    nullable, strict = Feature("x", "float", "float32", (-1,), nullable=True), Feature("x", "int64", "int64")
    absent = feature_column(pa.nulls(2), nullable)
    assert (absent.problems, absent.column.present is not None) == ((), True)
    assert found(feature_column(pa.nulls(2), strict).problems) == [
        (0, "DECLARED_NOT_NULL", "null"),
        (1, "DECLARED_NOT_NULL", "null"),
    ]


@pytest.mark.parametrize("arrow", [pa.string(), pa.large_string(), pa.binary(), pa.binary_view(), pa.string_view()])
def test_a_field_over_the_limit_is_a_problem(arrow: pa.DataType) -> None:
    array = pa.array(["x" * 9, "x" * 10, None, "x" * 11], pa.string()).cast(arrow)
    assert found(convert(array, field_bytes_limit=10).problems) == [(3, "FIELD_TOO_LARGE", "11 bytes")]


def test_images_have_limits_of_their_own() -> None:
    feature = Feature("image/encoded", "bytes", "image")
    assert feature_column(pa.array([b"x" * 11]), feature, field_bytes_limit=10).problems == ()


@pytest.mark.parametrize(
    ("array", "feature", "says"),
    [
        (pa.array([1.5]), Feature("x", "int64", "int64"), "the batch holds double, but the schema has int64"),
        (pa.array(["1"]), Feature("x", "float", "float32"), "the batch holds string"),
        (pa.array([1]), Feature("x", "int64", "timestamp", unit="us"), "the batch holds int64"),
        (pa.array([1]), Feature("x", "bytes", "binary"), "the batch holds int64"),
        (pa.array([[1]]), Feature("x", "int64", "int64"), "but the schema has a scalar"),
        (pa.array([1]), Feature("x", "int64", "int64", (-1,)), r"but the schema has shape \[-1\]"),
        (pa.array([[1, 2]]), Feature("x", "int64", "int64", (3,)), r"but the schema has shape \[3\]"),
    ],
)
def test_a_batch_that_is_not_of_the_schema_is_an_error(array: pa.Array, feature: Feature, says: str) -> None:
    with pytest.raises(SchemaError, match=f'column "x".*{says}'):
        feature_column(array, feature)


def test_a_large_string_in_a_buffer_beyond_the_reach_of_views_is_sliced() -> None:
    cells = ["x" * n for n in (30, 5, 20, 13, 12)]
    array = pa.array(cells, pa.large_string()).slice(2)
    values, buffers, _ = bytes_values(array, Feature("x", "bytes", "string"), DEFAULT_FIELD_BYTES, reach=40)
    views = pa.Array.from_buffers(pa.binary_view(), 3, [None, pa.py_buffer(values), *buffers])
    assert views.to_pylist() == [cell.encode() for cell in cells[2:]]
    assert buffers[0].size == 45
