"""The loop for nested columns as it is written by hand for one schema: `to_pylist`, and the Example message."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from example_message import Example
from protobuf_loop import frame
from two_processes import ROWS_A_SHARD, batches, run


def serialize(row: dict[str, Any]) -> bytes:
    example = Example()
    features = example.features.feature
    features["id"].int64_list.value.append(row["id"])
    user, lines, points, total = row["user"], row["lines"], row["points"], row["total"]
    features["user/present"].int64_list.value.append(user is not None)
    if user is not None:
        features["user/name"].bytes_list.value.append(user["name"].encode())
        features["user/age"].int64_list.value.append(user["age"])
    features["lines/present"].int64_list.value.append(lines is not None)
    if lines is not None:
        features["lines/item"].bytes_list.value.extend([line["item"].encode() for line in lines])
        features["lines/price"].float_list.value.extend([line["price"] for line in lines])
    features["points/present"].int64_list.value.append(points is not None)
    if points is not None:
        features["points/ragged_flat_values"].float_list.value.extend([x for point in points for x in point])
        features["points/ragged_row_lengths_0"].int64_list.value.extend([len(point) for point in points])
    if total is not None:
        features["total"].bytes_list.value.append(str(total).encode())
    return example.SerializeToString()


def convert(files: list[Path], prefix: Path) -> None:
    written, out = 0, None
    for path in files:
        for batch in batches(path):
            for row in batch.to_pylist():
                if written % ROWS_A_SHARD == 0:
                    if out is not None:
                        out.close()
                    out = open(f"{prefix}-{written // ROWS_A_SHARD:05d}.tfrecord", "wb", buffering=1 << 20)
                out.write(frame(serialize(row)))
                written += 1
    if out is not None:
        out.close()


if __name__ == "__main__":
    run(convert)
