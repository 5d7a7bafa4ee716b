"""A large plan lies in the staging folder, the graph names it, and the bytes are those of a small one's."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image
from shardmill.pipelines import convert
from shardmill.pipelines.config.load import load_config
from shardmill.pipelines.prepare.conversion import prepare
from shardmill.pipelines.prepare.from_config import conversion_of
from shardmill.pipelines.runs.convert import begun, run_prepared
from shardmill.pipelines.runs.python_api import engine_of
from shardmill.pipelines.workers.worker_processes import WorkerProcesses
from shardmill.transforms.dataset.commit.commit_generation import WriteOutcome
from shardmill.transforms.dataset.stage.spec import DatasetSpec, EntryInfo
from shardmill.transforms.dataset.storage.manifest_files import read_manifest
from shardmill.transforms.errors import RunError, UnseenError
from shardmill.transforms.inputs.contract import tasks as staged_tasks
from shardmill.transforms.inputs.contract.source import Piece, Source, Task, map_in_turn
from shardmill.transforms.inputs.contract.tasks import (
    PlanLimits,
    StagedEntries,
    by_file,
    decode_pieces,
    encode_pieces,
    entries_in_files,
    tasks_in_files,
)
from shardmill.transforms.read import ReadRows, pick_source
from shardmill.transforms.sources.memory.source import spool
from shardmill.transforms.write import WriteShards

from ..file_sources import made_source

pytestmark = pytest.mark.engine


def a_jpeg(seed: int) -> bytes:
    file = io.BytesIO()
    Image.fromarray(np.random.default_rng(seed).integers(0, 255, (40, 40, 3), np.uint8)).save(file, "JPEG")
    return file.getvalue()


def csv(folder: Path) -> Source:
    (folder / "a.csv").write_text('id,text\n1,"a\nb"\n\n2,c\n' + "3,d\n" * 300_000)
    (folder / "b.csv").write_text("id,text\n4,e\n")
    return pick_source(["a.csv", "b.csv"], str(folder))


def parquet(folder: Path) -> Source:
    table = pa.table({"id": range(1000), "text": [None, "b"] * 500})
    pq.write_table(table, folder / "a.parquet", row_group_size=100)
    return pick_source(["a.parquet"], str(folder))


def numpy_files(folder: Path) -> Source:
    for i in range(3):
        np.save(folder / f"{i}.npy", np.full((i + 1, 4), i))
    return pick_source([str(folder)], str(folder))


def images(folder: Path) -> Source:
    for name in (b"cat/1.jpg", b"cat/\xe9.jpg", b"dog/2.jpg", b"dog/d\xc3\xb6g.jpg"):
        path = Path(str(folder)) / name.decode("utf-8", "surrogateescape")
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(a_jpeg(len(name)))
    return pick_source([str(folder)], str(folder))


def memory(folder: Path) -> Source:
    return spool(pa.table({"id": range(10)}), str(folder), rules={})


def records(folder: Path) -> Source:
    convert(data={"id": np.arange(1000), "x": np.ones(1000)}, output=folder / "ds")
    return made_source("tfrecord", (str(folder / "ds"),), str(folder))


@pytest.mark.parametrize("make", [csv, parquet, numpy_files, images, memory, records])
def test_the_pieces_of_every_source_come_back_from_text(make: Callable[[Path], Source], tmp_path: Path) -> None:
    source = make(tmp_path)
    pieces = source.survey(source.list_files(), map_in_turn).pieces
    line = encode_pieces(pieces)
    assert b"\n" not in line
    again = decode_pieces(line)
    assert type(again[0]) is type(pieces[0])
    assert [_fields(piece) for piece in again] == [_fields(piece) for piece in pieces]


def _fields(piece: Piece) -> list[Any]:
    values = {name: getattr(piece, name) for kind in type(piece).__mro__ for name in getattr(kind, "__slots__", ())}
    return [(name, list(value) if name == "images" else value) for name, value in sorted(values.items())]


def files_of(folder: Path) -> dict[str, bytes]:
    found = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    return {name: data for name, data in found.items() if not name.startswith("manifest")}


@pytest.mark.parametrize(
    "processes", [False, pytest.param(True, marks=pytest.mark.thorough("worker processes are started"))]
)
@pytest.mark.parametrize("seed", [None, 3])
def test_a_plan_in_files_gives_the_same_bytes(processes: bool, seed: int | None, tmp_path: Path) -> None:
    for i in range(24):
        (tmp_path / f"in/c{i % 3}").mkdir(parents=True, exist_ok=True)
        (tmp_path / f"in/c{i % 3}/{i}.jpg").write_bytes(a_jpeg(i) * 40 if i % 5 else a_jpeg(i))
    config = {
        "name": "x",
        "input": {"format": "images", "paths": [str(tmp_path / "in")], "check": "header"},
        "shuffle": None if seed is None else {"seed": seed},
        "output": {"shard_size": "64KiB"},
        "runner": {"workers": 2, "processes": processes},
    }
    plain = convert(config, output=tmp_path / "one")
    loaded = load_config(config, flags={"output.path": ("output", str(tmp_path / "two"))})
    with WorkerProcesses(2, asked=processes) as workers:
        prepared = replace(prepare(conversion_of(loaded), workers), limits=PlanLimits(in_graph=0, in_file=100_000))
        engine = engine_of(loaded.runner)
        left = begun(prepared, engine)
        staged = run_prepared(left, engine, None, workers)
    assert isinstance(staged, WriteOutcome)
    assert staged.manifest is not None
    assert [Path(each.file.path).name for each in by_file(left.plan.tasks) or ()] == ["tasks-000000.gz"]
    assert isinstance(left.spec.source_entries, StagedEntries)
    assert (len(left.plan.survey.pieces), len(left.plan.listing.entries)) == (0, 0)  # nobody holds them twice
    assert staged.manifest.splits == plain.manifest.splits
    assert files_of(tmp_path / "two") == files_of(tmp_path / "one")


def large_plan(folder: Path) -> tuple[DatasetSpec, ReadRows]:
    pq.write_table(pa.table({f"c{i}": range(4000) for i in range(20)}), folder / "a.parquet", row_group_size=2)
    read = ReadRows(str(folder / "a.parquet"), shard_size="64KiB")
    assert read.plan is not None
    return DatasetSpec(path=str(folder / "out"), name="x", shard_size=64 << 10, tasks=len(read.plan.tasks)), read


def graph_bytes(transform: beam.PTransform) -> int:
    pipeline = beam.Pipeline()
    _ = pipeline | transform
    return len(pipeline.to_runner_api().SerializeToString())


@pytest.mark.thorough("a plan of many images is made twice")
def test_the_graph_of_a_large_plan_is_small(tmp_path: Path) -> None:
    spec, read = large_plan(tmp_path)
    assert read.plan is not None
    tasks = tasks_in_files(spec, read.plan.tasks)
    files = by_file(tasks)
    assert files is not None
    assert [task.ordinal for file in files for task in file.tasks()] == [task.ordinal for task in tasks]
    assert [task.ordinal for task in tasks] == [task.ordinal for task in read.plan.tasks]
    assert [list(task.pieces) for task in tasks] == [list(task.pieces) for task in read.plan.tasks]
    plan = replace(read.plan, tasks=tasks)
    assert graph_bytes(ReadRows(read.source, plan=read.plan)) > 300_000
    assert graph_bytes(ReadRows(read.source, plan=plan)) < 30_000


def test_a_small_plan_stays_in_the_graph_and_leaves_no_file(tmp_path: Path) -> None:
    spec = DatasetSpec(path=str(tmp_path), name="x", shard_size=1 << 20)
    task = Task(0, (Piece(entry=0, path=b"a", name="a", stamp=(1, 2), rows=1, first_row=0, bytes=1),))
    assert tasks_in_files(spec, [task]) == (task,)
    assert by_file([task]) is None
    assert tasks_in_files(spec, []) == ()
    assert list(tmp_path.iterdir()) == []


def test_many_entries_are_in_no_step_of_the_graph(tmp_path: Path) -> None:
    entries = tuple(EntryInfo(f"folder-{i}", i, f"sha256:{i:064x}", 1, i) for i in range(5000))
    spec = entries_in_files(DatasetSpec(path=str(tmp_path), name="x", shard_size=1 << 20, source_entries=entries))
    assert len(spec.source_entries) == 5000
    assert tuple(spec.source_entries) == entries
    assert spec.source_entries[4999] == entries[4999]
    create = beam.Create([b"a"]) | "Write" >> WriteShards(str(tmp_path), spec=spec)
    assert graph_bytes(create) < 80_000  # the entries alone are over 400,000; four gatherings have a seed each


def test_a_file_that_is_not_what_was_planned_is_refused(tmp_path: Path) -> None:
    spec, read = large_plan(tmp_path)
    assert read.plan is not None
    tasks = tasks_in_files(spec, read.plan.tasks)
    for file in (tmp_path / "out").rglob("tasks-*.gz"):
        file.write_bytes(b"something else")
    staged_tasks._kept_lines.cache_clear()
    with pytest.raises(RunError, match=r"tasks-.*\.gz is not what was planned: the staging folder was changed"):
        _ = tasks[0].pieces[0]
    with pytest.raises(Exception, match="is not what was planned"):
        convert_staged(read, spec, tasks)


def test_a_plan_that_a_worker_does_not_see_is_an_error_that_names_the_folder(tmp_path: Path) -> None:
    spec, read = large_plan(tmp_path)
    assert read.plan is not None
    tasks = tasks_in_files(spec, read.plan.tasks)
    (tmp_path / "out").rename(tmp_path / "elsewhere")
    staged_tasks._kept_lines.cache_clear()
    with pytest.raises(UnseenError, match=rf"^{tmp_path}/out: the worker on .*/plan/tasks-000000\.gz is not there\."):
        _ = tasks[0].pieces[0]
    assert not (tmp_path / "out").exists()


def convert_staged(read: ReadRows, spec: DatasetSpec, tasks: tuple[Task, ...]) -> None:
    from shardmill.pipelines.engines.beam_pipeline import make_pipeline
    from shardmill.transforms.encode import EncodeExamples

    assert read.plan is not None
    again = ReadRows(read.source, plan=replace(read.plan, tasks=tasks))
    with make_pipeline(1) as pipeline:
        _ = pipeline | again | EncodeExamples(read.schema) | WriteShards(spec.path, spec=spec)
    assert read_manifest(spec.path)
