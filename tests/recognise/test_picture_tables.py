from __future__ import annotations

import io
import json
import os
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image
from shardmill.pipelines import append, convert
from shardmill.pipelines.config.load import load_config
from shardmill.transforms.dataset.integrity.verify import verify_dataset
from shardmill.transforms.dataset.reading.open_dataset import open_dataset
from shardmill.transforms.errors import ConfigError, InputError, SchemaError, TooManyRejects, UsageError
from shardmill.transforms.read import pick_source
from shardmill.transforms.sources.images.source import ImageSource
from shardmill.transforms.sources.registry.options import ImagesInput
from shardmill.transforms.sources.registry.settings import Settings

from ..command_line import Shardmill
from ..label_numbers import in_numbers


def picture(number: int) -> bytes:
    memory = io.BytesIO()
    Image.new("RGB", (number + 1, 3), (number, 0, 0)).save(memory, "png")
    return memory.getvalue()


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def pictures(*paths: str) -> None:
    for number, path in enumerate(paths):
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_bytes(picture(number))


def table(path: str, rows: list[dict[str, Any]]) -> None:
    if path.endswith(".parquet"):
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif path.endswith(".jsonl"):
        Path(path).write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        lines = [",".join(rows[0]), *(",".join(f'"{cell}"' for cell in row.values()) for row in rows)]
        Path(path).write_text("\n".join(lines) + "\n")


def records(split: str = "train", path: str = "out") -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = in_numbers(open_dataset(path).to_arrow(split)).to_pylist()
    return rows


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_the_rows_of_a_table_beside_pictures_are_the_records_in_their_order(kind: str) -> None:
    pictures("pets/0.png", "pets/cats/1.png", "pets/2.png")
    order = ["2.png", "cats/1.png", "./0.png"]
    table(f"pets/metadata.{kind}", [{"file_name": name, "caption": f"the {name}"} for name in order])
    convert("pets", output="out")
    found = records()
    assert [row["image/filename"] for row in found] == order
    assert [row["image/encoded"] for row in found] == [picture(2), picture(1), picture(0)]
    assert [row["caption"] for row in found] == [f"the {name}" for name in order]
    assert [row["image/width"] for row in found] == [3, 2, 1]
    assert "image/class/label" not in found[0], "once there is a table, no class is read from folders"
    assert verify_dataset("out").ok


def test_tables_in_folders_of_splits_give_the_splits() -> None:
    pictures("d/train/0.png", "d/train/1.png", "d/Test/0.png")
    table("d/train/metadata.csv", [{"file_name": "1.png", "n": 1}, {"file_name": "0.png", "n": 2}])
    table("d/Test/metadata.csv", [{"file_name": "0.png", "n": 3}])
    summary = convert("d", output="out")
    assert {split: counts.records for split, counts in summary.manifest.splits.items()} == {"test": 1, "train": 2}
    assert [row["n"] for row in records("train")] == [1, 2]
    assert [row["image/encoded"] for row in records("test")] == [picture(2)]


def test_the_folders_of_pictures_give_the_splits_of_one_table_and_a_picture_in_none_is_a_reject() -> None:
    pictures("d/train/0.png", "d/val/a/1.png", "d/2.png")
    names = ["val/a/1.png", "2.png", "./train/0.png"]
    table("d/metadata.jsonl", [{"file_name": name} for name in names])
    summary = convert("d", output="out", max_rejects=1)
    assert sorted(summary.manifest.splits) == ["train", "val"]
    assert [row["image/filename"] for row in records("val")] == ["val/a/1.png"]
    (reject,) = map(json.loads, Path("out/rejects/00000001.jsonl").read_text().splitlines())
    assert reject["row"] == 2
    assert "in no folder of a split (train, val)" in reject["errors"][0]["message"]


@pytest.mark.parametrize("place", ["d", "d/images", "d/data"])
def test_folders_of_splits_within_a_folder_of_pictures_give_the_splits_of_one_table(place: str) -> None:
    above = "" if place == "d/images" else "images"
    names = [os.path.join(above, split, f"{number}.png") for split in ("train", "test") for number in range(2)]
    pictures(*(os.path.join(place, name) for name in names))
    table(f"{place}/metadata.jsonl", [{"file_name": name, "n": number} for number, name in enumerate(names)])
    Path("d/docs/val").mkdir(parents=True)  # without pictures
    convert("d", output="out")
    assert [row["n"] for row in records("train")] == [0, 1]
    assert [row["n"] for row in records("test")] == [2, 3]
    pictures(os.path.join(place, above, "7.png"))
    table(f"{place}/metadata.jsonl", [{"file_name": name} for name in [*names, os.path.join(above, "7.png")]])
    with pytest.raises(TooManyRejects, match=r'7\.png" is in no folder of a split \(test, train\)'):
        convert("d", output="other")


