"""Options and commands that messages about tables, splits, pictures and appends propose lead to the right records."""

from __future__ import annotations

import datetime as dt
import io
import json
import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image
from shardmill.transforms.dataset.reading.open_dataset import open_dataset

from ..command_line import Shardmill
from .test_followed_hints_of_text import OPTIONS, column
from .test_sets_that_people_bring import counts_of


@dataclass(frozen=True)
class Case:
    """What a command reads, the words before what it proposes, and the rows or the records of each split then.

    `path` is what is converted, with the options `given`, of which those after the first `kept` are left out then;
    `earlier` is a dataset that is appended to, with the options that made it; `fill` is what a reader puts in the place
    of a part of the options.
    """

    files: dict[str, Any]
    before: str
    wanted: object
    given: list[str] = field(default_factory=list)
    path: str = "in"
    earlier: tuple[str, list[str]] | None = None
    kept: int | None = None
    fill: tuple[str, str] = ("", "")


def table(*values: object, kind: Any = None) -> dict[str, Any]:
    return {"in/a.parquet": pa.table({"a": pa.array(values, kind)})}


def pictures(*names: str) -> dict[str, Any]:
    return dict.fromkeys(names)


def make(files: dict[str, Any]) -> None:
    for name, content in files.items():
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        if content is None:
            Image.new("RGB", (8, 6)).save(path)
        elif isinstance(content, Image.Image):
            content.save(path)
        elif isinstance(content, pa.Table) and path.suffix == ".arrow":
            with pa.ipc.new_file(path, content.schema) as file:
                file.write(content)
        elif isinstance(content, pa.Table):
            pq.write_table(content, path)
        else:
            path.write_bytes(content.encode() if isinstance(content, str) else content)


def png() -> bytes:
    Image.new("RGB", (8, 6)).save(sink := io.BytesIO(), "PNG")
    return sink.getvalue()


FAR = dt.datetime(2286, 11, 20, 17, 46, 40)
SAME = {"in/a.csv": "a,c\n" + "1,x\n" * 20}
KEYS = {"in/a.csv": "a,c\n" + "".join(f"{number},{'xy'[number % 2]}\n" for number in range(40))}
FRACTIONS = ["--split-fractions", "train=0.9,val=0.1"]
LABELS = ["--set", "input.labels=[cat]"]
BOTH = {"in/train/a.csv": "a\n1\n2\n3\n4\n", "in/test/a.csv": "a\n5\n"}

TIMES = {"in/a.parquet": pa.table({"t": pa.array([dt.datetime(2024, 1, 1, 5)], pa.timestamp("us"))})}
BOXED = {"in/a.png": None, "in/a.jsonl": """{"p": "a.png", "objects": [{"bbox": [4, 2, 6, 3]}]}\n"""}
INTERVALS = pa.array([pa.MonthDayNano([1, 2, 3])], pa.month_day_nano_interval())


def npy(*values: object) -> bytes:
    np.save(sink := io.BytesIO(), np.array(values))
    return sink.getvalue()


OTHER = {"in/a.png": None, "in/a.jsonl": """{"p": "a.png", "boxes": {"bbox": [[1, 1, 2, 3]]}}\n"""}
TWO = {"in/a.png": None, "in/a.jsonl": """{"p": "a.png", "q": "a.png", "objects": {"bbox": [[1, 1, 2, 3]]}}\n"""}
IMAGE = column("p", "image", "path")
ODD = {
    "images": [{"id": 1, "file_name": "a.png", "width": 8, "height": 6}],
    "annotations": [{"id": 1, "image_id": 1, "category_id": 1, "bbox": [1, 1, 2, 3], "segmentation": [[1]]}],
    "categories": [{"id": 1, "name": "cat"}],
}
COCO = ["--set", "input.annotations.coco=c.json"]


def jpeg_with_junk() -> bytes:
    Image.new("RGB", (8, 6)).save(sink := io.BytesIO(), "JPEG")
    data = sink.getvalue()
    end = 4 + int.from_bytes(data[4:6], "big")
    return data[:end] + b"\0\0" + data[end:]


