from __future__ import annotations

import dataclasses

from shardmill.transforms.format.manifest.manifest import (
    RowCounts,
    ShardEntry,
    SourceSummary,
    SplitEntry,
)
from shardmill.transforms.format.schema.schema import Feature, Schema
from shardmill.transforms.format.sidecars.sidecar_files import sidecar_files

from ...manifests import manifest_with

SHARD = ShardEntry("train-00000.tfrecord", 1, 9, 650, "9a71c4d0")

MANIFEST = manifest_with(
    name="pets",
    config_fingerprint="sha256:" + "0" * 64,
    source=SourceSummary("images", 9, 100, "sources/00000001.jsonl"),
    counts=RowCounts(9, 9, 0, 0),
    schema=Schema((Feature("image/class/label", "int64", "label"), Feature("image/encoded", "bytes", "image"))),
    labels={"image/class/label": ("cat", "dog")},
    splits={"train": SplitEntry(9, 650, 256, "sum128:" + "0" * 32, (SHARD,))},
)


def test_sidecars_are_replaced_in_this_order_so_that_what_opens_the_dataset_comes_last() -> None:
    assert list(sidecar_files(MANIFEST, ("tfds", "tfx"), {"jpeg"})) == [
        "image-class-label.labels.txt",
        "schema.pbtxt",
        "features.json",
        "dataset_info.json",
    ]


def test_only_the_wanted_groups_are_written() -> None:
    assert list(sidecar_files(MANIFEST, ("tfx",), {"jpeg"})) == ["schema.pbtxt"]
    assert sidecar_files(MANIFEST, (), {"jpeg"}) == {}


def test_records_without_a_schema_have_no_sidecars() -> None:
    assert sidecar_files(dataclasses.replace(MANIFEST, schema=None), ("tfds", "tfx"), None) == {}


def test_the_sidecars_follow_from_the_manifest_alone_whatever_its_own_list_says() -> None:
    listed = dataclasses.replace(MANIFEST, sidecars=("schema.pbtxt",))
    assert sidecar_files(listed, ("tfds", "tfx"), None) == sidecar_files(MANIFEST, ("tfds", "tfx"), None)
