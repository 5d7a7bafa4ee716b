"""A protobuf loop without TensorFlow: the Example message, framed by hand with crc32c."""

from __future__ import annotations

import struct
from pathlib import Path

from crc32c import crc32c
from example_message import Example
from two_processes import run, write_rows


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


class Writer:
    def __init__(self, path: str) -> None:
        self.file = open(path, "wb", buffering=1 << 20)

    def write(self, row: dict[str, object]) -> None:
        self.file.write(frame(serialize(row)))

    def close(self) -> None:
        self.file.close()


def convert(files: list[Path], prefix: Path) -> None:
    write_rows(files, prefix, Writer)


if __name__ == "__main__":
    run(convert)
