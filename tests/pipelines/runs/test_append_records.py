"""Appends of existing records: they agree with the dataset, or nothing is appended."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from PIL import Image
from shardmill.pipelines import append, convert, open_dataset
from shardmill.pipelines.outcomes.summary import Summary
from shardmill.transforms.dataset.integrity.verify import verify_dataset
from shardmill.transforms.dataset.storage.record_file import write_records
from shardmill.transforms.errors import InputError, SchemaError, TooManyRejects, UsageError

from ...examples import example_from_values


def example(**values: Any) -> bytes:
    return example_from_values(values).SerializeToString()


def rows_in(folder: Path, ids: list[int], texts: list[str | None]) -> Path:
    convert(data=pa.table({"id": ids, "text": texts}), output=folder)
    return folder


def add(out: Path, *paths: Path, **settings: Any) -> Summary:
    return append({"input": {"format": "tfrecord", "paths": [str(path) for path in paths]}}, output=out, **settings)


def records_of(out: Path) -> list[bytes]:
    assert verify_dataset(str(out)).findings == ()
    return list(open_dataset(out).records("train"))


def test_records_of_a_dataset_and_of_a_foreign_file_are_appended_as_they_are(tmp_path: Path) -> None:
    out, other = rows_in(tmp_path / "out", [1], ["a"]), rows_in(tmp_path / "other", [2], ["b"])
    foreign = example(text="c", id=3)
    write_records(tmp_path / "x.tfrecord", [foreign])
    expected = [*records_of(out), *records_of(other), foreign]
    schema = add(out, other).manifest.schema
    assert add(out, other, tmp_path / "x.tfrecord").unchanged[0].generation == 2  # and the other file is appended
    assert records_of(out) == expected
    assert open_dataset(out).manifest.schema == schema
    assert add(out, other, tmp_path / "x.tfrecord").nothing_to_do


def test_features_that_the_dataset_has_not_are_refused_side_by_side(tmp_path: Path) -> None:
    out = rows_in(tmp_path / "out", [1], ["a"])
    write_records(tmp_path / "x.tfrecord", [example(id=1.5, text="x", more=1)])
    with pytest.raises(SchemaError) as caught:
        add(out, tmp_path / "x.tfrecord")
    rows = [line.split() for line in str(caught.value).splitlines()[2:]]
    assert [(row[0], row[-1]) for row in rows] == [("id", "re-typed"), ("more", "added"), ("text", "(bytes)")]


def test_a_null_in_a_feature_that_has_none_is_a_reject(tmp_path: Path) -> None:
    out = rows_in(tmp_path / "out", [1], ["a"])
    other = rows_in(tmp_path / "other", [2, 3], ["b", None])
    with pytest.raises(TooManyRejects, match=r"record 1 at byte .*: CORRUPT"):
        add(out, other)
    add(out, other, max_rejects=1)
    assert open_dataset(out).to_arrow("train").to_pylist() == [{"id": 1, "text": "a"}, {"id": 2, "text": "b"}]


def test_foreign_records_go_to_the_split_that_their_file_names_or_to_the_one_there_is(tmp_path: Path) -> None:
    convert(data=pa.table({"id": [1]}), output=tmp_path / "out", output__split="test")
    for name, number in (("more", 2), ("val-00000", 3)):
        write_records(tmp_path / f"{name}.tfrecord", [example(id=number)])
    with pytest.raises(InputError, match="names of files may mean splits"):
        add(tmp_path / "out", tmp_path / "more.tfrecord", tmp_path / "val-00000.tfrecord")
    add(tmp_path / "out", tmp_path / "more.tfrecord")
    manifest = add(tmp_path / "out", tmp_path / "val-00000.tfrecord").manifest
    assert {name: split.records for name, split in manifest.splits.items()} == {"test": 2, "val": 1}


def test_a_dataset_is_not_appended_to_itself(tmp_path: Path) -> None:
    out = rows_in(tmp_path / "out", [1], ["a"])
    for path in (out, out / "train-00000.tfrecord"):
        with pytest.raises(UsageError, match="is a shard of the dataset that it is to be appended to"):
            add(out, path)


def images_in(folder: Path, classes: list[str]) -> Path:
    for number, name in enumerate(classes):
        path = folder.with_suffix(".images") / name / "one.png"
        path.parent.mkdir(parents=True)
        Image.new("RGB", (4 + number, 4)).save(path)
    convert({"input": {"paths": [str(folder.with_suffix(".images"))]}}, output=folder)
    return folder


def test_numbers_keep_their_labels_and_new_ones_come_at_the_end(tmp_path: Path) -> None:
    out = images_in(tmp_path / "out", ["cat", "dog"])
    manifest = add(out, images_in(tmp_path / "more", ["cat", "dog", "owl"])).manifest
    assert manifest.labels == {"image/class/label": ("cat", "dog", "owl")}
    with pytest.raises(SchemaError, match=r'label 0 is "cat" in .*out, generation 2 and "ant" in .*other'):
        add(out, images_in(tmp_path / "other", ["ant", "bee"]))
    assert len(records_of(out)) == 5
