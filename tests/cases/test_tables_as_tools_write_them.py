"""CSV as Excel, R and CelebA write it, lists and pictures in cells: what the screen proposes is run."""

from __future__ import annotations

import base64
import gzip
import io
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from shardmill.pipelines import convert
from shardmill.transforms.dataset.reading.open_dataset import open_dataset
from shardmill.transforms.sources.csv.obstacles import GROUPED, Look
from shardmill.transforms.sources.csv.schema import Evidence, join_evidence

from ..command_line import Shardmill

Rows = list[dict[str, Any]]
Convert = Callable[..., Rows]


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def rows_of(shardmill: Shardmill) -> Convert:
    def converted(*args: str) -> Rows:
        screen = shardmill("convert", *args, "-o", "made", "--overwrite")
        assert screen.code == 0, screen.err
        return rows_in("made")

    return converted


def rows_in(dataset: str) -> Rows:
    return [dict(record) for record in open_dataset(dataset)["train"]]


def options_after(said: str, text: str) -> list[str]:
    """Return the options that a screen proposes after some words."""
    found = re.search(re.escape(said) + r"((?: --(?:set (?:'[^']*'|\S+)|[a-z-]+))+)", " ".join(text.split()))
    assert found is not None, text
    return shlex.split(found[1].rstrip(";"))


TWO = [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]


@pytest.mark.parametrize(
    ("line", "sign"),
    [("sep=;", ";"), ('"sep=;"', ";"), ("SEP=|", "|"), ("sep=\t", "\t"), ("sep=,", ","), ("\ufeffsep=;", ";")],
)
def test_a_first_line_that_names_the_delimiter_is_no_row(rows_of: Convert, line: str, sign: str) -> None:
    text = f"{line}\r\na{sign}b\r\n1{sign}x\r\n2{sign}y\r\n".encode()
    Path("a.csv").write_bytes(text)
    Path("b.csv.gz").write_bytes(gzip.compress(text))
    Path("c.csv").write_bytes(text.decode().encode("utf-16"))
    assert rows_of("a.csv") == TWO
    assert rows_of("b.csv.gz") == TWO
    assert rows_of("c.csv", "--set", "input.encoding=utf-16") == TWO
    assert rows_of("a.csv", "b.csv.gz") == TWO * 2


def test_the_screen_says_that_a_line_names_the_delimiter(shardmill: Shardmill) -> None:
    Path("a.csv").write_text("sep=;\na;b\n1;x\n")
    said = 'Detected: a.csv: the first line, "sep=;", names the delimiter, and is no row'
    assert said in shardmill("convert", "a.csv", "-o", "out").out


def test_a_line_that_only_begins_with_sep_is_a_header(rows_of: Convert) -> None:
    Path("a.csv").write_text("sep=total,b\n1,2\n")
    assert rows_of("a.csv") == [{"sep=total": 1, "b": 2}]


CARS = [
    {"row": "Mazda RX4", "mpg": 21.0, "cyl": 6},
    {"row": "Datsun", "mpg": 22.5, "cyl": 4},
    {"row": "Fiat", "mpg": 30.0, "cyl": 4},
]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('"mpg","cyl"\n"Mazda RX4",21.0,6\n"Datsun",22.5,4\n"Fiat",30.0,4\n', "as R writes it:"),
        ("mpg\tcyl\nMazda RX4\t21.0\t6\nDatsun\t22.5\t4\nFiat\t30.0\t4\n", "as R writes it:"),
        ('"mpg" "cyl"\n"Mazda RX4" 21.0 6\n"Datsun" 22.5 4\n"Fiat" 30.0 4\n', "to cut there:"),
        ('3\n"mpg"  "cyl"\n"Mazda RX4" 21.0  6\n"Datsun"    22.5  4\n"Fiat"      30.0  4\n', "to cut there:"),
        ('"row" "mpg" "cyl"\n"Mazda RX4" 21.0 6\n"Datsun" 22.5 4\n"Fiat" 30.0 4\n', "to cut there:"),
    ],
)  # fmt: skip
def test_a_header_without_the_name_of_the_first_column_is_refused_with_the_key_that_names_it(
    shardmill: Shardmill, rows_of: Convert, text: str, said: str
) -> None:
    Path("a.csv").write_text(text)
    screen = shardmill("convert", "a.csv", "-o", "out")
    assert screen.code != 0
    assert rows_of("a.csv", *options_after(said, screen.err)) == CARS


