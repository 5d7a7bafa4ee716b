"""What is counted of records: it is what NumPy finds, and it adds up in any order and however the rows are cut."""

from __future__ import annotations

import json
import math
from collections import Counter
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shardmill.transforms.dataset.storage.manifest_files import statistics_files
from shardmill.transforms.format.batches.rows import FeatureColumn
from shardmill.transforms.format.columns.feature_column import feature_column
from shardmill.transforms.format.manifest.strict_json import is_readable
from shardmill.transforms.format.schema.schema import Feature, Schema
from shardmill.transforms.observers.distinct import keys_of_rows
from shardmill.transforms.observers.figures import Distinct, FeatureFigures, Level
from shardmill.transforms.observers.stats_files import STATS_JSON, StatsProblem, parse_stats, stats_json
from shardmill.transforms.observers.tally import Tally

from ..manifests import manifest_with
from ..tiers import examples

SCHEMA = Schema(
    (
        Feature("count", "int64", "int64", nullable=True),
        Feature("kind", "int64", "label"),
        Feature("name", "bytes", "string", nullable=True),
        Feature("price", "float", "float32", nullable=True),
        Feature("scores", "float", "float32", (-1,), nullable=True),
        Feature("tags", "bytes", "string", (-1,)),
    )
)
LABELS = {"kind": ("cat", "dog", "owl")}
TYPES = (pa.int64(), pa.int64(), pa.string(), pa.float32(), pa.list_(pa.float32()), pa.list_(pa.string()))

LEVEL: st.SearchStrategy[Level] = st.sampled_from(["basic", "full"])
FLOAT = st.floats(width=32)
ROW = st.tuples(
    st.none() | st.integers(-(2**63), 2**63 - 1),
    st.integers(0, 2),
    st.none() | st.text(max_size=5),
    st.none() | FLOAT,
    st.none() | st.lists(FLOAT, max_size=4),
    st.lists(st.text(max_size=3), max_size=3),
)
Row = tuple[Any, ...]


def columns_of(rows: list[Row]) -> list[FeatureColumn]:
    arrays = [pa.array([row[i] for row in rows], kind) for i, kind in enumerate(TYPES)]
    return [feature_column(array, feature).column for array, feature in zip(arrays, SCHEMA, strict=True)]


def tally_of(rows: list[Row], split: str = "train", level: Level = "basic", first: int = 0) -> Tally:
    """Count rows, of which the first has a number."""
    tally = Tally(level)
    tally.add(split, SCHEMA, columns_of(rows), len(rows), keys_of_rows("rows", np.arange(first, first + len(rows))))
    return tally


def document_of(tally: Tally, generation: int) -> bytes:
    return stats_json(tally, tally.statistics(SCHEMA, LABELS), generation)


def figures_of(tally: Tally, split: str = "train") -> dict[str, FeatureFigures]:
    return dict(tally.statistics(SCHEMA, LABELS).splits[split].features)


def check_numbers(found: FeatureFigures, values: list[float]) -> None:
    finite = [value for value in values if math.isfinite(value)]
    assert found.values == len(values)
    assert found.numbers is not None
    assert found.numbers.nan == sum(map(math.isnan, values))
    assert found.numbers.infinite == sum(map(math.isinf, values))
    assert found.numbers.zeros == finite.count(0)
    if not finite:
        assert (found.numbers.min, found.numbers.max, found.numbers.mean, found.numbers.deviation) == (None,) * 4
        return
    assert (found.numbers.min, found.numbers.max) == (min(finite), max(finite))
    assert found.numbers.mean == pytest.approx(math.fsum(value / len(finite) for value in finite), rel=1e-12, abs=1e-60)
    assert found.numbers.deviation == pytest.approx(float(np.std(np.array(finite, np.float64))), rel=1e-6, abs=1e-3)


@given(st.lists(ROW, min_size=1, max_size=40))
@settings(max_examples=examples(200))
def test_figures_are_what_numpy_finds(rows: list[Row]) -> None:
    found = figures_of(tally_of(rows))
    for i, feature in enumerate(SCHEMA):
        present = [row[i] for row in rows if row[i] is not None]
        assert (found[feature.name].present, found[feature.name].missing) == (len(present), len(rows) - len(present))
    scores = [row[4] for row in rows if row[4] is not None]
    check_numbers(found["price"], [row[3] for row in rows if row[3] is not None])
    check_numbers(found["scores"], [value for score in scores for value in score])
    lengths = found["scores"].lengths
    assert lengths is not None
    assert (lengths.total, lengths.empty) == (sum(map(len, scores)), sum(not score for score in scores))
    assert (lengths.min, lengths.max) == ((min(map(len, scores)), max(map(len, scores))) if scores else (None, None))
    names = [len(row[2].encode()) for row in rows if row[2] is not None]
    sizes = found["name"].sizes
    assert sizes is not None
    assert sizes.mean == (sum(names) / len(names) if names else None)
    assert found["tags"].values == sum(len(row[5]) for row in rows)
    assert found["kind"].classes == {name: sum(row[1] == i for row in rows) for i, name in enumerate(LABELS["kind"])}


@given(st.lists(ROW, min_size=1, max_size=40), st.lists(st.integers(0, 40), max_size=4), st.randoms(), LEVEL)
@settings(max_examples=examples(200))
def test_any_cut_merged_in_any_order_gives_the_same_bytes(
    rows: list[Row], cuts: list[int], random: Any, level: Level
) -> None:
    edges = sorted({0, len(rows), *(min(cut, len(rows)) for cut in cuts)})
    parts = [tally_of(rows[first:last], "train", level, first).to_json() for first, last in pairwise(edges)]
    random.shuffle(parts)
    merged = Tally(level)
    for part in parts:
        merged.merge(Tally.from_json(json.loads(json.dumps(part)), level))
    whole = tally_of(rows, "train", level)
    assert document_of(merged, 1) == document_of(whole, 1)


