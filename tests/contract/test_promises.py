"""The promises that whole conversions keep: same bytes, sizes, accounts, order; for every source."""

from __future__ import annotations

import io
import itertools
import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image
from shardmill.pipelines import convert, open_dataset
from shardmill.transforms import read, write
from shardmill.transforms.format.batches.rows import Rows, TaskEnd
from shardmill.transforms.format.manifest.manifest import Manifest
from shardmill.transforms.inputs.contract.source import Task

from ..tiers import but_some_thorough

pytestmark = pytest.mark.engine

SHARD_SIZE = 65536
ROWS = 12_000


def _texts(start: int, stop: int) -> list[str]:
    return [f"{i * 7919 % 1000:03d}" * (1 + i * 31 % 40) for i in range(start, stop)]


def _write_csv(path: Path, start: int, stop: int) -> None:
    """Every 400th row has a bad number, and every 1,000th a cell too many."""
    lines = ["id,n,text"]
    for i, text in zip(range(start, stop), _texts(start, stop), strict=True):
        number = "bad" if i % 400 == 7 else str(i * i)
        lines.append(f'{i},{number},"{text * 4}\n"' + (",more" if i % 1000 == 9 else ""))
    path.write_text("\n".join(lines) + "\n")


def _write_parquet(path: Path, start: int, stop: int) -> None:
    """Every 500th row has an integer that no int64 holds."""
    ids = np.arange(start, stop, dtype=np.uint64)
    n = np.where(ids % 500 == 7, ids + np.uint64(2**63), ids)
    table = pa.table({"id": ids, "n": n, "f": np.arange(start, stop) / 3, "text": _texts(start, stop)})
    pq.write_table(table, path, row_group_size=300, write_page_checksum=True)


