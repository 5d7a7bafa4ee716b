"""Features and answers in two tables are not read as one: the line of Python on the screen joins their rows."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from shardmill.pipelines import convert, open_dataset

from ..command_line import Screen, Shardmill

pytestmark = pytest.mark.usefixtures("without_engine")


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


def follow(screen: Screen) -> None:
    found = re.search(r"in Python(?: \(.*?\))?: (convert\(.*?output='out'.*?\)); if it is meant so", screen.err)
    assert (screen.code, found is not None) == (2, True), screen.err
    assert found
    exec(found[1], {"convert": convert, "pandas": pd})


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
    follow(shardmill("convert", "d", "-o", "out"))
    assert sorted(open_dataset("out").manifest.splits) == splits
    assert [rows_of(split) for split in splits] == [ROWS] * len(splits)


def test_answers_with_the_key_of_their_rows_are_joined_by_it(shardmill: Shardmill) -> None:
    put({"d/train_features.csv": "id,a\n1,2\n2,4\n", "d/train_labels.csv": "id,y\n2,8\n1,7\n"})
    follow(shardmill("convert", "d", "-o", "out"))
    assert rows_of("train") == [{"id": 1, "a": 2, "y": 7}, {"id": 2, "a": 4, "y": 8}]


def test_answers_of_fewer_rows_without_a_key_are_not_joined(shardmill: Shardmill) -> None:
    put({"d/X.csv": X, "d/y.csv": "y\n7\n"})
    with pytest.raises(ValueError, match="does not match length"):
        follow(shardmill("convert", "d", "-o", "out"))


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
