"""Datasets of Hugging Face's own library are converted as its Arrow tables."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import datasets
import pytest
from PIL import Image
from shardmill.pipelines import convert, open_dataset
from shardmill.transforms.errors import UsageError

ROWS = 3000


def texts() -> datasets.Dataset:
    features = {
        "text": datasets.Value("string"),
        "tokens": datasets.List(datasets.Value("int32")),
        "label": datasets.ClassLabel(names=["neg", "pos"]),
    }
    rows = {
        "text": [f"row {n}" for n in range(ROWS)],
        "tokens": [list(range(n % 4)) for n in range(ROWS)],
        "label": [n % 2 for n in range(ROWS)],
    }
    return datasets.Dataset.from_dict(rows, features=datasets.Features(features))


def held(path: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = open_dataset(path).to_table("train").to_pylist()
    return rows


@pytest.mark.parametrize("way", ["dataset", "shuffled", "filtered", "stream"])
def test_a_dataset_is_converted_in_its_own_order_with_the_values_that_it_gives(tmp_path: Path, way: str) -> None:
    dataset = texts()
    source = {
        "dataset": lambda: dataset,
        "shuffled": lambda: dataset.shuffle(seed=7),
        "filtered": lambda: dataset.filter(lambda row: row["label"] == 1),
        "stream": dataset.to_iterable_dataset,
    }[way]()
    convert(data=source, output=tmp_path / "out", name="texts", order="source")
    assert held(tmp_path / "out") == [{name: row[name] for name in ("label", "text", "tokens")} for row in source]


def test_pictures_are_features_of_pictures(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    Image.new("RGB", (8, 6)).save(buffer, "png")
    rows = {"photo": [{"bytes": buffer.getvalue(), "path": "a.png"}] * 3, "caption": ["a", "b", "c"]}
    features = datasets.Features({"photo": datasets.Image(), "caption": datasets.Value("string")})
    dataset = datasets.Dataset.from_dict(rows, features=features)
    convert(data=dataset, output=tmp_path / "out", name="photos", schema__columns__photo__image="bytes")
    (first, *_) = held(tmp_path / "out")
    assert (first["caption"], first["photo/height"], first["photo/width"]) == ("a", 6, 8)
    assert first["photo/encoded"] == buffer.getvalue()


def test_an_empty_dataset_is_refused_in_words(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="data is empty: without a row its columns are not known"):
        convert(data=texts().select([]), output=tmp_path / "out", name="nothing")
