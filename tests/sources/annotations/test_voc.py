from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from shardmill.pipelines import append, convert
from shardmill.transforms.dataset.reading.open_dataset import open_dataset
from shardmill.transforms.errors import SchemaError, SourceError, TooManyRejects

from ...command_line import Shardmill
from ...label_numbers import in_numbers


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("JPEGImages").mkdir()
    Path("Annotations").mkdir()
    return tmp_path


def thing(name: str, *corners: object, **more: object) -> str:
    sides = "".join(
        f"<{side}>{corner}</{side}>" for side, corner in zip(("xmin", "ymin", "xmax", "ymax"), corners, strict=True)
    )
    others = "".join(f"<{key}>{value}</{key}>" for key, value in more.items())
    return f"<object><name>{name}</name>{others}<bndbox>{sides}</bndbox></object>"


def picture(name: str, *things: str, text: str | None = None) -> None:
    Image.new("RGB", (20, 10)).save(f"JPEGImages/{name}.jpg")
    xml = f"<annotation><filename>{name}.jpg</filename>{''.join(things)}</annotation>"
    Path(f"Annotations/{name}.xml").write_text(xml if text is None else text)


def run(**more: Any) -> list[dict[str, Any]]:
    convert("JPEGImages", output="out", input__annotations={"voc": "Annotations"}, **more)
    rows: list[dict[str, Any]] = in_numbers(open_dataset("out").to_arrow("train")).to_pylist()
    return rows


def rejects() -> list[tuple[str, str]]:
    lines = map(json.loads, Path("out/rejects/00000001.jsonl").read_text().splitlines())
    return [(line["source"], error["message"]) for line in lines for error in line["errors"]]


def test_each_file_is_a_record_with_the_keys_of_tensorflow() -> None:
    flags = {"pose": "Left", "truncated": 1, "difficult": 0}
    picture("b", thing("dog", 2, 1, 12, 6, **flags), thing("cat", 1, 1, 2, 2, **flags))
    picture("a")
    none, two = run()
    assert (none["image/source_id"], none["image/object/bbox/xmin"]) == ("a", None)
    assert [two[f"image/object/bbox/{side}"][0] for side in ("xmin", "ymin", "xmax", "ymax")] == pytest.approx(
        [0.1, 0.1, 0.6, 0.6]
    )
    assert two["image/object/class/text"] == ["dog", "cat"]
    assert two["image/object/class/label"] == [1, 0], "classes are numbered in the order of their names"
    assert (two["image/object/difficult"], two["image/object/truncated"]) == ([0, 0], [1, 1])
    assert two["image/object/view"] == ["Left", "Left"]


@pytest.mark.parametrize(("folder", "database", "first"), [("VOC", "roboflow.ai", 0), ("", "roboflow.ai", 1)])
def test_the_first_corners_of_supervision_are_moved_by_one(
    folder: str, database: str, first: int, shardmill: Shardmill
) -> None:
    head = f"<folder>{folder}</folder><filename>a.jpg</filename><source><database>{database}</database></source>"
    picture("a", text=f"<annotation>{head}{thing('cat', 3, 2, 12, 6)}</annotation>")
    screen = shardmill("convert", "JPEGImages", "-o", "out", "--set", "input.annotations.voc=Annotations")
    (row,) = open_dataset("out").to_arrow("train").to_pylist()
    corners = [row[f"image/object/bbox/{side}"][0] * size for side, size in (("xmin", 20), ("ymin", 10), ("xmax", 20))]
    assert corners == pytest.approx([2 + first, 1 + first, 12])
    assert ("1 file of supervision, whose first corners count pixels from 1" in screen.out) == (not first)


def test_keys_of_objects_that_are_not_read_are_counted(shardmill: Shardmill) -> None:
    box = "<bndbox><xmin>1</xmin></bndbox>"
    picture("a", thing("cat", 1, 1, 2, 2, occluded=0), thing("cat", 1, 1, 2, 2, occluded=1, part=box))
    picture("b", thing("cat", 1, 1, 2, 2, pose="Left", occluded=0))
    screen = shardmill("convert", "JPEGImages", "-o", "out", "--set", "input.annotations.voc=Annotations")
    assert screen.code == 0, screen.err
    assert "objects with <occluded>, which is not read: 3" in screen.out
    assert "objects with <part>, which is not read: 1" in screen.out
    assert screen.out.count("which is not read") == 2


