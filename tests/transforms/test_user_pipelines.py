"""The three transforms in a pipeline of the user's own, on Beam's own runners, without a network."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import apache_beam as beam
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from apache_beam.runners.portability.fn_api_runner import FnApiRunner, translations
from apache_beam.testing.test_pipeline import TestPipeline as BeamTestPipeline
from shardmill.pipelines import convert
from shardmill.transforms import EncodeExamples, ReadRows, WriteShards
from shardmill.transforms.dataset.generations import read_manifest
from shardmill.transforms.dataset.open import open_dataset
from shardmill.transforms.format.rows import Rows, TaskEnd

ROWS = 5000


@pytest.fixture
def numbers(tmp_path: Path) -> str:
    (tmp_path / "in").mkdir()
    for i in range(4):
        table = pa.table({"id": range(i * ROWS, (i + 1) * ROWS), "half": [float(n) / 2 for n in range(ROWS)]})
        pq.write_table(table, tmp_path / f"in/{i}.parquet", row_group_size=1000)
    return str(tmp_path / "in/*.parquet")


def ids(out: Path) -> list[int]:
    return sorted(open_dataset(out).to_table("train", ["id"])["id"].to_pylist())


def _only_even(rows: Rows | TaskEnd) -> Rows | TaskEnd:
    """What a user may do between: here to a column, row by row as many as there were."""
    if isinstance(rows, TaskEnd):
        return rows
    at = rows.batch.schema.get_field_index("id")
    return replace(rows, batch=rows.batch.set_column(at, "id", pc.multiply(rows.batch.column(at), 2)))


def _in_test_pipeline() -> beam.Pipeline:
    return BeamTestPipeline(runner=FnApiRunner())


def _in_bare_pipeline() -> beam.Pipeline:
    return beam.Pipeline()


@pytest.mark.usefixtures("offline")
@pytest.mark.parametrize("make", [_in_test_pipeline, _in_bare_pipeline])
def test_files_are_read_encoded_and_written(
    tmp_path: Path, numbers: str, make: type[beam.Pipeline], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL)
    reader = ReadRows(numbers, shard_size="64KiB")
    with make() as pipeline:
        _ = (
            pipeline
            | reader
            | EncodeExamples(reader.schema)
            | WriteShards(str(tmp_path / "out"), schema=reader.schema, shard_size="64KiB")
        )
    assert ids(tmp_path / "out") == list(range(4 * ROWS))
    manifest = read_manifest(str(tmp_path / "out"))
    assert manifest.schema == reader.schema
    assert len(manifest.splits["train"].shards) > 5


@pytest.mark.usefixtures("offline")
def test_a_step_of_the_users_between_stays_in_the_chain(tmp_path: Path, numbers: str) -> None:
    reader = ReadRows(numbers, shard_size="64KiB")
    with BeamTestPipeline(runner=FnApiRunner()) as pipeline:
        _ = (
            pipeline
            | reader
            | "Double" >> beam.Map(_only_even)
            | EncodeExamples(reader.schema)
            | WriteShards(str(tmp_path / "out"), schema=reader.schema, shard_size="64KiB")
        )
    assert ids(tmp_path / "out") == list(range(0, 8 * ROWS, 2))


@pytest.mark.usefixtures("offline")
def test_bare_record_batches_of_the_users_are_encoded(tmp_path: Path, numbers: str) -> None:
    reader = ReadRows(numbers)
    batches = pa.table({"id": range(100), "half": [0.5] * 100}).to_batches(max_chunksize=10)
    with BeamTestPipeline(runner=FnApiRunner()) as pipeline:
        _ = (
            pipeline
            | beam.Create(batches)
            | EncodeExamples(reader.schema)
            | WriteShards(str(tmp_path / "out"), schema=reader.schema)
        )
    assert ids(tmp_path / "out") == list(range(100))


def test_existing_records_are_passed_on_as_they_are(tmp_path: Path, numbers: str) -> None:
    convert({"input": {"paths": [numbers]}}, output=tmp_path / "a", shard_size="64KiB")
    reader = ReadRows(f"{tmp_path}/a/train-*.tfrecord", shard_size="128KiB")
    assert reader.schema == read_manifest(str(tmp_path / "a")).schema
    with BeamTestPipeline(runner=FnApiRunner()) as pipeline:
        _ = (
            pipeline
            | reader
            | EncodeExamples(reader.schema)
            | WriteShards(str(tmp_path / "out"), schema=reader.schema, shard_size="128KiB")
        )
    before, after = (read_manifest(str(tmp_path / name)).splits["train"] for name in ("a", "out"))
    assert (after.records, after.records_digest) == (before.records, before.records_digest)
    assert len(after.shards) < len(before.shards)


def _stages(pipeline: beam.Pipeline) -> Iterator[translations.Stage]:
    proto = pipeline.to_runner_api(default_environment=None)
    _, stages = translations.create_and_optimize_stages(
        proto, phases=translations.standard_optimize_phases(), known_runner_urns=frozenset()
    )
    yield from stages


def test_reading_encoding_and_staging_are_one_stage_without_side_inputs(tmp_path: Path, numbers: str) -> None:
    reader = ReadRows(numbers, shard_size="64KiB")
    pipeline = beam.Pipeline(runner=FnApiRunner())
    _ = pipeline | reader | EncodeExamples(reader.schema) | WriteShards(str(tmp_path / "out"), schema=reader.schema)
    steps = ("Read rows", "Encode rows", "Stage parts")
    holding = {
        step: [stage for stage in _stages(pipeline) if any(step in t.unique_name for t in stage.transforms)]
        for step in steps
    }
    (stage,) = holding["Read rows"]
    names = [transform.unique_name for transform in stage.transforms]
    for step in steps:
        assert len(holding[step]) == 1
        assert any(step in name for name in names), (step, names)
    assert list(stage.side_inputs()) == []
