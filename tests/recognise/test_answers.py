"""Features and answers in two tables are not read as one: the line of Python on the screen joins their rows."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from shardmill.pipelines import open_dataset

from ..command_line import Screen, Shardmill


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def put(files: dict[str, str]) -> None:
    for name, text in files.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        if name.endswith("parquet"):
            head, *rows = (line.split(",") for line in text.splitlines())
            pd.DataFrame([[int(cell) for cell in row] for row in rows], columns=head).to_parquet(name)
        else:
            Path(name).write_text(text)


def follow(screen: Screen, shardmill: Shardmill) -> None:
    found = re.search(r"in Python(?: \([^()]*\))*: (.*?)(?:; then: shardmill (.*?))?; if it is meant so", screen.err)
    assert (screen.code, found is not None) == (2, True), screen.err
    assert found
    exec(found[1], {})
    if found[2]:
        done = shardmill(*shlex.split(found[2]))
        assert done.code == 0, done.err


def rows_of(split: str) -> list[dict[str, Any]]:
    return [{key: one for key, one in row.items() if key != "split"} for row in open_dataset("out")[split]]


X, Y = "a,b\n1,2\n3,4\n", "y\n7\n8\n"
ROWS = [{"a": 1, "b": 2, "y": 7}, {"a": 3, "b": 4, "y": 8}]


@pytest.mark.parametrize(
    ("files", "splits"),
    [
        ({"X_train.csv": X, "y_train.csv": Y, "X_test.csv": X, "y_test.csv": Y}, ["test", "train"]),
        ({"train/X.csv": X, "train/y.csv": Y, "test/X.csv": X, "test/y.csv": Y}, ["test", "train"]),
        ({"X_train.csv": X, "y_train.csv": Y, "X_test.csv": X}, ["train"]),
        ({"X_test.csv": X, "y_test.csv": Y}, ["test"]),
        ({"x.csv": X.replace(",", ";"), "y.csv": Y}, ["train"]),
        ({"pets_features.parquet": X, "pets_labels.parquet": Y}, ["train"]),
        ({"train.csv": X, "train_labels.csv": Y}, ["train"]),
    ],
)
def test_rows_of_features_get_their_answers_by_the_line_on_the_screen(
    files: dict[str, str], splits: list[str], shardmill: Shardmill
) -> None:
    put({f"d/{name}": text for name, text in files.items()})
    follow(shardmill("convert", "d", "-o", "out"), shardmill)
    assert sorted(open_dataset("out").manifest.splits) == splits
    assert [rows_of(split) for split in splits] == [ROWS] * len(splits)


def test_answers_with_the_key_of_their_rows_are_joined_by_it(shardmill: Shardmill) -> None:
    put({"d/train_features.csv": "id,a\n1,2\n2,4\n", "d/train_labels.csv": "id,y\n2,8\n1,7\n"})
    follow(shardmill("convert", "d", "-o", "out"), shardmill)
    assert rows_of("train") == [{"id": 1, "a": 2, "y": 7}, {"id": 2, "a": 4, "y": 8}]


def test_texts_of_tables_stay_as_they_are_and_a_table_that_has_its_answers_is_read_too(shardmill: Shardmill) -> None:
    put({
        "d/test.csv": "id,word\n00040,NA\n00041,\"x, 1.50\"\n", "d/test_labels.csv": "id,toxic\n00041,1\n00040,0\n",
        "d/train.csv": "id,word,toxic\n00007,1e5,1\n", "d/valid.csv": "id,word\n00009,z\n",
        "d/sample_submission.csv": "id,toxic\n00040,5\n",
    })  # fmt: skip
    screen = shardmill("convert", "d", "-o", "out")
    follow(screen, shardmill)
    assert rows_of("test") == [
        {"id": "00040", "word": "NA", "toxic": 0},
        {"id": "00041", "word": "x, 1.50", "toxic": 1},
    ]
    assert rows_of("train") == [{"id": "00007", "word": "1e5", "toxic": 1}]
    assert "(d/valid.csv has no answers, and is left out) (d/sample_submission.csv is left out)" in screen.err


VALUES, ANSWERS = "id,code\n00,NA\n07,04\n", "id,status\n07,bad\n00,good\n"


@pytest.mark.parametrize(
    ("names", "left"),
    [
        (("training_set_values", "training_set_labels", "test_set_values", "submission_format"), True),
        (("train_values", "train_labels", "test_values"), False),
        (("train", "trainLabels", "test"), False),
        (("train", "train_target", "test"), False),
    ],
)
def test_answers_of_competitions_are_joined_and_forms_for_them_are_not(
    names: tuple[str, ...], left: bool, shardmill: Shardmill
) -> None:
    put({f"d/{name}.csv": text for name, text in zip(names, (VALUES, ANSWERS, VALUES, ANSWERS), strict=False)})
    screen = shardmill("convert", "d", "-o", "out")
    follow(screen, shardmill)
    (split,) = open_dataset("out").manifest.splits
    assert split.startswith("train")
    assert rows_of(split) == [{"id": "00", "code": "NA", "status": "good"}, {"id": "07", "code": "04", "status": "bad"}]
    assert f"d/{names[2]}.csv has no answers, and is left out" in screen.err
    assert ("d/submission_format.csv is left out" in screen.err) == left


def test_answers_of_fewer_rows_without_a_key_are_not_joined(shardmill: Shardmill) -> None:
    put({"d/X.csv": X, "d/y.csv": "y\n7\n"})
    with pytest.raises(ValueError, match="does not match length"):
        follow(shardmill("convert", "d", "-o", "out"), shardmill)


@pytest.mark.parametrize(
    "files", [{"x.csv": X, "y.csv": X}, {"labels.csv": X, "more.csv": X}, {"train.csv": X, "sales.csv": X}]
)
def test_parts_of_one_table_are_read_as_before(files: dict[str, str], shardmill: Shardmill) -> None:
    put({f"d/{name}": text for name, text in files.items()})
    assert shardmill("convert", "d", "-o", "out").code == 0


def test_what_is_meant_as_one_table_is_read_by_the_option_that_is_said(shardmill: Shardmill) -> None:
    put({"d/X.csv": X, "d/y.csv": Y})
    option = re.search(r"meant so: --set (\S+)", shardmill("convert", "d", "-o", "out").err)
    assert option
    union = ["--set", option[1], "--set", "input.columns_differ=union"]
    assert shardmill("convert", "d", "-o", "out", *union).code == 0
