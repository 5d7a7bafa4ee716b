"""Appends: generation after generation, numbered on, whoever comes first."""

from __future__ import annotations

import contextlib
import json
import os
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from shardmill.transforms.dataset.commit import commit_generation as commit_module
from shardmill.transforms.dataset.commit.accounting import HeldSource, read_held_sources
from shardmill.transforms.dataset.commit.assemble_shards import assemble_shard
from shardmill.transforms.dataset.commit.commit_generation import WriteOutcome, append_to, read_outcome
from shardmill.transforms.dataset.commit.plan_step import Plan, plan_dataset
from shardmill.transforms.dataset.commit.publish import (
    complete_publish,
    finish_publish,
    moves_of,
    prepare_folder,
    prepare_target,
    publish_file,
    write_generation,
)
from shardmill.transforms.dataset.integrity.verify import verify_dataset
from shardmill.transforms.dataset.reading.open_dataset import open_dataset
from shardmill.transforms.dataset.stage.spec import DatasetSpec, EntryInfo
from shardmill.transforms.dataset.storage import opened_generation
from shardmill.transforms.dataset.storage.local_storage import LocalStorage
from shardmill.transforms.dataset.storage.manifest_files import lineage, read_manifest
from shardmill.transforms.errors import CommitError, DamageError, TargetError
from shardmill.transforms.format.manifest.manifest import Manifest, ShardEntry
from shardmill.transforms.format.manifest.naming import index_path
from shardmill.transforms.format.schema.schema import Feature, Schema

from .test_commit_generation import _Crash, _crash_at, payload, spec_of, stage_all, tree, write

LABELLED = Schema((Feature("x", "int64", "label", labels="x.labels.txt"),))


def append_spec(root: Path, number: int, *, force: bool = False, **changes: Any) -> DatasetSpec:
    """Return an append to what the folder holds now; its two files bear the number."""
    latest = read_manifest(str(root / "out"))
    entries = (
        EntryInfo(f"{number}-a.csv", 10, f"sha256:{number}a"),
        EntryInfo(f"{number}-b.csv", 20, f"sha256:{number}b"),
    )
    values: dict[str, Any] = {
        "source_entries": entries,
        "source_fingerprint": f"sha256:{number:064d}",
        "run_id": f"{number:016d}",
        "commit_id": f"commit-{number}",
        "append_to": append_to(latest, "sha256:options", force=force),
    }
    return spec_of(root, **(values | changes))


def add(root: Path, number: int, rows: int = 700, **changes: Any) -> WriteOutcome:
    spec = append_spec(root, number, **changes)
    return write_generation(spec, stage_all(spec, rows=rows))


def assert_whole(root: Path, generations: int, records: int) -> None:
    out = str(root / "out")
    report = verify_dataset(out)
    assert (report.findings, report.notes) == ((), ())
    manifest = read_manifest(out)
    assert (manifest.generation, report.records) == (generations, records)
    paths = [shard.path for shard in manifest.splits["train"].shards]
    assert paths == [f"train-{i:05d}.tfrecord" for i in range(len(paths))]
    assert (root / "out/manifest.json").read_bytes() == manifest.to_bytes()
    assert not (root / "out/.staging").exists()


def test_an_append_adds_shards_that_are_numbered_on_and_touches_no_byte_of_before(tmp_path: Path) -> None:
    write(spec_of(tmp_path))
    before = tree(tmp_path / "out")
    outcome = add(tmp_path, 2)
    after = tree(tmp_path / "out")
    manifest = outcome.manifest
    assert manifest is not None
    assert (manifest.generation, manifest.parent, manifest.operation, manifest.version) == (2, 1, "append", "1.1.0")
    replaced = {"manifest.json", "dataset_info.json", "features.json", "schema.pbtxt"}
    assert {name for name in before if after[name] != before[name]} <= replaced
    assert set(after) - set(before) == {
        "manifests/00000002.json",
        "sources/00000002.jsonl",
        *(shard.path for shard in manifest.own_shards),
        *(index_path(shard.path, "binary") for shard in manifest.own_shards),
    }
    assert {shard.generation for shard in manifest.splits["train"].shards} == {1, 2}
    assert json.loads(after["dataset_info.json"])["version"] == "1.1.0"
    assert_whole(tmp_path, 2, 15000 + 3 * 700)


def test_counts_are_of_the_append_and_splits_are_of_the_whole(tmp_path: Path) -> None:
    write(spec_of(tmp_path))
    outcome = add(tmp_path, 2)
    manifest = outcome.manifest
    assert manifest is not None
    assert (manifest.counts.read, manifest.counts.written) == (2100, 2100)
    assert manifest.splits["train"].records == 17100
    assert [entry.values for entry in manifest.narrowed] == [2 * 5000 + 2 * 700]
    assert manifest.source.list == "sources/00000002.jsonl"


