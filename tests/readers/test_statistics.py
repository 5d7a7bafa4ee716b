"""TFDV's statistics proto reads `stats.tfdv`, and finds in it what the records hold."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tensorflow as tf
from shardmill.pipelines.config.load import load_config
from shardmill.pipelines.prepare.from_config import conversion_of
from shardmill.pipelines.runs.convert import run_convert
from shardmill.transforms.dataset.reading.open_dataset import Dataset
from tensorflow_metadata.proto.v0 import statistics_pb2

KINDS = {"int64": statistics_pb2.FeatureNameStatistics.INT, "float": statistics_pb2.FeatureNameStatistics.FLOAT}


def load_statistics(path: Path) -> statistics_pb2.DatasetFeatureStatisticsList:
    """Read as `tfdv.load_statistics` does: a TFRecord of exactly one record."""
    (record,) = list(tf.data.TFRecordDataset(str(path)).as_numpy_iterator())
    return statistics_pb2.DatasetFeatureStatisticsList.FromString(record)


def test_every_sample_has_the_statistics_of_its_stats_json(any_sample: Dataset) -> None:
    found = load_statistics(Path(any_sample.path) / "stats.tfdv")
    stats = any_sample.stats
    assert stats is not None
    assert [dataset.name for dataset in found.datasets] == list(stats.splits)
    for dataset, split in zip(found.datasets, stats.splits.values(), strict=True):
        assert dataset.num_examples == split.records
        assert [list(one.path.step) for one in dataset.features] == [[name] for name in split.features]
        for one, feature in zip(dataset.features, split.features.values(), strict=True):
            kind = "num_stats" if feature.kind != "bytes" else "string_stats" if feature.type == "string" else None
            assert one.WhichOneof("stats") == (kind or "bytes_stats")
            common = getattr(one, one.WhichOneof("stats")).common_stats
            assert (common.num_non_missing, common.num_missing) == (feature.present, feature.missing)
            assert common.tot_num_values == feature.values
            if feature.kind in KINDS:
                assert one.type == KINDS[feature.kind]


@pytest.fixture(name="full")
def _full(tmp_path: Path) -> Path:
    rng = np.random.default_rng(1)
    table = {
        "id": pa.array(np.arange(20_000)),
        "price": pa.array(rng.normal(3, 2, 20_000).astype(np.float32), mask=np.arange(20_000) % 4 == 0),
        "city": pa.array([("Ulm", "Jena", "Köln")[n] for n in rng.choice(3, 20_000, p=(0.7, 0.2, 0.1))]),
    }
    pq.write_table(pa.table(table), tmp_path / "a.parquet")
    config = {"input": {"paths": [str(tmp_path / "a.parquet")]}, "output": {"path": str(tmp_path / "out")}}
    run_convert(conversion_of(load_config(config | {"stats": True})))
    return tmp_path / "out"


def test_histograms_quantiles_and_frequent_values_are_there(full: Path) -> None:
    (dataset,) = load_statistics(full / "stats.tfdv").datasets
    found = {one.path.step[0]: one for one in dataset.features}
    price = found["price"].num_stats
    standard, quantiles = price.histograms
    assert (standard.type, quantiles.type) == (statistics_pb2.Histogram.STANDARD, statistics_pb2.Histogram.QUANTILES)
    for histogram in price.histograms:
        assert math.fsum(bucket.sample_count for bucket in histogram.buckets) == pytest.approx(15_000)
        assert (histogram.buckets[0].low_value, histogram.buckets[-1].high_value) == (price.min, price.max)
    assert price.median == quantiles.buckets[5].low_value
    assert (price.mean, price.std_dev, price.median) == pytest.approx((3, 2, 3), abs=0.3)
    city = found["city"].string_stats
    assert city.unique == 3
    assert [one.value for one in city.top_values] == ["Ulm", "Jena", "Köln"]
    assert sum(one.frequency for one in city.top_values) == 20_000
    assert [one.label for one in city.rank_histogram.buckets] == ["Ulm", "Jena", "Köln"]
    assert (
        json.loads((full / "stats.json").read_text())["splits"]["train"]["features"]["id"]["distinct"]["exact"] is False
    )
