"""The tutorial's loop: one tf.train.Example a row, TFRecordWriter."""

from __future__ import annotations

from pathlib import Path

import tensorflow as tf
from two_processes import run, write_rows


def feature(value: object) -> tf.train.Feature:
    if isinstance(value, int):
        return tf.train.Feature(int64_list=tf.train.Int64List(value=[value]))
    if isinstance(value, float):
        return tf.train.Feature(float_list=tf.train.FloatList(value=[value]))
    if isinstance(value, str | bytes):
        data = value.encode() if isinstance(value, str) else value
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=[data]))
    return tf.train.Feature(float_list=tf.train.FloatList(value=value))


class Writer:
    def __init__(self, path: str) -> None:
        self.file = tf.io.TFRecordWriter(path)

    def write(self, row: dict[str, object]) -> None:
        example = tf.train.Example(features=tf.train.Features(feature={k: feature(v) for k, v in row.items()}))
        self.file.write(example.SerializeToString())

    def close(self) -> None:
        self.file.close()


def convert(files: list[Path], prefix: Path) -> None:
    write_rows(files, prefix, Writer)


if __name__ == "__main__":
    run(convert)
