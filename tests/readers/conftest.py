"""The samples, converted once, and what the tests ask of the libraries that read them."""

from __future__ import annotations

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # before the first import of TensorFlow
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from shardmill.pipelines import convert
from shardmill.transforms.dataset.reading.open_dataset import Dataset, open_dataset

CONFIGS = Path(__file__).parents[2] / "configs"

SAMPLES = ("quickstart", "csv", "parquet", "images", "folders", "albums", "resized", "numpy", "every_type")
"""The configs that the repo ships, and a table of every type; each one is read by every library that can."""

OTHERS_WARNINGS = (
    "ignore:label\\(\\) is deprecated. Use is_required:DeprecationWarning",  # TFDS 4.9 asks protobuf 6 in an old way
)
"""Warnings that other libraries raise about themselves; ours stay errors."""


def pytest_configure(config: pytest.Config) -> None:
    for line in OTHERS_WARNINGS:
        config.addinivalue_line("filterwarnings", line)


def _convert(config: str, out: Path, **options: Any) -> None:
    if config == "every_type":
        convert(data=every_type(), output=out, schema={"columns": {"exact": {"as": "bytes"}}}, **options)
    else:
        convert(CONFIGS / f"{config}.yaml", output=out, **options)


def every_type() -> pa.Table:
    """Return four rows of a column of each type, alone, nullable, as a list, and as a list of two."""
    moment = 1_700_000_000_123_456
    values: dict[str, tuple[pa.DataType, list[Any]]] = {
        "bool": (pa.bool_(), [True, False]),
        "int8": (pa.int8(), [-128, 127]),
        "int16": (pa.int16(), [-32768, 32767]),
        "int32": (pa.int32(), [-(1 << 31), (1 << 31) - 1]),
        "int64": (pa.int64(), [1 - (1 << 63), (1 << 63) - 1]),
        "uint8": (pa.uint8(), [0, 255]),
        "uint16": (pa.uint16(), [0, 65535]),
        "uint32": (pa.uint32(), [0, (1 << 32) - 1]),
        "uint64": (pa.uint64(), [0, (1 << 63) - 1]),
        "float16": (pa.float16(), [np.float16(1.5), np.float16(-65504)]),
        "float32": (pa.float32(), [0.1, -3e38]),
        "float64": (pa.float64(), [0.5, -1.25]),
        "string": (pa.string(), ["", "näme\n"]),
        "binary": (pa.binary(), [b"\x00\xff", b""]),
        "date": (pa.date32(), [19000, -1]),
        "time": (pa.time64("us"), [0, 86_399_999_999]),
        "timestamp": (pa.timestamp("us", "UTC"), [moment, -moment]),
        "duration": (pa.duration("us"), [-moment, moment]),
    }
    columns: dict[str, pa.Array] = {
        "exact": pa.array([0.1, 1e300, -0.0, 5e-324]),
        "word": pa.array(["a", "b", "a", "b"]).dictionary_encode(),
        "nothing": pa.nulls(4),
    }
    for name, (arrow, (first, second)) in values.items():
        columns[name] = pa.array([first, second, first, second], arrow)
        columns[f"{name}_null"] = pa.array([first, None, None, second], arrow)
        columns[f"{name}_list"] = pa.array([[first, second], [], [second], [first]], pa.list_(arrow))
        columns[f"{name}_list_null"] = pa.array([[first], None, [], [first, second]], pa.list_(arrow))
        columns[f"{name}_pair"] = pa.array([[first, second]] * 4, pa.list_(arrow, 2))
        columns[f"{name}_pair_null"] = pa.array([[first, second], None] * 2, pa.list_(arrow, 2))
    fields = [pa.field(name, column.type, nullable=column.null_count > 0) for name, column in columns.items()]
    return pa.table(list(columns.values()), pa.schema(fields))


Samples = Callable[..., Dataset]


@pytest.fixture(scope="session")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Samples:
    """Return the dataset that a config makes, with options in place of the config's own."""
    made: dict[tuple[str, str], Dataset] = {}

    def convert_once(config: str, **options: Any) -> Dataset:
        key = (config, repr(options))
        if key not in made:
            out = tmp_path_factory.mktemp(config) / "out"
            _convert(config, out, **options)
            made[key] = open_dataset(out)
        return made[key]

    return convert_once


@pytest.fixture(params=SAMPLES)
def any_sample(request: pytest.FixtureRequest, sample: Samples) -> Dataset:
    """Return each of the samples in turn."""
    return sample(request.param)
