"""Files that Hive, Redshift, MySQL and LibSVM's tools write: what the screen proposes is run, and reads right."""

from __future__ import annotations

import io
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from shardmill.transforms.dataset.reading.open_dataset import open_dataset

from ..command_line import Shardmill


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def put(name: str, data: str | bytes) -> None:
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    Path(name).write_bytes(data.encode() if isinstance(data, str) else data)


def rows_in(dataset: str) -> list[dict[str, Any]]:
    return [dict(record) for record in open_dataset(dataset)["train"]]


ANN = {"column_0": 1, "column_1": "ann"}
BOB = {"column_0": 2, "column_1": "bob"}


@pytest.mark.parametrize(
    ("files", "rows"),
    [
        ({"d/000000_0": "1\x01ann\n", "d/000001_0": "2\x01bob\n"}, [ANN, BOB]),
        ({"d/000000_0": "1\x01ann\n2\x01\\N\n"}, [ANN, {"column_0": 2, "column_1": None}]),
        ({"d/0000_part_00": "1|ann\n", "d/0001_part_00": "2|bob\n", "d/_SUCCESS": ""}, [ANN, BOB]),
        ({"d/part-00000": "1\tann\n2\tbob\n", "d/.part-00000.crc": "x"}, [ANN, BOB]),
        ({"d/part-00000": "id,name\n1,ann\n"}, [{"id": 1, "name": "ann"}]),
        ({"d/a.json": '{"id": 1}\n{"id": 2}\n', "d/b.json": '{"id": 3}\n'}, [{"id": 1}, {"id": 2}, {"id": 3}]),
        ({"d/part-00000": '{"id": 1}\n'}, [{"id": 1}]),
    ],
)
def test_a_folder_of_files_without_a_known_suffix_is_refused_with_the_command_that_reads_it(
    shardmill: Shardmill, files: dict[str, str], rows: list[dict[str, Any]]
) -> None:
    for name, text in files.items():
        put(name, text)
    screen = shardmill("convert", "d", "-o", "out")
    assert screen.code == 2
    found = re.search(r"show how to read them: shardmill (.*)", screen.err)
    assert found is not None, screen.err
    made = shardmill(*shlex.split(found[1]))
    assert made.code == 0, made.err
    assert rows_in("out") == rows


def test_a_folder_of_unknown_bytes_gets_no_such_command(shardmill: Shardmill) -> None:
    put("d/x", b"\0\1\2\n")
    assert "show how to read them" not in shardmill("convert", "d", "-o", "out").err


def test_libsvm_in_csv_is_refused_with_the_command_that_reads_it_as_text(shardmill: Shardmill) -> None:
    put("a.csv", "1 3:0.5 7:1\n-1 1:0.25\n")
    screen = shardmill("convert", "a.csv", "-o", "out")
    found = re.search(r"as text: shardmill (.*); as one column: (--no-header)", screen.err)
    assert found is not None, screen.err
    assert shardmill(*shlex.split(found[1])).code == 0
    assert rows_in("out") == [{"text": "1 3:0.5 7:1"}, {"text": "-1 1:0.25"}]
    assert shardmill("convert", "a.csv", "-o", "column", found[2]).code == 0


def test_the_nulls_of_mysql_are_named_and_what_is_said_reads_the_file_that_is_exported_again(
    shardmill: Shardmill,
) -> None:
    put("a.csv", '"1","N,"x"\n"2","y","z"\n')
    screen = shardmill("convert", "a.csv", "-o", "out", "--no-header", "--max-rejects", "1")
    screen = shardmill("convert", "a.csv", "-o", "other")
    assert '"N is the null of MySQL and Cloud SQL' in screen.err
    found = re.search(r"and then: (.*)", screen.err)
    assert found is not None
    put("b.csv", '"1",\\N,"x"\n"2","y","z"\n')
    made = shardmill("convert", "b.csv", "-o", "again", "--no-header", *shlex.split(found[1]))
    assert made.code == 0, made.err
    assert [row["column_1"] for row in rows_in("again")] == [None, "y"]


