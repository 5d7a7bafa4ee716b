"""What `diff` finds by manifests, statistics and lists of sources, its screen and its exit code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from shardmill.pipelines import append, convert
from shardmill.transforms.dataset.storage.record_file import write_records

from ...command_line import Shardmill

ROWS = {"id": [1, 2, 3, 4], "kind": ["cat", "owl", "cat", "cat"], "price": [1.0, 2.0, 3.0, 4.0]}

FIGURE = ("feature", "figure", "a", "b")


def made(folder: Path, rows: dict[str, Any] | None = None, **keys: Any) -> None:
    columns = keys.pop("columns", {"kind": {"label": True}})
    convert(data=pa.table(rows or ROWS), output=folder, schema={"columns": columns}, **keys)


def document(shardmill: Shardmill, *arguments: str) -> tuple[int, Any]:
    screen = shardmill("diff", *arguments, "--json")
    return screen.code, json.loads(screen.out)


def test_equal_records_in_other_shards_are_equal(tmp_path: Path, shardmill: Shardmill) -> None:
    made(tmp_path / "a")
    made(tmp_path / "b", compression="gzip", name="b")
    for more in ((), ("--records",)):
        screen = shardmill("diff", "a", "b", *more)
        assert (screen.code, screen.err) == (0, "")
        assert screen.out.splitlines()[0] == "A: a, generation 1"
        assert screen.out.splitlines()[-1] == "Equal."
    assert shardmill("diff", "a", "b", "--quiet").out == ""


def test_features_classes_splits_and_figures_that_differ_are_named(tmp_path: Path, shardmill: Shardmill) -> None:
    made(tmp_path / "a")
    other = {
        "id": [1, 2, 3, 5],
        "kind": ["ape", "owl", "cat", "cat"],
        "price": ["1", "2", "3", "4"],
        "more": [1, 2, 3, 4],
    }
    made(tmp_path / "b", other)
    code, found = document(shardmill, "a", "b")
    assert (code, found["equal"], found["records"]) == (1, False, None)
    assert found["schema"] == {"more": [None, "int64 (int64)"], "price": ["float64 (float)", "string (bytes)"]}
    assert found["labels"] == {"kind": {"cat": [0, 1], "owl": [1, 2], "ape": [None, 0]}}
    (split,) = found["splits"]
    assert (split["a"]["records"], split["b"]["records"], split["same_records"]) == (4, 4, False)
    figures = {(one["feature"], one["figure"]): (one["a"], one["b"]) for one in found["figures"]}
    assert figures["id", "max"] == (4, 5)
    assert figures["kind", "class cat"] == (3, 2)
    screen = shardmill("diff", "a", "b")
    assert "  price: float64 (float) -> string (bytes)" in screen.out
    assert "  train kind: class cat 3 -> 2" in screen.out
    assert screen.out.splitlines()[-1] == "Different."


def test_a_feature_that_may_be_absent_in_one_alone_differs(tmp_path: Path, shardmill: Shardmill) -> None:
    made(tmp_path / "a")
    made(tmp_path / "b", ROWS | {"price": [1.0, None, 3.0, 4.0]})
    _, found = document(shardmill, "a", "b")
    assert [list(texts) for texts in found["schema"].values()] in (
        [],
        [["float64 (float)", "float64 (float), may be absent"]],
    )
    assert ("price", "missing", 0, 1) in [tuple(one[key] for key in FIGURE) for one in found["figures"]]


def test_generations_of_one_dataset_and_their_sources(tmp_path: Path, shardmill: Shardmill) -> None:
    for name, line in (("one", '{"a": 1}\n'), ("two", '{"a": 2}\n')):
        (tmp_path / f"{name}.jsonl").write_text(line)
    convert(tmp_path / "one.jsonl", output=tmp_path / "out")
    append(tmp_path / "two.jsonl", output=tmp_path / "out")
    code, found = document(shardmill, "out@1", "out@2", "--records")
    assert code == 1
    assert found["sources"] == {"only_a": [], "only_b": ["two.jsonl"], "changed": []}
    (records,) = found["records"]
    assert (records["only_a"], records["only_b"], records["read"], records["skipped"]) == (0, 1, 1, 1)
    assert document(shardmill, "out", "out@2")[0] == 0
    screen = shardmill("diff", "out@1", "out", "--records")
    assert "Records of train: 0 only in A, 1 only in B (1 read, 1 in equal shards)" in screen.out
    (tmp_path / "one.jsonl").write_text('{"a": 3}\n')
    convert(tmp_path / "one.jsonl", output=tmp_path / "changed")
    assert document(shardmill, "out@1", "changed")[1]["sources"]["changed"] == ["one.jsonl"]


def test_what_is_no_dataset_or_no_generation_is_an_error_and_no_difference(
    tmp_path: Path, shardmill: Shardmill
) -> None:
    made(tmp_path / "a")
    screen = shardmill("diff", "a", "nowhere")
    assert (screen.code, "nowhere: no such file or folder" in screen.err) == (2, True)
    screen = shardmill("diff", "a@7", "a")
    assert (screen.code, "a: no generation 7: it holds 1" in screen.err) == (2, True)
    (tmp_path / "a@7").mkdir()
    assert "a@7: no dataset" in shardmill("diff", "a", "a@7").err


@pytest.mark.parametrize("missing", ["a", "b"])
def test_without_statistics_the_screen_says_how_to_have_them(
    tmp_path: Path, shardmill: Shardmill, missing: str
) -> None:
    for name in ("a", "b"):
        made(tmp_path / name, stats="none" if name == missing else "basic")
    screen = shardmill("diff", "a", "b")
    assert (screen.code, f"Figures: not compared, as {missing}, generation 1, has no statistics" in screen.out) == (
        0,
        True,
    )
    assert f"(shardmill stats {missing} --write)" in screen.out
    assert shardmill("stats", missing, "--write").code == 0
    assert "Figures: not compared" not in shardmill("diff", "a", "b").out


def test_an_older_generation_has_no_statistics_and_its_records_can_be_compared(
    tmp_path: Path, shardmill: Shardmill
) -> None:
    convert(data={"id": [1, 2]}, output=tmp_path / "out")
    append(data={"id": [3]}, output=tmp_path / "out")
    screen = shardmill("diff", "out", "out@1")
    said = "as out, generation 1, has no statistics (an older generation keeps none; --records compares the records)."
    assert said in " ".join(screen.out.split())
    assert "--write" not in screen.out
    assert "1 only in A, 0 only in B" in shardmill("diff", "out", "out@1", "--records").out


def test_levels_of_statistics_are_named_once_and_their_common_figures_compared(
    tmp_path: Path, shardmill: Shardmill
) -> None:
    made(tmp_path / "a")
    made(tmp_path / "b", stats=True)
    screen = shardmill("diff", "a", "b")
    assert screen.code == 0
    assert "only in" not in screen.out
    assert screen.out.count("Distinct values: not compared, as a, generation 1, does not have them") == 1
    made(tmp_path / "c", ROWS | {"price": [1.0, 2.0, 3.0, 5.0]}, stats=True)
    assert "train price: max 4 -> 5" in shardmill("diff", "a", "c").out
    assert document(shardmill, "a", "c")[1]["levels"] == ["basic", "full"]
    assert shardmill("stats", "a", "--full", "--write").code == 0
    assert "not compared" not in shardmill("diff", "a", "b").out


def test_distinct_values_that_are_estimated_are_called_so(tmp_path: Path, shardmill: Shardmill) -> None:
    for name, number in (("few", 100), ("many", 11_000)):
        convert(data={"name": [f"x{i % number}" for i in range(11_000)]}, output=tmp_path / name, stats=True)
    (figure,) = (one for one in document(shardmill, "few", "many")[1]["figures"] if one["figure"] == "distinct")
    assert (figure["a"], figure["estimated"]) == (100, ["b"])
    assert f"train name: distinct 100 -> about {figure['b']:,}" in shardmill("diff", "few", "many").out


def test_files_without_a_manifest_are_compared_by_their_records_in_any_order(
    tmp_path: Path, shardmill: Shardmill
) -> None:
    rows = [f"record {number}".encode() for number in range(9)]
    Path("two").mkdir()
    write_records("one.tfrecord", rows)
    write_records("two/a.tfrecord", rows[5:])
    write_records("two/b.tfrecord", rows[:5])
    assert shardmill("merge", "one.tfrecord", "-o", "out", "-q").code == 0
    for other in ("two", "out"):
        screen = shardmill("diff", "one.tfrecord", other)
        assert (screen.code, screen.out.splitlines()[-2:]) == (
            0,
            ["Records: 0 only in A, 0 only in B (18 read)", "Equal."],
        )
    screen = shardmill("diff", "one.tfrecord", "two/a.tfrecord", "--json")
    said = json.loads(screen.out)
    assert (screen.code, said["equal"], said["records"][0]["only_a"], said["records"][0]["only_b"]) == (1, False, 5, 0)
    Path("cut.tfrecord").write_bytes(Path("one.tfrecord").read_bytes()[:-3])
    assert shardmill("diff", "cut.tfrecord", "one.tfrecord").code == 3
