"""What a user of the command line meets with real folders of pictures: a README beside the classes, and so on."""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np
import pytest
from PIL import Image
from shardmill.transforms.dataset.generations import read_manifest


def draw(seed: int = 1, kind: str = "JPEG") -> bytes:
    noise = np.random.default_rng(seed).integers(0, 256, (8, 8, 3), dtype=np.uint8)
    file = io.BytesIO()
    Image.fromarray(noise).save(file, kind)
    return file.getvalue()


JPEG, PNG = draw(), draw(kind="PNG")


def counts(desk: Any) -> tuple[int, dict[str, int]]:
    """Return the records that were written, and what was skipped."""
    manifest = read_manifest(str(desk.root / "out"))
    return manifest.counts.written, {reason: n for reason, n in manifest.source.skipped.items() if n}


def texts(desk: Any) -> dict[str, str | None]:
    """Return the class of each picture, by its name."""
    return {row["image/filename"]: row.get("image/class/text") for row in desk.records()}


def test_files_that_bear_the_name_of_no_image_are_skipped_and_counted_in_a_folder_of_classes(desk: Any) -> None:
    beside = ["README.txt", "LICENSE", "annotations.xml", "Thumbs.db", "cat/notes.MD", "cat/labels.json"]
    desk.put({"pets/cat/1.jpg": JPEG, "pets/dog/2": PNG, **{f"pets/{name}": b"no picture" for name in beside}})
    screen = desk.convert("pets")
    assert (screen.code, screen.err) == (0, "")
    assert "2 written, 0 rejected; skipped 1 junk, 5 non-image" in screen.out
    assert texts(desk) == {"cat/1.jpg": "cat", "dog/2": "dog"}  # the one without a suffix is known by its content
    assert counts(desk) == (2, {"junk": 1, "non-image": 5})


def test_a_picture_under_a_strange_name_and_a_format_that_is_not_read_are_no_files_to_skip(desk: Any) -> None:
    desk.put({"pets/a.jpg": JPEG, "pets/b.orig": JPEG, "pets/c.svg": b"<svg/>", "pets/more.zip": b"PK\3\4"})
    screen = desk.convert("pets", "--max-rejects", "2")
    assert (screen.code, counts(desk)) == (0, (2, {}))
    assert "NOT_AN_IMAGE 2" in screen.out


def test_what_input_ignore_names_is_left_out_and_counted(desk: Any) -> None:
    names = ["a/1.jpg", "a/1_thumb.jpg", "b/2.jpg", "b/more.zip", "old/3.jpg", "b/old/4.jpg", "b/bad/5.jpg"]
    desk.put({f"pets/{name}": JPEG for name in names})
    screen = desk.convert("pets", "--set", 'input.ignore=["*_thumb.jpg", "*.zip", old/, b/bad]')
    assert (screen.code, screen.err) == (0, "")
    assert "2 written, 0 rejected; skipped 5 ignored" in screen.out
    assert texts(desk) == {"a/1.jpg": "a", "b/2.jpg": "b"}


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ([], "pets: the folder holds no image; skipped 1 non-image"),
        (["--set", "input.ignore=[cat]"], "pets: the folder holds no image; skipped 1 non-image, 1 ignored"),
    ],
)
def test_a_folder_of_which_nothing_is_left_is_refused(desk: Any, args: list[str], said: str) -> None:
    desk.put({"pets/README.txt": b"hello", **({"pets/cat/1.jpg": JPEG} if args else {})})
    desk.assert_refused(desk.convert("pets", "--set", "input.format=images", *args), 2, said)


def test_a_key_of_images_is_no_key_of_tables(desk: Any) -> None:
    desk.put({"a.csv": b"a\n1\n"})
    screen = desk.convert("a.csv", "--set", "input.ignore=[b.csv]")
    assert (screen.code, "input.ignore: unknown key for csv; it is a key of images input" in screen.err) == (2, True)


def test_skipping_is_told_to_programs_too(desk: Any) -> None:
    desk.put({"pets/cat/1.jpg": JPEG, "pets/README": b"hello"})
    told = json.loads(desk.convert("pets", "--dry-run", "--json").out)
    assert told["source"]["skipped"]["non-image"] == 1


def splits(desk: Any) -> dict[str, int]:
    return {name: split.records for name, split in read_manifest(str(desk.root / "out")).splits.items()}


def test_folders_that_bear_the_names_of_splits_and_hold_no_classes_are_splits(desk: Any) -> None:
    desk.put({f"pets/{name}.jpg": draw(i) for i, name in enumerate(["Train/1", "Train/2", "val/1", "test2017/1"])})
    screen = desk.convert("pets")
    assert (screen.code, screen.err) == (0, "")
    assert "layout split, told by the folders: test2017, train, val" in screen.out
    assert splits(desk) == {"test2017": 1, "train": 2, "val": 1}
    assert texts(desk) == {"Train/1.jpg": None, "Train/2.jpg": None, "test2017/1.jpg": None, "val/1.jpg": None}


def test_they_are_classes_where_the_layout_says_so_with_a_word_of_warning(desk: Any) -> None:
    desk.put({"pets/train/1.jpg": JPEG, "pets/test/1.jpg": JPEG})
    said = "Warning: classes are named like splits: test, train; if they are splits: --set input.layout=split"
    desk.assert_accepted(["pets", "--set", "input.layout=label"], [said], lambda found: None)
    assert splits(desk) == {"train": 2}


def test_a_picture_beside_the_folders_of_splits_is_a_reject_where_the_layout_says_split(desk: Any) -> None:
    desk.put({"pets/train/1.jpg": JPEG, "pets/stray.jpg": JPEG})
    screen = desk.convert("pets", "--set", "input.layout=split", "--max-rejects", "1")
    assert (screen.code, splits(desk)) == (0, {"train": 1})
    assert "pets/stray.jpg: DECLARED_NOT_NULL: no split folder holds the image; move it into one" in screen.out


def test_folders_that_hold_parts_of_each_example_are_asked_about(desk: Any) -> None:
    desk.put({"roads/images/1.jpg": JPEG, "roads/masks/1.png": PNG})
    screen = desk.convert("roads")
    said = 'error: unclear folder layout: "images", "masks" look like parts of each example, not classes; read one'
    assert (screen.code, screen.err.startswith(said)) == (2, True)
    assert desk.convert("roads/images").code == 0
