"""Sets whose parts stand side by side, as tools write them: labels, versions and tables are told apart."""

from __future__ import annotations

import json
import re
import shlex
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


TRANSLATED = {
    "suffixes": ("d/train.de", "d/train.en", "d/val.de", "d/val.en"),
    "suffixes of FLORES": ("d/train.deu_Latn", "d/train.eng_Latn", "d/val.deu_Latn", "d/val.eng_Latn"),
    "suffixes before .txt": ("d/train.de.txt", "d/train.en.txt", "d/val.de.txt", "d/val.en.txt"),
    "sources and targets": ("d/train.source", "d/train.target", "d/val.source", "d/val.target"),
    "texts and their labels": ("d/train_text.txt", "d/train_labels.txt", "d/val_text.txt", "d/val_labels.txt"),
    "texts in folders of splits": ("d/train/seq.txt", "d/train/seq_tags.txt", "d/val/seq.txt", "d/val/seq_tags.txt"),
    "splits in both": ("d/train/x_train.txt", "d/train/x_act_train.txt", "d/val/x_val.txt", "d/val/x_act_val.txt"),
    "languages in folders of splits": ("d/train/a.de", "d/train/a.en", "d/val/a.de", "d/val/a.en"),
    "sources and targets in front": ("d/src-train.txt", "d/tgt-train.txt", "d/src-val.txt", "d/tgt-val.txt"),
}


@pytest.mark.parametrize("form", TRANSLATED)
def test_texts_whose_lines_belong_together_are_read_by_line_of_both(form: str, shardmill: Shardmill) -> None:
    files = TRANSLATED[form]
    lines = [["Eins", "", "Drei\x85 und"], ["One", "", "Three"], ["Vier", "Fünf"], ["Four", "Five"]]
    put({file: "\n".join([*some, ""]) for file, some in zip(files, lines, strict=True)} | {"d/README": "a note\n"})
    stop = shardmill("convert", "d", "-o", "out")
    found = re.search(r"in Python, a record for each line: (.*?)(?:; if it is meant so: .*)?$", stop.err, re.MULTILINE)
    assert stop.code != 0, stop.out
    assert found, stop.err
    subprocess.run([sys.executable, "-c", found[1]], check=True)
    dataset = open_dataset("out")
    rows = {
        split: [[row[name] for name in row if name != "split"] for row in dataset[split]] for split in ("train", "val")
    }
    if form == "texts and their labels":  # columns are in the order of their names
        rows = {split: [row[::-1] for row in found] for split, found in rows.items()}
    assert rows == {
        "train": [["Eins", "One"], ["", ""], ["Drei\x85 und", "Three"]],
        "val": [["Vier", "Four"], ["Fünf", "Five"]],
    }


@pytest.mark.parametrize(
    "files",
    [
        {"d/a.de.txt": "1\n2\n", "d/a.en.txt": "1\n"},
        {"d/a.de.txt": "1\n2\n", "d/b.en.txt": "3\n4\n"},
        {"d/train/news.txt": "1\n2\n", "d/train/books.txt": "3\n4\n", "d/test/news.txt": "5\n6\n"},
    ],
    ids=str,
)
def test_texts_of_other_names_or_other_numbers_of_lines_are_texts(files: dict[str, str], shardmill: Shardmill) -> None:
    put(files)
    assert shardmill("convert", "d", "-o", "out").code == 0


ROWS = [f"{number},the value {number}" for number in range(100)]


@pytest.mark.parametrize("header", [["id,name"], []])
@pytest.mark.parametrize(
    "part", [ROWS[:20], ROWS[40:50], [*ROWS[:9], "9,another value"], ["0,another value", *ROWS[1:]]], ids=str
)
def test_rows_that_are_in_another_file_too_are_told(header: list[str], part: list[str], shardmill: Shardmill) -> None:
    put({"d/all.csv": "\n".join([*header, *ROWS, ""]), "d/some.csv": "\n".join([*header, *part, ""])})
    screen = shardmill("convert", "d", "-o", "out", *([] if header else ["--no-header"]))
    names = ("d/some.csv", "d/all.csv") if len(part) < len(ROWS) else ("d/all.csv", "d/some.csv")
    told = f"the first rows of {names[0]} are in {names[1]} too, so that rows may come twice"
    assert (screen.code, told in screen.out) == (0, True), screen.out


