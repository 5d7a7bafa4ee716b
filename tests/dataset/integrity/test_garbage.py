"""What goes of a dataset's folder, and above all what stays."""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from shardmill.transforms.dataset.commit.publish import prepare_target, write_generation
from shardmill.transforms.dataset.integrity.garbage import WEEK_SECONDS, GarbageReport, collect_garbage
from shardmill.transforms.dataset.integrity.verify import verify_dataset
from shardmill.transforms.dataset.reading.open_dataset import open_dataset
from shardmill.transforms.dataset.stage.run_lock import hold_run
from shardmill.transforms.dataset.stage.spec import EntryInfo
from shardmill.transforms.errors import DamageError, InputError, TargetError, UsageError

from ..commit.test_append_commit import add
from ..commit.test_commit_generation import _Crash, _crash_at, spec_of, stage_all, tree, write

STRAYS = {
    "train-00099.tfrecord": "no generation names it",
    "val-00000.tfrecord.gz": "no generation names it",
    "rejects/00000009.jsonl": "no generation names it",
    "index/train-00099.idx": "no generation names it",
    "index/train-00099.offsets": "no generation names it",
    f".train-00001.tfrecord.{'0a' * 16}": "left half written by a writer that was ended",
    f"manifests/.00000002.json.{'0b' * 16}": "left half written by a writer that was ended",
}
FOREIGN = ["README.md", "my.tfrecord", "train-7.tfrecord", ".hidden", "notes/train-00099.tfrecord", "manifests/x.txt"]


