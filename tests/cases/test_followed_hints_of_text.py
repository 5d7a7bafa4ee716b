"""Options that messages about text, its columns and its limits propose are typed as printed, and read what is right."""

from __future__ import annotations

import datetime as dt
import re
import shlex
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from shardmill.transforms.dataset.reading.open_dataset import open_dataset
from shardmill.transforms.sources.text.lines import LineSizes

from ..command_line import Shardmill

VALUE = r"(?:'[^']*'|[^\s;()',]+=,(?=[\s;)]|$)|(?:[^\s;()',]|,(?=[^\s,]))+)"
OPTIONS = re.compile(rf"--[a-z-]+(?: (?!--){VALUE})?(?: --[a-z-]+(?: (?!--){VALUE})?)*")


@dataclass(frozen=True)
class Case:
    """Files, the options of the command that is run, what stands before the options that it proposes, and the rows.

    `fill` is what a reader puts in the place of a part of the options.
    """

    files: dict[str, str | bytes]
    before: str
    rows: list[tuple[object, ...]]
    given: list[str] = field(default_factory=list)
    fill: tuple[str, str] = ("", "")


def column(name: str, key: str, value: str) -> list[str]:
    return ["--set", f"schema.columns.{name}.{key}={value}"]


def parquet(table: pa.Table) -> bytes:
    pq.write_table(table, sink := pa.BufferOutputStream())
    return sink.getvalue().to_pybytes()


