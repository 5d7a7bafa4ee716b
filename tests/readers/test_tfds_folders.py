"""Folders that TensorFlow Datasets wrote are converted and adopted, and it reads the same rows of both."""

from __future__ import annotations

import importlib.resources.abc
import io
import json
import re
import shlex
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow_datasets as tfds
from PIL import Image
from shardmill.pipelines import open_dataset

from ..command_line import Shardmill
from ..tfds_folder import FEATURES, LABELS, example, write_tfds

SPLITS = {"train": range(25), "test": range(25, 30), "corrupt_2": range(30, 33)}


@pytest.fixture(autouse=True)
def _resources(monkeypatch: pytest.MonkeyPatch) -> None:
    """TFDS 4.9 imports the package that the standard library has since Python 3.9."""
    monkeypatch.setitem(sys.modules, "importlib_resources", importlib.resources)


def row(number: int) -> dict[str, Any]:
    pixels = np.random.RandomState(number).randint(0, 255, (4, 6, 3)).astype(np.uint8)
    count = number % 3
    return {
        "age": number,
        "deep": [[1] * count, [2]],
        "half": number / 2,
        "image": pixels,
        "label": count,
        "name": f"näme {number}",
        "nest": {"a": {"b": -number}},
        "numbers": np.arange(count, dtype=np.int16),
        "objects": [{"bbox": tfds.features.BBox(0.25, 0.5, 0.75, 1.0), "label": "far"}] * count,
        "ok": number % 2 == 1,
        "pair": np.arange(6, dtype=np.int32).reshape(2, 3),
        "raw": b"\xff",
    }


def features() -> Any:
    kinds = tfds.features
    return kinds.FeaturesDict({
        "age": kinds.Scalar(np.uint8),
        "deep": kinds.Sequence(kinds.Sequence(np.int8)),
        "half": np.float16,
        "image": kinds.Image(shape=(4, 6, 3)),
        "label": kinds.ClassLabel(names=LABELS["label"]),
        "name": kinds.Text(),
        "nest": {"a": {"b": np.int8}},
        "numbers": kinds.Tensor(shape=(None,), dtype=np.int16),
        "objects": kinds.Sequence({"bbox": kinds.BBoxFeature(), "label": kinds.ClassLabel(names=["near", "far"])}),
        "ok": kinds.Scalar(np.bool_),
        "pair": kinds.Tensor(shape=(2, 3), dtype=np.int32),
        "raw": kinds.Tensor(shape=(), dtype=np.str_),
    })  # fmt: skip


def prepare(
    folder: Path, file_format: str = "tfrecord", features: Callable[[], Any] = features, row: Callable[[int], Any] = row
) -> Path:
    builder = tfds.dataset_builders.AdhocBuilder(
        name="pets",
        version="1.0.0",
        features=features(),
        data_dir=folder,
        split_datasets={split: [(f"{number}", row(number)) for number in numbers] for split, numbers in SPLITS.items()},
        file_format=file_format,
    )
    builder.download_and_prepare(download_config=tfds.download.DownloadConfig(num_shards=2))
    return folder / "pets/1.0.0"


@pytest.fixture
def pets(tmp_path: Path) -> Path:
    return prepare(tmp_path / "data")


def rows_of(folder: Path, split: str) -> Iterator[dict[str, Any]]:
    """Yield rows as TFDS gives them, in the order of the files, with the bytes of pictures."""
    builder = tfds.builder_from_directory(folder)
    pictures = isinstance(builder.info.features["image"], tfds.features.Image)
    config = tfds.ReadConfig(interleave_cycle_length=1)
    decoders = {"image": tfds.decode.SkipDecoding()} if pictures else None
    for one in builder.as_dataset(split=split, read_config=config, decoders=decoders):
        row = plain(one)
        row["objects"]["bbox"] = np.reshape(row["objects"]["bbox"], (-1, 4)).tolist()
        yield row


def plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: plain(one) for key, one in sorted(value.items())}
    found = value.to_list() if hasattr(value, "to_list") else value.numpy()
    return found.tolist() if hasattr(found, "tolist") else found


