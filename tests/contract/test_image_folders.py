"""What a user of the command line meets with real folders of pictures: a README beside the classes, and so on."""

from __future__ import annotations

import io
import json
import re
import shlex
from typing import Any

import numpy as np
import pytest
from PIL import Image
from shardmill.pipelines.cli import main
from shardmill.transforms.dataset.storage.manifest_files import read_manifest


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
    assert "2 written, 0 rejected\nLeft out: 1 .json, 1 .md, 1 .txt, 1 .xml, 1 junk, 1 without a suffix\n" in screen.out
    assert texts(desk) == {"cat/1.jpg": "cat", "dog/2": "dog"}  # the one without a suffix is known by its content
    kinds = {"junk": 1, ".txt": 1, ".md": 1, ".xml": 1, ".json": 1, "without a suffix": 1}
    assert counts(desk) == (2, kinds)


@pytest.mark.parametrize("paths", [["phone"], ["phone/*"]])
def test_what_phones_and_cameras_write_beside_pictures_is_left_out_and_counted(desk: Any, paths: list[str]) -> None:
    beside = ["1.AAE", "IMG_O1.aae", "1.MOV", "1.jpg.xmp", "MVI_3.THM", "GX01.LRV", "4.3gp", "1.jpg.pp3"]
    desk.put({"phone/1.JPG": JPEG, "phone/2.jpg": JPEG, **{f"phone/{name}": b"no picture" for name in beside}})
    screen = desk.convert(*paths)
    assert (screen.code, screen.err) == (0, "")
    left = "2 .aae, 1 .3gp, 1 .lrv, 1 .mov, 1 .pp3, 1 .thm, 1 .xmp"
    assert f"2 written, 0 rejected\nLeft out: {left}\n" in screen.out


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
    assert "2 written, 0 rejected\nLeft out: 5 ignored\n" in screen.out
    assert texts(desk) == {"a/1.jpg": "a", "b/2.jpg": "b"}


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ([], "pets: the folder holds no image; left out: 1 .txt"),
        (["--set", "input.ignore=[cat]"], "pets: the folder holds no image; left out: 1 .txt, 1 ignored"),
    ],
)
def test_a_folder_of_which_nothing_is_left_is_refused(desk: Any, args: list[str], said: str) -> None:
    desk.put({"pets/README.txt": b"hello", **({"pets/cat/1.jpg": JPEG} if args else {})})
    desk.assert_refused(desk.convert("pets", "--set", "input.format=images", *args), 2, said)


def test_a_key_of_images_is_no_key_of_tables(desk: Any) -> None:
    desk.put({"a.csv": b"a\n1\n"})
    screen = desk.convert("a.csv", "--set", "input.layout=flat")
    assert screen.code == 2
    assert "input.layout: unknown key for csv; it is a key of images and tar and zip input" in screen.err


def test_skipping_is_told_to_programs_too(desk: Any) -> None:
    desk.put({"pets/cat/1.jpg": JPEG, "pets/README": b"hello"})
    told = json.loads(desk.convert("pets", "--dry-run", "--json").out)
    assert told["source"]["skipped"] == {"without a suffix": 1}


def splits(desk: Any) -> dict[str, int]:
    return {name: split.records for name, split in read_manifest(str(desk.root / "out")).splits.items()}


def test_folders_that_bear_the_names_of_splits_and_hold_no_classes_are_splits(desk: Any) -> None:
    desk.put({f"pets/{name}.jpg": draw(i) for i, name in enumerate(["Train/1", "Train/2", "val/1", "test2017/1"])})
    screen = desk.convert("pets")
    assert (screen.code, screen.err) == (0, "")
    assert "Detected: splits test, train, val, from the names of folders (input.layout: split)" in screen.out
    assert splits(desk) == {"test": 1, "train": 2, "val": 1}
    assert texts(desk) == {"Train/1.jpg": None, "Train/2.jpg": None, "test2017/1.jpg": None, "val/1.jpg": None}


def test_folders_without_a_picture_are_named_as_no_classes(desk: Any) -> None:
    desk.put({"pets/cat/1.jpg": draw(1), "pets/dog/1.jpg": draw(2), "pets/yak/README.md": b"later"})
    (desk.root / "pets/zebra/white").mkdir(parents=True)
    screen = desk.convert("pets")
    assert "Detected: yak, zebra/white: no pictures, so they are no classes" in screen.out
    assert "so" not in desk.convert("pets/cat", "--set", "input.layout=flat", "--overwrite").out.split()


