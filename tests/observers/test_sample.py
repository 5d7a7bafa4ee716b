"""A sample has the rows with the least keys, whatever the batches are; figures of it are near those of all rows."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from shardmill.transforms.format.columns.feature_column import feature_column
from shardmill.transforms.format.schema.schema import Feature
from shardmill.transforms.observers.distinct import keys_of_rows, unpacked
from shardmill.transforms.observers.sample import ROWS, Sample, estimated_top, histogram_of, quantiles_of

FEATURES = (
    Feature("n", "int64", "int64", nullable=True),
    Feature("name", "bytes", "string", nullable=True),
    Feature("x", "float", "float32"),
    Feature("xs", "float", "float32", (-1,)),
    Feature("words", "bytes", "string", (-1,)),
)
KINDS = {feature.name: feature.kind for feature in FEATURES}
TYPES = {
    "n": pa.int64(),
    "name": pa.string(),
    "x": pa.float32(),
    "xs": pa.list_(pa.float32()),
    "words": pa.list_(pa.string()),
}


def rows_of(count: int, seed: int = 0) -> dict[str, list[Any]]:
    rng = np.random.default_rng(seed)
    return {
        "n": [None if n % 5 == 0 else n for n in range(count)],
        "name": [None if n % 3 == 0 else f"name {n % 4} {'x' * (n % 9)}" for n in range(count)],
        "x": rng.normal(0, 1, count).tolist(),
        "xs": [[n + at / 1024 for at in range(n % 4 if n % 50 else 30)] for n in range(count)],
        "words": [[f"{n} {at}" for at in range(n % 3)] for n in range(count)],
    }


def sample_of(rows: dict[str, list[Any]], first: int, last: int) -> Sample:
    sample = Sample()
    if last > first:
        arrays = {name: pa.array(values[first:last], TYPES[name]) for name, values in rows.items()}
        columns = [feature_column(arrays[feature.name], feature).column for feature in FEATURES]
        sample.add(keys_of_rows("a", np.arange(first, last)), columns)
    return sample


@pytest.mark.parametrize("count", [1, 3, 40, 700, ROWS, ROWS + 1, 9000])
def test_the_sample_is_the_same_whatever_the_batches_and_their_order_are(count: int) -> None:
    rows = rows_of(count)
    whole = sample_of(rows, 0, count).to_json()
    assert len(unpacked(whole["keys"], np.uint64)) == min(count, ROWS)
    for size in (1000, 333, 4000) if count > 40 else (1, 7):
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
    values, weights = (array.tolist() for array in sample.values_of("xs"))
    at = 0
    for row in chosen:
        taken = min(2, len(rows["xs"][row]))
        assert set(values[at : at + taken]) <= set(rows["xs"][row])
        assert len(set(values[at : at + taken])) == taken
        assert sum(weights[at : at + taken]) == 2 * len(rows["xs"][row])
        at += taken
    assert at == len(values)


def sample_of_lists(lists: list[list[float]]) -> Sample:
    sample = Sample()
    feature = Feature("xs", "float", "float32", (-1,))
    column = feature_column(pa.array(lists, pa.list_(pa.float32())), feature).column
    sample.add(keys_of_rows("a", np.arange(len(lists))), [column])
    return sample


def test_quantiles_of_a_few_long_lists_are_near_those_of_all_values() -> None:
    lists = np.random.default_rng(1).normal(0, 1, (5, 1000))
    values, weights = sample_of_lists(lists.tolist()).values_of("xs")
    assert len(values) >= ROWS
    found = quantiles_of(values, weights, lists.min(), lists.max())
    shares = np.searchsorted(np.sort(lists.ravel()), found[1:10]) / lists.size
    assert np.abs(shares - np.arange(1, 10) / 10).max() < 0.04


def test_figures_of_lists_are_exact_where_all_of_their_values_are_taken() -> None:
    lists = [[float(10 * row + at) for at in range(length)] for row, length in enumerate([3, 0, 256, 1, 7])]
    values, weights = sample_of_lists(lists).values_of("xs")
    assert sorted(values.tolist()) == sorted(value for one in lists for value in one)
    assert len(set(weights.tolist())) == 1


def test_a_list_with_no_finite_number_in_a_place_counts_for_the_others() -> None:
    lists = [[float("nan")] * 500 + [1.0] * 500, [2.0] * 1000]
    values, weights = sample_of_lists(lists).values_of("xs")
    assert weights[values == 2].sum() == 2 * weights[values == 1].sum()


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