CASES = {
    "a picture with bytes before a marker": Case({"in/a.jpg": jpeg_with_junk()}, "pass over that: ", {"train": 1}),
    "boxes in a column of another name": Case(OTHER, "of the pictures of them: ", {"train": 1}, IMAGE, "in/a.jsonl"),
    "boxes beside two pictures": Case(
        TWO, "name it: ", {"train": 1}, [*IMAGE, *column("q", "image", "path")], "in/a.jsonl", fill=("NAME", "q")
    ),
    "a mask of one point": Case(
        {"in/a.png": None, "c.json": json.dumps(ODD)},
        "read no masks: ",
        {"train": 1},
        [*COCO, "--set", "input.annotations.masks=true"],
    ),
    "pictures that no column names": Case(
        {"in/b.png": None, "in/a.csv": "p,n\nb.png,1\n"},
        "or their paths: ",
        {"train": 1},
        ["--set", "image.resize={size: 4}"],
        "in/a.csv",
        fill=("NAME", "p"),
    ),
    "bytes in place of paths": Case(
        {"b.bin": b"xyz", "first.csv": "p\nb.bin\n", "in/a.parquet": pa.table({"p": [b"uvw"]})},
        "bytes are there: ",
        {"train": 2},
        earlier=("first.csv", column("p", "file", "path")),
    ),
    "boxes of which the files say what they are": Case(
        {"in/a.png": None, "c.json": json.dumps(ODD)},
        "append with ",
        {"train": 1},
        [
            *(f"--set=input.annotations.{one}" for one in ("coco=c.json", "masks=false")),
            "--set",
            "schema.box_format=xyxy",
        ],
    ),
    "a column that an append lacks": Case(
        {"first.csv": "n,c\n1,x\n", "in/a.csv": "n\n2\n"},
        "one value: ",
        [("x", 1), ("y", 2)],
        earlier=("first.csv", column("c", "label", "[x, y]")),
        fill=("VALUE", "y"),
    ),
    "files that no column names": Case(
        {"in/a.csv": "p\nb.bin\n", "in/b.bin": b"xyz"},
        "say which: ",
        [(b"xyz",)],
        ["--set", "schema.files_root=in"],
        "in/a.csv",
        fill=("NAME", "p"),
    ),
    "fractions in whole numbers": Case(table(1.5), "fractions exact: ", [(1.5,)], column("a", "as", "int64")),
    "dates with a time of day": Case(
        {"in/a.arrow": pa.table({"d": pa.array([5_000], pa.date64())})},
        "the time too: ",
        [(dt.datetime(1970, 1, 1, 0, 0, 5),)],
    ),
    "a column that no feature holds": Case(
        {"in/a.arrow": pa.table({"i": INTERVALS, "n": [1]})}, "as JSON text: ", [("[1,2,3]", 1)]
    ),
    "columns that no features hold": Case(
        {"in/a.arrow": pa.table({"i": INTERVALS, "j": INTERVALS, "n": [1]})},
        "as JSON text: ",
        [("[1,2,3]", "[1,2,3]", 1)],
    ),
    "rows without a key": Case(
        {"in/a.csv": "k,n\na,1\n,2\n"}, "leave them out: ", {"train": 1}, [*FRACTIONS, "--split-key", "k"]
    ),
    "a comparison with another type": Case(
        {"in/a.csv": "n,m\n1,2\n3,4\n"},
        "type of the column: ",
        [(2, "1")],
        ["--where", 'n == "1"'],
        fill=("TYPE", "string"),
    ),
    "a value that a type does not have": Case(
        {"in/a.csv": "n\n1\nNULL\n", "in/b.csv": "n\n2\n"},
        "give one: ",
        [(1,), (5,), (2,)],
        [*column("n", "null", "{fill: x}"), "--set", 'input.null_values=["NULL"]'],
        fill=("VALUE", "5"),
    ),
    "a box over the edge": Case(BOXED, "boxes end there: ", {"train": 1}, column("p", "image", "path"), "in/a.jsonl"),
    "a number above int64": Case(table(2**63, kind=pa.uint64()), "its digits: ", [(str(2**63),)]),
    "text that is not UTF-8": Case(
        {"in/a.parquet": pa.table({"a": pa.array([b"\xff"]).view(pa.string())})}, "as bytes: ", [(b"\xff",)]
    ),
    "moments that a unit does not hold": Case(
        table(10**16, kind=pa.timestamp("us")), "keep it exact: ", [(FAR,)], column("a", "unit", "ns")
    ),
    "a whole number that float32 lacks": Case(
        table(16777217), "keep it exact: ", [(16777217,)], column("a", "type", "float32")
    ),
    "null in a list of an object": Case(table({"x": [1, None]}), "as JSON text: ", [('{"x":[1,null]}',)]),
    "equal rows that a hash splits": Case(SAME, "to split by counts: ", {"train": 18, "val": 2}, FRACTIONS),
    "classes that are a key": Case(
        KEYS, "not --split-key: ", {"train": 36, "val": 4}, [*FRACTIONS, "--split-key", "c"], kept=2
    ),
    "a split beside a rule": Case(
        SAME, "the rule (", {"val": 20}, ["--set", "output.split=val", "--set", "split.folds=5"]
    ),
    "classes that a hash does not count": Case(
        KEYS, "add ", {"train": 36, "val": 4}, [*FRACTIONS, "--set", "split.stratify=c", "--set", "split.by=hash"]
    ),
    "a folder with the name of a split": Case(
        {"test/a.csv": "a\n1\n"}, "to write them as test: ", {"test": 1}, path="test"
    ),
    "splits of folders that are none": Case(BOTH, "as one split: ", {"train": 5}),
    "a folder that is no class, to add": Case(
        pictures("in/cat/a.jpg", "in/dog/b.jpg"), "add it: ", {"train": 2}, LABELS
    ),
    "a folder that is no class, to leave out": Case(
        pictures("in/cat/a.jpg", "in/dog/b.jpg"), "its folder out: ", {"train": 1}, LABELS
    ),
    "folders that are no classes": Case(
        pictures("in/cat/a.jpg", "in/dog/b.jpg", "in/cow/c.jpg"),
        "to the list, or leave them out: ",
        {"train": 1},
        [*LABELS, "--max-rejects", "2"],
        kept=2,
    ),
    "classes where folders are splits": Case(
        pictures("in/train/cat/a.jpg", "in/test/cat/b.jpg"),
        "where they are: ",
        {"test": 1, "train": 1},
        [*LABELS, "--set", "input.layout=split"],
    ),
    "splits that are read as classes": Case(
        pictures("in/train/a.jpg", "in/test/b.jpg"),
        "if they are splits: ",
        {"test": 1, "train": 1},
        ["--set", "input.layout=label"],
    ),
    "splits with classes that are read as classes": Case(
        pictures("in/train/cat/a.jpg", "in/test/cat/b.jpg"),
        "if they are splits: ",
        {"test": 1, "train": 1},
        ["--set", "input.layout=label"],
    ),
    "folders of no known layout": Case(
        pictures("in/train/cat/a.jpg", "in/cow/c.jpg", "in/dog/x/y.jpg"), "choose one of:\n  ", {"train": 3}
    ),
    "a picture of another format": Case(pictures("in/a.jpg", "in/b.tiff"), "JPEG (", {"train": 2}),
    "a picture that TensorFlow does not decode": Case(pictures("in/a.jpg", "in/b.webp"), "JPEG or PNG (", {"train": 2}),
    "a picture that is too wide for its format": Case(
        {"in/a.png": Image.new("L", (16384, 1))},
        "or write PNG: ",
        {"train": 1},
        ["--set", "image.encode.format=webp"],
        kept=0,
    ),
    "paths that are taken for pictures": Case(
        {"in/b.png": None, "in/a.csv": "p\nb.png\n"},
        "if it holds paths: ",
        {"train": 1},
        column("p", "image", "bytes"),
        "in/a.csv",
    ),
    "bytes that are taken for base64": Case(table(png()), "for bytes: ", {"train": 1}, column("a", "image", "base64")),
    "a row without a picture": Case(table(png(), None), "such rows out: ", {"train": 1}, column("a", "image", "bytes")),
    "bytes that are no pictures": Case(
        {"in/a.parquet": pa.table({"a": pa.array([{"bytes": b"no", "path": "x"}])})},
        "holds no pictures: ",
        {"train": 1},
    ),
    "cells of an append that no key reads": Case(
        {"first.csv": "n\n1\n2\n", "in/a.csv": "n\n12 %\n3 %\n"},
        "read the values: ",
        {"train": 4},
        earlier=("first.csv", []),
    ),
    "a row of an append that is of another type": Case(
        {"first.csv": "n,m\n1,1\n,2\n", "in/a.csv": "n,m\nx,3\n,4\n"},
        "where others fit: ",
        {"train": 3},
        earlier=("first.csv", []),
        fill=("N", "1"),
    ),
    "an append that looks for no duplicates": Case(
        {"first.csv": "n\n1\n1\n", "in/a.csv": "n\n3\n3\n"},
        "with no earlier ones: ",
        {"train": 2},
        earlier=("first.csv", ["--set", "checks.duplicates.action=drop"]),
    ),
    "an append that looks for no duplicates of a column": Case(
        {"first.csv": "n,m\n1,2\n1,3\n", "in/a.csv": "n,m\n3,4\n3,5\n"},
        "with no earlier ones: ",
        {"train": 2},
        earlier=("first.csv", ["--set", "checks.duplicates.action=drop", "--set", "checks.duplicates.columns=[n]"]),
    ),
    "classes of an append in another order": Case(
        {"first.csv": "n\na\nb\n", "in/a.csv": "n\nb\n"},
        "classes first: ",
        {"train": 3},
        column("n", "label", "[b, a]"),
        earlier=("first.csv", column("n", "label", "[a, b]")),
    ),
    "names of pictures that are left out": Case(
        {"in/b.png": None, "in/metadata.csv": "file_name,n\nb.png,1\n"},
        "the paths alone: ",
        {"train": 1},
        ["--exclude-columns", "file_name"],
    ),
    "a folder of a table format": Case(
        {**table(1, 2), "in/_delta_log/0.json": "{}"}, "files as they are: ", {"train": 2}
    ),
}