def test_a_folder_without_a_picture_is_said_to_be_no_class_unless_it_is_one(desk: Any) -> None:
    desk.put({f"pets/{name}/1.jpg": draw(i) for i, name in enumerate(["train/cat", "train/dog", "val/dog"])})
    for name in ("val/cat", "val/zebra", "2023/zebra"):
        (desk.root / "pets" / name).mkdir(parents=True)
    said = "zebra: no pictures, so it is no class"
    assert f"Detected: {said}\n" in desk.convert("pets").out
    assert f"Detected: {said}\n" in desk.convert("pets", "--set", "input.layout=split_label", "--overwrite").out
    declared = desk.convert("pets", "--set", "input.labels=[cat, dog, zebra]", "--overwrite")
    assert (declared.code, "no pictures" in declared.out) == (0, False)
    desk.put({"more/dog/1.jpg": draw(7)})
    (desk.root / "more/cat").mkdir()
    (desk.root / "more/wolf").mkdir()
    with pytest.raises(SystemExit) as ended:
        main(["append", "more", "-o", "out", "--split", "train", "--set", "input.layout=label"])
    said = desk.capsys.readouterr().out
    assert (ended.value.code, "Detected: wolf: no pictures, so it is no class\n" in said) == (0, True), said


@pytest.mark.parametrize("classes", [["cat/", "dog/"], [""]])
def test_one_folder_of_splits_is_cut_by_the_key_that_the_screen_names(desk: Any, classes: list[str]) -> None:
    pictures = {
        f"in/{split}/{kind}{i}.jpg": draw(i) for split in ("train", "test") for kind in classes for i in range(9)
    }
    desk.put(pictures)
    asked = ("in", "--split-fractions", "train=0.5,val=0.5")
    all_rows = desk.convert(*asked)
    assert (all_rows.code, sorted(splits(desk))) == (0, ["train", "val"])
    key = re.search(r"splits \(test, train\), which are not used, .*to cut one of them only: (.*)", all_rows.out)
    assert key is not None
    assert desk.convert(*asked, *shlex.split(key[1]), "--overwrite").code == 0
    records = splits(desk)
    assert sorted(records) == ["test", "train", "val"]
    assert (records["test"], records["train"] + records["val"]) == (9 * len(classes), 9 * len(classes))
    assert min(records.values()) > 0


def test_they_are_classes_where_the_layout_says_so_with_a_word_of_warning(desk: Any) -> None:
    desk.put({"pets/train/1.jpg": JPEG, "pets/test/1.jpg": JPEG})
    said = "Warning: classes are named like splits: test, train; if they are splits: --set input.layout=split"
    desk.assert_accepted(["pets", "--set", "input.layout=label"], [said], lambda found: None)
    assert splits(desk) == {"train": 2}


def test_classes_within_folders_of_splits_are_warned_of_where_the_layout_makes_classes_of_both(desk: Any) -> None:
    desk.put({"pets/train/cat/1.jpg": JPEG, "pets/test/cat/1.jpg": JPEG})
    said = "classes are named like splits: test/cat, train/cat; if they are splits: --set input.layout=split_label"
    desk.assert_accepted(["pets", "--set", "input.layout=label"], [f"Warning: {said}"], lambda found: None)


def test_a_picture_beside_the_folders_of_splits_is_a_reject_where_the_layout_says_split(desk: Any) -> None:
    desk.put({"pets/train/1.jpg": JPEG, "pets/stray.jpg": JPEG})
    screen = desk.convert("pets", "--set", "input.layout=split", "--max-rejects", "1")
    assert (screen.code, splits(desk)) == (0, {"train": 1})
    assert "pets/stray.jpg: DECLARED_NOT_NULL: no split folder holds the image; move it into one" in screen.out


def test_folders_that_hold_parts_of_each_example_are_asked_about(desk: Any) -> None:
    desk.put({"roads/images/1.jpg": JPEG, "roads/masks/1.png": PNG})
    screen = desk.convert("roads")
    said = (
        'error: it is unclear what the folders mean: "images", "masks" look like parts of each example, not classes; '
        "read one"
    )
    assert (screen.code, screen.err.startswith(said)) == (2, True)
    assert desk.convert("roads/images").code == 0


