"""Splits of archives: by their names or folders, and by the folders inside of them."""

from __future__ import annotations

import io
import shlex
import tarfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from PIL import Image
from shardmill.transforms.dataset.reading.open_dataset import open_dataset

from ..conftest import Shardmill


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def tar(path: str, members: Sequence[str]) -> None:
    """Write a tar of pictures, and a class beside each whose name ends in `.cls`."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    picture = io.BytesIO()
    Image.new("RGB", (4, 3)).save(picture, "png")
    with tarfile.open(path, "w") as archive:
        for name in members:
            data = b"1" if name.endswith(".cls") else picture.getvalue()
            found = tarfile.TarInfo(name)
            found.size = len(data)
            archive.addfile(found, io.BytesIO(data))


def samples(folder: str, count: int) -> list[str]:
    return [f"{folder}{number}.{suffix}" for number in range(count) for suffix in ("cls", "png")]


def splits(path: str = "out") -> dict[str, int]:
    return {name: one.records for name, one in open_dataset(path).manifest.splits.items()}


@pytest.mark.parametrize(
    "keys", [samples("train/", 2), ["train/cat/0.png", "train/dog/1.png"]], ids=["samples", "classes"]
)
def test_archives_of_one_split_whose_folders_say_another_stop_with_a_command_for_each(
    shardmill: Shardmill, keys: Sequence[str]
) -> None:
    tar("d/train/0.tar", keys)
    tar("d/val/0.tar", keys)
    done = shardmill("convert", "d", "-o", "out")
    assert (done.code, "is of split val by its name or folder, and folders inside say train" in done.err) == (2, True)
    by_archives, by_folders = (line.partition(": ")[2].strip() for line in done.err.splitlines() if "shardmill" in line)
    assert shardmill(*shlex.split(by_archives)[1:]).code == 0
    assert splits() == {"train": 2, "val": 2}
    assert shardmill(*shlex.split(by_folders)[1:], "--overwrite").code == 0
    assert splits() == {"train": 4}
    globs = 'input.splits={train: "train/*", test: "val/*"}'
    assert shardmill("convert", "d", "-o", "out", "--overwrite", "--set", globs).code == 0
    assert splits() == {"train": 2, "test": 2}


def test_names_of_archives_that_the_user_asks_for_come_before_folders_inside(shardmill: Shardmill) -> None:
    for name in ("flowers-train-0", "flowers-val-0"):
        tar(f"d/{name}.tar", samples("train/", 3))
    assert shardmill("convert", "d", "-o", "out", "--set", "input.splits=names").code == 0
    assert splits() == {"train": 3, "val": 3}


def test_an_archive_of_one_split_alone_whose_folders_say_another_stops(shardmill: Shardmill) -> None:
    tar("d/val/0.tar", samples("train/", 2))
    assert "folders inside say train" in shardmill("convert", "d/val/0.tar", "d", "-o", "out").err


@pytest.mark.parametrize(
    ("archives", "found"),
    [
        ({"train/0.tar": ("train/",), "val/0.tar": ("valid/",)}, {"train": 2, "valid": 2}),
        ({"train/0.tar": ("",), "val/0.tar": ("",)}, {"train": 2, "val": 2}),
        ({"0.tar": ("train/", "test/")}, {"train": 2, "test": 2}),
        ({"train/0.tar": ("train/", "val/")}, {"train": 2, "val": 2}),
    ],
    ids=["both say it", "archives alone", "folders alone", "one archive cut further"],
)
def test_archives_and_folders_that_agree_are_read(
    shardmill: Shardmill, archives: dict[str, Sequence[str]], found: dict[str, int]
) -> None:
    for name, folders in archives.items():
        tar(f"d/{name}", [one for folder in folders for one in samples(folder, 2)])
    assert shardmill("convert", "d", "-o", "out").code == 0
    assert splits() == found
