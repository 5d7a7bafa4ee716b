"""One run of `scale.py`: a conversion whose images and parts are made up, and whose launcher is the product's own."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
from made_up_folders import MadeUpFolders
from phases import Phases, apart
from shardmill.pipelines.config.load import load_config
from shardmill.pipelines.config.model import Config
from shardmill.pipelines.engines.beam_pipeline import make_pipeline
from shardmill.pipelines.prepare.append import prepare_append
from shardmill.pipelines.prepare.conversion import prepare
from shardmill.pipelines.prepare.from_config import conversion_of
from shardmill.pipelines.prepare.prepared import Prepared
from shardmill.pipelines.runs.convert import take_over
from shardmill.pipelines.runs.python_api import workers_of
from shardmill.transforms.dataset.commit.publish import prepare_target
from shardmill.transforms.dataset.integrity.garbage import collect_garbage
from shardmill.transforms.dataset.integrity.verify import verify_dataset
from shardmill.transforms.dataset.reading.open_dataset import open_dataset
from shardmill.transforms.dataset.stage.spec import DatasetSpec
from shardmill.transforms.dataset.stage.task_stager import TaskResult, TaskStager
from shardmill.transforms.dataset.storage.local_storage import LocalStorage
from shardmill.transforms.dataset.storage.manifest_files import list_history
from shardmill.transforms.elements import StageTasks
from shardmill.transforms.format.batches.rows import Block, EntryCounts, Frames, TaskEnd
from shardmill.transforms.format.batches.summaries import IMAGE_FORMATS
from shardmill.transforms.format.splits.shard_plan import PartRange
from shardmill.transforms.inputs.contract.source import StoredPieces, Task
from shardmill.transforms.sources.images.listing import ImageListing, list_images
from shardmill.transforms.sources.images.pieces import RECORD_OVERHEAD_BYTES, ImagePieces
from shardmill.transforms.sources.images.source import ImageSource
from shardmill.transforms.sources.registry.options import ImagesInput
from shardmill.transforms.sources.registry.settings import Settings

SHARD_BYTES: Final = 100 << 20


@dataclass(frozen=True, slots=True)
class MadeUpImages(ImageSource):
    """Images below a root whose folders are made up."""

    made_up: int = 0

    def list_files(self) -> ImageListing:
        folders = MadeUpFolders(os.fsencode(self.options.paths[0]), self.made_up)
        return self.recognised(list_images(self.options.paths, "", folders))


class Hole:
    """A part that has a size, and no bytes."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._bytes = 0

    def write(self, buffers: Sequence[memoryview]) -> None:
        self._bytes += sum(view.nbytes for view in buffers)

    def close(self) -> None:
        with open(self._path, "wb") as file:
            file.truncate(self._bytes)

    def wait(self) -> None:
        pass

    def abandon(self) -> None:
        pass


@dataclass(frozen=True, slots=True)
class HollowStorage(LocalStorage):
    """A folder in which parts, and what is copied of them, are holes; names and documents are real."""

    def create_part(self, path: str) -> Hole:  # type: ignore[override]
        return Hole(self._with_folders(path))

    def assemble(self, path: str, ranges: Sequence[PartRange], base: str) -> None:  # noqa: ARG002 - nothing is copied
        with open(self._with_folders(path), "wb") as file:
            file.truncate(sum(end.offset - start.offset for _, start, end in ranges))


@dataclass(frozen=True, slots=True)
class WorkersStorage(HollowStorage):
    """The same as workers see it: that they wait for the disk is no time of the launcher's."""

    def replace(self, path: str, data: bytes) -> None:
        Path(self._with_folders(path)).write_bytes(data)

    def sync(self, folder: str) -> None:
        pass


@dataclass(frozen=True, slots=True, kw_only=True)
class HollowSpec(DatasetSpec):
    """A run whose dataset holds no data."""

    @property
    def storage(self) -> HollowStorage:
        return HollowStorage(self.path)


@dataclass(frozen=True)
class HollowStage:
    """What a worker does with a task, without its data."""

    spec: HollowSpec

    def __call__(self, task: Task) -> TaskResult:
        pieces = task.pieces.load() if isinstance(task.pieces, StoredPieces) else task.pieces
        assert isinstance(pieces, ImagePieces)
        sizes = np.array([file.size for file in pieces.files()], np.int64) + RECORD_OVERHEAD_BYTES
        ends = np.cumsum(sizes)
        nothing = pa.py_buffer(np.zeros(int(ends[-1]), np.uint8))  # pages that nobody touches are no memory
        frames = Frames((nothing,), ends, task.ordinal, np.zeros(len(ends), np.uint32))
        rows = pieces.rows_by_entry()
        counts = tuple(EntryCounts(entry, count or 0, count or 0) for entry, count in sorted(rows.items()))
        stager = TaskStager(WorkersStorage(self.spec.path), self.spec.staging, task.ordinal, self.spec.stage_settings)
        stager.add(Block(task.ordinal, 0, {"train": frames}, counts, observed={IMAGE_FORMATS: ["jpeg"]}))
        return stager.finish(TaskEnd(task.ordinal, 1, {entry: count or 0 for entry, count in rows.items()}))


