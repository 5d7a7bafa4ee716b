"""Tables as databases, engines and spreadsheets write them: the screen says what reads them, and that does."""

from __future__ import annotations

import csv
import json
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
from shardmill.transforms.dataset.reading.open_dataset import open_dataset

from ..command_line import Screen, Shardmill
from .test_sets_that_people_bring import commands_in, make


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def rows_of(path: str, split: str = "train") -> list[dict[str, Any]]:
    return open_dataset(path)[split].to_arrow().to_pylist()


def follow(shardmill: Shardmill, command: list[str], screen: Screen, begin: str) -> Screen:
    """Run a command again with the options that are said after some words, and return the screen."""
    said = (screen.out + screen.err).partition(begin)[2].split("\n")[0]
    options = shlex.split(said.split("; ")[0])
    assert options[:1] == ["--set"] or options[0].startswith("--"), screen.out + screen.err
    return shardmill(*command, *options, "--overwrite")


HEADLESS = {
    "an empty cell": ('anna,rome,""\nbob,oslo,x\n', 'carl,wien,""\n', "look like data; if they are: "),
    "a date": ("anna,2024-01-05\n", "carl,2024-01-06\n", "look like data; if they are: "),
    "words alone": ("anna,rome\nbob,oslo\n", "carl,wien\n", "or, if the first lines are data: "),
}


@pytest.mark.parametrize("case", HEADLESS)
def test_parts_without_a_header_lose_no_row_by_the_option_that_is_proposed(case: str, shardmill: Shardmill) -> None:
    one, other, said = HEADLESS[case]
    make({"d/part-0.csv": one, "d/part-1.csv": other})
    command = ["convert", "d", "-o", "out"]
    screen = shardmill(*command)
    assert ("columns_differ=union" in screen.err) == (case == "words alone"), screen.err
    done = follow(shardmill, command, screen, said)
    assert done.code == 0, done.err
    assert [row["column_0"] for row in rows_of("out")] == [line.split(",")[0] for line in (one + other).splitlines()]


PLAIN_QUOTES = {
    "text after a quote that closes": ('id|text\n1|"For" he said\n2|"x\n3|plain\n', ['"For" he said', '"x', "plain"]),
    "no quote that closes": ('id|text\n1|a "b\n2|"x\n', ['a "b', '"x']),
    "one behind which a blank is": ('id|text|n\n1|"5 pipe|3\n2|7" |4\n3|x|5\n', ['"5 pipe', '7" ', "x"]),
}


@pytest.mark.parametrize("case", PLAIN_QUOTES)
def test_quotes_that_are_text_are_read_by_the_key_that_is_proposed(case: str, shardmill: Shardmill) -> None:
    text, wanted = PLAIN_QUOTES[case]
    make({"a.csv": text})
    command = ["convert", "a.csv", "-o", "out"]
    screen = shardmill(*command)
    assert screen.code != 0
    begin = "as each line is a row without them: " if "BAD_QUOTE" in screen.err else "if they are plain text: "
    done = follow(shardmill, command, screen, begin)
    assert done.code == 0, done.err
    assert [row["text"] for row in rows_of("out")] == wanted


TWO = "lines 3 to 4 of the file are one row: "
LONE_QUOTES = {
    "behind a blank, where the row is too wide": ('1,a,2\n2, "open, b,4\n', "BAD_WIDTH: has 4 columns instead of 3"),
    "before a blank, on another line": ('1,a,2\n2,"open,4\n3,x" ,5\n', f"BAD_QUOTE: {TWO}"),
    "beside quoted values": ('1,"a",2\n2,"open,4\n3,"x",5\n', f"BAD_QUOTE: {TWO}"),
    "over three lines": ('1,a,2\n2,"open,4\n5,y,6\n3,"x,5\n', "BAD_QUOTE: lines 3 to 5 of the file are"),
    "in rows of the wrong width": ('1,a,2\n2,"open,4\n3,x",5,6,7\n', f"BAD_WIDTH: {TWO}"),
}  # fmt: skip


