from __future__ import annotations

from pathlib import Path

import pytest
from shardmill.transforms.dataset.storage.manifest_files import list_history
from shardmill.transforms.errors import InputError

from ..commit.test_append_commit import add
from ..commit.test_commit_generation import spec_of, write


def test_each_generation_is_listed_with_what_it_added(tmp_path: Path) -> None:
    write(spec_of(tmp_path, max_rejects=2), rejects=2)
    add(tmp_path, 2)
    add(tmp_path, 3, rows=100)
    first, second, third = list_history(tmp_path / "out")
    assert (first.operation, first.parent, first.records, first.rejected) == ("create", None, 15000, 2)
    assert (second.operation, second.parent, second.records, second.total_records) == ("append", 1, 2100, 17100)
    assert (third.records, third.shards, third.total_records) == (300, 1, 17400)
    assert first.bytes + second.bytes + third.bytes == third.total_bytes
    assert (third.source_format, third.files, third.source_bytes) == ("csv", 2, 30)
    assert third.sources == "sources/00000003.jsonl"
    assert first.created == "2026-01-31T12:00:00Z"


def test_a_damaged_manifest_is_listed_as_such(tmp_path: Path) -> None:
    write(spec_of(tmp_path))
    add(tmp_path, 2)
    (tmp_path / "out/manifests/00000001.json").write_bytes(b"{}")
    first, second = list_history(tmp_path / "out")
    assert first.problem is not None
    assert "00000001.json" in first.problem
    assert second.problem is None


def test_a_lone_manifest_is_a_history_of_one(tmp_path: Path) -> None:
    write(spec_of(tmp_path))
    (tmp_path / "out/manifests/00000001.json").unlink()
    (only,) = list_history(tmp_path / "out")
    assert (only.generation, only.records, only.shards) == (1, 15000, 7)
    with pytest.raises(InputError, match="no such file or folder"):
        list_history(tmp_path / "gone")
