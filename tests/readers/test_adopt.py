"""Files that TensorFlow and TFDS wrote are adopted, and TFDS opens what another writer made."""

from __future__ import annotations

from pathlib import Path

import pytest
import tensorflow as tf
import tensorflow_datasets as tfds
from shardmill.pipelines import open_dataset
from tensorflow.train import BytesList, Example, Feature, Features, FloatList, Int64List

from ..command_line import Shardmill


def write(path: Path, numbers: range, compression: str = "") -> None:
    with tf.io.TFRecordWriter(str(path), compression) as writer:
        for number in numbers:
            features = {
                "number": Feature(int64_list=Int64List(value=[number])),
                "half": Feature(float_list=FloatList(value=[number / 2])),
                "text": Feature(bytes_list=BytesList(value=[b"row %d" % number])),
                "tags": Feature(int64_list=Int64List(value=range(number % 3))),
            }
            writer.write(Example(features=Features(feature=features)).SerializeToString())


@pytest.mark.parametrize("pattern", ["pets-{}.tfrecord-{:05d}-of-{:05d}", "{}-{:05d}-of-{:05d}.tfrecord"])
def test_tfds_opens_adopted_files_of_these_names(tmp_path: Path, shardmill: Shardmill, pattern: str) -> None:
    (tmp_path / "pets").mkdir()
    for index in range(2):
        write(tmp_path / "pets" / pattern.format("train", index, 2), range(index * 10, index * 10 + 10))
    write(tmp_path / "pets" / pattern.format("test", 0, 1), range(5))
    screen = shardmill("adopt", "pets")
    assert screen.code == 0, screen.err
    builder = tfds.builder_from_directory(tmp_path / "pets")
    assert {name: split.num_examples for name, split in builder.info.splits.items()} == {"train": 20, "test": 5}
    rows = list(tfds.as_numpy(builder.as_dataset(split="train")))
    assert sorted(int(row["number"]) for row in rows) == list(range(20))
    ours = {row["number"]: row for row in open_dataset(tmp_path / "pets")["train"]}
    for row in rows:
        other = ours[int(row["number"])]
        assert (float(row["half"]), bytes(row["text"]), row["tags"].tolist()) == (
            other["half"],
            other["text"],
            other["tags"],
        )


def test_gzip_files_of_tensorflow_are_adopted_and_verified(tmp_path: Path, shardmill: Shardmill) -> None:
    (tmp_path / "packed").mkdir()
    write(tmp_path / "packed/val-0-of-1.tfrecord.gz", range(100), "GZIP")
    assert shardmill("adopt", "packed").code == 0
    assert shardmill("verify", "packed").code == 0
    assert [row["number"] for row in open_dataset(tmp_path / "packed")["val"]] == list(range(100))
