"""Options and programs that messages about archives, arrays, and packed or damaged files propose read what is right."""

from __future__ import annotations

import io
import os
import re
import shlex
import subprocess
import sys
import warnings
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from shardmill.pipelines import convert
from shardmill.transforms.dataset.reading.open_dataset import open_dataset
from shardmill.transforms.errors import DataError, SchemaError

from ..archives import picture, tar_of, zip_of
from ..command_line import Shardmill, need_program
from .test_followed_hints_of_tables_and_pictures import Case, follow, make
from .test_followed_hints_of_text import column
from .test_sets_that_people_bring import counts_of

ARCHIVES = "shardmill.transforms.sources.archives.survey"
PATCHES = {
    "many kinds of members": (f"{ARCHIVES}.MOST_COLUMNS", 1),
    "more folders than are looked at": (f"{ARCHIVES}.MOST_FOLDERS", 1),
    "far more columns than the limit": ("shardmill.transforms.inputs.contract.selection._WIDEST", 1),
}
"""Limits that tests make small."""


def tar(*members: tuple[str, bytes]) -> dict[str, Any]:
    return {"in/a.tar": tar_of(members)}


def arrays(**columns: list[Any]) -> dict[str, Any]:
    np.savez(sink := io.BytesIO(), **{name: np.array(values) for name, values in columns.items()})
    return {"in/a.npz": sink.getvalue()}


def parquet(table: pa.Table, **options: Any) -> bytes:
    pq.write_table(table, sink := io.BytesIO(), **options)
    return sink.getvalue()


def wrong_checksum() -> bytes:
    """Return a Parquet file in which a page is what was written, and its checksum is not."""
    data = parquet(pa.table({"a": [1, 2]}), write_page_checksum=True, use_dictionary=False, compression="NONE")
    place = pq.ParquetFile(io.BytesIO(data)).metadata.row_group(0).column(0)
    page = data[place.data_page_offset : place.data_page_offset + place.total_compressed_size]
    (start,) = (at for at in range(len(page)) if _varint(zlib.crc32(page[at:])) in page[:at])
    crc = _varint(zlib.crc32(page[start:]))
    assert data.count(crc) == 1
    return data.replace(crc, bytes([crc[0] ^ 2, *crc[1:]]))


def _varint(number: int) -> bytes:
    """Return a signed number of 32 bits as Thrift writes it."""
    signed = number - (1 << 32) if number >> 31 else number
    left, found = (signed << 1) ^ (signed >> 31), bytearray()
    while left >> 7:
        found.append(left & 127 | 128)
        left >>= 7
    return bytes([*found, left])


def moments(*nanoseconds: int) -> bytes:
    column = pa.array(nanoseconds, pa.timestamp("ns"))
    return parquet(pa.table({"a": column}), use_deprecated_int96_timestamps=True)


JPEG, PNG = picture(), picture(kind="PNG")
FIELDS = tar(("1.json", b'{"txt": 1}'), ("1.txt", b"a"))
FRAMES = tar(("shot.1.bin", b"1"), ("shot.2.bin", b"2"))
FOLDERS = tar(*((f"{name}/1.jpg", JPEG) for name in ("cat", "cow", "dog")))
CLIPS = {"in/a.csv": "clip\nx/b.wav\n", "empty/x/c.wav": "c", "other/x/b.wav": "b"}
SPLITS = ("{train: GLOB, test: GLOB}", "{train: a.csv, test: b.csv}")
VOC = "<annotation><filename>{}.jpg</filename><object><name>{}</name><bndbox>{}</bndbox></object></annotation>"
BOX = "".join(f"<{side}>{at}</{side}>" for side, at in {"xmin": 1, "ymin": 1, "xmax": 3, "ymax": 3}.items())