def test_annotations_beside_the_one_folder_of_their_pictures_are_read(desk: Any) -> None:
    box = {"id": 1, "image_id": 1, "category_id": 0, "bbox": [1, 1, 4, 4], "area": 16, "iscrowd": 0}
    pictures = [{"id": 1, "file_name": "1.jpg", "width": 8, "height": 8}]
    coco = {"images": pictures, "annotations": [box], "categories": [{"id": 0, "name": "car"}]}
    desk.put({"roads/images/1.jpg": JPEG, "roads/instances.json": json.dumps(coco).encode()})
    done = desk.convert("roads")
    assert done.code == 0, done.err
    assert "image/object/bbox/xmin" in done.out


GLOBBED = {
    "folders of classes": (["cat/1", "cat/2", "dog/1"], ["pets/cat", "pets/dog"]),
    "a quoted glob of folders": (["cat/1", "cat/2", "dog/1"], ["pets/*"]),
    "a quoted glob of files": (["cat/1", "cat/2", "dog/1"], ["pets/*/*.jpg"]),
    "files, as the shell names them": (["cat/1", "dog/1"], ["pets/cat/1.jpg", "pets/dog/1.jpg"]),
}


@pytest.mark.parametrize("case", GLOBBED)
def test_a_glob_of_class_folders_is_read_as_the_folder_that_holds_them(desk: Any, case: str) -> None:
    names, paths = GLOBBED[case]
    beside = {"pets/README.txt": b"hello", "pets/empty/notes.md": b"hello", "pets/__MACOSX/._1.jpg": b"junk"}
    desk.put({**{f"pets/{name}.jpg": draw(i) for i, name in enumerate(names)}, **beside})
    screen = desk.convert(*paths)
    assert (screen.code, screen.err) == (0, "")
    assert texts(desk) == {f"{name}.jpg": name.split("/")[0] for name in names}
    assert "2 classes" in screen.out


def test_a_shells_glob_may_find_a_folder_without_pictures_and_files_that_are_none(desk: Any) -> None:
    desk.put({"pets/cat/1.jpg": JPEG, "pets/dog/1.jpg": JPEG, "pets/LICENSE": b"MIT"})
    (desk.root / "pets/fish").mkdir()
    screen = desk.convert("pets/LICENSE", "pets/cat", "pets/dog", "pets/fish")
    assert (screen.code, screen.err) == (0, "")
    assert "2 written, 0 rejected\nLeft out: 1 empty folder, 1 without a suffix\n" in screen.out


def test_what_a_glob_finds_beside_the_folders_is_counted(desk: Any) -> None:
    beside = {"pets/README.txt": b"hello", "pets/empty/notes.md": b"hello", "pets/__MACOSX/1.jpg": b"junk"}
    desk.put({"pets/a/1.jpg": JPEG, "pets/b/1.jpg": JPEG, **beside})
    assert "\nLeft out: 1 .md, 1 .txt, 1 empty folder, 1 junk\n" in desk.convert("pets/*").out


@pytest.mark.parametrize("paths", [["train/*", "val/*"], ["train/cat", "val/cat"], ["train", "val"], ["*"]])
def test_globs_of_the_folders_of_splits_keep_splits_and_classes(desk: Any, paths: list[str]) -> None:
    desk.put({"train/cat/1.jpg": JPEG, "val/cat/1.jpg": JPEG})
    assert desk.convert(*paths).code == 0
    assert splits(desk) == {"train": 1, "val": 1}
    assert texts(desk) == {"train/cat/1.jpg": "cat", "val/cat/1.jpg": "cat"}


def test_globs_of_the_files_of_splits_keep_the_splits(desk: Any) -> None:
    desk.put({"train/1.jpg": JPEG, "val/1.jpg": JPEG})
    assert desk.convert("train/*.jpg", "val/*.jpg").code == 0
    assert (splits(desk), sorted(texts(desk))) == ({"train": 1, "val": 1}, ["train/1.jpg", "val/1.jpg"])


def test_folders_of_classes_that_are_named_keep_their_classes_and_their_pictures_get_names_of_their_own(
    desk: Any,
) -> None:
    desk.put({"2023/cat/1.jpg": JPEG, "2024/cat/1.jpg": JPEG})
    assert desk.convert("2023", "2024").code == 0
    assert texts(desk) == {"2023/cat/1.jpg": "cat", "2024/cat/1.jpg": "cat"}