def test_the_name_of_the_first_column_is_a_key_in_python_too() -> None:
    Path("a.csv").write_text('"mpg","cyl"\n"Fiat",30.0,4\n')
    convert("a.csv", output="out", row_names="car")
    assert rows_in("out") == [{"car": "Fiat", "mpg": 30.0, "cyl": 4}]


def test_a_count_before_the_header_is_refused_with_the_key_that_skips_it(
    shardmill: Shardmill, rows_of: Convert
) -> None:
    Path("a.csv").write_text("2\na,b\n1,x\n2,y\n")
    screen = shardmill("convert", "a.csv", "-o", "out")
    assert screen.code != 0
    assert rows_of("a.csv", *options_after("lines before it", screen.err.replace("(", "").replace(")", " "))) == TWO


@pytest.mark.parametrize(
    "lines", [["Ada Lovelace", "Alan Turing", "Grace Hopper"], ["3 apples", "5 pears", "9 plums"], ["row 7", "row 9"]]
)
def test_lines_of_text_with_as_many_words_each_stay_one_column(rows_of: Convert, lines: list[str]) -> None:
    Path("a.csv").write_text("\n".join(["name", *lines, ""]))
    assert [row["name"] for row in rows_of("a.csv")] == lines


def test_a_delimiter_at_the_end_of_all_rows_is_refused_with_options_that_read_them(
    shardmill: Shardmill, rows_of: Convert
) -> None:
    Path("a.csv").write_text("a,b\n1,x,\n2,y,\n")
    screen = shardmill("convert", "a.csv", "-o", "out")
    assert rows_of("a.csv", *options_after("leave it out:", screen.err)) == TWO


@pytest.mark.parametrize("text", ['a,b\n1, "x, y"\n', 'a,b\n1, "x, y"\n2,z\n', 'a,b\n1, "x"\n'])
def test_a_blank_before_a_quote_is_said_with_the_key_that_takes_it_off(
    shardmill: Shardmill, rows_of: Convert, text: str
) -> None:
    Path("a.csv").write_text(text)
    screen = shardmill("convert", "a.csv", "-o", "out")
    assert "--set input.trim=true" in screen.err + screen.out
    assert rows_of("a.csv", "--set", "input.trim=true")[0]["b"] in ("x, y", "x")


LISTS = [
    ("[0.5, 1.25]", [0.5, 1.25]),
    ("[0.5 1.25]", [0.5, 1.25]),
    ("[0.5\n 1.25]", [0.5, 1.25]),
    ("(0.5, 1.25)", [0.5, 1.25]),
    ("0.5;1.25", [0.5, 1.25]),
    ("0.5|1.25", [0.5, 1.25]),
    ("[1, 2]", [1, 2]),
    ("70 80 82", [70, 80, 82]),
    ("['it\\'s', \"b\"]", ["it's", "b"]),
    ("['a' 'b']", ["a", "b"]),
    ('["a", "b\\u00e9"]', ["a", "b\u00e9"]),
]


