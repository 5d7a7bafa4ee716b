"""Documents of a dataset that are JSON and make no sense: every command that reads them names the file and the line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ...conftest import Shardmill

ERROR = {"column": "n", "code": "BAD_TYPE", "value": "x", "expected": "int64", "message": "x"}
LINE = {"source": "a.csv", "split": None, "row": 1, "errors": [ERROR]}
ODD_LINES: list[dict[str, Any]] = [
    {name: value for name, value in LINE.items() if name != "errors"},
    LINE | {"errors": []},
    LINE | {"errors": 1.5},
    LINE | {"errors": [None]},
    LINE | {"errors": [["code"]]},
    LINE | {"errors": [{name: value for name, value in ERROR.items() if name != "code"}]},
    LINE | {"errors": [{name: value for name, value in ERROR.items() if name != "value"}]},
    LINE | {"errors": [ERROR | {"code": "NO_SUCH"}]},
    LINE | {"errors": [ERROR | {"column": 7}]},
    {name: value for name, value in LINE.items() if name != "source"},
    LINE | {"row": "1"},
    LINE | {"more": 1},
]


@pytest.fixture
def out(tmp_path: Path, shardmill: Shardmill) -> Path:
    (tmp_path / "a.csv").write_text("id,n\n1,1\n2,x\n3,3\n")
    typed = ["--set", "schema.columns.n.type=int64", "--set", "stats=true", "--max-rejects", "1"]
    assert shardmill("convert", "a.csv", "-o", "out", "-q", *typed).code == 0
    return tmp_path / "out"


def changed(path: Path, change: Callable[[Any], None]) -> None:
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document) + "\n")


def test_an_odd_line_of_rejects_is_damage_with_its_file_and_line(out: Path, shardmill: Shardmill) -> None:
    path = out / "rejects/00000001.jsonl"
    good = path.read_text()
    assert shardmill("report", "out", "-o", "r.html", "-q").code == 0
    for line in ODD_LINES:
        path.write_text(good + json.dumps(line) + "\n")
        for command in (("report", "out", "-o", "r.html", "--overwrite"), ("verify", "out")):
            ended = shardmill(*command)
            assert ended.code == 3, (command, line)
            said = ended.out + ended.err
            assert "rejects/00000001.jsonl: line 2: " in said, (command, line, said)
    path.write_text(good)
    assert shardmill("verify", "out").code == 0


def test_an_odd_line_of_sources_is_damage_with_its_file_and_line(out: Path, shardmill: Shardmill) -> None:
    path = out / "sources/00000001.jsonl"
    good = path.read_text()
    (out.parent / "b.csv").write_text("id,n\n7,7\n")
    for key, value in (("source", None), ("bytes", "1"), ("fingerprint", ""), ("written", -1), ("files", {}), ("x", 1)):
        path.write_text(json.dumps(json.loads(good) | {key: value}) + "\n")
        for command in (("append", "b.csv", "-o", "out"), ("verify", "out")):
            ended = shardmill(*command)
            assert ended.code == 3, (command, key)
            assert f"sources/00000001.jsonl: line 1: {key} is " in ended.out + ended.err, command
        merged = shardmill("merge", "out", "-o", f"of-{key}")  # records are there, and the list is a note
        assert merged.code == 0
        assert f"sources/00000001.jsonl: line 1: {key} is " in merged.out + merged.err


def test_counted_values_of_several_types_are_damage(out: Path, shardmill: Shardmill) -> None:
    def change(document: Any) -> None:
        counts = document["state"]["train"]["features"]["n"]["distinct"]["counts"]
        counts[0][0] = "x"

    changed(out / "stats.json", change)
    ended = shardmill("verify", "out")
    assert ended.code == 3
    assert "stats.json: its state cannot be read: values of several types are counted" in ended.out
    assert shardmill("stats", "out", "--write", "--full").code == 0
