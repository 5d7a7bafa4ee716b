"""Read records by their number, at random: `open_dataset` and ArrayRecord, as grain reads it, in the page cache.

    uv run --group readers python benchmarks/random_access.py

400,000 records of 218 bytes (`workloads.table`). ArrayRecord holds the same bytes with `group_size:1`, which is what
its makers advise for random access. Wall clock of one thread, in us a record: the median of single records, and of
batches of 256. Shardmill checks both CRCs of each record. The first touch, which finds where records begin,
is stated by itself.
"""

from __future__ import annotations

import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from shardmill.pipelines import convert, open_dataset
from workloads import table

ROWS: Final = 400_000
SINGLES: Final = 5_000
BATCHES: Final = 100
BATCH: Final = 256


def median(ask: Callable[[Any], object], questions: Sequence[Any], records: int = 1) -> float:
    """Return the median of microseconds a record."""
    times = []
    for question in questions:
        start = time.perf_counter_ns()
        ask(question)
        times.append((time.perf_counter_ns() - start) / records / 1e3)
    return statistics.median(times)


def array_record(records: list[bytes], path: str) -> Any:
    """Return ArrayRecord's source of these records."""
    from array_record.python.array_record_data_source import ArrayRecordDataSource
    from array_record.python.array_record_module import ArrayRecordWriter

    writer = ArrayRecordWriter(path, "group_size:1")
    for record in records:
        writer.write(record)
    writer.close()
    return ArrayRecordDataSource([path])


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else None) as folder:
        convert(data=table(0, ROWS), output=Path(folder) / "out", output__shard_size="32MiB")
        dataset = open_dataset(Path(folder) / "out")["train"]
        records = list(dataset.records())
        start = time.perf_counter()
        dataset.take([*range(0, ROWS, 1000)])
        first = time.perf_counter() - start
        source = array_record(records, str(Path(folder) / "train.array_record"))
        chance = random.Random(1)
        singles = [chance.randrange(ROWS) for _ in range(SINGLES)]
        batches = [[chance.randrange(ROWS) for _ in range(BATCH)] for _ in range(BATCHES)]
        assert [dataset.record(index) for index in singles[:20]] == [source[index] for index in singles[:20]]
        print("| reader | one record, us | batches of 256, us a record |\n| --- | --: | --: |")
        print(f"| `record(i)` | {median(dataset.record, singles):.1f} | |")
        print(f"| `dataset[i]`, a dict of 12 values | {median(dataset.__getitem__, singles):.1f} | |")
        print(f"| `take([i, ...])`, Arrow | | {median(dataset.take, batches, BATCH):.1f} |")
        alone, together = median(source.__getitem__, singles[:500]), median(source.__getitems__, batches, BATCH)
        print(f"| ArrayRecord, bytes | {alone:.0f} | {together:.1f} |")
        print(f"\nfirst touch of all shards: {first * 1e3:.0f} ms ({ROWS:,} records)")


if __name__ == "__main__":
    main()
