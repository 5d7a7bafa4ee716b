"""tfx_bsl's C++ RecordBatchToExamplesEncoder, TFRecordWriter."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import tensorflow as tf
from tfx_bsl.coders import example_coder
from two_processes import ROWS_A_SHARD, batches, run


def as_lists(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the batch in the only types that the encoder takes: large lists of int64, float32 or bytes."""
    columns = []
    for column in batch.columns:
        if pa.types.is_list(column.type):
            columns.append(column)
            continue
        if pa.types.is_float64(column.type):
            column = column.cast(pa.float32())
        elif pa.types.is_string(column.type):
            column = column.cast(pa.binary())
        ends = pa.array(range(len(column) + 1), pa.int32()) if len(column) != 32_000 else ENDS
        columns.append(pa.ListArray.from_arrays(ends, column))
    return pa.RecordBatch.from_arrays(columns, batch.schema.names)


ENDS = pa.array(range(32_001), pa.int32())


def convert(files: list[Path], prefix: Path) -> None:
    encoder = example_coder.RecordBatchToExamplesEncoder()
    shard = written = 0
    writer = tf.io.TFRecordWriter(f"{prefix}-{shard:05d}.tfrecord")
    for path in files:
        for batch in batches(path):
            records = encoder.encode(as_lists(batch))
            for record in records:
                writer.write(record)
            written += len(records)
            if written >= ROWS_A_SHARD:
                writer.close()
                shard, written = shard + 1, 0
                writer = tf.io.TFRecordWriter(f"{prefix}-{shard:05d}.tfrecord")
    writer.close()


if __name__ == "__main__":
    run(convert)
