"""The `tfrecord` package's writer (vahidk/tfrecord)."""

from __future__ import annotations

from pathlib import Path

from tfrecord.writer import TFRecordWriter
from two_processes import ROWS_A_SHARD, batches, image_header, python_rows, run


def typed(value: object) -> tuple[object, str]:
    if isinstance(value, int):
        return value, "int"
    if isinstance(value, float):
        return value, "float"
    if isinstance(value, str):
        return value.encode(), "byte"
    return (value, "byte") if isinstance(value, bytes) else (list(value), "float")


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
    writer = TFRecordWriter(f"{prefix}-{shard:05d}.tfrecord")
    for path in files:
        for row in rows(path):
            writer.write({name: typed(value) for name, value in row.items()})
            written += 1
            if written % (1_300 if path.suffix == ".jpg" else ROWS_A_SHARD) == 0:
                writer.close()
                shard += 1
                writer = TFRecordWriter(f"{prefix}-{shard:05d}.tfrecord")
    writer.close()


if __name__ == "__main__":
    run(convert)
