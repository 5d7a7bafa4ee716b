"""Annotations of a split that has a name of its own, beside usual ones, are read under it, or the run stops."""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from shardmill.transforms.dataset.reading.open_dataset import open_dataset

from ..command_line import Shardmill
from .test_box_layouts import BOX, boxes, choices_in, coco, picture, splits_of, voc, voc_as_it_is, write, yolo


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def in_coco(folder: str) -> None:
    picture(f"pets/{folder}/1.jpg")
    coco(f"pets/{folder}/_annotations.coco.json", ["1.jpg"])


def in_voc(folder: str) -> None:
    picture(f"pets/{folder}/1.jpg")
    voc(f"pets/{folder}/1.xml", "1.jpg")


def in_yolo(folder: str) -> None:
    picture(f"pets/{folder}/images/1.jpg")
    yolo(f"pets/{folder}/labels/1.txt")
    write("pets/data.yaml", "names: [cat, dog]\n")


def in_ultralytics(folder: str) -> None:
    picture(f"pets/images/{folder}/1.jpg")
    yolo(f"pets/labels/{folder}/1.txt")
    write("pets/data.yaml", "names: [cat, dog]\n")


EACH = pytest.mark.parametrize("make", [in_coco, in_voc, in_yolo, in_ultralytics])


def assert_one_each(*splits: str) -> None:
    assert {split: boxes("out", split) for split in splits_of("out")} == {split: [(BOX, ["cat"])] for split in splits}


@EACH
@pytest.mark.parametrize("given", [("train", "hold_out"), ("hold out", "test", "train"), ("Extra-2", "val")])
def test_a_folder_of_another_name_beside_those_of_splits_is_a_split_of_its_name(
    given: tuple[str, ...], make: Callable[[str], None], shardmill: Shardmill
) -> None:
    for one in given:
        make(one)
    legal = {"hold out": "hold_out", "Extra-2": "extra_2"}
    screen = shardmill("convert", "pets", "-o", "out").out
    assert_one_each(*(legal.get(one, one) for one in given))
    assert "left out" not in screen
    assert all(f'"{one}" is {legal[one]}' in screen for one in given if one in legal)


@EACH
def test_more_folders_of_other_names_than_of_splits_stop_a_run_whose_commands_run(
    make: Callable[[str], None], shardmill: Shardmill
) -> None:
    for one in ("train", "day", "night 2"):
        make(one)
    refused = shardmill("convert", "pets", "-o", "out")
    assert refused.code == 2
    assert "names of folders state splits (train), and others none (day, night 2)" in refused.err
    each, all_in_one = choices_in(refused.err)
    assert shardmill(*each).code == 0
    assert_one_each("train", "day", "night_2")
    assert shardmill(*all_in_one, "--overwrite").code == 0
    assert boxes("out", "train") == [(BOX, ["cat"])] * 3


@EACH
@pytest.mark.parametrize(
    "given",
    [
        {"training set": "training", "validation set": "validation", "Test Set": "test"},
        {"train_set": "train", "val-set": "val"},
        {"training_v2": "training", "testing_v2": "testing"},
        {"train": "train", "test set": "test"},
        {"train set": "train", "hold out": "hold_out"},
    ],
)
def test_a_folder_of_the_set_of_a_split_is_read_with_its_boxes_as_that_split(
    given: dict[str, str], make: Callable[[str], None], shardmill: Shardmill
) -> None:
    for one in given:
        make(one)
    screen = shardmill("convert", "pets", "-o", "out").out
    assert_one_each(*given.values())
    assert "left out" not in screen
    assert all(f'"{one}" is {split}' in screen for one, split in given.items() if one != split)


@EACH
def test_two_sets_of_one_split_stop_a_run_whose_commands_run(make: Callable[[str], None], shardmill: Shardmill) -> None:
    for one in ("train_v1", "train_v2", "test_v2"):
        make(one)
    refused = shardmill("convert", "pets", "-o", "out")
    assert refused.code == 2
    assert "names of folders may mean splits (test_v2, train_v1, train_v2)" in refused.err
    each, all_in_one = choices_in(refused.err)
    assert shardmill(*each).code == 0
    assert_one_each("test_v2", "train_v1", "train_v2")
    assert shardmill(*all_in_one, "--overwrite").code == 0
    assert boxes("out", "train") == [(BOX, ["cat"])] * 3


@pytest.mark.parametrize("others", [[], ["extra/cat"]])
@pytest.mark.parametrize("inner", ["{0}/cat", "{0}/{0}/cat"])
def test_sets_of_splits_of_classes_stop_a_run_whose_command_reads_both(
    inner: str, others: list[str], shardmill: Shardmill
) -> None:
    for one in (*map(inner.format, ("training_set", "test_set")), *others):
        picture(f"pets/{one}/1.jpg")
    refused = shardmill("convert", "pets", "-o", "out")
    assert refused.code == 2
    assert shardmill(*choices_in(refused.err)[0]).code == 0
    rows = {split: list(open_dataset("out")[split]) for split in open_dataset("out").splits}
    assert {split: [row["image/class/text"] for row in found] for split, found in rows.items()} == {
        "training": ["cat"],
        "test": ["cat"],
    }