@pytest.mark.parametrize("pictures_in", ["d", "d/images"])
def test_folders_of_splits_within_a_folder_of_pictures_give_the_splits_of_a_table_of_boxes(pictures_in: str) -> None:
    names = [f"images/{split}/{number}.png" for split in ("train", "test") for number in range(2)]
    pictures(*(f"d/{name}" for name in names))
    rows = [[os.path.relpath(f"d/{name}", pictures_in), 0, 0, 1, 1, "cat"] for name in names]
    header = ("filename", "xmin", "ymin", "xmax", "ymax", "class")
    table("d/labels.csv", [dict(zip(header, row, strict=True)) for row in rows])
    convert(pictures_in, output="out", input__annotations={"boxes": "d/labels.csv"})
    assert [len(records(split)) for split in ("train", "test")] == [2, 2]


def test_a_picture_in_no_folder_of_a_split_is_read_by_the_option_of_its_error(shardmill: Shardmill) -> None:
    pictures("d/train/0.png", "d/val/1.png", "d/2.png")
    table("d/metadata.jsonl", [{"file_name": name} for name in ("train/0.png", "val/1.png", "2.png")])
    refused = shardmill("convert", "d", "-o", "out")
    assert refused.code == 4
    option = re.search("read all rows as one split: --set ([a-z.=]+)", refused.err.replace("\n", " "))
    assert option is not None, refused.err
    assert shardmill("convert", "d", "-o", "one", "--set", option[1]).code == 0
    assert len(records(path="one")) == 3


def test_other_columns_name_pictures_of_other_features_and_lists_of_them() -> None:
    pictures("d/0.png", "d/0_mask.png", "d/a.png", "d/b.png")
    rows = [{"file_name": "0.png", "mask_file_name": "0_mask.png", "views_file_names": ["b.png", "a.png"]}]
    table("d/metadata.jsonl", rows)
    convert("d", output="out")
    (row,) = records()
    assert (row["image/encoded"], row["mask/encoded"]) == (picture(0), picture(1))
    assert row["views/encoded"] == [picture(3), picture(2)]
    assert row["views/filename"] == ["b.png", "a.png"]


def test_a_list_of_pictures_is_named_images() -> None:
    pictures("d/0.png", "d/1.png")
    table("d/metadata.jsonl", [{"file_names": ["1.png", "0.png"], "text": "x"}, {"file_names": [], "text": "y"}])
    convert("d", output="out")
    assert [row["images/width"] for row in records()] == [[2, 1], []]


def test_pictures_that_no_row_names_are_counted_and_named(shardmill: Shardmill) -> None:
    pictures("d/0.png", "d/1.png", "d/deep/2.png", "d/.hidden.png")
    table("d/metadata.jsonl", [{"file_name": ".//0.png"}, {"file_name": "0.png"}])
    for more in (["--dry-run"], []):
        screen = shardmill("convert", "d", "-o", "out", *more)
        assert screen.code == 0, screen.err
        assert "Detected: 2 pictures are named by no row or annotation, and are left out, such as d/" in screen.out
        assert "Detected: d/metadata.jsonl names the pictures: rows become records" in screen.out


def test_a_table_that_is_named_alone_counts_what_lies_beside_the_pictures_of_its_rows(shardmill: Shardmill) -> None:
    pictures("d/images/0.png", "d/images/1.png", "d/images/2.png", "d/images/deep/3.png", "d/4.png")
    table("d/labels.csv", [{"id": "0"}])
    table("d/more.csv", [{"id": "1"}])
    how = ["--set", "schema.columns.id.image=path", "--set", "schema.files_root=d/images"]
    how += ["--set", "schema.files_suffix=.png"]
    said = "Detected: 2 pictures are named by no row or annotation, and are left out, such as d/images/"
    assert said in shardmill("convert", "d/labels.csv", "-o", "out", "--dry-run", *how).out
    assert said in shardmill("convert", "d/labels.csv", "-o", "out", *how).out
    screen = shardmill("append", "d/more.csv", "-o", "out", *how[2:4])
    assert screen.code == 0, screen.err
    assert "named by no row" not in screen.out, "older rows may name the others"
    table("d/labels.csv", [{"image": "images/1.png"}, {"image": "4.png"}])
    said = "Detected: 2 pictures are named by no row or annotation, and are left out, such as d/images/"
    assert said in shardmill("convert", "d/labels.csv", "-o", "two", "--set", "schema.columns.image.image=path").out


