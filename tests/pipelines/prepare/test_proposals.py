"""What `init` and a dry run propose for columns of text, each line of which is followed."""

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
from shardmill.transforms.dataset.reading.open_dataset import open_dataset

from ...command_line import Shardmill

ROWS = 40
COLUMNS: dict[str, tuple[list[str], Any]] = {
    "price": (["$1.50", "-$2,000.25"], -2000.25),
    "share": (["12 %", "7.5 %"], 7.5),
    "balance": (["1,234.50", "(20.00)"], -20.0),
    "weight": (["12 kg", "5.5kg"], 5.5),
    "way": (["5,3 km", "12,75 km"], 12.75),
    "area": (["120 m²", "80.5 m²"], 80.5),
    "wind": (["16,3 m/s", "4,25 m/s"], 4.25),
    "joined": (["31/01/2024", "02/03/2024"], dt.date(2024, 3, 2)),
    "seen": (["31.01.2024 10:00", "02.03.2024 11:30"], dt.datetime(2024, 3, 2, 11, 30)),
    "born": (["1999-01-31", "1999-02-01"], dt.date(1999, 2, 1)),
    "paid": (["yes", "no"], False),
    "mood": (["good", "n/a", "bad", "good"], None),
    "level": (["low", "high"], "high"),
}


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(kind: str, columns: dict[str, list[str]]) -> None:
    rows = {name: [values[row % len(values)] for row in range(ROWS)] for name, values in columns.items()}
    table = pa.table({"id": list(range(ROWS)), **rows})
    if kind == "parquet":
        pq.write_table(table, "a.parquet")
    elif kind == "jsonl":
        table.to_pandas().to_json("a.jsonl", orient="records", lines=True)
    else:
        table.to_pandas().to_csv("a.csv", index=False)


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_what_a_dry_run_proposes_for_a_column_reads_it_so(kind: str, shardmill: Shardmill) -> None:
    write(kind, {name: values for name, (values, _) in COLUMNS.items()})
    screen = shardmill("convert", f"a.{kind}", "-o", "out", "--dry-run").out
    found = re.findall(r'column "(\w+)": .*; to read it so: (.*)', screen)
    assert [name for name, _ in found] == [*COLUMNS], screen
    options = [word for _, line in found for word in shlex.split(line)]
    done = shardmill("convert", f"a.{kind}", "-o", "out", *options)
    assert done.code == 0, done.err
    row = open_dataset("out")["train"].to_arrow().to_pylist()[1]
    assert {name: row[name] for name in COLUMNS} == {name: value for name, (_, value) in COLUMNS.items()}
    again = shardmill("convert", f"a.{kind}", "-o", "two", "--dry-run", *options)
    assert "to read it so" not in again.out, "what is declared is not proposed"


@pytest.mark.parametrize("name", COLUMNS)
def test_a_line_of_the_first_config_reads_its_column_once_the_sign_of_its_comment_is_away(
    name: str, shardmill: Shardmill
) -> None:
    write("csv", {name: values for name, (values, _) in COLUMNS.items()})
    assert shardmill("init", "a.csv", "-o", "c.yaml").code == 0
    text = Path("c.yaml").read_text()
    assert text.count("\n    # ") == len(COLUMNS), text
    assert shardmill("convert", "c.yaml", "--set", "output.path=plain").code == 0, "comments alone"
    Path("c.yaml").write_text(text.replace(f"    # {name}: ", f"    {name}: "))
    done = shardmill("convert", "c.yaml", "--set", "output.path=out")
    assert done.code == 0, done.err
    row = open_dataset("out")["train"].to_arrow().to_pylist()[1]
    assert row[name] == COLUMNS[name][1]
    assert {other: row[other] for other in COLUMNS if other != name} == {
        other: values[1] for other, (values, _) in COLUMNS.items() if other != name
    }


def test_the_line_names_the_first_value_its_row_and_how_many_are_alike(shardmill: Shardmill) -> None:
    write("csv", {"share": ["12 %", "7.5 %"], "day": ["01/02/2024", "03/04/2024"]})
    screen = shardmill("convert", "a.csv", "-o", "out", "--dry-run").out
    assert 'column "share": "12 %" (row 1) and 39 more are numbers' in screen
    assert (
        'column "day": "01/02/2024" (row 1) and 39 more are dates (no day is above 12: they may also be %m/%d/'
        in screen
    )


@pytest.mark.parametrize(
    "values",
    [
        ["N0", "N1"],
        ["007", "008"],
        ["a b", "c d e", "f", "g", "h", "i", "j", "k", "l", "m", "n"],
        ["12 kg", "13 kg"] + [f"{n} lb" for n in range(9)],
        ["1/2", "3/4"] + [f"{n}/7" for n in range(9)],
        ["(1)", "(2)"],
        ["12A", "13A"],
        ["2012test", "2013test"],
        ["2024", "5"] + ["x" * n for n in range(1, 10)],
        ["0 a.png", "1 a.png"],
        ["1a.png", "2a.png", "13 b.png"],
        ["10.0.0.1", "10.0.0.2"],
        ["3-day", "5-day"],
        ["0:0", "1:0", "0:9"],
        ["{}", '{"lang": "en"}'],
    ],
    ids=[
        "names",
        "codes",
        "words",
        "units",
        "fractions",
        "notes",
        "seats",
        "splits",
        "mixed",
        "pictures",
        "folders",
        "hosts",
        "durations",
        "exit codes",
        "objects",
    ],
)
def test_text_that_is_none_of_these_has_no_proposal(values: list[str], shardmill: Shardmill) -> None:
    write("csv", {"x": values})
    screen = shardmill("convert", "a.csv", "-o", "out", "--dry-run").out
    found = re.findall(r'column "x": .*; to read it so: (.*)', screen)
    assert all("label=true" in one for one in found), screen


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (["12 kg", "9 lb"], '"12 kg" (row 1) and 39 more are numbers of different units ("kg" 20, "lb" 20 times)'),
        (["$5", "€6"], '"$5" (row 1) and 39 more are numbers of different units ("$" 20, "€" 20 times)'),
    ],
)
def test_numbers_of_several_units_are_said_and_no_key_is_proposed(
    values: list[str], said: str, shardmill: Shardmill
) -> None:
    values = [value.replace("5", str(n)).replace("12", str(n)) for n in range(20, 40) for value in values]
    write("csv", {"x": [values[0], *values[1:]]})
    screen = shardmill("convert", "a.csv", "-o", "out", "--dry-run").out
    assert said.split("(row")[1] in screen
    assert "to read it so" not in screen
    assert shardmill("init", "a.csv", "-o", "c.yaml").code == 0
    Path("c.yaml").write_text(Path("c.yaml").read_text().replace("    # x: ", "    x: "))
    assert shardmill("convert", "c.yaml", "--set", "output.path=out").code == 0


