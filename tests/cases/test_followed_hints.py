"""What a message proposes is typed as it stands, and leads to the right records."""

from __future__ import annotations

import io
import json
import pathlib
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from PIL import Image
from shardmill.pipelines import append, convert
from shardmill.transforms.dataset.reading.open_dataset import open_dataset
from shardmill.transforms.errors import ShardmillError

from ..command_line import Shardmill


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def rows_of(path: str, split: str = "train") -> list[dict[str, Any]]:
    return open_dataset(path)[split].to_pandas().to_dict("records")


def python_in(text: str) -> str:
    """Return the call from Python that a message proposes."""
    found = re.search(
        r"(?:(?:import [^;]*; )?from shardmill\.pipelines import \w+; )?(?:convert|append)\(data=.*?, output='[^']*'\)",
        text,
    )
    assert found, text
    return found[0]


def run_python(line: str, **names: object) -> None:
    known: Mapping[str, object] = {"convert": convert, "append": append, "json": json, "pathlib": pathlib, "pandas": pd}
    exec(line, {**known, **names})


def options_in(text: str, before: str) -> list[str]:
    """Return the options that follow some words of a message."""
    return shlex.split(re.split(r"[;\n)]| \(|, or | or | makes ", text.partition(before)[2])[0])


def test_a_folder_of_files_without_suffixes_is_read_by_the_glob_that_is_proposed(shardmill: Shardmill) -> None:
    Path("my rows").mkdir()
    Path("my rows/000000_0").write_text("a,b\n1,x\n2,y\n")
    Path("my rows/000001_0").write_text("a,b\n3,z\n")
    first = shardmill("convert", "my rows", "-o", "out").err
    done = shardmill(*shlex.split(first.partition(": shardmill ")[2]))
    assert done.code == 0, first
    assert [row["a"] for row in rows_of("out")] == [1, 2, 3]
    refused = shardmill("convert", "my rows", "-o", "other", "--format", "csv").err
    glob = shlex.split(refused.partition("to read all files of it: ")[2])
    assert shardmill("convert", *glob, "-o", "other", "--format", "csv").code == 0, refused
    assert [row["a"] for row in rows_of("other")] == [1, 2, 3]


def test_an_empty_folder_proposes_no_glob(shardmill: Shardmill) -> None:
    Path("empty").mkdir()
    assert "/*" not in shardmill("convert", "empty", "-o", "out", "--format", "csv").err


@pytest.mark.parametrize(
    ("document", "wanted"),
    [
        ([{"a": 1}, {"a": 2}], [1, 2]),
        ({"data": [{"a": 1}, {"a": 2}]}, [1, 2]),
        ({"count": 2, "it's": [{"a": 1}, {"a": 2}], "tags": ["x"]}, [1, 2]),
        ({"{rows}": [{"a": 7}]}, [7]),
        ({"a": 5, "b": "x"}, [5]),
    ],
)
def test_a_json_document_is_read_by_the_line_that_is_proposed(
    shardmill: Shardmill, document: object, wanted: list[int]
) -> None:
    Path("rows.json").write_text(json.dumps(document, indent=1))
    refused = shardmill("convert", "rows.json", "-o", "out")
    assert refused.code == 2
    run_python(python_in(refused.err))
    assert [row["a"] for row in rows_of("out")] == wanted


@pytest.mark.parametrize("count", [1, 2])
def test_json_lines_in_a_json_file_are_read_with_the_option_that_is_proposed(count: int, shardmill: Shardmill) -> None:
    Path("rows.json").write_text("".join(f'{{"a": {n}}}\n' for n in range(count)))
    refused = shardmill("convert", "rows.json", "-o", "out")
    before = "lines are objects; to read it so: " if count > 1 else "each line is an object ("
    done = shardmill("convert", "rows.json", "-o", "out", *options_in(refused.err, before))
    assert done.code == 0, done.err
    assert [row["a"] for row in rows_of("out")] == [*range(count)]


