from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from shardmill.transforms.dataset.commit import commit_generation as commit_module
from shardmill.transforms.dataset.commit import publish as publish_module
from shardmill.transforms.dataset.commit.accounting import Refusal
from shardmill.transforms.dataset.commit.assemble_shards import assemble_shard
from shardmill.transforms.dataset.commit.commit_generation import Commit, WriteOutcome, read_outcome
from shardmill.transforms.dataset.commit.plan_step import Plan, plan_dataset
from shardmill.transforms.dataset.commit.publish import (
    Move,
    complete_publish,
    finish_publish,
    moves_of,
    prepare_target,
    publish_file,
    replacing_what_is_there,
    write_generation,
)
from shardmill.transforms.dataset.integrity.verify import verify_dataset
from shardmill.transforms.dataset.reading.open_dataset import open_dataset
from shardmill.transforms.dataset.stage.spec import DatasetSpec, EntryInfo
from shardmill.transforms.dataset.stage.task_stager import TaskResult, TaskStager
from shardmill.transforms.dataset.storage.local_storage import LocalStorage
from shardmill.transforms.dataset.storage.manifest_files import read_manifest
from shardmill.transforms.errors import CommitError, RunError, TargetError, TooManyRejects, UsageError
from shardmill.transforms.format.batches.rejects import CellError, Place, Reject
from shardmill.transforms.format.batches.rows import Block, EntryCounts, Narrowing, TaskEnd
from shardmill.transforms.format.batches.summaries import narrowed_summary, notes_summary
from shardmill.transforms.format.manifest.manifest import ManifestLimits
from shardmill.transforms.format.manifest.naming import index_path
from shardmill.transforms.format.schema.schema import Feature, Schema
from shardmill.transforms.format.tfrecord.framing import frame_records

SCHEMA = Schema((Feature("x", "int64", "int64"),))
PAYLOAD = b"\n\x0c\n\n\n\x01x\x12\x05\x1a\x03\n\x01"  # {"x": [n]}, without its last byte


def payload(task: int, number: int) -> bytes:
    return PAYLOAD + bytes([(task * 31 + number) % 128])


def spec_of(root: Path, **changes: Any) -> DatasetSpec:
    values: dict[str, Any] = {
        "path": str(root / "out"),
        "name": "numbers",
        "shard_size": 65536,
        "schema": SCHEMA,
        "tasks": 3,
        "source_format": "csv",
        "source_entries": (EntryInfo("a.csv", 10, "sha256:aa"), EntryInfo("b.csv", 20, "sha256:bb", 1, 5000)),
        "source_files": 2,
        "source_bytes": 30,
        "config_fingerprint": "sha256:" + "c" * 64,
        "source_fingerprint": "sha256:" + "d" * 64,
        "run_id": "0123456789abcdef",
        "commit_id": "commit-one",
        "created": "2026-01-31T12:00:00Z",
        "tool": {"shardmill": "0.1.0"},
    }
    return DatasetSpec(**(values | changes))


def stage_all(spec: DatasetSpec, *, rejects: int = 0, rows: int = 5000) -> list[TaskResult]:
    """Stage three tasks: two of a.csv, one of b.csv; the first one has the rejects."""
    results = []
    for task in range(3):
        entry = task // 2
        bad = tuple(
            Reject(entry, Place("a.csv", row=i + 1), (CellError("x", "BAD_TYPE", "?", "int", "no"),), None)
            for i in range(rejects if task == 0 else 0)
        )
        stager = TaskStager(spec.storage, spec.staging, task, spec.stage_settings)
        frames = frame_records(pa.array([payload(task, i) for i in range(rows)], pa.large_binary()))
        counts = (EntryCounts(entry, rows + len(bad), rows, len(bad)),)
        narrowed = (Narrowing("x", "float64", "float32", rows, 1e-8, 0),) if task else ()
        stager.add(Block(task, 0, {"train": frames}, counts, bad, narrowed_summary(narrowed)))
        results.append(stager.finish(TaskEnd(task, 1, {entry: rows + len(bad)})))
    return results


def write(spec: DatasetSpec, **changes: Any) -> WriteOutcome:
    return write_generation(spec, stage_all(spec, **changes))


