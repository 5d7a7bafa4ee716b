"""grain, tf.data and Keras read datasets by our own adapters, with no parsing of the user's."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import grain.python as pygrain
import numpy as np
import pyarrow as pa
import pytest
from PIL import Image
from shardmill.pipelines import convert, open_dataset
from shardmill.transforms.dataset.reading.open_dataset import Dataset
from shardmill.transforms.errors import ShardmillWarning, UsageError

ROWS = 1003


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("frameworks") / "out"
    n = np.arange(ROWS)
    table = pa.table(
        {
            "n": n,
            "x": pa.FixedSizeListArray.from_arrays(pa.array(np.arange(4 * ROWS, dtype=np.float32)), 4),
            "maybe": pa.array(n / 2, pa.float32(), mask=n % 3 == 0),
            "yes": n % 2 == 0,
            "tags": [[f"t{i}"] * (i % 3) for i in range(ROWS)],
            "deep": [[[i, i], [i]][: i % 3] for i in range(ROWS)],
            "pet": [("cat", "dog")[i % 2] for i in range(ROWS)],
        }
    )
    convert(data=table, output=path, shard_size="64KiB", schema={"columns": {"pet": {"label": True}}})
    return path


@pytest.fixture
def dataset(out: Path) -> Dataset:
    return open_dataset(out)["train"]


@pytest.mark.parametrize("workers", [0, 2])
def test_grain_reads_each_row_once_in_a_random_order(dataset: Dataset, workers: int) -> None:
    sampler = pygrain.IndexSampler(len(dataset), num_epochs=1, shuffle=True, seed=3)
    loader = pygrain.DataLoader(data_source=dataset.grain(["n"]), sampler=sampler, worker_count=workers)
    rows = [int(row["n"]) for row in loader]
    assert sorted(rows) == list(range(ROWS)) != rows


def test_grain_goes_on_from_a_checkpoint_with_a_new_source(out: Path) -> None:
    def iterator() -> Any:
        source = open_dataset(out)["train"].grain(["n", "x"])
        return iter(pygrain.MapDataset.source(source).shuffle(seed=5).batch(10).to_iter_dataset())

    first = iterator()
    before = [next(first)["n"].tolist() for _ in range(7)]
    second = iterator()
    second.set_state(first.get_state())
    assert before + [batch["n"].tolist() for batch in second] == [batch["n"].tolist() for batch in iterator()]


KILLED = """
import sys, json
import grain.python as grain
from shardmill.pipelines import open_dataset

if __name__ == "__main__":
    source = open_dataset(sys.argv[1])["train"].grain(["n"])
    batches = iter(grain.MapDataset.source(source).shuffle(seed=5).batch(10).to_iter_dataset())
    for batch in batches:
        print(json.dumps([batch["n"].tolist(), batches.get_state()]), flush=True)