def test_masks_and_files_that_are_no_pictures_are_not_counted_as_pictures_that_no_row_names(
    shardmill: Shardmill,
) -> None:
    pictures("d/masks/0.png", "d/train/1.png", "d/train/1_mask.png", "d/train/2.png", "d/train/00017")
    table("d/train/metadata.jsonl", [{"file_name": "1.png"}])
    Path("d/train/labels.cache").write_text("made up")
    screen = shardmill("convert", "d", "-o", "out")
    assert "Detected: 2 pictures are named by no row or annotation, and are left out, such as d/" in screen.out
    assert "2 masks, by the names of files or folders, are not read, such as d/" in screen.out
    Path("d/masks").rename("masks")  # a word above the root says nothing
    pictures("masks/d/1.png", "masks/d/2.png")
    table("masks/d/metadata.jsonl", [{"file_name": "1.png"}])
    screen = shardmill("convert", "masks/d", "-o", "two")
    assert "1 picture is named by no row or annotation, and is left out, such as masks/d/2.png" in screen.out


def test_a_missing_picture_is_a_reject_of_its_row_and_the_run_goes_on() -> None:
    pictures("d/0.png")
    table("d/metadata.csv", [{"file_name": name} for name in ("0.png", "gone.png", "../0.png", "/etc/passwd")])
    with pytest.raises(TooManyRejects):
        convert("d", output="out")
    convert("d", output="out", max_rejects=3)
    lines = list(map(json.loads, Path("out/rejects/00000001.jsonl").read_text().splitlines()))
    assert [(line["source"], line["row"], line["errors"][0]["code"]) for line in lines] == [
        ("d/metadata.csv", 2, "MISSING_FILE"),
        ("d/metadata.csv", 3, "OUTSIDE_ROOT"),
        ("d/metadata.csv", 4, "OUTSIDE_ROOT"),
    ]


def test_metadata_none_reads_the_folders_alone() -> None:
    pictures("d/cat/0.png", "d/dog/1.png")
    table("d/metadata.csv", [{"file_name": "cat/0.png"}])
    convert("d", output="out", input__metadata="none", input__format="images")
    assert [row["image/class/text"] for row in records()] == ["cat", "dog"]


def test_columns_of_the_table_take_all_that_a_config_says_of_columns() -> None:
    pictures("d/0.png", "d/1.png")
    table("d/metadata.csv", [{"file_name": f"{n}.png", "kind": kind, "n": n} for n, kind in enumerate("ab")])
    rules = {"kind": {"label": True}, "file_name": {"name": "photo"}}
    convert("d", output="out", input__where="n > 0", input__columns=["kind", "n"], schema={"columns": rules})
    (row,) = records()
    assert (row["photo/encoded"], row["kind"], row["n"]) == (picture(1), 0, 1)


def test_an_append_takes_a_folder_with_a_table_too() -> None:
    pictures("one/0.png", "two/1.png")
    table("one/metadata.csv", [{"file_name": "0.png", "text": "a"}])
    table("two/metadata.csv", [{"file_name": "1.png", "text": "b"}])
    convert("one", output="out")
    append("two", output="out")
    assert [row["text"] for row in records()] == ["a", "b"]


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"d/metadata.csv": [{"file_name": "0.png"}], "d/metadata.jsonl": [{"file_name": "0.png"}]}, "two kinds"),
        ({"d/metadata.csv": [{"picture": "0.png"}]}, r'names pictures \(picture\); call the one that does "file_name"'),
        ({"d/metadata.jsonl": [{"a": 1}]}, "none of its columns names pictures"),
    ],
)
def test_tables_that_do_not_fit_are_refused_with_the_way_out(
    files: dict[str, list[dict[str, Any]]], message: str
) -> None:
    pictures("d/0.png")
    for path, rows in files.items():
        table(path, rows)
    with pytest.raises(ConfigError, match=f"(?s){message}.*input.metadata=none"):
        convert("d", output="out")
    convert("d", output="out", input__metadata="none", input__format="images")
    assert len(records()) == 1


def test_a_folder_without_a_table_beside_one_with_it_is_refused() -> None:
    pictures("one/0.png", "two/1.png")
    table("one/metadata.csv", [{"file_name": "0.png"}])
    with pytest.raises(ConfigError, match=r"two: has no table beside its pictures, and one/metadata\.csv is one"):
        convert(["one", "two"], output="out")