def test_nulls_are_said_of_columns_and_not_of_the_boxes_of_pictures_without_boxes(shardmill: Shardmill) -> None:
    for one in ("train", "val"):
        in_yolo(one)
    Path("pets/val/labels/1.txt").write_text("")
    screen = shardmill("convert", "pets", "-o", "out").out
    assert "image/object/bbox/xmin" in screen
    assert "Nulls" not in screen + shardmill("info", "out").out
    assert boxes("out", "train") == [(BOX, ["cat"])]
    write("rows.jsonl", '{"words": ["a"], "sold": null}\n{"words": null, "sold": 3}\n')
    assert "Nulls in sold, words: " in shardmill("convert", "rows.jsonl", "-o", "rows").out


@pytest.mark.parametrize("make", [in_yolo, in_ultralytics])
def test_a_split_without_objects_is_read_as_the_others(make: Callable[[str], None], shardmill: Shardmill) -> None:
    for one in ("train", "val"):
        make(one)
    next(path for path in Path("pets").rglob("1.txt") if "val" in path.parts).write_text("")
    assert shardmill("convert", "pets", "-o", "out").code == 0
    assert {split: len(names) for split, names in splits_of("out").items()} == {"train": 1, "val": 1}


@pytest.mark.parametrize(
    ("name", "split"), [("hold out", "hold_out"), ("val2", "val2"), ("holdout", "holdout"), ("trainval", "trainval")]
)
def test_a_list_of_pascal_voc_of_another_name_is_a_split(name: str, split: str, shardmill: Shardmill) -> None:
    voc_as_it_is("pets")
    Path("pets/ImageSets/Main/trainval.txt").unlink()
    Path("pets/ImageSets/Main/val.txt").rename(f"pets/ImageSets/Main/{name}.txt")
    write(f"pets/ImageSets/Main/cat_{name}.txt", "2  1\n")
    screen = shardmill("convert", "pets", "-o", "out").out
    assert {one: len(boxes("out", one)) for one in splits_of("out")} == {"train": 2, split: 1, "test": 1}
    assert (f'"{name}" is {split}' in screen) == (name != split)
    assert "names are left out" not in screen


def test_a_list_that_is_train_and_val_together_is_left_out_and_said(shardmill: Shardmill) -> None:
    voc_as_it_is("pets")
    screen = shardmill("convert", "pets", "-o", "out").out
    assert {one: len(boxes("out", one)) for one in splits_of("out")} == {"train": 2, "val": 1, "test": 1}
    assert "trainval.txt, which is others together, is left out" in screen


def test_lists_of_the_pictures_of_a_class_are_said_to_be_left_out(shardmill: Shardmill) -> None:
    voc_as_it_is("pets")
    screen = shardmill("convert", "pets", "-o", "out").out
    assert "cat_train.txt says which pictures show a class, and is not read" in screen
    write("pets/ImageSets/Main/dog_train.txt", "0 -1\n1  1\n")
    screen = shardmill("convert", "pets", "-o", "two").out
    assert "cat_train.txt, dog_train.txt say which pictures show a class, and are not read" in screen
    assert sorted(splits_of("out")) == sorted(splits_of("two")) == ["test", "train", "val"]


def test_one_list_of_some_of_the_files_does_not_speak_of_all(shardmill: Shardmill) -> None:
    voc_as_it_is("pets")
    for name in ("val", "test", "trainval", "cat_train"):
        Path(f"pets/ImageSets/Main/{name}.txt").unlink()
    screen = shardmill("convert", "pets", "-o", "out").out
    assert "the files that are listed are of split train, from ImageSets/Main" in screen
    assert "2 files that no list of a split names are left out" in screen
    write("pets/ImageSets/Main/train.txt", "0\n1\n2\n3\n")
    assert "all files are of split train, from ImageSets/Main" in shardmill("convert", "pets", "-o", "all").out


def test_trainval_without_the_lists_of_both_is_one_split(shardmill: Shardmill) -> None:
    voc_as_it_is("pets")
    for name in ("train", "val"):
        Path(f"pets/ImageSets/Main/{name}.txt").unlink()
    assert shardmill("convert", "pets", "-o", "out").code == 0
    assert {one: len(boxes("out", one)) for one in splits_of("out")} == {"trainval": 3, "test": 1}


