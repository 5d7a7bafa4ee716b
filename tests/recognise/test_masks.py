from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from PIL import Image
from shardmill.transforms.dataset.reading.open_dataset import open_dataset

from ..command_line import Shardmill


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def draw(names: str, mode: str = "RGB", count: int = 4, size: int | None = None) -> None:
    """Draw pictures whose names have a number for {}, each of a size of its own, or of one size."""
    for number in range(count):
        path = Path("d", names.format(number))
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new(mode, (size or 8 + number, 6), number).save(path)


MASKS = {
    "ISIC's": ("S_Input/S_{:04}.jpg", "S_GroundTruth/S_{:04}_segmentation.png", "RGB", "L"),
    "names of folders": ("Original/{}.png", "GroundTruth/{}.png", "RGB", "RGB"),
    "both in splits": ("input/train/{}.jpg", "target/train/{}.png", "RGB", "P"),
    "gray masks of no known name": ("train_x/{}.png", "train_y/{}.png", "RGB", "L"),
    "gray pictures of sizes of their own": ("CXR_png/C_{}.png", "ManualMask/C_{}_mask.png", "L", "L"),
    "words on both sides": ("drive_images/{}_training.png", "1st_manual/{}_manual1.gif", "RGB", "L"),
    "masks of one bit": ("a/{}.jpg", "b/{}.png", "RGB", "1"),
    "labels of a folder in colours": ("train/{}_x.png", "train_labels/{}_x_L.png", "RGB", "RGB"),
    "a word of each folder that holds one": ("scan/{}.jpg", "annotated/{}_superpixels.png", "RGB", "RGB"),
}


@pytest.mark.parametrize("case", MASKS)
def test_folders_of_masks_stop_with_the_command_that_reads_the_pictures(case: str, shardmill: Shardmill) -> None:
    pictures, masks, mode, of_masks = MASKS[case]
    draw(pictures, mode)
    draw(masks, of_masks)
    screen = shardmill("convert", "d", "-o", "out")
    assert (screen.code, "as masks do" in screen.err) == (2, True), screen.out
    words = shlex.split(screen.err.split("to read the pictures alone: shardmill ")[1].splitlines()[0])
    done = shardmill(*words)
    assert done.code == 0, done.err
    rows = open_dataset("out").to_arrow("train")
    assert not any("class" in name for name in rows.column_names)
    names = rows["image/filename"].to_pylist()
    assert [Path(name).name for name in names] == [Path(pictures.format(number)).name for number in range(4)]


CLASSES = {
    "numbers of classes": ("cat/{}.jpg", "dog/{}.jpg", "RGB", "RGB", None),
    "numbers of classes in splits": ("train/cat/{:04}.jpg", "train/dog/{:04}.jpg", "RGB", "RGB", 8),
    "classes that end the names": ("cat/{}_cat.jpg", "dog/{}_dog.jpg", "RGB", "RGB", 8),
    "letters that end the names": ("cat/{}_a.jpg", "dog/{}_b.jpg", "RGB", "RGB", 8),
    "a word of masks and one of its own": ("cat/{}.jpg", "dog_label/{}.jpg", "RGB", "RGB", 8),
    "a class that ends the names of one side": ("real/{}.jpg", "fake/{}_fake.jpg", "RGB", "RGB", None),
    "people in masks": ("with_mask/{}.jpg", "without_mask/{}.jpg", "RGB", "RGB", None),
    "people without masks": ("no_mask/{}.png", "mask/{}.png", "RGB", "L", None),
    "gray pictures of one size": ("0/{}.png", "1/{}.png", "L", "L", 28),
    "letters": ("x/{}.png", "y/{}.png", "L", "L", 28),
    "a class of gray pictures of other sizes": ("cat/{}.png", "dog/1{}.png", "RGB", "L", None),
    "targets of one size": ("clutter/{}.jpg", "target/{}.jpg", "RGB", "RGB", 64),
}


@pytest.mark.parametrize("case", CLASSES)
def test_classes_whose_files_are_numbered_alike_stay_classes(case: str, shardmill: Shardmill) -> None:
    one, other, mode, of_other, size = CLASSES[case]
    draw(one, mode, size=size)
    draw(other, of_other, size=size)
    screen = shardmill("convert", "d", "-o", "out")
    assert (screen.code, "2 classes" in screen.out) == (0, True), screen.err


def test_two_pairs_are_no_sign_of_masks_where_the_names_of_their_folders_say_nothing(shardmill: Shardmill) -> None:
    draw("scan/{}.png", count=2)
    draw("lesion/{}.png", "L", count=2)
    assert shardmill("convert", "d", "-o", "out").code == 0