def test_a_time_zone_is_proposed_for_times_with_an_offset(shardmill: Shardmill) -> None:
    write("csv", {"at": ["2024-01-01T01:00:00+01:00", "2024-01-01T00:00:00Z"]})
    screen = shardmill("convert", "a.csv", "-o", "out", "--dry-run").out
    options = shlex.split(re.findall(r'column "at": .*; to read it so: (.*)', screen)[0])
    assert shardmill("convert", "a.csv", "-o", "out", *options).code == 0
    assert set(open_dataset("out")["train"].to_arrow()["at"].to_pylist()) == {dt.datetime(2024, 1, 1, tzinfo=dt.UTC)}


def test_what_is_set_for_a_column_is_kept_beside_the_proposals(shardmill: Shardmill) -> None:
    write("csv", {name: values for name, (values, _) in COLUMNS.items()})
    assert shardmill("init", "a.csv", "-o", "c.yaml", "--set", "schema.columns.id.type=string").code == 0
    text = Path("c.yaml").read_text().replace("    # price: ", "    price: ")
    Path("c.yaml").write_text(text)
    assert shardmill("convert", "c.yaml", "--set", "output.path=out").code == 0
    row = open_dataset("out")["train"].to_arrow().to_pylist()[1]
    assert (row["id"], row["price"]) == ("1", -2000.25)


def test_the_summary_of_a_run_proposes_the_first_twelve_columns_and_counts_the_others(shardmill: Shardmill) -> None:
    write("csv", {f"{name}_{n}": values for n in range(2) for name, (values, _) in COLUMNS.items()})
    done = shardmill("convert", "a.csv", "-o", "out")
    found = re.findall(r'column "(\w+)": .*; to read it so: (.*)', done.out)
    assert len(found) == 12, done.out
    left = 2 * len(COLUMNS) - 12
    last = re.findall(rf"{left} more columns may be read otherwise; to see all: (.*)", done.out)
    assert last, done.out
    ahead = shardmill("convert", "a.csv", "-o", "out", *shlex.split(last[0]))
    assert ahead.code == 0, ahead.err
    assert ahead.out.count("to read it so") == 2 * len(COLUMNS)
    options = [word for _, line in found for word in shlex.split(line)]
    again = shardmill("convert", "a.csv", "-o", "out", "--overwrite", *options)
    proposed = re.findall(r'column "(\w+)": .*; to read it so', again.out)
    assert proposed
    assert not {*proposed} & {name for name, _ in found}, "what is declared is not proposed"
    assert "to read it so" not in shardmill("append", "a.csv", "-o", "out", "--force").out


@pytest.mark.parametrize("command", [("convert", "a.tsv", "-o", "out"), ("convert", "a.tsv", "-o", "out", "--dry-run")])
def test_a_table_without_a_header_has_the_proposals_of_one_with_a_header(
    command: tuple[str, ...], shardmill: Shardmill
) -> None:
    """The reader returns the first line, which is no header, as a batch of its own."""
    states = ["on hold", "closed", "open"]
    lines = [f"{5000 + n}\t2024-03-{n % 28 + 1:02d} 22:10:00.960049+01\t{states[n % 3]}\t{n}.5" for n in range(30)]
    Path("a.tsv").write_text("\n".join(lines) + "\n")
    done = shardmill(*command, "--no-header", "--set", "input.names=[id, at, state, amount]")
    assert re.findall(r'column "(\w+)": .*; to read it so', done.out) == ["at", "state"], done.out


def test_the_classes_that_are_not_shown_are_counted(shardmill: Shardmill) -> None:
    write("csv", {"mood": ["bad", "so-so", "good", "very good", "none of these", "best"]})
    assert "very good and 2 more classes; to read it so" in shardmill("convert", "a.csv", "-o", "out").out


NULLS: dict[str, tuple[list[str], list[Any]]] = {
    "age": (["19", "-99", "79", "-98"], [19, None, 79, None]),
    "income": (["2100.00", "-99.00", "900.50", "-98.00"], [2100.0, None, 900.5, None]),
    "sensor": (["21.5", "-888.88", "19.0", "-888.88"], [21.5, None, 19.0, None]),
    "temp": (["-12.5", "9999", "31.0", "4"], [-12.5, None, 31.0, 4.0]),
    "years": (["25", "-9", "61", "-8"], [25, None, 61, None]),
    "answer": (["1", "99", "5", "3"], [1, None, 5, 3]),
    "outside": (["8,5", "-999,0", "ERR", "-2,5"], [8.5, None, None, -2.5]),
    "share": (["8%", "-999%", "3%", "25%"], [8.0, None, 3.0, 25.0]),
    "hum": (["8.5", "NAN", "NAN", "9.5"], [8.5, None, None, 9.5]),
    "bat": (["3,1", "chyba", "3,3", "2,9"], [3.1, None, 3.3, 2.9]),
    "fizet": (["igen", "nincs adat", "nem", "igen"], [True, None, False, True]),
    "smoker": (["ja", "-99", "nein", "ja"], [True, None, False, True]),
    "water": (["river", ".", ".a", "well"], ["river", None, None, "well"]),
    "day": (["14/01/2024", "N/D", "25/01/2024", "k. A."], [dt.date(2024, 1, 14), None, dt.date(2024, 1, 25), None]),
    "balance": (["4484.15", "NULL", "NULL", "NULL"], [4484.15, None, None, None]),
    "land": (["GB", "NULL", "NA", "US"], ["GB", None, "NA", "US"]),
    "region": (["EMEA", "NULL", "NA", "APAC"], ["EMEA", None, "NA", "APAC"]),
    "note": ([f"note {n}" for n in range(30)] + ["brak"] * 10, ["note 0", "note 1", "note 2", "note 3"]),
    "is_open": (["0", "1", "1", "0"], [False, True, True, False]),
    "IsActive": (["0", "1", "1", "0"], [False, True, True, False]),
    "paid": (["t", "f", "\\N", "f"], [True, False, None, False]),
}


