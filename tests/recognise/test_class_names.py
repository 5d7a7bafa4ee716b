"""Files that name the classes of a column of numbers: named, with the option that keeps the names."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from shardmill.transforms.dataset.reading.open_dataset import open_dataset

from ..archives import tar_of, zip_of
from ..conftest import Shardmill

NAMES = ["World", "Sports", "Business", "Sci/Tech"]


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def written(file: str, text: str, values: Sequence[object] = (0, 1, 2, 3), column: str = "label") -> None:
    Path("d/data").mkdir(parents=True, exist_ok=True)
    Path("d/data/rows.csv").write_text("".join(f"{one}\n" for one in [f"text,{column}", *(f"t,{v}" for v in values)]))
    Path("d", file).write_text(text)


def told(shardmill: Shardmill, *paths: str) -> str:
    done = shardmill("convert", *(paths or ("d/data/*.csv",)), "-o", "out", "--overwrite")
    assert done.code == 0, done.err
    return next((line for line in done.out.splitlines() if "has their names" in line), "")


def follow(shardmill: Shardmill, line: str, *paths: str) -> tuple[list[str], list[str]]:
    """Return the classes, and those of all rows, after the option on the screen."""
    option = shlex.split(line.rpartition("as classes: ")[2])
    assert option
    done = shardmill("convert", *(paths or ("d/data/*.csv",)), "-o", "out", "--overwrite", *option)
    assert (done.code, "has their names" in done.out, ", 0 rejected" in done.out) == (0, False, True), done.err
    dataset = open_dataset("out")
    (labels,) = dataset.manifest.labels.values()
    (name,) = dataset.manifest.labels
    return list(labels), sorted(row[name] for row in dataset["train"])


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("data/labels.txt", "\n".join(NAMES)),
        ("target_names.txt", "\n".join(NAMES) + "\n\n"),
        ("data/id2label.json", json.dumps(dict(enumerate(NAMES)))),
        ("label_map.json", json.dumps({name: number for number, name in enumerate(NAMES)})),
        ("data/class_names.json", json.dumps(NAMES)),
        ("data/label_num_to_disease_map.json", json.dumps(dict(enumerate(NAMES)))),
        ("leaf_classes.json", json.dumps(dict(enumerate(NAMES)))),
        ("config.json", json.dumps({"model_type": "bert", "id2label": dict(enumerate(NAMES))})),
    ],
    ids=lambda one: one if one.endswith(("txt", "json")) else "",
)
def test_numbers_get_the_names_of_a_file_beside_by_the_option_on_the_screen(
    shardmill: Shardmill, file: str, text: str
) -> None:
    written(file, text)
    assert follow(shardmill, told(shardmill)) == (NAMES, sorted(NAMES))


def test_lines_name_the_numbers_from_1_where_these_begin_there(shardmill: Shardmill) -> None:
    written("classes.txt", "\n".join(NAMES), values=(4, 1, 2, 3))
    assert follow(shardmill, told(shardmill)) == (["_unused_0", *NAMES], sorted(NAMES))


def test_names_are_found_for_a_table_without_a_header_as_ag_news_has_none(shardmill: Shardmill) -> None:
    written("classes.txt", "\n".join(NAMES))
    Path("d/data/rows.csv").write_text("".join(f'"{n % 4 + 1}","t {n}","7"\n' for n in range(8)))
    paths = ("d/data/rows.csv", "--no-header")
    line = told(shardmill, *paths)
    assert "(if the first name is of 0; if it is of 1, the second option)" in line
    second = f"as classes: {line.rpartition(', or ')[2]}"
    assert follow(shardmill, second, *paths) == (["_unused_0", *NAMES], sorted(NAMES * 2))


def test_a_number_that_an_object_does_not_name_is_a_class_without_rows(shardmill: Shardmill) -> None:
    written("id2label.json", json.dumps({"1": "cat", "3": "dog"}), values=(1, 3))
    assert follow(shardmill, told(shardmill)) == (["_unused_0", "cat", "_unused_2", "dog"], ["cat", "dog"])


def test_names_are_found_beside_parquet_json_lines_and_arrays(shardmill: Shardmill) -> None:
    written("labels.txt", "cat\ndog\n")
    table = pa.table({"x": [1.5, 2.5], "y": [0, 1]})
    pq.write_table(table, "d/a.parquet")
    Path("d/b.jsonl").write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
    np.savez("d/c.npz", x=np.array([1.5, 2.5]), y=np.array([0, 1]))
    for path, more in (("d/a.parquet", ()), ("d/b.jsonl", ()), ("d/c.npz", ("--set", "input.rows=true"))):
        assert follow(shardmill, told(shardmill, path, *more), path, *more) == (["cat", "dog"], ["cat", "dog"])


@pytest.mark.parametrize("form", ["webdataset/a.tar", "webdataset/a.zip"])
@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("classes.txt", "cat\ndog\n"),
        ("webdataset/labels.txt", "cat\ndog\n"),
        ("webdataset/id2label.json", '{"0": "cat", "1": "dog"}'),
    ],
)
def test_classes_in_archives_get_the_names_of_a_file_beside(
    shardmill: Shardmill, form: str, file: str, text: str
) -> None:
    written(file.replace("webdataset", "data"), text)
    Path("d/data").rename("d/webdataset")
    members = [(f"{n}.{end}", data) for n in range(4) for end, data in (("txt", b"t"), ("cls", b"%d\n" % (n % 2)))]
    Path("d", form).write_bytes((tar_of if form.endswith(".tar") else zip_of)(members))
    paths = (f"d/{form}", "--columns", "cls")
    assert follow(shardmill, told(shardmill, *paths), *paths) == (["cat", "dog"], ["cat", "cat", "dog", "dog"])


@pytest.mark.parametrize("text", ["cat\n", "cat\ndog\nyak\n"])
def test_names_are_those_of_classes_in_archives_only_if_there_are_enough(shardmill: Shardmill, text: str) -> None:
    written("classes.txt", text)
    Path("d/data/a.tar").write_bytes(tar_of([(f"{n}.cls", b"%d" % n) for n in range(2)]))
    assert (told(shardmill, "d/data/a.tar") == "") == (text == "cat\n")


def test_numbers_that_are_negative_or_far_away_name_no_class_of_a_column(shardmill: Shardmill) -> None:
    written("id2label.json", json.dumps({"-1": "none", "0": "cat", "1": "dog"}), values=(0, 1))
    assert follow(shardmill, told(shardmill)) == (["cat", "dog"], ["cat", "dog"])
    written("id2label.json", json.dumps({"0": "cat", "999999999": "dog"}), values=(0, 1))
    assert told(shardmill) == ""


@pytest.mark.parametrize(
    ("text", "values", "column"),
    [
        ("cat\ndog\n", (0, 1, 2), "label"),
        ("cat\ndog\n", (0, 1), "age"),
        ("cat\ndog\n", (0.5, 1.5), "label"),
        ("cat\ncat\n", (0, 1), "label"),
        ("a/1.jpg\na/2.jpg\n", (0, 1), "label"),
        ("cat\ndog\n", (-1, 1), "label"),
        ("", (0, 1), "label"),
    ],
    ids=["too few", "no column of classes", "no whole numbers", "a name twice", "paths", "below 0", "an empty file"],
)
def test_a_file_whose_names_do_not_fit_is_not_said_to_name_them(
    shardmill: Shardmill, text: str, values: Sequence[object], column: str
) -> None:
    written("labels.txt", text, values, column)
    assert told(shardmill) == ""


def test_a_file_that_is_no_text_names_nothing(shardmill: Shardmill) -> None:
    written("labels.txt", "")
    Path("d/labels.txt").write_bytes(b"\xff\xfe\x00")
    Path("d/label_map.json").write_text("{")
    assert told(shardmill) == ""


def test_a_column_of_splits_is_told_beside_the_names_of_classes(shardmill: Shardmill) -> None:
    written("labels.txt", "cat\ndog\n")
    Path("d/data/rows.csv").write_text("label,part\n0,train\n1,test\n")
    out = shardmill("convert", "d/data/rows.csv", "-o", "out").out
    assert "has their names" in out
    assert 'column "part" holds names of splits' in out


def test_without_detection_rows_are_not_looked_at_for_classes_splits_and_files(shardmill: Shardmill) -> None:
    written("labels.txt", "cat\ndog\n")
    Path("d/data/1.txt").write_text("t")
    rows = "".join(f"{n},1.txt,{part},{','.join(str(n) * 9)}\n" for n, part in enumerate(("train", "test")))
    flags = ",".join(f"f{n}" for n in range(9))
    Path("d/data/rows.csv").write_text(f"label,file,part,{flags}\n{rows}")
    told = ("has their names", "holds names of splits", "hold 0 and 1 alone", '"file"')
    out = shardmill("convert", "d/data/rows.csv", "-o", "out").out
    assert [one for one in told if one not in out] == []
    out = shardmill("convert", "d/data/rows.csv", "-o", "alone", "--set", "input.detect=none").out
    assert ("2 written" in out, "Detected" in out) == (True, False)