@pytest.mark.parametrize(("cell", "items"), LISTS)
def test_cells_that_hold_lists_are_said_and_read_by_the_key_that_is_said(
    shardmill: Shardmill, rows_of: Convert, cell: str, items: list[object]
) -> None:
    quoted = '"' + cell.replace('"', '""') + '"'
    Path("a.csv").write_text(f"id,v\n1,{quoted}\n2,{quoted}\n")
    screen = shardmill("convert", "a.csv", "-o", "out")
    assert screen.code == 0, screen.err
    options = options_after({int: "int64:", float: "float64:", str: "string:"}[type(items[0])], screen.out)
    assert [row["v"] for row in rows_of("a.csv", *options)] == [items, items]
    assert rows_in("out")[0]["v"] == cell


def test_lists_in_text_are_read_from_lines_of_json_and_from_python_and_declared() -> None:
    Path("a.jsonl").write_text('{"v": "1,2"}\n{"v": "[]"}\n{"v": null}\n')
    convert("a.jsonl", output="out", schema={"columns": {"v": {"as": "list", "type": "float32"}}})
    assert [row.get("v") for row in rows_in("out")] == [[1.0, 2.0], [], None]
    convert(data={"v": ["1 2", "3"]}, output="more", schema={"columns": {"v": {"as": "list"}}})
    assert [row["v"] for row in rows_in("more")] == [[1, 2], [3]]


@pytest.mark.parametrize(
    "cell", ["[1,,2]", "[1, 2", "[1, x]", "1,2;3", "[,]", "[[1], [2]]", "[01, 2]", "['a', 1]", "['a',, 'b']"]
)
def test_a_cell_that_is_no_list_of_the_declared_type_is_a_reject(shardmill: Shardmill, cell: str) -> None:
    Path("a.csv").write_text(f'v\n"[1, 2]"\n"{cell}"\n')
    kind = "string" if "'" in cell else "int64"
    keys = ["--set", "schema.columns.v.as=list", "--set", f"schema.columns.v.type={kind}"]
    screen = shardmill("convert", "a.csv", "-o", "out", *keys, "--max-rejects", "2")
    assert "BAD_TYPE" in screen.out
    assert screen.code == 0, screen.err


def test_an_append_reads_lists_as_its_dataset_does(shardmill: Shardmill) -> None:
    Path("a.csv").write_text('v\n"[0.5, 1]"\n')
    Path("b.csv").write_text('v\n"[1, 2]"\n')
    assert shardmill("convert", "a.csv", "-o", "out", "--set", "schema.columns.v.as=list").code == 0
    screen = shardmill("append", "b.csv", "-o", "out")
    assert screen.code == 0, screen.err
    assert [row["v"] for row in rows_in("out")] == [[0.5, 1.0], [1.0, 2.0]]


@pytest.mark.parametrize("cells", [["1e3", "12e4"], ["1.5", "2e10"], ["007e1", "1e5"]])
def test_codes_that_look_like_numbers_are_said_with_the_line_that_keeps_them(
    shardmill: Shardmill, rows_of: Convert, cells: list[str]
) -> None:
    Path("a.csv").write_text("\n".join(["sku", *cells]) + "\n")
    screen = shardmill("convert", "a.csv", "-o", "out")
    if "is read as a number" in screen.out:
        options = options_after("if such values are codes:", screen.out)
        assert [row["sku"] for row in rows_of("a.csv", *options)] == cells
    else:
        assert [row["sku"] for row in rows_in("out")] == cells


def test_numbers_as_programs_write_them_are_not_called_codes(shardmill: Shardmill) -> None:
    Path("a.csv").write_text("x\n1e-05\n1e+20\n1.5e3\n100\n")
    assert "codes" not in shardmill("convert", "a.csv", "-o", "out").out


def test_a_code_beyond_float32_is_a_reject_that_names_the_type_of_text(shardmill: Shardmill, rows_of: Convert) -> None:
    Path("a.csv").write_text("sku\n1e64\n7e94\n")
    screen = shardmill("convert", "a.csv", "-o", "out")
    assert screen.code == 4
    options = options_after("in CSV or JSON lines:", screen.err)
    assert [row["sku"] for row in rows_of("a.csv", *options)] == ["1e64", "7e94"]


