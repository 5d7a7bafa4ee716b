"""Run readers of the same records in turn, each in a process of its own, and print the CPU that a row takes.

The records are those of `workloads.table`: 400,000 of 12 columns in 32 MiB shards, in the page cache. A reader
reads all of it (a slow one a part) twice; the CPU is that of all its threads the second time.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
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

Reader = Callable[[str], tuple[int, Callable[[], object]]]
"""Of the folder of the dataset: how many rows it reads, and what reads them."""


def spec_of(tf: Any) -> dict[str, Any]:
    """Return the features of the records for `tf.io`."""
    dtypes = {"int": tf.int64, "float": tf.float32, "byte": tf.string}
    return {name: tf.io.FixedLenFeature([], dtypes[kind]) for name, kind in DESCRIPTION.items()}


def compare(readers: Mapping[str, Reader], description: str) -> None:
    """Make the dataset, run every reader in turn, and print the table; or be one of the readers' processes."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--one", nargs=2, metavar=("READER", "FOLDER"), help="what each process does")
    args = parser.parse_args()
    if args.one:
        name, folder = args.one
        print(_read_once(readers[name], folder))
        return
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        _make_dataset(out)
        found: dict[str, list[float]] = {name: [] for name in readers}
        for _ in range(args.runs):
            for name in readers:
                command = [sys.executable, sys.argv[0], "--one", name, str(out)]
                done = subprocess.run(command, capture_output=True, text=True, check=True)
                found[name].append(float(done.stdout.split()[-1]))
    print("| reader | CPU us a row (min, median, max) |\n| --- | --- |")
    for name, values in found.items():
        print(f"| {name} | {min(values):.2f}, **{statistics.median(values):.2f}**, {max(values):.2f} |")


def _read_once(reader: Reader, folder: str) -> float:
    """Return the microseconds of CPU for each row that a reader takes in this process."""
    rows, read = reader(folder)
    read()  # the first time TensorFlow starts its threads and compiles
    before = _cpu_seconds()
    read()
    return (_cpu_seconds() - before) / rows * 1e6


def _cpu_seconds() -> float:
    """Return the CPU of all threads of this process so far."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _make_dataset(folder: Path) -> None:
    """Write the records that all readers read."""
    from shardmill.pipelines import convert
    from workloads import table

    convert(data=table(0, ROWS), output=folder, shard_size="32MiB", runner={"name": "local"})
