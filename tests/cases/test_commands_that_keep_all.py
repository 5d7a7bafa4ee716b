"""The command or line of Python on the screen reads all that is there: pairs, splits, labels, every folder."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from shardmill.transforms.dataset.reading.open_dataset import open_dataset

from ..command_line import Screen, Shardmill, need_program


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def make(files: dict[str, Any]) -> None:
    """Write files: texts, and pictures of a color that is their number."""
    for name, content in files.items():
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, int):
            Image.new("RGB", (4, 3), (content, 0, 0)).save(path.with_suffix(".png"))
            path.with_suffix(".png").rename(path)
        else:
            path.write_text(content)


def type_in(words: str, shardmill: Shardmill) -> None:
    done = shardmill(*shlex.split(words))
    assert done.code == 0, done.err


def follow(screen: Screen, start: str, shardmill: Shardmill) -> None:
    """Do what the line of the screen says that has this start: first in Python, then in the shell."""
    (line,) = [one for one in (screen.err + screen.out).splitlines() if start in one]
    said = line[line.index(start) :]
    if python := re.search(r"in Python(?: \([^()]*\))*: (.*?)(?:; then: |$)", said):
        exec(python[1].partition("; if it is meant so: ")[0], {})
    if command := re.search(r"(?:then|read them|read it|how to read them(?: \(.*\))?): shardmill (.*)", said):
        type_in(command[1], shardmill)


def reds(split: str, column: str) -> dict[int, Any]:
    """Return a column of a split by the color of the picture of its row."""
    found = {}
    for row in open_dataset("out")[split]:
        name = next(key for key in row if key.endswith("/encoded") or key == "image")
        picture = Path("picture.png")
        picture.write_bytes(row[name])
        found[Image.open(picture).getpixel((0, 0))[0]] = row[column]
    return found


TABLES = {
    "names without a suffix": (
        "image_id,dx\nI_0,nv\nI_1,bkl\nI_2,007\n",
        {"d/part_1/I_0.png": 0, "d/part_1/I_0.txt": "a note", "d/part_1/I_2.png": 2, "d/part_2/I_1.png": 1},
        {"train": {0: "nv", 1: "bkl", 2: "007"}},
    ),
    "names with one": (
        "image_id;dx\nI_0.png;nv\nI_1.png;bkl\n",
        {"d/images_001/images/I_0.png": 0, "d/images_002/images/I_1.png": 1},
        {"train": {0: "nv", 1: "bkl"}},
    ),
    "paths in folders of splits": (
        "image_id,dx\ntrain/0.png,nv\ntest/0.png,bkl\n",
        {"d/train/0.png": 0, "d/test/0.png": 1},
        {"train": {0: "nv"}, "test": {1: "bkl"}},
    ),
    "paths in folders of splits in another": (
        "image_id,dx\ntrain/0,nv\ntest/0,bkl\n",
        {"d/images/train/0.png": 0, "d/images/test/0.png": 1},
        {"train": {0: "nv"}, "test": {1: "bkl"}},
    ),
    "names in folders of splits": (
        "image_id,dx\n0.png,nv\n1.png,bkl\n",
        {"d/train/0.png": 0, "d/test/1.png": 1},
        {"train": {0: "nv"}, "test": {1: "bkl"}},
    ),
}


@pytest.mark.parametrize("case", TABLES)
def test_a_table_of_pictures_in_several_folders_is_read_with_all_of_them(case: str, shardmill: Shardmill) -> None:
    table, files, expected = TABLES[case]
    make({"d/the_metadata.csv": table, **files})
    follow(shardmill("convert", "d", "-o", "out"), "d/the_metadata.csv names pictures", shardmill)
    assert {split: reds(split, "dx") for split in open_dataset("out").splits} == expected


LISTS = {
    "texts": ("list.txt", "train/0.png cat\ntest/1.png dog\ntrain/2.png dog\n", "", ("cat", "dog", "dog")),
    "numbers": ("files.txt", "train/0.png\t5\ntest/1.png\t6\ntrain/2.png\t6\n", "", (5, 6, 6)),
    "without suffixes, in another folder": (
        "labels.txt", "train/0  cat\ntest/1  dog\ntrain/2  dog\n", "images/", ("cat", "dog", "dog"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", LISTS)
def test_a_list_whose_paths_begin_in_folders_of_splits_is_read_with_these(case: str, shardmill: Shardmill) -> None:
    name, text, inner, classes = LISTS[case]
    make({f"d/{name}": text, **{f"d/{inner}{path}.png": n for n, path in enumerate(("train/0", "test/1", "train/2"))}})
    follow(shardmill("convert", "d", "-o", "out"), f"d/{name} lists pictures in folders of splits", shardmill)
    assert reds("train", "class") == {0: classes[0], 2: classes[2]}
    assert reds("test", "class") == {1: classes[1]}


ARRAYS = {
    "in one line": '[{"id": 1, "n": "007"}, {"id": 2, "n": "8"}]',
    "in one line for each object": '[{"id": 1, "n": "007"},\n{"id": 2, "n": "8"}]\n',
    "pretty": '[\n  {\n    "id": 1,\n    "n": "007"\n  },\n  {\n    "id": 2,\n    "n": "8"\n  }\n]\n',
}


@pytest.mark.parametrize("typed", ["d", "d/a.json", "d/*.json"])
@pytest.mark.parametrize("case", ARRAYS)
def test_an_array_of_json_is_read_by_the_only_line_that_is_said(case: str, typed: str, shardmill: Shardmill) -> None:
    make({"d/a.json": ARRAYS[case]})
    screen = shardmill("convert", typed, "-o", "out")
    assert "--format" not in screen.err
    assert "shardmill convert" not in screen.err
    follow(screen, "error:", shardmill)
    assert [dict(row) for row in open_dataset("out")["train"]] == [{"id": 1, "n": "007"}, {"id": 2, "n": "8"}]


def test_a_large_array_of_json_in_a_folder_is_read_by_the_line_that_is_said(
    shardmill: Shardmill, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shardmill.transforms.recognise.evidence.json_documents._MOST_JSON", 10)
    make({"d/a.json": ARRAYS["in one line"]})
    follow(shardmill("convert", "d", "-o", "out"), "error:", shardmill)
    assert [row["n"] for row in open_dataset("out")["train"]] == ["007", "8"]


PAIRS = {
    "words before splits": ("X_{}", "y_{}"),
    "words behind splits": ("{}_images", "{}_labels"),
    "a word for answers alone": ("{}", "{}_labels"),
    "folders of splits": ("{}/x", "{}/y"),
}


@pytest.mark.parametrize("shape", [(2,), (4, 3, 3)], ids=["vectors", "pictures"])
@pytest.mark.parametrize("case", PAIRS)
def test_arrays_of_features_and_answers_keep_their_pairs_and_splits(
    case: str, shape: tuple[int, ...], shardmill: Shardmill
) -> None:
    arrays = {split: np.arange(rows * np.prod(shape), dtype="u1").reshape(rows, *shape) for split, rows in SPLITS}
    for split, array in arrays.items():
        for name, content in zip(PAIRS[case], (array, np.arange(len(array)) * 10), strict=True):
            path = Path("d", f"{name.format(split)}.npy")
            path.parent.mkdir(parents=True, exist_ok=True)
            np.save(path, content)
    follow(shardmill("convert", "d", "-o", "out"), "error: d/", shardmill)
    dataset = open_dataset("out")
    assert {split: [row["y"] for row in dataset[split]] for split, _ in SPLITS} == {
        "train": [0, 10, 20],
        "test": [0, 10],
    }
    for split, array in arrays.items():
        assert [np.array(row["x"]).reshape(shape).tolist() for row in dataset[split]] == array.tolist()


SPLITS = (("train", 3), ("test", 2))


def test_arrays_of_other_numbers_of_rows_are_no_pair_and_one_without_answers_is_named(shardmill: Shardmill) -> None:
    Path("d").mkdir()
    for name, rows in (("X_a", 3), ("y_a", 2), ("X_b", 2), ("y_b", 2), ("X_c", 1)):
        np.save(f"d/{name}.npy", np.arange(rows))
    screen = shardmill("convert", "d", "-o", "out")
    assert "d/X_b.npy, d/y_b.npy: features and their answers in two arrays" in screen.err
    assert "(d/X_c.npy has no answers, and is left out) (d/X_a.npy, d/y_a.npy are left out)" in screen.err


FURTHER = {
    "words before splits": ("{}_train.npy", "{}_test.npy"),
    "words behind splits": ("train_{}.npy", "test_{}.npy"),
    "folders of splits": ("train/{}.npy", "test/{}.npy"),
}


@pytest.mark.parametrize("case", FURTHER)
def test_further_arrays_of_every_split_are_joined_and_others_are_named(case: str, shardmill: Shardmill) -> None:
    for name, (_, rows) in zip(FURTHER[case], SPLITS, strict=True):
        Path("d", name).parent.mkdir(parents=True, exist_ok=True)
        for word in ("X", "y", "subject"):
            np.save(f"d/{name.format(word)}", np.arange(rows) + (100 if word == "subject" else 0))
    others = [FURTHER[case][0].format("weight"), FURTHER[case][1].format("notes"), "classes.npy"]
    for name, content in zip(others, (np.arange(3), np.array(["a", None]), np.array(["no", "yes"])), strict=True):
        np.save(f"d/{name}", content)
    screen = shardmill("convert", "d", "-o", "out")
    assert f"in Python ({', '.join(sorted(f'd/{name}' for name in others))} are left out): " in screen.err
    follow(screen, "error: d/", shardmill)
    dataset = open_dataset("out")
    assert {split: [(row["y"], row["subject"]) for row in dataset[split]] for split, _ in SPLITS} == {
        "train": [(0, 100), (1, 101), (2, 102)],
        "test": [(0, 100), (1, 101)],
    }


def test_a_third_array_that_is_typed_with_a_pair_is_joined_too(shardmill: Shardmill) -> None:
    names = [f"{word}_train.npy" for word in ("X", "y", "subject")]
    for at, name in enumerate(names):
        np.save(name, np.array(["a", "b"]) if at == 2 else np.arange(2))
    follow(shardmill("convert", *names, "-o", "out"), "error: X_train.npy", shardmill)
    assert [(row["x"], row["y"], row["subject"]) for row in open_dataset("out")["train"]] == [(0, 0, "a"), (1, 1, "b")]


def test_arrays_of_objects_are_no_pair_since_numpy_does_not_load_them(shardmill: Shardmill) -> None:
    np.save("X.npy", np.arange(2))
    np.save("y.npy", np.array(["a", None]))
    screen = shardmill("convert", "X.npy", "y.npy", "-o", "out")
    assert screen.code
    assert "numpy.load" not in screen.err, screen.err


def test_pictures_of_kitti_without_labels_are_read_with_their_splits_and_without_classes(shardmill: Shardmill) -> None:
    make({"d/training/image_2/0.png": 0, "d/training/image_2/1.png": 1, "d/testing/image_2/2.png": 2})
    type_in("convert d -o out", shardmill)
    assert {split: [*reds(split, "image/format")] for split in open_dataset("out").splits} == {
        "testing": [2], "training": [0, 1],
    }  # fmt: skip
    assert open_dataset("out").manifest.labels == {}


def test_pictures_of_one_camera_of_kitti_are_no_class(shardmill: Shardmill) -> None:
    make({"d/image_2/0.png": 0})
    screen = shardmill("convert", "d", "-o", "out")
    type_in(re.findall(r"by its own path: shardmill (.*?);", screen.err)[0], shardmill)
    assert open_dataset("out").manifest.labels == {}


def test_pictures_of_kitti_alone_keep_their_splits(shardmill: Shardmill) -> None:
    make({"d/training/image_2/0.png": 0, "d/testing/image_2/2.png": 2})
    make({"d/training/label_2/0.txt": f"Car {' '.join(['0.5'] * 14)}\n"})
    screen = shardmill("convert", "d", "-o", "out")
    type_in(re.findall(r"the pictures alone: shardmill (.*)", screen.err)[0], shardmill)
    assert {split: [*reds(split, "image/format")] for split in open_dataset("out").splits} == {
        "testing": [2], "training": [0],
    }  # fmt: skip


SVM = {
    "words in names": ("digits.train.svm", "digits.test.svm"),
    "LIBSVM's own": ("a9a", "a9a.t"),
    "tr and t": ("dna.scale.tr", "dna.scale.t"),
}


@pytest.mark.parametrize("typed", ["d", "d/*"])
@pytest.mark.parametrize("case", SVM)
def test_libsvm_is_read_with_the_splits_of_its_files(case: str, typed: str, shardmill: Shardmill) -> None:
    make(dict(zip((f"d/{name}" for name in SVM[case]), ("1 1:2\n-1 3:4\n", "1 5:6\n"), strict=True)))
    follow(shardmill("convert", typed, "-o", "out"), "error:", shardmill)
    found = {split: [list(row["index"]) for row in open_dataset("out")[split]] for split in ("train", "test")}
    assert found == {"train": [[1], [3]], "test": [[5]]}


def arff(rows: str, comment: str = "") -> str:
    return f"@relation r\n{comment}@attribute a numeric\n@attribute c {{x,y}}\n@data\n{rows}"


def test_arff_is_read_with_the_splits_of_its_files(shardmill: Shardmill) -> None:
    make({"d/iris_train.arff": arff("1,x\n2,y\n"), "d/iris_test.arff": arff("3,y\n")})
    follow(shardmill("convert", "d", "-o", "out"), "error:", shardmill)
    assert {split: [row["a"] for row in open_dataset("out")[split]] for split in ("train", "test")} == {
        "train": [1, 2],
        "test": [3],
    }


def test_arff_with_other_heads_is_said_to_be_left_out(shardmill: Shardmill) -> None:
    make({"d/a_train.arff": arff("1,x\n2,y\n"), "d/a_test.arff": arff("3,y\n", "% text\n")})
    screen = shardmill("convert", "d", "-o", "out")
    assert "d/a_test.arff, d/a_train.arff have other heads each; to read the first: " in screen.err
    type_in(screen.err.partition("to read the first: shardmill ")[2], shardmill)
    assert [row["a"] for row in open_dataset("out")["test"]] == [3]


SMS = 'ham\tGo until jurong point\nspam\tFree entry in "2" a wkly comp\nham\tU dun say so early\n'


@pytest.mark.parametrize("typed", ["d", "d/SMSSpamCollection"])
def test_lines_whose_first_values_come_again_have_no_header(typed: str, shardmill: Shardmill) -> None:
    make({"d/SMSSpamCollection": SMS, "d/readme": "SMS Spam Collection v.1\n\n1. DESCRIPTION\n"})
    screen = shardmill("convert", typed, "-o", "out")
    if typed == "d":
        assert "(without readme)" in screen.err
        follow(screen, "error:", shardmill)
    else:
        options = re.findall(r"how to read it: (.*)", screen.err)[0]
        type_in(f"convert {typed} -o out {options}", shardmill)
    assert [tuple(row.values()) for row in open_dataset("out")["train"]] == [
        tuple(line.split("\t")) for line in SMS.splitlines()
    ]


VOC = (
    "<annotation><filename>{}.png</filename><object><name>cat</name><bndbox><xmin>1</xmin><ymin>1</ymin><xmax>3</xmax>"
)
VOC += "<ymax>2</ymax></bndbox></object></annotation>"
COCO = '{{"images": [{{"id": 1, "file_name": "{}.png"}}], "annotations": [{{"id": 1, "image_id": 1, "category_id": 1, '
COCO += '"bbox": [1, 1, 2, 1]}}], "categories": [{{"id": 1, "name": "cat"}}]}}'
EXPORTS: dict[str, dict[str, Any]] = {
    "YOLO": {
        "data.yaml": "train: ../train/images\nval: ../valid/images\nnames: [cat]\n",
        "train/images/0.png": 0, "train/labels/0.txt": "0 0.5 0.5 0.5 0.5\n",
        "valid/images/1.png": 1, "valid/labels/1.txt": "0 0.5 0.5 0.5 0.5\n",
    },
    "VOC": {
        "train/0.png": 0, "train/0.xml": VOC.format(0), "valid/1.png": 1, "valid/1.xml": VOC.format(1),
    },
    "COCO": {
        "train/0.png": 0, "train/_annotations.coco.json": COCO.format(0), "valid/1.png": 1,
        "valid/_annotations.coco.json": COCO.format(1),
    },
    "VOC's own": {
        f"VOCdevkit/VOC2012/{name}": content for name, content in {
            "Annotations/0.xml": VOC.format(0), "Annotations/1.xml": VOC.format(1), "JPEGImages/0.png": 0,
            "JPEGImages/1.png": 1, "ImageSets/Main/train.txt": "0\n", "ImageSets/Main/valid.txt": "1\n",
        }.items()
    },
}  # fmt: skip


def pack(archive: str, folder: str) -> None:
    files = sorted(str(one.relative_to(folder)) for one in Path(folder).rglob("*") if one.is_file())
    if archive.endswith(".zip"):
        with zipfile.ZipFile(archive, "w") as packed:
            for name in files:
                packed.write(f"{folder}/{name}", name)
    else:
        with tarfile.open(archive, "w:gz" if archive.endswith("gz") else "w") as tar:
            for name in files:
                tar.add(f"{folder}/{name}", name)
    shutil.rmtree(folder)


def unpack(screen: Screen, shardmill: Shardmill) -> None:
    said = re.findall(r"unpack it first: (.*) && shardmill (.*); to read its members", screen.err)
    assert said, screen.err
    for command in said[0][0].split(" && "):
        need_program(command.split()[0])
        subprocess.run(shlex.split(command), check=True, capture_output=True)
    type_in(said[0][1], shardmill)


@pytest.mark.parametrize("archive", ["pets.v1.zip", "pets.tar", "pets.tar.gz"])
@pytest.mark.parametrize("kind", EXPORTS)
def test_an_archive_of_pictures_with_boxes_is_unpacked_by_the_commands_that_are_said(
    kind: str, archive: str, shardmill: Shardmill
) -> None:
    make({f"d/{name}": content for name, content in EXPORTS[kind].items()})
    pack(archive, "d")
    screen = shardmill("convert", archive, "-o", "out")
    assert re.search(f"{re.escape(archive)}: holds (YOLO|Pascal VOC|COCO) annotations", screen.err)
    assert not Path("out").exists()
    unpack(screen, shardmill)
    for split, color in (("train", 0), ("valid", 1)):
        assert {key: list(boxes) for key, boxes in reds(split, "image/object/class/text").items()} == {color: ["cat"]}


def test_archives_of_splits_with_boxes_are_unpacked_by_the_commands_that_are_said(shardmill: Shardmill) -> None:
    Path("d").mkdir()
    for number, split in enumerate(("train", "valid")):
        make({f"x/images/{number}.png": number, f"x/labels/{number}.txt": "0 0.5 0.5 0.5 0.5\n"})
        pack(f"d/{split}.zip", "x")
    unpack(shardmill("convert", "d", "-o", "out", "--set", "input.splits=names"), shardmill)
    assert {split: [*reds(split, "image/object/class/label")] for split in ("train", "valid")} == {
        "train": [0], "valid": [1],
    }  # fmt: skip


def test_the_archives_of_coco_are_unpacked_into_one_folder(shardmill: Shardmill) -> None:
    Path("d").mkdir()
    for number, split in enumerate(("train", "val")):
        make({f"x/{split}2017/{number}.png": number})
        pack(f"d/{split}2017.zip", "x")
        make({f"y/annotations/instances_{split}2017.json": COCO.format(number)})
    pack("d/annotations_trainval2017.zip", "y")
    unpack(shardmill("convert", "d", "-o", "out", "--set", "input.splits=none"), shardmill)
    assert {split: [*reds(split, "image/object/class/label")] for split in ("train", "val")} == {
        "train": [0], "val": [1],
    }  # fmt: skip


def test_an_archive_of_roboflow_with_many_pictures_is_unpacked(shardmill: Shardmill) -> None:
    names = [f"cat_jpg.rf.{number:032x}" for number in range(300)]
    make({f"d/images/{name}.png": 5 for name in names} | {f"d/labels/{name}.txt": "0 0.5 0.5 1 1\n" for name in names})
    pack("pets.zip", "d")
    screen = shardmill("convert", "pets.zip", "-o", "out")
    assert "pets.zip: holds an export of Roboflow (images/cat_jpg.rf." in screen.err
    unpack(screen, shardmill)
    assert len([*open_dataset("out")["train"]]) == 300


def test_an_archive_of_pictures_with_a_table_is_unpacked(shardmill: Shardmill) -> None:
    make({"d/0.png": 0, "d/1.png": 1, "d/metadata.csv": "file_name,text\n0.png,zero\n1.png,one\n"})
    pack("pets.zip", "d")
    unpack(shardmill("convert", "pets.zip", "-o", "out"), shardmill)
    assert reds("train", "text") == {0: "zero", 1: "one"}


def test_members_of_an_archive_with_boxes_are_samples_where_nothing_is_to_be_detected(shardmill: Shardmill) -> None:
    make({"d/0.png": 0, "d/0.xml": VOC.format(0)})
    pack("pets.tar", "d")
    assert "unpack it first" in shardmill("convert", "pets.tar", "-o", "out").err
    type_in("convert pets.tar -o out --set input.detect=none", shardmill)
    assert reds("train", "xml") == {0: VOC.format(0).encode()}


@pytest.mark.parametrize("place", ["ImageSets/Main/", "", "Annotations/"])
def test_a_picture_that_only_a_list_beside_voc_names_stops_the_run(place: str, shardmill: Shardmill) -> None:
    make({f"d/JPEGImages/{n}.png": n for n in range(3)} | {f"d/Annotations/{n}.xml": VOC.format(n) for n in range(3)})
    make({f"d/{place}train.txt": "0\n1\n9\n", f"d/{place}val.txt": "2\n"})
    screen = shardmill("convert", "d", "-o", "out")
    assert f"d/{place}train.txt: names d/JPEGImages/9, which is not there" in screen.err
    Path(f"d/{place}train.txt").write_text("0\n1\n")
    type_in("convert d -o out", shardmill)
    assert {split: [*reds(split, "image/source_id")] for split in ("train", "val")} == {"train": [0, 1], "val": [2]}


@pytest.mark.parametrize("config", ["data.yaml", "classes.txt"])
def test_a_picture_that_only_a_list_beside_yolo_names_stops_the_run(config: str, shardmill: Shardmill) -> None:
    names = "train: train.txt\nval: val.txt\nnames: [cat]\n" if config == "data.yaml" else "cat\n"
    make({f"d/images/{n}.png": n for n in range(3)} | {f"d/labels/{n}.txt": "0 0.5 0.5 1 1\n" for n in range(3)})
    lists = {"d/train.txt": "./images/0.png\n./images/1.png\n./images/9.png\n", "d/val.txt": "./images/2.png\n"}
    make({f"d/{config}": names, **lists})
    screen = shardmill("convert", "d", "-o", "out")
    assert "d/train.txt: names d/images/9.png, which is not there" in screen.err
    assert not Path("out").exists()


FOOD = {
    "pies/0": "train.txt", "pies/1": "test.txt", "soups/2": "train.txt",
}  # fmt: skip


@pytest.mark.parametrize("suffix", ["", ".png"], ids=["stems", "names"])
def test_the_lists_of_splits_of_food_101_give_splits_and_classes(suffix: str, shardmill: Shardmill) -> None:
    make({f"d/images/{path}.png": number for number, path in enumerate(FOOD)} | {"d/meta/notes.txt": "by hand\n"})
    for name in ("train.txt", "test.txt"):
        make({f"d/meta/{name}": "".join(f"{path}{suffix}\n" for path, its in FOOD.items() if its == name)})
    screen = shardmill("convert", "d", "-o", "out")
    assert "\nnothing above reads d/meta/notes.txt\n" in screen.err
    follow(screen, "d/meta/test.txt, d/meta/train.txt say the splits", shardmill)
    assert {split: reds(split, "class") for split in ("train", "test")} == {
        "train": {0: "pies", 2: "soups"}, "test": {1: "pies"},
    }  # fmt: skip


def test_lists_of_splits_beside_folders_of_classes_give_the_splits(shardmill: Shardmill) -> None:
    make({f"d/{path}.png": number for number, path in enumerate(FOOD)})
    for name in ("train.txt", "test.txt"):
        make({f"d/{name}": "".join(f"{path}.png\n" for path, its in FOOD.items() if its == name)})
    follow(shardmill("convert", "d", "-o", "out"), "d/test.txt, d/train.txt say the splits", shardmill)
    assert {split: reds(split, "class") for split in ("train", "test")} == {
        "train": {0: "pies", 2: "soups"}, "test": {1: "pies"},
    }  # fmt: skip


def test_the_lists_of_cub_give_splits_and_classes(shardmill: Shardmill) -> None:
    names = [f"{path.replace('/', '/x_')}.png" for path in FOOD]
    make({f"d/CUB_200_2011/images/{name}": number for number, name in enumerate(names)})
    make({"d/CUB_200_2011/images.txt": "".join(f"{at} {name}\n" for at, name in enumerate(names, 1))})
    make({"d/CUB_200_2011/train_test_split.txt": "3 1\n2 0\n1 1\n", "d/CUB_200_2011/sizes.txt": "1 5\n"})
    screen = shardmill("convert", "d", "-o", "out")
    assert "\nnothing above reads d/CUB_200_2011/sizes.txt\n" in screen.err
    follow(screen, "d/CUB_200_2011/images.txt, d/CUB_200_2011/train_test_split.txt say", shardmill)
    assert {split: reds(split, "class") for split in ("train", "test")} == {
        "train": {0: "pies", 2: "soups"}, "test": {1: "pies"},
    }  # fmt: skip


def test_the_pictures_of_tiny_imagenet_get_the_classes_of_the_list_of_one_split(shardmill: Shardmill) -> None:
    make({"d/train/n01/images/n01_0.png": 0, "d/train/n02/images/n02_1.png": 1, "d/val/images/val_0.png": 2})
    make({"d/train/n01/n01_boxes.txt": "n01_0.png\t0\t0\t2\t2\n", "d/test/images/test_0.png": 9})
    make({"d/val/val_annotations.txt": "val_0.png\tn02\t0\t0\t2\t2\n", "d/words.txt": "n01\tfish\nn02\tfrog\n"})
    screen = shardmill("convert", "d", "-o", "out")
    assert re.search(r"\nnothing above reads .*d/words.txt", screen.err)
    follow(screen, "d/val/val_annotations.txt says the classes", shardmill)
    assert {split: reds(split, "class") for split in open_dataset("out").splits} == {
        "train": {0: "n01", 1: "n02"}, "val": {2: "n02"},
    }  # fmt: skip
