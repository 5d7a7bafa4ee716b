"""Tables as programs export them come right by the one command that the first screen ends with."""

from __future__ import annotations

import datetime as dt
import json
import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from shardmill.transforms.dataset.reading.open_dataset import open_dataset

from ...command_line import Screen, Shardmill

ROWS = 30
DAY = dt.date(2025, 4, 1)
UTC = dt.UTC


class Export(NamedTuple):
    """A file, the code with which its first conversion ends, and the first row that it should give."""

    name: str
    lines: Sequence[str]
    row: dict[str, Any]
    code: int = 0
    encoding: str = "utf-8"


def days(form: str, count: int = ROWS) -> list[str]:
    return [f"{DAY + dt.timedelta(n):{form}}" for n in range(count)]


EXCEL = Export(
    "umsatz.csv",
    [
        "Umsatzliste;;;;;",
        "Stand: 30.06.2025;;;;;",
        ";;;;;",
        "Beleg-Nr.;Datum;Betrag;MwSt;Bezahlt;Notiz",
        *(
            f"{n:06};{day};1.{n:03},50 €;19,0%;{'Ja' if n % 2 else 'Nein'};k. A."
            for n, day in enumerate(days("%d.%m.%Y"))
        ),
        "Summe;;99.999,00 €;;;",
    ],
    {"Beleg-Nr.": "000000", "Datum": DAY, "Betrag": 1000.5, "MwSt": 19.0, "Bezahlt": False},
)
SHIFT_JIS = Export(
    "juchu.csv",
    [
        "番号,注文日,金額,数量,配送済",
        *(f'{n:05},2025年4月{n + 1}日,"\\1,{n:03}",{n}個,{"済" if n % 2 else "未"}' for n in range(ROWS)),
        '合計,,"\\99,999",500個,',
    ],
    {"番号": "00000", "注文日": DAY, "金額": 1000.0, "数量": 0.0, "配送済": False},
    1,
    "cp932",
)
SQLCMD = Export(
    "zam.csv",
    [
        "ID|Data|Kwota|CzyOk|Status",
        "--|----|-----|-----|------",
        *(
            f"{n}|{day} 08:15:00.1374811|{n if n % 3 else 'NULL'}|{n % 2}|Wysłane"
            for n, day in enumerate(days("%Y-%m-%d"))
        ),
        "",
        "(liczba wierszy, których to dotyczy: 30)",
    ],
    {"ID": 0, "Kwota": None, "CzyOk": False, "Status": "Wysłane"},
    1,
    "cp1250",
)
SPSS = Export(
    "spss.csv",
    [
        "id;renda;vota;data;peso;idade",
        *(
            f"{n};{['-99', 'Recusou', f'R$ 1.{n:03}'][min(n % 5, 2)]};{('Sim', 'Não', 'NS/NR')[n % 3]};{day};0,5;{age}"
            for n, (day, age) in enumerate(zip(days("%d-%b-%Y 09:00:00"), ["-99", "23"] * 15, strict=True))
        ),
    ],
    {"renda": None, "vota": True, "data": dt.datetime(2025, 4, 1, 9), "peso": 0.5, "idade": None},
)
SENSOR = Export(
    "sensor.csv",
    [
        "# station: 12",
        "# missing = -999",
        "at,temp,day",
        *(
            f"{day}{' 00:30' if n % 2 else 'T00:30:00+09:00'},{n / 9 if n % 4 else -999},{'infinity' if n % 5 else day}"
            for n, day in enumerate(days("%Y-%m-%d"))
        ),
    ],
    {"at": dt.datetime(2025, 3, 31, 15, 30, tzinfo=UTC), "temp": None, "day": DAY},
    1,
)
METEO = Export(
    "meteo.csv",
    [
        "# Station : Col du Galibier;;;",
        "# Fuseau : Europe/Paris;;;",
        "Horodatage;Température;Humidité;Porte ouverte",
        "jj/mm/aaaa hh:mm;°C;%;oui/non",
        *(
            f"{day} 22:10;{n if n % 7 else -999},5;{n + 30};{'oui' if n % 2 else 'non'}"
            for n, day in enumerate(days("%d/%m/%Y"))
        ),
    ],
    {"Horodatage": dt.datetime(2025, 4, 1, 22, 10), "Humidité": 30, "Porte ouverte": False},
)
MERGED = Export(
    "quartale.csv",
    [
        "Bericht 2025;;;;",
        "Region;Q1;;Q2;",
        ";Menge;Umsatz;Menge;Umsatz",
        *(f"R{n};{n};{n},5;{n + 1};{n},25" for n in range(ROWS)),
        "Summe;9;9,5;9;9,5",
    ],
    {"Region": "R0", "Q1 Menge": 0, "Q1 Umsatz": 0.5, "Q2 Menge": 1, "Q2 Umsatz": 0.25},
)
HOURS = Export(
    "vykaz.csv",
    [
        "Výkaz hodin;;",
        "Jméno;Středisko;Datum;Mzda;Přesčas",
        *(f"Petr;0{n:02};{day};1\xa0{n:03},50 Kč;{('ANO', 'NE')[n % 2]}" for n, day in enumerate(days("%d. %m. %Y"))),
        "Celkem;;;54\xa0321,00 Kč;",
        "",
        "Vytvořeno: 2. 11. 2025 v Excelu;;;;",
    ],
    {"Středisko": "000", "Datum": DAY, "Mzda": 1000.5, "Přesčas": True},
    1,
    "cp1250",
)
QUOTED = Export(
    "releves.txt",
    [
        '"site" "date" "n" "who"',
        *(
            f'"{n + 1}" "Étang Vert" "{day}" {n if n % 3 else "NA"} "M. \\"Bob\\" {n}"'
            for n, day in enumerate(days("%Y-%m-%d"))
        ),
    ],
    {"site": "Étang Vert", "date": DAY, "n": None, "who": 'M. "Bob" 0'},
)
W3C = Export(
    "u_ex250301.log",
    [
        "#Software: Microsoft Internet Information Services 10.0",
        "#Version: 1.0",
        "#Fields: date time cs-uri-stem cs(User-Agent) sc-status sc-bytes",
        *(f'{day} 00:03:27 /{n} a"b+({n}) 200 {n if n % 2 else "-"}' for n, day in enumerate(days("%Y-%m-%d"))),
    ],
    {"date": DAY, "time": dt.time(0, 3, 27), "cs(User-Agent)": 'a"b+(0)', "sc-status": 200, "sc-bytes": None},
    2,
)
POSTGRES = Export(
    "orders.tsv",
    [f"{n}\t{day} 22:10:00.5+01\t{'t' if n % 2 else chr(92) + 'N'}\t{{}}" for n, day in enumerate(days("%Y-%m-%d"))],
    {"column_0": 0, "column_1": dt.datetime(2025, 4, 1, 21, 10, 0, 500000, UTC), "column_2": None},
    1,
)
JSON_LINES = Export(
    "a.jsonl",
    [
        json.dumps(
            {
                "id": n if n % 2 else f"S{n}",
                "at": f"{day}T00:00:00Z",
                "v": [n / 4, None],
                "w": ["a", None],
                "t": -999 if n % 3 == 0 else n,
                "sub": {"of": {"t": -999 if n % 3 == 0 else n}, "b": n},
            }
        )
        for n, day in enumerate(days("%Y-%m-%d"))
    ],
    {
        "id": "S0",
        "at": dt.datetime(2025, 4, 1, tzinfo=UTC),
        "t": None,
        "w": ["a", "unknown"],
        "sub": {"of": {"t": None}, "b": 0},
    },
    2,
)
R = Export(
    "r.txt",
    [
        '"gatunek" "waga" "kiedy" "znów"',
        *(
            f'"{n + 1}" "Turdus merula" {"NA" if n % 4 == 0 else f"{n},5"} {day} TRUE'
            for n, day in enumerate(days("%d.%m.%Y"))
        ),
    ],
    {"row": 1, "waga": None, "kiedy": DAY, "znów": True},
)
STATA = Export(
    "stata.csv",
    ["hhid,visit,water", *(f"{n},{day.lower()},{('.', 'river')[n % 2]}" for n, day in enumerate(days("%d%b%Y")))],
    {"hhid": 0, "visit": DAY, "water": None},
)