@pytest.mark.parametrize("case", LONE_QUOTES)
def test_a_lone_quote_is_no_blank_to_trim_and_the_lines_that_it_joins_are_said(case: str, shardmill: Shardmill) -> None:
    rows, said = LONE_QUOTES[case]
    make({"a.csv": "id,text,n\n" + rows})
    screen = shardmill("convert", "a.csv", "-o", "out", "--max-rejects", "1")
    assert (screen.code, said in screen.out, "input.trim" in screen.out) == (0, True, False), screen.out


def test_blanks_before_quotes_are_trimmed_by_the_option_of_a_row_that_is_right_without_them(
    shardmill: Shardmill,
) -> None:
    make({"a.csv": 'id,text,n\n1,a,2\n2, "b, c" , 4\n'})
    command = ["convert", "a.csv", "-o", "out", "--max-rejects", "1"]
    done = follow(shardmill, command, shardmill(*command), "are no part of them: ")
    assert (done.code, ", 0 rejected" in done.out) == (0, True)
    assert [row["text"] for row in rows_of("out")] == ["a", "b, c"]


@pytest.mark.parametrize(
    "text",
    [
        'id|text\n1|"For" he said\n2|"a|b"\n',
        'id|text\n1|"For" he said\n2|"a ""b"""\n',
        'id|text\n1|"For" he said\n"2"|"all"\n"3"|"text"\n',
    ],
)
def test_quotes_of_which_some_are_a_programs_are_not_said_to_be_text(text: str, shardmill: Shardmill) -> None:
    make({"a.csv": text})
    screen = shardmill("convert", "a.csv", "-o", "out")
    assert ("BAD_QUOTE" in screen.err, "quote=null" in screen.err) == (True, False)


PLAIN = ["a", '"Helo."', 'said "ie"', "C:"]


@pytest.mark.parametrize(
    ("options", "begin"),
    [
        ({"quoting": csv.QUOTE_NONE, "escapechar": "\\"}, "if they only escape quotes: "),
        ({"doublequote": False, "escapechar": "\\"}, "if they only escape quotes: "),
        ({"quoting": csv.QUOTE_NONE, "quotechar": None}, "if they are: "),
    ],
)
@pytest.mark.parametrize("delimiter", ["\t", ","])
def test_quotes_that_a_program_wrote_as_text_are_read_by_the_option_that_is_said(
    options: dict[str, Any], begin: str, delimiter: str, shardmill: Shardmill
) -> None:
    with open("a.csv", "w", newline="") as file:
        csv.writer(file, delimiter=delimiter, lineterminator="\n", **options).writerows([
            ("id", "text"), *enumerate(PLAIN)
        ])  # fmt: skip
    command = ["convert", "a.csv", "-o", "out"]
    done = follow(shardmill, command, shardmill(*command), begin)
    assert (done.code, done.err) == (0, "")
    assert [row["text"] for row in rows_of("out")] == PLAIN


@pytest.mark.parametrize(
    "text",
    [
        'id\ttext\n1\t"Helo."\n2\tplain\n',
        'id\ttext\n1\t"a\tb"\n2\tsaid "ie"\n3\tplain\n4\t"Helo."\n',
        'id\ttext\n1\t"a ""b"""\n2\tsaid "ie"\n3\tplain\n',
        'id\ttext\n1\t\\"Helo.\\"\n2\tC:\\new\n',
        'id\ttext\n1\t\\"Helo.\\"\n2\tsaid "ie"\n',
    ],
)
def test_quotes_of_which_the_text_does_not_show_how_they_were_written_get_no_option(
    text: str, shardmill: Shardmill
) -> None:
    make({"a.tsv": text})
    screen = shardmill("convert", "a.tsv", "-o", "out")
    assert (screen.code, "input.quote" in screen.out, "input.escape" in screen.out) == (0, False, False), screen.out


