"""From a config to the conversion that it describes: its source and its encoder."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from shardmill.pipelines.config.load import load_config
from shardmill.pipelines.prepare.conversion import Conversion
from shardmill.pipelines.prepare.from_config import conversion_of
from shardmill.transforms.errors import ConfigError, UsageError
from shardmill.transforms.format.schema.schema import ColumnRule, Feature, Schema
from shardmill.transforms.format.splits.by_row import HashSplits
from shardmill.transforms.format.splits.splitter import OneSplit, Splitter
from shardmill.transforms.format.tfrecord.scan import LARGEST_RECORD_BYTES
from shardmill.transforms.inputs.contract.source import Frozen
from shardmill.transforms.recipe.source import RecipeSource
from shardmill.transforms.recognise.evidence.names import MAX_LABEL_OFFSET
from shardmill.transforms.sources.csv.parse import CsvLimits
from shardmill.transforms.sources.images.source import ImageLimits, ImageSource
from shardmill.transforms.sources.numpy.npy import NumpyLimits
from shardmill.transforms.sources.registry.settings import Limits

from ...file_sources import made_source


def made(section: dict[str, Any], **others: Any) -> object:
    """Return the source, without the recipe that reads columns in the names of folders."""
    config = load_config({"input": {"paths": ["x"], **section}, "output": {"path": "o"}, **others})
    source = conversion_of(config).source
    return source.source if isinstance(source, RecipeSource) else source


def test_a_csv_config_becomes_a_csv_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    source = made(
        {
            "format": "csv",
            "delimiter": ";",
            "names": ["a", "b"],
            "header": False,
            "columns": ["a"],
            "null_values": ["NA"],
        },
        schema={"infer": "full", "columns": {"a": {"type": "timestamp", "unit": "ms", "timezone": "UTC"}}},
        limits={"field_bytes": "1KiB", "record_bytes": "2KiB", "columns": 3},
    )
    assert source == made_source(
        "csv",
        ("x",),
        str(tmp_path),
        delimiter=";",
        quote='"',
        header=False,
        names=("a", "b"),
        columns=("a",),
        encoding="utf-8",
        null_values=("NA",),
        infer="full",
        rules={"a": ColumnRule("timestamp", None, "ms", "UTC", None)},
        limits=Limits(1024, 2048, 3),
    )


def test_a_parquet_config_becomes_a_parquet_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    source = made({"format": "parquet", "checksums": False}, schema={"columns": {"f": {"as": "bytes"}}})
    assert source == made_source(
        "parquet",
        ("x",),
        str(tmp_path),
        checksums=False,
        rules={"f": ColumnRule(None, "bytes", None, None, None)},
    )


def test_an_images_config_becomes_an_image_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    source = made(
        {
            "format": "images",
            "layout": "flat",
            "check": "decode",
            "sha256": True,
            "formats": ["png"],
            "columns": ["image/encoded"],
        },
        shuffle={"seed": 7},
        limits={"pixels": 100, "image_bytes": "1MiB"},
    )
    assert source == made_source(
        "images",
        ("x",),
        str(tmp_path),
        layout="flat",
        check="decode",
        sha256=True,
        formats=("png",),
        columns=("image/encoded",),
        seed=7,
        limits=Limits(pixels=100, image_bytes=2**20),
    )


def test_a_numpy_config_becomes_a_numpy_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    source = made({"format": "numpy", "rows": True, "feature": "emb"}, limits={"record_bytes": 4096})
    assert source == made_source(
        "numpy", ("x",), str(tmp_path), rows=True, feature="emb", limits=Limits(record_bytes=4096)
    )


def test_a_tfrecord_config_becomes_a_tfrecord_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    source = made({"format": "tfrecord", "records": "opaque"}, limits={"record_bytes": 4096})
    assert source == made_source("tfrecord", ("x",), str(tmp_path), records="opaque", limits=Limits(record_bytes=4096))


@pytest.mark.parametrize(
    ("source", "other"),
    [
        (made_source("csv", ("x",)), {"limits": CsvLimits(block_bytes=1, job_bytes=2, joined_bytes=3, auto_bytes=4)}),
        (made_source("parquet", ("x",)), {"batch_bytes": 1}),
        (made_source("images", ("x",)), {"limits": ImageLimits(1, 2, 3)}),
        (made_source("numpy", ("x",)), {"limits": NumpyLimits(1, 2, 3)}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_sizes_of_the_work_are_no_option_by_which_a_stopped_run_is_recognised(source: Any, other: Any) -> None:
    assert repr(replace(source, **other)) == repr(source)


@pytest.mark.parametrize(
    ("section", "others", "problem"),
    [
        (
            {"format": "tfrecord", "columns": ["a"]},
            {},
            "input.columns: does not go with tfrecord yet; leave the key out",
        ),
        (
            {"format": "tfrecord"},
            {"schema": {"constants": {"a": 1}}},
            "schema.constants: does not go with tfrecord yet; leave the key out",
        ),
        (
            {"format": "images"},
            {"schema": {"columns": {"a": {"type": "string"}}}},
            "schema.columns: does not go with images yet; leave the key out",
        ),
    ],
)
def test_what_is_not_read_yet_is_a_usage_error(section: dict[str, Any], others: dict[str, Any], problem: str) -> None:
    with pytest.raises(UsageError) as caught:
        made(section, **others)
    assert str(caught.value) == problem
    assert caught.value.exit_code == 2


def of_data(**sections: Any) -> Conversion:
    """Return the conversion of data that are given in Python."""
    return conversion_of(
        load_config({"output": {"path": "o"}, **sections}, data_given=True), source=made_source("csv", ["x"])
    )


SCHEMA = Schema((Feature("id", "int64", "int64"),))


@pytest.mark.parametrize(
    ("split", "rule"),
    [
        (None, OneSplit("all")),
        (
            {"fractions": {"train": 0.9, "val": 0.1}, "key": "id"},
            HashSplits.by_fraction({"train": 0.9, "val": 0.1}, "id"),
        ),
    ],
)
def test_the_encoder_has_the_split_of_the_config(split: object, rule: Splitter) -> None:
    output = {"path": "o"} if split else {"path": "o", "split": "all"}
    assert of_data(output=output, split=split).encoder_of(Frozen(SCHEMA)).split == rule


@pytest.mark.parametrize(("kind", "limit"), [("csv", 1), ("parquet", 1), ("images", 2), ("numpy", 3)])
def test_the_encoder_has_the_limits_of_the_config(kind: str, limit: int) -> None:
    config = load_config(
        {
            "input": {"format": kind, "paths": ["x"]},
            "output": {"path": "o"},
            "limits": {"field_bytes": 1, "image_bytes": 2, "record_bytes": 3},
        }
    )
    encoder = conversion_of(config).encoder_of(Frozen(SCHEMA))
    assert (encoder.field_bytes_limit, encoder.record_bytes_limit) == (limit, 3)


def test_no_record_is_written_that_readers_would_not_believe() -> None:
    assert LARGEST_RECORD_BYTES == 2**31 - 1
    limits = {"record_bytes": "1025MiB"}
    assert of_data(limits=limits).encoder_of(Frozen(SCHEMA)).record_bytes_limit == 1025 << 20
    output = {"path": "o", "compression": "gzip"}
    with pytest.raises(UsageError, match=r"limits\.record_bytes: 1074790400 is more than 1073741824, which is 1GiB"):
        of_data(output=output, limits=limits)
    with pytest.raises(ConfigError, match=r"record_bytes: 2147483648 bytes is too large; the most is 2147483647"):
        load_config({"output": {"path": "o"}, "limits": {"record_bytes": "2GiB"}}, data_given=True)


def test_a_split_of_folders_cannot_be_split_again() -> None:
    conversion = of_data(split={"fractions": {"a": 0.5, "b": 0.5}})
    with pytest.raises(UsageError, match=r"^split: the source is in splits already \(test, train\); leave split out$"):
        conversion.encoder_of(Frozen(SCHEMA, ("test", "train")))
    assert of_data().encoder_of(Frozen(SCHEMA, ("test", "train"))).splits_by_code == ("test", "train")


def test_the_bound_of_label_offset_is_one_in_config_and_source() -> None:
    assert isinstance(made({"format": "images", "label_offset": MAX_LABEL_OFFSET}), ImageSource)
    with pytest.raises(ConfigError, match=r"input\.label_offset: 1001 is out of bounds; it must be at most 1000"):
        made({"format": "images", "label_offset": MAX_LABEL_OFFSET + 1})
