"""A DataFrame holds the values of its table, each of them."""

from __future__ import annotations

import pandas as pd
import pyarrow as pa
import pytest
from shardmill.transforms.dataset.reading.open_dataset import to_frame

LARGEST = {f"{sign}int{bits}": 2 ** (bits - (sign == "")) - 1 for sign in ("", "u") for bits in (8, 16, 32, 64)}


@pytest.mark.parametrize("kind", LARGEST)
def test_an_integer_beside_a_null_stays_the_integer_that_it_is(kind: str) -> None:
    values = [LARGEST[kind], None, 1]
    frame = to_frame(pa.table({"a": pa.array(values, kind), "b": pa.array([1, 2, 3], kind)}))
    assert [None if value is pd.NA else int(value) for value in frame["a"]] == values
    assert str(frame["a"].dtype).lower() == kind
    assert frame["b"].dtype == kind  # NumPy's own: nothing is missing


def test_a_time_of_day_keeps_its_nanoseconds() -> None:
    times = pa.array([1, None, 86_399_999_999_999], pa.time64("ns"))
    frame = to_frame(pa.table({"t": times}))
    assert pa.array(frame["t"]).cast(pa.int64()).to_pylist() == [1, None, 86_399_999_999_999]


def test_other_columns_are_what_arrow_makes_of_them() -> None:
    table = pa.table(
        {
            "x": pa.array([0.5, None], pa.float32()),
            "s": ["é", None],
            "t": pa.array([1, None], pa.timestamp("us", "UTC")),
            "l": [[1, 2], []],
        }
    )
    pd.testing.assert_frame_equal(to_frame(table), table.to_pandas())
