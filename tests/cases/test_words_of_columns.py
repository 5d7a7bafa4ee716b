"""Words for null, true and false of one column: the screen proposes them, and what it proposes reads the file."""

from __future__ import annotations

import datetime as dt
import json
import shlex
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from shardmill.pipelines import convert
from shardmill.transforms.dataset.reading.open_dataset import open_dataset
from shardmill.transforms.errors import SchemaError
from shardmill.transforms.sources.text.lines import LineSizes

from ..command_line import Shardmill

COUNTRIES = """country,age,member,comment
NA,34,yes,NA
DE,NA,no,fine
FR,-999,Yes,NA
NA,51,no,none
"""


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("people.csv").write_text(COUNTRIES)


def columns_of(path: str) -> dict[str, list[Any]]:
    return open_dataset(path)["train"].to_arrow().to_pydict()


def proposed(text: str, before: str) -> list[str]:
    """Return the options that follow some words on a screen."""
    options = shlex.split(text.partition(before)[2].split("\n")[0].split("; ")[0])
    assert options, text
    return options


def test_a_null_word_is_proposed_for_the_column_that_it_keeps_from_being_numbers(shardmill: Shardmill) -> None:
    screen = shardmill("convert", "people.csv", "-o", "out")
    options = proposed(screen.out, "if that means null: ")
    assert options == ["--set", 'schema.columns.age.null_values=["NA"]']
    assert shardmill("convert", "people.csv", "-o", "out", *options, "--overwrite").code == 0
    found = columns_of("out")
    assert found["age"] == [34, None, -999, 51]
    assert found["country"] == ["NA", "DE", "FR", "NA"]
    assert found["comment"] == ["NA", "fine", "NA", "none"]


def test_null_words_are_null_in_quotes_too(shardmill: Shardmill) -> None:
    Path("quoted.csv").write_text('"country","age"\n"NA","34"\n"DE","NA"\n')
    options = proposed(shardmill("convert", "quoted.csv", "-o", "out").out, "if that means null: ")
    assert shardmill("convert", "quoted.csv", "-o", "out", *options, "--overwrite").code == 0
    assert columns_of("out") == {"age": [34, None], "country": ["NA", "DE"]}


def test_a_quoted_word_stays_a_value_where_all_columns_have_it_for_null(shardmill: Shardmill) -> None:
    Path("quoted.csv").write_text('t,x\n"NAN","NAN"\nNAN,NAN\na,1.5\n')
    assert shardmill("convert", "quoted.csv", "-o", "all", "--set", 'input.null_values=["", NAN]').code == 0
    found = columns_of("all")
    assert found["t"] == ["NAN", None, "a"]
    assert [repr(x) for x in found["x"]] == ["nan", "None", "1.5"]
    given = [word for name in "tx" for word in ("--set", f"schema.columns.{name}.null_values=[NAN]")]
    assert shardmill("convert", "quoted.csv", "-o", "one", *given).code == 0
    assert columns_of("one") == {"t": [None, None, "a"], "x": [None, None, 1.5]}


JSON_LINES = [
    {"n": 1, "t": "x", "many": [1, 2], "at": "2024-01-02"},
    {"n": "NA", "t": "NA", "many": "NA", "at": "NA"},
    {"n": 2.5, "t": None, "at": None},
    {"n": -999, "t": "-", "many": [3], "at": "2024-01-03"},
]


