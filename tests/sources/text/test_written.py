"""Text as people write values: signs of numbers, forms of dates, what stands around them."""

from __future__ import annotations

import datetime as dt
import json
import re
import shlex
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shardmill.pipelines import append, convert
from shardmill.pipelines.config.load import load_config
from shardmill.transforms.dataset.reading.open_dataset import open_dataset
from shardmill.transforms.errors import ConfigError, SchemaError
from shardmill.transforms.format.schema.schema import ColumnRule, Feature
from shardmill.transforms.recipe.step import Column, Stepped
from shardmill.transforms.sources.text.written import Written, missing_keys, ways_to_read

from ...command_line import Shardmill
from ...tiers import examples


def read(step: Written, *cells: str | None) -> list[Any]:
    """Return what cells are read as, the code of a reject for those that are not."""
    done = step.apply(pa.record_batch({"x": pa.array(cells, pa.string())}), "a.csv")
    assert isinstance(done, Stepped)
    bad = {problem.row: problem.error.code for problem in done.problems}
    return [bad.get(row, value) for row, value in enumerate(done.batch["x"].to_pylist())]


FLOAT, INT = ColumnRule("float64"), ColumnRule("int64")
GERMAN = Written("x", FLOAT, strip="€% ", decimal=",", thousands=".")


def test_numbers_with_a_decimal_comma_groups_and_signs_around_them() -> None:
    assert read(GERMAN, "1.234,50 €", "12 %", "0,5", "-1.234.567", None, "7", "1e3", "nan")[:7] == [
        1234.5, 12.0, 0.5, -1234567.0, None, 7.0, 1000.0,
    ]  # fmt: skip


@pytest.mark.parametrize("cell", ["1.5", "1.23.456", "12.34,5", "1,2,3", "1234.567", "", "€", "1,", ",", "1 234", "x"])
def test_what_is_not_written_so_is_a_reject_and_no_other_number(cell: str) -> None:
    assert read(GERMAN, "1,5", cell, "2,5") == [1.5, "BAD_TYPE", 2.5]


def test_whole_numbers_with_commas_between_thousands() -> None:
    step = Written("x", INT, thousands=",")
    assert read(step, "1,234", "12", "1,234,567", "1,5", "12,34", "9,223,372,036,854,775,808") == [
        1234, 12, 1234567, "BAD_TYPE", "BAD_TYPE", "INT_OVERFLOW",
    ]  # fmt: skip


def test_blanks_as_signs_of_thousands_and_apostrophes() -> None:
    assert read(Written("x", FLOAT, thousands=" ", decimal=","), "1 234,5") == [1234.5]
    assert read(Written("x", FLOAT, thousands="'"), "1'234.5") == [1234.5]


@settings(max_examples=examples(200), deadline=None)
@given(value=st.integers(-(2**63), 2**63 - 1), sign=st.sampled_from([",", ".", " ", "'", "_"]))
def test_every_integer_comes_back_from_its_groups(value: int, sign: str) -> None:
    assert read(Written("x", INT, thousands=sign), f"{value:,}".replace(",", sign)) == [value]


MONEY = [
    ("-$268.75", -268.75), ("$-268.75", -268.75), ("$268.75", 268.75), ("- $ 268.75", -268.75), ("+$1", 1.0),
    ("268.75 $", 268.75), ("\u2212$5", -5.0),
    ("-268.75$", -268.75), ("$0.00", 0.0), (" -$ .5 ", -0.5), ("-$inf", float("-inf")),
]  # fmt: skip


@pytest.mark.parametrize(
    ("strip", "cells", "wanted"),
    [
        ("m²", ["5 m²", "m² 6", "5²", "5 m", "-7"], [5.0, 6.0, "BAD_TYPE", "BAD_TYPE", -7.0]),
        ("m", ["5 m", "-5m", "m 5", "5 mm", "5 km", "5"], [5.0, -5.0, 5.0, "BAD_TYPE", "BAD_TYPE", 5.0]),
        ("EUR/kg", ["5 EUR/kg", "EUR 5", "5 g"], [5.0, 5.0, "BAD_TYPE"]),
        ("US$", ["US$5", "-US$ 5", "5 $US", "SU$5"], [5.0, -5.0, 5.0, "BAD_TYPE"]),
        ("°C", ["-3 °C", "3°C", "3 C", "3 °F"], [-3.0, 3.0, 3.0, "BAD_TYPE"]),
    ],
)
def test_words_that_strip_names_are_taken_off_numbers_whole(strip: str, cells: list[str], wanted: list[Any]) -> None:
    assert read(Written("x", FLOAT, strip=strip), *cells) == wanted