@pytest.mark.parametrize("name", NULLS)
def test_what_means_null_in_a_column_is_proposed_with_the_type_of_its_other_values(
    name: str, shardmill: Shardmill
) -> None:
    write("csv", {name: NULLS[name][0]})
    screen = shardmill("convert", "a.csv", "-o", "out").out
    options = shlex.split(re.findall(rf'column "{name}".*; (?:to read it so|if that means null): (.*)', screen)[0])
    assert ("null_values" in " ".join(options)) is (not name.lower().startswith("is"))
    done = shardmill("convert", "a.csv", "-o", "out", "--overwrite", *options)
    assert done.code == 0, done.err
    rows = open_dataset("out")["train"].to_arrow().to_pylist()
    assert [pytest.approx(row[name]) if isinstance(row[name], float) else row[name] for row in rows[:4]] == NULLS[name][
        1
    ]
    assert name != "note" or rows[-1][name] is None


def test_numbers_that_mean_null_are_proposed_beside_the_words_for_it(shardmill: Shardmill) -> None:
    write("csv", {"income": ["5179", "-99", ".r", "1223", "."]})
    screen = shardmill("convert", "a.csv", "-o", "out").out
    found = re.findall(r'column "income": -99 8 times, .*; to read it so: (.*)', screen)
    assert found, screen
    assert shardmill("convert", "a.csv", "-o", "out", "--overwrite", *shlex.split(found[0])).code == 0
    assert open_dataset("out")["train"].to_arrow()["income"].to_pylist()[:5] == [5179, None, None, 1223, None]
    assert shardmill("init", "a.csv", "-o", "c.yaml").code == 0
    assert Path("c.yaml").read_text().count("    # income: ") == 1, "a key is once in a config"


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_times_beside_counts_since_1970_are_read_where_all_counts_are_of_one_unit(
    kind: str, shardmill: Shardmill
) -> None:
    moments = ["2026-11-03T01:02:03Z", "1793667723", "2026-11-03T03:02:03+02:00", "2026-11-04T00:00:00Z"]
    write(kind, {"at": moments, "mixed": [*moments, "1793667723000"]})
    screen = shardmill("convert", f"a.{kind}", "-o", "out").out
    assert re.search(r'"mixed": 24 are times, the first "2026.*Z" \(row 1\) and 16 are seconds .*: no key', screen)
    options = re.findall(r'"at": 30 are times, .* and 10 are seconds .* \(row 2\); to read it so: (.*)', screen)
    done = shardmill("convert", f"a.{kind}", "-o", "out", "--overwrite", *shlex.split(options[0]))
    assert done.code == 0, done.err
    first = dt.datetime(2026, 11, 3, 1, 2, 3, tzinfo=dt.UTC)
    assert open_dataset("out")["train"].to_arrow()["at"].to_pylist()[:3] == 3 * [first]


@pytest.mark.parametrize("values", [["-120", "-98", "-71"], ["0", "1"], [str(n) for n in range(9980, 10000)]])
def test_numbers_that_are_like_the_others_have_no_proposal(values: list[str], shardmill: Shardmill) -> None:
    write("csv", {"x": values})
    assert "to read it so" not in shardmill("convert", "a.csv", "-o", "out").out


def test_null_numbers_of_a_struct_are_null_in_its_members_and_it_stays_whole(shardmill: Shardmill) -> None:
    inner = pa.struct([pa.field("t", pa.float64(), nullable=False), pa.field("n", pa.int64())])
    kind = pa.struct([pa.field("in", inner, nullable=False), pa.field("s", pa.string())])
    rows = [{"in": {"t": -999.0 if n % 4 == 0 else n / 2, "n": n}, "s": "x"} for n in range(20)]
    pq.write_table(pa.table({"meta": pa.array(rows, kind)}), "a.parquet")
    screen = shardmill("convert", "a.parquet", "-o", "out").out
    found = re.findall(r'column "meta": "in/t": -999 5 times, .*; to read it so: (.*)', screen)
    assert found, screen
    done = shardmill("convert", "a.parquet", "-o", "out", "--overwrite", *shlex.split(found[0]))
    assert done.code == 0, done.err
    assert [line.split()[:2] for line in done.out.splitlines() if "meta/" in line and "64" in line] == [
        line.split()[:2] for line in screen.splitlines() if "meta/" in line and "64" in line
    ], "no member has become another one"
    read = open_dataset("out")["train"].to_arrow()["meta"].to_pylist()
    assert [row["in"]["t"] for row in read[:3]] == [None, 0.5, 1.0]
    assert [row["in"]["n"] for row in read] == [*range(20)]


def test_a_column_that_names_its_nulls_by_the_config_has_the_other_proposals(shardmill: Shardmill) -> None:
    write("csv", {"paid": ["t", "f", "\\N", "f"]})
    done = shardmill("convert", "a.csv", "-o", "out", "--set", 'input.null_values=["\\\\N"]')
    assert 'column "paid": "f" 20, "t" 10 times, and nothing else; to read it so' in done.out, done.out


