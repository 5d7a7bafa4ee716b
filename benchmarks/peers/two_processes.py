"""How every peer of the loop kind gets its two workers: two processes, each with every second file."""

from __future__ import annotations

import sys
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pyarrow as pa

WORKERS = 2
ROWS_A_SHARD = 500_000


def batches(path: Path) -> "Iterator[pa.RecordBatch]":  # noqa: F821, UP037
    """Yield the record batches of a Parquet or CSV file."""
    if path.suffix == ".csv":
        import pyarrow.csv

        types = {f"float_{i}": pa.float32() for i in range(4)}
        reader = pa.csv.open_csv(path, convert_options=pa.csv.ConvertOptions(column_types=types))
        yield from reader
    else:
        import pyarrow.parquet

        with pa.parquet.ParquetFile(path, page_checksum_verification=True) as file:
            yield from file.iter_batches(batch_size=32_000)


def run(convert: Callable[[list[Path], Path], None]) -> None:
    """Call `convert(files, shard_prefix)` in two processes; argv: the source folder and the output folder."""
    source, out = Path(sys.argv[1]), Path(sys.argv[2])
    out.mkdir(parents=True)
    files = sorted(path for path in source.rglob("*") if path.is_file())
    context = get_context("spawn")
    workers = [
        context.Process(target=convert, args=(files[i::WORKERS], out / f"train-{i}")) for i in range(WORKERS)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if any(worker.exitcode for worker in workers):
        sys.exit("a worker failed")


def python_rows(batch: pa.RecordBatch) -> "Iterator[dict[str, object]]":  # noqa: F821, UP037
    """Yield the rows of a batch as Python dicts: the fastest way there is to get them one by one."""
    names = batch.schema.names
    columns = [
        list(np.asarray(column.flatten()).reshape(len(column), -1)) if pa.types.is_list(column.type) else column.to_pylist()
        for column in batch.columns
    ]
    for row in zip(*columns, strict=True):
        yield dict(zip(names, row, strict=True))


def image_header(data: bytes) -> tuple[str, int, int]:
    """Return format, height and width as Pillow reads them from the header."""
    import io

    from PIL import Image

    with Image.open(io.BytesIO(data)) as image:
        return str(image.format).lower(), image.height, image.width
