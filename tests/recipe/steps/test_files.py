from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from shardmill.pipelines import append, convert
from shardmill.pipelines.config.load import load_config
from shardmill.pipelines.prepare.from_config import config_fingerprint, conversion_of
from shardmill.transforms import read_records
from shardmill.transforms.dataset.integrity.verify import verify_dataset
from shardmill.transforms.dataset.reading.open_dataset import open_dataset
from shardmill.transforms.errors import SchemaError, SourceError, TooManyRejects, UsageError
from shardmill.transforms.format.examples.decode_examples import Example
from shardmill.transforms.inputs.contract.source import Task, map_in_turn
from shardmill.transforms.inputs.files.below_root import FileProblem, FilesBelow
from shardmill.transforms.recipe.steps.beside_tables import Files
from shardmill.transforms.stores.object_store import store_at
from shardmill.transforms.stores.store_url import parse_store_url

from ...command_line import Shardmill

SOUNDS = {"a/1.wav": b"RIFF\x00\xff", "a/2.wav": bytes(range(256)) * 40, "none.txt": b""}


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "d"
    (folder / "a").mkdir(parents=True)
    for name, data in SOUNDS.items():
        (folder / name).write_bytes(data)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def table(*paths: str | None, name: str = "d/t.csv") -> str:
    """Write a table of an id and a path in each row, as its suffix says."""
    if name.endswith(".csv"):
        Path(name).write_text("id,clip\n" + "".join(f"{row},{path or ''}\n" for row, path in enumerate(paths)))
    else:
        pq.write_table(pa.table({"id": range(len(paths)), "clip": pa.array(paths, pa.string())}), name)
    return name


def settings(root: str | None = None, **rule: Any) -> dict[str, Any]:
    section: dict[str, Any] = {"columns": {"clip": {"file": "path", **rule}}}
    return {"output": "out", "schema": section | ({} if root is None else {"files_root": root})}


def clips(path: str = "out") -> list[bytes | None]:
    """Return the bytes of the files, in the order of records."""
    found: list[bytes | None] = open_dataset(path).to_arrow("train")["clip"].to_pylist()
    return found


@pytest.mark.parametrize("file", ["d/t.csv", "d/t.parquet"])
def test_records_hold_the_bytes_of_the_files_that_a_column_names(file: str) -> None:
    convert(table("a/2.wav", None, "./a/1.wav", "none.txt", name=file), **settings())
    records = [Example.FromString(bytes(one)) for one in read_records("out/train-00000.tfrecord")]
    values = [list(record.features.feature["clip"].bytes_list.value) for record in records]
    assert values == [[SOUNDS["a/2.wav"]], [], [SOUNDS["a/1.wav"]], [b""]]
    assert clips() == [SOUNDS["a/2.wav"], None, SOUNDS["a/1.wav"], b""]
    assert verify_dataset("out").ok


@pytest.mark.parametrize("name", ["d/t.csv", "d/t.parquet"])
def test_an_empty_file_of_a_kind_that_begins_with_a_header_is_a_reject(name: str) -> None:
    Path("d/a/3.WAV").write_bytes(b"")
    done = convert(table("a/1.wav", "a/3.WAV", "none.txt", name=name), **settings(), max_rejects=1)
    assert dict(done.manifest.rejects.by_code) == {"TRUNCATED": 1}
    assert clips() == [SOUNDS["a/1.wav"], b""]
    assert "the file is empty" in Path("out/rejects/00000001.jsonl").read_text()


def test_files_that_rows_name_are_not_said_to_be_left_out_of_them(shardmill: Shardmill) -> None:
    table("a/1.wav", "a/2.wav")
    files = ("--set", "schema.columns.clip.file=path")
    said = "Left out (but as values of rows that name them): 2 .wav"
    assert said in shardmill("convert", "d", "-o", "out", "--format", "csv", *files).out
    assert "Left out: 2 .wav" in shardmill("convert", "d", "-o", "texts", "--format", "csv").out