def test_files_of_other_rows_are_not_said_to_have_rows_twice(shardmill: Shardmill) -> None:
    texts = [f"{number},another value {number}" for number in range(200, 300)]
    put({"d/a.csv": "\n".join(["id,name", *ROWS]), "d/b.csv": "\n".join(["id,name", *ROWS[:2], *texts])})
    assert "twice" not in shardmill("convert", "d", "-o", "out").out


def test_transcripts_in_a_list_of_pictures_keep_their_quotes_and_are_no_classes(shardmill: Shardmill) -> None:
    texts = {"train": ["Genaxis", '"EXIT"', '5" nails'], "test": ["[06]", "62-03"]}
    for split, some in texts.items():
        names = [f"{split}/word_{number}.png" for number in range(len(some))]
        put({f"d/{name}": "" for name in names})
        put({f"d/rec_gt_{split}.txt": "".join(f"{name}\t{one}\n" for name, one in zip(names, some, strict=True))})
    screen = shardmill("convert", "d", "-o", "out")
    found = re.search(r"list pictures with a text each, .*; to read the lines: shardmill (.*)", screen.out)
    assert found, screen.out
    assert shardmill(*shlex.split(found[1])).code == 0
    dataset = open_dataset("out")
    assert {split: [row["text"] for row in dataset[split]] for split in texts} == texts


def test_boxes_of_ppocrlabel_are_texts_of_json_and_no_folder_is_proposed_that_is_unclear_too(
    shardmill: Shardmill,
) -> None:
    box = '[{"transcription": "TOTAL", "points": [[3, 4], [9, 4]], "difficult": false}]'
    put({f"d/receipts/img_{number}.jpg": "" for number in range(2)} | {"d/receipts/crop_img/img_0_crop_0.jpg": ""})
    put({"d/receipts/Label.txt": "".join(f"receipts/img_{number}.jpg\t{box}\n" for number in range(2))})
    stop = shardmill("convert", "d", "-o", "out")
    found = re.search(r"Label.txt lists pictures with a text each, .*; to read the lines: shardmill (.*)", stop.err)
    assert (stop.code, "to read that folder alone" in stop.err) == (2, False)
    assert found, stop.err
    assert shardmill(*shlex.split(found[1])).code == 0
    assert [row["text"] for row in open_dataset(found[1].split(" -o ")[1].split()[0])["train"]] == [box, box]


@pytest.mark.parametrize("names", [("Training_set", "Testing_set"), ("training", "testing"), ("train", "test")])
def test_tables_of_splits_beside_their_folders_are_read_where_both_have_the_same_names(
    names: tuple[str, str], shardmill: Shardmill
) -> None:
    put({f"d/{split}/Image_{number}.jpg": "" for split in ("train", "test") for number in (1, 2)})
    put({f"d/{names[0]}.csv": "filename,label\nImage_1.jpg,ADONIS\nImage_2.jpg,MONARCH\n"})
    put({f"d/{names[1]}.csv": "filename\nImage_1.jpg\nImage_2.jpg\n"})
    stop = shardmill("convert", "d", "-o", "out")
    found = dict(re.findall(r"d/(\w+).csv names pictures .*; to read its rows: shardmill (.*)", stop.err))
    assert {*found} == {*names}, stop.err
    assert "schema.files_root=d/train" in found[names[0]]
    assert "schema.files_root=d/test --set output.split=test" in found[names[1]]
    assert all(shardmill(*shlex.split(command)).code == 0 for command in found.values())


