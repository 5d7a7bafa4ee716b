from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image
from shardmill.pipelines import append, convert
from shardmill.pipelines.config.load import load_config
from shardmill.transforms.dataset.integrity.verify import verify_dataset
from shardmill.transforms.dataset.reading.open_dataset import open_dataset
from shardmill.transforms.errors import SchemaError, TooManyRejects, UsageError


def picture(width: int, height: int, kind: str = "png", mode: str = "RGB") -> bytes:
    channels = {"RGB": (3,), "L": ()}[mode]
    pixels = np.random.default_rng(width * 1000 + height).integers(0, 256, (height, width, *channels), np.uint8)
    memory = io.BytesIO()
    Image.fromarray(pixels, mode).save(memory, kind)
    return memory.getvalue()


PICTURES = {"a/1.png": picture(4, 3), "a/2.jpg": picture(10, 20, "jpeg"), "3.gif": picture(7, 5, "gif", "L")}
FEATURES = ["channels", "colorspace", "encoded", "format", "height", "width"]


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, data in PICTURES.items():
        (tmp_path / "d" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "d" / name).write_bytes(data)
    (tmp_path / "d" / "cut.jpg").write_bytes(PICTURES["a/2.jpg"][:100])
    (tmp_path / "d" / "text.png").write_bytes(b"no picture")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def of_paths(*paths: str | None, name: str = "d/t.csv") -> str:
    Path(name).write_text("id,photo\n" + "".join(f"{row},{path or ''}\n" for row, path in enumerate(paths)))
    return name


def of_bytes(values: list[Any], kind: pa.DataType | None = None, name: str = "t.parquet") -> str:
    pq.write_table(pa.table({"id": range(len(values)), "photo": pa.array(values, kind)}), name)
    return name


def settings(image: str = "path", **rule: Any) -> dict[str, Any]:
    return {"output": "out", "schema": {"columns": {"photo": {"image": image, **rule}}}}


def photos(path: str = "out") -> list[dict[str, Any]]:
    """Return the features of the picture of each record."""
    rows = open_dataset(path).to_arrow("train").to_pylist()
    return [{key.removeprefix("photo/"): row[key] for key in row if key.startswith("photo/")} for row in rows]


def codes(path: str = "out") -> list[tuple[int, str, str]]:
    lines = map(json.loads, Path(path, "rejects", "00000001.jsonl").read_text().splitlines())
    return [(line["row"], error["column"], error["code"]) for line in lines for error in line["errors"]]


def test_paths_become_the_features_that_images_of_a_folder_have() -> None:
    convert(of_paths(*PICTURES), **settings())
    found = photos()
    assert [one["encoded"] for one in found] == [*PICTURES.values()]
    assert [one["filename"] for one in found] == [*PICTURES]
    assert [(one["format"], one["width"], one["height"], one["channels"]) for one in found] == [
        ("png", 4, 3, 3), ("jpeg", 10, 20, 3), ("gif", 7, 5, 1),
    ]  # fmt: skip
    assert verify_dataset("out").ok


def test_bytes_become_the_same_without_a_name_of_a_file() -> None:
    convert(of_bytes([*PICTURES.values()]), **settings("bytes"))
    assert [sorted(one) for one in photos()] == [FEATURES] * 3
    assert [one["encoded"] for one in photos()] == [*PICTURES.values()]


@pytest.mark.parametrize("order", [("bytes", "path"), ("path", "bytes")])
def test_bytes_and_path_as_hugging_face_exports_them_are_one_picture(order: tuple[str, str]) -> None:
    kind = pa.struct([(name, {"bytes": pa.binary(), "path": pa.string()}[name]) for name in order])
    convert(of_bytes([{"bytes": PICTURES[name], "path": name} for name in PICTURES], kind), **settings("bytes"))
    assert [(one["filename"], one["encoded"]) for one in photos()] == [*PICTURES.items()]


def test_exports_are_pictures_without_a_word_in_the_config_and_image_none_leaves_them_as_they_are() -> None:
    source = of_bytes([{"bytes": PICTURES[name], "path": name} for name in PICTURES])
    convert(source, output="out")
    assert [(one["filename"], one["encoded"]) for one in photos()] == [*PICTURES.items()]
    assert sorted(photos()[0]) == sorted([*FEATURES, "filename"])
    convert(source, output="plain", schema={"columns": {"photo": {"image": "none"}}})
    plain = open_dataset("plain").to_arrow("train").column("photo").to_pylist()
    assert plain == [{"bytes": PICTURES[name], "path": name} for name in PICTURES]


