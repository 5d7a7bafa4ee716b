"""Files beside YOLO's labels say the names of classes; none of them takes a folder of labels away."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest
from shardmill.transforms.dataset.reading.open_dataset import open_dataset

from ..command_line import Shardmill
from .test_box_layouts import boxes, picture, roboflow_yolo, splits_of, ultralytics, write, yolo

CLASS = "image/object/class/label"
COUNTS = {"train": 2, "valid": 1, "test": 1}


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def assert_all_splits(screen: str) -> None:
    assert {name: len(names) for name, names in splits_of("out").items()} == COUNTS
    assert open_dataset("out").labels == {CLASS: ("cat", "dog")}
    assert "Read 4 rows of 4 files" in screen
    assert all(len(box) == 4 for split in COUNTS for box, _ in boxes("out", split))


@pytest.mark.parametrize("split", ["train", "valid", "test"])
@pytest.mark.parametrize("name", ["classes.txt", "labels.txt", "data.yaml"])
def test_names_of_classes_in_the_labels_of_one_split_take_no_split_away(
    name: str, split: str, shardmill: Shardmill
) -> None:
    roboflow_yolo("pets")
    write(f"pets/{split}/labels/{name}", "names: [cat, dog]" if name == "data.yaml" else "cat\ndog\n")
    assert_all_splits(shardmill("convert", "pets", "-o", "out").out)


@pytest.mark.parametrize("name", ["notes.json", "notes.txt", "README.txt", "README.roboflow.txt", "LICENSE.txt"])
def test_a_text_of_no_picture_in_the_labels_of_a_split_takes_no_split_away(name: str, shardmill: Shardmill) -> None:
    roboflow_yolo("pets")
    write(f"pets/valid/labels/{name}", "a text\n")
    assert_all_splits(shardmill("convert", "pets", "-o", "out").out)


@pytest.mark.parametrize("name", ["classes.txt", "labels.txt"])
def test_each_folder_of_labels_may_name_the_classes_where_nothing_else_does(name: str, shardmill: Shardmill) -> None:
    ultralytics("pets")
    Path("pets/data.yaml").unlink()
    for split in COUNTS:
        write(f"pets/labels/{split}/{name}", "cat\ndog\n")
    assert_all_splits(shardmill("convert", "pets", "-o", "out").out)


def test_one_folder_of_labels_may_name_the_classes_of_all(shardmill: Shardmill) -> None:
    roboflow_yolo("pets")
    Path("pets/data.yaml").unlink()
    write("pets/test/labels/classes.txt", "cat\ndog\n")
    assert_all_splits(shardmill("convert", "pets", "-o", "out").out)


def test_a_list_may_name_the_first_classes_of_a_longer_one(shardmill: Shardmill) -> None:
    roboflow_yolo("pets")
    write("pets/valid/labels/classes.txt", "cat\n")
    assert_all_splits(shardmill("convert", "pets", "-o", "out").out)


@pytest.mark.parametrize("make", [roboflow_yolo, ultralytics])
@pytest.mark.parametrize("names", ["dog\ncat\n", "cat\ndoe\nowl\n"])
def test_names_that_differ_stop_a_run_and_the_command_takes_those_of_the_config(
    names: str, make: object, shardmill: Shardmill
) -> None:
    assert callable(make)
    make("pets")
    folder = "pets/valid/labels" if make is roboflow_yolo else "pets/labels/valid"
    write(f"{folder}/classes.txt", names)
    refused = shardmill("convert", "pets", "-o", "out")
    assert refused.code == 1
    assert f"{folder}/classes.txt: names other classes" in refused.err
    assert "than pets/data.yaml (cat, dog)" in refused.err
    subprocess.run(shlex.split(refused.err.strip().rpartition(": ")[2]), check=True)
    assert_all_splits(shardmill("convert", "pets", "-o", "out").out)


def test_labels_of_a_picture_called_classes_are_read(shardmill: Shardmill) -> None:
    for name in ("a", "classes"):
        picture(f"pets/images/{name}.jpg")
        yolo(f"pets/labels/{name}.txt")
    assert "2 written, 0 rejected" in shardmill("convert", "pets", "-o", "out").out
    assert len(boxes("out", "train")) == 2


def test_labels_with_a_text_of_another_name_before_them_are_read(shardmill: Shardmill) -> None:
    picture("pets/images/b.jpg")
    yolo("pets/labels/b.txt")
    write("pets/labels/a text.txt", "made up\n")
    screen = shardmill("convert", "pets", "-o", "out", "--max-rejects", "1").out
    assert "1 written, 1 rejected" in screen


def test_splits_with_folders_of_pictures_beside_pictures_are_given_no_command_that_stops(shardmill: Shardmill) -> None:
    for split in ("train", "val"):
        picture(f"pets/{split}/0.jpg")
        picture(f"pets/{split}/a/1.jpg")
    refused = shardmill("convert", "pets", "-o", "out")
    assert refused.code == 2
    assert "shardmill convert" not in refused.err


@pytest.mark.parametrize("end", ["", ".0", ".0000"])
def test_numbers_of_classes_that_are_written_as_parts_are_read_as_whole_ones(end: str, shardmill: Shardmill) -> None:
    roboflow_yolo("pets")
    for path in Path("pets").rglob("labels/*.txt"):
        number, *box = path.read_text().split()
        path.write_text(" ".join([f"{number}{end}", *box]))
    assert_all_splits(shardmill("convert", "pets", "-o", "out").out)
    assert [label for _, label in boxes("out", "train")] == [["cat"], ["dog"]]


def test_a_number_of_a_class_that_is_no_whole_one_is_a_reject(shardmill: Shardmill) -> None:
    roboflow_yolo("pets")
    write("pets/valid/labels/0.txt", "0.5 0.35 0.5 0.5 0.5\n")
    assert "3 written, 1 rejected" in shardmill("convert", "pets", "-o", "out", "--max-rejects", "1").out


@pytest.mark.parametrize("names", [["pets.yaml"], ["train.yaml", "test.yaml"]])
def test_yaml_files_of_other_names_without_splits_name_the_classes_where_they_agree(
    names: list[str], shardmill: Shardmill
) -> None:
    ultralytics("pets")
    Path("pets/data.yaml").unlink()
    write("pets/mkdocs.yaml", "site_name: pets\n")
    screen = shardmill("convert", "pets", "-o", "bare").out
    assert "classes have no names, and are numbers" in screen
    assert open_dataset("bare").labels == {}
    for name in names:
        write(f"pets/{name}", "nc: 2\nnames: [cat, dog]\n")
    screen = shardmill("convert", "pets", "-o", "out").out
    assert_all_splits(screen)
    assert "have no names" not in screen
    write("pets/other.yaml", "nc: 2\nnames: [dog, cat]\n")
    assert "or files name other ones" in " ".join(shardmill("convert", "pets", "-o", "odd").out.split())
    assert open_dataset("odd").labels == {}
