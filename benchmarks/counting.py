"""What statistics take of a row: batches encoded without, with the default ones, and with all of them, in turn.

    uv run python benchmarks/counting.py          12 columns (those of the Parquet workload), 262,144 rows in two tasks

Encoding, counting, merging and sealing are in one process, so that a pair of runs differs by the statistics alone:
between whole commands start-up and the disk differ by more. Given are the least and the median of the runs, and the
median of the differences between neighbours.
"""

from __future__ import annotations

import argparse
import time
from typing import Any, Final

import numpy as np
import pyarrow as pa
from shardmill.transforms.format.examples.encode_rows import RowEncoder
from shardmill.transforms.format.schema.schema import Feature, Schema
from shardmill.transforms.observers.tally import CountValues
from workloads import table

TYPES: Final[dict[Any, tuple[Any, str]]] = {
    pa.int64(): ("int64", "int64"),
    pa.float32(): ("float", "float32"),
    pa.float64(): ("float", "float64"),
    pa.string(): ("bytes", "string"),
}
TASK_ROWS: Final = 1 << 17
LEVELS: Final = {"none": (), "basic": (CountValues("basic"),), "full": (CountValues("full"),)}


def cpu_of_a_row(tasks: list[list[pa.RecordBatch]], schema: Schema, observers: tuple[CountValues, ...]) -> float:
    """Return the microseconds of CPU that a row takes."""
    encoder = RowEncoder(schema, observers=observers)
    start = time.process_time()
    for batches in tasks:
        found: dict[str, Any] = {}
        for batch in batches:
            observed = encoder.encode(batch).observed
            for one in observers:
                found[one.name] = one.merge(found[one.name], observed[one.name]) if found else observed[one.name]
        for one in observers:
            one.sealed(found[one.name])
    return (time.process_time() - start) / sum(batch.num_rows for task in tasks for batch in task) * 1e6


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=21)
    runs = parser.parse_args().runs
    rows = table(0, 2 * TASK_ROWS).combine_chunks()
    schema = Schema(tuple(Feature(name, *TYPES[rows[name].type]) for name in sorted(rows.column_names)))
    print("| rows of a batch | statistics | us of CPU a row, least | median | more than without, median |")
    print("| --- | --- | --: | --: | --: |")
    for size in (7_000, 32_000):
        tasks = [rows.slice(at, TASK_ROWS).to_batches(max_chunksize=size) for at in (0, TASK_ROWS)]
        found: dict[str, list[float]] = {level: [] for level in LEVELS}
        for _ in range(runs):
            for level, observers in LEVELS.items():
                found[level].append(cpu_of_a_row(tasks, schema, observers))
        for level, measured in found.items():
            more = float(np.median(np.subtract(measured, found["none"])))
            print(f"| {size:,} | {level} | {min(measured):.3f} | {np.median(measured):.3f} | {more:.3f} |", flush=True)


if __name__ == "__main__":
    main()
