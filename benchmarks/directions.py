"""Measure what grows with what: rows, columns, keys, files and annotations, each at two sizes that differ four times.

    uv run python benchmarks/directions.py                      # all directions, at the sizes of RESULTS.md
    uv run python benchmarks/directions.py columns_of_csv       # some of them
    uv run python benchmarks/directions.py --share 0.1 --json   # smaller, one JSON line each, as the tests take them

A conversion of five rows is measured first, as start-up. CPU is that of all processes, memory the peak of all processes
together, with two workers and the default settings.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from measure import Measured, measure
from PIL import Image

TIMES = 4
RANDOM = np.random.default_rng(7)


def csv_table(path: Path, rows: int, columns: int) -> None:
    with path.open("w") as file:
        file.write(",".join(f"c{n}" for n in range(columns)) + "\n")
        for row in RANDOM.integers(0, 10**6, (rows, columns)):
            file.write(",".join(map(str, row.tolist())) + "\n")


def parquet_table(path: Path, rows: int, columns: int) -> None:
    pq.write_table(pa.table({f"c{n}": RANDOM.random(rows, np.float32) for n in range(columns)}), path)


def json_lines(path: Path, rows: int, keys: int, there: int) -> None:
    """Write rows with the values of `there` of so many keys each."""
    with path.open("w") as file:
        for _ in range(rows):
            chosen = range(keys) if there == keys else np.sort(RANDOM.choice(keys, there, replace=False)).tolist()
            values = RANDOM.integers(0, 10**6, there).tolist()
            file.write(json.dumps({f"k{key}": value for key, value in zip(chosen, values, strict=True)}) + "\n")


def many_files(folder: Path, count: int, write: Callable[[Path], None], suffix: str) -> None:
    folder.mkdir()
    for number in range(count):
        write(folder / f"f{number:06}.{suffix}")


def pictures_of(folder: Path, count: int, size: tuple[int, int]) -> list[str]:
    """Write so many pictures, of which 50 are different, and return their names."""
    folder.mkdir(parents=True)
    noise = Image.fromarray(RANDOM.integers(0, 255, (30, 40, 3), np.uint8)).resize(size, Image.Resampling.BICUBIC)
    names = [f"{number:012}.jpg" for number in range(count)]
    for number, name in enumerate(names):
        if number < 50:
            noise.rotate(number).save(folder / name, quality=92)
        else:
            (folder / name).hardlink_to(folder / names[number % 50])
    return names


def coco(folder: Path, pictures: int, objects: int) -> None:
    """Write COCO's own layout."""
    names = pictures_of(folder / "train2017", pictures, (640, 480))
    images = [
        {"id": number, "file_name": name, "width": 640, "height": 480, "license": 3}
        for number, name in enumerate(names)
    ]
    (folder / "annotations").mkdir()
    found = []
    for number in range(objects):
        x, y, width, height = RANDOM.uniform((0, 0, 20, 20), (500, 380, 120, 100)).round(2).tolist()
        points = RANDOM.uniform((x, y), (x + width, y + height), (28, 2)).round(2).ravel().tolist()
        found.append({
            "id": number, "image_id": int(RANDOM.integers(pictures)), "category_id": number % 80, "iscrowd": 0,
            "area": width * height, "bbox": [x, y, width, height], "segmentation": [points],
        })  # fmt: skip
    categories = [{"id": number, "name": f"class {number}"} for number in range(80)]
    document = {"images": images, "annotations": found, "categories": categories}
    (folder / "annotations" / "instances_train2017.json").write_text(json.dumps(document))


def voc(folder: Path, pictures: int) -> None:
    """Write VOC's layout: for each picture a file of two objects."""
    (folder / "Annotations").mkdir(parents=True)
    for name in pictures_of(folder / "JPEGImages", pictures, (160, 120)):
        objects = "".join(
            f"<object><name>class {number}</name><pose>Left</pose><truncated>0</truncated><difficult>0</difficult>"
            f"<bndbox><xmin>{x}</xmin><ymin>{y}</ymin><xmax>{x + 40}</xmax><ymax>{y + 30}</ymax></bndbox></object>"
            for x, y, number in RANDOM.integers((1, 1, 0), (110, 80, 20), (2, 3)).tolist()
        )
        size = "<size><width>160</width><height>120</height><depth>3</depth></size>"
        text = f"<annotation><filename>{name}</filename>{size}<segmented>0</segmented>{objects}</annotation>"
        (folder / "Annotations" / f"{name[:-4]}.xml").write_text(text)


def yolo(folder: Path, pictures: int) -> None:
    """Write YOLO's layout: for each picture a file of two boxes."""
    names = pictures_of(folder / "images" / "train", pictures, (160, 120))
    labels = folder / "labels" / "train"
    labels.mkdir(parents=True)
    for name in names:
        boxes = RANDOM.uniform((0.2, 0.2, 0.1, 0.1), (0.8, 0.8, 0.3, 0.3), (2, 4)).round(6).tolist()
        lines = [f"{number} {' '.join(map(str, box))}\n" for number, box in enumerate(boxes)]
        (labels / f"{name[:-4]}.txt").write_text("".join(lines))
    (folder / "data.yaml").write_text("path: .\ntrain: images/train\nnames: [cat, dog]\n")


