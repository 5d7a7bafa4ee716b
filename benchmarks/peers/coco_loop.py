"""The way of TensorFlow's `create_coco_tf_record.py`, without masks: one process, an Example for each picture."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import sys
from pathlib import Path
from typing import Any

import PIL.Image
import tensorflow as tf

SHARDS = 100


def integers(*values: int) -> tf.train.Feature:
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))


def texts(*values: bytes) -> tf.train.Feature:
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))


def floats(*values: float) -> tf.train.Feature:
    return tf.train.Feature(float_list=tf.train.FloatList(value=values))


def example(
    image: dict[str, Any], objects: list[dict[str, Any]], names: dict[int, bytes], folder: Path
) -> tf.train.Example:
    height, width = image["height"], image["width"]
    data = (folder / image["file_name"]).read_bytes()
    PIL.Image.open(io.BytesIO(data))
    xmin, xmax, ymin, ymax, crowd, labels, classes, area = [], [], [], [], [], [], [], []
    for one in objects:
        x, y, wide, high = one["bbox"]
        if wide <= 0 or high <= 0 or x + wide > width or y + high > height:
            continue
        xmin.append(x / width)
        xmax.append((x + wide) / width)
        ymin.append(y / height)
        ymax.append((y + high) / height)
        crowd.append(one["iscrowd"])
        labels.append(one["category_id"])
        classes.append(names[one["category_id"]])
        area.append(one["area"])
    found = {
        "image/height": integers(height),
        "image/width": integers(width),
        "image/filename": texts(image["file_name"].encode()),
        "image/source_id": texts(str(image["id"]).encode()),
        "image/key/sha256": texts(hashlib.sha256(data).hexdigest().encode()),
        "image/encoded": texts(data),
        "image/format": texts(b"jpeg"),
        "image/object/bbox/xmin": floats(*xmin),
        "image/object/bbox/xmax": floats(*xmax),
        "image/object/bbox/ymin": floats(*ymin),
        "image/object/bbox/ymax": floats(*ymax),
        "image/object/class/label": integers(*labels),
        "image/object/class/text": texts(*classes),
        "image/object/is_crowd": integers(*crowd),
        "image/object/area": floats(*area),
    }
    return tf.train.Example(features=tf.train.Features(feature=found))


def main() -> None:
    source, out = map(Path, sys.argv[1:])
    out.mkdir()
    with (source / "annotations/instances_train2017.json").open() as file:
        document = json.load(file)
    names = {one["id"]: one["name"].encode() for one in document["categories"]}
    by_picture: dict[int, list[dict[str, Any]]] = {one["id"]: [] for one in document["images"]}
    for one in document["annotations"]:
        by_picture[one["image_id"]].append(one)
    with contextlib.ExitStack() as opened:
        paths = [str(out / f"train-{number:05}-of-{SHARDS:05}") for number in range(SHARDS)]
        shards = [opened.enter_context(tf.io.TFRecordWriter(path)) for path in paths]
        for number, image in enumerate(document["images"]):
            record = example(image, by_picture[image["id"]], names, source / "train2017")
            shards[number % SHARDS].write(record.SerializeToString())


if __name__ == "__main__":
    main()