CASES = {
    "a word for null in a declared column": Case(
        {"a.csv": "n\n1\nNA\n3\n"}, "if it means null, ", [(1,), (None,), (3,)], column("n", "type", "int64")
    ),
    "a word in a declared column, as text": Case(
        {"a.csv": "n\n1\nNA\n3\n"}, "declare it: ", [("1",), ("NA",), ("3",)], column("n", "type", "int64")
    ),
    "a fraction in integers": Case(
        {"a.csv": "n\n1\n2.5\n"}, "declare it: ", [(1.0,), (2.5,)], column("n", "type", "int64")
    ),
    "text in a declared column": Case(
        {"a.csv": "n\n1\nabc\n"}, "declare it: ", [("1",), ("abc",)], column("n", "type", "int64")
    ),
    "a currency": Case(
        {"a.csv": 'n\n"$1,268.75"\n2.5\n'}, "declare it: ", [(1268.75,), (2.5,)], column("n", "type", "float64")
    ),
    "nanoseconds": Case(
        {"a.csv": "t\n2020-01-01T00:00:00.000000001\n2020-01-01T00:00:00\n"},
        "declare it: ",
        [(pd.Timestamp("2020-01-01T00:00:00.000000001"),), (pd.Timestamp("2020-01-01"),)],
        column("t", "type", "timestamp"),
    ),
    "milliseconds since 1970 in another unit": Case(
        {"a.csv": "t\n1767943800000\n2026-01-09 07:40:00\n2026-01-09 07:40:00\n"},
        "declare it: ",
        [(pd.Timestamp("2026-01-09T07:30:00"),), *2 * [(pd.Timestamp("2026-01-09T07:40:00"),)]],
        column("t", "type", "timestamp"),
    ),
    "a column of money and a word for null": Case(
        {"a.csv": 'n\n"$1,268.75"\n$2.50\nn/a\n7\n'},
        'fail in column "n"; to read it: ',
        [(1268.75,), (2.5,), (None,), (7.0,)],
        column("n", "type", "float64"),
    ),
    "a column of two words for null": Case(
        {"a.csv": "n\n-\nNA\n-\n7\n"}, "to read it: ", [(None,), (None,), (None,), (7,)], column("n", "type", "int64")
    ),
    "a column of decimal commas": Case(
        {"a.csv": "n;m\n1,5;1\n2,5;2\n3;3\n"},
        "to read it: ",
        [(1, 1.5), (2, 2.5), (3, 3.0)],
        column("n", "type", "float64"),
    ),
    "a column with an odd value": Case(
        {"a.csv": "d\n31.12.2024\n1.2.2024\n2.2.2024\nsometime\n"},
        "to read most of it: ",
        [(dt.date(2024, 12, 31),), (dt.date(2024, 2, 1),), (dt.date(2024, 2, 2),)],
        [*column("d", "type", "date"), "--max-rejects", "1"],
    ),
    "a column of fractions": Case(
        {"a.csv": "n\n1.5\n2.5\n3\n"}, "to read it: ", [(1.5,), (2.5,), (3.0,)], column("n", "type", "int64")
    ),
    "a column of numbers that are too large": Case(
        {"a.csv": f"n\n{2**40}\n{2**41}\n3\n"},
        "to read it: ",
        [(2**40,), (2**41,), (3,)],
        column("n", "type", "int32"),
    ),
    "a column of yes and no": Case(
        {"a.csv": "n\nyes\nNo\n?\ntrue\n"},
        "to read it: ",
        [(True,), (False,), (None,), (True,)],
        column("n", "type", "bool"),
    ),
    "a column of days": Case(
        {"a.csv": "d\n31.12.2024\n1.2.2024\n"},
        "to read it: ",
        [(dt.date(2024, 12, 31),), (dt.date(2024, 2, 1),)],
        column("d", "type", "date"),
    ),
    "a column of times with their zone": Case(
        {"a.csv": "t\n2024-01-31T10:00:00Z\n2024-01-31T10:00:00+01:00\n"},
        "to read it: ",
        [(pd.Timestamp("2024-01-31T10:00:00Z"),), (pd.Timestamp("2024-01-31T09:00:00Z"),)],
        column("t", "type", "timestamp"),
    ),
    "a column of text": Case(
        {"a.csv": "n\nred\nNA\n3\n"}, "to read it: ", [("red",), ("NA",), ("3",)], column("n", "type", "float64")
    ),
    "a day that two forms read differently": Case(
        {"a.csv": "t\n02/03/2024\n31/12/2024\n01/05/2024\n"},
        "name the form that it has: ",
        [(dt.date(2024, 3, 2),), (dt.date(2024, 12, 31),), (dt.date(2024, 5, 1),)],
        column("t", "format", '["%d/%m/%Y", "%m/%d/%Y"]'),
    ),
    "an offset in a column without a time zone": Case(
        {"a.csv": "t\n2024-01-01T01:00:00+01:00\n2024-01-01T00:00:00\n"},
        "declare it: ",
        [(dt.datetime(2024, 1, 1, tzinfo=dt.UTC),)] * 2,
        column("t", "type", "timestamp"),
    ),
    "an hour that clocks leave out": Case(
        {"a.csv": "t\n2024-03-31 02:30:00\n2024-03-31 04:30:00\n"},
        "does not exist in Europe/Berlin: clocks are set forward then; write its offset behind it, like +01:00, "
        "or, if the times are UTC, declare it: ",
        [(dt.datetime(2024, 3, 31, hour, 30, tzinfo=dt.UTC),) for hour in (2, 4)],
        column("t", "type", "timestamp") + column("t", "timezone", "Europe/Berlin"),
    ),
    "an hour that clocks show twice, in a form": Case(
        {"a.csv": "t\n27.10.2024 02:30\n"},
        "comes twice in Europe/Berlin: clocks are set back then; if the times are UTC: ",
        [(dt.datetime(2024, 10, 27, 2, 30, tzinfo=dt.UTC),)],
        column("t", "format", "%d.%m.%Y %H:%M") + column("t", "timezone", "Europe/Berlin"),
    ),
    "a column of hours that clocks leave out": Case(
        {"a.csv": "t\n2024-03-31 02:30:00\n"},
        "to read it: ",
        [(dt.datetime(2024, 3, 31, 2, 30, tzinfo=dt.UTC),)],
        column("t", "type", "timestamp") + column("t", "timezone", "Europe/Berlin"),
    ),
    "a form with an offset in a column of dates": Case(
        {"a.csv": "t\n2024-01-01 01:00 +0100\n"},
        "%z is an offset from UTC, and a date has none: ",
        [(dt.datetime(2024, 1, 1, tzinfo=dt.UTC),)],
        column("t", "format", "%Y-%m-%d %H:%M %z") + column("t", "type", "date"),
    ),
    "a time zone of times that have none": Case(
        {"a.parquet": parquet(pa.table({"t": [dt.datetime(2024, 1, 1, 10)]}))},
        "if its times are UTC, declare that: ",
        [(dt.datetime(2024, 1, 1, 10, tzinfo=dt.UTC),)],
        column("t", "timezone", "Europe/Berlin"),
    ),
    "a time in a column of dates": Case(
        {"a.csv": "t\n2024-01-01 10:00:00\n2024-01-01\n"},
        "declare it: ",
        [(dt.datetime(2024, 1, 1, 10),), (dt.datetime(2024, 1, 1),)],
        column("t", "type", "date"),
    ),
    "a time with an offset in a column of dates": Case(
        {"a.csv": "t\n2024-01-01T10:00:00Z\n"},
        "to read it: ",
        [(dt.datetime(2024, 1, 1, 10, tzinfo=dt.UTC),)],
        column("t", "type", "date"),
    ),
    "words for null among numbers of JSON": Case(
        {"a.jsonl": '{"a": 1.5}\n{"a": "NA"}\n{"a": "-"}\n'},
        'if "NA" and "-" mean null: ',
        [(1.5,), (None,), (None,)],
    ),
    "a second word for null among numbers of JSON": Case(
        {"a.jsonl": '{"a": 1.5}\n{"a": "NA"}\n{"a": "--"}\n'},
        'if "--" means null: ',
        [(1.5,), (None,), (None,)],
        column("a", "null_values", "[NA]"),
    ),
    "bytes that are no text, in CSV": Case({"a.csv": b"a,b\n1,caf\xe9\n"}, "probably Windows text: ", [(1, "caf\xe9")]),
    "bytes in a column of CSV": Case({"a.csv": b"a,b\n1,caf\xe9\n"}, "column as bytes: ", [(1, b"caf\xe9")]),
    "a decimal comma": Case({"a.csv": "a;n\n1;2,5\n2;3,5\n"}, "unless it is declared; ", [(1, 2.5), (2, 3.5)]),
    "dots and a decimal comma": Case(
        {"a.csv": "a;n\n1;1.002,5\n2;3,5\n"}, "unless it is declared; ", [(1, 1002.5), (2, 3.5)]
    ),
    "thousands alone": Case({"a.csv": 'a,n\n1,"1,002"\n2,5\n'}, "unless it is declared; ", [(1, 1002), (2, 5)]),
    "commas between thousands, and a word": Case(
        {"a.csv": 'a,n\n1,"1,002"\n2,5\n3,n/a\n'}, "unless it is declared; ", [(1, 1002), (2, 5), (3, None)]
    ),
    "a word in a column of numbers": Case({"a.csv": "n\n1\nn/a\n3\n"}, "that means null: ", [(1,), (None,), (3,)]),
    "nulls of MySQL": Case({"a.csv": "a\n1\n\\N\n3\n"}, "that means null: ", [(1,), (None,), (3,)]),
    "a delimiter that is unclear": Case({"a.csv": "a,b;c\n1,2;3\n4,5;6\n"}, "declare it: ", [(1, "2;3"), (4, "5;6")]),
    "another delimiter than the comma": Case({"a.csv": "a;b\n1;2\n3;4\n"}, "if it is not: ", [("1;2",), ("3;4",)]),
    "a wrong delimiter": Case({"a.csv": "a|b\n1|2\n3|4\n"}, "declare it: ", [(1, 2), (3, 4)], ["--delimiter", ","]),
    "a wrong delimiter, and tabs": Case({"a.csv": "a\tb\n1\t2\n"}, "declare it: ", [(1, 2)], ["--delimiter", ","]),
    "a file of another format than is said": Case(
        {"a.csv": b'{"a": 1}\n{"a": 2}\n'}, "as JSON lines: ", [(1,), (2,)], ["--format", "csv"]
    ),
    "a small limit of records": Case(
        {"a.csv": "a,b\n" + "1,2\n" * 3}, "raise the limit: ", [(1, 2)] * 3, ["--set", "limits.record_bytes=20"]
    ),
    "a header of numbers": Case({"a.csv": "1,17\n1,2\n3,4\n"}, "if it is a header: ", [(1, 2), (3, 4)]),
    "a column of no header": Case(
        {"a.csv": "1,2\n3,4\n"}, "to name all in their order: ", [(1,), (3,)], ["--no-header", "--columns", "a"]
    ),
    "all columns of no header": Case(
        {"a.csv": "1,2\n3,4\n"}, "to name all: ", [(1, 2), (3, 4)], ["--no-header", "--columns", "a,b"]
    ),
    "comments among rows": Case({"a.csv": "#x\n#y\n#z\n#w\na,b\n1,2\n"}, "are comments: ", [(1, 2)]),
    "lines before the header that begin with a sign": Case(
        {"a.csv": "#x\na,b\n1,2\n3,4\n"}, "skip lines before it (", [(1, 2), (3, 4)]
    ),
    "a count before the rows": Case({"a.csv": "2\n1,2\n3,4\n"}, "skip lines before it (", [(3, 4)]),
    "a large record": Case(
        {"a.csv": "a,b\n1," + "x" * 90 + "\n"}, "raise it: ", [(1, "x" * 90)], ["--set", "limits.record_bytes=64"]
    ),
    "a large field": Case(
        {"a.csv": "a,b\n1," + "x" * 90 + "\n"}, "raise it: ", [(1, "x" * 90)], ["--set", "limits.field_bytes=64"]
    ),
    "a large line": Case(
        {"a.jsonl": '{"a": "' + "x" * 90 + '"}\n'}, "raise it: ", [("x" * 90,)], ["--set", "limits.record_bytes=64"]
    ),
    "a large value of a line": Case(
        {"a.jsonl": '{"a": "' + "x" * 90 + '"}\n'},
        "raise the limit: ",
        [("x" * 90,)],
        ["--set", "limits.field_bytes=64"],
    ),
    "more columns than the limit": Case({"a.csv": "a,b\n1,2\n"}, "raise it: ", [(1, 2)], ["--set", "limits.columns=1"]),
    "more keys than the limit": Case(
        {"a.jsonl": '{"a": 1, "b": 2}\n'}, "raise it: ", [(1, 2)], ["--set", "limits.columns=1"]
    ),
    "two types in one key": Case({"a.jsonl": '{"a": 1}\n{"a": [1]}\n'}, "text of all values: ", [("1",), ("[1]",)]),
    "a value of another type than declared": Case(
        {"a.jsonl": '{"a": 1}\n{"a": "x"}\n'}, "declare it: ", [("1",), ("x",)], column("a", "type", "int64")
    ),
    "a list in text": Case({"a.csv": 'a\n"[1, 2]"\n"[3]"\n'}, "to read lists of int64: ", [([1, 2],), ([3],)]),
    "lists of a type that rows show": Case(
        {"a.csv": 'a\n"[1, 2]"\n"[3]"\n'}, "to declare it: ", [([1, 2],), ([3],)], column("a", "as", "list")
    ),
    "signs that strip makes other numbers of": Case(
        {"a.csv": "n\n1\n(2)\n"},
        "sides of a minus: ",
        [(1,), (-2,)],
        column("n", "strip", "()") + column("n", "type", "int64"),
    ),
    "rows without a value": Case({"a.csv": "a,b\n1,2\n,\n3,4\n"}, "to reject it: ", [(1, 2), (3, 4)]),
    "classes in a column that is no text": Case(
        {"a.csv": "a\n1.5\n2.5\n"},
        "make it text (CSV and JSON lines: ",
        [("1.5",), ("2.5",)],
        column("a", "label", "true"),
    ),
    "nulls of classes": Case(
        {"a.csv": "a,n\nx,1\n,2\n"}, "becomes of nulls: ", [("x", 1), (None, 2)], column("a", "label", "[x]")
    ),
    "a column named twice": Case({"a.csv": "a,b\n1,2\n"}, "rename one: ", [(1, 2)], column("a", "name", "b")),
    "a number beyond float32": Case({"a.csv": "a\n1.5e300\n2\n"}, "keep it exact: ", [(1.5e300,), (2.0,)]),
    "a code with an e": Case({"a.csv": "a\n1e64\n2\n"}, "CSV or JSON lines: ", [("1e64",), ("2",)]),
    "null where none may be": Case(
        {"a.csv": "a,b\n1,x\n,y\n"}, "declare it: ", [(1, "x"), (None, "y")], column("a", "nullable", "false")
    ),
    "a partition of a name that the files have": Case({"in/k=5/a.csv": "k,b\n1,2\n"}, "files alone: ", [(2, 1)]),
    "partitions that differ": Case(
        {"in/k=5/a.csv": "b\n2\n", "in/j=5/a.csv": "b\n3\n"}, "leave these columns out: ", [(3,), (2,)]
    ),
    "files whose columns differ": Case(
        {"a.csv": "a,b\n1,2\n", "b.csv": "a\n3\n"}, "where a file lacks one: ", [(1, 2), (3, None)]
    ),
    "names for rows without a header": Case(
        {"a.csv": "1,2.5\n3,4.5\n"}, "of your own: ", [(2.5, 1), (4.5, 3)], fill=("[a, b, ...]", "[y, x]")
    ),
    "two columns of one name": Case({"a.csv": "a,a\n1,2\n"}, "of your own: ", [(1, 2)]),
    "names of many columns": Case(
        {"a.csv": ",".join(map(str, range(21))) + "\n"},
        "in their order: ",
        [(2,)],
        ["--no-header", "--columns", "c"],
        fill=("[a, b, ...]", f"[{', '.join('abcdefghijklmnopqrstu')}]"),
    ),
    "a header that lacks names": Case(
        {"a.csv": "a\n1,2\n3,4\n"}, "the columns instead (", [(2, 1), (4, 3)], fill=("[a, b, ...]", "[y, x]")
    ),
    "a line before the header": Case(
        {"a.csv": "Report\na,b\n1,2\n3,4\n"}, "skip lines before it (", [(1, 2), (3, 4)], fill=("=N", "=1")
    ),
    "lines before the header, one of them a row": Case(
        {"a.csv": "Report\nof May\nby Ann\nand Bob\na,b\n1,2\n"}, "is further down: ", [(1, 2)], fill=("=N", "=4")
    ),
    "a line before the header, which is a row": Case(
        {"a.csv": "Report\nof May\na,b\n1,2\n"}, "to begin with the header: ", [(1, 2)]
    ),
    "words between blanks": Case(
        {"a.csv": "a b\nx y\nz w\n"}, "records; if it is not: ", [("x y",), ("z w",)], ["--set", "input.trim=true"]
    ),
    "a table between blanks": Case({"a.csv": "a b\n1 2\n3 4\n"}, "as one column: ", [("1 2",), ("3 4",)]),
    "bytes that are no text of Windows": Case(
        {"a.csv": "a\nЃфю\n".encode("cp1251")}, "or cp1251: ", [("Ѓфю",)], fill=("ENCODING", "cp1251")
    ),
    "a large value in a line of several blocks": Case(
        {"a.jsonl": '{"a": "' + "x" * 3_000_000 + '"}\n'},
        "raise it: ",
        [("x" * 3_000_000,)],
        ["--set", "limits.field_bytes=1048576"],
    ),
    "a bool in a declared key": Case(
        {"a.jsonl": '{"a": 1}\n{"a": true}\n'}, "declare it: ", [("1",), ("true",)], column("a", "type", "int64")
    ),
    "a number beyond float32 in JSON": Case(
        {"a.jsonl": '{"a": 1e300}\n{"a": 1}\n'}, "keep it exact: ", [(1e300,), (1.0,)], column("a", "type", "float32")
    ),
    "a number below float32 in JSON": Case(
        {"a.jsonl": '{"a": 1e-300}\n{"a": 1}\n'}, "keep it exact: ", [(1e-300,), (1.0,)], column("a", "type", "float32")
    ),
    "another sign between values": Case(
        {"a.csv": "a:b\n1,5:2\n3,5:4\n"}, "name the delimiter (", [("1,5", 2), ("3,5", 4)], fill=("SIGN", ":")
    ),
    "quotes behind blanks": Case({"a.csv": 'a,b\n1, "x"\n2, "y"\n'}, "to take both off: ", [(1, "x"), (2, "y")]),
    "a header without the name of the first column": Case(
        {"a.csv": "a,b\nr,1,2\ns,3,4\n"}, "as R writes it: ", [(1, 2, "r"), (3, 4, "s")]
    ),
    "bytes beside a column of bytes": Case(
        {"a.csv": b"a,b\n\xff,x\n1,\xff\n"},
        "declare it: ",
        [(b"\xff", b"x"), (b"1", b"\xff")],
        column("a", "type", "binary"),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_options_that_a_message_about_text_proposes_read_the_right_rows(case: str, shardmill: Shardmill) -> None:
    files, before, rows, given = (getattr(CASES[case], name) for name in ("files", "before", "rows", "given"))
    for name, content in files.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())
    paths = sorted({name.partition("/")[0] for name in files})
    first = shardmill("convert", *paths, "-o", "out", *given)
    screen = first.out + first.err
    options = OPTIONS.match(screen.partition(before)[2])
    assert options, screen
    done = shardmill(
        "convert", *paths, "-o", "out", "--overwrite", *given, *shlex.split(options[0].replace(*CASES[case].fill))
    )
    assert done.code == 0, (options, done.err)
    assert [tuple(record.values()) for record in map(dict, open_dataset("out")["train"])] == rows


@pytest.mark.parametrize(("option", "value"), [("declare it: ", "1"), (", or ", 1)])
def test_a_key_that_is_in_no_line_that_was_looked_at_is_read_by_either_option(
    shardmill: Shardmill, monkeypatch: pytest.MonkeyPatch, option: str, value: object
) -> None:
    monkeypatch.setattr("shardmill.transforms.sources.jsonl.source.AUTO_ROWS", 1)
    monkeypatch.setattr("shardmill.transforms.sources.jsonl.columns.AUTO_ROWS", 1)
    monkeypatch.setattr("shardmill.transforms.sources.text.lines.LineSizes", partial(LineSizes, auto_bytes=0))
    Path("a.jsonl").write_text('{"a": 1}\n{"a": 2, "b": 1}\n')
    refused = shardmill("convert", "a.jsonl", "-o", "out")
    options = OPTIONS.match(refused.err.partition("looked at for types; ")[2].partition(option)[2])
    assert options, refused.err
    done = shardmill("convert", "a.jsonl", "-o", "out", *shlex.split(options[0].replace("=TYPE", "=string")))
    assert done.code == 0, done.err
    assert [dict(record) for record in open_dataset("out")["train"]] == [{"a": 1, "b": None}, {"a": 2, "b": value}]