def test_lists_that_share_pictures_stop_a_run_whose_commands_run(shardmill: Shardmill) -> None:
    voc_as_it_is("pets")
    write("pets/ImageSets/Main/val2.txt", "0\n2\n")
    refused = shardmill("convert", "pets", "-o", "out")
    assert refused.code == 2
    assert 'pets/ImageSets/Main/val2.txt: "0" is in train.txt too' in refused.err
    away = refused.err.partition("take this list away: ")[2].partition("; to read all")[0]
    assert shardmill("convert", "pets", "-o", "one", *shlex.split(refused.err.strip().rpartition(": ")[2])).code == 0
    assert {one: len(boxes("one", one)) for one in splits_of("one")} == {"train": 4}
    subprocess.run(shlex.split(away), check=True)
    assert shardmill("convert", "pets", "-o", "out").code == 0
    assert {one: len(boxes("out", one)) for one in splits_of("out")} == {"train": 2, "val": 1, "test": 1}


def test_a_list_of_another_name_beside_labels_is_a_split_and_other_texts_are_not(shardmill: Shardmill) -> None:
    for name in ("1", "2"):
        picture(f"pets/images/{name}.jpg")
        yolo(f"pets/labels/{name}.txt")
    write("pets/train.txt", "images/1.jpg\n")
    write("pets/hold_out.txt", "images/2.jpg\n")
    write("pets/notes.txt", "made up\n")
    assert shardmill("convert", "pets", "-o", "out").code == 0
    assert {one: len(boxes("out", one)) for one in splits_of("out")} == {"train": 1, "hold_out": 1}


@pytest.mark.parametrize("start", ["", "pets-"])
@pytest.mark.parametrize("names", [("train", "hold_out"), ("test", "train", "hold out"), ("val", "Day", "night")])
def test_shards_of_a_split_of_another_name_stop_a_run_whose_commands_run(
    names: tuple[str, ...], start: str, shardmill: Shardmill
) -> None:
    for number, name in enumerate(names):
        for part in range(2):
            write(f"rows/{start}{name}-0000{part}-of-00002.csv", f"a\n{number}\n")
    refused = shardmill("convert", "rows", "-o", "out")
    assert refused.code == 2
    each, all_in_one = choices_in(refused.err)
    assert shardmill(*each).code == 0
    splits = [name.lower().replace(" ", "_") for name in names]
    assert {split: open_dataset("out")[split][0]["a"] for split in open_dataset("out").splits} == {
        split: number for number, split in enumerate(splits)
    }
    assert shardmill(*all_in_one, "--overwrite").code == 0
    assert list(open_dataset("out").splits) == ["train"]


@pytest.mark.parametrize("form", ["{}.csv", "{}/a.csv"])
def test_one_name_of_a_split_beside_another_is_a_line_whose_option_makes_two_splits(
    form: str, shardmill: Shardmill
) -> None:
    for number, name in enumerate(("train", "hold out")):
        write(f"rows/{form.format(name)}", f"a\n{number}\n")
    screen = shardmill("convert", "rows", "-o", "one").out
    line = next(one for one in screen.splitlines() if "alone has the name of a split" in one)
    assert "train" in line
    assert "hold out" in line
    options = shlex.split(line.rpartition("which split: ")[2])
    assert shardmill("convert", "rows", "-o", "out", *options).code == 0
    assert {one: open_dataset("out")[one][0]["a"] for one in open_dataset("out").splits} == {"train": 0, "hold_out": 1}


def in_four_folders() -> None:
    for split in ("train", "valid", "test"):
        picture(f"pets/{split}/images/{split}.jpg")
        yolo(f"pets/{split}/labels/{split}.txt")


@pytest.mark.parametrize(
    ("places", "splits"),
    [
        ("train: [train/images, valid/images]\nval: test/images\n", {"train": ["train", "valid"], "val": ["test"]}),
        ("train: ../valid/images\nval: ../train/images\n", {"train": ["valid"], "val": ["train"], "test": ["test"]}),
        ("train: train/images\nval: [test/images, valid/images]\n", {"train": ["train"], "val": ["test", "valid"]}),
    ],
)
def test_a_data_yaml_with_other_splits_than_the_names_of_folders_is_right(
    places: str, splits: dict[str, list[str]], shardmill: Shardmill
) -> None:
    in_four_folders()
    write("pets/data.yaml", f"{places}names: [cat, dog]\n")
    screen = shardmill("convert", "pets", "-o", "out").out
    found = splits_of("out")
    assert {one: sorted(Path(name).stem for name in names) for one, names in found.items()} == splits
    assert "from data.yaml, not from folders" in screen


@pytest.mark.parametrize(
    "places",
    [
        "train: train/images\nval: valid/images\n",
        "train: train/images\nval: train/images\n",
        "train: a/images\nval: b/images\n",
    ],
)
def test_a_data_yaml_that_says_nothing_else_leaves_the_names_of_folders(places: str, shardmill: Shardmill) -> None:
    in_four_folders()
    write("pets/data.yaml", f"{places}names: [cat, dog]\n")
    assert "from the names of folders" in shardmill("convert", "pets", "-o", "out").out
    assert set(splits_of("out")) == {"train", "valid", "test"}