def put(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(b"12345")


def later(days: float = 8, **options: Any) -> float:
    return time.time() + days * 86400


def collect(root: Path, days: float = 8, **options: Any) -> GarbageReport:
    """Collect garbage as it would be done in some days."""
    return collect_garbage(root, now=later(days), **options)


def paths(report: GarbageReport) -> list[str]:
    return [item.path for item in report.items]


def test_a_whole_dataset_of_several_generations_has_no_garbage(tmp_path: Path) -> None:
    write(spec_of(tmp_path))
    add(tmp_path, 2)
    before = tree(tmp_path / "out")
    for keep in (None, 1, 2, 9):
        report = collect(tmp_path / "out", older_than=0, keep=keep, delete=True)
        assert (report.kept, report.dropped, report.items) == ((1, 2), (), ())
    assert tree(tmp_path / "out") == before


def test_what_no_generation_names_is_shown_and_goes_only_if_that_is_asked_for(tmp_path: Path) -> None:
    write(spec_of(tmp_path))
    out = tmp_path / "out"
    whole = tree(out)
    put(out, *STRAYS, *FOREIGN)
    before = tree(out)
    report = collect(out)
    assert {item.path: item.reason for item in report.items} == STRAYS
    assert (report.files, report.bytes, report.deleted) == (7, 35, False)
    assert tree(out) == before
    done = collect(out, delete=True)
    assert sorted(paths(done)) == sorted(paths(report))
    assert done.deleted
    assert tree(out) == whole | dict.fromkeys(FOREIGN, b"12345")
    assert collect(out).items == ()


def test_what_is_younger_than_a_week_stays(tmp_path: Path) -> None:
    write(spec_of(tmp_path))
    out = tmp_path / "out"
    put(out, *STRAYS, ".staging/00000000000000aa/parts/x")
    os.utime(out / "train-00099.tfrecord", (0, 0))  # its time was set; when it came is what counts
    report = collect(out, days=6.9, delete=True)
    assert (report.items, report.young) == ((), len(STRAYS) + 1)
    assert collect(out, days=6.9, older_than=6 * 86400).files == len(STRAYS) + 1
    assert collect(out, days=7.1).files == len(STRAYS) + 1
    assert WEEK_SECONDS == 7 * 86400


def test_the_staging_folder_of_a_dead_run_goes_when_nothing_in_it_is_young(tmp_path: Path) -> None:
    write(spec_of(tmp_path))
    out = tmp_path / "out"
    whole = tree(out)
    put(out, ".staging/00000000000000aa/parts/x", ".staging/00000000000000aa/plan.json")
    put(out, ".staging/00000000000000aa.lock", ".staging/00000000000000bb.lock", ".staging/data-0123456789abcdef.arrow")
    put(out, ".staging/else/x")
    report = collect(out)
    assert [(item.path, item.files, item.bytes) for item in report.items] == [
        (".staging/00000000000000aa", 2, 10),
        (".staging/00000000000000bb.lock", 1, 5),
        (".staging/data-0123456789abcdef.arrow", 1, 5),
    ]
    collect(out, delete=True)
    assert tree(out) == whole | {".staging/else/x": b"12345"}


def test_what_a_live_run_works_in_stays_however_old_it_is(tmp_path: Path) -> None:
    write(spec_of(tmp_path))
    out = tmp_path / "out"
    spec = spec_of(tmp_path, run_id="00000000000000aa", commit_id="other")
    put(out, ".staging/00000000000000aa/parts/x", ".staging/data-0123456789abcdef.arrow")
    with hold_run(spec):
        before = tree(out)
        report = collect(out, older_than=0, delete=True)
        assert (report.items, report.live) == ((), 2)
        assert tree(out) == before
    assert len(collect(out, older_than=0, delete=True).items) == 2


def test_what_a_committed_generation_still_needs_of_staging_stays_wherever_its_run_died(tmp_path: Path) -> None:
    unpublished = 0
    for count in range(200):
        root = tmp_path / str(count)
        spec = spec_of(root)
        results = stage_all(spec)
        with pytest.MonkeyPatch.context() as patch:
            _crash_at(patch, count)
            try:
                write_generation(spec, results)
            except _Crash:
                pass
            else:
                break
        if not (root / "out/manifests/00000001.json").exists():
            assert collect(root / "out", older_than=0, delete=True).kept == ()
            continue
        unpublished += (root / "out/.staging" / spec.run_id / "shards").exists()
        report = collect(root / "out", older_than=0, keep=1, delete=True)
        assert {item.reason for item in report.items} <= {"left half written by a writer that was ended"}
        assert sum(1 for _ in open_dataset(root / "out").records("train")) == 15000
        assert verify_dataset(root / "out").ok
        assert prepare_target(spec) is not None
        assert verify_dataset(root / "out").notes == ()
    assert unpublished > 5


def test_a_gc_that_crashes_leaves_the_kept_generations_whole_and_the_next_one_ends_it(tmp_path: Path) -> None:
    for count in range(100):
        root = tmp_path / str(count)
        out = replaced(root)
        put(out, "train-00099.tfrecord", ".staging/00000000000000aa/x")
        with pytest.MonkeyPatch.context() as patch:
            _crash_at(patch, count)
            try:
                collect(out, keep=1, delete=True)
            except _Crash:
                pass
            else:
                break
        assert verify_dataset(out, quick=True).generation == 2
        collect(out, keep=1, delete=True)
        report = verify_dataset(out)
        assert (report.ok, report.records) == (True, 4500)
        assert collect(out, keep=1).items == ()
    assert count > 5


def replaced(root: Path) -> Path:
    """Return a dataset that was replaced by a smaller one, its old shards left behind as by a crash."""
    write(spec_of(root), rows=5000)
    out = root / "out"
    old = {name: data for name, data in tree(out).items() if name.endswith(".tfrecord")}
    spec = spec_of(
        root,
        if_exists="replace",
        run_id="00000000000000cc",
        commit_id="commit-two",
        source_fingerprint="sha256:" + "e" * 64,
        source_entries=(EntryInfo("a.csv", 10, "sha256:aa"), EntryInfo("b.csv", 20, "sha256:bb")),
    )
    write(spec, rows=1500)
    for name in set(old) - set(tree(out)):
        (out / name).write_bytes(old[name])
    return out


def test_a_replaced_generation_stays_unless_fewer_are_to_be_kept(tmp_path: Path) -> None:
    out = replaced(tmp_path)
    assert collect(out).items == ()
    report = collect(out, keep=1)
    assert (report.kept, report.dropped) == ((2,), (1,))
    assert paths(report)[:1] == ["manifests/00000001.json"]
    assert "sources/00000001.jsonl" in paths(report)
    assert any(path.endswith(".tfrecord") for path in paths(report))
    assert {item.reason for item in report.items} == {"only generations that are not kept name it"}
    collect(out, keep=1, delete=True)
    assert not (out / "manifests/00000001.json").exists()
    verified = verify_dataset(out)
    assert verified.ok
    assert verified.records == 4500
    assert verified.notes == ("manifests/00000001.json: missing; no other generation was made from it",)
    assert collect(out, keep=1).items == ()


def test_a_young_generation_stays_with_all_that_it_names(tmp_path: Path) -> None:
    out = replaced(tmp_path)
    report = collect(out, days=6, keep=1, delete=True)
    assert (report.kept, report.items) == ((1, 2), ())


def test_an_append_goes_on_after_generations_were_dropped(tmp_path: Path) -> None:
    out = replaced(tmp_path)
    collect(out, keep=1, delete=True)
    outcome = add(tmp_path, 3)
    assert outcome.manifest is not None
    assert outcome.manifest.generation == 3
    assert verify_dataset(out).ok


def test_a_damaged_manifest_that_stays_stops_it_and_one_that_goes_does_not(tmp_path: Path) -> None:
    out = replaced(tmp_path)
    (out / "manifests/00000001.json").write_bytes(b"{}")
    before = tree(out)
    with pytest.raises(DamageError, match=r"manifests/00000001\.json"):
        collect(out, delete=True)
    assert tree(out) == before
    assert "manifests/00000001.json" in paths(collect(out, keep=1, delete=True))
    assert verify_dataset(out).ok


def test_a_link_is_never_followed_nor_removed(tmp_path: Path) -> None:
    write(spec_of(tmp_path))
    out, other = tmp_path / "out", tmp_path / "other"
    put(other, "x")
    (out / "train-00099.tfrecord").symlink_to(other / "x")
    put(out, ".staging/00000000000000aa/plan.json")
    (out / ".staging/00000000000000aa/parts").symlink_to(other)
    (out / ".staging/00000000000000bb").symlink_to(other)
    collect(out, delete=True)
    assert tree(other) == {"x": b"12345"}
    assert (out / "train-00099.tfrecord").is_symlink()
    assert not (out / ".staging/00000000000000aa").exists()
    shutil.rmtree(out / "index")
    (out / "index").symlink_to(other)
    with pytest.raises(TargetError, match="a link"):
        collect(out)


def test_a_stray_that_became_a_shard_meanwhile_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from shardmill.transforms.dataset.integrity import garbage

    write(spec_of(tmp_path))
    out = tmp_path / "out"
    put(out, "train-00099.tfrecord")
    real = garbage._Search.unnamed

    def publish_meanwhile(*args: Any) -> Any:
        found = real(*args)
        (out / "new").write_bytes(b"a shard")
        (out / "new").replace(out / "train-00099.tfrecord")
        return found

    monkeypatch.setattr(garbage._Search, "unnamed", publish_meanwhile)
    assert collect(out, older_than=0, delete=True).items == ()
    assert (out / "train-00099.tfrecord").read_bytes() == b"a shard"


def test_a_dry_run_makes_nothing_at_all(tmp_path: Path) -> None:
    write(spec_of(tmp_path))
    out = tmp_path / "out"
    put(out, ".staging/00000000000000aa/plan.json", "train-00099.tfrecord")
    folders = [out, out / ".staging", out / ".staging/00000000000000aa", out / "manifests"]
    before = [folder.stat().st_mtime_ns for folder in folders]
    assert len(collect(out).items) == 2
    assert [folder.stat().st_mtime_ns for folder in folders] == before


def test_a_file_with_another_name_frees_nothing(tmp_path: Path) -> None:
    write(spec_of(tmp_path))
    out = tmp_path / "out"
    os.link(out / "train-00000.tfrecord", out / "train-00099.tfrecord")
    assert [(item.path, item.bytes) for item in collect(out).items] == [("train-00099.tfrecord", 0)]


def test_wrong_asks_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no dataset"):
        collect_garbage(tmp_path)
    with pytest.raises(UsageError, match="keep at least 1"):
        collect_garbage(tmp_path, keep=0)
    assert os.listdir(tmp_path) == []


def test_a_report_is_json(tmp_path: Path) -> None:
    write(spec_of(tmp_path))
    put(tmp_path / "out", "train-00099.tfrecord")
    document = json.loads(json.dumps(collect(tmp_path / "out").to_json()))
    assert (document["files"], document["bytes"], document["kept"], document["deleted"]) == (1, 5, [1], False)
