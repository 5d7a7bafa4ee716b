"""Pictures with boxes, in the layouts that tools write, become records with boxes and splits by one command."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from shardmill.transforms.dataset.reading.open_dataset import open_dataset
from shardmill.transforms.format.wording.hints import Set
from shardmill.transforms.inputs.contract.selection import Call
from shardmill.transforms.recognise.pictures.box_layouts import by_box_layout

from ..command_line import Shardmill


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def picture(path: str) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (40, 20)).save(path)


def write(path: str, text: str) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text)


def coco(path: str, names: list[str], *, first: int = 0) -> None:
    """Write one box for each picture: the first is a cat at x 4 to 24, the next a dog, and so on."""
    images = [{"id": first + n, "file_name": name, "width": 40, "height": 20} for n, name in enumerate(names)]
    objects: list[Any] = [
        {"id": first + n, "image_id": first + n, "category_id": n % 2, "bbox": [4, 5, 20, 10]}
        for n in range(len(names))
    ]
    classes = [{"id": 0, "name": "cat"}, {"id": 1, "name": "dog"}]
    write(path, json.dumps({"images": images, "annotations": objects, "categories": classes}))


def voc(path: str, name: str, label: str = "cat") -> None:
    box = "<bndbox><xmin>4</xmin><ymin>5</ymin><xmax>24</xmax><ymax>15</ymax></bndbox>"
    size = "<size><width>40</width><height>20</height></size>"
    write(path, f"<annotation><filename>{name}</filename>{size}<object><name>{label}</name>{box}</object></annotation>")


def yolo(path: str, label: int = 0) -> None:
    write(path, f"{label} 0.35 0.5 0.5 0.5\n")


def roboflow_coco(root: str) -> None:
    for split, count in (("train", 2), ("valid", 1), ("test", 1)):
        names = [f"{n}.jpg" for n in range(count)]  # the same names and ids in each
        coco(f"{root}/{split}/_annotations.coco.json", names)
        for name in names:
            picture(f"{root}/{split}/{name}")
    write(f"{root}/README.roboflow.txt", "made up")


def roboflow_yolo(root: str) -> None:
    for split, count in (("train", 2), ("valid", 1), ("test", 1)):
        for n in range(count):
            picture(f"{root}/{split}/images/{n}.jpg")
            yolo(f"{root}/{split}/labels/{n}.txt", n % 2)
    write(f"{root}/data.yaml", "train: ../train/images\nval: ../valid/images\nnc: 2\nnames: ['cat', 'dog']\n")


def roboflow_voc(root: str) -> None:
    for split, count in (("train", 2), ("valid", 1), ("test", 1)):
        for n in range(count):
            picture(f"{root}/{split}/{n}.jpg")
            voc(f"{root}/{split}/{n}.xml", f"{n}.jpg", ["cat", "dog"][n % 2])


def ultralytics(root: str) -> None:
    for split, count in (("train", 2), ("valid", 1), ("test", 1)):
        for n in range(count):
            picture(f"{root}/images/{split}/{split}{n}.jpg")
            yolo(f"{root}/labels/{split}/{split}{n}.txt", n % 2)
    write(f"{root}/data.yaml", "path: .\ntrain: images/train\nval: images/valid\nnames: {0: cat, 1: dog}\n")


def ultralytics_by_its_name(root: str) -> None:
    ultralytics(root)
    Path(f"{root}/data.yaml").rename(f"{root}/pets.yaml")
    write(f"{root}/../birds.yaml", "path: birds\ntrain: images/train\nnames: [owl, jay]\n")


def coco_as_it_is(root: str) -> None:
    for first, (split, count) in enumerate((("train", 2), ("valid", 1), ("test", 1))):
        names = [f"{split}{n:012}.jpg" for n in range(count)]
        coco(f"{root}/annotations/instances_{split}.json", names, first=10 * first)
        for name in names:
            picture(f"{root}/{split}/{name}")


def voc_as_it_is(root: str) -> None:
    for n, label in enumerate(("cat", "dog", "cat", "cat")):
        picture(f"{root}/JPEGImages/{n}.jpg")
        voc(f"{root}/Annotations/{n}.xml", f"{n}.jpg", label)
    picture(f"{root}/SegmentationClass/0.png")
    lists = {"train": "0\n1\n", "val": "2\n", "test": "3\n", "trainval": "0\n1\n2\n", "cat_train": "0  1\n1 -1\n"}
    for name, lines in lists.items():
        write(f"{root}/ImageSets/Main/{name}.txt", lines)


def cvat_voc(root: str) -> None:
    for n, label in enumerate(("cat", "dog", "cat", "cat")):
        picture(f"{root}/JPEGImages/{n}.jpg")
        voc(f"{root}/Annotations/{n}.xml", f"{n}.jpg", label)
    lists = {"Train": "0\n1\n", "Valid": "2\n", "Test": "3\n", "cat_Train": "0  1\n1 -1\n"}
    for name, lines in lists.items():
        write(f"{root}/ImageSets/Main/{name}.txt", lines)


def cvat_yolo_splits(root: str) -> None:
    """CVAT has the folders of its server below those of the splits."""
    for split, count in (("train", 2), ("valid", 1), ("test", 1)):
        names = [f"obj_{split}_data/a/b/{n}" for n in range(count)]
        for n, name in enumerate(names):
            picture(f"{root}/{name}.jpg")
            yolo(f"{root}/{name}.txt", n)
        write(f"{root}/{split}.txt", "".join(f"data/{name}.jpg\n" for name in names))
    lists = "".join(f"{split} = data/{split}.txt\n" for split in ("train", "valid", "test"))
    write(f"{root}/obj.data", f"classes = 2\n{lists}names = data/obj.names\nbackup = backup/\n")
    write(f"{root}/obj.names", "cat\ndog\n")


SPLIT = {
    "Roboflow's COCO": roboflow_coco,
    "Roboflow's YOLO": roboflow_yolo,
    "Roboflow's VOC": roboflow_voc,
    "Ultralytics": ultralytics,
    "Ultralytics, pets.yaml": ultralytics_by_its_name,
    "COCO": coco_as_it_is,
    "VOC with ImageSets": voc_as_it_is,
    "CVAT's VOC": cvat_voc,
    "CVAT's YOLO": cvat_yolo_splits,
}

SIZES = {"train": 2, "valid": 1, "test": 1}


def commands_in(screen: str) -> list[list[str]]:
    line = next(one for one in screen.splitlines() if "&& shardmill" in one)
    return [shlex.split(one)[1:] for one in line[line.index("shardmill convert") :].split(" && ")]


def choices_in(screen: str) -> list[list[str]]:
    return [shlex.split(one.partition("shardmill ")[2]) for one in screen.splitlines() if one[:2] == "  "]


def boxes(dataset: str, split: str) -> list[tuple[list[float], list[str]]]:
    rows = open_dataset(dataset).to_arrow(split).to_pylist()
    sides = [f"image/object/bbox/{side}" for side in ("xmin", "ymin", "xmax", "ymax")]
    found = [(row[sides[0]] + row[sides[1]] + row[sides[2]] + row[sides[3]], row) for row in rows]
    return [([round(value, 3) for value in box], row["image/object/class/label"]) for box, row in found]


BOX = [0.1, 0.25, 0.6, 0.75]


@pytest.mark.parametrize("layout", SPLIT)
def test_a_root_with_splits_gives_all_of_them_with_boxes_and_classes(layout: str, shardmill: Shardmill) -> None:
    SPLIT[layout]("pets")
    done = shardmill("convert", "pets", "-o", "out")
    assert done.code == 0, done.err
    assert "annotations in pets/" in done.out
    valid = "val" if layout == "VOC with ImageSets" else "valid"
    assert {name: one.records for name, one in open_dataset("out").manifest.splits.items()} == {
        "test": 1,
        "train": 2,
        valid: 1,
    }
    assert boxes("out", "train") == [(BOX, ["cat"]), (BOX, ["dog"])]
    assert boxes("out", "test") == boxes("out", valid) == [(BOX, ["cat"])]
    assert "cat 3 (" in done.out
    assert "may list the pictures" not in done.out
    assert "which are not read" not in done.out
    assert "Left out" not in done.out


def beside(root: str, of: str) -> None:
    for n in range(2):
        picture(f"{root}/{n}.jpg")
    match of:
        case "coco":
            coco(f"{root}/_annotations.coco.json", ["0.jpg", "1.jpg"])
        case "voc":
            voc(f"{root}/0.xml", "0.jpg")
            voc(f"{root}/1.xml", "1.jpg", "dog")
        case "yolo":
            yolo(f"{root}/0.txt")
            yolo(f"{root}/1.txt", 1)
            write(f"{root}/classes.txt", "cat\ndog\n")


def cvat_yolo(root: str) -> None:
    beside(f"{root}/obj_train_data", "yolo")
    Path(f"{root}/obj_train_data/classes.txt").rename(f"{root}/obj.names")
    write(f"{root}/obj.data", "classes = 2\ntrain = data/train.txt\nnames = data/obj.names\n")
    write(f"{root}/train.txt", "data/obj_train_data/0.jpg\ndata/obj_train_data/1.jpg\n")


def in_folders(root: str, of: str) -> None:
    for n in range(2):
        picture(f"{root}/images/{n}.jpg")
    match of:
        case "coco":
            coco(f"{root}/annotations/instances_default.json", ["0.jpg", "1.jpg"])
        case "label studio":
            coco(f"{root}/result.json", ["images/0.jpg", "images/1.jpg"])
        case "voc":
            voc(f"{root}/Annotations/0.xml", "0.jpg")
            voc(f"{root}/Annotations/1.xml", "1.jpg", "dog")
        case "yolo":
            yolo(f"{root}/labels/0.txt")
            yolo(f"{root}/labels/1.txt", 1)
            write(f"{root}/classes.txt", "cat\ndog\n")
            write(f"{root}/notes.json", "{}")


ONE = {
    "Roboflow's COCO, one split": lambda root: beside(root, "coco"),
    "LabelImg's VOC": lambda root: beside(root, "voc"),
    "LabelImg's YOLO": lambda root: beside(root, "yolo"),
    "CVAT's YOLO": cvat_yolo,
    "CVAT's COCO": lambda root: in_folders(root, "coco"),
    "Label Studio's COCO": lambda root: in_folders(root, "label studio"),
    "Label Studio's VOC": lambda root: in_folders(root, "voc"),
    "Label Studio's YOLO": lambda root: in_folders(root, "yolo"),
}


@pytest.mark.parametrize("layout", ONE)
def test_a_root_without_splits_gives_its_boxes_and_classes(layout: str, shardmill: Shardmill) -> None:
    ONE[layout]("my pets")
    done = shardmill("convert", "my pets", "-o", "out")
    assert done.code == 0, done.err
    assert boxes("out", "train") == [(BOX, ["cat"]), (BOX, ["dog"])]
    assert "Classes of image/object/class/label: cat 1, dog 1" in done.out
    assert "Left out" not in done.out
    assert "no row names" not in done.out


@pytest.mark.parametrize("layout", SPLIT)
def test_the_pictures_alone_are_read_with_the_key_that_is_on_the_screen(layout: str, shardmill: Shardmill) -> None:
    SPLIT[layout]("pets")
    done = shardmill("convert", "pets", "-o", "out")
    assert str(Set("input.detect", "none")) in done.out
    alone = shardmill("convert", "pets", "-o", "alone", "--set", "input.detect=none")
    assert alone.code == 0, alone.err
    assert "image/object/bbox/xmin" not in open_dataset("alone").to_arrow("train").column_names


@pytest.mark.parametrize("layout", SPLIT)
def test_an_append_of_such_a_root_is_read_as_the_first_one(layout: str, shardmill: Shardmill) -> None:
    SPLIT[layout]("pets")
    SPLIT[layout]("more")
    for path in (*Path("more").rglob("*.jpg"), *Path("more").rglob("*.png")):
        Image.new("RGB", (40, 20), "red").save(path)
    assert shardmill("convert", "pets", "-o", "out").code == 0
    done = shardmill("append", "more", "-o", "out")
    assert done.code == 0, done.err
    assert {one.records for name, one in open_dataset("out").manifest.splits.items() if name != "train"} == {2}
    assert boxes("out", "train") == [(BOX, ["cat"]), (BOX, ["dog"])] * 2


def test_lists_of_splits_leave_out_what_they_do_not_name_and_say_so(shardmill: Shardmill) -> None:
    voc_as_it_is("pets")
    Path("pets/ImageSets/Main/test.txt").unlink()
    done = shardmill("convert", "pets", "-o", "out")
    assert done.code == 0, done.err
    assert "1 file that no list of a split names is left out" in done.out
    assert sorted(open_dataset("out").splits) == ["train", "val"]


def test_a_picture_in_the_lists_of_two_splits_is_an_error_that_names_it(shardmill: Shardmill) -> None:
    voc_as_it_is("pets")
    write("pets/ImageSets/Main/val.txt", "1\n2\n")
    refused = shardmill("convert", "pets", "-o", "out")
    assert refused.code == 2
    assert 'pets/ImageSets/Main/val.txt: "1" is in train.txt too' in refused.err


def test_folders_of_labels_with_other_classes_are_refused(shardmill: Shardmill) -> None:
    for split in ("train", "valid"):
        picture(f"pets/{split}/images/0.jpg")
        yolo(f"pets/{split}/labels/0.txt")
        write(f"pets/{split}/labels/classes.txt", f"{split}\n")
    refused = shardmill("convert", "pets", "-o", "out")
    assert refused.code == 1
    assert "files of labels have other classes in one folder (train) than in another (valid)" in refused.err


@pytest.mark.parametrize("more", [{"layout": "flat"}, {"labels": ["a"]}, {"metadata": "none"}, {"detect": "none"}])
def test_what_the_user_says_of_the_folders_comes_before_the_layout(more: dict[str, Any]) -> None:
    roboflow_coco("pets")
    assert by_box_layout({"format": "images"}, ["pets"], "", Call()) is not None
    assert by_box_layout({"format": "images"} | more, ["pets"], "", Call()) is None


def test_class_folders_with_files_of_annotations_in_them_are_no_layout() -> None:
    for name in ("cat", "dog"):
        beside(f"pets/{name}", "voc")
    assert by_box_layout({"format": "images"}, ["pets"], "", Call()) is None


def test_annotations_of_two_kinds_are_left_to_the_user() -> None:
    roboflow_coco("pets")
    voc("pets/train/0.xml", "0.jpg")
    assert by_box_layout({"format": "images"}, ["pets"], "", Call()) is None


@pytest.mark.parametrize("text", ["a cat on a mat\n", "", "0 0.5\n", "\n\ncat 0.5 0.5 0.1 0.1\n"])
def test_texts_that_are_no_boxes_beside_pictures_are_no_layout(text: str) -> None:
    picture("pets/images/0.jpg")
    write("pets/labels/0.txt", text)
    picture("more/0.jpg")
    write("more/0.txt", text)
    write("more/classes.txt", "cat\n")
    assert [by_box_layout({"format": "images"}, [root], "", Call()) for root in ("pets", "more")] == [None, None]


def test_the_first_label_file_may_be_empty() -> None:
    for n in range(2):
        picture(f"pets/images/{n}.jpg")
    write("pets/labels/0.txt", "")
    yolo("pets/labels/1.txt")
    assert by_box_layout({"format": "images"}, ["pets"], "", Call()) is not None


def yolo_set(root: str, folder: str = "images", *names: str) -> None:
    """Write a picture for each name with a box, of a cat, a dog, and so on."""
    for n, name in enumerate(names):
        picture(f"{root}/{folder}/{name}.jpg")
        yolo(f"{root}/{folder.replace('images', 'labels')}/{name}.txt", n % 2)


def data_yaml(root: str, text: str) -> None:
    write(f"{root}/data.yaml", f"{text}\nnames:\n  0: cat\n  1: dog\n")


def ultralytics_list(root: str) -> None:
    yolo_set(root, "images", "a", "b", "c", "x", "e")
    write(f"{root}/train.txt", "./images/a.jpg\n./images/b.jpg\n")
    write(f"{root}/val.txt", "./images/c.jpg\n")
    write(f"{root}/test.txt", "./images/e.jpg\n")
    data_yaml(root, "path: ../datasets/pets  # dataset root dir\ntrain: train.txt\nval: val.txt\ntest: test.txt")


def ultralytics_folders(root: str) -> None:
    yolo_set(root, "sets/one/images", "a")
    yolo_set(root, "sets/two/images", "b")
    yolo(f"{root}/sets/two/labels/b.txt", 1)
    yolo_set(root, "sets/three/images", "c")
    yolo_set(root, "sets/four/images", "d")
    folders = "train:\n  - one/images\n  - two/images\nval: three/images\ntest: [four/images]"
    data_yaml(root, f"path: sets\n{folders}")


def cvat_ultralytics(root: str) -> None:
    for split, names in (("train", ("a", "b")), ("val", ("c",)), ("test", ("d",))):
        yolo_set(root, f"images/{split}", *names)
        write(f"{root}/{split}.txt", "".join(f"data/images/{split}/{name}.jpg\n" for name in names))
    data_yaml(root, "path: .\ntrain: train.txt\nval: val.txt\ntest: test.txt")


def without_folder_images(root: str) -> None:
    """Ultralytics' labels are beside pictures where no folder is called `images`."""
    for split, names in (("tr", ("a", "b")), ("va", ("c",)), ("te", ("d",))):
        yolo_set(root, split, *names)
    data_yaml(root, "train: tr\nval: va\ntest: te")