def test_a_dump_of_mysql_is_read_by_the_escape_and_the_null_that_are_proposed(shardmill: Shardmill) -> None:
    make({"a.tsv": "id\tname\tborn\n1\tAda\t\\N\n2\tBo\\\nNew\tx\n3\tC\\\tT\ty\n"})
    command = ["convert", "a.tsv", "-o", "out"]
    screen = shardmill(*command)
    assert "if a backslash escapes the delimiter: --set 'input.escape=\\'" in screen.err
    done = follow(shardmill, command, screen, "as in dumps of MySQL: ")
    assert done.code == 0, done.err
    again = follow(shardmill, [*command, "--set", "input.escape=\\"], done, "to read null: ")
    assert again.code == 0, again.err
    assert [(row["name"], row["born"]) for row in rows_of("out")] == [("Ada", None), ("Bo\nNew", "x"), ("C\tT", "y")]


def test_an_n_beside_the_null_of_databases_is_not_said_to_be_null(shardmill: Shardmill) -> None:
    make({"a.tsv": "id\tname\n1\t\\N\n2\tN\n3\tx\n"})
    screen = shardmill("convert", "a.tsv", "-o", "out", "--set", "input.escape=\\")
    assert (screen.code, "to read null" in screen.out) == (0, False)


def test_escapes_of_a_dump_are_read_by_the_key_that_is_said_and_others_are_text(
    shardmill: Shardmill,
) -> None:
    make({"a.tsv": "id\tnote\n1\ttwo\\nlines\n2\t\\N\n"})
    command = ["convert", "a.tsv", "-o", "out", "--set", "input.null_values=[\\N]"]
    found = re.search(r"to read the text itself: --set (\S+)", shardmill(*command).out)
    assert found is not None
    assert [row["note"] for row in rows_of("out")] == ["two\\nlines", None]
    assert shardmill(*command, "--set", found[1], "--overwrite").code == 0
    assert [row["note"] for row in rows_of("out")] == ["two\nlines", None]
    make({"a.tsv": "id\tnote\n1\tD\\'Or\n2\t\\N\n"})
    assert "to read the text itself: --set schema.columns.note.escapes=true" in shardmill(*command, "--overwrite").out
    make({"a.tsv": "id\tnote\n1\tC:\\\\new\n2\ttab\\there\n"})
    assert "dumps of databases write line breaks" in shardmill("convert", "a.tsv", "-o", "batch").out, "without a null"
    make({"a.tsv": "id\tnote\tformula\n1\tC:\\new\t\\theta\n2\t\\t\t\\frac{1}{2}\n"})
    assert "to read the text itself" not in shardmill(*command, "--overwrite").out


ROWS = [(1, "007"), (2, "8")]
DOCUMENTS = {
    "pandas, split": {"columns": ["id", "n"], "index": [0, 1], "data": [[1, "007"], [2, "8"]]},
    "pandas, columns": {"id": {"0": 1, "1": 2}, "n": {"0": "007", "1": "8"}},
    "pandas, index": {"a": {"id": 1, "n": "007"}, "b": {"id": 2, "n": "8"}},
    "pandas, list": {"id": [1, 2], "n": ["007", "8"]},
    "pandas, table": {"schema": {"fields": [{"name": "id"}]}, "data": [{"id": 1, "n": "007"}, {"id": 2, "n": "8"}]},
    "rows by split": {"train": [{"id": 1, "n": "007"}, {"id": 2, "n": "8"}], "test": [{"id": 3, "n": "x"}]},
}


@pytest.mark.parametrize("typed", ["d", "d/a.json"])
@pytest.mark.parametrize("case", DOCUMENTS)
def test_a_document_of_json_is_read_by_the_line_of_python(case: str, typed: str, shardmill: Shardmill) -> None:
    make({"d/a.json": DOCUMENTS[case]})
    screen = shardmill("convert", typed, "-o", "out")
    (line,) = re.findall(r"in Python: (.*?convert\(data=.*, output='out'[^;]*\))", screen.err)
    exec(line, {})
    assert [(row["id"], row["n"]) for row in rows_of("out")] == ROWS
    if case == "rows by split":
        assert [(row["id"], row["n"]) for row in rows_of("out", "test")] == [(3, "x")]


