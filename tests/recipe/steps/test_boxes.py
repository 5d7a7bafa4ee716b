from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from shardmill.pipelines import append, convert
from shardmill.transforms.dataset.integrity.verify import verify_dataset
from shardmill.transforms.dataset.reading.open_dataset import open_dataset
from shardmill.transforms.errors import SchemaError, TooManyRejects
from shardmill.transforms.recipe.step import Column
from shardmill.transforms.recipe.steps.boxes import Boxes, BoxesByType, NoBoxes

from ...command_line import Shardmill

WIDTH, HEIGHT = 10, 20
OBJECT = "image/object"


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def picture() -> bytes:
    memory = io.BytesIO()
    Image.new("RGB", (WIDTH, HEIGHT)).save(memory, "png")
    return memory.getvalue()


def album(*objects: Any) -> str:
    """Write a folder of pictures with these objects, and return its path."""
    Path("album").mkdir(exist_ok=True)
    lines = []
    for number, one in enumerate(objects):
        Path(f"album/{number}.png").write_bytes(picture())
        lines.append(json.dumps({"file_name": f"{number}.png"} | ({} if one is None else {"objects": one})))
    Path("album/metadata.jsonl").write_text("\n".join(lines) + "\n")
    return "album"


def records(path: str = "out") -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = open_dataset(path).to_arrow("train").to_pylist()
    return [{key.removeprefix(f"{OBJECT}/"): row[key] for key in row if key.startswith(OBJECT)} for row in rows]


def test_boxes_become_the_keys_of_tensorflow_normalised_by_their_picture() -> None:
    one = {"bbox": [[1, 2, 3, 4], [0, 0, 10, 20]], "categories": [7, 0], "area": [12.0, 200.0], "iscrowd": [0, 1]}
    convert(album(one, {"bbox": [], "categories": [], "area": [], "iscrowd": []}, None), output="out")
    first, empty, absent = records()
    assert first == {
        "bbox/xmin": pytest.approx([0.1, 0]), "bbox/ymin": pytest.approx([0.1, 0]),
        "bbox/xmax": pytest.approx([0.4, 1]), "bbox/ymax": pytest.approx([0.3, 1]),
        "class/label": [7, 0], "area": [12, 200], "is_crowd": [0, 1],
    }  # fmt: skip
    assert empty == absent == dict.fromkeys(first), "a picture without objects has none of the keys"
    assert verify_dataset("out").ok


@pytest.mark.parametrize("lists", [True, False])
def test_objects_of_an_export_are_structs_of_lists_or_lists_of_structs(*, lists: bool) -> None:
    boxes, names = [[1.0, 2.0, 3.0, 4.0], [2.0, 2.0, 2.0, 2.0]], ["cat", "dog"]
    of_lists = {"bbox": boxes, "category": names}
    of_structs = [{"bbox": box, "category": name} for box, name in zip(boxes, names, strict=True)]
    image = {"bytes": picture(), "path": "a.png"}
    rows = [{"image": image, "objects": of_lists if lists else of_structs}, {"image": image, "objects": None}]
    pq.write_table(pa.Table.from_pylist(rows), "t.parquet")
    convert("t.parquet", output="out")
    assert [row["class/text"] for row in records()] == [names, None]
    assert records()[0]["bbox/ymax"] == pytest.approx([0.3, 0.2])


@pytest.mark.parametrize(
    ("box", "what"),
    [
        ([1, 2, 0, 4], r"box 2 \[1, 2, 0, 4\] of a picture of 10 x 20 pixels has no extent"),
        ([1, 2, 3, -4], "has no extent"),
        ([12, 2, 3, 4], "goes over its edge; fix it, or let boxes end there: --set schema.boxes=clip"),
        ([-1, 2, 3, 4], "goes over its edge"),
        ([1, 18, 3, 4], "goes over its edge"),
        ([1, 2, 3], "box 2 of a picture of 10 x 20 pixels is not four numbers"),
        ([5, 1, 1e-9, 5], "has no extent"),
    ],
)
def test_a_box_that_is_none_is_a_reject_of_its_picture_with_its_place(box: list[float], what: str) -> None:
    good = {"bbox": [[1, 2, 3, 4]], "categories": [1]}
    source = album(good, {"bbox": [[1, 2, 3, 4], box], "categories": [1, 2]}, good)
    with pytest.raises(TooManyRejects, match=what):
        convert(source, output="out")
    convert(source, output="out", max_rejects=1)
    assert [row["class/label"] for row in records()] == [[1], [1]]
    (reject,) = map(json.loads, Path("out/rejects/00000001.jsonl").read_text().splitlines())
    assert [(error["column"], error["code"]) for error in reject["errors"]] == [("objects", "BAD_BOX")]