BY_CONFIG = {
    "lists of pictures": ultralytics_list,
    "lists of folders": ultralytics_folders,
    "CVAT's lists": cvat_ultralytics,
    "labels beside pictures": without_folder_images,
}


@pytest.mark.parametrize("layout", BY_CONFIG)
def test_a_data_yaml_says_which_pictures_are_of_which_split(layout: str, shardmill: Shardmill) -> None:
    BY_CONFIG[layout]("pets")
    BY_CONFIG[layout]("more")
    for path in Path("more").rglob("*.jpg"):
        Image.new("RGB", (40, 20), "red").save(path)
    done = shardmill("convert", "pets", "-o", "out")
    assert done.code == 0, done.err
    for times in (1, 2):
        assert boxes("out", "train") == [(BOX, ["cat"]), (BOX, ["dog"])] * times
        assert boxes("out", "val") == boxes("out", "test") == [(BOX, ["cat"])] * times
        if times == 1:
            added = shardmill("append", "more", "-o", "out")
            assert added.code == 0, added.err
    assert open_dataset("out").labels == {"image/object/class/label": ("cat", "dog")}
    one = shardmill("convert", "pets", "-o", "one", "--set", "input.splits=none")
    assert one.code == 0, one.err
    assert open_dataset("one").splits == ("train",)


