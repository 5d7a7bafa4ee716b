from __future__ import annotations

import json
import logging
import os
import random
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apache_beam as beam
import pyarrow as pa
import pytest
from apache_beam.options.pipeline_options import DirectOptions, PipelineOptions
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.testing.test_pipeline import TestPipeline as BeamTestPipeline
from apache_beam.testing.util import assert_that, equal_to
from apache_beam.transforms.window import FixedWindows
from shardmill.transforms import EncodeExamples, write
from shardmill.transforms.dataset.commit.commit_generation import read_outcome
from shardmill.transforms.dataset.reading.open_dataset import open_dataset
from shardmill.transforms.dataset.stage.spec import DatasetSpec, EntryInfo
from shardmill.transforms.dataset.storage.manifest_files import read_manifest
from shardmill.transforms.elements import flush_by_size
from shardmill.transforms.errors import TargetError, TooManyRejects, UsageError
from shardmill.transforms.format.batches.rejects import CellError, Place, Reject
from shardmill.transforms.format.batches.rows import Block, EntryCounts, TaskEnd
from shardmill.transforms.format.tfrecord.framing import frame_records
from shardmill.transforms.write import WriteShards

pytestmark = pytest.mark.engine

TASKS = 8
ROWS = 700


def record(task: int, row: int) -> bytes:
    return b"%d:%d " % (task, row) * (1 + (task * 7 + row) % 40)


class _ReadTaskFn(beam.DoFn):
    """The rows of a task, in blocks of `block` rows; the first task has `rejects` rejects."""

    def __init__(self, block: int, rejects: int = 0) -> None:
        self._block = block
        self._rejects = rejects

    def process(self, task: int) -> Iterator[Block | TaskEnd]:
        starts = range(0, ROWS, self._block)
        for ordinal, start in enumerate(starts):
            rows = [record(task, row) for row in range(start, min(start + self._block, ROWS))]
            bad = tuple(
                Reject(0, Place("a.csv", row=i + 1), (CellError("x", "BAD_TYPE", "?", "int", "no"),))
                for i in range(self._rejects if task == 0 and ordinal == 0 else 0)
            )
            splits = {
                name: frame_records(pa.array(part, pa.large_binary()))
                for name, part in (("train", rows[1:]), ("val", rows[:1]))
            }
            counts = (EntryCounts(0, len(rows) + len(bad), len(rows), len(bad)),)
            yield Block(task, ordinal, splits, counts, bad)
        yield TaskEnd(task, len(starts), {0: ROWS + (self._rejects if task == 0 else 0)})


def spec_of(path: Path, **changes: Any) -> DatasetSpec:
    values: dict[str, Any] = {
        "path": str(path),
        "name": "numbers",
        "shard_size": 65536,
        "tasks": TASKS,
        "source_format": "csv",
        "source_entries": (EntryInfo("a.csv", 10, "sha256:aa"),),
        "source_files": 1,
        "source_bytes": 10,
        "created": "2026-01-31T12:00:00Z",
        "run_id": "0123456789abcdef",
        "commit_id": "one",
    }
    return DatasetSpec(**(values | changes))


def threads(workers: int) -> PipelineOptions:
    flush_by_size()
    return PipelineOptions([f"--direct_num_workers={workers}", "--direct_running_mode=multi_threading"])


def convert(
    spec: DatasetSpec, *, workers: int = 1, block: int = 100, rejects: int = 0, raise_refusal: bool = True
) -> None:
    with beam.Pipeline(runner=FnApiRunner(), options=threads(workers) if workers > 1 else None) as pipeline:
        _ = (
            pipeline
            | "Tasks" >> beam.Create(range(TASKS))
            | "Spread" >> beam.Reshuffle()
            | "Read" >> beam.ParDo(_ReadTaskFn(block, rejects))
            | "Write" >> WriteShards(spec.path, spec=spec, raise_refusal=raise_refusal)
        )


