"""Texts of other programs that are no tables are never read as some: what the screen proposes reads their rows."""

from __future__ import annotations

import datetime as dt
import re
import shlex
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.orc
import pytest
from shardmill.pipelines import open_dataset

from ..command_line import Shardmill


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def put(**files: str | bytes) -> None:
    for name, data in files.items():
        path = Path(name.replace("__", "/").replace("_", "."))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data.encode() if isinstance(data, str) else data)


def rows_of_python(screen: Any, place: str = "in Python: ") -> list[dict[str, Any]]:
    """Return the rows that a line of Python on the screen converts."""
    found = re.search(
        rf"{place}(?:\(.*?\): )?((?:import .*)?from .*convert\(.*output='out'(?:, overwrite=True)?\))",
        screen.err + screen.out,
    )
    assert found, screen
    exec(found[1], {})
    return [dict(row) for row in open_dataset("out")["train"]]


SVM = "1 3:0.5 7:1.0 # a\n\n-1 1:0.25\n"
SVM_ROWS = [
    {"label": 1.0, "index": [3, 7], "value": [0.5, 1.0]},
    {"label": -1.0, "index": [1], "value": [0.25]},
]


@pytest.mark.parametrize("typed", ["a.svm", "a.txt", "a.csv", "a.data", "d", "d/*"])
def test_libsvm_is_said_with_the_line_of_python_that_reads_labels_and_values(typed: str, shardmill: Shardmill) -> None:
    put(**dict.fromkeys(["a_svm", "a_txt", "a_csv", "a_data", "d__a_svm", "d__b_svm"], SVM))
    screen = shardmill("convert", typed, "-o", "out")
    assert screen.code == (0 if typed == "a.txt" else 2 if typed != "a.csv" else 1), screen.err
    rows = [{key: list(one) if key != "label" else one for key, one in row.items()} for row in rows_of_python(screen)]
    assert rows == SVM_ROWS * (2 if typed[0] == "d" else 1)


@pytest.mark.parametrize(
    ("text", "first"),
    [
        (
            "2 qid:7 1:0.5 2:0.25 #doc=1\n0 qid:8 1:1e-3\n",
            {"label": 2.0, "qid": 7, "index": [1, 2], "value": [0.5, 0.25]},
        ),
        ("1,3 1:0.5\n2 2:0.1\n", {"labels": [1, 3], "index": [1], "value": [0.5]}),
    ],
    ids=["queries", "several labels"],
)
def test_libsvm_keeps_the_groups_of_queries_and_several_labels(
    shardmill: Shardmill, text: str, first: dict[str, Any]
) -> None:
    put(a_svm=text)
    row = rows_of_python(shardmill("convert", "a.svm", "-o", "out"))[0]
    assert {key: list(one) if isinstance(first[key], list) else one for key, one in row.items()} == first


def test_text_with_times_and_verses_is_no_libsvm(shardmill: Shardmill) -> None:
    put(a_txt="12:30 we met\n13 2:1 to them\n")
    assert "LibSVM" not in shardmill("convert", "a.txt", "-o", "out").out


ARFF = (
    "% a comment\n@RELATION pets\n\n@attribute 'body length' REAL\n@attribute code string\n"
    "@ATTRIBUTE note STRING % text\n@attribute class {cat, 'big dog'}\n\n@DATA\n"
    "1.5,007,'it\\'s, small',cat\n?,008,?,'big dog'\n"
)


@pytest.mark.parametrize("typed", ["a.arff", "a.txt", "a.data", "d"])
def test_arff_is_read_with_its_names_nulls_and_classes_by_the_command_on_the_screen(
    typed: str, shardmill: Shardmill
) -> None:
    put(**dict.fromkeys(["a_arff", "a_txt", "a_data", "d__a_arff"], ARFF))
    screen = shardmill("convert", typed, "-o", "out")
    found = re.search(r"is ARFF .*; to read it: shardmill (.*)", screen.err + screen.out)
    assert found, screen
    done = shardmill(*shlex.split(found[1]))
    assert done.code == 0, done.err
    dataset = open_dataset("out")
    assert dataset.manifest.labels == {"class": ("cat", "big dog")}
    assert [dict(row) for row in dataset["train"]] == [
        {"body length": 1.5, "code": "007", "note": "it's, small", "class": "cat"},
        {"body length": None, "code": "008", "note": None, "class": "big dog"},
    ]


def test_arff_with_blanks_behind_commas_is_read_by_the_command_on_the_screen(shardmill: Shardmill) -> None:
    put(a_arff="@relation r\n@attribute a numeric\n@attribute b numeric\n@data\n1, 2\n% no row\n3, 4\n")
    found = re.search(r"to read it: shardmill (.*)", shardmill("convert", "a.arff", "-o", "out").err)
    assert found
    assert shardmill(*shlex.split(found[1])).code == 0
    assert [dict(row) for row in open_dataset("out")["train"]] == [{"a": 1, "b": 2}, {"a": 3, "b": 4}]


