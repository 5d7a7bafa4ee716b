"""WebDataset's tar archives, converted and read back by TFDS, by tf.data and by `open_dataset`."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_datasets as tfds
from PIL import Image
from shardmill.pipelines import convert, open_dataset

CONFIGS = Path(__file__).parents[2] / "configs"


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> str:
    out = str(tmp_path_factory.mktemp("archives") / "out")
    convert(CONFIGS / "webdataset.yaml", output=out)
    return out


@pytest.fixture(scope="module")
def members() -> list[dict[str, bytes]]:
    """Return the members of each sample, as Python's own tarfile reads them."""
    samples: dict[str, dict[str, bytes]] = {}
    for path in sorted((CONFIGS / "samples/shards").glob("*.tar")):
        with tarfile.open(path) as tar:
            for info in tar:
                key, suffix = info.name.split(".", 1)
                held = tar.extractfile(info)
                assert held is not None
                samples.setdefault(key, {})[suffix] = held.read()
    return list(samples.values())


def test_our_reader_gives_the_members_of_each_sample(dataset: str, members: list[dict[str, bytes]]) -> None:
    rows: list[dict[str, Any]] = open_dataset(dataset).to_table("train").to_pylist()
    assert [row["image/encoded"] for row in rows] == [one["jpg"] for one in members]
    assert [row["caption"].encode() for row in rows] == [one["txt"] for one in members]
    assert [row["image/class/label"] for row in rows] == [int(one["cls"]) for one in members]
    facts = [json.loads(one["json"]) for one in members]
    assert [(row["photographer"], row["likes"], row["size"]) for row in rows] == [
        (one["photographer"], one["likes"], one["size"]) for one in facts
    ]
    assert open_dataset(dataset).labels["image/class/label"] == ("cat", "dog", "owl")


def test_tensorflow_decodes_the_pictures(dataset: str, members: list[dict[str, bytes]]) -> None:
    spec = {
        "image/encoded": tf.io.FixedLenFeature((), tf.string),
        "image/height": tf.io.FixedLenFeature((), tf.int64),
        "image/class/label": tf.io.FixedLenFeature((), tf.int64),
        "__key__": tf.io.FixedLenFeature((), tf.string),
    }
    records = tf.data.TFRecordDataset(sorted(str(path) for path in Path(dataset).glob("*.tfrecord")))
    found = [tf.io.parse_single_example(record, spec) for record in records]
    assert len(found) == len(members) == 12
    for number, (one, own) in enumerate(zip(found, members, strict=True)):
        pixels = tf.io.decode_jpeg(one["image/encoded"]).numpy()
        with Image.open(io.BytesIO(own["jpg"])) as picture:
            assert pixels.shape == (picture.height, picture.width, 3)
        assert one["image/height"].numpy() == pixels.shape[0]
        assert one["__key__"].numpy() == f"{number:04d}".encode()


def test_tfds_reads_classes_text_and_pictures(dataset: str, members: list[dict[str, bytes]]) -> None:
    builder = tfds.builder_from_directory(dataset)
    assert builder.info.features["image"]["class"]["label"].names == ["cat", "dog", "owl"]
    assert builder.info.splits["train"].num_examples == 12
    found = list(tfds.as_numpy(builder.as_dataset(split="train")))
    assert sorted(int(one["image"]["class"]["label"]) for one in found) == sorted(int(one["cls"]) for one in members)
    assert {one["caption"] for one in found} == {one["txt"] for one in members}
    assert all(one["image"]["encoded"].dtype == np.uint8 for one in found)