def test_what_is_detected_of_a_column_is_a_line_below_the_columns_of_the_first_config(shardmill: Shardmill) -> None:
    """A point that groups thousands, and decimal commas beside a word for null, are said before any proposal."""
    Path("a.csv").write_text(
        "probe;menge;konz;ph\n" + "".join(f"P{n};{n + 1}.341;{n},5;{'NA' if n % 3 else '7,8'}\n" for n in range(30))
    )
    assert shardmill("init", "a.csv", "-o", "c.yaml").code == 0
    text = Path("c.yaml").read_text()
    assert len(re.findall(r"(?m)^    # (menge|konz|ph): ", text)) == 3, text
    Path("c.yaml").write_text(re.sub(r"(?m)^    # ", "    ", text))
    done = shardmill("convert", "c.yaml", "--set", "output.path=out")
    assert done.code == 0, done.err
    rows = open_dataset("out")["train"].to_arrow().to_pylist()
    assert [(row["menge"], row["konz"], row["ph"]) for row in rows[:2]] == [
        (1341, 0.5, pytest.approx(7.8)),
        (2341, 1.5, None),
    ]


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_whole_numbers_that_are_all_days_are_dates_where_they_were_text(kind: str, shardmill: Shardmill) -> None:
    Path("a.jsonl").write_text("".join(f'{{"born": 202401{n:02}}}\n' for n in range(1, 31)))
    write("csv", {"born": [f"202401{n:02}" for n in range(1, 31)], "code": [f"202400{n:02}" for n in range(1, 31)]})
    screen = shardmill("convert", f"a.{kind}", "-o", "out").out
    options = re.findall(r"are dates, 2024-01-01 to 2024-01-30; to read it so: (.*)", screen)
    assert len(options) == (kind == "csv")
    assert "code" not in "".join(re.findall(r"Detected: column.*", screen))
    for one in options:
        assert shardmill("convert", "a.csv", "-o", "out", "--overwrite", *shlex.split(one)).code == 0
        assert open_dataset("out")["train"].to_arrow()["born"].to_pylist()[0] == dt.date(2024, 1, 1)


def test_text_that_is_true_or_false_in_json_is_proposed_as_such(shardmill: Shardmill) -> None:
    Path("a.jsonl").write_text("".join(f'{{"on": "{("true", "false")[n % 2]}", "n": {n}}}\n' for n in range(20)))
    screen = shardmill("convert", "a.jsonl", "-o", "out").out
    options = shlex.split(re.findall(r'column "on": .*; to read it so: (.*)', screen)[0])
    assert shardmill("convert", "a.jsonl", "-o", "out", "--overwrite", *options).code == 0
    assert open_dataset("out")["train"].to_arrow()["on"].to_pylist()[:2] == [True, False]


CLF = dt.datetime(2024, 1, 3, 7, 44, 22, tzinfo=dt.UTC)
LANGUAGES: dict[str, tuple[list[str], Any]] = {
    "real": (["R$ 1.234,50", "R$ 99,90"], 1234.5),
    "złoty": (["12,50 zł", "1 300,00 zł"], 12.5),
    "franc": (["CHF 1'200.50", "CHF 90.00"], 1200.5),
    "rappen": (["CHF 1\u2019200.50", "CHF 90.00"], 1200.5),
    "prix": (["1\u202f234,50\u00a0€", "12,00\u00a0€"], 1234.5),
    "sas": (["03JAN2024:08:05:07", "04FEB2024:23:00:00"], dt.datetime(2024, 1, 3, 8, 5, 7)),
    "oracle": (
        ["03-JAN-24 08.21.41.228465000 PM", "04-FEB-24 11.00.00.000000000 AM"],
        dt.datetime(2024, 1, 3, 20, 21, 41, 228465),
    ),
    "clf": (["03/Jan/2024:08:44:22 +0100", "04/Feb/2024:08:44:22 +0100"], CLF),
    "和暦": (["令和7年1月3日", "平成元年12月31日", "2024年5月1日"], dt.date(2025, 1, 3)),
    "时间": (["2024年3月1日 0时49分", "2024年3月1日 10时08分"], dt.datetime(2024, 3, 1, 0, 49)),
    "在庫": (["\u25cb", "\u00d7"], True),
    "有无": (["有", "无"], True),
    "湿度": (["42\uff05", "38\uff05"], 42.0),
    "data emiterii": (["3 iulie 2024", "22 ianuarie 2024"], dt.date(2024, 7, 3)),
    "päivä": (["3. heinäkuuta 2024", "22. tammikuuta 2024"], dt.date(2024, 7, 3)),
    "magyarul": (["2024.01.03.", "2024.12.31."], dt.date(2024, 1, 3)),
    "česky": (["3. 1. 2024", "31. 12. 2024"], dt.date(2024, 1, 3)),
    "minus": (["\u22123,5", "2,25"], -3.5),
    "minus and point": (["\u22123.5", "2.25"], -3.5),
    "yen": (["¥1,200", "¥12,000"], 1200),
    "celsius": (["-0.7℃", "16.4℃"], -0.7),
    "pieces": (["8個", "12個"], 8),
    "portuguese": (["Sim", "Não"], True),
    "polish": (["tak", "nie"], True),
    "japanese": (["済", "未"], True),
    "dutch": (["ja", "nee"], True),
    "korean": (["예", "아니오"], True),
    "switch": (["on", "off"], True),
    "american": (["11/13/2026 10:00:00 PM", "11/14/2026 09:30:00 AM"], dt.datetime(2026, 11, 13, 22)),
    "logger": (["11/13/26 09:15:00 AM", "11/14/26 09:30:00 PM"], dt.datetime(2026, 11, 13, 9, 15)),
    "no day above 12": (["11/03/26 09:15:00 AM", "11/04/26 09:30:00 PM"], dt.datetime(2026, 11, 3, 9, 15)),
    "halves": (["오전 10:41", "오후 1:40"], dt.time(10, 41)),
    "날짜": (["2026. 11. 13. 오후 3:20:00", "2026. 11. 14. 오전 9:05:10"], dt.datetime(2026, 11, 13, 15, 20)),
    "mañana": (["1:40 p. m.", "10:41 a. m."], dt.time(13, 40)),
    "datum": (["5 maart 2024", "17 juli 2024"], dt.date(2024, 3, 5)),
    "asctime": (["2024-01-31 10:00:00,123", "2024-02-01 11:00:00,004"], dt.datetime(2024, 1, 31, 10, 0, 0, 123000)),
    "Prüfdatum": (["05.Mrz.24", "20.Okt.23"], dt.date(2024, 3, 5)),
    "datum_kort": (["05-mrt-2024", "20-okt-2024"], dt.date(2024, 3, 5)),
    "Datum": (["15. M\u00e4rz 2024", "3. Okt. 2024", "1. Mai 2024"], dt.date(2024, 3, 15)),
    "le": (["5 ao\u00fbt 2024 10:30", "6 f\u00e9vr. 2024 11:00"], dt.datetime(2024, 8, 5, 10, 30)),
    "fecha": (["1 de septiembre de 2024", "17 de marzo de 2024"], dt.date(2024, 9, 1)),
    "dia": (["05/out/2023", "16/set/2023"], dt.date(2023, 10, 5)),
    "data": (["6 pa\u017adziernika 2023", "1 maja 2024"], dt.date(2023, 10, 6)),
    "heure": (["18h17", "8h05"], dt.time(18, 17)),
    "ile": (["12 szt.", "3 szt."], 12),
    "Tarih": (["9 Şubat 2026", "11 Mart 2026"], dt.date(2026, 2, 9)),
    "ημέρα": (["9 Ιανουαρίου 2026", "11 Μαΐου 2026"], dt.date(2026, 1, 9)),
    "ώρα": (["8/1/2024 11:00:00 μμ", "14/1/2024 1:00:00 πμ"], dt.datetime(2024, 1, 8, 23)),
    "nap": (["2026. szeptember 9.", "2026. május 11."], dt.date(2026, 9, 9)),
    "주문일자": (["2026년 1월 9일", "2026년 11월 10일"], dt.date(2026, 1, 9)),
    "ShipDate": (["Feb  1 2024  9:00AM", "Feb 11 2024 10:00PM"], dt.datetime(2024, 2, 1, 9)),
    "utc": (["2026-01-09 07:50:00 UTC", "2026-01-09T07:30:00Z"], dt.datetime(2026, 1, 9, 7, 50, tzinfo=dt.UTC)),
    "gmt": (["09.01.2026 07:50 GMT", "10.01.2026 07:30 GMT"], dt.datetime(2026, 1, 9, 7, 50, tzinfo=dt.UTC)),
    "volt": (["3.60V", "3.58V"], 3.6),
    "расход": (["762,66 \u0440.", "(1\u00a0853,27)"], 762.66),
    "paid": (["ναι", "όχι"], True),
    "stock": (["1\u00a0234", "12\u00a0345"], 1234),
    "won": (["25,800원", "1,380,000원"], 25800),
    "offsets": (["03.11.2026 01:00 +01:00", "03.11.2026 02:00 +02:00"], dt.datetime(2026, 11, 3, tzinfo=dt.UTC)),
    "day of words": (["02mar2021", "07apr2021"], dt.date(2021, 3, 2)),
    "moment of words": (["05-Sep-2022 09:00:00", "06-Sep-2022 16:00:00"], dt.datetime(2022, 9, 5, 9)),
    "日付": (["2024年4月1日", "2024年12月31日"], dt.date(2024, 4, 1)),
    "hour": (["07:15:00", "08:30:10"], dt.time(7, 15)),
    "infinite": (["2024-10-20", "infinity", "2024-10-21", "2024-10-22"], dt.date(2024, 10, 20)),
    "Zeitstempel": (["26.10.2025 02:00:00 MESZ", "26.10.2025 02:00:00 MEZ"], dt.datetime(2025, 10, 26, tzinfo=dt.UTC)),
    "面積": (["101.5㎡", "99.0㎡"], 101.5),
    "pagato": (["S", "N"], True),
    "refused": (["R$ 5,50", "R$ 6,50", "R$ 7,50", "(sigilo)"], 5.5),
    "forms": (["2024/01/10 00:30", "10.01.2024 01:00"], dt.datetime(2024, 1, 10, 0, 30)),
}


