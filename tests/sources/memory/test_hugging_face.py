"""Datasets of Hugging Face by their classes' names alone; `tests/readers/test_hugging_face.py` has real ones."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from shardmill.pipelines import append, convert
from shardmill.transforms.dataset.reading.open_dataset import open_dataset
from shardmill.transforms.errors import SchemaError, UsageError


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


class Dataset:
    __module__ = "datasets.arrow_dataset"

    def __init__(self, rows: list[int], *names: str) -> None:
        info = json.dumps({"info": {"features": {"n": {"names": names, "_type": "ClassLabel"}}}})
        self.table = pa.table({"n": rows}).replace_schema_metadata({"huggingface": info})

    def with_format(self, form: str) -> Dataset:
        assert form == "arrow"
        return self

    def iter(self, rows: int) -> Iterator[pa.Table]:
        return (self.table.slice(start, rows) for start in range(0, len(self.table), rows))


class DatasetDict(dict[str, Dataset]):
    __module__ = "datasets.dataset_dict"


def held(path: str = "out") -> dict[str, list[Any]]:
    dataset = open_dataset(path)
    return {name: dataset.to_arrow(name)["n"].to_pylist() for name in dataset.splits}


def test_a_dict_of_datasets_keeps_its_splits_and_classes_also_in_an_append() -> None:
    data = DatasetDict(train=Dataset([0, 1, 1], "a", "b"), noisy=Dataset([0, 1, 1], "a", "b"))
    summary = convert(data=data, output="out", name="x")
    assert "splits noisy, train, of the data" in summary.detected
    append(data=DatasetDict(noisy=Dataset([0], "b")), output="out")
    assert held() == {"noisy": ["a", "b", "b", "b"], "train": ["a", "b", "b"]}
    assert not list(Path("out").rglob("*.arrow"))
    convert(data=data, output="cut", name="x", split__of="train", split_fractions={"train": 0.5, "val": 0.5})
    assert sum(map(len, held("cut").values())) == 6


def test_a_rule_for_all_rows_of_a_dict_of_datasets_is_refused_with_what_to_pass() -> None:
    data = DatasetDict(train=Dataset([0], "a"), test=Dataset([0, 0], "a"))
    with pytest.raises(UsageError, match=r"the data are in splits \(train, test\); give one: (.*)$") as caught:
        convert(data=data, output="out", name="x", split="dev")
    proposed = re.findall("give one: (.*)$", str(caught.value))
    exec(f"convert({proposed[0]}, output='out', name='x', split='dev')", {"convert": convert, "data": data})
    assert held() == {"dev": ["a"]}
    with pytest.raises(UsageError, match=r"the source is in splits already \(test, train\)"):
        convert(data=data, output="two", name="x", split_fractions={"train": 0.5, "val": 0.5})


def test_splits_of_other_columns_types_or_classes_are_refused() -> None:
    renamed = Dataset([0], "a", "b")
    renamed.table = renamed.table.rename_columns(["m"])
    for other in (Dataset([0], "b", "a"), Dataset([0]), renamed):
        with pytest.raises(SchemaError, match=r"^test of the Hugging Face datasets: its columns, types or classes \("):
            convert(data=DatasetDict(train=Dataset([0], "a", "b"), test=other), output="out", name="x")
    with pytest.raises(UsageError, match="data is an empty dict"):
        convert(data=DatasetDict(), output="out", name="x")
