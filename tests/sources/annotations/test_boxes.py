"""Tables with a box in each row become a record for each picture, by the command on the screen."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from shardmill.pipelines import append, convert
from shardmill.transforms.dataset.reading.open_dataset import open_dataset
from shardmill.transforms.errors import SourceError, TooManyRejects

from ...command_line import Shardmill

CAT = ([0.1, 0.25, 0.6, 0.75], "cat")
DOG = ([0.0, 0.0, 0.5, 0.5], "dog")


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def make(files: dict[str, str]) -> None:
    for name, text in files.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        if text:
            Path(name).write_text(text)
        else:
            Image.new("RGB", (40, 20), tuple(name.encode()[-7:-4])).save(name)


def records(split: str = "train", dataset: str = "out") -> dict[str, list[tuple[list[float], str]]]:
    """Return the boxes of each picture, with their classes, by the picture's name."""
    found = {}
    for row in open_dataset(dataset).to_arrow(split).to_pylist():
        sides = [row[f"image/object/bbox/{side}"] or [] for side in ("xmin", "ymin", "xmax", "ymax")]
        corners = [[round(value, 3) for value in box] for box in zip(*sides, strict=True)]
        found[row["image/filename"]] = list(zip(corners, row["image/object/class/text"] or [], strict=True))
    return found


def proposed(text: str) -> list[str]:
    """Return the words of the command that reads the rows of tables."""
    line = next(line for line in text.splitlines() if "with a box in each row" in line)
    return shlex.split(line.partition(": shardmill ")[2])


