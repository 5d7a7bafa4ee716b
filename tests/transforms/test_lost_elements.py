"""At every edge of a pipeline that reads, encodes and writes, an element is lost or delivered twice.

Either the run fails, with a message that says what is missing, or the dataset is whole all the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apache_beam as beam
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from shardmill.pipelines.engines.beam_options import ParsedOptions
from shardmill.transforms import EncodeExamples, ReadRows, WriteShards
from shardmill.transforms.dataset.commit.publish import finish_publish
from shardmill.transforms.dataset.integrity.verify import verify_dataset
from shardmill.transforms.dataset.reading.open_dataset import open_dataset
from shardmill.transforms.dataset.stage.spec import DatasetSpec
from shardmill.transforms.dataset.stage.spill import Shuffle
from shardmill.transforms.dataset.storage.manifest_files import list_generations
from shardmill.transforms.elements import StageTasks
from shardmill.transforms.inputs.contract.tasks import TaskStaging

from .faulty_edges import Fault, edges

pytestmark = pytest.mark.engine

ROWS = 2000
FILES = 3
SAID = re.compile(
    "the engine lost|tasks did not end|records do not add up|"
    "came 2 times|came more than once|not fused|neither committed|rows were read"
)
"""What a run says that fails for a lost or doubled element: one of these."""

Build = Callable[[beam.Pipeline, str, Path], Any]


def write_source(folder: Path) -> str:
    folder.mkdir()
    for i in range(FILES):
        ids = range(i * ROWS, (i + 1) * ROWS)
        table = pa.table({"id": ids, "text": [f"{n:08d}" * 12 for n in ids]})
        pq.write_table(table, folder / f"{i}.parquet", row_group_size=500)
    return str(folder / "*.parquet")


def of_the_readme(pipeline: beam.Pipeline, source: str, out: Path) -> None:
    """Read, encode and write, as README shows it."""
    read = ReadRows(source, shard_size="64KiB")
    _ = (
        pipeline
        | read
        | EncodeExamples(read.info)
        | WriteShards(str(out), info=read.info, shard_size="64KiB", sidecars=("tfds", "tfx", "index"))
    )


def of_the_command(pipeline: beam.Pipeline, source: str, out: Path) -> None:
    """Hand each task to one call, as the command does for its worker processes."""
    read = ReadRows(source, shard_size="64KiB")
    assert read.plan is not None
    tasks = read.plan.tasks
    schema = read.info.schema
    spec = DatasetSpec(path=str(out), name="x", shard_size=64 << 10, tasks=len(tasks), schema=schema)
    staging = TaskStaging.of(spec, read.source, read.plan.survey.frozen, read.info.encoder())
    _ = pipeline | StageTasks(tasks, staging.stage) | WriteShards(spec.path, spec=spec, raise_refusal=True)


def of_a_shuffle(pipeline: beam.Pipeline, source: str, out: Path) -> None:
    """Read, encode and write in two passes."""
    read = ReadRows(source, shard_size="64KiB")
    assert read.plan is not None
    spec = DatasetSpec(
        path=str(out), name="x", shard_size=64 << 10, tasks=len(read.plan.tasks), schema=read.info.schema,
        order="shuffled", shuffle=Shuffle(seed=7, bits=3),
    )  # fmt: skip
    _ = pipeline | read | EncodeExamples(read.info) | WriteShards(spec.path, spec=spec, raise_refusal=True)


def run(build: Build, source: str, out: Path) -> str | None:
    """Return what the run failed with, None if it did not."""
    try:
        with beam.Pipeline(runner=FnApiRunner(), options=ParsedOptions([])) as pipeline:
            build(pipeline, source, out)
    except Exception as error:  # noqa: BLE001  (whatever an engine makes of it)
        return f"{type(error).__name__}: {error}"
    return None


def ids_of(out: Path) -> list[int]:
    return sorted(open_dataset(out).to_arrow("train", ["id"])["id"].to_pylist())


def problem_with(out: Path, error: str | None) -> str | None:
    """Return what is wrong with what a faulty run left, None where nothing is."""
    wanted = list(range(FILES * ROWS))
    committed = out.is_dir() and bool(list_generations(str(out)))
    if error is not None and not SAID.search(error):
        return f"it failed, and does not say why: {error[-300:]}"
    if error is None:
        if not committed:
            return "it ended well, and wrote nothing"
        if (out / ".staging").exists():
            return "it ended well, and left its staging folder"
        if findings := verify_dataset(out).findings:
            return f"it ended well, and damaged the dataset: {findings[0]}"
        if not (out / "dataset_info.json").exists():
            return "it ended well, and without sidecars"
    if committed:
        if ids_of(out) != wanted:
            return f"{len(ids_of(out))} of {len(wanted)} rows are committed"
        finish_publish(str(out))
        if findings := verify_dataset(out).findings:
            return f"the next command does not make it whole: {findings[0]}"
    return None


def faults_that_deceive(
    build: Build, fault: Fault, steps: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> dict[tuple[str, int], str]:
    """Return what is wrong after a fault at one element behind each step, by step and element.

    It is the first element that is lost, and the last one that is doubled.
    """
    source = write_source(folder / "in")
    with edges(monkeypatch) as whole:
        assert run(build, source, folder / "whole") is None
    assert ids_of(folder / "whole") == list(range(FILES * ROWS))
    assert len(verify_dataset(folder / "whole").findings) == 0
    wrong = {}
    tried = {edge: count for edge, count in whole.crossed.items() if re.search(steps, edge)}
    for edge, count in tried.items():
        at = 0 if fault == "lost" else count - 1
        out = folder / f"{len(list(folder.iterdir()))}"
        with edges(monkeypatch, fault, edge, at) as faulty:
            error = run(build, source, out)
        assert faulty.crossed[edge] > at
        problem = problem_with(out, error)
        if problem is not None:
            wrong[edge, at] = problem
    assert len(tried) >= 3
    return wrong


@pytest.mark.parametrize("fault", ["lost", "doubled"])
def test_a_task_a_shard_and_a_move_that_are_lost_or_doubled_are_noticed_or_do_no_harm(
    fault: Fault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = "Stage parts$|Assemble shards$|/Commit$"
    assert faults_that_deceive(of_the_readme, fault, steps, tmp_path, monkeypatch) == {}


@pytest.mark.thorough("twenty pipelines for each fault; three edges are in the quick tier")
@pytest.mark.parametrize("fault", ["lost", "doubled"])
def test_an_element_that_is_lost_or_doubled_at_any_edge_is_noticed_or_does_no_harm(
    fault: Fault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert faults_that_deceive(of_the_readme, fault, "", tmp_path, monkeypatch) == {}


@pytest.mark.thorough("five pipelines for each fault")
@pytest.mark.parametrize("fault", ["lost", "doubled"])
def test_so_are_tasks_and_their_results_where_worker_processes_stage_them(
    fault: Fault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert faults_that_deceive(of_the_command, fault, "^StageTasks/", tmp_path, monkeypatch) == {}


def test_a_lost_bundle_of_plain_records_cannot_be_noticed_but_a_doubled_one_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def plain(pipeline: beam.Pipeline, _: str, out: Path) -> None:
        _ = pipeline | beam.Create([b"a", b"b"]) | WriteShards(str(out))

    with edges(monkeypatch) as whole:
        assert run(plain, "", tmp_path / "whole") is None
    (staged,) = (edge for edge in whole.crossed if edge.endswith("Stage parts"))
    with edges(monkeypatch, "doubled", staged):
        error = run(plain, "", tmp_path / "doubled")
    assert error is not None
    assert "1 bundle of records came more than once" in error


@pytest.mark.parametrize("fault", ["lost", "doubled"])
def test_between_the_two_passes_of_a_shuffle_what_is_lost_or_doubled_is_noticed_or_does_no_harm(
    fault: Fault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = "Stage parts$|Plan shuffle$|Spread buckets|Shuffle$"
    assert faults_that_deceive(of_a_shuffle, fault, steps, tmp_path, monkeypatch) == {}