"""


def test_grain_goes_on_where_a_run_was_killed(out: Path, tmp_path: Path) -> None:
    program = tmp_path / "train.py"
    program.write_text(KILLED)
    process = subprocess.Popen([sys.executable, str(program), str(out)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    lines = [json.loads(process.stdout.readline()) for _ in range(5)]
    process.send_signal(signal.SIGKILL)
    process.stdout.close()
    assert process.wait() == -signal.SIGKILL
    source = open_dataset(out)["train"].grain(["n"])
    batches = iter(pygrain.MapDataset.source(source).shuffle(seed=5).batch(10).to_iter_dataset())
    batches.set_state(lines[-1][1])
    found = [row for rows, _ in lines for row in rows] + [row for batch in batches for row in batch["n"].tolist()]
    assert sorted(found) == list(range(ROWS))


def test_tf_data_gives_the_values_of_each_column(dataset: Dataset) -> None:
    batches = dataset.tf(batch_rows=100)
    assert batches.cardinality().numpy() == 11
    found = list(batches)
    assert [n for batch in found for n in batch["n"].numpy().tolist()] == list(range(ROWS))
    batch = found[0]
    assert batch["x"].shape == (100, 4)
    assert batch["x"].numpy()[1].tolist() == [4, 5, 6, 7]
    assert batch["maybe/present"].numpy().tolist()[:4] == [False, True, True, False]
    assert np.isnan(batch["maybe"].numpy()[0])
    assert batch["maybe"].numpy()[1] == 0.5
    assert batch["yes"].numpy().tolist()[:2] == [True, False]
    assert batch["tags"].to_list()[:3] == [[], [b"t1"], [b"t2", b"t2"]]
    assert batch["deep"].to_list()[:3] == [[], [[1, 1]], [[2, 2], [2]]]
    assert batch["pet"].numpy().tolist()[:2] == [0, 1]


def test_tf_data_says_which_nested_columns_are_there_as_booleans(tmp_path: Path) -> None:
    table = pa.table({"lists": [[[1]], [], None], "struct": [{"a": 1}, None, {"a": None}], "plain": [[1], [], None]})
    convert(data=table, output=tmp_path / "out")
    (batch,) = open_dataset(tmp_path / "out")["train"].tf()
    assert batch["lists/present"].numpy().tolist() == [True, True, False]
    assert batch["struct/present"].numpy().tolist() == [True, False, True]
    assert (batch["struct/present"] & batch["struct/a/present"]).numpy().tolist() == [True, False, False]
    assert "plain/present" not in batch


def test_a_name_in_place_of_a_list_is_refused_by_tf_too(dataset: Dataset) -> None:
    with pytest.raises(UsageError, match=r'columns is a list of names: \["n"\]'):
        dataset.tf("n")  # type: ignore[arg-type]


def test_tf_data_shuffles_and_leaves_out_and_repeats_as_it_is_asked_to(dataset: Dataset) -> None:
    import tensorflow as tf

    shuffled = dataset.tf(["n"], batch_rows=100, shuffle_rows=500, seed=1, drop_remainder=True)
    rows = [n for batch in shuffled for n in batch["n"].numpy().tolist()]
    assert (len(rows), len(set(rows)), rows == sorted(rows)) == (1000, 1000, False)
    assert dataset.tf(["n"], repeat=True).cardinality().numpy() == tf.data.INFINITE_CARDINALITY


def test_gzip_shards_and_columns_by_name_are_read_alike(tmp_path: Path) -> None:
    convert(data={"n": np.arange(10), "m": np.arange(10)}, output=tmp_path / "out", compression="gzip")
    (batch,) = open_dataset(tmp_path / "out").tf(["n"])
    assert set(batch) == {"n"}
    assert batch["n"].numpy().tolist() == list(range(10))


def test_keras_trains_on_what_tf_gives(dataset: Dataset) -> None:
    import keras

    model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    batches = dataset.tf(["x", "n"], batch_rows=100).map(lambda batch: (batch["x"] / 5000.0, batch["n"]))
    history = model.fit(batches, epochs=2, verbose=0, shuffle=False)
    assert len(history.history["loss"]) == 2


def test_pictures_decode_in_tf_data(tmp_path: Path) -> None:
    for at, size in enumerate(((6, 5), (4, 3))):
        path = tmp_path / "pics" / f"{at}.png"
        path.parent.mkdir(exist_ok=True)
        Image.new("RGB", size, (at, 0, 0)).save(path)
    convert(str(tmp_path / "pics"), output=tmp_path / "out")
    (batch,) = open_dataset(tmp_path / "out").tf(["image/encoded"], decode=True)
    shapes = sorted(picture.to_tensor().shape.as_list() for picture in batch["image/encoded"])
    assert shapes == [[3, 4, 3], [5, 6, 3]]


def test_the_same_rows_come_from_numpy_grain_and_tf_data(dataset: Dataset) -> None:
    by_numpy = [n for batch in dataset.numpy(columns=["n"], rows=7) for n in batch["n"].tolist()]
    by_tf = [n for batch in dataset.tf(["n"]) for n in batch["n"].numpy().tolist()]
    by_grain = [int(dataset.grain(["n"])[i]["n"]) for i in range(0, ROWS, 100)]
    assert by_numpy == by_tf
    assert by_grain == by_numpy[::100]


def test_a_store_that_tensorflow_does_not_read_is_refused_with_what_does(dataset: Dataset) -> None:
    with pytest.raises(UsageError, match=r"use torch\(\) or numpy\(\)"):
        Dataset("s3://bucket/out", dataset.manifest).tf()


@pytest.mark.parametrize("workers", [0, 1])
def test_grain_reads_what_its_parent_opened_or_ends_with_an_error(tmp_path: Path, workers: int) -> None:
    def make(version: int) -> None:
        filler = np.random.default_rng(1).integers(0, 1 << 60, (8_000, 4))
        data = {"version": np.full(len(filler), version), "filler": filler}
        convert(data=data, output=tmp_path / "out", output__shard_size="64KiB", if_exists="replace")

    make(1)
    rows = open_dataset(tmp_path / "out")["train"].grain(["version"])
    make(2)
    sampler = pygrain.IndexSampler(len(rows), num_epochs=1, shuffle=True, seed=3)
    with pytest.raises(Exception, match="was replaced by generation 2 after it was opened"):
        next(iter(pygrain.DataLoader(data_source=rows, sampler=sampler, worker_count=workers)))


def test_tensorflow_warns_of_rows_that_are_dropped_and_refuses_an_epoch_without_a_batch(tmp_path: Path) -> None:
    convert(data={"n": np.arange(1003)}, output=tmp_path / "out")
    rows = open_dataset(tmp_path / "out")["train"]
    with pytest.raises(UsageError, match=r"no batch at all: 1,003 .*batch_rows=1003 or less, or drop_rem"):
        rows.tf(batch_rows=1200, drop_remainder=True)
    with pytest.warns(ShardmillWarning, match="leaves out 403 of 1,003 rows.*drop_remainder=False"):
        assert len(rows.tf(batch_rows=600, drop_remainder=True)) == 1
    assert len(rows.tf(batch_rows=1200)) == 1
    assert len(rows.tf(batch_rows=100, drop_remainder=True)) == 10  # warnings are errors
    assert len(next(iter(rows.tf(batch_rows=1200, drop_remainder=True, repeat=True)))["n"]) == 1200