def follow(one: Case, shardmill: Shardmill) -> None:
    make(one.files)
    if one.earlier is not None:
        assert shardmill("convert", one.earlier[0], "-o", "out", *one.earlier[1]).code == 0
    command = ["convert" if one.earlier is None else "append", one.path, "-o"]
    first = shardmill(*command, "out", *one.given)
    screen = first.out + first.err
    options = OPTIONS.match(screen.partition(one.before)[2])
    assert options, screen
    more = [*one.given[: one.kept], *shlex.split(options[0].replace(*one.fill))]
    if one.earlier is None:
        done = shardmill(*command, "out", "--overwrite", *more)
    elif first.code == 0:  # the append is there: it is made again
        assert shardmill("convert", one.earlier[0], "-o", "again", *one.earlier[1]).code == 0
        done = shardmill(*command, "again", *more)
    else:
        done = shardmill(*command, "out", *more)
    assert done.code == 0, (options, done.err)
    path = "again" if Path("again").exists() else "out"
    if isinstance(one.wanted, dict):
        assert counts_of(path) == one.wanted
    else:
        assert [tuple(record.values()) for record in map(dict, open_dataset(path)["train"])] == one.wanted


@pytest.mark.parametrize("case", CASES)
def test_what_a_message_about_tables_or_pictures_proposes_gives_the_right_records(
    case: str, shardmill: Shardmill
) -> None:
    follow(CASES[case], shardmill)


def test_an_append_of_a_finer_unit_names_the_command_that_converts_all_files(shardmill: Shardmill) -> None:
    for name, unit in (("a", "us"), ("b", "ns")):
        pq.write_table(pa.table({"t": pa.array([1], pa.timestamp(unit))}), f"{name}.parquet")
    assert shardmill("convert", "a.parquet", "-o", "out").code == 0
    refused = shardmill("append", "b.parquet", "-o", "out").err
    assert "to a new dataset (shardmill convert ... -o FOLDER)" in refused
    assert shardmill("convert", "a.parquet", "b.parquet", "-o", "FOLDER").code == 0
    assert [row["t"] for row in open_dataset("FOLDER")["train"]] == [pd.Timestamp(1000), pd.Timestamp(1)]
