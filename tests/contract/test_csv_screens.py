"""What the user of the command line sees of bad and odd CSV: one screen a case, word for word."""

from __future__ import annotations

import bz2
import gzip
import lzma
import re
import shlex
import shutil
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pytest

EMPTY = "no rows were read: generation 1 holds no record"

Files = Mapping[str, bytes]


def zstd(data: bytes) -> bytes:
    return bytes(pa.compress(data, "zstd", asbytes=True))


def declare(column: str, kind: str) -> list[str]:
    return ["--set", f"schema.columns.{column}.type={kind}"]


def files_of(body: bytes | Files) -> Files:
    return {"a.csv": body} if isinstance(body, bytes) else body


DAMAGED: dict[str, tuple[bytes | Files, Sequence[str], str]] = {
    "all rows too long": (
        b"a,b\n1,2,3\n4,5,6\n",
        [],
        "a.csv: every row that was read (2) has more than the 2 columns of the header; fix the header, skip lines "
        "before it (--set input.skip_lines=N), name the delimiter (--delimiter SIGN), or name the columns instead "
        "(--no-header --set input.skip_lines=1 --set 'input.names=[a, b, ...]'); or, if the header lacks the name of "
        "the first column, as R writes it: --set input.row_names=row",
    ),
    "quote never closed": (
        {"a.csv": b'a,b\n1,2\n3,"4\n5,6\n', "b.csv": b"a,b\n1,2\n"},
        [],
        "a.csv: the quote at byte 10 is never closed: all that follows it would be one value; close it, or, where "
        "quotes are plain text, set another input.quote; where a backslash escapes them: --set 'input.escape=\\'; "
        "without quotes each line is a row; if they are plain text: --set input.quote=null",
    ),
    "Latin-1": (
        "a,b\n1,café\n".encode("latin-1"),
        [],
        'a.csv: line 2, column "b": not UTF-8 at byte 9 (0xe9); probably Windows text: '
        "--set input.encoding=cp1252; or read the column as bytes: --set schema.columns.b.type=binary",
    ),
    "an encoding that is not cp1252, behind a quoted comma and a line in quotes": (
        b'a,"b c",d\n"1,\n2",caf\x81,3\n',
        [],
        'a.csv: line 3, column "b c": not UTF-8 at byte 20 (0x81); declare its encoding, such as shift_jis or cp1251: '
        "--set input.encoding=ENCODING; or read the column as bytes: --set 'schema.columns.\"b c\".type=binary'",
    ),
    "a header in Latin-1": (
        "n\xe4me,b\n1,x\n".encode("latin-1"),
        [],
        "a.csv: line 1: not UTF-8 at byte 1 (0xe4); probably Windows text: --set input.encoding=cp1252",
    ),
    "a picture that is called CSV": (
        b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
        [],
        "a.csv: is an image; read it as one: --format images",
    ),
    "a binary file": (
        b"\x7fELF\2\1\1\0\xd0k\0\0\n",
        [],
        "a.csv: line 1: not UTF-8 at byte 8 (0xd0); probably no text but a binary file, as it holds byte 0x00; if it "
        "is text: --set input.encoding=ENCODING",
    ),
    "UTF-16": (
        "a,b\n1,x\n".encode("utf-16"),
        [],
        "a.csv: is UTF-16 by its byte order mark, not utf-8; declare it: --set input.encoding=utf-16",
    ),
    "two columns of one name": (
        b"a,b,a\n1,2,3\n",
        [],
        'a.csv: columns 1 and 3 are both named "a": one would overwrite the other; if the first line is data: '
        "--no-header; if it is a header, rename one, or replace it by names of your own: "
        '--set \'input.names=["a", "b", "a_2"]\'',
    ),
    "all files empty": (
        {"a.csv": b"", "b.csv": b"\n\n"},
        [],
        "a.csv: is empty, and so is the other file: there is no header and no row",
    ),
    "gzip cut before its end": (
        {"a.csv.gz": gzip.compress(b"a\n1\n" * 1000)[:-9], "b.csv": b"a\n1\n"},
        [],
        "a.csv.gz: byte 36 of the compressed file: the gzip stream is cut: its end and its checksum are missing",
    ),
    "gzip with a wrong checksum": (
        {"a.csv.gz": gzip.compress(b"a\n1\n")[:-8] + bytes(4) + gzip.compress(b"a\n1\n")[-4:]},
        [],
        "a.csv.gz: byte 0 of the compressed file: the gzip member that begins here is damaged (Error -6 Incorrect "
        "checksum found)",
    ),
    "bzip2 cut before its end": (
        {"a.csv": bz2.compress(b"a\n1\n" * 1000)[:-1]},
        [],
        "a.csv: the bzip2 stream is cut: its end is missing",
    ),
    "xz cut before its end": (
        {"a.csv.xz": lzma.compress(b"a\n1\n")[:-9]},
        [],
        "a.csv.xz: the xz stream is cut: its end is missing",
    ),
    "zstd cut before its end": (
        {"a.csv.zst": zstd(b"a\n1\n" * 1000)[:-1]},
        [],
        "a.csv.zst: the zstd stream is cut: its end is missing",
    ),
    "xz and bytes after it": (
        {"a.csv": lzma.compress(b"a\n1\n") + b"garbage and more"},
        [],
        "a.csv: the xz stream from byte 60 of the compressed file on is damaged, or is not xz data (Input format not "
        "supported by decoder)",
    ),
    "gzip and bytes after it": (
        {"a.csv.gz": gzip.compress(b"a\n1\n") + b"garbage"},
        [],
        "a.csv.gz: byte 24 of the compressed file: bytes that are not gzip data follow the end of the stream",
    ),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_a_file_that_is_damaged_as_a_whole_fails_the_run_by_its_name(desk: Any, case: str) -> None:
    body, args, message = DAMAGED[case]
    desk.put(files_of(body))
    desk.assert_refused(desk.convert(*files_of(body), *args), 1, message)


REJECTED: dict[str, tuple[bytes | Files, Sequence[str], str, Sequence[str], list[dict[str, Any]]]] = {
    "short row": (
        b'a,b,c\n1,"x\ny",3\n\n4,5\n6,7,8\n',
        [],
        "1 of 3 rows was rejected (BAD_WIDTH 1)",
        [
            "a.csv row 2: BAD_WIDTH: has 2 columns instead of 3: 4,5; fix the row: add the cells that it lacks "
            "(--set input.short_rows=null makes them null), or quote the value whose line break cuts the row"
        ],
        [{"a": 1, "b": "x\ny", "c": 3}, {"a": 6, "b": "7", "c": 8}],
    ),
    "long row": (
        b"a,b\n1,2\n3,4,5\n",
        [],
        "1 of 2 rows was rejected (BAD_WIDTH 1)",
        [
            "a.csv row 2: BAD_WIDTH: has 3 columns instead of 2: 3,4,5; fix the row: quote the values that hold the "
            'delimiter ","'
        ],
        [{"a": 1, "b": 2}],
    ),
    "text after a closing quote, which swallows a row": (
        b'a,b,c\n1,"5" pipe",x\n2,"N,y\n3,"z",w\n""4,5,6\n7,8,9\n',
        [],
        "3 of 4 rows were rejected (BAD_QUOTE 3)",
        [
            'a.csv row 1: column "b": BAD_QUOTE: "5" pipe" has text after its closing quote; write each quote within '
            'the value twice: ""',
            'a.csv row 2: column "b": BAD_QUOTE: lines 3 to 4 of the file are one row: "N,y\\n3,"z" has text after its '
            "closing quote; close the quote that opens it, or quote the value and write each quote within the value "
            'twice: ""',
            'a.csv row 3: column "a": BAD_QUOTE: ""4 has text after its closing quote; write each quote within the '
            'value twice: ""',
        ],
        [{"a": 7, "b": 8, "c": 9}],
    ),
    "a delimiter at the end of one row": (
        b"a,b\n1,2\n3,4,\n",
        [],
        "1 of 2 rows was rejected (BAD_WIDTH 1)",
        ['a.csv row 2: BAD_WIDTH: has 3 columns instead of 2: 3,4,; fix the row: take the delimiter "," off its end'],
        [{"a": 1, "b": 2}],
    ),
    "integer that is a fraction": (
        b"a\n1\n1.5\n",
        declare("a", "int64"),
        "1 of 2 rows was rejected (BAD_TYPE 1)",
        ['a.csv row 2: column "a": BAD_TYPE: "1.5" is not an int64; declare it: --set schema.columns.a.type=float64'],
        [{"a": 1}],
    ),
    "integer beyond int64": (
        b"a\n1\n9223372036854775808\n",
        declare("a", "int64"),
        "1 of 2 rows was rejected (INT_OVERFLOW 1)",
        [
            'a.csv row 2: column "a": INT_OVERFLOW: "9223372036854775808" is beyond int64 (-9223372036854775808 to '
            "9223372036854775807); declare it: --set schema.columns.a.type=string"
        ],
        [{"a": 1}],
    ),
    "float64 too large, too small, and beyond float32": (
        b"a\n1.5\n1e400\n1e-400\n1e39\n",
        declare("a", "float64"),
        "3 of 4 rows were rejected (FLOAT_OVERFLOW 2, FLOAT_UNDERFLOW 1)",
        [
            'a.csv row 2: column "a": FLOAT_OVERFLOW: "1e400" is beyond what a float64 can hold; declare it: '
            "--set schema.columns.a.type=string",
            'a.csv row 4: column "a": FLOAT_OVERFLOW: 1e+39 is beyond the largest float32, 3.4028235e+38; keep it '
            "exact: --set schema.columns.a.as=bytes; if it is a code, in CSV or JSON lines: --set "
            "schema.columns.a.type=string",
            'a.csv row 3: column "a": FLOAT_UNDERFLOW: "1e-400" would become 0 as a float64; declare it: '
            "--set schema.columns.a.type=string",
        ],
        [{"a": 1.5}],
    ),
    "float32 too large and too small": (
        b"a\n1.5\n1e39\n1e-50\n",
        declare("a", "float32"),
        "2 of 3 rows were rejected (FLOAT_OVERFLOW 1, FLOAT_UNDERFLOW 1)",
        [
            'a.csv row 2: column "a": FLOAT_OVERFLOW: "1e39" is beyond what a float32 can hold; declare it: '
            "--set schema.columns.a.type=string",
            'a.csv row 3: column "a": FLOAT_UNDERFLOW: "1e-50" would become 0 as a float32; declare it: '
            "--set schema.columns.a.type=string",
        ],
        [{"a": 1.5}],
    ),
    "nan with a payload": (
        b"a\n1.5\nnan(1)\n",
        declare("a", "float64"),
        "1 of 2 rows was rejected (BAD_TYPE 1)",
        [
            'a.csv row 2: column "a": BAD_TYPE: "nan(1)" is not a float; fix the cell, or declare it: '
            "--set schema.columns.a.type=string"
        ],
        [{"a": 1.5}],
    ),
    "NA in a column of numbers": (
        b"a,b\n1,x\nNA,y\n",
        declare("a", "int64"),
        "1 of 2 rows was rejected (BAD_TYPE 1)",
        [
            'a.csv row 2: column "a": BAD_TYPE: "NA" is not an int64; if it means null, '
            "--set 'schema.columns.a.null_values=[\"NA\"]'; or declare it: --set schema.columns.a.type=string"
        ],
        [{"a": 1, "b": "x"}],
    ),
    "what Arrow takes for an integer": (
        b"a,b\n1,x\n0x1F,x\n0x8000000000000000,x\n-0, x\n 12,x\n00123,x\n",
        declare("a", "int64"),
        "5 of 6 rows were rejected (BAD_TYPE 5)",
        [
            *(
                f'a.csv row {row}: column "a": BAD_TYPE: "{text}" is not an int64'
                for row, text in enumerate(("0x1F", "0x8000000000000000", "-0"), 2)
            ),
            '2 more rows with other values: column "a": BAD_TYPE',
            '  5 of 6 rows fail in column "a"; to read it: --set schema.columns.a.type=string',
        ],
        [{"a": 1, "b": "x"}],
    ),
    "1 as a bool": (
        b"a,b\ntrue,1\n1,0\n",
        declare("a", "bool"),
        "1 of 2 rows was rejected (BAD_TYPE 1)",
        [
            'a.csv row 2: column "a": BAD_TYPE: "1" is not true or false; declare it: '
            "--set 'schema.columns.a.true_values=[\"1\"]' --set 'schema.columns.a.false_values=[\"0\"]'"
        ],
        [{"a": True, "b": 1}],
    ),
    "a date that is none": (
        b"a\n1970-01-03\n2024-13-40\n31/12/2024\n",
        declare("a", "date"),
        "2 of 3 rows were rejected (BAD_TYPE 2)",
        [
            'a.csv row 2: column "a": BAD_TYPE: "2024-13-40" is not a date',
            'a.csv row 3: column "a": BAD_TYPE: "31/12/2024" is not a date',
            '  2 of 3 rows fail in column "a"; to read it: --set schema.columns.a.type=string',
        ],
        None,
    ),
    "two bad cells in one row": (
        b"a,b\n1,2\nx,y\n",
        [*declare("a", "int64"), *declare("b", "int64")],
        "1 of 2 rows was rejected (BAD_TYPE 1)",
        [
            'a.csv row 2: column "a": BAD_TYPE: "x" is not an int64; fix the cell, or declare it: '
            "--set schema.columns.a.type=string",
            'a.csv row 2: column "b": BAD_TYPE: "y" is not an int64; fix the cell, or declare it: '
            "--set schema.columns.b.type=string",
        ],
        [{"a": 1, "b": 2}],
    ),
    "a value that would write on the screen": (
        b"a,b\n1,2\n\x1b[2Jx,3\n",
        declare("a", "int64"),
        "1 of 2 rows was rejected (BAD_TYPE 1)",
        [
            'a.csv row 2: column "a": BAD_TYPE: "\\x1b[2Jx" is not an int64; fix the cell, or declare it: '
            "--set schema.columns.a.type=string"
        ],
        [{"a": 1, "b": 2}],
    ),
    "cell over the limit": (
        b"a,b\n1," + b"x" * 2_000_000 + b"\n2,y\n",
        ["--set", "limits.field_bytes=1MiB"],
        "1 of 2 rows was rejected (FIELD_TOO_LARGE 1)",
        [
            f'a.csv row 1: column "b": FIELD_TOO_LARGE: "{"x" * 79}…" is 2000000 bytes long, more than '
            "limits.field_bytes (1048576); raise it: --set limits.field_bytes=2000000"
        ],
        [{"a": 2, "b": "y"}],
    ),
    "short row behind 200,000 of two lines": (
        b"a,b\n" + b'1,"x\nx"\n' * 200_000 + b"1\n2,y\n",
        [],
        "1 of 200002 rows was rejected (BAD_WIDTH 1)",
        [
            "a.csv row 200001: BAD_WIDTH: has 1 column instead of 2: 1; fix the row: add the cells that it lacks "
            "(--set input.short_rows=null makes them null), or quote the value whose line break cuts the row"
        ],
        None,
    ),
    "wrong type in row 300,001": (
        b"n,s\n" + b"1,x\n" * 300_000 + b"abc,y\n",
        declare("n", "int64"),
        "1 of 300001 rows was rejected (BAD_TYPE 1)",
        [
            'a.csv row 300001: column "n": BAD_TYPE: "abc" is not an int64; fix the cell, or declare it: '
            "--set schema.columns.n.type=string"
        ],
        None,
    ),
    "more rejects than a screen holds": (
        b"a\n" + b"".join(b"x%d\n" % row for row in range(1, 26)) + b"1\n",
        declare("a", "int64"),
        "25 of 26 rows were rejected (BAD_TYPE 25)",
        [
            *(f'a.csv row {row}: column "a": BAD_TYPE: "x{row}" is not an int64' for row in range(1, 4)),
            '22 more rows with other values: column "a": BAD_TYPE',
            '  25 of 26 rows fail in column "a"; to read it: '
            "--set schema.columns.a.strip=x --set schema.columns.a.type=int64",
        ],
        [{"a": 1}],
    ),
}


@pytest.mark.parametrize("case", REJECTED)
def test_a_bad_row_is_named_and_the_good_ones_are_kept(desk: Any, case: str) -> None:
    body, args, counts, lines, records = REJECTED[case]
    desk.put(files_of(body))
    desk.assert_rejected([*files_of(body), *args], counts, lines, records or len)


OPTIONS: dict[str, tuple[bytes, list[dict[str, Any]]]] = {
    "backslashes": (
        b'a,b\n1,"{\\"k\\": 1, \\"l\\": 2}"\n2,"x\\"y"\n',
        [{"a": 1, "b": '{"k": 1, "l": 2}'}, {"a": 2, "b": 'x"y'}],
    ),
    "backslashes in the header": (b'a,"b \\"x\\""\n1,2\n', [{"a": 1, 'b "x"': 2}]),
    "blanks after quotes": (b'a,b\n"1" ,"x, y"  \n2,"z"\n', [{"a": 1, "b": "x, y"}, {"a": 2, "b": "z"}]),
    "blanks after quotes in the header": (b'"a" ,b\n1,2\n', [{"a": 1, "b": 2}]),
    "a blank before a quote": (b'a,b\n1, "x, y"\n2, "z"\n', [{"a": 1, "b": "x, y"}, {"a": 2, "b": "z"}]),
    "a blank before the first quote of each row": (b'a,b\n "x, y",z\n', [{"a": "x, y", "b": "z"}]),
    "a delimiter at the end of every row": (b"a,b\n1,2,\n3,4,\n", [{"a": 1, "b": 2}, {"a": 3, "b": 4}]),
    "such a delimiter, after lines that are skipped": (b"\n\na,b\n1,2,\n", [{"a": 1, "b": 2}]),
}


@pytest.mark.parametrize("case", OPTIONS)
def test_the_options_that_a_message_names_read_the_file(desk: Any, case: str) -> None:
    body, records = OPTIONS[case]
    desk.put({"a.csv": body})
    refused = desk.convert("a.csv")
    assert refused.code in (1, 4)
    options = ["--set input.trim=true"] * ("trim" in refused.err) or dict.fromkeys(
        re.findall(r"--no-header|--set (?:'[^']*'|[^\s;]+)", refused.err)
    )
    shutil.rmtree(desk.root / "out", ignore_errors=True)
    screen = desk.convert("a.csv", *shlex.split(" ".join(options)))
    assert (screen.code, screen.err, desk.records()) == (0, "", records)


@pytest.mark.parametrize("option", [["--set", 'input.null_values=["\\\\N"]'], ["--set", "input.comment=#"]])
def test_an_escape_is_not_named_where_it_cannot_be_set(desk: Any, option: list[str]) -> None:
    desk.put({"a.csv": b'a,b\n1,"{\\"k\\": 1}"\n'})
    screen = desk.convert("a.csv", *option)
    assert (screen.code, "input.escape" in screen.err, "BAD_QUOTE" in screen.err) == (4, False, True)


LANES: dict[str, tuple[bytes, str, list[str]]] = {
    "gzip": (gzip.compress(b'a,b\n1,"x" y\n2,"z"\n'), "a.csv", []),
    "bzip2": (bz2.compress(b'a,b\n1,"x" y\n2,"z"\n'), "a.csv", []),
    "UTF-16": ('a,b\n1,"x" y\n2,"z"\n'.encode("utf-16"), "a.csv", ["--set", "input.encoding=utf-16"]),
    "Latin-1": ('a,b\n1,"\xe9" y\n2,"z"\n'.encode("latin-1"), "a.csv", ["--set", "input.encoding=latin-1"]),
    "tabs": (b'a\tb\n1\t"x" y\n2\t"z"\n', "a.tsv", []),
    "runs of blanks": (b'a  b\n1   "x"y\n2 "z"\n', "a.csv", ["--set", "input.trim=true"]),
    "escapes": (b'a,b\n1,"x" y\n2,"z"\n', "a.csv", ["--set", "input.escape=\\"]),
    "comments": (b'a,b\n#"\n1,"x" y\n2,"z"\n', "a.csv", ["--set", "input.comment=#"]),
    "another quote": (b"a,b\n1,'x' y\n2,'z'\n", "a.csv", ["--set", "input.quote='"]),
    "lone CRs": (b'a,b\r1,"x" y\r2,"z"\r', "a.csv", []),
    "no header": (b'1,"x" y\n2,"z"\n', "a.csv", ["--no-header"]),
    "names, no types": (
        b'c,d\n1,"x" y\n2,"z"\n',
        "a.csv",
        ["--set", "input.names=[a, b]", "--set", "schema.infer=none"],
    ),
    "short rows that are filled": (b'a,b\n1,"x" y\n3\n2,"z"\n', "a.csv", ["--set", "input.short_rows=null"]),
    "one column of a binary type": (
        b'a,b\n1,"x" y\n2,"z"\n',
        "a.csv",
        ["--set", "schema.columns.b.type=binary"],
    ),
    "a column that is not read": (b'a,b\n1,"x" y\n2,"z"\n', "a.csv", ["--columns", "a"]),
}


@pytest.mark.parametrize("lane", LANES)
def test_text_after_a_closing_quote_is_a_reject_however_the_file_is_read(desk: Any, lane: str) -> None:
    body, name, args = LANES[lane]
    desk.put({name: body})
    assert "BAD_QUOTE" in desk.convert(name, *args, "--dry-run").out
    refused = desk.convert(name, *args)
    assert (refused.code, refused.err.count("BAD_QUOTE: ")) == (4, 1)
    assert f"{name} row 1: " in refused.err
    assert desk.convert(name, *args, "--max-rejects", "1").code == 0
    last = [value for value in desk.records()[-1].values() if value not in (2, "2")]
    assert last in (["z"], [b"z"], [])


def test_a_fraction_behind_the_rows_that_were_looked_at_is_a_reject(desk: Any) -> None:
    text = b"x" * 6500
    desk.put({"a.csv": b"n,t\n" + b"1," + text + b"\n" + (b"2," + text + b"\n") * 10_500 + b"1.5,x\n"})
    line = (
        'a.csv row 10502: column "n": BAD_TYPE: "1.5" is not an int64; declare it: --set schema.columns.n.type=float64'
    )
    desk.assert_rejected(["a.csv"], "1 of 10502 rows was rejected (BAD_TYPE 1)", [line], len)


ACCEPTED: dict[str, tuple[bytes | Files, Sequence[str], Sequence[str], list[dict[str, Any]]]] = {
    "a fraction after integers, all rows looked at": (
        b"n\n1\n2\n1.5\n",
        [],
        [
            "n float float64 no every value is a number in 3 rows (double, narrowed to float32 (as: bytes keeps "
            "it exact))"
        ],
        [{"n": 1.0}, {"n": 2.0}, {"n": 1.5}],
    ),
    "nulls and then text": (
        b"n,s\n" + b"1,\n" * 3 + b"1,late\n",
        [],
        ['s bytes string yes text, e.g. "late" (a.csv row 4); 4 rows, 3 null'],
        [{"n": 1}, {"n": 1}, {"n": 1}, {"n": 1, "s": "late"}],
    ),
    "line break in quotes": (b'i,t\n1,"a\nb"\n2,c\n', [], [], [{"i": 1, "t": "a\nb"}, {"i": 2, "t": "c"}]),
    "quotes within cells": (b'a,b\nun"quoted,5" disk\n', [], [], [{"a": 'un"quoted', "b": '5" disk'}]),
    "byte order mark": (b"\xef\xbb\xbfa,b\n1,2\n", [], [], [{"a": 1, "b": 2}]),
    "Latin-1, declared": (
        "a,b\n1,café\n".encode("latin-1"),
        ["--set", "input.encoding=latin-1"],
        [],
        [{"a": 1, "b": "café"}],
    ),
    "UTF-16, declared": ("a,b\n1,x\n".encode("utf-16"), ["--set", "input.encoding=utf-16"], [], [{"a": 1, "b": "x"}]),
    "NUL byte": (
        b"a,b\n1,x\0y\n",
        [],
        ["Warning: a.csv: holds NUL bytes; they are kept"],
        [{"a": 1, "b": "x\0y"}],
    ),
    "blank column name": (
        b"a,,c\n1,2,3\n",
        [],
        ["Warning: a.csv: a column without a name is called by number, the first column being 0: column_1"],
        [{"a": 1, "c": 3, "column_1": 2}],
    ),
    "blank column names in two files": (
        {"a.csv": b"a,, \n1,2,3\n", "b.csv": b"a,,\n4,5,6\n"},
        [],
        [
            "Warning: a.csv and 1 more: 2 columns without a name are called by number, the first column being 0: "
            "column_1, column_2"
        ],
        [{"a": 1, "column_1": 2, "column_2": 3}, {"a": 4, "column_1": 5, "column_2": 6}],
    ),
    "one of two files empty": (
        {"a.csv": b"", "b.csv": b"a\n1\n"},
        [],
        ["Warning: a.csv: is empty: no header and no row", "Read 1 row of 2 files (4 B): 1 written, 0 rejected"],
        [{"a": 1}],
    ),
    "one of two files a header only": (
        {"a.csv": b"a,b\n", "b.csv": b"a,b\n1,x\n"},
        [],
        [
            "a int64 int64 no every value is an integer in 1 row",
            "Warning: a.csv: holds a header only, and no row",
        ],
        [{"a": 1, "b": "x"}],
    ),
    "header only": (
        b"a,b\n",
        [],
        [
            "a bytes string yes no value in 0 rows; declare the type if there will be one",
            "Warning: a.csv: holds a header only, and no row",
            f"Warning: {EMPTY}",
        ],
        [],
    ),
    "headers only, one in a gzip file": (
        {"a.csv": b"a,b\n", "b.csv.gz": gzip.compress(b"a,b\n\n"), "c.csv": b"a,b\n1,2\n"},
        [],
        [
            "Warning: b.csv.gz: 1 blank line skipped",
            "Warning: a.csv and 1 more: holds a header only, and no row",
        ],
        [{"a": 1, "b": 2}],
    ),
    "rows of delimiters only": (
        {"a.csv": b"a,b,c\n1,,3\n,,\n,,\n", "b.csv": b"a,b,c\n4,5,6\n,,\n"},
        [],
        ["Warning: a.csv and 1 more: 3 rows have no value, and become empty records"],
        [{"a": 1, "c": 3}, {}, {}, {"a": 4, "b": 5, "c": 6}, {}],
    ),
    "a row of delimiters only, beside other nulls": (
        b"a,b\n1,\n,\n,2\n",
        [],
        ["Warning: a.csv: 1 row has no value, and becomes an empty record"],
        [{"a": 1}, {}, {"b": 2}],
    ),
    "blank line in one column": (
        b"a\n1\n\n3\n",
        [],
        ["a int64 int64 yes every value is an integer in 3 rows, 1 null"],
        [{"a": 1}, {}, {"a": 3}],
    ),
    "blank line in two columns": (
        b"a,b\n1,2\n\n3,4\n",
        [],
        ["Warning: a.csv: 1 blank line skipped", "Read 2 rows of 1 file (13 B): 2 written, 0 rejected"],
        [{"a": 1, "b": 2}, {"a": 3, "b": 4}],
    ),
    "mixed line ends and none at the end": (
        b"a,b\r\n1,2\n3,4\r5,6",
        [],
        [],
        [{"a": 1, "b": 2}, {"a": 3, "b": 4}, {"a": 5, "b": 6}],
    ),
    "integers beyond int64": (
        b"a\n1\n9223372036854775808\n",
        [],
        ['a bytes string no "9223372036854775808" (a.csv row 2) is beyond int64; 2 rows'],
        [{"a": "1"}, {"a": "9223372036854775808"}],
    ),
    "floats that no float holds": (
        b"a\n1.5\n1e400\n1e-400\n",
        [],
        ['a bytes string no text, e.g. "1e400" (a.csv row 2); 3 rows'],
        [{"a": "1.5"}, {"a": "1e400"}, {"a": "1e-400"}],
    ),
    "NaN and infinities": (
        b"a\n1.5\nNaN\nInf\n-inf\n",
        [],
        ["Read 4 rows of 1 file (19 B): 4 written, 0 rejected"],
        [{"a": 1.5}, {"a": float("nan")}, {"a": float("inf")}, {"a": float("-inf")}],
    ),
    "NA, empty, and quoted empty": (
        b'a,b\n1,NA\n,\n3,""\n',
        [],
        [
            'b bytes string yes text, e.g. "NA" (a.csv row 1); 3 rows, 1 null',
            "Warning: a.csv: 1 row has no value, and becomes an empty record; to reject it: "
            "--set schema.columns.a.nullable=false --max-rejects 1",
        ],
        [{"a": 1, "b": "NA"}, {}, {"a": 3, "b": ""}],
    ),
    "NA, declared null": (
        b"a,b\n1,x\nNA,y\n",
        ["--set", 'input.null_values=["", NA]'],
        [],
        [{"a": 1, "b": "x"}, {"b": "y"}],
    ),
    "leading zeros": (
        b"a\n00123\n1\n",
        [],
        ['a bytes string no "00123" (a.csv row 1) has a leading zero, which a number would lose; 2 rows'],
        [{"a": "00123"}, {"a": "1"}],
    ),
    "bool only for true and false": (
        b"a,b\ntrue,1\nfalse,0\ntrue,true\n",
        [],
        ["a int64 bool no every value is true or false in 3 rows"],
        [{"a": True, "b": "1"}, {"a": False, "b": "0"}, {"a": True, "b": "true"}],
    ),
    "dates": (
        b"a,b\n2024-01-02,2024-13-40\n2024-01-03,31/12/2024\n",
        [],
        [
            'a bytes string no "2024-01-02" (a.csv row 1) looks like a date; dates stay text unless declared (type: '
            "date or timestamp); 2 rows"
        ],
        [{"a": "2024-01-02", "b": "2024-13-40"}, {"a": "2024-01-03", "b": "31/12/2024"}],
    ),
    "spaces around names and values": (
        b"a, b\n1, x \n",
        [],
        [
            'Warning: a.csv: the name of column 2, " b", has spaces around it; to take blanks off all cells: --set '
            "input.trim=true"
        ],
        [{" b": " x ", "a": 1}],
    ),
    "gzip whose name does not say so": (
        gzip.compress(b"a\n1\n"),
        [],
        ["Detected: a.csv: compressed with gzip, by the first bytes"],
        [{"a": 1}],
    ),
    "semicolons": (
        b"a;b\n1;2\n",
        [],
        [
            'Detected: a.csv: the delimiter is ";": 2 columns in the first 2 records; if it is not: '
            "--set input.delimiter=,"
        ],
        [{"a": 1, "b": 2}],
    ),
    "semicolons, declared": (b"a;b\n1;2\n", ["--set", "input.delimiter=;"], [], [{"a": 1, "b": 2}]),
    "tabs": (
        b"a\tb\n1\t2\n",
        [],
        [
            'Detected: a.csv: the delimiter is "\\t": 2 columns in the first 2 records; if it is not: '
            "--set input.delimiter=,"
        ],
        [{"a": 1, "b": 2}],
    ),
    "tabs, declared": (b"a\tb\n1\t2\n", ["--set", "input.delimiter=\\t"], [], [{"a": 1, "b": 2}]),
    "semicolons beside decimal commas, and a bad row": (
        b"a;b\n1;2,5\n" + b"2;3,5\n" * 20 + b"3\n",
        ["--max-rejects", "1"],
        [
            'Detected: a.csv: the delimiter is ";": 2 columns in the first 23 records; if it is not: '
            "--set input.delimiter=,"
        ],
        [{"a": 1, "b": "2,5"}, *[{"a": 2, "b": "3,5"}] * 20],
    ),
    "semicolons, and a comma declared": (
        b"a;b\n1;2\n",
        ["--set", "input.delimiter=,"],
        ["Warning: a.csv: 1 column, and its first line holds \";\": wrong delimiter? declare it: --delimiter ';'"],
        [{"a;b": "1;2"}],
    ),
    "columns in another order": (
        {"a.csv": b"a,b\n1,x\n", "b.csv": b"b,a\ny,2\n"},
        [],
        [],
        [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}],
    ),
    "numbers for a header, declared": (
        b"6,148\n1,85\n",
        ["--set", "input.header=true"],
        [],
        [{"148": 85, "6": 1}],
    ),
    "numbers without a header, declared": (
        b"6,148\n1,85\n",
        ["--set", "input.header=false"],
        [],
        [{"column_0": 6, "column_1": 148}, {"column_0": 1, "column_1": 85}],
    ),
    "names that pandas counted": (b"0,1,2\n7,8,9\n", [], [], [{"0": 7, "1": 8, "2": 9}]),
    "years for names": (b"name,1990,1991\nx,7,8\n", [], [], [{"1990": 7, "1991": 8, "name": "x"}]),
    "gzip of two members": (
        {"a.csv.gz": gzip.compress(b"a\n1\n") + gzip.compress(b"2\n")},
        [],
        [],
        [{"a": 1}, {"a": 2}],
    ),
    "bzip2, xz and zstd, each of two streams": (
        {
            "a.csv.bz2": bz2.compress(b"a\n1\n") + bz2.compress(b"2\n"),
            "b.csv.xz": lzma.compress(b"a\n3\n") + bytes(4) + lzma.compress(b"4\n"),
            "c.csv.zst": zstd(b"a\n5\n") + zstd(b"6\n"),
        },
        [],
        [],
        [{"a": number} for number in range(1, 7)],
    ),
    "gzip by another name": ({"a.csv": gzip.compress(b"a\n1\n")}, [], [], [{"a": 1}]),
}


