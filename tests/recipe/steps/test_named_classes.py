from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image
from shardmill.pipelines import append, convert
from shardmill.transforms.dataset.integrity.verify import verify_dataset
from shardmill.transforms.dataset.reading.open_dataset import open_dataset
from shardmill.transforms.errors import SchemaError, TooManyRejects

from ...command_line import Shardmill
from ...label_numbers import in_numbers


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def label(*names: str) -> dict[str, Any]:
    return {"names": list(names), "_type": "ClassLabel"}


def table(values: dict[str, Any], **features: Any) -> pa.Table:
    """Return a table with the metadata that Hugging Face's `datasets` writes."""
    info = json.dumps({"info": {"features": features}})
    return pa.table(values).replace_schema_metadata({"huggingface": info})


def put(name: str, values: dict[str, Any], **features: Any) -> None:
    pq.write_table(table(values, **features), name)


def held(path: str = "out") -> dict[str, list[Any]]:
    rows: dict[str, list[Any]] = open_dataset(path).to_arrow("train").to_pydict()
    return rows


@pytest.mark.parametrize("form", ["parquet", "file", "stream", "memory"])
def test_numbers_whose_classes_the_metadata_name_are_labels(form: str) -> None:
    tags = {"feature": label("O", "B"), "_type": "List"}
    given = table({"kind": [1, 0, 1], "tags": [[0, 1], [], [1]]}, kind=label("neg", "pos"), tags=tags)
    if form == "memory":
        summary = convert(data=given, output="out", name="a")
    else:
        makers = {"file": pa.ipc.new_file, "stream": pa.ipc.new_stream}
        if form == "parquet":
            pq.write_table(given, "a.parquet")
        else:
            with makers[form]("a.arrow", given.schema) as writer:
                writer.write_table(given)
        summary = convert("a.parquet" if form == "parquet" else "a.arrow", output="out")
    dataset = open_dataset("out")
    assert dataset.labels == {"kind": ("neg", "pos"), "tags": ("O", "B")}
    assert in_numbers(dataset.to_arrow("train")).to_pydict() == given.to_pydict()
    assert Path("out/kind.labels.txt").read_text() == "neg\npos\n"
    features = json.loads(Path("out/features.json").read_text())["featuresDict"]["features"]
    assert features["kind"]["classLabel"] == {"numClasses": "2"}
    assert "classes that the files name: kind: neg, pos; tags: O, B" in summary.detected[0]


def test_a_number_that_no_class_has_is_a_reject_and_minus_one_is_a_null() -> None:
    put("a.parquet", {"n": [1, 2, 3, 4], "kind": pa.array([0, -1, 2, None], pa.int8())}, kind=label("neg", "pos"))
    summary = convert("a.parquet", output="out", max_rejects=1)
    assert held() == {"kind": ["neg", None, None], "n": [1, 2, 4]}
    assert "without a class (-1), and so null, are rows of kind" in summary.detected[0]
    (line,) = map(json.loads, Path("out/rejects/00000001.jsonl").read_text().splitlines())
    (error,) = line["errors"]
    assert (line["row"], error["code"], error["column"], error["value"]) == (3, "UNKNOWN_CLASS", "kind", "2")
    put("b.parquet", {"tags": [[0], [1, -1]]}, tags=[label("O", "B")])
    with pytest.raises(TooManyRejects, match="the file names the classes 0 to 1"):
        convert("b.parquet", output="b")


def test_a_list_with_minus_one_keeps_plain_numbers_by_the_option_that_is_proposed(shardmill: Shardmill) -> None:
    put("b.parquet", {"tags": [[0], [1, -1]], "kind": [0, 1]}, tags=[label("O", "B")], kind=label("neg", "pos"))
    refused = shardmill("convert", "b.parquet", "-o", "out")
    option = refused.err.partition("keep plain numbers: ")[2].split()[:2]
    assert option == ["--set", "schema.columns.tags.type=int64"]
    assert shardmill("convert", "b.parquet", "-o", "out", *option).code == 0
    assert held() == {"tags": [[0], [1, -1]], "kind": ["neg", "pos"]}


