"""One small dataset as literals: whoever changes a byte of it changes the format that users rely on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from shardmill.pipelines import convert

pytestmark = pytest.mark.engine

SOURCE = 'id,price,name\n1,0.5,"Ann, B"\n-2,,\n3,x,é\n'

SHARD = b"".join(
    [
        b"6\0\0\0\0\0\0\0OW\x8c\xef",  # 54 bytes, and the masked CRC of that length
        b"\x0a\x34",  # Example.features: keys sorted
        b"\x0a\x0b\x0a\x02id\x12\x05\x1a\x03\x0a\x01\x01",
        b"\x0a\x12\x0a\x04name\x12\x0a\x0a\x08\x0a\x06Ann, B",
        b"\x0a\x11\x0a\x05price\x12\x08\x12\x06\x0a\x04\0\0\0?",
        b"\xaa\x0bx8",  # the masked CRC of the record
        b'\x18\0\0\0\0\0\0\0\xa3\x7fK"',
        b"\x0a\x16",  # nulls: keys absent
        b"\x0a\x14\x0a\x02id\x12\x0e\x1a\x0c\x0a\x0a\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01",  # -2: ten bytes
        b"b\x85$d",
    ]
)

MANIFEST = """\
{"format": "shardmill.manifest", "format_version": 1, "generation": 1, "parent": null, "operation": "create",
 "name": "golden", "version": "1.0.0", "order": "task", "compression": "none", "shard_size": 134217728, \
"shard_name": "{split}-{index:05d}",
 "config_fingerprint": "sha256:ea416ff85c713f7cd4ecfbe283ac1f7349279d5d89b070ade6b1736a7c42d65e", \
"schema_fingerprint": "sha256:f40f6e48532a98813569f7e598c981ca0d5843350ddb45d653b953b60c38a640",
 "source": {"format": "csv", "files": 1, "bytes": 41, "list": "sources/00000001.jsonl", "skipped": {}},
 "counts": {"read": 3, "written": 2, "rejected": 1, "dropped": 0},
 "rejects": {"path": "rejects/00000001.jsonl", "records": 1, "by_code": {"BAD_TYPE": 1}},
 "schema": [
  {"name": "id", "kind": "int64", "type": "int64", "shape": [], "nullable": false},
  {"name": "name", "kind": "bytes", "type": "string", "shape": [], "nullable": true},
  {"name": "price", "kind": "float", "type": "float32", "shape": [], "nullable": true}],
 "labels": {},
 "narrowed": [],
 "conversion": {"input": {"format": "csv", "delimiter": ","}, "schema": {"columns": {"price": {"type": "float32"}}}},
 "splits": {"train": {"records": 2, "bytes": 110, "unit_bytes": 524288, \
"records_digest": "sum128:779e464fa03080920d03cb3f4988e63c", "shards": [
  {"path": "train-00000.tfrecord", "generation": 1, "records": 2, "bytes": 110, "crc32c": "94570a71"}]}},
 "sidecars": ["dataset_info.json", "features.json", "schema.pbtxt"],
"""

REJECTS = (
    '{"source": "a.csv", "split": null, "row": 3, "line": 3, "offset": 34, "errors": [{"column": "price", '
    '"code": "BAD_TYPE", "value": "x", "expected": "float", "message": "\\"x\\" is not a float; fix the cell, '
    'or declare it: --set schema.columns.price.type=string"}]}\n'
)


WITH_STATISTICS = (
    ('"features.json", ', '"features.json", "index/train-00000.offsets", '),
    ('"schema.pbtxt"]', '"schema.pbtxt", "stats.json", "stats.tfdv"]'),
)
INDEX = b"\0\0\0\0\0\0\0\0F\0\0\0\0\0\0\0n\0\0\0\0\0\0\0"  # 0, 70, 110


@pytest.fixture
def dataset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text(SOURCE)
    convert(
        {
            "name": "golden",
            "input": {"paths": ["a.csv"]},
            "schema": {"columns": {"price": {"type": "float32"}}},
            "output": {"path": "out"},
            "max_rejects": 1,
        }
    )
    return tmp_path / "out"


def test_the_bytes_of_a_shard_are_frozen(dataset: Path) -> None:
    assert (dataset / "train-00000.tfrecord").read_bytes() == SHARD


def test_the_text_of_a_manifest_is_frozen_up_to_its_run(dataset: Path) -> None:
    text = (dataset / "manifests/00000001.json").read_text()
    expected = MANIFEST
    for before, now in WITH_STATISTICS:
        expected = expected.replace(before, now)
    assert text.split(' "run": ')[0] == expected
    assert (dataset / "index/train-00000.offsets").read_bytes() == INDEX
    assert (dataset / "manifest.json").read_text() == text
    assert list(json.loads(text))[-2:] == ["run", "end"]


def test_without_an_index_and_statistics_the_text_names_neither(dataset: Path) -> None:
    config = {
        "name": "golden",
        "input": {"paths": ["a.csv"]},
        "schema": {"columns": {"price": {"type": "float32"}}},
        "output": {"path": "plain", "index": "none"},
        "stats": False,
        "max_rejects": 1,
    }
    convert(config)
    text = Path("plain/manifest.json").read_text().split(' "run": ')[0]
    fingerprint = json.loads((dataset / "manifest.json").read_text())["config_fingerprint"]
    assert json.loads(text + '"end": true}')["config_fingerprint"] != fingerprint
    said = '"price": {"type": "float32"}}}'
    expected = MANIFEST.replace(f"{said}}}", f'{said}, "output": {{"index": "none"}}, "stats": "none"}}')
    assert text.replace(json.loads(text + '"end": true}')["config_fingerprint"], fingerprint) == expected


def test_the_lines_of_sources_and_rejects_are_frozen(dataset: Path) -> None:
    assert (dataset / "rejects/00000001.jsonl").read_text() == REJECTS
    assert (dataset / "sources/00000001.jsonl").read_text() == (
        '{"source": "a.csv", "bytes": 41, '
        '"fingerprint": "sha256:370f0e6e702a05ee276ba3988d33ee6746e3ad9e79a23ee7ecedd764de7a4c9c", "files": 1, '
        '"read": 3, "written": 2, "rejected": 1, "dropped": 0}\n'
    )
