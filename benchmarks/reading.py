"""Read the same records with `open_dataset`, tf.data and the `tfrecord` package: CPU for each row.

    uv run --group readers python benchmarks/reading.py

400,000 records of 12 columns (`workloads.table`) in 32 MiB shards. Each reader is a process of its own that reads all
of it (the slow ones a part) twice, and gives the CPU of all its threads for each row of the second time. All are asked
for every column, and each checks the CRCs of a record but the `tfrecord` package, which checks none.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

ROWS: Final = 400_000
SLOW_ROWS: Final = 20_000
"""For those that parse one record after another in Python."""

DESCRIPTION: Final = {
    **{f"int_{i}": "int" for i in range(4)},
    **{f"float_{i}": "float" for i in range(4)},
    **{f"double_{i}": "float" for i in range(2)},
    **{f"text_{i}": "byte" for i in range(2)},
}


def spec_of(tf: Any) -> dict[str, Any]:
    """Return the features of the records for `tf.io`."""
    dtypes = {"int": tf.int64, "float": tf.float32, "byte": tf.string}
    return {name: tf.io.FixedLenFeature([], dtypes[kind]) for name, kind in DESCRIPTION.items()}


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


READERS: Final = {
    "open_dataset().batches": _batches,
    "open_dataset().numpy(rows=1024)": _numpy,
    "tf.data, batch, then parse_example": _batched_parse,
    "tf.data, parse_single_example, then batch": _single_parse,
    "tfrecord package": _tfrecord_package,
}


def cpu_seconds() -> float:
    """Return the CPU of all threads of this process so far."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def read_once(reader: str, folder: str) -> float:
    """Return the microseconds of CPU for each row that a reader takes in this process."""
    rows, read = READERS[reader](folder)
    read()  # the first time TensorFlow starts its threads and compiles
    before = cpu_seconds()
    read()
    return (cpu_seconds() - before) / rows * 1e6


def make_dataset(folder: Path) -> None:
    """Write the records that all readers read."""
    from shardmill.pipelines import convert
    from workloads import table

    convert(data=table(0, ROWS), output=folder, shard_size="32MiB", runner={"name": "local"})


def main() -> None:
    """Make the dataset, run every reader in turn, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--one", nargs=2, metavar=("READER", "FOLDER"), help="what each process does")
    args = parser.parse_args()
    if args.one:
        print(read_once(*args.one))
        return
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        make_dataset(out)
        found: dict[str, list[float]] = {name: [] for name in READERS}
        for _ in range(args.runs):
            for name in READERS:
                command = [sys.executable, __file__, "--one", name, str(out)]
                done = subprocess.run(command, capture_output=True, text=True, check=True)
                found[name].append(float(done.stdout))
    print("| reader | CPU us a row (min, median, max) |\n| --- | --- |")
    for name, values in found.items():
        print(f"| {name} | {min(values):.2f}, **{statistics.median(values):.2f}**, {max(values):.2f} |")


if __name__ == "__main__":
    main()
