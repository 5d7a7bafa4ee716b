from __future__ import annotations

import gzip
import json
import re
import shlex
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv
from shardmill.transforms.dataset.reading.open_dataset import open_dataset

from ..command_line import Shardmill


@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_a_header_that_comes_again_is_named_by_its_place_and_never_proposed_as_a_null(
    shardmill: Shardmill, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mark: str
) -> None:
    monkeypatch.chdir(tmp_path)
    part = "id,score,name\n" + "".join(f"{number},{number}.5,n{number}\n" for number in range(5))
    Path("a.csv").write_text(part + mark + part + part)
    screen = shardmill("convert", "a.csv", "-o", "out")
    assert screen.code == 0, screen.err
    assert "text: the header comes again (a.csv row 6), as in files that were joined" in screen.out
    assert "null_values" not in screen.out


PART = "id,score,name\n" + "".join(f"{number},{number}.5,n{number}\n" for number in range(3))
ROWS = [{"id": number, "score": number + 0.5, "name": f"n{number}"} for number in range(3)]


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        (PART + PART + PART, ROWS * 3),
        (PART + "\ufeff" + PART, ROWS * 2),
        (PART + '"id","score",name\n\n' + PART.partition("\n")[2], ROWS * 2),
        (PART.replace("\n", "\r\n") * 2, ROWS * 2),
        (PART.replace(",", ";") * 2, ROWS * 2),
        (PART, ROWS),
        ("name,city\na,b\nname,city\nc,d\nname,town\n", [
            {"name": "a", "city": "b"}, {"name": "c", "city": "d"}, {"name": "name", "city": "town"},
        ]),
        ("a\nx\na\na \n", [{"a": "x"}, {"a": "a "}]),
    ],
)  # fmt: skip
def test_the_key_that_is_said_leaves_headers_out_that_come_again_and_counts_them(
    shardmill: Shardmill, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, rows: list[dict[str, object]]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text(text, newline="")
    Path("b.csv.gz").write_bytes(gzip.compress(text.encode()))
    said = "--set input.repeated_header=drop" in shardmill("convert", "a.csv", "-o", "plain").out
    for name in ("a.csv", "b.csv.gz"):
        screen = shardmill("convert", name, "-o", name[0], "--set", "input.repeated_header=drop")
        assert screen.code == 0, screen.err
        assert [dict(record) for record in open_dataset(name[0])["train"]] == rows
        assert ("dropped" in screen.out) == said
    assert said == (text != PART)


def test_headers_that_come_again_are_left_out_beside_a_where_and_bad_rows(
    shardmill: Shardmill, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text(PART + '1,2\n1,"2" 3,x\n' + PART)
    keys = ["--set", "input.repeated_header=drop", "--set", "input.where=id > 0", "--max-rejects", "2"]
    screen = shardmill("convert", "a.csv", "-o", "out", *keys)
    assert "9 rows of 1 file" in screen.out, screen.err
    assert "4 written, 2 rejected, 3 dropped" in screen.out
    assert [dict(record) for record in open_dataset("out")["train"]] == ROWS[1:] * 2
    screen = shardmill("convert", "a.csv", "-o", "few", *keys, "--set", "input.limit=4")
    assert "repeated_header: drop goes with a header, and without limit" in screen.err


TWINS = [{"id": 1, "fee": 2.5}, {"id": 3, "fee": 4.5}]


def put_twins(kind: str) -> list[str]:
    for number, (name, row) in enumerate(zip(("fee", "Fee"), TWINS, strict=True)):
        table = pa.table({"id": [row["id"]], "extra" if number else "more": ["x"], name: [row["fee"]]})
        if kind == "parquet":
            pq.write_table(table, f"{number}.{kind}")
        elif kind == "csv":
            csv.write_csv(table, f"{number}.{kind}")
        else:
            Path(f"{number}.{kind}").write_text("".join(json.dumps(one) + "\n" for one in table.to_pylist()))
    return [f"0.{kind}", f"1.{kind}"]


@pytest.mark.parametrize("kind", ["parquet", "csv", "jsonl"])
def test_columns_that_differ_in_capitals_only_become_one_by_the_append_that_is_said(
    shardmill: Shardmill, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.chdir(tmp_path)
    files, union, screens = put_twins(kind), ["--set", "input.columns_differ=union"] * (kind != "jsonl"), ""
    if union:
        refused = shardmill("convert", *files, "-o", "out")
        screens += refused.err
        assert f'has a column "fee", and 1.{kind} has "Fee" instead' in refused.err
    united = shardmill("convert", *files, "-o", "united", *union)
    assert united.code == 0
    said = re.findall(r"are one column, .*?: (shardmill append [^;\n]*)", screens + united.out)
    assert (len(said), len(set(said))) == (1 + bool(union), 1), screens + united.out
    assert shardmill("convert", files[0], "-o", "out", "--columns", "id,fee").code == 0
    append = said[0].replace("FILES", files[1]).replace("FOLDER", "out")
    done = shardmill(*shlex.split(append)[1:], "--columns", "id,Fee")
    assert done.code == 0, done.err
    assert [dict(record) for record in open_dataset("out")["train"]] == TWINS


def test_columns_of_one_file_that_differ_in_capitals_are_read_without_a_word(
    shardmill: Shardmill, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text("id,fee,Fee\n1,2,3\n")
    Path("b.csv").write_text("id,fee\n1,2\n")
    Path("a.jsonl").write_text('{"fee": 1, "Fee": 2}\n')
    union = ["--set", "input.columns_differ=union"]
    assert "capitals" not in shardmill("convert", "a.csv", "b.csv", "-o", "one", *union).out
    assert "capitals" not in shardmill("convert", "a.jsonl", "-o", "two").out


@pytest.mark.parametrize("given", [[], ["--exclude-columns", "zero"]])
def test_the_columns_that_a_message_leaves_out_are_all_that_differ_and_those_that_were_left_out(
    shardmill: Shardmill, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for number, names in enumerate((["fee", "a"], ["Fee", "a"], ["b"])):
        kept = [*names, *(["zero"] if given and not number else [])]
        pq.write_table(pa.table({"id": [number]} | {name: [1] for name in kept}), f"{number}.parquet")
    command = ["convert", "0.parquet", "1.parquet", "2.parquet", "-o", "out"]
    screen = shardmill(*command, *given)
    found = re.search(r"leave the columns out: (--set .*?); or", screen.err)
    assert found, screen.err
    assert shardmill(*command, *shlex.split(found[1])).code == 0
    assert [dict(record) for record in open_dataset("out")["train"]] == [{"id": 0}, {"id": 1}, {"id": 2}]


@pytest.mark.parametrize("kind", ["parquet", "csv", "jsonl"])
def test_an_append_of_columns_that_differ_in_capitals_names_them_as_the_dataset_does_by_its_error(
    shardmill: Shardmill, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.chdir(tmp_path)
    one, other = put_twins(kind)
    assert shardmill("convert", one, "-o", "out", "--columns", "id,fee").code == 0
    append = ["append", other, "-o", "out", "--columns", "id,Fee"]
    refused = shardmill(*append)
    found = re.search(r"where only capitals differ: (--set \S+); or", refused.err)
    assert found, refused.err
    assert shardmill(*append, *shlex.split(found[1])).code == 0
    assert [dict(record) for record in open_dataset("out")["train"]] == TWINS
