"""Names of folders and files that may be classes, sites or languages are said where no record has them."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from shardmill.transforms.dataset.reading.open_dataset import open_dataset

from ..command_line import Shardmill

FOLDERS = "folder names do not become part of the records: "


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(path: str, text: str = "n\n1\n") -> None:
    file = Path("d", path)
    file.parent.mkdir(parents=True, exist_ok=True)
    if file.suffix == ".parquet":
        pq.write_table(pa.table({"n": [1]}), file)
    elif file.suffix == ".npy":
        np.save(file, np.zeros((2, 3)))
    else:
        file.write_text('{"n": 1}\n' if file.suffix == ".jsonl" else text)


def lines_with(start: str, shown: str) -> list[str]:
    return [line for line in shown.splitlines() if line.startswith(f"Detected: {start}")]


ABOVE = {
    "folders of splits": ("{}/{}/a.csv", "neg"),
    "names that state splits": ("{}/{}-00000-of-00001.parquet", "neg"),
    "words of splits": ("{}/X_{}.csv", "neg"),
    "a folder below": ("{}/data/{}.jsonl", "neg"),
    "splits above": ("{1}/{0}/a.csv", "train/neg"),
}


@pytest.mark.parametrize("case", ABOVE)
def test_folders_above_splits_or_below_them_become_a_column_by_the_command_that_is_said(
    case: str, shardmill: Shardmill
) -> None:
    form, folder = ABOVE[case]
    for name in ("neg", "pos"):
        for split in ("train", "test"):
            write(form.format(name, split))
    named = () if "00000" in form or "a.csv" in form else ("--set", "input.splits=names")
    (line,) = lines_with(f"{FOLDERS}neg, pos", shardmill("convert", "d", "-o", "out", *named).out)
    move = line.rpartition("such as: ")[2]
    first = folder.replace("train", "test")
    assert shlex.split(move) == ["mv", f"d/{first}", f"d/{first.replace('neg', 'class=neg')}"]
    subprocess.run(shlex.split(move), check=True)
    for path in [path for path in Path("d").rglob("*") if path.name in ("neg", "pos")]:
        path.rename(path.with_name(f"class={path.name}"))
    assert shardmill("convert", "d", "-o", "out", "--overwrite", *named).code == 0
    for split in ("train", "test"):
        assert open_dataset("out").to_arrow(split)["class"].to_pylist() == ["neg", "pos"]


def test_texts_in_folders_of_classes_above_splits_are_records_by_the_line_of_python(shardmill: Shardmill) -> None:
    for kind in ("ham", "spam"):
        for split in ("train", "test"):
            write(f"{kind}/{split}/0.txt", f"{kind} of\n{split}\n")
    (line,) = lines_with("each line is a record, without", shardmill("convert", "d", "-o", "out").out)
    exec(line.partition("in Python: ")[2], {})
    for split in ("train", "test"):
        rows = open_dataset("out").to_arrow(split).to_pylist()
        assert [(row["class"], row["text"]) for row in rows] == [
            (kind, f"{kind} of\n{split}\n") for kind in ("ham", "spam")
        ]


@pytest.mark.parametrize(
    ("files", "shown"),
    [
        (["a/x.npy", "b/x.npy"], ["a, b"]),
        (["a/x.csv", "a/old/x.csv", "b/x.csv"], ["a, b, old"]),
        (["a/train.txt", "b/train.txt"], []),  # files that are records: a line of Python
        (["bus/x.csv", "train/x.csv", "car/x.csv"], ["bus, car, train"]),
        (["train/x.csv", "test/x.csv"], []),
        (["x.csv", "old/x.csv"], []),
        (["data/train/x.csv", "data/test/x.csv"], []),
        (["train/data/x.csv", "test/data/x.csv"], []),
        (["site=a/x.csv", "site=b/x.csv"], []),
        (["a.parquet/part-0.csv", "b.parquet/part-0.csv"], []),
        (["pets/1.0.0/x.csv", "pets/1.0.1/x.csv"], []),
    ],
)
def test_folders_are_named_where_their_names_tell_files_apart(
    files: list[str], shown: list[str], shardmill: Shardmill
) -> None:
    for file in files:
        write(file)
    done = shardmill("convert", "d", "-o", "out")
    assert done.code == 0, done.err
    lines = [line.removeprefix(f"Detected: {FOLDERS}") for line in lines_with(FOLDERS, done.out)]
    assert [line.partition(";")[0] for line in lines] == shown


NAMES = {
    "classes below splits": (["train/sports.jsonl", "train/politics.jsonl", "test/sports.jsonl"], "politics, sports"),
    "devices": (["sensor_01_Küche.csv", "sensor_02_Küche.csv"], "sensor_01, sensor_02"),
    "a word at the end": (["full_numpy_bitmap_cat.npy", "full_numpy_bitmap_dog.npy"], "cat, dog"),
    "polarity": (["neg.txt", "pos.txt"], "neg, pos"),
    "words beside a number": (["AAPL_2024.csv", "MSFT_2023.csv"], "AAPL, MSFT"),
    "a letter among words": (["a.csv", "aapl.csv", "msft.csv"], "a, aapl, msft"),
    "parts": (["part-00000.csv", "part-00001.csv"], ""),
    "dates": (["2024-01-01.csv", "2024-01-02.csv"], ""),
    "numbers": (["chunk_3.csv", "chunk_4.csv", "sales_1.csv"], ""),
    "hashes": (["x1f2e3d4.csv", "b-0a1b2c3d.csv"], ""),
    "parts of Spark": (["part-00000-1f2e3d4c-aaaa.c000.csv", "part-00001-1f2e3d4c-bbbb.c000.csv"], ""),
    "a word that says nothing": (["old.csv", "sales.csv"], ""),
    "one letter": (["a.csv", "b.csv"], ""),
    "one file": (["sports.csv"], ""),
    "folders of something else": (["x/sports.csv", "y/politics.csv"], "politics, sports"),
    "the same names in each folder": (["x/sports.csv", "y/sports.csv", "x/old/sports.csv"], ""),
    "persons": (["setA/p000001.csv", "setA/p000002.csv", "setB/p100001.csv"], "p000001, p000002, p100001"),
    "ids": (["Outcomes-a.txt", "set-a/132539.txt", "set-a/132540.txt", "set-a/132542.txt"], "132539, 132540, 132542"),
    "days": (["2024-01-01.csv", "2024-01-02.csv", "2024-01-03.csv"], "01, 02, 03"),
    "numbers of an export": (["rows-000.csv", "rows-001.csv", "rows-002.csv"], ""),
    "numbers of parts": (["part1.csv", "part2.csv", "part3.csv"], ""),
    "shards": (["train/0000.parquet", "train/0001.parquet", "train/0002.parquet"], ""),
    "numbers alone": (["1.csv", "2.csv", "3.csv"], "1, 2, 3"),
}


@pytest.mark.parametrize("case", NAMES)
def test_names_of_files_are_said_where_they_are_words(case: str, shardmill: Shardmill) -> None:
    files, names = NAMES[case]
    for file in files:
        write(file)
    done = shardmill(
        "convert",
        "d/*" if "." in files[0][-3:] else "d",
        "-o",
        "out",
        *(("--format", "txt") if "." in files[0][-3:] else ()),
    )
    assert done.code == 0, done.err
    shown = [
        one for one in done.out.splitlines() if "file names do not become" in one or "names of the files are" in one
    ]
    assert [one.partition(": ")[2].partition(": ")[2].partition(";")[0] for one in shown] == [names] * bool(names)


def test_names_of_persons_become_a_column_by_the_commands_that_are_printed_for_a_glob(shardmill: Shardmill) -> None:
    for hospital, person in (("A", 1), ("A", 2), ("B", 3)):
        write(f"training_set{hospital}/p{person:06}.psv", f"HR|Age\n8{person}|50\n9{person}|50\n")
    stop = shardmill("convert", "d", "-o", "out")
    command = stop.err.partition("how to read them: shardmill ")[2]
    done = shardmill(*shlex.split(command))
    assert done.code == 0, (stop, done.err)
    (line,) = lines_with(f"{FOLDERS}training_setA, training_setB", done.out)
    names = [one for one in done.out.splitlines() if "file names do not become part of the records: p000001" in one]
    assert len(names) == 1, done.out
    moves, again = names[0].partition("such as: ")[2].split("; then give their new paths: ")
    for file, hospital in (("p000001", "A"), ("p000002", "A"), ("p000003", "B")):
        for move in moves.replace("p000001", file).replace("setA", f"set{hospital}").split(" && "):
            subprocess.run(shlex.split(move), check=True)
    first = line.rpartition("such as: ")[2]
    for move in (first, first.replace("setA", "setB")):
        subprocess.run(shlex.split(move), check=True)
    assert shardmill(*shlex.split(command.replace("'d/*/*.psv'", again)), "--overwrite").code == 0
    table = open_dataset("out").to_arrow("train")
    assert table["name"].to_pylist() == [one for one in ("p000001", "p000002", "p000003") for _ in "ab"]
    assert table["class"].to_pylist() == ["training_setA"] * 4 + ["training_setB"] * 2
    assert table["HR"].to_pylist() == [81, 91, 82, 92, 83, 93]