def test_a_picture_in_two_lists_of_a_data_yaml_is_an_error_that_names_it(shardmill: Shardmill) -> None:
    ultralytics_list("pets")
    write("pets/val.txt", "./images/b.jpg\n")
    refused = shardmill("convert", "pets", "-o", "out")
    assert refused.code == 2
    assert 'pets/val.txt: "b" is in train.txt too' in refused.err


def test_coco_s_years_are_no_part_of_the_splits(shardmill: Shardmill) -> None:
    for first, split in enumerate(("train2017", "val2017")):
        coco(f"pets/annotations/instances_{split}.json", [f"{split}.jpg"], first=10 * first)
        picture(f"pets/{split}/{split}.jpg")
    assert shardmill("convert", "pets", "-o", "out").code == 0
    assert sorted(open_dataset("out").splits) == ["train", "val"]


@pytest.mark.parametrize(
    ("files", "folders"),
    [
        (("instances_train2017", "instances_val2017"), ("images/train2017/", "images/val2017/")),
        (("instances_Train", "instances_Val"), ("images/Train/", "images/Val/")),
        (("instances_train", "instances_val"), ("images/", "images/")),
        (("train", "val"), ("images/", "images/")),
        (("pets_train", "pets_val"), ("images/train/", "images/val/")),
        (("instances_default",), ("images/Train/", "images/Val/")),
    ],
)
def test_coco_s_splits_are_those_of_its_files_or_of_the_folders_in_images(
    files: tuple[str, ...], folders: tuple[str, ...], shardmill: Shardmill
) -> None:
    names = [f"{folder}{n}.jpg" for n, folder in enumerate(folders)]
    for name in names:
        picture(f"pets/{name}")
    if len(files) == 1:
        coco(f"pets/annotations/{files[0]}.json", [name.removeprefix("images/") for name in names])
    for first, (file, name) in enumerate(zip(files, names, strict=False) if len(files) > 1 else ()):
        coco(f"pets/annotations/{file}.json", [Path(name).name], first=10 * first)
    done = shardmill("convert", "pets", "-o", "out")
    assert done.code == 0, done.err
    assert {name: one.records for name, one in open_dataset("out").manifest.splits.items()} == {"train": 1, "val": 1}


