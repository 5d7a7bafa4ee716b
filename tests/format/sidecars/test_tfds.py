from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shardmill.transforms.format.schema.schema import Feature, Schema
from shardmill.transforms.format.sidecars.tfds import (
    SplitShards,
    dataset_info,
    features,
    label_files,
    labels_file_name,
    tfds_files,
)

CORE = "tensorflow_datasets.core.features."

PETS = Schema(
    (
        Feature("image/class/label", "int64", "label", labels="image-class-label.labels.txt"),
        Feature("image/encoded", "bytes", "image"),
        Feature("taken", "int64", "timestamp", nullable=True, unit="us", timezone="UTC"),
    )
)
LABELS = {"image/class/label": ("cat", "dog", "owl")}


def feature_of(feature: Feature, **options: Any) -> dict[str, Any]:
    document = json.loads(features(Schema((feature,)), **{"labels": {}, **options}))
    (entry,) = document["featuresDict"]["features"].values()
    return entry


def tensor_of(feature: Feature) -> tuple[str, list[int], str, str, bool]:
    entry = feature_of(feature)
    tensor = entry["tensor"]
    shape = [int(size) for size in tensor["shape"].get("dimensions", [])]
    name = entry["pythonClassName"].removeprefix(CORE)
    return name, shape, tensor["dtype"], tensor["encoding"], tensor.get("optional", False)


def test_dataset_info_is_these_bytes() -> None:
    splits = [SplitShards("train", (9, 8, 7), 183420), SplitShards("val", (), 0)]
    assert dataset_info("pets", "1.0.0", "none", "{split}-{index:05d}", splits) == (
        b'{\n  "fileFormat": "tfrecord",\n  "name": "pets",\n  "splits": [\n    {\n'
        b'      "filepathTemplate": "{SPLIT}-{SHARD_INDEX}.{FILEFORMAT}",\n      "name": "train",\n'
        b'      "numBytes": "183420",\n      "shardLengths": [\n        "9",\n        "8",\n        "7"\n      ]\n'
        b'    }\n  ],\n  "version": "1.0.0"\n}\n'
    )


def test_the_features_of_the_pets_are_these() -> None:
    assert json.loads(features(PETS, LABELS, {"jpeg", "png"})) == {
        "pythonClassName": CORE + "features_dict.FeaturesDict",
        "featuresDict": {
            "features": {
                "image": {
                    "pythonClassName": CORE + "features_dict.FeaturesDict",
                    "featuresDict": {
                        "features": {
                            "class": {
                                "pythonClassName": CORE + "features_dict.FeaturesDict",
                                "featuresDict": {
                                    "features": {
                                        "label": {
                                            "pythonClassName": CORE + "class_label_feature.ClassLabel",
                                            "classLabel": {"numClasses": "3"},
                                        }
                                    }
                                },
                            },
                            "encoded": {
                                "pythonClassName": CORE + "image_feature.Image",
                                "image": {"shape": {"dimensions": ["-1", "-1", "3"]}, "dtype": "uint8"},
                            },
                        }
                    },
                },
                "taken": {
                    "pythonClassName": CORE + "scalar.Scalar",
                    "tensor": {"shape": {}, "dtype": "int64", "encoding": "none", "optional": True},
                },
            }
        },
    }


def test_a_template_that_tfds_cannot_express_leaves_dataset_info_out() -> None:
    splits = [SplitShards("train", (1,), 10)]
    assert dataset_info("x", "1.0.0", "none", "{split}-{index:04d}", splits) is None
    assert dataset_info("x", "1.0.0", "none", "{split}-{index}", splits) is None


def test_beams_shard_names_have_a_template() -> None:
    info = dataset_info("x", "1.0.0", "none", "{split}-{index:05d}-of-{count:05d}", [SplitShards("a", (1,), 10)])
    assert info is not None
    template = json.loads(info)["splits"][0]["filepathTemplate"]
    assert template == "{SPLIT}-{SHARD_INDEX}-of-{NUM_SHARDS}.{FILEFORMAT}"


def test_gzip_leaves_dataset_info_out_and_keeps_the_features() -> None:
    files = tfds_files(
        name="pets",
        version="1.0.0",
        compression="gzip",
        shard_name="{split}-{index:05d}",
        schema=PETS,
        labels=LABELS,
        splits=[SplitShards("train", (9,), 100)],
        image_formats={"jpeg"},
    )
    assert sorted(files) == ["features.json", "image-class-label.labels.txt"]


def test_a_split_of_100000_shards_leaves_dataset_info_out_because_tfds_would_write_six_digits() -> None:
    assert dataset_info("x", "1.0.0", "none", "{split}-{index:05d}", [SplitShards("a", (1,) * 99_999, 1)]) is not None
    assert dataset_info("x", "1.0.0", "none", "{split}-{index:05d}", [SplitShards("a", (1,) * 100_000, 1)]) is None


@pytest.mark.parametrize(
    ("formats", "shape"),
    [
        ({"jpeg", "png", "bmp"}, ["-1", "-1", "3"]),
        (set(), ["-1", "-1", "3"]),
        ({"gif"}, ["-1", "-1", "-1", "3"]),
    ],
)
def test_images_of_one_rank_are_an_image(formats: set[str], shape: list[str]) -> None:
    entry = feature_of(Feature("image", "bytes", "image"), image_formats=formats)
    assert entry["image"]["shape"] == {"dimensions": shape}


