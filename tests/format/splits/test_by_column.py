from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from shardmill.transforms.errors import SchemaError
from shardmill.transforms.format.batches.rows import RowOrigin, Rows
from shardmill.transforms.format.examples.encode_rows import RowEncoder
from shardmill.transforms.format.schema.arrow_types import feature_of
from shardmill.transforms.format.schema.schema import Feature, Schema
from shardmill.transforms.format.splits.by_row import ColumnSplits
from shardmill.transforms.format.splits.splitter import TOO_MANY_SPLITS


def split_of(array: pa.Array, *named: tuple[str, str]) -> tuple[dict[str, int], list[tuple[int | None, str, str]]]:
    """Encode a column `fold`; return the records of each split, and the row, code and value of each reject."""
    batch = pa.record_batch({"fold": array, "n": range(len(array))})
    schema = Schema(tuple(feature_of(one)[0] for one in batch.schema))
    block = RowEncoder(schema, ColumnSplits("fold", named)).encode(Rows(0, 0, 0, batch, RowOrigin("a", 1)))
    rejects = [(one.place.row, error.code, error.value) for one in block.rejects for error in one.errors]
    return {name: frames.records for name, frames in block.splits.items()}, rejects


TEXTS = [pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.dictionary(pa.int8(), pa.string())]


@pytest.mark.parametrize("kind", TEXTS, ids=str)
def test_the_values_of_a_column_of_text_are_the_splits(kind: pa.DataType) -> None:
    found = split_of(pa.array(["train", "val", "train", "a_very_long_name_of_a_split"]).cast(kind))
    assert found == ({"train": 2, "val": 1, "a_very_long_name_of_a_split": 1}, [])


@pytest.mark.parametrize(
    ("values", "kind", "one", "other"),
    [
        ([0, 1, 0], pa.int8(), "0", "1"),
        ([2**62, -1, 2**62], pa.int64(), "4611686018427387904", "-1"),
        ([True, False, True], pa.bool_(), "true", "false"),
        ([True, False, True], pa.bool_(), "True", "False"),
        (["A a", "b", "A a"], pa.string(), "A a", "b"),
    ],
)
def test_values_are_named(values: list[Any], kind: pa.DataType, one: str, other: str) -> None:
    assert split_of(pa.array(values, kind), (one, "train"), (other, "test")) == ({"train": 2, "test": 1}, [])
    assert split_of(pa.array(values, kind), (one, "all"), (other, "all")) == ({"all": 3}, [])


def test_a_null_an_unnamed_value_and_a_value_that_names_no_split_are_rejects_with_their_rows() -> None:
    array = pa.array(["train", None, "Val", "val", "x/y", ""])
    assert split_of(array) == (
        {"train": 1, "val": 1},
        [(2, "NO_SPLIT", "null"), (3, "NO_SPLIT", "Val"), (5, "NO_SPLIT", "x/y"), (6, "NO_SPLIT", "")],
    )
    assert split_of(pa.array([0, 1, 2, None]), ("0", "train"), ("1", "val")) == (
        {"train": 1, "val": 1},
        [(3, "NO_SPLIT", "2"), (4, "NO_SPLIT", "null")],
    )


def test_a_cell_that_is_bad_already_has_one_error() -> None:
    assert split_of(pa.array(["train", b"\xff"], pa.binary()).cast(pa.binary())) == (
        {"train": 1},
        [(2, "NO_SPLIT", "\\xff")],
    )
    batch = pa.record_batch({"fold": pa.array([1, 2**63], pa.uint64())})
    schema = Schema((Feature("fold", "int64", "uint64"),))
    encoder = RowEncoder(schema, ColumnSplits("fold", (("1", "train"),)))
    block = encoder.encode(Rows(0, 0, 0, batch, RowOrigin("a", 1)))
    assert [error.code for reject in block.rejects for error in reject.errors] == ["INT_OVERFLOW"]


def test_a_column_with_more_values_than_there_may_be_splits_is_an_error() -> None:
    values = pa.array([f"s{i}" for i in range(65)])
    block = RowEncoder(Schema((Feature("fold", "bytes", "string"),)), ColumnSplits("fold")).encode(
        pa.record_batch({"fold": values})
    )
    assert (block.splits, block.failures) == ({}, (TOO_MANY_SPLITS,))


@pytest.mark.parametrize(
    ("feature", "says"),
    [
        (Feature("fold", "float", "float32"), "holds float32, and splits are named by text, whole numbers and bools"),
        (Feature("fold", "int64", "date"), r"by days: split.before: {column: fold, ...}"),
        (
            Feature("fold", "bytes", "string", (-1,)),
            '"fold" holds several values a row, and one is needed; there are none',
        ),
        (Feature("fond", "bytes", "string"), 'did you mean "fond"'),
    ],
)
def test_a_column_that_can_name_no_split_is_refused_by_name(feature: Feature, says: str) -> None:
    with pytest.raises(SchemaError, match=says):
        ColumnSplits("fold").check(Schema((feature,)))