def test_the_manifest_and_the_sidecars_say_what_the_feature_is() -> None:
    convert(table("a/1.wav", "a/2.wav", name="d/t.parquet"), **settings())
    manifest = json.loads(Path("out/manifest.json").read_text())
    columns = [{"name": "clip", "type": "binary", "features": ["clip"], "file": "path"}]
    assert manifest["details"] == {"columns": manifest["details"]["columns"]}
    assert [one for one in manifest["details"]["columns"] if one["name"] == "clip"] == columns
    clip = json.loads(Path("out/features.json").read_text())["featuresDict"]["features"]["clip"]
    assert clip["pythonClassName"].endswith("Scalar")
    assert clip["tensor"]["dtype"] == "string"
    assert 'name: "clip"' in Path("out/schema.pbtxt").read_text()


BAD = [
    ("no.wav", "MISSING_FILE", "is not below the folder of the table: No such file or directory"),
    ("a\\1.wav", "MISSING_FILE", 'and a path has "/" between its folders'),
    ("a/1.wav/x", "MISSING_FILE", "Not a directory"),
    ("x" * 300, "MISSING_FILE", "File name too long"),
    ("dangling", "MISSING_FILE", "No such file"),
    ("a", "NOT_A_FILE", "is a folder"),
    ("a/", "NOT_A_FILE", "is a folder"),
    (".", "NOT_A_FILE", "is a folder"),
    ("pipe", "NOT_A_FILE", "is a named pipe"),
    ("device", "OUTSIDE_ROOT", "leads out of the folder of the table"),
    ("leaves", "OUTSIDE_ROOT", "leads out of the folder of the table"),
    ("folder/secret", "OUTSIDE_ROOT", "leads out of the folder of the table"),
    ("../secret", "OUTSIDE_ROOT", 'has ".." in it'),
    ("a/../a/1.wav", "OUTSIDE_ROOT", 'has ".." in it'),
    ("/etc/passwd", "OUTSIDE_ROOT", "is an absolute path"),
    ("s3://bucket/a.wav", "OUTSIDE_ROOT", "is a URL"),
    ("file:///etc/passwd", "OUTSIDE_ROOT", "is a URL"),
    ("big", "FIELD_TOO_LARGE", "has 20,000 bytes, and a value has at most 16,384; raise limits.field_bytes"),
]


def test_each_bad_path_is_a_reject_of_its_row_and_a_named_pipe_does_not_block() -> None:
    Path("secret").write_text("secret")
    Path("d/big").write_bytes(bytes(20_000))
    os.mkfifo("d/pipe")
    for name, target in {"leaves": "../secret", "folder": "..", "dangling": "nowhere", "device": "/dev/zero"}.items():
        os.symlink(target, f"d/{name}")
    os.symlink("a/1.wav", "d/inside")
    os.symlink("a", "d/linked")
    table("inside", *(path for path, _, _ in BAD), "linked/2.wav")
    summary = convert("d/t.csv", **settings(), limits__field_bytes="16KiB", max_rejects=len(BAD))
    assert clips() == [SOUNDS["a/1.wav"], SOUNDS["a/2.wav"]]
    assert summary.manifest.counts.rejected == len(BAD)
    lines = [json.loads(line) for line in Path("out/rejects/00000001.jsonl").read_text().splitlines()]
    for row, (line, (path, code, said)) in enumerate(zip(lines, BAD, strict=True), 2):
        (error,) = line["errors"]
        assert (line["row"], error["column"], error["code"]) == (row, "clip", code)
        assert error["value"][:80] == path[:80] or len(path) > 80
        assert said in error["message"]


def test_an_empty_path_that_is_no_null_is_a_reject_and_so_is_one_with_a_nul() -> None:
    summary = convert(table("", "a\0b", "a/1.wav", name="d/t.parquet"), **settings(), max_rejects=2)
    assert summary.manifest.rejects is not None
    assert summary.manifest.rejects.by_code == {"MISSING_FILE": 2}


