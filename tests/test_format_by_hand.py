"""A dataset is read, written and appended to with what docs/format.md says, and nothing of Shardmill.

by hand ──writes──▶ generations 1, 2 ──read, verified, appended to by──▶ Shardmill ──generation 3──▶ read by hand
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import struct
import subprocess
import uuid
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from shardmill.pipelines import append, open_dataset
from shardmill.transforms.dataset.integrity.garbage import collect_garbage
from shardmill.transforms.dataset.integrity.verify import verify_dataset
from shardmill.transforms.format.manifest import manifest as manifest_parts

LOW = (1 << 64) - 1
SHARD_SIZE = 65536
SCHEMA = [
    {"name": "id", "kind": "int64", "type": "int64", "shape": [], "nullable": False},
    {"name": "name", "kind": "bytes", "type": "string", "shape": [], "nullable": True},
]


def _table() -> list[int]:
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ 0x82F63B78 * (byte & 1)
        table.append(byte)
    return table


TABLE = _table()


def crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc = TABLE[(crc ^ byte) & 255] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def masked(data: bytes) -> bytes:
    crc = crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def frame(payload: bytes) -> bytes:
    length = struct.pack("<Q", len(payload))
    return length + masked(length) + payload + masked(payload)


def digest(payload: bytes) -> int:
    def mix(x: int) -> int:
        x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & LOW
        x = (x ^ x >> 27) * 0x94D049BB133111EB & LOW
        return x ^ x >> 31

    seed = len(payload) << 32 | crc32c(payload)
    return mix(seed + 0x9E3779B97F4A7C15 & LOW) << 64 | mix(seed + 2 * 0x9E3779B97F4A7C15 & LOW)


def sized(tag: bytes, data: bytes) -> bytes:
    assert len(data) < 128
    return tag + bytes([len(data)]) + data


def example(number: int, name: bytes | None) -> bytes:
    """Return the record of a row; `number` is below 128."""
    entries = sized(b"\n", sized(b"\n", b"id") + sized(b"\x12", sized(b"\x1a", sized(b"\n", bytes([number])))))
    if name is not None:
        entries += sized(b"\n", sized(b"\n", b"name") + sized(b"\x12", sized(b"\n", sized(b"\n", name))))
    return sized(b"\n", entries)


def payloads_in(data: bytes) -> list[bytes]:
    """Return the records of a shard, whose checksums are all right."""
    payloads, at = [], 0
    while at < len(data):
        (length,) = struct.unpack_from("<Q", data, at)
        payload = data[at + 12 : at + 12 + length]
        assert data[at : at + 16 + length] == frame(payload)
        payloads.append(payload)
        at += 16 + length
    return payloads


def shards_of(root: Path, part: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the shards of a part of a manifest, which has the digest that it is named by."""
    data = (root / part["path"]).read_bytes()
    assert part["path"] == f"manifests/shards-{hashlib.sha256(data).hexdigest()[:32]}.json"
    document = json.loads(data)
    shards: list[dict[str, Any]] = document.pop("shards")
    assert document == {"format": "shardmill.shards", "format_version": 1, "end": True}
    assert part["shards"] == len(shards)
    assert [part[key] for key in ("records", "bytes")] == [sum(s[key] for s in shards) for key in ("records", "bytes")]
    return shards


def read_latest(root: Path) -> tuple[dict[str, Any], dict[str, list[bytes]]]:
    """Return the manifest of the highest number, and the records of each split."""
    generations = [name for name in os.listdir(root / "manifests") if re.fullmatch(r"[0-9]{8,19}\.json", name)]
    manifest = json.loads((root / "manifests" / max(generations)).read_text())
    splits = {}
    for name, split in manifest["splits"].items():
        payloads = []
        shards = [shard for part in split.get("parts", []) for shard in shards_of(root, part)]
        for shard in [*shards, *split["shards"]]:
            staged = root / manifest["run"]["staging"] / "shards" / shard["path"]
            data = (staged if staged.exists() else root / shard["path"]).read_bytes()
            assert (len(data), f"{crc32c(data):08x}") == (shard["bytes"], shard["crc32c"])
            payloads += payloads_in(data)
        assert len(payloads) == split["records"]
        assert split["records_digest"] == f"sum128:{sum(map(digest, payloads)) % (1 << 128):032x}"
        splits[name] = payloads
    return manifest, splits


