"""The screens of `export`, and what it leaves where it was stopped."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from ....command_line import Shardmill
from ....dataset.commit.test_append_commit import add
from ....dataset.commit.test_commit_generation import spec_of, write

pytestmark = pytest.mark.usefixtures("without_engine")


@pytest.fixture
def out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write(spec_of(tmp_path))
    add(tmp_path, 2)
    return tmp_path / "out"


def test_an_export_says_what_it_wrote(out: Path, shardmill: Shardmill) -> None:
    screen = shardmill("export", "out", "-o", "x/rows.jsonl")
    assert (screen.code, screen.err) == (0, "")
    assert screen.out.startswith("Wrote x/rows.jsonl: 17,100 records")
    assert len(Path("x/rows.jsonl").read_text().splitlines()) == 17_100
    assert [path.name for path in Path("x").iterdir()] == ["rows.jsonl"]


def test_an_export_as_json_of_an_older_generation(out: Path, shardmill: Shardmill) -> None:
    screen = shardmill("export", "out", "-o", "old.parquet", "--generation", "1", "--json")
    said = json.loads(screen.out)
    assert (said["records"], said["target"], said["pictures"]) == (15_000, "old.parquet", None)
    assert sum(said["splits"].values()) == pq.read_metadata("old.parquet").num_rows == 15_000


def test_a_target_that_is_there_is_replaced_only_where_that_is_asked_for(out: Path, shardmill: Shardmill) -> None:
    Path("x.parquet").write_text("mine")
    screen = shardmill("export", "out", "-o", "x.parquet")
    assert screen.code == 2
    assert screen.err == "error: x.parquet: already exists; --overwrite replaces it\n"
    assert Path("x.parquet").read_text() == "mine"
    assert shardmill("export", "out", "-o", "x.parquet", "--overwrite").code == 0
    assert pq.read_metadata("x.parquet").num_rows == 17_100


def test_a_folder_with_anything_in_it_is_never_replaced(out: Path, shardmill: Shardmill) -> None:
    screen = shardmill("export", "out", "-o", "out", "--overwrite")
    assert screen.code == 2
    assert "out: is a folder that is not empty; choose another name" in screen.err


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("x.xlsx", "x.xlsx: an export is .parquet, .arrow, .feather, .jsonl, .ndjson, .csv, or a folder of pictures"),
        ("s3://bucket/x.parquet", "an export writes to a disk"),
        ("out/manifest.json/x.csv", "out/manifest.json/x.csv: cannot be written: "),
    ],
)
def test_a_target_that_cannot_be_is_refused(out: Path, shardmill: Shardmill, target: str, words: str) -> None:
    screen = shardmill("export", "out", "-o", target)
    assert screen.code == 2
    assert words in screen.err


def test_a_split_and_a_column_that_are_not_there_are_named_with_those_that_are(out: Path, shardmill: Shardmill) -> None:
    assert "no split nope; it has: " in shardmill("export", "out", "-o", "x.csv", "--split", "nope").err
    assert 'no feature "nope"; it has: ' in shardmill("export", "out", "-o", "x.csv", "--columns", "nope").err


@pytest.mark.parametrize("target", ["x.parquet", "x.jsonl"])
def test_a_damaged_dataset_leaves_nothing_of_an_export(out: Path, shardmill: Shardmill, target: str) -> None:
    shard = sorted(out.glob("*.tfrecord"))[-1]
    shard.write_bytes(shard.read_bytes()[:-1])
    before = sorted(Path().iterdir())
    screen = shardmill("export", "out", "-o", target)
    assert screen.code == 3
    assert shard.name in screen.err
    assert sorted(Path().iterdir()) == before
