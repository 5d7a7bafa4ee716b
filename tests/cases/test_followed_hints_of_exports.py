"""What exports and programs for readers propose is typed as printed, and makes what the message says."""

from __future__ import annotations

import ast
import re
import shlex
from pathlib import Path

import pytest
from PIL import Image
from shardmill.pipelines import convert
from shardmill.transforms.dataset.reading.open_dataset import open_dataset

from ..command_line import Shardmill
from .test_followed_hints_of_text import OPTIONS
from .test_followed_hints_of_upkeep import command_in


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def options_in(screen: str, before: str) -> list[str]:
    options = OPTIONS.match(screen.partition(before)[2])
    assert options, screen
    return shlex.split(options[0])


def pictures(*names: str) -> None:
    for name in names:
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (8, 6)).save(name)


@pytest.mark.parametrize("classes", [2, 51])
def test_classes_of_exported_pictures_have_their_numbers_by_the_options_of_export(
    shardmill: Shardmill, classes: int
) -> None:
    names = [f"c{number}" for number in reversed(range(classes))]
    pictures("in/a.jpg", "in/b.jpg")
    Path("in/metadata.csv").write_text("file_name,k,s\na.jpg,c0,1\nb.jpg,,2\n")
    label = ["--set", f"schema.columns.k.label=[{', '.join(names)}]", "--set", "schema.columns.k.null=absent"]
    assert shardmill("convert", "in", "-o", "out", *label).code == 0
    screen = shardmill("export", "out", "-o", "pics").err
    options = options_in(screen, "they are classes again: ")
    listed = [word.replace("[...]", f"[{', '.join(names)}]") for word in options]
    assert shardmill("convert", "pics", "-o", "again", *listed).code == 0
    assert open_dataset("again").labels["k"] == open_dataset("out").labels["k"] == tuple(names)
    assert [row["k"] for row in open_dataset("again")["train"]] == ["c0", None]


def test_a_label_map_is_made_after_the_option_of_export(shardmill: Shardmill) -> None:
    Path("a.csv").write_text("n,k\n1,cat\n2,dog\n")
    assert shardmill("convert", "a.csv", "-o", "out").code == 0
    refused = shardmill("export", "out", "-o", "label_map.pbtxt").err
    label = [word.replace("NAME", "k") for word in options_in(refused, "where it is converted: ")]
    assert shardmill("convert", "a.csv", "-o", "out", "--overwrite", *label).code == 0
    assert shardmill("export", "out", "-o", "label_map.pbtxt").code == 0
    assert Path("label_map.pbtxt").read_text().count("name:") == 2


@pytest.mark.parametrize("kind", ["images", "csv"])
def test_a_label_map_begins_with_1_after_the_option_of_export(shardmill: Shardmill, kind: str) -> None:
    given = {
        "images": ["in/images"],
        "csv": ["a.csv", "--set", "schema.columns.k.label=[cat, dog]"],
    }
    Path("a.csv").write_text("n,k\n1,cat\n2,dog\n")
    pictures("in/images/cat/a.jpg", "in/images/dog/b.jpg")
    command = ["convert", *given[kind], "-o", "out", "--overwrite"]
    assert shardmill(*command).code == 0
    screen = shardmill("export", "out", "-o", "label_map.pbtxt").err
    names = {"NAME": "k", "...": "cat, dog"}
    option = [
        re.sub(r"NAME|\.\.\.", lambda found: names[found[0]], word)
        for word in options_in(screen, "text: " if kind == "csv" else "again ")
    ]
    assert shardmill(*command, *option).code == 0
    assert shardmill("export", "out", "-o", "label_map.pbtxt", "--overwrite").err == ""
    assert re.findall("id: (.)", Path("label_map.pbtxt").read_text()) == ["1", "2"]


def test_an_option_that_no_annotations_take_is_not_proposed(shardmill: Shardmill) -> None:
    pictures("y/images/a.jpg")
    Path("y/labels").mkdir()
    Path("y/labels/a.txt").write_text("1 0.5 0.5 0.25 0.25\n")
    Path("y/labels/classes.txt").write_text("cat\ndog\n")
    assert shardmill("convert", "y/images", "-o", "out", "--set", "input.annotations.yolo=y/labels").code == 0
    assert shardmill("export", "out", "-o", "label_map.pbtxt").err.endswith("and a class has 0\n")


TABLE = {"n": [1, 2], "t": ["x", "y"]}


@pytest.mark.parametrize(
    ("reader", "made"), [("dali", "out/index/train-00000.idx"), ("mlcroissant", "out/croissant.json")]
)
def test_the_file_that_a_program_reads_is_made_by_the_command_of_snippet(
    shardmill: Shardmill, reader: str, made: str
) -> None:
    convert(data=TABLE, output="out")
    refused = shardmill("snippet", reader, "out").err
    assert shardmill(*command_in(refused, "missing: ")).code == 0
    assert Path(made).exists()
    ast.parse(shardmill("snippet", reader, "out").out)


@pytest.mark.parametrize(("reader", "words"), [("dali", "rebuild it: "), ("tfds", "lack tfds: ")])
def test_a_compressed_dataset_is_read_after_the_command_of_snippet(
    shardmill: Shardmill, reader: str, words: str
) -> None:
    convert(data=TABLE, output="out", output__compression="gzip")
    command = command_in(shardmill("snippet", reader, "out").err, words)
    assert shardmill(*command).code == 0
    path = command[command.index("-o") + 1]
    assert [*open_dataset(path)["train"]] == [*open_dataset("out")["train"]]
    if reader == "dali":
        assert shardmill("index", path, "--text").code == 0
    ast.parse(shardmill("snippet", reader, path).out)


def test_keras_has_a_label_after_the_option_of_snippet(shardmill: Shardmill) -> None:
    Path("a.csv").write_text("n,t\n1,x\n2,y\n")
    assert shardmill("convert", "a.csv", "-o", "out").code == 0
    option = [
        word.replace("NAME", "t") for word in options_in(shardmill("snippet", "keras", "out").err, "of a column: ")
    ]
    assert shardmill("convert", "a.csv", "-o", "out", "--overwrite", *option).code == 0
    assert "sparse_categorical_crossentropy" in shardmill("snippet", "keras", "out").out


def test_keras_has_pictures_after_the_option_of_snippet(shardmill: Shardmill) -> None:
    pictures("in/cat/a.webp", "in/dog/b.jpg")
    assert shardmill("convert", "in", "-o", "out").code == 0
    option = options_in(shardmill("snippet", "keras", "out").err, "again with ")
    assert shardmill("convert", "in", "-o", "out", "--overwrite", *option).code == 0
    assert "decode" in shardmill("snippet", "keras", "out").out
