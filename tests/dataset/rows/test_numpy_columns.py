"""Batches as NumPy arrays."""

from __future__ import annotations

import datetime as dt
import decimal
import io
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image
from shardmill.pipelines import convert
from shardmill.transforms.dataset.reading.open_dataset import Dataset, open_dataset
from shardmill.transforms.dataset.rows.numpy_columns import NumpyColumns, Ragged, joined_columns
from shardmill.transforms.errors import DamageError, UsageError
from shardmill.transforms.format.schema.schema import Feature, Schema

from ...examples import example_from_values

DAY = dt.date(2026, 2, 3)


def made(tmp_path: Path, data: Any, **settings: Any) -> Dataset:
    convert(data=data, output=tmp_path / "out", **settings)
    return open_dataset(tmp_path / "out")["train"]


def plain(values: Any) -> Any:
    """Return what `to_numpy` gives as lists, masked values as None."""
    return [plain(values.values), values.row_splits.tolist()] if isinstance(values, Ragged) else values.tolist()


def test_each_column_has_its_dtype_and_nulls_are_masked(tmp_path: Path) -> None:
    table = pa.table(
        {
            "i": pa.array([1, None, -3], pa.int16()),
            "f": pa.array([0.5, None, 2.0], pa.float32()),
            "b": pa.array([True, None, False]),
            "day": pa.array([DAY, None, DAY]),
            "at": pa.array([1, None, 3], pa.timestamp("ms")),
            "of_day": pa.array([1, None, 3], pa.time32("s")),
            "text": ["a", None, "c"],
            "raw": pa.array([b"a", None, b""]),
            "money": pa.array([decimal.Decimal("1.50"), None, decimal.Decimal("-2.25")], pa.decimal128(5, 2)),
        }
    )
    found = made(tmp_path, table).to_numpy()
    assert {name: values.dtype.str for name, values in found.items()} == {
        "i": "<i2", "f": "<f4", "b": "|b1", "day": "<M8[D]", "at": "<M8[us]", "of_day": "<m8[us]",
        "text": "|O", "raw": "|O", "money": "|O",
    }  # fmt: skip
    seconds = [dt.timedelta(seconds=1), None, dt.timedelta(seconds=3)]
    expected = {name: column.to_pylist() for name, column in zip(table.column_names, table.columns, strict=True)}
    assert {name: values.tolist() for name, values in found.items()} == expected | {"of_day": seconds}


def test_fixed_shapes_are_arrays_and_lists_are_values_with_row_splits(tmp_path: Path) -> None:
    data = {"grid": np.arange(12, dtype=np.int32).reshape(2, 2, 3), "n": np.array([1, 2])}
    found = made(tmp_path, data).to_numpy()
    assert found["grid"].tolist() == data["grid"].tolist()
    ragged = pa.table({"tags": [["a", "b"], [], ["c"]], "deep": [[[1, 2], []], [], [[3]]]})
    convert(data=ragged, output=tmp_path / "lists")
    lists = open_dataset(tmp_path / "lists").to_numpy()
    assert plain(lists["tags"]) == [["a", "b", "c"], [0, 2, 2, 3]]
    assert plain(lists["deep"]) == [[[1, 2, 3], [0, 2, 2, 3]], [0, 2, 2, 3]]
    _, row_splits = lists["tags"]
    assert row_splits.dtype == np.int64


def test_structs_and_lists_of_structs_are_an_array_for_each_field(tmp_path: Path) -> None:
    table = pa.table(
        {
            "user": [{"id": 1, "name": "a"}, None, {"id": 3, "name": None}],
            "boxes": [[{"x": 1.0, "y": 2.0}], [], [{"x": 3.0, "y": 4.0}, {"x": 5.0, "y": 6.0}]],
        }
    )
    found = made(tmp_path, table).to_numpy()
    assert plain(found["user/id"]) == [1, None, 3]
    assert plain(found["user/name"]) == ["a", None, None]
    assert plain(found["boxes/y"]) == [[2.0, 4.0, 6.0], [0, 1, 1, 3]]


def test_maps_are_their_keys_and_values(tmp_path: Path) -> None:
    table = pa.table({"m": pa.array([[("a", 1)], [], [("b", 2), ("c", 3)]], pa.map_(pa.string(), pa.int64()))})
    found = made(tmp_path, table).to_numpy()
    assert plain(found["m/key"]) == [["a", "b", "c"], [0, 1, 1, 3]]
    assert plain(found["m/value"]) == [[1, 2, 3], [0, 1, 1, 3]]


def test_lists_that_may_be_null_have_an_array_that_says_which_are_not(tmp_path: Path) -> None:
    found = made(tmp_path, pa.table({"deep": [[[1]], None, [[2, 3]]]})).to_numpy()
    assert plain(found["deep"]) == [[[1, 2, 3], [0, 1, 3]], [0, 1, 1, 2]]
    assert found["deep/present"].tolist() == [True, False, True]


