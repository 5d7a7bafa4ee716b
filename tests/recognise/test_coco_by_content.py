"""Files of COCO's are known by what is in them, whatever their names; what is unclear stops with commands that run."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from shardmill.transforms.dataset.reading.open_dataset import open_dataset

from ..command_line import Shardmill
from .test_box_layouts import BOX, boxes, coco, picture, splits_of, voc, yolo


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def commands_of(screen: str, *seps: str) -> list[list[str]]:
    """Return the commands of a message, but the one that reads the pictures alone."""
    text = screen[screen.index("shardmill convert") : screen.index("; the pictures alone")]
    for sep in seps:
        text = text.replace(sep, "\n")
    return [shlex.split(one.partition("shardmill ")[2]) for one in text.splitlines()]


@pytest.mark.parametrize(
    "name",
    [
        "{0}.json", "{0}_annotations.json", "annotations_{0}.json", "instances_{0}.json", "{0}/annotations.json",
        "{0}/{0}.json", "labels/{0}.json", "{0}/annotations/instances.json", "{0}/annotations/coco.json",
    ],
)  # fmt: skip
def test_files_of_splits_are_read_by_any_names(name: str, shardmill: Shardmill) -> None:
    for split in ("train", "val"):
        picture(f"pets/{split}/0.jpg")  # of one name in both
        picture(f"pets/{split}/1.jpg")
        coco(f"pets/{name.format(split)}", ["0.jpg", "1.jpg"])
    done = shardmill("convert", "pets", "-o", "out")
    assert done.code == 0, done.err
    assert boxes("out", "train") == boxes("out", "val") == [(BOX, ["cat"]), (BOX, ["dog"])]
    assert "not read" not in done.out
    assert "left out" not in done.out.lower()


@pytest.mark.parametrize("name", ["annotations.json", "instances.json", "coco.json", "labels.json"])
@pytest.mark.parametrize("folder", ["images", "photos"])
@pytest.mark.parametrize("ahead", [False, True])
def test_one_file_beside_the_folder_of_its_pictures_is_read(
    name: str, folder: str, ahead: bool, shardmill: Shardmill
) -> None:
    picture(f"pets/{folder}/0.jpg")
    coco(f"pets/{name}", ["0.jpg"])
    if ahead:  # a megabyte before the list of pictures
        found = json.loads(Path(f"pets/{name}").read_text())
        Path(f"pets/{name}").write_text(json.dumps({"info": "x" * (1 << 20)} | dict(sorted(found.items()))))
    done = shardmill("convert", "pets", "-o", "out")
    assert done.code == 0, done.err
    assert boxes("out", "train") == [(BOX, ["cat"])]


def test_files_that_do_not_state_the_splits_of_their_pictures_stop_with_the_commands_that_do(
    shardmill: Shardmill,
) -> None:
    for name, split in (("a", "train"), ("b", "val")):
        picture(f"pets/{split}/{name}.jpg")
        coco(f"pets/annotations_{name}.json", [f"{name}.jpg"])
    stopped = shardmill("convert", "pets", "-o", "out")
    assert stopped.code == 2
    for command in commands_of(stopped.err, " && "):
        done = shardmill(*command)
        assert done.code == 0, done.err
    assert splits_of("out") == {"train": ["a.jpg"], "val": ["b.jpg"]}
    assert boxes("out", "val") == [(BOX, ["cat"])]


def test_two_files_of_the_same_pictures_stop_with_the_commands_that_read_one(shardmill: Shardmill) -> None:
    picture("pets/images/0.jpg")
    for name in ("a", "b"):
        coco(f"pets/{name}.json", ["0.jpg"])
    stopped = shardmill("convert", "pets", "-o", "out")
    assert stopped.code == 2
    first, second = commands_of(stopped.err, " or ", "; ")
    for command in (first, second):
        done = shardmill(*command, "--overwrite")
        assert done.code == 0, done.err
        assert boxes("out", "train") == [(BOX, ["cat"])]


def test_a_file_whose_pictures_are_in_two_folders_stops_with_the_command_that_reads_one(shardmill: Shardmill) -> None:
    for split in ("train", "val"):
        picture(f"pets/{split}/0.jpg")
    coco("pets/annotations.json", ["0.jpg"])
    stopped = shardmill("convert", "pets", "-o", "out")
    assert stopped.code == 2
    assert "(PICTURES: the folder of its pictures)" in stopped.err
    (command,) = commands_of(stopped.err.replace(" (PICTURES: the folder of its pictures)", ""))
    done = shardmill(*[word.replace("PICTURES", "pets/val") for word in command])
    assert done.code == 0, done.err
    assert boxes("out", "train") == [(BOX, ["cat"])]


def test_a_file_beside_boxes_of_two_kinds_stops_with_the_commands(shardmill: Shardmill) -> None:
    picture("pets/images/0.jpg")
    yolo("pets/labels/0.txt")
    voc("pets/annotations/0.xml", "0.jpg")
    coco("pets/all.json", ["0.jpg"])
    stopped = shardmill("convert", "pets", "-o", "out")
    assert stopped.code == 2
    (command,) = commands_of(stopped.err)
    done = shardmill(*command)
    assert done.code == 0, done.err
    assert boxes("out", "train") == [(BOX, ["cat"])]
    alone = shlex.split(stopped.err.partition("the pictures alone: shardmill ")[2])
    assert shardmill(*alone, "--overwrite").code == 0
    assert "image/object/bbox/xmin" not in open_dataset("out").to_arrow("train").column_names


def test_a_file_in_the_only_folder_of_a_root_is_read(shardmill: Shardmill) -> None:
    picture("pets/export/val/0.jpg")
    coco("pets/export/val/annotations.json", ["0.jpg"])
    done = shardmill("convert", "pets", "-o", "out")
    assert done.code == 0, done.err
    assert boxes("out", "val") == [(BOX, ["cat"])]


def test_a_file_that_names_pictures_in_the_folders_of_splits_has_their_splits(shardmill: Shardmill) -> None:
    for split in ("train", "val"):
        picture(f"pets/{split}/0.jpg")
    coco("pets/annotations.json", ["train/0.jpg", "val/0.jpg"])
    done = shardmill("convert", "pets", "-o", "out")
    assert done.code == 0, done.err
    assert (boxes("out", "train"), boxes("out", "val")) == ([(BOX, ["cat"])], [(BOX, ["dog"])])


def test_classes_without_boxes_are_no_annotations_that_are_taken_by_content(shardmill: Shardmill) -> None:
    for name in ("cat", "dog"):
        picture(f"pets/{name}/{name}.jpg")
    coco("pets/train_mini.json", ["cat/cat.jpg", "dog/dog.jpg"])
    text = Path("pets/train_mini.json").read_text()
    Path("pets/train_mini.json").write_text(text.replace('"bbox"', '"date"'))
    done = shardmill("convert", "pets", "-o", "out")
    assert done.code == 0, done.err
    assert open_dataset("out").labels == {"image/class/label": ("cat", "dog")}


def test_a_file_beside_boxes_of_another_kind_is_named_and_a_split_without_its_pictures_too(
    shardmill: Shardmill,
) -> None:
    picture("pets/images/0.jpg")
    yolo("pets/labels/0.txt")
    coco("pets/all.json", ["0.jpg"])
    done = shardmill("convert", "pets", "-o", "out")
    assert done.code == 0, done.err
    assert "pets/all.json: not read, as its pictures have other annotations" in done.out
    picture("more/val/0.jpg")
    coco("more/annotations/instances_val.json", ["0.jpg"])
    coco("more/annotations/instances_train.json", ["9.jpg"])
    done = shardmill("convert", "more", "-o", "two")
    assert done.code == 0, done.err
    assert "more/annotations/instances_train.json: not read, as the folder of its pictures is not found" in done.out


def test_classes_of_whole_pictures_beside_boxes_are_said_not_to_be_read(shardmill: Shardmill) -> None:
    picture("pets/images/train/0.jpg")
    coco("pets/annotations/instances_train.json", ["0.jpg"])
    found = json.loads(Path("pets/annotations/instances_train.json").read_text())
    found["annotations"] = [{"id": 1, "image_id": 0, "category_id": 1}]  # as Datumaro writes them
    Path("pets/annotations/labels_train.json").write_text(json.dumps(found))
    screen = shardmill("convert", "pets", "-o", "out")
    assert "pets/annotations/labels_train.json is not read: classes of whole pictures, without boxes" in screen.out
    assert boxes("out", "train") == [(BOX, ["cat"])]


def test_captions_may_have_a_category_and_are_read_by_the_command_beside_boxes(shardmill: Shardmill) -> None:
    picture("pets/images/train/0.jpg")
    coco("pets/annotations/instances_train.json", ["0.jpg"])
    images = [{"id": 0, "file_name": "0.jpg", "width": 40, "height": 20}]
    said = [{"id": 1, "image_id": 0, "category_id": 0, "caption": "a cat"}]  # as Datumaro writes them
    Path("pets/annotations/captions_train.json").write_text(
        json.dumps({"images": images, "annotations": said, "categories": []})
    )
    screen = shardmill("convert", "pets", "-o", "out")
    assert screen.code == 0, screen.err
    line = next(one for one in screen.out.splitlines() if "to read it too: " in one)
    command = shlex.split(line.partition("to read it too: shardmill ")[2])
    done = shardmill(*command)
    assert done.code == 0, done.err
    assert boxes("out-all", "train") == [(BOX, ["cat"])]
    assert open_dataset("out-all").to_arrow("train")["image/caption"].to_pylist() == [["a cat"]]


def test_annotations_of_roboflow_that_are_left_out_are_no_hidden_files(shardmill: Shardmill) -> None:
    picture("pets/train/0.jpg")
    coco("pets/train/_annotations.coco.json", ["0.jpg"])
    done = shardmill("convert", "pets", "-o", "out", "--set", "input.detect=none")
    assert "Left out: 1 .json" in done.out, done.err
