from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from shardmill.pipelines import convert
from shardmill.transforms.dataset.reading.open_dataset import open_dataset
from shardmill.transforms.errors import SourceError, TooManyRejects

from ...command_line import Shardmill
from ...label_numbers import in_numbers


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def picture(name: str, labels: str | None, suffix: str = "png") -> None:
    for path in (f"images/{name}.{suffix}", f"labels/{name}.txt"):
        Path(path).parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (20, 10)).save(f"images/{name}.{suffix}")
    if labels is not None:
        Path(f"labels/{name}.txt").write_text(labels)


def run(more: dict[str, Any] | None = None, **settings: Any) -> list[dict[str, Any]]:
    convert(
        "images",
        output="out",
        output__if_exists="replace",
        input__annotations={"yolo": "labels"} | (more or {}),
        **settings,
    )
    rows: list[dict[str, Any]] = in_numbers(open_dataset("out").to_arrow("train")).to_pylist()
    return rows


def corners(row: dict[str, Any], index: int = 0) -> list[float]:
    return [row[f"image/object/bbox/{side}"][index] for side in ("xmin", "ymin", "xmax", "ymax")]


def test_boxes_are_of_the_picture_of_the_same_name_whatever_its_suffix() -> None:
    picture("a/1", "0 0.5 0.5 0.2 0.4\n2 0.25 0.5 0.5 1\n", "jpg")
    picture("2", "")
    empty, two = run()
    assert (empty["image/filename"], empty["image/object/class/label"]) == ("2.png", None)
    assert (two["image/filename"], two["image/source_id"]) == ("a/1.jpg", "a/1")
    assert corners(two) == pytest.approx([0.4, 0.3, 0.6, 0.7])
    assert corners(two, 1) == pytest.approx([0, 0, 0.5, 1])
    assert two["image/object/class/label"] == [0, 2]
    assert "image/object/class/text" not in two


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("data.yaml", "names: [cat, dog]\n"),
        ("data.yaml", "names: {0: cat, 1: dog}\n"),
        ("labels/classes.txt", "cat\ndog\n"),
    ],
)
def test_the_names_of_classes_are_those_beside_the_labels(path: str, text: str) -> None:
    picture("1", "1 0.5 0.5 0.2 0.4\n")
    Path(path).write_text(text)
    (row,) = run(input__label_offset=1)
    assert (row["image/object/class/text"], row["image/object/class/label"]) == (["dog"], [2])
    assert open_dataset("out").labels == {"image/object/class/label": ("_unused_0", "cat", "dog")}
    (row,) = run()
    assert row["image/object/class/label"] == [1]
    assert open_dataset("out").labels == {"image/object/class/label": ("cat", "dog")}


def test_names_of_classes_are_kept_as_they_are_written() -> None:
    picture("1", "".join(f"{number} 0.5 0.5 0.2 0.4\n" for number in range(5)))
    Path("data.yaml").write_text("names: [no, on, 12:30, 1e3, ~]\n")
    run()
    names = ("no", "on", "12:30", "1e3", "~")
    assert open_dataset("out").labels == {"image/object/class/label": names}
    Path("data.yaml").unlink()
    Path("labels/classes.txt").write_text("\ufeffno\non\n12:30\n1e3\n~\n")
    run()
    assert open_dataset("out").labels == {"image/object/class/label": names}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("names: {100000000: a}\n", 'names: "100000000" is not the number of a class, 0 to 99,999; fix it'),
        ("names: {-1: a}\n", 'names: "-1" is not the number of a class'),
        ("names: {cat: 0}\n", 'names: "cat" is not the number of a class'),
        ("a: &a [x, x]\nb: &b [*a, *a]\nnames: *b\n", "cannot be read: it has aliases"),
        ("names: [cat\n", "cannot be read: while parsing a flow sequence"),
        ("names: " + "[" * 5000, "cannot be read: "),
        ("x: [" + "a, " * 300_000 + "]", "far too many values"),
        ("# " + "x" * (5 << 20), "it is over 4 MiB"),
    ],
)
def test_a_data_yaml_whose_names_cannot_be_read_ends_the_run_and_is_named(text: str, said: str) -> None:
    picture("1", "1 0.5 0.5 0.2 0.4\n")
    Path("data.yaml").write_text(text)
    with pytest.raises(SourceError, match=re.escape(said)) as error:
        run()
    assert "data.yaml" in str(error.value)


def test_names_may_be_given() -> None:
    picture("1", "1 0.5 0.5 0.2 0.4\n")
    assert run({"classes": ["a", "b"]})[0]["image/object/class/text"] == ["b"]