@pytest.mark.parametrize("above", ["VOC2012", "VOCdevkit/VOC2012"])
@pytest.mark.parametrize("layout", ["VOC", "COCO", "YOLO"])
def test_a_root_may_be_a_folder_or_two_further_down(above: str, layout: str, shardmill: Shardmill) -> None:
    root = f"sets/{above}"
    if layout == "COCO":
        coco_as_it_is(root)
    for split, name in (("train", "0"), ("val", "1")) if layout != "COCO" else ():
        folders = ("JPEGImages", "Annotations") if layout == "VOC" else (f"images/{split}", f"labels/{split}")
        picture(f"{root}/{folders[0]}/{name}.jpg")
        if layout == "VOC":
            voc(f"{root}/Annotations/{name}.xml", f"{name}.jpg")
            write(f"{root}/ImageSets/Main/{split}.txt", f"{name}\n")
            write("sets/VOCcode/read.m", "%")
        else:
            yolo(f"{root}/labels/{split}/{name}.txt")
    write("sets/README.txt", "about")
    done = shardmill("convert", "sets", "-o", "out")
    assert done.code == 0, done.err
    assert shardmill("convert", root, "-o", "alone").code == 0
    splits = open_dataset("out").splits
    assert splits == open_dataset("alone").splits
    assert len(splits) > 1
    assert all(boxes("out", split) == boxes("alone", split) for split in splits)


