"""How every peer of the loop kind gets its two workers: two processes, each with every second file."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from multiprocessing import get_context
from pathlib import Path
from typing import Protocol

import numpy as np
import pyarrow as pa

WORKERS = 2
ROWS_A_SHARD = 500_000
IMAGES_A_SHARD = 1_300


class RowWriter(Protocol):
    """What a peer brings: a file that takes rows."""

    def write(self, row: dict[str, object]) -> None: ...
    def close(self) -> None: ...


def batches(path: Path) -> Iterator[pa.RecordBatch]:
    """Yield the record batches of a Parquet or CSV file."""
    if path.suffix == ".csv":
        import pyarrow.csv as pa_csv

        types = {f"float_{i}": pa.float32() for i in range(4)}
        reader = pa_csv.open_csv(path, convert_options=pa_csv.ConvertOptions(column_types=types))
        yield from reader
    else:
        import pyarrow.parquet as pq

        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            yield from file.iter_batches(batch_size=32_000)


def run(convert: Callable[[list[Path], Path], None]) -> None:
    """Call `convert(files, shard_prefix)` in two processes; argv: the source folder and the output folder."""
    source, out = Path(sys.argv[1]), Path(sys.argv[2])
    out.mkdir(parents=True)
    files = sorted(path for path in source.rglob("*") if path.is_file())
    context = get_context("spawn")
    workers = [context.Process(target=convert, args=(files[i::WORKERS], out / f"train-{i}")) for i in range(WORKERS)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if any(worker.exitcode for worker in workers):
        sys.exit("a worker failed")


def python_rows(batch: pa.RecordBatch) -> Iterator[dict[str, object]]:
    """Yield the rows of a batch as Python dicts: the fastest way there is to get them one by one."""
    names = batch.schema.names
    columns = [
        list(np.asarray(column.flatten()).reshape(len(column), -1))
        if pa.types.is_list(column.type)
        else column.to_pylist()
        for column in batch.columns
    ]
    for row in zip(*columns, strict=True):
        yield dict(zip(names, row, strict=True))


def rows_of(path: Path) -> Iterator[dict[str, object]]:
    """Yield the rows of a file: of a table, or the one row of an image, with what its header says."""
    if path.suffix == ".jsonl":
        with path.open("rb") as file:
            yield from map(json.loads, file)
        return
    if path.suffix != ".jpg":
        for batch in batches(path):
            yield from python_rows(batch)
        return
    data = path.read_bytes()
    kind, height, width = image_header(data)
    yield {
        "image/encoded": data,
        "image/format": kind,
        "image/height": height,
        "image/width": width,
        "image/filename": path.name,
        "image/class/label": int(path.parent.name.removeprefix("class_")),
        "image/class/text": path.parent.name,
    }


def write_rows(files: list[Path], prefix: Path, open_writer: Callable[[str], RowWriter]) -> None:
    """Write the rows of the files one by one, with a new shard every so many rows."""
    shard = written = 0
    writer = open_writer(f"{prefix}-{shard:05d}.tfrecord")
    for path in files:
        a_shard = IMAGES_A_SHARD if path.suffix == ".jpg" else ROWS_A_SHARD
        for row in rows_of(path):
            writer.write(row)
            written += 1
            if written % a_shard == 0:
                writer.close()
                shard += 1
                writer = open_writer(f"{prefix}-{shard:05d}.tfrecord")
    writer.close()


def image_header(data: bytes) -> tuple[str, int, int]:
    """Return format, height and width as Pillow reads them from the header."""
    import io

    from PIL import Image

    with Image.open(io.BytesIO(data)) as image:
        return str(image.format).lower(), image.height, image.width
