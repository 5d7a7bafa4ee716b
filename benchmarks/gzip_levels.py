"""Compress table records as we do (ISA-L members) and as TFRecordWriter does (one zlib stream, level 6).

uv run python benchmarks/gzip_levels.py
"""

from __future__ import annotations

import statistics
import sys
import time
import zlib
from collections.abc import Callable

from shardmill.transforms.format.examples.encode_rows import RowEncoder
from shardmill.transforms.format.schema.arrow_types import feature_of
from shardmill.transforms.format.schema.schema import Schema
from shardmill.transforms.format.tfrecord.gzip_members import compress_member
from workloads import table

MEMBER_BYTES = 1 << 20


def with_members(data: bytes) -> int:
    """Return the size of the members."""
    return sum(len(compress_member(data[at : at + MEMBER_BYTES])) for at in range(0, len(data), MEMBER_BYTES))


def with_zlib(data: bytes) -> int:
    """Return the size of the stream."""
    stream = zlib.compressobj(6, zlib.DEFLATED, 31)
    return len(stream.compress(data)) + len(stream.flush())


def timed(compress: Callable[[bytes], int], data: bytes) -> tuple[float, int]:
    """Return seconds of CPU, and the size."""
    start = time.process_time()
    size = compress(data)
    return time.process_time() - start, size


def main() -> None:
    """Compress 200,000 records of 12 columns five times each, in turn."""
    (batch,) = table(0, 200_000).combine_chunks().to_batches()
    schema = Schema(tuple(sorted((feature_of(field)[0] for field in batch.schema), key=lambda f: f.name)))
    frames = RowEncoder(schema).encode(batch).splits["train"]
    data = b"".join(buffer.to_pybytes() for buffer in frames.buffers)
    ours, theirs = zip(*((timed(with_members, data), timed(with_zlib, data)) for _ in range(5)), strict=True)
    our_seconds, their_seconds = (statistics.median(seconds for seconds, _ in runs) for runs in (ours, theirs))
    sys.stdout.write(
        f"{len(data) / 1e6:.1f} MB of records\n"
        f"ISA-L members: {len(data) / 1e6 / our_seconds:.0f} MB/s, {ours[0][1] / len(data):.4f} of the size\n"
        f"zlib level 6:  {len(data) / 1e6 / their_seconds:.0f} MB/s, {theirs[0][1] / len(data):.4f} of the size\n"
        f"times as fast: {their_seconds / our_seconds:.1f}; times as large: {ours[0][1] / theirs[0][1]:.3f}\n"
    )


if __name__ == "__main__":
    main()
