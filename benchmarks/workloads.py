"""Make the data that the benchmarks convert: each workload in its full size, and in a small one to subtract."""

from __future__ import annotations

import io
import json
import random
import shutil
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.csv
import pyarrow.parquet
from PIL import Image

LETTERS = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz0123456789", np.uint8)


@dataclass(frozen=True)
class Workload:
    """One kind of input: `rows` in the full size, `small_rows` in the size that is subtracted."""

    name: str
    source: str
    rows: int
    small_rows: int
    make: Callable[[Path, int], None]


def random_strings(rng: np.random.Generator, rows: int) -> pa.Array:
    """Return strings of 8 to 20 letters and digits."""
    lengths = rng.integers(8, 21, rows)
    ends = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    letters = LETTERS[rng.integers(0, len(LETTERS), int(ends[-1]))]
    return pa.StringArray.from_buffers(rows, pa.py_buffer(ends), pa.py_buffer(letters.tobytes()))


def table(seed: int, rows: int) -> pa.Table:
    """Return 12 columns: 4 int64, 4 float32, 2 float64, 2 strings."""
    rng = np.random.default_rng(seed)
    columns: dict[str, object] = {}
    for i, high in enumerate((100, 10_000, 10_000_000, 2**40)):
        columns[f"int_{i}"] = rng.integers(-high // 10, high, rows)
    for i in range(4):
        columns[f"float_{i}"] = rng.normal(0, 10**i, rows).astype(np.float32)
    for i in range(2):
        columns[f"double_{i}"] = rng.normal(0, 1000, rows)
    for i in range(2):
        columns[f"text_{i}"] = random_strings(rng, rows)
    return pa.table(columns)


def make_parquet(folder: Path, rows: int) -> None:
    """Write files of 1 M rows (or two halves of less), row groups of 128 Ki rows, page checksums, Snappy."""
    for i, count in enumerate(_files(rows)):
        pa.parquet.write_table(
            table(i, count), folder / f"part-{i:02d}.parquet", row_group_size=1 << 17, write_page_checksum=True
        )


def make_csv(folder: Path, rows: int) -> None:
    """Write the same rows as CSV, strings quoted."""
    for i, count in enumerate(_files(rows)):
        pa.csv.write_csv(table(i, count), folder / f"part-{i:02d}.csv")


def make_jsonl(folder: Path, rows: int) -> None:
    """Write the same rows as JSON lines, as `json.dumps` writes them."""
    for i, count in enumerate(_files(rows)):
        with (folder / f"part-{i:02d}.jsonl").open("w") as file:
            for batch in table(i, count).to_batches(max_chunksize=10_000):
                file.writelines(json.dumps(row) + "\n" for row in batch.to_pylist())


def make_nested(folder: Path, rows: int) -> None:
    """Write a struct, a list of structs, a list of lists and a decimal a row, a tenth of them null, in two files."""
    for i, count in enumerate((rows // 2, rows - rows // 2)):
        rng = np.random.default_rng(100 + i)
        lines, outer = rng.integers(0, 5, count), rng.integers(0, 4, count)
        inner = rng.integers(0, 9, int(outer.sum()))
        user = pa.StructArray.from_arrays(
            [random_strings(rng, count), pa.array(rng.integers(0, 99, count))], ["name", "age"]
        )
        price = pa.array(rng.normal(0, 9, int(lines.sum())).astype(np.float32))
        line = pa.StructArray.from_arrays([random_strings(rng, len(price)), price], ["item", "price"])
        floats = pa.array(rng.normal(0, 1, int(inner.sum())).astype(np.float32))
        columns = {
            "id": pa.array(np.arange(count)),
            "user": user,
            "lines": _lists(lines, line),
            "points": _lists(outer, _lists(inner, floats)),
            "total": pa.array(rng.integers(0, 10**6, count)).cast(pa.decimal128(21, 2)).cast(pa.decimal128(12, 2)),
        }
        null = pa.array(rng.random(count) < 0.1)
        for name in ("user", "lines", "points", "total"):
            columns[name] = pa.compute.if_else(null, pa.scalar(None, columns[name].type), columns[name])
        pa.parquet.write_table(
            pa.table(columns), folder / f"part-{i:02d}.parquet", row_group_size=1 << 16, write_page_checksum=True
        )


def _lists(lengths: np.ndarray, values: pa.Array) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)), values)