UNCLEAR = [
    "268.75-",
    "$268.75-",
    "--$5",
    "-$-5",
    "$-$-5",
    "(-5)",
    "(5",
    "5)",
    "()",
    "-(5)",
    "((5))",
    "$",
    "-$",
]
BRACKETS = [("(268.75)", -268.75), ("($268.75)", -268.75), ("$(268.75)", -268.75), ("( $ 5 )", -5.0), ("(5)$", -5.0)]


@pytest.mark.parametrize("brackets", [False, True])
def test_what_strip_names_is_taken_off_on_both_sides_of_a_sign_and_the_sign_is_kept(brackets: bool) -> None:
    step = Written("x", FLOAT, strip="$", brackets=brackets)
    assert read(step, *(cell for cell, _ in MONEY)) == [value for _, value in MONEY]
    assert read(step, *UNCLEAR) == ["BAD_TYPE"] * len(UNCLEAR)


def test_brackets_are_less_than_zero_only_where_that_is_declared() -> None:
    cells = [cell for cell, _ in BRACKETS]
    assert read(Written("x", FLOAT, strip="$"), *cells) == ["BAD_TYPE"] * len(cells)
    assert read(Written("x", FLOAT, strip="$", brackets=True), *cells) == [value for _, value in BRACKETS]
    german = Written("x", INT, strip="€", decimal=",", thousands=".", brackets=True)
    assert read(german, "(1.234 €)", "€ 7", "(1.23)") == [-1234, 7, "BAD_TYPE"]
    assert read(Written("x", ColumnRule(), brackets=True), "(1.5)", "2") == [-1.5, 2.0]


@settings(max_examples=examples(200), deadline=None)
@given(
    value=st.floats(allow_nan=False, allow_infinity=False),
    before=st.text("$ €", max_size=3),
    within=st.text("$ €", max_size=3),
    after=st.text("$ €", max_size=3),
)
def test_every_number_keeps_its_sign_among_signs_of_money(value: float, before: str, within: str, after: str) -> None:
    text, sign = repr(abs(value)), "-" if repr(value).startswith("-") else ""
    assert read(Written("x", FLOAT, strip="$€"), f"{before}{sign}{within}{text}{after}") == [value]


@pytest.mark.parametrize("key", ["type", "decimal", "thousands", "negative"])
@pytest.mark.parametrize("strip", ["$-", "$+", "$5", "\u2212", "()", "$."])
def test_strip_of_a_column_of_numbers_refuses_what_makes_another_number(
    strip: str, key: str, shardmill: Shardmill
) -> None:
    value = {"type": "float64", "decimal": ",", "thousands": " ", "negative": "brackets"}[key]
    Path("a.csv").write_text("x\n-$268.75\n$1\n")
    if (key, strip) == ("decimal", "$."):
        value, strip = ",", "$,"
    with pytest.raises(SchemaError, match="off numbers, which makes other numbers of them") as caught:
        convert("a.csv", output="out", schema={"columns": {"x": {"strip": strip, key: value}}})
    options = re.findall(r"--set (?:'[^']*'|\S+)", str(caught.value))
    typed = ["--set", f"schema.columns.x.type={'float64' if key != 'decimal' else 'string'}"]
    if "$" in strip and key != "decimal":
        assert shardmill("convert", "a.csv", "-o", "out", *typed, *shlex.split(" ".join(options))).code == 0
        assert rows() == [{"x": -268.75}, {"x": 1.0}]


def test_strip_of_a_column_of_text_takes_any_sign() -> None:
    Path("a.csv").write_text("x\n--a--\n(b)\n")
    convert("a.csv", output="out", schema={"columns": {"x": {"strip": "-()"}}})
    assert rows() == [{"x": "a"}, {"x": "b"}]


