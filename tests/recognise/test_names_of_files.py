"""Classes in the names of files, folders and shapes are never lost without a word: what is said keeps them."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from pathlib import Path

import pytest
from PIL import Image
from shardmill.pipelines import open_dataset

from ..command_line import Screen, Shardmill


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def pictures(*names: str) -> None:
    for number, name in enumerate(names):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (8, 8), (number, 0, 0)).save(name)


def follow(screen: Screen, shardmill: Shardmill) -> Screen:
    """Run the line of Python that a screen proposes, and then its command."""
    found = re.search(r"in Python: (.*); then: shardmill (.*)", screen.out)
    assert (screen.code, found is not None) == (0, True), screen
    assert found
    exec(found[1], {})
    return shardmill(*shlex.split(found[2]))


@pytest.mark.parametrize("folders", [[""], ["train/", "test/"]], ids=["one folder", "splits"])
def test_classes_in_the_names_of_pictures_are_read_by_the_lines_on_the_screen(
    folders: list[str], shardmill: Shardmill
) -> None:
    pictures(*(f"my pics/{folder}{name}.{n}.jpg" for folder in folders for name in ("cat", "dog") for n in range(3)))
    done = follow(shardmill("convert", "my pics", "-o", "out"), shardmill)
    assert done.code == 0, done.err
    dataset = open_dataset("out")
    assert dataset.manifest.labels == {"class": ("cat", "dog")}
    for folder in folders:
        rows = list(dataset[folder.rstrip("/") or "train"])
        assert [row["class"] for row in rows] == ["cat"] * 3 + ["dog"] * 3
        assert [row["image/filename"].rpartition("/")[2][:3] for row in rows] == ["cat"] * 3 + ["dog"] * 3


@pytest.mark.parametrize("form", ["{0}.{1}", "{1}_{0}"])
def test_classes_in_the_names_of_one_split_are_read_beside_numbers_of_another(form: str, shardmill: Shardmill) -> None:
    kinds = ("cat", "great_dane") if form[1] == "1" else ("cat", "dane")
    pictures(*(f"pets/train/{form.format(kind, n)}.jpg" for kind in kinds for n in range(3)))
    pictures(*(f"pets/test/{n}.jpg" for n in range(2)))
    done = follow(shardmill("convert", "pets", "-o", "out"), shardmill)
    assert done.code == 0, done.err
    dataset = open_dataset("out")
    assert dataset.manifest.labels == {"class": kinds}
    of_names = {row["image/filename"].rpartition("/")[2]: row["class"] for row in dataset["train"]}
    assert of_names == {f"{form.format(kind, n)}.jpg": kind for kind in kinds for n in range(3)}
    assert [row["class"] for row in dataset["test"]] == [None, None]


@pytest.mark.parametrize("names", [["img.0", "img.1", "img.2", "img.3"], ["a1", "b2", "c3", "d4"], ["cat", "dog"]])
def test_names_of_one_kind_or_all_different_are_no_classes(names: list[str], shardmill: Shardmill) -> None:
    pictures(*(f"d/{name}.png" for name in names))
    assert "file names" not in shardmill("convert", "d", "-o", "out").out


def test_pictures_in_folders_of_classes_have_no_classes_in_their_names(shardmill: Shardmill) -> None:
    pictures(*(f"d/{name}/{name}{n}.png" for name in ("cat", "dog") for n in range(2)))
    assert "file names" not in shardmill("convert", "d", "-o", "out").out


def test_the_kinds_of_pictures_of_cyclegan_are_datasets_by_the_commands_on_the_screen(shardmill: Shardmill) -> None:
    pictures(*(f"d/{split}{kind}/{n}.png" for split in ("train", "test") for kind in "AB" for n in range(2)))
    screen = shardmill("convert", "d", "-o", "out")
    commands = re.findall(r"^  [AB]: +shardmill (.*)$", screen.err, re.MULTILINE)
    assert (screen.code, len(commands)) == (2, 2), screen.err
    for command, kind in zip(commands, "AB", strict=True):
        assert shardmill(*shlex.split(command)).code == 0
        dataset = open_dataset(f"out-{kind}")
        assert {split: sum(1 for _ in dataset[split]) for split in dataset.manifest.splits} == {"test": 2, "train": 2}


def test_shapes_of_labelme_are_read_as_boxes_by_the_lines_on_the_screen(shardmill: Shardmill) -> None:
    pictures("d/1.jpg", "d/2.png")
    shapes = [
        {"label": "cat", "points": [[4, 5], [1, 1]], "shape_type": "rectangle"},
        {"label": "a, dog", "points": [[0, 0], [2, 0], [1, 6]], "shape_type": "polygon"},
        {"label": "point", "points": [[0, 0]], "shape_type": "point"},
    ]
    for number in (1, 2):
        document = {
            "version": "5.4",
            "flags": {},
            "shapes": shapes[: 3 * (2 - number) + 1],
            "imagePath": {1: "1.jpg", 2: r"..\d\2.png"}[number],
        }
        Path(f"d/{number}.json").write_text(json.dumps(document))
    done = follow(shardmill("convert", "d", "-o", "out"), shardmill)
    assert done.code == 0, done.err
    first, second = open_dataset("out")["train"]
    assert list(first["image/object/class/text"]) == ["cat", "a, dog"]
    assert list(first["image/object/bbox/xmin"]) == [0.125, 0.0]
    assert list(first["image/object/bbox/ymax"]) == [0.625, 0.75]
    assert list(second["image/object/class/text"]) == ["cat"]


def test_names_of_tables_become_a_column_by_the_commands_on_the_screen(shardmill: Shardmill) -> None:
    Path("d").mkdir()
    for number, name in enumerate(("AAPL", "MSFT")):
        Path(f"d/{name}.csv").write_text(f"day,price\n1,{number}\n")
    found = re.search(r"AAPL, MSFT; to get them .*, such as: (.*)", shardmill("convert", "d", "-o", "out").out)
    assert found
    for command in [*found[1].split(" && "), *found[1].replace("AAPL", "MSFT").split(" && ")]:
        assert subprocess.run(shlex.split(command), check=False).returncode == 0
    assert shardmill("convert", "d", "-o", "out", "--overwrite").code == 0
    rows = [{key: row[key] for key in ("name", "price")} for row in open_dataset("out")["train"]]
    assert rows == [{"name": "AAPL", "price": 0}, {"name": "MSFT", "price": 1}]


@pytest.mark.parametrize("names", [["a", "b"], ["part", "more"], ["part-0", "part-1"], ["train", "sales"]])
def test_names_that_say_nothing_are_not_mentioned(names: list[str], shardmill: Shardmill) -> None:
    Path("d").mkdir()
    for name in names:
        Path(f"d/{name}.csv").write_text("day,price\n1,2\n")
    assert "file names" not in shardmill("convert", "d", "-o", "out").out


def test_sounds_get_the_splits_of_lists_beside_them_by_the_line_of_python(shardmill: Shardmill) -> None:
    for folder, number in [(one, n) for one in ("yes", "no", "_background_noise_") for n in range(3)]:
        path = Path("d", folder, f"{number} x.wav")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(f"{folder}{number}".encode())
    Path("d/testing_list.txt").write_text("yes/0 x.wav\nno/0 x.wav\n")
    Path("d/validation_list.txt").write_text("no/1 x.wav\n")
    Path("d/zz.txt").write_text("README.md\n")  # the last list names no sound
    screen = shardmill("convert", "d", "-o", "out")
    assert "d/testing_list.txt, d/validation_list.txt: name the sounds of splits, and are no texts" in screen.err
    exec(screen.err.partition("in Python: ")[2], {})
    dataset = open_dataset("out")
    found = {split: sorted(row["audio"] for row in dataset[split]) for split in dataset.manifest.splits}
    assert found == {"train": [b"no2", b"yes1", b"yes2"], "testing": [b"no0", b"yes0"], "validation": [b"no1"]}
    assert {(row["folder"], row["audio"]) for row in dataset["testing"]} == {("yes", b"yes0"), ("no", b"no0")}


@pytest.mark.parametrize("table", ["meta/esc50.csv", "esc50.csv"])
def test_a_column_that_names_files_of_a_folder_beside_its_table_is_read_by_the_options_on_the_screen(
    table: str, shardmill: Shardmill
) -> None:
    for number in range(3):
        path = Path("d", "audio", f"{number}.wav")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bytes([number]))
    Path("d", table).parent.mkdir(exist_ok=True)
    Path("d", table).write_text("filename,kind\n" + "".join(f"{n}.wav,k{n}\n" for n in (2, 0, 1)))
    shown = shardmill("convert", "d", "-o", "out").out
    found = re.search(r'column "filename" names files of d/audio \(2.wav\), .* to read them: (.*)', shown)
    assert found is not None, shown
    done = shardmill("convert", "d", "-o", "out", "--overwrite", *shlex.split(found[1]))
    assert done.code == 0, done.err
    rows = [{key: row[key] for key in row} for row in open_dataset("out")["train"]]
    assert [[one for one in row.values() if isinstance(one, bytes)] for row in rows] == [[b"\2"], [b"\0"], [b"\1"]]
    assert [row["kind"] for row in rows] == ["k2", "k0", "k1"]