def tree(root: Path) -> dict[str, bytes]:
    return {str(p.relative_to(root)): p.read_bytes() for p in sorted(root.rglob("*")) if p.is_file()}


def all_records() -> Counter[bytes]:
    return Counter(record(task, row) for task in range(TASKS) for row in range(ROWS))


def written(path: Path) -> Counter[bytes]:
    dataset = open_dataset(path)
    return Counter(entry for split in dataset.splits for entry in dataset.records(split))


@pytest.mark.parametrize("compression", ["none", "gzip"])
@pytest.mark.parametrize(
    "order", ["task", pytest.param("source", marks=pytest.mark.thorough("contract/test_promises.py has it too"))]
)
def test_the_bytes_do_not_depend_on_the_number_of_workers(tmp_path: Path, compression: str, order: str) -> None:
    found = []
    for workers in (1, 2, 4):
        out = tmp_path / str(workers)
        convert(spec_of(out, compression=compression, order=order), workers=workers)
        found.append(tree(out))
    assert found[0] == found[1] == found[2]
    assert written(tmp_path / "1") == all_records()
    manifest = read_manifest(str(tmp_path / "1"))
    assert len(manifest.splits["train"].shards) > (1 if compression == "gzip" else 5)
    if order == "source":
        wanted = [record(t, r) for t in range(TASKS) for r in range(ROWS) if r % 100]
        assert list(open_dataset(tmp_path / "1").records("train")) == wanted


class _TwiceFn(write._StagePartsFn):
    """Attempts each task twice, as an engine may: what the first attempt gave is lost."""

    _elements: list[Any]

    def start_bundle(self) -> None:
        super().start_bundle()
        self._elements = []

    def process(self, element: Block | TaskEnd | bytes) -> Iterator[tuple[int, bytes]]:
        self._elements.append(element)
        results = list(super().process(element))
        if isinstance(element, TaskEnd):
            results = [again for earlier in self._elements for again in super(_TwiceFn, self).process(earlier)]
            self._elements = []
        yield from results


class _KeepStagingFn(write._CompleteFn):
    """Lists the staging folder before it goes."""

    def process(self, gathered: Any) -> Iterator[Any]:
        folder = f"{self._spec.path}/{self._spec.staging}/parts"
        with open(f"{self._spec.path}.attempts", "w") as file:
            json.dump(sorted(os.listdir(folder)), file)
        yield from super().process(gathered)


def test_tasks_that_are_attempted_twice_give_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    convert(spec_of(tmp_path / "once"))
    monkeypatch.setattr(write, "_StagePartsFn", _TwiceFn)
    monkeypatch.setattr(write, "_CompleteFn", _KeepStagingFn)
    convert(spec_of(tmp_path / "twice"), workers=2)
    attempts = Counter(name.split("-")[0] for name in json.loads((tmp_path / "twice.attempts").read_text()))
    assert attempts == {f"{task:06d}": 2 for task in range(TASKS)}  # the second attempts did happen
    assert tree(tmp_path / "once") == tree(tmp_path / "twice")


def _in_test_pipeline() -> beam.Pipeline:
    return BeamTestPipeline(runner=FnApiRunner())


def _in_threads() -> beam.Pipeline:
    return beam.Pipeline(runner=FnApiRunner(), options=threads(2))


@pytest.mark.parametrize("make", [_in_test_pipeline, _in_threads])
def test_plain_bytes_are_written_as_they_are(tmp_path: Path, make: Callable[[], beam.Pipeline]) -> None:
    records = [record(task, row) for task in range(TASKS) for row in range(ROWS)]
    with make() as pipeline:
        outcome = pipeline | beam.Create(records) | WriteShards(str(tmp_path / "out"), shard_size="64KiB", split="all")
        assert_that(outcome, lambda found: _check_outcome(found, len(records)))
    assert written(tmp_path / "out") == Counter(records)
    manifest = read_manifest(str(tmp_path / "out"))
    assert manifest.schema is None
    assert manifest.name == "out"
    shards = manifest.splits["all"].shards
    assert manifest.sidecars == tuple(f"index/{shard.path.removesuffix('.tfrecord')}.offsets" for shard in shards)
    sizes = [shard.bytes for shard in shards]
    assert max(sizes) <= 65536
    assert 2 * min(sizes) >= 65536 - manifest.splits["all"].unit_bytes


