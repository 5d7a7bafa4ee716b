"""Zips whose names are in encodings that they do not state, or have backslashes, as other programs write them."""

from __future__ import annotations

import io
import shlex
import zipfile
from pathlib import Path

import pytest
from PIL import Image
from shardmill.transforms.dataset.reading.open_dataset import open_dataset

from ..command_line import Shardmill


def zip_of(names: list[bytes], system: int = 0) -> None:
    """Write a picture under each name, without the mark of UTF-8."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as file:
        for number, name in enumerate(names):
            picture = io.BytesIO()
            Image.new("RGB", (8, 8), (number, 0, 0)).save(picture, "PNG")
            info = zipfile.ZipInfo("AB"[number] * len(name))
            info.create_system = system
            file.writestr(info, picture.getvalue())
    held, at = data.getvalue(), 0
    for sign, name in [*zip((b"A", b"B"), names, strict=False)] * 2:  # in the headers, and in the directory
        at = held.index(sign * len(name), at)
        held = held[:at] + name + held[at + len(name) :]
        at += len(name)
    Path("a.zip").write_bytes(held)


def classes_in(dataset: str) -> tuple[str, ...]:
    return open_dataset(dataset).labels["image/class/label"]


@pytest.mark.parametrize(
    ("encoding", "classes"),
    [("shift_jis", ("犬表表", "猫")), ("gbk", ("狗狗狗", "猫")), ("cp1252", ("café", "naïve"))],
)
def test_names_in_another_encoding_are_said_and_read_by_the_option_that_is_said(
    shardmill: Shardmill, encoding: str, classes: tuple[str, ...]
) -> None:
    zip_of([f"{name}/1.png".encode(encoding) for name in classes])
    screen = shardmill("convert", "a.zip", "-o", "out")
    assert "a.zip: names that are not marked as UTF-8 are read as cp437, such as" in screen.out, screen.err
    assert classes_in("out") != classes
    option = screen.out.partition("name their encoding (shift_jis, gbk, cp1252): ")[2].splitlines()[0]
    again = shardmill("convert", "a.zip", "-o", "right", *shlex.split(option.replace("ENCODING", encoding)))
    assert again.code == 0, again.err
    assert (classes_in("right"), "cp437" in again.out) == (classes, False)
    assert shardmill("append", "a.zip", "-o", "right").code == 0


def test_names_in_utf_8_without_its_mark_are_read_without_a_word(shardmill: Shardmill) -> None:
    zip_of(["猫/1.png".encode(), "犬/2.png".encode()])
    screen = shardmill("convert", "a.zip", "-o", "out")
    assert ("cp437" in screen.out, classes_in("out")) == (False, ("犬", "猫"))


def test_names_that_are_not_in_the_encoding_that_is_said_end_the_run(shardmill: Shardmill) -> None:
    zip_of([b"\x81/1.png"])
    screen = shardmill("convert", "a.zip", "-o", "out", "--set", "input.encoding=cp1252")
    assert screen.code != 0
    assert "is not cp1252; give its input.encoding" in screen.err
    assert not Path("out/manifest.json").exists()


@pytest.mark.parametrize("system", [0, 3])
@pytest.mark.parametrize("above", [b"", b"in/", b"in\\"])
def test_backslashes_in_names_are_folders_whatever_wrote_them(shardmill: Shardmill, system: int, above: bytes) -> None:
    zip_of([above + b"cat\\1.png", above + b"dog\\2.png"], system)
    screen = shardmill("convert", "a.zip", "-o", "out")
    assert screen.code == 0, screen.err
    assert [name.rpartition("/")[2] for name in classes_in("out")] == ["cat", "dog"]
