"""Splits of whole conversions: each kind on each source, in appends, with rejects, and in the manifest."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from PIL import Image
from shardmill.pipelines import append, convert, open_dataset
from shardmill.transforms.errors import SchemaError, ShardmillError, UsageError

ROWS = pa.table(
    {
        "n": range(40),
        "fold": ["train", "val", "train", "test"] * 10,
        "day": [f"2024-{1 + n // 10:02d}-{1 + n % 10:02d}" for n in range(40)],
        "user": [f"u{n % 7}" for n in range(40)],
    }
)
BEFORE = {"column": "day", "train": "2024-02-01", "val": "2024-04-01", "rest": "test"}


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def csv_text(table: pa.Table) -> str:
    lines = [",".join("" if value is None else str(value) for value in row.values()) for row in table.to_pylist()]
    return "\n".join([",".join(table.column_names), *lines]) + "\n"


def write(table: pa.Table, kind: str) -> str:
    name = f"in.{kind}"
    if kind == "csv":
        Path(name).write_text(csv_text(table))
    elif kind == "jsonl":
        Path(name).write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
    elif kind == "parquet":
        pq.write_table(table, name, row_group_size=7)
    elif kind == "arrow":
        with pa.ipc.new_file(name, table.schema) as file:
            file.write_table(table, 9)
    return name


def held(path: str = "out") -> dict[str, list[Any]]:
    """Return the column `n` of each split, sorted."""
    dataset = open_dataset(path)
    return {split: sorted(dataset.to_arrow(split)["n"].to_pylist()) for split in dataset.splits}


EXPECTED = {
    "column": {name: [n for n in range(40) if ROWS["fold"][n].as_py() == name] for name in ("train", "val", "test")},
    "before": {"train": list(range(10)), "val": list(range(10, 30)), "test": list(range(30, 40))},
}


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet", "arrow", "memory"])
@pytest.mark.parametrize(("way", "split"), [("column", {"column": "fold"}), ("before", {"before": BEFORE})])
def test_a_column_decides_the_split_of_rows_of_every_source(kind: str, way: str, split: dict[str, Any]) -> None:
    data = {"data": ROWS} if kind == "memory" else {"config": write(ROWS, kind)}
    summary = convert(**data, output="out", split=split, shard_size="64KiB")  # type: ignore[arg-type]
    assert held() == EXPECTED[way]
    rule = summary.manifest.conversion["split"]
    assert rule == (
        {"column": "fold"}
        if way == "column"
        else {"before": {"column": "day", "train": "2024-02-01", "val": "2024-04-01", "rest": "test"}}
    )


def test_a_column_of_numpy_arrays_decides_the_split() -> None:
    Path("in").mkdir()
    np.savez("in/all.npz", n=np.arange(6), fold=np.array([0, 1, 0, 2, 1, 0], np.int8))
    split = {"column": "fold", "names": {0: "train", 1: "val", 2: "test"}}
    convert("in/all.npz", output="out", split=split, rows=True)
    assert held() == {"train": [0, 2, 5], "val": [1, 4], "test": [3]}


def test_a_feature_of_pictures_decides_their_split() -> None:
    for kind in ("cat", "dog"):
        Path("pets", kind).mkdir(parents=True)
        for size in (8, 16):
            Image.new("RGB", (size, 8)).save(Path("pets", kind, f"{size}.png"))
    convert("pets", output="out", split={"column": "image/class/text"})
    assert {name: split.records for name, split in open_dataset("out").manifest.splits.items()} == {"cat": 2, "dog": 2}
    convert("pets", output="wide", split={"column": "image/width", "names": {8: "train", 16: "val"}})
    assert open_dataset("wide").splits == ("train", "val")


def test_the_classes_of_a_label_name_the_splits() -> None:
    table = pa.table({"n": range(5), "kind": ["train", "val", "train", "Odd", "val"]})
    columns = {"kind": {"label": True}}
    convert(data=table, output="out", split__column="kind", schema__columns=columns, max_rejects=1)
    assert held() == {"train": [0, 2], "val": [1, 4]}
    names = {"Odd": "test", "train": "train"}
    convert(data=table, output="two", split={"column": "kind", "names": names}, schema__columns=columns, max_rejects=2)
    assert held("two") == {"train": [0, 2], "test": [3]}


def test_names_that_a_recipe_gives_and_dates_that_it_reads_decide_the_split() -> None:
    Path("in.csv").write_text("n,when,kind\n0,31.12.2023,a\n1,01.01.2024,b\n2,01.02.2024,\n")
    columns = {"when": {"format": "%d.%m.%Y", "name": "day"}, "kind": {"null": {"fill": "c"}}}
    convert("in.csv", output="out", split={"before": {**BEFORE, "train": "2024-01-01"}}, schema__columns=columns)
    assert held() == {"train": [0], "val": [1, 2]}
    names = {"a": "train", "b": "train", "c": "test"}
    convert("in.csv", output="two", split={"column": "kind", "names": names}, schema__columns=columns)
    assert held("two") == {"train": [0, 1], "test": [2]}


def test_rows_in_no_split_are_rejects_with_their_lines() -> None:
    Path("in.csv").write_text("n,fold\n0,train\n1,\n2,No\n3,val\n")
    convert("in.csv", output="out", split__column="fold", max_rejects=2)
    assert held() == {"train": [0], "val": [3]}
    first, second = map(json.loads, Path("out/rejects/00000001.jsonl").read_text().splitlines())
    assert (first["row"], second["line"]) == (2, 3)
    assert first["errors"] == [
        {
            "column": "fold", "code": "NO_SPLIT", "value": "null", "expected": "a split",
            "message": "null, and split.column says the split of a row: fill it (schema.columns.fold.null), or leave "
            "the row out: --where 'fold is not None'",
        }
    ]  # fmt: skip
    assert 'name the split of every value: split.names: {"No": train, ...}' in second["errors"][0]["message"]


def test_a_column_of_more_values_than_splits_fails_by_its_name() -> None:
    table = pa.table({"n": range(100), "fold": [f"s{n}" for n in range(100)]})
    with pytest.raises(ShardmillError, match=r"split.column name more than 64 splits"):
        convert(data=table, output="out", split__column="fold")
    assert not Path("out/manifest.json").exists()


def test_more_splits_than_there_may_be_are_seen_over_all_tasks() -> None:
    for part in range(2):  # of 40 splits each: no task has too many
        table = pa.table({"fold": [f"p{part}_{n}" for n in range(40)], "x": ["y" * 400_000] * 40})
        pq.write_table(table, f"{part}.parquet")
    with pytest.raises(ShardmillError, match=r"split.column name more than 64 splits"):
        convert(["0.parquet", "1.parquet"], output="out", split__column="fold")


def test_too_many_splits_that_no_sample_showed_end_the_run_with_what_to_do(shardmill: Any) -> None:
    lines = "".join(f"{n},{'train' if n < 90_000 else f's{n % 100}'},{'x' * 20}\n" for n in range(100_000))
    Path("in.csv").write_text(f"n,fold,x\n{lines}")
    shown = shardmill("convert", "in.csv", "-o", "out", "--set", "split.column=fold")
    assert (shown.code, shown.out) == (1, "")
    error, left = shown.err.strip().splitlines()[-2:]
    assert error == (
        "error: the values of split.column name more than 64 splits; choose a column with fewer values, or name the "
        "split of each: split.names; to keep rows of one value together instead: --split-fractions train=0.9,val=0.1 "
        "--split-key COLUMN"
    )
    assert left.startswith("left behind: ")
    assert "to run again when that is fixed starts over" in left
    named = shardmill("convert", "in.csv", "-o", "out", "--split-fractions", "train=0.9,val=0.1")
    assert (named.code, sum(records().values())) == (0, 100_000)


def test_folds_are_equal_shares_of_the_hash() -> None:
    table = pa.table({"n": range(1000)})
    summary = convert(data=table, output="out", split__folds=5)
    found = held()
    assert sorted(found) == [f"fold_{i}" for i in range(5)]
    assert sorted(n for fold in found.values() for n in fold) == list(range(1000))
    assert all(150 < len(fold) < 250 for fold in found.values())
    assert summary.manifest.conversion["split"] == {"folds": 5}
    fractions = {f"fold_{i}": 0.2 for i in range(5)}
    convert(data=table, output="same", split__fractions=fractions)
    assert held("same") == found


def test_a_group_never_straddles_and_stays_where_it_is_when_rows_come_and_go() -> None:
    split = {"fractions": {"train": 0.6, "val": 0.3, "test": 0.1}, "key": "user"}
    users = [f"u{n}" for n in range(100)]
    convert(data=pa.table({"n": range(300), "user": users * 3}), output="all", split=split)
    convert(data=pa.table({"n": range(50), "user": users[50:]}), output="some", split=split)
    where = {}
    for path in ("all", "some"):
        dataset = open_dataset(path)
        for name in dataset.splits:
            for user in dataset.to_arrow(name)["user"].to_pylist():
                assert where.setdefault(user, name) == name
    assert len(where) == 100


def test_the_splits_of_users_are_frozen() -> None:
    table = pa.table({"n": range(12), "user": [f"user-{n}" for n in range(12)]})
    summary = convert(data=table, output="out", split={"fractions": {"train": 0.5, "val": 0.5}, "key": "user"})
    assert held() == {"train": [0, 5, 6, 7, 8, 9, 11], "val": [1, 2, 3, 4, 10]}
    rule = {"key": "user", "fractions": {"train": 0.5, "val": 0.5}}
    assert summary.manifest.conversion["split"] == rule


def pictures(*folders: str) -> None:
    for number, folder in enumerate(folders):
        Path("pets", folder).mkdir(parents=True, exist_ok=True)
        for i in range(40):
            noise = np.random.default_rng(100 * number + i).integers(0, 256, (8, 8, 3), dtype=np.uint8)
            file = io.BytesIO()
            Image.fromarray(noise).save(file, "PNG")
            Path("pets", folder, f"{i}.png").write_bytes(file.getvalue())


def records(path: str = "out") -> dict[str, int]:
    return {name: split.records for name, split in open_dataset(path).manifest.splits.items()}


def test_val_is_cut_out_of_a_folder_train() -> None:
    pictures("train/cat", "train/dog", "test/cat", "test/dog")
    summary = convert("pets", output="out", split={"fractions": {"train": 0.75, "val": 0.25}, "of": "train"})
    found = records()
    assert (sorted(found), found["test"], found["train"] + found["val"]) == (["test", "train", "val"], 80, 80)
    assert 8 < found["val"] < 35
    tests = open_dataset("out").to_arrow("test")["image/filename"].to_pylist()
    assert all(name.startswith("test/") for name in tests)
    assert summary.manifest.conversion["split"]["of"] == "train"


def test_a_folder_that_is_no_split_is_refused_by_name() -> None:
    pictures("train/cat", "test/cat")
    fractions = {"train": 0.5, "val": 0.5}
    with pytest.raises(UsageError, match=r'split.of: "trainn" is no folder that is a split; did you mean "train"'):
        convert("pets", output="out", split={"fractions": fractions, "of": "trainn"})
    convert("pets", output="all", split={"fractions": fractions})
    found = records("all")
    assert (sorted(found), sum(found.values())) == (["train", "val"], 80)
    with pytest.raises(UsageError, match="the source has no folders that are splits"):
        convert(data=ROWS, output="out", split={"fractions": fractions, "of": "train"})


def test_an_append_splits_by_its_own_rule() -> None:
    convert(data=ROWS, output="out", split__column="fold")
    more = pa.table({**{name: ROWS[name] for name in ROWS.column_names}, "n": range(100, 140)})
    append(data=more, output="out", split__column="fold")
    found = held()
    assert {name: len(rows) for name, rows in found.items()} == {"test": 20, "train": 40, "val": 20}
    assert open_dataset("out").manifest.conversion["split"] == {"column": "fold"}


def test_a_split_column_that_is_not_kept_is_refused_by_name() -> None:
    with pytest.raises(SchemaError, match=r'split.column names "fold", which is not a column; there are: day, n, user'):
        convert(write(ROWS, "csv"), output="out", exclude_columns=["fold"], split__column="fold")


def test_a_dry_run_says_which_splits_come_out(shardmill: Any) -> None:
    write(ROWS, "csv")
    screen = shardmill("convert", "in.csv", "-o", "out", "--set", "split.column=fold", "--dry-run", "--json")
    splits = {name: split["records"] for name, split in json.loads(screen.out)["splits"].items()}
    assert splits == {"test": 10, "train": 20, "val": 10}
    screen = shardmill("convert", "in.csv", "-o", "out", "--set", "split.column=fold", "--dry-run")
    assert "others may have more" not in screen.out
    screen = shardmill("convert", "in.csv", "-o", "out", "--split-fractions", "a=0.5,b=0.5", "--split-key", "user")
    assert (screen.code, sum(records().values())) == (0, 40)


def test_a_dry_run_that_did_not_look_at_all_rows_says_that_others_may_have_more_splits(
    shardmill: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shardmill.pipelines.runs.forecast.MOST_ROWS", 100)
    table = pa.table({"n": range(4000), "fold": [("train", "val")[n % 2] for n in range(4000)]})
    pq.write_table(table, "in.parquet", row_group_size=10)
    screen = shardmill("convert", "in.parquet", "-o", "out", "--set", "split.column=fold", "--dry-run")
    assert "Splits are those of the 240 rows that were looked at; others may have more." in screen.out


def test_a_dry_run_of_a_run_that_had_read_all_rows_says_what_each_split_has(shardmill: Any) -> None:
    Path("in.csv").write_text("n,fold\n0,train\n1,\n2,val\n3,val\n")
    assert shardmill("convert", "in.csv", "-o", "out", "--set", "split.column=fold").code == 4
    shown = json.loads(
        shardmill("convert", "in.csv", "-o", "out", "--set", "split.column=fold", "--dry-run", "--json").out
    )
    assert {name: (split["records"], split["shards"]) for name, split in shown["splits"].items()} == {
        "train": (1, 1),
        "val": (2, 1),
    }
    assert "splits_sampled" not in shown


def test_info_says_how_rows_were_split(shardmill: Any) -> None:
    convert(data=ROWS, output="out", split__before=BEFORE)
    rule = "by day: train before 2024-02-01, val before 2024-04-01, test the rest"
    assert f"\nSplit {rule}\n" in shardmill("info", "out").out
    assert json.loads(shardmill("info", "out", "--json").out)["conversion"]["split"]["before"]["rest"] == "test"
    convert(data=ROWS, output="one")
    assert "conversion" not in json.loads(shardmill("info", "one", "--json").out)