def test_an_older_generation_reads_as_it_was(tmp_path: Path) -> None:
    write(spec_of(tmp_path))
    for number in (2, 3):
        add(tmp_path, number)
    counts = [sum(1 for _ in open_dataset(tmp_path / "out", g).records("train")) for g in (1, 2, 3)]
    assert counts == [15000, 17100, 19200]
    assert [m.generation for m in lineage(str(tmp_path / "out"), read_manifest(str(tmp_path / "out")))] == [3, 2, 1]


def test_records_digests_add_up(tmp_path: Path) -> None:
    write(spec_of(tmp_path))
    add(tmp_path, 2)
    twice = spec_of(tmp_path / "other")
    write(twice)
    add(tmp_path / "other", 2)
    digests = {
        read_manifest(str(root / "out")).splits["train"].records_digest for root in (tmp_path, tmp_path / "other")
    }
    assert len(digests) == 1


def test_an_append_that_loses_numbers_its_shards_anew_and_lands_behind(tmp_path: Path) -> None:
    write(spec_of(tmp_path, sidecars=("tfds", "tfx", "index")))
    specs = [append_spec(tmp_path, number, sidecars=("tfds", "tfx", "index")) for number in (2, 3, 4)]
    results = [stage_all(spec, rows=300 * (i + 1), rejects=i) for i, spec in enumerate(specs)]
    for spec, staged in zip(specs, results, strict=True):
        outcome = write_generation(replace(spec, max_rejects=5), staged)
        assert outcome.manifest is not None
    assert_whole(tmp_path, 4, 15000 + 3 * (300 + 600 + 900))
    last = read_manifest(str(tmp_path / "out"))
    assert last.run.staging == f".staging/{4:016d}/try-00000004"
    assert last.rejects.path == "rejects/00000004.jsonl"
    assert len(os.listdir(tmp_path / "out/index")) == len(last.splits["train"].shards)


def test_a_renumbered_append_has_the_bytes_that_it_would_have_had_alone(tmp_path: Path) -> None:
    for root in (tmp_path / "raced", tmp_path / "alone"):
        write(spec_of(root))
    raced = append_spec(tmp_path / "raced", 3)
    staged = stage_all(raced, rows=700)
    add(tmp_path / "raced", 2)
    write_generation(raced, staged)
    add(tmp_path / "alone", 2)
    add(tmp_path / "alone", 3)
    trees = []
    for root in (tmp_path / "raced/out", tmp_path / "alone/out"):
        files = tree(root)
        for name in ("manifest.json", "manifests/00000001.json", "manifests/00000002.json", "manifests/00000003.json"):
            document = json.loads(files[name])
            del document["run"]
            files[name] = json.dumps(document).encode()
        trees.append(files)
    assert trees[0] == trees[1]


def test_the_commit_of_an_append_tried_twice_is_one_generation(tmp_path: Path) -> None:
    write(spec_of(tmp_path))
    spec = append_spec(tmp_path, 3)
    plan = plan_dataset(spec, stage_all(spec, rows=700))
    assert isinstance(plan, Plan)
    for job in plan.jobs:
        assemble_shard(spec, job)
    add(tmp_path, 2)
    first = commit_module.commit_generation(spec, plan.draft, plan.jobs)
    add(tmp_path, 4)  # another one lands between the two attempts
    assert commit_module.commit_generation(spec, plan.draft, plan.jobs) == first
    finish_publish(spec.path)
    assert_whole(tmp_path, 4, 15000 + 3 * 2100)


@pytest.mark.parametrize("losses", [1, 9, 10])
def test_an_append_tries_ten_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, losses: int) -> None:
    write(spec_of(tmp_path))
    spec = append_spec(tmp_path, 99)
    staged = stage_all(spec, rows=300)
    real = LocalStorage.put_if_absent
    left = [losses]

    def late(self: LocalStorage, path: str, data: bytes) -> bool:
        if path.startswith("manifests/") and left[0]:
            left[0] -= 1
            monkeypatch.setattr(LocalStorage, "put_if_absent", real)
            add(tmp_path, 50 + left[0], rows=10)
            monkeypatch.setattr(LocalStorage, "put_if_absent", late)
        return real(self, path, data)

    monkeypatch.setattr(LocalStorage, "put_if_absent", late)
    outcome = write_generation(spec, staged)
    if losses < 10:
        assert_whole(tmp_path, losses + 2, 15000 + 30 * losses + 900)
        return
    assert outcome.refusal is not None
    assert isinstance(outcome.refusal.error(), CommitError)
    assert "10 other appends were faster" in outcome.refusal.message
    assert read_manifest(spec.path).generation == 11