@pytest.mark.parametrize("command", ["convert", "merge", "adopt"])
@pytest.mark.parametrize("path", ["data/pets", "data/pets/1.0.0"])
def test_every_row_class_and_split_of_a_folder_of_tfds_is_what_tfds_reads(
    pets: Path, shardmill: Shardmill, command: str, path: str
) -> None:
    wanted = {split: list(rows_of(pets, split)) for split in SPLITS}
    before = {one.name: one.read_bytes() for one in pets.iterdir()}
    screen = shardmill(command, path, *(() if command == "adopt" else ("-o", "out")))
    assert screen.code == 0, screen.err
    assert {one: (pets / one).read_bytes() for one in before} == before
    made = pets if command == "adopt" else pets.parents[2] / "out"
    dataset = open_dataset(made)
    assert {split: len(dataset[split]) for split in dataset.splits} == {s: len(n) for s, n in SPLITS.items()}
    found = tfds.builder_from_directory(made).info
    assert {split: one.num_examples for split, one in found.splits.items()} == {s: len(n) for s, n in SPLITS.items()}
    assert repr(found.features["image"]) == repr(features()["image"])
    for feature in (found.features["label"], found.features["objects"]["label"]):
        assert list(feature.names) in list(map(list, dataset.labels.values()))
    for split in SPLITS:
        assert list(rows_of(made, split)) == wanted[split]
        for ours, their in zip(dataset[split], wanted[split], strict=True):
            assert (ours["image"], ours["raw"]) == (their["image"], their["raw"])
            assert (ours["name"].encode(), ours["label"]) == (their["name"], LABELS["label"][their["label"]])
            assert (ours["age"], ours["ok"], ours["half"]) == (their["age"], their["ok"], their["half"])
            assert ours["nest/a/b"] == their["nest"]["a"]["b"]
            assert ours["objects/label"] == [["near", "far"][one] for one in their["objects"]["label"]]
            assert np.reshape(ours["objects/bbox"], (-1, 4)).tolist() == their["objects"]["bbox"]
            assert ours["numbers"] == their["numbers"]
            assert np.reshape(ours["pair"], (2, 3)).tolist() == their["pair"]


def odd_row(number: int) -> dict[str, Any]:
    count = number % 3
    pixels = np.full((4, 6, 3), number, np.uint8)
    return {
        "double": number / 3,
        "doubles": [number / 7] * count,
        "dynamic": np.full((count + 1, 2), number / 3),
        "flat": np.full((count, 2), number / 2, np.float32),
        "float_picture": np.full((4, 6, 1), number / 3, np.float32),
        "frames": [pixels] * (count + 1),
        "packed": np.arange(6, dtype=np.int16).reshape(2, 3) + number,
        "pictures": [pixels] * count,
        "said": {"de": "nie", "en": f"never {number}"},
        "sound": np.arange(5, dtype=np.int16) - number,
        "unnamed": number % 4,
        "words": ["ä"] * count,
        "zipped": [np.full(2, number / 2, np.float32)] * count,
    }


def odd_features() -> Any:
    kinds = tfds.features
    return kinds.FeaturesDict({
        "double": np.float64,
        "doubles": kinds.Sequence(np.float64),
        "dynamic": kinds.Tensor(shape=(None, None), dtype=np.float64, encoding="bytes"),
        "flat": kinds.Tensor(shape=(None, 2), dtype=np.float32),
        "float_picture": kinds.Image(shape=(4, 6, 1), dtype=np.float32),
        "frames": kinds.Video(shape=(None, 4, 6, 3)),
        "packed": kinds.Tensor(shape=(2, 3), dtype=np.int16, encoding="bytes"),
        "pictures": kinds.Sequence(kinds.Image(shape=(4, 6, 3))),
        "said": kinds.Translation(languages=["en", "de"]),
        "sound": kinds.Audio(shape=(None,), dtype=np.int16, sample_rate=8000),
        "unnamed": kinds.ClassLabel(num_classes=4),
        "words": kinds.Sequence(kinds.Text()),
        "zipped": kinds.Sequence(kinds.Tensor(shape=(2,), dtype=np.float32, encoding="zlib")),
    })  # fmt: skip


def pixels_of(pictures: list[bytes]) -> list[Any]:
    return [np.asarray(Image.open(io.BytesIO(one))).tolist() for one in pictures]