def make_floats(folder: Path, rows: int) -> None:
    """Write rows of one list of 256 float32 values, in two Parquet files."""
    rng = np.random.default_rng(7)
    for i, count in enumerate((rows // 2, rows - rows // 2)):
        values = pa.array(rng.normal(0, 1, count * 256).astype(np.float32))
        lists = pa.FixedSizeListArray.from_arrays(values, 256).cast(pa.list_(pa.float32()))
        pa.parquet.write_table(
            pa.table({"id": np.arange(count), "embedding": lists}),
            folder / f"part-{i:02d}.parquet",
            row_group_size=8192,
            use_dictionary=False,
            write_page_checksum=True,
        )


def make_images(folder: Path, rows: int) -> None:
    """Write JPEGs of about 100 KB in ten class folders: 64 pictures, each file with a comment of its own."""
    pictures = [_jpeg(seed) for seed in range(64)]
    for label in range(10):
        (folder / f"class_{label}").mkdir()
    for i in range(rows):
        picture = pictures[random.Random(i).randrange(64)]
        comment = b"picture %09d" % i
        marked = picture[:2] + b"\xff\xfe" + (len(comment) + 2).to_bytes(2, "big") + comment + picture[2:]
        (folder / f"class_{i % 10}" / f"{i:06d}.jpg").write_bytes(marked)


def make_tars(folder: Path, rows: int) -> None:
    """Write archives of 1,000 samples as WebDataset has them: pictures as of `make_images`, each with its class."""
    pictures = [_jpeg(seed) for seed in range(64)]
    for first in range(0, rows, 1000):
        with tarfile.open(folder / f"samples-{first // 1000:05d}.tar", "w") as archive:
            for i in range(first, min(first + 1000, rows)):
                for suffix, content in (("jpg", pictures[random.Random(i).randrange(64)]), ("cls", b"%d" % (i % 10))):
                    member = tarfile.TarInfo(f"{i:06d}.{suffix}")
                    member.size = len(content)
                    archive.addfile(member, io.BytesIO(content))


def _jpeg(seed: int) -> bytes:
    rng = np.random.default_rng(seed)
    small = rng.integers(0, 255, (40, 52, 3), dtype=np.uint8)
    picture = np.asarray(Image.fromarray(small).resize((640, 480), Image.Resampling.BICUBIC), np.int16)
    noisy = np.clip(picture + rng.normal(0, 12, picture.shape), 0, 255).astype(np.uint8)
    out = io.BytesIO()
    Image.fromarray(noisy).save(out, "JPEG", quality=82)
    return out.getvalue()


def _files(rows: int) -> list[int]:
    return [1_000_000] * (rows // 1_000_000) if rows > 1_000_000 else [rows // 2, rows - rows // 2]


WORKLOADS = {
    w.name: w
    for w in (
        Workload("parquet", "parquet", 8_000_000, 1_000_000, make_parquet),
        Workload("csv", "csv", 8_000_000, 1_000_000, make_csv),
        Workload("jsonl", "jsonl", 4_000_000, 500_000, make_jsonl),
        Workload("nested", "parquet", 800_000, 100_000, make_nested),
        Workload("floats", "parquet", 100_000, 12_500, make_floats),
        # The same eight times: the start-up of some peers varies more than what they take for 100 MB.
        Workload("floats_x8", "parquet", 800_000, 100_000, make_floats),
        Workload("images", "images", 20_000, 2_500, make_images),
        Workload("tar", "tar", 20_000, 2_500, make_tars),
    )
}


def prepare(workload: Workload, rows: int, root: Path) -> Path:
    """Return the folder that holds the workload in the given size; make it if it is not there whole."""
    folder = root / f"{workload.name}-{rows}"
    if not (root / f"{folder.name}.done").exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        workload.make(folder, rows)
        (root / f"{folder.name}.done").touch()
    return folder