def picture(kind: str) -> bytes:
    memory = io.BytesIO()
    Image.new("RGB", (4, 3), (9, 99, 200)).save(memory, kind)
    return memory.getvalue()


@pytest.mark.parametrize(
    ("kind", "before"), [("PNG", ""), ("JPEG", ""), ("GIF", ""), ("WEBP", ""), ("PNG", "data:image/png;base64,")]
)
def test_pictures_in_base64_are_said_and_read_by_the_key_that_is_said(
    shardmill: Shardmill, rows_of: Convert, kind: str, before: str
) -> None:
    data = picture(kind)
    Path("a.csv").write_text(f'id,pic\n1,"{before}{base64.b64encode(data).decode()}"\n')
    screen = shardmill("convert", "a.csv", "-o", "out")
    options = options_after("to read them:", screen.out)
    row = rows_of("a.csv", *options)[0]
    assert (row["pic/encoded"], row["pic/width"], row["pic/height"]) == (data, 4, 3)


def test_text_that_is_no_base64_is_a_reject(shardmill: Shardmill) -> None:
    good = base64.b64encode(picture("PNG")).decode()
    Path("a.csv").write_text(f"pic\n{good}\n{good[:-3]}!\n")
    screen = shardmill("convert", "a.csv", "-o", "out", "--set", "schema.columns.pic.image=base64")
    assert screen.code == 4
    assert "is not base64" in screen.err


def test_objects_in_cells_are_said_to_stay_text(shardmill: Shardmill) -> None:
    Path("a.csv").write_text("""m\n"{'k': 1}"\n"{'k': 2}"\n""")
    assert 'column "m" holds objects as text' in shardmill("convert", "a.csv", "-o", "out").out


@pytest.mark.parametrize("lines", ["run 7, sensor B\n", "run 7\nsensor B, cold\n"])
def test_a_header_behind_lines_of_comments_is_read_as_numpy_writes_it(
    lines: str, shardmill: Shardmill, rows_of: Convert
) -> None:
    np.savetxt("a.csv", np.array([[1, 2, 3], [4, 5, 6]]), fmt="%d", delimiter=",", header=f"{lines}x,y,z")
    screen = shardmill("convert", "a.csv", "-o", "out")
    assert (screen.code, screen.err.count("--")) == (1, 1)
    options = ("--set", f"input.skip_lines={lines.count(chr(10))}")
    assert shlex.split(screen.err)[-2:] == [*options]
    assert rows_of("a.csv", *options) == [{"x": 1, "y": 2, "z": 3}, {"x": 4, "y": 5, "z": 6}]


def test_the_sign_of_a_comment_before_a_header_is_no_part_of_a_name_and_is_said(shardmill: Shardmill) -> None:
    Path("a.csv").write_text("# a,b\n1,x\n2,y\n")
    screen = shardmill("convert", "a.csv", "-o", "out")
    assert 'a.csv: the header begins with "# a", as in a comment: the column is "a"' in screen.out
    assert rows_in("out") == TWO


def test_rows_without_a_value_that_are_rejects_are_not_said_to_become_records(shardmill: Shardmill) -> None:
    Path("a.csv").write_text("a,b\n1,x\n,\n2,y\n")
    assert "to reject it: --set schema.columns.a.nullable=false" in shardmill("convert", "a.csv", "-o", "n").out
    options = ("--set", "schema.columns.a.nullable=false", "--max-rejects", "1")
    screen = shardmill("convert", "a.csv", "-o", "out", *options)
    assert (screen.code, "no value" in screen.out) == (0, False)
    assert rows_in("out") == TWO