def tree(root: Path) -> dict[str, bytes]:
    return {str(p.relative_to(root)): p.read_bytes() for p in sorted(root.rglob("*")) if p.is_file()}


def without_run(root: Path) -> dict[str, bytes]:
    files = tree(root)
    for name in ("manifest.json", "manifests/00000001.json"):
        document = json.loads(files[name])
        del document["run"]
        files[name] = json.dumps(document).encode()
    return files


def test_a_run_leaves_a_dataset_and_no_staging(tmp_path: Path) -> None:
    outcome = write(spec_of(tmp_path, max_rejects=2), rejects=2)
    out = tmp_path / "out"
    assert outcome.manifest is not None
    assert outcome.manifest.generation == 1
    manifest = read_manifest(str(out))
    assert manifest == outcome.manifest
    assert [shard.path for shard in manifest.splits["train"].shards] == [f"train-{i:05d}.tfrecord" for i in range(7)]
    assert set(tree(out)) == {
        "manifest.json",
        "manifests/00000001.json",
        "sources/00000001.jsonl",
        "rejects/00000001.jsonl",
        "dataset_info.json",
        "features.json",
        "schema.pbtxt",
        *(shard.path for shard in manifest.splits["train"].shards),
        *(index_path(shard.path, "binary") for shard in manifest.splits["train"].shards),
    }
    assert (out / "manifest.json").read_bytes() == (out / "manifests/00000001.json").read_bytes()
    assert [json.loads(line) for line in (out / "sources/00000001.jsonl").read_text().splitlines()] == [
        {"source": "a.csv", "bytes": 10, "fingerprint": "sha256:aa", "files": 1}
        | {"read": 10002, "written": 10000, "rejected": 2, "dropped": 0},
        {"source": "b.csv", "bytes": 20, "fingerprint": "sha256:bb", "files": 1}
        | {"read": 5000, "written": 5000, "rejected": 0, "dropped": 0},
    ]
    assert [json.loads(line)["row"] for line in (out / "rejects/00000001.jsonl").read_text().splitlines()] == [1, 2]
    assert manifest.rejects.by_code == {"BAD_TYPE": 2}
    assert manifest.narrowed == (Narrowing("x", "float64", "float32", 10000, 1e-8, 0),)
    assert not (out / ".staging").exists()


def test_every_record_is_there_once_and_checksums_hold(tmp_path: Path) -> None:
    for order in ("task", "source"):
        spec = spec_of(tmp_path / order, order=order)
        write(spec)
        wanted = [payload(task, i) for task in range(3) for i in range(5000)]
        records = list(open_dataset(spec.path).records("train"))
        assert records == wanted if order == "source" else sorted(records) == sorted(wanted)
        manifest = read_manifest(spec.path)
        for shard in manifest.splits["train"].shards:
            assert f"{LocalStorage(spec.path).crc32c(shard.path):08x}" == shard.crc32c
            assert os.path.getsize(f"{spec.path}/{shard.path}") == shard.bytes
        wanted_digest = frame_records(pa.array(wanted, pa.large_binary())).digest
        assert manifest.splits["train"].records_digest == f"sum128:{wanted_digest:032x}"


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_the_same_results_in_any_order_are_the_same_bytes(tmp_path: Path, compression: str) -> None:
    first = spec_of(tmp_path / "1", compression=compression)
    write(first)
    second = spec_of(tmp_path / "2", compression=compression, commit_id="two", created="later", run_id="f" * 16)
    stage_all(second)  # an attempt of which nothing counts
    results = stage_all(second)
    random.Random(1).shuffle(results)
    write_generation(second, results)
    assert without_run(tmp_path / "1/out") == without_run(tmp_path / "2/out")


def test_each_shard_gets_an_index_on_request(tmp_path: Path) -> None:
    spec = spec_of(tmp_path, sidecars=("index",))
    write(spec)
    manifest = read_manifest(spec.path)
    assert manifest.sidecars == tuple(f"index/train-{i:05d}.idx" for i in range(len(manifest.splits["train"].shards)))
    lines = (tmp_path / "out/index/train-00000.idx").read_text().splitlines()
    assert lines[:2] == ["0 30", "30 30"]
    assert len(lines) == manifest.splits["train"].shards[0].records