def test_classes_of_an_append_are_found_by_name_and_new_ones_come_at_the_end() -> None:
    tags = {"feature": label("x", "y"), "_type": "Sequence"}
    put("a.parquet", {"kind": [0, 1], "tags": [[0], [1, 0]]}, kind=label("neg", "pos"), tags=tags)
    convert("a.parquet", output="out")
    tags = {"feature": label("y", "z", "x"), "_type": "LargeList"}
    put("b.parquet", {"kind": [0, 1, 2], "tags": [[0, 2], None, [1]]}, kind=label("pos", "odd", "neg"), tags=tags)
    append("b.parquet", output="out")
    assert open_dataset("out").labels == {"kind": ("neg", "pos", "odd"), "tags": ("x", "y", "z")}
    assert held() == {
        "kind": ["neg", "pos", "pos", "odd", "neg"],
        "tags": [["x"], ["y", "x"], ["y", "x"], None, ["z"]],
    }
    verify_dataset("out")
    put("c.parquet", {"kind": [-1], "tags": [[0]]}, kind=label("neg"), tags=tags)
    with pytest.raises(TooManyRejects, match="kind"):
        append("c.parquet", output="out")


def test_a_column_that_is_renamed_keeps_its_classes_also_in_an_append() -> None:
    for name, names in (("a", ("neg", "pos")), ("b", ("pos", "neg"))):
        put(f"{name}.parquet", {"kind": [0, 1, 1]}, kind=label(*names))
    convert("a.parquet", output="out", schema__columns__kind__name="label", where="kind == 1")
    append("b.parquet", output="out")
    assert open_dataset("out").labels == {"label": ("neg", "pos")}
    assert held() == {"label": ["pos"] * 3}  # the numbers of `where` are those of the dataset


def test_files_that_name_the_classes_of_a_column_otherwise_are_refused() -> None:
    put("a.parquet", {"kind": [0]}, kind=label("neg", "pos"))
    put("b.parquet", {"kind": [0]}, kind=label("pos", "neg"))
    why = 'column "kind": b.parquet names its classes pos, neg, and a.parquet neg, pos; convert one of them, and append'
    with pytest.raises(SchemaError, match=why):
        convert(["a.parquet", "b.parquet"], output="out")


@pytest.mark.parametrize("option", ["input.detect=none", "schema.columns.kind.type=int64"])
def test_plain_numbers_are_kept_where_the_user_says_so(option: str, shardmill: Shardmill) -> None:
    put("a.parquet", {"kind": [0, -1]}, kind=label("neg", "pos"))
    screen = shardmill("convert", "a.parquet", "-o", "named")
    assert "; to keep plain numbers: --set schema.columns.kind.type=int64\n" in screen.out
    assert shardmill("convert", "a.parquet", "-o", "out", "--set", option).code == 0
    assert (open_dataset("out").labels, held()) == ({}, {"kind": [0, -1]})


@pytest.mark.parametrize(
    "feature",
    [
        {"dtype": "int64", "_type": "Value"},
        {"_type": "ClassLabel"},
        {"names": ["a", "a"], "_type": "ClassLabel"},
        {"names": [1, 2], "_type": "ClassLabel"},
        {"names": "ab", "_type": "ClassLabel"},
        {"feature": {"feature": label("a"), "_type": "Image"}, "_type": "List"},
        "ClassLabel",
        None,
        [],
    ],
)
def test_metadata_that_name_no_classes_make_no_labels(feature: Any) -> None:
    put("a.parquet", {"kind": [0, 1]}, kind=feature)
    put("b.parquet", {"text": ["0"], "kind": [0.5]}, text=label("a"), kind=label("a"), other=label("a"))
    for name in ("a", "b"):
        convert(f"{name}.parquet", output=name)
        assert open_dataset(name).labels == {}


@pytest.mark.parametrize("text", ["", "{", "[]", '{"info": 1}', '{"info": {"features": []}}'])
def test_metadata_of_another_form_are_nothing(text: str) -> None:
    pq.write_table(pa.table({"kind": [0]}).replace_schema_metadata({"huggingface": text}), "a.parquet")
    convert("a.parquet", output="out")
    assert held() == {"kind": [0]}


@pytest.mark.parametrize("kind", ["Audio", "Video"])
def test_bytes_of_sounds_are_no_pictures(kind: str) -> None:
    clip = {"bytes": b"RIFF", "path": "a.wav"}
    put("a.parquet", {"clip": [clip, None]}, clip={"sampling_rate": None, "_type": kind})
    summary = convert("a.parquet", output="out")
    assert held() == {"clip": [clip, None]}
    assert summary.detected == (f"clip: {kind}, whose bytes are kept as they are, and not looked at",)
    append(data=table({"clip": [clip]}, clip={"_type": kind}), output="out")
    assert held() == {"clip": [clip, None, clip]}
    put("b.parquet", {"clip": [clip]}, clip={"_type": "Image"})
    with pytest.raises(TooManyRejects, match="NOT_AN_IMAGE"):
        convert("b.parquet", output="b")


