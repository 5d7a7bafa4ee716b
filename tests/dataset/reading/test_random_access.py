"""Rows and records by their number: what is read is what a walk from the front reads, wherever it is asked for."""

from __future__ import annotations

import gc
import os
import pickle
import re
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from shardmill.pipelines import convert
from shardmill.transforms.dataset.reading.open_dataset import Dataset, open_dataset
from shardmill.transforms.dataset.storage.record_file import read_offsets
from shardmill.transforms.errors import DamageError, UsageError
from shardmill.transforms.format.sidecars.sidecar_files import offsets_in

from ..open_files import files_open_below

ROWS = 2_000


def table(rows: int = ROWS) -> pa.Table:
    random = np.random.default_rng(1)
    return pa.table(
        {
            "id": np.arange(rows),
            "small": pa.array(np.arange(rows) % 100, pa.int8()),
            "score": random.standard_normal(rows).astype(np.float32),
            "ok": np.arange(rows) % 2 == 0,
            "text": [None if n % 7 == 0 else f"row {n} " + "x" * (n % 300) for n in range(rows)],
            "raw": [bytes([n % 256]) * (n % 5) for n in range(rows)],
            "tags": [[f"t{n}"] * (n % 4) for n in range(rows)],
            "pair": pa.array([[n, -n] for n in range(rows)], pa.list_(pa.int64(), 2)),
        }
    )


def made(folder: Path, data: pa.Table | None = None, **output: Any) -> Dataset:
    """Return a dataset of several shards."""
    where = {"output.path": str(folder / "out"), "output.shard_size": "64KiB"} | {
        f"output.{key}": value for key, value in output.items()
    }
    convert(data=table() if data is None else data, **{key.replace(".", "__"): value for key, value in where.items()})
    return open_dataset(folder / "out")


Make = Callable[..., Dataset]


@pytest.fixture(scope="module", params=["binary", "text", "none", "gzip"])
def dataset(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    folder = tmp_path_factory.mktemp(request.param)
    if request.param == "gzip":
        return made(folder, compression="gzip")
    return made(folder, index=request.param)


class Walked:
    """What reading from the front gives."""

    def __init__(self, dataset: Dataset) -> None:
        self.records = list(dataset.records())
        self.rows = dataset.to_arrow().to_pylist()


@pytest.fixture(scope="module")
def walked(dataset: Dataset) -> Walked:
    return Walked(dataset)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=40)
@given(numbers=st.lists(st.integers(-ROWS, ROWS - 1), max_size=40))
def test_records_and_rows_are_those_of_a_walk(dataset: Dataset, walked: Walked, numbers: list[int]) -> None:
    records, rows = walked.records, walked.rows
    assert len(dataset.manifest.splits["train"].shards) > 1
    assert [dataset.record(number) for number in numbers] == [records[number] for number in numbers]
    assert [dataset[number] for number in numbers] == [rows[number] for number in numbers]
    assert dataset.take(numbers).to_pylist() == [rows[number] for number in numbers]


def test_a_batch_has_the_columns_that_are_asked_for(dataset: Dataset) -> None:
    batch = dataset.take(np.array([3, 1, 3]), ["text", "id"])
    assert batch.schema.names == ["text", "id"]
    assert batch.column("id").to_pylist() == [3, 1, 3]
    assert dataset.take([], ["id"]).num_rows == 0
    with pytest.raises(UsageError, match='no feature "ide"'):
        dataset.take([1], ["ide"])


@pytest.mark.parametrize("number", [ROWS, -ROWS - 1])
def test_a_number_beyond_the_records_is_an_index_error(dataset: Dataset, number: int) -> None:
    for ask in (dataset.record, dataset.__getitem__, lambda index: dataset.take([0, index])):
        with pytest.raises(IndexError, match=f"no record {number}; there are 2,000"):
            ask(number)


def test_numbers_are_those_of_a_split_where_one_was_chosen(tmp_path: Path) -> None:
    data = table(300).append_column("part", pa.array(["a", "b", "b"] * 100))
    convert(data=data, output=tmp_path / "out", split={"column": "part"})
    whole = open_dataset(tmp_path / "out")
    assert [len(whole), len(whole["a"]), len(whole["b"])] == [300, 100, 200]
    assert whole["b"][0] == whole["b"].to_arrow().to_pylist()[0] == whole[100]


def test_what_is_known_of_a_split_is_kept_when_it_is_asked_for_again(dataset: Dataset) -> None:
    assert dataset["train"] is dataset["train"]
    assert dataset["train"]["train"] is dataset["train"]


