"""Files that may be annotations of pictures and are not read: the screen has the command that reads them."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from PIL import Image
from shardmill.transforms.dataset.reading.open_dataset import open_dataset

from ..command_line import Shardmill

VOC = (
    "<annotation><filename>{}.jpg</filename><object><name>cat</name><bndbox>"
    "<xmin>1</xmin><ymin>1</ymin><xmax>4</xmax><ymax>5</ymax></bndbox></object></annotation>"
)
COCO = {
    "images": [{"id": number, "file_name": f"{number}.jpg"} for number in range(2)],
    "annotations": [{"image_id": number, "category_id": 0, "bbox": [1, 1, 3, 4]} for number in range(2)],
    "categories": [{"id": 0, "name": "cat"}],
}


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(path: str, text: str = "") -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    if path.endswith(".jpg"):
        Image.new("RGB", (8, 6)).save(path)
    else:
        Path(path).write_text(text)


def folder(pictures: str, files: str) -> None:
    """Write two pictures and their files of annotations."""
    for number in range(2):
        write(f"{pictures}/{number}.jpg")
        if files.endswith(".json"):
            write(files, json.dumps(COCO))
        else:
            text = VOC.format(number) if files.endswith(".xml") else "0 0.5 0.5 0.2 0.4\n"
            write(files.format(number), text)


def test_pictures_whose_folder_is_unclear_are_left_to_the_user(shardmill: Shardmill) -> None:
    folder("pets/a/one", "pets/annotations/instances.json")
    folder("pets/a/two", "pets/annotations/instances.json")
    screen = shardmill("convert", "pets", "-o", "out", "--set", "input.layout=flat", "--dry-run")
    said = " ".join(screen.out.split())
    assert "shardmill convert PICTURES -o out --set input.annotations.coco=pets/annotations/instances.json" in said
    assert "(PICTURES: the folder of its pictures)" in said


@pytest.mark.parametrize(
    "name", ["pets/other.xml", "pets/0.txt", "pets/package.json", "pets/more/0.xml", "pets/labels/classes.txt"]
)
def test_files_of_other_names_and_places_say_nothing(name: str, shardmill: Shardmill) -> None:
    for number in range(2):
        write(f"pets/{number}.jpg")
    write(name)
    assert "annotations" not in shardmill("convert", "pets", "-o", "out", "--dry-run").out


def test_files_that_are_ignored_say_nothing(shardmill: Shardmill) -> None:
    folder("pets", "pets/{}.xml")
    option = 'input.ignore=["*.xml"]'
    assert "annotations" not in shardmill("convert", "pets", "-o", "out", "--set", option, "--dry-run").out


def test_the_command_is_typed_where_the_user_is_and_not_where_the_config_is(shardmill: Shardmill) -> None:
    folder("there/pets", "there/pets/{}.xml")
    write("there/c.yaml", "version: 1\ninput: {paths: [pets], layout: flat}\noutput: {path: out}\n")
    said = " ".join(shardmill("convert", "there/c.yaml", "--dry-run").out.split())
    command = shlex.split(" ".join(said.partition("which are not read; to read them: shardmill ")[2].split()[:6]))
    assert command == ["convert", "there/pets", "-o", "there/out", "--set", "input.annotations.voc=there/pets"]
    assert shardmill(*command).code == 0
    rows = open_dataset("there/out").to_arrow("train").to_pylist()
    assert [len(row["image/object/bbox/xmin"]) for row in rows] == [1, 1]


@pytest.mark.parametrize("name", ["_classes.csv", "_annotations.csv"])
def test_tables_of_roboflow_are_a_warning_with_the_command_that_reads_their_rows(
    name: str, shardmill: Shardmill
) -> None:
    for split in ("train", "valid"):
        write(f"pets/{split}/1.jpg")
        write(f"pets/{split}/{name}", "filename,cat\n1.jpg,7\n")
    screen = shardmill("convert", "pets", "-o", "out")
    warning = next(line for line in screen.out.splitlines() if name in line)
    assert warning.startswith(f"Warning: pets/train/{name} and pets/valid/{name} name pictures")
    command = shlex.split(warning.rpartition("to read their rows: shardmill ")[2])
    done = shardmill(*command, "--overwrite")
    assert done.code == 0, done.err
    assert [row["cat"] for split in ("train", "valid") for row in open_dataset("out")[split]] == [7, 7]
