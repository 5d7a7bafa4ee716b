"""Datasets whose manifests come in parts, here of three shards each: whatever a dataset does, it does with them."""

from __future__ import annotations

import dataclasses
import os
import shutil
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from shardmill.transforms.dataset.commit import commit_generation
from shardmill.transforms.dataset.commit.accounting import Refusal
from shardmill.transforms.dataset.commit.publish import prepare_target, write_generation
from shardmill.transforms.dataset.integrity.garbage import GarbageReport, collect_garbage
from shardmill.transforms.dataset.integrity.verify import verify_dataset
from shardmill.transforms.dataset.reading.open_dataset import open_dataset
from shardmill.transforms.dataset.stage.spec import DatasetSpec, EntryInfo
from shardmill.transforms.dataset.storage import manifest_files as generations
from shardmill.transforms.dataset.storage.local_storage import LocalStorage
from shardmill.transforms.dataset.storage.manifest_files import list_generations, list_history, read_manifest
from shardmill.transforms.errors import DamageError
from shardmill.transforms.format.manifest import manifest as manifest_parts
from shardmill.transforms.format.manifest.manifest import ManifestLimits, ShardEntry

from .commit.test_append_commit import add, append_spec, assert_whole
from .commit.test_commit_generation import (
    _Crash,
    _crash_at,
    commit_within,
    spec_of,
    stage_all,
    tree,
    without_run,
    write,
)


@pytest.fixture(autouse=True)
def by_three(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifest_parts, "PART_SHARDS", 3)


def parts_in(out: Path) -> set[str]:
    return {f"manifests/{name}" for name in os.listdir(out / "manifests") if name.startswith("shards-")}


def parts_of(out: Path, generation: int) -> list[str]:
    """Return the parts that a generation names, in order."""
    return list(read_manifest(str(out), generation).to_documents()[1])


def collect(out: Path, days: float = 8, **options: Any) -> GarbageReport:
    return collect_garbage(out, now=time.time() + days * 86400, **options)


def replacement(root: Path, number: int, **changes: Any) -> DatasetSpec:
    values = {"if_exists": "replace", "run_id": f"{number:016d}", "commit_id": f"commit-{number}"}
    return spec_of(root, **values, source_fingerprint=f"sha256:{number:064d}", **changes)


