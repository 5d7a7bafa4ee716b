"""Names of classes: folders named by numbers, and the files of names that tools write beside YOLO's labels."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import pytest
from PIL import Image
from shardmill.transforms.dataset.reading.open_dataset import open_dataset

from ..command_line import Shardmill

ORDER = "folders are named by numbers, in the order of text: {}; to order numbers: --set input.labels=numeric"


def png() -> bytes:
    memory = io.BytesIO()
    Image.new("RGB", (8, 6)).save(memory, "PNG")
    return memory.getvalue()


def folders(*names: str) -> list[str]:
    for name in names:
        Path("pics", name).mkdir(parents=True)
        Path("pics", name, "1.png").write_bytes(png())
    return ["convert", "pics", "-o"]


def archive(*names: str) -> list[str]:
    with zipfile.ZipFile("a.zip", "w") as file:
        for name in names:
            file.writestr(f"{name}/{name}.png", png())
    return ["convert", "a.zip", "-o"]


def labels_of(path: str) -> dict[str, int]:
    dataset = open_dataset(path)
    rows = [row for split in dataset.splits for row in dataset[split]]
    assert all(row["image/class/label"] == row["image/class/text"] for row in rows)  # a reader gives the name
    return {name: number for number, name in enumerate(dataset.manifest.labels["image/class/label"])}


@pytest.mark.parametrize("given", [folders, archive])
def test_folders_named_by_numbers_keep_the_order_of_names_until_numeric_is_said(
    shardmill: Shardmill, given: object
) -> None:
    assert callable(given)
    args = given(*map(str, range(12)))
    found = shardmill(*args, "out")
    assert f"Detected: {ORDER}\n".format('"10" is label 2') in found.out
    assert labels_of("out")["10"] == 2
    assert f"Detected: {ORDER}\n".format('"10" is label 2') in shardmill(*args, "out2", "--dry-run").out
    followed = shardmill(*args, "right", "--set", "input.labels=numeric")
    assert (followed.code, "is label" in followed.out) == (0, False)
    assert labels_of("right") == {str(number): number for number in range(12)}


def test_folders_with_splits_are_told_and_ordered_too(shardmill: Shardmill) -> None:
    args = folders("train/9", "train/10", "val/9")
    assert ORDER.format('"10" is label 0') in shardmill(*args, "out").out
    assert shardmill(*args, "right", "--set", "input.labels=numeric").code == 0
    assert labels_of("right") == {"9": 0, "10": 1}


@pytest.mark.parametrize("names", [("00", "01", "02"), ("cat", "dog"), ("0", "1", "2"), ("n" + "1" * 8, "n" + "2" * 8)])
def test_nothing_is_said_of_names_whose_order_is_that_of_their_numbers(
    shardmill: Shardmill, names: tuple[str, ...]
) -> None:
    assert "is label" not in shardmill(*folders(*names), "out").out


def test_an_append_gives_new_numbers_after_those_of_the_dataset(shardmill: Shardmill) -> None:
    shardmill(*folders("9", "10"), "out", "--set", "input.labels=numeric")
    for name in ("11", "8"):
        Path("more", name).mkdir(parents=True)
        Path("more", name, "2.png").write_bytes(png())
    found = shardmill("append", "more", "-o", "out")
    assert (found.code, "is label" in found.out) == (0, False)
    assert {name: label for name, label in labels_of("out").items() if label < 2} == {"9": 0, "10": 1}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("t.jsonl", "".join(f'{{"kind": "{number}"}}\n' for number in range(12))),
        ("t.csv", "kind\n" + "".join(f'"{number}"\n' for number in range(12))),
    ],
)
def test_a_column_of_numbers_as_text_is_told_and_ordered(shardmill: Shardmill, name: str, text: str) -> None:
    Path(name).write_text(text)
    args = ["convert", name, "--set", "schema.columns.kind.type=string", "-o"]
    found = shardmill(*args, "out", "--set", "schema.columns.kind.label=true")
    said = 'classes are named by numbers, in the order of text: "10" is label 2; to order numbers: --set '
    assert f"{said}schema.columns.kind.label=numeric\n" in found.out
    found = shardmill(*args, "right", "--set", "schema.columns.kind.label=numeric")
    assert (found.code, "is label" in found.out) == (0, False)
    assert open_dataset("right").manifest.labels == {"kind": tuple(map(str, range(12)))}
    Path("more.jsonl").write_text('{"kind": "20"}\n{"kind": "13"}\n')
    assert shardmill("append", "more.jsonl", "-o", "right").code == 0  # as the dataset was made
    assert open_dataset("right").manifest.labels["kind"][-2:] == ("13", "20")


def test_a_class_that_is_no_number_is_refused_where_numbers_are_said(shardmill: Shardmill) -> None:
    Path("t.csv").write_text("kind\n1\ntwo\n")
    screen = shardmill("convert", "t.csv", "-o", "out", "--set", "schema.columns.kind.label=numeric")
    said = 'schema.columns.kind.label: is numeric, and the class "two" is no whole number; leave it out'
    assert (screen.code, said in screen.err) == (2, True)


def voc(*names: str) -> list[str]:
    Path("pics").mkdir()
    Path("xml").mkdir()
    for name in names:
        Path(f"pics/{name}.png").write_bytes(png())
        box = "<bndbox><xmin>1</xmin><ymin>1</ymin><xmax>3</xmax><ymax>3</ymax></bndbox>"
        text = f"<annotation><filename>{name}.png</filename><object><name>{name}</name>{box}</object></annotation>"
        Path(f"xml/{name}.xml").write_text(text)
    return ["convert", "pics", "--set", "input.annotations.voc=xml", "-o"]


def test_classes_of_voc_that_are_numbers_are_told_and_ordered(shardmill: Shardmill) -> None:
    args = voc(*map(str, range(12)))
    found = shardmill(*args, "out")
    said = 'classes are named by numbers, in the order of text: "10" is label 2; to order numbers: --set '
    assert f"Detected: {said}input.annotations.classes=numeric\n" in found.out
    found = shardmill(*args, "right", "--set", "input.annotations.classes=numeric")
    assert (found.code, "is label" in found.out) == (0, False), found.err
    assert open_dataset("right").manifest.labels == {"image/object/class/label": tuple(map(str, range(12)))}


def test_numeric_classes_of_yolo_are_refused_as_its_files_have_numbers(shardmill: Shardmill) -> None:
    screen = shardmill(*yolo(), "--set", "input.annotations.classes=numeric")
    assert (screen.code, "classes: numeric goes with voc and boxes; files of yolo have numbers" in screen.err) == (
        2,
        True,
    )


def yolo(lines: str = "1 0.5 0.5 0.2 0.2\n") -> list[str]:
    Path("pics").mkdir()
    Path("labels").mkdir()
    Path("pics/1.png").write_bytes(png())
    Path("labels/1.txt").write_text(lines, encoding="utf-8")
    return ["convert", "pics", "--set", "input.annotations.yolo=labels", "-o", "out"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("classes.txt", "\ufeffno\r\n12:30\r\n\r\n"),
        ("classes.txt", "no\n12:30"),
        ("obj.names", "no\n12:30\n\n\n"),
        ("data.yaml", "\ufeffnames: [no, 12:30]\n"),
        ("data.yaml", "names:\n  1: 12:30\n  0: no\n"),
    ],
)
def test_names_are_as_they_are_written(shardmill: Shardmill, name: str, text: str) -> None:
    args = yolo()
    Path("labels", name).write_bytes(text.encode())
    assert shardmill(*args).code == 0
    assert open_dataset("out").manifest.labels == {"image/object/class/label": ("no", "12:30")}


def test_a_line_end_of_unicode_is_a_part_of_a_name(shardmill: Shardmill) -> None:
    args = yolo()
    Path("labels/classes.txt").write_text("a\u2028b\nc\n", encoding="utf-8")
    assert shardmill(*args).code == 0
    assert open_dataset("out").manifest.labels == {"image/object/class/label": ("a\u2028b", "c")}


@pytest.mark.parametrize(
    ("name", "data", "why"),
    [
        ("classes.txt", "k\u00e4se\n".encode("latin-1"), "byte 1 is not UTF-8; save it as UTF-8"),
        ("classes.txt", "cat\n".encode("utf-16"), "byte 0 is not UTF-8; save it as UTF-8"),
        ("data.yaml", b"names: [a, [b], c]\n", "names: a name is a list or a mapping; put it in quotes"),
        ("data.yaml", b"names: {0: a, 1: b, 1: c}\n", '"1" appears twice; leave one out'),
        ("data.yaml", b"names: [a]\nnames: [b]\n", '"names" appears twice; leave one out'),
        ("data.yaml", b"names: ../names.txt\n", 'names: "../names.txt" is no list of names; fix it'),
    ],
)
def test_names_that_would_get_other_numbers_are_refused(shardmill: Shardmill, name: str, data: bytes, why: str) -> None:
    args = yolo()
    Path("labels", name).write_bytes(data)
    found = shardmill(*args)
    assert (found.code != 0, f"labels/{name}" in found.err, why in found.err) == (True,) * 3


def test_labels_with_a_mark_and_classes_with_a_point_are_read(shardmill: Shardmill) -> None:
    args = yolo("\ufeff1.0 0.5 0.5 0.2 0.2\n0 0.5 0.5 0.1 0.1\n")
    Path("labels/classes.txt").write_text("cat\ndog\n")
    assert shardmill(*args).code == 0
    (row,) = open_dataset("out")["train"]
    assert row["image/object/class/label"] == ["dog", "cat"]
