"""A sample has the rows with the least keys, whatever the batches are; figures of it are near those of all rows."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from shardmill.transforms.format.columns.feature_column import feature_column
from shardmill.transforms.format.schema.schema import Feature
from shardmill.transforms.statistics.hashes import keys_of_rows, unpacked
from shardmill.transforms.statistics.sample import ROWS, Sample, estimated_top, histogram_of, quantiles_of

FEATURES = (
    Feature("n", "int64", "int64", nullable=True),
    Feature("name", "bytes", "string", nullable=True),
    Feature("x", "float", "float32"),
    Feature("xs", "float", "float32", (-1,)),
)
KINDS = {feature.name: feature.kind for feature in FEATURES}
TYPES = {"n": pa.int64(), "name": pa.string(), "x": pa.float32(), "xs": pa.list_(pa.float32())}


def rows_of(count: int, seed: int = 0) -> dict[str, list[Any]]:
    rng = np.random.default_rng(seed)
    return {
        "n": [None if n % 5 == 0 else n for n in range(count)],
        "name": [None if n % 3 == 0 else f"name {n % 4} {'x' * (n % 9)}" for n in range(count)],
        "x": rng.normal(0, 1, count).tolist(),
        "xs": [[float(n)] * (n % 4) for n in range(count)],
    }


def sample_of(rows: dict[str, list[Any]], first: int, last: int) -> Sample:
    sample = Sample()
    if last > first:
        arrays = {name: pa.array(values[first:last], TYPES[name]) for name, values in rows.items()}
        columns = [feature_column(arrays[feature.name], feature).column for feature in FEATURES]
        sample.add(keys_of_rows("a", np.arange(first, last)), columns)
    return sample


@pytest.mark.parametrize("count", [1, 700, ROWS, ROWS + 1, 9000])
def test_the_sample_is_the_same_whatever_the_batches_and_their_order_are(count: int) -> None:
    rows = rows_of(count)
    whole = sample_of(rows, 0, count).to_json()
    assert len(unpacked(whole["keys"], np.uint64)) == min(count, ROWS)
    for size in (1000, 333, 4000):
        starts = list(range(0, count, size))
        parts = [sample_of(rows, start, min(start + size, count)) for start in starts]
        parts[::2] = [Sample.from_json(json.loads(json.dumps(part.to_json())), KINDS) for part in parts[::2]]
        np.random.default_rng(size).shuffle(parts)  # type: ignore[arg-type]
        total = Sample()
        for part in parts:
            total.merge(part)
        assert total.to_json() == whole


def test_values_of_a_sampled_row_are_those_of_the_row() -> None:
    rows = rows_of(5000)
    keys = keys_of_rows("a", np.arange(5000)).tolist()
    sample = sample_of(rows, 0, 5000)
    chosen = np.argsort(np.array(keys, np.uint64))[:ROWS].tolist()
    assert unpacked(sample.to_json()["keys"], np.uint64).tolist() == [keys[row] for row in chosen]
    assert sample.values_of("n")[0].tolist() == [rows["n"][row] for row in chosen if row % 5]
    assert sample.values_of("name")[0].tolist() == [rows["name"][row].encode() for row in chosen if row % 3]
    values, weights = sample.values_of("xs")
    assert weights.tolist() == [row % 4 for row in chosen if row % 4]
    assert values.tolist() == [float(row) for row in chosen if row % 4]


def test_figures_of_all_rows_are_exact_where_these_are_few() -> None:
    values, weights = np.arange(1, 101), np.ones(100, np.int64)
    assert quantiles_of(values, weights, 1, 100) == (1, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100)
    found = histogram_of(values, weights, 1, 100, 100)
    counts, edges = np.histogram(values, 10, (1, 100))
    assert [one.count for one in found] == counts.tolist()
    assert [one.low for one in found] + [found[-1].high] == edges.tolist()


def test_a_long_list_counts_as_often_as_it_has_values() -> None:
    values, weights = np.array([1.0, 2.0, 3.0]), np.array([1, 1, 98])
    assert quantiles_of(values, weights, 1, 3)[1:10] == (3.0,) * 9
    assert [one.count for one in histogram_of(values, weights, 1, 3, 100)] == [1, 0, 0, 0, 0, 1, 0, 0, 0, 98]


def test_one_value_has_one_bucket() -> None:
    found = histogram_of(np.full(9, 4), np.ones(9, np.int64), 4, 4, 9)
    assert [(one.low, one.high, one.count) for one in found] == [(4.0, 4.0, 9.0)]
    wide = histogram_of(np.array([-3e38, 3e38], np.float32), np.ones(2, np.int64), -3e38, 3e38, 2)
    assert sum(one.count for one in wide) == 2


def test_without_values_there_is_nothing() -> None:
    nothing, none = np.zeros(0), np.zeros(0, np.int64)
    assert histogram_of(nothing, none, 0, 1, 0) == ()
    assert quantiles_of(nothing, none, 0, 1) == ()
    assert estimated_top(nothing, none, 0) == ()


def test_frequent_values_are_estimated_by_their_share_of_the_sample() -> None:
    values = np.array([b"a"] * 50 + [b"b"] * 25 + [b"%d" % n for n in range(25)], object)
    found = estimated_top(values, np.ones(100, np.int64), 1_000_000)
    assert [(one.value, one.count) for one in found] == [("a", 500_000), ("b", 250_000)]


def test_quantiles_of_a_sample_are_near_those_of_all_rows() -> None:
    rows = rows_of(60_000)
    values, weights = sample_of(rows, 0, 60_000).values_of("x")
    column = np.sort(np.array(rows["x"], np.float32))
    found = quantiles_of(values, weights, column[0], column[-1])
    shares = np.searchsorted(column, found[1:10]) / len(column)
    assert np.abs(shares - np.arange(1, 10) / 10).max() < 0.06
