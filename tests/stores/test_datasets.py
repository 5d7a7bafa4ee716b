"""Whole datasets in S3 and Google Cloud Storage: what is written there has the bytes of what is written on disk."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from shardmill.pipelines import append, convert, open_dataset
from shardmill.pipelines.cli import main
from shardmill.pipelines.runs.merge import plan_merge
from shardmill.transforms.dataset.integrity import garbage
from shardmill.transforms.dataset.integrity.verify import verify_dataset
from shardmill.transforms.dataset.stage import spill as spiller
from shardmill.transforms.dataset.storage.manifest_files import list_generations, read_manifest
from shardmill.transforms.dataset.storage.object_storage import ObjectStorage
from shardmill.transforms.dataset.storage.record_file import write_records
from shardmill.transforms.errors import DamageError, StoreAccessError, TargetError, TooManyRejects, UsageError
from shardmill.transforms.format.manifest import manifest as manifest_parts
from shardmill.transforms.format.splits import shard_plan
from shardmill.transforms.format.tfrecord.framing import crc32c

from .. import followed_hints
from .conftest import ROWS, S3_TOO, Bucket, Local, files_of
from .generations import create

ROOT = Path(__file__).parents[2]


def same(paths: str, local: Local, out: str, **settings: Any) -> None:
    """Convert to disk and to the store, and compare every byte."""
    convert({"input": {"paths": [paths]}, "name": "rows"}, output=out, **settings)
    assert files_of(out) == files_of(local(paths, **settings))
    assert verify_dataset(out).ok
    assert verify_dataset(out, quick=True).ok


def test_a_table_in_many_shards(table: str, local: Local, out: str) -> None:
    same(table, local, out, shard_size="64KiB", sidecars=["tfds", "tfx", "index"])
    dataset = open_dataset(out + "/")
    assert len(dataset.shard_paths("train")) > 3
    assert sorted(dataset.to_arrow("train", ["id"])["id"].to_pylist()) == list(range(ROWS))


@pytest.mark.parametrize("bucket_url", S3_TOO, indirect=True)
def test_a_compressed_table_in_the_order_of_its_source(table: str, local: Local, out: str) -> None:
    same(table, local, out, shard_size="64KiB", compression="gzip", order="source")


@pytest.fixture(scope="module")
def odd_rows(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("source") / "odd.csv"
    path.write_text("id\n" + "".join(f"{i if i % 7 else 'x'}\n" for i in range(200)))
    return str(path)


@pytest.mark.parametrize("bucket_url", S3_TOO, indirect=True)
def test_rejects_and_splits(odd_rows: str, local: Local, out: str) -> None:
    settings = {"schema__columns": {"id": {"type": "int64"}}, "split__fractions": {"train": 0.5, "val": 0.5}}
    same(odd_rows, local, out, max_rejects="50%", **settings)
    with pytest.raises(TooManyRejects) as caught:
        convert({"input": {"paths": [odd_rows]}}, output=f"{out}2", **settings)
    place = re.search(r"(?:they are|it is) listed in (\S+)/rejects\.jsonl", str(caught.value))
    assert place is not None
    assert len(ObjectStorage(place[1]).read("rejects.jsonl").splitlines()) == 29


@pytest.mark.parametrize("bucket_url", S3_TOO, indirect=True)
@pytest.mark.parametrize("action", ["drop", "report"])
def test_duplicates(tmp_path: Path, local: Local, out: str, action: str) -> None:
    (tmp_path / "a.csv").write_text("text\n" + "".join(f"{i * i % 97} {'x' * 300}\n" for i in range(2000)))
    checks = {"duplicates": {"columns": ["text"], "action": action}}
    same(str(tmp_path / "a.csv"), local, out, shard_size="64KiB", checks=checks)
    found = open_dataset(out).manifest.details.checks["duplicates"]
    assert found["records"] == 2000 - len({i * i % 97 for i in range(97)})


@pytest.mark.parametrize("bucket_url", S3_TOO, indirect=True)
@pytest.mark.parametrize("way", ["stratify", "key"])
def test_exact_splits(odd_rows: str, local: Local, out: str, way: str) -> None:
    split = {"fractions": {"train": 0.5, "val": 0.5}, "by": "exact", way: "id"}
    same(odd_rows, local, out, split=split)


@pytest.mark.parametrize("bucket_url", S3_TOO, indirect=True)
@pytest.mark.parametrize("most_bytes", [spiller.ONE_LEVEL_BYTES, 100_000], ids=["one level", "two levels"])
def test_a_shuffle(tmp_path: Path, local: Local, out: str, monkeypatch: pytest.MonkeyPatch, most_bytes: int) -> None:
    monkeypatch.setattr(spiller, "ONE_LEVEL_BYTES", most_bytes)
    monkeypatch.setattr(shard_plan, "MIN_TASK_BYTES", 100_000)  # several buckets of little data
    (tmp_path / "a.csv").write_text("id,text\n" + "".join(f"{i},{'x' * 300}\n" for i in range(2000)))
    same(str(tmp_path / "a.csv"), local, out, shard_size="64KiB", shuffle={"seed": 7})
    assert open_dataset(out).manifest.order == "shuffled"


@pytest.mark.parametrize("bucket_url", S3_TOO, indirect=True)
def test_an_exact_split_that_is_shuffled_and_whose_first_run_ended_with_all_tasks_staged(
    tmp_path: Path, local: Local, out: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shard_plan, "MIN_TASK_BYTES", 100_000)  # several buckets of little data
    (tmp_path / "a.csv").write_text("id,text\n" + "".join(f"{i},{'x' * 300}\n" for i in range(2000)))
    split = {"fractions": {"train": 0.5, "val": 0.5}, "by": "exact"}
    settings: dict[str, Any] = {"shard_size": "64KiB", "shuffle": {"seed": 7}, "split": split}
    with monkeypatch.context() as patch:
        patch.setattr("shardmill.transforms.dataset.commit.publish.commit_generation", _fail)
        with pytest.raises(OSError, match="the power went"):
            convert({"input": {"paths": [str(tmp_path / "a.csv")]}, "name": "rows"}, output=out, **settings)
    convert({"input": {"paths": [str(tmp_path / "a.csv")]}, "name": "rows"}, output=out, **settings)
    found = {name: data for name, data in files_of(out).items() if not name.startswith(".staging/")}
    assert found == files_of(local(str(tmp_path / "a.csv"), **settings))
    assert verify_dataset(out).findings == ()


def _fail(*_: object) -> None:
    raise OSError("the power went")


@pytest.mark.parametrize("bucket_url", S3_TOO, indirect=True)
def test_images(local: Local, out: str) -> None:
    same(str(ROOT / "configs/samples/pets"), local, out, shard_size="64KiB", max_rejects=1)


@pytest.fixture(scope="module")
def parquet(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("source") / "rows.parquet"
    table = pa.table({"x": pa.array(range(40_000)), "y": [f"value {i}" for i in range(40_000)]})
    pq.write_table(table, path, row_group_size=5000)
    return str(path)


@pytest.mark.parametrize("bucket_url", S3_TOO, indirect=True)
def test_parquet_by_worker_processes(parquet: str, local: Local, out: str) -> None:
    same(parquet, local, out, shard_size="1MiB", runner__processes=True)


def test_data_in_memory(tmp_path: Path, out: str) -> None:
    data = pa.table({"x": [1, 2, 3]})
    convert(data=data, output=out, name="rows")
    assert open_dataset(out).to_arrow("train").to_pydict() == {"x": [1, 2, 3]}
    assert ObjectStorage(out).list(".staging") == []


@pytest.mark.parametrize("bucket_url", S3_TOO, indirect=True)
def test_a_merge_and_a_rebuild(table: str, local: Local, tmp_path: Path, out: str) -> None:
    first = local(table, shard_size="64KiB")
    for command in ("merge", "rebuild"):
        for target in (str(tmp_path / command), f"{out}/{command}"):
            flags = {"output.path": ("-o", target), "output.shard_size": ("--shard-size", "100KiB")}
            plan_merge(command, [first], flags).run()
        assert files_of(f"{out}/{command}") == files_of(str(tmp_path / command))


@pytest.mark.parametrize("bucket_url", S3_TOO, indirect=True)
def test_the_same_again_is_nothing_to_do_and_another_dataset_is_refused_or_replaced(table: str, out: str) -> None:
    config = {"input": {"paths": [table]}}
    convert(config, output=out)
    assert convert(config, output=out).nothing_to_do
    with pytest.raises(TargetError, match=r"holds dataset out, generation 1, from another source or config"):
        convert(config, output=out, shard_size="64KiB")
    summary = convert(config, output=out, shard_size="64KiB", if_exists="replace")
    assert (summary.manifest.generation, summary.manifest.operation) == (2, "create")
    assert verify_dataset(out).ok
    assert ObjectStorage(out).list(".staging") == []


@pytest.mark.parametrize("bucket_url", S3_TOO, indirect=True)
def test_a_manifest_in_parts_has_the_bytes_of_one_on_disk_and_grows_by_what_is_new(
    table: str, local: Local, tmp_path: Path, out: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manifest_parts, "PART_SHARDS", 2)
    more = tmp_path / "more.csv"
    more.write_text("id,text\n" + "".join(f"{i},{'x' * 300}\n" for i in range(ROWS, ROWS + 500)))
    same(table, local, out, shard_size="72KiB")  # no other test has this size: what is on disk is kept for all
    first = read_manifest(out).to_documents()[1]
    assert {path: ObjectStorage(out).read(path) for path in first} == first
    versions = {path: ObjectStorage(out).status(path) for path in first}
    append({"input": {"paths": [str(more)]}}, output=out)
    assert {path: ObjectStorage(out).status(path) for path in first} == versions
    latest = read_manifest(out).to_documents()[1]
    assert len(latest) > len(first) > 0
    orphan = f"manifests/shards-{'0' * 32}.json"
    ObjectStorage(out).replace(orphan, b"12345")
    removed = garbage.collect_garbage(out, older_than=0, delete=True, now=time.time() + 9).items
    assert [item.path for item in removed] == [orphan]
    assert (verify_dataset(out).findings, verify_dataset(out).notes) == ((), ())
    lost = max(first)
    ObjectStorage(out).remove(lost)
    with pytest.raises(DamageError, match=f"{lost}: missing$"):
        open_dataset(out)


@pytest.mark.parametrize("bucket_url", S3_TOO, indirect=True)
def test_gc_puts_back_the_part_of_a_manifest_that_a_commit_of_that_moment_names(
    table: str, tmp_path: Path, out: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manifest_parts, "PART_SHARDS", 2)
    more = tmp_path / "more.csv"
    more.write_text("id,text\n" + "".join(f"{i},{'x' * 300}\n" for i in range(ROWS, ROWS + 500)))
    for target in (str(tmp_path / "out"), out):
        convert({"input": {"paths": [table]}, "name": "rows"}, output=target, shard_size="72KiB")
    append({"input": {"paths": [str(more)]}}, output=tmp_path / "out")
    documents = read_manifest(str(tmp_path / "out")).to_documents()[1]
    storage = ObjectStorage(out)
    left = {path: data for path, data in documents.items() if storage.put_if_absent(path, data)}
    real = ObjectStorage.remove_seen

    def commit_before(self: ObjectStorage, seen: Any) -> set[str]:
        if list_generations(out)[-1] == 1 and set(left) & set(seen):  # gc has looked, and is about to remove one
            append({"input": {"paths": [str(more)]}}, output=out)
        return real(self, seen)

    with monkeypatch.context() as patch:
        patch.setattr(ObjectStorage, "remove_seen", commit_before)
        garbage.collect_garbage(out, older_than=0, delete=True, now=time.time() + 9)
    assert list_generations(out) == (1, 2)
    assert (verify_dataset(out).findings, verify_dataset(out).notes) == ((), ())


@pytest.mark.parametrize("bucket_url", S3_TOO, indirect=True)
def test_appends_go_on_from_what_is_there(table: str, tmp_path: Path, out: str) -> None:
    more = tmp_path / "more.csv"
    more.write_text("id,text\n" + "".join(f"{i},more\n" for i in range(ROWS, ROWS + 100)))
    for target in (str(tmp_path / "out"), out):
        convert({"input": {"paths": [table]}}, output=target, shard_size="64KiB", sidecars=["tfds", "index"])
        append({"input": {"paths": [table, str(more)]}}, output=target)
        assert append({"input": {"paths": [str(more)]}}, output=target).nothing_to_do
    assert files_of(out) == files_of(str(tmp_path / "out"))
    assert verify_dataset(out).ok


@pytest.mark.parametrize("bucket_url", S3_TOO, indirect=True)
def test_damage_in_a_store_is_found_and_told(table: str, out: str) -> None:
    convert({"input": {"paths": [table]}}, output=out, shard_size="64KiB")
    storage = ObjectStorage(out)
    data = bytearray(storage.read("train-00001.tfrecord"))
    data[5000] ^= 1
    storage.replace("train-00001.tfrecord", bytes(data))
    storage.replace("train-99999.tfrecord", b"")
    storage.remove("train-00002.tfrecord")
    for quick in (False, True):
        report = verify_dataset(out, quick=quick)
        told = {(finding.file, finding.reason.partition(" ")[0]) for finding in report.findings}
        assert {
            ("train-00001.tfrecord", "the"),
            ("train-00002.tfrecord", "missing"),
            ("train-99999.tfrecord", "no"),
        } <= told


def test_a_quick_look_compares_the_checksums_of_the_store_and_fetches_no_shard(bucket: Bucket, table: str) -> None:
    out, shard = f"{bucket.url}/out", "train-00001.tfrecord"
    convert({"input": {"paths": [table]}}, output=out, shard_size="64KiB")
    bucket.gateway.requests.clear()
    assert verify_dataset(out, quick=True).ok
    assert not [request.key for request in bucket.gateway.reads() if request.key.endswith(".tfrecord")]
    data = bytearray(bucket.store.read(f"out/{shard}"))
    data[5000] ^= 1
    bucket.store.put(f"out/{shard}", bytes(data))
    stated = next(entry.crc32c for entry in read_manifest(out).splits["train"].shards if entry.path == shard)
    (finding,) = verify_dataset(out, quick=True).findings
    reason = f"the checksum of its bytes is {crc32c(data):08x}, the manifest states {stated}"
    assert (finding.file, finding.reason) == (shard, reason)


@pytest.mark.parametrize("bucket_url", S3_TOO, indirect=True)
def test_garbage_in_a_store_goes_when_it_is_old(table: str, out: str) -> None:
    convert({"input": {"paths": [table]}}, output=out, shard_size="64KiB")
    storage = ObjectStorage(out)
    storage.replace(".staging/0123456789abcdef/parts/x", b"12345")
    storage.replace("train-00099.tfrecord", b"123")
    before = files_of(out)
    assert garbage.collect_garbage(out, delete=True).items == ()
    found = garbage.collect_garbage(out, older_than=0)
    assert {(item.path, item.bytes) for item in found.items} == {
        (".staging/0123456789abcdef", 5),
        ("train-00099.tfrecord", 3),
    }
    assert files_of(out) == before
    garbage.collect_garbage(out, older_than=0, delete=True)
    del before["train-00099.tfrecord"], before[".staging/0123456789abcdef/parts/x"]
    assert files_of(out) == before


@pytest.mark.parametrize("bucket_url", S3_TOO, indirect=True)
def test_what_a_run_left_in_a_store_goes_by_the_command_that_is_said_when_it_is_a_week_old(
    out: str, tmp_path: Path, shardmill: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bad.csv").write_text("n\n1\nx\n")
    _, _, refused = shardmill("convert", f"{tmp_path}/bad.csv", "-o", out, "--set", "schema.columns.n.type=int64")
    command = re.search("is not used again: shardmill (.*) removes it", refused)
    assert command, refused
    assert ".staging/" in "".join(files_of(out))
    now = time.time() + garbage.WEEK_SECONDS + 9
    monkeypatch.setattr(garbage, "time", SimpleNamespace(time=lambda: now))
    assert shardmill(*command[1].split())[0] == 0
    assert files_of(out) == {}


@pytest.mark.parametrize("bucket_url", S3_TOO, indirect=True)
def test_files_that_a_table_in_a_store_names_are_read_from_the_folder_that_is_said(
    bucket_url: str, tmp_path: Path, shardmill: Command
) -> None:
    ObjectStorage(bucket_url).replace("a.csv", b"p\nb.bin\n")
    (tmp_path / "a.csv").write_text("p\nb.bin\n")
    (tmp_path / "b.bin").write_bytes(b"xyz")
    given = ["-o", f"{tmp_path}/out", "--set", "schema.columns.p.file=path"]
    _, _, refused = shardmill("convert", f"{bucket_url}/a.csv", *given)
    option = re.search("name their folder: --set (.*)\n", refused)
    assert option, refused
    folder = option[1].replace("FOLDER", str(tmp_path))
    assert shardmill("convert", f"{tmp_path}/a.csv", *given, "--set", folder)[0] == 0
    assert [row["p"] for row in open_dataset(tmp_path / "out")["train"]] == [b"xyz"]


def test_what_takes_a_name_of_garbage_before_that_is_removed_stays(out: str, monkeypatch: pytest.MonkeyPatch) -> None:
    create(out, 1, rows=100)
    storage, real = ObjectStorage(out), garbage._Search.unnamed
    for number in (98, 99):
        storage.replace(f"train-000{number}.tfrecord", b"left")

    def slow(self: Any, *args: Any) -> Any:
        found, seen = real(self, *args), storage.status("train-00099.tfrecord")
        while storage.status("train-00099.tfrecord") == seen:  # to S3 it is another file from the next second on
            storage.replace("train-00099.tfrecord", b"left")
        return found

    monkeypatch.setattr(garbage._Search, "unnamed", slow)
    report = garbage.collect_garbage(out, older_than=0, delete=True)
    assert [item.path for item in report.items] == ["train-00098.tfrecord"]
    assert [name for name in storage.list("") if name.startswith("train-0009")] == ["train-00099.tfrecord"]


Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def shardmill(capfd: pytest.CaptureFixture[str]) -> Command:
    """Runs a command, and returns its exit code and what it printed."""

    def run(*args: str) -> tuple[int, str, str]:
        capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            main(list(args))
        shown = capfd.readouterr()
        code = int(str(ended.value.code or 0))
        followed_hints.typed([*args] if code == 0 else [], shown.out + shown.err)
        return code, shown.out, shown.err

    return run


@pytest.mark.parametrize("bucket_url", S3_TOO, indirect=True)
def test_every_command_works_on_a_url(table: str, out: str, tmp_path: Path, shardmill: Command) -> None:
    assert shardmill("convert", table, "-o", out, "--quiet") == (0, "", "")
    shard = f"{out}/train-00000.tfrecord"
    for args, text in [
        (["info", out], f"{ROWS:,} records in 1 shard"),
        (["info", shard], f"{ROWS:,} records, as the manifest of dataset {out} states"),
        (["inspect", out], "record 0 of train-00000.tfrecord"),
        (["inspect", shard], "record 0"),
        (["verify", out], f"OK: generation 1 of {out}: 1 shard, {ROWS:,} records"),
        (["verify", shard], "OK"),
        (["log", out, "--json"], '"generation": 1'),
        (["append", table, "-o", out], f"Nothing to do: {out} holds the file"),
        (["convert", table, "-o", out], f"Nothing to do: generation 1 of {out} holds it"),
        (["gc", out], "Nothing to remove."),
        (["salvage", shard, "-o", str(tmp_path)], "record"),
    ]:
        code, shown, error = shardmill(*args)
        assert (code, text in shown) == (0, True), (args, shown, error)
    assert (tmp_path / "train-00000.tfrecord").stat().st_size == ObjectStorage(out).size("train-00000.tfrecord")


def test_what_cannot_be_done_in_a_store_is_told_in_one_line(out: str, tmp_path: Path, shardmill: Command) -> None:
    write_records(tmp_path / "a.tfrecord", [b"x"])
    told = f"error: {out}: salvage writes to a folder on disk; copy the new file from there\n"
    assert shardmill("salvage", str(tmp_path / "a.tfrecord"), "-o", out) == (2, "", told)
    with pytest.raises(UsageError, match=r"x\.tfrecord: a single file is written to disk; copy it from there"):
        write_records(f"{out}/x.tfrecord", [b"x"])
    code, _, error = shardmill("convert", str(tmp_path / "a.tfrecord"), "-o", f"{out}/*/x")
    assert (code, error.count("\n"), "a dataset's folder has no *" in error) == (2, 1, True)


def test_what_is_not_there_is_told_in_one_line(
    bucket_url: str, monkeypatch: pytest.MonkeyPatch, shardmill: Command
) -> None:
    for command in ("verify", "inspect", "log", "gc"):
        code, _, error = shardmill(command, f"{bucket_url}/none")
        assert code == 2
        assert error == f"error: {bucket_url}/none: no dataset: it has neither manifests/ nor manifest.json\n"
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/none")
    if bucket_url.startswith("s3"):
        with pytest.raises(
            StoreAccessError, match=r"^s3://another: the environment has no credentials for it; set AWS"
        ):
            open_dataset("s3://another/x")
