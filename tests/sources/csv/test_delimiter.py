from __future__ import annotations

import csv
import gzip
import io
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shardmill.pipelines import open_dataset
from shardmill.pipelines.cli import main
from shardmill.transforms.read import ReadRows
from shardmill.transforms.sources.csv.delimiter import (
    SIGNS,
    AmbiguousDelimiter,
    Delimiter,
    SampleOptions,
    _detect,
    detect_delimiter,
)


@pytest.mark.parametrize(
    ("text", "sign"),
    [
        ("a,b\n1,2\n", ","),
        ("a;b\n1;2\n", ";"),
        ("a\tb\n1\t2\n", "\t"),
        ("a|b\n1|2\n", "|"),
        ("id;price\n1;2,50\n2;3,50\n", ";"),  # decimal commas in every row, and none in the header
        ("id,tags\n1,a|b\n2,c|d\n", ","),
        ("a;b\n" + "1;2\n" * 20 + "1;2;3\n", ";"),  # one row is too wide
        ("a,b\n1\n2\n3\n", ","),  # ragged: the header decides
        ("a;b\n1\n2\n3\n", ";"),
        ("name\nx;y\n", ","),  # one column, whatever its cells hold
        ("name\n", ","),
        ('"a;b";c\n"1;2";3\n', ";"),
        ('"x\n;y",b\n1,2\n', ","),
        ("", ","),
        ("\n\na;b\n1;2\n", ";"),
        ("a;b", ";"),
    ],
)
def test_the_delimiter_is_what_gives_the_records_the_columns_of_the_header(
    tmp_path: Path, text: str, sign: str
) -> None:
    (tmp_path / "a.csv").write_text(text)
    found = detect_delimiter(["a.csv"], str(tmp_path))
    assert found.sign == sign
    assert (found.evidence is None) == (sign == ",")


@given(
    sign=st.sampled_from(SIGNS),
    rows=st.lists(st.lists(st.text('ab 1.,;|\t"\n', max_size=5), min_size=3, max_size=3), min_size=1, max_size=20),
)
def test_what_a_csv_writer_writes_is_read_by_its_own_delimiter_or_refused(sign: str, rows: list[list[str]]) -> None:
    text = io.StringIO()
    writer = csv.writer(text, delimiter=sign)
    writer.writerows([["id", "name", "price"], *rows])
    try:
        assert _detect("a.csv", text.getvalue(), SampleOptions()).sign == sign
    except AmbiguousDelimiter:
        raise AssertionError("the header is by no other sign") from None


def test_two_signs_that_both_fit_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a,b|c\n1,2|3\n")
    with pytest.raises(AmbiguousDelimiter, match=r'"," gives 2 and "\|" gives 2 columns in the first 2 records'):
        detect_delimiter(["a.csv"], str(tmp_path))


def test_only_the_first_file_with_a_record_is_looked_at(tmp_path: Path) -> None:
    for name, text in {"a.csv": "", "b.csv": "a;b\n1;2\n", "c.csv": "a,b\n1,2\n"}.items():
        (tmp_path / name).write_text(text)
    assert detect_delimiter([str(tmp_path)]).sign == ";"
    assert detect_delimiter(["nothing.csv"], str(tmp_path)) == Delimiter(",")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1", "shift_jis"])
def test_it_is_detected_in_any_encoding_and_in_gzip(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "a.csv").write_bytes("a;b\n1;2\n".encode(encoding))
    (tmp_path / "b.csv").write_bytes(gzip.compress("a;b\n1;2\n".encode(encoding)))
    for name in ("a.csv", "b.csv"):
        assert detect_delimiter([name], str(tmp_path), SampleOptions(encoding)).sign == ";"


def test_a_large_file_is_not_read_to_its_end(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"a;b\n" + b"1;2\n" * 3_000_000 + b"\xff\xff")
    assert detect_delimiter(["a.csv"], str(tmp_path)).evidence == (
        'a.csv: the delimiter is ";": 2 columns in the first 100 records; if it is not: --set input.delimiter=,'
    )


def test_python_detects_it_too(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a;b\n1;2\n")
    assert [feature.name for feature in ReadRows(str(tmp_path / "a.csv")).schema] == ["a", "b"]


ALIGNED = "mpg   cylinders  name\n18.0  8          chevelle\n15.0  8          buick\n"


def test_columns_that_blanks_align_are_refused_with_the_options_that_cut_them_and_that_keep_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("cars.csv").write_text(ALIGNED)
    with pytest.raises(SystemExit) as ended:
        main(["convert", "cars.csv", "-o", "plain", "--workers", "1"])
    screen = " ".join(capsys.readouterr().err.split())
    assert ended.value.code == 2
    assert "cars.csv: no sign is the delimiter, and blanks give 3 columns in the first 3 records" in screen
    (plain,) = re.findall(r"as one column: (--set input\.delimiter=,)", screen)
    with pytest.raises(SystemExit) as ended:
        main(["convert", "cars.csv", "-o", "plain", "--workers", "1", *plain.split()])
    assert ended.value.code == 0
    assert [len(record) for record in open_dataset("plain")["train"]] == [1, 1]
    capsys.readouterr()
    (option,) = re.findall(r"to cut there: (--set input\.trim=true)", screen)
    with pytest.raises(SystemExit) as ended:
        main(["convert", "cars.csv", "-o", "cut", "--workers", "1", *option.split()])
    screen = " ".join(capsys.readouterr().out.split())
    assert ended.value.code == 0
    assert "cars.csv: the delimiter is a run of blanks: 3 columns in the first 3 records; if it is not" in screen
    assert open_dataset("cut").to_arrow("train").sort_by("mpg").to_pylist() == [
        {"cylinders": 8, "mpg": 15.0, "name": "buick"},
        {"cylinders": 8, "mpg": 18.0, "name": "chevelle"},
    ]


@pytest.mark.parametrize(
    "text", ["name\nAda Lovelace\nAlan Turing\n", "a b\n1 2\n", "a,b\n1 2,3\n4 5,6\n", "one\n1\n2\n"]
)
def test_other_text_of_one_column_is_no_such_text(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.csv").write_text(text)
    assert detect_delimiter(["a.csv"], str(tmp_path)).evidence is None
