from __future__ import annotations

import gzip
import shlex
import shutil
from pathlib import Path

import pytest
from PIL import Image
from shardmill.transforms.dataset.reading.open_dataset import open_dataset
from shardmill.transforms.inputs.contract.source import SourceEntry
from shardmill.transforms.recognise.strangers.files import content_twice

from ..command_line import Shardmill


def entries(*names: str, prints: str = "same") -> list[SourceEntry]:
    return [
        SourceEntry(f"/{name}".encode(), name, 9, 0, prints if prints == "same" else name) for name in sorted(names)
    ]


@pytest.mark.parametrize(
    "names",
    [
        ("d/a.csv", "d/a.csv.gz"),
        ("a.jsonl.bz2", "a.jsonl.zst"),
        ("a.tar.gz", "a.tgz"),
        ("a.parquet", "a (1).parquet"),
        ("a.csv.gz", "a(12).csv.gz"),
        ("a.csv", "a - Copy.csv"),
        ("a.csv", "a - Copy (2).csv"),
        ("a.csv", "Copy of a.csv"),
        ("a.csv", "a copy 2.csv"),
        ("a.csv", "a_copy.csv"),
        ("flights.csv", "flights/flights.csv"),
        ("flights.csv", "flights.csv/flights.csv"),
    ],
)
def test_one_content_twice_is_named(names: tuple[str, ...]) -> None:
    (warning,) = content_twice(entries(*names))
    assert all(name in warning for name in names)


@pytest.mark.parametrize(
    "names", [("a.csv", "b.csv"), ("a.csv", "d/a.csv"), ("a.csv.gz", "d/a.csv"), ("a (1).csv", "b.csv")]
)
def test_files_of_one_content_whose_names_say_nothing_of_it_are_files(names: tuple[str, ...]) -> None:
    assert content_twice(entries(*names)) == ()


@pytest.mark.parametrize("names", [("a.parquet", "a (1).parquet"), ("flights.csv", "flights/flights.csv")])
def test_other_content_is_no_copy_whatever_the_name(names: tuple[str, ...]) -> None:
    assert content_twice(entries(*names, prints="own")) == ()


def test_the_screen_warns_of_rows_that_come_twice(tmp_path: Path, shardmill: Shardmill) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a.csv").write_text("n\n1\n")
    (tmp_path / "in/a.csv.gz").write_bytes(gzip.compress(b"n\n1\n"))
    (tmp_path / "in/b.csv").write_text("n\n2\n")
    (tmp_path / "in/b (1).csv").write_text("n\n2\n")
    screen = shardmill("convert", "in", "-o", "out")
    assert "Warning: in/a.csv and in/a.csv.gz: one name in two compressions, so that the same rows come" in screen.out
    assert "Warning: in/b.csv and in/b (1).csv: a copy by its name, with the same content" in screen.out
    assert "come twice" not in shardmill("convert", "in/a.csv", "in/b.csv", "-o", "one").out


def picture(path: Path, value: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (8, 8), (value, 0, 0)).save(path, "bmp")


COPIES = [
    "cat0 (1).jpg", "cat0(2).jpg", "cat0 - Copy.jpg", "cat0 - Copy (2).jpg", "Copy of cat0.jpg", "cat0 copy.png",
    "cat0_copy.jpg", "cat0 - Kopie.jpg", "Kopie von cat0.jpg", "cat0 (1)",
]  # fmt: skip


@pytest.mark.parametrize("copy", COPIES)
def test_a_copy_of_a_picture_is_left_out_by_the_option_of_its_warning(
    tmp_path: Path, shardmill: Shardmill, copy: str
) -> None:
    for number in range(3):
        picture(tmp_path / f"in/cat/cat{number}.jpg", number)
        picture(tmp_path / f"in/dog/cat{number}.jpg", 100 + number)
    shutil.copy(tmp_path / "in/cat/cat0.jpg", tmp_path / "in/cat" / copy)
    screen = shardmill("convert", "in", "-o", "out")
    line = next(line for line in screen.out.splitlines() if "comes twice" in line)
    assert line.startswith(f"Warning: in/cat/cat0.jpg and in/cat/{copy}: a copy by its name, with the same content")
    again = shardmill("convert", "in", "-o", "again", *shlex.split(line.rpartition("out: ")[2]))
    assert "comes twice" not in again.out
    names = sorted(row["image/filename"] for row in open_dataset(tmp_path / "again")["train"])
    assert names == [f"{one}/cat{number}.jpg" for one in ("cat", "dog") for number in range(3)]


def test_a_picture_that_is_another_is_no_copy_whatever_its_name(tmp_path: Path, shardmill: Shardmill) -> None:
    picture(tmp_path / "in/a.jpg", 1)
    picture(tmp_path / "in/a (1).jpg", 2)  # of the same size
    picture(tmp_path / "in/b/a (2).jpg", 1)  # in another folder
    picture(tmp_path / "in/Image (1).jpg", 1)
    picture(tmp_path / "in/photocopy.jpg", 1)
    for name in ("e.jpg", "e (1).jpg"):
        (tmp_path / "in" / name).write_bytes(b"")
    screen = shardmill("convert", "in", "-o", "out", "--set", "input.layout=flat", "--max-rejects", "2")
    assert (screen.code, "comes twice" in screen.out) == (0, False)


def test_many_copies_of_pictures_are_counted_and_the_rest_is_said(tmp_path: Path, shardmill: Shardmill) -> None:
    for number in range(70):
        picture(tmp_path / f"in/{number}.png", number)
        picture(tmp_path / f"in/{number} (1).png", number)
    screen = shardmill("convert", "in", "-o", "out")
    assert "and 61 more: a copy by its name" in screen.out
    assert "(6 more of such names and equal sizes were not compared); to leave copies out: input.ignore" in screen.out


def test_copies_of_pictures_are_looked_for_only_where_files_are_recognised(
    tmp_path: Path, shardmill: Shardmill
) -> None:
    picture(tmp_path / "in/a.bmp", 1)
    picture(tmp_path / "in/a copy.bmp", 1)
    assert "comes twice" in shardmill("convert", "in", "-o", "out").out
    screen = shardmill("convert", "in", "-o", "out", "--overwrite", "--format", "images", "--set", "input.detect=none")
    assert (screen.code, "comes twice" in screen.out) == (0, False)