@pytest.mark.parametrize("name", LANGUAGES)
def test_values_as_several_languages_write_them_are_read_by_the_keys_that_are_proposed(
    name: str, shardmill: Shardmill
) -> None:
    values, first = LANGUAGES[name]
    write("csv", {name: values})
    screen = shardmill("convert", "a.csv", "-o", "out").out
    options = shlex.split(re.findall(r"to read it so: (.*)", screen)[0])
    done = shardmill("convert", "a.csv", "-o", "out", "--overwrite", *options)
    assert done.code == 0, done.err
    found = open_dataset("out")["train"].to_arrow()[name].to_pylist()
    assert (round(found[0], 4) if isinstance(first, float) else found[0]) == first
    assert type(found[0]) is type(first)
    assert (None in found) is (name in ("infinite", "refused"))


@pytest.mark.parametrize(
    "values",
    [["28013", "08001"], ["+34 600 123 456", "912345678"], ["5/13/x", "1/2/y"]],
    ids=["post", "phone", "text"],
)
def test_codes_are_no_numbers_and_codes_with_zeros_in_front_are_no_classes(
    values: list[str], shardmill: Shardmill
) -> None:
    write("csv", {"x": values})
    found = re.findall(r"to read it so: (.*)", shardmill("convert", "a.csv", "-o", "out").out)
    assert found == ([] if values[1] == "08001" else ["--set schema.columns.x.label=true"])