def _csv(folder: Path, files: int) -> dict[str, Any]:
    for i in range(files):
        _write_csv(folder / f"{i:02d}.csv", i * ROWS // files, (i + 1) * ROWS // files)
    columns = {"n": {"type": "int64"}}
    return {"input": {"format": "csv", "paths": [f"{folder}/*.csv"]}, "schema": {"columns": columns}}


def _parquet(folder: Path, files: int) -> dict[str, Any]:
    for i in range(files):
        _write_parquet(folder / f"{i:02d}.parquet", i * ROWS // files, (i + 1) * ROWS // files)
    return {"input": {"format": "parquet", "paths": [f"{folder}/*.parquet"]}}


def _images(folder: Path, files: int) -> dict[str, Any]:
    """Every 50th is cut."""
    chance = np.random.default_rng(1)
    for i in range(files):
        file = io.BytesIO()
        Image.fromarray(chance.integers(0, 256, (40 + i % 30, 50, 3), dtype=np.uint8)).save(file, "PNG")
        path = folder / f"class{i % 3}/{i:04d}.png"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(file.getvalue()[: -20 if i % 50 == 7 else None])
    return {"input": {"format": "images", "paths": [str(folder)]}, "shuffle": {"seed": 3}}


def _numpy(folder: Path, files: int, rows: bool) -> dict[str, Any]:
    for i in range(files):
        np.save(folder / f"{i:02d}.npy", np.arange(i, i + ROWS * 8 // files, dtype=np.float32).reshape(-1, 8))
    return {"input": {"format": "numpy", "paths": [f"{folder}/*.npy"], "rows": rows}}


SOURCES: dict[str, Callable[[Path], dict[str, Any]]] = {
    "many CSV files": lambda folder: _csv(folder, 24),
    "one CSV file": lambda folder: _csv(folder, 1),
    "many Parquet files": lambda folder: _parquet(folder, 24),
    "two Parquet files": lambda folder: _parquet(folder, 2),
    "images": lambda folder: _images(folder, 200),
    "NumPy files as records": lambda folder: _numpy(folder, 24, rows=False),
    "NumPy files as rows": lambda folder: _numpy(folder, 2, rows=True),
}


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], dict[str, Any]]:
    made: dict[str, dict[str, Any]] = {}

    def config_of(case: str) -> dict[str, Any]:
        if case not in made:
            made[case] = SOURCES[case](tmp_path_factory.mktemp("source"))
        return dict(made[case])

    return config_of


def run(config: Mapping[str, Any], out: Path, workers: int = 1, *, processes: bool = False, **output: Any) -> Manifest:
    settings = {"path": str(out), "shard_size": SHARD_SIZE, **output}
    runner = {"workers": workers, "processes": processes}
    whole = {"name": "same", "max_rejects": "10%", **config, "output": settings, "runner": runner}
    return convert(whole).manifest


def tree(root: Path) -> dict[str, bytes]:
    """Return every file of a dataset; of manifests, all but their `run`."""
    found = {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}
    for name, data in found.items():
        if name == "manifest.json" or name.startswith("manifests/"):
            document = json.loads(data)
            assert document.pop("run")["runner"] == "local"
            found[name] = json.dumps(document).encode()
    return found


def assert_sizes(manifest: Manifest) -> None:
    """Sizes are kept: no shard over S, none but the last two much below, none below half."""
    size = manifest.shard_size
    for split in manifest.splits.values():
        sizes, unit = [shard.bytes for shard in split.shards], split.unit_bytes
        assert min(sizes) > 0
        assert max(sizes) <= size
        assert sum(each <= size - unit for each in sizes) <= 2
        if split.bytes >= size - unit:
            assert 2 * min(sizes) >= size - unit
        assert (split.bytes, split.records) == (sum(sizes), sum(shard.records for shard in split.shards))


def assert_accounts(manifest: Manifest, out: Path) -> None:
    """Every row that was read is written or rejected, per input file; every reject has its line."""
    counts = manifest.counts
    assert counts.read == counts.written + counts.rejected + counts.dropped
    assert counts.written == sum(split.records for split in manifest.splits.values())
    entries = [json.loads(line) for line in (out / "sources/00000001.jsonl").read_text().splitlines()]
    for entry in entries:
        assert entry["read"] == entry["written"] + entry["rejected"] + entry["dropped"], entry
    assert sum(entry["read"] for entry in entries) == counts.read
    lines = (out / "rejects/00000001.jsonl").read_text().splitlines() if counts.rejected else []
    assert len(lines) == counts.rejected == manifest.rejects.records
    places = [json.loads(line) for line in lines]
    rejected = Counter(
        os.path.dirname(p["source"]) if manifest.source.format == "images" else p["source"] for p in places
    )
    assert {entry["source"]: entry["rejected"] for entry in entries if entry["rejected"]} == rejected


@pytest.mark.parametrize(
    "case",
    but_some_thorough(
        ["one CSV file", "two Parquet files", "images", "NumPy files as rows"],
        SOURCES,
        "many files of each kind too",
        ["many CSV files"],
    ),
)
def test_the_bytes_do_not_depend_on_the_number_of_workers(
    sources: Callable[[str], dict[str, Any]], tmp_path: Path, case: str
) -> None:
    config = sources(case)
    manifests = [run(config, tmp_path / str(workers) / "out", workers) for workers in (1, 2, 4)]
    trees = [tree(tmp_path / str(workers) / "out") for workers in (1, 2, 4)]
    assert trees[0] == trees[1]
    assert trees[0] == trees[2]
    assert len(manifests[0].splits["train"].shards) > 3
    assert_sizes(manifests[0])
    assert_accounts(manifests[0], tmp_path / "1/out")
    assert (manifests[0].counts.rejected > 0) == (not case.startswith("NumPy"))


@pytest.mark.parametrize("case", ["one CSV file", "two Parquet files"])
@pytest.mark.parametrize("compression", but_some_thorough(["none"], ["none", "gzip"], "gzip too"))
def test_the_order_of_the_source_is_kept_where_it_is_asked_for(
    sources: Callable[[str], dict[str, Any]], tmp_path: Path, case: str, compression: str
) -> None:
    config = sources(case)
    manifests = [run(config, tmp_path / f"{w}/out", w, order="source", compression=compression) for w in (1, 4)]
    assert tree(tmp_path / "1/out") == tree(tmp_path / "4/out")
    ids = open_dataset(tmp_path / "1/out").to_arrow("train", ["id"])["id"].to_pylist()
    assert ids == sorted(ids)
    assert len(ids) == manifests[0].counts.written
    assert_sizes(manifests[0])


@pytest.mark.parametrize("case", ["many CSV files", "two Parquet files"])
def test_the_order_of_tasks_is_full_parts_and_then_tails_each_in_source_order(
    sources: Callable[[str], dict[str, Any]], tmp_path: Path, case: str
) -> None:
    manifest = run(sources(case), tmp_path / "out", 2)
    ids = open_dataset(tmp_path / "out").to_arrow("train", ["id"])["id"].to_pylist()
    assert len(set(ids)) == len(ids) == manifest.counts.written
    assert sum(after < before for before, after in itertools.pairwise(ids)) <= 1


def test_splits_by_fractions_are_the_same_for_any_workers_and_sized_on_their_own(
    sources: Callable[[str], dict[str, Any]], tmp_path: Path
) -> None:
    config = {**sources("two Parquet files"), "split": {"fractions": {"train": 0.7, "val": 0.3}, "key": "id"}}
    manifests = [run(config, tmp_path / f"{workers}/out", workers) for workers in (1, 2, 4)]
    assert tree(tmp_path / "1/out") == tree(tmp_path / "2/out") == tree(tmp_path / "4/out")
    assert_sizes(manifests[0])
    assert_accounts(manifests[0], tmp_path / "1/out")
    train, val = (manifests[0].splits[name].records for name in ("train", "val"))
    assert 0.25 < val / (train + val) < 0.35
    dataset = open_dataset(tmp_path / "1/out")
    ids = [set(dataset.to_arrow(name, ["id"])["id"].to_pylist()) for name in ("train", "val")]
    assert not ids[0] & ids[1]
    assert len(ids[0] | ids[1]) == manifests[0].counts.written


@pytest.mark.parametrize(
    "case",
    but_some_thorough(
        ["images"],
        SOURCES,
        "worker processes are started for each source",
        ["many CSV files", "two Parquet files", "NumPy files as rows"],
    ),
)
def test_worker_processes_give_the_bytes_that_threads_give(
    sources: Callable[[str], dict[str, Any]], tmp_path: Path, case: str
) -> None:
    run(sources(case), tmp_path / "threads/out", 2)
    run(sources(case), tmp_path / "processes/out", 2, processes=True)
    assert tree(tmp_path / "threads/out") == tree(tmp_path / "processes/out")


class _ReadTwiceFn(read._ReadTaskFn):
    """Reads each task once in vain before it counts."""

    def process(self, task: Task) -> Iterator[Rows | TaskEnd]:
        assert list(super().process(task))
        yield from super().process(task)


class _StageTwiceFn(write._StagePartsFn):
    """Stages each task twice, as an engine may: what the first attempt gave is lost."""

    _elements: list[Any]

    def start_bundle(self) -> None:
        super().start_bundle()
        self._elements = []

    def process(self, element: Any) -> Iterator[tuple[int, bytes]]:
        self._elements.append(element)
        results = list(super().process(element))
        if isinstance(element, TaskEnd):
            results = [again for earlier in self._elements for again in super(_StageTwiceFn, self).process(earlier)]
            self._elements = []
        yield from results


class _ListAttemptsFn(write._CompleteFn):
    """Lists the attempts in the staging folder before it goes."""

    def process(self, gathered: Any) -> Iterator[Any]:
        names = os.listdir(f"{self._spec.path}/{self._spec.staging}/parts")
        with open(f"{self._spec.path}.attempts", "w") as file:
            json.dump(sorted(names), file)
        yield from super().process(gathered)


@pytest.mark.parametrize(
    "case",
    but_some_thorough(
        ["many Parquet files"],
        ["one CSV file", "many Parquet files", "images", "NumPy files as rows"],
        "each kind of source twice; one is in the quick tier",
        ["images"],
    ),
)
def test_tasks_that_are_attempted_twice_give_the_same_bytes(
    sources: Callable[[str], dict[str, Any]], tmp_path: Path, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = sources(case)
    run(config, tmp_path / "once/out")
    monkeypatch.setattr(read, "_ReadTaskFn", _ReadTwiceFn)
    monkeypatch.setattr(write, "_StagePartsFn", _StageTwiceFn)
    monkeypatch.setattr(write, "_CompleteFn", _ListAttemptsFn)
    run(config, tmp_path / "twice/out", 2)
    attempts = Counter(name.split("-")[0] for name in json.loads((tmp_path / "twice/out.attempts").read_text()))
    assert len(attempts) > 1
    assert set(attempts.values()) == {2}  # the second attempts did happen
    assert tree(tmp_path / "once/out") == tree(tmp_path / "twice/out")


def test_a_source_that_loses_rows_commits_nothing(
    sources: Callable[[str], dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read, "_ReadTaskFn", _LossyReadFn)
    with pytest.raises(RuntimeError, match="rows do not add up; nothing was committed"):
        run(sources("two Parquet files"), tmp_path / "out")
    assert not list((tmp_path / "out").glob("[!.]*"))


class _LossyReadFn(read._ReadTaskFn):
    """Loses the last row of each batch, but says it was there."""

    def process(self, task: Task) -> Iterator[Rows | TaskEnd]:
        for element in super().process(task):
            yield element if isinstance(element, TaskEnd) else _shortened(element)


def _shortened(rows: Rows) -> Rows:
    from dataclasses import replace

    return replace(rows, batch=rows.batch.slice(0, rows.batch.num_rows - 1), problems=())
