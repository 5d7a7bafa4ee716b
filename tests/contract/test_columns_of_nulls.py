"""An append whose files hold nothing but nulls in a column: it is of the dataset's type."""

from __future__ import annotations

import io
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from shardmill.pipelines import append, convert
from shardmill.pipelines.cli import main
from shardmill.transforms.dataset.reading.open_dataset import open_dataset

VALUES: dict[str, pa.Array] = {
    "whole": pa.array([1, None]),
    "text": pa.array(["a", None]),
    "half": pa.array([0.5, None], pa.float32()),
    "time": pa.array([1, None], pa.timestamp("us", "UTC")),
    "price": pa.array([Decimal("1.50"), None], pa.decimal128(9, 2)),
    "list": pa.array([[1, 2], None]),
    "fixed": pa.array([[1, 2], None], pa.list_(pa.int32(), 2)),
    "nested": pa.array([[[1], []], None]),
    "struct": pa.array([{"a": 1}, None]),
}


def parquet(columns: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue()


def arrow(columns: Any) -> bytes:
    table, sink = pa.table(columns), io.BytesIO()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


TYPED = pytest.mark.parametrize(("kind", "made"), [("parquet", parquet), ("arrow", arrow)], ids=["parquet", "arrow"])


def appended(desk: Any, *args: str) -> tuple[int, str]:
    with pytest.raises(SystemExit) as ended:
        main(["append", *args, "-o", "out", "--workers", "1"])
    assert isinstance(ended.value.code, int)
    return ended.value.code, desk.capsys.readouterr().err


@TYPED
@pytest.mark.parametrize("options", [(), ("--set", "input.columns_differ=union")])
def test_a_column_of_nulls_alone_is_appended_as_one_of_the_datasets_type(
    desk: Any, kind: str, made: Any, options: tuple[str, ...]
) -> None:
    nulls = {"id": [2], **{name: pa.nulls(1) for name in VALUES}}
    desk.put({f"a.{kind}": made({"id": [0, 1], **VALUES}), f"b.{kind}": made(nulls)})
    assert desk.convert(f"a.{kind}").code == 0
    assert appended(desk, f"b.{kind}", *options) == (0, "")
    read = open_dataset(desk.root / "out").to_arrow("train")
    for name, values in VALUES.items():
        assert read[name].to_pylist() == [*values.to_pylist(), None], name
        assert read[name].type == values.type, name


@TYPED
def test_nulls_alone_are_appended_to_a_label_a_mask_and_under_a_new_name(desk: Any, kind: str, made: Any) -> None:
    full = {"kind": ["owl", None], "size": [1, None], "old": [7, None]}
    desk.put({f"a.{kind}": made(full), f"b.{kind}": made({name: pa.nulls(1) for name in full})})
    rename = ("--set", "schema.columns.old.name=new")
    rules = ("--set", "schema.columns.kind.label=true", "--set", "schema.columns.size.null=mask", *rename)
    assert desk.convert(f"a.{kind}", *rules).code == 0
    assert appended(desk, f"b.{kind}", *rename) == (0, "")
    rows = open_dataset(desk.root / "out").to_arrow("train").select(["kind", "size", "new"]).to_pylist()
    assert rows[2] == {"kind": None, "size": None, "new": None}
    assert desk.inspect_json()["size/mask"] == [1]


@TYPED
@pytest.mark.parametrize("options", [(), ("--set", "input.columns_differ=union")])
@pytest.mark.parametrize(
    ("kind_of_values", "full", "empty", "bare"),
    [
        (pa.struct({"a": pa.int64(), "b": pa.string()}), {"a": 1, "b": "x"}, {"a": 2, "b": None},
         pa.struct({"a": pa.int64(), "b": pa.null()})),
        (pa.struct({"a": pa.struct({"b": pa.decimal128(9, 2)})}), {"a": {"b": Decimal("1.50")}}, {"a": {"b": None}},
         pa.struct({"a": pa.struct({"b": pa.null()})})),
        (pa.list_(pa.struct({"a": pa.int64()})), [{"a": 1}], [], pa.list_(pa.struct({"a": pa.null()}))),
        (pa.list_(pa.list_(pa.int64())), [[1], []], [[]], pa.list_(pa.list_(pa.null()))),
        (pa.list_(pa.int64()), [1, 2], [], pa.list_(pa.null())),
    ],
    ids=["a field", "a field of a field", "a field in a list", "a list of lists", "a list"],
)  # fmt: skip
def test_a_part_of_a_nested_column_that_is_null_in_all_rows_is_appended_as_one_of_the_datasets_type(
    desk: Any, kind: str, made: Any, kind_of_values: pa.DataType, full: Any, empty: Any, bare: Any, options: Any
) -> None:
    first, second = pa.array([full, None], kind_of_values), pa.array([empty, None], bare)
    desk.put({f"a.{kind}": made({"id": [0, 1], "x": first}), f"b.{kind}": made({"id": [2, 3], "x": second})})
    assert desk.convert(f"a.{kind}").code == 0
    assert appended(desk, f"b.{kind}", *options) == (0, "")
    read = open_dataset(desk.root / "out").to_arrow("train")["x"]
    assert read.to_pylist() == [full, None, empty, None]
    assert read.type == kind_of_values


@TYPED
def test_nulls_in_a_column_that_has_none_in_the_dataset_are_rejects(desk: Any, kind: str, made: Any) -> None:
    desk.put({f"a.{kind}": made({"id": [1], "x": [1]}), f"b.{kind}": made({"id": [2], "x": pa.nulls(1)})})
    assert desk.convert(f"a.{kind}").code == 0
    code, err = appended(desk, f"b.{kind}")
    assert code == 4
    assert 'column "x": DECLARED_NOT_NULL' in err


def test_rows_from_python_whose_values_are_all_none_are_appended(desk: Any) -> None:
    convert(data=[{"id": 1, "x": 0.5, "s": {"a": 1}}, {"id": 2, "x": None, "s": None}], output="out")
    append(data=[{"id": 3, "x": None, "s": None}], output="out")
    assert [row["id"] for row in desk.records()] == [1, 2, 3]


@pytest.mark.parametrize(
    ("kind", "full", "empty"),
    [
        ("csv", b"id,x,y\n1,1,0.5\n2,,\n", b"id,x,y\n3,,\n"),
        ("jsonl", b'{"id": 1, "x": 1, "y": 0.5}\n{"id": 2}\n', b'{"id": 3, "x": null, "y": null}\n'),
    ],
)
def test_cells_without_a_value_are_appended_to_a_column_of_any_type(
    desk: Any, kind: str, full: bytes, empty: bytes
) -> None:
    desk.put({f"a.{kind}": full, f"b.{kind}": empty})
    assert desk.convert(f"a.{kind}").code == 0
    assert appended(desk, f"b.{kind}") == (0, "")
    assert desk.records() == [{"id": 1, "x": 1, "y": 0.5}, {"id": 2}, {"id": 3}]