@given(st.lists(st.text(st.sampled_from("ab\\\n\t\r\v\b\f'\"Nntrx\x1aé")), min_size=1, max_size=9))
@settings(max_examples=examples(400), deadline=None)
def test_text_that_a_database_escaped_is_that_text_again(texts: list[str]) -> None:
    signs = {"\\": r"\\", "\n": r"\n", "\t": r"\t", "\r": r"\r", "\v": r"\v", "\b": r"\b", "\f": r"\f", "\x1a": r"\Z"}
    escaped = ["".join(signs.get(sign, sign) for sign in text) for text in texts]
    assert read(Written("x", ColumnRule(), escapes=True), *escaped, None) == [*texts, None]


def _put_money(kind: str, cells: list[str]) -> str:
    path = f"a.{kind}"
    if kind == "parquet":
        pq.write_table(pa.table({"n": range(len(cells)), "x": cells}), path)
    else:
        lines = [
            json.dumps({"n": n, "x": cell}) if kind == "jsonl" else f'{n},"{cell}"' for n, cell in enumerate(cells)
        ]
        Path(path).write_text("\n".join([*([] if kind == "jsonl" else ["n,x"]), *lines, ""]))
    return path


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize("strip", [None, "€"])
def test_the_options_that_a_reject_names_read_money_in_every_format(
    kind: str, strip: str | None, shardmill: Shardmill
) -> None:
    path = _put_money(kind, ["-$1,268.75", "($3.50)", "€4"])
    given = ["--set", "schema.columns.x.type=float64", "--set", f"schema.columns.x.strip={strip or 'true'}"]
    refused = shardmill("convert", path, "-o", "out", *given)
    assert refused.code == 4
    found = re.findall(r"--set (?:'(schema[^']*)'|(schema\S+))", refused.err)
    options = {key: value for one in found for key, _, value in ["".join(one).partition("=")]}
    options["schema.columns.x.strip"] = "".join(
        sorted({sign for one in found for sign in "".join(one) if sign in "$€"})
    )
    assert options.keys() == {f"schema.columns.x.{key}" for key in ("strip", "thousands", "negative")}
    words = [word for key, value in options.items() for word in ("--set", f"{key}={value}")]
    assert shardmill("convert", path, "-o", "out", *given[:2], *words).code == 0
    assert [row["x"] for row in rows()] == [-1268.75, -3.5, 4.0]


