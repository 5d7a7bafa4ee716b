"""Manifests, the schemas in them, configs."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import random
from typing import Any

from mutate import EXTREMES, mutate
from shardmill.pipelines.config.errors import read_document, read_scalar
from shardmill.pipelines.config.load import load_config
from shardmill.pipelines.outcomes.summary import Summary
from shardmill.pipelines.screens.summary_screen import Screen
from shardmill.transforms.dataset.rows.numpy_columns import ArrayReader
from shardmill.transforms.errors import ConfigError, DamageError
from shardmill.transforms.format.examples.decode_examples import ExampleDecoder
from shardmill.transforms.format.manifest.parser import parse_manifest
from shardmill.transforms.format.schema.schema import Feature, Schema
from shardmill.transforms.format.sidecars.sidecar_files import sidecar_files
from targets import Target, ours
from targets_records import PAYLOADS, SCHEMA

HEX = "0123456789abcdef"


def document(schema: Schema | None) -> dict[str, Any]:
    return {
        "format": "shardmill.manifest",
        "format_version": 1,
        "generation": 2,
        "parent": 1,
        "operation": "append",
        "name": "pets",
        "version": "1.1.0",
        "order": "task",
        "compression": "none",
        "shard_size": 65536,
        "shard_name": "{split}-{index:05d}",
        "config_fingerprint": "sha256:" + "1" * 64,
        "schema_fingerprint": schema and schema.fingerprint(),
        "source": {
            "format": "csv",
            "files": 2,
            "bytes": 99,
            "list": "sources/00000002.jsonl",
            "skipped": {"hidden": 1},
        },
        "counts": {"read": 17, "written": 16, "rejected": 1, "dropped": 0},
        "rejects": {"path": "rejects/00000002.jsonl", "records": 1, "by_code": {"BAD_TYPE": 1}},
        "schema": schema and schema.to_json(),
        "labels": {"kind": ["cat", "dög"]},
        "narrowed": [
            {
                "name": "p",
                "from": "float64",
                "to": "float32",
                "values": 2,
                "max_relative_error": 1e-8,
                "underflows": 0,
                "integers_changed": None,
            }
        ],
        "splits": {
            "train": {
                "records": 16,
                "bytes": 160,
                "unit_bytes": 256,
                "records_digest": "sum128:" + "0" * 32,
                "shards": [
                    {
                        "path": f"train-0000{i}.tfrecord",
                        "generation": i + 1,
                        "records": 8,
                        "bytes": 80,
                        "crc32c": "9a71c4d0",
                    }
                    for i in range(2)
                ],
            }
        },
        "sidecars": ["dataset_info.json", "features.json", "index/train-00000.idx", "kind.labels.txt", "schema.pbtxt"],
        "run": {
            "created": "2026-01-31T12:00:00Z",
            "run_id": HEX,
            "commit_id": "id",
            "staging": f".staging/{HEX}",
            "source_fingerprint": "sha256:" + "2" * 64,
            "runner": "local",
            "tool": {"shardmill": "0.1.0"},
        },
        "end": True,
    }


LABELLED = Schema((*SCHEMA.features, Feature("x/kind", "int64", "label", labels="kind.labels.txt")))
ARRAYS = Schema(
    (
        Feature("e/data", "bytes", "array_data", dtype="<f4", rank=2),
        Feature("e/shape", "int64", "array_shape", (2,)),
        Feature("image/encoded", "bytes", "image"),
        Feature("image/format", "bytes", "string"),
    )
)
DOCUMENTS = [document(SCHEMA), document(LABELLED), document(ARRAYS), document(None)]
TEXTS = [json.dumps(entry, ensure_ascii=False).encode() for entry in DOCUMENTS]
VALUES: list[Any] = [
    *EXTREMES,
    -1,
    -(2**63),
    1e308,
    float("nan"),
    float("inf"),
    True,
    None,
    "",
    "\x1b[2J\u202e",
    "\ud800",
    "../x",
    "/etc/passwd",
    "a" * 300,
    [],
    {},
    [[]],
    {"": ""},
    "train",
    "float64",
    "array_data",
    "ns",
    "<f8",
    "|O",
    "NUL\0",
    [2**40, 2**40],
    [-1],
    [0, 2**31],
    "s3://user:pw@h/x?sig=1",
    "Mars/Phobos",
    ".staging",
    "manifest.json",
]
TOKENS = [
    b'"end": true',
    b"[[[[[[",
    b'{"a":',
    b"NaN",
    b"\\ud800",
    b"1e999",
    b'"',
    b"\\",
    b"9" * 5000,
    b"\xf0\x9f\x92\xa9",
]


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    keys: Any = value.keys() if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    return [path, *(place for key in keys for place in _places(value[key], (*path, key)))]


def _change(rng: random.Random, root: dict[str, Any]) -> None:
    path = rng.choice([place for place in _places(root) if place])
    holder: Any = root
    for key in path[:-1]:
        holder = holder[key]
    what = rng.random()
    if what < 0.7:
        holder[path[-1]] = rng.choice(VALUES)
    elif what < 0.85:
        del holder[path[-1]]
    elif isinstance(holder, dict):
        holder[rng.choice(["", "unit", "x", "rank", "dtype", "\x1b[1m"])] = holder[path[-1]]
    else:
        holder.append(holder[path[-1]])


def changed(rng: random.Random, first: tuple[Any, ...] = ()) -> bytes:
    root: dict[str, Any] = json.loads(rng.choice(TEXTS))
    for _ in range(rng.choice((1, 1, 2, 3))):
        _change(rng, {"schema": root["schema"]} if first and root.get("schema") else root)
    if rng.random() < 0.9 and isinstance(root.get("schema"), list):
        text = json.dumps(root["schema"], ensure_ascii=True, separators=(",", ":"))
        root["schema_fingerprint"] = "sha256:" + hashlib.sha256(text.encode()).hexdigest()
    return json.dumps(root, ensure_ascii=rng.random() < 0.5).encode("utf-8", "surrogatepass")


def make_manifest(rng: random.Random) -> bytes:
    return changed(rng) if rng.random() < 0.5 else bytes(mutate(rng, TEXTS, TOKENS))


def make_schema(rng: random.Random) -> bytes:
    return changed(rng, ("schema",))


def check_manifest(data: bytes) -> str:
    try:
        manifest = parse_manifest(data, "m")
    except DamageError as error:
        assert len(str(error)) < 2000
        return ours(error)
    assert parse_manifest(manifest.to_bytes(), "m") == manifest
    sidecar_files(manifest, {"tfds", "tfx"}, None)
    sidecar_files(manifest, {"tfds", "tfx"}, {"png"})
    out, err = io.StringIO(), io.StringIO()
    Screen(stdout=out, stderr=err).summary(Summary("out", manifest, 1.0, first_rejects=()))
    shown = out.getvalue() + err.getvalue()
    assert shown.replace("\n", "").isprintable(), ascii(shown)
    if manifest.schema is not None:
        decoder = ExampleDecoder(manifest.schema)
        for first in range(0, len(PAYLOADS), decoder.rows_at_once):
            found = decoder.try_decode(PAYLOADS[first : first + decoder.rows_at_once])
            found.batch.validate(full=True)
        ArrayReader.plan(manifest.schema, None, {}, {})
    return "manifest"


CONFIGS = [
    b"version: 1\ninput: {format: csv, paths: [a/*.csv], delimiter: ',', null_values: ['']}\noutput: {path: out}\n",
    b"input:\n  paths: [x.parquet]\n  columns: &c [a, b]\nschema:\n  columns:\n    a: {type: int}\n    'b': {<<: *c}\n",
    b"a0: &a0 [x, x, x]\na1: &a1 [*a0, *a0]\na2: [*a1, *a1]\nsplit: {fractions: {train: 0.9, val: 0.1}, key: id}\n",
    b"limits: {pixels: 0x10, field_bytes: 1_000, record_bytes: 1:30}\nshuffle: {seed: 7}\n? [a]\n: 1\n",
]
YAML = [
    b"!!python/object/apply:os.system ['x']",
    b"&a [*a]",
    b"<<: *c",
    b"- ",
    b"? ",
    b"!!binary aGk=",
    b"!!timestamp x",
    b"|\n",
    b"---\n",
    b"%TAG ! x\n",
    b"{" * 60,
    b"0x",
    b"1e999",
    b".nan",
    b"\xef\xbb\xbf",
    b"\t",
    b"!!int x",
    b"!!float -",
]


def make_config(rng: random.Random) -> bytes:
    return bytes(mutate(rng, CONFIGS, YAML))


def check_config(data: bytes) -> str:
    text = data.decode("utf-8", "replace")
    document = read_document(text, "c.yaml")
    for problem in document.problems:
        assert len(str(problem)) < 20_000
    with contextlib.suppress(ValueError):
        read_scalar(text[:200])
    if not document.readable:
        return "no YAML"
    try:
        load_config(document.values)
    except ConfigError as error:
        assert len(str(error)) < 100_000
        return "ConfigError"
    return "config"


TARGETS = {
    "manifest": Target(make_manifest, check_manifest),
    "schema": Target(make_schema, check_manifest),
    "config": Target(make_config, check_config),
}