@pytest.mark.parametrize("case", ACCEPTED)
def test_odd_csv_is_read_as_it_stands_and_what_is_odd_is_said(desk: Any, case: str) -> None:
    body, args, said, records = ACCEPTED[case]
    desk.put(files_of(body))
    desk.assert_accepted([*files_of(body), *args], said, records)


def test_a_cell_of_20_megabytes_is_read(desk: Any) -> None:
    desk.put({"a.csv": b"a,b\n1," + b"x" * 20_000_000 + b"\n2,y\n"})
    desk.assert_accepted(["a.csv"], [], lambda found: _assert_lengths(found, [20_000_000, 1]))


def _assert_lengths(found: list[dict[str, Any]], wanted: list[int]) -> None:
    assert [len(row["b"]) for row in found] == wanted


def test_files_of_two_headers_are_refused_by_the_names_of_both(desk: Any) -> None:
    desk.put({"a.csv": b"a,b\n1,2\n", "b.csv": b"a,c\n1,2\n"})
    message = (
        'a.csv has a column "b", and b.csv has "c" instead; columns match by name: rename it in one of the files, or '
        "convert them separately; or read the columns of all files, null where a file lacks one: "
        "--set input.columns_differ=union; or, if the first lines are data: --no-header"
    )
    desk.assert_refused(desk.convert("a.csv", "b.csv"), 2, message)