class TestDates:
    def test_each_cell_is_read_by_the_first_form_that_it_has(self) -> None:
        step = Written("x", ColumnRule(), formats=("%d.%m.%Y", "%Y/%m/%d"))
        assert read(step, "31.12.2024", "2024/2/1", None, "1.2.2024", "12-31-2024") == [
            dt.date(2024, 12, 31), dt.date(2024, 2, 1), None, dt.date(2024, 2, 1), "BAD_TYPE",
        ]  # fmt: skip

    @settings(max_examples=examples(100), deadline=None)
    @given(days=st.lists(st.dates(dt.date(1900, 1, 1)), min_size=1, max_size=5))
    def test_a_day_that_two_forms_read_differently_is_a_reject_whatever_rows_are_beside_it(
        self, days: list[dt.date]
    ) -> None:
        step = Written("x", ColumnRule(), formats=("%d/%m/%Y", "%m/%d/%Y", "%Y-%m-%d"))
        cells = [day.strftime(form) for day in days for form in step.formats]
        found = read(step, *cells)
        assert found == [one for cell in cells for one in read(step, cell)]
        unclear = [day.day <= 12 and day.day != day.month for day in days]
        wanted = [["BAD_TYPE"] * 2 + [day] if bad else [day] * 3 for day, bad in zip(days, unclear, strict=True)]
        assert found == [one for three in wanted for one in three]

    def test_the_reject_of_such_a_day_shows_both_and_names_the_list_without_either(self) -> None:
        step = Written("x", ColumnRule(), formats=("%d/%m/%Y", "%m/%d/%Y", "%Y-%m-%d"))
        done = step.apply(pa.record_batch({"x": ["02/03/2024"]}), "a.csv")
        assert done.problems[0].error.message == (
            '"02/03/2024" is 2024-03-02 as %d/%m/%Y and 2024-02-03 as %m/%d/%Y; name the form that it has: --set '
            """'schema.columns.x.format=["%d/%m/%Y", "%Y-%m-%d"]', or --set """
            """'schema.columns.x.format=["%m/%d/%Y", "%Y-%m-%d"]'"""
        )

    @pytest.mark.parametrize(
        "cell", ["31/02/2024", "00/01/2024", "29/02/2023", "32/01/2024", "1/13/2024", "1/1/24", "1/1/2024x"]
    )
    def test_a_day_that_there_is_not_is_a_reject_and_no_other_day(self, cell: str) -> None:
        assert read(Written("x", ColumnRule(), formats=("%d/%m/%Y",)), cell) == ["BAD_TYPE"]

    def test_a_form_with_hours_makes_timestamps(self) -> None:
        step = Written("x", ColumnRule(), formats=("%b %d, %Y %I:%M:%S %p", "%d.%m.%Y %H:%M:%S.%f"))
        assert read(step, "Feb 3, 2024 10:11:12 PM", "03.02.2024 01:02:03.000004") == [
            dt.datetime(2024, 2, 3, 22, 11, 12), dt.datetime(2024, 2, 3, 1, 2, 3, 4),
        ]  # fmt: skip

    def test_an_offset_is_taken_into_account(self) -> None:
        step = Written("x", ColumnRule("timestamp", timezone="UTC"), formats=("%Y-%m-%d %H:%M %z",))
        assert read(step, "2024-02-01 12:00 +0200") == [dt.datetime(2024, 2, 1, 10, tzinfo=dt.UTC)]
        berlin = ColumnRule("timestamp", timezone="Europe/Berlin")
        step = Written("x", berlin, formats=("%d.%m.%Y %H:%M", "%Y-%m-%d %H:%M %z"))
        found = read(step, "2024-02-01 12:00 +0200", "2024-10-27 02:30 +0100", "01.02.2024 11:00")
        moments = [(2, 1, 10), (10, 27, 1, 30), (2, 1, 10)]
        assert [one.astimezone(dt.UTC) for one in found] == [dt.datetime(2024, *one, tzinfo=dt.UTC) for one in moments]

    def test_a_local_time_that_is_there_twice_or_never_is_a_reject(self) -> None:
        step = Written("x", ColumnRule("timestamp", timezone="Europe/Berlin"), formats=("%d.%m.%Y %H:%M",))
        found = read(step, "01.07.2024 12:00", "27.10.2024 02:30", "31.03.2024 02:30")
        assert found[0].astimezone(dt.UTC) == dt.datetime(2024, 7, 1, 10, tzinfo=dt.UTC)
        assert found[1:] == ["BAD_TYPE", "BAD_TYPE"]

    def test_the_reject_of_a_local_time_that_no_clock_showed_says_so(self) -> None:
        step = Written("x", ColumnRule("timestamp", timezone="Europe/Berlin"), formats=("%d.%m.%Y %H:%M",))
        done = step.apply(pa.record_batch({"x": ["31.03.2024 02:30", "27.10.2024 02:30"]}), "a.csv")
        never, twice = (problem.error.message for problem in done.problems)
        assert "does not exist in Europe/Berlin" in never
        assert "twice" in twice

    def test_a_time_of_day_has_a_form_too(self) -> None:
        for rule in (ColumnRule("time"), ColumnRule()):
            assert read(Written("x", rule, formats=("%I:%M %p",)), "01:30 PM") == [dt.time(13, 30)]

    @settings(max_examples=examples(200), deadline=None)
    @given(day=st.dates(dt.date(1900, 1, 1)), form=st.sampled_from(["%d.%m.%Y", "%m/%d/%Y", "%Y%m%d", "%d %B %Y"]))
    def test_every_day_comes_back_from_its_form(self, day: dt.date, form: str) -> None:
        assert read(Written("x", ColumnRule(), formats=(form,)), day.strftime(form)) == [day]


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