def test_an_array_of_arrays_is_read_by_the_line_of_python(shardmill: Shardmill) -> None:
    make({"a.json": [[1, "007"], [2, "8"]]})
    screen = shardmill("convert", "a.json", "-o", "out")
    (line,) = re.findall(r"in Python: (.*?convert\(data=.*, output='out'\))", screen.err)
    exec(line, {})
    assert [(row["column_0"], row["column_1"]) for row in rows_of("out")] == ROWS


def test_a_file_for_the_bulk_interface_is_read_by_the_line_of_python(shardmill: Shardmill) -> None:
    actions = ({"index": {"_index": "docs", "_id": n}} for n in "ab")
    documents = ({"id": id_, "n": n} for id_, n in ROWS)
    lines = (one for pair in zip(actions, documents, strict=True) for one in pair)
    make({"d/a.ndjson": "".join(f"{json.dumps(one)}\n" for one in lines)})
    screen = shardmill("convert", "d", "-o", "out")
    (line,) = re.findall(r"in Python: (.*?convert\(data=.*, output='out'\))", screen.err)
    exec(line, {})
    assert [(row["_id"], row["id"], row["n"]) for row in rows_of("out")] == [("a", 1, "007"), ("b", 2, "8")]
    assert shardmill("convert", "d", "-o", "as-it-is", "--set", "input.detect=none").code == 0


def test_lines_that_have_an_index_of_their_own_are_rows(shardmill: Shardmill) -> None:
    make({"a.jsonl": '{"index": {"_id": 1}, "n": 1}\n{"index": {"_id": 2}, "n": 2}\n'})
    assert shardmill("convert", "a.jsonl", "-o", "out").code == 0


@pytest.mark.parametrize("typed", ["d", "d/users.dat", "users.csv --no-header"])
def test_cells_between_two_colons_are_read_from_the_file_that_the_command_writes(
    typed: str, shardmill: Shardmill
) -> None:
    text = "1::F::Toy Story: One::48067\n2::M::Heat|x::02460\n"
    make({"d/users.dat": text, "users.csv": text})
    screen = shardmill("convert", *typed.split(), "-o", "out")
    said = re.search(r"write tabs: (awk .*); then convert (\S+)", screen.out + screen.err)
    assert said, screen.err
    subprocess.run(said[1], shell=True, check=True)
    done = shardmill("convert", said[2], "-o", "out", "--no-header", "--overwrite")
    assert done.code == 0, done.err
    assert [row["column_2"] for row in rows_of("out")] == ["Toy Story: One", "Heat|x"]
    assert [row["column_3"] for row in rows_of("out")] == ["48067", "02460"]


@pytest.mark.parametrize("typed", ["d", "d/Book1.txt"])
def test_a_table_of_excel_in_utf_16_is_read_by_the_options_of_the_screen(typed: str, shardmill: Shardmill) -> None:
    Path("d").mkdir()
    Path("d/Book1.txt").write_bytes("\ufeffName\tOrt\r\nM\xfcller\tK\xf6ln\r\n".encode("utf-16-le"))
    screen = shardmill("convert", typed, "-o", "out")
    said = re.search(r"convert this file as one: (.*)", screen.err)
    assert said, screen.err
    done = shardmill("convert", "d/Book1.txt", "-o", "out", *shlex.split(said[1]))
    assert done.code == 0, done.err
    assert rows_of("out") == [{"Name": "M\xfcller", "Ort": "K\xf6ln"}]


TITLES = {
    "Excel": "Report 2024,,\n,,\nRegion,Q1,Note\nNorth,10,ok\nSouth,12,late\n",
    "a line without a delimiter": "Report 2024\n\nRegion,Q1,Note\nNorth,10,ok\nSouth,12,late\n",
    "the World Bank": (
        '"Source","Bank",\n\n"Updated","2024-03-01",\n\n"Region","Q1","Note","a","b","1960",\n'
        '"North","10","ok","1","","2",\n"South","12","late","1","2","",\n'
    ),
}