@pytest.mark.parametrize(
    ("header", "above", "last", "kept"),
    [
        ("Beleg-Nr.,n", ["A1,1", "A2,2", "A3,"], "Summe,3", ["A1", "A2", "A3"]),
        ("id,n", ["1,1", "2,2", "3,"], "Total,3", [1, 2, 3]),
        ("nr,n,m,o,p", ["a,1,1,1,1", "Subtotal x,1,,,", "c,2,2,2,2"], "TOTAL,3,,,", ["a", "c"]),
        ("reg,d,n,b", ["N,d,1,x", "Subtotaal N,,1,", "Z,d,2,y"], "I alt,,3,", ["N", "Z"]),
        ("Stadt,n,m", ["A,1,2", ",,", "B,3,4"], "Quelle: Amt für Statistik,,", ["A", "B"]),
        ("番号,n", [",1", "b,2"], "合計,3", [None, "b"]),
        ("번호,n", ["가,1", "나,2"], "합계,3", ["가", "나"]),
        ("Data,N.,n", ["03/01/2024,x,1", ",,", "04/01/2024,y,2"], "Totale,,3", ["03/01/2024", "04/01/2024"]),
    ],
    ids=[
        "text",
        "numbers",
        "amid the rows",
        "half of a row",
        "a note",
        "null",
        "Korean",
        "a column that only totals lack",
    ],
)
def test_the_rows_of_totals_and_notes_below_a_table_are_left_out_by_the_option_of_the_summary(
    header: str, above: list[str], last: str, kept: list[Any], shardmill: Shardmill
) -> None:
    Path("a.csv").write_text("\n".join([header, *above, last, ""]))
    screen = shardmill("convert", "a.csv", "-o", "out").out
    found = re.findall(r"as a (?:total|note) is \((?:from row (\d+) on|in rows 2, 4)\); to leave it out: (.*)", screen)
    assert found, screen
    assert found[0][0] in ("", str(len(above) + 1))
    done = shardmill("convert", "a.csv", "-o", "out", "--overwrite", *shlex.split(found[0][1]))
    assert done.code == 0, done.err
    rows = open_dataset("out")["train"].to_arrow()[header.partition(",")[0]].to_pylist()
    assert [*map(str, rows)] == [*map(str, kept)]


@pytest.mark.parametrize(("cells", "first"), [([",3990", "1,25", "-,5"], 0.399), (["1.270", "341", "1.234.567"], 1270)])
def test_numbers_with_signs_of_the_country_alone_are_read_by_the_options_of_their_note(
    cells: list[str], first: float, shardmill: Shardmill
) -> None:
    write("csv", {"n": cells})
    screen = shardmill("convert", "a.csv", "-o", "out").out
    options = shlex.split(re.findall(r"unless it is declared; (.*)", screen)[0])
    assert shardmill("convert", "a.csv", "-o", "out", "--overwrite", *options).code == 0
    found = open_dataset("out")["train"].to_arrow()["n"].to_pylist()[0]
    assert (found, type(found)) == (pytest.approx(first), type(first))


def test_none_beside_words_is_a_class_and_rows_of_averages_are_left_out(shardmill: Shardmill) -> None:
    rows = [f"s{n},{('none', 'mild', 'severe')[n % 3]},{n}" for n in range(30)]
    Path("a.csv").write_text("\n".join(["site,pain,n", *rows, "Average,,14.5", ""]))
    screen = shardmill("convert", "a.csv", "-o", "out").out
    command = shlex.split(screen.split("in one command: shardmill ")[1].splitlines()[0])
    assert shardmill(*command).code == 0
    dataset = open_dataset("out")
    assert (len(dataset["train"]), dataset.labels["pain"]) == (30, ("mild", "none", "severe"))


def test_a_name_that_begins_as_a_total_is_no_total(shardmill: Shardmill) -> None:
    Path("a.csv").write_text("company,n\nShell,1\nTotal,2\nTotal,3\n")
    assert "as a total is" not in shardmill("convert", "a.csv", "-o", "out").out


def by_one_command(shardmill: Shardmill) -> pa.Table:
    """Return the rows of `a.csv` as the command on the screen reads them."""
    screen = shardmill("convert", "a.csv", "-o", "out")
    found = re.search(r"in one command: shardmill (.*)", screen.out + screen.err)
    options = re.findall(r"to read .*?: (--set .*)", screen.out)
    command = shlex.split(found[1]) if found else ["convert", "a.csv", "-o", "out", "--overwrite"]
    assert found or len(options) == 1, screen
    done = shardmill(*command, *([] if found else shlex.split(options[0])))
    assert done.code == 0, done.err
    return open_dataset("out")["train"].to_arrow()


def test_times_with_seven_digits_and_a_blank_before_the_offset_are_read_exactly(shardmill: Shardmill) -> None:
    write("csv", {"at": ["2024-03-11 20:10:27.9840001 +02:00", "2024-01-11 20:10:27.9840000 +01:00"]})
    found = by_one_command(shardmill)["at"].cast(pa.int64()).to_pylist()
    assert found[:2] == [1710180627984000100, 1705000227984000000]


def test_arrays_of_postgresql_are_proposed_as_lists_and_what_is_in_braces_alone_is_not(shardmill: Shardmill) -> None:
    arrays = ['{new,"two words"}', "{}", "{vip,NULL}", r'{"say \"hi\""}']
    write("csv", {"tags": arrays, "guid": ["{6F9619FF-8B86-D011-B42D-00C04FC964FF}", "{a}"], "n": ["{1,2}", "{NULL}"]})
    found = by_one_command(shardmill)
    assert found["tags"].to_pylist()[:4] == [["new", "two words"], [], ["vip", "unknown"], ['say "hi"']]
    assert found["n"].to_pylist()[:2] == [[1, 2], [-1]]
    assert pa.types.is_string(found["guid"].type) or pa.types.is_dictionary(found["guid"].type), found["guid"].type


def test_0_and_1_beside_the_null_of_dumps_are_no_and_yes(shardmill: Shardmill) -> None:
    write("csv", {"newsletter": ["0", r"\N", "1"], "active": ["1", "0", "1"], "deur_open": ["1", "0", "1"]})
    found = by_one_command(shardmill)
    assert found["newsletter"].to_pylist()[:3] == [False, None, True]
    assert found["deur_open"].to_pylist()[:3] == [True, False, True]


def test_numbers_that_mean_null_in_the_first_row_are_no_line_of_units(shardmill: Shardmill) -> None:
    rows = ["-999;-999", *(f"{n},5;{n}" for n in range(20)), "-999;-999"]
    Path("a.csv").write_text("\n".join(["temp;humidity", *rows, ""]))
    found = by_one_command(shardmill)
    assert (found.num_rows, found["temp"].null_count, found["humidity"].null_count) == (22, 2, 2)


