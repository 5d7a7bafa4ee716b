"""JSON documents beside files of rows, such as a schema.json, are left out by the command that the error proposes."""

from __future__ import annotations

import gzip
import json
import shlex
from pathlib import Path

import pytest
from shardmill.transforms.dataset.reading.open_dataset import open_dataset

from ..command_line import Shardmill

DOCUMENTS = {"schema.json": '[{"name": "a", "type": "int"}]\n', "dataset_info.json": '{\n  "splits": 1\n}\n'}
LINES = {"p1{end}": '{"a": 1}\n{"a": 2}\n', "p2{end}": '{"a": 3}\n{"a": 4}\n'}
TABLES = {"p1.csv": "a\n1\n2\n", "p2.csv": "a\n3\n4\n"}
CASES: dict[str, tuple[str, list[str], dict[str, str]]] = {
    "a glob of lines of JSON": (".jsonl", ["in/*"], LINES),
    "their paths": (".jsonl", ["in/p1.jsonl", "in/p2.jsonl", "in/schema.json", "in/dataset_info.json"], LINES),
    "a glob of lines in files of one suffix": (".json", ["in/*"], LINES),
    "paths of lines in files of one suffix": (".json", ["in/p1.json", "in/p2.json", "in/schema.json"], LINES),
    "a folder of lines in files of one suffix": (".json", ["in"], LINES),
    "a glob that is read as lines": (".json", ["in/*.json", "--format", "jsonl"], LINES),
    "paths as lines": (".json", ["in/schema.json", "in/p1.json", "in/p2.json", "--format", "jsonl"], LINES),
    "a glob of tables": (".csv", ["in/*"], TABLES),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_documents_beside_rows_are_left_out_by_the_command(
    case: str, shardmill: Shardmill, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    end, typed, files = CASES[case]
    Path("in").mkdir()
    for name, text in {**DOCUMENTS, **files}.items():
        Path("in", name.format(end=end)).write_text(text)
    error = shardmill("convert", *typed, "-o", "out")
    assert (error.code != 0, "jq" in error.err.partition("to leave")[0]) == (True, False), error.err
    command = shlex.split(error.err.partition("shardmill ")[2].partition("; if ")[0])
    assert shardmill(*command).code == 0
    assert [row["a"] for row in open_dataset("out")["train"]] == [1, 2, 3, 4]


def test_one_array_is_still_told_with_the_program_that_writes_its_lines(
    shardmill: Shardmill, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.jsonl").write_text(DOCUMENTS["schema.json"])
    Path("b.jsonl").write_text(DOCUMENTS["schema.json"])
    error = shardmill("convert", "a.jsonl", "b.jsonl", "-o", "out").err
    assert ("to leave it out" in error, "jq -c '.[]' a.jsonl > rows-a.jsonl" in error) == (False, True)


@pytest.mark.parametrize("typed", ["in", "in/data.json.gz"])
@pytest.mark.parametrize("text", ['{"a": 1}\n{"a": 2}\n', '[{"a": 1},\n {"a": 2}]', '{"a": [1, 2]}'])
def test_json_that_is_compressed_is_looked_into(
    text: str, typed: str, shardmill: Shardmill, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("in").mkdir()
    Path("in/data.json.gz").write_bytes(gzip.compress(text.encode()))
    error = shardmill("convert", typed, "-o", "out").err
    command = error.partition(": shardmill ")[2]
    if text.endswith("}\n"):
        again = shlex.split(command) or ["convert", typed, "-o", "out", "--format", "jsonl"]
        assert ("--format jsonl" in error or bool(command), shardmill(*again).code) == (True, 0)
    else:
        exec(error.partition("in Python: ")[2].partition("; or a record")[0], {})
    assert [row["a"] for row in open_dataset("out")["train"]] == [1, 2]


def test_damaged_json_that_is_compressed_is_named(
    shardmill: Shardmill, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("data.json.gz").write_bytes(gzip.compress(b'{"a": 1}\n')[:12])
    screen = shardmill("convert", "data.json.gz", "-o", "out")
    assert (screen.code != 0, "data.json.gz" in screen.err, "fault of Shardmill" in screen.err) == (True, True, False)


USERS = [{"user_id": n, "name": "Ann", "city": "x"} for n in range(2)]
ORDERS = [{"order_id": n, "user_id": n, "total": 2.5, "at": "2020"} for n in range(3)]


@pytest.mark.parametrize("typed", [["in"], ["in/*"], ["in/orders.json", "in/users.json"]])
@pytest.mark.parametrize("key", ["", "data"])
def test_arrays_of_several_tables_become_a_dataset_each_by_the_line_of_python(
    typed: list[str], key: str, shardmill: Shardmill, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("in").mkdir()
    for name, rows in {"users": USERS, "orders": ORDERS}.items():
        Path("in", f"{name}.json").write_text(json.dumps({key: rows} if key else rows))
    said = shardmill("convert", *typed, "-o", "out").err
    exec(said.partition("in Python: ")[2], {})
    assert [{**row} for row in open_dataset("out-users")["train"]] == USERS
    assert [{**row} for row in open_dataset("out-orders")["train"]] == ORDERS


def test_arrays_of_splits_beside_another_table_keep_their_splits(
    shardmill: Shardmill, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("in").mkdir()
    for name, rows in {"train_spider": USERS, "dev": USERS[:1], "tables": ORDERS}.items():
        Path("in", f"{name}.json").write_text(json.dumps(rows))
    exec(shardmill("convert", "in", "-o", "out").err.partition("in Python: ")[2], {})
    found = open_dataset("out-spider")
    assert {split: len(found[split]) for split in found.splits} == {"train": 2, "dev": 1}
    assert [{**row} for row in open_dataset("out-tables")["train"]] == ORDERS


def test_an_array_of_one_split_beside_another_table_is_of_that_split(
    shardmill: Shardmill, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("in").mkdir()
    for name, rows in {"users_test": USERS, "tables": ORDERS}.items():
        Path("in", f"{name}.json").write_text(json.dumps(rows))
    exec(shardmill("convert", "in", "-o", "out").err.partition("in Python: ")[2], {})
    assert list(open_dataset("out-users").splits) == ["test"]
