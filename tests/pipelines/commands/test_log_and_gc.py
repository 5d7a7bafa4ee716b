"""The screens of `log`, `gc` and `index`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from shardmill.pipelines.cli import main

from ...dataset.commit.test_append_commit import add
from ...dataset.commit.test_commit_generation import spec_of, write


@pytest.fixture
def out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write(spec_of(tmp_path))
    add(tmp_path, 2)
    return tmp_path / "out"


def run(*args: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(list(args))
    printed, err = capsys.readouterr()
    return int(ended.value.code or 0), printed, err


def test_log_is_a_table_of_what_each_generation_added(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, printed, err = run("log", "out", capsys=capsys)
    assert (code, err) == (0, "")
    lines = [" ".join(line.split()) for line in printed.splitlines()]
    assert lines[0] == "no. made by created (UTC) source records shards bytes in all"
    assert lines[1].startswith("1 create 2026-01-31 12:00 csv, 2 files 15,000 7 ")
    assert lines[2].startswith("2 append 2026-01-31 12:00 csv, 2 files 2,100 ")
    assert lines[2].endswith(" 17,100")


def test_log_as_json(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, printed, _ = run("log", "out", "--json", capsys=capsys)
    first, second = json.loads(printed)["generations"]
    assert code == 0
    assert (first["added"]["records"], second["added"]["records"]) == (15000, 2100)
    assert (second["parent"], second["operation"], second["source"]["list"]) == (1, "append", "sources/00000002.jsonl")


def test_a_damaged_generation_ends_log_with_3_and_the_others_are_shown(
    out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (out / "manifests/00000001.json").write_bytes(b"{}")
    code, printed, _ = run("log", "out", capsys=capsys)
    assert code == 3
    assert "damaged" in printed.splitlines()[1]
    assert "append" in printed.splitlines()[2]


def test_gc_shows_what_it_would_remove_and_removes_it_with_delete(
    out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (out / "train-00099.tfrecord").write_bytes(b"12345")
    code, printed, err = run("gc", "out", "--older-than", "0s", capsys=capsys)
    assert (code, err) == (0, "")
    assert printed.splitlines() == [
        "train-00099.tfrecord: 5 B: no generation names it",
        "Kept: generations 1 to 2 of out",
        "Would remove 1 file, 5 B; nothing was removed: --delete does it.",
    ]
    assert (out / "train-00099.tfrecord").exists()
    _, printed, _ = run("gc", "out", capsys=capsys)
    assert printed.splitlines() == [
        "Kept: generations 1 to 2 of out",
        "Not yet: 1 more is younger than 7 days (--older-than)",
        "Nothing to remove.",
    ]
    _, printed, _ = run("gc", "out", "--older-than", "0s", "--delete", capsys=capsys)
    assert printed.splitlines()[-1] == "Removed 1 file, 5 B."
    assert not (out / "train-00099.tfrecord").exists()


def test_gc_says_why_a_generation_that_was_appended_to_stays(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = "shardmill rebuild out -o FOLDER"
    why = f"An append keeps what it was appended to; to make one generation of all records: {command}"
    for keep in (1, 2):
        _, printed, _ = run("gc", "out", "--older-than", "0s", "--keep", str(keep), capsys=capsys)
        assert (why in printed.splitlines()) is (keep == 1)


def test_gc_as_json(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, printed, _ = run("gc", "out", "--keep", "1", "--json", capsys=capsys)
    document = json.loads(printed)
    assert (code, document["kept"], document["items"], document["deleted"]) == (0, [1, 2], [], False)


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (["gc", "out", "--older-than", "7"], 2, '--older-than: "7" is not a duration; write it like 7d'),
        (["gc", "out", "--older-than", "-1d"], 2, '"-1d" is not a duration'),
        (["gc", "out", "--keep", "0"], 2, "greater than or equal to 1"),
        (["gc", "gone"], 2, "gone: no such file or folder"),
        (["log", "gone"], 2, "gone: no such file or folder"),
    ],
)
def test_wrong_usage_ends_with_2(
    out: Path, capsys: pytest.CaptureFixture[str], args: list[str], code: int, words: str
) -> None:
    ended, _, err = run(*args, capsys=capsys)
    assert ended == code
    assert words in err


def test_index_says_what_it_made_and_what_was_there(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, printed, err = run("index", "out", capsys=capsys)
    assert (code, err) == (0, "")
    assert printed == "8 files had an index already; --overwrite makes them again.\n"
    code, printed, err = run("index", "out", "--text", capsys=capsys)
    assert (code, printed) == (0, "Indexed 8 files, 17,100 records: out/index\n")
    assert (out / "index/train-00000.idx").read_bytes().startswith(b"0 ")


def test_index_as_json(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, printed, _ = run("index", "out/train-00000.tfrecord", "--overwrite", "--json", capsys=capsys)
    (file,) = json.loads(printed)["files"]
    assert code == 0
    assert file["outcome"] == "made"
    assert file["records"] > 2000


def test_index_of_what_is_no_file_of_records_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.tfrecord").write_text("this is text, and no record at all")
    code, _, err = run("index", "a.tfrecord", capsys=capsys)
    assert code == 3
    assert "a.tfrecord: record 0 at byte 0: the checksum of its length is wrong; this is probably no TFRecord" in err