def test_one_class_folder_with_annotations_in_it_is_no_layout() -> None:
    picture("pets/cat/1.jpg")
    voc("pets/cat/1.xml", "1.jpg")
    assert by_box_layout({"format": "images"}, ["pets"], "", Call()) is None


def test_coco_s_files_of_splits_may_begin_their_ids_again(shardmill: Shardmill) -> None:
    for split in ("train", "val"):
        picture(f"pets/images/{split}.jpg")
        coco(f"pets/annotations/instances_{split}.json", [f"{split}.jpg"])
    done = shardmill("convert", "pets", "-o", "out")
    assert done.code == 0, done.err
    names = {one: open_dataset("out").to_arrow(one)["image/filename"].to_pylist() for one in ("train", "val")}
    assert names == {"train": ["train.jpg"], "val": ["val.jpg"]}


@pytest.mark.parametrize("escaped", ["\\u00e9.jpg", "\\u6771 \\u4eac.jpg", "a\\/b.jpg", "\\ud83d\\ude00.jpg"])
def test_names_of_pictures_may_have_escapes_of_json(escaped: str, shardmill: Shardmill) -> None:
    for split in ("train", "valid"):
        name = str(json.loads(f'"{escaped}"'))
        picture(f"pets/{split}/{name}")
        coco(f"pets/{split}/_annotations.coco.json", ["NAME"])
        file = Path(f"pets/{split}/_annotations.coco.json")
        file.write_text(file.read_text().replace("NAME", escaped))
    done = shardmill("convert", "pets", "-o", "out")
    assert done.code == 0, done.err
    assert boxes("out", "train") == boxes("out", "valid") == [(BOX, ["cat"])]


def test_the_first_picture_of_a_file_of_coco_s_may_be_missing_and_is_a_reject(shardmill: Shardmill) -> None:
    roboflow_coco("pets")
    Path("pets/train/0.jpg").unlink()
    refused = shardmill("convert", "pets", "-o", "out").err
    assert "MISSING_FILE" in refused
    assert "0.jpg" in refused
    done = shardmill("convert", "pets", "-o", "out", "--max-rejects", "1")
    assert done.code == 0, done.err
    assert boxes("out", "train") == [(BOX, ["dog"])]
    assert boxes("out", "valid") == boxes("out", "test") == [(BOX, ["cat"])]


def splits_of(name: str) -> dict[str, list[str]]:
    return {one: open_dataset(name).to_arrow(one)["image/filename"].to_pylist() for one in open_dataset(name).splits}


@pytest.mark.parametrize("above", ["", "images/"])
@pytest.mark.parametrize("extra", ["minival2017", "test-dev"])
def test_a_file_of_coco_s_whose_pictures_have_a_folder_of_its_name_is_a_split(
    extra: str, above: str, shardmill: Shardmill
) -> None:
    names = ["train2017", "val2017"]
    for name in (*names, extra):
        picture(f"pets/{above}{name}/{name}.jpg")
        coco(f"pets/annotations/instances_{name}.json", [f"{name}.jpg"])
    done = shardmill("convert", "pets", "-o", "out")
    assert done.code == 0, done.err
    own = {"minival2017": "minival", "test-dev": "test_dev"}[extra]
    splits = {"train": "train2017", "val": "val2017", own: extra}
    assert splits_of("out") == {split: [f"{name}/{name}.jpg"] for split, name in splits.items()}
    picture(f"more/{above}{extra}/other.jpg")
    coco(f"more/annotations/instances_{extra}.json", ["other.jpg"])
    assert shardmill("append", "more", "-o", "out").code == 0
    assert len(splits_of("out")[own]) == 2


@pytest.mark.parametrize("name", ["default", "images", "all"])
def test_a_file_of_coco_s_is_train_where_its_folder_has_the_name_of_a_set_that_is_not_cut(
    name: str, shardmill: Shardmill
) -> None:
    picture(f"pets/images/{name}/0.jpg")
    coco(f"pets/annotations/instances_{name}.json", ["0.jpg"])
    assert shardmill("convert", "pets", "-o", "out").code == 0
    assert [*splits_of("out")] == ["train"]


def test_files_of_coco_s_that_name_pictures_of_a_split_again_are_said_not_to_be_read(shardmill: Shardmill) -> None:
    for name in ("train2017", "val2017"):
        picture(f"pets/{name}/{name}.jpg")
        coco(f"pets/annotations/instances_{name}.json", [f"{name}.jpg"])
    for name in ("minival2014", "valminusminival2014"):
        coco(f"pets/annotations/instances_{name}.json", ["val2017.jpg"])
    done = shardmill("convert", "pets", "-o", "out")
    assert done.code == 0, done.err
    assert "instances_valminusminival2014.json: not read, as their pictures have other annotations" in done.out
    assert splits_of("out") == {"train": ["train2017/train2017.jpg"], "val": ["val2017/val2017.jpg"]}


@pytest.mark.parametrize("given", [[], ["--set", "input.annotations.coco=[{0}/instances_train.json, {0}/more.json]"]])
def test_some_files_of_coco_s_with_splits_in_their_names_stop_a_run_whose_commands_run(
    given: list[str], shardmill: Shardmill
) -> None:
    for name in ("train", "more"):
        picture(f"pets/images/{name}.jpg")
    coco("pets/annotations/instances_train.json", ["train.jpg"])
    coco("pets/annotations/more.json", ["more.jpg"])
    if not given:
        Path("pets/annotations/more.json").rename("pets/annotations/instances_more.json")
    more = [one.format("pets/annotations") for one in given]
    stopped = shardmill("convert", "pets/images" if given else "pets", *more, "-o", "out")
    assert stopped.code == 2
    assert "names of files state splits (instances_train.json), and others none (" in stopped.err
    own, all_in_one = [[word if word != "out" else "own" for word in one] for one in choices_in(stopped.err)]
    done = shardmill(*own)
    assert done.code == 0, done.err
    assert splits_of("own") == {"more": ["more.jpg"], "train": ["train.jpg"]}
    done = shardmill(*[word if word != "own" else "one" for word in all_in_one])
    assert done.code == 0, done.err
    assert splits_of("one") == {"train": ["more.jpg", "train.jpg"] if not given else ["train.jpg", "more.jpg"]}