NGINX = Export(
    "nginx.json",
    [
        json.dumps({"at": f"{day}:08:44:22 +0100", "status": "200", "took": f"0.{n:03}" if n % 2 else "-"})
        for n, day in enumerate(days("%d/%b/%Y"))
    ],
    {"at": dt.datetime(2025, 4, 1, 7, 44, 22, tzinfo=UTC), "status": 200, "took": None},
    2,
)
BANK = Export(
    "banca.csv",
    [
        "Estratto conto;IT60X0542811101000000123456;;;",
        "Periodo: 01/01/2025 - 31/03/2025;;;;",
        ";;;;",
        "Data;Valuta;Descrizione;Dare;Avere",
        *(
            f"{day};{day};POS {n};{'' if n % 2 else f'1.{n:03},50'};{f'{n},75' if n % 2 else ''}"
            for n, day in enumerate(days("%d/%m/%y"))
        ),
    ],
    {"Data": DAY, "Descrizione": "POS 0", "Dare": 1000.5, "Avere": None},
)
UKRAINIAN = Export(
    "звіт.csv",
    ["№;Дата;Сума, грн", *(f"{n};{day};{n},50" for n, day in enumerate(days("%d.%m.%Y")))],
    {"№": 0, "Дата": DAY, "Сума, грн": 0.5},
    1,
    "cp1251",
)
STATION = Export(
    "stasjon.tsv",
    [
        "Station: Oslo",
        "Element\tTA, RR",
        "",
        "Dato\tTemp\tRegn",
        *(f"{day}\t{n},5\t{n}" for n, day in enumerate(days("%d.%m.%Y"))),
    ],
    {"Dato": DAY, "Temp": 0.5},
    1,
)
CHINESE = Export(
    "订单.txt",
    [
        "订单号\t下单时间\t金额\t是否会员",
        *(f"{n}\t{day} 08:15\t1,{n:03}.50元\t{'是' if n % 2 else '否'}" for n, day in enumerate(days("%Y年%m月%d日"))),
    ],
    {"订单号": 0, "下单时间": dt.datetime(2025, 4, 1, 8, 15), "金额": 1000.5, "是否会员": False},
    1,
    "gb18030",
)


