"""Records of annotated pictures are read by the feature spec of TensorFlow's detection decoder, and by TFDS."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_datasets as tfds
from PIL import Image
from shardmill.pipelines import append, convert, open_dataset

CONFIGS = Path(__file__).parents[2] / "configs"

DECODER: dict[str, Any] = {
    "image/encoded": tf.io.FixedLenFeature((), tf.string, default_value=""),
    "image/format": tf.io.FixedLenFeature((), tf.string, default_value="jpeg"),
    "image/filename": tf.io.FixedLenFeature((), tf.string, default_value=""),
    "image/key/sha256": tf.io.FixedLenFeature((), tf.string, default_value=""),
    "image/source_id": tf.io.FixedLenFeature((), tf.string, default_value=""),
    "image/height": tf.io.FixedLenFeature((), tf.int64, default_value=1),
    "image/width": tf.io.FixedLenFeature((), tf.int64, default_value=1),
    "image/object/bbox/xmin": tf.io.VarLenFeature(tf.float32),
    "image/object/bbox/xmax": tf.io.VarLenFeature(tf.float32),
    "image/object/bbox/ymin": tf.io.VarLenFeature(tf.float32),
    "image/object/bbox/ymax": tf.io.VarLenFeature(tf.float32),
    "image/object/class/label": tf.io.VarLenFeature(tf.int64),
    "image/object/class/text": tf.io.VarLenFeature(tf.string),
    "image/object/area": tf.io.VarLenFeature(tf.float32),
    "image/object/is_crowd": tf.io.VarLenFeature(tf.int64),
    "image/object/difficult": tf.io.VarLenFeature(tf.int64),
    "image/object/group_of": tf.io.VarLenFeature(tf.int64),
    "image/object/weight": tf.io.VarLenFeature(tf.float32),
    "image/object/mask": tf.io.VarLenFeature(tf.string),
    "image/caption": tf.io.VarLenFeature(tf.string),
}
"""`keys_to_features` of tensorflow/models, `research/object_detection/data_decoders/tf_example_decoder.py`."""


@pytest.fixture(scope="module")
def street(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("street")
    convert(str(CONFIGS / "boxes.yaml"), output=str(path / "out"), input__annotations__masks=True)
    return path / "out"


def rows_of(path: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = open_dataset(path).to_arrow("train").to_pylist()
    return rows


def test_the_decoders_own_spec_reads_every_record(street: Path) -> None:
    files = sorted(str(path) for path in street.rglob("*.tfrecord*") if path.is_file())
    read = [tf.io.parse_single_example(raw, DECODER) for raw in tf.data.TFRecordDataset(files)]
    for row, found in zip(rows_of(street), read, strict=True):
        assert found["image/source_id"].numpy().decode() == row["image/source_id"]
        for key in ("bbox/xmin", "bbox/ymax", "class/label", "area", "is_crowd"):
            values = tf.sparse.to_dense(found[f"image/object/{key}"]).numpy().tolist()
            assert values == pytest.approx(row[f"image/object/{key}"] or [])
        masks = tf.sparse.to_dense(found["image/object/mask"]).numpy()
        size = (row["image/height"], row["image/width"], 1)
        assert [tf.io.decode_png(mask, channels=1).shape for mask in masks] == [size] * len(masks)


def test_tfds_gives_the_boxes_and_captions_of_each_picture(street: Path) -> None:
    builder = tfds.builder_from_directory(str(street))
    for row, example in zip(rows_of(street), tfds.as_numpy(builder.as_dataset(split="train")), strict=True):
        image, picture = example["image"], Image.open(io.BytesIO(row["image/encoded"]))
        assert np.array_equal(image["encoded"], np.asarray(picture))
        assert [text.decode() for text in image["caption"]] == row["image/caption"]
        assert image["object"]["class"]["label"].tolist() == (row["image/object/class/label"] or [])
        assert image["object"]["bbox"]["ymin"].tolist() == pytest.approx(row["image/object/bbox/ymin"] or [])


def boxes_of(folder: Path, *objects: list[int], first: int = 0, names: tuple[str, ...] = ("cat", "sea lion")) -> str:
    """Write pictures with objects of these classes, whose ids begin with `first`, and COCO's file of them."""
    (folder / "pictures").mkdir(parents=True)
    images = [{"id": number, "file_name": f"{number}.png"} for number in range(len(objects))]
    for number in range(len(objects)):
        Image.new("RGB", (8, 6), (number, len(names), 0)).save(folder / "pictures" / f"{number}.png")
    annotations = [
        {"image_id": number, "category_id": one, "bbox": [1, 1, 2, 2]}
        for number, found in enumerate(objects)
        for one in found
    ]
    categories = [{"id": number, "name": name} for number, name in enumerate(names, first)]
    document = {"images": images, "annotations": annotations, "categories": categories}
    (folder / "coco.json").write_text(json.dumps(document))
    return str(folder / "coco.json")


def classes_of(path: Path) -> tuple[Any, list[list[int]]]:
    builder = tfds.builder_from_directory(str(path))
    examples = tfds.as_numpy(builder.as_dataset(split="train"))
    feature = builder.info.features["image"]["object"]["class"]["label"]
    return feature, [example["image"]["object"]["class"]["label"].tolist() for example in examples]


def test_tfds_knows_the_names_of_the_classes_of_boxes_whose_ids_are_0_to_n_minus_1(tmp_path: Path) -> None:
    source = boxes_of(tmp_path / "one", [1, 0], [], [1])
    convert(str(tmp_path / "one/pictures"), output=str(tmp_path / "out"), input__annotations={"coco": [source]})
    feature, found = classes_of(tmp_path / "out")
    assert isinstance(feature, tfds.features.Sequence)
    assert isinstance(feature.feature, tfds.features.ClassLabel)
    assert feature.feature.names == ["cat", "sea lion"]
    assert [[feature.feature.int2str(number) for number in row] for row in found] == [
        ["sea lion", "cat"],
        [],
        ["sea lion"],
    ]
    more = boxes_of(tmp_path / "two", [2], names=("cat", "sea lion", "owl"))
    append(str(tmp_path / "two/pictures"), output=str(tmp_path / "out"), input__annotations={"coco": [more]})
    feature, found = classes_of(tmp_path / "out")
    assert (feature.feature.names, found[-1]) == (["cat", "sea lion", "owl"], [2])


def test_ids_with_gaps_are_plain_numbers_to_tfds(tmp_path: Path) -> None:
    source = boxes_of(tmp_path / "one", [2, 1], [], first=1)
    convert(str(tmp_path / "one/pictures"), output=str(tmp_path / "out"), input__annotations={"coco": [source]})
    feature, found = classes_of(tmp_path / "out")
    assert isinstance(feature, tfds.features.Tensor)
    assert (feature.shape, found) == ((None,), [[2, 1], []])
