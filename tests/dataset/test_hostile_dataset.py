"""A dataset's folder may come from anywhere: what a manifest, a list or a link in it can make us do."""

from __future__ import annotations

import json
import os
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from shardmill.transforms.dataset.commit.accounting import read_notes
from shardmill.transforms.dataset.commit.publish import finish_publish
from shardmill.transforms.dataset.integrity.verify import verify_dataset
from shardmill.transforms.dataset.reading.open_dataset import open_dataset
from shardmill.transforms.dataset.stage.run_lock import hold_run
from shardmill.transforms.dataset.stage.spec import DatasetSpec
from shardmill.transforms.dataset.storage.manifest_files import list_generations, read_json_lines
from shardmill.transforms.errors import DamageError, TargetError
from shardmill.transforms.format.manifest.manifest import RunInfo, SourceSummary
from shardmill.transforms.format.schema.schema import Feature, Schema

from ..examples import example_from_values

Builder = Callable[..., Any]


def payload(**values: Any) -> bytes:
    return example_from_values(values).SerializeToString(deterministic=True)


def test_publishing_removes_no_folder_but_a_staging_folder(tmp_path: Path, build_dataset: Builder) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "a.jpg").write_bytes(b"mine")
    run = RunInfo("2026-01-31T12:00:00Z", "0" * 16, "id", "photos", "sha256:" + "0" * 64, "local", {})
    build_dataset(tmp_path, {"train": [[payload(a=1)]]}, run=run)
    (tmp_path / "manifest.json").unlink()  # as if a crash had left it half published
    with pytest.raises(DamageError, match=r"run\.staging"):
        finish_publish(os.fspath(tmp_path))
    assert (tmp_path / "photos" / "a.jpg").read_bytes() == b"mine"


@pytest.mark.parametrize("folder", ["manifests", "sources", "rejects", "index", ".staging"])
def test_nothing_is_written_or_removed_behind_a_link(tmp_path: Path, build_dataset: Builder, folder: str) -> None:
    root, outside = tmp_path / "data", tmp_path / "outside"
    root.mkdir()
    outside.mkdir()
    build_dataset(root, {"train": [[payload(a=1)]]})
    if folder == "manifests":
        (root / folder).rename(outside / folder)
        outside = outside / folder
    (root / folder).symlink_to(outside)
    before = sorted(os.listdir(outside))
    with pytest.raises(TargetError, match=f"{folder}: a link; a dataset's folders are its own"):
        finish_publish(os.fspath(root))
    spec = DatasetSpec(path=os.fspath(root), name="x", shard_size=1 << 16)
    with pytest.raises(TargetError, match="a link"), hold_run(spec):
        pass
    assert sorted(os.listdir(outside)) == before


def test_a_lone_generation_of_a_huge_number_is_verified_in_bounded_time(tmp_path: Path, build_dataset: Builder) -> None:
    build_dataset(tmp_path, {"train": [[payload(a=1)]]}, generation=10**18, version="1.0.0")
    assert len(verify_dataset(tmp_path).findings) <= 1000


def test_a_generation_has_one_name(tmp_path: Path, build_dataset: Builder) -> None:
    build_dataset(tmp_path, {"train": [[payload(a=1)]]})
    for name in ("000000001.json", "00000000.json", "9" * 30 + ".json", "00000002.json.tmp"):
        (tmp_path / "manifests" / name).write_bytes(b"{}")
    assert list_generations(os.fspath(tmp_path)) == (1,)


@pytest.mark.parametrize("line", [b"[" * 100_000, b'{"a": 1, "a": 2}', b'{"a": NaN}', b'{"a": 1e999999}x', b"[]"])
def test_lines_of_a_list_are_read_as_strictly_as_a_manifest(tmp_path: Path, line: bytes) -> None:
    (tmp_path / "list.jsonl").write_bytes(line + b"\n")
    with pytest.raises(DamageError, match=r"^list.jsonl: line 1 is not (a whole )?JSON"):
        list(read_json_lines(os.fspath(tmp_path), "list.jsonl"))


def test_a_line_without_an_end_is_not_read_into_memory(tmp_path: Path) -> None:
    (tmp_path / "list.jsonl").write_bytes(b" " * 5000)
    with pytest.raises(DamageError, match="line 1 is over 1000 bytes"):
        list(read_json_lines(os.fspath(tmp_path), "list.jsonl", line_limit=1000))


@pytest.mark.parametrize("notes", ["x", [], {"a": "b"}, {"a": [1]}])
def test_notes_that_are_no_counts_are_damage(tmp_path: Path, build_dataset: Builder, notes: object) -> None:
    name = "sources/00000001.jsonl"
    manifest = build_dataset(tmp_path, {"train": [[payload(a=1)]]}, source=SourceSummary("csv", 1, 1, name))
    (tmp_path / "sources").mkdir()
    line = {"source": "a.csv", "bytes": 1, "fingerprint": "etag:a", "files": 1, "notes": notes}
    counts = {"read": 1, "written": 1, "rejected": 0, "dropped": 0}
    (tmp_path / name).write_text(json.dumps(line | counts) + "\n")
    with pytest.raises(DamageError, match=r"sources/00000001\.jsonl: line 1: notes(\.a)? is "):
        read_notes(os.fspath(tmp_path), manifest)


@pytest.mark.parametrize("width", [1 << 22, 1 << 30])
def test_absent_features_of_a_huge_shape_take_little_memory(tmp_path: Path, build_dataset: Builder, width: int) -> None:
    schema = Schema((Feature("a", "float", "float32", (width,), nullable=True), Feature("b", "int64", "int64")))
    build_dataset(tmp_path, {"train": [[payload(b=i) for i in range(5)]]}, schema)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    rows = [batch.column("b").to_pylist() for batch in open_dataset(tmp_path).batches("train")]
    assert [row for batch in rows for row in batch] == list(range(5))
    assert verify_dataset(tmp_path).ok
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 700 << 10


def test_a_fixed_shape_that_reads_back_as_a_plain_list_is_still_held_against_the_record(
    tmp_path: Path, build_dataset: Builder
) -> None:
    schema = Schema((Feature("a", "int64", "int64", (1 << 25,)),))
    build_dataset(tmp_path, {"train": [[payload(a=[1, 2])]]}, schema)
    with pytest.raises(DamageError, match='feature "a" holds 2 values, where the schema has 33554432'):
        list(open_dataset(tmp_path).batches("train"))


@pytest.mark.parametrize("shape", [[2**62] * 3000, [0, 2**62, 2**62], [0] * 65])
def test_a_hostile_shape_of_an_array_is_damage_at_once(
    tmp_path: Path, build_dataset: Builder, shape: list[int]
) -> None:
    schema = Schema(
        (
            Feature("e/data", "bytes", "array_data", dtype="<f4"),
            Feature("e/shape", "int64", "array_shape", (-1,)),
        )
    )
    record = payload(**{"e/data": np.zeros(0, "<f4").tobytes(), "e/shape": shape})
    build_dataset(tmp_path, {"train": [[record]]}, schema)
    with pytest.raises(DamageError, match="record 0: feature"):
        list(open_dataset(tmp_path).arrays("train"))