def run(images: int, seed: int | None, work: Path, phases: Phases) -> dict[str, Any]:
    """Simulate a conversion, and, each in a process of its own, the commands that read what it made."""
    root, out = work / "images", work / "out"
    root.mkdir()
    config = config_of(root, out, seed)
    source = MadeUpImages(ImagesInput(paths=[str(root)]), Settings("/", seed=seed), made_up=images)
    with phases("made-up entries alone"):
        _scan_all(root, images)
    with phases("list, survey, plan"), workers_of(config.runner) as workers:
        prepared = prepare(replace(conversion_of(config), source=source), workers)
    with phases("write plan files"):
        assert prepare_target(prepared.spec, clear=False) is None
        prepared = take_over(prepared)
    spec = hollow(prepared.spec)
    found = {"images": images, "folders": -(-images // 1000), "tasks": len(prepared.plan.tasks)}
    with phases("build the graph"):
        found["graph_bytes"] = _graph_bytes(prepared)
    plan_folder = out / spec.staging / "plan"
    found["plan_bytes"] = sum(path.stat().st_size for path in plan_folder.iterdir())
    with phases("stage holes (workers)"):
        stage = HollowStage(spec)
        for task in prepared.plan.tasks:
            stage(task)
    with phases("shard plan, commit, publish"):
        _write(prepared, spec)
    measured = [*map(dataclasses.asdict, phases.done), *(apart(images, seed, work, command) for command in _COMMANDS)]
    manifest = open_dataset(out).manifest
    found |= {"shards": sum(len(split.shards) for split in manifest.splits.values())}
    found |= {"manifest_bytes": (out / "manifest.json").stat().st_size}
    found |= {"part_bytes": sum(path.stat().st_size for path in (out / "manifests").glob("shards-*.json"))}
    found |= {"sources_bytes": (out / "sources/00000001.jsonl").stat().st_size}
    return found | {"peak": max(phase["peak"] for phase in measured), "phases": measured}


def config_of(root: Path, out: Path, seed: int | None) -> Config:
    section = {"format": "images", "paths": [str(root)], "layout": "label"}
    shuffle = None if seed is None else {"seed": seed}
    return load_config(
        {
            "name": "made_up",
            "input": section,
            "shuffle": shuffle,
            "stats": "none",  # of records that are made up there is nothing to count
            "output": {"path": str(out), "shard_size": SHARD_BYTES},
        }
    )


def hollow(spec: DatasetSpec) -> HollowSpec:
    return HollowSpec(**{field.name: getattr(spec, field.name) for field in dataclasses.fields(spec)})


def _scan_all(root: Path, images: int) -> None:
    scan = MadeUpFolders(os.fsencode(root), images)
    with ExitStack() as stack:
        folders = [entry.path for entry in stack.enter_context(scan(scan.root))]
    for folder in folders:
        with scan(folder) as entries:
            for entry in entries:
                entry.stat(follow_symlinks=False)


def _graph_bytes(prepared: Prepared) -> int:
    import apache_beam as beam
    from shardmill.pipelines.engines.beam_pipeline import add_steps

    pipeline = beam.Pipeline()
    add_steps(pipeline, prepared)
    return len(pipeline.to_runner_api().SerializeToString())


def _write(prepared: Prepared, spec: HollowSpec) -> None:
    """Run the engine's steps over the results of all tasks."""
    from shardmill.transforms.write import WriteShards

    with make_pipeline(1) as pipeline:
        _ = (
            pipeline
            | "Stage" >> StageTasks(prepared.plan.tasks, ReadyResults(spec))
            | "Write" >> WriteShards(spec.path, spec=spec, raise_refusal=True)
        )


@dataclass(frozen=True)
class ReadyResults:
    """Stands for a worker that is done: its result is read from where it left it."""

    spec: HollowSpec

    def __call__(self, task: Task) -> TaskResult:
        return TaskResult.from_json(self.spec.storage.read(f"{self.spec.staging}/tasks/{task.ordinal:06d}.json"))


def look(command: str, images: int, seed: int | None, work: Path, phases: Phases) -> dict[str, Any]:
    """Run a command that reads what was made, in a process of its own, as people do."""
    out = work / "out"
    with phases(command):
        _COMMANDS[command](out, images, seed, work / "images")
    return dataclasses.asdict(phases.done[0])


def _open(out: Path, images: int, *_: object) -> None:
    assert open_dataset(out).manifest.counts.written == images


def _verify(out: Path, *_: object) -> None:
    report = verify_dataset(out, quick=True)
    assert not report.findings, report.findings[:3]


def _append(out: Path, images: int, seed: int | None, root: Path) -> None:
    source = MadeUpImages(ImagesInput(paths=[str(root)]), Settings("/", seed=seed), made_up=images)
    conversion = replace(conversion_of(config_of(root, out, seed), "append"), source=source)
    with workers_of(conversion.runner) as workers:
        plan = prepare_append(conversion, open_dataset(out).manifest, workers)
    assert plan.prepared is None


def _log(out: Path, *_: object) -> None:
    assert len(list_history(out)) == 1


def _collect(out: Path, *_: object) -> None:
    assert not collect_garbage(out).items


_COMMANDS: Final[dict[str, Callable[..., None]]] = {
    "open_dataset": _open,
    "verify --quick": _verify,
    "append of the same": _append,
    "log": _log,
    "gc": _collect,
}