@pytest.mark.parametrize("form", ["struct of lists", "list of structs", "older"])
def test_the_classes_of_the_boxes_of_pictures_have_their_names(form: str) -> None:
    buffer = io.BytesIO()
    Image.new("RGB", (8, 8)).save(buffer, "png")
    of_lists = {"bbox": [[0.0, 0.0, 4.0, 4.0], [1.0, 1.0, 2.0, 2.0]], "category": [1, 0]}
    objects = [dict(zip(of_lists, one, strict=True)) for one in zip(*of_lists.values(), strict=True)]
    rows = {
        "image": [{"bytes": buffer.getvalue(), "path": None}],
        "objects": [objects if form == "list of structs" else of_lists],
    }
    boxes = {"_type": "Value", "dtype": "float32"}

    def features(*names: str) -> dict[str, Any]:
        one = {"bbox": {"feature": boxes, "length": 4, "_type": "List"}, "category": label(*names)}
        listed = {"bbox": [[boxes]], "category": {"feature": label(*names), "_type": "List"}}
        found = {"struct of lists": listed, "list of structs": [one], "older": {"feature": one, "_type": "Sequence"}}
        return {"image": {"_type": "Image"}, "objects": found[form]}

    put("a.parquet", rows, **features("cat", "dog"))
    convert("a.parquet", output="out")
    put("b.parquet", rows, **features("cat", "dog", "owl"))
    append("b.parquet", output="out")
    dataset = open_dataset("out")
    assert dataset.labels == {"image/object/class/label": ("cat", "dog", "owl")}
    assert held()["image/object/class/label"] == [["dog", "cat"]] * 2
    put("c.parquet", rows, **features("dog", "cat"))
    with pytest.raises(SchemaError, match='column "objects": its class 0 is "dog", and "cat" in the dataset'):
        append("c.parquet", output="out")
    convert("c.parquet", output="off", input__detect="none")
    assert (open_dataset("off").labels, held("off")["image/object/class/label"]) == ({}, [[1, 0]])


def put_objects(path: str, names: dict[str, list[str]], column: str = "objects") -> None:
    """Write a picture with two objects, which have the last class and the first of each field."""
    buffer = io.BytesIO()
    Image.new("RGB", (8, 8)).save(buffer, "png")
    pairs = zip(([0.0, 0.0, 4.0, 4.0], [1.0, 1.0, 2.0, 2.0]), (-1, 0), strict=True)
    objects = [{"bbox": box} | {key: range(len(one))[at] for key, one in names.items()} for box, at in pairs]
    box = {"feature": {"_type": "Value", "dtype": "float32"}, "length": 4, "_type": "List"}
    one = {"bbox": box} | {key: label(*of) if of != ["0"] else {"_type": "Value"} for key, of in names.items()}
    rows = {"image": [{"bytes": buffer.getvalue(), "path": None}], column: [objects]}
    put(path, rows, image={"_type": "Image"}, **{column: [one]})


@pytest.mark.parametrize("name", ["category_id", "class", "kind", "categories", "iscrowd"])
@pytest.mark.parametrize("column", ["objects", "annotations"])
def test_the_only_field_of_objects_with_named_classes_is_the_class_of_their_boxes(name: str, column: str) -> None:
    put_objects("a.parquet", {name: ["cat", "dog"], "number": ["0"]}, column)
    renamed = {} if column == "objects" else {"schema__columns__annotations__name": "objects"}
    convert("a.parquet", output="out", **renamed)
    assert open_dataset("out").labels == {"image/object/class/label": ("cat", "dog")}
    assert (held()["image/object/class/label"], held()["image/object/number"]) == ([["dog", "cat"]], [[0, 0]])
    put_objects("b.parquet", {name: ["cat", "dog", "owl"], "number": ["0"]}, column)
    append("b.parquet", output="out")
    assert held()["image/object/class/label"] == [["dog", "cat"], ["owl", "cat"]]
    convert("a.parquet", output="off", input__detect="none", **renamed)
    assert open_dataset("off").labels == {}