@pytest.mark.parametrize("part", [slice(3), slice(-2, None), slice(10, 2, -3), slice(ROWS, None)], ids=str)
def test_a_slice_is_a_list_of_rows(dataset: Dataset, walked: Walked, part: slice) -> None:
    assert dataset[part] == walked.rows[part]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (np.array([True, False]), "of a mask these are mask.nonzero()[0]"),
        (3, "this is 3: take([5, 0]), take(range(10))"),
        ([1.5], "this is float64: take"),
        ("ab", "this is ab: take"),
        ([[1, 2]], "this is an array of 2 axes: take"),
    ],
)
def test_what_is_no_list_of_numbers_is_refused_with_what_is_one(dataset: Dataset, wrong: Any, said: str) -> None:
    with pytest.raises(UsageError, match=re.escape(said)):
        dataset.take(wrong)


@pytest.mark.parametrize("entry", [-5, 1 << 40])
def test_an_index_with_a_wrong_place_is_named(tmp_path: Path, entry: int) -> None:
    made(tmp_path)
    path = next(iter(sorted((tmp_path / "out/index").iterdir())))
    offsets = np.fromfile(path, "<i8")
    offsets[5] = entry
    offsets.tofile(path)
    dataset = open_dataset(tmp_path / "out")["train"]
    for ask in (lambda: dataset.record(4), lambda: dataset.take([4]), lambda: dataset.take([3, 4, 5, 6])):
        with pytest.raises(DamageError, match="its index states a place that no record can have"):
            ask()


