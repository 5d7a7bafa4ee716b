from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from shardmill.pipelines import append, convert
from shardmill.transforms.dataset.reading.open_dataset import open_dataset
from shardmill.transforms.errors import InputError, UsageError
from shardmill.transforms.sources.files.partitions import partition_columns

pytestmark = pytest.mark.usefixtures("without_engine")

HIVE = ("country=de/year=2023", "country=fr/year=2024")


def put(root: Path, suffix: str) -> None:
    for number, folder in enumerate(HIVE):
        (root / "hive" / folder).mkdir(parents=True)
        path = root / "hive" / folder / f"part-0.{suffix}"
        if suffix == "csv":
            path.write_text(f"id\n{number}\n")
        else:
            pq.write_table(pa.table({"id": [number]}), path)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize("typed", ["hive", "hive/*/*/*", "hive/country=de", "hive/country=de/year=2023/part-0.*"])
def test_columns_in_the_names_of_folders_are_never_lost_without_a_word(
    suffix: str, typed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path, suffix)
    monkeypatch.chdir(tmp_path)
    config: dict[str, Any] = {"input": {"paths": [typed]}}
    with pytest.raises(
        UsageError, match=r'its folders name the columns "country", "year" .*input\.partitions=none'
    ) as no:
        convert(config, output="o/hive")
    exec(textwrap.dedent(str(no.value).split("in Python:\n")[1]), {})  # the program that is printed does as it says
    rows = [(row["id"], row["country"], row["year"]) for row in open_dataset("o/hive").to_table("train").to_pylist()]
    assert sorted(rows) == [(0, "de", 2023), (1, "fr", 2024)][: 1 if "de" in typed else 2]
    config["input"]["partitions"] = "none"
    convert(config, output="out")
    ids = open_dataset("out").to_table("train")["id"].to_pylist()
    assert ids == ([0, 1] if "de" not in typed else [0])


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_folders_above_what_was_typed_name_no_columns(
    suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = tmp_path / "run=3"
    put(work, suffix)
    leaf = work / "hive" / HIVE[0]
    monkeypatch.chdir(leaf)
    assert convert({"input": {"paths": [f"part-0.{suffix}"]}}, output=tmp_path / "a").manifest.counts.written == 1
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert convert({"input": {"paths": [str(leaf)]}}, output=tmp_path / "b").manifest.counts.written == 1


@pytest.mark.parametrize(
    ("name", "paths", "columns"),
    [
        ("hive/a=1/b=2/x.csv", ["hive"], ("a", "b")),
        ("s3://bucket/hive/a=1/x.csv", ["s3://bucket/hive"], ("a",)),
        ("s3://bucket/a=1/hive/x.csv", ["s3://bucket/a=1/hive"], ()),
        ("/data/a=1/hive/b=2/x.csv", ["/data/a=1/hive/*/x.csv"], ("b",)),
        ("a/x=1.csv", ["a"], ()),
        ("a/=1/x.csv", ["a"], ()),
        ("a/1=2/x.csv", ["a"], ()),
        ("a/c=__HIVE_DEFAULT_PARTITION__/x.csv", ["a"], ("c",)),
    ],
)
def test_only_folders_below_a_path_count(name: str, paths: list[str], columns: tuple[str, ...]) -> None:
    assert partition_columns(name, paths) == columns


@pytest.mark.parametrize("paths", [["data"], ["data/*/*.csv"], ["data/train", "data/val"]])
def test_tables_in_folders_of_splits_are_not_merged_without_a_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, paths: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for split in ("train", "val"):
        (tmp_path / "data" / split).mkdir(parents=True)
        (tmp_path / "data" / split / "a.csv").write_text(f"a\n{len(split)}\n")
    with pytest.raises(InputError, match="look like splits, and files of tables are read as one") as refused:
        convert(paths, output="o/both")
    for command in re.findall(r"shardmill (\w+) (\S+) -o (\S+) --split (\w+)", str(refused.value)):
        name, source, output, split = command
        {"convert": convert, "append": append}[name](source, output=output, output__split=split)
    assert {name: len(open_dataset("o/both").to_table(name)) for name in open_dataset("o/both").splits} == {
        "train": 1,
        "val": 1,
    }
    assert len(open_dataset(convert(paths, output="all", input__partitions="none").path)) == 2


def test_one_folder_with_the_name_of_a_split_is_a_folder(tmp_path: Path) -> None:
    (tmp_path / "train").mkdir()
    (tmp_path / "train/a.csv").write_text("a\n1\n")
    assert convert(str(tmp_path), output=str(tmp_path / "out")).manifest.counts.written == 1
