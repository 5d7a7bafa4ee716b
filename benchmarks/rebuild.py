"""Measure `shardmill rebuild`: how fast records of several lengths pass from one dataset into another.

    uv run python benchmarks/rebuild.py                          2 GB of records of 230 bytes, 1 KB, 10 KB and 100 KB
    uv run python benchmarks/rebuild.py --length 230 --runs 5

The input lies in the page cache. GB/s a core is the input over the CPU seconds (user and system, all processes) of the
whole command, and of the difference to a run over an eighth of the input, so that start-up is left out.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
from measure import Measured, measure, warm_files, warm_memory
from shardmill.transforms.format.tfrecord.framing import frame_records

HERE = Path(__file__).parent
LENGTHS = (230, 1000, 10_000, 100_000)
BATCH_BYTES = 32 << 20
SHARDMILL = str(Path(sys.executable).with_name("shardmill"))


def make_dataset(length: int, size: int, folder: Path) -> Path:
    """Return a dataset of `size` bytes of random records, whose lengths are up to a quarter off `length`."""
    dataset = folder / f"records-{length}-{size}"
    if not (dataset / "manifest.json").exists():
        folder.mkdir(parents=True, exist_ok=True)
        source = folder / "source.tfrecord"
        rng = np.random.default_rng(7)
        with source.open("wb") as file:
            while file.tell() < size:
                lengths = rng.integers(length * 3 // 4, length * 5 // 4, BATCH_BYTES // length)
                offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths)))
                payloads = [None, pa.py_buffer(offsets), pa.py_buffer(rng.bytes(int(offsets[-1])))]
                frames = frame_records(pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(lengths), payloads))
                for buffer in frames.buffers:
                    file.write(buffer)
        command = [SHARDMILL, "merge", str(source), "--records", "opaque", "-o", str(dataset), "-q"]
        measure(command, folder / "merge.log")
        source.unlink()
    return dataset


def run_once(dataset: Path, workers: int, options: list[str], work: Path) -> Measured:
    """Rebuild a dataset once; the output is removed again."""
    out = work / "rebuilt"
    shutil.rmtree(out, ignore_errors=True)
    warm_memory()
    warm_files(dataset)
    command = [SHARDMILL, "rebuild", str(dataset), "-o", str(out), "--workers", str(workers), "-q", *options]
    measured = measure(command, work / "rebuild.log")
    shutil.rmtree(out)
    return measured


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--length", type=int, action="append", help="bytes of a record; may be given again")
    parser.add_argument("--size", type=int, default=2_000_000_000, help="bytes of input")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--compression", default=None)
    parser.add_argument("--work", type=Path, default=HERE / ".work")
    args = parser.parse_args()
    options = ["--compression", args.compression] if args.compression else []
    print("| record | wall | CPU | GB/s a core | without start-up | peak |\n| --- | --- | --- | --- | --- | --- |")
    for length in args.length or LENGTHS:
        sizes = {"full": args.size, "small": args.size // 8}
        datasets = {name: make_dataset(length, size, args.work / "data") for name, size in sizes.items()}
        runs: dict[str, list[Measured]] = {"full": [], "small": []}
        for _ in range(args.runs):
            for name, dataset in datasets.items():
                runs[name].append(run_once(dataset, args.workers, options, args.work))
        full, small = ({k: statistics.median(getattr(m, k) for m in runs[s]) for k in ("wall", "cpu")} for s in sizes)
        steady = (args.size - args.size // 8) / 1e9 / (full["cpu"] - small["cpu"])
        peak = max(m.peak for m in runs["full"]) / 1e6
        print(
            f"| {length:,} B | {full['wall']:.2f} s | {full['cpu']:.2f} s | {args.size / 1e9 / full['cpu']:.2f} "
            f"| {steady:.2f} | {peak:.0f} MB |",
            flush=True,
        )


if __name__ == "__main__":
    main()
