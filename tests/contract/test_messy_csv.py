"""CSV as people have it: twenty kinds that issues of pandas, polars, DuckDB and Arrow describe, in files of our own.

Each file is converted as a user would, read back, and appended once more with the same options; both times to the rows
of the table, and with the rejects of the table in the reject file.
"""

from __future__ import annotations

import bz2
import json
import shlex
import shutil
from dataclasses import dataclass, field
from typing import Any

import pytest
from shardmill.pipelines.cli import main

Row = dict[str, Any]


def keys(**options: object) -> list[str]:
    return [word for key, value in options.items() for word in ("--set", f"input.{key}={json.dumps(value)}")]


@dataclass
class Kind:
    """A messy file: the thread that describes its kind, the options, its rows, and its rejects by row and line."""

    thread: str
    body: bytes
    args: list[str]
    rows: list[Row]
    rejects: list[tuple[int, int, str]] = field(default_factory=list)
    name: str = "a.csv"


KINDS = {
    "comments before the header and between the rows": Kind(
        "pandas-dev/pandas#4623",
        b"# stations, 2024; don't edit\nid,place\n# north\n1,Oslo\n#\n2,Bergen\n# the end: \"",
        keys(comment="#"),
        [{"id": 1, "place": "Oslo"}, {"id": 2, "place": "Bergen"}],
    ),
    "a comment in a file of one column, where a blank line is a null": Kind(
        "pola-rs/polars#19610",
        b"column\naaa\n#comment\n\nbbb",
        keys(comment="#"),
        [{"column": "aaa"}, {}, {"column": "bbb"}],
    ),
    "the sign of comments within cells, and first in a line of a quoted cell": Kind(
        "pandas-dev/pandas#27637",
        b'name,note\na#,"x\n# y, ""z"""\n#b,no row\nc,#d\n',
        keys(comment="#"),
        [{"name": "a#", "note": 'x\n# y, "z"'}, {"name": "c", "note": "#d"}],
    ),
    "a comment between numbers without a header": Kind(
        "pandas-dev/pandas#31396",
        b"1.28e+02,-4.07e+01\n2.56e+02,-5.15e+01\n# 3.84e+02,-7.22e+01\n5.12e+02\n6.4e+02,-7.5e+00\n",
        [*keys(comment="#"), "--no-header"],
        [
            {"column_0": 128.0, "column_1": -40.70000076293945},
            {"column_0": 256.0, "column_1": -51.5},
            {"column_0": 640.0, "column_1": -7.5},
        ],
        [(3, 4, "BAD_WIDTH")],
    ),
    "lines of an instrument before the header, and comments after it": Kind(
        "pandas-dev/pandas#26169",
        b'Logger "CR3000\nfirmware, 24006, x, y\n\n# units: C\ntime,temp\n# start\n10:00,21.5\n10:01,x\n',
        [*keys(skip_lines=3, comment="#"), "--set", "schema.columns.temp.type=float32"],
        [{"time": "10:00", "temp": 21.5}],
        [(2, 3, "BAD_TYPE")],
    ),
    "escaped quotes in quotes": Kind(
        "pola-rs/polars#3074",
        b'user,id,name\nb12,9012,"sean,\\"Jeff"\nj81,4081,"\\"Chill\\""\ns79,5079,"Jamie, \\\\"\n',
        keys(escape="\\"),
        [
            {"user": "b12", "id": 9012, "name": 'sean,"Jeff'},
            {"user": "j81", "id": 4081, "name": '"Chill"'},
            {"user": "s79", "id": 5079, "name": "Jamie, \\"},
        ],
    ),
    "escaped commas and line ends without quotes, blanks before quotes": Kind(
        "duckdb/duckdb#14304",
        b'"foo","bar"\n"332", "Surname\\, Firstname"\n123, two\\\nlines\\, one cell\n"9"\n"4","(\\"x\\")"\n',
        keys(escape="\\", trim=True),
        [
            {"foo": 332, "bar": "Surname, Firstname"},
            {"foo": 123, "bar": "two\nlines, one cell"},
            {"foo": 4, "bar": '("x")'},
        ],
        [(3, 4, "BAD_WIDTH")],
    ),
    "a log with blanks between the cells and escaped quotes": Kind(
        "pandas-dev/pandas#16682",
        b'A B C D\n10.0.0.1 "GET /x?la=en HTTP/1.1" 200 7765\n10.0.0.2 "GET /y\'\\" HTTP/1.1" 404  12\n',
        [*keys(escape="\\", trim=True), "--delimiter", "space"],
        [
            {"A": "10.0.0.1", "B": "GET /x?la=en HTTP/1.1", "C": 200, "D": 7765},
            {"A": "10.0.0.2", "B": "GET /y'\" HTTP/1.1", "C": 404, "D": 12},
        ],
    ),
    "paths of Windows, whose backslashes escape nothing": Kind(
        "pandas-dev/pandas#33720",
        b'path,note\nC:\\users\\gary,a\nD:\\,"b\\"\n',
        [],
        [{"path": "C:\\users\\gary", "note": "a"}, {"path": "D:\\", "note": "b\\"}],
    ),
    "rows that are shorter than the header": Kind(
        "duckdb/duckdb#6764",
        b'one,two,three,four\n1,a,alice\n2,b,bob,x\r\n3\n4,b,c,d,e\n5,"a\nb"',
        keys(short_rows=None),
        [
            {"one": 1, "two": "a", "three": "alice"},
            {"one": 2, "two": "b", "three": "bob", "four": "x"},
            {"one": 3},
            {"one": 5, "two": "a\nb"},
        ],
        [(4, 4, "BAD_WIDTH")],
    ),
    "a short row, where nothing is said of them": Kind(
        "duckdb/duckdb#11164",
        b"h1,h2,h3\na,b,c\nd,\n",
        [],
        [{"h1": "a", "h2": "b", "h3": "c"}],
        [(2, 2, "BAD_WIDTH")],
    ),
    "a delimiter at the end of each line": Kind(
        "apache/arrow#26743",
        b"1|2|3|\n4|5|6|\n",
        ["--no-header", "--exclude-columns", "column_3", "--delimiter", "|"],
        [
            {"column_0": 1, "column_1": 2, "column_2": 3},
            {"column_0": 4, "column_1": 5, "column_2": 6},
        ],
    ),
    "columns that blanks align": Kind(
        "pola-rs/polars#16044",
        b"catalogue of 3\n   ra        dec  name\n"
        b"  11.50225    34.62792  M1\n 341.5  -60.25\t'a b'\n   5.44448     .5  \"x y\"  \n",
        [*keys(skip_lines=1, trim=True, quote="'"), "--delimiter", "space"],
        [
            {"ra": 11.502249717712402, "dec": 34.6279182434082, "name": "M1"},
            {"ra": 341.5, "dec": -60.25, "name": "a b"},
        ],
        [(3, 3, "BAD_WIDTH")],
    ),
    "blanks around numbers": Kind(
        "pola-rs/polars#22111",
        b"a, b,c ,d\n1, 2,3 ,4\n 5 ,\t6 , , 8\n   \n",
        keys(trim=True),
        [{"a": 1, "b": 2, "c": 3, "d": 4}, {"a": 5, "b": 6, "d": 8}],
    ),
    "blanks before quotes with commas in them": Kind(
        "pola-rs/polars#15011",
        b'Index, "Item" , "Cost"\n6, "Sunscreen, 8 oz" , 6.5\n7,   " M and\n M" , 10\n8, Clips, 10 boxes, 6.19\n',
        keys(trim=True),
        [{"Index": 6, "Item": "Sunscreen, 8 oz", "Cost": 6.5}, {"Index": 7, "Item": " M and\n M", "Cost": 10.0}],
        [(3, 4, "BAD_WIDTH")],
    ),
    "empty cells at the start of a line of tabs": Kind(
        "pola-rs/polars#3758",
        b"\t\t0\t1\n\t2\t3\t4\n",
        ["--no-header"],
        [{"column_2": 0, "column_3": 1}, {"column_1": 2, "column_2": 3, "column_3": 4}],
        name="a.tsv",
    ),
    "several words that mean null": Kind(
        "duckdb/duckdb#15582",
        b'A,B\n1,Nan\n-,2.5\nN/A,\n4,"-"\n',
        [*keys(null_values=["", "Nan", "-", "N/A"]), "--set", "schema.columns.B.type=string"],
        [{"A": 1}, {"B": "2.5"}, {}, {"A": 4, "B": "-"}],
    ),
    "UTF-16 with a byte order mark, comments and blanks": Kind(
        "pandas-dev/pandas#26446",
        '# "\u4e2d"\nn\u00e4me; b\nfo\u00f8 ; 1\n\u4e2d;2;3\n'.encode("utf-16"),
        keys(encoding="utf-16", comment="#", trim=True),
        [{"n\u00e4me": "fo\u00f8", "b": 1}],
        [(2, 2, "BAD_WIDTH")],
    ),
    "quotes within cells that are not quoted": Kind(
        "duckdb/duckdb#10273",
        b'who,what\nalice,This is "Alice\'s apple" so\nbob,5" disk\neve,"say ""x"" y"\nmal,"a"b\n',
        [],
        [
            {"who": "alice", "what": 'This is "Alice\'s apple" so'},
            {"who": "bob", "what": '5" disk'},
            {"who": "eve", "what": 'say "x" y'},
        ],
        [(4, 4, "BAD_QUOTE")],
    ),
    "bzip2 of two streams, the first of which ends in a row": Kind(
        "pandas-dev/pandas#16036",
        bz2.compress(b"#x\na,b\n1,tw") + bz2.compress(b'o\n3,"fo\n#ur"\n5\n'),
        keys(comment="#"),
        [{"a": 1, "b": "two"}, {"a": 3, "b": "fo\n#ur"}],
        [(3, 4, "BAD_WIDTH")],
        name="a.csv.bz2",
    ),
}


