"""Lists of shards that are taken out of a manifest by a pattern say what the parser would say of them, or stay in."""

from __future__ import annotations

import json
import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shardmill.transforms.errors import DamageError
from shardmill.transforms.format.manifest import parser as manifest_parser
from shardmill.transforms.format.manifest.manifest import Manifest, ShardLists, take_shard_lists
from shardmill.transforms.format.manifest.parser import parse_manifest

from .test_manifest import GOLDEN, MANIFEST


def told(document: str) -> Manifest | str:
    try:
        return parse_manifest(document.encode(), "m")
    except DamageError as error:
        return str(error)


def told_by_the_parser_alone(document: str, monkeypatch: pytest.MonkeyPatch) -> Manifest | str:
    with monkeypatch.context() as patch:
        patch.setattr(manifest_parser, "take_shard_lists", ShardLists)
        return told(document)


def test_a_canonical_document_is_parsed_without_its_shards() -> None:
    found = take_shard_lists(GOLDEN.encode())
    assert [len(shards) for shards in found.lists.values()] == [2, 1]
    assert b".tfrecord" not in found.document
    assert parse_manifest(GOLDEN.encode(), "m") == MANIFEST


A_LIST = """"shards": [
  {"path": "a.tfrecord", "generation": 1, "records": 9, "bytes": 65012, "crc32c": "9a71c4d0"}]"""

CHANGES = [
    ('"records": 9, ', '"records": 09, '),
    ('"records": 9, ', '"records": 0, '),
    ('"records": 9, ', '"records": 9223372036854775808, '),
    ('"records": 9, ', '"records": 9.0, '),
    ('"9a71c4d0"', '"9A71c4d0"'),
    ('"train-00000.tfrecord"', '"../train-00000.tfrecord"'),
    ('"train-00000.tfrecord"', '"train-00001.tfrecord"'),
    ('"crc32c": "9a71c4d0"},', '"crc32c": "9a71c4d0"}'),
    ('"crc32c": "9a71c4d0"}', '"crc32c": "9a71c4d0", "x": 1}'),
    ('"crc32c": "03be5512"}]', '"crc32c": "03be5512"},]'),
    ('"generation": 1, "records": 9', '"generation": 2, "records": 9'),
    ('\n  {"path": "train-00000', ' {"path": "train-00000'),
    ('"end": true}', '"end": true'),
    ('"end": true}', '"end": true, ' + A_LIST + "}"),
    ('"labels": {', '"labels": {' + A_LIST + ", "),
    ('"name": "pets"', '"name": "pets ' + A_LIST + '"'),
    ('"shards": [', '"shards": [], "shards": ['),
]


@pytest.mark.parametrize(("old", "new"), CHANGES, ids=range(len(CHANGES)))
def test_whatever_is_wrong_is_told_as_by_the_parser_alone(old: str, new: str, monkeypatch: pytest.MonkeyPatch) -> None:
    changed = GOLDEN.replace(old, new, 1)
    assert changed != GOLDEN
    assert told(changed) == told_by_the_parser_alone(changed, monkeypatch)


@given(st.randoms(use_true_random=False))
def test_mutated_documents_are_told_as_by_the_parser_alone(chance: random.Random) -> None:
    text = GOLDEN
    for _ in range(chance.randint(1, 3)):
        at = chance.randrange(len(text))
        piece = chance.choice(["", '"', "\\", "]", "[", ",", "{", "0", "\n", '"shards": [', GOLDEN[at : at + 120]])
        text = text[:at] + piece + text[at + chance.choice([0, 1, 40]) :]
    with pytest.MonkeyPatch.context() as patch:
        assert told(text) == told_by_the_parser_alone(text, patch)


def test_a_document_of_another_form_is_parsed_as_a_whole() -> None:
    loose = json.dumps(json.loads(GOLDEN), indent=1)
    assert not take_shard_lists(loose.encode()).lists
    assert parse_manifest(loose.encode(), "m") == MANIFEST


def test_no_document_can_name_a_list_itself() -> None:
    found = take_shard_lists(GOLDEN.encode())
    mark = next(iter(found.lists)).encode()
    again = take_shard_lists(GOLDEN.encode())
    assert mark not in again.document
    forged = re.sub(r'"shards": \[.*?\]', f'"shards": ["{mark.decode()}"]', GOLDEN, count=1, flags=re.DOTALL)
    assert told(forged) == "m: splits.train.shards[0] is not an object"
