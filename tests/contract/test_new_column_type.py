"""A type that is nowhere but in the table of types, and what a user meets with it."""

from __future__ import annotations

import json
import uuid
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from shardmill.pipelines import append, open_dataset
from shardmill.transforms import read_records
from shardmill.transforms.errors import SchemaError
from shardmill.transforms.format.columns.feature_column import feature_column
from shardmill.transforms.format.examples.decode_examples import Example, ExampleDecoder, feature_values
from shardmill.transforms.format.schema import column_types
from shardmill.transforms.format.schema.column_types import TYPES, ColumnType, Form
from shardmill.transforms.format.schema.schema import Feature, Schema

from ..examples import encode_examples

IDS = [uuid.UUID(int=1), uuid.UUID(int=2**127)]


def is_uuid(arrow: pa.DataType) -> bool:
    return bool(pa.types.is_fixed_size_binary(arrow)) and arrow.byte_width == 16


def as_uuids(values: pa.Array, arrow: pa.DataType) -> tuple[pa.Array, npt.NDArray[np.bool_]]:
    fits = pc.equal(pc.binary_length(values), 16)
    unfit = ~fits.fill_null(True).to_numpy(zero_copy_only=False)
    return pc.if_else(fits, values, pa.scalar(None, values.type)).cast(arrow), unfit


UUID = ColumnType(
    "uuid", lambda _unit, _timezone: pa.binary(16), (Form("bytes", is_uuid, read=as_uuids),), is_uuid, text=False
)


@pytest.fixture(autouse=True)
def table_with_uuid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(column_types, "TYPES", {UUID.name: UUID, **TYPES})


def put(desk: Any, name: str, ids: list[uuid.UUID | None], **more: Any) -> None:
    stored = pa.array([None if one is None else one.bytes for one in ids], pa.binary(16))
    pq.write_table(pa.table({"id": pa.ExtensionArray.from_storage(pa.uuid(), stored), **more}), desk.root / name)


def test_one_entry_in_the_table_of_types_is_a_new_type_from_parquet_to_every_reader(desk: Any) -> None:
    put(desk, "a.parquet", IDS, pair=pa.array([[IDS[0].bytes], []], pa.list_(pa.binary(16))))
    screen = desk.convert("a.parquet")
    assert (screen.code, screen.err) == (0, "")
    (shard,) = (desk.root / "out").glob("*.tfrecord")
    features = [Example.FromString(record).features.feature for record in read_records(shard)]
    assert [feature_values(one["id"]) for one in features] == [("bytes", [one.bytes]) for one in IDS]
    read = open_dataset(desk.root / "out")
    assert [(one.name, one.type, one.kind) for one in read.schema] == [
        ("id", "uuid", "bytes"),
        ("pair", "uuid", "bytes"),
    ]
    table = pa.Table.from_batches(read.batches())
    assert table.schema.types == [pa.binary(16), pa.list_(pa.binary(16))]
    assert table.to_pydict() == {"id": [one.bytes for one in IDS], "pair": [[IDS[0].bytes], []]}
    tfds = json.loads((desk.root / "out" / "features.json").read_text())["featuresDict"]["features"]["id"]
    assert (tfds["pythonClassName"].rpartition(".")[2], tfds["tensor"]["dtype"]) == ("Scalar", "string")
    assert b'name: "id"\n  type: BYTES' in (desk.root / "out" / "schema.pbtxt").read_bytes()


def test_appends_hold_files_to_the_new_type(desk: Any) -> None:
    put(desk, "a.parquet", [*IDS, None])
    assert desk.convert("a.parquet").code == 0
    put(desk, "b.parquet", IDS)
    append(str(desk.root / "b.parquet"), output=desk.root / "out")
    assert [row["id"] for row in open_dataset(desk.root / "out")] == [*(one.bytes for one in IDS), None] + [
        one.bytes for one in IDS
    ]
    pq.write_table(pa.table({"id": pa.array([b"other"], pa.binary())}), desk.root / "c.parquet")
    with pytest.raises(SchemaError, match=r"id +uuid \(bytes\) +binary \(bytes\) +re-typed"):
        append(str(desk.root / "c.parquet"), output=desk.root / "out")


def test_bytes_that_are_no_value_of_the_new_type_are_a_problem_of_their_record() -> None:
    written = feature_column(pa.array([IDS[0].bytes, b"short"]), Feature("id", "bytes", "binary")).column
    decoded = ExampleDecoder(Schema((Feature("id", "bytes", "uuid"),))).try_decode(encode_examples([written], 2))
    assert decoded.batch.column(0).to_pylist() == [IDS[0].bytes, None]
    assert [(one.row, one.reason) for one in decoded.problems] == [
        (1, 'feature "id": short does not fit the type uuid')
    ]
