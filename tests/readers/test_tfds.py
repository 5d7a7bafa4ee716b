"""TensorFlow Datasets opens every sample's folder with no code, and gives the right value of every feature."""

from __future__ import annotations

import io
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_datasets as tfds
from PIL import Image
from shardmill.pipelines import append, convert
from shardmill.transforms.dataset.integrity.verify import verify_dataset
from shardmill.transforms.dataset.reading.open_dataset import Dataset, open_dataset
from shardmill.transforms.format.schema.schema import Feature

from ..label_numbers import in_numbers

NULL_INT = np.iinfo(np.int64).min
NULL_FLOAT = np.finfo(np.float32).min


def read_all(dataset: Dataset, split: str) -> list[dict[str, Any]]:
    builder = tfds.builder_from_directory(dataset.path)
    config = tfds.ReadConfig(interleave_cycle_length=1)  # the shards' own order
    return list(builder.as_dataset(split=split, read_config=config))


def lookup(example: dict[str, Any], name: str) -> Any:
    for step in name.split("/"):
        example = example[step]
    return example


def expected_values(scalar: Any, feature: Feature) -> list[Any]:
    """Return the values, flat, that TFDS is to give for an Arrow scalar."""
    if not scalar.is_valid:
        null = {"int64": NULL_INT, "float": NULL_FLOAT, "bytes": b""}[feature.kind]
        return [] if -1 in feature.shape else [null] * math.prod(feature.shape)
    if feature.type == "array_data":
        return np.frombuffer(scalar.as_py(), feature.dtype).tolist()
    return [expected_value(value, feature) for value in (scalar.values if feature.shape else [scalar])]


def expected_value(scalar: Any, feature: Feature) -> Any:
    if feature.kind == "bytes" and feature.type != "float64":
        return scalar.as_buffer().to_pybytes()
    return int(scalar.value) if hasattr(scalar, "value") else scalar.as_py()


def pixels(encoded: bytes) -> np.ndarray:
    return tf.image.decode_image(encoded, channels=3).numpy()


def test_builder_from_directory_gives_every_value_of_every_sample(any_sample: Dataset) -> None:
    assert any_sample.schema is not None
    for split in any_sample.splits:
        examples = read_all(any_sample, split)
        rows = [(batch, row) for batch in map(in_numbers, any_sample.batches(split)) for row in range(batch.num_rows)]
        assert len(examples) == len(rows) == any_sample.manifest.splits[split].records
        for example, (batch, row) in zip(examples, rows, strict=True):
            for feature in any_sample.schema:
                found = lookup(example, feature.name).numpy()
                wanted = expected_values(batch.column(feature.name)[row], feature)
                if feature.type == "image":
                    np.testing.assert_array_equal(found, pixels(wanted[0]))
                else:
                    assert np.ravel(found).tolist() == wanted, feature.name


def test_splits_and_counts_are_those_of_the_manifest(any_sample: Dataset) -> None:
    builder = tfds.builder_from_directory(any_sample.path)
    manifest = any_sample.manifest
    assert builder.name == manifest.name
    assert str(builder.version) == manifest.version
    for name, split in manifest.splits.items():
        assert builder.info.splits[name].num_examples == split.records
        assert builder.info.splits[name].shard_lengths == [shard.records for shard in split.shards]
        assert [str(path) for path in builder.info.splits[name].filepaths] == any_sample.shard_paths(name)


@pytest.mark.parametrize("config", ["quickstart", "images", "resized"])
def test_labels_have_their_names_and_images_their_pixels(sample: Callable[..., Dataset], config: str) -> None:
    dataset = sample(config)
    features = tfds.builder_from_directory(dataset.path).info.features
    label = features["image"]["class"]["label"]
    assert isinstance(label, tfds.features.ClassLabel)
    assert label.names == list(dataset.labels["image/class/label"])
    assert isinstance(features["image"]["encoded"], tfds.features.Image)
    for example in read_all(dataset, "train"):
        image = example["image"]
        assert label.int2str(int(image["class"]["label"])) == image["class"]["text"].numpy().decode()
        assert image["encoded"].shape == (image["height"], image["width"], 3)


def test_the_pixels_of_a_png_are_those_that_pillow_decodes(sample: Callable[..., Dataset]) -> None:
    dataset = sample("images")
    encoded = {}
    for batch in dataset.batches("train", ["image/filename", "image/format", "image/encoded"]):
        for row in batch.to_pylist():
            if row["image/format"] == "png":
                encoded[row["image/filename"].encode()] = row["image/encoded"]
    assert encoded
    for example in read_all(dataset, "train"):
        name = example["image"]["filename"].numpy()
        if name in encoded:
            wanted = np.asarray(Image.open(io.BytesIO(encoded[name])).convert("RGB"))
            np.testing.assert_array_equal(example["image"]["encoded"].numpy(), wanted)