def test_a_file_of_coco_s_and_its_folder_of_two_splits_stop_a_run_whose_commands_run(shardmill: Shardmill) -> None:
    for folder, name in (("train", "train"), ("test", "val")):
        picture(f"pets/{folder}/{folder}.jpg")
        coco(f"pets/{folder}/instances_{name}.json", [f"{folder}.jpg"])
    stopped = shardmill("convert", "pets", "-o", "out")
    assert stopped.code == 2
    assert "the names of files and the names of folders do not agree" in stopped.err
    by_file, by_folder = choices_in(stopped.err)
    for command, split in ((by_file, "val"), (by_folder, "test")):
        done = shardmill(*[split if word == "out" else word for word in command])
        assert done.code == 0, done.err
        assert splits_of(split) == {split: ["test/test.jpg"], "train": ["train/train.jpg"]}
    assert shardmill("convert", "pets", "-o", "all", "--split", "train").code == 0, "what the user says comes first"
    assert open_dataset("all").splits == ("train",)


def test_the_file_of_one_split_gives_its_pictures_beside_folders_of_others(shardmill: Shardmill) -> None:
    coco("pets/annotations/instances_val2017.json", ["0.jpg"])
    picture("pets/val2017/0.jpg")
    picture("pets/train2017/0.jpg")
    done = shardmill("convert", "pets", "-o", "out")
    assert done.code == 0, done.err
    assert open_dataset("out").splits == ("val",)


@pytest.mark.parametrize(
    ("line", "more", "said"),
    [
        ("0 0.1 0.25 0.6 0.25 0.6 0.75 0.1 0.75", "", ""),
        ("0 0.1 0.25 0.6 0.25 0.6 0.75 0.3 0.75 0.1 0.5", "", ""),
        ("0 0.35 0.5 0.5 0.5 0.2 0.3 2 0.4 0.5 1", "kpt_shape: [2, 3]\n", "objects with keypoints (kpt_shape), which"),
    ],
)
def test_oriented_boxes_and_polygons_have_masks_and_keypoints_are_counted(
    line: str, more: str, said: str, shardmill: Shardmill
) -> None:
    picture("pets/images/a.jpg")
    write("pets/labels/a.txt", f"{line}\n")
    data_yaml("pets", more)
    done = shardmill("convert", "pets", "-o", "out", "--set", "input.annotations.masks=true")
    assert done.code == 0, done.err
    assert boxes("out", "train") == [(BOX, ["cat"])]
    (row,) = open_dataset("out").to_arrow("train").to_pylist()
    assert ("image/object/mask" in row) == (not more)
    assert said in done.out


def captions(splits: Iterable[str]) -> None:
    coco_as_it_is("pets")
    for first, (split, count) in enumerate(SIZES.items()):
        said = [{"id": n, "image_id": 10 * first + n, "caption": f"{split} {n}"} for n in range(count)]
        document = json.loads(Path(f"pets/annotations/instances_{split}.json").read_text())
        if split in splits:
            write(f"pets/annotations/captions_{split}.json", json.dumps(document | {"annotations": said}))


def test_captions_of_some_splits_of_coco_are_said_not_to_be_read(shardmill: Shardmill) -> None:
    captions(["train"])
    screen = shardmill("convert", "pets", "-o", "out").out
    assert "pets/annotations/captions_train.json is not read, as not every split has such files" in screen


@pytest.mark.parametrize("splits", [[], ["train"]])
def test_segments_beside_instances_of_coco_are_said_not_to_be_read(splits: list[str], shardmill: Shardmill) -> None:
    captions(splits)
    write("pets/annotations/panoptic_train.json", '{"images": [], "annotations": [{"segments_info": []}]}')
    screen = shardmill("convert", "pets", "-o", "out").out.replace("\n", " ")
    assert "; pets/annotations/panoptic_train.json: segments of masks, which are not read" in screen
    assert "panoptic_val" not in screen


def test_captions_beside_instances_of_coco_are_read_by_the_commands_on_the_screen(shardmill: Shardmill) -> None:
    captions(SIZES)
    screen = shardmill("convert", "pets", "-o", "out", "--set", "schema.boxes=clip")
    assert "pets/annotations/captions_train.json" in screen.out
    assert screen.out.count("--set schema.boxes=clip") >= len(SIZES)
    for command in commands_in(screen.out):
        done = shardmill(*command)
        assert done.code == 0, done.err
    found = {split: open_dataset("out-all").to_arrow(split)["image/caption"].to_pylist() for split in SIZES}
    assert found == {split: [[f"{split} {n}"] for n in range(count)] for split, count in SIZES.items()}
    assert {split: boxes("out-all", split) for split in SIZES} == {split: boxes("out", split) for split in SIZES}


def test_classes_are_not_named_by_a_yaml_file_of_other_pictures(shardmill: Shardmill) -> None:
    ultralytics_by_its_name("pets")
    Path("pets/pets.yaml").unlink()
    assert shardmill("convert", "pets", "-o", "out").code == 0
    assert boxes("out", "train") == [(BOX, [0]), (BOX, [1])]