@pytest.mark.parametrize("paths", [["a/x", "b/y/z"], ["a/*", "train/*"], ["p.jpg", "a/x"]])
def test_a_glob_of_folders_that_can_mean_two_things_is_asked_about(desk: Any, paths: list[str]) -> None:
    desk.put({f"{name}/1.jpg": JPEG for name in ["a/x", "b/y/z", "train/x"]} | {"p.jpg": JPEG})
    screen = desk.convert(*paths)
    assert (screen.code, screen.err.startswith("error: it is unclear what the folders mean: ")) == (2, True)


def test_input_ignore_holds_for_folders_that_are_named(desk: Any) -> None:
    desk.put({f"pets/{name}/1.jpg": JPEG for name in ["cat", "dog", "draft"]})
    assert desk.convert("pets/*", "--set", "input.ignore=[draft, dog/1.jpg]").code == 0
    assert (texts(desk), counts(desk)) == ({"cat/1.jpg": "cat"}, (1, {"ignored": 2, "empty": 1}))


def test_a_dataset_among_the_folders_that_a_glob_finds_is_left_out(desk: Any) -> None:
    desk.put({"cat/1.jpg": JPEG, "dog/1.jpg": JPEG})
    assert desk.convert("*").code == 0
    again = desk.convert("*", "--set", "input.format=images")
    assert (again.code, "Nothing to do" in again.out) == (0, True)


def test_an_append_of_the_glob_holds_what_the_dataset_got_from_the_folder(desk: Any) -> None:
    desk.put({"pets/cat/1.jpg": JPEG, "pets/dog/1.jpg": PNG})
    assert desk.convert("pets").code == 0
    desk.put({"pets/cat/2.jpg": draw(2), "pets/emu/1.jpg": draw(3)})
    with pytest.raises(SystemExit) as ended:
        main(["append", "pets/*", "-o", "out", "--workers", "1"])
    assert ended.value.code == 0
    assert texts(desk) == {"cat/1.jpg": "cat", "dog/1.jpg": "dog", "cat/2.jpg": "cat", "emu/1.jpg": "emu"}
    assert len(desk.records()) == 4


def test_an_append_knows_pictures_that_a_dataset_has_under_shorter_names(desk: Any) -> None:
    desk.put({"a/cat/1.jpg": JPEG, "b/cat/1.jpg": PNG})
    assert desk.convert("a").code == 0
    desk.put({"a/cat/2.jpg": draw(2)})
    with pytest.raises(SystemExit) as ended:
        main(["append", "a", "b", "-o", "out", "--workers", "1"])
    assert ended.value.code == 0
    assert sorted(row["image/filename"] for row in desk.records()) == ["a/cat/2.jpg", "b/cat/1.jpg", "cat/1.jpg"]


def test_a_webp_among_jpegs_is_counted_with_what_it_does_to_tfds_and_what_to_do(desk: Any) -> None:
    desk.put({"pets/1.jpg": JPEG, "pets/2.webp": draw(kind="WEBP"), "pets/3.jpg": draw(kind="WEBP")})
    said = (
        "Warning: webp images, which TFDS does not decode, so that it gives image/encoded of all records as bytes, not "
        "pixels; write all as JPEG or PNG (--set image.encode.format=jpeg): 2"
    )
    desk.assert_accepted(["pets"], [said], lambda found: None)
    features = json.loads((desk.root / "out/features.json").read_text())
    assert "image_feature" not in json.dumps(features)
    screen = desk.convert(
        "pets", "--set", "input.formats=[jpeg,png,bmp]", "--max-rejects", "2", "--set", "output.if_exists=replace"
    )
    assert (screen.code, "Warning" in screen.out) == (0, False)
    assert "image_feature" in (desk.root / "out/features.json").read_text()


def test_notes_and_lists_beside_class_folders_are_skipped_and_counted(desk: Any) -> None:
    desk.put({"pets/cat/1.jpg": JPEG, "pets/dog/1.jpg": JPEG, "pets/README": b"hi", "pets/labels.csv": b"a,b\n1,2\n"})
    screen = desk.convert("pets/README", "pets/cat", "pets/dog", "pets/labels.csv")
    assert (screen.code, "\nLeft out: 1 .csv, 1 without a suffix\n" in screen.out) == (0, True)
    assert len(desk.records()) == 2