def test_one_list_of_names_for_files_of_two_headers_is_refused(desk: Any) -> None:
    desk.put({"a.csv": b"a,b\n1,2\n", "b.csv": b"b,a\n1,2\n"})
    message = 'input.names: the headers of a.csv and b.csv differ ("a" and "b" in one place), so that one list of names'
    refused = desk.convert("a.csv", "b.csv", "--set", "input.names=[x, y]")
    assert (refused.code, message in refused.err) == (2, True)
    desk.assert_nothing_committed()
    desk.put({"b.csv": b"a,b\n3,4\n"})
    desk.assert_accepted(["a.csv", "b.csv", "--set", "input.names=[x, y]"], [], [{"x": 1, "y": 2}, {"x": 3, "y": 4}])


def test_names_for_a_file_without_a_header_do_not_take_its_first_row(desk: Any) -> None:
    desk.put({"iris.csv": b"5.1,3.5,setosa\n4.9,3.0,setosa\n"})
    names = ["--set", "input.names=[a, b, kind]"]
    refused = desk.convert("iris.csv", *names)
    assert (refused.code, "the first line looks like data" in refused.err) == (1, True)
    desk.assert_nothing_committed()
    assert desk.convert("iris.csv", "--no-header", *names).code == 0
    assert len(desk.records()) == 2