@pytest.mark.parametrize("key", ["layout", "labels", "sha256", "ignore", "formats"])
def test_an_option_of_folders_is_refused_beside_a_table(key: str) -> None:
    pictures("d/0.png")
    table("d/metadata.csv", [{"file_name": "0.png"}])
    values = {"layout": "flat", "labels": ["a"], "sha256": True, "ignore": ["x"], "formats": ["png"]}
    with pytest.raises(UsageError, match=rf"input.{key} is for folders alone"):
        load_config({"input": {"paths": ["d"], key: values[key]}, "output": {"path": "out"}})


def test_a_column_called_image_is_refused_with_the_option_that_renames_it() -> None:
    pictures("d/0.png")
    table("d/metadata.csv", [{"file_name": "0.png", "image": "x"}])
    text = 'named "image": "file_name" and "image" in the source; rename one: --set schema.columns.image.name=image_2'
    with pytest.raises(SchemaError, match=text):
        convert("d", output="out")
    convert("d", output="out", schema__columns__image__name="image_2")
    assert records()[0]["image_2"] == "x"


def test_a_source_that_is_picked_by_its_files_says_that_it_does_not_read_the_table() -> None:
    pictures("d/0.png")
    table("d/metadata.csv", [{"file_name": "0.png"}])
    with pytest.raises(InputError, match="a table beside the pictures names them: `convert` reads it") as caught:
        pick_source(["d"])
    hint = str(caught.value).partition("read the folders alone: ")[2]
    names = {"ImageSource": ImageSource, "ImagesInput": ImagesInput, "Settings": Settings}
    assert eval(hint, names).list_files().files == 1


def test_a_table_that_is_deeper_and_a_split_without_one_are_refused() -> None:
    pictures("d/train/cats/0.png", "e/train/0.png", "e/val/1.png")
    table("d/train/cats/metadata.csv", [{"file_name": "0.png"}])
    table("e/train/metadata.csv", [{"file_name": "0.png"}])
    with pytest.raises(ConfigError, match=r"d/train/cats/metadata\.csv: .* this one is deeper; give its folder"):
        convert("d", output="out")
    with pytest.raises(ConfigError, match="e/val: has no table beside its pictures, and e/train has one; add it, or"):
        convert("e", output="out")


def test_a_bad_line_of_the_table_is_a_reject_and_an_empty_table_is_named() -> None:
    pictures("d/0.png", "e/0.png")
    Path("d/METADATA.jsonl").write_text('{"file_name": "0.png"}\n{bad\n')
    convert("d", output="out", max_rejects=1)
    assert len(records()) == 1
    Path("e/metadata.csv").write_text("")
    with pytest.raises(ConfigError, match=r"e/metadata\.csv: names no column, so no pictures"):
        convert("e", output="out")


def test_with_a_limit_no_picture_is_counted_as_one_without_a_row(shardmill: Shardmill) -> None:
    pictures("d/0.png", "d/1.png")
    table("d/metadata.csv", [{"file_name": "0.png"}, {"file_name": "1.png"}])
    screen = shardmill("convert", "d", "-o", "out", "--limit", "1")
    assert screen.code == 0, screen.err
    assert "no row names" not in screen.out


def test_a_column_that_is_declared_as_bytes_is_no_text_where_the_table_is_read_for_the_count() -> None:
    pictures("pets/0.png", "pets/1.png")
    Path("pets/metadata.csv").write_bytes(b"file_name,caption\n0.png,caf\xe9\n1.png,x\n")
    with pytest.raises(Exception, match=r"not UTF-8.*--set schema.columns.caption.type=binary"):
        convert("pets", output="out")
    convert("pets", output="out", schema__columns__caption__type="binary")
    assert [row["caption"] for row in records()] == [b"caf\xe9", b"x"]


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_pictures_without_a_suffix_are_named_by_their_table_too(kind: str) -> None:
    pictures("pets/0", "pets/more/1")
    table(f"pets/metadata.{kind}", [{"file_name": "more/1", "n": 1}, {"file_name": "0", "n": 2}])
    convert("pets", output="out")
    assert [(row["n"], row["image/filename"], row["image/width"]) for row in records()] == [
        (1, "more/1", 2),
        (2, "0", 1),
    ]


def test_a_table_of_sounds_or_without_paths_is_a_table_as_any_other() -> None:
    table_of = {"sounds": [{"file_name": "0.wav", "n": 1}], "plain": [{"a": 1}]}
    for folder, rows in table_of.items():
        Path(folder).mkdir()
        Path(folder, "0.wav" if folder == "sounds" else "x").write_bytes(b"RIFF")
        table(f"{folder}/metadata.csv", rows)
        convert(folder, output=f"out-{folder}")
        assert records(path=f"out-{folder}") == rows


