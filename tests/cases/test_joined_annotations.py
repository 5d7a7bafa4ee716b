"""Annotations whose ids, classes, names or kinds are not those that COCO's own files have."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from shardmill.pipelines import convert
from shardmill.transforms.dataset.reading.open_dataset import open_dataset
from shardmill.transforms.errors import SourceError, TooManyRejects

from ..command_line import Shardmill

CLASSES = [{"id": 0, "name": "apple"}, {"id": 1, "name": "pear"}]


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("pictures").mkdir()
    for number in (1, 2):
        Image.new("RGB", (20, 10), (number, 0, 0)).save(f"pictures/{number}.png")


def image(number: int, **more: Any) -> dict[str, Any]:
    return {"id": number, "file_name": f"{number}.png", "width": 20, "height": 10} | more


def box(number: int, **more: Any) -> dict[str, Any]:
    return {"id": number, "image_id": number, "category_id": 1, "bbox": [1, 1, 4, 4]} | more


def run(images: list[Any], annotations: list[Any], categories: list[Any] = CLASSES, **more: Any) -> None:
    Path("a.json").write_text(json.dumps({"images": images, "annotations": annotations, "categories": categories}))
    convert("pictures", output="out", input__annotations={"coco": "a.json"}, **more)


def texts() -> list[Any]:
    return [row.get("image/object/class/text") for row in open_dataset("out").to_arrow("train").to_pylist()]


@pytest.mark.parametrize(
    ("ids", "categories"),
    [
        ({"image_id": "{}"}, CLASSES),
        ({"category_id": "1"}, CLASSES),
        ({}, [{"id": "0", "name": "apple"}, {"id": "1", "name": "pear"}]),
        ({"category_id": "1"}, [{"id": 0.0, "name": "apple"}, {"id": 1.0, "name": "pear"}]),
    ],
)
def test_ids_that_are_text_on_one_side_and_numbers_on_the_other_join(
    ids: dict[str, str], categories: list[Any]
) -> None:
    annotations = [box(n, **{key: value.format(n) for key, value in ids.items()}) for n in (1, 2)]
    run([image(1), image(2)], annotations, categories)
    assert texts() == [["pear"], ["pear"]]
    assert open_dataset("out").labels == {"image/object/class/label": ("apple", "pear")}


def test_ids_of_pictures_that_are_text_are_kept_as_they_are_written() -> None:
    run([image(1, id="1"), image(2, id="02")], [box(1), box(2, image_id="02")])
    assert texts() == [["pear"], ["pear"]]
    assert [row["image/source_id"] for row in open_dataset("out").to_arrow("train").to_pylist()] == ["1", "02"]


@pytest.mark.parametrize("lost", ["1.png", "007", None, 9])
def test_annotations_that_find_no_picture_end_the_run_before_anything_is_written(lost: Any) -> None:
    with pytest.raises(
        SourceError, match=r"a\.json: 1 of 2 annotations are of no picture in the list of images: their"
    ):
        run([image(1), image(2)], [box(1), box(2, image_id=lost)])
    assert not Path("out").exists()


def test_an_object_without_a_class_is_a_reject_with_its_id_and_others_keep_the_names_of_theirs() -> None:
    images, annotations = [image(1), image(2)], [box(1, id="a7", category_id=None), box(2)]
    with pytest.raises(TooManyRejects, match=r"picture 1\.png: .*UNKNOWN_CLASS: object 1 \(id a7\) has no class"):
        run(images, annotations)
    run(images, annotations, max_rejects=1)
    assert texts() == [["pear"]]


def test_a_panoptic_file_is_refused_by_what_it_is() -> None:
    segments = {"image_id": 1, "file_name": "1.png", "segments_info": [{"id": 7, "category_id": 1}]}
    with pytest.raises(SourceError, match=r"is a panoptic file: .*instances_\*\.json"):
        run([image(1)], [segments])


@pytest.mark.parametrize("key", ["box", "rbbox", "value"])
def test_annotations_that_say_nothing_that_is_read_end_the_run(key: str) -> None:
    with pytest.raises(SourceError, match=f'2 of 2 annotations have no "bbox".*the first has id, image_id, {key};'):
        run([image(1), image(2)], [{"id": n, "image_id": n, key: [1, 2]} for n in (1, 2)])


def test_a_picture_of_lvis_is_read_by_the_end_of_its_address_with_a_word(shardmill: Shardmill) -> None:
    images = [{"id": 1, "coco_url": "http://x.example/train2017/1.png?a=b", "width": 20, "height": 10}]
    Path("a.json").write_text(json.dumps({"images": images, "annotations": [box(1)], "categories": CLASSES}))
    screen = shardmill("convert", "pictures", "-o", "out", "--set", "input.annotations.coco=a.json")
    assert 'named by the last part of "coco_url", as they have no "file_name": 1' in screen.out, screen.err
    assert texts() == [["pear"]]


@pytest.mark.parametrize(
    ("fields", "lacking"),
    [({"id": 1, "url": "x"}, '"file_name"'), ({"file_name": "1.png"}, '"id"'), ({}, '"id" and "file_name"')],
)
def test_a_picture_without_an_id_or_a_name_is_refused_by_what_it_lacks(fields: dict[str, Any], lacking: str) -> None:
    with pytest.raises(SourceError, match=f"images\\[0\\] has no {lacking}: "):
        run([fields], [])


def test_backslashes_of_windows_are_read_as_folders_with_a_word(shardmill: Shardmill) -> None:
    Path("pictures/sub").mkdir()
    Path("pictures/1.png").rename("pictures/sub/1.png")
    images = [image(1, file_name="sub\\1.png")]
    Path("a.json").write_text(json.dumps({"images": images, "annotations": [box(1)], "categories": CLASSES}))
    screen = shardmill("convert", "pictures", "-o", "out", "--set", "input.annotations.coco=a.json")
    assert 'pictures whose "file_name" has "\\" between folders, which is read as "/": 1' in screen.out, screen.err
    assert texts() == [["pear"]]