def test_arff_of_what_is_not_0_is_refused_without_a_command(shardmill: Shardmill) -> None:
    put(a_arff="@relation r\n@attribute a numeric\n@attribute b numeric\n@data\n{1 2}\n")
    screen = shardmill("convert", "a.arff", "-o", "out")
    assert (screen.code, "write it as CSV" in screen.err, "shardmill convert" in screen.err) == (2, True, False)


def test_files_of_a_data_logger_are_read_without_their_heads_by_the_command_on_the_screen(shardmill: Shardmill) -> None:
    heads = '"TOA5","Ridge","CR1000"\n"TIMESTAMP","RECORD","AirTC"\n"TS","RN","Deg C"\n"","","Avg"\n'
    put(d__a_dat=heads + '"2024-01-01 00:00:00",1,2.5\n', d__b_dat=heads + '"2024-01-02 00:00:00",2,"NAN"\n')
    found = re.search(r"is TOA5 .*; to read it: shardmill (.*)", shardmill("convert", "d", "-o", "out").err)
    assert found
    assert shardmill(*shlex.split(found[1])).code == 0
    rows = [dict(row) for row in open_dataset("out")["train"]]
    assert [(row["TIMESTAMP"], row["RECORD"]) for row in rows] == [
        ("2024-01-01 00:00:00", 1),
        ("2024-01-02 00:00:00", 2),
    ]
    assert (rows[0]["AirTC"], rows[1]["AirTC"] != rows[1]["AirTC"]) == (2.5, True)


def test_the_log_of_a_web_server_is_read_by_the_line_of_python(shardmill: Shardmill) -> None:
    time = "[30/Mar/2025:01:50:01 +0100]"
    line = f'10.0.0.1 - ana {time} "-" 408 - "-" "curl"'
    put(access_log=f'::1 - - {time} "GET /a?q=niño HTTP/1.1" 200 12\n{line}\ncut off\n')
    rows = rows_of_python(shardmill("convert", "access.log", "-o", "out"))
    at = dt.datetime(2025, 3, 30, 0, 50, 1, tzinfo=dt.UTC)
    assert [(row["host"], row["user"], row["time"], row["status"], row["bytes"], row["agent"]) for row in rows] == [
        ("::1", None, at, 200, 12, None),
        ("10.0.0.1", "ana", at, 408, None, "curl"),
        (None, None, None, None, None, None),
    ]
    assert [row["request"] for row in rows] == ["GET /a?q=niño HTTP/1.1", None, "cut off"], "no line is lost"


@pytest.mark.parametrize("options", [[], ["--format", "csv"]], ids=["by its name", "as CSV"])
def test_a_log_of_the_w3c_is_read_by_the_command_on_the_screen(options: list[str], shardmill: Shardmill) -> None:
    heads = "#Software: IIS\n#Version: 1.0\n#Fields: date cs-uri-stem cs(User-Agent) sc-bytes\n"
    put(a_log=f'{heads}2025-03-01 /a x"y 12\n2025-03-01 /b - -\n')
    found = re.search(
        r"extended form(?: \(date and time, of UTC, stay two columns\))?; to read it: shardmill (.*)",
        shardmill("convert", "a.log", "-o", "out", *options).err,
    )
    assert found
    assert shardmill(*shlex.split(found[1])).code == 0
    rows = open_dataset("out")["train"].to_arrow().to_pylist()
    assert [(row["cs(User-Agent)"], row["sc-bytes"]) for row in rows] == [('x"y', 12), (None, None)]


def test_the_dump_of_sqlite_is_read_by_the_line_of_python(shardmill: Shardmill) -> None:
    db = sqlite3.connect("a.db")
    db.executescript("CREATE TABLE pets (id INTEGER, name TEXT); CREATE TABLE other (a INT);")
    db.executemany("INSERT INTO pets VALUES (?, ?)", [(1, "it's; a\ncat"), (2**60 + 1, None)])
    put(a_sql="\n".join(db.iterdump()))
    db.close()
    screen = shardmill("convert", "a.sql", "-o", "out")
    assert "it holds pets, other; each is a dataset" in screen.err.replace("other, pets", "pets, other")
    rows = rows_of_python(screen.__class__(screen.code, "", screen.err.replace('"other"', '"pets"')), "in Python ")
    assert rows == [{"id": 1, "name": "it's; a\ncat"}, {"id": 2**60 + 1, "name": None}]