@pytest.mark.parametrize("case", TITLES)
def test_a_table_below_a_title_is_read_by_the_lines_that_are_to_be_skipped(case: str, shardmill: Shardmill) -> None:
    make({"a.csv": TITLES[case]})
    command = ["convert", "a.csv", "-o", "out"]
    done = follow(shardmill, command, shardmill(*command), "to begin with the header: ")
    assert done.code == 0, done.err
    found = [(row["Region"], int(row["Q1"]), row["Note"]) for row in rows_of("out")]
    assert found == [("North", 10, "ok"), ("South", 12, "late")]


@pytest.mark.parametrize("text", ["a,,\n1,2,3\n4,5,6\n", "note\n1,2\n", "a,b\nann,rome,x\nbob,oslo,y\n"])
def test_a_header_above_data_is_not_said_to_be_a_title(text: str, shardmill: Shardmill) -> None:
    make({"a.csv": text})
    screen = shardmill("convert", "a.csv", "-o", "out")
    assert "looks like a title" not in screen.out + screen.err


UNNAMED = {
    "UCI, between commas": (
        {"d/x.tra": "1,2\n3,4\n5,6\n", "d/x.tes": "7,8\n", "d/x.names": "Title\n\nText, and more.\n"},
        {"train": [1, 3, 5], "test": [7]},
    ),
    "UCI, between blanks": (
        {"d/x.trn": "1 2\n3 4\n5 6\n", "d/x.tst": "7 8\n9 1\n2 3\n", "d/x.doc": "Title of the set\n"},
        {"train": [1, 3, 5], "test": [7, 9, 2]},
    ),
    "a scraper, with its log": (
        {"d/c-1.jl": '{"column_0": 1}\n', "d/c-2.jl": '{"column_0": 2}\n', "d/c-2.log": "12:00 done\n"},
        {"train": [1, 2]},
    ),
    "Spark, in partitions": (
        {f"d/split={name}/part-0.json": '{"column_0": 1}\n{"column_0": 2}\n' for name in ("train", "test")}
        | {"d/_SUCCESS": ""},
        {"train": [1, 2], "test": [1, 2]},
    ),
}


@pytest.mark.parametrize("case", UNNAMED)
def test_files_of_unknown_suffixes_are_read_without_the_notes_beside_them(case: str, shardmill: Shardmill) -> None:
    files, wanted = UNNAMED[case]
    make(files)
    screen = shardmill("convert", "d", "-o", "out")
    (words,) = commands_in(screen.err)
    done = shardmill(*words)
    assert done.code == 0, done.err
    assert {split: [row["column_0"] for row in rows_of("out", split)] for split in wanted} == wanted
    assert list(open_dataset("out").splits) == sorted(wanted)


@pytest.mark.parametrize("typed", ["d", "d/a.wav"])
def test_sounds_are_read_as_bytes_by_the_line_of_python(typed: str, shardmill: Shardmill) -> None:
    make({"d/a.wav": "RIFF 1", "d/b.wav": "RIFF 2", "d/notes": "x"})
    screen = shardmill("convert", typed, "-o", "out")
    (line,) = re.findall(r"in Python: (.*?convert\(data=.*, output='out'\))", screen.err)
    exec(line, {})
    found = [(row["name"], row["folder"], bytes(row["audio"])) for row in rows_of("out")]
    assert found == [("a.wav", "d", b"RIFF 1"), ("b.wav", "d", b"RIFF 2")][: 2 if typed == "d" else 1]


def test_avro_is_refused_by_name_with_the_line_of_python(shardmill: Shardmill) -> None:
    make({"d/a.avro": "Obj1"})
    for typed in ("d", "d/a.avro"):
        screen = shardmill("convert", typed, "-o", "out")
        assert "Avro files are not supported yet; in Python: import fastavro, io, pathlib; from " in screen.err
        assert "import convert; convert(data=[*fastavro.reader(" in screen.err