def next_command(screen: Screen) -> list[str]:
    found = re.findall(r"all of this in one command: shardmill (.*)", screen.out + screen.err)
    assert len(found) == 1, screen
    return shlex.split(found[0])


EXPORTS = [
    EXCEL,
    SHIFT_JIS,
    SQLCMD,
    SPSS,
    SENSOR,
    METEO,
    MERGED,
    HOURS,
    QUOTED,
    W3C,
    POSTGRES,
    JSON_LINES,
    R,
    STATA,
    NGINX,
    BANK,
    UKRAINIAN,
    STATION,
    CHINESE,
]


@pytest.mark.parametrize("export", EXPORTS, ids=lambda export: export.name)
def test_an_export_comes_right_by_the_command_at_the_end_of_its_first_screen(
    export: Export, shardmill: Shardmill, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(export.name).write_bytes("\n".join([*export.lines, ""]).encode(export.encoding))
    first = shardmill("convert", export.name, "-o", "out")
    assert first.code == (export.code or 0), first
    command = next_command(first)
    done = shardmill(*command)
    assert done.code == 0, (command, done.err)
    table = open_dataset("out")["train"].to_arrow()
    assert table.num_rows == ROWS, command
    row = table.to_pylist()[0]
    assert {
        name: round(row[name], 4) if isinstance(row[name], float) else row[name] for name in export.row
    } == export.row


def test_a_command_repeats_what_was_typed_and_leaves_out_what_a_first_row_contradicts(
    shardmill: Shardmill, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a b.csv").write_text("day;n\n" + "".join(f"{day};{n},5\n" for n, day in enumerate(days("%d.%m.%Y"))))
    first = shardmill("convert", "a b.csv", "-o", "out", "--split-fractions", "train=0.5,val=0.5", "--delimiter", ";")
    command = next_command(first)
    assert command[:5] == ["convert", "a b.csv", "-o", "out", "--overwrite"]
    assert {"input.delimiter=;", "schema.columns.n.decimal=,", "schema.columns.day.format=%d.%m.%Y"} <= {*command}
    like = next_command(shardmill("convert", "a b.csv", "-o", "two", "--like", "out"))
    assert like[:7] == ["convert", "a b.csv", "-o", "two", "--overwrite", "--like", "out"]
    for words in (command, like):
        assert shardmill(*words).code == 0, words
    assert all({*open_dataset(path).splits} == {"train", "val"} for path in ("out", "two"))


def test_a_table_that_is_right_and_a_stop_that_names_no_keys_have_no_command(
    shardmill: Shardmill, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text("a,b\n1,x y z\n2,y\n3,z\n")
    assert "in one command" not in shardmill("convert", "a.csv", "-o", "out").out
    assert "in one command" not in shardmill("convert", "none.csv", "-o", "out").err


@pytest.mark.parametrize("note", ["(3 rows affected)", "3 rows in set (0.01 sec)", "(3 Zeilen)"])
def test_a_note_below_the_rows_is_left_out_by_the_option_of_its_reject(
    note: str, shardmill: Shardmill, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text(f"a,b,c\n1,2,3\n4,5,6\n7,8,9\n{note}\n")
    found = re.findall(
        r"a note below the rows; to leave it out: (.*?); else", shardmill("convert", "a.csv", "-o", "out").err
    )
    assert found == ["--max-rejects 1"]
    assert shardmill("convert", "a.csv", "-o", "out", *shlex.split(found[0])).code == 0
    assert open_dataset("out")["train"].to_arrow()["a"].to_pylist() == [1, 4, 7]


def test_nulls_in_lists_and_numbers_in_nested_values_have_a_line_of_their_own(shardmill: Shardmill) -> None:
    Path("a.jsonl").write_text("\n".join(JSON_LINES.lines) + "\n")
    stop = shardmill("convert", "a.jsonl", "-o", "out").err
    assert re.search(r'"w": 30 nulls in its lists, .*: --set schema.columns.w.null_item=unknown\n', stop), stop
    assert re.search(r'"sub": "of/t": -999 10 times, .*: --set .schema.columns.sub.null_values=\["-999"\]', stop), stop


def test_a_table_below_comments_with_null_numbers_among_decimal_commas_is_read_by_one_command(
    shardmill: Shardmill,
) -> None:
    values = ["8,5", "10,25", "-999", "11,5", "-999", "9,0"]
    rows = [f"2024-03-0{day};{value};Aus" for day, value in enumerate(values, 1)]
    Path("a.csv").write_text("\n".join(["# Messstelle: Süd", "# Gerät: 7, 2.1", "Tag;Temp;Pumpe", *rows, ""]))
    stop = shardmill("convert", "a.csv", "-o", "out")
    found = re.findall(r"all of this in one command: shardmill (.*)", stop.err)
    assert (stop.code != 0, len(found)) == (True, 1), stop.err
    done = shardmill(*shlex.split(found[0]))
    assert done.code == 0, done.err
    assert open_dataset("out")["train"].to_arrow()["Temp"].to_pylist() == [8.5, 10.25, None, 11.5, None, 9.0]


def test_no_command_takes_the_headers_of_some_files_for_rows(shardmill: Shardmill) -> None:
    Path("d").mkdir()
    for name, first in (("dev", "Quality\tindex"), ("dev_ids", "702885\t2986"), ("train", "Quality\tindex")):
        Path(f"d/{name}.tsv").write_text("\n".join([first, *(f"{n % 2}\t{n}" for n in range(20)), ""]))
    stop = shardmill("convert", "d", "-o", "out", "--set", "input.splits=names")
    assert stop.code != 0
    assert re.search("first lines? looks? like data", stop.err)
    assert "in one command" not in stop.err, stop.err


def test_columns_of_one_name_are_numbered_by_the_command_of_the_stop(shardmill: Shardmill) -> None:
    rows = [f"{n},{n % 3},{n % 4},{n},03.04.20{10 + n}" for n in range(20)]
    Path("a.csv").write_text("\n".join(["id,Labels,Labels,Labels,day", *rows, ""]))
    stop = shardmill("convert", "a.csv", "-o", "out")
    found = re.search(r"in one command: shardmill (.*)", stop.err)
    assert found, stop.err
    assert shardmill(*shlex.split(found[1])).code == 0
    (first, *_) = open_dataset("out")["train"]
    assert [*first] == ["Labels", "Labels_2", "Labels_3", "day", "id"]


@pytest.mark.parametrize(
    ("lines", "row"),
    [
        (
            ["time,temp,site", "s,degC,", *(f"{n},{n}.5,Pier" for n in range(20))],
            {"time": 0, "temp": 0.5, "site": "Pier"},
        ),
        (
            [
                "id\tname\tat",
                "UInt64\tString\tDateTime",
                *(f"{n}\ta{n}\t2024-01-{n + 1:02} 00:00:00" for n in range(20)),
            ],
            {"id": 0, "name": "a0", "at": dt.datetime(2024, 1, 1)},
        ),
        (
            ["Price,Close,Volume", "Ticker,AA,AA", "Date,,", *(f"2024-01-{n + 1:02},{n}.5,{n}" for n in range(20))],
            {"Price": dt.date(2024, 1, 1), "Close": 0.5, "Volume": 0},
        ),
        (
            [",sales,sales", ",sum,mean", "region,,", *(f"r{n},{n},{n}.5" for n in range(20))],
            {"column_0": "r0", "sales": 0, "sales_2": 0.5},
        ),
    ],
    ids=["units", "types", "levels of pandas and an index of dates", "levels of one name and an index of text"],
)
def test_a_line_of_units_or_types_below_the_header_is_left_out_by_one_command(
    lines: list[str], row: dict[str, object], shardmill: Shardmill
) -> None:
    Path("a.csv").write_text("\n".join([*lines, ""]))
    screen = shardmill("convert", "a.csv", "-o", "out")
    command = shlex.split((screen.out + screen.err).split("in one command: shardmill ")[1].splitlines()[0])
    assert shardmill(*command).code == 0
    rows = list(open_dataset("out")["train"])
    assert (len(rows), rows[0]) == (20, row)


def test_a_line_of_units_is_told_with_the_option_that_leaves_it_out(shardmill: Shardmill) -> None:
    Path("a.csv").write_text("\n".join(["time,temp,site", "s,degC,", *(f"{n},{n}.5,Pier" for n in range(20)), ""]))
    screen = shardmill("convert", "a.csv", "-o", "out")
    found = re.search(
        r'row 1 \("s", "degC"\) is text in columns of numbers or times.*; to leave it out: (.*)', screen.out
    )
    assert found, screen.out
    assert shardmill("convert", "a.csv", "-o", "left", *shlex.split(found[1])).code == 0
    assert len(open_dataset("left")["train"]) == 20


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_what_sqlcmd_aligns_is_read_by_the_command_of_the_first_screen(encoding: str, shardmill: Shardmill) -> None:
    lines = ["id  |name     |day       ", "----|---------|----------"]
    lines += [f"{n:<4}|{('Rossi', 'NULL', 'Società')[n % 3]:<9}|2024-01-{n + 1:02}" for n in range(20)]
    Path("a.txt").write_text("\r\n".join([*lines, "", "(20 rows affected)", ""]), encoding)
    screen = shardmill("convert", "a.txt", "-o", "out")
    command = shlex.split((screen.out + screen.err).split("in one command: shardmill ")[1].splitlines()[0])
    done = shardmill(*command)
    assert done.code == 0, done.err
    rows = open_dataset("out")["train"].to_arrow().to_pylist()
    assert (len(rows), rows[0]) == (20, {"id": 0, "name": "Rossi", "day": dt.date(2024, 1, 1)})
    assert rows[1]["name"] is None


def test_prose_in_utf_16_is_written_as_utf_8_and_no_table(shardmill: Shardmill) -> None:
    Path("a.txt").write_text("It was late.\nIt rained; we stayed.\n", "utf-16")
    screen = shardmill("convert", "a.txt", "-o", "out")
    assert ("iconv" in screen.err, "input.format" in screen.err) == (True, False)


def test_what_is_seen_in_json_is_in_one_command_or_said(shardmill: Shardmill) -> None:
    rows: list[dict[str, object]] = [
        {"qty": str(n) if n % 2 else n, "box": [n, 1.5, n], "tags": ["a"], "user": {"since": f"2024-01-{n + 1:02}"}}
        for n in range(20)
    ]
    Path("a.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    screen = shardmill("convert", "a.jsonl", "-o", "out")
    shown = re.search(
        r'"user": "since": "2024-01-01" and 19 more are dates: no key reads text within objects', screen.err
    )
    assert shown, screen.err
    command = shlex.split(screen.err.split("in one command: shardmill ")[1].splitlines()[0])
    assert shardmill(*command).code == 0
    row = open_dataset("out")["train"].to_arrow().to_pylist()[3]
    assert (row["qty"], row["box"], row["tags"]) == (3, [3.0, 1.5, 3.0], ["a"])
    assert "schema.columns.box.length=3" in command


def test_numbers_of_json_beside_text_that_is_numbers_are_read_as_such_by_one_command(shardmill: Shardmill) -> None:
    rows = [
        {
            "grouped": "8,500" if n % 2 else 12000,
            "money": "$1,200.50" if n % 2 else 5,
            "comma": "3,5" if n % 2 else 7,
            "decimal": "13.75" if n % 2 else 12,
            "null": ["n/a", 1.5, "2"][n % 3],
            "flag": ["yes", "no", True][n % 3],
            "seen": ["kein", 1, 2, 3, 4, 5][n % 6],
        }
        for n in range(ROWS)
    ]
    Path("a.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    command = next_command(shardmill("convert", "a.jsonl", "-o", "out"))
    assert shardmill(*command).code == 0, command
    found = open_dataset("out")["train"].to_arrow().to_pylist()
    assert found[0] == {
        "grouped": 12000, "money": 5.0, "comma": 7.0, "decimal": 12.0, "null": None, "flag": True, "seen": None,
    }  # fmt: skip
    assert {**found[1], "null": 1.5} == {
        "grouped": 8500, "money": 1200.5, "comma": 3.5, "decimal": 13.75, "null": 1.5, "flag": False, "seen": 1,
    }  # fmt: skip


def test_numbers_of_json_keep_their_point_beside_text_with_decimal_commas(shardmill: Shardmill) -> None:
    Path("a.jsonl").write_text('{"x": 1.234}\n{"x": "1.234,50"}\n{"x": 12}\n{"x": "3,5"}\n')
    keys = ("type=float64", "decimal=,", "thousands=.")
    options = [word for key in keys for word in ("--set", f"schema.columns.x.{key}")]
    assert shardmill("convert", "a.jsonl", "-o", "out", *options).code == 0
    assert open_dataset("out")["train"].to_arrow()["x"].to_pylist() == pytest.approx([1.234, 1234.5, 12.0, 3.5])


def test_a_member_of_several_types_is_text_and_the_others_keep_their_types(shardmill: Shardmill) -> None:
    ages, codes = [34, "n/a", None, True], [7, "007"]
    rows = [{"user": {"age": ages[n % 4], "n": n, "at": {"zip": codes[n % 2]}, "tags": [n]}} for n in range(ROWS)]
    Path("a.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    screen = shardmill("convert", "a.jsonl", "-o", "out")
    said = 'column "user": values of "at.zip", "age" are of several types, and become text; the other members'
    assert said in screen.out, screen
    found = open_dataset("out")["train"].to_arrow()["user"].to_pylist()
    assert [one["age"] for one in found[:4]] == ["34", "n/a", None, "true"]
    assert [(one["n"], one["at"], one["tags"]) for one in found[:2]] == [
        (0, {"zip": "7"}, [0]),
        (1, {"zip": "007"}, [1]),
    ]
    for one in ({"a": 1}, ["a"]):
        Path("b.jsonl").write_text(f'{{"user": {{"age": {json.dumps(one)}}}}}\n{{"user": {{"age": [2]}}}}\n')
        stopped = shardmill("convert", "b.jsonl", "-o", "two")
        assert 'a value of "user.age" is' in stopped.err


def test_three_digits_behind_a_comma_are_decimals_and_behind_a_point_thousands_where_cells_end_with_semicolons(
    shardmill: Shardmill,
) -> None:
    rows = [f"{n};{n + 1},{n + 100};{'1.270' if n % 2 else '341'}" for n in range(ROWS)]
    Path("a.csv").write_text("\n".join(["id;weight;units", *rows, ""]))
    command = next_command(shardmill("convert", "a.csv", "-o", "out"))
    assert shardmill(*command).code == 0, command
    found = open_dataset("out")["train"].to_arrow().to_pylist()
    assert found[1] == {"id": 1, "weight": pytest.approx(2.101), "units": 1270}
    assert type(found[0]["units"]) is int
