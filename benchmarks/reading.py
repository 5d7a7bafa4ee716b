"""Read the same records with `open_dataset`, tf.data and the `tfrecord` package: CPU for each row.

    uv run --group readers python benchmarks/reading.py

400,000 records of 12 columns (`workloads.table`) in 32 MiB shards. Each reader is a process of its own that reads all
of it (the slow ones a part) twice, and gives the CPU of all its threads for each row of the second time. All are asked
for every column, and each checks the CRCs of a record but the `tfrecord` package, which checks none.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from cpu_of_readers import DESCRIPTION, ROWS, SLOW_ROWS, Reader, compare, spec_of


def _batches(folder: str) -> tuple[int, Callable[[], None]]:
    from shardmill.pipelines import open_dataset

    dataset = open_dataset(folder)
    return ROWS, lambda: sum(batch.num_rows for batch in dataset.batches("train"))


def _numpy(folder: str) -> tuple[int, Callable[[], None]]:
    from shardmill.pipelines import open_dataset

    dataset = open_dataset(folder)
    return ROWS, lambda: sum(len(batch["int_0"]) for batch in dataset.numpy("train", rows=1024))


def _batched_parse(folder: str) -> tuple[int, Callable[[], None]]:
    import tensorflow as tf

    records = tf.data.TFRecordDataset(sorted(map(str, Path(folder).glob("train-*.tfrecord"))))
    features = spec_of(tf)
    rows = records.batch(1024).map(lambda batch: tf.io.parse_example(batch, features))
    return ROWS, lambda: sum(1 for _ in rows)


def _single_parse(folder: str) -> tuple[int, Callable[[], None]]:
    import tensorflow as tf

    records = tf.data.TFRecordDataset(sorted(map(str, Path(folder).glob("train-*.tfrecord"))))
    features = spec_of(tf)
    rows = records.take(SLOW_ROWS).map(lambda record: tf.io.parse_single_example(record, features)).batch(1024)
    return SLOW_ROWS, lambda: sum(1 for _ in rows)


def _tfrecord_package(folder: str) -> tuple[int, Callable[[], None]]:
    from itertools import islice

    from tfrecord.reader import tfrecord_loader

    shard = str(min(Path(folder).glob("train-*.tfrecord")))
    return SLOW_ROWS, lambda: sum(1 for _ in islice(tfrecord_loader(shard, None, DESCRIPTION), SLOW_ROWS))


READERS: Final[dict[str, Reader]] = {
    "open_dataset().batches": _batches,
    "open_dataset().numpy(rows=1024)": _numpy,
    "tf.data, batch, then parse_example": _batched_parse,
    "tf.data, parse_single_example, then batch": _single_parse,
    "tfrecord package": _tfrecord_package,
}


if __name__ == "__main__":
    compare(READERS, __doc__)