@pytest.mark.parametrize(
    ("column", "wanted"),
    [
        (pd.arrays.SparseArray([0, 0, 5]), [0, 0, 5]),
        (pd.arrays.SparseArray([0.0, 0.5, 0.0]), [0.0, 0.5, 0.0]),
        (pd.Series([1, "a", 2.5], dtype=object), ["1", "a", "2.5"]),
    ],
)
def test_a_column_of_a_frame_is_read_after_the_line_that_is_proposed(column: Any, wanted: list[object]) -> None:
    frame = pd.DataFrame({"n": column})
    with pytest.raises(ShardmillError) as refused:
        convert(data=frame, output="out")
    run_python(re.search(r"frame\['n'\] = .*$", str(refused.value), re.MULTILINE)[0], frame=frame)
    convert(data=frame, output="out")
    assert [row["n"] for row in rows_of("out")] == wanted


def test_arrays_of_two_dimensions_in_a_frame_are_lists_after_the_line_that_is_proposed() -> None:
    frame = pd.DataFrame({"n": [np.arange(4.0).reshape(2, 2), np.ones((1, 2))]})
    with pytest.raises(ShardmillError) as refused:
        convert(data=frame, output="out")
    run_python(re.search(r"frame\['n'\] = .*$", str(refused.value), re.MULTILINE)[0], frame=frame)
    convert(data=frame, output="out")
    assert [[part.tolist() for part in row["n"]] for row in rows_of("out")] == [[[0, 1], [2, 3]], [[1, 1]]]


def test_complex_numbers_of_a_frame_are_never_proposed_as_text() -> None:
    with pytest.raises(ShardmillError, match="one of imaginary parts") as refused:
        convert(data=pd.DataFrame({"n": [1j, 2j]}), output="out")
    assert "astype" not in str(refused.value)


@pytest.mark.parametrize("first", ["test", "valid"])
def test_the_command_for_boxes_of_a_split_writes_them_to_that_split(shardmill: Shardmill, first: str) -> None:
    for split in (first, "zz"):
        for kind in ("images", "labels"):
            Path(f"root/{split}/{kind}").mkdir(parents=True)
        Image.new("RGB", (8, 8)).save(f"root/{split}/images/1.jpg")
        Path(f"root/{split}/labels/1.txt").write_text("0 0.5 0.5 0.25 0.25\n")
    seen = shardmill("convert", "root", "-o", "out", "--set", "input.layout=flat")
    command = shlex.split(re.search(r"to read them: shardmill (.*)", seen.out)[1].split(";")[0])
    done = shardmill(*command)
    assert done.code == 0, done.err
    assert list(open_dataset("out").splits) == [first]
    assert open_dataset("out").manifest.splits[first].records == 1


def test_a_pointer_of_git_lfs_is_fetched_with_git_lfs_pull(shardmill: Shardmill) -> None:
    oid = "4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393"
    Path("a.csv").write_text(f"version https://git-lfs.github.com/spec/v1\noid sha256:{oid}\nsize 12\n")
    assert shardmill("convert", "a.csv", "-o", "out").err.rstrip().endswith(": git lfs pull")


def parquet() -> bytes:
    sink = io.BytesIO()
    pa.parquet.write_table(pa.table({"a": [1, 2]}), sink)
    return sink.getvalue()


def arrays() -> bytes:
    sink = io.BytesIO()
    np.savez(sink, a=np.array([1, 2]), b=np.array(["x", "y"]))
    return sink.getvalue()