def test_gzip_leaves_out_what_cannot_read_it(tmp_path: Path) -> None:
    spec = spec_of(tmp_path, compression="gzip", sidecars=("tfds", "tfx", "index"))
    write(spec)
    names = set(tree(tmp_path / "out"))
    assert "train-00000.tfrecord.gz" in names
    assert "dataset_info.json" not in names
    assert not any(name.startswith("index/") for name in names)


@pytest.mark.parametrize(("allowed", "committed"), [(2, True), (3, False), ("0.1%", True), ("0.01%", False)])
def test_more_rejects_than_allowed_commit_nothing(tmp_path: Path, allowed: int | str, committed: bool) -> None:
    spec = spec_of(tmp_path, max_rejects=allowed if committed or allowed != 3 else 1)
    outcome = write(spec, rejects=2)
    if committed:
        assert outcome.refusal is None
        return
    assert outcome.refusal is not None
    assert read_outcome(spec) == outcome
    error = outcome.refusal.error()
    assert isinstance(error, TooManyRejects)
    assert "2 of 15002 rows were rejected (BAD_TYPE 2)" in str(error)
    assert len((tmp_path / "out/.staging/0123456789abcdef/rejects.jsonl").read_text().splitlines()) == 2
    assert not (tmp_path / "out/manifests").exists()
    assert not list((tmp_path / "out").glob("*.tfrecord"))


def _fewer_written(results: list[TaskResult]) -> list[TaskResult]:
    return [replace(results[0], counts=(EntryCounts(0, 5000, 4999),)), *results[1:]]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (_fewer_written, "4999 records were encoded, 5000 were staged"),
        (lambda r: [replace(r[0], rows_read={0: 5001}), *r[1:]], "its reader read {0: 5001} rows"),
        (
            lambda r: [replace(r[0], counts=(EntryCounts(0, 5001, 5000),)), *r[1:]],
            "a.csv: 10001 rows were read, but 10000",
        ),
        (lambda r: [replace(r[0], counts=(EntryCounts(0, 5001, 5000, 1),)), *r[1:]], "0 are in its reject file"),
        (lambda r: r[:2], "1 of 3 tasks did not end, the first of them task 2"),
        (lambda r: r[:2], "b.csv: no row was read, 5000 are there"),
        (lambda r: [*r, r[0]], "task 0 came 2 times"),
        (lambda r: [replace(r[0], failures=("a.csv: the gzip stream is cut",)), *r[1:]], "a.csv: the gzip stream"),
    ],
)
def test_rows_that_do_not_add_up_commit_nothing(
    tmp_path: Path, change: Callable[[list[TaskResult]], list[TaskResult]], problem: str
) -> None:
    spec = spec_of(tmp_path)
    outcome = write_generation(spec, change(stage_all(spec)))
    assert outcome.refusal is not None
    assert problem in outcome.refusal.message
    error = outcome.refusal.error()
    assert type(error) is RunError
    assert error.again is ("gzip" not in problem)  # no file is at fault for rows that do not add up
    assert not (tmp_path / "out/manifests").exists()


def test_what_is_noted_of_rows_stands_with_their_file_and_in_the_outcome(tmp_path: Path) -> None:
    spec = spec_of(tmp_path)
    noted = [{(0, "odd rows"): 2}, {(0, "odd rows"): 3, (0, "even rows"): 1}, {(1, "odd rows"): 4}]
    results = [
        replace(result, observed=notes_summary(notes)) for result, notes in zip(stage_all(spec), noted, strict=True)
    ]
    outcome = write_generation(spec, results)
    lines = [json.loads(line) for line in (tmp_path / "out/sources/00000001.jsonl").read_text().splitlines()]
    assert [line["notes"] for line in lines] == [{"even rows": 1, "odd rows": 5}, {"odd rows": 4}]
    assert outcome.notes == read_outcome(spec).notes == {"even rows": 1, "odd rows": 9}
    assert verify_dataset(spec.path).ok


