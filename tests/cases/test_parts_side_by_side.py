"""Sets whose parts stand side by side, as tools write them: labels, versions and tables are told apart."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from shardmill.pipelines import open_dataset

from ..command_line import Shardmill
from .test_texts_and_tables_beside_others import in_a_folder, put

__all__ = ["in_a_folder"]


@pytest.mark.parametrize("name", ["info.labels", "bounding_boxes.labels", "info.json"])
def test_labels_of_edge_impulse_are_read_by_the_line_that_is_printed(name: str, shardmill: Shardmill) -> None:
    pictures = {f"{split}/{n}.png": split for split in ("training", "testing") for n in range(3)}
    put({f"d/{picture}": "" for picture in pictures})
    box = {"label": "can", "x": 1, "y": 0, "width": 2, "height": 2}
    rows = [{"path": one, "category": split, "boundingBoxes": [box]} for one, split in pictures.items()]
    put({f"d/{name}": json.dumps({"version": 1, "files": rows})})
    screen = shardmill("convert", "d", "-o", "plain")
    assert screen.code == 0, screen.err
    found = re.search(
        rf"d/{name} names pictures in its key \"path\".* in Python: (.*); then: shardmill (.*)", screen.out
    )
    assert found, screen.out
    subprocess.run([sys.executable, "-c", found[1]], check=True)
    done = shardmill(*found[2].replace("plain", "out").split())
    assert done.code == 0, done.err
    dataset = open_dataset("out")
    assert {split: len(dataset[split]) for split in dataset.splits} == {"testing": 3, "training": 3}
    assert dataset["training"].to_arrow()["boundingBoxes"].to_pylist() == [[box]] * 3


@pytest.mark.parametrize("folders", [["box", "entities"], ["notes"], ["text"]])
@pytest.mark.parametrize("pictures", ["img", "images"])
def test_texts_with_the_names_of_pictures_in_folders_beside_these_are_named(
    folders: list[str], pictures: str, shardmill: Shardmill
) -> None:
    for split in ("train", "test"):
        put({f"d/{split}/{pictures}/X{n}.jpg": "" for n in range(3)})
        put({f"d/{split}/{folder}/X{n}.txt": "total 9.50\n" for folder in folders for n in range(3)})
    screen = shardmill("convert", "d", "-o", "out")
    assert screen.code == 0, screen.err
    assert f"d/test/{folders[0]}" in screen.out
    assert "have files with names of pictures, and their files are not read, such as d/" in screen.out


@pytest.mark.parametrize("named", [True, False])
def test_columns_without_names_are_not_proposed_as_one_list(named: bool, shardmill: Shardmill) -> None:
    header = [",".join(f"p{n}" for n in range(188))] if named else []
    rows = [",".join([*(f"{(row + n) % 7 / 8}" for n in range(187)), f"{row % 3}"]) for row in range(12)]
    Path("a.csv").write_text("\n".join([*header, *rows]) + "\n")
    screen = shardmill("convert", "a.csv", "-o", "out", *([] if named else ["--no-header"]))
    assert screen.code == 0, screen.err
    assert ("to have them as one list" in screen.out) == named, "a class may be the last of them"


@pytest.mark.parametrize("above", ["dataset", "a/b"])
@pytest.mark.parametrize("classes", [["images"], ["cat", "dog"]])
def test_a_folder_above_all_splits_is_no_class_where_their_names_are_taken(
    above: str, classes: list[str], shardmill: Shardmill
) -> None:
    for split in ("training_data", "testing_data"):
        put({f"d/{above}/{split}/{kind}/{n}.png": "" for kind in classes for n in range(2)})
    stop = shardmill("convert", "d", "-o", "out")
    assert stop.code != 0
    assert "--set input.splits=names" in stop.err
    done = shardmill("convert", "d", "-o", "out", "--set", "input.splits=names")
    assert done.code == 0, done.err
    labels = open_dataset("out").manifest.labels or {}
    assert list(labels.values()) == ([tuple(classes)] if len(classes) > 1 else [])


@pytest.mark.parametrize("many", [2, 12])
def test_folders_of_versions_of_the_same_pictures_are_read_one_at_a_time(many: int, shardmill: Shardmill) -> None:
    kinds = [f"Leaf___{n}" for n in range(many)]
    put({f"d/{one}/{kind}/{kind}-{n}a3f.jpg": "" for one in ("color", "grayscale") for kind in kinds for n in range(4)})
    put({f"d/segmented/{kind}/{kind}-{n}a3f_final_masked.jpg": "" for kind in kinds for n in range(4)})
    stop = shardmill("convert", "d", "-o", "out")
    assert stop.code != 0
    commands = re.findall(r"shardmill (convert .*)", stop.err)
    assert [one.split()[1] for one in commands] == ["d/color", "d/grayscale", "d/segmented"], stop.err
    done = shardmill(*commands[0].split())
    assert done.code == 0, done.err
    manifest = open_dataset("out").manifest
    assert (manifest.labels["image/class/label"], len(open_dataset("out")["train"])) == (tuple(sorted(kinds)), 4 * many)
    assert shardmill("convert", "d", "-o", "all", "--set", "input.layout=inner_label").code == 0
    both = open_dataset("all")
    assert (both.manifest.labels["image/class/label"], len(both["train"])) == (tuple(sorted(kinds)), 12 * many)


def test_folders_of_classes_with_other_names_of_files_are_no_versions(shardmill: Shardmill) -> None:
    put({f"d/p{p}/{kind}/{p}-{n}.png": "" for p in range(2) for kind in ("a", "b") for n in range(4)})
    assert "as versions of the same pictures do" not in shardmill("convert", "d", "-o", "out").err


@pytest.mark.parametrize("nested", [True, False])
def test_streams_of_airbyte_become_a_dataset_each(nested: bool, shardmill: Shardmill) -> None:
    streams = {"customers": {"email": "a@b.c", "country": "DE"}, "orders": {"total": 9.5, "status": "paid", "n": 1}}
    for stream, row in streams.items():
        row = {"id": 1, **row, "created_at": "2024-03-09"}
        about = {"_airbyte_raw_id": "x", "_airbyte_extracted_at": 1, "_airbyte_meta": {"changes": []}}
        line = json.dumps(about | ({"_airbyte_data": row} if nested else row)) + "\n"
        put({f"d/public/{stream}/2024_03_09_{n}_0.jsonl": line for n in (1709999, 1719999)})
    stop = shardmill("convert", "d", "-o", "out")
    assert stop.code != 0
    commands = re.findall(r"shardmill (convert .*)", stop.err)
    assert len(commands) == 2, stop.err
    for stream, command in zip(streams, commands, strict=True):
        assert shardmill(*command.split()).code == 0
        assert len(open_dataset(f"out-public-{stream}")["train"]) == 2


def test_two_tables_that_are_each_cut_into_splits_become_a_dataset_each(shardmill: Shardmill) -> None:
    for split, label in (("train", ",is_fraud"), ("test", "")):
        cell = ",0" if label else ""
        put({f"d/{split}_transaction.csv": f"TransactionID{label},amount,card,day\n1{cell},2.5,x,3\n"})
        put({f"d/{split}_identity.csv": "TransactionID,id_01,id_02,device\n1,0.5,7,phone\n"})
    put({"d/sample_submission.csv": "TransactionID,is_fraud\n1,0.5\n"})
    stop = shardmill("convert", "d", "-o", "out")
    commands = re.findall(r"shardmill (convert .*)", stop.err)
    assert (stop.code != 0, len(commands)) == (True, 2), stop.err
    second = shardmill(*commands[1].split())
    assert re.search(r"shardmill (convert .*transaction.*input.splits=names.*)", second.err), second.err


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (["features_3_sec.csv", "features_30_sec.csv"], True),
        (["sales_2021.csv", "sales_2022.csv"], False),
        (["part_1_of.csv", "part_2_of.csv"], False),
    ],
)
def test_tables_whose_names_differ_by_a_number_that_says_something_are_named(
    names: list[str], told: bool, shardmill: Shardmill
) -> None:
    put({f"d/{name}": f"a,b\n{number},{number}\n" for number, name in enumerate(names)})
    screen = shardmill("convert", "d", "-o", "out")
    assert (screen.code, "file names do not become part of the records" in screen.out) == (0, told), screen.err


def test_a_copy_of_all_classes_below_them_is_read_alone_by_the_command_that_is_printed(shardmill: Shardmill) -> None:
    put({f"d/{above}{kind}/{kind}{n}.png": "" for above in ("", "scans/") for kind in ("no", "yes") for n in range(3)})
    stop = shardmill("convert", "d", "-o", "out")
    found = re.search(r"to read it alone: shardmill (.*)", stop.err)
    assert stop.code != 0
    assert found, stop.err
    assert shardmill(*found[1].split()).code == 0
    assert len(open_dataset("out")["train"]) == 6


def test_a_form_for_answers_beside_pictures_is_no_table_of_them(shardmill: Shardmill) -> None:
    put({f"d/{split}/{n}/images/p{split}{n}.png": "" for split in ("stage1_train", "stage1_test") for n in range(2)})
    put({"d/stage1_sample_submission.csv": "ImageId,Pixels\npstage1_test0,1 1\npstage1_test1,1 1\n"})
    put({"d/stage1_train_labels.csv": "ImageId,Pixels\npstage1_train0,1 5\npstage1_train1,1 4\n"})
    stop = shardmill("convert", "d", "-o", "out")
    assert stop.code != 0
    assert "stage1_train_labels.csv names pictures" in stop.err
    assert "stage1_sample_submission.csv names pictures" not in stop.err
    assert "all of this in one command" not in stop.err, "one of two ways is chosen by the user"