FIRST_ROWS: dict[str, bytes] = {
    "a question mark": b"?,5.5,foo\n1,2.5,bar\n3,4.5,baz\n",
    "a word for null alone": b"NA,foo\n1,bar\n2,baz\n",
    "a dash": b"foo,-\nbar,1.5\nbaz,2.5\n",
    "a null of databases": b"\\N,foo\n1,bar\n2,baz\n",
    "bools beside text": b"true,x\nfalse,y\ntrue,z\n",
    "bools as other programs write them": b"x,FALSE\ny,TRUE\nz,TRUE\n",
    "one number beside a column of numbers with a word": b"?,7\n1,8\n2,9\n",
    "a number beside a name": b"price,7\n1,8\n2,9\n",
    "two numbers far apart": b"10,20\n3,4\n5,6\n",
    "a year beside a number": b"1,2020\n2,2021\n3,2022\n",
    "ids from 1": b"1,hello\n2,world\n3,foo\n",
    "ids from 0": b"0,hello,x\n1,world,y\n2,foo,z\n",
    "a fraction": b"foo,0.5\nbar,1.5\nbaz,2.5\n",
    "an infinity": b"foo,inf\nbar,1.5\nbaz,2.5\n",
}


@pytest.mark.parametrize("names", [False, True])
@pytest.mark.parametrize("case", FIRST_ROWS)
def test_a_first_row_that_may_be_a_header_stops_the_run_and_both_commands_go_on(
    desk: Any, case: str, names: bool
) -> None:
    body = FIRST_ROWS[case]
    first = body.split(b"\n")[0].decode()
    desk.put({"a.csv": body})
    count = first.count(",") + 1
    args = ["--set", f"input.names=[{', '.join('abc'[:count])}]"] if names else []
    for more in (["--dry-run"], []):
        refused = desk.convert("a.csv", *args, *more)
        assert (refused.code, refused.err.count("first line looks like data, not like a header: ")) == (1, 1)
    assert first in refused.err
    desk.assert_nothing_committed()
    data, header = re.findall(r"if it is (?:data|a header): (--no-header|--set input.header=true)", refused.err)
    own = shlex.split(f"--no-header --set 'input.names=[{', '.join('abc'[:count])}]'")
    for options, rows in ((shlex.split(data), 3), (shlex.split(header), 2), (own, 3)):
        assert desk.convert("a.csv", *args, *options, "--overwrite").code == 0
        assert len(desk.records()) == rows