TABLES_IN_TEXTS: dict[str, tuple[list[str], int]] = {
    "semicolons, with a word for null": (["Date;Time;Power", "1/2/2007;17:24;4.2", "1/2/2007;17:25;?"], 3),
    "texts and a word": (["I feel low;sadness", "I am so glad;joy", "It hurts;sadness"], 2),
    "tabs, with quotes in texts": (['1\tVila "V\tVila "V', "2\tSoldeu\tSoldeu", '3\tXixe "r\tXixe'], 3),
    "tabs": (["id\tname\tplace", "1\ta\tb", "2\tc\td"], 3),
}  # fmt: skip


@pytest.mark.parametrize("form", TABLES_IN_TEXTS)
def test_a_table_in_a_text_is_said_to_be_one_with_the_command_that_reads_it(form: str, shardmill: Shardmill) -> None:
    lines, width = TABLES_IN_TEXTS[form]
    put({"d/a.txt": "\n".join([*lines, ""])})
    screen = shardmill("convert", "d", "-o", "out")
    found = re.search(r"look like a table with .*; if it is one: shardmill (.*)", screen.out)
    assert found, screen.out
    assert shardmill(*shlex.split(found[1])).code == 0
    dataset = open_dataset("out")
    names = "--no-header" not in found[1]
    assert (len(dataset["train"]), dataset["train"].to_arrow().num_columns) == (len(lines) - names, width)


def test_of_several_tables_in_texts_each_is_said_to_be_one(shardmill: Shardmill) -> None:
    put({"d/occurrence.txt": "id\tplace\tday\n1\ta\t2\n2\tb\t3\n", "d/multimedia.txt": "id\turl\n1\thttp://a\n"})
    put({"d/citations.txt": "Cite all of these.\n", "d/rights.txt": "CC BY\nfor all\n"})
    screen = shardmill("convert", "d", "-o", "out")
    found = re.findall(r"table with tabs; if it is one: shardmill (.*)", screen.out)
    assert [command.split()[1] for command in found] == ["d/multimedia.txt", "d/occurrence.txt"], screen.out
    assert [shardmill(*shlex.split(one)).code for one in found] == [0, 0], "each is a dataset of its own"
    assert open_dataset("out-occurrence")["train"].to_arrow()["place"].to_pylist() == ["a", "b"]
    assert open_dataset("out-multimedia")["train"].to_arrow()["url"].to_pylist() == ["http://a"]
    assert len(open_dataset("out")["train"]) == 8


@pytest.mark.parametrize("text", ["I came, saw.\nHe went, so.\nShe left, yes.\n", "a;b\nc\nd;e;f\n"])
def test_lines_of_text_are_not_said_to_be_a_table(text: str, shardmill: Shardmill) -> None:
    put({"d/a.txt": text})
    assert "table" not in shardmill("convert", "d", "-o", "out").out


def test_labels_in_two_documents_of_splits_keep_these_by_the_line_that_is_printed(shardmill: Shardmill) -> None:
    put({f"d/images/{number}.jpg": "" for number in range(5)})
    for split, numbers in (("train", range(3)), ("validation", range(3, 5))):
        rows = [{"image_url": f"azureml://paths/images/{number}.jpg", "label": "can"} for number in numbers]
        put({f"d/{split}_annotations.jsonl": "".join(f"{json.dumps(row)}\n" for row in rows)})
    screen = shardmill("convert", "d", "-o", "out", "--set", "input.format=images", "--set", "input.layout=flat")
    found = re.search(r"metadata.jsonl in Python: (.*); then: shardmill (.*)", screen.out)
    assert found, screen.out
    subprocess.run([sys.executable, "-c", found[1]], check=True)
    done = shardmill(*shlex.split(found[2]))
    assert done.code == 0, done.err
    dataset = open_dataset("out")
    assert {split: len(dataset[split]) for split in dataset.splits} == {"train": 3, "validation": 2}


