"""An append of text to a dataset that was made with keys which its config lacks."""

from __future__ import annotations

from typing import Any

import pytest
from shardmill.pipelines.cli import main

OPTIONS = (
    "--set 'schema.columns.price.strip=€' --set schema.columns.price.decimal=, --set schema.columns.price.thousands=. "
    "--set schema.columns.day.format=%d.%m.%Y --set schema.columns.share.strip=% "
    "--set schema.columns.share.type=float64"
)
KEYS = [word.strip("'") for word in OPTIONS.replace("--set ", "").split()]
ROWS = {
    "csv": (
        'id,price,day,share\n1,"1.234,50 €",31.12.2024,12 %\n',
        'id,price,day,share\n2,"2.000,00 €",30.12.2024,7 %\n',
    ),
    "jsonl": (
        '{"id": 1, "price": "1.234,50 €", "day": "31.12.2024", "share": "12 %"}\n',
        '{"id": 2, "price": "2.000,00 €", "day": "30.12.2024", "share": "7 %"}\n',
    ),
}


def append(desk: Any, *args: str) -> tuple[int, str]:
    with pytest.raises(SystemExit) as ended:
        main(["append", *args, "-o", "out", "--workers", "1"])
    assert isinstance(ended.value.code, int)
    return ended.value.code, desk.capsys.readouterr().err


OPTIONS_OF_ALL = [word for key in KEYS for word in ("--set", key)]


@pytest.mark.parametrize("kind", ROWS)
def test_an_append_of_the_same_format_reads_its_text_as_the_dataset_was_read(desk: Any, kind: str) -> None:
    first, second = ROWS[kind]
    desk.put({f"a.{kind}": first.encode(), f"b.{kind}": second.encode()})
    assert desk.convert(f"a.{kind}", *OPTIONS_OF_ALL).code == 0
    assert append(desk, f"b.{kind}") == (0, "")
    assert [row["price"] for row in desk.records()] == [1234.5, 2000.0]


@pytest.mark.parametrize("kind", ROWS)
def test_an_append_without_the_keys_of_its_text_names_them_and_the_options_work(desk: Any, kind: str) -> None:
    """Of another format: keys by which text is read are not taken over."""
    (other,) = set(ROWS) - {kind}
    desk.put({f"a.{other}": ROWS[other][0].encode(), f"b.{kind}": ROWS[kind][1].encode()})
    options = OPTIONS_OF_ALL
    assert desk.convert(f"a.{other}", *options).code == 0
    code, err = append(desk, f"b.{kind}")
    assert code == 2
    named = err.split("these read the values: ")[1].partition("; or ")[0]
    assert set(named.split()) == set(OPTIONS.split())
    assert append(desk, f"b.{kind}", *options) == (0, "")
    assert [row["price"] for row in desk.records()] == [1234.5, 2000.0]