def text_of(manifest: dict[str, Any]) -> str:
    """Return a manifest in the canonical form: one shard and one feature a line."""
    nested = {"schema": "\0schema", "splits": "\0splits"}
    details = dict(manifest.get("details", {}))
    if details:
        nested["details"] = "\0details"
    line = json.dumps({**manifest, **nested}, ensure_ascii=False)
    own_line = ("name", "config_fingerprint", "source", "counts", "rejects", "schema", "labels", "narrowed", "details")
    for key in (*own_line, "splits"):
        line = line.replace(f', "{key}": ', f',\n "{key}": ', 1)
    for key in ("sidecars", "run", "source_fingerprint"):
        line = line.replace(f', "{key}": ', f",\n {' ' * (key == 'source_fingerprint')}" + f'"{key}": ', 1)
    schema = "[\n" + ",\n".join(f"  {json.dumps(feature)}" for feature in manifest["schema"]) + "]"
    splits = []
    for name, split in manifest["splits"].items():
        shards = ",\n".join(f"  {json.dumps(shard)}" for shard in split["shards"])
        head = json.dumps({**split, "shards": "\0"})
        splits.append(f'"{name}": ' + head.replace(json.dumps("\0"), f"[\n{shards}]"))
    line = line.replace(json.dumps(nested["schema"]), schema)
    if details:
        columns = "[\n" + ",\n".join(f"  {json.dumps(column)}" for column in details.pop("columns")) + "]"
        line = line.replace(json.dumps(nested["details"]), f'{{"columns": {columns}, {json.dumps(details)[1:]}')
    return line.replace(json.dumps(nested["splits"]), "{" + ",\n  ".join(splits) + "}") + "\n"