def test_no_rows_at_all_are_a_generation_without_shards(tmp_path: Path) -> None:
    spec = spec_of(tmp_path, tasks=0, source_entries=())
    outcome = write_generation(spec, [])
    assert outcome.manifest is not None
    assert outcome.manifest.splits == {}
    assert read_manifest(spec.path).counts.read == 0


class _Crash(BaseException):
    """What stands for a kill: nothing catches it."""


def _crash_at(monkeypatch: pytest.MonkeyPatch, count: int) -> Callable[[], int]:
    """Crash after the storage's `count`-th change to the file system; return how many passed."""
    calls = [0]
    for name in ("assemble", "concatenate", "place", "publish", "put_if_absent", "replace", "remove", "remove_tree"):
        real = getattr(LocalStorage, name)

        def step(self: LocalStorage, *args: Any, _real: Any = real) -> Any:
            calls[0] += 1
            if calls[0] > count:
                raise _Crash
            return _real(self, *args)

        monkeypatch.setattr(LocalStorage, name, step)
    return lambda: calls[0]


def test_a_crash_at_any_point_leaves_the_old_or_the_new_generation_and_the_next_run_works(tmp_path: Path) -> None:
    base = tmp_path / "base"
    spec = spec_of(base, max_rejects=1)
    wanted = None
    crashes = 0
    for count in range(200):
        shutil.rmtree(base, ignore_errors=True)
        results = stage_all(spec, rejects=1, rows=5000)
        with pytest.MonkeyPatch.context() as patch:
            calls = _crash_at(patch, count)
            try:
                write_generation(spec, results)
            except _Crash:
                crashes += 1
            else:
                assert calls() <= count
                break
        committed = (base / "out/manifests/00000001.json").exists()
        if not committed:  # no file has a shard's name
            assert not [name for name in os.listdir(base / "out") if name != ".staging" and name != "manifests"]
        else:  # a reader sees all of it
            assert len(list(open_dataset(spec.path).records("train"))) == 15000
        held = prepare_target(spec)
        assert (held is not None) == committed
        if held is None:
            write_generation(replace(spec, commit_id="again"), stage_all(spec, rejects=1))
        found = without_run(base / "out")
        wanted = wanted or found
        assert found == wanted
    assert crashes > 25


@pytest.mark.parametrize("crash_after", [*range(0, 60, 3)])
def test_a_replacement_that_crashes_leaves_the_old_or_the_new_records(tmp_path: Path, crash_after: int) -> None:
    old = spec_of(tmp_path)
    write(old)
    changed = {"tasks": None, "source_entries": (), "run_id": "f" * 16, "commit_id": "new", "if_exists": "replace"}
    new = spec_of(tmp_path, source_fingerprint="sha256:" + "e" * 64, **changed)
    assert prepare_target(new) is None
    results = stage_all(new, rows=300)
    with pytest.MonkeyPatch.context() as patch:
        _crash_at(patch, crash_after)
        with contextlib.suppress(_Crash):
            write_generation(new, results)
    manifest = read_manifest(new.path)
    assert len(list(open_dataset(new.path).records("train"))) == (15000 if manifest.generation == 1 else 900)
    assert finish_publish(new.path) == manifest
    assert sum(1 for _ in open_dataset(new.path).records("train")) == (15000 if manifest.generation == 1 else 900)
    shards = {shard.path for shard in manifest.splits["train"].shards}
    assert {name for name in os.listdir(new.path) if name.endswith(".tfrecord")} == shards


def test_a_replacement_without_rows_that_crashes_anywhere_leaves_the_old_shards_or_none(tmp_path: Path) -> None:
    done = False
    generations = []
    while not done:
        shutil.rmtree(tmp_path / "out", ignore_errors=True)
        old = spec_of(tmp_path)
        write(old)
        changed = {"tasks": None, "source_entries": (), "run_id": "f" * 16, "commit_id": "new", "if_exists": "replace"}
        new = spec_of(tmp_path, source_fingerprint="sha256:" + "e" * 64, **changed)
        assert prepare_target(new) is None
        with pytest.MonkeyPatch.context() as patch:
            _crash_at(patch, len(generations))
            try:
                write_generation(new, [])
            except _Crash:
                pass
            else:
                done = True
        manifest = finish_publish(new.path)
        assert manifest is not None
        generations.append(manifest.generation)
        shards = {shard.path for split in manifest.splits.values() for shard in split.shards}
        assert bool(shards) == (manifest.generation == 1)
        assert {name for name in os.listdir(new.path) if name.endswith(".tfrecord")} == shards
    assert generations == sorted(generations)
    assert generations.count(2) > 5, "it crashed behind its commit, too"


