"""Values that are in several splits: found exactly, whatever splits the rows, and reported with their places."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from shardmill.pipelines import append, convert, open_dataset
from shardmill.transforms.errors import SchemaError

from ..command_line import Shardmill

pytestmark = pytest.mark.usefixtures("without_engine")

SPLIT = {"fractions": {"train": 0.7, "val": 0.2, "test": 0.1}}


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def table_of(rows: int = 900) -> pa.Table:
    users = [None if row % 45 == 0 else f"u{row * row % 211}" for row in range(rows)]
    return pa.table({"id": range(rows), "user": pa.array(users, pa.string()), "day": [row % 3 for row in range(rows)]})


def leaks(columns: list[str], **settings: Any) -> dict[str, Any]:
    given = {"split": SPLIT, "checks": {"leaks": {"columns": columns}}} | settings
    convert(data=table_of(), output="out", **given)
    found: dict[str, Any] = open_dataset("out").manifest.details.checks["leaks"]
    return found


def by_hand(columns: list[str]) -> tuple[int, int, dict[str, int]]:
    """Return the records and the number of values that are in several splits, and how many each two of them share."""
    splits, records = defaultdict[Any, set[str]](set), defaultdict[Any, int](int)
    dataset = open_dataset("out")
    for name in dataset.splits:
        for row in dataset.to_table(name).to_pylist():
            value = tuple(row[column] for column in columns)
            if any(one is not None for one in value):
                splits[value].add(name)
                records[value] += 1
    shared = {value: found for value, found in splits.items() if len(found) > 1}
    pairs = [("test", "train"), ("test", "val"), ("train", "val")]
    counts = {" ".join(pair): sum(set(pair) <= found for found in shared.values()) for pair in pairs}
    return sum(records[value] for value in shared), len(shared), counts


@pytest.mark.parametrize("columns", [["user"], ["user", "day"], ["day"]])
@pytest.mark.parametrize(
    "more",
    [{}, {"shuffle": {"seed": 7}}, {"split": SPLIT | {"by": "exact", "stratify": "day"}, "shuffle": {"seed": 7}}],
    ids=["in order", "shuffled", "exact and shuffled"],
)
def test_values_in_several_splits_are_counted_exactly_and_nulls_are_none(columns: list[str], more: Any) -> None:
    found = leaks(columns, **more)
    records, groups, pairs = by_hand(columns)
    assert (found["records"], found["groups"]) == (records, groups)
    counted = {" ".join(sorted(pair.split())): count for pair, count in found["splits"].items()}
    assert counted == {pair: count for pair, count in pairs.items() if count}
    assert groups > 0


def test_a_split_by_the_column_has_no_leaks() -> None:
    found = leaks(["user"], split=SPLIT | {"key": "user"})
    assert (found["records"], found["groups"]) == (0, 0)
    assert "examples" not in found


def test_duplicates_and_leaks_are_checked_side_by_side() -> None:
    checks = {"leaks": {"columns": ["user"]}, "duplicates": {"columns": ["user", "day"], "action": "drop"}}
    leaks([], checks=checks)
    manifest = open_dataset("out").manifest
    assert set(manifest.details.checks) == {"duplicates", "leaks"}
    assert manifest.counts.dropped == manifest.details.checks["duplicates"]["records"] > 0


def test_an_append_reports_the_leaks_of_what_it_adds() -> None:
    convert(data=table_of(), output="out", split=SPLIT)
    append(data=table_of(300), output="out", split=SPLIT, checks={"leaks": {"columns": ["user"]}})
    assert 0 < open_dataset("out").manifest.details.checks["leaks"]["records"] <= 300


def test_a_column_that_is_not_there_is_refused_by_name() -> None:
    with pytest.raises(SchemaError, match=r'checks.leaks.columns names "usr", .*did you mean "user"'):
        leaks(["usr"])


def test_the_screen_names_the_splits_the_places_and_what_to_do(shardmill: Shardmill) -> None:
    Path("t.csv").write_text("id,user\n" + "".join(f"{row},u{row % 5}\n" for row in range(100)))
    options = ["--split-fractions", "train=0.8,val=0.2", "--set", "checks.leaks.columns=[user]"]
    shown = shardmill("convert", "t.csv", "-o", "out", *options).out
    assert "Leaks of user: 5 values are in more than one split, with 100 records:" in shown
    assert "t.csv row 1 = t.csv row 6 = t.csv row 11 and 17 more" in shown
    assert "to keep each in one split, where fractions say the splits: --split-key user" in shown


@pytest.mark.parametrize("more", [{}, {"shuffle": {"seed": 7}}], ids=["in order", "shuffled"])
def test_records_that_duplicates_drop_leak_nothing(more: dict[str, Any]) -> None:
    checks = {"duplicates": {"columns": ["day"], "action": "drop"}, "leaks": {"columns": ["day"]}}
    assert leaks(["day"], checks=checks, **more)["records"] == 0
    checks = {"duplicates": {"columns": ["user"], "action": "drop"}, "leaks": {"columns": ["day"]}}
    found = leaks(["day"], checks=checks, **more, if_exists="replace")
    assert (found["records"], found["groups"], found["splits"]) == by_hand(["day"])
    assert found["records"] == open_dataset("out").manifest.counts.written