def test_a_file_that_cannot_be_read_is_a_reject() -> None:
    with pytest.raises(FileProblem, match='"mem" cannot be read: Input/output error') as problem:
        FilesBelow(b"/proc/self", 9, "it").read("mem")
    assert problem.value.code == "UNREADABLE"


def test_a_root_that_a_worker_does_not_have_is_one_error_and_no_reject_of_each_row() -> None:
    with pytest.raises(SourceError, match="put that where all workers have it under the same path"):
        FilesBelow(b"/nowhere", 9, "it").read("a.wav")


def test_the_root_is_that_of_the_config_relative_to_its_folder() -> None:
    Path("configs").mkdir()
    os.rename("d/a", "sounds")
    table("1.wav", name="d/t.csv")
    section = "{files_root: ../sounds, columns: {clip: {file: path}}}"
    Path("configs/c.yaml").write_text(
        f"{{input: {{paths: [../d/t.csv]}}, output: {{path: ../out}}, schema: {section}}}"
    )
    convert("configs/c.yaml")
    assert clips() == [SOUNDS["a/1.wav"]]
    with pytest.raises(UsageError, match=r"schema\.files_root: .*nowhere: no such folder, or it is empty"):
        convert("d/t.csv", **settings("nowhere"))


def test_on_the_command_line_the_root_is_relative_to_the_working_folder(shardmill: Shardmill) -> None:
    table("1.wav")
    Path("d/c.yaml").write_text("{input: {paths: [t.csv]}, schema: {columns: {clip: {file: path}}}}")
    assert shardmill("convert", "d/c.yaml", "-o", "out", "--set", "schema.files_root=d/a").code == 0
    assert clips() == [SOUNDS["a/1.wav"]]


def test_paths_of_data_in_memory_begin_in_the_working_folder() -> None:
    convert(data=pa.table({"clip": ["d/a/1.wav", "d/a/2.wav"]}), **settings())
    assert clips() == [SOUNDS["a/1.wav"], SOUNDS["a/2.wav"]]


def test_each_table_names_files_below_its_own_folder() -> None:
    for folder in ("x", "y"):
        Path(folder).mkdir()
        Path(folder, "f").write_text(folder)
        table("f", name=f"{folder}/t.csv")
    convert("*/t.csv", **settings())
    assert clips() == [b"x", b"y"]


@pytest.mark.parametrize("text", [pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())], ids=str)
def test_paths_are_text_of_any_arrow_type(text: pa.DataType) -> None:
    pq.write_table(pa.table({"clip": pa.array(["a/1.wav", None]).cast(text)}), "d/t.parquet")
    convert("d/t.parquet", **settings())
    assert clips() == [SOUNDS["a/1.wav"], None]


def test_a_column_may_have_another_name_and_rows_that_where_leaves_out_are_not_read() -> None:
    convert(table("a/1.wav", "no.wav"), **settings(name="sound"), input__where="id < 1")
    assert open_dataset("out").to_arrow("train")["sound"].to_pylist() == [SOUNDS["a/1.wav"]]


@pytest.mark.parametrize(
    ("null", "found"),
    [("mask", [SOUNDS["a/1.wav"], None]), ("drop_row", [SOUNDS["a/1.wav"]]), ("error", [SOUNDS["a/1.wav"]])],
)
def test_nulls_are_settled_as_those_of_bytes(null: str, found: list[bytes | None]) -> None:
    convert(table("a/1.wav", None, name="d/t.parquet"), **settings(null=null), max_rejects=1)
    assert clips() == found


@pytest.mark.parametrize(
    "rule", [{"type": "string"}, {"label": True}, {"format": "%Y"}, {"strip": True}, {"as": "bytes"}, {"unit": "s"}]
)
def test_what_does_not_go_with_file_is_refused_by_name(rule: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=r"file does not go with .*: it makes bytes of paths; leave one out"):
        convert(table("a/1.wav"), **settings(**rule))