@pytest.mark.parametrize("typed", ["a.sql", "a.txt", "a.data", "d"])
@pytest.mark.parametrize(
    "text",
    [
        "-- MySQL dump 10.13\n--\nINSERT INTO `t` VALUES (1,'a;');\n",
        "INSERT INTO t (id, name) VALUES (1, 'a');\nINSERT INTO t (id, name) VALUES (2, 'b');\n",
        "--\n-- PostgreSQL database dump\n--\nCOPY public.t (id, name) FROM stdin;\n1\ta\n2\tb\n\\.\n",
    ],
    ids=["MySQL", "inserts", "PostgreSQL"],
)
def test_the_dump_of_a_database_is_no_table(typed: str, text: str, shardmill: Shardmill) -> None:
    put(**dict.fromkeys(["a_sql", "a_txt", "a_data", "d__a_sql"], text))
    screen = shardmill("convert", typed, "-o", "out")
    shown = screen.err + screen.out
    assert "is a dump of a database (SQL), not a table; load it into its database" in shown
    assert "csv" not in shown
    assert screen.code == (0 if typed == "a.txt" else 2)


@pytest.mark.parametrize("typed", [["d"], ["d/*"], ["d/a.avro", "d/b.avro"]], ids=["folder", "glob", "files"])
@pytest.mark.parametrize("many", [False, True], ids=["two", "many"])
def test_all_avro_files_are_read_by_the_line_of_python(typed: list[str], shardmill: Shardmill, *, many: bool) -> None:
    kind = fastavro.parse_schema({"type": "record", "name": "r", "fields": [{"name": "id", "type": "long"}]})
    Path("d").mkdir()
    names = "abcdefghij" if many and len(typed) == 1 else "ab"
    for number, name in enumerate(names):
        with Path(f"d/{name}.avro").open("wb") as file:
            fastavro.writer(file, kind, [{"id": number}])
    rows = rows_of_python(shardmill("convert", *typed, "-o", "out"))
    assert [row["id"] for row in rows] == list(range(len(names)))


@pytest.mark.parametrize("kind", ["orc", "json"])
def test_all_files_of_another_format_are_read_by_the_line_of_python(kind: str, shardmill: Shardmill) -> None:
    Path("d").mkdir()
    for number, name in enumerate("ab"):
        if kind == "orc":
            pa.orc.write_table(pa.table({"id": [number]}), f"d/{name}.orc")
        else:
            Path(f"d/{name}.json").write_text(f'[{{"id": {number}}}]')
    for typed in (["d"], ["d/a." + kind, "d/b." + kind]):
        rows = rows_of_python(shardmill("convert", *typed, "-o", "out", "--overwrite"))
        assert [row["id"] for row in rows] == [0, 1]
        shutil.rmtree("out")


def test_an_export_of_qualtrics_is_read_without_the_rows_of_its_questions(shardmill: Shardmill) -> None:
    ids = ",".join(f'"{{""ImportId"":""{one}""}}"' for one in ("startDate", "progress", "QID1_TEXT"))
    texts = 'Start Date,Progress,"How old are you?\n - in years"'
    rows = [f"2024-03-0{day} 10:00:00,100,{20 + day}" for day in range(1, 4)]
    Path("a.csv").write_text("\n".join(["StartDate,Progress,Q1", texts, ids, *rows, ""]), encoding="utf-8-sig")
    stop = shardmill("convert", "a.csv", "-o", "out/q")
    found = re.search(r"in Python: (.*); then: shardmill (.*)", stop.err)
    assert stop.code != 0, stop.out
    assert found, stop.err
    subprocess.run([sys.executable, "-c", found[1]], check=True)
    assert shardmill(*found[2].split()).code == 0
    assert open_dataset("out/q")["train"].to_arrow()["Q1"].to_pylist() == [21, 22, 23]


def test_a_text_with_tabs_and_line_breaks_behind_backslashes_is_said_to_be_a_table(shardmill: Shardmill) -> None:
    Path("a.txt").write_text("1\tAda\tline one\\\nline two\t1.5\n2\tBob\t\\N\t2\n3\tEve\tx\t3\n")
    screen = shardmill("convert", "a.txt", "-o", "out")
    assert "look like a table with tabs, with line breaks behind a backslash" in screen.out, screen.out