def test_what_two_appends_have_in_common_is_not_doubled(tmp_path: Path) -> None:
    write(spec_of(tmp_path))
    shared = EntryInfo("shared.csv", 10, "sha256:shared")
    other = EntryInfo("other.csv", 10, "sha256:other")
    first = append_spec(tmp_path, 2, source_entries=(shared, other))
    second = append_spec(tmp_path, 3, source_entries=(other, shared))
    staged = stage_all(second, rows=10)
    write_generation(first, stage_all(first, rows=10))
    refusal = write_generation(second, staged).refusal
    assert refusal is not None
    assert (refusal.kind, "generation 2 appended shared.csv too" in refusal.message) == ("stale", True)
    assert read_outcome(second).refusal == refusal
    forced = append_spec(tmp_path, 4, source_entries=(other, shared), force=True)
    assert write_generation(forced, stage_all(forced, rows=10)).manifest is not None


def test_two_new_classes_never_get_one_number(tmp_path: Path) -> None:
    write(spec_of(tmp_path, schema=LABELLED, labels={"x": ("cat", "dog")}))
    specs = [
        append_spec(tmp_path, n, schema=LABELLED, labels={"x": ("cat", "dog", *new)})
        for n, new in enumerate([("fox",), (), ("fox", "gnu"), ("fox",), ("emu",)], 2)
    ]
    staged = [stage_all(spec, rows=10) for spec in specs]
    outcomes = [write_generation(spec, results) for spec, results in zip(specs, staged, strict=True)]
    labels = [outcome.manifest.labels["x"] if outcome.manifest else None for outcome in outcomes]
    fox, gnu = ("cat", "dog", "fox"), ("cat", "dog", "fox", "gnu")
    assert labels == [fox, fox, gnu, gnu, None]
    assert outcomes[4].refusal is not None
    assert "gave the numbers of new classes of x to others" in outcomes[4].refusal.message
    assert (tmp_path / "out/x.labels.txt").read_text().split() == list(gnu)


def test_an_append_to_a_dataset_that_was_replaced_meanwhile_is_stale(tmp_path: Path) -> None:
    write(spec_of(tmp_path))
    spec = append_spec(tmp_path, 3)
    staged = stage_all(spec, rows=10)
    new = spec_of(tmp_path, if_exists="replace", run_id="f" * 16, commit_id="new", tasks=None, source_entries=())
    write_generation(new, stage_all(new, rows=10))
    refusal = write_generation(spec, staged).refusal
    assert refusal is not None
    assert "generation 2 replaced the dataset" in refusal.message


def test_an_append_over_generations_that_were_not_published_publishes_them(tmp_path: Path) -> None:
    write(spec_of(tmp_path))
    dead = append_spec(tmp_path, 2)
    plan = plan_dataset(dead, stage_all(dead, rows=700))
    assert isinstance(plan, Plan)
    for job in plan.jobs:
        assemble_shard(dead, job)
    commit_module.commit_generation(dead, plan.draft, plan.jobs)
    assert sum(1 for _ in open_dataset(tmp_path / "out").records("train")) == 17100
    alive = append_spec(tmp_path, 3)
    plan = plan_dataset(alive, stage_all(alive, rows=700))
    assert isinstance(plan, Plan)
    for job in plan.jobs:
        assemble_shard(alive, job)
    commit_module.commit_generation(alive, plan.draft, plan.jobs)
    assert sum(1 for _ in open_dataset(tmp_path / "out").records("train")) == 19200  # two staging folders
    assert not (tmp_path / "out/sources/00000002.jsonl").exists()
    assert {held.generation for held in read_held_sources(alive.path, read_manifest(alive.path, 2))} == {2}
    finish_publish(alive.path)
    assert_whole(tmp_path, 3, 19200)


def test_a_reader_finds_a_shard_that_is_published_while_it_looks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(spec_of(tmp_path))
    real, left = opened_generation.locate_shard, [2]

    def late(root: str, manifest: Manifest, shard: ShardEntry) -> str:
        left[0] -= 1
        return ".staging/gone/" + shard.path if left[0] >= 0 and left[0] % 2 else real(root, manifest, shard)

    monkeypatch.setattr(opened_generation, "locate_shard", late)
    assert sum(1 for _ in open_dataset(tmp_path / "out").records("train")) == 15000


def test_the_sidecars_of_an_older_generation_never_come_last(tmp_path: Path) -> None:
    write(spec_of(tmp_path))
    slow = append_spec(tmp_path, 2)
    plan = plan_dataset(slow, stage_all(slow, rows=700))
    assert isinstance(plan, Plan)
    for job in plan.jobs:
        assemble_shard(slow, job)
    commit = commit_module.commit_generation(slow, plan.draft, plan.jobs)
    assert isinstance(commit, commit_module.Commit)
    add(tmp_path, 3)  # a whole append, while the first has committed and done nothing more
    for move in moves_of(commit):
        publish_file(slow.storage, move)
    complete_publish(slow.storage, commit)
    assert_whole(tmp_path, 3, 19200)