def test_a_column_that_holds_no_paths_is_refused_by_name() -> None:
    pq.write_table(pa.table({"clip": [1, 2]}), "d/t.parquet")
    with pytest.raises(SchemaError, match='"clip"'):
        convert("d/t.parquet", **settings())
    with pytest.raises(SchemaError, match=r'schema\.columns names "clip", which is not a column'):
        convert(data={"clap": ["a"]}, **settings())


def test_a_root_without_a_column_that_names_files_is_refused_with_the_fix() -> None:
    with pytest.raises(UsageError, match=r"no column names files; say which: --set schema\.columns\.NAME\.file=path"):
        convert(table("a/1.wav"), output="out", schema={"files_root": "d"})


def test_a_null_path_is_a_reject_where_the_column_is_declared_without_nulls() -> None:
    convert(table("a/1.wav", None), **settings(nullable=False), max_rejects=1)
    assert clips() == [SOUNDS["a/1.wav"]]
    assert [one.name for one in open_dataset("out").manifest.schema or () if one.nullable] == []


def test_tables_and_roots_in_stores_are_refused_by_name() -> None:
    with pytest.raises(UsageError, match="files that columns name are not read from stores yet"):
        convert(table("a/1.wav"), **settings("s3://bucket/x"))
    with pytest.raises(UsageError, match=r'a table in a store names \("clip"\) are not read from there yet'):
        convert("s3://bucket/t.csv", **settings(), input__delimiter=",", input__format="csv")


def test_an_append_reads_files_as_the_dataset_does_also_where_its_config_does_not_say() -> None:
    convert(table("a/1.wav"), **settings())
    table("a/2.wav", "no.wav", name="d/more.csv")
    with pytest.raises(TooManyRejects, match="MISSING_FILE"):
        append("d/more.csv", output="out")
    append("d/more.csv", output="out", max_rejects=1)
    assert clips() == [SOUNDS["a/1.wav"], SOUNDS["a/2.wav"]]
    assert append("d/more.csv", **settings()).nothing_to_do


def test_bytes_are_appended_to_a_dataset_of_files_where_the_config_says_that_they_are_bytes() -> None:
    convert(table("a/1.wav", name="d/t.parquet"), **settings())
    pq.write_table(pa.table({"id": [1], "clip": [b"x"]}), "bytes.parquet")
    with pytest.raises(SchemaError, match=r"in an append .*: --set schema\.columns\.clip\.type=binary"):
        append("bytes.parquet", output="out")
    append("bytes.parquet", output="out", schema={"columns": {"clip": {"type": "binary"}}})
    assert clips() == [SOUNDS["a/1.wav"], b"x"]


def test_lines_of_text_and_json_name_files_too() -> None:
    Path("d/list.txt").write_text("a/1.wav\na/2.wav\n")
    convert("d/list.txt", output="out", schema={"columns": {"text": {"file": "path"}}})
    assert open_dataset("out").to_arrow("train")["text"].to_pylist() == [SOUNDS["a/1.wav"], SOUNDS["a/2.wav"]]
    Path("d/t.jsonl").write_text('{"clip": "a/1.wav"}\n{"clip": null}\n')
    convert("d/t.jsonl", **settings() | {"output": "json"})
    assert clips("json") == [SOUNDS["a/1.wav"], None]


def test_a_users_function_gets_the_bytes() -> None:
    def sizes(batch: pa.RecordBatch) -> dict[str, Any]:
        return {"size": pc.binary_length(batch["clip"])}

    convert(table("a/1.wav", "a/2.wav"), **settings(), map=sizes)
    assert open_dataset("out").to_arrow("train")["size"].to_pylist() == [6, 10_240]


def test_a_file_that_rows_name_one_after_the_other_is_read_once() -> None:
    files = FilesBelow(b"d", 1 << 20, "it")
    assert files.read("a/2.wav") is files.read("a/2.wav")
    assert files.read("a/1.wav") == SOUNDS["a/1.wav"]
    assert files.read("a/2.wav") == SOUNDS["a/2.wav"]


