from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shardmill.transforms.errors import DamageError
from shardmill.transforms.format.batches.rows import Narrowing
from shardmill.transforms.format.manifest.manifest import (
    Manifest,
    ManifestLimits,
    RejectSummary,
    RowCounts,
    RunInfo,
    ShardEntry,
    SourceSummary,
    SplitEntry,
)
from shardmill.transforms.format.manifest.parser import parse_manifest
from shardmill.transforms.format.schema.schema import Feature, Schema

GOLDEN = """\
{"format": "shardmill.manifest", "format_version": 1, "generation": 1, "parent": null, "operation": "create",
 "name": "pets", "version": "1.0.0", "order": "task", "compression": "none", "shard_size": 65536, "shard_name": "{split}-{index:05d}",
 "config_fingerprint": "sha256:1111111111111111111111111111111111111111111111111111111111111111", "schema_fingerprint": "sha256:0944040be50a5e3b3d03d7bc95f406a69b0d148998a956456d326796a941e760",
 "source": {"format": "images", "files": 25, "bytes": 188204, "list": "sources/00000001.jsonl", "skipped": {"hidden": 1, "junk": 0}},
 "counts": {"read": 25, "written": 24, "rejected": 1, "dropped": 0},
 "rejects": {"path": "rejects/00000001.jsonl", "records": 1, "by_code": {"TRUNCATED": 1}},
 "schema": [
  {"name": "emb/data", "kind": "bytes", "type": "array_data", "shape": [], "nullable": false, "dtype": "<f4", "rank": 2},
  {"name": "image/class/label", "kind": "int64", "type": "label", "shape": [], "nullable": false, "labels": "image-class-label.labels.txt"},
  {"name": "taken", "kind": "int64", "type": "timestamp", "shape": [], "nullable": true, "unit": "us", "timezone": "UTC"}],
 "labels": {"image/class/label": ["cat", "dög", "owl"]},
 "narrowed": [{"name": "price", "from": "float64", "to": "float32", "values": 24, "max_relative_error": 5.9e-08, "underflows": 0, "integers_changed": null}],
 "splits": {"train": {"records": 17, "bytes": 124322, "unit_bytes": 9112, "records_digest": "sum128:000000000000000000000000000000ff", "shards": [
  {"path": "train-00000.tfrecord", "generation": 1, "records": 9, "bytes": 65012, "crc32c": "9a71c4d0"},
  {"path": "train-00001.tfrecord", "generation": 1, "records": 8, "bytes": 59310, "crc32c": "03be5512"}]},
  "val": {"records": 7, "bytes": 59098, "unit_bytes": 9001, "records_digest": "sum128:00000000000000000000000000000001", "shards": [
  {"path": "val-00000.tfrecord", "generation": 1, "records": 7, "bytes": 59098, "crc32c": "e0c9d7af"}]}},
 "sidecars": ["dataset_info.json", "features.json", "image-class-label.labels.txt", "schema.pbtxt"],
 "run": {"created": "2026-01-31T12:00:00Z", "run_id": "5f0c9b1e2a7d4c88", "commit_id": "0b7e6d52-7c1e-4c39-9b51-3f6f0a4c2e11", "staging": ".staging/5f0c9b1e2a7d4c88",
  "source_fingerprint": "sha256:2222222222222222222222222222222222222222222222222222222222222222", "runner": "local", "tool": {"shardmill": "0.1.0", "python": "3.11.7"}}, "end": true}
"""  # noqa: E501

SCHEMA = Schema(
    (
        Feature("emb/data", "bytes", "array_data", dtype="<f4", rank=2),
        Feature("image/class/label", "int64", "label", labels="image-class-label.labels.txt"),
        Feature("taken", "int64", "timestamp", nullable=True, unit="us", timezone="UTC"),
    )
)

MANIFEST = Manifest(
    generation=1,
    parent=None,
    operation="create",
    name="pets",
    version="1.0.0",
    order="task",
    compression="none",
    shard_size=65536,
    shard_name="{split}-{index:05d}",
    config_fingerprint="sha256:" + "1" * 64,
    schema_fingerprint=SCHEMA.fingerprint(),
    source=SourceSummary("images", 25, 188204, "sources/00000001.jsonl", {"hidden": 1, "junk": 0}),
    counts=RowCounts(25, 24, 1, 0),
    rejects=RejectSummary("rejects/00000001.jsonl", 1, {"TRUNCATED": 1}),
    schema=SCHEMA,
    labels={"image/class/label": ("cat", "dög", "owl")},
    narrowed=(Narrowing("price", "float64", "float32", 24, 5.9e-08, 0),),
    splits={
        "train": SplitEntry(
            17,
            124322,
            9112,
            "sum128:" + "0" * 30 + "ff",
            (
                ShardEntry("train-00000.tfrecord", 1, 9, 65012, "9a71c4d0"),
                ShardEntry("train-00001.tfrecord", 1, 8, 59310, "03be5512"),
            ),
        ),
        "val": SplitEntry(
            7,
            59098,
            9001,
            "sum128:" + "0" * 31 + "1",
            (ShardEntry("val-00000.tfrecord", 1, 7, 59098, "e0c9d7af"),),
        ),
    },
    sidecars=("dataset_info.json", "features.json", "image-class-label.labels.txt", "schema.pbtxt"),
    run=RunInfo(
        "2026-01-31T12:00:00Z",
        "5f0c9b1e2a7d4c88",
        "0b7e6d52-7c1e-4c39-9b51-3f6f0a4c2e11",
        ".staging/5f0c9b1e2a7d4c88",
        "sha256:" + "2" * 64,
        "local",
        {"shardmill": "0.1.0", "python": "3.11.7"},
    ),
)