def test_numbers_in_quotes_that_may_be_empty_are_said_and_read_by_the_line_that_is_said(shardmill: Shardmill) -> None:
    Path("a.csv").write_text('"step","run - loss","note"\n"0","0.9","NA"\n"1","","x"\n"2","0.5","y"\n')
    screen = shardmill("convert", "a.csv", "-o", "out")
    line = re.search(r'"run - loss" stays text: all are numbers but "" .*if that means null: (--set .*)', screen.out)
    assert line, screen.out
    assert shardmill("convert", "a.csv", "-o", "again", *shlex.split(line[1])).code == 0
    rows = open_dataset("again")["train"].to_arrow().to_pylist()
    assert [row["run - loss"] for row in rows] == [pytest.approx(0.9), None, 0.5]
    assert [row["note"] for row in rows] == ["NA", "x", "y"]


def test_a_first_line_of_counts_and_classes_is_said_with_the_options_that_read_the_rows(shardmill: Shardmill) -> None:
    Path("iris.csv").write_text("20,2,setosa,versicolor,virginica\n5.1,3.5,0\n4.9,3.0,1\n")
    screen = shardmill("convert", "iris.csv", "-o", "out")
    options = re.search(r"holds counts, as scikit-learn writes it: (.*?); else add the cells", screen.err)
    assert (screen.code, bool(options)) == (4, True), screen.err
    assert options
    assert shardmill("convert", "iris.csv", "-o", "out", *options[1].split()).code == 0
    rows = open_dataset("out")["train"].to_arrow().to_pylist()
    assert [row["column_2"] for row in rows] == [0, 1]
    assert [row["column_0"] for row in rows] == pytest.approx([5.1, 4.9])


@pytest.mark.parametrize(
    ("text", "said", "rows"),
    [
        ("a;n\nx;3\ny;1.500\nz;20\n", "if the point groups thousands:", {"n": [3, 1500, 20]}),
        ("a;n\nx;246.243\ny;126.000\n", "if the point groups thousands:", {"n": [246243, 126000]}),
        ("a;n\nx;3.645.000\ny;126.000\n", "unless it is declared;", {"n": [3645000, 126000]}),
        (
            "m;n\n1.234,5;3\n99,0;1.500\n",
            'if the point groups thousands, as the comma of "m" suggests:',
            {"m": [1234.5, 99], "n": [3, 1500]},
        ),
        ("n\tp\n3.107\t1,5 %\n12\t2,0 %\n", "if the point groups thousands:", {"n": [3107, 12]}),
    ],
    ids=["few", "all", "one of millions", "a decimal comma beside", "tabs, and a decimal comma beside"],
)
def test_points_that_may_group_thousands_are_said_with_the_keys_that_read_them(
    shardmill: Shardmill, rows_of: Convert, text: str, said: str, rows: dict[str, list[float]]
) -> None:
    Path("a.csv").write_text(text)
    screen = shardmill("convert", "a.csv", "-o", "out")
    assert screen.code == 0
    read = rows_of("a.csv", *options_after(said, screen.out))
    assert {name: [row[name] for row in read] for name in rows} == rows


@pytest.mark.parametrize(
    "text",
    [
        "a;n\nx;0.500\ny;1.500\n",
        "a;n\nx;1.50\ny;1.500\n",
        "a,n\nx,1.500\n",
        "a;n\nx;1\ny;1500\n",
        "a\tn\nx, 1\t1.500\n",
    ],
)
def test_points_that_group_no_thousands_are_no_matter(shardmill: Shardmill, text: str) -> None:
    Path("a.csv").write_text(text)
    assert "groups thousands" not in shardmill("convert", "a.csv", "-o", "out").out


def test_a_later_part_of_a_column_tells_that_its_points_are_decimal() -> None:
    grouped, other = Evidence("float64", 0, look=Look(GROUPED, "1.500")), Evidence("float64", 0)
    whole = Evidence("int64", 0)
    joined = [join_evidence(*pair).look for pair in ((grouped, other), (other, grouped), (grouped, whole))]
    assert joined == [None, None, grouped.look]
