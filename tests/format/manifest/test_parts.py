"""Manifests of many shards, in parts: here of two or three shards each, but for the one that has the real number."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shardmill.transforms.errors import DamageError
from shardmill.transforms.format.manifest import manifest as manifest_parts
from shardmill.transforms.format.manifest.manifest import (
    LIMITS,
    Manifest,
    ManifestLimits,
    ShardEntry,
    SplitEntry,
    parse_part,
)
from shardmill.transforms.format.manifest.parser import parse_manifest

from .test_manifest import MANIFEST

FIRST = "manifests/shards-b57e4ebc65741092f701044586dc9113.json"
SECOND = "manifests/shards-db54a6e111b16dcfa1581b36875fee02.json"
SPLITS = """\
 "splits": {"train": {"records": 15, "bytes": 5010, "unit_bytes": 9, "records_digest": "sum128:000000000000000000000000000000ff", "parts": [
  {"path": "FIRST", "shards": 2, "records": 3, "bytes": 2001},
  {"path": "SECOND", "shards": 2, "records": 7, "bytes": 2005}], "shards": [
  {"path": "train-00004.tfrecord", "generation": 1, "records": 5, "bytes": 1004, "crc32c": "00000004"}]},
"""  # noqa: E501
PART = """\
{"format": "shardmill.shards", "format_version": 1, "shards": [
  {"path": "train-00000.tfrecord", "generation": 1, "records": 1, "bytes": 1000, "crc32c": "00000000"},
  {"path": "train-00001.tfrecord", "generation": 1, "records": 2, "bytes": 1001, "crc32c": "00000001"}], "end": true}
"""
LINE = PART.splitlines(keepends=True)[1].replace("train", "val")


@pytest.fixture
def by_two(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifest_parts, "PART_SHARDS", 2)


def split_of(name: str, count: int) -> SplitEntry:
    shards = tuple(ShardEntry(f"{name}-{i:05d}.tfrecord", 1, i + 1, 1000 + i, f"{i:08x}") for i in range(count))
    records, size = sum(shard.records for shard in shards), sum(shard.bytes for shard in shards)
    return SplitEntry(records, size, 9, "sum128:" + "0" * 30 + "ff", shards)


def manifest_of(**counts: int) -> Manifest:
    return replace(MANIFEST, splits={name: split_of(name, count) for name, count in counts.items()})


def read(main: bytes, parts: dict[str, bytes], limits: ManifestLimits = LIMITS) -> Manifest:
    def read_part(path: str) -> tuple[ShardEntry, ...]:
        if path not in parts:
            raise DamageError(f"out/{path}: missing")
        return parse_part(parts[path], path, f"out/{path}", most_bytes=limits.part_bytes)

    return parse_manifest(main, "out/m", read_part, limits)


def told(main: bytes, parts: dict[str, bytes], limits: ManifestLimits = LIMITS) -> str:
    with pytest.raises(DamageError) as caught:
        read(main, parts, limits)
    return str(caught.value)


@pytest.mark.usefixtures("by_two")
def test_full_runs_of_shards_stand_in_documents_named_by_their_bytes_and_the_rest_in_the_manifest() -> None:
    main, parts = manifest_of(train=5, val=1).to_documents()
    assert list(parts) == [FIRST, SECOND]
    assert parts[FIRST].decode() == PART
    assert f"manifests/shards-{hashlib.sha256(PART.encode()).hexdigest()[:32]}.json" == FIRST
    assert SPLITS.replace("FIRST", FIRST).replace("SECOND", SECOND).rstrip() in main.decode()
    assert json.loads(parts[SECOND])["shards"][0]["path"] == "train-00002.tfrecord"
    assert read(main, parts) == manifest_of(train=5, val=1)
    assert manifest_of(train=5, val=1).to_bytes() == main


@pytest.mark.usefixtures("by_two")
def test_parts_hold_the_names_of_other_writers_too() -> None:
    names = ("mnist-train.tfrecord-00000-of-00002", "data_tfrecord-00001-of-00002.gz", "a.tfrec", "b.record.gz")
    split = split_of("train", 4)
    shards = tuple(replace(shard, path=name) for shard, name in zip(split.shards, names, strict=True))
    manifest = replace(MANIFEST, splits={"train": replace(split, shards=shards)})
    assert read(*manifest.to_documents()) == manifest


def test_ten_thousand_shards_are_the_first_part_and_one_less_are_none() -> None:
    assert manifest_of(train=9_999).to_documents()[1] == {}
    main, parts = manifest_of(train=10_000).to_documents()
    assert [data.count(b"\n") for data in parts.values()] == [10_001]
    assert b'"bytes": 59995000}], "shards": []}},\n' in main
    assert read(main, parts) == manifest_of(train=10_000)


@given(st.integers(1, 5), st.dictionaries(st.sampled_from(["a", "b", "c"]), st.integers(1, 12)), st.integers(0, 7))
def test_whatever_is_written_in_parts_is_read_back_and_an_append_shares_them(
    size: int, counts: dict[str, int], more: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(manifest_parts, "PART_SHARDS", size)
        main, parts = manifest_of(**counts).to_documents()
        assert read(main, parts) == manifest_of(**counts)
        assert len(parts) == sum(count // size for count in counts.values())
        grown = manifest_of(**{name: count + more for name, count in counts.items()}).to_documents()[1]
        assert parts.items() <= grown.items()


def changed(change: Callable[[dict[str, Any]], object]) -> bytes:
    document = json.loads(manifest_of(train=5, val=1).to_documents()[0])
    change(document["splits"]["train"])
    return json.dumps(document).encode()


@pytest.mark.usefixtures("by_two")
@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda s: s.update(parts=[]), "splits.train.parts is empty"),
        (lambda s: s.update(parts={}), 'splits.train.parts is "{}", not a list'),
        (lambda s: s.update(parts=None), 'splits.train.parts is "None", not a list'),
        (lambda s: s["parts"][0].update(x=1), "splits.train.parts[0].x is not known"),
        (lambda s: s["parts"][0].pop("bytes"), "splits.train.parts[0].bytes is missing"),
        (lambda s: s["parts"].append(s["parts"][0]), f"splits.train.parts[2]: {FIRST} appears twice"),
        (
            lambda s: s["parts"][0].update(records=4),
            f"splits.train.parts[0]: its shards, records or bytes are not those of {FIRST}",
        ),
        (
            lambda s: s["parts"][1].update(shards=3),
            f"splits.train.parts[1]: its shards, records or bytes are not those of {SECOND}",
        ),
        (lambda s: s["parts"].pop(), "splits.train: its records or bytes are not the sum over its shards"),
        (
            lambda s: s["shards"][0].update(path="train-00001.tfrecord"),
            "splits.train: train-00001.tfrecord appears twice, or is of a later generation",
        ),
        (
            lambda s: s["parts"][0].update(path="manifests/00000001.json"),
            'splits.train.parts[0].path is "manifests/00000001.json", not a path like '
            "manifests/shards-00000000000000000000000000000000.json",
        ),
        (
            lambda s: s["parts"][0].update(path="manifests/../../x"),
            'splits.train.parts[0].path is "manifests/../../x", not a relative path of letters, digits and ._=/- that '
            "stays in the folder",
        ),
    ],
)
def test_a_document_that_disagrees_with_its_parts_is_refused(
    change: Callable[[dict[str, Any]], object], problem: str
) -> None:
    parts = manifest_of(train=5, val=1).to_documents()[1]
    assert told(changed(change), parts) == f"out/m: {problem}"


@pytest.mark.usefixtures("by_two")
def test_a_part_that_is_missing_damaged_or_too_large_is_told_by_its_own_name() -> None:
    main, parts = manifest_of(train=5, val=1).to_documents()
    assert told(main, {FIRST: parts[FIRST]}) == f"out/{SECOND}: missing"
    damaged = f"out/{FIRST}: damaged: its bytes are not those that it is named by"
    for data in (b"", PART[:-1].encode(), PART.replace("1000,", "1010,").encode(), parts[SECOND]):
        assert told(main, parts | {FIRST: data}) == damaged
    assert told(main, parts, ManifestLimits(part_bytes=100)) == f"out/{FIRST}: over 100 bytes"
    with pytest.raises(DamageError, match=r"^manifests/shards-[0-9a-f]{32}\.json: missing$"):
        parse_manifest(main, "out/m")


@pytest.mark.usefixtures("by_two")
@pytest.mark.parametrize(
    "text",
    [
        json.dumps(json.loads(PART)) + "\n",
        PART.rstrip("\n"),
        PART + "\n",
        PART.replace("shardmill.shards", "shardmill.others"),
        PART.replace('"format_version": 1', '"format_version": 2'),
        PART.replace(', "end": true', ""),
        PART.replace('"generation": 1', '"generation": 0'),
        PART.replace("train-00000", "../rain-00000"),
        PART.replace("[\n", f"[\n{LINE}", 1),
        PART[: PART.index(",\n")] + '], "end": true}\n',
        '{"format": "shardmill.shards", "format_version": 1, "shards": [], "end": true}\n',
        "",
    ],
)  # fmt: skip
def test_a_part_of_any_other_form_is_refused_though_it_bears_the_name_of_its_bytes(text: str) -> None:
    path = f"manifests/shards-{hashlib.sha256(text.encode()).hexdigest()[:32]}.json"
    main = changed(lambda split: split["parts"][0].update(path=path))
    problem = f"out/{path}: no list of 2 shards in the canonical form"
    assert told(main, {**manifest_of(train=5).to_documents()[1], path: text.encode()}) == problem


@pytest.mark.usefixtures("by_two")
def test_no_document_names_more_parts_than_memory_has_room_for() -> None:
    main, parts = manifest_of(train=4, val=3).to_documents()
    assert read(main, parts, ManifestLimits(parts=3)) == manifest_of(train=4, val=3)
    assert told(main, parts, ManifestLimits(parts=2)) == "out/m: splits.val.parts[0]: there are more than 2 parts"


@pytest.mark.usefixtures("by_two")
def test_a_long_list_that_stands_in_the_manifest_itself_is_read_and_is_not_the_canonical_form() -> None:
    manifest = manifest_of(train=5)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(manifest_parts, "PART_SHARDS", 10)
        whole = manifest.to_bytes()
    assert read(whole, {}) == manifest
    assert whole != manifest.to_bytes()


@pytest.mark.usefixtures("by_two")
@given(st.sampled_from(["main", "first", "second"]), st.integers(0, 1 << 16), st.integers(0, 255))
def test_no_changed_byte_gives_another_list_of_shards(which: str, position: int, value: int) -> None:
    main, parts = manifest_of(train=5).to_documents()
    documents = {"main": main, "first": parts[FIRST], "second": parts[SECOND]}
    data = bytearray(documents[which])
    data[position % len(data)] = value
    documents[which] = bytes(data)
    try:
        found = read(documents["main"], {FIRST: documents["first"], SECOND: documents["second"]})
    except DamageError:
        return
    assert which == "main" or found == manifest_of(train=5)
    assert found.splits.get("train", split_of("train", 5)).shards[:4] == split_of("train", 4).shards