def test_an_export_without_its_bytes_is_a_reject_that_names_the_path() -> None:
    with pytest.raises(TooManyRejects, match=r"there is a path without the bytes of the picture"):
        convert(
            of_bytes([{"bytes": PICTURES["3.gif"], "path": None}, {"bytes": None, "path": "a/1.png"}]), output="out"
        )


def test_exports_whose_paths_are_all_null_are_pictures_too() -> None:
    convert(data=[{"id": 1, "photo": {"bytes": PICTURES["3.gif"], "path": None}}], output="out")
    assert [one["encoded"] for one in photos()] == [PICTURES["3.gif"]]


def test_a_list_of_exports_is_a_list_in_each_feature() -> None:
    one, two, three = ({"bytes": PICTURES[name], "path": name} for name in PICTURES)
    convert(of_bytes([[one, two], [], [three]]), output="out")
    assert [row["encoded"] for row in photos()] == [[one["bytes"], two["bytes"]], [], [three["bytes"]]]
    assert [row["filename"] for row in photos()] == [["a/1.png", "a/2.jpg"], [], ["3.gif"]]
    assert [row["width"] for row in photos()] == [[4, 10], [], [7]]
    assert verify_dataset("out").ok


def test_a_list_of_paths_is_a_list_of_pictures_and_one_that_is_none_rejects_its_row() -> None:
    pq.write_table(
        pa.table({"id": [1, 2, 3], "photo": [["a/1.png", "3.gif"], ["none.png", "a/1.png"], ["3.gif"]]}), "d/t.parquet"
    )
    convert("d/t.parquet", **settings(), max_rejects=1)
    assert [row["filename"] for row in photos()] == [["a/1.png", "3.gif"], ["3.gif"]]
    assert [row["encoded"] for row in photos()] == [[PICTURES["a/1.png"], PICTURES["3.gif"]], [PICTURES["3.gif"]]]
    assert codes() == [(2, "photo", "MISSING_FILE")]


@pytest.mark.parametrize(
    ("null", "written", "rejected"), [("error", 1, [2, 3]), ("drop_row", 1, [3]), ("absent", 2, [3])]
)
def test_a_null_list_is_what_the_config_says_and_a_null_in_a_list_is_a_reject(
    null: str, written: int, rejected: list[int]
) -> None:
    values = [[PICTURES["3.gif"]], None, [PICTURES["3.gif"], None]]
    convert(of_bytes(values, pa.list_(pa.binary())), **settings("bytes", null=null), max_rejects=2)
    assert len(photos()) == written
    assert codes() == [(row, "photo", "DECLARED_NOT_NULL") for row in rejected]


def test_what_is_no_good_picture_is_a_reject_with_its_row_and_one_reason() -> None:
    table = of_paths("a/1.png", "none.png", "cut.jpg", "text.png", "../x.png", None, "3.gif")
    convert(table, **settings(), max_rejects=5)
    assert [one["filename"] for one in photos()] == ["a/1.png", "3.gif"]
    reasons = ["MISSING_FILE", "TRUNCATED", "NOT_AN_IMAGE", "OUTSIDE_ROOT", "DECLARED_NOT_NULL"]
    assert codes() == [(row, "photo", code) for row, code in enumerate(reasons, 2)]


@pytest.mark.parametrize(("null", "written", "nullable"), [("absent", 2, True), ("drop_row", 1, False)])
def test_nulls_are_what_the_config_says(null: str, written: int, nullable: bool) -> None:
    convert(of_bytes([PICTURES["3.gif"], None]), **settings("bytes", null=null))
    assert len(photos()) == written
    schema = {feature.name: feature for feature in open_dataset("out").manifest.schema or ()}
    assert schema["photo/encoded"].nullable is nullable
    if null == "absent":
        assert set(photos()[1].values()) == {None}


@pytest.mark.parametrize(("null", "nullable"), [("absent", True), ("drop_row", False), ("error", False)])
def test_the_path_of_a_picture_is_null_where_the_picture_may_be(null: str, *, nullable: bool) -> None:
    convert(of_paths("3.gif", None), **settings(null=null), max_rejects=1)
    schema = {feature.name: feature for feature in open_dataset("out").manifest.schema or ()}
    assert schema["photo/filename"].nullable is nullable
    assert [one["filename"] for one in photos()] == (["3.gif", None] if nullable else ["3.gif"])
    assert verify_dataset("out").ok


def test_sounds_in_bytes_and_path_are_rejects_with_the_option_that_leaves_them_as_they_are() -> None:
    source = of_bytes([{"bytes": b"RIFF\0\0\0\0WAVE", "path": "a.wav"}])
    option = "if the column holds no pictures: --set schema.columns.photo.image=none"
    with pytest.raises(TooManyRejects, match=option):
        convert(source, output="out")
    with pytest.raises(TooManyRejects) as said:
        convert(of_paths("bad"), **settings())
    assert "image=none" not in str(said.value), "there the config says that they are pictures"


