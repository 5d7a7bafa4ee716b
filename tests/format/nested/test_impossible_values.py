"""Decimals beyond their precision and times of a day of 24 hours: each is a problem of its row, wherever it is."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shardmill.pipelines import convert, open_dataset
from shardmill.transforms.errors import TooManyRejects, UsageError
from shardmill.transforms.format.nested.impossible_values import checked_batch

from ...tiers import examples

HOURS_24 = 86_400 * 10**6
DECIMAL = "9999999999999999.90 is not a value of decimal(15, 2), the type of its column: it has 18 digits; "
DECIMAL += "write the column as decimal128(18, 2) or wider"
TIME = "86400000000 us is not a time of day, the type of its column (from 0 to less than 24 hours); correct it, or "
TIME += "write duration[us]"


def decimals(unscaled: list[int], precision: int = 15, scale: int = 2) -> pa.Array:
    words = np.array([[value, value >> 63] for value in unscaled], np.int64)
    return pa.Array.from_buffers(pa.decimal128(precision, scale), len(unscaled), [None, pa.py_buffer(words.tobytes())])


def times(ticks: list[int]) -> pa.Array:
    return pa.array(ticks, pa.int64()).view(pa.time64("us"))


VALUES = decimals([150, 999_999_999_999_999_990, -25])
"""1.50, one of 18 digits, -0.25."""

NESTED: dict[str, tuple[Callable[[pa.Array], pa.Array], str]] = {
    "plain": (lambda values: values, ""),
    "list": (lambda values: pa.ListArray.from_arrays([0, 1, 2, 3], values), ""),
    "list of fixed size": (lambda values: pa.FixedSizeListArray.from_arrays(values, 1), ""),
    "list view": (lambda values: pa.ListViewArray.from_arrays([0, 1, 2], [1, 1, 1], values), ""),
    "struct": (lambda values: pa.StructArray.from_arrays([values], ["leaf"]), '"x/leaf": '),
    "map": (lambda values: pa.MapArray.from_arrays([0, 1, 2, 3], pa.array(["a"] * 3), values), '"x/value": '),
    "dictionary": (lambda values: pa.DictionaryArray.from_arrays(pa.array([0, 1, 2]), values), ""),
    "list of structs": (
        lambda values: pa.ListArray.from_arrays([0, 1, 2, 3], pa.StructArray.from_arrays([values], ["leaf"])),
        '"x/leaf": ',
    ),
}


@pytest.mark.parametrize("case", NESTED)
def test_an_impossible_value_is_a_problem_of_its_row_at_any_depth_and_the_other_rows_are_exact(case: str) -> None:
    nest, where = NESTED[case]
    for values, message in ((VALUES, DECIMAL), (times([1, HOURS_24, 2]), TIME)):
        column = nest(values)
        batch, problems = checked_batch(pa.record_batch([column, pa.array([7, 8, 9])], names=["x", "id"]))
        assert [(one.row, one.error.column, one.error.code, one.error.message) for one in problems] == [
            (1, "x", "BAD_TYPE", where + message)
        ]
        assert batch.column("x").is_null().to_pylist() == [False, True, False]
        assert batch.column("x").take(pa.array([0, 2])).to_pylist() == column.take(pa.array([0, 2])).to_pylist()
        assert batch.column("id").to_pylist() == [7, 8, 9]


@given(st.lists(st.integers(-(10**18), 10**18)), st.integers(1, 18))
@settings(max_examples=examples(50))
def test_decimals_of_more_digits_than_their_type_are_the_problems_and_no_others(
    unscaled: list[int], precision: int
) -> None:
    _, problems = checked_batch(pa.record_batch([decimals(unscaled, precision, 0)], names=["d"]))
    assert {one.row: Decimal(one.error.value) for one in problems} == {
        row: value for row, value in enumerate(unscaled) if abs(value) >= 10**precision
    }


def test_a_value_that_no_row_has_is_no_problem() -> None:
    of_two = pa.DictionaryArray.from_arrays(pa.array([0, 2, None]), VALUES)
    nulls = pa.ListArray.from_arrays(pa.array([0, None, 2, 3], pa.int32()), VALUES)
    below_null = pa.ListArray.from_buffers(
        nulls.type, 3, [pa.py_buffer(b"\x05"), pa.py_buffer(np.array([0, 1, 2, 3], np.int32))], children=[VALUES]
    )
    batch, problems = checked_batch(pa.record_batch([of_two, below_null], names=["a", "b"]))
    assert problems == ()
    assert batch.to_pydict() == {
        "a": [Decimal("1.50"), Decimal("-0.25"), None],
        "b": [[Decimal("1.50")], None, [Decimal("-0.25")]],
    }


def test_a_batch_that_is_not_sound_is_refused_whatever_its_values() -> None:
    offsets = pa.py_buffer(np.array([0, 1, 99, 3], np.int32))
    lists = pa.ListArray.from_buffers(pa.list_(VALUES.type), 3, [None, offsets], children=[VALUES])
    with pytest.raises(pa.ArrowInvalid):
        checked_batch(pa.record_batch([VALUES, lists], names=["d", "x"]))


def test_files_with_impossible_values_convert_without_their_rows_and_data_in_python_is_refused(tmp_path: Path) -> None:
    table = pa.table({"d": VALUES, "o": NESTED["struct"][0](times([1, 2, HOURS_24])), "id": [1, 2, 3]})
    pq.write_table(table, tmp_path / "a.parquet")
    with pa.ipc.new_file(tmp_path / "a.arrow", table.schema) as writer:
        writer.write_table(table)
    for name in ("a.parquet", "a.arrow"):
        with pytest.raises(TooManyRejects, match="2 of 3 rows were rejected"):
            convert(tmp_path / name, output=tmp_path / f"none-{name}")
        done = convert(tmp_path / name, output=tmp_path / f"out-{name}", max_rejects=2)
        assert done.manifest.rejects.by_code == {"BAD_TYPE": 2}
        assert open_dataset(tmp_path / f"out-{name}").to_arrow().to_pylist() == table.slice(0, 1).to_pylist()
    with pytest.raises(UsageError) as caught:
        convert(data=table, output=tmp_path / "out")
    assert str(caught.value) == f'Arrow table row 2: column "d": {DECIMAL}'