def write_generation(
    root: Path, payloads: list[bytes], parent: dict[str, Any] | None, details: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Write one shard and commit it: staged, then the manifest, then published."""
    number = parent["generation"] + 1 if parent else 1
    run, before = f"{number:016x}", parent["splits"]["train"] if parent else None
    path = f"train-{len(before['shards']) if before else 0:05d}.tfrecord"
    data = b"".join(map(frame, payloads))
    staged = root / ".staging" / run / "shards"
    staged.mkdir(parents=True)
    (root / "manifests").mkdir(exist_ok=True)
    (staged / path).write_bytes(data)
    shard = {"path": path, "generation": number, "records": len(payloads), "bytes": len(data)}
    shards = [*(before["shards"] if before else []), {**shard, "crc32c": f"{crc32c(data):08x}"}]
    known = int(before["records_digest"].removeprefix("sum128:"), 16) if before else 0
    rows = {"read": len(payloads), "written": len(payloads), "rejected": 0, "dropped": 0}
    law = hashlib.sha256(json.dumps(SCHEMA, separators=(",", ":")).encode()).hexdigest()
    manifest = {
        "format": "shardmill.manifest", "format_version": 1, "generation": number,
        "parent": parent["generation"] if parent else None, "operation": "append" if parent else "create",
        "name": "byhand", "version": f"1.{number - 1}.0", "order": "source", "compression": "none",
        "shard_size": SHARD_SIZE, "shard_name": "{split}-{index:05d}",
        "config_fingerprint": "sha256:" + "0" * 64, "schema_fingerprint": f"sha256:{law}",
        "source": {"format": "records", "files": 0, "bytes": 0, "list": None, "skipped": {}},
        "counts": rows, "rejects": {"path": None, "records": 0, "by_code": {}}, "schema": SCHEMA, "labels": {},
        "narrowed": [],
        **({"details": details} if details else {}),
        "splits": {"train": {
            "records": sum(entry["records"] for entry in shards), "bytes": sum(entry["bytes"] for entry in shards),
            "unit_bytes": max(SHARD_SIZE // 256, *(len(payload) + 16 for payload in payloads)),
            "records_digest": f"sum128:{(known + sum(map(digest, payloads))) % (1 << 128):032x}", "shards": shards,
        }},
        "sidecars": [],
        "run": {
            "created": "2026-01-31T12:00:00Z", "run_id": run, "commit_id": str(uuid.uuid4()),
            "staging": f".staging/{run}", "source_fingerprint": "sha256:" + "0" * 64, "runner": "hand",
            "tool": {"hand": "1"},
        },
        "end": True,
    }  # fmt: skip
    made = root / f"manifests/.{uuid.uuid4().hex}"
    made.write_text(text_of(manifest))
    os.link(made, root / f"manifests/{number:08d}.json")  # the commit
    made.unlink()
    os.link(staged / path, root / path)
    (root / "manifest.json").write_text(text_of(manifest))
    (staged / path).unlink()
    staged.rmdir()
    staged.parent.rmdir()
    staged.parent.parent.rmdir()
    return manifest


def test_what_is_written_by_hand_is_read_verified_and_appended_to_and_read_by_hand(tmp_path: Path) -> None:
    root = tmp_path / "byhand"
    root.mkdir()
    first = write_generation(root, [example(1, b"Ada"), example(2, None)], None)
    write_generation(root, [example(3, b"Grace")], first)
    assert open_dataset(root).manifest.to_bytes() == (root / "manifest.json").read_bytes(), "it is the canonical form"
    assert (verify_dataset(root).findings, verify_dataset(root).notes) == ((), ())
    rows = [{"id": 1, "name": "Ada"}, {"id": 2, "name": None}, {"id": 3, "name": "Grace"}]
    assert open_dataset(root).to_arrow("train").to_pylist() == rows
    assert open_dataset(root, 1).to_arrow("train").num_rows == 2
    append(data=pd.DataFrame({"id": [4], "name": ["Edsger"]}), output=root)
    manifest, splits = read_latest(root)
    assert (manifest["generation"], manifest["parent"], manifest["operation"]) == (3, 2, "append")
    assert splits["train"][2:] == [example(3, b"Grace"), example(4, b"Edsger")]
    assert (verify_dataset(root).findings, collect_garbage(root, older_than=0).items) == ((), ())


def test_a_dataset_of_version_2_is_written_by_hand_read_and_appended_to(tmp_path: Path) -> None:
    doc = (Path(__file__).parent.parent / "docs/format.md").read_text().partition("### `details`")[2]
    details = json.loads(re.findall(r"```json\n(.*?)```", doc, re.DOTALL)[0])
    root = tmp_path / "byhand"
    root.mkdir()
    first = write_generation(root, [example(1, b"Ada")], None, details)
    assert open_dataset(root).manifest.to_bytes() == (root / "manifest.json").read_bytes(), "it is the canonical form"
    write_generation(root, [example(2, None)], first, details)
    assert (verify_dataset(root).findings, verify_dataset(root).notes) == ((), ())
    assert open_dataset(root).manifest.details.to_json() == details
    append(data=pd.DataFrame({"id": [3], "name": ["Edsger"]}), output=root)
    del details["checks"]  # they are of the records that a generation added
    manifest, splits = read_latest(root)
    assert (manifest["format_version"], manifest["details"]) == (1, details)
    assert splits["train"] == [example(1, b"Ada"), example(2, None), example(3, b"Edsger")]
    assert open_dataset(root).manifest.details.to_json() == details


def test_a_dataset_in_parts_is_read_by_hand_and_as_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manifest_parts, "PART_SHARDS", 2)
    monkeypatch.chdir(tmp_path)
    root = tmp_path / "out"
    root.mkdir()
    write_generation(root, [example(1, b"Ada")], None)
    for number in range(2, 6):
        append(data=pd.DataFrame({"id": [number], "name": [f"{number}"]}), output=root)
    manifest, splits = read_latest(root)
    assert (len(manifest["splits"]["train"]["parts"]), len(manifest["splits"]["train"]["shards"])) == (2, 1)
    assert splits["train"] == [example(1, b"Ada"), *(example(n, b"%d" % n) for n in range(2, 6))]
    assert (verify_dataset(root).findings, collect_garbage(root, older_than=0).items) == ((), ())
    doc = (Path(__file__).parent.parent / "docs/format.md").read_text().partition("### Parts")[2]
    (python,), (shell, *_) = (re.findall(rf"```{kind}\n(.*?)```", doc, re.DOTALL) for kind in ("python", "bash"))
    names: dict[str, Any] = {}
    exec(python, names)
    paths = [f"train-{i:05d}.tfrecord" for i in range(5)]
    assert [shard["path"] for shard in names["shards"]] == paths
    if shutil.which("jq"):
        shown = subprocess.run(["bash", "-c", shell], check=True, stdout=subprocess.PIPE, text=True).stdout
        assert shown.split() == paths