def test_trying_the_commit_again_finds_what_the_first_try_did(tmp_path: Path) -> None:
    spec = spec_of(tmp_path)
    plan = plan_dataset(spec, stage_all(spec))
    assert isinstance(plan, Plan)
    for _ in range(2):
        for job in plan.jobs:
            assemble_shard(spec, job)
    first = commit_module.commit_generation(spec, plan.draft, plan.jobs)
    assert commit_module.commit_generation(spec, plan.draft, plan.jobs) == first
    assert os.listdir(tmp_path / "out/manifests") == ["00000001.json"]


def commit_within(root: Path, limits: ManifestLimits) -> Commit | Refusal:
    """Stage a dataset, and commit it under other limits of its manifest."""
    spec = spec_of(root)
    plan = plan_dataset(spec, stage_all(spec))
    assert isinstance(plan, Plan)
    for job in plan.jobs:
        assemble_shard(spec, job)
    return commit_module.commit_generation(spec, plan.draft, plan.jobs, limits)


def test_a_manifest_that_no_reader_would_take_is_refused_before_it_is_made(tmp_path: Path) -> None:
    refusal = commit_within(tmp_path, ManifestLimits(bytes=1000))
    assert isinstance(refusal, Refusal)
    assert refusal.kind == "commit"
    assert "over the limit of 1000 B; nothing of this run was committed; take a larger" in refusal.message
    assert read_outcome(spec_of(tmp_path)).refusal == refusal
    assert not list((tmp_path / "out").glob("[!.]*"))


def test_of_two_writers_one_wins_and_the_other_stops(tmp_path: Path) -> None:
    first, second = spec_of(tmp_path), spec_of(tmp_path, commit_id="two", run_id="e" * 16)
    results = stage_all(second)
    write(first)
    outcome = write_generation(second, results)
    assert outcome.refusal is not None
    assert isinstance(outcome.refusal.error(), CommitError)
    assert "committed by another writer" in outcome.refusal.message
    assert read_manifest(first.path).run.commit_id == "commit-one"
    assert isinstance(read_outcome(second).refusal, Refusal)


def test_of_two_replacements_the_one_that_another_overtook_stops(tmp_path: Path) -> None:
    write(spec_of(tmp_path))
    first, second = (
        replacing_what_is_there(spec_of(tmp_path, if_exists="replace", run_id=run * 16, commit_id=run * 32))
        for run in "ab"
    )
    assert write(second).manifest is not None
    before = tree(tmp_path)
    outcome = write(first)
    assert outcome.refusal is not None
    assert "generation 2 was committed by another writer" in outcome.refusal.message
    assert "to write over that one too, run it again" in outcome.refusal.message
    assert {path: data for path, data in tree(tmp_path).items() if ".staging" not in path} == {
        path: data for path, data in before.items() if ".staging" not in path
    }


def test_the_loser_of_the_very_last_race_stops_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = spec_of(tmp_path), spec_of(tmp_path, commit_id="two", run_id="e" * 16)
    results = stage_all(second)
    real = LocalStorage.put_if_absent

    def late(self: LocalStorage, path: str, data: bytes) -> bool:
        monkeypatch.setattr(LocalStorage, "put_if_absent", real)
        write(first)
        return real(self, path, data)

    monkeypatch.setattr(LocalStorage, "put_if_absent", late)
    outcome = write_generation(second, results)
    assert outcome.refusal is not None
    assert read_manifest(first.path).run.commit_id == "commit-one"