def test_other_fields_of_objects_with_named_classes_keep_the_names() -> None:
    put_objects("a.parquet", {"color": ["red", "dark blue"], "category": ["cat", "dog"], "iscrowd": ["one", "many"]})
    summary = convert("a.parquet", output="out")
    color, crowd = "image/object/color", "image/object/is_crowd"
    assert open_dataset("out").labels == {
        "image/object/class/label": ("cat", "dog"), color: ("red", "dark blue"), crowd: ("one", "many"),
    }  # fmt: skip
    assert (held()[color], held()[crowd]) == ([["dark blue", "red"]], [["many", "one"]])
    assert f"classes that the files name: {color}: red, dark blue" in "".join(summary.detected)
    put_objects("b.parquet", {"color": ["dark blue"], "category": ["cat"], "iscrowd": ["one", "many"]})
    append("b.parquet", output="out")
    assert held()[color] == [["dark blue", "red"], ["dark blue", "dark blue"]]


def test_of_two_fields_of_objects_with_named_classes_neither_is_taken_for_that_of_the_boxes() -> None:
    put_objects("a.parquet", {"color": ["red", "blue"], "shape": ["round", "flat"]})
    convert("a.parquet", output="out")
    labels = {"image/object/color": ("red", "blue"), "image/object/shape": ("round", "flat")}
    assert open_dataset("out").labels == labels


STRUCTS = {"m": [{"k": 1, "d": {"e": 0}}, {"k": 0, "d": {"e": -1}}, None], "s": [[{"k": 1}, {"k": 0}], [], None]}


def structs(*names: str) -> dict[str, Any]:
    return {"m": {"k": label(*names), "d": {"e": label("x", "y")}}, "s": [{"k": label(*names)}]}


def test_fields_within_structs_and_lists_are_labels_whose_names_an_append_finds() -> None:
    put("a.parquet", {**STRUCTS, "t": [[[1, 0], []], [], None]}, **structs("a", "b"), t=[[label("O", "B")]])
    summary = convert("a.parquet", output="out")
    assert "classes that the files name: m/k: a, b; m/d/e: x, y" in summary.detected[0]
    assert "without a class (-1), and so null, are rows of m/d/e; to keep plain" in summary.detected[0]
    more = {"m": [{"k": 1, "d": {"e": 0}}], "s": [[{"k": 1}, {"k": 0}]], "t": [[[0]]]}
    put("b.parquet", more, **structs("c", "a"), t=[[label("B", "O")]])
    append("b.parquet", output="out")
    dataset = open_dataset("out")
    named = {"m/d/e": ("x", "y"), "m/k": ("a", "b", "c"), "s/k": ("a", "b", "c"), "t/ragged_flat_values": ("O", "B")}
    assert dataset.labels == named
    rows = dataset.to_arrow("train", [*named]).to_pydict()
    assert rows["m/k"] == ["b", "a", None, "a"]
    assert (rows["m/d/e"], rows["s/k"]) == (["x", None, None, "x"], [["b", "a"], [], None, ["a", "c"]])
    assert rows["t/ragged_flat_values"] == [["B", "O"], [], None, ["B"]]
    assert held()["s"] == [*STRUCTS["s"], [{"k": 0}, {"k": 2}]]
    verify_dataset("out")


def test_fields_within_structs_that_are_numbers_in_a_dataset_stay_numbers_in_an_append() -> None:
    put("a.parquet", STRUCTS)
    put("b.parquet", {**STRUCTS, "s": [[{"k": -1}], [], None]}, **structs("a", "b"))
    convert("a.parquet", output="out")
    append("b.parquet", output="out")
    assert (open_dataset("out").labels, held()["s"]) == ({}, [*STRUCTS["s"], [{"k": -1}], [], None])


def test_a_list_of_structs_with_minus_one_is_kept_by_the_option_that_is_proposed(shardmill: Shardmill) -> None:
    put("b.parquet", {"s": [[{"k": -1}]]}, s=[{"k": label("a", "b")}])
    refused = shardmill("convert", "b.parquet", "-o", "out")
    option = refused.err.partition("keep plain numbers: ")[2].split()[:2]
    assert option == ["--set", "input.detect=none"]
    assert shardmill("convert", "b.parquet", "-o", "out", *option).code == 0
    assert held() == {"s": [[{"k": -1}]]}