def test_what_features_json_states_of_types_is_read_as_tfds_reads_it_or_is_said(
    tmp_path: Path, shardmill: Shardmill, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = prepare(tmp_path / "data", features=odd_features, row=odd_row)
    capsys.readouterr()  # of TFDS
    screen = shardmill("convert", str(folder), "-o", "out")
    assert screen.code == 0, screen.err
    said = re.findall(r"^Detected: (.*) \(features\.json\)$", screen.out, re.M)
    assert said == [
        "double, doubles: float64, which TFDS keeps as float32: read as float32",
        "dynamic/value: float64 of [?, ?], packed as bytes, whose bytes are kept as they are",
        "flat: lists of [?, 2], read as flat lists",
        "float_picture: pictures of floats, each packed into a pixel of four bytes, and read so",
        "packed: int16 of [2, 3], packed as bytes, whose bytes are kept as they are",
        "sound: Audio of 8,000 samples a second, read as int16",
        "unnamed: classes without names, as there is no unnamed.labels.txt",
        "zipped: float32 of [2], packed as zlib, whose bytes are kept as they are",
    ]
    dataset = open_dataset("out")
    assert dataset.schema is not None
    types = {feature.name: (feature.type, feature.shape) for feature in dataset.schema}
    assert types == {
        "double": ("float32", ()),
        "doubles": ("float32", (-1,)),
        "dynamic/shape": ("int64", (2,)),
        "dynamic/value": ("binary", ()),
        "flat": ("float32", (-1,)),
        "float_picture": ("image", ()),
        "frames": ("image", (-1,)),
        "packed": ("binary", ()),
        "pictures": ("image", (-1,)),
        "said/de": ("string", ()),
        "said/en": ("string", ()),
        "sound": ("int16", (-1,)),
        "unnamed": ("int64", ()),
        "words": ("string", (-1,)),
        "zipped": ("binary", (-1,)),
    }
    builder, config = tfds.builder_from_directory(folder), tfds.ReadConfig(interleave_cycle_length=1)
    converted = tfds.builder_from_directory("out")
    for split in SPLITS:
        theirs = list(map(plain, builder.as_dataset(split=split, read_config=config)))
        again = map(plain, converted.as_dataset(split=split, read_config=config))
        pictures = ("float_picture", "frames", "pictures")
        assert [[one[key] for key in pictures] for one in again] == [[one[key] for key in pictures] for one in theirs]
        for ours, their in zip(dataset[split], theirs, strict=True):
            assert (ours["double"], ours["doubles"]) == (their["double"], their["doubles"])
            shaped = np.frombuffer(ours["dynamic/value"]).reshape(ours["dynamic/shape"])
            assert (shaped.tolist(), np.reshape(ours["flat"], (-1, 2)).tolist()) == (their["dynamic"], their["flat"])
            assert np.frombuffer(ours["packed"], np.int16).reshape(2, 3).tolist() == their["packed"]
            zipped = [np.frombuffer(zlib.decompress(one), np.float32).tolist() for one in ours["zipped"]]
            assert (zipped, ours["sound"], ours["unnamed"]) == (their["zipped"], their["sound"], their["unnamed"])
            assert pixels_of(ours["frames"]) == their["frames"]
            assert pixels_of(ours["pictures"]) == their["pictures"]
            packed = np.asarray(Image.open(io.BytesIO(ours["float_picture"])))
            assert packed.view(np.float32).tolist() == their["float_picture"]
            assert {name: ours[f"said/{name}"].encode() for name in ("de", "en")} == their["said"]
            assert [one.encode() for one in ours["words"]] == their["words"]


@pytest.mark.parametrize("file_format", ["array_record", "parquet"])
def test_records_in_files_of_another_format_are_read_by_the_command_of_the_refusal(
    pets: Path,
    shardmill: Shardmill,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    file_format: str,
) -> None:
    monkeypatch.chdir(pets.parents[2])
    prepare(Path("other ones"), file_format)
    capsys.readouterr()  # of TFDS
    command = shardmill("convert", "other ones", "-o", "out").err.rstrip().partition("TFRecord files: ")[2]
    python, _, ours = command.partition(" && shardmill ")
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=":")
    subprocess.run(shlex.split(python), check=True)
    screen = shardmill(*shlex.split(ours))
    assert screen.code == 0, screen.err
    for split in SPLITS:
        wanted = sorted(rows_of(pets, split), key=lambda one: one["age"])
        assert sorted(rows_of(Path("out"), split), key=lambda one: one["age"]) == wanted
    assert list(open_dataset("out").labels["label"]) == LABELS["label"]


def test_the_folder_of_the_quick_tests_is_what_tfds_writes(pets: Path, tmp_path: Path) -> None:
    assert json.loads((pets / "features.json").read_text()) == FEATURES
    write_tfds(tmp_path / "made", {split: [list(map(example, numbers))] for split, numbers in SPLITS.items()})
    for name in ("label.labels.txt", "objects-label.labels.txt"):
        assert (tmp_path / "made" / name).read_bytes() == (pets / name).read_bytes()
    stated = [json.loads((one / "dataset_info.json").read_text()) for one in (pets, tmp_path / "made")]
    real, made = ({split["name"]: split for split in info["splits"]} for info in stated)
    assert {**real["test"], "shardLengths": ["5"], "numBytes": "1"} == made["test"]
    assert stated[0]["fileFormat"] == stated[1]["fileFormat"]
    for split in SPLITS:
        ours = [{**one, "image": None} for one in rows_of(tmp_path / "made", split)]
        theirs = sorted(({**one, "image": None} for one in rows_of(pets, split)), key=lambda one: one["age"])
        assert ours == theirs
