"""The programs that `snippet` prints run as they are printed, each with its own library, for every sample."""

from __future__ import annotations

import contextlib
import io
import os
import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from shardmill.pipelines import convert
from shardmill.transforms.dataset.reading.open_dataset import Dataset

from ..command_line import Shardmill

ODD = pa.table(
    {
        'a "b" é/ü': ["x", None, "z"],
        "grid": pa.array([[[1, 2], []], [[3]], []], pa.list_(pa.list_(pa.int64()))),
        "fixed": pa.array([[1.5, 2.5], None, [3.5, 4.5]], pa.list_(pa.float32(), 2)),
        "kind": ["owl", "cat", "owl"],
        "nest": [{"a": 1, "b": ["x"]}, None, {"a": None, "b": []}],
        "when": pa.array([1, 2, None], pa.timestamp("us")),
        "x": [0.5, 1.5, 2.5],
    }
)


def ran(program: str, folder: Path) -> str:
    """Run a program in this process, and return what it prints."""
    path = folder / "program.py"
    path.write_text(program, encoding="utf-8")
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        runpy.run_path(str(path), run_name="__main__")
    return said.getvalue()


def ran_alone(program: str, folder: Path) -> str:
    """Run a program in a process of its own: `tfrecord` and TensorFlow do not go together in one."""
    path = folder / "program.py"
    path.write_text(program, encoding="utf-8")
    done = subprocess.run([sys.executable, str(path)], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def odd(folder: Path, compression: str = "none") -> Path:
    columns = {"kind": {"label": True}}
    convert(data=ODD, output=folder, compression=compression, schema={"columns": columns})
    return folder


@pytest.mark.parametrize("reader", ["tf", "tfds", "tfrecord"])
def test_every_sample_is_read_with_all_its_features(
    any_sample: Dataset, tmp_path: Path, shardmill: Shardmill, reader: str
) -> None:
    screen = shardmill("snippet", reader, any_sample.path)
    assert screen.code == 0, screen.err
    said = (ran_alone if reader == "tfrecord" else ran)(screen.out, tmp_path)
    assert any_sample.schema is not None
    names = [feature.name for feature in any_sample.schema if not feature.nullable]
    shown = names if reader != "tfds" else [step for name in names for step in name.split("/")[-1:]]
    assert all(name in said for name in shown)


@pytest.mark.parametrize("reader", ["tf", "keras", "tfds", "tfrecord", "grain"])
@pytest.mark.parametrize("name", ["my data [v1]", "a [0-9] b", "what? [a]*", "[[x]"])
def test_a_folder_with_signs_of_globs_is_read(tmp_path: Path, shardmill: Shardmill, reader: str, name: str) -> None:
    table = pa.table({"id": range(6), "kind": ["cat", "owl"] * 3})
    convert(data=table, output=tmp_path / "of" / name, schema={"columns": {"kind": {"label": True}}})
    screen = shardmill("snippet", reader, str(tmp_path / "of" / name))
    assert screen.code == 0, screen.err
    (ran_alone if reader == "tfrecord" else ran)(screen.out, tmp_path)


@pytest.mark.parametrize("reader", ["grain", "keras"])
def test_every_sample_is_read_or_what_it_lacks_is_said(
    any_sample: Dataset, tmp_path: Path, shardmill: Shardmill, reader: str
) -> None:
    screen = shardmill("snippet", reader, any_sample.path)
    if screen.code == 0:
        ran(screen.out, tmp_path)
    else:
        assert reader == "keras"
        assert any_sample.manifest.name in ("album", "arrays")
        assert "make one of a column: --set schema.columns.NAME.label=true" in screen.err


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_mlcroissant_reads_what_has_its_file_and_says_how_to_make_it(
    any_sample: Dataset, tmp_path: Path, shardmill: Shardmill
) -> None:
    screen = shardmill("snippet", "mlcroissant", any_sample.path)
    assert screen.code == 2
    command = screen.err.partition("missing: ")[2].split()
    assert shardmill(*command[1:]).code == 0
    said = ran(shardmill("snippet", "mlcroissant", any_sample.path).out, tmp_path)
    assert any_sample.schema is not None
    assert all(repr(one.name) in said for one in any_sample.schema)
    assert all(
        any(name in line for line in said.splitlines()) for names in any_sample.labels.values() for name in names
    )


@pytest.mark.parametrize("name", ["quickstart", "csv", "resized"])
def test_dali_reads_what_has_indexes_as_text_and_says_how_to_make_them(
    sample: Callable[..., Dataset], tmp_path: Path, shardmill: Shardmill, name: str
) -> None:
    dataset = sample(name, sidecars=["tfds", "tfx"], name="without_text")
    screen = shardmill("snippet", "dali", dataset.path)
    assert screen.code == 2
    command = screen.err.partition("missing: ")[2].split()
    assert shardmill(*command[1:]).code == 0
    said = ran(shardmill("snippet", "dali", dataset.path).out, tmp_path)
    assert dataset.schema is not None
    assert all(one.name in said for one in dataset.schema if not one.nullable)


@pytest.mark.parametrize("reader", ["tf", "tfds", "keras", "grain", "tfrecord", "dali"])
def test_odd_names_nulls_and_lists_of_lists_are_read(tmp_path: Path, shardmill: Shardmill, reader: str) -> None:
    odd(tmp_path / "out")
    assert shardmill("index", "out", "--text").code == 0
    screen = shardmill("snippet", reader, "out")
    assert screen.code == 0, screen.err
    os.chdir(tmp_path)
    said = (ran_alone if reader == "tfrecord" else ran)(screen.out, tmp_path)
    assert "kind" in said or reader == "keras"
    if reader == "tf":
        assert "when" in said


@pytest.mark.parametrize("reader", ["tf", "keras", "grain", "tfrecord"])
def test_gzip_shards_are_read(tmp_path: Path, shardmill: Shardmill, reader: str) -> None:
    odd(tmp_path / "out", "gzip")
    screen = shardmill("snippet", reader, "out")
    assert screen.code == 0, screen.err
    (ran_alone if reader == "tfrecord" else ran)(screen.out, tmp_path)


def test_readers_without_gzip_say_so_with_what_helps(tmp_path: Path, shardmill: Shardmill) -> None:
    odd(tmp_path / "out", "gzip")
    for reader in ("tfds", "dali"):
        screen = shardmill("snippet", reader, "out")
        assert screen.code == 2
        assert "shardmill rebuild out -o" in screen.err


def test_records_without_a_label_weigh_nothing_in_what_keras_learns(tmp_path: Path, shardmill: Shardmill) -> None:
    table = pa.table({"x": [1.0, 2.0, 3.0, 4.0], "kind": ["a", None, "b", None]})
    convert(data=table, output=tmp_path / "out", schema={"columns": {"kind": {"label": True}}})
    os.chdir(tmp_path)
    screen = shardmill("snippet", "keras", "out")
    names = runpy.run_path(str(_written(screen.out, tmp_path)), run_name="__main__")
    (batch,) = names["batches"]
    assert dict(zip(batch[0].numpy()[:, 0].tolist(), batch[2].numpy().tolist(), strict=True)) == {
        1: 1,
        2: 0,
        3: 1,
        4: 0,
    }


def _written(program: str, folder: Path) -> Path:
    path = folder / "program.py"
    path.write_text(program, encoding="utf-8")
    return path
