"""Grain reads the shards as an iterable dataset."""

from __future__ import annotations

import grain.python as grain
import tensorflow as tf
from grain.experimental import TFRecordIterDataset
from shardmill.transforms.dataset.reading.open_dataset import Dataset


def test_grain_yields_the_records_of_every_sample(any_sample: Dataset) -> None:
    for split in any_sample.splits:
        found = [record for path in any_sample.shard_paths(split) for record in TFRecordIterDataset(path)]
        assert found == list(any_sample.records(split))


def test_grain_interleaves_shards_and_parses_and_batches(any_sample: Dataset) -> None:
    for split in any_sample.splits:
        shards = [TFRecordIterDataset(path) for path in any_sample.shard_paths(split)]
        mixed = grain.experimental.InterleaveIterDataset(shards, cycle_length=2)
        keys = mixed.map(lambda record: sorted(tf.train.Example.FromString(record).features.feature))
        batches = list(keys.batch(4, batch_fn=list))
        assert sum(map(len, batches)) == any_sample.manifest.splits[split].records
        assert any_sample.schema is not None
        known = {feature.name for feature in any_sample.schema}
        assert all(known.issuperset(names) for batch in batches for names in batch)