@pytest.mark.parametrize("regions", [["Urban", "Rural"], [*"abcdefghijklmnopqr"]])
@pytest.mark.parametrize("words", [("images_png", "masks_png"), ("img", "Labels_tif"), ("Images_jpg", "gt")])
def test_folders_of_images_and_masks_at_any_depth_are_no_classes(
    words: tuple[str, str], regions: list[str], shardmill: Shardmill
) -> None:
    for region in regions:
        for split in ("Test", "Train"):
            draw(f"{split}/{region}/{words[0]}/{region}_{split}_{{}}.png", count=2, size=8)
        draw(f"Train/{region}/{words[1]}/{region}_Train_{{}}.png", "L", count=2, size=8)
    screen = shardmill("convert", "d", "-o", "out")
    assert (screen.code, "as masks do" in screen.err, "inner_label" in screen.err) == (2, True, False), screen.out
    for command in screen.err.split("pictures alone: ")[1].splitlines()[0].split(" && "):
        done = shardmill(*shlex.split(command)[1:])
        assert done.code == 0, done.err
    for split in ("test", "train"):
        rows = open_dataset(f"out-{split}").to_arrow(split)
        assert {str(Path(name).parent.name) for name in rows["image/filename"].to_pylist()} == {words[0]}
        assert len(rows) == 2 * len(regions)


def test_folders_of_images_and_masks_of_other_names_are_no_classes_by_the_layouts_that_are_proposed(
    shardmill: Shardmill,
) -> None:
    for region in ("Urban", "Rural"):
        draw(f"Train/{region}/images_png/{{}}.png")
        draw(f"Train/{region}/masks_png/m{{}}_of_it.png", "L")
    screen = shardmill("convert", "d", "-o", "out")
    assert (screen.code, "look like parts of each example" in screen.err) == (2, True), screen.out
    assert "innermost folders as classes" not in screen.err


def test_masks_of_few_of_many_pictures_stop_too_and_the_layout_that_is_given_is_read(shardmill: Shardmill) -> None:
    draw("Original/{}.png", count=12)
    draw("GroundTruth/{}.png", "L", count=3)
    line = shardmill("convert", "d", "-o", "out").err.splitlines()[-1]
    assert line.startswith("or, where all are pictures with classes: --set ")
    screen = shardmill("convert", "d", "-o", "out", *shlex.split(line.partition("classes: ")[2]))
    assert (screen.code, "image/class/label" in open_dataset("out").to_arrow("train").column_names) == (0, True)


def test_pictures_in_folders_of_splits_with_masks_beside_are_read_by_a_command_for_each_split(
    shardmill: Shardmill,
) -> None:
    for split in ("train", "val"):
        draw(f"{split}/Input/{{}}.jpg")
        draw(f"{split}/GroundTruth/{{}}.png", "L")
    screen = shardmill("convert", "d", "-o", "out")
    assert (screen.code, "as masks do" in screen.err) == (2, True), screen.out
    line = screen.err.split("pictures alone: ")[1].splitlines()[0]
    for command, split in zip(line.split(" && "), ("train", "val"), strict=True):
        words = shlex.split(command)
        assert shardmill(*words[1:]).code == 0
        made = open_dataset(f"out-{split}")
        assert {name: len(made[name]) for name in made.splits} == {split: 4}


def test_masks_of_splits_by_words_stop_and_those_beside_their_pictures_are_left_out_by_the_key_on_the_screen(
    shardmill: Shardmill,
) -> None:
    for split in ("Training", "Validation"):
        draw(f"S-2017_{split}_Data/{split}_{{}}.jpg")
        draw(f"S-2017_{split}_Data/{split}_{{}}_superpixels.png")
        draw(f"S-2017_{split}_Part1_GroundTruth/{split}_{{}}_segmentation.png", "L")
    given = ["--set", "input.splits=names"]
    screen = shardmill("convert", "d", "-o", "out", *given)
    assert (screen.code, "as masks do" in screen.err) == (2, True), screen.out
    done = shardmill(*shlex.split(screen.err.split("pictures alone: shardmill ")[1].splitlines()[0]))
    assert done.code == 0, done.err
    line = next(line for line in done.out.splitlines() if "8 pictures look like masks" in line)
    leave = shlex.split(line.partition("to leave masks out: ")[2])
    folders = [f"d/S-2017_{split}_Data" for split in ("Training", "Validation")]
    again = shardmill("convert", *folders, "-o", "out", *given, *leave, "--overwrite")
    assert (again.code, "look like masks" in again.out) == (0, False), again.err
    counts = {name: len(open_dataset("out")[name]) for name in open_dataset("out").splits}
    assert counts == {"training": 4, "validation": 4}
