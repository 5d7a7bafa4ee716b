"""Pictures that are exported to a folder, and converted again, are the same records."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shardmill.pipelines import convert, open_dataset
from shardmill.pipelines.runs.adopt import adopt_files
from shardmill.transforms.dataset.reading.exported_pictures import (
    Objects,
    PictureFolder,
    PicturePlan,
    _from_to,
    picture_path,
    safe_name,
)
from shardmill.transforms.dataset.reading.exported_tables import ExportedRows
from shardmill.transforms.dataset.storage.direct_file import new_folder
from shardmill.transforms.errors import DamageError, UsageError

SAMPLES = Path(__file__).parents[3] / "configs/samples"


def exported(dataset: Path, folder: Path, **which: Any) -> Path:
    rows = ExportedRows.plan(open_dataset(dataset), **which, one_table=False)
    schema = rows.dataset.schema
    assert schema is not None
    plan = PicturePlan.of(schema, rows.dataset.labels, rows.columns, "here")
    with new_folder(str(folder)) as root:
        PictureFolder(root, rows, plan).write()
    return folder


def rows_of(path: Path, split: str) -> list[dict[str, Any]]:
    rows = [row for batch in open_dataset(path)[split].batches() for row in batch.to_pylist()]
    return sorted(rows, key=str)


def test_classes_of_a_folder_become_the_same_records_again_without_a_table_beside_them(tmp_path: Path) -> None:
    convert(SAMPLES / "pets", output=tmp_path / "first", max_rejects=1)
    folder = exported(tmp_path / "first", tmp_path / "pictures")
    assert sorted(path.name for path in (folder / "train").iterdir()) == ["cat", "dog", "owl"]
    convert(folder, output=tmp_path / "again")
    first, again = rows_of(tmp_path / "first", "train"), rows_of(tmp_path / "again", "train")
    assert len(first) == 24
    assert [row | {"image/filename": f"train/{row['image/filename']}"} for row in first] == again
    assert open_dataset(tmp_path / "first").labels == open_dataset(tmp_path / "again").labels


def test_splits_and_columns_of_a_table_beside_pictures_become_the_same_records_again(tmp_path: Path) -> None:
    convert(SAMPLES / "albums", output=tmp_path / "first")
    convert(exported(tmp_path / "first", tmp_path / "pictures"), output=tmp_path / "again")
    for split in ("train", "val"):
        assert rows_of(tmp_path / "again", split) == rows_of(tmp_path / "first", split)
    assert list(open_dataset(tmp_path / "again").records()) == list(open_dataset(tmp_path / "first").records())


def test_boxes_classes_masks_and_captions_become_the_same_records_again(tmp_path: Path) -> None:
    coco = [str(SAMPLES / "street" / name) for name in ("instances.json", "captions.json")]
    convert(SAMPLES / "street/pictures", output=tmp_path / "first", annotations={"coco": coco})
    folder = exported(tmp_path / "first", tmp_path / "pictures")
    lines = (folder / "train/metadata.jsonl").read_text().splitlines()
    objects = {line["file_name"]: line["objects"] for line in map(json.loads, lines)}
    assert objects["street-1.png"]["bbox"] == []
    assert objects["street-3.png"]["bbox"] == [[8, 30, 20, 40], [44, 62, 30, 14]]
    assert objects["street-3.png"]["category"] == ["potted plant", "car"]
    settings = {"schema__columns": {"image/source_id": {"type": "string"}}}
    convert(folder, output=tmp_path / "again", **settings)
    first, again = rows_of(tmp_path / "first", "train"), rows_of(tmp_path / "again", "train")
    assert again == first


def test_what_names_no_file_is_written_under_a_name_that_does(tmp_path: Path) -> None:
    picture = (SAMPLES / "pets/cat/cat-1.jpg").read_bytes()
    png = (SAMPLES / "street/pictures/street-1.png").read_bytes()
    table = pa.table(
        {
            "photo": pa.array(
                [
                    {"bytes": picture, "path": "../../a.png"},
                    {"bytes": picture, "path": "b/1.jpg"},
                    {"bytes": picture, "path": "b/1.jpg"},
                    {"bytes": png, "path": None},
                ]
            ),
            "pages": pa.array([[{"bytes": picture, "path": None}] * 2, [], [], []]),
            "kind": ["a/b", "..", "_x", ""],
            "price": pa.array([0.1, None, None, None], pa.float32()),
        }
    )
    columns: dict[str, Any] = {"kind": {"label": True}}
    convert(data=table, output=tmp_path / "first", order="source", schema__columns=columns)
    folder = exported(tmp_path / "first", tmp_path / "pictures")
    lines = [json.loads(line) for line in (folder / "train/metadata.jsonl").read_text().splitlines()]
    assert [line["photo_file_name"] for line in lines] == ["a-b/a.jpg", "-./1.jpg", "-x/1.jpg", "-/00000003.png"]
    assert lines[0]["pages_file_names"] == ["pages/00000000.jpg", "pages/00000000-00000000.jpg"]
    assert [line["kind"] for line in lines] == ["a/b", "..", "_x", ""]
    assert lines[0]["price"] == 0.1
    assert all((folder / "train" / line["photo_file_name"]).is_file() for line in lines)
    assert {path.parent.parent for path in folder.rglob("*.jpg")} == {folder / "train"}
    columns["price"] = {"type": "float32"}
    convert(folder, output=tmp_path / "again", order="source", schema__columns=columns)
    again = open_dataset(tmp_path / "again")
    assert [row["photo/encoded"] for row in again] == [picture, picture, picture, png]
    assert [row["kind"] for row in again] == [row["kind"] for row in open_dataset(tmp_path / "first")]


def test_a_class_that_is_no_name_of_a_folder_is_kept_in_the_table(tmp_path: Path) -> None:
    picture = (SAMPLES / "pets/cat/cat-1.jpg").read_bytes()
    names = ["cat", "a/b"]
    table = pa.table({"image": [{"bytes": picture, "path": f"{n}.jpg"} for n in range(2)], "image/class/label": names})
    columns = {"image/class/label": {"label": True}}
    convert(data=table, output=tmp_path / "first", schema__columns=columns)
    lines = (exported(tmp_path / "first", tmp_path / "pictures") / "train/metadata.jsonl").read_text().splitlines()
    assert [json.loads(line)["image/class/label"] for line in lines] == names


def test_two_equal_names_of_one_class_are_both_kept(tmp_path: Path) -> None:
    picture = (SAMPLES / "pets/cat/cat-1.jpg").read_bytes()
    table = pa.table({"image": [{"bytes": picture, "path": "1.jpg"}] * 3, "image/class/label": ["cat"] * 3})
    convert(data=table, output=tmp_path / "first", schema__columns={"image/class/label": {"label": True}})
    folder = exported(tmp_path / "first", tmp_path / "pictures") / "train"
    assert sorted(path.name for path in folder.rglob("*.*")) == ["1-00000001.jpg", "1-00000002.jpg", "1.jpg"]


def test_files_of_other_writers_whose_text_is_bytes_become_folders_too(tmp_path: Path) -> None:
    coco = [str(SAMPLES / "street/instances.json")]
    convert(SAMPLES / "pets", output=tmp_path / "pets", max_rejects=1)
    convert(SAMPLES / "street/pictures", output=tmp_path / "street", annotations={"coco": coco, "masks": True})
    for name in ("pets", "street"):
        (tmp_path / f"adopted-{name}").mkdir()
        shutil.copy(tmp_path / name / "train-00000.tfrecord", tmp_path / f"adopted-{name}/a-train.tfrecord-0-of-1")
        adopt_files(str(tmp_path / f"adopted-{name}"))
    folder = exported(tmp_path / "adopted-pets", tmp_path / "pets-folder")
    assert {path.name for path in (folder / "train").iterdir() if path.is_dir()} == {"cat", "dog", "owl"}
    folder = exported(tmp_path / "adopted-street", tmp_path / "street-folder")
    lines = map(json.loads, (folder / "train/metadata.jsonl").read_text().splitlines())
    objects = {line["file_name"]: line["objects"] for line in lines}
    assert objects["street-3.png"]["category"] == ["potted plant", "car"]
    assert "counts" in objects["street-3.png"]["segmentation"][0]


def test_a_dataset_without_pictures_is_refused_with_what_it_can_be(tmp_path: Path) -> None:
    convert(data=pa.table({"a": [1]}), output=tmp_path / "first")
    with pytest.raises(UsageError, match=r"here: no column has pictures; export a table: -o NAME\.parquet"):
        exported(tmp_path / "first", tmp_path / "pictures")
    assert not (tmp_path / "pictures").exists()


@given(st.floats(0, 1, width=32), st.floats(0, 1, width=32), st.integers(1, 20_000))
def test_a_box_in_pixels_is_the_same_part_of_its_picture_again(one: float, other: float, size: int) -> None:
    low, high = sorted((one, other))
    start, length = _from_to(low, high, size)
    assert np.float32(start / size) == np.float32(low)
    assert np.float32((start + length) / size) == np.float32(high)


def test_objects_whose_lists_differ_in_length_are_damage() -> None:
    sides = {f"image/object/bbox/{side}": [0.5] for side in ("xmin", "xmax", "ymin", "ymax")}
    row: dict[str, Any] = {"image/width": 2, "image/height": 2, "image/object/class/text": ["a", "b"]} | sides
    objects = Objects.of("image", list(row))
    assert objects is not None
    with pytest.raises(DamageError, match="row 7: its objects have other numbers of values than boxes"):
        objects.value(row, "row 7")
    with pytest.raises(DamageError, match="row 7: the sides of its boxes do not belong together"):
        objects.value(row | {"image/object/bbox/xmin": []}, "row 7")


@given(st.text(), st.text())
def test_no_name_leads_out_of_its_folder_or_is_skipped(name: str, folder: str) -> None:
    for path in (picture_path(name, None, 3, "png"), picture_path(name, safe_name(folder), 3, "jpeg")):
        steps = path.split("/")
        assert all(step and step[0] not in "._" and len(step.encode()) < 255 for step in steps)
        assert path.isprintable() or "\x7f" not in path