def test_each_line_of_the_list_of_sources_says_what_was_held(tmp_path: Path) -> None:
    write(spec_of(tmp_path))
    add(tmp_path, 2)
    out = str(tmp_path / "out")
    held = [h for manifest in lineage(out, read_manifest(out)) for h in read_held_sources(out, manifest)]
    assert held[0] == HeldSource("2-a.csv", "sha256:2a", 2, "sha256:options", bytes=10)
    assert [h.generation for h in held] == [2, 2, 1, 1]


def test_an_append_that_crashes_anywhere_leaves_the_old_or_the_new_records(tmp_path: Path) -> None:
    crashes = 0
    wanted: dict[str, bytes] = {}
    for count in range(1000):
        base = tmp_path / str(count)
        write(spec_of(base, source_entries=()), rows=60)
        spec = append_spec(base, 2)
        staged = stage_all(spec, rows=700)
        with pytest.MonkeyPatch.context() as patch:
            calls = _crash_at(patch, count)
            with contextlib.suppress(_Crash):
                write_generation(spec, staged)
            if calls() <= count:
                break
        crashes += 1
        committed = read_manifest(spec.path).generation == 2
        assert sum(1 for _ in open_dataset(spec.path).records("train")) == (180 + 2100 if committed else 180)
        finish_publish(spec.path)
        if not committed:
            write_generation(replace(spec, commit_id="again"), stage_all(spec, rows=700))
        assert_whole(base, 2, 180 + 2100)
        found = {name: data for name, data in tree(base / "out").items() if "manifest" not in name}
        wanted = wanted or found
        assert found == wanted
    assert crashes > 10


def test_records_are_those_that_were_appended_in_order(tmp_path: Path) -> None:
    created = spec_of(tmp_path, source_entries=())
    write(created, rows=5)
    add(tmp_path, 2, rows=5)
    found = Counter(open_dataset(tmp_path / "out").records("train"))
    assert found == Counter([payload(task, i) for task in range(3) for i in range(5)] * 2)
    held = prepare_target(created)
    assert held is not None
    assert held.generation == 1


@pytest.mark.parametrize(
    "name", ["train-00007.tfrecord", "index/train-00007.offsets", "sources/00000002.jsonl", "rejects/00000002.jsonl"]
)
@pytest.mark.parametrize("kind", ["file", "dangling link"])
def test_a_name_that_is_taken_is_seen_before_the_commit_and_the_same_append_ends_once_it_is_free(
    tmp_path: Path, name: str, kind: str
) -> None:
    write(spec_of(tmp_path))
    assert not (tmp_path / "out" / name).exists()
    (tmp_path / "out" / name).parent.mkdir(exist_ok=True)
    if kind == "file":
        (tmp_path / "out" / name).write_text("mine")
    else:
        (tmp_path / "out" / name).symlink_to(tmp_path / "nowhere")
    spec = append_spec(tmp_path, 2, max_rejects=1)
    outcome = write_generation(spec, stage_all(spec, rows=700, rejects=1))
    assert outcome.manifest is None
    assert f"{name} is in the way" in str(outcome.refusal)
    assert read_manifest(str(tmp_path / "out")).generation == 1
    (tmp_path / "out" / name).unlink()
    (tmp_path / "nowhere").write_text("nothing may be written here")
    again = append_spec(tmp_path, 2, max_rejects=1)
    assert write_generation(again, stage_all(again, rows=700, rejects=1)).manifest is not None
    assert (tmp_path / "nowhere").read_text() == "nothing may be written here"


@pytest.mark.parametrize("content", [b"no JSON", None])
def test_a_damaged_or_linked_features_json_is_an_error_that_names_it(tmp_path: Path, content: bytes | None) -> None:
    write(spec_of(tmp_path))
    path = tmp_path / "out/features.json"
    path.unlink()
    if content is None:
        path.symlink_to(tmp_path / "nowhere")
    else:
        path.write_bytes(content)
    with pytest.raises(DamageError, match=r"features\.json: (is not JSON; remove it|a link)"):
        add(tmp_path, 2)
    path.unlink()
    assert add(tmp_path, 3).manifest is not None


def test_an_append_whose_probe_fails_is_not_told_to_choose_another_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(spec_of(tmp_path))
    spec = append_spec(tmp_path, 2)

    def fail(*_: Any) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(LocalStorage, "put_if_absent", fail)
    with pytest.raises(TargetError, match=r"Input/output error; fix that, and run the command again$"):
        prepare_folder(spec)