def _check_outcome(found: list[Any], records: int) -> None:
    (outcome,) = found
    assert outcome.refusal is None
    assert outcome.manifest.counts.read == outcome.manifest.counts.written == records
    assert outcome.manifest is not None
    assert outcome.manifest.generation == 1


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_beams_own_source_by_which_tfx_reads_reads_the_shards(tmp_path: Path, compression: str) -> None:
    noise = random.Random(1)
    records = [noise.randbytes(100) for _ in range(3000)]
    with BeamTestPipeline(runner=FnApiRunner()) as pipeline:
        write = WriteShards(str(tmp_path / "out"), shard_size="64KiB", compression=compression)
        _ = pipeline | beam.Create(records) | write
    assert len(list((tmp_path / "out").glob("train-*"))) > 1
    with BeamTestPipeline(runner=FnApiRunner()) as pipeline:
        found = pipeline | beam.io.ReadFromTFRecord(str(tmp_path / "out/train-*"))
        assert_that(found, equal_to(records))


def test_windowed_records_of_a_users_pipeline_make_one_dataset(tmp_path: Path) -> None:
    with BeamTestPipeline(runner=FnApiRunner()) as pipeline:
        stamped = pipeline | beam.Create(range(100)) | beam.Map(lambda n: beam.window.TimestampedValue(b"%d" % n, n))
        _ = stamped | beam.WindowInto(FixedWindows(10)) | WriteShards(str(tmp_path / "out"))
    assert written(tmp_path / "out") == Counter(b"%d" % n for n in range(100))


def test_blocks_without_a_task_count_their_rows(tmp_path: Path) -> None:
    with BeamTestPipeline(runner=FnApiRunner()) as pipeline:
        frames = frame_records(pa.array([b"a", b"bb"], pa.large_binary()))
        block = Block(None, 0, {"train": frames}, (EntryCounts(0, 2, 2),))
        _ = pipeline | beam.Create([block, block]) | WriteShards(str(tmp_path / "out"))
    assert written(tmp_path / "out") == {b"a": 2, b"bb": 2}
    assert read_manifest(str(tmp_path / "out")).counts.read == 4


def test_no_records_make_an_empty_generation(tmp_path: Path) -> None:
    with BeamTestPipeline(runner=FnApiRunner()) as pipeline:
        _ = pipeline | beam.Create([]) | WriteShards(str(tmp_path / "out"))
    assert read_manifest(str(tmp_path / "out")).splits == {}


def test_too_many_rejects_fail_the_last_step_and_commit_nothing(tmp_path: Path) -> None:
    with pytest.raises((TooManyRejects, RuntimeError), match="3 of 5603 rows were rejected") as caught:
        convert(spec_of(tmp_path / "out", max_rejects=2), rejects=3)
    assert f"they are listed in {tmp_path}/out/.staging/" in str(caught.value)
    assert not (tmp_path / "out/manifests").exists()


def test_a_refusal_can_be_left_in_the_outcome_instead(tmp_path: Path) -> None:
    spec = spec_of(tmp_path / "out", max_rejects=2)
    convert(spec, rejects=3, raise_refusal=False)
    refusal = read_outcome(spec).refusal
    assert refusal is not None
    assert isinstance(refusal.error(), TooManyRejects)
    assert refusal.by_code == {"BAD_TYPE": 3}
    assert not list((tmp_path / "out").glob("*.tfrecord"))