@pytest.mark.parametrize("formats", [{"jpeg", "gif"}, {"webp"}, {"jpeg", "webp"}, None])
def test_images_that_tensorflow_cannot_decode_into_one_rank_stay_bytes(formats: set[str] | None) -> None:
    entry = feature_of(Feature("image", "bytes", "image"), image_formats=formats)
    assert entry["pythonClassName"] == CORE + "scalar.Scalar"
    assert entry["tensor"]["dtype"] == "string"


def test_a_nullable_string_or_label_is_a_scalar_and_never_text_or_class_label() -> None:
    text = Feature("a", "bytes", "string", nullable=True)
    assert tensor_of(text) == ("scalar.Scalar", [], "string", "none", True)
    entry = feature_of(Feature("a", "int64", "label", nullable=True), labels={"a": ("x", "y")})
    assert entry["pythonClassName"] == CORE + "scalar.Scalar"
    assert entry["tensor"]["optional"] is True


def test_a_string_is_text() -> None:
    assert feature_of(Feature("a", "bytes", "string")) == {
        "pythonClassName": CORE + "text_feature.Text",
        "text": {},
    }


@pytest.mark.parametrize("type_", ["bool", "int8", "uint8", "uint16", "uint32", "uint64"])
def test_a_nullable_integer_reads_as_int64_so_that_an_absent_one_is_no_value_of_its_type(type_: str) -> None:
    assert tensor_of(Feature("a", "int64", type_)) == ("scalar.Scalar", [], type_, "none", False)
    assert tensor_of(Feature("a", "int64", type_, nullable=True)) == ("scalar.Scalar", [], "int64", "none", True)


def test_a_list_is_never_optional_because_tfds_cannot_build_its_default() -> None:
    feature = Feature("a", "int64", "int32", shape=(-1,), nullable=True)
    assert tensor_of(feature) == ("tensor_feature.Tensor", [-1], "int32", "none", False)


def test_a_fixed_shape_keeps_its_shape() -> None:
    feature = Feature("a", "float", "float64", shape=(2, 3), nullable=True)
    assert tensor_of(feature) == ("tensor_feature.Tensor", [2, 3], "float32", "none", True)


def test_array_data_is_a_flat_tensor_of_its_own_dtype() -> None:
    feature = Feature("emb/data", "bytes", "array_data", dtype="<f8", rank=2)
    document = json.loads(features(Schema((feature,)), {}))
    entry = document["featuresDict"]["features"]["emb"]["featuresDict"]["features"]["data"]
    assert entry["tensor"] == {"shape": {"dimensions": ["-1"]}, "dtype": "float64", "encoding": "bytes"}


def test_array_data_of_a_dtype_that_tensorflow_cannot_decode_stays_bytes() -> None:
    assert tensor_of(Feature("a", "bytes", "array_data", dtype="<u4", rank=1))[2:4] == ("string", "none")
    assert tensor_of(Feature("a", "bytes", "array_data", dtype="<M8[us]", rank=1))[2:4] == ("string", "none")


def test_an_exact_float64_is_restored_from_its_bytes() -> None:
    feature = Feature("a", "bytes", "float64", dtype="<f8")
    assert tensor_of(feature) == ("tensor_feature.Tensor", [], "float64", "bytes", False)


def test_a_name_that_is_another_names_folder_keeps_all_names_flat() -> None:
    schema = Schema((Feature("a", "int64", "int64"), Feature("a/b", "int64", "label")))
    document = json.loads(features(schema, {"a/b": ("x",)}))
    assert sorted(document["featuresDict"]["features"]) == ["a", "a/b"]
    assert sorted(label_files(schema, {"a/b": ("x",)})) == ["a.b.labels.txt"]


@pytest.mark.parametrize("name", ["/a", "a/", "a//b", ""])
def test_an_empty_step_keeps_all_names_flat(name: str) -> None:
    document = json.loads(features(Schema((Feature(name, "int64", "int64"),)), {}))
    assert list(document["featuresDict"]["features"]) == [name]


def test_labels_stand_one_a_line() -> None:
    assert label_files(PETS, LABELS) == {"image-class-label.labels.txt": b"cat\ndog\nowl\n"}
    assert labels_file_name("a") == "a.labels.txt"


@given(st.lists(st.text(st.sampled_from(' \n\r\t\\ab0uxé\u2003"'), max_size=6), min_size=1, max_size=6, unique=True))
def test_label_names_keep_their_count_their_order_and_their_difference(names: list[str]) -> None:
    (body,) = label_files(PETS, {"image/class/label": names}).values()
    # As TFDS reads the file: universal newlines, stripped, empty lines left out.
    lines = body.decode().replace("\r\n", "\n").replace("\r", "\n").split("\n")
    read = [line.strip() for line in lines if line.strip()]
    assert len(read) == len(set(read)) == len(names)
    if all(name == name.strip() and name and not set(name) & set("\n\r") for name in names):
        assert read == names
