"""What `snippet` prints, and refuses; tests/readers/test_snippet.py runs the programs."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pyarrow as pa
import pytest
from shardmill.pipelines import convert
from shardmill.transforms.format.snippets.programs import PROGRAMS

from ....command_line import Shardmill


@pytest.fixture
def out(tmp_path: Path) -> Path:
    table = pa.table({"id": range(200), "kind": ["cat", "owl"] * 100})
    split = {"fractions": {"fit": 0.8, "val": 0.2}}
    convert(data=table, output=tmp_path / "out", split=split, schema={"columns": {"kind": {"label": True}}})
    return tmp_path / "out"


@pytest.mark.parametrize("reader", PROGRAMS)
def test_every_program_is_python_that_names_the_dataset_and_its_split(
    out: Path, shardmill: Shardmill, reader: str
) -> None:
    assert shardmill("index", "out", "--text").code == 0
    assert shardmill("export", "out", "-o", "out/croissant.json").code == 0
    for arguments, split in (((), "fit"), (("--split", "val"), "val")):
        screen = shardmill("snippet", reader, "out", *arguments)
        assert (screen.code, screen.err) == (0, "")
        ast.parse(screen.out)
        named = f"out/{split}-*.tfrecord" in screen.out or ('"out"' in screen.out and f'"{split}"' in screen.out)
        assert named or "out/croissant.json" in screen.out  # which has all splits
        said = json.loads(shardmill("snippet", reader, "out", *arguments, "--json").out)
        assert (said["code"], said["split"]) == (screen.out, split)


def test_the_program_of_tf_data_has_the_kind_and_shape_of_each_feature(out: Path, shardmill: Shardmill) -> None:
    lines = shardmill("snippet", "tf", "out").out.splitlines()
    assert '    "id": tf.io.FixedLenFeature([], tf.int64),' in lines
    assert '    "kind": tf.io.FixedLenFeature([], tf.int64),  # label' in lines


def test_what_cannot_be_is_refused_with_the_choices(out: Path, tmp_path: Path, shardmill: Shardmill) -> None:
    screen = shardmill("snippet", "jax", "out")
    assert (screen.code, "choose among tf, keras, tfds, torch, grain, dali, tfrecord, mlcroissant" in screen.err) == (
        2,
        True,
    )
    assert "no split nope; it has: fit, val" in shardmill("snippet", "tf", "out", "--split", "nope").err
    convert(data=pa.table({"text": ["a"]}), output=tmp_path / "texts", sidecars=["tfx"])
    assert "Keras needs numbers or pictures to learn from" in shardmill("snippet", "keras", "texts").err
    assert "has no dataset_info.json" in shardmill("snippet", "tfds", "texts").err