def test_numbers_without_nulls_are_views_of_the_batch(tmp_path: Path) -> None:
    dataset = made(tmp_path, {"n": np.arange(100), "grid": np.arange(200.0).reshape(100, 2)})
    (batch,) = dataset.batches()
    numpy = next(dataset.numpy())
    assert numpy["n"].base is not None
    assert np.from_dlpack(batch["n"]).tolist() == list(range(100))  # as Arrow gives it


def test_labels_are_the_numbers_of_their_classes(tmp_path: Path) -> None:
    table = pa.table({"pet": ["dog", None, "cat"]})
    found = made(tmp_path, table, schema={"columns": {"pet": {"label": True}}}).to_numpy()
    assert plain(found["pet"]) == [1, None, 0]


def test_an_array_of_any_shape_is_one_array_where_all_have_one_shape(tmp_path: Path) -> None:
    for name, shapes in (("same", [(2, 3), (2, 3)]), ("other", [(2, 3), (1, 4)])):
        folder = tmp_path / name
        folder.mkdir()
        for at, shape in enumerate(shapes):
            np.savez(folder / f"{at}.npz", emb=np.full(shape, at, np.float32))
        convert([str(folder)], output=tmp_path / f"{name}_out", input__rows=False)
        found = open_dataset(tmp_path / f"{name}_out").to_numpy(columns=["emb"])["emb"]
        assert found.shape == ((2, 2, 3) if name == "same" else (2,))
        assert [array.shape for array in found] == shapes
    with pytest.raises(UsageError, match='ask for the array "emb" instead'):
        open_dataset(tmp_path / "same_out").to_numpy(columns=["emb/data"])


@pytest.fixture
def pictures(tmp_path: Path) -> Dataset:
    for at, (mode, size) in enumerate((("RGB", (4, 3)), ("L", (4, 3)))):
        path = tmp_path / "pics" / mode / f"{at}.png"
        path.parent.mkdir(parents=True)
        Image.new(mode, size, at + 7).save(path)
    convert(str(tmp_path / "pics"), output=tmp_path / "out")
    return open_dataset(tmp_path / "out")


def test_pictures_are_bytes_and_pixels_on_request(pictures: Dataset) -> None:
    encoded = pictures.to_numpy(columns=["image/encoded"])["image/encoded"]
    assert Image.open(io.BytesIO(encoded[0])).size == (4, 3)
    pixels = pictures.to_numpy(columns=["image/encoded"], decode=True)["image/encoded"]
    assert sorted((one.shape, one.dtype.str) for one in pixels) == [((3, 4, 1), "|u1"), ((3, 4, 3), "|u1")]
    one = next(pictures.numpy(columns=["image/encoded"], rows=1, decode=True))["image/encoded"]
    assert one.shape in ((1, 3, 4, 1), (1, 3, 4, 3))


def test_a_picture_that_is_damaged_says_which(tmp_path: Path, build_dataset: Any) -> None:
    record = example_from_values({"pic": b"\xff\xd8 no picture"}, {}).SerializeToString(deterministic=True)
    build_dataset(tmp_path, {"train": [[record]]}, Schema((Feature("pic", "bytes", "image"),)))
    with pytest.raises(DamageError, match=r'feature "pic", picture 1 of the batch: '):
        open_dataset(tmp_path).to_numpy(decode=True)


def test_rows_by_number_are_dicts_of_numpy_values_without_masks(tmp_path: Path) -> None:
    table = pa.table(
        {"n": pa.array([5, None, 7], pa.int32()), "tags": [["a"], [], ["b", "c"]], "text": ["x", None, "z"]}
    )
    source = made(tmp_path, table).grain()
    assert len(source) == 3
    one, two = source.__getitems__([2, 1])
    assert (one["n"], one["n/present"], one["tags"].tolist(), one["text"]) == (7, True, ["b", "c"], "z")
    assert (two["n"], two["n/present"], two["tags"].tolist(), two["text"], two["text/present"]) == (
        0,
        False,
        [],
        "",
        False,
    )
    assert source[0]["n"].dtype == np.int32
    with pytest.raises(IndexError):
        source[3]
    (tmp_path / "out").rename(tmp_path / "moved")
    assert repr(source) == repr(open_dataset(tmp_path / "moved")["train"].grain())
    assert repr(source) != repr(open_dataset(tmp_path / "moved")["train"].grain(["n"]))


def test_a_null_float_is_nan_for_training_and_nested_lists_keep_their_levels(tmp_path: Path) -> None:
    source = made(tmp_path, pa.table({"f": [1.5, None], "deep": [[[1, 2], [3]], []]})).torch_map(["f", "deep"])
    first, second = source[0], source[1]
    assert [inner.tolist() for inner in first["deep"]] == [[1, 2], [3]]
    assert np.isnan(second["f"])
    assert list(second["deep"]) == []


