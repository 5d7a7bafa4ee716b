from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shardmill.pipelines import append, convert
from shardmill.pipelines.config.load import load_config
from shardmill.pipelines.prepare.from_config import conversion_of
from shardmill.pipelines.runs.convert import dry_run
from shardmill.transforms.dataset.reading.open_dataset import open_dataset
from shardmill.transforms.errors import SchemaError
from shardmill.transforms.inputs.contract.source import Listing, SourceEntry
from shardmill.transforms.recipe.steps.beside_tables import Partitions

HIVE = ("country=de/year=2023", "country=fr/year=2024")


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def put(root: Path, suffix: str, folders: tuple[str, ...] = HIVE, **columns: Any) -> None:
    for number, folder in enumerate(folders):
        (root / folder).mkdir(parents=True, exist_ok=True)
        path = root / folder / f"part-{number}.{suffix}"
        table = {"id": number, **columns}
        if suffix == "csv":
            path.write_text(f"{','.join(table)}\n{','.join(map(str, table.values()))}\n")
        else:
            pq.write_table(pa.table({name: [value] for name, value in table.items()}), path)


def rows_of(path: str = "out", split: str = "train") -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = open_dataset(path).to_arrow(split).to_pylist()
    return sorted(rows, key=lambda row: row["id"])


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize("typed", ["hive", "hive/*/*/*", "hive/country=de", "hive/country=de/year=2023/part-0.*"])
def test_columns_in_the_names_of_folders_are_columns_as_pyarrow_reads_them(suffix: str, typed: str, work: Path) -> None:
    put(work / "hive", suffix)
    summary = convert(typed, output="out")
    files = sorted(map(str, (work / "hive").rglob("part-*")))[: 1 if "de" in typed else 2]
    format_ = ds.CsvFileFormat() if suffix == "csv" else "parquet"
    theirs = ds.dataset(files, format=format_, partitioning="hive", partition_base_dir=str(work / "hive")).to_table()
    assert rows_of() == sorted(theirs.to_pylist(), key=lambda row: row["id"])
    assert "columns country, year, from the names of folders (input.partitions)" in summary.detected
    reasons = {
        choice.column: choice.reason
        for choice in dry_run(conversion_of(load_config(paths=[typed], flags={"output.path": "o"}))).choices
    }
    assert reasons["year"] == "int64; from the names of folders"


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_they_are_left_out_where_that_is_asked_for(suffix: str, work: Path) -> None:
    put(work / "hive", suffix)
    convert("hive", output="out", partitions="none")
    assert rows_of() == [{"id": 0}, {"id": 1}]
    convert("hive", output="some", exclude_columns=["country"])
    assert rows_of("some") == [{"id": 0, "year": 2023}, {"id": 1, "year": 2024}]
    convert("hive", output="two", columns=["id", "country"])
    assert rows_of("two") == [{"id": 0, "country": "de"}, {"id": 1, "country": "fr"}]


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_folders_above_what_was_typed_name_no_columns(suffix: str, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(work / "run=3/hive", suffix)
    leaf = work / "run=3/hive" / HIVE[0]
    monkeypatch.chdir(leaf)
    convert(f"part-0.{suffix}", output=work / "a")
    assert rows_of(str(work / "a")) == [{"id": 0}]
    (work / "elsewhere").mkdir()
    monkeypatch.chdir(work / "elsewhere")
    convert(str(leaf), output=work / "b")
    assert rows_of(str(work / "b")) == [{"id": 0}]


@pytest.mark.parametrize(
    ("values", "read"),
    [
        (["1", "-20"], [1, -20]),
        (["01", "2"], ["01", "2"]),
        (["1", "x"], ["1", "x"]),
        (["9223372036854775808", "1"], ["9223372036854775808", "1"]),
        (["a%20b", "c%2Fd"], ["a b", "c/d"]),
        (["__HIVE_DEFAULT_PARTITION__", "7"], [None, 7]),
        (["__HIVE_DEFAULT_PARTITION__", "x"], [None, "x"]),
        (["", "x"], ["", "x"]),
    ],
)
def test_a_column_is_integers_where_all_values_are_written_so_and_text_else(
    values: list[str], read: list[Any], work: Path
) -> None:
    put(work / "in", "parquet", tuple(f"v={value}" for value in values))
    convert("in", output="out")
    assert [row["v"] for row in rows_of()] == read


@given(values=st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=5))
def test_every_int64_is_read_as_it_is(values: list[int]) -> None:
    names = [f"in/v={value}/a.csv" for value in values]
    entries = tuple(SourceEntry(name.encode(), name, 1, 0, "") for name in names)
    step = Partitions(("in",)).of_files(Listing("csv", entries, len(entries), len(entries)))
    assert step is not None
    for value in values:
        batch = step.apply(pa.record_batch({"id": [1, 2]}), f"in/v={value}/a.csv")
        assert (batch.column("v").to_pylist(), batch.column("v").type) == ([value, value], pa.int64())


def test_a_column_that_the_files_have_too_is_refused_by_name(work: Path) -> None:
    put(work / "in", "parquet", ("year=2024",), year=1999)
    with pytest.raises(SchemaError, match='the files hold a column "year", and their folders name it too'):
        convert("in", output="out")
    convert("in", output="out", partitions="none")
    assert rows_of() == [{"id": 0, "year": 1999}]


def test_files_with_other_folders_are_refused_by_name(work: Path) -> None:
    put(work / "in", "parquet", ("year=2024", "."))
    with pytest.raises(SchemaError, match=r'name no columns, and those of in/year=2024/part-0\.parquet "year"'):
        convert("in", output="out")


def test_an_append_has_the_types_of_the_dataset(work: Path) -> None:
    put(work / "one", "csv", ("zip=01234",))
    put(work / "two", "csv", ("zip=99999",))
    convert("one", output="out")
    append("two", output="out")
    assert [row["zip"] for row in rows_of()] == ["01234", "99999"]
    put(work / "three", "csv", ("plz=1",))
    with pytest.raises(SchemaError, match=r"1 feature added, 1 feature missing"):
        append("three", output="out")


def test_splits_by_a_column_of_folders_keep_its_groups(work: Path) -> None:
    put(work / "in", "parquet", tuple(f"user={number}" for number in range(40)))
    convert("in", output="out", split__fractions={"a": 0.5, "b": 0.5}, split__key="user")
    users = [{row["user"] for row in rows_of(split=split)} for split in ("a", "b")]
    assert not users[0] & users[1]
    assert len(users[0] | users[1]) == 40
