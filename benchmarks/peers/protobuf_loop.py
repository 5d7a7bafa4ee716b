"""A protobuf loop without TensorFlow: the Example message, framed by hand with crc32c."""

from __future__ import annotations

import struct
from pathlib import Path

from crc32c import crc32c
from example_message import Example
from two_processes import ROWS_A_SHARD, batches, image_header, python_rows, run


def masked(data: bytes) -> int:
    crc = crc32c(data)
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def frame(payload: bytes) -> bytes:
    length = struct.pack("<Q", len(payload))
    return b"".join((length, struct.pack("<I", masked(length)), payload, struct.pack("<I", masked(payload))))


def serialize(row: dict[str, object]) -> bytes:
    example = Example()
    features = example.features.feature
    for name, value in row.items():
        if isinstance(value, int):
            features[name].int64_list.value.append(value)
        elif isinstance(value, float):
            features[name].float_list.value.append(value)
        elif isinstance(value, str):
            features[name].bytes_list.value.append(value.encode())
        elif isinstance(value, bytes):
            features[name].bytes_list.value.append(value)
        else:
            features[name].float_list.value.extend(value)
    return example.SerializeToString()


def rows(path: Path):
    if path.suffix == ".jpg":
        data = path.read_bytes()
        kind, height, width = image_header(data)
        label = int(path.parent.name.removeprefix("class_"))
        yield {
            "image/encoded": data, "image/format": kind, "image/height": height, "image/width": width,
            "image/filename": path.name, "image/class/label": label, "image/class/text": path.parent.name,
        }  # fmt: skip
    else:
        for batch in batches(path):
            yield from python_rows(batch)


def convert(files: list[Path], prefix: Path) -> None:
    shard = written = 0
    out = open(f"{prefix}-{shard:05d}.tfrecord", "wb", buffering=1 << 20)
    for path in files:
        for row in rows(path):
            out.write(frame(serialize(row)))
            written += 1
            if written % (1_300 if path.suffix == ".jpg" else ROWS_A_SHARD) == 0:
                out.close()
                shard += 1
                out = open(f"{prefix}-{shard:05d}.tfrecord", "wb", buffering=1 << 20)
    out.close()


if __name__ == "__main__":
    run(convert)