def test_times_without_a_zone_are_said_to_have_none_once(shardmill: Shardmill) -> None:
    days = [f"2024-01-{n + 1:02}" for n in range(20)]
    rows = [f"{day} 10:00:00,{day} 11:00,{day}T10:00:00Z,{day}" for day in days]
    Path("a.csv").write_text("\n".join(["at,seen,moment,day", *rows, ""]))
    screen = shardmill("convert", "a.csv", "-o", "out").out
    assert screen.count("of no time zone") == 1, screen
    assert re.search(r'column "at": .* are times \(of no time zone; the key timezone, such as Europe/Berlin', screen)
    done = shardmill(
        "convert",
        "a.csv",
        "-o",
        "out",
        "--overwrite",
        "--set",
        "schema.columns.at.timezone=Europe/Berlin",
        "--set",
        "schema.columns.at.type=timestamp",
    )
    assert done.code == 0, done.err
    assert open_dataset("out")["train"].to_arrow()["at"][0].as_py() == dt.datetime(2024, 1, 1, 9, tzinfo=dt.UTC)


def test_codes_for_null_are_named_where_other_columns_repeat_them_and_0_and_1_beside_them_are_no_and_yes(
    shardmill: Shardmill,
) -> None:
    rows = [f"{n % 2 if n % 3 else -99},{n},{n / 2},{'tf'[n % 2] if n % 5 else -99}" for n in range(1, ROWS)]
    Path("a.csv").write_text("\n".join(["voted,age,hours,owns", *rows, "1,-99,-99,t", ""]))
    found = by_one_command(shardmill)
    assert found["voted"].to_pylist()[:4] == [True, False, None, False]
    assert found["owns"].to_pylist()[:5] == [False, True, False, True, None]
    assert (found["age"].null_count, found["hours"].null_count) == (1, 1)


def test_a_region_of_two_letters_stays_where_the_file_writes_null_otherwise(shardmill: Shardmill) -> None:
    rows = [f"{('EMEA', 'NA', 'APAC')[n % 3]},{n},{('NULL', 'good')[n % 2]}" for n in range(ROWS)]
    Path("a.csv").write_text("\n".join(["region,n,note", *rows, ""]))
    found = by_one_command(shardmill)
    assert (found["region"].null_count, found["note"].null_count) == (0, ROWS // 2)


def test_stars_and_bounds_among_numbers_are_null_at_once(shardmill: Shardmill) -> None:
    rows = [f"{'***' if n == 5 else '<0.3' if n == 9 else n / 4},{n}" for n in range(ROWS)]
    Path("a.csv").write_text("\n".join(["# logger", "wind,n", *rows, ""]))
    assert by_one_command(shardmill)["wind"].null_count == 2


@pytest.mark.parametrize(("digits", "unit"), [(3, "us"), (7, "ns")])
@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_seconds_since_1970_with_a_fraction_are_times_to_their_last_digit(
    digits: int, unit: str, suffix: str, shardmill: Shardmill
) -> None:
    seconds = [f"{1767943800 + n}.{n:0{digits - 1}d}7" for n in range(ROWS)]
    lines = ["ts", *seconds] if suffix == "csv" else [f'{{"ts": {one}}}' for one in seconds]
    Path(f"a.{suffix}").write_text("\n".join([*lines, ""]))
    (options,) = re.findall(r"to read it so: (.*)", shardmill("convert", f"a.{suffix}", "-o", "out").out)
    done = shardmill("convert", f"a.{suffix}", "-o", "out", "--overwrite", *shlex.split(options))
    assert done.code == 0, done.err
    times = open_dataset("out")["train"].to_arrow()["ts"]
    assert times.type == pa.timestamp(unit, "UTC")
    scale = 6 if unit == "us" else 9
    assert times.cast(pa.int64()).to_pylist() == [int(one.replace(".", "").ljust(10 + scale, "0")) for one in seconds]


def test_whole_numbers_that_count_since_1970_are_times_where_their_column_says_so(shardmill: Shardmill) -> None:
    rows = [f"{1767943800000 + 1000 * n},{1767943800 + n},{1767943800 + n}" for n in range(ROWS)]
    Path("a.csv").write_text("\n".join(["epoch_ms,start_ts,phone", *rows, ""]))
    row = by_one_command(shardmill).to_pylist()[1]
    moment = dt.datetime(2026, 1, 9, 7, 30, 1, tzinfo=dt.UTC)
    Path("a.jsonl").write_text("".join(f'{{"created_at": {1767943800 + n}, "n": null}}\n' for n in range(ROWS)))
    options = re.findall(r"to read it so: (.*)", shardmill("convert", "a.jsonl", "-o", "b").out)
    done = shardmill("convert", "a.jsonl", "-o", "b", "--overwrite", *shlex.split(options[0]))
    assert done.code == 0, done.err
    assert open_dataset("b")["train"].to_arrow()["created_at"][1].as_py() == moment
    assert row == {"epoch_ms": moment, "start_ts": moment, "phone": 1767943801}


def test_units_below_a_header_are_left_out_where_comments_are_above_it(shardmill: Shardmill) -> None:
    rows = [f"2024-10-{n + 1:02};8,{n};{-999 if n in (3, 7) else n}" for n in range(20)]
    Path("a.csv").write_text("\n".join(["# a", "# b", "Tid;Temp;Fugt", "dd-mm;C;%", *rows, ""]))
    screen = shardmill("convert", "a.csv", "-o", "out")
    assert "max-rejects" not in (screen.out + screen.err).partition("in one command")[2]
    found = by_one_command(shardmill)
    assert (found.num_rows, found["Fugt"].null_count) == (20, 2)
    assert found.to_pylist()[1] == {"Tid": dt.date(2024, 10, 2), "Temp": pytest.approx(8.1), "Fugt": 1}


def test_a_row_without_a_value_that_a_condition_leaves_out_is_told_as_no_record(shardmill: Shardmill) -> None:
    Path("a.csv").write_text("day;n\n2024-01-01;1\n;\n2024-01-02;2\n")
    assert "an empty record" in shardmill("convert", "a.csv", "-o", "a").out
    assert "an empty record" in shardmill("convert", "a.csv", "-o", "b", "--where", "is_null(n) or n > 1").out
    assert "an empty record" not in shardmill("convert", "a.csv", "-o", "c", "--where", "not is_null(day)").out


def test_a_name_is_written_one_way_on_a_screen(shardmill: Shardmill) -> None:
    rows = [f"{n},5;{'ja' if n % 2 else 'nein'}" for n in range(ROWS)]
    Path("a.csv").write_text("\n".join(["Gewicht [kg];Frei gabe", *rows, ""]))
    screen = shardmill("convert", "a.csv", "-o", "out").out
    assert screen.count('schema.columns."Gewicht [kg]".decimal=,') == 2, screen
    assert "columns.Gewicht" not in screen


def test_a_column_that_is_stripped_alone_is_told_to_be_numbers_that_lack_a_type(shardmill: Shardmill) -> None:
    write("csv", {"volt": ["3.60V", "3.58V"]})
    screen = shardmill("convert", "a.csv", "-o", "out", "--set", "schema.columns.volt.strip=V").out
    assert "are numbers; to read it so: --set schema.columns.volt.type=float64" in screen


def test_a_condition_alone_leaves_totals_out_and_no_other_line_counts_them_or_says_to_fix_them(
    shardmill: Shardmill,
) -> None:
    rows = [f"{n},0{n % 9 + 1}.01.2024,{'ab'[n % 2]},{n}" for n in range(ROWS)]
    Path("a.csv").write_text("\n".join(["nr,day,kind,sum", *rows, "Summe,,,780", ""]))
    screen = shardmill("convert", "a.csv", "-o", "out").out
    assert "as a total is (from row 41 on); to leave it out: --set 'input.where=not is_null(day)'" in screen
    assert ("fix it in the file" in screen, "null_values" in screen) == (False, False)
    assert "2 different values in 40: a, b" in screen
    command = shlex.split(re.findall(r"in one command: shardmill (.*)", screen)[0])
    assert shardmill(*command).code == 0
    table = open_dataset("out")["train"].to_arrow()
    assert table.num_rows == ROWS
    assert (table["nr"].to_pylist(), table["day"].to_pylist()[0]) == ([*range(ROWS)], dt.date(2024, 1, 1))
    assert shardmill("init", "a.csv", "-o", "-").out.count("to leave it out: --set 'input.where=") == 1


ANSWERS = {
    "numbers": (["5", "7", "Vet ej", "9"], ["Vet ej"], "int64"),
    "codes": (["34", "45", "Refused (-99)", "7"], ["Refused (-99)"], "int64"),
    "dates": (["2024-01-02", "Nu \u0219tiu", "2024-03-04"], ["Nu \u0219tiu"], "date"),
    "yes or no": (["igen", "nem", "nem tudja", "nincs adat"], ["nem tudja", "nincs adat"], "bool"),
    "words": (["gut", "schlecht", "Wei\u00df nicht", "keine Angabe"], [], "label"),
    "Korean": (["\uae09\ud589", "\ud574\ub2f9\uc5c6\uc74c", "\ubcf4\ud1b5"], [], "label"),
    "English": (["agree", "Don\u2019t know", "disagree", "Refused", "n/a"], ["n/a"], "label"),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_answers_such_as_do_not_know_are_null_but_among_words_where_they_are_classes(
    name: str, shardmill: Shardmill
) -> None:
    values, nulls, kind = ANSWERS[name]
    write("csv", {"x": values})
    screen = shardmill("convert", "a.csv", "-o", "out").out
    options = shlex.split(re.findall(r"(?:to read it so|if that means null): (.*)", screen)[0])
    done = shardmill("convert", "a.csv", "-o", "out", "--overwrite", *options)
    assert (done.code, re.findall(r"^x +\w+ +(\w+)", done.out, re.MULTILINE)) == (0, [kind])
    column = open_dataset("out")["train"].to_arrow()["x"]
    assert column.null_count == sum(values[row % len(values)] in nulls for row in range(ROWS))


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (["5 EUR", "7 lei", "9 lei", "xyz"], 'of different units ("lei" 20, "EUR" 10 times)'),
        (["\u20ac5", "$6"], 'of different units ("\u20ac" 20, "$" 20 times)'),
        (["EUR 5", "USD 7"], 'of different units ("EUR" 20, "USD" 20 times)'),
        (["5 EUR"] * 39 + ["1 USD"], 'of different units ("EUR" 39, "USD" 1 times)'),
        (["1.5K", "2M", "300"], "with letters that multiply them (K, M): no key does"),
    ],
    ids=["a word beside", "signs", "codes before", "one alone", "multiples"],
)
def test_amounts_of_several_currencies_and_with_letters_that_multiply_are_said_and_are_no_classes(
    values: list[str], said: str, shardmill: Shardmill
) -> None:
    write("csv", {"x": values})
    screen = shardmill("convert", "a.csv", "-o", "out").out
    assert said in screen
    assert ('; beside them: "xyz" (row 4)' in screen) is ("xyz" in values)
    assert "to read it so" not in screen


