"""What TensorFlow and TFDS read of nested columns: the values of the source, by the keys that they know themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tensorflow as tf
import tensorflow_datasets as tfds
from google.protobuf import text_format
from shardmill.pipelines import convert
from shardmill.transforms.dataset.reading.open_dataset import open_dataset
from tensorflow_metadata.proto.v0 import schema_pb2

ROWS: list[dict[str, Any]] = [
    {
        "grid": [[1, 2], [], [3]],
        "cube": [[["a"], []], []],
        "boxes": [[0.0, 0.5, 1.0, 1.0], [0.0, 0.0, 0.5, 0.5]],
        "user": {"name": "Ada", "ids": [7]},
        "events": [{"at": 1, "weights": [0.5, 1.5]}, {"at": 2, "weights": []}],
        "tags": [("b", 1), ("a", 2)],
    },
    {"grid": [], "cube": [], "boxes": [], "user": {"name": "Bob", "ids": []}, "events": [], "tags": []},
    dict.fromkeys(("grid", "cube", "boxes", "user", "events", "tags")),
]
SCHEMA = pa.schema(
    [
        ("grid", pa.list_(pa.list_(pa.int16()))),
        ("cube", pa.list_(pa.list_(pa.list_(pa.string())))),
        ("boxes", pa.list_(pa.list_(pa.float32(), 4))),
        ("user", pa.struct([("name", pa.string()), ("ids", pa.list_(pa.int64()))])),
        ("events", pa.list_(pa.struct([("at", pa.int64()), ("weights", pa.list_(pa.float32()))]))),
        ("tags", pa.map_(pa.string(), pa.int64())),
    ]
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("nested")
    pq.write_table(pa.Table.from_pylist(ROWS, SCHEMA), folder / "a.parquet")
    convert(str(folder / "a.parquet"), output=folder / "out")
    return folder / "out"


def test_tfds_gives_ragged_tensors_boxes_and_dicts_with_no_code(folder: Path) -> None:
    first, empty, null = tfds.builder_from_directory(str(folder)).as_dataset(split="train")
    assert first["grid"].to_list() == [[1, 2], [], [3]]
    assert first["cube"].to_list() == [[[b"a"], []], []]
    assert first["boxes"].shape == (2, 4)
    assert first["boxes"].numpy().tolist() == ROWS[0]["boxes"]
    assert first["user"]["name"].numpy() == b"Ada"
    assert first["user"]["ids"].numpy().tolist() == [7]
    assert first["events"]["at"].numpy().tolist() == [1, 2]
    assert first["events"]["weights"].to_list() == [[0.5, 1.5], []]
    assert first["tags"]["key"].numpy().tolist() == [b"b", b"a"]
    assert first["tags"]["value"].numpy().tolist() == [1, 2]
    for name, present in (("grid", "grid/present"), ("cube", "cube/present")):
        assert empty[name].to_list() == null[name].to_list() == []
        assert (empty[present].numpy(), null[present].numpy()) == (1, 0)
    for name in ("user", "events", "tags"):
        assert (empty[name]["present"].numpy(), null[name]["present"].numpy()) == (1, 0)


def test_tf_io_reads_lists_of_lists_by_ragged_features(folder: Path) -> None:
    def ragged(name: str, dtype: tf.DType, levels: int) -> tf.io.RaggedFeature:
        lengths = [tf.io.RaggedFeature.RowLengths(f"{name}/ragged_row_lengths_{level}") for level in range(levels)]
        return tf.io.RaggedFeature(
            dtype, value_key=f"{name}/ragged_flat_values", partitions=lengths, row_splits_dtype=tf.int64
        )

    features = {
        "grid": ragged("grid", tf.int64, 1),
        "cube": ragged("cube", tf.string, 2),
        "events/weights": ragged("events/weights", tf.float32, 1),
        "grid/present": tf.io.FixedLenFeature((), tf.int64),
        "events/at": tf.io.RaggedFeature(tf.int64),
    }
    paths = open_dataset(folder).shard_paths("train")
    read = [tf.io.parse_single_example(record, features) for record in tf.data.TFRecordDataset(paths)]
    assert [one["grid"].to_list() for one in read] == [[[1, 2], [], [3]], [], []]
    assert read[0]["cube"].to_list() == [[[b"a"], []], []]
    assert read[0]["events/weights"].to_list() == [[0.5, 1.5], []]
    assert read[0]["events/at"].numpy().tolist() == [1, 2]
    assert [one["grid/present"].numpy() for one in read] == [1, 1, 0]


def test_the_schema_of_tfx_has_every_key(folder: Path) -> None:
    schema = text_format.Parse((folder / "schema.pbtxt").read_text(), schema_pb2.Schema())
    assert {feature.name for feature in schema.feature} == {
        feature.name for feature in open_dataset(folder).schema or ()
    }


def test_our_own_reader_gives_the_very_rows(folder: Path) -> None:
    assert open_dataset(folder).to_arrow().to_pylist() == ROWS


def test_filled_and_masked_nulls_are_values_for_every_reader(tmp_path: Path) -> None:
    table = pa.table({"a": [1, None], "b": [0.5, None], "c": ["x", None], "d": [{"e": 1}, {"e": 2}]})
    pq.write_table(table, tmp_path / "a.parquet")
    columns = {"a": {"null": {"fill": -1}}, "b": {"null": "mask"}}
    convert(str(tmp_path / "a.parquet"), output=tmp_path / "out", schema={"columns": columns})
    first, second = tfds.builder_from_directory(str(tmp_path / "out")).as_dataset(split="train")
    assert [one["a"].numpy() for one in (first, second)] == [1, -1]
    assert [(one["b"].numpy(), one["b/mask"].numpy()) for one in (first, second)] == [(0.5, 1), (0.0, 0)]
    assert second["c"].numpy() == b""
    assert second["d"]["e"].numpy() == 2
    features = {name: tf.io.FixedLenFeature((), dtype) for name, dtype in (("a", tf.int64), ("b", tf.float32))}
    features["b/mask"] = tf.io.FixedLenFeature((), tf.int64)
    paths = open_dataset(tmp_path / "out").shard_paths("train")
    read = [tf.io.parse_single_example(record, features) for record in tf.data.TFRecordDataset(paths)]
    assert [(one["a"].numpy(), one["b"].numpy(), one["b/mask"].numpy()) for one in read] == [(1, 0.5, 1), (-1, 0.0, 0)]
    assert open_dataset(tmp_path / "out").to_arrow().to_pylist()[1] == {"a": -1, "b": None, "c": None, "d": {"e": 2}}