@pytest.mark.parametrize("pieces", [1, 4])
def test_words_in_values_of_json_are_null_beside_numbers_lists_and_dates(pieces: int, shardmill: Shardmill) -> None:
    for piece in range(pieces):
        lines = JSON_LINES if pieces == 1 else [JSON_LINES[piece]]
        Path(f"a{piece}.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    keys = {"n": "[NA, -999]", "t": "[NA]", "many": "[NA]", "at": "[NA]"}
    given = [word for name, words in keys.items() for word in ("--set", f"schema.columns.{name}.null_values={words}")]
    given += ["--set", "schema.columns.at.type=date"]
    paths = [f"a{piece}.jsonl" for piece in range(pieces)]
    done = shardmill("convert", *paths, "-o", "out", *given)
    assert done.code == 0, done.err
    assert columns_of("out") == {
        "n": [1.0, None, 2.5, None],
        "t": ["x", None, None, "-"],
        "many": [[1, 2], None, None, [3]],
        "at": [dt.date(2024, 1, 2), None, None, dt.date(2024, 1, 3)],
    }
    assert shardmill("append", *paths, "-o", "out", "--force").code == 0
    assert columns_of("out")["n"] == [1.0, None, 2.5, None] * 2


def test_a_word_for_null_that_no_line_had_that_was_looked_at_is_named_for_its_column(
    shardmill: Shardmill, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shardmill.transforms.sources.jsonl.source.AUTO_ROWS", 1)
    monkeypatch.setattr("shardmill.transforms.sources.jsonl.columns.AUTO_ROWS", 1)
    monkeypatch.setattr("shardmill.transforms.sources.text.lines.LineSizes", partial(LineSizes, auto_bytes=0))
    Path("a.jsonl").write_text('{"n": 1}\n{"n": "NA"}\n')
    refused = shardmill("convert", "a.jsonl", "-o", "out")
    options = proposed(refused.err, "if it means null, ")
    assert shardmill("convert", "a.jsonl", "-o", "out", *options).code == 0
    assert columns_of("out") == {"n": [1, None]}


def test_text_that_is_no_word_for_null_is_proposed_as_none() -> None:
    Path("a.jsonl").write_text('{"n": 1}\n{"n": "NA"}\n{"n": "abc"}\n')
    with pytest.raises(SchemaError, match="fix one, or keep the text of all values"):
        convert("a.jsonl", output="out")


@pytest.mark.parametrize("typed", ["[NA, -999, NO, null, ~]", '["NA", "-999", "NO", "null", "~"]'])
def test_words_of_yaml_are_taken_as_they_are_written(typed: str, shardmill: Shardmill) -> None:
    Path("a.csv").write_text("n,b\nNA,yes\n-999,no\nNO,on\nnull,off\n~,yes\n7,no\n")
    Path("c.yaml").write_text(
        f"input: {{paths: [a.csv]}}\noutput: {{path: out}}\nschema:\n  columns:\n    n: {{null_values: {typed}}}\n"
        "    b: {true_values: [yes, on], false_values: [no, off]}\n"
    )
    assert shardmill("convert", "c.yaml").code == 0
    assert columns_of("out") == {"n": [None] * 5 + [7], "b": [True, False, True, False, True, False]}
    given = ["--set", f"schema.columns.n.null_values={typed}", "--set", "schema.columns.b.true_values=[yes, on]"]
    assert (
        shardmill("convert", "a.csv", "-o", "o", *given, "--set", "schema.columns.b.false_values=[no, off]").code == 0
    )
    assert columns_of("o") == columns_of("out")
    assert shardmill("convert", "a.csv", "-o", "all", "--set", f"input.null_values={typed}").code == 0
    assert columns_of("all")["n"] == [None] * 5 + [7]


def test_a_bool_of_other_words_is_read_by_what_its_rejects_say(shardmill: Shardmill) -> None:
    Path("few.csv").write_text("id,member\n1,true\n2,false\n3,true\n4,yes\n5,no\n6,Yes\n")
    command = ["convert", "few.csv", "-o", "out", "--set", "schema.columns.member.type=bool"]
    refused = shardmill(*command)
    options = proposed(refused.err, '"yes" is not true or false; declare it: ')
    assert options == [
        "--set", 'schema.columns.member.true_values=["yes"]', "--set", 'schema.columns.member.false_values=["no"]'
    ]  # fmt: skip
    again = shardmill(*command, *options)
    assert again.code == 4
    options += proposed(again.err, "add it: ")
    assert options[-1] == 'schema.columns.member.true_values=["yes", "Yes"]'
    assert shardmill(*command, *options).code == 0
    assert columns_of("out")["member"] == [True, False, True, True, False, True]


def test_a_word_for_null_in_a_bool_is_named_for_its_column(shardmill: Shardmill) -> None:
    Path("a.csv").write_text("b,c\nja,k.A.\nnein,-\n-,x\n")
    given = ["--set", "schema.columns.b.true_values=[ja]", "--set", "schema.columns.b.false_values=[nein]"]
    refused = shardmill("convert", "a.csv", "-o", "out", *given)
    options = proposed(refused.err, "if it means null, ")
    assert shardmill("convert", "a.csv", "-o", "out", *given, *options).code == 0
    assert columns_of("out") == {"b": [True, False, None], "c": ["k.A.", "-", "x"]}


def test_a_second_word_for_null_keeps_the_first(shardmill: Shardmill) -> None:
    given = ["--set", "schema.columns.age.null_values=[-999]", "--set", "schema.columns.age.type=int64"]
    refused = shardmill("convert", "people.csv", "-o", "out", *given)
    options = proposed(refused.err, "if it means null, ")
    assert options == ["--set", 'schema.columns.age.null_values=["-999", "NA"]']
    assert shardmill("convert", "people.csv", "-o", "out", *given, *options).code == 0
    assert columns_of("out")["age"] == [34, None, None, 51]


def test_null_words_of_a_column_are_text_numbers_or_times_in_other_formats(shardmill: Shardmill) -> None:
    table = pa.table({"n": [1, -999], "t": ["NA", "x"], "d": pa.array([0, 1], pa.date32()), "f": [float("nan"), 1.5]})
    pq.write_table(table, "a.parquet")
    rules = {"n": ["-999"], "t": ["NA"], "d": ["1970-01-01"], "f": ["nan"]}
    columns = {name: {"null_values": words} for name, words in rules.items()}
    convert("a.parquet", output="out", schema={"columns": columns})
    found = columns_of("out")
    assert (found["n"], found["t"], found["f"]) == ([1, None], [None, "x"], [None, 1.5])
    assert found["d"][0] is None
    convert(data=table, output="memory", schema={"columns": columns})
    assert columns_of("memory") == found
    refused = shardmill("convert", "a.parquet", "-o", "o", "--set", "schema.columns.n.null_values=[NA]")
    assert 'column "n": null_values: "NA": no value of its type, int64; leave the key out' in refused.err


def test_null_words_hold_in_an_append_too(shardmill: Shardmill) -> None:
    given = ["--set", "schema.columns.age.null_values=[NA, -999]"]
    assert shardmill("convert", "people.csv", "-o", "out", *given).code == 0
    assert shardmill("append", "people.csv", "-o", "out", "--force").code == 0
    assert columns_of("out")["age"] == [34, None, None, 51] * 2


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("true_values=[yes]", "true_values and false_values go together"),
        ("null_values=[a, a]", '"a" appears twice'),
    ],
)
def test_words_that_make_no_sense_are_refused(key: str, said: str, shardmill: Shardmill) -> None:
    assert said in shardmill("convert", "people.csv", "-o", "out", "--set", f"schema.columns.member.{key}").err


def test_classes_that_differ_in_capitals_alone_are_said(shardmill: Shardmill) -> None:
    screen = shardmill("convert", "people.csv", "-o", "out", "--set", "schema.columns.member.label=true")
    assert '"Yes" and "yes" are two classes, and differ in capitals or blanks alone' in screen.out


def test_what_a_word_for_null_in_all_columns_took_is_counted_by_column(shardmill: Shardmill) -> None:
    command = ["convert", "people.csv", "-o", "out"]
    screen = shardmill(*command, "--set", 'input.null_values=["", NA]')
    said = 'input.null_values made cells null: 2 of "comment" ("NA"), 2 of "country" ("NA"), 1 of "age" ("NA"); '
    assert said in screen.out
    assert shardmill(*command, "--dry-run", "--overwrite", "--set", 'input.null_values=["", NA]').out.count(said) == 1
    options = proposed(screen.out, "for one column alone: ")
    assert shardmill(*command, *options, "--overwrite").code == 0
    assert columns_of("out")["comment"] == [None, "fine", None, "none"]
    assert columns_of("out")["country"] == ["NA", "DE", "FR", "NA"]