@pytest.mark.parametrize("by", ["grain", "torch_map"])
def test_one_row_has_the_values_and_types_that_it_has_among_many(tmp_path: Path, by: str) -> None:
    table = pa.table(
        {
            "i": pa.array([5, None, 7], pa.int32()),
            "u": pa.array([5, 6, 7], pa.uint8()),
            "f": pa.array([0.5, None, 2.0], pa.float32()),
            "b": pa.array([True, False, None]),
            "text": ["x", None, "z"],
            "raw": pa.array([b"x", b"", None]),
            "tags": [["a"], [], ["b", "c"]],
            "numbers": [[1, 2], [], [3]],
            "grid": pa.array([[1.0, 2.0]] * 3, pa.list_(pa.float32(), 2)),
            "pet": ["dog", "cat", "dog"],
            "day": pa.array([DAY, None, DAY]),
            "at": pa.array([5, None, 7], pa.timestamp("us", "Europe/Berlin")),
            "took": pa.array([5, None, 7], pa.duration("ms")),
            "clock": pa.array([5, None, 7], pa.time64("us")),
            "days": pa.array([[DAY], [], [DAY, DAY]]),
        }
    )
    dataset = made(tmp_path, table, schema={"columns": {"pet": {"label": True}}})
    source = dataset.grain() if by == "grain" else dataset.torch_map()
    assert source._single is not None
    source = pickle.loads(pickle.dumps(source))  # as a worker that is spawned gets it
    for index, among_many in enumerate(source.__getitems__([0, 1, 2])):
        alone = source[index]
        assert alone.keys() == among_many.keys()
        for name, value in alone.items():
            np.testing.assert_array_equal(value, among_many[name])
            assert np.asarray(value).dtype.kind == np.asarray(among_many[name]).dtype.kind
            assert (
                np.asarray(value).dtype.kind in "OUS" or np.asarray(value).dtype == np.asarray(among_many[name]).dtype
            )


def test_one_row_of_plain_columns_takes_no_batch_whatever_the_others_are(tmp_path: Path) -> None:
    dataset = made(tmp_path, pa.table({"n": [1, 2], "st": [{"a": 1}, None], "text": ["x", "y"]}))
    source = dataset.torch_map(["text", "n"])
    assert source._single is not None
    assert [source[index] for index in (0, 1)] == [{"text": "x", "n": 1}, {"text": "y", "n": 2}]
    assert dataset.torch_map()._single is None


def test_a_null_struct_is_told_from_zeros_and_its_text_is_empty(tmp_path: Path) -> None:
    table = pa.table({"st": [{"a": 0, "b": ""}, None, {"a": None, "b": None}, {"a": 5, "b": "x"}]})
    rows = made(tmp_path, table).grain().__getitems__([0, 1, 2, 3])
    assert [row["st/present"] for row in rows] == [True, False, True, True]
    assert [row["st/a/present"] for row in rows] == [True, False, False, True]
    assert [row["st/a"] for row in rows] == [0, 0, 0, 5]
    assert [row["st/b"] for row in rows] == ["", "", "", "x"]


def test_decimals_and_times_that_are_null_are_zero_for_training(tmp_path: Path) -> None:
    table = pa.table(
        {
            "money": pa.array([decimal.Decimal("1.5"), None], pa.decimal128(5, 2)),
            "day": pa.array([DAY, None]),
        }
    )
    one, two = made(tmp_path, table).grain().__getitems__([0, 1])
    assert (one["money"], two["money"], two["money/present"]) == (decimal.Decimal("1.50"), decimal.Decimal(0), False)
    assert (one["day"], two["day"], two["day/present"]) == (np.datetime64(DAY), np.datetime64("1970-01-01"), False)


@pytest.mark.parametrize("columns", [["n"], ["text"], ["tags"], ["grid"], ["pic"]])
def test_arrays_of_several_batches_are_joined_as_if_of_one(tmp_path: Path, columns: list[str]) -> None:
    n = 50
    table = pa.table(
        {
            "n": pa.array(range(n), mask=np.arange(n) % 7 == 0),
            "text": [f"{i}" for i in range(n)],
            "tags": [[i] * (i % 3) for i in range(n)],
            "grid": pa.array([[i, i] for i in range(n)], pa.list_(pa.int32(), 2)),
            "pic": [bytes([i]) for i in range(n)],
        }
    )
    dataset = made(tmp_path, table)
    assert dataset.schema is not None
    plan = NumpyColumns.plan(dataset.schema, columns, decode=False)
    parts = [plan.read(batch) for batch in dataset.batches(columns=columns, rows=7)]
    joined, whole = joined_columns(parts), dataset.to_numpy(columns=columns)
    assert {name: plain(values) for name, values in joined.items()} == {name: plain(v) for name, v in whole.items()}