def damage(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def test_an_append_over_the_boundary_writes_one_part_and_names_those_that_are_there(tmp_path: Path) -> None:
    out = tmp_path / "out"
    write(spec_of(tmp_path))
    assert len(read_manifest(str(out)).splits["train"].shards) == 7
    first = {path: (out / path).stat() for path in parts_in(out)}
    assert len(first) == 2
    for number in (2, 3):
        add(tmp_path, number)
    assert [len(parts_of(out, number)) for number in (1, 2, 3)] == [2, 2, 3]
    assert parts_in(out) == set(parts_of(out, 3))
    assert parts_of(out, 3)[:2] == parts_of(out, 2) == parts_of(out, 1)
    assert {path: (out / path).stat() for path in first} == first  # not touched
    assert_whole(tmp_path, 3, 15000 + 2 * 2100)
    assert [sum(1 for _ in open_dataset(out, g).records("train")) for g in (1, 2, 3)] == [15000, 17100, 19200]
    assert [info.shards for info in list_history(out)] == [7, 1, 1]
    assert collect(out, older_than=0, keep=1, delete=True).items == ()
    assert_whole(tmp_path, 3, 15000 + 2 * 2100)


def test_a_copy_that_has_no_generations_reads_the_parts_that_its_manifest_names(tmp_path: Path) -> None:
    out = tmp_path / "out"
    write(spec_of(tmp_path))
    (out / "manifests/00000001.json").unlink()
    assert sum(1 for _ in open_dataset(out).records("train")) == 15000
    shutil.rmtree(out / "manifests")
    with pytest.raises(DamageError, match=r"out/manifests/shards-[0-9a-f]{32}\.json: missing$"):
        open_dataset(out)


def test_a_command_reads_each_part_once_however_many_generations_name_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    write(spec_of(tmp_path))
    for number in (2, 3):
        add(tmp_path, number)
    once = dict.fromkeys(parts_of(out, 3), 1)
    real, read = generations.parse_part, Counter[str]()

    def counting(data: bytes, path: str, name: str) -> tuple[ShardEntry, ...]:
        read[path] += 1
        return real(data, path, name)

    monkeypatch.setattr(generations, "parse_part", counting)
    for command in (list_history, verify_dataset, collect_garbage):
        read.clear()
        command(out)
        assert read == once, command


def test_of_two_appends_at_once_both_land_and_gc_takes_the_part_that_the_slower_one_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    write(spec_of(tmp_path))
    add(tmp_path, 2)
    spec = append_spec(tmp_path, 9)
    staged = stage_all(spec, rows=300)
    real, tried = LocalStorage.put_if_absent, set[str]()

    def late(self: LocalStorage, path: str, data: bytes) -> bool:
        if path == "manifests/00000003.json":
            tried.update(parts_in(out))
            monkeypatch.setattr(LocalStorage, "put_if_absent", real)
            add(tmp_path, 3, rows=400)
        return real(self, path, data)

    monkeypatch.setattr(LocalStorage, "put_if_absent", late)
    write_generation(spec, staged)
    (orphan,) = tried - set(parts_of(out, 4))
    report = verify_dataset(out)
    note = "no generation names it; a commit left it that lost or died: "
    note += f"shardmill gc {out} --delete removes it when it is a week old"
    assert (report.findings, report.notes) == ((), (f"{orphan}: {note}",))
    assert (report.generation, report.records) == (4, 15000 + 2100 + 1200 + 900)
    young = collect(out, days=6.9, delete=True)
    assert (young.items, young.young) == ((), 1)
    assert [(item.path, item.reason) for item in collect(out, delete=True).items] == [
        (orphan, "no generation names it")
    ]
    assert_whole(tmp_path, 4, 15000 + 2100 + 1200 + 900)


def test_parts_of_a_replaced_dataset_go_with_its_generations(tmp_path: Path) -> None:
    out = tmp_path / "out"
    write(spec_of(tmp_path))
    old = parts_in(out)
    spec = replacement(tmp_path, 2)
    assert prepare_target(spec) is None
    write(spec)
    assert len(parts_in(out) - old) == 2  # the shards are of another generation
    assert collect(out).items == ()
    gone = collect(out, keep=1, delete=True).items
    assert {item.path for item in gone} == {*old, "manifests/00000001.json", "sources/00000001.jsonl"}
    assert {item.reason for item in gone} == {"only generations that are not kept name it"}
    assert parts_in(out) == set(parts_of(out, 2))
    assert verify_dataset(out).ok


def test_verify_tells_a_damaged_and_a_missing_part_of_an_older_generation_once(tmp_path: Path) -> None:
    out = tmp_path / "out"
    write(spec_of(tmp_path))
    add(tmp_path, 2)
    first, second = parts_of(out, 2)
    spec = replacement(tmp_path, 3)
    assert prepare_target(spec) is None
    write(spec)
    damage(out / first)
    (out / second).unlink()
    found = [f"{first}: damaged: its bytes are not those that it is named by"]
    assert [str(finding) for finding in verify_dataset(out).findings if "shards-" in finding.file] == found
    assert not [note for note in verify_dataset(out).notes if "shards-" in note], "they are named, though not read"
    assert [info.problem is None for info in list_history(out)] == [False, False, True]
    (out / first).unlink()
    assert [str(finding) for finding in verify_dataset(out).findings][:1] == [f"{first}: missing"]


def test_a_damaged_a_missing_and_a_linked_part_of_the_latest_generation_end_every_command(tmp_path: Path) -> None:
    out = tmp_path / "out"
    write(spec_of(tmp_path))
    path = out / parts_of(out, 1)[1]
    data = path.read_bytes()
    damage(path)
    problems = {"damaged: its bytes are not those that it is named by"}
    for command in (verify_dataset, open_dataset, collect_garbage):
        with pytest.raises(DamageError) as caught:
            command(out)
        assert str(caught.value).partition(f"{path}: ")[2] in problems
    path.unlink()
    with pytest.raises(DamageError, match=f"^{path}: missing$"):
        open_dataset(out)
    (tmp_path / "elsewhere").write_bytes(data)
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(DamageError, match=f"^{path}: a link; a dataset's files are its own$"):
        open_dataset(out)


def test_a_crash_at_any_point_leaves_a_whole_generation_or_none_and_the_next_run_makes_the_same_bytes(
    tmp_path: Path,
) -> None:
    base = tmp_path / "base"
    spec = spec_of(base, source_entries=(EntryInfo("a.csv", 10, "sha256:aa"), EntryInfo("b.csv", 20, "sha256:bb")))
    wanted, between = None, 0
    for count in range(200):
        shutil.rmtree(base, ignore_errors=True)
        results = stage_all(spec, rows=2700)
        with pytest.MonkeyPatch.context() as patch:
            _crash_at(patch, count)
            try:
                write_generation(spec, results)
            except _Crash:
                pass
            else:
                break
        committed = bool(list_generations(spec.path))
        if committed:
            assert sum(1 for _ in open_dataset(spec.path).records("train")) == 8100
        elif (base / "out/manifests").exists():
            between += len(parts_in(base / "out"))
        held = prepare_target(spec)
        assert (held is not None) == committed
        if held is None:
            write_generation(dataclasses.replace(spec, commit_id="again"), stage_all(spec, rows=2700))
        found = without_run(base / "out")
        wanted = wanted or found
        assert found == wanted
    assert between == 1


def test_a_part_that_was_left_behind_is_taken_or_mended_and_one_that_a_removal_took_is_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec, out = spec_of(tmp_path), tmp_path / "out"
    write(spec)
    whole = tree(out)
    taken, damaged = sorted(parts_in(out))
    shutil.rmtree(out)
    for name in (taken, damaged):  # as a run leaves them that died before its commit
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_bytes(whole[name])
    damage(out / damaged)
    real = LocalStorage.put_if_absent

    def removed_meanwhile(self: LocalStorage, path: str, data: bytes) -> bool:
        done = real(self, path, data)
        if path == "manifests/00000001.json":
            (out / taken).unlink()
        return done

    monkeypatch.setattr(LocalStorage, "put_if_absent", removed_meanwhile)
    assert prepare_target(spec) is None
    write(spec)
    assert tree(out) == whole
    assert verify_dataset(out).ok


def test_gc_puts_back_the_part_that_a_commit_of_that_moment_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    write(spec_of(tmp_path))
    add(tmp_path, 2)
    shutil.copytree(out, tmp_path / "elsewhere/out")
    add(tmp_path / "elsewhere", 3)
    (part,) = parts_in(tmp_path / "elsewhere/out") - parts_in(out)
    orphan = f"manifests/shards-{'a' * 32}.json"
    for name, data in ((part, (tmp_path / "elsewhere/out" / part).read_bytes()), (orphan, b"12345")):
        (out / name).write_bytes(data)
    real = LocalStorage.remove_seen

    def commit_before(self: LocalStorage, seen: Any) -> set[str]:
        if part in seen:  # gc has looked, and is about to remove it
            add(tmp_path, 3)
            assert part in parts_of(out, 3)
        return real(self, seen)

    monkeypatch.setattr(LocalStorage, "remove_seen", commit_before)
    report = collect_garbage(out, older_than=0, delete=True, now=time.time() + 9)
    assert orphan in [item.path for item in report.items]
    assert part not in [item.path for item in report.items]
    assert (verify_dataset(out).findings, verify_dataset(out).notes) == ((), ())
    assert read_manifest(str(out)).generation == 3


def test_a_manifest_of_too_many_or_too_large_parts_is_refused_before_one_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreadable(*_: object) -> None:
        raise DamageError("no canonical form")

    def assert_refused(limits: ManifestLimits, problem: str) -> None:
        refusal = commit_within(tmp_path, limits)
        assert isinstance(refusal, Refusal)
        assert f"the manifest of 7 shards would have {problem}; nothing of this run" in refusal.message
        assert not (tmp_path / "out/manifests").exists()

    assert_refused(ManifestLimits(parts=1), "2 parts, over the limit of 1")
    assert_refused(ManifestLimits(part_bytes=300), "a part of 402 B, over the limit of 300 B")
    monkeypatch.setattr(commit_generation, "parse_part", unreadable)
    assert_refused(ManifestLimits(), "a part that cannot be read (no canonical form)")
