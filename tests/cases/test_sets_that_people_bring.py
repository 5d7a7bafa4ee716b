"""Folders as people find them: each is read as what it is, or the command on the screen reads it."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image
from shardmill.transforms.dataset.reading.open_dataset import open_dataset
from shardmill.transforms.dataset.storage.record_file import write_records

from ..command_line import Shardmill, need_program


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def make(files: dict[str, Any]) -> None:
    for name, content in files.items():
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix in (".jpg", ".png"):
            Image.new("RGB", (8, 6)).save(path)
        elif isinstance(content, pa.Table):
            pq.write_table(content, path)
        else:
            path.write_text(content if isinstance(content, str) else json.dumps(content))


def pictures(*names: str) -> dict[str, None]:
    return dict.fromkeys(names)


def pack(archive: str, picture: str) -> None:
    Path(archive).parent.mkdir(parents=True, exist_ok=True)
    if archive.endswith(".zip"):
        with zipfile.ZipFile(archive, "w") as packed:
            packed.write(picture, Path(picture).name)
    else:
        with tarfile.open(archive, "w") as tar:
            tar.add(picture, Path(picture).name)


def commands_in(screen: str) -> list[list[str]]:
    return [shlex.split(re.split(r"; | or shardmill|\nor ", one)[0]) for one in re.findall(r"shardmill (.*)", screen)]


def counts_of(path: str) -> dict[str, int]:
    return {name: len(open_dataset(path)[name]) for name in open_dataset(path).splits}


PARTS = {
    "classes below images": (pictures("d/images/1.cat/a.jpg", "d/images/2.dog/b.jpg"), ["d/images"], {"train": 2}),
    "pictures and masks": (pictures("d/images/a.jpg", "d/masks/a.png"), ["d/images", "d/masks"], {"train": 1}),
    "both in splits": (
        pictures(*(f"d/{part}/{split}/a.png" for part in ("images", "masks") for split in ("train", "val"))),
        ["d/images", "d/masks"],
        {"train": 1, "val": 1},
    ),
    "one folder around classes": (pictures("d/Objects_5/cat/a.jpg", "d/Objects_5/dog/b.jpg"), ["d/Objects_5"], None),
}


@pytest.mark.parametrize("case", PARTS)
def test_a_folder_that_holds_a_part_of_each_example_is_read_by_the_command_that_is_proposed(
    case: str, shardmill: Shardmill
) -> None:
    files, folders, counts = PARTS[case]
    make(files)
    screen = shardmill("convert", "d", "-o", "out")
    assert screen.code == 2, screen.out
    said = re.findall(r"shardmill (convert \S+ -o [^\s;]+)", screen.err)
    assert said == [f"convert {folder} -o out" for folder in folders]
    assert shardmill(*said[0].split()).code == 0
    assert counts_of("out") == (counts or {"train": 2})


TABLES = {
    "Kaggle's, beside the folders of both splits": (
        pictures("d/train/w0.jpg", "d/train/w1.jpg", "d/test/t0.jpg"),
        {"d/train.csv": "Image,Id\nw0.jpg,x\nw1.jpg,y\n", "d/submit.csv": "Image,Id\nt0.jpg,x\n"},
        [{"test": 1}, {"train": 2}],
    ),
    "names that both folders hold": (
        pictures("d/train/0.jpg", "d/test/0.jpg"),
        {"d/train.csv": "Image,Id\n0.jpg,x\n", "d/other.csv": "Image,Id\n0.jpg,x\n"},
        [{"train": 1}],
    ),
    "a folder named images": (
        pictures("d/images/0.jpg", "d/images/1.jpg"),
        {"d/labels.csv": "file,label\n0.jpg,cat\n1.jpg,dog\n"},
        [{"train": 2}],
    ),
    "a table in each split": (
        pictures("d/train/0.jpg", "d/test/0.jpg", "d/test/1.jpg"),
        {"d/train/labels.csv": "file,label\n0.jpg,1\n", "d/test/labels.csv": "file,label\n0.jpg,1\n1.jpg,2\n"},
        [{"test": 2, "train": 1}],
    ),
    "a table in each of two folders of classes": (
        pictures("d/Train/00/0.png", "d/Train/01/0.png"),
        {f"d/Train/0{n}/GT-0{n}.csv": f"Filename;ClassId\n0.png;{n}\n" for n in range(2)},
        [{"train": 2}],
    ),
    "a table in each of many folders of classes": (
        pictures(*(f"d/Train/{n}/0.png" for n in range(12))),
        {f"d/Train/{n}/GT-{n}.csv": f"Filename;ClassId\n0.png;{n}\n" for n in range(12)},
        [{"train": 12}],
    ),
    "a table in one split": (
        pictures("d/test/0.jpg"),
        {"d/test/labels.csv": "file,label\n0.jpg,1\n"},
        [{"test": 1}],
    ),
    "tables of splits beside folders of their pictures": (
        pictures("d/train_images/0.jpg", "d/val_images/1.jpg"),
        {"d/train_labels.csv": "file,label\n0.jpg,1\n", "d/val_labels.csv": "file,label\n1.jpg,1\n"},
        [{"train": 1}, {"val": 1}],
    ),
    "tables of splits beside one folder of pictures": (
        pictures("d/images/0.jpg", "d/images/1.jpg"),
        {"d/train_labels.csv": "file,label\n0.jpg,1\n", "d/val_labels.csv": "file,label\n1.jpg,1\n"},
        [{"train": 1}, {"val": 1}],
    ),
    "a table of one part of a challenge": (
        pictures("d/S-2017_Validation_Data/0.jpg", "d/S-2017_Training_Data/1.jpg"),
        {"d/S-2017_Validation_Part3_GroundTruth.csv": "file,label\n0,1\n"},
        [{"validation": 1}],
    ),
    "a table of words that mean a split, beside pictures of all": (
        pictures("d/images/0.jpg"),
        {"d/val_labels.csv": "file,label\n0.jpg,1\n"},
        [{"train": 1}],
    ),
    "a table of words that mean another split than those of the pictures": (
        pictures("d/train_images/0.jpg"),
        {"d/val_labels.csv": "file,label\n0.jpg,1\n"},
        [{"train": 1}],
    ),
    "a table and a folder whose words hold that of a split": (
        pictures("d/attest_images/0.jpg"),
        {"d/attest_labels.csv": "file,label\n0.jpg,1\n"},
        [{"train": 1}],
    ),
    "a table in the folder of pictures, whose words are no split": (
        pictures("d/testimony/0.jpg"),
        {"d/testimony/testimony.csv": "file,label\n0.jpg,1\n"},
        [{"train": 1}],
    ),
    "a table of train beside the folder of its pictures": (
        pictures("d/train_images/0.jpg"),
        {"d/train_labels.csv": "file,label\n0.jpg,1\n"},
        [{"train": 1}],
    ),
}


@pytest.mark.parametrize("case", TABLES)
def test_tables_that_name_pictures_below_are_read_by_the_commands_that_are_proposed(
    case: str, shardmill: Shardmill
) -> None:
    names, tables, counts = TABLES[case]
    make({**names, **tables})
    screen = shardmill("convert", "d", "-o", "out")
    assert (screen.code, "several kinds of files" in screen.err) == (2, True), screen.err
    found = []
    for words in commands_in(screen.err):
        done = shardmill(*words)
        assert (done.code, " image " in done.out) == (0, True), done.err
        found.append(counts_of(words[words.index("-o") + 1]))
    assert found == counts


def test_the_command_for_a_table_beside_pictures_keeps_the_split_that_was_given(shardmill: Shardmill) -> None:
    make({**pictures("d/Some_Data/0.jpg"), "d/Some_Data/rows.csv": "file,label\n0.jpg,1\n"})
    given = ["--set", "input.format=images", "--set", "output.split=training"]
    screen = shardmill("convert", "d/Some_Data", "-o", "out", *given)
    assert (screen.code, counts_of("out")) == (0, {"training": 1}), screen.err
    (words,) = (found for found in commands_in(screen.out) if "d/Some_Data/rows.csv" in found)
    done = shardmill(*words)
    assert (done.code, " image " in done.out, counts_of("out")) == (0, True, {"training": 1}), done.err


DOCUMENTS = {
    "pages of an interface": (
        {
            "a.json": {"count": 2, "results": [{"id": 1, "n": "007"}]},
            "b.json": {"count": 2, "results": [{"id": 2, "n": "8"}]},
        },
        [(1, "007"), (2, "8")],
    ),
    "arrays": ({"a.json": [{"id": 1, "n": "007"}, {"id": 2, "n": "8"}]}, [(1, "007"), (2, "8")]),
    "columns, as pandas writes them": (
        {"a.json": {"id": {"0": 1, "1": 2}, "n": {"0": "007", "1": "8"}}},
        [(1, "007"), (2, "8")],
    ),
    "records by key": ({"a.json": {"x": {"id": 1, "n": "007"}, "y": {"id": 2, "n": "8"}}}, [(1, "007"), (2, "8")]),
}


@pytest.mark.parametrize("case", DOCUMENTS)
def test_the_rows_of_documents_of_json_in_a_folder_are_read_by_the_line_of_python(
    case: str, shardmill: Shardmill
) -> None:
    files, rows = DOCUMENTS[case]
    make({f"d/{name}": content for name, content in files.items()})
    screen = shardmill("convert", "d", "-o", "out")
    (line,) = re.findall(r"in Python: (.*?convert\(data=.*, output='out'\))", screen.err)
    exec(line, {})
    assert [(row["id"], row["n"]) for row in open_dataset("out")["train"]] == rows


def test_files_without_a_suffix_are_read_as_what_their_first_bytes_say(shardmill: Shardmill) -> None:
    make({"d/2024_000-1": pa.table({"a": [1, 2]}), "d/2024_000-2": pa.table({"a": [3]})})
    screen = shardmill("convert", "d", "-o", "out")
    (words,) = commands_in(screen.err)
    assert shardmill(*words).code == 0
    assert [row["a"] for row in open_dataset("out")["train"]] == [1, 2, 3]


@pytest.mark.parametrize("key", ["split", "Split"])
def test_folders_that_engines_name_by_a_column_of_splits_are_splits(key: str, shardmill: Shardmill) -> None:
    make({f"d/{key}={split}/data_0.parquet": pa.table({"a": [1, 2]}) for split in ("train", "test")})
    assert shardmill("convert", "d", "-o", "out").code == 0
    assert counts_of("out") == {"train": 2, "test": 2}


def test_folders_of_another_column_with_names_of_splits_are_asked_for(shardmill: Shardmill) -> None:
    make({f"d/part={split}/data_0.parquet": pa.table({"a": [1, 2]}) for split in ("train", "test")})
    screen = shardmill("convert", "d", "-o", "out")
    assert (screen.code, "names of folders may mean splits" in screen.err) == (2, True), screen.err
    both, alone = commands_in(screen.err)
    assert shardmill(*both).code == 0
    assert counts_of("out") == {"train": 2, "test": 2}
    assert shardmill(*alone, "--overwrite").code == 0
    assert counts_of("out") == {"train": 2}


def test_a_folder_beside_those_with_words_of_splits_is_named_as_the_commands_leave_it_out(shardmill: Shardmill) -> None:
    for folder in ("seg_train/seg_train", "seg_test/seg_test"):
        make({f"d/{folder}/{kind}/a.parquet": pa.table({"a": [1, 2]}) for kind in ("sea", "street")})
    make({"d/seg_pred/seg_pred/a.parquet": pa.table({"a": [3]})})
    screen = shardmill("convert", "d", "-o", "out")
    assert "d/seg_pred is of none and in neither command" in screen.err
    for words, counts in zip(commands_in(screen.err), ({"train": 4, "test": 4}, {"train": 4}), strict=True):
        assert shardmill(*words, "--overwrite").code == 0
        assert counts_of("out") == counts


def test_pictures_in_folders_of_a_column_of_splits_are_in_these(shardmill: Shardmill) -> None:
    make(pictures("d/split=train/cat/a.jpg", "d/split=test/cat/b.jpg"))
    screen = shardmill("convert", "d", "-o", "out")
    assert screen.code == 0, screen.err
    assert counts_of("out") == {"train": 1, "test": 1}


@pytest.mark.parametrize("splits", [(), ("train", "test")])
def test_texts_in_class_folders_are_read_with_their_classes_by_the_line_of_python(
    splits: tuple[str, ...], shardmill: Shardmill
) -> None:
    above = [f"d/{split}" for split in splits] or ["d"]
    make(
        {
            f"{folder}/{name}/{number}.txt": f"a {name}\nfilm"
            for folder in above
            for name in ("neg", "pos")
            for number in (1, 2)
        }
    )
    screen = shardmill("convert", "d", "-o", "out")
    (line,) = re.findall(r"in Python: (.*?convert\(data=.*\))", screen.out)
    Path("out").rename("lines")
    exec(line, {})
    assert counts_of("out") == dict.fromkeys(sorted(splits) or ["train"], 4)
    for split in splits or ["train"]:
        found = {(row["class"], row["text"]) for row in open_dataset("out")[split]}
        assert found == {("neg", "a neg\nfilm"), ("pos", "a pos\nfilm")}


def test_texts_in_folders_of_splits_alone_or_in_one_folder_have_no_classes(shardmill: Shardmill) -> None:
    make({f"{folder}/1.txt": "a" for folder in ("one/train", "one/test", "two/a", "three/2022/01", "three/2022/02/x")})
    for folder in ("one", "two", "three"):
        assert "its folder the class" not in shardmill("convert", folder, "-o", f"out-{folder}").out


def options_in(line: str) -> list[str]:
    return shlex.split(line[line.index("--set") :])


QUOTED_ROWS = {
    "tabs": ('sentence\tlabel\n"a\t1\nb\t0\nc"\t1\nd\t0\n', "\t"),
    "commas": ('id,text,y\n1,"Best,4\n2,x,3\n3,ever",4\n5,last,3\n', ","),
}


@pytest.mark.parametrize("kind", QUOTED_ROWS)
def test_rows_between_two_quotes_that_are_text_are_said_with_the_key_that_reads_each(
    shardmill: Shardmill, kind: str
) -> None:
    text, delimiter = QUOTED_ROWS[kind]
    make({"d/train.csv": text})
    command = ["convert", "d", "-o", "out", "--set", f"input.delimiter={delimiter}"]
    screen = shardmill(*command)
    line = next(line for line in screen.out.splitlines() if "looks like whole rows" in line)
    assert (screen.code, counts_of("out"), line.startswith("Warning: ")) == (0, {"train": 2}, True)
    assert shardmill(*command, *options_in(line), "--overwrite").code == 0
    assert counts_of("out") == {"train": 4}


def test_text_of_several_lines_is_no_row(shardmill: Shardmill) -> None:
    make({"a.csv": 'id,address\n1,"12 High Street,\nLondon"\n2,"one\ntwo"\n'})
    assert "whole rows" not in shardmill("convert", "a.csv", "-o", "out").out


@pytest.mark.parametrize("words", [("train", "val", "test"), ("Training", "Validation", "Testing")])
@pytest.mark.parametrize("name", ["split", "the set"])
def test_a_column_of_names_of_splits_is_said_with_the_keys_that_split_by_it(
    shardmill: Shardmill, words: tuple[str, ...], name: str
) -> None:
    make({"a.csv": f"n,{name}\n" + "".join(f"{n},{words[n % 3]}\n" for n in range(12))})
    screen = shardmill("convert", "a.csv", "-o", "out")
    line = next(line for line in screen.out.splitlines() if "holds names of splits" in line)
    assert counts_of("out") == {"train": 12}
    split = shardmill("convert", "a.csv", "-o", "out", *options_in(line), "--overwrite")
    assert (split.code, "holds names of splits" in split.out) == (0, False)
    assert counts_of("out") == {word.lower(): 4 for word in words}


def test_a_column_of_other_words_or_of_one_split_says_nothing(shardmill: Shardmill) -> None:
    make({"a.csv": "n,kind,how\n1,train,train\n2,train,car\n3,train,bus\n"})
    assert "holds names of splits" not in shardmill("convert", "a.csv", "-o", "out").out


@pytest.mark.parametrize("typed", ["--set input.format=txt", "--format txt --set limits.field_bytes=1MiB"])
def test_the_commands_of_a_choice_repeat_the_options_that_were_typed(typed: str, shardmill: Shardmill) -> None:
    for split in ("train", "valid"):
        Path(f"{split}.en").write_text("a\nb\n")
    refused = shardmill("convert", "train.en", "valid.en", "-o", "out", *typed.split())
    by_names, as_one = commands_in(refused.err)
    for command, counts in ((by_names, {"train": 2, "valid": 2}), (as_one, {"train": 4})):
        assert {"input.format=txt", *typed.split()[3:]} <= set(command)
        done = shardmill(*command, "--overwrite")
        assert done.code == 0, done.err
        assert counts_of("out") == counts


@pytest.mark.parametrize("split", ["", "train/"])
def test_classes_in_names_of_folders_of_tables_are_said_with_what_makes_them_a_column(
    shardmill: Shardmill, split: str
) -> None:
    make(
        {f"d/{split}{name}/a.csv": "x\n1\n2\n" for name in ("neg", "pos")}
        | ({"d/test/neg/b.csv": "x\n3\n"} if split else {})
    )
    screen = shardmill("convert", "d", "-o", "out")
    line = next(
        line for line in screen.out.splitlines() if "folder names do not become part of the records: neg, pos" in line
    )
    subprocess.run(shlex.split(line.rpartition("such as: ")[2]), check=True)
    assert len(list(Path("d").rglob("class=neg"))) == 1
    for path in (path for path in Path("d").rglob("*") if path.name in ("neg", "pos")):
        path.rename(path.with_name(f"class={path.name}"))
    assert shardmill("convert", "d", "-o", "out", "--overwrite").code == 0
    assert open_dataset("out").to_arrow("train")["class"].to_pylist() == ["neg", "neg", "pos", "pos"]


CLASSES_OF_ARCHIVES = {
    "below splits": (["d/train/n01440764.tar", "d/train/n01443537.tar"], ["d"], "train"),
    "by their paths": (["d/cat.zip", "d/dog.zip"], ["d/cat.zip", "d/dog.zip"], "train"),
    "beside a split": (["d/train/cat.tar", "d/train/dog.tar", "d/val/img_val.tar"], ["d"], "train"),
    "beside the only one of a split": (["d/train/cat.tar", "d/train/dog.tar", "d/val/all.tar"], ["d"], "train"),
    "beside a word of a split": (["d/cat.tar", "d/dog.tar", "d/holdout_val.tar"], ["d"], "train"),
}


@pytest.mark.parametrize("case", CLASSES_OF_ARCHIVES)
def test_archives_that_are_named_by_classes_are_read_with_these_by_the_commands_that_are_said(
    case: str, shardmill: Shardmill
) -> None:
    archives, paths, split = CLASSES_OF_ARCHIVES[case]
    for number, path in enumerate(archives):
        make(pictures(f"made/{number}.jpg"))
        pack(path, f"made/{number}.jpg")
    screen = shardmill("convert", *paths, "-o", "out")
    said = re.search(r"names of the archives are not read: .*: (mkdir .*) && (.*); then: shardmill (.*)", screen.out)
    assert said, screen.out + screen.err
    assert [one for one in archives if f"(which leaves out {one})" in screen.out] == archives[2:]
    archives = archives[:2]
    need_program(said[2].split()[0])
    for path in archives:
        for command in said.groups()[:2]:
            stem, other = (one.rpartition(".")[0] for one in (archives[0], path))
            assert subprocess.run(shlex.split(command.replace(stem, other)), check=False).returncode == 0
    assert shardmill(*shlex.split(said[3]), "--overwrite").code == 0
    labels = [row["image/class/label"] for row in open_dataset("out")[split].to_arrow().to_pylist()]
    assert labels == [Path(one).stem for one in archives]


@pytest.mark.parametrize(
    "names", [["a-000.tar", "a-001.tar"], ["cat.tar"], ["train.tar", "val.tar"], ["1.tar", "2.tar"]]
)
def test_archives_that_are_parts_or_splits_are_not_said_to_be_classes(names: list[str], shardmill: Shardmill) -> None:
    for number, name in enumerate(names):
        make(pictures(f"made/{number}.jpg"))
        pack(f"d/{name}", f"made/{number}.jpg")
    screen = shardmill("convert", "d", "-o", "out", "--set", "input.splits=none")
    assert (screen.code, "archives are not read" in screen.out) == (0, False), screen.err


IN_TXT = {
    "bars": ("id|label|seen\n1|spam|\n2|ham|2024-01-02\n", "spam"),
    "commas": ('id,label,born\n1,spam,1910-01-02\n2,"ham, or",1911-01-02\n', "spam"),
    "tabs without a header": ("10\tname 10\t1910-01-02\n11\tname 11\t1911-01-02\n", "name 10"),
}


@pytest.mark.parametrize("case", IN_TXT)
def test_a_table_in_a_txt_file_is_said_with_the_command_that_reads_all_of_its_rows(
    case: str, shardmill: Shardmill
) -> None:
    text, value = IN_TXT[case]
    make({"d/t.txt": text})
    screen = shardmill("convert", "d", "-o", "out")
    assert "if it is one: shardmill" in screen.out, screen.out
    (words,) = commands_in(screen.out)
    done = shardmill(*words, "--overwrite")
    assert done.code == 0, done.err
    rows = open_dataset("out")["train"].to_arrow().to_pylist()
    assert (len(rows), value in rows[0].values()) == (2, True), rows


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Well, I know.\nSo, he said.\nThen, we went.\n", False),
        ("| a | b |\n|---|---|\n| 1 | 2 |\n", False),
        ("id  meta\n--  --------\n1   {a b c}\n", True),
    ],
)
def test_lines_of_text_are_no_table_and_aligned_columns_are_said_to_need_a_delimiter(
    text: str, said: bool, shardmill: Shardmill
) -> None:
    make({"a.txt": text})
    screen = shardmill("convert", "a.txt", "-o", "out")
    assert ("aligned columns; write it with a delimiter" in screen.out, "if it is one" in screen.out) == (said, False)


CHAINS: dict[str, tuple[list[str], list[dict[str, list[object]]]]] = {
    "Tiny ImageNet": (
        ["train/n1/images/a.jpg", "train/n2/images/b.jpg", "val/images/c.jpg", "test/images/d.jpg"],
        [{"test": [None]}, {"train": ["n1", "n2"]}, {"val": [None]}],
    ),
    "wrappers around one folder": (["VOCdevkit/VOC2012/JPEGImages/a.jpg"], [{"train": [None]}]),
    "wrappers around classes": (["a/b/cat/a.jpg", "a/b/dog/b.jpg"], [{"train": ["cat", "dog"]}]),
}


@pytest.mark.parametrize("case", CHAINS)
def test_folders_in_folders_are_read_by_the_commands_of_the_first_stop(case: str, shardmill: Shardmill) -> None:
    names, wanted = CHAINS[case]
    make(pictures(*(f"d/{name}" for name in names)))
    screen = shardmill("convert", "d", "-o", "out")
    assert screen.code == 2
    commands = re.search(r"to read (?:each split|that folder alone): (.*)", screen.err)
    assert commands, screen.err
    found = []
    for command in commands[1].split(" && "):
        words = shlex.split(command)[1:]
        assert shardmill(*words).code == 0, command
        dataset = open_dataset(words[words.index("-o") + 1])
        rows = {name: dataset[name].to_arrow().to_pylist() for name in dataset.splits}
        found.append({name: [row.get("image/class/label") for row in rows[name]] for name in rows})
    assert found == wanted


def test_classes_in_folders_of_patients_are_read_by_the_layout_that_is_proposed(shardmill: Shardmill) -> None:
    make(pictures("d/p1/benign/a.png", "d/p1/malignant/b.png", "d/p2/benign/c.png"))
    screen = shardmill("convert", "d", "-o", "out")
    said = re.search(r"(--set input.layout=inner_label) +root/p1/cat/1.jpg ", screen.err)
    assert (screen.code, bool(said)) == (2, True), screen.err
    assert said
    assert shardmill("convert", "d", "-o", "out", *said[1].split()).code == 0
    rows = open_dataset("out")["train"].to_arrow().to_pylist()
    assert [row["image/class/label"] for row in rows] == ["benign", "malignant", "benign"]
    assert [row["image/filename"] for row in rows] == ["p1/benign/a.png", "p1/malignant/b.png", "p2/benign/c.png"]


def test_files_of_uci_are_read_by_the_command_that_is_proposed_without_what_lies_beside_them(
    shardmill: Shardmill,
) -> None:
    make({"d/a.data": "39, Private, >50K\n50, ?, <=50K\n\n", "d/a.names": "age: continuous.\n", "d/Index": "x\n"})
    screen = shardmill("convert", "d", "-o", "out")
    assert (screen.code, "(without Index, a.names): shardmill" in screen.err) == (2, True), screen.err
    (words,) = commands_in(screen.err)
    assert shardmill(*words).code == 0
    rows = open_dataset("out")["train"].to_arrow().to_pylist()
    assert [list(row.values()) for row in rows] == [[39, "Private", ">50K"], [50, "?", "<=50K"]]
    alone = shardmill("convert", "d/a.data", "-o", "alone")
    options = re.search(r"its first lines show how to read it: (.*)", alone.err)
    assert options, alone.err
    assert shardmill("convert", "d/a.data", "-o", "alone", *shlex.split(options[1])).code == 0
    assert open_dataset("alone")["train"].to_arrow().to_pylist() == rows


def test_a_table_with_several_rows_of_a_picture_is_said_to_give_a_record_for_each(shardmill: Shardmill) -> None:
    make({"d/train/a.jpg": None, "d/val/b.jpg": None})
    make({"d/train/_annotations.csv": "filename,caption\na.jpg,a cat\na.jpg,a pet\n"})
    make({"d/val/_annotations.csv": "filename,caption\nb.jpg,a cat\n"})
    screen = shardmill("convert", "d", "-o", "out")
    assert "to read their rows, a record for each row, so that a picture in several rows comes several" in screen.out
    (words,) = commands_in(screen.out)
    assert shardmill(*words, "--overwrite").code == 0
    assert counts_of("out") == {"train": 2, "val": 1}


def test_few_files_of_columns_are_said_to_be_records_with_the_key_that_reads_their_rows(shardmill: Shardmill) -> None:
    Path("d").mkdir()
    for split, rows in (("train", 5), ("test", 3)):
        np.savez(f"d/{split}.npz", x=np.zeros((rows, 4)), y=np.arange(rows))
    command = ["convert", "d", "-o", "out", "--set", "input.splits=names", "--overwrite"]
    screen = shardmill(*command)
    line = next(line for line in screen.out.splitlines() if "its whole arrays" in line)
    assert (screen.code, counts_of("out"), line.startswith("Warning: ")) == (0, {"test": 1, "train": 1}, True)
    assert shardmill(*command, *options_in(line)[:2]).code == 0
    assert counts_of("out") == {"test": 3, "train": 5}


@pytest.mark.parametrize(("above", "counts"), [("", {"train": 2}), ("train/ test/", {"test": 2, "train": 2})])
def test_folders_of_img2dataset_are_said_to_be_no_classes_with_the_layout_that_reads_none(
    above: str, counts: dict[str, int], shardmill: Shardmill
) -> None:
    for split in above.split() or [""]:
        for shard in ("00000", "00001"):
            make({f"d/{split}{shard}/{shard}0000.jpg": None, f"d/{split}{shard}/{shard}0000.json": {"key": 1}})
            make({f"d/{split}{shard}.parquet": pa.table({"key": [1]}), f"d/{split}{shard}_stats.json": {"count": 1}})
    command = ["convert", "d", "-o", "out", "--set", "input.format=images", "--overwrite"]
    screen = shardmill(*command)
    line = next(line for line in screen.out.splitlines() if "look like shards" in line)
    assert screen.code == 0
    assert any("class" in name for name in open_dataset("out")["train"].to_arrow().column_names)
    again = shardmill(*command, *options_in(line))
    assert (again.code, counts_of("out"), "look like shards" in again.out) == (0, counts, False)
    assert not any("class" in name for name in open_dataset("out")["train"].to_arrow().column_names)


@pytest.mark.parametrize("name", ["fold{}", "fold_{}", "kfold{}"])
def test_folders_named_as_folds_are_said_to_be_classes_with_the_layout_that_reads_splits(
    name: str, shardmill: Shardmill
) -> None:
    make(pictures(*(f"d/{name.format(fold)}/{n}.png" for fold in (1, 2) for n in range(3))))
    screen = shardmill("convert", "d", "-o", "out")
    line = next(line for line in screen.out.splitlines() if "named as folds" in line)
    again = shardmill("convert", "d", "-o", "out", *options_in(line), "--overwrite")
    assert (screen.code, again.code, "named as folds" in again.out) == (0, 0, False)
    assert list(counts_of("out").values()) == [3, 3]


def test_classes_named_by_numbers_without_tables_beside_are_no_shards(shardmill: Shardmill) -> None:
    make(pictures("d/0/a.jpg", "d/1/b.jpg"))
    make({"d/0.csv": "a\n1\n"})
    assert "look like shards" not in shardmill("convert", "d", "-o", "out", "--set", "input.format=images").out


def test_masks_beside_pictures_are_a_warning_with_the_key_that_leaves_them_out(shardmill: Shardmill) -> None:
    names = ("benign/benign (1)", "benign/benign (2)", "malignant/m.rf.1")
    make(pictures(*(f"d/{name}{end}" for name in names for end in (".png", "_mask.png")), f"d/{names[0]}_mask_1.png"))
    screen = shardmill("convert", "d", "-o", "out")
    line = next(line for line in screen.out.splitlines() if "look like masks" in line)
    assert (screen.code, counts_of("out")) == (0, {"train": 7})
    assert line.startswith("Warning: 4 pictures look like masks of the picture beside, such as benign (1)_mask.png")
    again = shardmill("convert", "d", "-o", "out", *options_in(line), "--overwrite")
    assert (again.code, counts_of("out"), "look like masks" in again.out) == (0, {"train": 3}, False)


def test_pictures_of_people_in_masks_are_no_masks(shardmill: Shardmill) -> None:
    make(pictures("d/with_mask_1.jpg", "d/with_mask_2.jpg", "d/without_3.jpg"))
    assert "like" not in shardmill("convert", "d", "-o", "out").out


@pytest.mark.parametrize("splits", [["train"], ["train", "valid", "test"]], ids=["one", "three"])
def test_lines_of_roboflow_beside_pictures_are_a_warning_with_the_command_that_reads_them(
    splits: list[str], shardmill: Shardmill
) -> None:
    for split in splits:
        make(pictures(f"d/dataset/{split}_0.jpg", f"d/dataset/{split}_1.jpg"))
        rows = ({"image": f"{split}_{n}.jpg", "prefix": "detect cat", "suffix": f"<loc{n}> cat"} for n in range(2))
        make({f"d/dataset/_annotations.{split}.jsonl": "".join(f"{json.dumps(row)}\n" for row in rows)})
    screen = shardmill("convert", "d", "-o", "out")
    line = next(line for line in screen.out.splitlines() if "_annotations" in line)
    assert (screen.code, line.startswith("Warning: ")) == (0, True)
    (words,) = commands_in(line)
    assert shardmill(*words, "--overwrite").code == 0
    assert counts_of("out") == dict.fromkeys(sorted(splits), 2)
    assert [row["suffix"] for row in open_dataset("out")["train"]] == ["<loc0> cat", "<loc1> cat"]


def test_lines_of_roboflow_that_name_no_picture_are_a_warning(shardmill: Shardmill) -> None:
    make({"d/cat/a.jpg": None, "d/cat/_annotations.train.jsonl": "no JSON\n"})
    screen = shardmill("convert", "d", "-o", "out")
    assert "Warning: d/cat/_annotations.train.jsonl is beside pictures, and is not read" in screen.out


FLAGS = {
    "is_train": ([("True", "False")[n % 4 == 0] for n in range(12)], {"test": 3, "train": 9}),
    "is_test": ([("true", "false")[n % 4 == 0] for n in range(12)], {"test": 9, "train": 3}),
    "fold": ([str(n % 4) for n in range(12)], {"train": 9, "val": 3}),
}


@pytest.mark.parametrize("name", FLAGS)
def test_a_column_that_tells_one_split_or_folds_is_said_with_the_keys_that_split_by_it(
    name: str, shardmill: Shardmill
) -> None:
    values, counts = FLAGS[name]
    make({"a.csv": f"n,{name}\n" + "".join(f"{n},{value}\n" for n, value in enumerate(values))})
    screen = shardmill("convert", "a.csv", "-o", "out")
    line = next(line for line in screen.out.splitlines() if "to split by it" in line)
    assert (line.startswith("Detected: "), counts_of("out")) == (True, {"train": 12})
    split = shardmill("convert", "a.csv", "-o", "out", *options_in(line), "--overwrite")
    assert (split.code, "to split by it" in split.out, counts_of("out")) == (0, False, counts)


@pytest.mark.parametrize("text", ["is_valid\ntrue\nfalse\n", "fold\n3\n9\n", "is_train\nyes\nno\n"])
def test_a_column_of_other_flags_or_numbers_says_nothing_of_splits(text: str, shardmill: Shardmill) -> None:
    make({"a.csv": text})
    assert "to split by it" not in shardmill("convert", "a.csv", "-o", "out").out


@pytest.mark.parametrize("typed", ["d", "d/*"])
def test_files_in_folders_of_folders_are_read_by_the_glob_that_is_proposed(typed: str, shardmill: Shardmill) -> None:
    make({"d/x/y/1.new": "a\n1\n", "d/x/z/2.new": "a\n2\n", "d/x/.hidden": ""})
    screen = shardmill("convert", typed, "-o", "out", "--set", "input.format=csv")
    said = re.search(r"with one of the suffixes .*; to read all files of it: (.*)", screen.err)
    assert (screen.code, bool(said)) == (2, True), screen.err
    assert said
    unknown = shardmill("convert", "d", "-o", "out").err
    assert f"holds no file of a known kind; name its files ({said[1]}), " in unknown, unknown
    assert shardmill("convert", *shlex.split(said[1]), "-o", "out", "--set", "input.format=csv").code == 0
    assert open_dataset("out")["train"].to_arrow().to_pylist() == [{"a": 1}, {"a": 2}]


@pytest.mark.parametrize("text", ["n\nx\ny\n", "n\nx\n1\ny\n"])
def test_to_leave_out_all_rows_or_most_is_never_proposed(text: str, shardmill: Shardmill) -> None:
    make({"a.csv": text})
    for more, shown in (
        (["--dry-run"], "2 rejects, and max_rejects allows 0: the run would fail\n"),
        ([], "left behind"),
    ):
        screen = shardmill("convert", "a.csv", "-o", "out", "--set", "schema.columns.n.type=int64", *more)
        said = screen.out + screen.err
        assert (shown in said, "--max-rejects" in said) == (True, False), said


@pytest.mark.parametrize("splits", [("",), ("train/", "test/")], ids=["one split", "splits"])
@pytest.mark.parametrize("text", ["From: café\n\nhello\n", "a\n"], ids=["latin-1", "ASCII"])
def test_texts_without_a_suffix_in_folders_are_read_by_the_line_that_gives_each_its_class(
    splits: tuple[str, ...], text: str, shardmill: Shardmill
) -> None:
    for split in splits:
        for name in ("alt.atheism/49960", "alt.atheism/51060", "sci.space/59848"):
            Path("news", split, name).parent.mkdir(parents=True, exist_ok=True)
            Path("news", split, name).write_text(f"{name}\n{text}", "latin-1")
        Path("news", split, "sci.space/.DS_Store").write_bytes(b"\0\xff")
    error = shardmill("convert", "news", "-o", "out").err
    exec(error.partition("its folder the class, in Python: ")[2], {})
    dataset = open_dataset("out")
    for split in splits:
        rows = list(dataset[split.rstrip("/") or "train"])
        assert [row["class"] for row in rows] == ["alt.atheism", "alt.atheism", "sci.space"]
        assert rows[0]["text"] == f"alt.atheism/49960\n{text}"


def test_one_text_of_another_encoding_does_not_change_how_the_others_are_read(shardmill: Shardmill) -> None:
    for name in ("pos/1.txt", "pos/2.txt", "neg/3.txt"):
        Path("imdb", name).parent.mkdir(parents=True, exist_ok=True)
        Path("imdb", name).write_text("Très bien\n", "utf-8")
    Path("imdb/neg/4.txt").write_text("Très mal\n", "latin-1")
    screen = shardmill("convert", "imdb", "-o", "out", "--max-rejects", "1")
    assert "(write imdb/neg/4.txt as UTF-8 first)" in screen.out, screen.out + screen.err
    Path("imdb/neg/4.txt").write_text("Très mal\n", "utf-8")
    exec(re.search(r"its folder the class, in Python[^:]*: (.*)\n", screen.out)[1].replace("'out'", "'b'"), {})  # type: ignore[index]
    assert {row["text"] for row in open_dataset("b")["train"]} == {"Très bien\n", "Très mal\n"}


def test_texts_without_a_suffix_are_read_line_by_line_by_the_command(shardmill: Shardmill) -> None:
    make({"news/alt.atheism/1": "a\nb\n", "news/sci.space/2": "c\n"})
    error = shardmill("convert", "news", "-o", "out").err
    command = error.partition("to read them as text: shardmill ")[2].partition("; each line")[0]
    assert shardmill(*shlex.split(command)).code == 0
    assert [row["text"] for row in open_dataset("out")["train"]] == ["a", "b", "c"]


GROUPS = {
    f"20news-{split}/{group}/{n}": f"From: {n}\r\n{group}"
    for split in ("test", "train")
    for group in "ab"
    for n in "12"
}


@pytest.mark.parametrize("note", ["README.txt", "NOTES", "20news.README~", "labels.txt"])
def test_a_note_above_texts_without_a_suffix_is_not_taken_for_the_data(note: str, shardmill: Shardmill) -> None:
    make({"d/" + path: text for path, text in GROUPS.items()} | {f"d/{note}": "about\n"})
    screen = shardmill("convert", "d", "-o", "out")
    assert screen.code == 2, screen.out
    line = screen.err.partition("in Python: ")[2].strip()
    exec(line, {})
    dataset = open_dataset("out")
    for split in ("test", "train"):
        found = [{"class": row["class"], "text": row["text"]} for row in dataset[split]]
        wanted = [{"class": path.split("/")[1], "text": text} for path, text in GROUPS.items() if split in path]
        assert found == wanted, "line ends too"


def test_a_note_alone_is_data(shardmill: Shardmill) -> None:
    make({"d/README.txt": "a\n", "e/README.txt": "b\n", "e/x/1.txt": "c\n"})
    assert [row["text"] for path in ("d", "e") for row in _texts(shardmill, path)] == ["a", "c"]


def _texts(shardmill: Shardmill, path: str) -> list[dict[str, Any]]:
    assert shardmill("convert", path, "-o", f"out-{path}").code == 0
    return open_dataset(f"out-{path}")["train"].to_arrow().to_pylist()


def test_texts_beside_files_of_programs_are_not_taken_for_the_data(shardmill: Shardmill) -> None:
    make({"d/vocab.txt": "[PAD]\n[UNK]\n", "d/config.json": '{"size": 2}\n', "e/config.json": '{"size": 2}\n'})
    for split in ("train", "eval"):
        for folder in "de":
            write_records(f"{folder}/{split}.tf_record", [b"\n\x00"])
    screen = shardmill("convert", "d", "-o", "out")
    assert screen.code == 2, screen.out
    line = screen.err.partition("to read these: shardmill ")[2].partition("; to read the texts: ")[0]
    again = shardmill(*shlex.split(line), "--set", "input.splits=names")
    assert (again.code, counts_of("out")) == (0, {"eval": 1, "train": 1}), again.err
    words = shlex.split(screen.err.partition("to read the texts: ")[2])
    assert shardmill("convert", "d", "-o", "texts", *words).code == 0
    assert counts_of("texts") == {"train": 2}
    line = shardmill("convert", "e", "-o", "out").err.partition("(without config.json): shardmill ")[2]
    assert "'e/*.tf_record'" in line, "not what describes them"
    make({"f/a.txt": "a\n", "f/a.pdf": "x", "f/b.md": "y"})
    assert shardmill("convert", "f", "-o", "f-out").code == 0, "texts beside what they are of"


def test_documents_of_json_of_another_shape_are_left_out_of_the_line_of_python(shardmill: Shardmill) -> None:
    rows = [{"id": 1, "n": "007"}, {"id": 2, "n": "8"}]
    make({"d/a_info.json": json.dumps({"rows": {"file": "rows.json"}}), "d/rows.json": json.dumps(rows, indent=1)})
    error = shardmill("convert", "d", "-o", "out").err
    assert "without a_info.json: rows.json is one document" in error
    exec(error.partition("read in Python: ")[2].partition("; or a record")[0], {})
    assert open_dataset("out")["train"].to_arrow().to_pylist() == rows