@pytest.mark.parametrize("named", [2, 3])
def test_lists_of_a_data_yaml_take_the_pictures_that_they_name_alone(named: int, shardmill: Shardmill) -> None:
    for split in ("train", "val"):
        for name in ("a/1", "2", "3"):
            picture(f"pets/images/{split}/{name}.jpg")
            yolo(f"pets/labels/{split}/{name}.txt")
    write("pets/train.txt", "".join(f"./images/train/{name}.jpg\n" for name in ("a/1", "2", "3")[:named]))
    write("pets/val.txt", "".join(f"./images/val/{name}.jpg\n" for name in ("a/1", "2", "3")))
    write("pets/data.yaml", "train: train.txt\nval: val.txt\nnames: [cat, dog]\n")
    screen = shardmill("convert", "pets", "-o", "out").out
    assert {one: len(names) for one, names in splits_of("out").items()} == {"train": named, "val": 3}
    assert ("1 file that no list of a split names is left out" in screen) == (named == 2)
    assert "name none of these files" not in screen


def instances(folder: str) -> None:
    for first, name in enumerate(("day", "night", "rain-2")):
        picture(f"pets/{folder.format(name)}/{name}.jpg")
        coco(f"pets/annotations/instances_{name}.json", [f"{name}.jpg"], first=first)


def test_instances_of_names_that_have_folders_of_pictures_are_splits(shardmill: Shardmill) -> None:
    instances("{}")
    assert shardmill("convert", "pets", "-o", "out").code == 0
    assert_one_each("day", "night", "rain_2")


def test_instances_of_names_that_are_no_splits_stop_a_run_whose_commands_run(shardmill: Shardmill) -> None:
    instances("images")
    refused = shardmill("convert", "pets", "-o", "out")
    assert refused.code == 2
    assert "may state splits (instances_day.json, instances_night.json, instances_rain-2.json)" in refused.err
    each, all_in_one = choices_in(refused.err)
    assert shardmill(*each).code == 0
    assert_one_each("day", "night", "rain_2")
    assert shardmill(*all_in_one, "--overwrite").code == 0
    assert len(boxes("out", "train")) == 3


@pytest.mark.parametrize("classes", [[(0, "dog"), (1, "cat")], [(5, "cat"), (6, "dog")]])
def test_one_class_of_coco_with_two_numbers_stops_a_run(classes: list[tuple[int, str]], shardmill: Shardmill) -> None:
    for one in ("train", "val"):
        in_coco(one)
    path = Path("pets/val/_annotations.coco.json")
    document = json.loads(path.read_text())
    document["categories"] = [{"id": number, "name": name} for number, name in classes]
    document["annotations"][0]["category_id"] = classes[0][0]
    path.write_text(json.dumps(document))
    refused = shardmill("convert", "pets", "-o", "out")
    assert refused.code == 1
    assert "pets/val/_annotations.coco.json: the category " in refused.err
    assert "give files with one list of categories" in refused.err
    assert not Path("out/dataset.json").exists()


@pytest.mark.parametrize(
    "form", ["data/{split}_{kind}-00000-of-00001.csv", "{kind}-{split}.csv", "{split}_{kind}_{n}.csv"]
)
def test_names_with_other_words_beside_those_of_splits_are_splits_of_their_own_by_the_first_command(
    form: str, shardmill: Shardmill
) -> None:
    wanted = dict[str, list[int]]()
    for number, (split, kind) in enumerate([("train", "prefs"), ("train", "sft"), ("test", "prefs"), ("test", "sft")]):
        name = f"{kind}_{split}" if form.startswith("{kind}") else f"{split}_{kind}"
        wanted[name] = [number] * (2 if "{n}" in form else 1)
        for n in (1, 2):
            write(f"in/{form.format(split=split, kind=kind, n=n)}", f"n\n{number}\n")
    refused = shardmill("convert", "in", "-o", "out")
    command = choices_in(refused.err)[0]
    assert shardmill(*command).code == 0
    dataset = open_dataset("out")
    assert {split: [row["n"] for row in dataset[split]] for split in dataset.splits} == wanted


@pytest.mark.parametrize("names", [("train_1", "train_2", "test_1"), ("sales-train", "sales-test")])
def test_names_without_other_words_have_no_command_for_splits_of_their_own(
    names: tuple[str, ...], shardmill: Shardmill
) -> None:
    for name in names:
        write(f"in/{name}.csv", "n\n1\n")
    assert "input.splits=names" in shardmill("convert", "in", "-o", "out").err.splitlines()[1]
