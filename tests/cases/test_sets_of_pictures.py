"""Sets of pictures as they are published: what the screens propose reads all that they hold, once."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from shardmill.transforms.dataset.reading.open_dataset import open_dataset

from ..command_line import Screen, Shardmill


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def draw(*names: str) -> None:
    for number, name in enumerate(names):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (32, 24), number).save(name)


def write(name: str, text: str) -> None:
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    Path(name).write_text(text)


def follow(shardmill: Shardmill, screen: str, after: str) -> Screen:
    """Run the first command that follows some words on a screen."""
    command = re.split(r"; | && |\n", screen.split(after, 1)[1].partition("shardmill ")[2])[0]
    return shardmill(*shlex.split(command))


def counts_of(path: str) -> dict[str, int]:
    return {name: len(open_dataset(path)[name]) for name in open_dataset(path).splits}


HEADER = "filename,width,height,class,xmin,ymin,xmax,ymax\n"
ROWS = [f"r-{n}.jpg,32,24,raccoon,1,2,{n + 9},20\n" for n in range(6)]
VOC = (
    "<annotation><filename>r-{}.jpg</filename><object><name>raccoon</name><bndbox><xmin>1</xmin><ymin>2</ymin>"
    "<xmax>9</xmax><ymax>20</ymax></bndbox></object></annotation>"
)
BOXES = "with its boxes"


@pytest.fixture
def raccoons() -> None:
    draw(*(f"d/images/r-{n}.jpg" for n in range(6)))
    for n in range(6):
        write(f"d/annotations/r-{n}.xml", VOC.format(n))
    write("d/data/all_labels.csv", HEADER + "".join(ROWS))
    write("d/data/train_labels.csv", HEADER + "".join(ROWS[:4]))
    write("d/data/test_labels.csv", HEADER + "".join(ROWS[4:]))
    write("d/training/object-detection.pbtxt", "item { id: 1 name: 'raccoon' }\n")


def test_of_tables_of_boxes_of_which_one_is_the_sum_those_of_splits_are_read(
    raccoons: None, shardmill: Shardmill
) -> None:
    screen = shardmill("convert", "d", "-o", "out")
    assert (screen.code, "d/data/all_labels.csv holds rows of these again" in screen.err) == (2, True), screen.err
    done = follow(shardmill, screen.err, BOXES)
    assert (done.code, counts_of("out")) == (0, {"test": 2, "train": 4}), done.err


@pytest.mark.parametrize("parts", [["part_1", "part_2"], ["train", "copy"], ["train"]])
def test_of_tables_of_boxes_that_state_no_splits_of_all_rows_the_sum_is_read(
    parts: list[str], raccoons: None, shardmill: Shardmill
) -> None:
    for name in ("train", "test"):
        Path(f"d/data/{name}_labels.csv").unlink()
    for at, name in enumerate(parts):
        write(f"d/data/{name}.csv", HEADER + "".join(ROWS[at * 3 : at * 3 + 3]))
    done = follow(shardmill, shardmill("convert", "d", "-o", "out").err, BOXES)
    assert (done.code, counts_of("out")) == (0, {"train": 6}), done.err


def test_tables_of_boxes_with_rows_of_their_own_are_all_read(raccoons: None, shardmill: Shardmill) -> None:
    Path("d/data/all_labels.csv").unlink()
    screen = shardmill("convert", "d", "-o", "out")
    assert "again" not in screen.err
    done = follow(shardmill, screen.err, BOXES)
    assert (done.code, counts_of("out")) == (0, {"test": 2, "train": 4}), done.err


def test_a_folder_of_other_files_is_no_split_of_rows_that_name_pictures(raccoons: None, shardmill: Shardmill) -> None:
    done = shardmill("convert", "d", "-o", "out", "--set", "input.annotations.boxes=d/data/all_labels.csv")
    assert (done.code, counts_of("out")) == (0, {"train": 6}), done.err
    draw("d/val/7.jpg")
    again = shardmill("convert", "d", "-o", "more", "--set", "input.annotations.boxes=d/data/all_labels.csv")
    assert (again.code, "in no folder of a split (val)" in again.err) == (4, True), again.err


def test_tables_beside_annotations_are_named_with_the_command_that_reads_their_splits(
    raccoons: None, shardmill: Shardmill
) -> None:
    write("d/classes_of.csv", "filename,mood\n" + "".join(f"r-{n}.jpg,calm\n" for n in range(6)))
    screen = shardmill("convert", "d", "-o", "out", "--set", "input.format=images")
    assert (screen.code, counts_of("out")) == (0, {"train": 6}), screen.err
    detected = next(line for line in screen.out.splitlines() if line.startswith("Detected: Pascal VOC"))
    done = follow(shardmill, detected, BOXES)
    assert (done.code, counts_of("out-tables")) == (0, {"test": 2, "train": 4}), done.err
    assert 'd/classes_of.csv names pictures in its column "filename", and is not read' in detected
    done = follow(shardmill, detected, "to read its rows")
    assert (done.code, "mood" in open_dataset("out-tables-classes_of").to_arrow("train").column_names) == (0, True)


def _datumaro(turned: float = 0) -> dict[str, Any]:
    """Return annotations as CVAT exports them for Datumaro, with boxes of two classes and a polygon."""
    box = {"id": 0, "type": "bbox", "attributes": {"rotation": turned}, "group": 0, "label_id": 1, "z_order": 0}
    outline = {**box, "type": "polygon", "label_id": 0, "points": [4.0, 3.0, 12.0, 3.0, 8.0, 15.0]}
    items = [
        {"id": f"i_{n}", "annotations": some, "point_cloud": {"path": ""}, "image": {"path": f"i_{n}.jpg"}}
        for n, some in enumerate([[], [{**box, "bbox": [2.0, 4.0, 8.0, 16.0]}, outline], [outline]])
    ]
    names = [{"name": one, "parent": "", "attributes": []} for one in ("car", "person")]
    return {"info": {}, "categories": {"label": {"labels": names, "attributes": []}}, "items": items}


@pytest.mark.parametrize(("turned", "sides"), [(0, [2, 4, 10, 20]), (90.0, [0, 8, 14, 16])])
def test_annotations_of_datumaro_without_a_version_keep_their_boxes_and_the_names_of_classes(
    turned: float, sides: list[float], shardmill: Shardmill
) -> None:
    draw(*(f"d/images/default/i_{n}.jpg" for n in range(3)))
    write("d/annotations/default.json", json.dumps(_datumaro(turned)))
    screen = shardmill("convert", "d", "-o", "out")
    assert (screen.code, "annotations of Datumaro" in screen.err) == (2, True), screen.err
    written = re.split(r" && |; the pictures alone", screen.err.split("in Python: python ", 1)[1])
    subprocess.run([sys.executable, *shlex.split(written[0])], check=True)
    done = shardmill(*shlex.split(written[1])[1:])
    assert done.code == 0, done.err
    rows = {row["image/filename"]: row for row in open_dataset("out").to_arrow("train").to_pylist()}
    names = {name: row["image/object/class/text"] or [] for name, row in rows.items()}
    assert {Path(name).stem: some for name, some in names.items()} == {
        "i_0": [],
        "i_1": ["person", "car"],
        "i_2": ["car"],
    }
    row = next(row for name, row in rows.items() if "i_1" in name)
    found = [
        row[f"image/object/bbox/{side}"][0] * size
        for side, size in zip(("xmin", "ymin", "xmax", "ymax"), (32, 24) * 2, strict=True)
    ]
    assert found == pytest.approx(sides, abs=1e-4)


@pytest.mark.parametrize("kind", ["bbox", "label"])
def test_the_pictures_alone_of_a_set_of_datumaro_are_read_beside_a_line_of_their_annotations(
    kind: str, shardmill: Shardmill
) -> None:
    draw(*(f"d/images/{split}/i_{n}.jpg" for split in ("train", "val") for n in range(3)))
    for split in ("train", "val"):
        write(f"d/annotations/{split}.json", json.dumps(_datumaro()).replace("bbox", kind).replace("polygon", kind))
    screen = shardmill("convert", "d", "-o", "out")
    done = follow(shardmill, screen.err, "the pictures alone")
    assert (done.code, counts_of("out")) == (0, {"train": 6}), done.err
    assert "d/annotations" in done.out.partition("Detected: ")[2]
    assert "image/class/label" not in open_dataset("out").to_arrow("train").column_names


def test_a_command_for_a_table_says_which_pictures_beside_it_leaves_out(shardmill: Shardmill) -> None:
    draw("d/train/a.png", "d/train/b.png", "d/test/c.png")
    write("d/train_labels.csv", "id,label\na,0\nb,1\n")
    screen = shardmill("convert", "d", "-o", "out")
    assert "to read its rows (without the pictures in d/test): shardmill" in screen.err
    done = follow(shardmill, screen.err, "to read its rows")
    assert (done.code, counts_of("out")) == (0, {"train": 2}), done.err


def test_a_command_for_tables_of_all_pictures_leaves_none_out(shardmill: Shardmill) -> None:
    draw("d/train/a.png", "d/train/b.png", "d/test/c.png")
    write("d/train_labels.csv", "id,label\na,0\nb,1\n")
    write("d/test_labels.csv", "id,label\nc,0\n")
    assert "without the pictures" not in shardmill("convert", "d", "-o", "out").err


def test_a_command_for_pictures_beside_masks_says_which_folders_it_leaves_out(shardmill: Shardmill) -> None:
    draw(*(f"d/train/{part}/{n}.png" for part in ("image", "label") for n in range(3)))
    draw("d/test/0.png", "d/test/0_predict.png")
    screen = shardmill("convert", "d", "-o", "out")
    assert "to read the pictures alone (without those in d/test): " in screen.err
    assert follow(shardmill, screen.err, "the pictures alone").code == 0
    assert counts_of("out") == {"train": 3}


def test_lists_of_one_name_that_is_of_texts_are_read_as_texts_by_one_command(shardmill: Shardmill) -> None:
    words = ["Cafe", "[06]", '"Open', "Cafe", "NULL", "1,25"]
    for split, count in (("train", 6), ("val", 3)):
        draw(*(f"d/{split}/w_{n}.png" for n in range(count)))
        write(f"d/{split}/gt.txt", "".join(f"w_{n}.png\t{word}\n" for n, word in enumerate(words[:count])))
    screen = shardmill("convert", "d", "-o", "out", "--set", "input.format=images", "--set", "input.layout=split")
    done = follow(shardmill, screen.out, "to read the lines")
    assert (done.code, counts_of("out")) == (0, {"train": 6, "val": 3}), done.err
    rows = open_dataset("out").to_arrow("train").to_pylist()
    assert [row["text"] for row in rows] == words


def test_lists_of_classes_that_hardly_come_again_in_one_split_are_of_classes(shardmill: Shardmill) -> None:
    for split, count in (("train", 60), ("val", 20)):
        draw(*(f"d/{split}/{n}.png" for n in range(count)))
        write(f"d/{split}/labels.txt", "".join(f"{n}.png\tc{n % 20}\n" for n in range(count)))
    screen = shardmill("convert", "d", "-o", "out", "--set", "input.format=images", "--set", "input.layout=split")
    assert "d/train/labels.txt" in screen.out
    assert '["image", "class"]' in screen.out