def test_a_manifest_is_written_in_its_canonical_form() -> None:
    assert MANIFEST.to_bytes().decode() == GOLDEN


def test_what_was_written_is_read_back() -> None:
    assert parse_manifest(GOLDEN.encode(), "manifest.json") == MANIFEST


def test_records_without_a_schema_have_a_null_schema() -> None:
    plain = replace(MANIFEST, schema=None, schema_fingerprint=None, splits={}, labels={}, narrowed=())
    assert b'"schema": null' in plain.to_bytes()
    assert parse_manifest(plain.to_bytes(), "m") == plain


def test_a_label_that_is_no_unicode_survives() -> None:
    odd = replace(MANIFEST, labels={"image/class/label": ("caf\udce9", "\x1b", "\u2028")})
    assert parse_manifest(odd.to_bytes(), "m") == odd


def test_an_infinite_error_is_not_written() -> None:
    with pytest.raises(ValueError, match="JSON"):
        replace(MANIFEST, narrowed=(Narrowing("x", "float64", "float32", 1, float("inf"), 0),)).to_bytes()


def _changed(change: Callable[[dict[str, Any]], object]) -> bytes:
    document = json.loads(GOLDEN)
    change(document)
    return json.dumps(document).encode()


def _shard(document: dict[str, Any]) -> dict[str, Any]:
    shard: dict[str, Any] = document["splits"]["train"]["shards"][0]
    return shard


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "line 1 column 1"),
        (b"\xff", "byte 0 is not UTF-8"),
        (b"[]", "the document is not an object"),
        (b"[" * 100_000, "nested too deeply"),
        (GOLDEN[:-40].encode(), "line 20 column 141"),
        (GOLDEN.replace('"files": 25', '"files": NaN').encode(), "NaN is not a JSON number"),
        (GOLDEN.replace('"files": 25', '"files": 1e999').encode(), "1e999 is beyond the largest number of 64 bits"),
        (GOLDEN.replace('"files": 25', '"files": ' + "9" * 5000).encode(), "digits"),
        (GOLDEN.replace('"files": 25', '"files": 25, "files": 26').encode(), "files appears twice"),
        (_changed(lambda d: d.update(format="other")), "not a manifest of Shardmill"),
        (_changed(lambda d: d.update(format_version=2)), 'format_version is "2", not 1: convert again; or remove'),
        (_changed(lambda d: d.update(format_version=True)), 'format_version is "True", not 1: convert again; or'),
        (_changed(lambda d: d.update(extra=1)), "extra is not known"),
        (_changed(lambda d: d["run"].update(extra=1)), "run.extra is not known"),
        (_changed(lambda d: _shard(d).update(extra=1)), "shards[0].extra is not known"),
        (_changed(lambda d: d["schema"][0].update(extra=1)), "schema[0].extra is not known"),
        (_changed(lambda d: d.pop("counts")), "counts is missing"),
        (_changed(lambda d: d.pop("end")), "end is missing"),
        (_changed(lambda d: d.update(end=False)), 'end is "False", not true'),
        (_changed(lambda d: d.update(generation=True)), 'generation is "True", not an integer from 1'),
        (_changed(lambda d: d.update(generation=1 << 63)), "not an integer from 1 to 2**63 - 1"),
        (_changed(lambda d: d.update(order="random")), "not one of task, source"),
        (_changed(lambda d: _shard(d).update(path="../../etc/passwd")), "stays in the folder"),
        (_changed(lambda d: _shard(d).update(path="/etc/passwd")), "stays in the folder"),
        (_changed(lambda d: _shard(d).update(path="s3://bucket/a")), "stays in the folder"),
        (_changed(lambda d: _shard(d).update(path="train-00001.tfrecord")), "appears twice"),
        (_changed(lambda d: _shard(d).update(crc32c="9A71C4D0")), "crc32c"),
        (_changed(lambda d: _shard(d).update(records=0)), "records"),
        (_changed(lambda d: _shard(d).update(bytes=65013)), "not the sum over its shards"),
        (_changed(lambda d: _shard(d).update(generation=2)), "later generation"),
        (_changed(lambda d: d["splits"].update({"..": d["splits"].pop("val")})), '".." cannot name a split'),
        (_changed(lambda d: d["sidecars"].append("../x")), "not the name of a sidecar"),
        (_changed(lambda d: d["sidecars"].append("../x.labels.txt")), "not the name of a sidecar"),
        (_changed(lambda d: d["run"].update(staging="/tmp")), "stays in the folder"),
        (_changed(lambda d: d["run"].update(staging="photos")), "not a path like .staging/5f0c9b1e2a7d4c88"),
        (_changed(lambda d: d["run"].update(staging=".staging")), "not a path like .staging/"),
        (_changed(lambda d: d["sidecars"].append("manifests/00000002.json")), "not the name of a sidecar"),
        (_changed(lambda d: d["sidecars"].append("notes.txt")), "not the name of a sidecar"),
        (_changed(lambda d: _shard(d).update(path="manifest.json")), "not a path like train-00000.tfrecord"),
        (_changed(lambda d: _shard(d).update(path="sub/a.tfrecord")), "not a path like train-00000.tfrecord"),
        (_changed(lambda d: d["rejects"].update(path="sources/00000001.jsonl")), "not a path like rejects/"),
        (_changed(lambda d: d["source"].update(list="train-00000.tfrecord")), "not a path like sources/"),
        (_changed(lambda d: d["schema"][0].update(type="pickle")), "not one of string, binary"),
        (_changed(lambda d: d["schema"][1].update(type="string")), "not one of bool"),
        (_changed(lambda d: d["schema"][0].update(dtype="|O8")), "dtype"),
        (_changed(lambda d: d["schema"][0].update(rank=65)), 'rank is "65", not an integer from 0 to 64'),
        (_changed(lambda d: d["schema"][0].update(name="\ud800")), "not Unicode text"),
        (_changed(lambda d: d["schema"][0].update(shape=[1 << 20, 1 << 20])), "shape is [1048576, 1048576]"),
        (_changed(lambda d: d["schema"][0].update(shape=[2, -1])), "shape is [2, -1]"),
        (_changed(lambda d: d["schema"][2].update(unit="weeks")), "not one of s, ms, us, ns"),
        (_changed(lambda d: d["schema"][0].update(shape=["2"])), 'schema[0].shape[0] is "2", not an integer from -1'),
        (_changed(lambda d: d["source"]["skipped"].update(junk=-1)), 'source.skipped.junk is "-1", not an integer'),
        (_changed(lambda d: d["labels"].update(x=["a", 1])), 'labels.x[1] is "1", not a string'),
        (_changed(lambda d: d["narrowed"][0].update(max_relative_error=10**400)), "not a number of 64 bits"),
        (_changed(lambda d: d["counts"].update(read=26)), "read is not written + rejected + dropped"),
        (_changed(lambda d: d["rejects"].update(records=2)), "rejects disagrees"),
        (_changed(lambda d: d.update(name="\ud800")), "name is"),
        (_changed(lambda d: d.update(version="latest")), "version is"),
        (_changed(lambda d: d.update(shard_name="\ud800-{split}-{index}")), "cannot name files"),
        (_changed(lambda d: d.update(shard_name="{split}")), "gives shards the same name"),
        (_changed(lambda d: d["schema"].reverse()), "not sorted by name"),
        (_changed(lambda d: d["schema"].pop()), "schema_fingerprint is not that of schema"),
        (_changed(lambda d: d.update(schema=None)), "schema and schema_fingerprint disagree"),
    ],
)
def test_a_document_that_we_could_not_have_written_is_refused(data: bytes, problem: str) -> None:
    with pytest.raises(DamageError) as caught:
        parse_manifest(data, "out/manifest.json")
    assert str(caught.value).startswith("out/manifest.json: ")
    assert problem in str(caught.value)


def test_a_document_over_the_size_cap_is_refused_unparsed() -> None:
    with pytest.raises(DamageError, match="more than 100"):
        parse_manifest(GOLDEN.encode(), "m", limits=ManifestLimits(bytes=100))


@given(st.integers(0, len(GOLDEN.encode()) - 1), st.integers(0, 255))
def test_no_changed_byte_gives_anything_but_a_manifest_or_damage(position: int, value: int) -> None:
    data = bytearray(GOLDEN.encode())
    data[position] = value
    try:
        parse_manifest(bytes(data), "m")
    except DamageError:
        pass
    else:
        assert json.loads(bytes(data))["end"] is True
