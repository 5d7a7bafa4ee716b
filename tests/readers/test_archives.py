"""WebDataset's tar archives and MNIST's files, converted and read back by TFDS, by tf.data and by `open_dataset`."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_datasets as tfds
from PIL import Image
from shardmill.pipelines import convert, open_dataset
from webdataset.tariterators import group_by_keys, tar_file_expander

from ..label_numbers import in_numbers

CONFIGS = Path(__file__).parents[2] / "configs"


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> str:
    out = str(tmp_path_factory.mktemp("archives") / "out")
    convert(CONFIGS / "webdataset.yaml", output=out)
    return out


@pytest.fixture(scope="module")
def members() -> list[dict[str, bytes]]:
    """Return the members of each sample, as Python's own tarfile reads them."""
    samples: dict[str, dict[str, bytes]] = {}
    for path in sorted((CONFIGS / "samples/shards").glob("*.tar")):
        with tarfile.open(path) as tar:
            for info in tar:
                key, suffix = info.name.split(".", 1)
                held = tar.extractfile(info)
                assert held is not None
                samples.setdefault(key, {})[suffix] = held.read()
    return list(samples.values())


def test_our_reader_gives_the_members_of_each_sample(dataset: str, members: list[dict[str, bytes]]) -> None:
    rows: list[dict[str, Any]] = in_numbers(open_dataset(dataset).to_arrow("train")).to_pylist()
    assert [row["image/encoded"] for row in rows] == [one["jpg"] for one in members]
    assert [row["caption"].encode() for row in rows] == [one["txt"] for one in members]
    assert [row["image/class/label"] for row in rows] == [int(one["cls"]) for one in members]
    facts = [json.loads(one["json"]) for one in members]
    assert [(row["photographer"], row["likes"], row["size"]) for row in rows] == [
        (one["photographer"], one["likes"], one["size"]) for one in facts
    ]
    assert open_dataset(dataset).labels["image/class/label"] == ("cat", "dog", "owl")


def test_tensorflow_decodes_the_pictures(dataset: str, members: list[dict[str, bytes]]) -> None:
    spec = {
        "image/encoded": tf.io.FixedLenFeature((), tf.string),
        "image/height": tf.io.FixedLenFeature((), tf.int64),
        "image/class/label": tf.io.FixedLenFeature((), tf.int64),
        "__key__": tf.io.FixedLenFeature((), tf.string),
    }
    records = tf.data.TFRecordDataset(sorted(str(path) for path in Path(dataset).glob("*.tfrecord")))
    found = [tf.io.parse_single_example(record, spec) for record in records]
    assert len(found) == len(members) == 12
    for number, (one, own) in enumerate(zip(found, members, strict=True)):
        pixels = tf.io.decode_jpeg(one["image/encoded"]).numpy()
        with Image.open(io.BytesIO(own["jpg"])) as picture:
            assert pixels.shape == (picture.height, picture.width, 3)
        assert one["image/height"].numpy() == pixels.shape[0]
        assert one["__key__"].numpy() == f"{number:04d}".encode()


def test_tfds_reads_classes_text_and_pictures(dataset: str, members: list[dict[str, bytes]]) -> None:
    builder = tfds.builder_from_directory(dataset)
    assert builder.info.features["image"]["class"]["label"].names == ["cat", "dog", "owl"]
    assert builder.info.splits["train"].num_examples == 12
    found = list(tfds.as_numpy(builder.as_dataset(split="train")))
    assert sorted(int(one["image"]["class"]["label"]) for one in found) == sorted(int(one["cls"]) for one in members)
    assert {one["caption"] for one in found} == {one["txt"] for one in members}
    assert all(one["image"]["encoded"].dtype == np.uint8 for one in found)


def test_webdataset_groups_the_members_of_an_untidy_archive_as_we_do(tmp_path: Path) -> None:
    picture = io.BytesIO()
    Image.new("RGB", (4, 4)).save(picture, "PNG")
    names = [
        "./a/1.PNG", "./a/1.json", "b.c/2.in.png", "b.c/2.out.png", "b.c/2.cls", "3.png", "noext", "3.txt",
        "__meta__.json", "_4.png", "/abs/5.png", "6.seg.npy", "6.png",
    ]  # fmt: skip
    data = {"json": b'{"n": 1}', "cls": b"7\n", "txt": b" x \n", "npy": b"\x93NUMPY"}
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        for name in names:
            info = tarfile.TarInfo(name)
            held = data.get(name.rpartition(".")[2], picture.getvalue())
            info.size = len(held)
            tar.addfile(info, io.BytesIO(held))
    with (tmp_path / "a.tar").open("rb") as stream:
        theirs = list(group_by_keys(tar_file_expander([{"url": "a.tar", "stream": stream}])))
    columns = {name: {"null": "absent", "image": "bytes"} for name in ("image", "in", "out")}
    convert(tmp_path / "a.tar", output=tmp_path / "out", schema__columns=columns)
    ours: list[dict[str, Any]] = in_numbers(open_dataset(tmp_path / "out").to_arrow("train")).to_pylist()
    assert [row["__key__"] for row in ours] == [one["__key__"].removeprefix("./") for one in theirs]
    features = {"png": "image/encoded", "in.png": "in/encoded", "out.png": "out/encoded", "seg.npy": "seg.npy"}
    for row, one in zip(ours, theirs, strict=True):
        held = {suffix: row[name] for suffix, name in features.items() if row[name] is not None}
        held |= {} if row["txt"] is None else {"txt": row["txt"].encode()}
        held |= {} if row["cls"] is None else {"cls": b"%d\n" % row["cls"]}
        held |= {} if row["n"] is None else {"json": b'{"n": %d}' % row["n"]}
        assert held == {name: value for name, value in one.items() if not name.startswith("__")}