def shardmill(*args: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main([*args, "-o", "out", "--workers", "1", "--max-rejects", "1"])
    return int(str(ended.value.code))


def rejects(desk: Any, generation: int) -> list[tuple[int, int, str, str]]:
    path = desk.root / f"out/rejects/{generation:08d}.jsonl"
    found = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return [(one["row"], one["line"], one["errors"][0]["code"], one["source"]) for one in found]


@pytest.mark.parametrize("case", KINDS)
def test_a_messy_file_is_read_to_its_exact_rows_and_rejects_also_in_an_append(desk: Any, case: str) -> None:
    kind = KINDS[case]
    again = f"b.{kind.name.partition('.')[2]}"
    desk.put({kind.name: kind.body, again: kind.body})
    assert shardmill("convert", kind.name, *kind.args) == 0
    assert desk.records() == kind.rows
    assert rejects(desk, 1) == [(*reject, kind.name) for reject in kind.rejects]
    assert shardmill("append", again, *kind.args, "--force") == 0  # it has the content of the first
    assert desk.records() == kind.rows * 2
    assert rejects(desk, 2) == [(*reject, again) for reject in kind.rejects]


PROPOSED = {
    "a comment above the header": (b"# made by x\na,b\n1,2\n3,4\n", "--set 'input.comment=#'"),
    "lines above the header": (b"made by x\n\na,b\n1,2\n", "--set input.skip_lines=1"),
    "escaped quotes": (b'a,b\n1,"x\\", y"\n2,z\n', "--set 'input.escape=\\'"),
    "short rows": (b"a,b\n1\n2,z\n", "--set input.short_rows=null"),
}


@pytest.mark.parametrize("case", PROPOSED)
def test_the_option_that_reads_a_messy_file_is_proposed_by_its_refusal_and_works(desk: Any, case: str) -> None:
    body, option = PROPOSED[case]
    desk.put({"a.csv": body})
    refused = desk.convert("a.csv")
    assert refused.code in (1, 4)
    assert option in refused.err
    shutil.rmtree(desk.root / "out", ignore_errors=True)
    assert desk.convert("a.csv", *shlex.split(option)).code == 0


def test_more_lines_to_skip_than_there_are_is_an_error_that_says_so(desk: Any) -> None:
    desk.put({"a.csv": b"a,b\n1,2\n"})
    message = "a.csv: is empty after the 2 lines that input.skip_lines skips: there is no header and no row"
    desk.assert_refused(desk.convert("a.csv", "--set", "input.skip_lines=9"), 1, message)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (keys(escape="\\", comment="#"), "escape and comment do not go together"),
        (keys(escape="\\", null_values=["\\N"]), "holds the escape"),
        (keys(comment='"'), "quote and comment are both"),
        (keys(trim=True, quote=" "), "quote is a blank, and trim takes blanks away"),
    ],
)
def test_signs_that_do_not_go_together_are_refused_before_anything_is_read(
    desk: Any, args: list[str], message: str
) -> None:
    desk.put({"a.csv": b"a,b\n1,2\n"})
    refused = desk.convert("a.csv", *args)
    assert (refused.code, message in refused.err) == (2, True)


def test_the_table_has_twenty_kinds_each_of_another_thread() -> None:
    threads = {kind.thread for kind in KINDS.values()}
    assert len(KINDS) == len(threads) == 20
    assert {thread.split("/")[1].split("#")[0] for thread in threads} == {"pandas", "polars", "duckdb", "arrow"}
