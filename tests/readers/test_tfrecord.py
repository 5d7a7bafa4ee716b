"""vahidk's `tfrecord`, which PyTorch users read with: whole files, gzip, and shards of a file by its index."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from shardmill.transforms.dataset.reading.open_dataset import Dataset

from ..label_numbers import in_numbers

Samples = Callable[..., Dataset]

PROGRAM = Path(__file__).with_name("read_with_tfrecord.py")

WORDS = {"int64": "int", "float": "float", "bytes": "byte"}


def run(*arguments: str) -> str:
    command = [sys.executable, str(PROGRAM), *arguments]
    return subprocess.run(command, capture_output=True, check=True, text=True).stdout


def load(path: str, index: str | None, description: dict[str, str], **options: Any) -> list[dict[str, Any]]:
    request = {"data_path": path, "index_path": index, "description": description, **options}
    return [json.loads(line, object_hook=restore) for line in run("load", json.dumps(request)).splitlines()]


def restore(document: dict[str, Any]) -> Any:
    return base64.b64decode(document["base64"]) if document.keys() == {"base64"} else document


def index_of(shard: str) -> str:
    return str(Path(shard).parent / "index" / Path(shard).name.replace(".tfrecord", ".idx"))


def encoded_images(dataset: Dataset) -> list[bytes]:
    return in_numbers(dataset.to_arrow("train", ["image/encoded"])).column(0).to_pylist()


@pytest.fixture
def indexed(sample: Samples) -> Dataset:
    return sample("images", sidecars=["tfds", "tfx", "index"])


def test_the_index_is_what_its_own_tool_writes(indexed: Dataset, tmp_path: Path) -> None:
    for shard in indexed.shard_paths("train"):
        run("index", shard, str(tmp_path / "made.idx"))
        assert Path(index_of(shard)).read_bytes() == (tmp_path / "made.idx").read_bytes()


@pytest.mark.parametrize("config", ["quickstart", "csv", "parquet", "images", "numpy", "every_type"])
def test_it_reads_every_row_of_every_sample(sample: Samples, config: str) -> None:
    dataset = sample(config)
    assert dataset.schema is not None
    # A key that is not in the record is an error there, so it is asked for those that always are.
    always = {f.name: WORDS[f.kind] for f in dataset.schema if not f.nullable and f.shape == ()}
    columns = {f.name: f for f in dataset.schema}
    found = [example for path in dataset.shard_paths("train") for example in load(path, None, always)]
    table = in_numbers(dataset.to_arrow("train", list(always)))
    assert len(found) == table.num_rows
    for name in always:
        for example, scalar in zip(found, table.column(name), strict=True):
            if columns[name].type == "float64" and columns[name].kind == "bytes":
                assert np.frombuffer(example[name], "<f8").tolist() == [scalar.as_py()]
            elif columns[name].kind == "bytes":
                assert example[name] == scalar.as_buffer().to_pybytes()
            else:
                wanted = scalar.value if hasattr(scalar, "value") else scalar.as_py()
                assert np.reshape(example[name], -1).tolist() == [wanted]


def test_it_reads_gzip(sample: Samples) -> None:
    dataset = sample("images", compression="gzip")
    found = [
        example["image/encoded"]
        for path in dataset.shard_paths("train")
        for example in load(path, None, {"image/encoded": "byte"}, compression_type="gzip")
    ]
    assert found == encoded_images(dataset)


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_its_workers_share_a_shard_by_the_index(indexed: Dataset, workers: int) -> None:
    found = [
        example["image/encoded"]
        for shard in indexed.shard_paths("train")
        for worker in range(workers)
        for example in load(shard, index_of(shard), {"image/encoded": "byte"}, shard=(worker, workers))
    ]
    assert found == encoded_images(indexed)