def test_classes_far_below_splits_are_read_with_these_by_the_option_that_is_printed(shardmill: Shardmill) -> None:
    kinds = ("study1_negative", "study1_positive")
    put({f"d/{split}/ELBOW/p{n}/{kind}/1.png": "" for split in ("train", "valid") for kind in kinds for n in (1, 2)})
    stop = shardmill("convert", "d", "-o", "out")
    found = re.search(
        r"innermost folders as classes: (--set input.layout=inner_label --set input.splits=names)\n", stop.err
    )
    assert found, stop.err
    assert shardmill("convert", "d", "-o", "out", *found[1].split()).code == 0
    dataset = open_dataset("out")
    assert {split: len(dataset[split]) for split in dataset.splits} == {"train": 4, "valid": 4}
    assert dataset.manifest.labels == {"image/class/label": kinds}


def test_a_copy_below_classes_of_patients_is_named_with_the_command_that_reads_it_alone(shardmill: Shardmill) -> None:
    patients = {f"{patient}/{kind}/{patient}_{kind}.png": "" for patient in ("1", "2", "3") for kind in ("0", "1")}
    put({f"d/{one}": "" for one in patients if not one.startswith("3")} | {f"d/IDC/{one}": "" for one in patients})
    stop = shardmill("convert", "d", "-o", "out")
    found = re.search(r"as a copy does; to read it alone: shardmill (.*)", stop.err)
    assert found, stop.err
    assert found[1] == "convert d/IDC -o out"


def test_a_folder_of_one_split_beside_files_of_others_is_read_with_them(shardmill: Shardmill) -> None:
    rows = {"train/00": [1, 2], "train/01": [3], "val": [4], "test": [5]}
    put({f"d/{name}.jsonl": "".join(f'{{"n": {n}}}\n' for n in some) for name, some in rows.items()})
    stop = shardmill("convert", "d", "-o", "out")
    found = re.search(r"  train, test, val: +shardmill (.*)", stop.err)
    assert found, stop.err
    assert shardmill(*shlex.split(found[1])).code == 0
    dataset = open_dataset("out")
    assert {split: len(dataset[split]) for split in dataset.splits} == {"test": 1, "train": 3, "val": 1}


def test_boxes_of_pictures_in_folders_of_classes_stop_a_run_with_the_option_that_keeps_splits_and_classes(
    shardmill: Shardmill,
) -> None:
    places = [
        (split, kind, n) for split in ("train", "validation") for kind in ("crazing", "inclusion") for n in (1, 2)
    ]
    put({f"d/{split}/images/{kind}/{split}_{kind}_{n}.jpg": "" for split, kind, n in places})
    xml = "<annotation><filename>{0}.jpg</filename><object><name>x</name><bndbox><xmin>0</xmin><ymin>0</ymin>"
    xml += "<xmax>2</xmax><ymax>2</ymax></bndbox></object></annotation>"
    names = [(split, f"{split}_{kind}_{n}") for split, kind, n in places]
    put({f"d/{split}/annotations/{name}.xml": xml.format(name) for split, name in names})
    stop = shardmill("convert", "d", "-o", "out")
    found = re.search(r"innermost folders as classes: (.*)", stop.err)
    assert found, stop.err
    assert "has the name of Pascal VOC annotations" in stop.err
    assert shardmill("convert", "d", "-o", "out", *found[1].split()).code == 0
    dataset = open_dataset("out")
    assert {split: len(dataset[split]) for split in dataset.splits} == {"train": 4, "validation": 4}


