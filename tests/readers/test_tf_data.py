"""tf.data reads the shards: by hand, through `make_batched_features_dataset`, interleaved, and gzip."""

from __future__ import annotations

import csv
import math
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from shardmill.transforms.dataset.reading.open_dataset import Dataset
from shardmill.transforms.format.schema.schema import Feature

from ..label_numbers import in_numbers

DTYPES = {"int64": tf.int64, "float": tf.float32, "bytes": tf.string}


def feature_spec(dataset: Dataset) -> dict[str, Any]:
    """Return the manifest's schema as features of tf.io."""
    assert dataset.schema is not None
    return {feature.name: one_spec(feature) for feature in dataset.schema}


def one_spec(feature: Feature) -> Any:
    dtype = DTYPES[feature.kind]
    if feature.nullable or -1 in feature.shape:
        return tf.io.VarLenFeature(dtype)
    return tf.io.FixedLenFeature(feature.shape, dtype)


def numbers(dataset: Dataset, split: str) -> list[dict[str, list[Any] | None]]:
    """Return each row as lists of what the Example holds, None for what is absent, by our own decoder."""
    assert dataset.schema is not None
    kinds = {feature.name: feature for feature in dataset.schema}
    return [
        {name: plain(batch.column(name)[row], kinds[name]) for name in kinds}
        for batch in map(in_numbers, dataset.batches(split))
        for row in range(batch.num_rows)
    ]


def plain(scalar: Any, feature: Feature) -> list[Any] | None:
    if not scalar.is_valid:
        return None
    return [held(value, feature) for value in (scalar.values if feature.shape else [scalar])]


def held(value: Any, feature: Feature) -> Any:
    """Return what the Example holds for one value."""
    if feature.kind != "bytes":
        number = value.value if hasattr(value, "value") else value.as_py()
        return int(number) if feature.kind == "int64" else number
    return struct.pack("<d", value.as_py()) if feature.type == "float64" else value.as_buffer().to_pybytes()


def tensor_values(tensor: Any) -> list[Any]:
    values = tensor.values if isinstance(tensor, tf.sparse.SparseTensor) else tf.reshape(tensor, [-1])
    return values.numpy().tolist()


def assert_same(parsed: dict[str, Any], expected: dict[str, list[Any] | None]) -> None:
    assert parsed.keys() == expected.keys()
    for name, values in expected.items():
        assert tensor_values(parsed[name]) == (values or []), name


def test_parse_example_gives_every_value_of_every_sample(any_sample: Dataset) -> None:
    spec = feature_spec(any_sample)
    for split in any_sample.splits:
        records = list(tf.data.TFRecordDataset(any_sample.shard_paths(split)))
        expected = numbers(any_sample, split)
        assert len(records) == len(expected) == any_sample.manifest.splits[split].records
        for record, row in zip(records, expected, strict=True):
            assert_same(tf.io.parse_single_example(record, spec), row)


def test_the_csv_sample_reads_as_pythons_own_csv_module_reads_its_files(sample: Callable[..., Dataset]) -> None:
    dataset = sample("csv")
    spec = feature_spec(dataset)
    rows = []
    for path in sorted((Path(__file__).parents[2] / "configs" / "samples" / "people").glob("*.csv")):
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows += list(csv.DictReader(file))
    records = list(tf.data.TFRecordDataset(dataset.shard_paths("train")))
    assert len(records) == len(rows)
    assert dataset.schema is not None
    strings = [feature.name for feature in dataset.schema if feature.type == "string"]
    integers = [feature.name for feature in dataset.schema if feature.type == "int64"]
    assert strings
    assert integers
    for record, row in zip(records, rows, strict=True):
        parsed = tf.io.parse_single_example(record, spec)
        for name in strings:
            found = b"".join(tensor_values(parsed[name])).decode()
            assert found == row[name]  # a null cell has no value, an empty quoted one has an empty value
        for name in integers:
            assert tensor_values(parsed[name]) == ([int(row[name])] if row[name] else [])