@pytest.mark.parametrize("over", [True, False])
def test_boxes_that_are_corners_are_read_by_the_key_that_the_screen_names(*, over: bool, shardmill: Shardmill) -> None:
    album(*[{"bbox": [[2, 2, 9 if over else 5, 10]], "category": [1]}] * 3)
    screen = shardmill("convert", "album", "-o", "out")
    assert screen.code == (4 if over else 0), screen.err
    said = screen.err if over else screen.out
    key = re.search(r"xmin, ymin, xmax and ymax: --set (schema\.box_format=\S+?);?\s", said)
    assert key, said
    done = shardmill("convert", "album", "-o", "out", "--overwrite", "--set", key[1])
    assert (done.code, "read as" in done.out) == (0, False), done.err
    row = records()[0]
    corners = [row[f"bbox/{side}"][0] for side in ("xmin", "ymin", "xmax", "ymax")]
    assert corners == pytest.approx([0.2, 0.1, 0.9 if over else 0.5, 0.5])


@pytest.mark.parametrize(
    ("box", "said"), [([0.25, 0.1, 0.5, 0.5], True), ([0, 0, 1, 1], False), ([0.5, 1, 3, 4], False)]
)
def test_boxes_that_look_like_parts_of_their_pictures_are_counted(
    box: list[float], *, said: bool, shardmill: Shardmill
) -> None:
    album(*[{"bbox": [box], "category": [1]}] * 3)
    screen = shardmill("convert", "album", "-o", "out")
    assert screen.code == 0, screen.err
    line = re.search(r"Warning: pictures whose boxes have fractions and no number over 1.5, .*: 3\n", screen.out)
    assert (line is not None) == said, screen.out


def test_a_box_over_the_edge_is_no_corners_where_these_do_not_fit_either() -> None:
    source = album({"bbox": [[2, 2, 11, 10]], "category": [1]})
    with pytest.raises(TooManyRejects, match="goes over its edge; fix it, or let") as found:
        convert(source, output="out")
    assert "xyxy" not in str(found.value)
    with pytest.raises(
        TooManyRejects, match=r"box 1 \[2, 2, 11, 10\] of a picture of 10 x 20 pixels goes over its edge; fix"
    ):
        convert(source, output="out", schema={"box_format": "xyxy"})


def test_boxes_over_the_edge_end_there_with_clip_and_one_beside_the_picture_is_still_a_reject() -> None:
    over = {"bbox": [[-1, 15, 5, 9], [1, 2, 3, 4]], "categories": [1, 2]}
    source = album(over, {"bbox": [[11, 0, 3, 3]], "categories": [3]})
    convert(source, output="out", schema={"boxes": "clip"}, max_rejects=1)
    (row,) = records()
    assert [row[f"bbox/{side}"][0] for side in ("xmin", "ymin", "xmax", "ymax")] == pytest.approx([0, 0.75, 0.4, 1])
    assert row["class/label"] == [1, 2]


def test_rows_with_another_number_of_classes_are_rejects_and_those_around_them_keep_theirs() -> None:
    box = [1, 1, 1, 1]
    rows = [([box], [1]), ([box, box], [2]), ([box], [3, 4]), ([box, box], [5, 6]), ([], [7]), ([box], [8])]
    source = album(*({"bbox": boxes, "categories": numbers} for boxes, numbers in rows))
    with pytest.raises(TooManyRejects, match='there are 2 boxes and 1 value of "categories"; give one for each box'):
        convert(source, output="out")
    convert(source, output="out", max_rejects=3)
    assert [row["class/label"] for row in records()] == [[1], [5, 6], [8]]