def test_a_table_in_a_store_names_files_below_a_local_root(bucket_url: str) -> None:
    url = parse_store_url(f"{bucket_url}/t.csv")
    store_at(url).put(url.key, b"clip\na/1.wav\n")
    convert(f"{bucket_url}/t.csv", **settings("d"))
    assert clips() == [SOUNDS["a/1.wav"]]


def test_a_dry_run_shows_the_column_and_files_that_are_missing(shardmill: Shardmill) -> None:
    table("a/1.wav", "no.wav")
    screen = shardmill("convert", "d/t.csv", "-o", "out", "--set", "schema.columns.clip.file=path", "--dry-run")
    assert screen.code == 0
    assert "the bytes of the files that it names" in screen.out
    assert 'row 2: column "clip": MISSING_FILE: "no.wav" is not below' in screen.out + screen.err
    assert not Path("out").exists()


def many(count: int, size: int) -> None:
    for number in range(count):
        Path(f"d/{number}.bin").write_bytes(np.random.default_rng(number).bytes(size + number))
    table(*(f"{number}.bin" for number in range(count)))


@pytest.mark.parametrize("processes", [False, True])
def test_one_worker_and_several_give_the_same_bytes(processes: bool) -> None:
    many(40, 60_000)
    pq.write_table(pacsv.read_csv("d/t.csv"), "d/t.parquet", row_group_size=4)  # so many tasks for the workers
    for name, workers in (("one", 1), ("two", 2)):
        how = {"runner__workers": workers, "runner__processes": processes and workers > 1}
        convert("d/t.parquet", **settings() | {"output": name}, shard_size="256KiB", **how)
    digests = [
        {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in Path(name).glob("train-*")}
        for name in ("one", "two")
    ]
    assert digests[0] == digests[1]
    assert clips("one") == [Path(f"d/{number}.bin").read_bytes() for number in range(40)]


def test_few_rows_are_read_at_a_time_and_places_stay_those_of_the_table() -> None:
    many(60, 1_000)
    Path("d/31.bin").unlink()
    batch = pa.record_batch({"clip": [f"{number}.bin" for number in range(60)]})
    step, start, sizes = Files(("clip",), 1 << 20, "d", part_bytes=10_000), 0, []
    while start < 60:
        stepped, count = step.take(batch.slice(start))
        assert stepped.batch["clip"].nbytes < 13_000
        assert [problem.row + start for problem in stepped.problems] == ([31] if start <= 31 < start + count else [])
        start, sizes = start + count, [*sizes, count]
    assert (sum(sizes), max(sizes)) == (60, 11)


def test_memory_holds_some_of_the_files_of_a_batch_and_not_all() -> None:
    Path("d/big.bin").write_bytes(bytes(4 << 20))
    given = {"paths": [table(*["big.bin"] * 40, name="d/t.parquet")], "format": "parquet"}
    said = {"input": given, "output": {"path": "out"}, "schema": settings()["schema"]}
    source = conversion_of(load_config(said)).source
    survey = source.survey(source.list_files(), map_in_turn)
    before, rows = pa.total_allocated_bytes(), 0
    for ordinal, part in enumerate(source.read(Task(0, survey.pieces), survey.frozen)):
        assert (part.ordinal, part.origin.place(0).row) == (ordinal, rows + 1)
        assert pa.total_allocated_bytes() - before < 40 << 20  # of 160 MiB
        rows += part.batch.num_rows
    assert rows == 40


def test_at_their_defaults_the_keys_are_in_no_fingerprint() -> None:
    given = {"input": {"format": "parquet", "paths": ["a.parquet"]}, "output": {"path": "out"}}
    said = {**given, "schema": {"columns": {"a": {"file": None}}, "files_root": None}}
    plain = {**given, "schema": {"columns": {"a": {}}}}
    assert config_fingerprint(load_config(said)) == config_fingerprint(load_config(plain))
    other = {**given, "schema": {"columns": {"a": {"file": "path"}}}}
    assert config_fingerprint(load_config(other)) != config_fingerprint(load_config(plain))