def test_gzip_shards_read_as_one_stream(sample: Callable[..., Dataset]) -> None:
    plain_rows = numbers(sample("csv"), "train")
    gzipped = sample("csv", compression="gzip")
    paths = gzipped.shard_paths("train")
    assert all(path.endswith(".tfrecord.gz") for path in paths)
    records = list(tf.data.TFRecordDataset(paths, compression_type="GZIP"))
    assert len(records) == len(plain_rows)
    for record, row in zip(records, plain_rows, strict=True):
        assert_same(tf.io.parse_single_example(record, feature_spec(gzipped)), row)


def batched(dataset: Dataset, reader: Any, label_key: str | None) -> Any:
    return tf.data.experimental.make_batched_features_dataset(
        f"{dataset.path}/train-*.tfrecord*",
        batch_size=4,
        features=feature_spec(dataset),
        reader=reader,
        label_key=label_key,
        num_epochs=1,
        shuffle=False,
        drop_final_batch=False,
    )


def gzip_reader(files: Any) -> Any:
    return tf.data.TFRecordDataset(files, compression_type="GZIP")


@pytest.mark.parametrize(("compression", "reader"), [("none", tf.data.TFRecordDataset), ("gzip", gzip_reader)])
def test_make_batched_features_dataset_gives_batches_and_labels(
    sample: Callable[..., Dataset], compression: str, reader: Any
) -> None:
    dataset = sample("images", compression=compression)
    rows = numbers(dataset, "train")
    labels = {row["image/filename"][0]: row["image/class/label"] for row in rows if row["image/filename"]}
    seen = {}
    for features, label in batched(dataset, reader, "image/class/label"):
        assert "image/class/label" not in features
        seen |= dict(zip(features["image/filename"].numpy().tolist(), label.numpy().tolist(), strict=True))
    assert {name: [label] for name, label in seen.items()} == labels


def test_make_batched_features_dataset_gives_lists_and_nulls_as_sparse_tensors(sample: Callable[..., Dataset]) -> None:
    dataset = sample("parquet")
    assert dataset.schema is not None
    open_ended = [feature.name for feature in dataset.schema if -1 in feature.shape or feature.nullable]
    assert open_ended, "the sample is to have lists and nulls"
    expected: dict[str, list[Any]] = {name: [] for name in open_ended}
    for row in numbers(dataset, "train"):
        for name in open_ended:
            expected[name] += row[name] or []
    found: dict[str, list[Any]] = {name: [] for name in open_ended}
    for features in batched(dataset, tf.data.TFRecordDataset, None):
        for name in open_ended:
            assert isinstance(features[name], tf.sparse.SparseTensor)
            found[name] += features[name].values.numpy().tolist()
    # Shards are interleaved: the order of the records differs, the values do not.
    assert {name: sorted(values) for name, values in found.items()} == {n: sorted(v) for n, v in expected.items()}


def test_interleave_over_the_glob_sees_each_record_once(sample: Callable[..., Dataset]) -> None:
    dataset = sample("quickstart")
    files = tf.data.Dataset.list_files(f"{dataset.path}/train-*.tfrecord", shuffle=False)
    records = files.interleave(tf.data.TFRecordDataset, cycle_length=4, num_parallel_calls=tf.data.AUTOTUNE)
    assert len(dataset.shard_paths("train")) >= 3
    assert sorted(record.numpy() for record in records) == sorted(dataset.records("train"))


def test_a_fixed_shape_parses_as_that_shape(any_sample: Dataset) -> None:
    assert any_sample.schema is not None
    spec = feature_spec(any_sample)
    for split in any_sample.splits:
        for record in tf.data.TFRecordDataset(any_sample.shard_paths(split)).take(3):
            parsed = tf.io.parse_single_example(record, spec)
            for feature in any_sample.schema:
                if not feature.nullable and -1 not in feature.shape:
                    assert tuple(parsed[feature.name].shape) == feature.shape
                    assert int(np.prod(parsed[feature.name].shape)) == math.prod(feature.shape)