COLUMNS = {
    "price": {"decimal": ",", "thousands": ".", "strip": "€"},
    "share": {"strip": "%", "type": "float64"},
    "day": {"format": "%d.%m.%Y"},
    "name": {"strip": True},
}


def rows(path: str = "out") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = open_dataset(path).to_arrow().to_pylist()
    return found


def test_a_file_is_converted_and_appended_to_with_the_same_config(shardmill: Shardmill) -> None:
    Path("a.csv").write_text("price;share;day;name\n1.234,50 €;12%;31.12.2024; Ada \n0,5;7 %;1.2.2024;Bob\n")
    Path("b.csv").write_text("price;share;day;name\n9,99 €;1%;02.01.2025;Eve\nn/a;1%;02.01.2025;Eve\n")
    settings = {"schema": {"columns": COLUMNS}}
    convert("a.csv", output="out", **settings)
    assert rows()[0] == {"price": 1234.5, "share": 12.0, "day": dt.date(2024, 12, 31), "name": "Ada"}
    summary = append("b.csv", output="out", max_rejects=1, **settings)
    assert rows()[-1]["price"] == pytest.approx(9.99)
    assert summary.manifest.rejects.by_code == {"BAD_TYPE": 1}
    reject = Path("out/rejects/00000002.jsonl").read_text()
    assert '"row": 2' in reject
    assert '\\"n/a\\" is not a number that is written like 1.234,5' in reject


@pytest.mark.parametrize(
    ("cell", "rule"),
    [
        (" 1,5 pieces €", {"strip": "€", "decimal": ","}),
        ("  cheap € ", {"strip": "€", "type": "float64"}),
        ("99.999.999.999.999.999.999 €", {"strip": "€", "decimal": ",", "thousands": ".", "type": "int64"}),
        (" 31.02.2024 ", {"strip": True, "format": "%d.%m.%Y"}),
    ],
)
def test_a_reject_shows_the_value_that_the_file_holds_with_what_was_stripped(cell: str, rule: dict[str, Any]) -> None:
    Path("a.csv").write_text(f"id;x\n1;{cell}\n")
    convert("a.csv", output="out", max_rejects=1, schema={"columns": {"x": rule}})
    (error,) = json.loads(Path("out/rejects/00000001.jsonl").read_text())["errors"]
    assert error["value"] == cell
    assert error["message"].startswith(f'"{cell}" is ')


def test_text_of_parquet_is_read_alike_and_can_be_filtered_and_filled() -> None:
    pq.write_table(pa.table({"price": ["1.000,5", None, "2,5"]}), "a.parquet")
    columns = {"price": {"decimal": ",", "thousands": ".", "null": {"fill": 0.0}}}
    convert("a.parquet", output="out", where="price > 5 or is_null(price)", schema={"columns": columns})
    assert rows() == [{"price": 1000.5}, {"price": 0.0}]