def test_declared_columns_do_not_hide_a_first_row_that_names_replace(desk: Any) -> None:
    desk.put({"a.csv": b"5.5,x\n1,y\n"})
    declared = ["--set", "schema.columns.a.type=float64", "--set", "schema.columns.b.type=string"]
    refused = desk.convert("a.csv", *declared, "--set", "input.names=[a, b]")
    assert (refused.code, "first line looks like data" in refused.err) == (1, True)
    assert desk.convert("a.csv", *declared, "--set", "input.names=[a, b]", "--no-header").code == 0
    assert desk.records() == [{"a": 5.5, "b": "x"}, {"a": 1.0, "b": "y"}]


def test_the_words_for_null_of_the_user_are_no_name_of_a_column_of_numbers(desk: Any) -> None:
    desk.put({"a.csv": b"missing,x\n1,y\n", "b.csv": b"missing,x\n1,y\n"})
    refused = desk.convert("a.csv", "--set", 'input.null_values=["", missing]')
    assert (refused.code, "first line looks like data" in refused.err) == (1, True)
    assert desk.convert("b.csv").code == 0
    assert desk.records() == [{"missing": 1, "x": "y"}]


@pytest.mark.parametrize(
    "header",
    [
        "Na,K",
        "missing,unknown",
        ",a",
        "1_1,1_2",
        "country,2019",
        "2000,2005,2020",
        "0,1",
        "x,0",
        ",0",
        "5,10,15",
        "true,x",
    ],
)
def test_names_that_only_resemble_data_are_a_header(desk: Any, header: str) -> None:
    row = ",".join(str(i + 3) for i in range(header.count(",") + 1))
    desk.put({"a.csv": f"{header}\n{row}\n{row}\n".encode()})
    assert desk.convert("a.csv").code == 0
    assert len(desk.records()) == 2