@pytest.mark.parametrize("suffix", ["txt", "csv"])
@pytest.mark.parametrize("names", ["row names", "no row names"])
def test_times_that_r_wrote_without_quotes_are_no_two_columns(suffix: str, names: str, shardmill: Shardmill) -> None:
    begin = [f'"{n}" ' if names == "row names" else "" for n in range(1, 5)]
    rows = [f'{begin[n]}"Pier" {n}.5 {("2026-09-28 10:27:00", "NA")[n % 2]} TRUE' for n in range(4)]
    Path(f"a.{suffix}").write_text("\n".join(['"site" "biomass" "at" "juvenile"', *rows, ""]))
    screen = shardmill("convert", f"a.{suffix}", "-o", "out")
    shown = screen.out + screen.err
    assert "R wrote with times without quotes, such as 2026-09-28 10:27:00" in shown, shown
    assert 'write.csv(x, "x.csv", row.names = FALSE)' in shown
    assert (suffix == "txt") is (screen.code == 0)


def test_days_and_times_of_two_columns_of_r_stay_two(shardmill: Shardmill) -> None:
    rows = [f'"{n}" {n}.5 2026-09-28 10:27:00' for n in range(1, 5)]
    Path("a.csv").write_text("\n".join(['"biomass" "date" "time"', *rows, ""]))
    screen = shardmill("convert", "a.csv", "-o", "out")
    found = re.search(r"to cut there: (.*); to read each line", screen.err)
    assert found, screen.err
    assert shardmill("convert", "a.csv", "-o", "out", *shlex.split(found[1])).code == 0
    assert {*open_dataset("out")["train"].to_arrow().column_names} == {"row", "biomass", "date", "time"}


def test_a_table_of_r_with_tabs_and_row_names_is_read_by_the_command_on_the_screen(shardmill: Shardmill) -> None:
    rows = [f'"{number}"\t"Pier {number}"\t{number}.5\tTRUE' for number in range(1, 5)]
    Path("a.txt").write_text("\n".join(['"site"\t"biomass"\t"juvenile"', *rows, ""]))
    screen = shardmill("convert", "a.txt", "-o", "out")
    found = re.search(r"a table of R with tabs; if it is one: (.*)", screen.out)
    assert found, screen.out
    assert shardmill("convert", "a.txt", "-o", "out", "--overwrite", *shlex.split(found[1])).code == 0
    assert open_dataset("out")["train"].to_arrow()["biomass"].to_pylist() == [1.5, 2.5, 3.5, 4.5]


def test_annotated_csv_of_influxdb_is_read_without_its_lines_of_types(shardmill: Shardmill) -> None:
    types = "#group,false,false,true\n#datatype,string,long,{}\n#default,_result,,\n,result,table,_value\n"
    parts = [types.format("double") + ",,0,1.5\n,,0,2.5\n", types.format("long") + ",,1,1000\n"]
    Path("a.csv").write_text("\r\n".join("\n".join(parts).split("\n")) + "\r\n")
    stop = shardmill("convert", "a.csv", "-o", "out")
    found = re.search(r"is annotated CSV of InfluxDB .*in Python: (.*); then: shardmill (.*)", stop.err)
    assert stop.code != 0, stop.out
    assert found, stop.err
    subprocess.run([sys.executable, "-c", found[1]], check=True)
    assert shardmill(*found[2].split()).code == 0
    assert open_dataset("out")["train"].to_arrow()["_value"].to_pylist() == [1.5, 2.5, 1000]


def test_a_text_with_tabs_whose_first_line_has_sentences_is_a_table_without_a_header(shardmill: Shardmill) -> None:
    Path("a.txt").write_text("Go.\tVa !\nHi.\tSalut !\nRun!\tCours !\n")
    screen = shardmill("convert", "a.txt", "-o", "out")
    assert re.search(
        r"a table with tabs; if it is one: .*--set input.format=csv --no-header$", screen.out, re.MULTILINE
    )


def test_a_log_of_zeek_is_read_with_the_names_of_its_fields_and_exact_times(shardmill: Shardmill) -> None:
    head = [
        "#separator \\x09",
        "#set_separator\t,",
        "#unset_field\t-",
        "#path\tconn",
        "#fields\tts\tuid\tid.orig_h\tbytes",
    ]
    rows = [f"1718000000.{n:06}\tC{n}\t10.0.0.{n}\t{n if n % 2 else '-'}" for n in range(20)]
    Path("conn.log").write_text("\n".join([*head, "#types\ttime\tstring\taddr\tcount", *rows, "#close\t2024", ""]))
    stop = shardmill("convert", "conn.log", "-o", "out")
    found = re.search(r"is a log of Zeek; to read it: shardmill (.*)", stop.err)
    assert found, stop.err
    assert shardmill(*shlex.split(found[1])).code == 0
    table = open_dataset("out")["train"].to_arrow()
    assert table["id.orig_h"].to_pylist()[:2] == ["10.0.0.0", "10.0.0.1"]
    assert table["bytes"].to_pylist()[:2] == [None, 1]
    assert table["ts"].to_pylist()[1] == 1718000000.000001