def test_a_set_has_its_pictures_without_a_file_of_annotations_too(shardmill: Shardmill) -> None:
    voc_as_it_is("voc")
    Path("voc/Annotations/1.xml").unlink()  # as Datumaro writes pictures without objects
    ultralytics("yolo")
    Path("yolo/labels/train/train1.txt").unlink()
    ultralytics_list("lists")
    Path("lists/labels/b.txt").unlink()
    for root, lost in (("voc", "JPEGImages/1"), ("yolo", "images/train/train1"), ("lists", "images/b")):
        done = shardmill("convert", root, "-o", f"out/{root}")
        assert done.code == 0, done.err
        said = f"1 picture has no file of annotations, as {root}/{lost}.jpg: a record without boxes for each"
        assert said in done.out
        found = open_dataset(f"out/{root}")
        assert sum(one.records for one in found.manifest.splits.values()) == 4
        rows = found.to_arrow("train").to_pylist()
        assert sorted(row["image/object/bbox/xmin"] or [] for row in rows) == [[], [pytest.approx(0.1)]]


@pytest.mark.parametrize("layout", ["VOC with ImageSets", "Ultralytics, list"])
def test_a_picture_that_a_list_names_and_nothing_else_is_an_error_that_names_it(
    layout: str, shardmill: Shardmill
) -> None:
    (SPLIT | {"Ultralytics, list": ultralytics_list})[layout]("pets")
    folders, name = (("JPEGImages", "Annotations"), "1") if layout in SPLIT else (("images", "labels"), "b")
    for path in Path("pets").glob(f"*/{name}.*"):
        path.unlink()
    refused = shardmill("convert", "pets", "-o", "out")
    assert refused.code == 2
    assert f"names pets/{folders[0]}/{name}" in refused.err
    assert "restore it, or take its line out of the list" in refused.err
    for path in Path("pets").rglob("*.txt"):
        lines = path.read_text().splitlines(keepends=True)
        path.write_text("".join(one for one in lines if Path(one.split()[0]).stem != name))
    assert shardmill("convert", "pets", "-o", "out").code == 0


def test_a_list_none_of_whose_pictures_are_there_is_named(shardmill: Shardmill) -> None:
    voc_as_it_is("pets")
    for path in ("Annotations/3.xml", "JPEGImages/3.jpg"):
        Path(f"pets/{path}").unlink()
    done = shardmill("convert", "pets", "-o", "out")
    assert done.code == 0, done.err
    assert "pets/ImageSets/Main/test.txt: names pets/JPEGImages/3, which is not there" in done.out + done.err
    assert "nothing of this list is read" in done.out + done.err
    assert sorted(open_dataset("out").splits) == ["train", "val"]


def test_a_picture_of_a_list_that_is_no_split_is_a_record_without_a_file_of_its_own(shardmill: Shardmill) -> None:
    voc_as_it_is("pets")
    Path("pets/Annotations/1.xml").unlink()
    for path in Path("pets/ImageSets/Main").iterdir():
        path.unlink()
    write("pets/ImageSets/Main/default.txt", "0\n1\n2\n3\n")  # CVAT's, of a task without splits
    done = shardmill("convert", "pets", "-o", "out")
    assert done.code == 0, done.err
    assert open_dataset("out").manifest.splits["train"].records == 4


LABEL_MAP = "# label:color_rgb:parts:actions\nbackground:0,0,0::\ndog:::\nno: owl:::\ncat:1,2,3::\n"


def test_a_label_map_of_cvat_s_voc_numbers_the_classes_in_its_order_and_names_unused_ones(shardmill: Shardmill) -> None:
    cvat_voc("pets")
    write("pets/labelmap.txt", LABEL_MAP)
    done = shardmill("convert", "pets", "-o", "out")
    assert done.code == 0, done.err
    assert "Detected: classes in the order of pets/labelmap.txt, with those that no object has" in done.out
    assert "cat 3 (" in done.out
    assert "no: owl 0 (" in done.out
    assert open_dataset("out").labels["image/object/class/label"] == ("background", "dog", "no: owl", "cat")
    write("pets/labelmap.txt", "yak:::\ncat:::\n")
    assert shardmill("append", "pets", "-o", "out", "--force").code == 0
    assert open_dataset("out").labels["image/object/class/label"] == ("background", "dog", "no: owl", "cat", "yak")
    assert shardmill("convert", "pets", "-o", "own").code == 0
    assert open_dataset("own").labels["image/object/class/label"] == ("yak", "cat", "dog")
    given = shardmill("convert", "pets", "-o", "given", "--set", "input.annotations.classes=[dog, cat]")
    assert "labelmap.txt" not in given.out
    assert open_dataset("given").labels["image/object/class/label"] == ("dog", "cat")


def test_a_label_map_of_a_thousand_classes_is_read_whole(shardmill: Shardmill) -> None:
    cvat_voc("pets")
    names = [f"a long name of the class number {number}" for number in range(1000)]
    write("pets/labelmap.txt", "".join(f"{name}:::\n" for name in names))
    assert shardmill("convert", "pets", "-o", "out").code == 0
    assert open_dataset("out").labels["image/object/class/label"] == (*names, "cat", "dog")


def test_label_maps_of_two_splits_that_differ_number_no_classes(shardmill: Shardmill) -> None:
    for split in ("train", "val"):
        cvat_voc(f"pets/{split}")
        write(f"pets/{split}/labelmap.txt", LABEL_MAP.replace("owl", split))
    done = shardmill("convert", "pets", "-o", "out")
    assert done.code == 0, done.err
    said = "Detected: pets/train/labelmap.txt, pets/val/labelmap.txt differ, so that the classes are in the order of"
    assert said in done.out
    assert open_dataset("out").labels["image/object/class/label"] == ("cat", "dog")