@pytest.mark.parametrize("by", ["threads", "pickle", "fork"])
def test_a_dataset_that_is_being_read_goes_to_threads_and_processes(dataset: Dataset, by: str) -> None:
    wanted = dataset.record(1234)
    if by == "threads":
        with ThreadPoolExecutor(8) as pool:
            assert list(pool.map(dataset.record, [1234] * 200)) == [wanted] * 200
    elif by == "pickle":
        assert pickle.loads(pickle.dumps(dataset)).record(1234) == wanted
    else:
        child = os.fork()
        if child == 0:
            os._exit(0 if dataset.record(1234) == wanted and dataset.record(7) != wanted else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


READ_BY_NUMBER = """
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))
import numpy as np
from shardmill.pipelines import open_dataset

path, rows = sys.argv[1], int(sys.argv[2])
order = np.random.default_rng(1).permutation(rows).tolist()
ways = {
    "record": lambda data: [data.record(n) for n in order],
    "row": lambda data: [data[n] for n in order],
    "take": lambda data: [data.take(order[at : at + 30]) for at in range(0, rows, 30)],
    "take all": lambda data: data.take(order),
    "slice": lambda data: data[:],
    "batches": lambda data: [*data.batches(start=rows // 2)],
    "numpy": lambda data: [*data.numpy(start=1, rows=30)],
    "torch_map": lambda data: [data.torch_map()[n] for n in order],
    "grain": lambda data: data.grain().__getitems__(order),
}
whole = open_dataset(path)
kept = [(name, whole, open_dataset(path)["a"]) for name in ways]  # as many datasets as ways, and each stays open
for name, one, split in kept:
    ways[name](one)
    split.record(0), split.record(len(split) - 1)
print([whole[n]["id"] for n in range(rows)])
"""


@pytest.mark.parametrize("output", [{}, {"output__index": "none"}, {"output__compression": "gzip"}], ids=str)
def test_more_shards_than_a_process_may_have_files_open_are_read_in_every_way(
    tmp_path: Path, output: dict[str, Any]
) -> None:
    rows = 120
    noise = np.random.default_rng(1).bytes(40_000)
    data = pa.table({"id": np.arange(rows), "part": ["a", "b"] * (rows // 2), "noise": [noise] * rows})
    convert(data=data, output=tmp_path / "out", shard_size="64KiB", split={"column": "part"}, **output)
    assert len([*(tmp_path / "out").glob("*.tfrecord*")]) == rows
    done = subprocess.run(
        [sys.executable, "-c", READ_BY_NUMBER, str(tmp_path / "out"), str(rows)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    ids = [*range(0, rows, 2), *range(1, rows, 2)]
    assert done.stdout.startswith(str(ids))


def test_files_of_a_dataset_that_is_no_longer_used_are_closed(tmp_path: Path) -> None:
    dataset = made(tmp_path)
    dataset.take(range(ROWS))
    assert files_open_below(tmp_path)
    del dataset
    gc.collect()
    assert files_open_below(tmp_path) == []


def test_values_of_every_kind_are_those_of_a_batch(tmp_path: Path) -> None:
    moment = pa.array([0, 1_700_000_000_123_456], pa.timestamp("us", "UTC"))
    nested = pa.array([{"a": [1, 2], "b": None}, {"a": [], "b": "x"}])
    for column in (moment, nested, pa.array([1.5, 2.5], pa.float16()), pa.array([None, 2.5]), moment.cast(pa.date32())):
        convert(data=pa.table({"x": column}), output=tmp_path / "out", if_exists="replace")
        dataset = open_dataset(tmp_path / "out")
        assert [dataset[0], dataset[1]] == dataset.to_arrow().to_pylist()


def test_plain_bytes_come_as_they_are(tmp_path: Path) -> None:
    from shardmill.pipelines.runs.merge import plan_merge
    from shardmill.transforms.dataset.storage.record_file import write_records

    write_records(tmp_path / "a.tfrecord", [b"no example", b"", b"nor this"])
    plan_merge("merge", [str(tmp_path / "a.tfrecord")], {"output.path": str(tmp_path / "out")}).run()
    dataset = open_dataset(tmp_path / "out")
    assert [dataset[0], dataset[1], dataset.record(-1)] == [b"no example", b"", b"nor this"]
    with pytest.raises(UsageError, match="plain bytes without a schema"):
        dataset.take([0])


@pytest.mark.parametrize(("at", "what"), [(4, "its header is damaged"), (40, "its data do not have their CRC")])
def test_damage_is_named_with_its_shard_record_and_byte(tmp_path: Path, at: int, what: str) -> None:
    dataset = made(tmp_path)
    (path,) = dataset.shard_paths()[:1]
    dataset.record(0)  # where records begin is known from here on
    start = len(dataset.record(0)) + 16
    with open(path, "r+b") as file:
        file.seek(start + at)
        byte = file.read(1)
        file.seek(start + at)
        file.write(bytes([byte[0] ^ 1]))
    for ask in (dataset.record, lambda index: dataset.take([index, 5])):
        with pytest.raises(DamageError, match=rf"train-00000\.tfrecord record 1 at byte {start}: {what}"):
            ask(1)
    assert dataset[2]["id"] is not None


def test_a_shard_that_was_cut_is_damage(tmp_path: Path) -> None:
    dataset = made(tmp_path)
    (path,) = dataset.shard_paths()[:1]
    os.truncate(path, os.path.getsize(path) - 1)
    with pytest.raises(DamageError, match=r"train-00000\.tfrecord"):
        dataset.record(0)


@pytest.mark.parametrize(("kind", "suffix", "cut"), [("text", "idx", 20), ("binary", "offsets", 8)])
def test_an_index_that_is_of_another_shard_is_damage(tmp_path: Path, kind: str, suffix: str, cut: int) -> None:
    dataset = made(tmp_path, index=kind)
    first, second = (tmp_path / "out" / "index" / f"train-0000{n}.{suffix}" for n in (0, 1))
    first.write_bytes(second.read_bytes()[:-cut])
    with pytest.raises(DamageError, match=r"the file, or its index, was cut or replaced; shardmill verify"):
        dataset.record(0)


@pytest.mark.parametrize(("kind", "suffix"), [("text", "idx"), ("binary", "offsets")])
def test_a_file_that_is_no_index_is_damage(tmp_path: Path, kind: str, suffix: str) -> None:
    dataset = made(tmp_path, index=kind)
    (tmp_path / "out" / "index" / f"train-00000.{suffix}").write_bytes(b"0 1 2\nx")
    with pytest.raises(DamageError, match=rf"train-00000\.{suffix}: it is no index; shardmill index --overwrite"):
        dataset.record(0)


def test_an_index_states_where_each_record_of_its_shard_begins(dataset: Dataset) -> None:
    """Also of shards that are copied from parts of several, as the last ones are."""
    names = [name for name in dataset.manifest.sidecars if name.startswith("index/")]
    for name in names:
        data = Path(dataset.path, name).read_bytes()
        shard = Path(dataset.path, os.path.basename(name)).with_suffix(".tfrecord")
        offsets = offsets_in(data, "binary" if name.endswith(".offsets") else "text")
        assert offsets.tolist() == read_offsets(shard).tolist()
    assert bool(names) == (any(Path(dataset.path).parent.name.startswith(kind) for kind in ("binary", "text")))
