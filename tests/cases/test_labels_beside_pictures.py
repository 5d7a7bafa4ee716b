"""Files that label pictures, in the forms of tools that write each their own, are named with what reads them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from shardmill.pipelines import open_dataset

from ..command_line import Shardmill
from .test_texts_and_tables_beside_others import in_a_folder, put

__all__ = ["in_a_folder"]


@pytest.mark.parametrize("name", ["info.labels", "bounding_boxes.labels", "info.json"])
def test_labels_of_edge_impulse_are_read_by_the_line_that_is_printed(name: str, shardmill: Shardmill) -> None:
    pictures = {f"{split}/{n}.png": split for split in ("training", "testing") for n in range(3)}
    put({f"d/{picture}": "" for picture in pictures})
    box = {"label": "can", "x": 1, "y": 0, "width": 2, "height": 2}
    rows = [{"path": one, "category": split, "boundingBoxes": [box]} for one, split in pictures.items()]
    put({f"d/{name}": json.dumps({"version": 1, "files": rows})})
    screen = shardmill("convert", "d", "-o", "plain")
    assert screen.code == 0, screen.err
    found = re.search(
        rf"d/{name} names pictures in its key \"path\".* in Python: (.*); then: shardmill (.*)", screen.out
    )
    assert found, screen.out
    subprocess.run([sys.executable, "-c", found[1]], check=True)
    done = shardmill(*found[2].replace("plain", "out").split())
    assert done.code == 0, done.err
    dataset = open_dataset("out")
    assert {split: len(dataset[split]) for split in dataset.splits} == {"testing": 3, "training": 3}
    assert dataset["training"].to_arrow()["boundingBoxes"].to_pylist() == [[box]] * 3


@pytest.mark.parametrize("folders", [["box", "entities"], ["notes"], ["text"]])
@pytest.mark.parametrize("pictures", ["img", "images"])
def test_texts_with_the_names_of_pictures_in_folders_beside_these_are_named(
    folders: list[str], pictures: str, shardmill: Shardmill
) -> None:
    for split in ("train", "test"):
        put({f"d/{split}/{pictures}/X{n}.jpg": "" for n in range(3)})
        put({f"d/{split}/{folder}/X{n}.txt": "total 9.50\n" for folder in folders for n in range(3)})
    screen = shardmill("convert", "d", "-o", "out")
    assert screen.code == 0, screen.err
    assert f"d/test/{folders[0]}" in screen.out
    assert "have files with names of pictures, and their files are not read, such as d/" in screen.out


@pytest.mark.parametrize("named", [True, False])
def test_columns_without_names_are_not_proposed_as_one_list(named: bool, shardmill: Shardmill) -> None:
    header = [",".join(f"p{n}" for n in range(188))] if named else []
    rows = [",".join([*(f"{(row + n) % 7 / 8}" for n in range(187)), f"{row % 3}"]) for row in range(12)]
    Path("a.csv").write_text("\n".join([*header, *rows]) + "\n")
    screen = shardmill("convert", "a.csv", "-o", "out", *([] if named else ["--no-header"]))
    assert screen.code == 0, screen.err
    assert ("to have them as one list" in screen.out) == named, "a class may be the last of them"


@pytest.mark.parametrize("above", ["dataset", "a/b"])
@pytest.mark.parametrize("classes", [["images"], ["cat", "dog"]])
def test_a_folder_above_all_splits_is_no_class_where_their_names_are_taken(
    above: str, classes: list[str], shardmill: Shardmill
) -> None:
    for split in ("training_data", "testing_data"):
        put({f"d/{above}/{split}/{kind}/{n}.png": "" for kind in classes for n in range(2)})
    stop = shardmill("convert", "d", "-o", "out")
    assert stop.code != 0
    assert "--set input.splits=names" in stop.err
    done = shardmill("convert", "d", "-o", "out", "--set", "input.splits=names")
    assert done.code == 0, done.err
    labels = open_dataset("out").manifest.labels or {}
    assert list(labels.values()) == ([tuple(classes)] if len(classes) > 1 else [])
