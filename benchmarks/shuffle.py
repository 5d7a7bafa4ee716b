"""Shuffle the same rows with Shardmill, TFDS's shuffler and pandas, and the statistics of a shuffled dataset.

    uv run --group readers python benchmarks/shuffle.py                       4 M rows of 218 bytes, five runs in turn
    uv run --group readers python benchmarks/shuffle.py --statistics --rows 10000000

The input is the Parquet workload, in the page cache. Shardmill converts it without and with `--shuffle 7`. The others
get the records that it wrote, read by its own reader, so that encoding is not theirs: `tfds` adds them to TFDS's
shuffler one by one, and writes what that gives back; `pandas` holds them all in a Series, takes a sample of all, and
writes. Both write with TensorFlow's writer. Two workers where a tool has them.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import numpy as np
from measure import Measured, measure, warm_files, warm_memory
from shardmill.pipelines import open_dataset
from workloads import make_parquet

SHARDMILL: Final = str(Path(sys.executable).with_name("shardmill"))
CELLS: Final = 64


def records(folder: Path) -> Iterator[bytes]:
    """Yield the records of a dataset, by the reader that is fast."""
    return open_dataset(str(folder)).records("train")


def write_all(found: Iterator[bytes], out: Path, shards: int, count: int) -> None:
    """Write records to shards of as many records each."""
    import tensorflow as tf

    out.mkdir(parents=True)
    for shard in range(shards):
        with tf.io.TFRecordWriter(str(out / f"train-{shard:05d}.tfrecord")) as file:
            for _ in range(count * shard // shards, count * (shard + 1) // shards):
                file.write(next(found))


def shuffle_by_tfds(source: Path, out: Path, shards: int, count: int) -> None:
    """Shuffle with TFDS's own shuffler, as its writer does."""
    from tensorflow_datasets.core import shuffle

    scratch = out.with_suffix(".scratch")
    scratch.mkdir(parents=True)
    shuffler = shuffle.Shuffler(scratch, "7")
    for number, record in enumerate(records(source)):
        shuffler.add(number, record)
    write_all((record for _, record in shuffler), out, shards, count)
    shutil.rmtree(scratch)


def shuffle_by_pandas(source: Path, out: Path, shards: int, count: int) -> None:
    """Shuffle all records in memory."""
    import pandas as pd

    found = pd.Series(list(records(source)), dtype=object).sample(frac=1, random_state=7)
    write_all(iter(found), out, shards, count)


PEERS: Final = {"tfds": shuffle_by_tfds, "pandas": shuffle_by_pandas}


def command_of(way: str, source: Path, made: Path, out: Path) -> Sequence[str]:
    """Return the command of one way to shuffle; `made` is the dataset that is not shuffled."""
    if way in PEERS:
        return [sys.executable, __file__, "--peer", way, "--source", str(made), "--out", str(out)]
    options = ["--shuffle", "7"] if way == "shuffled" else []
    return [SHARDMILL, "convert", str(source), "-o", str(out), "--workers", "2", "-q", *options]


def compare(source: Path, rows: int, runs: int, work: Path) -> None:
    """Print a table of all ways, run in turn."""
    made = work / "plain"
    shutil.rmtree(made, ignore_errors=True)
    measure(command_of("plain", source, made, made), work / "shuffle.log")
    found: dict[str, list[Measured]] = {}
    for _ in range(runs):
        for way in ("plain", "shuffled", *PEERS):
            out = work / "out"
            shutil.rmtree(out, ignore_errors=True)
            warm_memory()
            warm_files(made if way in PEERS else source)
            found.setdefault(way, []).append(measure(command_of(way, source, made, out), work / "shuffle.log"))
            print(way, found[way][-1], file=sys.stderr)
            shutil.rmtree(out)
    print("| tool | wall clock, s | CPU, s | us a row | peak memory, MB |\n| --- | --: | --: | --: | --: |")
    for way, measured in found.items():
        wall, cpu, peak = (statistics.median(getattr(one, key) for one in measured) for key in ("wall", "cpu", "peak"))
        print(f"| {way} | {wall:.1f} | {cpu:.1f} | {cpu / rows * 1e6:.2f} | {peak / 1e6:.0f} |")
    pairs = zip(found["shuffled"], found["plain"], strict=True)
    more = statistics.median(one.cpu - other.cpu for one, other in pairs) / rows * 1e6
    print(f"\nThe shuffle takes {more:.2f} us a row more, by the median of the differences.")


def show_statistics(source: Path, work: Path) -> None:
    """Print how random the order of a shuffled dataset is; labels are tenths of the source, as where it is sorted."""
    out = work / "statistics"
    shutil.rmtree(out, ignore_errors=True)
    print(measure(command_of("shuffled", source, out, out), work / "shuffle.log"))
    plain = work / "plain"
    shutil.rmtree(plain, ignore_errors=True)
    measure([*command_of("plain", source, plain, plain), "--order", "source"], work / "shuffle.log")
    columns = ["int_0", "int_1", "float_0"]

    def keys(folder: Path) -> np.ndarray:
        tables = (batch.select(columns) for batch in open_dataset(str(folder)).batches("train", columns=columns))
        parts = [np.rec.fromarrays([column.to_numpy() for column in batch.columns]) for batch in tables]
        return np.concatenate(parts)

    shuffled, before = keys(out), keys(plain)
    places = np.empty(len(before), np.int64)
    places[np.argsort(shuffled)] = np.argsort(before)  # of each record, where it was
    count = len(places)
    cells = np.histogram2d(np.arange(count), places, bins=CELLS)[0]
    expected = count / CELLS**2
    chi_square, freedom = float(((cells - expected) ** 2 / expected).sum()), (CELLS - 1) ** 2
    correlation = float(np.corrcoef(places[:-1], places[1:])[0, 1])
    labels = places * 10 // count
    worst, start = 0.0, 0
    shards = open_dataset(str(out)).manifest.splits["train"].shards
    for shard in shards:
        shares = np.bincount(labels[start : start + shard.records], minlength=10) / shard.records
        worst = max(worst, float(np.abs(shares - 0.1).max() / np.sqrt(0.09 / shard.records)))
        start += shard.records
    print(f"records {count:,}, shards {len(shards)}")
    spread = (2 * freedom) ** 0.5
    print(f"chi-square of places, {CELLS} by {CELLS} cells: {chi_square:.0f}, expected {freedom} +- {spread:.0f}")
    print(f"correlation of neighbours: {correlation:.6f}, expected 0 +- {count**-0.5:.6f}")
    print(f"records behind the one that was before them: {int((np.diff(places) == 1).sum())}, expected 1 +- 1")
    print(f"records in their old place: {int((places == np.arange(count)).sum())}, expected 1 +- 1")
    print(f"largest deviation of the share of one of ten sorted labels in a shard: {worst:.1f} standard deviations")


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--statistics", action="store_true")
    parser.add_argument("--work", type=Path, default=Path("benchmark-work"))
    parser.add_argument("--peer", choices=PEERS, help=argparse.SUPPRESS)
    parser.add_argument("--source", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.peer:
        train = open_dataset(str(args.source)).manifest.splits["train"]
        PEERS[args.peer](args.source, args.out, len(train.shards), sum(shard.records for shard in train.shards))
        return
    source = args.work / f"parquet-{args.rows}"
    if not source.exists():
        source.mkdir(parents=True)
        make_parquet(source, args.rows)
    if args.statistics:
        show_statistics(source, args.work)
    else:
        compare(source, args.rows, args.runs, args.work)


if __name__ == "__main__":
    main()
