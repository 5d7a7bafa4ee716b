"""The `tfrecord` package's writer (vahidk/tfrecord)."""

from __future__ import annotations

from pathlib import Path

from tfrecord.writer import TFRecordWriter
from two_processes import run, write_rows


def typed(value: object) -> tuple[object, str]:
    if isinstance(value, int):
        return value, "int"
    if isinstance(value, float):
        return value, "float"
    if isinstance(value, str):
        return value.encode(), "byte"
    return (value, "byte") if isinstance(value, bytes) else (value, "float")


class Writer:
    def __init__(self, path: str) -> None:
        self.file = TFRecordWriter(path)

    def write(self, row: dict[str, object]) -> None:
        self.file.write({name: typed(value) for name, value in row.items()})

    def close(self) -> None:
        self.file.close()


def convert(files: list[Path], prefix: Path) -> None:
    write_rows(files, prefix, Writer)


if __name__ == "__main__":
    run(convert)