def test_a_polygon_becomes_a_mask_and_the_box_around_it() -> None:
    picture("1", "0 0.1 0.2 0.5 0.2 0.5 0.6 0.1 0.6\n1 0 0 1 0 0 1\n")
    picture("2", "")
    row, empty = run({"masks": True})
    assert corners(row) == pytest.approx([0.1, 0.2, 0.5, 0.6])
    masks = [np.asarray(Image.open(io.BytesIO(data))) for data in row["image/object/mask"]]
    assert [mask.shape for mask in masks] == [(10, 20)] * 2
    assert np.argwhere(masks[0]).tolist() == [[y, x] for y in range(2, 6) for x in range(2, 10)]
    assert masks[1].sum() == 100, "half of the picture"
    assert empty["image/object/mask"] is None


def test_of_a_polygon_the_box_alone_is_kept_where_no_masks_are_wanted() -> None:
    picture("1", "0 0.1 0.2 0.5 0.2 0.3 0.6\n")
    (row,) = run()
    assert "image/object/mask" not in row
    assert corners(row) == pytest.approx([0.1, 0.2, 0.5, 0.6])


def test_masks_are_left_out_where_some_objects_are_boxes_and_the_screen_says_so(shardmill: Shardmill) -> None:
    picture("1", "0 0.1 0.2 0.5 0.2 0.3 0.6\n0 0.5 0.5 0.2 0.4\n")
    option = "input.annotations={yolo: labels, masks: true}"
    screen = shardmill("convert", "images", "-o", "out", "--set", option)
    assert '"segmentation" is left out: not all objects have it, but 1 of 2' in screen.out
    assert "mask" not in screen.out.partition("feature")[2]
    silent = shardmill("convert", "images", "-o", "other", "--set", "input.annotations.yolo=labels")
    assert "segmentations of 1 of 2 objects are not read; masks need one for each object" in silent.out


def test_a_polygon_over_the_edge_is_a_reject_or_ends_there() -> None:
    picture("1", "0 0.9 0.2 1.2 0.2 1.2 0.6 0.9 0.6\n")
    with pytest.raises(TooManyRejects, match="goes over its edge"):
        run()
    (row,) = run({"masks": True}, schema={"boxes": "clip"})
    mask = np.asarray(Image.open(io.BytesIO(row["image/object/mask"][0])))
    assert np.argwhere(mask).tolist() == [[y, x] for y in range(2, 6) for x in range(18, 20)]


def test_keypoints_of_poses_are_no_polygon_and_are_counted(shardmill: Shardmill) -> None:
    Path("data.yaml").write_text("kpt_shape: [2, 2]\nnames: [person]\n")
    picture("1", "0 0.5 0.5 0.2 0.4 0.1 0.1 0.9 0.9\n")
    screen = shardmill("convert", "images", "-o", "out", "--set", "input.annotations.yolo=labels")
    assert "objects with keypoints (kpt_shape), which are not read: 1" in screen.out
    (row,) = in_numbers(open_dataset("out").to_arrow("train")).to_pylist()
    assert corners(row) == pytest.approx([0.4, 0.3, 0.6, 0.7])


@pytest.mark.parametrize("line", ["0 0.5 0.5 0.2", "x 0.5 0.5 0.2 0.4", "0 nan 0.5 0.2 0.4", "-1 0.5 0.5 0.2 0.4", "0"])
def test_a_line_that_is_none_makes_its_picture_a_reject_with_its_number(line: str) -> None:
    picture("1", f"0 0.5 0.5 0.2 0.4\n\n{line}\n")
    picture("2", "0 0.5 0.5 0.2 0.4\n")
    with pytest.raises(TooManyRejects, match=r"labels/1\.txt.*line 3"):
        run()
    assert [row["image/source_id"] for row in run(max_rejects=1)] == ["2"]


def test_labels_of_no_picture_are_a_reject() -> None:
    picture("1", "0 0.5 0.5 0.2 0.4\n")
    picture("2", "0 0.5 0.5 0.2 0.4\n")
    Path("images/2.png").unlink()
    assert len(run(max_rejects=1)) == 1
    (line,) = map(json.loads, Path("out/rejects/00000001.jsonl").read_text().splitlines())
    assert (line["source"], "there is no picture 2" in line["errors"][0]["message"]) == ("labels/2.txt", True)


def test_a_box_over_the_edge_is_a_reject_or_ends_there() -> None:
    picture("1", "0 0.95 0.5 0.2 0.4\n")
    with pytest.raises(TooManyRejects, match="goes over its edge"):
        run()
    assert corners(run(schema={"boxes": "clip"})[0]) == pytest.approx([0.85, 0.3, 1, 0.7])


@pytest.mark.parametrize(
    ("name", "labels"),
    [("train2017/1", "labels"), ("train2017/1", "labels/train2017"), ("part/train/1", "labels")],
)
def test_labels_that_are_all_in_one_folder_are_of_pictures_in_a_folder_of_its_name(name: str, labels: str) -> None:
    picture(name, "0 0.5 0.5 0.2 0.4\n")
    (row,) = run({"yolo": labels}, input__splits="none")
    assert (row["image/filename"], row["image/object/class/label"]) == (f"{name}.png", [0])
