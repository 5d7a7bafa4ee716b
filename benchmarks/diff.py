"""Compare two datasets: by their manifests, of many shards, and record by record, of records of two sizes.

uv run python benchmarks/diff.py                 # some two minutes
"""

from __future__ import annotations

import argparse
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from shardmill.transforms.dataset.reading.compare_records import compare_records
from shardmill.transforms.dataset.storage.manifest_files import read_manifest
from shardmill.transforms.dataset.storage.record_file import write_records
from shardmill.transforms.format.manifest.manifest import (
    Manifest,
    RejectSummary,
    RowCounts,
    RunInfo,
    ShardEntry,
    SourceSummary,
    SplitEntry,
)

ZEROS = "sha256:" + "0" * 64
SHARDS = 100_000
BYTES = 400_000_000


def manifest(shards: tuple[ShardEntry, ...], digest: str) -> Manifest:
    records, size = sum(one.records for one in shards), sum(one.bytes for one in shards)
    split = SplitEntry(records, size, size // 2, f"sum128:{digest * 32}", shards)
    run = RunInfo(
        "2026-01-31T12:00:00Z",
        "0" * 16,
        "0" * 8 + "-0000-4000-8000-" + "0" * 12,
        ".staging/" + "0" * 16,
        ZEROS,
        "local",
        {},
    )
    return Manifest(
        1, None, "create", "many", "1.0.0", "task", "none", 1 << 30, "{split}-{index:05d}", ZEROS, None,
        SourceSummary("records", 0, 0, None), RowCounts(records, records, 0, 0), RejectSummary(None, 0, {}), None, {},
        (), {"train": split}, (), run,
    )  # fmt: skip


def put(folder: Path, found: Manifest) -> None:
    main, parts = found.to_documents()
    (folder / "manifests").mkdir(parents=True)
    for path, data in {**parts, "manifests/00000001.json": main}.items():
        (folder / path).write_bytes(data)


def many_shards(root: Path, count: int) -> None:
    shards = tuple(ShardEntry(f"train-{i:05d}.tfrecord", 1, 1000, 1 << 20, f"{i:08x}") for i in range(count))
    put(root / "a", manifest(shards, "0"))
    put(root / "b", manifest((*shards[:-1], ShardEntry(shards[-1].path, 1, 999, 1 << 20, "ffffffff")), "1"))
    command = [sys.executable, "-m", "shardmill.pipelines", "diff", "a", "b", "--quiet"]
    started = time.perf_counter()
    done = subprocess.run(command, cwd=root, check=False)
    assert done.returncode == 1
    took, used = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = used.ru_utime + used.ru_stime
    print(f"{count:,} shards by manifest, the whole command: {took:.2f} s, {cpu:.2f} s of CPU")


def records_of(root: Path, size: int) -> None:
    """Compare two shards of the same random records, of which the second has one other."""
    count = BYTES // size
    random = np.random.default_rng(1)
    payloads = [random.bytes(size - 16) for _ in range(count)]
    whole = []
    for name in "ab":
        folder = root / f"{name}{size}"
        folder.mkdir()
        if name == "b":
            payloads[count // 2] = payloads[count // 2][:-1] + b"?"
        write_records(str(folder / "train-00000.tfrecord"), iter(payloads), "none")
        shard = ShardEntry("train-00000.tfrecord", 1, count, count * size, f"0000000{name}")
        put(folder, manifest((shard,), "0"))
        whole.append((str(folder), read_manifest(str(folder))))
    del payloads
    cpu = time.process_time()
    found = compare_records("train", whole)
    cpu = time.process_time() - cpu
    assert (found.only_a, found.only_b) == (1, 1)
    print(f"records of {size} bytes, {found.bytes / 1e9:.2f} GB: {found.bytes / cpu / 1e9:.2f} GB/s of CPU")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shards", type=int, default=SHARDS)
    options = parser.parse_args()
    root = Path(tempfile.mkdtemp(prefix="shardmill-diff-"))
    try:
        many_shards(root, options.shards)
        for size in (218, 1024):
            records_of(root, size)
    finally:
        shutil.rmtree(root)


if __name__ == "__main__":
    main()