def test_nulls_of_dumps_in_columns_of_text_are_said_with_the_key_that_reads_them(shardmill: Shardmill) -> None:
    put("a.tsv", "name\tage\tok\nanna\t\\N\ttrue\n\\N\t4\t\\N\nbob\t5\tfalse\n")
    screen = shardmill("convert", "a.tsv", "-o", "out")
    found = re.findall(r'Detected: (columns? (?:"\w+"(?:, )?)+).*null.*: --set (.*)', screen.out)
    assert [one for one, _ in found] == ['column "age"', 'column "name"', 'column "ok"'], screen.out
    assert found[0][1] == found[1][1] == found[2][1]
    assert shardmill("convert", "a.tsv", "-o", "again", "--set", *shlex.split(found[1][1])).code == 0
    rows = [{"name": "anna", "age": None, "ok": True}, {"name": None, "age": 4, "ok": None}]
    assert rows_in("again") == [*rows, {"name": "bob", "age": 5, "ok": False}]


def test_nulls_of_dumps_in_quotes_are_text_without_a_word(shardmill: Shardmill) -> None:
    put("a.csv", 'name,x\n"\\N",b\nc,d\n')
    assert "input.null_values" not in shardmill("convert", "a.csv", "-o", "out").out


def test_a_table_that_blanks_align_in_a_txt_file_is_said_with_the_command_that_reads_it(shardmill: Shardmill) -> None:
    put("list.txt", "2\nA B \n1.jpg -1  1\n2.jpg  1  1\n3.jpg  1 -1\n")
    screen = shardmill("convert", "list.txt", "-o", "out")
    found = re.search(r"blanks align; if it is one: (.*)", screen.out)
    assert found is not None, screen.out
    assert shardmill("convert", "list.txt", "-o", "table", *shlex.split(found[1])).code == 0
    assert rows_in("table")[0] == {"row": "1.jpg", "A": -1, "B": 1}


@pytest.mark.parametrize(
    ("text", "row"),
    [("a b\n1  2\n 3 4\n5  6\n", {"a": 1, "b": 2}), ("a\tb\n1\t2\n", {"a": 1, "b": 2}), ('{"a": 1}\n', {"a": 1})],
    ids=["blanks", "tabs", "JSON"],
)
def test_a_txt_file_in_a_folder_that_is_no_text_is_said_with_the_whole_command_that_reads_it(
    shardmill: Shardmill, text: str, row: dict[str, int]
) -> None:
    put("d/list.txt", text)
    screen = shardmill("convert", "d", "-o", "out", "--set", "input.format=txt")
    found = re.search(r"(?:if it is one|if all are): shardmill (.*)", screen.out)
    assert found is not None, screen.out
    assert shardmill(*shlex.split(found[1]), "--overwrite").code == 0
    assert rows_in("out")[0] == row


@pytest.mark.parametrize(
    ("mode", "kind", "said"),
    [
        ("P", "bmp", "the numbers of the colours"),
        ("P", "png", "3 channels, or 4 with transparency"),
        ("LA", "png", "2 channels"),
        ("I;16", "png", "to 8 bits"),
        ("CMYK", "jpeg", "decodes to 3 channels"),
        ("RGB", "png", ""),
        ("L", "bmp", ""),
    ],
)
def test_what_tensorflow_makes_of_an_odd_picture_is_said(shardmill: Shardmill, mode: str, kind: str, said: str) -> None:
    memory = io.BytesIO()
    plain = Image.new("RGB", (4, 3), (102, 102, 51))
    picture = Image.new(mode, (4, 3)) if mode == "I;16" else plain.convert(mode)
    picture.save(memory, kind)
    put(f"d/cat/a.{kind}", memory.getvalue())
    screen = shardmill("convert", "d", "-o", "out")
    assert screen.code == 0, screen.err
    assert said in screen.out
    assert ("TensorFlow" in screen.out) == bool(said)
    if options := re.search(r": (--set image\.color=\S+ --set image\.encode\.format=png)", screen.out):
        made = shardmill("convert", "d", "-o", "made", *shlex.split(options[1]))
        assert made.code == 0, made.err
        with Image.open(io.BytesIO(rows_in("made")[0]["image/encoded"])) as again:
            assert again.mode == "RGB"