@pytest.mark.parametrize("config", ["csv", "parquet", "every_type"])
def test_nullable_columns_are_optional_and_their_nulls_are_there(sample: Callable[..., Dataset], config: str) -> None:
    dataset = sample(config)
    assert dataset.schema is not None
    nullable = [feature for feature in dataset.schema if feature.nullable and -1 not in feature.shape]
    assert nullable, "the sample is to have nulls"
    infos = tfds.builder_from_directory(dataset.path).info.features.get_tensor_info()
    assert all(lookup(infos, feature.name).optional for feature in nullable)
    table = in_numbers(dataset.to_arrow("train"))
    for feature in nullable:
        values = [lookup(example, feature.name).numpy() for example in read_all(dataset, "train")]
        null = {"int64": NULL_INT, "float": NULL_FLOAT, "bytes": b""}[feature.kind]
        if feature.kind != "bytes":  # b"" may be a value
            assert sum(bool(np.all(value == null)) for value in values) == table.column(feature.name).null_count


def test_arrays_come_back_in_their_dtype_and_reshape_to_their_shape(sample: Callable[..., Dataset]) -> None:
    dataset = sample("numpy")
    arrays = list(dataset.arrays("train"))
    name = next(iter(arrays[0]))
    for example, wanted in zip(read_all(dataset, "train"), arrays, strict=True):
        data = lookup(example, f"{name}/data")
        found = tf.reshape(data, lookup(example, f"{name}/shape")).numpy()
        assert found.dtype == wanted[name].dtype
        np.testing.assert_array_equal(found, wanted[name])


def convert_pictures(tmp_path: Path, formats: list[str]) -> Dataset:
    """Convert one picture of each format, in one class."""
    folder = tmp_path / "pictures" / "all"
    folder.mkdir(parents=True)
    for place, name in enumerate(formats):
        Image.new("RGB", (7 + place, 5), (place, 100, 200)).save(folder / f"{place}.{name}", name.upper())
    config = {"version": 1, "input": {"format": "images", "paths": [str(tmp_path / "pictures")]}}
    convert(config, output=tmp_path / "out")
    return open_dataset(tmp_path / "out")


@pytest.mark.parametrize(
    ("formats", "rank"), [(["jpeg", "png", "bmp"], 3), (["gif", "gif"], 4), (["jpeg", "gif"], 0), (["png", "webp"], 0)]
)
def test_pictures_are_decoded_only_if_tensorflow_gives_all_of_them_one_rank(
    tmp_path: Path, formats: list[str], rank: int
) -> None:
    dataset = convert_pictures(tmp_path, formats)
    encoded = in_numbers(dataset.to_arrow("train", ["image/encoded"])).column(0).to_pylist()
    for example, held in zip(read_all(dataset, "train"), encoded, strict=True):
        found = example["image"]["encoded"]
        assert len(found.shape) == rank
        np.testing.assert_array_equal(found.numpy(), pixels(held) if rank else held)
    assert verify_dataset(dataset.path).ok


def test_a_label_of_a_table_has_the_names_of_its_classes_also_after_an_append(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text("id,kind\n1,dog\n2,cat\n")
    Path("b.csv").write_text("id,kind\n3,ant\n")
    convert("a.csv", output="out", schema={"columns": {"kind": {"label": True}}})
    append("b.csv", output="out")
    label = tfds.builder_from_directory("out").info.features["kind"]
    assert isinstance(label, tfds.features.ClassLabel)
    assert label.names == ["cat", "dog", "ant"]
    read = read_all(open_dataset("out"), "train")
    assert [label.int2str(int(example["kind"])) for example in read] == ["dog", "cat", "ant"]


def test_the_file_that_a_column_names_is_its_bytes_and_none_is_empty_bytes(tmp_path: Path) -> None:
    files = {"one.wav": bytes(range(256)), "none.bin": b"\0", "sub/two.txt": "drei \u00e4".encode()}
    for name, data in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(data)
    (tmp_path / "a.csv").write_text("id,clip\n" + "".join(f"{i},{name}\n" for i, name in enumerate([*files, ""])))
    columns = {"clip": {"file": "path"}}
    convert(str(tmp_path / "a.csv"), output=tmp_path / "out", schema__columns=columns, null_values=[""])
    rows = read_all(open_dataset(tmp_path / "out"), "train")
    assert [row["clip"].numpy() for row in rows] == [*files.values(), b""]
