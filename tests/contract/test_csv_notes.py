"""What the screen says of CSV that is in order, and yet not what its user may take it for."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from shardmill.pipelines import convert
from shardmill.pipelines.prepare.from_config import conversion_of
from shardmill.pipelines.runs.convert import run_convert
from shardmill.pipelines.runs.python_api import load_call
from shardmill.pipelines.screens.summary_screen import Screen
from shardmill.transforms.dataset.reading.open_dataset import open_dataset
from shardmill.transforms.dataset.storage.manifest_files import read_manifest
from shardmill.transforms.errors import SchemaError
from shardmill.transforms.sources.csv.parse import CsvLimits

from ..file_sources import made_source


def detected(screen: Any) -> list[str]:
    assert (screen.code, screen.err) == (0, "")
    return [line.removeprefix("Detected: ") for line in screen.out.splitlines() if line.startswith("Detected: ")]


def kinds(desk: Any, folder: str = "out") -> dict[str, str]:
    schema = read_manifest(str(desk.root / folder)).schema
    return {feature.name: feature.type for feature in schema or ()}


def assert_both_say(desk: Any, args: list[str], line: str) -> None:
    """The dry run and the run say it, in one line."""
    for more in (["--dry-run"], []):
        found = [note for note in detected(desk.convert(*args, *more)) if "the delimiter is" not in note]
        assert found == [line]


COMMAS = {
    "decimals": (
        b"id;price\n1;1,5\n2;\n3;-2,25\n4;7\n",
        'column "price" stays text: "1,5" (a.csv row 1) looks like a number with a decimal comma, which is not read as '
        "one unless it is declared; --set schema.columns.price.decimal=,",
        [1.5, None, -2.25, 7.0],
    ),
    "decimals with points between thousands, and a word": (
        b"id;price\n1;1.234,5\n2;-\n3;0,125\n",
        'column "price" stays text: "1.234,5" (a.csv row 1) looks like a number with a decimal comma, which is not '
        "read as one unless it is declared; --set schema.columns.price.decimal=, --set "
        "schema.columns.price.thousands=. "
        "--set 'schema.columns.price.null_values=[\"-\"]'",
        [1234.5, None, 0.125],
    ),
    "thousands": (
        b'id,price\n1,"1,234"\n2,"12,345,678"\n3,9\n',
        'column "price" stays text: "1,234" (a.csv row 1) looks like a number with commas between thousands, which is '
        "not read as one unless it is declared; --set schema.columns.price.thousands=, "
        "--set schema.columns.price.type=int64",
        [1234, 12345678, 9],
    ),
}


@pytest.mark.parametrize("case", COMMAS)
def test_numbers_with_commas_stay_text_and_the_options_that_are_named_read_them(desk: Any, case: str) -> None:
    body, line, values = COMMAS[case]
    desk.put({"a.csv": body})
    assert_both_say(desk, ["a.csv"], line)
    assert kinds(desk)["price"] == "string"
    (desk.root / "out").rename(desk.root / "text")
    screen = desk.convert("a.csv", *shlex.split(line.split("declared; ")[1]))
    assert (screen.code, screen.err) == (0, "")
    assert kinds(desk)["price"] == ("int64" if case == "thousands" else "float64")
    assert [row.get("price") for row in desk.records()] == values


def test_several_columns_with_commas_and_names_with_blanks_are_declared_each(desk: Any) -> None:
    desk.put({"a.csv": b"id;unit price;vat\n1;1,5;0,19\n", "b.csv": b"id;unit price;vat\n2;2,5;0,07\n"})
    line = next(note for note in detected(desk.convert("a.csv", "b.csv", "--dry-run")) if "decimal comma" in note)
    options = line.split("declared; ")[1]
    assert options == "--set 'schema.columns.\"unit price\".decimal=,' --set schema.columns.vat.decimal=,"
    assert desk.convert("a.csv", "b.csv", *shlex.split(options)).code == 0
    assert open_dataset(desk.root / "out").to_arrow("train").column("unit price").to_pylist() == [1.5, 2.5]


WORDS = {
    "one word": (
        b"id,price,name\n1,1.5,x\n2,N/A,N/A\n3,,y\n4,2,z\n",
        [],
        'column "price" stays text: all are numbers but "N/A" (a.csv row 2); if that means null: '
        "--set 'schema.columns.price.null_values=[\"N/A\"]'",
        {"id": "int64", "name": "string", "price": "float64"},
        [1.5, None, None, 2.0],
    ),
    "two columns": (
        b"id,price,zip\n1,?,-\n2,1.5,7\n3,2.5,8\n",
        [],
        'columns "price", "zip" stay text: all are numbers but "-" (a.csv row 1), "?" (a.csv row 1); if that means '
        "null: --set 'schema.columns.price.null_values=[\"?\"]' --set 'schema.columns.zip.null_values=[\"-\"]'",
        {"id": "int64", "price": "float64", "zip": "int64"},
        [None, 1.5, 2.5],
    ),
    "nulls that were declared before": (
        b"id,price\n1,NA\n2,5\n3,6\n4,none\n",
        ["--set", "schema.columns.price.null_values=[NA]"],
        'column "price" stays text: all are numbers but "none" (a.csv row 4); if that means null: '
        '--set \'schema.columns.price.null_values=["NA", "none"]\'',
        {"id": "int64", "price": "int64"},
        [None, 5, 6, None],
    ),
}


@pytest.mark.parametrize("case", WORDS)
def test_a_few_words_keep_a_column_text_and_the_option_that_is_named_makes_it_numbers(desk: Any, case: str) -> None:
    body, args, line, types, values = WORDS[case]
    desk.put({"a.csv": body})
    assert_both_say(desk, ["a.csv", *args], line)
    assert kinds(desk)["price"] == "string"
    screen = desk.convert("a.csv", *shlex.split(line.split("means null: ")[1]), "--overwrite")
    assert (screen.code, detected(screen)) == (0, [])
    assert kinds(desk) == types
    assert [row.get("price") for row in desk.records()] == values


@pytest.mark.parametrize(
    ("cells", "line"),
    [
        (
            "1 2 12O 4 5 6",
            'column "price" stays text: all are numbers but "12O" (a.csv row 3); fix it in the file, or name '
            "in null_values of the column what means null",
        ),
        (
            "1 2 12O 4 N/A N/A",
            'column "price" stays text: all are numbers but "12O" (a.csv row 3), "N/A" (a.csv row 5); if "N/A" means '
            'null: --set \'schema.columns.price.null_values=["N/A"]\'; fix "12O" in the file, or name '
            "in null_values of the column what means null",
        ),
        (
            "2 " * 200_000 + "sold sold",
            'column "price" stays text: all are numbers but "sold" (a.csv row 200001); fix it in the file, or name '
            "in null_values of the column what means null",
        ),
        (
            "1,5 12O 2,5 ? 1,5 2,5 3,5",
            'column "price" stays text: "1,5" (a.csv row 1) looks like a number with a decimal comma, which is not '
            'read as one unless it is declared; fix "12O" (a.csv row 2) in the file, then --set '
            "schema.columns.price.decimal=, --set 'schema.columns.price.null_values=[\"?\"]'",
        ),
    ],
)
def test_a_word_that_may_be_a_typo_is_shown_with_its_place_and_not_proposed_as_null(
    desk: Any, cells: str, line: str
) -> None:
    desk.put({"a.csv": "".join(f"{row}\n" for row in ("id;price", *(f"1;{cell}" for cell in cells.split()))).encode()})
    screen = desk.convert("a.csv", "--delimiter", ";")
    assert (screen.code, detected(screen)) == (0, [line])
    assert kinds(desk)["price"] == "string"


@pytest.mark.parametrize(
    "body",
    [
        b"a,b\n1,x\n2,y\n3,z\n",
        b"a,code\n1,00123\n2,N/A\n3,17\n",  # a leading zero keeps it text all the same
        b"a,grade\n1,1\n2,A\n3,2\n4,B\n",  # codes
        b"a,size\n1,1\n2,ten\n3,eleven\n4,5\n5,6\n6,7\n7,twelve\n8,one\n9,two\n",
        b'a,when\n1,"1,5"\n2,2024-01-02\n3,"July 4, 1776"\n',
    ],
)
def test_text_that_no_option_makes_numbers_is_no_note(desk: Any, body: bytes) -> None:
    desk.put({"a.csv": body})
    assert detected(desk.convert("a.csv")) == []


def test_a_declared_column_is_no_note(desk: Any) -> None:
    desk.put({"a.csv": b"a,b\n1,1\n2,N/A\n"})
    assert detected(desk.convert("a.csv", "--set", "schema.columns.b.type=string")) == []
    assert detected(desk.convert("a.csv", "--set", "schema.infer=none", "--overwrite")) == []


def test_rows_without_a_value_are_rejected_as_their_warning_says(desk: Any) -> None:
    desk.put({"a.csv": b"x y,b\n1,2\n,\n,\n3,\n"})
    screen = desk.convert("a.csv")
    (line,) = [line for line in screen.out.splitlines() if line.startswith("Warning: ")]
    assert line == (
        "Warning: a.csv: 2 rows have no value, and become empty records; to reject them: "
        "--set 'schema.columns.\"x y\".nullable=false' --max-rejects 2"
    )
    again = desk.convert("a.csv", *shlex.split(line.split("reject them: ")[1]), "--overwrite")
    assert (again.code, "Warning" in again.out) == (0, False)
    assert desk.records() == [{"x y": 1, "b": 2}, {"x y": 3}]


def nulls_lines(screen: Any) -> list[str]:
    return [line.split(":")[0] for line in screen.out.splitlines() if line.startswith("Nulls ")]


def test_a_csv_that_is_only_sampled_names_the_columns_in_which_nulls_were_found(desk: Any) -> None:
    desk.put({"a.csv": b"a,b,c\n1,,x\n2,3,y\n", "b.csv": b"a,b,c\n1,2,x\n"})

    def sampled(name: str) -> Any:
        source = made_source("csv", (name,), str(desk.root), limits=CsvLimits(auto_bytes=10))
        config = load_call(name, f"{name}.out", {}, data_given=False)
        Screen().ended(run_convert(replace(conversion_of(config), source=source)))
        return desk.capsys.readouterr()

    screen = sampled("a.csv")
    assert re.search(r"^a +int64 +int64 +yes$", screen.out, re.MULTILINE)
    assert nulls_lines(screen) == ["Nulls in b"]
    assert nulls_lines(sampled("b.csv")) == []


def test_a_csv_that_is_wholly_read_names_the_columns_in_which_nulls_were_found(desk: Any) -> None:
    desk.put({"a.csv": b"a,b,c\n1,,\n2,3,y\n"})
    assert nulls_lines(desk.convert("a.csv")) == ["Nulls in b, c"]


@pytest.mark.parametrize(
    ("price", "lost"),
    [("1.5", "2 values, none changed"), ("1.1", "2 values, relative error up to 2.2e-08")],
)
def test_what_is_said_of_narrowing_is_true_of_exact_values(desk: Any, price: str, lost: str) -> None:
    desk.put({"a.csv": f"price\n{price}\n0.25\n".encode()})
    assert f"Narrowed price: float64 to float32, {lost}\n" in desk.convert("a.csv").out


def test_an_integer_that_float64_rounds_is_never_called_exact(desk: Any) -> None:
    desk.put({"a.csv": b"n,x\n1,9007199254740993\n2,1.5\n"})
    screen = desk.convert("a.csv")
    assert (screen.code, "Narrowed" in screen.out) == (0, False)
    assert [row["x"] for row in desk.records()] == ["9007199254740993", "1.5"]
    line = (
        'a.csv row 1: column "x": PRECISION_LOSS: "9007199254740993" has more digits than a float64 can hold; declare '
        "it: --set schema.columns.x.type=string"
    )
    shutil.rmtree(desk.root / "out")
    args = ["a.csv", "--set", "schema.columns.x.type=float64"]
    desk.assert_rejected(args, "1 of 2 rows was rejected (PRECISION_LOSS 1)", [line], [{"n": 2, "x": 1.5}])


ROUNDED = 9007199254740993
FLOATS = ["--set", "schema.columns.x.type=float64"]
STRIPPED = [*FLOATS, "--set", "schema.columns.x.strip=true"]


@pytest.mark.parametrize(
    ("name", "values", "args"),
    [
        ("a.jsonl", [str(ROUNDED), "1.5"], FLOATS),
        ("a.jsonl", [str(ROUNDED), "1.5"], STRIPPED),
        ("a.jsonl", [ROUNDED, 1.5], []),
        ("a.jsonl", [[ROUNDED], [1.5]], []),
        ("a.parquet", [str(ROUNDED), "1.5"], STRIPPED),
        ("a.parquet", [ROUNDED, 1], FLOATS),
        ("a.parquet", [[ROUNDED], [1]], FLOATS),
    ],
)
def test_other_formats_reject_it_too(desk: Any, name: str, values: list[Any], args: list[str]) -> None:
    if name.endswith("parquet"):
        pq.write_table(pa.table({"x": values}), desk.root / name)
    else:
        (desk.root / name).write_text("".join(json.dumps({"x": value}) + "\n" for value in values))
    screen = desk.convert(name, *args)
    assert (screen.code, screen.err.count("PRECISION_LOSS: "), "kept exactly" in screen.err) == (4, 1, False)


@pytest.mark.parametrize(("value", "exact"), [(ROUNDED, False), (-ROUNDED, False), (ROUNDED - 1, True), (2**70, True)])
def test_a_decimal_as_float_is_called_exact_only_where_it_is(desk: Any, value: int, exact: bool) -> None:
    pq.write_table(
        pa.table({"x": pa.array([Decimal(value), Decimal("0.5")], pa.decimal128(38, 1))}), desk.root / "a.parquet"
    )
    screen = desk.convert("a.parquet", "--set", "schema.columns.x.as=float")
    assert (screen.code, "none changed" in screen.out) == (0, exact)
    assert desk.records() == [{"x": float(value)}, {"x": 0.5}]
    (narrowed,) = read_manifest(str(desk.root / "out")).narrowed
    assert (narrowed.max_relative_error == 0) == exact
    assert narrowed.max_relative_error < 1e-15


@pytest.mark.parametrize("values", [[ROUNDED, 1.5], [[ROUNDED, 1.5], [1, 2]], [2**64 - 1, -1]])
def test_lists_in_python_whose_integers_numpy_would_round_are_refused(desk: Any, values: list[Any]) -> None:
    with pytest.raises(SchemaError, match='column "x"'):
        convert(data={"x": values}, output=str(desk.root / "out"))
    convert(data={"x": [2**53, 1.5, float("inf"), float("nan")]}, output=str(desk.root / "out"))


@pytest.mark.parametrize(
    ("body", "line", "records"),
    [
        (b"0,1,2\n7,8,9\n", "0,1,2", [{"column_0": 0, "column_1": 1, "column_2": 2}]),
        (b"name,1990,1991\nx,7,8\n", "name,1990,1991", [{"column_0": "name", "column_1": 1990, "column_2": 1991}]),
    ],
)
def test_a_first_line_of_numbers_that_is_taken_for_names_is_said(
    desk: Any, body: bytes, line: str, records: list[dict[str, Any]]
) -> None:
    desk.put({"a.csv": body})
    note = f"a.csv: the first line is the header, though it holds numbers: {line}; if it is data: --no-header"
    assert_both_say(desk, ["a.csv"], note)
    assert detected(desk.convert("a.csv", "--set", "input.header=true", "--overwrite")) == []
    assert detected(desk.convert("a.csv", *note.rsplit(": ", 1)[1].split(), "--overwrite")) == []
    assert desk.records()[:1] == records


def test_a_first_line_of_numbers_that_repeat_is_never_lost(desk: Any) -> None:
    desk.put({"mnist.csv": b"0,0,0.0,255\n" * 300})
    refused = desk.convert("mnist.csv")
    assert "the first line looks like data, not like a header: 0,0,0.0,255; if it is data: --no-header" in refused.err
    names = "--set 'input.names=[a, b, c, d]'"
    assert desk.convert("mnist.csv", *shlex.split(names)).code == 1
    desk.assert_nothing_committed()
    for args in ("--no-header", f"--no-header {names}"):
        assert desk.convert("mnist.csv", *shlex.split(args), "--overwrite").code == 0
        assert len(desk.records()) == 300


def test_names_for_numbers_that_are_all_zero_do_not_take_their_first_row(desk: Any) -> None:
    desk.put({"a.csv": b"0,0\n" * 3})
    refused = desk.convert("a.csv", "--set", "input.names=[a, b]")
    assert (refused.code, "the first line looks like data" in refused.err) == (1, True)
    desk.assert_nothing_committed()


def test_the_header_of_a_table_of_text_is_shown_and_the_option_that_is_named_keeps_it_as_a_row(desk: Any) -> None:
    desk.put({"a.csv": b"user0,foo,bar0\nuser1,foo,bar1\n"})
    note = "a.csv: the first line is the header: user0, foo, bar0; if it is data: --no-header"
    assert_both_say(desk, ["a.csv"], note)
    assert detected(desk.convert("a.csv", note.rsplit(": ", 1)[1], "--overwrite")) == []
    assert len(desk.records()) == 2
    assert detected(desk.convert("a.csv", "--set", "input.header=true", "--overwrite")) == []


def test_of_many_columns_of_text_the_first_names_are_shown(desk: Any) -> None:
    desk.put({"a.csv": b"a,b,c,d,e,f\nu,v,w,x,y,z\n"})
    note = "a.csv: the first line is the header: a, b, c, d, e, ...; if it is data: --no-header"
    assert_both_say(desk, ["a.csv"], note)


def test_files_of_text_that_share_their_first_line_need_no_note_of_it(desk: Any) -> None:
    desk.put({"a.csv": b"name,city\nAda,London\n", "b.csv": b"name,city\nGrace,New York\n"})
    assert detected(desk.convert("a.csv", "b.csv")) == []


def test_what_was_detected_is_printed_before_an_error_also_by_a_quiet_command(desk: Any) -> None:
    desk.put({"a.csv": b"a;b\n" + b"1;2\n" * 20 + b"3\n"})
    screen = desk.convert("a.csv", "-q")
    detected, error, *_ = screen.err.splitlines()
    assert (screen.code, screen.out) == (4, "")
    assert detected.startswith('Detected: a.csv: the delimiter is ";": 2 columns in the first 22 records')
    assert error.startswith("error: 1 of 21 rows was rejected")


def test_two_delimiters_that_fit_are_asked_about_without_a_key_of_a_config(desk: Any) -> None:
    desk.put({"a.csv": b"a,b;c\n1,2;3\n"})
    screen = desk.convert("a.csv")
    assert (screen.code, screen.err.startswith("error: a.csv: the delimiter is unclear: ")) == (2, True)
    (fix,) = re.findall(r"declare it: (.*)\n", screen.err)
    assert desk.convert("a.csv", *shlex.split(fix)).code == 0
