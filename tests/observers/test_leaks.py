"""Values that are in several splits: found exactly, whatever splits the rows, and reported with their places."""

from __future__ import annotations

import json
import re
import shlex
from collections import defaultdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from PIL import Image
from shardmill.pipelines import append, convert, open_dataset
from shardmill.transforms.errors import SchemaError

from ..command_line import Shardmill

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
        for row in dataset.to_arrow(name).to_pylist():
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
    assert "\n  to keep each in one split: --split-key user\n" in shown


KEEP = "to keep each in one split"
FRACTIONS = ["--split-fractions", "train=0.5,val=0.5"]


KEY = "--split-key 'the user'"
INSTEAD = f", instead of this rule: --split-fractions train=0.9,val=0.1 {KEY}"


@pytest.mark.parametrize(
    ("rule", "more", "fix"),
    [
        ([], ["--set", "split.column=fold"], INSTEAD),
        ([], ["--set", "split.before={column: day, train: 2024-01-02, rest: val}"], INSTEAD),
        (FRACTIONS, ["--split-key", "id"], f": {KEY} instead of key"),
        ([*FRACTIONS, "--set", "split.by=exact"], ["--set", "split.stratify=fold"], f": {KEY} instead of stratify"),
        (["--set", "split.folds=2"], [], f": {KEY}"),
    ],
)
def test_what_keeps_a_value_in_one_split_depends_on_the_rule_and_does_it(
    shardmill: Shardmill, rule: list[str], more: list[str], fix: str
) -> None:
    rows = [f"{n},{n % 29},{('train', 'val')[n % 2]},2024-01-0{1 + n % 3}\n" for n in range(200)]
    Path("t.csv").write_text("".join(["id,the user,fold,day\n", *rows]))
    leak = ["--set", "checks.leaks.columns=[the user]"]
    assert f"\n  {KEEP}{fix}\n" in shardmill("convert", "t.csv", "-o", "out", *leak, *rule, *more).out
    options = shlex.split(fix.partition(": ")[2].partition(" instead")[0])
    again = shardmill("convert", "t.csv", "-o", "again", *leak, *rule, *options)
    assert "Leaks of the user: none\n" in again.out


def test_what_is_proposed_for_a_nested_column_or_one_of_lists_is_a_key_that_there_is(shardmill: Shardmill) -> None:
    rows = [{"user": {"id": n % 40}, "tags": [n % 7, 1]} for n in range(400)]
    Path("t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    shown = shardmill("convert", "t.jsonl", "-o", "out", *FRACTIONS, "--set", "checks.leaks.columns=[user]").out
    key = re.findall(rf"\n  {KEEP}: (.*)\n", shown)[0].split()
    again = shardmill("convert", "t.jsonl", "-o", "two", *FRACTIONS, "--set", "checks.leaks.columns=[user]", *key).out
    assert "Leaks of user: none\n" in again
    shown = shardmill("convert", "t.jsonl", "-o", "tags", *FRACTIONS, "--set", "checks.leaks.columns=[tags]").out
    assert f"\n  {KEEP}, add a column with one text or number for each, and split by it: --split-key COLUMN" in shown


def test_leaks_among_folders_that_are_splits_are_said_to_be_of_the_source(shardmill: Shardmill) -> None:
    for split in ("train", "test"):
        Path("pets", split, "cat").mkdir(parents=True)
        for number in range(3):
            Image.new("L", (8, 8), number).save(Path("pets", split, "cat", f"{number}.png"))
    shown = shardmill("convert", "pets", "-o", "out", "--set", "checks.leaks.columns=[image/encoded]").out
    assert "3 values are in more than one split" in shown
    assert f"\n  the splits are those of the source; {KEEP}, move its rows into one of them\n" in shown
    assert "--split" not in shown


def test_where_nothing_can_be_compared_no_leaks_are_not_reported_as_none(shardmill: Shardmill) -> None:
    Path("t.csv").write_text("id,user,empty\n1,a,\n2,a,\n3,b,\n4,b,\n5,c,\n6,c,\n")
    user, empty = ("--set", "checks.leaks.columns=[user]"), ("--set", "checks.leaks.columns=[empty]")
    shown = shardmill("convert", "t.csv", "-o", "one", *user)
    assert "\nLeaks of user: nothing to compare: all records are in one split\n" in shown.out
    found = json.loads(shardmill("info", "one", "--json").out)["checks"]["leaks"]
    assert found == {"columns": ["user"], "records": 0, "groups": 0, "not_compared": "one split"}
    shown = shardmill("convert", "t.csv", "-o", "two", *empty, *FRACTIONS)
    assert "\nLeaks of empty: nothing to compare: no record has a value\n" in shown.out
    shown = shardmill("convert", "t.csv", "-o", "three", *user, *FRACTIONS, "--split-key", "user")
    assert "\nLeaks of user: none\n" in shown.out
    Path("more.csv").write_text("id,user,empty\n7,a,\n")
    shown = shardmill("append", "more.csv", "-o", "three", *user)
    assert "Leaks of user: nothing to compare among the new records: all records are in one split" in shown.out
    Path("none.csv").write_text("id,user,empty\n")
    shown = shardmill("append", "none.csv", "-o", "three", *user)
    assert "Leaks of user: nothing to compare among the new records: no record has a value" in shown.out


@pytest.mark.parametrize("more", [{}, {"shuffle": {"seed": 7}}], ids=["in order", "shuffled"])
def test_records_that_duplicates_drop_leak_nothing(more: dict[str, Any]) -> None:
    checks = {"duplicates": {"columns": ["day"], "action": "drop"}, "leaks": {"columns": ["day"]}}
    assert leaks(["day"], checks=checks, **more)["records"] == 0
    checks = {"duplicates": {"columns": ["user"], "action": "drop"}, "leaks": {"columns": ["day"]}}
    found = leaks(["day"], checks=checks, **more, if_exists="replace")
    assert (found["records"], found["groups"], found["splits"]) == by_hand(["day"])
    assert found["records"] == open_dataset("out").manifest.counts.written