@pytest.mark.parametrize("make", [cvat_voc, roboflow_coco])
def test_a_picture_that_is_missing_says_in_which_folder_it_was_looked_for(
    shardmill: Shardmill, make: Callable[[str], None]
) -> None:
    make("pets")
    gone = sorted(Path("pets").rglob("*.jpg"))[1]
    gone.unlink()
    screen = shardmill("convert", "pets", "-o", "out")
    root = "pets/JPEGImages" if make is cvat_voc else "pets"
    assert f'MISSING_FILE: "{gone.relative_to(root)}" is not below {root}: No such file' in screen.err


def test_labels_whose_picture_is_missing_are_a_reject_of_darknet_s_split(shardmill: Shardmill) -> None:
    cvat_yolo_splits("pets")
    Path("pets/obj_train_data/a/b/1.jpg").unlink()
    refused = shardmill("convert", "pets", "-o", "out")
    assert refused.code != 0
    done = shardmill("convert", "pets", "-o", "out", "--max-rejects", "1")
    assert done.code == 0, done.err
    assert "there is no picture a/b/1 in pets/obj_train_data; restore it" in done.out + done.err
    assert "that no list of a split names" not in done.out


def test_names_in_image_sets_may_have_blanks_folders_and_numbers_behind_them(shardmill: Shardmill) -> None:
    names = ["a b", "a/1", "b/1", "train/2"]  # the last one is no split, but a folder
    for name in names:
        picture(f"pets/JPEGImages/{name}.jpg")
        voc(f"pets/Annotations/{name}.xml", f"{name}.jpg")
    write("pets/ImageSets/Main/train.txt", "a b\na/1\n")
    write("pets/ImageSets/Main/val.txt", "b/1  1\n")
    write("pets/ImageSets/Main/test.txt", '"train/2"\n')
    done = shardmill("convert", "pets", "-o", "out")
    assert done.code == 0, done.err
    found = open_dataset("out")
    listed = {split: found.to_arrow(split)["image/filename"].to_pylist() for split in found.splits}
    assert listed == {"train": ["a b.jpg", "a/1.jpg"], "val": ["b/1.jpg"], "test": ["train/2.jpg"]}


@pytest.mark.parametrize("key", ["valid", "val"])
def test_darknet_s_lists_of_validation_have_two_names(key: str, shardmill: Shardmill) -> None:
    cvat_yolo_splits("pets")
    text = Path("pets/obj.data").read_text()
    write("pets/obj.data", text.replace("valid = ", f"{key} = "))
    assert shardmill("convert", "pets", "-o", "out").code == 0
    assert {name: one.records for name, one in open_dataset("out").manifest.splits.items()} == {
        "test": 1,
        "train": 2,
        key: 1,
    }


@pytest.mark.parametrize("folder", ["labels", "annotations"])
def test_voc_s_files_may_be_in_folders_of_other_names(folder: str, shardmill: Shardmill) -> None:
    for split, count in SIZES.items():
        for n in range(count):
            picture(f"pets/{split}/images/{n}.jpg")
            voc(f"pets/{split}/{folder}/{n}.xml", f"{n}.jpg", ["cat", "dog"][n % 2])
    done = shardmill("convert", "pets", "-o", "out")
    assert done.code == 0, done.err
    assert boxes("out", "train") == [(BOX, ["cat"]), (BOX, ["dog"])]
    assert boxes("out", "valid") == boxes("out", "test") == [(BOX, ["cat"])]


def test_lists_of_splits_beside_labels_that_no_config_names_give_the_splits(shardmill: Shardmill) -> None:
    yolo_set("pets", "images", "0", "1", "2")
    write("pets/classes.txt", "cat\ndog\n")
    write("pets/train.txt", "images/0.jpg\nimages/1.jpg\n")
    write("pets/val.txt", "images/2.jpg\n")
    done = shardmill("convert", "pets", "-o", "out")
    assert done.code == 0, done.err
    assert "splits train, val, from train.txt, val.txt" in done.out
    assert boxes("out", "train") == [(BOX, ["cat"]), (BOX, ["dog"])]
    assert boxes("out", "val") == [(BOX, ["cat"])]


def test_lists_of_splits_beside_labels_that_name_none_of_their_pictures_are_named(shardmill: Shardmill) -> None:
    yolo_set("pets", "images", "0", "1")
    for split in ("train", "val"):
        write(f"pets/{split}.txt", f"/home/me/pictures/{split}-0.jpg\n")
    done = shardmill("convert", "pets", "-o", "out")
    assert done.code == 0, done.err
    assert "pets/train.txt, pets/val.txt: lists of splits that name none of these files, and are not read" in done.out


def test_lists_of_splits_beside_annotations_of_pascal_voc_give_the_splits(shardmill: Shardmill) -> None:
    for n in range(3):
        picture(f"pets/images/{n}.jpg")
        voc(f"pets/annotations/xmls/{n}.xml", f"{n}.jpg")
    write("pets/annotations/trainval.txt", "0 1 1 1\n1 2 1 1\n")
    write("pets/annotations/test.txt", "2 1 1 1\n")
    done = shardmill("convert", "pets", "-o", "out")
    assert done.code == 0, done.err
    assert {name: one.records for name, one in open_dataset("out").manifest.splits.items()} == {
        "test": 1,
        "trainval": 2,
    }


def test_the_command_for_annotations_in_one_of_several_folders_says_that_it_reads_that_one_alone(
    shardmill: Shardmill,
) -> None:
    for name in ("cat", "dog"):
        beside(f"pets/{name}", "voc")
    done = shardmill("convert", "pets", "-o", "out")
    assert "to read those of pets/cat alone: " in done.out + done.err
