"""`inspect`: what it prints of datasets, of foreign files, and of damaged ones."""

from __future__ import annotations

import io
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from shardmill.pipelines.commands.inspect_records import inspect
from shardmill.pipelines.screens.summary_screen import Screen
from shardmill.transforms.dataset.storage.record_file import write_records
from shardmill.transforms.errors import DamageError, InputError, UsageError

from ...command_line import Shardmill
from ...examples import example_from_values


def run(path: Path, count: int = 3, *, as_json: bool = True, split: str | None = None) -> str:
    out = io.StringIO()
    inspect(str(path), count, Screen(as_json=as_json, stdout=out, stderr=io.StringIO()), split)
    return out.getvalue()


def documents(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.fixture
def records(tmp_path: Path) -> Path:
    path = tmp_path / "foreign.tfrecord"
    first = example_from_values(
        {"age": [-3, 2**62], "name": ["Zoë\x1b"], "raw": [b"\xff\xd8\xff"], "score": [0.1, float("nan"), float("-inf")]}
    )
    second = example_from_values({"empty": []}, {"empty": "int64"})
    write_records(path, [first.SerializeToString(deterministic=True), second.SerializeToString(), b"\xff\xffno"])
    return path


def test_each_record_is_one_json_object_with_its_number_file_and_offset(records: Path) -> None:
    first, second, third = documents(run(records))
    assert first == {
        "record": 0,
        "file": str(records),
        "offset": 0,
        "features": {
            "age": [-3, 4611686018427387904],
            "name": ["Zoë\x1b"],
            "raw": [{"base64": "/9j/"}],
            "score": [0.1, "NaN", "-Infinity"],
        },
    }
    assert (second["record"], second["features"]) == (1, {"empty": []})
    assert third == {
        "record": 2,
        "file": str(records),
        "offset": records.stat().st_size - 16 - 4,
        "features": None,
        "problem": "not a tf.train.Example",
        "bytes": 4,
    }


def test_the_table_of_a_record_shows_every_feature_and_no_control_characters(records: Path) -> None:
    text = run(records, as_json=False)
    assert text.splitlines() == [
        f"record 0 of {records}, byte 0, {text.split(', ')[2].split(' ')[0]} bytes",
        " feature  kind   values",
        " age      int64  -3, 4611686018427387904",
        ' name     bytes  "Zoë\\x1b"',
        " raw      bytes  3 bytes ff d8 ff",
        " score    float  0.1, nan, -inf",
        "",
        *text.splitlines()[7:8],
        " feature  kind   values",
        " empty    int64  (empty)",
        "",
        *text.splitlines()[11:12],
        "  not a tf.train.Example: 4 bytes ff ff 6e 6f",
        "",
    ]


def test_a_feature_without_a_name_is_shown_as_quotes_and_not_as_a_blank(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    write_records(path, [example_from_values({"": [7]}).SerializeToString()])
    assert run(path, as_json=False).splitlines()[2].split() == ['""', "int64", "7"]


def test_long_lists_and_long_values_are_cut_in_the_table_only(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    example = example_from_values({"v": list(range(300)), "raw": [b"\xff" * 100]})
    write_records(path, [example.SerializeToString()])
    text = run(path, as_json=False)
    assert "0, 1, 2, 3, 4, 5, 6, 7, and 292 more" in text
    assert "100 bytes ff ff ff ff ff ff ff ff ff ff ff ff ff ff ff ff …" in text
    assert documents(run(path))[0]["features"]["v"] == list(range(300))


@pytest.mark.parametrize(("count", "shown"), [(0, 0), (1, 1), (2, 2), (9, 3)])
def test_so_many_records_are_shown_as_were_asked_for(records: Path, count: int, shown: int) -> None:
    assert len(run(records, count).splitlines()) == shown


def test_a_gzip_file_is_told_by_its_content(tmp_path: Path) -> None:
    path = tmp_path / "no-suffix"
    write_records(path, [example_from_values({"a": [i]}).SerializeToString() for i in (7, 8)], "gzip")
    assert [document["features"] for document in documents(run(path))] == [{"a": [7]}, {"a": [8]}]


def test_records_before_a_damage_are_shown_and_the_damage_is_raised_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "cut.tfrecord"
    payload = example_from_values({"a": [1]}).SerializeToString()
    write_records(path, [payload, payload])
    path.write_bytes(path.read_bytes()[:-1])
    out = io.StringIO()
    with pytest.raises(DamageError, match=r"cut\.tfrecord: record 1 at byte "):
        inspect(str(path), 3, Screen(as_json=True, stdout=out, stderr=io.StringIO()))
    assert [document["record"] for document in documents(out.getvalue())] == [0]


def test_a_path_that_holds_nothing_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="gone: no such file or folder"):
        run(tmp_path / "gone")
    with pytest.raises(InputError, match="no dataset"):
        run(tmp_path)


def test_a_split_of_a_single_file_is_a_usage_error(records: Path) -> None:
    with pytest.raises(UsageError, match="is one file, which has no splits"):
        run(records, split="train")


def test_the_records_of_a_folder_without_a_manifest_are_shown_file_after_file(
    records: Path, tmp_path: Path, shardmill: Shardmill
) -> None:
    for place in ("plain/Split-train/b.tfrecord", "plain/a.tfrecord"):
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(records, tmp_path / place)
    screen = shardmill("inspect", "plain", "-n", "99", "--json")
    assert screen.code == 0, screen.err
    one = [json.loads(line) for line in shardmill("inspect", str(records), "-n", "99", "--json").out.splitlines()]
    shown = [json.loads(line) for line in screen.out.splitlines()]
    files = ["plain/Split-train/b.tfrecord"] * len(one) + ["plain/a.tfrecord"] * len(one)
    assert [{**row, "file": ""} for row in shown] == [{**row, "file": ""} for row in one * 2]
    assert [row["file"] for row in shown] == files
    assert "plain: no dataset, but a folder of 2 TFRecord files, whose records follow" in screen.err
    assert shardmill("inspect", "plain", "--split", "train").code == 2


def test_an_empty_file_says_so_on_stderr(tmp_path: Path) -> None:
    (tmp_path / "empty.tfrecord").write_bytes(b"")
    out, err = io.StringIO(), io.StringIO()
    inspect(str(tmp_path / "empty.tfrecord"), 3, Screen(stdout=out, stderr=err))
    assert (out.getvalue(), err.getvalue()) == ("", f"{tmp_path}/empty.tfrecord: holds no records\n")


def test_a_dataset_is_shown_shard_after_shard_under_paths_below_its_folder(dataset: Path) -> None:
    shown = [(d["file"], d["record"], d["features"]["a"]) for d in documents(run(dataset, 9))]
    assert shown == [
        ("train-00000.tfrecord", 0, [0]),
        ("train-00000.tfrecord", 1, [1]),
        ("train-00000.tfrecord", 2, [2]),
        ("train-00001.tfrecord", 0, [3]),
        ("val-00000.tfrecord", 0, [4]),
    ]
    assert [d["features"]["a"] for d in documents(run(dataset, 9, split="val"))] == [[4]]


def test_a_shard_that_is_committed_and_not_yet_moved_is_read_where_it_is_staged(dataset: Path) -> None:
    staged = dataset / ".staging/5f0c9b1e2a7d4c88/shards"
    staged.mkdir(parents=True)
    (dataset / "train-00000.tfrecord").rename(staged / "train-00000.tfrecord")
    (first,) = documents(run(dataset, 1))
    assert (first["file"], first["features"]) == ("train-00000.tfrecord", {"a": [0]})


def test_a_split_that_is_not_there_is_a_usage_error_that_names_those_that_are(dataset: Path) -> None:
    with pytest.raises(UsageError, match='no split "tset"; it has: train, val'):
        run(dataset, split="tset")


def test_records_are_shown_from_a_number_on_over_files_and_shards(
    tmp_path: Path, shardmill: Shardmill, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [example_from_values({"id": [number]}).SerializeToString() for number in range(7)]
    Path("files").mkdir()
    write_records("files/a.tfrecord", rows[:4])
    write_records("files/b.tfrecord", rows[4:])
    assert shardmill("merge", "files", "-o", "out", "-q").code == 0
    for path, start in (("files/a.tfrecord", 2), ("files", 3), ("files", 4), ("out", 5)):
        text = shardmill("inspect", path, "--start", str(start), "-n", "2", "--json").out
        wanted = [start, start + 1]
        assert [one["features"]["id"] for one in documents(text)] == [[one] for one in wanted]
    assert "holds no more than 7 records" in shardmill("inspect", "out", "--start", "7").err
