"""Columns of 0 and 1 become one list of classes, by the option on the screen."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from shardmill.pipelines import append, convert, open_dataset
from shardmill.transforms.errors import SchemaError, TooManyRejects

from ...command_line import Shardmill

CLASSES = {"schema": {"classes": {"pets": ["cat", "dog", "yak"]}}}
TABLE = "image,cat,dog,yak\n1.png,1,0,1\n2.png,0,1,0\n3.png,0,0,0\n"


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text(TABLE)


def lists(name: str, dataset: str = "out") -> list[Any]:
    return [row[name] or [] for row in open_dataset(dataset).to_arrow("train").to_pylist()]


def test_a_table_of_flags_is_read_as_a_list_of_classes_by_the_option_on_the_screen(shardmill: Shardmill) -> None:
    for number in (1, 2, 3):
        Image.new("RGB", (8, 8)).save(f"{number}.png")
    screen = shardmill("convert", "a.csv", "-o", "out")
    assert 'column "image" names pictures beside its table' in screen.out
    found = re.search(r"to make one list of classes of them: (.*)", screen.out)
    assert found, screen
    pictures = ["--set", "schema.columns.image.image=path"]
    done = shardmill("convert", "a.csv", "-o", "out", "--overwrite", *pictures, *shlex.split(found[1]))
    assert done.code == 0, done.err
    assert open_dataset("out").manifest.labels == {"classes": ("cat", "dog", "yak")}
    assert lists("classes") == [["cat", "yak"], ["dog"], []]
    assert "image/encoded" in open_dataset("out").to_arrow("train").column_names


@pytest.mark.parametrize("suffix", ["", ".png"])
@pytest.mark.parametrize("key", ["id", "image_id", "ImageId"])
def test_flags_beside_a_folder_of_pictures_are_a_list_by_the_commands_on_the_screen(
    shardmill: Shardmill, key: str, suffix: str
) -> None:
    Path("pets/train").mkdir(parents=True)
    for number in (1, 2, 3):
        Image.new("RGB", (8, 8)).save(f"pets/train/{number}.png")
    Path("pets/train.csv").write_text(TABLE.replace("image", key).replace(".png", suffix))
    table = shlex.split(shardmill("convert", "pets", "-o", "out").err.partition("to read its rows: shardmill ")[2])
    screen = shardmill(*table)
    assert screen.code == 0, screen.err
    found = re.search(r"to make one list of classes of them: (.*)", screen.out)
    assert found, screen.out
    done = shardmill(*table, "--overwrite", *shlex.split(found[1]))
    assert done.code == 0, done.err
    assert open_dataset("out").manifest.labels == {"classes": ("cat", "dog", "yak")}
    assert lists("classes") == [["cat", "yak"], ["dog"], []]
    assert lists(f"{key}/filename") == ["1.png", "2.png", "3.png"]
    assert "hold 0 and 1 alone" in shardmill("convert", "pets/train.csv", "-o", "plain").out


@pytest.mark.parametrize(
    "text", [TABLE, TABLE.replace(",1", ",1.0"), TABLE.replace(",1", ",true").replace(",0", ",false")]
)
def test_numbers_and_truth_values_are_flags(text: str) -> None:
    Path("a.csv").write_text(text)
    convert("a.csv", output="out", **CLASSES)
    assert lists("pets") == [["cat", "yak"], ["dog"], []]
    assert {feature.name for feature in open_dataset("out").manifest.schema or ()} == {"image", "pets"}


@pytest.mark.parametrize("cell", ["2", "-1", "", "0.5"])
def test_another_value_than_0_and_1_rejects_its_row_alone(cell: str) -> None:
    Path("a.csv").write_text(TABLE.replace("2.png,0", f"2.png,{cell}"))
    with pytest.raises(TooManyRejects, match="UNKNOWN_CLASS"):
        convert("a.csv", output="out", **CLASSES)
    summary = convert("a.csv", output="out", max_rejects=1, **CLASSES)
    assert (lists("pets"), summary.manifest.counts.rejected) == ([["cat", "yak"], []], 1)


def test_an_append_makes_the_same_list_and_refuses_other_numbers() -> None:
    convert("a.csv", output="out", **CLASSES)
    Path("b.csv").write_text("image,yak,cat,dog\n4.png,1,0,1\n")
    append("b.csv", output="out")
    assert lists("pets")[-1] == ["dog", "yak"]
    Path("c.csv").write_text("image,yak,cat,dog\n5.png,1,0,1\n")
    with pytest.raises(SchemaError, match="keep their numbers"):
        append("c.csv", output="out", schema={"classes": {"pets": ["dog", "cat", "yak"]}})


@pytest.mark.parametrize(
    ("classes", "said"),
    [
        ({"pets": ["cat", "dgo"]}, 'did you mean "dog"'),
        ({"pets": ["cat", "image"]}, "holds string, and not 0 and 1"),
        ({"dog": ["cat", "yak"]}, 'there is a column "dog"'),
    ],
)
def test_columns_that_are_no_flags_are_refused(classes: dict[str, list[str]], said: str) -> None:
    with pytest.raises(SchemaError, match=said):
        convert("a.csv", output="out", schema={"classes": classes})


@pytest.mark.parametrize(
    "text", ["a,b,c,n\n1,0,1,5\n0,1,0,7\n", "t,a,b\nx,1,0\ny,0,1\n", "t,a,b,c\nx,1,0,2\ny,0,1,1\n"]
)
def test_numbers_among_others_are_not_mentioned(text: str, shardmill: Shardmill) -> None:
    Path("a.csv").write_text(text)
    assert "hold 0 and 1 alone" not in shardmill("convert", "a.csv", "-o", "out").out
