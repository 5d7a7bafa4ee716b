"""What `croissant.json` says; tests/readers/test_croissant.py has the official validator read it."""

from __future__ import annotations

import dataclasses
import fnmatch
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from shardmill.transforms.format.manifest.manifest import ShardEntry, SplitEntry
from shardmill.transforms.format.schema.schema import Feature, Schema
from shardmill.transforms.format.sidecars.sidecar_files import croissant, shard_globs

from .test_sidecar_files import MANIFEST


def document(**changes: Any) -> Any:
    return json.loads(croissant(dataclasses.replace(MANIFEST, **changes)))


def split(name: str, count: int) -> SplitEntry:
    shards = tuple(ShardEntry(f"{name}-{index:05d}.tfrecord", 1, 3, 100, "00000000") for index in range(count))
    return SplitEntry(3 * count, 100 * count, 256, "sum128:" + "0" * 32, shards)


def test_splits_and_classes_are_inline_and_each_feature_is_a_field_of_the_shards() -> None:
    features = (
        Feature("image/class/label", "int64", "label"),
        Feature("image/encoded", "bytes", "image"),
        Feature("pair", "float", "float64", (2, 3), nullable=True),
        Feature("tags", "bytes", "string", (-1,)),
    )
    found = document(schema=Schema(features), splits={"train": split("train", 2), "val": split("val", 1)})
    assert (found["name"], found["conformsTo"]) == ("pets", "http://mlcommons.org/croissant/1.1")
    (shards,) = found["distribution"]
    assert shards["includes"] == ["train-*.tfrecord", "val-*.tfrecord"]
    splits, classes, records = found["recordSet"]
    assert [row["splits/name"] for row in splits["data"]] == ["train", "val"]
    assert [list(row.values()) for row in classes["data"]] == [[0, "cat"], [1, "dog"]]
    fields = {field["name"]: field for field in records["field"]}
    assert list(fields) == ["split", "image/class/label", "image/encoded", "pair", "tags"]
    assert fields["split"]["source"]["transform"] == {"regex": "^(train|val)-.*$"}
    assert fields["pair"]["dataType"] == "cr:Float64"
    assert [fields[name].get("arrayShape") for name in ("pair", "tags", "image/encoded")] == ["2,3", "-1", None]
    assert fields["image/class/label"]["references"] == {"field": {"@id": "classes/image/class/label/number"}}


def test_files_that_are_not_named_by_their_split_have_no_field_of_it() -> None:
    shard = ShardEntry("mnist-train.tfrecord", 1, 9, 650, "9a71c4d0")
    entry = SplitEntry(9, 650, 256, "sum128:" + "0" * 32, (shard,))
    (records,) = [one for one in document(splits={"train": entry})["recordSet"] if one["@id"] == "records"]
    assert "split" not in [field["name"] for field in records["field"]]


def test_identities_have_no_blanks() -> None:
    found = document(schema=Schema((Feature("a b/ü", "int64", "label"),)), labels={"a b/ü": ("x",)})
    assert [one["@id"] for one in found["recordSet"]] == ["splits", "classes/a%20b/%C3%BC", "records"]
    assert found["recordSet"][2]["field"][-1]["name"] == "a b/ü"


names = st.sampled_from(["a", "a-b", "a-0", "train", "train-00000", "x-00001-of-00002"])


@given(st.dictionaries(names, st.integers(1, 12), min_size=1))
def test_the_globs_of_a_split_match_its_shards_and_those_of_no_other(splits: dict[str, int]) -> None:
    paths = {name: [shard.path for shard in split(name, count).shards] for name, count in splits.items()}
    for name, own in paths.items():
        others = [path for other, some in paths.items() if other != name for path in some]
        globs = shard_globs(own, others)
        found = [path for path in own + others if any(fnmatch.fnmatchcase(path, glob) for glob in globs)]
        assert found == own
