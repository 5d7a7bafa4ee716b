"""What `snippet` prints, and refuses; tests/readers/test_snippet.py runs the programs."""

from __future__ import annotations

import ast
import json
import re
from dataclasses import replace
from glob import glob
from pathlib import Path

import pyarrow as pa
import pytest
from PIL import Image
from shardmill.pipelines import convert
from shardmill.transforms.format.sidecars.programs import READERS, Subject, program

from ...command_line import Shardmill

PROGRAMS = Path(__file__).with_name("odd_programs.txt")


@pytest.fixture
def out(tmp_path: Path) -> Path:
    table = pa.table({"id": range(200), "kind": ["cat", "owl"] * 100})
    split = {"fractions": {"fit": 0.8, "val": 0.2}}
    convert(data=table, output=tmp_path / "out", split=split, schema={"columns": {"kind": {"label": True}}})
    return tmp_path / "out"


@pytest.mark.parametrize("reader", READERS)
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


def test_a_folder_with_signs_of_a_shell_and_of_globs_is_quoted_and_matches_itself_alone(
    out: Path, shardmill: Shardmill, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd = out.parent / "my data [v1]*"
    out.rename(odd)
    monkeypatch.chdir(out.parent)
    err = shardmill("snippet", "dali", odd.name).err
    assert "shardmill index 'my data [v1]*' --text\n" in err
    err = shardmill("snippet", "mlcroissant", odd.name).err
    assert "shardmill export 'my data [v1]*' -o 'my data [v1]*/croissant.json'\n" in err
    assert shardmill("index", odd.name, "--text").code == 0
    for reader, names in (("tfrecord", ["tfrecord"]), ("dali", ["tfrecord", "tfrecord.idx"]), ("tf", ["tfrecord"])):
        program = shardmill("snippet", reader, odd.name).out
        globs = [json.loads(found) for found in re.findall(r'(?:glob|list_files)\(("[^"]*")', program)]
        assert len(globs) == len(names)
        assert all(glob(one) for one in globs), globs


def test_the_program_of_tf_data_has_the_kind_and_shape_of_each_feature(out: Path, shardmill: Shardmill) -> None:
    lines = shardmill("snippet", "tf", "out").out.splitlines()
    assert '    "id": tf.io.FixedLenFeature([], tf.int64),' in lines
    assert '    "kind": tf.io.FixedLenFeature([], tf.int64),  # label' in lines


def test_the_programs_of_odd_names_nulls_lists_and_two_pictures_are_those_of_a_file(tmp_path: Path) -> None:
    table = pa.table(
        {
            'a "b" é/ü': ["x", None],
            "grid": pa.array([[[1, 2], []], [[3]]], pa.list_(pa.list_(pa.int64()))),
            "fixed": pa.array([[1.5, 2.5], None], pa.list_(pa.float32(), 2)),
            "full": pa.array([[1, 2], [3, 4]], pa.list_(pa.int64(), 2)),
            "kind": ["owl", None],
            "texts": [["a", "b"], ["c"]],
            "one": [b"1", b"2"],
            "two": [b"1", b"2"],
            "when": pa.array([1, None], pa.timestamp("us")),
        }
    )
    manifest = convert(data=table, output=tmp_path / "out", schema={"columns": {"kind": {"label": True}}}).manifest
    assert manifest.schema is not None
    pictures = [replace(one, type="image") if one.name in ("one", "two") else one for one in manifest.schema]
    manifest = replace(manifest, schema=replace(manifest.schema, features=tuple(pictures)))
    texts = []
    for decoded in (("one", "two"), ()):
        subject = Subject.of("odd [1]", manifest, None, decoded)
        texts += [
            f"#### {reader}, decoded: {decoded}\n{program(reader, subject)}"
            for reader in READERS
            if decoded or reader == "tf"
        ]
    assert "\n".join(texts) == PROGRAMS.read_text()


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


def test_pictures_that_tensorflow_does_not_decode_and_names_that_tfds_does_not_take_are_the_causes_that_are_named(
    tmp_path: Path, shardmill: Shardmill
) -> None:
    for name, kind in (("a", "JPEG"), ("b", "WEBP")):
        (tmp_path / "pets" / name).mkdir(parents=True)
        Image.new("RGB", (8, 8)).save(tmp_path / "pets" / name / f"1.{kind.lower()}", kind)
    convert(tmp_path / "pets", output=tmp_path / "out")
    screen = shardmill("snippet", "keras", "out")
    assert "TensorFlow does not decode image/encoded, as some pictures are WebP" in screen.err
    assert "--set image.encode.format=jpeg" in screen.err
    convert(data={"n": [1, 2]}, output=tmp_path / "ours")
    (tmp_path / "theirs").mkdir()
    (tmp_path / "ours/train-00000.tfrecord").rename(tmp_path / "theirs/data.tfrecord-00000-of-00001")
    assert shardmill("adopt", "theirs").code == 0
    screen = shardmill("snippet", "tfds", "theirs")
    assert "files that were adopted have none where their names are not those that TFDS takes" in screen.err