@pytest.mark.parametrize(
    ("folders", "command"),
    [
        (
            {"rps": "train", "rps-test-set": "test", "rps-val": "val"},
            '\'input.splits={"train": "rps/*", "test": "rps-test-set/*", "val": "rps-val/*"}\'',
        ),
        (
            {"horse-or-human": "train", "validation-horse-or-human": "validation"},
            '\'input.splits={"train": "horse-or-human/*", "validation": "validation-horse-or-human/*"}\'',
        ),
    ],
    ids=["three", "two"],
)
def test_a_folder_of_the_words_beside_the_name_of_a_split_is_that_for_training_by_the_command_that_is_printed(
    folders: dict[str, str], command: str, shardmill: Shardmill
) -> None:
    put({f"d/{one}/{kind}/{one}_{n}.png": "" for one in folders for kind in ("horses", "humans") for n in range(2)})
    stop = shardmill("convert", "d", "-o", "out")
    found = re.search(r"names of folders may mean splits: .*\n +\w+, .*: +shardmill (.*)", stop.err)
    assert found, stop.err
    assert found[1].endswith(command)
    assert "the folders are classes" not in stop.err, "they hold folders of classes"
    assert shardmill(*shlex.split(found[1])).code == 0
    dataset = open_dataset("out")
    assert {split: len(dataset[split]) for split in dataset.splits} == dict.fromkeys(sorted(folders.values()), 4)
    assert dataset.labels == {"image/class/label": ("horses", "humans")}


def test_a_class_with_a_word_for_a_split_beside_its_like_stops_with_the_command_that_reads_classes(
    shardmill: Shardmill,
) -> None:
    put({f"d/{kind}/{n}.png": "" for kind in ("litmus", "litmus_test") for n in range(2)})
    stop = shardmill("convert", "d", "-o", "out")
    found = re.search(r"the folders are classes: +shardmill (.*)", stop.err)
    assert found, stop.err
    assert shardmill(*shlex.split(found[1])).code == 0
    assert open_dataset("out").labels == {"image/class/label": ("litmus", "litmus_test")}


def test_a_stop_of_splits_names_the_folders_beside_pictures_that_no_command_reads(shardmill: Shardmill) -> None:
    for split in ("train", "test"):
        put({f"d/ch4_{split}_images/img_{n}.jpg": "" for n in range(3)})
        put({f"d/ch4_{split}_gt/gt_img_{n}.txt": "1,2,3,4,5,6,7,8,word\n" for n in range(3)})
    stop = shardmill("convert", "d", "-o", "out")
    assert "names of folders may mean splits" in stop.err
    assert "\nnothing above reads d/ch4_test_gt, d/ch4_train_gt\n" in stop.err


def test_pictures_alone_are_those_of_folders_of_their_name_beside_folders_of_masks(shardmill: Shardmill) -> None:
    for split, count in (("training", 3), ("validation", 2)):
        put({f"d/{split}/images/{n}.jpg": "" for n in range(count)})
        put({f"d/{split}/{one}/{n}.png": "" for one in ("labels", "panoptic") for n in range(count)})
    put({"d/testing/images/8.jpg": "", "d/demo.png": ""})
    stop = shardmill("convert", "d", "-o", "out")
    found = re.search(r"to read the pictures alone \(without those in (.*?)\): (.*)", stop.err)
    assert found, stop.err
    assert found[1] == "d, d/training/panoptic, d/validation/panoptic"
    read = [word for word in shlex.split(found[2]) if word.startswith("d/")]
    assert read == ["d/testing/images", "d/training/images", "d/validation/images"]


def test_tables_of_other_columns_with_the_same_splits_have_a_command_each(shardmill: Shardmill) -> None:
    rows = {"qrels": "{n}\t0\t{n}\t1\n", "queries": "{n}\twho is {n}?\n"}
    files = {f"d/{name}.{split}.tsv": row for name, row in rows.items() for split in ("train", "dev")}
    put({file: "".join(row.format(n=n) for n in range(3)) for file, row in files.items()})
    put({"d/collection.tsv": "0\ta passage\n"})
    stop = shardmill("convert", "d", "-o", "out")
    assert "qrels and queries have other columns, and are datasets; choose one of" in stop.err
    for name in rows:
        found = re.search(rf"  {name}: +shardmill (.*)", stop.err)
        assert found, stop.err
        assert shardmill(*shlex.split(found[1]), "--no-header").code == 0
        dataset = open_dataset(f"out-{name}")
        assert {split: len(dataset[split]) for split in dataset.splits} == {"dev": 3, "train": 3}