def test_truth_values_of_r_beside_its_null_are_read_by_the_key_that_is_proposed(shardmill: Shardmill) -> None:
    make({"a.csv": "n,ok\n1,TRUE\n2,NA\n3,FALSE\n"})
    command = ["convert", "a.csv", "-o", "out"]
    done = follow(shardmill, command, shardmill(*command), "if that means null: ")
    assert (done.code, [row["ok"] for row in rows_of("out")]) == (0, [True, None, False])


@pytest.mark.parametrize("cell", ["maybe", "x"])
def test_truth_values_beside_another_word_are_text(cell: str, shardmill: Shardmill) -> None:
    make({"a.csv": f"n,ok\n1,TRUE\n2,{cell}\n3,FALSE\n"})
    assert "true or false but" not in shardmill("convert", "a.csv", "-o", "out").out


def test_numbered_sentences_are_no_table_between_blanks(shardmill: Shardmill) -> None:
    make({"a.txt": "".join(f"negative sentence {n}\n" for n in range(4)), "b.txt": "x y\n1 2\n3 4\n"})
    assert "blanks align" not in shardmill("convert", "a.txt", "-o", "a").out
    assert "blanks align" in shardmill("convert", "b.txt", "-o", "b").out


UCI = "39, State-gov, 77516, <=50K\n50, Self-emp, 83311, >50K\n38, Private, 215646, <=50K\n"


@pytest.mark.parametrize("names", [[], ["--set", "input.names=[age, work, weight, income]"]])
def test_a_first_line_that_is_no_row_of_one_of_two_files_is_left_out_by_the_comment_that_is_said(
    names: list[str], shardmill: Shardmill
) -> None:
    make({"adult.data": UCI, "adult.test": "|1x3 Cross validator\n" + UCI.replace("K\n", "K.\n")})
    command = ["convert", "adult.data", "adult.test", "-o", "out", "--format", "csv", "--no-header", *names]
    command += ["--set", "input.trim=true"]
    for more in ([], ["--set", "input.columns_differ=union"]):
        screen = shardmill(*command, *more)
        assert (screen.code, "columns_differ" in screen.err) == (1, False), screen.err
    done = follow(shardmill, command, screen, "are comments: ")
    assert done.code == 0, done.err
    assert [row["work" if names else "column_1"] for row in rows_of("out")] == ["State-gov", "Self-emp", "Private"] * 2


def test_a_first_line_that_is_no_comment_is_left_out_by_the_option_for_its_file(shardmill: Shardmill) -> None:
    make({"a.csv": "a,b,c\n1,2,3\n", "b.csv": "My table\na,b,c\n4,5,6\n"})
    screen = shardmill("convert", "a.csv", "b.csv", "-o", "out")
    assert (screen.code, "columns_differ" in screen.err) == (1, False), screen.err
    assert follow(shardmill, ["convert", "b.csv", "-o", "out"], screen, "convert the file by itself: ").code == 0
    assert rows_of("out") == [{"a": 4, "b": 5, "c": 6}]


@pytest.mark.parametrize(
    ("text", "option"),
    [("|1x3 Cross validator\n" + UCI, "input.comment=|"), ("#a,b,c,d\n" + UCI, "")],
    ids=["a comment", "a header"],
)
def test_a_file_of_rows_below_a_comment_is_read_by_the_options_of_its_first_lines(
    text: str, option: str, shardmill: Shardmill
) -> None:
    make({"adult.test": text})
    screen = shardmill("convert", "adult.test", "-o", "out")
    assert (screen.code, option in screen.err, "input.comment" in screen.err) == (2, True, bool(option)), screen.err
    done = follow(shardmill, ["convert", "adult.test", "-o", "out"], screen, "show how to read it: ")
    assert (done.code, len(rows_of("out"))) == (0, 3)