@pytest.mark.parametrize(
    ("columns", "command"),
    [
        ("a,b,c", """all: --set 'input.names=["a", "b", "c"]'"""),
        ("a,b", """all in their order: --set 'input.names=["a", "b", "column_2"]'"""),
    ],
)
def test_a_column_of_a_file_without_a_header_is_refused_with_the_command_that_names_it(
    desk: Any, columns: str, command: str
) -> None:
    desk.put({"a.csv": b"1,2,3\n4,5,6\n"})
    args = ["a.csv", "--no-header", "--columns", columns]
    message = 'input.columns names "a", which is not a column; without a header they are column_0 to column_2; to name '
    desk.assert_refused(desk.convert(*args), 2, message + command)
    assert desk.convert(*args, *shlex.split(command.split(": ", 1)[1])).code == 0
    assert desk.records()[0] == dict(zip(columns.split(","), (1, 2, 3), strict=False))


@pytest.mark.parametrize(
    ("name", "body", "code", "message"),
    [
        (
            "a.csv",
            b"6,148,72\n1,85,66\n8,183,64\n",
            1,
            "a.csv: the first line looks like data, not like a header: 6,148,72; if it is data: "
            "--no-header, or with names of your own: --no-header --set 'input.names=[a, b, ...]'; if it is a header: ",
        ),
        (
            "a.csv",
            b"5.1,3.5,setosa\n4.9,3.0,setosa\n",
            1,
            "a.csv: the first line looks like data, not like a header: 5.1,3.5,setosa; if it is data: ",
        ),
        (
            "a.csv",
            b"1,1\n2,3\n",
            1,
            "a.csv: the first line looks like data, not like a header: 1,1; if it is data: --no-header, or with names "
            "of your own: --no-header --set 'input.names=[a, b, ...]'; if it is a header: rename one of columns 1 and",
        ),
        ("a.csv", b"a,b|c\n1,2|3\n", 2, 'a.csv: the delimiter is unclear: "," gives 2 and "|" gives 2 columns'),
        ("a.csv", b"PK\x03\x04 rest of it", 1, "is a ZIP archive (as Excel files are), which is not read"),
        ("a.csv", b"PAR1 rest of it", 1, "a.csv: is a Parquet file; read it as one: --format parquet"),
        ("a.7z", b"7z rest of it", 2, "a.7z: is an archive, which is not read; unpack it first: 7z x "),
        (
            "a.json",
            b'{"id": 0}\n',
            2,
            "JSON is read where each line is an object (--set input.format=jsonl); one array in Py",
        ),
        ("a.xlsx", b"PK", 2, "Excel files are not supported yet; in Python: import pandas; from "),
        ("a.csv", b'{"id": 0, "x": [1]}\n{"id": 1, "x": [2]}\n', 1, "a.csv: each line is a JSON object, not CSV; read"),
    ],
)
def test_what_would_be_read_wrong_is_refused_with_what_to_do(
    desk: Any, name: str, body: bytes, code: int, message: str
) -> None:
    desk.put({name: body})
    refused = desk.convert(name)
    assert (refused.code, refused.out) == (code, "")
    assert message in refused.err
    assert len(refused.err.splitlines()) == 1
    desk.assert_nothing_committed()