TENSORFLOW = "filename,width,height,class,xmin,ymin,xmax,ymax\n"
OPEN_IMAGES = "ImageID,Source,LabelName,Confidence,XMin,XMax,YMin,YMax,IsOccluded\n"
FORMS: dict[str, tuple[dict[str, str], dict[str, list[str]]]] = {
    "TensorFlow's": (
        {
            "pets/images/a.jpg": "", "pets/images/b.jpg": "", "pets/images/c.jpg": "",
            "pets/train_labels.csv": f"{TENSORFLOW}a.jpg,40,20,cat,4,5,24,15\na.jpg,40,20,dog,0,0,20,10\n"
            "b.jpg,40,20,dog,0,0,20,10\n",
            "pets/test_labels.csv": f"{TENSORFLOW}c.jpg,40,20,cat,4,5,24,15\nc.jpg,40,20,dog,0,0,20,10\n",
        },
        {"train": ["images/a.jpg", "images/b.jpg"], "test": ["images/c.jpg"]},
    ),
    "Roboflow's": (
        {
            "pets/train/a.jpg": "", "pets/train/b.jpg": "", "pets/valid/a.jpg": "",
            "pets/train/_annotations.csv": f"{TENSORFLOW}a.jpg,40,20,cat,4,5,24,15\nb.jpg,40,20,dog,0,0,20,10\n"
            "a.jpg,40,20,dog,0,0,20,10\n",
            "pets/valid/_annotations.csv": f"{TENSORFLOW}a.jpg,40,20,cat,4,5,24,15\na.jpg,40,20,dog,0,0,20,10\n",
        },
        {"train": ["train/a.jpg", "train/b.jpg"], "valid": ["valid/a.jpg"]},
    ),
    "Open Images'": (
        {
            "pets/train/a.jpg": "", "pets/train/b.jpg": "", "pets/validation/c.jpg": "",
            "pets/train-annotations-bbox.csv": f"{OPEN_IMAGES}a,x,cat,1,0.1,0.6,0.25,0.75,0\n"
            "a,x,dog,1,0.0,0.5,0.0,0.5,0\nb,x,dog,1,0.0,0.5,0.0,0.5,0\n",
            "pets/validation-annotations-bbox.csv": f"{OPEN_IMAGES}c,x,cat,1,0.1,0.6,0.25,0.75,1\n"
            "c,x,dog,1,0,0.5,0,0.5,0\n",
        },
        {"train": ["train/a.jpg", "train/b.jpg"], "validation": ["validation/c.jpg"]},
    ),
    "Kaggle's": (
        {
            "pets/train/a.jpg": "", "pets/train/b.jpg": "", "pets/test/c.jpg": "",
            "pets/train.csv": "image_id,x,y,w,h,class\na,4,5,20,10,cat\na,0,0,20,10,dog\nb,0,0,20,10,dog\n",
        },
        {"train": ["train/a.jpg", "train/b.jpg"]},
    ),
    "global wheat's": (
        {
            "pets/train/a.jpg": "", "pets/train/b.jpg": "",
            "pets/train.csv": 'image_id,width,height,bbox,label\na,40,20,"[4.0, 5.0, 20.0, 10.0]",cat\n'
            'b,40,20,"[0, 0, 20.0, 10.0]",dog\na,40,20,"[0, 0, 20.0, 10.0]",dog\n',
        },
        {"train": ["train/a.jpg", "train/b.jpg"]},
    ),
    "TensorFlow's with folders of splits": (
        {
            "pets/images/train/a.jpg": "", "pets/images/train/b.jpg": "", "pets/images/test/a.jpg": "",
            "pets/data/train_labels.csv": f"{TENSORFLOW}a.jpg,40,20,cat,4,5,24,15\na.jpg,40,20,dog,0,0,20,10\n"
            "b.jpg,40,20,dog,0,0,20,10\n",
            "pets/data/test_labels.csv": f"{TENSORFLOW}a.jpg,40,20,cat,4,5,24,15\na.jpg,40,20,dog,0,0,20,10\n",
        },
        {"train": ["images/train/a.jpg", "images/train/b.jpg"], "test": ["images/test/a.jpg"]},
    ),
    "RetinaNet's": (
        {
            "pets/images/a.jpg": "", "pets/images/b.jpg": "",
            "pets/annotations.csv": "images/a.jpg,4,5,24,15,cat\nimages/a.jpg,0,0,20,10,dog\n"
            "images/b.jpg,0,0,20,10,dog\n",
        },
        {"train": ["images/a.jpg", "images/b.jpg"]},
    ),
    "SKU-110K's": (
        {
            "pets/images/train_a.jpg": "", "pets/images/train_b.jpg": "", "pets/images/val_a.jpg": "",
            "pets/annotations/annotations_train.csv": "train_b.jpg,0,0,20,10,dog,40,20\n"
            "train_a.jpg,4,5,24,15,cat,40,20\ntrain_a.jpg,0,0,20,10,dog,40,20\n",
            "pets/annotations/annotations_val.csv": "val_a.jpg,4,5,24,15,cat,40,20\nval_a.jpg,0,0,20,10,dog,40,20\n",
        },
        {"train": ["images/train_a.jpg", "images/train_b.jpg"], "val": ["images/val_a.jpg"]},
    ),
    "beside the pictures": (
        {
            "pets/a.jpg": "", "pets/b.jpg": "",
            "pets/labels.csv": "image;left;top;right;bottom;name\na.jpg;4;5;24;15;cat\na.jpg;0;0;20;10;dog\n"
            "b.jpg;0;0;20;10;dog\n",
        },
        {"train": ["a.jpg", "b.jpg"]},
    ),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_the_command_on_the_screen_gives_each_picture_with_all_its_boxes(form: str, shardmill: Shardmill) -> None:
    files, wanted = FORMS[form]
    make(files)
    told = shardmill("convert", "pets", "-o", "out")
    done = shardmill(*proposed(told.err + told.out), "--overwrite")
    assert done.code == 0, done.err
    assert sorted(open_dataset("out").splits) == sorted(wanted)
    for split, names in wanted.items():
        assert records(split) == {name: [DOG] if name.endswith("b.jpg") else [CAT, DOG] for name in names}
    assert open_dataset("out").labels == {"image/object/class/label": ("cat", "dog")}


@pytest.mark.parametrize("form", FORMS)
def test_an_append_of_such_tables_is_read_as_the_first_ones(form: str, shardmill: Shardmill) -> None:
    files, wanted = FORMS[form]
    make(files)
    make({name.replace("pets", "more"): text and f"{text}\n" for name, text in files.items()})
    for path in Path("more").rglob("*.jpg"):
        Image.new("RGB", (40, 20), "red").save(path)
    words = proposed((told := shardmill("convert", "pets", "-o", "out")).err + told.out)
    assert shardmill(*words, "--overwrite").code == 0
    done = shardmill("append", *[word.replace("pets", "more") for word in words[1:] if word != "--overwrite"])
    assert done.code == 0, done.err
    assert {name: one.records for name, one in open_dataset("out").manifest.splits.items()} == {
        split: 2 * len(names) for split, names in wanted.items()
    }


@pytest.mark.parametrize("first", ["images/b.jpg,,,,,", "images/a.jpg,4,5,24,15,cat"])
def test_rows_of_a_table_without_a_header_are_counted_from_the_first_and_an_empty_one_has_no_box(
    first: str, shardmill: Shardmill
) -> None:
    rows = [first, "images/a.jpg,4,5,24,15,cat", "images/b.jpg,,,,,", "images/c.jpg,9,9,1,1,cat"]
    make({f"pets/images/{name}.jpg": "" for name in "abc"} | {"pets/annotations.csv": "\n".join(dict.fromkeys(rows))})
    words = proposed(shardmill("convert", "pets", "-o", "out").err)
    done = shardmill(*words, "--max-rejects", "1")
    assert done.code == 0, done.err
    assert f"box 1 (row {len({*rows})})" in done.out.replace("(id row", "(row")
    assert records() == {"images/a.jpg": [CAT], "images/b.jpg": []}


@pytest.mark.parametrize(
    ("text", "classes"),
    [
        ("yak,0\ndog,1\ncat,2\n", ("yak", "dog", "cat")),
        ("yak,1\ndog,0\n", ("cat", "dog")),
        ("dog,1\ncat,2\n", ("cat", "dog")),
        ("name,number\ndog,0\ncat,1\n", ("cat", "dog")),
    ],
)
def test_a_file_of_names_and_numbers_beside_tables_numbers_their_classes(
    text: str, classes: tuple[str, ...], shardmill: Shardmill
) -> None:
    make({f"pets/images/{name}.jpg": "" for name in "01"} | {"pets/class_map.csv": text})
    Path("pets/train.csv").write_text("images/0.jpg,4,5,24,15,cat\nimages/1.jpg,0,0,20,10,dog\n")
    told = shardmill("convert", "pets", "-o", "out")
    assert "class_map.csv names" not in told.err or not text.startswith("yak"), "its numbers name no pictures"
    done = shardmill(*proposed(told.err))
    assert done.code == 0, done.err
    assert open_dataset("out").labels == {"image/object/class/label": classes}
    said = "classes in the order of pets/class_map.csv, with those that no object has"
    assert (said in done.out) == (classes[0] == "yak")
    assert records() == {"images/0.jpg": [CAT], "images/1.jpg": [DOG]}


def run(rows: str, **more: Any) -> None:
    make({"pics/a.jpg": "", "pics/b.jpg": "", "boxes.csv": f"filename,xmin,ymin,xmax,ymax,class\n{rows}"})
    convert("pics", output="out", input__annotations={"boxes": "boxes.csv"}, **more)


def test_a_row_without_numbers_is_a_picture_without_boxes() -> None:
    run("a.jpg,,,,,\nb.jpg,0,0,20,10,dog\n")
    assert records() == {"a.jpg": [], "b.jpg": [DOG]}


@pytest.mark.parametrize("numbers", ["0,0,twenty,10", "0,0,,10", "0,0,inf,10", "0,0,400,10", "20,0,0,10"])
def test_a_box_that_is_none_is_a_reject_of_its_picture_alone(numbers: str) -> None:
    run(f"a.jpg,{numbers},cat\nb.jpg,0,0,20,10,dog\n", max_rejects=1)
    assert records() == {"b.jpg": [DOG]}


def test_a_picture_of_another_size_than_the_table_says_is_a_reject() -> None:
    make(
        {
            "pics/a.jpg": "",
            "pics/b.jpg": "",
            "t.csv": f"{TENSORFLOW}a.jpg,80,40,cat,4,5,24,15\nb.jpg,40,20,dog,0,0,20,10\n",
        }
    )
    convert("pics", output="out", input__annotations={"boxes": "t.csv"}, max_rejects=1)
    assert records() == {"b.jpg": [DOG]}


def test_a_missing_picture_is_a_reject_that_names_it_and_never_another_split_s() -> None:
    make({"pets/train/a.jpg": "", "pets/test/b.jpg": "", "pets/train.csv": f"{TENSORFLOW}b.jpg,40,20,cat,4,5,24,15\n"})
    with pytest.raises(TooManyRejects, match=r"b\.jpg"):
        convert("pets", output="out", input__annotations={"boxes": "pets/train.csv"})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("filename,class\na.jpg,cat\n", "has no columns of pictures and boxes, but filename, class; name them"),
        ("filename,xmin,ymin,xmax,ymax\n,1,2,3,4\n", 'row 2: "filename" is empty'),
        ("", "has no columns of pictures and boxes"),
    ],
)
def test_a_table_without_boxes_is_refused(text: str, message: str) -> None:
    make({"pics/a.jpg": ""})
    Path("t.csv").write_text(text)
    with pytest.raises(SourceError, match=message):
        convert("pics", output="out", input__annotations={"boxes": "t.csv"})


