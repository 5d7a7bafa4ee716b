"""Boxes, keypoints and masks follow their picture: each is where the red part of the picture is afterwards."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageOps
from shardmill.pipelines import convert
from shardmill.transforms.dataset.reading.open_dataset import open_dataset
from shardmill.transforms.errors import TooManyRejects

from ...command_line import Shardmill

WIDTH, HEIGHT = 200, 100
BOX = (60, 20, 50, 30)
"""x, y, width and height of the red part."""

MODES = ["keep_ratio", "keep_ratio_largest", "center_crop", "border", "exact"]


def drawn(box: tuple[int, int, int, int] = BOX, size: tuple[int, int] = (WIDTH, HEIGHT)) -> Image.Image:
    image = Image.new("RGB", size, (90, 90, 90))
    x, y, width, height = box
    image.paste((255, 0, 0), (x, y, x + width, y + height))
    return image


def save(image: Image.Image, orientation: int, name: str = "pics/1.png") -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    Path(name).parent.mkdir(exist_ok=True)
    image.save(name, exif=exif)


def objects_of(*boxes: tuple[int, int, int, int]) -> dict[str, Any]:
    """Return objects whose keypoints are the corners of their boxes, and whose masks are the boxes."""
    return {
        "bbox": [list(box) for box in boxes],
        "category": [*range(len(boxes))],
        "area": [float(w * h) for _, _, w, h in boxes],
        "keypoints": [[x, y, 2, x + w, y + h, 1] for x, y, w, h in boxes],
        "segmentation": [json.dumps([[x, y, x + w, y, x + w, y + h, x, y + h]]) for x, y, w, h in boxes],
    }


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def converted(objects: dict[str, Any] | None = None, **image: Any) -> dict[str, Any]:
    line = {"file_name": "1.png", "objects": objects_of(BOX) if objects is None else objects}
    Path("pics/metadata.jsonl").write_text(json.dumps(line) + "\n")
    convert("pics", output="out", image={"encode": {"format": "png"}, **image})
    (row,) = open_dataset("out").to_arrow("train").to_pylist()
    return dict(row)


def red_part(row: dict[str, Any]) -> tuple[list[float], tuple[int, int]]:
    """Return xmin, ymin, xmax and ymax of what is red, in pixels, and the size of the picture."""
    image = Image.open(io.BytesIO(row["image/encoded"]))
    pixels = np.asarray(image.convert("RGB")).astype(int)
    y, x = np.nonzero((pixels[..., 0] > 170) & (pixels[..., 1] < 50))
    return [x.min(), y.min(), x.max() + 1, y.max() + 1], image.size


def box_of(row: dict[str, Any], size: tuple[int, int], index: int = 0) -> list[float]:
    sides = [row[f"image/object/bbox/{side}"][index] for side in ("xmin", "ymin", "xmax", "ymax")]
    return [part * size[axis % 2] for axis, part in enumerate(sides)]


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("mode", MODES)
def test_a_box_is_where_its_object_is_in_each_mode_and_orientation(mode: str, orientation: int) -> None:
    save(drawn(), orientation)
    row = converted(resize={"size": 50, "mode": mode}, orientation="apply")
    found, size = red_part(row)
    assert box_of(row, size) == pytest.approx(found, abs=1)
    mask = Image.open(io.BytesIO(row["image/object/mask"][0]))
    assert mask.size == size
    y, x = np.nonzero(np.asarray(mask))
    assert [x.min(), y.min(), x.max() + 1, y.max() + 1] == pytest.approx(found, abs=1)
    points = [*zip(row["image/object/keypoint/x"], row["image/object/keypoint/y"], strict=True)]
    corners = [sorted(axis) for axis in zip(*points, strict=True)]
    assert [part * size[i] for i, axis in enumerate(corners) for part in axis] == pytest.approx(
        [found[0], found[2], found[1], found[3]], abs=1
    )
    assert row["image/object/keypoint/visibility"] == [2, 1]


def test_a_picture_that_keeps_its_bytes_keeps_its_boxes() -> None:
    save(drawn(), 1)
    row = converted(resize=500)
    assert row["image/object/bbox/xmin"] == pytest.approx([0.3])
    assert row["image/object/area"] == [1500.0]


def test_an_area_is_in_pixels_of_the_picture_that_is_written() -> None:
    save(drawn(), 1)
    assert converted(resize=50)["image/object/area"] == [375.0]


@pytest.mark.parametrize("orientation", [6, 8, 5])
def test_boxes_that_were_drawn_on_the_turned_picture_are_not_turned_again(orientation: int) -> None:
    save(drawn(), orientation)
    turned = red_in(ImageOps.exif_transpose(Image.open("pics/1.png")))
    coco = {
        "images": [{"id": 1, "file_name": "1.png", "width": HEIGHT, "height": WIDTH}],
        "categories": [{"id": 1, "name": "red"}],
        "annotations": [{"id": 1, "image_id": 1, "category_id": 1, "bbox": turned, "iscrowd": 0}],
    }
    Path("coco.json").write_text(json.dumps(coco))
    source = {"paths": ["pics"], "annotations": {"coco": "coco.json"}}
    with pytest.raises(TooManyRejects, match=r"perhaps it is turned by its EXIF orientation"):
        convert(input=source, output="no")
    convert(input=source, output="out", image={"orientation": "apply", "resize": 50, "encode": {"format": "png"}})
    (row,) = open_dataset("out").to_arrow("train").to_pylist()
    found, size = red_part(row)
    assert box_of(row, size) == pytest.approx(found, abs=1)


def red_in(image: Image.Image) -> list[int]:
    """Return x, y, width and height of what is red."""
    y, x = np.nonzero(np.asarray(image.convert("RGB"))[..., 1] < 50)
    return [int(x.min()), int(y.min()), int(x.max() - x.min() + 1), int(y.max() - y.min() + 1)]


def test_an_object_outside_a_crop_is_left_out_and_counted_and_one_on_its_edge_ends_there(shardmill: Shardmill) -> None:
    save(drawn((40, 20, 40, 30)), 1)
    objects = objects_of((0, 0, 30, 100), (40, 20, 40, 30), (90, 10, 10, 10))
    objects["tags"] = [["left"], ["edge"], ["middle"]]
    row = converted(objects, resize={"size": 100, "mode": "center_crop"})
    assert row["image/object/class/label"] == [1, 2]
    assert row["image/object/bbox/xmin"] == pytest.approx([0.0, 0.4])
    assert row["image/object/bbox/xmax"] == pytest.approx([0.3, 0.5])
    assert len(row["image/object/mask"]) == 2
    assert row["image/object/keypoint/visibility"] == [0, 1, 2, 1]  # a corner is outside
    assert row["image/object/keypoint/x"] == pytest.approx([0.0, 0.3, 0.4, 0.5])
    done = shardmill(
        "convert", "pics", "-o", "again", "--set", "image.resize.size=100", "--set", "image.resize.mode=center_crop"
    )
    shown = " ".join((done.out + done.err).split())
    assert "objects that were left out, as they are outside the part of their image that was kept: 1" in shown


def test_a_picture_whose_objects_are_all_outside_stays_without_keys_of_objects() -> None:
    save(drawn(), 1)
    row = converted(objects_of((0, 0, 30, 100)), resize={"size": 100, "mode": "center_crop"})
    assert row["image/width"] == 100
    assert row["image/object/bbox/xmin"] is None


@pytest.mark.parametrize("orientation", range(2, 9))
def test_boxes_that_a_tool_drew_on_pictures_as_it_showed_them_stay_where_they_are(orientation: int) -> None:
    save(drawn(), orientation)
    box = red_in(ImageOps.exif_transpose(Image.open("pics/1.png")))
    objects = {"bbox": [box], "category": [0]}
    row = converted(objects, resize={"size": 50, "mode": "border"}, orientation="apply", boxes_on="turned")
    found, size = red_part(row)
    assert box_of(row, size) == pytest.approx(found, abs=1)


def test_the_number_of_keypoints_is_that_of_those_that_are_left() -> None:
    save(drawn((40, 20, 40, 30)), 1)
    objects = objects_of((40, 20, 40, 30)) | {"num_keypoints": [2]}
    assert converted(objects, resize={"size": 100, "mode": "center_crop"})["image/object/keypoint/num"] == [1]
