"""A DataFrame holds the values of its table, each of them."""

from __future__ import annotations

from typing import Any

import numpy as np
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


@pytest.mark.parametrize("kind", ["int64", "uint64"])
def test_an_integer_beside_a_null_in_a_list_or_struct_stays_the_integer_that_it_is(kind: str) -> None:
    large, integer = LARGEST[kind], pa.type_for_alias(kind)
    columns = {
        "struct": ([{"a": large}, {"a": None}, None], pa.struct([("a", integer)])),
        "list": ([[large, None], [], None], pa.list_(integer)),
        "large_list": ([[large, None], [1], None], pa.large_list(integer)),
        "fixed": ([[large, None], [1, 2], None], pa.list_(integer, 2)),
        "lists": ([[[large], [None]], [[1]], []], pa.list_(pa.list_(integer))),
        "list_in_struct": ([{"a": [large, None]}, {"a": None}, None], pa.struct([("a", pa.list_(integer))])),
        "map": ([[("k", large), ("l", None)], [], None], pa.map_(pa.string(), integer)),
    }
    frame = to_frame(pa.table({name: pa.array(values, kind) for name, (values, kind) in columns.items()}))

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: plain(one) for key, one in value.items()}
        return [plain(one) for one in value] if isinstance(value, np.ndarray) else value

    for name, (values, _) in columns.items():
        assert repr([plain(value) for value in frame[name]]) == repr(values), name  # 1.0 == 1, and "1.0" != "1"


def test_columns_beside_lists_and_structs_keep_their_types() -> None:
    plain = {"a": pa.array([2**53 + 1, None]), "b": pa.array([1, 2], pa.int8()), "c": pa.array([True, None])}
    labels = pa.array(["x", None]).dictionary_encode()
    nested = pa.array([{"n": 1}, {"n": None}])
    found = to_frame(pa.table({**plain, "label": labels, "nested": nested}))
    pd.testing.assert_frame_equal(found.drop(columns="nested"), to_frame(pa.table({**plain, "label": labels})))
    assert [str(kind) for kind in found.dtypes] == ["Int64", "int8", "object", "category", "object"]


def test_a_list_of_integers_without_nulls_is_an_array_of_them() -> None:
    frame = to_frame(pa.table({"l": pa.array([[1, 2], []], pa.list_(pa.int16())), "x": pa.array([1, None])}))
    assert [value.dtype for value in frame["l"]] == ["int16", "int16"]


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
