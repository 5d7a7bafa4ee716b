from __future__ import annotations

from pathlib import Path

import pytest
from shardmill.pipelines import convert
from shardmill.transforms.dataset.reading.open_dataset import open_dataset
from shardmill.transforms.recognise.evidence.names import partition_values


@pytest.mark.parametrize(
    ("name", "paths", "columns"),
    [
        ("hive/a=1/b=2/x.csv", ["hive"], ("a", "b")),
        ("s3://bucket/hive/a=1/x.csv", ["s3://bucket/hive"], ("a",)),
        ("s3://bucket/a=1/hive/x.csv", ["s3://bucket/a=1/hive"], ()),
        ("/data/a=1/hive/b=2/x.csv", ["/data/a=1/hive/*/x.csv"], ("b",)),
        ("/data/hive/a=1/b=2/x.csv", ["/data/hive/a=*/b=2/*.csv"], ("a", "b")),
        ("/data/hive/a=1/b=2/x.csv", ["/data/hive/a=[12]/b=*/x.csv"], ("a", "b")),
        ("s3://bucket/a=1/b=2/x.csv", ["s3://bucket/a=*/*/*.csv"], ("a", "b")),
        ("/data/a=1/b=2/x.csv", ["/data/a=1/"], ("b",)),
        ("/data/hive2/b=2/x.csv", ["/data/hive", "/data/hive2"], ("b",)),
        ("/data/hive_a=2/x.csv", ["/data/hive", "/data/*/x.csv"], ("hive_a",)),
        ("/data/a=1/x.csv", ["/data/a=1/x.csv"], ()),
        ("a/x=1.csv", ["a"], ()),
        ("a/=1/x.csv", ["a"], ()),
        ("a/1=2/x.csv", ["a"], ()),
        ("a/c=__HIVE_DEFAULT_PARTITION__/x.csv", ["a"], ("c",)),
    ],
)
def test_only_folders_below_a_path_count(name: str, paths: list[str], columns: tuple[str, ...]) -> None:
    assert tuple(partition_values(name, paths)) == columns


@pytest.mark.parametrize("paths", [["data"], ["data/*/*.csv"], ["data/train", "data/val"]])
def test_tables_in_folders_of_splits_go_to_these(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, paths: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for split in ("train", "val"):
        (tmp_path / "data" / split).mkdir(parents=True)
        (tmp_path / "data" / split / "a.csv").write_text(f"a\n{len(split)}\n")
    convert(paths, output="o/both")
    assert {name: open_dataset("o/both").to_arrow(name)["a"].to_pylist() for name in open_dataset("o/both").splits} == {
        "train": [5],
        "val": [3],
    }
    assert len(open_dataset(convert(paths, output="all", input__splits="none").path)["train"]) == 2


def test_one_folder_with_the_name_of_a_split_is_a_folder(tmp_path: Path) -> None:
    (tmp_path / "train").mkdir()
    (tmp_path / "train/a.csv").write_text("a\n1\n")
    assert convert(str(tmp_path), output=str(tmp_path / "out")).manifest.counts.written == 1