def test_the_first_class_has_the_number_that_is_asked_for() -> None:
    picture("a", thing("cat", 1, 1, 2, 2))
    assert run(input__label_offset=1)[0]["image/object/class/label"] == [1]
    assert open_dataset("out").labels == {"image/object/class/label": ("_unused_0", "cat")}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is no XML"),
        ("<annotation>", "is no XML"),
        ("<html/>", "it begins with <html>, and not with <annotation>"),
        ("<annotation><object/></annotation>", "names no picture"),
        ('<!DOCTYPE x [<!ENTITY a "b">]><annotation><filename>&a;</filename></annotation>', "declares entities"),
    ],
)
def test_a_file_that_is_none_of_vocs_is_a_reject_and_the_run_goes_on(text: str, message: str) -> None:
    picture("a", thing("cat", 1, 1, 2, 2))
    picture("bad", text=text)
    with pytest.raises(TooManyRejects):
        run()
    assert len(run(max_rejects=1)) == 1
    ((source, said),) = rejects()
    assert source == "Annotations/bad.xml"
    assert message in said


@pytest.mark.parametrize("corners", [(5, 1, 4, 2), ("x", 1, 4, 2), ("", "", "", ""), ("nan", 1, 4, 2), (1, 1, 21, 2)])
def test_a_box_that_is_none_is_a_reject_of_its_picture(corners: tuple[object, ...]) -> None:
    picture("a", thing("cat", *corners))
    picture("b", thing("cat", 1, 1, 2, 2))
    assert [row["image/source_id"] for row in run(max_rejects=1)] == ["b"]


def test_an_object_without_a_name_is_a_reject_of_its_picture() -> None:
    picture("a", thing("", 1, 1, 2, 2))
    picture("b", thing("cat", 1, 1, 2, 2))
    assert [row["image/source_id"] for row in run(max_rejects=1)] == ["b"]


def test_a_folder_of_no_such_file_is_refused() -> None:
    picture("a", text="<html/>")
    with pytest.raises(SourceError, match=r"Annotations/a\.xml: is no file of VOC's annotations"):
        run()


def test_boxes_of_a_picture_of_another_size_are_rejects() -> None:
    picture("a", thing("cat", 1, 1, 2, 2), "<size><width>40</width><height>20</height><depth>3</depth></size>")
    picture("b", thing("cat", 1, 1, 2, 2), "<size><width>20</width><height>10</height><depth>3</depth></size>")
    assert [row["image/source_id"] for row in run(max_rejects=1)] == ["b"]


def more(**settings: Any) -> list[Any]:
    """Append two pictures to one with a dog; return the classes of all."""
    picture("a", thing("dog", 1, 1, 2, 2))
    offset = {"input__label_offset": settings["input__label_offset"]} if "input__label_offset" in settings else {}
    run(schema={"boxes": "reject"}, **offset)
    Path("JPEGImages").rename("first")
    Path("JPEGImages").mkdir()
    Path("Annotations/a.xml").unlink()
    picture("b", thing("cat", 1, 1, 2, 2))
    picture("c", thing("bird", 1, 1, 2, 2))
    append("JPEGImages", output="out", **{"input__annotations": {"voc": "Annotations"}} | settings)
    return [row["image/object/class/label"] for row in in_numbers(open_dataset("out").to_arrow("train")).to_pylist()]


def test_an_append_keeps_the_numbers_of_classes_and_adds_new_ones_at_the_end() -> None:
    assert more() == [[0], [2], [1]]
    assert open_dataset("out").labels == {"image/object/class/label": ("dog", "bird", "cat")}


def test_classes_may_be_given_in_an_append() -> None:
    classes = {"voc": "Annotations", "classes": ["dog", "cat"]}
    assert more(input__annotations=classes, max_rejects=1) == [[0], [1]]
    assert open_dataset("out").labels == {"image/object/class/label": ("dog", "cat")}


def test_classes_in_another_order_than_that_of_the_dataset_are_refused() -> None:
    classes = {"voc": "Annotations", "classes": ["bird", "cat", "dog"]}
    with pytest.raises(SchemaError, match=r'class 0 is "bird" in these files, and "dog" in .*out, generation 1'):
        more(input__annotations=classes)


def test_an_append_to_classes_that_begin_with_1_keeps_their_numbers_and_names() -> None:
    assert more(input__label_offset=1) == [[1], [3], [2]]
    assert open_dataset("out").labels == {"image/object/class/label": ("_unused_0", "dog", "bird", "cat")}