def test_a_field_that_a_row_lacks_is_named() -> None:
    source = album({"bbox": [[1, 1, 1, 1]]}, {"bbox": [[1, 1, 1, 1]], "id": [7]})
    with pytest.raises(TooManyRejects, match='there is 1 box and no values of "id"; give one for each box'):
        convert(source, output="out")


def test_a_bad_picture_is_one_reason_and_its_boxes_are_none() -> None:
    source = album({"bbox": [[1, 1, 99, 1]], "categories": [1]}, {"bbox": [[1, 1, 1, 1]], "categories": [2]})
    Path("album/0.png").write_bytes(b"none")
    convert(source, output="out", max_rejects=1)
    (reject,) = map(json.loads, Path("out/rejects/00000001.jsonl").read_text().splitlines())
    assert [error["code"] for error in reject["errors"]] == ["NOT_AN_IMAGE"]


def test_an_append_takes_boxes_too() -> None:
    one = {"bbox": [[1, 1, 1, 1]], "categories": [2]}
    convert(album(one), output="out")
    append(album(one, one), output="out", output__if_exists="refuse", force=True)
    assert [row["class/label"] for row in records()] == [[2]] * 3


def test_a_column_that_the_config_speaks_of_and_one_without_boxes_stay_as_they_are() -> None:
    one = {"bbox": [[1, 1, 1, 1]], "categories": [2]}
    convert(album(one), output="out", schema={"columns": {"objects": {"image": "none"}}})
    assert records() == [{}]
    convert(album({"bbox": ["here"], "n": [1]}), output="other")
    assert records("other") == [{}]


@pytest.mark.parametrize(
    "objects", [{"categories": [1], "area": [2.0]}, {"bbox": [1, 1, 1, 1], "categories": 1}, [[1, 2]], "chair, table"]
)
def test_objects_without_boxes_stay_a_column_and_the_screen_says_so(objects: Any, shardmill: Shardmill) -> None:
    screen = shardmill("convert", album(objects), "-o", "out", "--dry-run")
    said = " ".join(screen.out.split())
    assert '"objects" has no field "bbox" that is a list of boxes, [[x, y, width, height], ...]' in said
    one = {"bbox": [[1, 1, 1, 1]], "categories": [2]}
    assert "has no field" not in shardmill("convert", album(one), "-o", "out", "--dry-run").out