def test_infinity_and_a_column_that_counts_the_rows_are_said(shardmill: Shardmill) -> None:
    rows = [f'"{n + 1}",{("1.5", "-Inf")[n % 2]},{("2", "NA", "Inf")[n % 3]}' for n in range(ROWS)]
    Path("a.csv").write_text("\n".join(['"","x","y"', *rows, ""]))
    screen = shardmill("convert", "a.csv", "-o", "out").out
    assert 'column "x": Inf 20 times, which is read as infinity' in screen
    assert 'column "y": Inf 13 times, which is read as infinity' in screen
    command = shlex.split(re.findall(r"in one command: shardmill (.*)", screen)[0])
    assert "schema.columns.column_0.name=row" in command
    assert shardmill(*command).code == 0
    found = open_dataset("out")["train"].to_arrow().to_pylist()[1]
    assert found == {"row": 2, "x": float("-inf"), "y": None}


def test_versions_within_objects_are_no_numbers_that_want_a_column(shardmill: Shardmill) -> None:
    rows = [
        {"device": {"fw": "16.4", "label": ("1.10", "1.9", "2")[n % 3], "size": "7"}, "tags": ["a", None]}
        for n in range(ROWS)
    ]
    Path("a.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    screen = shardmill("convert", "a.jsonl", "-o", "out", "--dry-run")
    shown = screen.out + screen.err
    assert ('"size": "7"' in shown, '"fw": ' in shown, '"label": ' in shown) == (True, False, False)
    assert 'each is written as the text "unknown"' in shown