def album() -> str:
    """Write three pictures with masks, of which the last is null."""
    pictures("a/0.png", "a/1.png", "a/2.png", "a/m0.png", "a/m1.png")
    masks = ["m0.png", "m1.png", None]
    table("a/metadata.jsonl", [{"file_name": f"{n}.png", "mask_file_name": mask} for n, mask in enumerate(masks)])
    return "a"


def keys(**settings: Any) -> set[str]:
    convert(album(), output="out", **settings)
    assert verify_dataset("out").ok
    return {key for row in records() for key in row}


@pytest.mark.parametrize("name", ["mask", "mask_file_name"])
def test_keys_of_a_picture_are_found_by_its_column_and_by_its_feature(name: str) -> None:
    with pytest.raises(TooManyRejects, match=r"column \"mask\": .*--set schema.columns.mask.null=drop_row"):
        convert(album(), output="out")
    convert(album(), output="out", schema={"columns": {name: {"null": "drop_row"}}})
    assert [row["mask/filename"] for row in records()] == ["m0.png", "m1.png"]
    convert(album(), output="plain", schema={"columns": {name: {"image": "none"}}})
    assert [row["mask"] for row in records(path="plain")] == ["m0.png", "m1.png", None]


def test_a_picture_may_have_another_name_by_its_feature() -> None:
    pictures("d/0.png")
    table("d/metadata.csv", [{"file_name": "0.png"}])
    convert("d", output="out", schema={"columns": {"image": {"name": "photo"}}})
    assert records()[0]["photo/filename"] == "0.png"


MASK = {"columns": {"mask": {"null": "absent"}}}
FEATURES = {"encoded", "format", "height", "width", "channels", "colorspace", "filename"}


@pytest.mark.parametrize(
    ("choice", "image", "mask"),
    [
        ({"input__exclude_columns": ["image/filename"]}, FEATURES - {"filename"}, FEATURES),
        ({"input__exclude_columns": ["image/filename", "mask/width"]}, FEATURES - {"filename"}, FEATURES - {"width"}),
        ({"input__columns": ["image/encoded"]}, {"encoded"}, FEATURES),
        ({"input__columns": ["mask/encoded", "mask/width"]}, FEATURES, {"encoded", "width"}),
        ({"input__exclude_columns": ["mask_file_name"]}, FEATURES, set()),
    ],
)  # fmt: skip
def test_features_of_pictures_are_chosen_by_their_names(
    choice: dict[str, Any], image: set[str], mask: set[str]
) -> None:
    schema = {} if "mask_file_name" in choice.get("input__exclude_columns", ()) else {"schema": MASK}
    assert keys(**choice, **schema) == {f"image/{key}" for key in image} | {f"mask/{key}" for key in mask}


def test_a_dataset_without_the_paths_of_pictures_takes_appends() -> None:
    choice = {"input__exclude_columns": ["image/filename", "mask_file_name"]}
    first = keys(**choice)
    append("a", output="out", force=True, **choice)
    assert [set(row) for row in records()] == [first] * 6


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"exclude_columns": ["file_name"]}, "names the pictures.*--exclude-columns image/filename;"),
        ({"exclude_columns": ["*file_name"]}, "names the pictures"),
        ({"exclude_columns": ["image/object/x"]}, 'exclude_columns names "image/object/x", which is not a column'),
        ({"columns": ["image/object/x"]}, 'input.columns names "image/object/x", which is not a column'),
    ],
)  # fmt: skip
def test_features_that_are_none_and_pictures_left_out_as_a_whole_are_refused(choice: Any, message: str) -> None:
    pictures("d/0.png")
    table("d/metadata.csv", [{"file_name": "0.png", "n": 1}])
    with pytest.raises((ConfigError, SchemaError), match=message):
        convert("d", output="out", **{f"input__{key}": names for key, names in choice.items()})


@pytest.mark.parametrize(("column", "feature"), [("file_name", "image/filename"), ("mask_file_name", "mask/filename")])
def test_a_split_by_a_column_of_paths_is_that_by_its_feature(column: str, feature: str) -> None:
    rule: Any = {"by": "hash", "fractions": {"a": 0.5, "b": 0.5}}
    for output, key in (("out", column), ("other", feature)):
        convert(album(), output=output, split=rule | {"key": key}, schema={"columns": {"mask": {"null": "drop_row"}}})
    found = [{name: records(name, path) for name in open_dataset(path).manifest.splits} for path in ("out", "other")]
    assert found[0] == found[1]
    assert open_dataset("out").manifest.conversion["split"] == open_dataset("other").manifest.conversion["split"]
