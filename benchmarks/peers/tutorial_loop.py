"""The tutorial's loop: one tf.train.Example a row, TFRecordWriter."""

from __future__ import annotations

from pathlib import Path

import tensorflow as tf
from two_processes import ROWS_A_SHARD, batches, image_header, python_rows, run


def feature(value: object) -> tf.train.Feature:
    if isinstance(value, int):
        return tf.train.Feature(int64_list=tf.train.Int64List(value=[value]))
    if isinstance(value, float):
        return tf.train.Feature(float_list=tf.train.FloatList(value=[value]))
    if isinstance(value, str | bytes):
        data = value.encode() if isinstance(value, str) else value
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=[data]))
    return tf.train.Feature(float_list=tf.train.FloatList(value=value))


def examples(path: Path):
    if path.suffix == ".jpg":
        data = path.read_bytes()
        kind, height, width = image_header(data)
        label = int(path.parent.name.removeprefix("class_"))
        yield {
            "image/encoded": data, "image/format": kind, "image/height": height, "image/width": width,
            "image/filename": path.name, "image/class/label": label, "image/class/text": path.parent.name,
        }  # fmt: skip
    else:
        for batch in batches(path):
            yield from python_rows(batch)


def convert(files: list[Path], prefix: Path) -> None:
    shard = written = 0
    writer = tf.io.TFRecordWriter(f"{prefix}-{shard:05d}.tfrecord")
    for path in files:
        for row in examples(path):
            example = tf.train.Example(features=tf.train.Features(feature={k: feature(v) for k, v in row.items()}))
            writer.write(example.SerializeToString())
            written += 1
            if written % (1_300 if path.suffix == ".jpg" else ROWS_A_SHARD) == 0:
                writer.close()
                shard += 1
                writer = tf.io.TFRecordWriter(f"{prefix}-{shard:05d}.tfrecord")
    writer.close()


if __name__ == "__main__":
    run(convert)