def test_boxes_without_a_class_are_objects_or_of_the_class_that_is_given() -> None:
    make({"pics/a.jpg": "", "t.csv": "image_id,x1,y1,x2,y2\na,4,5,24,15\n"})
    convert("pics", output="out", input__annotations={"boxes": "t.csv"})
    assert records() == {"a.jpg": [(CAT[0], "object")]}
    convert("pics", output="one", input__annotations={"boxes": "t.csv", "classes": ["cat"]})
    assert records(dataset="one") == {"a.jpg": [CAT]}


def test_classes_are_given_in_the_order_of_their_numbers() -> None:
    run("a.jpg,4,5,24,15,cat\nb.jpg,0,0,20,10,dog\n")
    make({"more/c.jpg": "", "c.csv": "filename,xmin,ymin,xmax,ymax,class\nc.jpg,4,5,24,15,ant\n"})
    append("more", output="out", input__annotations={"boxes": "c.csv"})
    assert open_dataset("out").labels == {"image/object/class/label": ("cat", "dog", "ant")}
    with pytest.raises(TooManyRejects, match=r"object 1 .* has no class"):
        convert("more", output="one", input__annotations={"boxes": "c.csv", "classes": ["cat"]})


@pytest.mark.parametrize("place", ["oi", "oi/csv"])
def test_codes_of_classes_of_open_images_get_the_names_that_are_beside_or_above_the_tables(
    place: str, shardmill: Shardmill
) -> None:
    row = "{},xclick,{},1,{},0\n"
    cat, dog, odd = ("/m/01yrx", "0.1,0.6,0.25,0.75"), ("/m/0bt9lr", "0,0.5,0,0.5"), ("/m/9", "0,0.5,0,0.5")
    make({
        "oi/train/00a.jpg": "",
        "oi/validation/00b.jpg": "",
        "oi/class-descriptions-boxable.csv": "/m/01yrx,cat\n/m/0bt9lr,dog\n/m/0x,\"Yak, wild\"\n",
        f"{place}/train-annotations-bbox.csv": OPEN_IMAGES + row.format("00a", *cat) + row.format("00a", *dog),
        f"{place}/validation-annotations-bbox.csv": OPEN_IMAGES + row.format("00b", *odd),
    })  # fmt: skip
    screen = shardmill("convert", "oi", "-o", "out", "--set", "input.format=images")
    done = shardmill(*proposed(screen.out), *([] if "--overwrite" in proposed(screen.out) else ["--overwrite"]))
    assert done.code == 0, done.err
    assert records() == {"train/00a.jpg": [CAT, DOG]}
    assert records("validation") == {"validation/00b.jpg": [(DOG[0], "/m/9")]}
    assert open_dataset("out").manifest.labels["image/object/class/label"] == ("/m/9", "cat", "dog")