@dataclass(frozen=True)
class Direction:
    """What grows: `size` is the large one, in `unit`s; `cells` says how many values an input of a size has."""

    unit: str
    size: int
    make: Callable[[Path, int], None]
    cells: Callable[[int], int]
    suffix: str = ""


DIRECTIONS: dict[str, Direction] = {
    "rows_of_csv": Direction("rows", 800_000, lambda path, n: csv_table(path, n, 12), lambda n: 12 * n, ".csv"),
    "rows_of_parquet": Direction(
        "rows", 3_200_000, lambda path, n: parquet_table(path, n, 12), lambda n: 12 * n, ".parquet"
    ),
    "rows_of_jsonl": Direction(
        "rows", 800_000, lambda path, n: json_lines(path, n, 12, 12), lambda n: 12 * n, ".jsonl"
    ),
    "columns_of_csv": Direction("columns", 4800, lambda path, n: csv_table(path, 2000, n), lambda n: 2000 * n, ".csv"),
    "columns_of_parquet": Direction(
        "columns", 4800, lambda path, n: parquet_table(path, 8000, n), lambda n: 8000 * n, ".parquet"
    ),
    "keys_of_jsonl": Direction(
        "keys", 1000, lambda path, n: json_lines(path, 10_000, n, n), lambda n: 10_000 * n, ".jsonl"
    ),
    "sparse_keys_of_jsonl": Direction(
        "keys", 3000, lambda path, n: json_lines(path, 20_000, n, 20), lambda _: 20_000 * 20, ".jsonl"
    ),
    "files_of_csv": Direction(
        "files", 5000, lambda path, n: many_files(path, n, lambda one: csv_table(one, 10, 4), "csv"), lambda n: 40 * n
    ),
    "files_of_jsonl": Direction(
        "files", 5000, lambda path, n: many_files(path, n, lambda one: json_lines(one, 10, 4, 4), "jsonl"),
        lambda n: 40 * n,
    ),
    "files_of_parquet": Direction(
        "files", 2000, lambda path, n: many_files(path, n, lambda one: parquet_table(one, 1000, 4), "parquet"),
        lambda n: 4000 * n,
    ),
    "objects_of_coco": Direction("objects", 320_000, lambda path, n: coco(path, n // 8, n), lambda n: n),
    "files_of_voc": Direction("files", 100_000, voc, lambda n: 2 * n),
    "files_of_yolo": Direction("files", 100_000, yolo, lambda n: 2 * n),
}  # fmt: skip


def run(path: Path, work: Path) -> Measured:
    shutil.rmtree(work / "out", ignore_errors=True)
    command = [sys.executable, "-m", "shardmill.pipelines", "convert", str(path), "-o", str(work / "out")]
    done = measure([*command, "--workers", "2"], work / "log")
    shutil.rmtree(work / "out")
    return done


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[*DIRECTIONS, []], help="directions; all without a name")
    parser.add_argument("--share", type=float, default=1.0, help="a share of the sizes of RESULTS.md")
    parser.add_argument("--json", action="store_true", help="print a JSON line for each direction")
    parser.add_argument("--work", type=Path, help="where inputs and outputs go for a while")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="shardmill-directions-", dir=options.work) as folder:
        work = Path(folder)
        csv_table(work / "start.csv", 5, 4)
        run(work / "start.csv", work)  # compiles what was never imported
        start = run(work / "start.csv", work)
        if not options.json:
            print(f"start-up {start.cpu:.2f} s of CPU, {start.peak / 1e6:.0f} MB\n")
            print("| direction | size | CPU | us a value | beyond start-up, a unit | peak |\n" + "| --- " * 6 + "|")
        for name in options.names or DIRECTIONS:
            one, found = DIRECTIONS[name], []
            small = int(one.size * options.share) // TIMES
            for size in (small, TIMES * small):
                path = work / f"{name}{one.suffix}"
                one.make(path, size)
                done = run(path, work)
                shutil.rmtree(path) if path.is_dir() else path.unlink()
                found.append({"size": size, "values": one.cells(size), **asdict(done)})
                used = done.cpu - start.cpu
                if not options.json:
                    print(f"| {name} | {size:,} {one.unit} | {done.cpu:.2f} s | {1e6 * used / one.cells(size):.2f} "
                          f"| {1e6 * used / size:,.1f} us | {done.peak / 1e6:.0f} MB |", flush=True)  # fmt: skip
            if options.json:
                print(json.dumps({"name": name, "start": asdict(start), "runs": found}), flush=True)


if __name__ == "__main__":
    main()