@given(st.lists(ROW, min_size=1, max_size=40))
@settings(max_examples=examples(100))
def test_histograms_quantiles_and_frequent_values_of_few_rows_are_those_of_all(rows: list[Row]) -> None:
    found = figures_of(tally_of(rows, level="full"))
    assert found["kind"].distinct == Distinct(len({row[1] for row in rows}), exact=True)
    for name, column in (("count", 0), ("price", 3), ("scores", 4), ("name", 2), ("tags", 5)):
        values = [row[column] for row in rows if row[column] is not None]
        if name in ("scores", "tags"):
            values = [value for one in values for value in one]
        if found[name].kind == "float":
            values = [value for value in values if math.isfinite(value)]
        counts = Counter(values)
        assert found[name].distinct == Distinct(len(counts), exact=True)
        assert {one.value: one.count for one in found[name].top}.items() <= counts.items()
        assert len(found[name].top) == min(len(counts), 20)
        if name in ("count", "price") and values:
            assert sum(one.count for one in found[name].histogram) == pytest.approx(len(values))
            ordered = sorted(values)
            expected = [ordered[max(-(-len(values) * part // 10), 1) - 1] for part in range(1, 10)]
            assert found[name].quantiles == tuple(map(float, (min(values), *expected, max(values))))


def test_splits_are_counted_apart() -> None:
    one, two = tally_of([(1, 0, "a", 1.0, [], [])]), tally_of([(3, 1, None, math.nan, None, ["x"])] * 2, "val")
    one.merge(two)
    assert one.records == {"train": 1, "val": 2}
    found = figures_of(one, "val")
    assert found["price"].numbers is not None
    assert (found["price"].numbers.nan, found["price"].numbers.mean, found["name"].missing) == (2, None, 2)


def test_a_class_without_a_name_is_its_number() -> None:
    tally = tally_of([(1, 7, "a", 1.0, [], []), (1, 1, "a", 1.0, [], [])])
    assert figures_of(tally)["kind"].classes == {"cat": 0, "dog": 1, "owl": 0, "7": 1}


def test_minus_zero_is_a_zero_whatever_comes_first() -> None:
    first, second = (tally_of([(1, 0, "a", zero, [], [])]) for zero in (0.0, -0.0))
    assert document_of(first, 1) == document_of(second, 1)


@given(st.lists(ROW, min_size=1, max_size=10), LEVEL)
@settings(max_examples=examples(100))
def test_what_is_written_is_read_back(rows: list[Row], level: Level) -> None:
    tally = tally_of(rows, level=level)
    found = parse_stats(document_of(tally, 3), 3, SCHEMA, LABELS)
    assert found is not None
    assert found[0].to_json() == tally.to_json()
    assert found[1] == tally.statistics(SCHEMA, LABELS)
    assert parse_stats(document_of(tally, 3), 4, SCHEMA, LABELS) is None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"version": 1', '"version": 9'),
        ('"records": 1', '"records": 2'),
        ('"mean": 1.0', '"mean": "1.0"'),
        ('"state": {', '"more": {'),
        ('["int64", 1,', '["int64", 1'),
        ('["int64", 1, 1,', '["int64", 1, null,'),
        ('["int64", 1, 1,', '["int65", 1, 1,'),
        ('"choices": [[0, 1]]', '"choices": [[[], 1]]'),
        ('"choices": [[0, 1]]', '"choices": [[0, 1], ["", 1]]'),
    ],
)
def test_a_damaged_document_is_told_from_a_whole_one(old: str, new: str) -> None:
    data = document_of(tally_of([(1, 0, "a", 1.0, [], [])]), 1).decode()
    assert old in data
    with pytest.raises(StatsProblem):
        parse_stats(data.replace(old, new, 1).encode(), 1, SCHEMA, LABELS)


def wide_tally(first: int, rows: int) -> Tally:
    return tally_of(
        [(n, n % 3, str(n), n / 2, None, []) for n in range(first, first + rows)], level="full", first=first
    )


def files_of(tally: Tally, memory: int) -> bytes:
    manifest = manifest_with(schema=SCHEMA, labels=LABELS)
    return statistics_files(tally, manifest, memory)[STATS_JSON]


def test_values_that_are_too_many_for_a_reader_of_the_file_are_estimated() -> None:
    exact, few = files_of(wide_tally(0, 200), 1 << 30), 3 * 200 * 256
    assert not is_readable(exact, few)
    written = files_of(wide_tally(0, 200), few)
    assert is_readable(written, few)
    found = parse_stats(written, 1, SCHEMA, LABELS)
    assert found is not None
    features = found[1].splits["train"].features
    assert [features[name].distinct for name in ("count", "name", "price")] == [Distinct(200, exact=False)] * 3
    assert features["kind"].distinct == Distinct(3, exact=True)
    assert files_of(found[0], few) == written
    assert statistics_files(wide_tally(0, 200), manifest_with(schema=SCHEMA, labels=LABELS), 256) == {}


@pytest.mark.parametrize("count", [300, 12_000])
def test_values_that_are_estimated_early_add_up_to_those_that_are_estimated_late(count: int) -> None:
    parts = [wide_tally(0, 250), wide_tally(250, count - 250)]
    parts[0].estimate()
    parts[0].merge(parts[1])
    whole = wide_tally(0, count)
    for tally in (parts[0], whole):
        tally.estimate()
    assert document_of(parts[0], 1) == document_of(whole, 1)