def test_an_empty_picture_is_no_reason_to_take_a_column_for_another() -> None:
    with pytest.raises(TooManyRejects, match="NOT_AN_IMAGE: the file is empty") as said:
        convert(of_bytes([{"bytes": b"", "path": "a.jpg"}]), output="out")
    assert "image=none" not in str(said.value)


def test_a_null_is_a_reject_where_the_config_is_silent() -> None:
    with pytest.raises(TooManyRejects, match=r"there is no picture; .*--set schema.columns.photo.null=drop_row"):
        convert(of_bytes([PICTURES["3.gif"], None]), **settings("bytes"))


def test_a_path_without_bytes_is_no_null() -> None:
    values = [{"bytes": PICTURES["3.gif"], "path": None}, {"bytes": None, "path": "a/1.png"}, None]
    convert(of_bytes(values), **settings("bytes", null="drop_row"), max_rejects=1)
    assert codes() == [(2, "photo", "MISSING_FILE")]
    assert len(photos()) == 1


@pytest.mark.parametrize("null", ["error", "drop_row"])
def test_an_append_takes_pictures_and_nulls_as_the_dataset_does(null: str) -> None:
    convert(of_paths(*PICTURES), **settings(null=null))
    append(of_paths("a/1.png", None, name="d/more.csv"), output="out", max_rejects=1)
    assert [one["filename"] for one in photos()] == [*PICTURES, "a/1.png"]
    rejects = Path("out/rejects/00000002.jsonl")
    assert rejects.exists() is (null == "error")


def test_exports_are_appended_to_pictures_that_paths_named() -> None:
    convert(of_paths(*PICTURES), **settings())
    append(of_bytes([{"bytes": PICTURES["3.gif"], "path": "other.gif"}]), output="out")
    assert photos()[-1] == photos()[2] | {"filename": "other.gif"}


def test_a_column_may_have_another_name_and_several_may_hold_pictures() -> None:
    Path("d/t.csv").write_text("left,right\na/1.png,a/2.jpg\n")
    columns = {"left": {"image": "path", "name": "l"}, "right": {"image": "path"}}
    convert("d/t.csv", output="out", schema={"columns": columns})
    (row,) = open_dataset("out").to_arrow("train").to_pylist()
    assert (row["l/format"], row["right/format"]) == ("png", "jpeg")
    assert json.loads(Path("out/features.json").read_text())["featuresDict"]["features"].keys() == {"l", "right"}


@pytest.mark.parametrize(
    ("pictures", "shape"), [(["a/1.png", "a/2.jpg"], ["-1", "-1", "3"]), (["3.gif"], ["-1", "-1", "-1", "3"])]
)
def test_tfds_is_told_of_the_formats_that_are_there(pictures: list[str], shape: list[str]) -> None:
    convert(of_paths(*pictures), **settings())
    features = json.loads(Path("out/features.json").read_text())["featuresDict"]["features"]
    assert features["photo"]["featuresDict"]["features"]["encoded"]["image"]["shape"]["dimensions"] == shape
    assert verify_dataset("out").ok


@pytest.mark.parametrize(
    ("make", "image", "message"),
    [
        (lambda: of_paths("a/1.png"), "bytes", "it holds string; if it holds paths: --set .*image=path"),
        (lambda: of_bytes([1.5]), "bytes", "it holds double; leave image out"),
        (lambda: of_bytes([{"bytes": b"", "size": 1}]), "bytes", "leave image out"),
    ],
)  # fmt: skip
def test_other_columns_are_refused(make: Any, image: str, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        convert(make(), **settings(image))


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ({"null": "mask"}, "null: fill and mask do not go with image"),
        ({"type": "binary"}, "image does not go with type"),
        ({"file": "path"}, "file does not go with image"),
        ({"strip": True}, "image does not go with strip"),
    ],
)
def test_keys_that_do_not_go_with_it_are_refused(rule: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        load_config({"input": {"format": "csv", "paths": ["d/t.csv"]}, **settings(**rule)})


def test_a_picture_that_tensorflow_does_not_decode_is_a_reject_with_what_tables_have_for_it() -> None:
    columns = {"photo": {"image": "bytes"}}
    with pytest.raises(TooManyRejects) as refused:
        convert(of_bytes([picture(4, 3, "tiff")]), output="out", schema={"columns": columns})
    assert "write all images as JPEG (--set image.encode.format=jpeg)" in str(refused.value)
    assert "input.formats" not in str(refused.value)