def test_a_column_that_is_left_out_needs_no_form() -> None:
    Path("a.csv").write_text("id;price\n1;1,5\n")
    convert("a.csv", output="out", columns=["id"], schema={"columns": {"price": {"decimal": ","}}})
    assert rows() == [{"id": 1}]


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ({"decimal": ",", "thousands": ","}, 'decimal and thousands are both ","'),
        ({"decimal": ",,"}, '",," is not one sign'),
        ({"thousands": "0"}, '"0" is not one sign'),
        ({"format": "DD.MM.YYYY"}, '"DD.MM.YYYY" is no format of dates and times, like "%d.%m.%Y"'),
        ({"format": []}, "is empty; give at least one"),
        ({"format": "%Q"}, '"%Q" is no format of dates and times'),
        ({"format": "%d.%m.%Y %"}, "is no format of dates and times"),
        ({"format": "%Y %Y"}, "its parts, each once, are %A"),
        ({"format": "%d.%m"}, '"%d.%m" has no year (%Y or %y)'),
    ],
)
def test_a_sign_or_a_form_that_is_none_is_refused_with_the_config(rule: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_config({"input": {"paths": ["a.csv"]}, "output": {"path": "out"}, "schema": {"columns": {"x": rule}}})
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        (
            {"decimal": ","},
            "strip, decimal, thousands, negative, format, true_values and false_values are for text, "
            "and it holds int64; leave them out",
        ),
        ({"format": "%H:%M", "type": "timestamp"}, "a form without a year (%Y or %y) is that of no"),
        ({"format": "%Y", "type": "int64"}, "a format is that of dates and times, and the type is int64"),
        ({"decimal": ",", "type": "date"}, "decimal, thousands and negative are for numbers, and the type is date32"),
    ],
)
def test_what_does_not_go_with_a_column_is_refused_by_name(rule: dict[str, Any], said: str) -> None:
    values: list[Any] = [1] if "decimal" in rule and "type" not in rule else ["1"]
    step = Written(
        "x",
        ColumnRule(rule.get("type")),
        decimal=rule.get("decimal", "."),
        formats=(rule["format"],) if "format" in rule else (),
    )
    with pytest.raises(SchemaError) as caught:
        step.plan([Column(pa.field("x", pa.array(values).type), "x")])
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("values", "type_", "keys"),
    [
        (["1,234", "5,678"], "float64", "thousands=,"),
        (["1,5", "2,25"], "float64", "decimal=,"),
        (["1.5"], "float64", ""),
        (["$1,234.50", "$3"], "float64", "strip=$ thousands=,"),
        (["-$1,234.50", "$-3"], "float64", "strip=$ thousands=,"),
        (["5-"], "float64", None),
        (["€ 5"], "int64", "strip=€ type=int64"),
        ([" 5 ", "6"], "int64", "strip=true type=int64"),
        (["cheap"], "float64", None),
        (["(5)"], "float64", None),  # a bookkeeper's -5, or a note
        (["(5.00)", "1,234.50"], "float64", "thousands=, negative=brackets"),
        (["5 kg", "6 kg"], "float64", "strip=kg type=float64"),
        (["2024/12/31", "2024/01/02"], "date", "format=%Y/%m/%d"),
        (["12/31/2024"], "date", "format=%m/%d/%Y"),
        (["01/02/2024"], "date", "format=FORM"),  # the 1st of February, or the 2nd of January
        (["31.12.2024 13:05"], "timestamp", "format=%d.%m.%Y %H:%M"),
        (["13.05"], "time", "format=%H.%M"),
    ],
)
def test_keys_are_named_that_read_all_values_and_none_where_the_values_do_not_tell(
    values: list[str], type_: str, keys: str | None
) -> None:
    kind, unit = ("float", None) if type_ == "float64" else ("int64", "us" if type_ in ("timestamp", "time") else None)
    found = missing_keys({"x": values}, {"x": Feature("x", kind, type_, unit=unit)})
    shown = " ".join(str(one).removeprefix("--set ").strip("'").removeprefix("schema.columns.x.") for one in found)
    assert shown == (keys or "")


@settings(max_examples=examples(300), deadline=None)
@given(
    st.sampled_from(["", "$", "("]),
    st.tuples(*map(st.sampled_from, ([" a", "kg", "%"], [".", "-", "/", "²", ""], ["m", "", ")"]))).map("".join),
    st.lists(st.from_regex(r"-?[0-9]{1,3}(\.[0-9])?", fullmatch=True), min_size=1, max_size=4),
    st.sampled_from(["int64", "float64"]),
)
def test_a_way_is_found_for_no_number_that_it_would_be_refused_for(
    before: str, behind: str, numbers: list[str], kind: str
) -> None:
    cells = [f"{before}{number}{behind}" for number in numbers]
    for keys in ways_to_read(cells, Feature("x", "float" if kind == "float64" else "int64", kind)):
        brackets = keys.get("negative") == "brackets"
        own = {key: keys[key] for key in ("decimal", "thousands") if key in keys}
        strip = keys.get("strip", False)
        step = Written("x", ColumnRule(kind), True if strip == "true" else strip, **own, brackets=brackets)
        step.plan([Column(pa.field("x", pa.string()))])
        assert not [one for one in read(step, *cells) if isinstance(one, str)], keys