@pytest.mark.parametrize(
    ("files", "before", "wanted"),
    [
        ({"a.csv": b'{"a": 1}\n{"a": 2}\n'}, "read it as JSON lines: ", [(1,), (2,)]),
        ({"a.csv": "a\n1\n2\n".encode("utf-16-le")}, "declare it: ", [(1,), (2,)]),
        ({"a.csv": "a\n1\n2\n".encode("utf-16")}, "declare it: ", [(1,), (2,)]),
        ({"a.dat": parquet()}, "read it as one: ", [(1,), (2,)]),
        ({"a.csv": parquet()}, "read it as one: ", [(1,), (2,)]),
        ({"a.csv": b"1,2.5\n3,4.5\n"}, "if it is data: ", [(1, 2.5), (3, 4.5)]),
        ({"a.csv": b"a,b\n1,x,\n2,y,\n"}, "leave it out: ", [(1, "x"), (2, "y")]),
        ({"a.csv": b"a,b\n1,x\n2\n"}, "the cells that it lacks (", [(1, "x"), (2, None)]),
        ({"a.csv": b'a,b\n1,"say \\"hi, you\\""\n'}, "backslash escapes quotes: ", [(1, 'say "hi, you"')]),
        ({"a.npz": arrays()}, "make each row a record: ", [(1, "x"), (2, "y")]),
        ({"a.txt": b"a\tb\n1\tx\n2\ty\n3\tz\n"}, "if it is one: ", [(1, "x"), (2, "y"), (3, "z")]),
    ],
)
def test_options_that_are_proposed_give_the_right_records(
    shardmill: Shardmill, files: Mapping[str, bytes], before: str, wanted: list[tuple[object, ...]]
) -> None:
    for name, content in files.items():
        Path(name).write_bytes(content)
    first = shardmill("convert", *files, "-o", "out")
    options = options_in(first.out + first.err, before)
    assert options, first
    done = shardmill("convert", *files, "-o", "out", "--overwrite", *options)
    assert done.code == 0, done.err
    found = open_dataset("out")["train"].to_pandas()
    assert list(found.astype(object).where(found.notna(), None).itertuples(index=False, name=None)) == wanted


def test_one_kind_of_several_in_a_folder_is_read_with_the_option_that_is_proposed(shardmill: Shardmill) -> None:
    Path("in").mkdir()
    Path("in/a.csv").write_text("a\n1\n2\n")
    Path("in/b.jsonl").write_text('{"a": 3}\n')
    first = shardmill("convert", "in", "-o", "out")
    found = re.search(r"say which to read: (.*) or (.*)$", first.err.rstrip())
    for options, wanted in ((found[1], [1, 2]), (found[2], [3])):
        done = shardmill("convert", "in", "-o", "out", "--overwrite", *shlex.split(options))
        assert done.code == 0, done.err
        assert [row["a"] for row in rows_of("out")] == wanted
    named = shardmill("convert", "in/a.csv", "in/b.jsonl", "-o", "out", "--overwrite")
    assert named.code == 2
    assert "name the files of one kind" in named.err
    assert "--set" not in named.err


@pytest.mark.parametrize("ending", ["jsonl", "csv"])
def test_an_export_that_keeps_no_types_says_so_with_the_export_that_keeps_them(
    shardmill: Shardmill, ending: str
) -> None:
    when = pa.array([1, 2], pa.timestamp("us"))
    table = pa.table(
        {"id": [1, 2], "raw, data": [b"\xff", b""], "when": when, "cost": pa.array([1, 2], pa.decimal128(4))}
    )
    convert(data=table, output="in")
    screen = shardmill("export", "in", "-o", f"rows.{ending}", "--columns", 'id,"raw, data",when')
    assert screen.err.startswith("raw, data, when: text there"), screen.err
    words = shlex.split(screen.err.partition("to keep the types: shardmill ")[2])
    assert shardmill(*words).code == 0
    assert shardmill("convert", words[3], "-o", "again").code == 0
    assert (
        open_dataset("again")
        .to_arrow("train")
        .equals(open_dataset("in").to_arrow("train").select(["id", "raw, data", "when"]))
    )
    assert "to keep the types" not in shardmill("export", "in", "-o", f"id.{ending}", "--columns", "id").err