CASES = {
    "a field of JSON and a member of one name, as text": Case(FIELDS, "one column: ", [("1", '{"txt": 1}', "a")]),
    "a field of JSON and a member of one name, without the member": Case(FIELDS, "members out: ", [("1", 1)]),
    "a member that is called as the key": Case(
        tar(("1.__key__", b"x"), ("1.txt", b"a")), "members out: ", [("1", "a")]
    ),
    "a field that is called as the name of a folder's class": Case(
        tar(("cat/1.jpg", JPEG), ("cat/1.json", b'{"image/class/text": "x"}')),
        "one column: ",
        {"train": 1},
        ["--set", "input.layout=label"],
    ),
    "numbers in names of members, as a part of the name": Case(
        FRAMES, "part of the name: ", [("shot.1", b"1"), ("shot.2", b"2")]
    ),
    "numbers in names of members, as features": Case(FRAMES, "of one sample: ", [(b"1", b"2", "shot")]),
    "two pictures of one sample": Case(tar(("1.jpg", JPEG), ("1.png", PNG)), "by their suffix (", {"train": 1}),
    "a large member": Case(
        tar(("1.bin", b"x" * 90)), "they are meant: ", [("1", b"x" * 90)], ["--set", "limits.field_bytes=64"]
    ),
    "dots in names of pictures": Case(tar(("a.1x.jpg", JPEG), ("a.2y.jpg", JPEG)), "a part of names: ", {"train": 2}),
    "a sample without a picture": Case(
        tar(("1.jpg", JPEG), ("1.txt", b"a"), ("2.txt", b"b")), "are left out: ", {"train": 1}, ["--max-rejects", "1"]
    ),
    "many kinds of members": Case(tar(("a.x.bin", b"1"), ("a.y.bin", b"2")), "at the last dot: ", {"train": 2}),
    "a large sample": Case(
        tar(("a.x.bin", b"1" * 60), ("a.y.bin", b"2" * 60)),
        "at the last dot: ",
        {"train": 2},
        ["--set", "limits.record_bytes=100"],
    ),
    "more folders than are looked at": Case(FOLDERS, "in an archive; ", {"train": 3}),
    "arrays of different lengths": Case(arrays(a=[1, 2, 3], b=[4, 5]), "axis is the row: ", [(1,), (2,), (3,)]),
    "arrays of one length": Case(arrays(a=[1, 2], b=[3, 4]), "axis is the row: ", [(1, 3), (2, 4)]),
    "arrays that look like columns, as one record": Case(
        arrays(a=[1, 2], b=[0.5, 1.5]), "with all arrays: ", {"train": 1}
    ),
    "a wrong checksum": Case({"in/a.parquet": wrong_checksum()}, "without checksums: ", [(1,), (2,)]),
    "nanoseconds of INT96": Case(
        {"in/a.parquet": moments(1001)}, "keep it exact: ", [(pd.Timestamp(1001),)], column("a", "unit", "us")
    ),
    "files below another root": Case(
        CLIPS,
        "another root: ",
        [(b"b",)],
        [*column("clip", "file", "path"), "--set", "schema.files_root=empty"],
        fill=("FOLDER", "other"),
    ),
    "an append of another type": Case(
        {"first.parquet": pa.table({"a": ["x"]}), "in/a.parquet": pa.table({"a": [2]})},
        "the values fit: ",
        [("x",), ("2",)],
        earlier=("first.parquet", []),
    ),
    "an append of more columns": Case(
        {"first.parquet": pa.table({"a": [1]}), "in/a.parquet": pa.table({"a": [2], "b": [3]})},
        "leave out what the dataset has not: ",
        [(1,), (2,)],
        earlier=("first.parquet", []),
    ),
    "a column that one file lacks": Case(
        {"in/a.parquet": pa.table({"a": [1], "b": [2]}), "in/b.parquet": pa.table({"a": [3]})},
        "leave the column out: ",
        [(1,), (3,)],
    ),
    "far more columns than the limit": Case(
        {"in/a.csv": "a,b,c,d,e,f\n1,2,3,4,5,6\n"},
        "far over limits.columns: ",
        [(1,)],
        ["--columns", "a", "--set", "limits.columns=1"],
    ),
    "a file of an unknown kind": Case({"in/a.dat": "a\n1\n2\n"}, "say which it is: ", [(1,), (2,)], path="in/a.dat"),
    "a web page": Case({"in/a.txt": "<html>\n"}, "meant so: ", [("<html>",)]),
    "a table beside pictures whose folders are read": Case(
        {"in/b.png": None, "in/c.png": None, "in/metadata.csv": "file_name\nb.png\n"},
        "the folders alone: ",
        {"train": 2},
        ["--set", "input.layout=flat"],
    ),
    "a name of a split that is none": Case(
        {
            "in/README.md": '---\nconfigs:\n- config_name: x\n  data_files:\n  - split: "1x"\n    path: a.csv\n---\n',
            "in/a.csv": "n\n1\n",
            "in/b.csv": "n\n2\n",
        },
        "of which split: ",
        {"test": 1, "train": 1},
        fill=SPLITS,
    ),
    "files of splits beside others": Case(
        {"in/train.csv": "n\n1\n", "in/test.csv": "n\n2\n", "in/x/test.csv": "n\n3\n", "in/out.csv": "n\n4\n"},
        "of which split: ",
        {"test": 1, "train": 1},
        ["--set", "input.ignore=[x]"],
    ),
    "files of splits beside one that is found": Case(
        {"in/train.csv": "n,y\n1,2\n", "in/test.csv": "n\n2\n", "in/o[1].csv": "n\n4\n"},
        "of which split: ",
        {"test": 1, "train": 1},
    ),
    "files that no glob matches": Case(
        {"in/a.csv": "n\n1\n", "in/b.csv": "n\n2\n", "in/c/a.csv": "n\n3\n", "in/d.csv": "n\n4\n"},
        "leave the 2 files without a split out: ",
        {"test": 1, "train": 1},
        ["--set", "input.splits={train: c/*, test: b.csv}", "--set", "input.ignore=[x]"],
    ),
    "a file without a word beside others": Case(
        {"in/train.csv": "n\n1\n", "in/test.csv": "n\n2\n", "in/c.csv": "n\n3\n"},
        "leave the file out: ",
        {"test": 1, "train": 1},
        ["--set", "input.splits=names"],
    ),
    "a file without a word for its split": Case(
        {"in/a.csv": "n\n1\n", "in/b.csv": "n\n2\n"},
        "of which split: ",
        {"test": 1, "train": 1},
        ["--set", "input.splits=names"],
        fill=SPLITS,
    ),
    "classes of VOC that have no names": Case(
        {
            "first/a.jpg": None,
            "boxes/a.txt": "0 0.5 0.5 0.2 0.2\n",
            "boxes/classes.txt": "cat\ncat\n",
            "in/b.jpg": None,
            "more/b.xml": VOC.format("b", "dog", BOX),
        },
        "in their order: ",
        {"train": 2},
        ["--set", "input.annotations.voc=more"],
        earlier=("first", ["--set", "input.annotations.yolo=boxes"]),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_what_a_message_about_files_proposes_gives_the_right_records(
    case: str, shardmill: Shardmill, monkeypatch: pytest.MonkeyPatch
) -> None:
    if case in PATCHES:
        monkeypatch.setattr(*PATCHES[case])
    follow(CASES[case], shardmill)


def test_an_append_of_pictures_of_a_table_that_are_in_folders_of_splits_stops_with_two_commands(
    shardmill: Shardmill,
) -> None:
    make(
        {
            "first/a.png": None,
            "first/metadata.csv": "file_name\na.png\n",
            "in/train/b.png": None,
            "in/test/c.png": None,
            "in/metadata.csv": "file_name\ntrain/b.png\ntest/c.png\n",
        }
    )
    for number, wanted in enumerate([{"test": 1, "train": 2}, {"train": 3}]):
        assert shardmill("convert", "first", "-o", "out", "--overwrite").code == 0
        refused = shardmill("append", "in", "-o", "out")
        command = re.findall(r": +shardmill (.*)", refused.err)[number]
        assert shardmill(*shlex.split(command)).code == 0
        assert counts_of("out") == wanted


@dataclass(frozen=True)
class Program:
    """A file that is not read as it is, the words before the program that helps, what it writes, and the rows of that.

    `stand_ins` are for programs that machines may lack: what each does
    when it is called with the words that it takes.
    """

    file: str
    content: bytes | Callable[[], bytes]
    before: str
    written: str
    rows: list[tuple[object, ...]]
    given: list[str] = field(default_factory=list)
    stand_ins: dict[str, tuple[str, str]] = field(default_factory=dict)


def feather(**options: Any) -> bytes:
    with warnings.catch_warnings(action="ignore"):  # version 1 is deprecated
        pyarrow.feather.write_feather(pa.table({"a": [0] * 2000}), sink := io.BytesIO(), **options)
    return sink.getvalue()


def stream() -> bytes:
    table = pa.table({"a": [0] * 2000})
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(sink := io.BytesIO(), table.schema, options=options) as writer:
        writer.write_table(table)
    return sink.getvalue()


WRITES = {"lfs pull": "printf 'a\\n1\\n' > a.csv"}
LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"4d" * 32 + b"\nsize 4\n"
ANNEX = b"/annex/objects/SHA256E-s4--ab.csv\n"
ZEROS: list[tuple[object, ...]] = [(0,)] * 2000
SMALL_BATCH = ["--set", "limits.batch_bytes=10000"]

PROGRAMS = {
    "JSON in one array": Program("a.jsonl", b'[{"a": 1}, {"a": 2}]', "is one array: ", "rows-a.jsonl", [(1,), (2,)]),
    "objects over several lines": Program(
        "a.jsonl", b'{\n"a": 1\n}\n{\n"a": 2\n}\n', "several lines: ", "rows-a.jsonl", [(1,), (2,)]
    ),
    "lines of Windows": Program("a.txt", b"caf\xe9\n", "the file as UTF-8: ", "a.txt", [("caf\xe9",)]),
    "lines of wide characters without a mark": Program(
        "a.txt", "caf\xe9\n".encode("utf-16-le"), "write it as UTF-8: ", "a.txt", [("caf\xe9",)]
    ),
    "a zip that is called a table": Program(
        "a.csv", zip_of([("b.csv", b"a\n1\n")]), "unpack it first: ", "b.csv", [(1,)]
    ),
    "a table in a zip": Program("a.zip", zip_of([("b.csv", b"a\n1\n")]), "unpack it first: ", "b.csv", [(1,)]),
    "a table in a tar": Program("a.tar", tar_of([("b.csv", b"a\n1\n")]), "unpack it first: ", "b.csv", [(1,)]),
    "an archive of 7-Zip": Program(
        "a.7z", b"7z", "unpack it first: ", "b.csv", [(1,)], stand_ins={"7z": ("x a.7z", "b.csv")}
    ),
    "a pointer of Git LFS": Program(
        "a.csv", LFS, "run again: ", "a.csv", [(1,)], stand_ins={"git": ("lfs pull", "a.csv")}
    ),
    "a pointer of git-annex": Program(
        "a.csv", ANNEX, "run again: ", "a.csv", [(1,)], stand_ins={"git": ("annex get .", "a.csv")}
    ),
    "a file of Feather V1": Program("a.feather", lambda: feather(version=1), "write it again: ", "new.feather", ZEROS),
    "a large batch of Arrow": Program("a.arrow", stream, "in smaller batches: ", "new.arrow", ZEROS, given=SMALL_BATCH),
}


@pytest.mark.parametrize("case", PROGRAMS)
def test_a_program_that_a_message_proposes_writes_a_file_that_is_read(
    case: str, shardmill: Shardmill, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = PROGRAMS[case]
    Path(one.file).write_bytes(one.content() if callable(one.content) else one.content)
    Path("programs").mkdir()
    for name, (words, written) in one.stand_ins.items():
        Path("programs", name).write_text(f"#!/bin/sh\n[ \"$*\" = '{words}' ] && printf 'a\\n1\\n' > {written}\n")
        Path("programs", name).chmod(0o755)
    path = [str(Path("programs").resolve()), str(Path(sys.executable).parent), os.environ["PATH"]]
    monkeypatch.setenv("PATH", os.pathsep.join(path))
    refused = shardmill("convert", one.file, "-o", "out", *one.given)
    assert refused.code != 0
    command = re.split(r" \(of version|, or the encoding|\n", refused.err.partition(one.before)[2])[0]
    assert command, refused.err
    need_program(shlex.split(command)[0])
    subprocess.run(command, shell=True, check=True)
    done = shardmill("convert", one.written, "-o", "out", *one.given)
    assert done.code == 0, done.err
    assert [tuple(record.values()) for record in map(dict, open_dataset("out")["train"])] == one.rows
    if case == "a large batch of Arrow":
        option = re.search(r"raise it: (.*?);", refused.err)
        assert option, refused.err
        raised = shardmill("convert", one.file, "-o", "raised", *one.given, *shlex.split(option[1]))
        assert raised.code == 0, raised.err
        assert open_dataset("raised").manifest.splits["train"].records == len(one.rows)


@pytest.mark.parametrize(("late", "wanted"), [({"a": 2, "b": 3}, (2, 3)), ({"a": 1.5}, (1.5,))])
def test_rows_that_the_first_ones_do_not_fit_are_read_by_the_line_of_python(
    late: dict[str, Any], wanted: tuple[object, ...], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [*[{"a": 1}] * 4000, late]
    with pytest.raises(SchemaError) as refused:
        convert(data=iter(rows), output="out")
    line = str(refused.value).rpartition(": ")[2]
    exec(line, {"convert": partial(convert, output="out"), "rows": iter(rows)})
    found = [tuple(record.values()) for record in map(dict, open_dataset("out")["train"])]
    assert (len(found), found[-1]) == (4001, wanted)


class LazyFrame:
    """What Polars calls a frame whose rows are not there yet."""

    def collect(self) -> pa.Table:
        return pa.table({"a": [1, 2]})


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (pd.Series([1, 2]), "series"),
        (LazyFrame(), "frame"),
        (np.array([1, 2]), "array"),
        ({"x": pd.DataFrame({"a": [1, 2]})}, "tables"),
    ],
)
def test_data_that_is_no_table_is_read_by_what_its_message_passes_in_its_place(
    data: Any, name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError) as refused:
        convert(data=data, output="out")
    passed = re.search(r"data=[^;]*", str(refused.value))
    assert passed, refused.value
    exec(f"convert({passed[0]}, output='out')", {"convert": convert, name: data})
    assert [[*dict(record).values()] for record in open_dataset("out")["train"]] == [[1], [2]]


def test_annotations_of_several_folders_are_read_one_after_the_other(shardmill: Shardmill) -> None:
    for name in ("one", "two"):
        make({f"{name}/{name}.jpg": None, f"{name}-boxes/{name}.xml": VOC.format(name, "cat", BOX)})
    refused = shardmill("convert", "one", "two", "-o", "out", "--set", "input.annotations.voc=one-boxes")
    option = re.search(r"with (--split val) where", refused.err)
    assert option, refused.err
    for command, name, options in (("convert", "one", []), ("append", "two", shlex.split(option[1]))):
        done = shardmill(command, name, "-o", "out", "--set", f"input.annotations.voc={name}-boxes", *options)
        assert done.code == 0, done.err
    assert counts_of("out") == {"train": 1, "val": 1}


def test_a_path_that_is_passed_as_data_is_read_by_the_call_that_is_proposed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text("a\n1\n")
    with pytest.raises(DataError) as refused:
        convert(data="a.csv", output="out")  # type: ignore[arg-type]
    line = str(refused.value).rpartition("first argument: ")[2]
    exec(line.replace("...", "'out'"), {"convert": convert})
    assert [dict(record) for record in open_dataset("out")["train"]] == [{"a": 1}]
