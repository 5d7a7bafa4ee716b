"""Rows as dicts, and tables one by one: what decides the schema, and what does not fit it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from shardmill.transforms.errors import DataError, SchemaError, UsageError
from shardmill.transforms.sources.memory.tables import memory_table, tables_of_rows


def table(data: object) -> pa.Table:
    found = memory_table(data)
    return pa.Table.from_batches(found.batches, found.schema)


def test_all_rows_of_a_list_decide_the_columns_and_their_types() -> None:
    rows = [{"a": 1}, {"b": "x", "a": 2.5}, {"a": None, "c": np.array([1, 2])}]
    found = table(rows)
    assert found.to_pylist() == [
        {"a": 1.0, "b": None, "c": None},
        {"a": 2.5, "b": "x", "c": None},
        {"a": None, "b": None, "c": [1, 2]},
    ]
    assert found.column_names == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            [{"a": 1}, {"a": 2}, {"a": "x"}],
            r'column "a" has values of several types: int \(row 1: 1\), str \(row 3: .x.\); give the column one type$',
        ),
        ([{"a": 2**53 + 1}, {"a": 0.5}], r'column "a", row 1: 9007199254740993: no float64 holds this integer exactly'),
        ([{"a": 1}, 2], "row 2 is a int, and the first one is a dict"),
        ([{1: 1}], "the name 1 is a int; names are strings"),
        ([], "data is empty"),
        ((row for row in ()), "data is empty"),
    ],
)
def test_rows_that_are_no_table_are_refused(rows: object, message: str) -> None:
    with pytest.raises((SchemaError, DataError, UsageError), match=message):
        table(rows)


def test_the_first_rows_of_an_iterator_decide_and_later_ones_must_fit() -> None:
    rows = iter([{"a": 1, "b": 0.5}, {"a": 2, "b": 1.5}, {"b": 3}, {"a": 2.0, "b": None}])
    found = pa.concat_tables(tables_of_rows(rows, chunk_rows=2))
    assert found.to_pylist() == [
        {"a": 1, "b": 0.5}, {"a": 2, "b": 1.5}, {"a": None, "b": 3.0}, {"a": 2, "b": None},
    ]  # fmt: skip
    for row, message in (
        ({"a": 1.5, "b": 1}, 'rows 3 to 3: column "a": Float value 1.500000 was truncated'),
        ({"a": "1", "b": 1}, 'column "a": is string, and int64 in the first rows'),
        ({"a": 1, "b": 2**53 + 1}, 'column "b": Integer value 9007199254740993 not in range'),
        ({"c": 1}, 'column "c" is new: the first rows decide the columns'),
    ):
        with pytest.raises(SchemaError, match=message):
            list(tables_of_rows(iter([{"a": 1, "b": 0.5}] * 2 + [row]), chunk_rows=2))


def test_an_iterator_is_read_in_chunks_of_bounded_size() -> None:
    read = 0

    def rows() -> Iterator[dict[str, Any]]:
        nonlocal read
        for _ in range(10):
            read += 1
            yield {"image": b"\0" * (6 << 20)}

    batches = iter(memory_table(rows()).batches)
    next(batches)
    assert read == 2


def test_tables_and_frames_one_by_one_are_one_table_under_the_schema_of_the_first() -> None:
    frames = [pd.DataFrame({"a": [1, 2], "b": ["x", None]}), pd.DataFrame({"b": ["y"], "a": [3.0]})]
    expected = [{"a": 1, "b": "x"}, {"a": 2, "b": None}, {"a": 3, "b": "y"}]
    batches = [pa.RecordBatch.from_pylist(expected[:2]), pa.RecordBatch.from_pylist(expected[2:])]
    for parts in (iter(frames), frames, iter(batches), [pa.table(batch) for batch in batches]):
        assert table(parts).to_pylist() == expected
    with pytest.raises(SchemaError, match='part 2: column "c" is new'):
        table(iter([frames[0], pd.DataFrame({"c": [1]})]))
    with pytest.raises(DataError, match="data is a dict"):
        table(iter([frames[0], {"a": 1}]))


EXACT = pd.Timestamp("2020-01-01 00:00:00.000000001")


@pytest.mark.parametrize(
    ("data", "wanted"),
    [
        ([{"t": EXACT}, {"t": None}], [EXACT, None]),
        ([{"t": {"a": [EXACT]}}], [{"a": [EXACT]}]),
        ([{"t": pd.Timedelta(1)}], [pd.Timedelta(1)]),
        (pd.DataFrame({"t": pd.Series([EXACT, pd.NaT, None], dtype=object)}), [EXACT, None, None]),
        ({"t": np.array([EXACT, None], object)}, [EXACT, None]),
    ],
)
def test_times_of_pandas_in_ns_keep_their_nanoseconds(data: object, wanted: list[Any]) -> None:
    assert table(data)["t"].to_pylist() == wanted


def test_times_of_python_are_in_us() -> None:
    assert table([{"t": EXACT.to_pydatetime(warn=False)}])["t"].type == pa.timestamp("us")


def test_a_later_table_may_count_time_in_another_unit_where_that_is_exact() -> None:
    us, ns = pa.table({"t": pa.array([1], pa.timestamp("us"))}), pa.table({"t": pa.array([2000], pa.timestamp("ns"))})
    assert table(iter([us, ns]))["t"].cast(pa.int64()).to_pylist() == [1, 2]
    assert table(iter([ns, us]))["t"].cast(pa.int64()).to_pylist() == [2000, 1000]
    fine = pa.table({"t": pa.array([2001], pa.timestamp("ns"))})
    with pytest.raises(SchemaError, match=r'part 2: column "t": Casting from timestamp\[ns\] .* would lose data: 2001'):
        table(iter([us, fine]))
