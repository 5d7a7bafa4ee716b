"""Pictures that are stored turned, and say so by EXIF: every way in says it, and turns them with their boxes."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image
from shardmill.transforms.dataset.reading.open_dataset import open_dataset
from shardmill.transforms.pictures.facts import BOXES_OF_TURNED, TURNED, TURNED_UNDER_BOXES

from ..command_line import Shardmill

BOX = pytest.approx((0.1, 0.2, 0.3, 0.4))
"""The box that the cases below draw, on the upright picture of 30 x 40 pixels: 3, 8 to 9, 16."""


def photo(orientation: int = 6, kind: str = "JPEG", size: tuple[int, int] = (40, 30)) -> bytes:
    memory, exif = io.BytesIO(), Image.Exif()
    exif[0x0112] = orientation
    Image.new("RGB", size, (90, 120, 30)).save(memory, kind, exif=exif.tobytes())
    return memory.getvalue()


def put(name: str, data: bytes | str) -> None:
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    Path(name).write_bytes(data.encode() if isinstance(data, str) else data)


def class_folders() -> list[str]:
    for name, kind in (("1.jpg", "JPEG"), ("2.png", "PNG")):
        put(f"pics/cat/{name}", photo(kind=kind))
    put("pics/dog/3.jpg", photo(1))
    return ["pics"]


def tables() -> list[str]:
    pq.write_table(pa.table({"id": [1, 2, 3], "photo": [photo(), photo(1), photo(8)]}), "t.parquet")
    return ["t.parquet", "--set", "schema.columns.photo.image=bytes"]


def paths_in_a_table() -> list[str]:
    put("pics/a.jpg", photo())
    put("pics/b.png", photo(3, "PNG"))
    put("t.csv", "file,label\npics/a.jpg,cat\npics/b.png,dog\n")
    return ["t.csv", "--set", "schema.columns.file.image=path"]


def archives() -> list[str]:
    with tarfile.open("a.tar", "w") as archive:
        for name, data in (("a.jpg", photo()), ("b.png", photo(kind="PNG"))):
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return ["a.tar"]


@pytest.mark.parametrize("case", [class_folders, tables, paths_in_a_table, archives])
def test_turned_pictures_are_counted_by_a_run_and_a_dry_run_until_they_are_turned(
    shardmill: Shardmill, case: Callable[[], list[str]]
) -> None:
    args = ["convert", *case()]
    line = f"Warning: {TURNED}: 2\n"
    assert line in shardmill(*args, "-o", "out", "--dry-run").out
    assert line in shardmill(*args, "-o", "out").out
    turned = shardmill(*args, "-o", "turned", "--set", "image.orientation=apply")
    assert (turned.code, "EXIF orientation" in turned.out) == (0, False)
    upright = [Image.open(io.BytesIO(encoded(row))).getexif().get(0x0112, 1) for row in open_dataset("turned")["train"]]
    assert upright == [1] * (2 + (case in (class_folders, tables)))


def test_a_kept_orientation_is_said_of_the_new_file_too(shardmill: Shardmill) -> None:
    class_folders()
    found = shardmill("convert", "pics", "-o", "out", "--set", "image.resize=20", "--set", "image.encode.format=jpeg")
    assert f"Warning: {TURNED}: 2\n" in found.out


def test_a_picture_of_webp_says_its_orientation(shardmill: Shardmill) -> None:
    put("pics/1.webp", photo(kind="WEBP"))
    assert f"Warning: {TURNED}: 1\n" in shardmill("convert", "pics", "-o", "out").out


def encoded(row: dict[str, Any]) -> bytes:
    (data,) = [value for name, value in row.items() if name.endswith("/encoded")]
    assert isinstance(data, bytes)
    return data


def yolo() -> list[str]:
    put("pics/phone.jpg", photo())
    put("labels/phone.txt", "0 0.2 0.3 0.2 0.2\n")
    put("labels/classes.txt", "cat\n")
    return ["pics", "--set", "input.annotations.yolo=labels"]


def voc(*, size: str = "<size><width>30</width><height>40</height></size>") -> list[str]:
    box = "<bndbox><xmin>3</xmin><ymin>8</ymin><xmax>9</xmax><ymax>16</ymax></bndbox>"
    put("pics/phone.jpg", photo())
    put(
        "boxes/phone.xml",
        f"<annotation><filename>phone.jpg</filename>{size}<object><name>cat</name>{box}</object></annotation>",
    )
    return ["pics", "--set", "input.annotations.voc=boxes"]


def coco() -> list[str]:
    put("pics/phone.jpg", photo())
    document = {
        "images": [{"id": 1, "file_name": "phone.jpg", "width": 30, "height": 40}],
        "annotations": [{"id": 1, "image_id": 1, "category_id": 0, "bbox": [3, 8, 6, 8]}],
        "categories": [{"id": 0, "name": "cat"}],
    }
    put("coco.json", json.dumps(document))
    return ["pics", "--set", "input.annotations.coco=coco.json"]


def box_in(path: str) -> tuple[Any, ...]:
    (row,) = open_dataset(path)["train"]
    assert (row["image/width"], row["image/height"]) == (30, 40)
    return tuple(row[f"image/object/bbox/{side}"][0] for side in ("xmin", "ymin", "xmax", "ymax"))


@pytest.mark.parametrize("case", [yolo, voc, coco])
def test_a_box_on_the_upright_picture_is_named_or_refused_and_right_once_the_hint_is_followed(
    shardmill: Shardmill, case: Callable[[], list[str]]
) -> None:
    args, apply = ["convert", *case()], ("--set", "image.orientation=apply")
    found = shardmill(*args, "-o", "out")
    assert " ".join(apply) in found.out + found.err
    # YOLO states no size, so that its run cannot know: it warns, and the others reject.
    assert (f"Warning: {TURNED_UNDER_BOXES}: 1\n" in found.out, found.code == 0) == (case is yolo,) * 2
    shown = shardmill(*args, "-o", "right", *apply)
    assert (shown.code, BOXES_OF_TURNED in shown.out) == (0, False)
    assert box_in("right") == BOX


def test_boxes_of_yolo_may_be_said_to_be_of_the_stored_picture(shardmill: Shardmill) -> None:
    args = ["convert", *yolo(), "-o", "out", "--set", "image.orientation=apply", "--set", "image.boxes_on=stored"]
    assert shardmill(*args).code == 0
    assert box_in("out") == pytest.approx((0.6, 0.1, 0.8, 0.3))  # x, y of the stored picture are 1 - y, x


def test_turned_boxes_of_which_no_size_says_where_they_were_drawn_are_counted(shardmill: Shardmill) -> None:
    args = ["convert", *voc(size=""), "-o", "out", "--set", "image.orientation=apply"]
    for more in (("--dry-run",), ()):
        assert f"Warning: {BOXES_OF_TURNED}: 1\n" in shardmill(*args, *more).out
    settled = shardmill(*args[:-3], "right", *args[-2:], "--set", "image.boxes_on=turned")
    assert (settled.code, BOXES_OF_TURNED in settled.out) == (0, False)
    assert box_in("right") == BOX


def test_a_box_over_the_edge_of_a_turned_picture_is_read_by_the_option_of_its_reject(shardmill: Shardmill) -> None:
    put("pics/a.jpg", photo())
    put("pics/metadata.jsonl", '{"file_name": "a.jpg", "objects": {"bbox": [[8, 3, 6, 36]], "category": [0]}}\n')
    plain = shardmill("convert", "pics", "-o", "out")
    assert (plain.code, "drawn on the upright" in plain.err) == (4, False)
    turned = ("--set", "image.orientation=apply")
    refused = shardmill("convert", "pics", "-o", "out", *turned)
    assert refused.code == 4
    assert "if boxes were drawn on the upright picture: --set image.boxes_on=turned" in refused.err
    assert shardmill("convert", "pics", "-o", "out", *turned, "--set", "image.boxes_on=turned").code == 0
    row = open_dataset("out")["train"].to_arrow().to_pylist()[0]
    sides = [row[f"image/object/bbox/{side}"][0] for side in ("xmin", "ymin", "xmax", "ymax")]
    assert sides == pytest.approx([8 / 30, 3 / 40, 14 / 30, 39 / 40])