def test_a_file_that_is_in_the_way_is_never_overwritten(tmp_path: Path) -> None:
    spec = spec_of(tmp_path)
    results = stage_all(spec)
    mine = b"mine" * (65_520 // 4)  # the size of the shard: only its bytes tell it from one that is published already
    (tmp_path / "out/train-00003.tfrecord").write_bytes(mine)
    with pytest.raises(CommitError, match=r"train-00003\.tfrecord is in the way"):
        write_generation(spec, results)
    assert (tmp_path / "out/train-00003.tfrecord").read_bytes() == mine
    (tmp_path / "out/train-00003.tfrecord").unlink()
    assert finish_publish(spec.path) == read_manifest(spec.path)
    assert len(list(open_dataset(spec.path).records("train"))) == 15000


def test_a_file_of_the_name_of_a_shard_with_its_very_bytes_is_that_shard(tmp_path: Path) -> None:
    write(spec_of(tmp_path / "other"))
    (tmp_path / "out").mkdir()
    spec = spec_of(tmp_path)
    results = stage_all(spec)
    shutil.copy(tmp_path / "other/out/train-00001.tfrecord", tmp_path / "out")
    assert write_generation(spec, results).manifest is not None
    assert verify_dataset(tmp_path / "out").findings == ()


@pytest.mark.parametrize("if_exists", ["refuse", "replace"])
def test_a_move_that_an_engine_lost_is_made_before_staging_is_removed(tmp_path: Path, if_exists: str) -> None:
    if if_exists == "replace":  # its shards have the names and the sizes of those to come
        write(spec_of(tmp_path, commit_id="zero", run_id="1" * 16), rejects=0)
    spec = replacing_what_is_there(spec_of(tmp_path, if_exists=if_exists))
    done: list[str] = []

    def all_but_one(function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        for item in items:
            if isinstance(item, Move):
                done.append(item.target)
            if not isinstance(item, Move) or item.target != "train-00002.tfrecord":
                yield function(item)

    write_generation(spec, shifted(spec, 1), all_but_one)
    assert "train-00002.tfrecord" in done
    assert verify_dataset(tmp_path / "out").findings == ()
    assert not (tmp_path / "out/.staging").exists()


def test_a_move_that_cannot_be_made_fails_the_run_and_staging_stays(tmp_path: Path) -> None:
    spec = spec_of(tmp_path)

    def lose_one(function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        for item in items:
            if isinstance(item, Move) and item.target == "train-00002.tfrecord":
                os.unlink(spec.storage.path(item.source))
            else:
                yield function(item)

    with pytest.raises(CommitError, match=r"train-00002\.tfrecord was committed, but is neither there nor in"):
        write_generation(spec, stage_all(spec), lose_one)
    assert (tmp_path / "out/.staging").exists()


def test_a_staged_shard_that_is_not_the_committed_one_is_never_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = spec_of(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(publish_module, "publish_file", _crash)
        with pytest.raises(OSError, match="crash"):
            write(spec)
    staged = tmp_path / f"out/{spec.staging}/shards/train-00002.tfrecord"
    data = bytearray(staged.read_bytes())
    data[100] ^= 1
    staged.unlink()
    staged.write_bytes(data)
    with pytest.raises(CommitError, match=r"train-00002\.tfrecord is not the committed train-00002\.tfrecord"):
        finish_publish(str(tmp_path / "out"))
    assert not (tmp_path / "out/train-00002.tfrecord").exists()


def _crash(*_: object) -> None:
    raise OSError("crash")


def test_a_committed_shard_that_is_gone_is_named(tmp_path: Path) -> None:
    spec = spec_of(tmp_path)
    write(spec)
    (tmp_path / "out/manifest.json").unlink()
    (tmp_path / "out/train-00001.tfrecord").unlink()
    with pytest.raises(CommitError, match=r"train-00001\.tfrecord was committed, but is neither there nor in"):
        finish_publish(spec.path)


def test_the_same_source_and_config_again_are_nothing_to_do(tmp_path: Path) -> None:
    spec = spec_of(tmp_path)
    assert prepare_target(spec) is None
    outcome = write(spec)
    assert prepare_target(replace(spec, commit_id="two")) == outcome.manifest


def test_another_dataset_is_refused_before_a_row_is_read(tmp_path: Path) -> None:
    write(spec_of(tmp_path))
    other = spec_of(tmp_path, config_fingerprint="sha256:" + "9" * 64)
    with pytest.raises(TargetError, match="holds dataset numbers, generation 1, from another source or config"):
        prepare_target(other)


@pytest.mark.parametrize("name", ["train-00000.tfrecord", "manifest.json", "dataset_info.json", "a.labels.txt"])
def test_a_folder_with_files_of_our_names_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / name).write_bytes(b"mine")
    with pytest.raises(TargetError, match="is not a dataset of Shardmill"):
        prepare_target(spec_of(tmp_path))


def test_a_copy_of_a_dataset_without_its_manifests_is_refused_as_one(tmp_path: Path) -> None:
    write(spec_of(tmp_path))
    shutil.rmtree(tmp_path / "out/manifests")
    with pytest.raises(TargetError, match=r"manifests/ is missing beside manifest\.json: this is a copy of a dataset"):
        prepare_target(spec_of(tmp_path))


def test_a_folder_with_other_files_is_taken(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/README.md").write_bytes(b"mine")
    assert prepare_target(spec_of(tmp_path)) is None


def test_a_folder_in_which_a_run_died_just_before_its_commit_is_taken(tmp_path: Path) -> None:
    (tmp_path / "out/manifests").mkdir(parents=True)
    assert prepare_target(spec_of(tmp_path)) is None
    (tmp_path / "out/manifests" / f".00000001.json.{'0' * 32}").write_bytes(b'{"form')
    assert prepare_target(spec_of(tmp_path)) is None
    (tmp_path / "out/manifests/mine").write_bytes(b"")
    with pytest.raises(TargetError, match="holds manifests, and is not a dataset"):
        prepare_target(spec_of(tmp_path))


def test_the_staging_of_a_failed_run_is_cleared_by_the_next(tmp_path: Path) -> None:
    spec = spec_of(tmp_path)
    write(spec, rejects=1)
    assert (tmp_path / "out/.staging/0123456789abcdef/refusal.json").exists()
    prepare_target(spec)
    assert os.listdir(tmp_path / "out/.staging/0123456789abcdef") == []


def test_a_path_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out").write_bytes(b"mine")
    with pytest.raises(TargetError, match="files cannot be made and linked there: Not a directory"):
        prepare_target(spec_of(tmp_path))
    assert (tmp_path / "out").read_bytes() == b"mine"


def test_a_file_system_without_links_is_refused_before_a_row_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    with pytest.raises(TargetError, match="linked there: Operation not permitted"):
        prepare_target(spec_of(tmp_path))


def test_a_run_that_left_nothing_has_an_unknown_outcome(tmp_path: Path) -> None:
    with pytest.raises(CommitError, match="neither committed"):
        read_outcome(spec_of(tmp_path))


def test_dataset_info_with_which_readers_begin_comes_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []
    real_place, real_replace = LocalStorage.place, LocalStorage.replace

    def place(self: LocalStorage, source: str, target: str) -> None:
        order.append(target)
        real_place(self, source, target)

    def put(self: LocalStorage, path: str, data: bytes) -> None:
        order.append(path)
        real_replace(self, path, data)

    monkeypatch.setattr(LocalStorage, "place", place)
    monkeypatch.setattr(LocalStorage, "replace", put)
    write(spec_of(tmp_path))
    published = [name for name in order if not name.startswith(".staging")]
    assert published == ["schema.pbtxt", "features.json", "dataset_info.json", "manifest.json"]


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"shard_size": 65535}, "the least is 64KiB"),
        ({"compression": "zip"}, "choose one of none, gzip"),
        ({"order": "random"}, "choose one of task, source"),
        ({"if_exists": "append"}, "choose one of refuse, replace"),
        ({"sidecars": ("csv",)}, "choose among tfds, tfx, croissant, label_map, index"),
        ({"shard_name": "{split}"}, "same name"),
        ({"path": "out"}, "absolute"),
        ({"max_rejects": "many"}, "max_rejects"),
    ],
)
def test_a_spec_that_makes_no_sense_is_refused(tmp_path: Path, changes: dict[str, Any], problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        spec_of(tmp_path, **changes)


def shifted(spec: DatasetSpec, by: int) -> list[TaskResult]:
    """Stage records of the sizes of `stage_all`, and of other bytes."""
    results = []
    for task in range(3):
        stager = TaskStager(spec.storage, spec.staging, task, spec.stage_settings)
        frames = frame_records(pa.array([payload(task, i + by) for i in range(5000)], pa.large_binary()))
        stager.add(Block(task, 0, {"train": frames}, (EntryCounts(task // 2, 5000, 5000),)))
        results.append(stager.finish(TaskEnd(task, 1, {task // 2: 5000})))
    return results


def commit_only(spec: DatasetSpec, results: list[TaskResult]) -> Commit:
    plan = plan_dataset(spec, results)
    assert isinstance(plan, Plan)
    for job in plan.jobs:
        assemble_shard(spec, job)
    commit = commit_module.commit_generation(spec, plan.draft, plan.jobs)
    assert isinstance(commit, Commit)
    return commit


@pytest.mark.parametrize("first", ["create", "replace"])
@pytest.mark.parametrize("published", [True, False])
def test_a_run_that_is_replaced_before_it_completes_touches_nothing_of_the_new_generation(
    tmp_path: Path, first: str, published: bool
) -> None:
    if first == "replace":
        write(spec_of(tmp_path, commit_id="zero", run_id="0" * 16))
    slow = replacing_what_is_there(spec_of(tmp_path, if_exists="replace", commit_id="slow", run_id="1" * 16))
    commit = commit_only(slow, shifted(slow, 1))
    moves = moves_of(commit)
    for move in moves if published else moves[:3]:
        publish_file(slow.storage, move)
    fast = replacing_what_is_there(spec_of(tmp_path, if_exists="replace", commit_id="fast", run_id="2" * 16))
    write_generation(fast, shifted(fast, 2))
    records = list(open_dataset(tmp_path / "out").records("train"))
    for move in moves:
        publish_file(slow.storage, move)
    complete_publish(slow.storage, commit)
    assert verify_dataset(tmp_path / "out").findings == ()
    assert list(open_dataset(tmp_path / "out").records("train")) == records
    assert not (tmp_path / "out/.staging").exists()


def test_a_replacement_of_which_a_staged_shard_is_gone_is_not_taken_for_published(tmp_path: Path) -> None:
    write(spec_of(tmp_path, commit_id="zero", run_id="0" * 16))
    spec = replacing_what_is_there(spec_of(tmp_path, if_exists="replace"))
    commit_only(spec, shifted(spec, 1))
    (tmp_path / f"out/{spec.staging}/shards/train-00002.tfrecord").unlink()
    with pytest.raises(CommitError, match=r"train-00002\.tfrecord was committed, but is neither there nor in"):
        finish_publish(str(tmp_path / "out"))
    assert (tmp_path / "out/.staging").exists()


def test_a_second_run_leaves_the_lists_of_the_first_that_are_not_published_yet(tmp_path: Path) -> None:
    spec = spec_of(tmp_path, max_rejects=10)
    commit_only(spec, stage_all(spec, rejects=2))
    refusal = write_generation(spec, stage_all(spec, rejects=7)).refusal
    assert refusal is not None
    assert "this pipeline has run before, and committed generation 1; this is not what it held" in refusal.message
    finish_publish(str(tmp_path / "out"))
    assert verify_dataset(tmp_path / "out").findings == ()
    assert len((tmp_path / "out/rejects/00000001.jsonl").read_text().splitlines()) == 2


def test_a_refusal_that_an_engine_lost_is_read_from_the_staging_folder(tmp_path: Path) -> None:
    spec = spec_of(tmp_path, max_rejects=1)
    refused = plan_dataset(spec, stage_all(spec, rejects=2))
    assert commit_module.commit_arrived(spec, []) == refused


def test_a_run_whose_elements_the_engine_lost_may_be_run_again(tmp_path: Path) -> None:
    refusal = commit_module.commit_arrived(spec_of(tmp_path), [])
    assert isinstance(refusal, Refusal)
    assert refusal.message.endswith(
        "the engine lost the plan between two of its steps; nothing was committed; run it again"
    )
    error = Refusal.from_json(refusal.to_json()).error()
    assert isinstance(error, RunError)
    assert error.again