def test_blocks_that_were_shuffled_are_not_fused(tmp_path: Path) -> None:
    with (
        pytest.raises(RuntimeError, match="not fused"),
        beam.Pipeline(runner=FnApiRunner()) as pipeline,
    ):
        _ = (
            pipeline
            | beam.Create(range(TASKS))
            | beam.ParDo(_ReadTaskFn(100))
            | beam.Map(lambda element: (hash(getattr(element, "ordinal", 0)), element))
            | beam.GroupByKey()
            | beam.FlatMap(lambda keyed: keyed[1])
            | WriteShards(str(tmp_path / "out"))
        )
    assert not (tmp_path / "out/manifests").exists()


def test_what_is_neither_block_nor_bytes_is_refused(tmp_path: Path) -> None:
    with (
        pytest.raises((UsageError, RuntimeError), match="takes blocks or bytes, not str"),
        BeamTestPipeline(runner=FnApiRunner()) as pipeline,
    ):
        _ = pipeline | beam.Create(["text"]) | WriteShards(str(tmp_path / "out"))


def test_rows_are_refused_with_the_steps_that_encode_them_and_these_steps_work(tmp_path: Path) -> None:
    rows, schema = [{"id": i} for i in range(20)], pa.schema([("id", pa.int64())])
    steps = r"BatchElements\(\) \| beam.Map\(lambda rows: pa.RecordBatch.from_pylist\(rows, schema=schema\)\) \| Encode"
    with (
        pytest.raises((UsageError, RuntimeError), match=steps),
        BeamTestPipeline(runner=FnApiRunner()) as pipeline,
    ):
        _ = pipeline | beam.Create(rows) | WriteShards(str(tmp_path / "out"))
    with BeamTestPipeline(runner=FnApiRunner()) as pipeline:
        _ = (
            pipeline
            | beam.Create(rows)
            | beam.BatchElements()
            | beam.Map(lambda rows: pa.RecordBatch.from_pylist(rows, schema=schema))
            | EncodeExamples(schema)
            | WriteShards(str(tmp_path / "out"), schema=schema)
        )
    assert sorted(row["id"] for row in open_dataset(tmp_path / "out")) == list(range(20))


def test_a_folder_that_holds_another_dataset_is_refused_before_the_run(tmp_path: Path) -> None:
    convert(spec_of(tmp_path / "out"))
    with pytest.raises(TargetError, match="holds dataset numbers"):
        _ = beam.Pipeline(runner=FnApiRunner()) | beam.Create([b""]) | WriteShards(str(tmp_path / "out"))


def test_a_dataset_is_replaced_on_request(tmp_path: Path) -> None:
    convert(spec_of(tmp_path / "out"))
    with BeamTestPipeline(runner=FnApiRunner()) as pipeline:
        _ = pipeline | beam.Create([b"new"]) | WriteShards(str(tmp_path / "out"), if_exists="replace")
    assert written(tmp_path / "out") == {b"new": 1}
    assert read_manifest(str(tmp_path / "out")).generation == 2
    assert list((tmp_path / "out").glob("*.tfrecord")) == [tmp_path / "out/train-00000.tfrecord"]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"shard_size": "12 parsecs"}, "shard_size"),
        ({"shard_size": 1000}, "the least is 64KiB"),
        ({"split": "../x"}, "split is"),
        ({"name": "My Pets"}, 'name is "My Pets": lowercase letters'),
        ({"compression": "zip"}, "choose one of none, gzip"),
    ],
)
def test_arguments_are_checked_when_the_transform_is_made(arguments: dict[str, Any], problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        WriteShards("out", **arguments)


def test_the_bare_direct_runner_works_offline(offline: None, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)
    records = [b"%d" % n for n in range(1000)]
    options = PipelineOptions()
    assert options.view_as(DirectOptions).direct_num_workers == 1
    with beam.Pipeline(runner="DirectRunner", options=options) as pipeline:
        _ = pipeline | beam.Create(records) | WriteShards(str(tmp_path / "out"), shard_size="64KiB")
    assert written(tmp_path / "out") == Counter(records)