@pytest.mark.parametrize(
    ("one", "other", "message"),
    [
        ({"bbox": [[1, 1, 1, 1]], "categories": [1]}, {"bbox": [[1, 1, 1, 1]], "categories": ["cat"]},
         'line 1: a value of "objects.categories" is a.*, and in album/metadata.jsonl line 2 .*text.*; fix one'),
        ({"bbox": [[1, 1, 1, 1]], "categories": [1]}, [],
         "is an object, and in .* line 2 a list without values; write null"),
        ({"bbox": [[1, 1, 1, 1]], "categories": [1, "cat"]}, {"bbox": []},
         'line 1: an array of "objects.categories" holds an integer and text'),
    ],
)  # fmt: skip
def test_objects_of_several_types_are_refused_with_their_field(one: Any, other: Any, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        convert(album(one, other), output="out")


def test_a_column_of_another_name_has_boxes_too_where_it_is_called_objects(shardmill: Shardmill) -> None:
    source = album({"bbox": [[1, 1, 1, 1]], "categories": [2]})
    table = Path("album/metadata.jsonl")
    table.write_text(table.read_text().replace('"objects"', '"the faces"'))
    option = ["--set", 'schema.columns."the faces".name=objects']
    said = " ".join(shardmill("convert", source, "-o", "plain", "--dry-run").out.split())
    assert f"\"the faces\" has boxes; to make those of the pictures of them: --set '{option[1]}'" in said
    screen = shardmill("convert", source, "-o", "out", *option)
    assert (screen.code, "has boxes" in screen.out) == (0, False)
    assert [row["class/label"] for row in records()] == [[2]]
    silent = ["--set", 'schema.columns."the faces".image=none']
    assert "has boxes" not in shardmill("convert", source, "-o", "silent", *silent).out


@pytest.mark.parametrize("pair", [("categories", "category"), ("category", "label"), ("iscrowd", "is_crowd")])
def test_two_fields_of_one_key_are_refused(pair: tuple[str, str]) -> None:
    source = album({"bbox": [[1, 1, 1, 1]], pair[0]: [1], pair[1]: [2]})
    with pytest.raises(SchemaError, match=rf'the fields "{pair[0]}" and "{pair[1]}" of objects would both be'):
        convert(source, output="out")


@pytest.mark.parametrize("lists", [True, False])
def test_fields_that_become_no_key_stay_in_the_column(*, lists: bool) -> None:
    first, second = {"color": "red"}, {"color": "blue"}
    rows = [
        {"bbox": [1.0, 1, 1, 1], "tags": ["a", "b"], "more": first},
        {"bbox": [2.0, 2, 2, 2], "tags": [], "more": second},
    ]
    of_lists = {name: [row[name] for row in rows] for name in rows[0]}
    image = {"bytes": picture(), "path": "a.png"}
    pq.write_table(pa.Table.from_pylist([{"image": image, "objects": of_lists if lists else rows}]), "t.parquet")
    convert("t.parquet", output="out")
    (row,) = open_dataset("out").to_arrow("train").to_pylist()
    assert row["image/object/bbox/xmin"] == pytest.approx([0.1, 0.2])
    kept = row["objects"] if lists else {name: [one[name] for one in row["objects"]] for name in ("tags", "more")}
    assert kept == {"tags": [["a", "b"], []], "more": [first, second]}


def test_boxes_beside_a_list_of_pictures_are_of_none_of_them() -> None:
    Path("album").mkdir()
    Path("album/0.png").write_bytes(picture())
    row = {"file_names": ["0.png"], "objects": {"bbox": [[1, 1, 1, 1]], "id": [1]}}
    Path("album/metadata.jsonl").write_text(json.dumps(row))
    convert("album", output="out")
    assert open_dataset("out").to_arrow("train").column("objects").to_pylist() == [row["objects"]]


def test_of_several_pictures_none_is_taken_for_that_of_the_boxes() -> None:
    lists = pa.struct([("bbox", pa.list_(pa.list_(pa.float32())))])
    sized = [pa.field(f"{name}/{key}", pa.int64()) for name in "ab" for key in ("encoded", "width", "height")]
    columns = [Column(field) for field in (*sized, pa.field("objects", lists))]
    none = BoxesByType().step(columns)
    assert isinstance(none, NoBoxes)
    assert "there is not one picture that they are of (a, b)" in none.detected
    assert none.plan(columns) == columns
    found = BoxesByType().step(columns[:3] + columns[-1:])
    assert isinstance(found, Boxes)
    assert found.image == "a"


SIDE = st.floats(0.5, 4)


@settings(deadline=None, max_examples=40)
@given(st.lists(st.lists(st.tuples(st.floats(0, 6), st.floats(0, 16), SIDE, SIDE), max_size=4), min_size=1, max_size=6))
def test_each_box_is_that_of_its_row(rows: list[list[tuple[float, float, float, float]]]) -> None:
    kind = pa.struct([("bbox", pa.list_(pa.list_(pa.float64(), 4))), ("id", pa.list_(pa.int64()))])
    objects = [{"bbox": row, "id": list(range(len(row)))} for row in rows]
    names = ["image/encoded", "image/width", "image/height", "objects"]
    arrays = [[b""] * len(rows), [WIDTH] * len(rows), [HEIGHT] * len(rows)]
    batch = pa.RecordBatch.from_arrays([*map(pa.array, arrays), pa.array(objects, kind)], names)
    step = BoxesByType().step([Column(field) for field in batch.schema])
    assert isinstance(step, Boxes)
    planned = step.plan([Column(field) for field in batch.schema])
    done = step.apply(batch, "")
    assert {name: done.batch.schema.field(name).type for name in done.batch.schema.names} == {
        column.name: column.field.type for column in planned
    }
    for row, found in zip(rows, done.batch.to_pylist(), strict=True):
        assert found[f"{OBJECT}/id"] == (list(range(len(row))) or None)
        for index, side in enumerate(("xmin", "ymin")):
            wanted = [box[index] / (WIDTH, HEIGHT)[index] for box in row] or None
            assert found[f"{OBJECT}/bbox/{side}"] == (None if wanted is None else pytest.approx(wanted, abs=1e-6))
