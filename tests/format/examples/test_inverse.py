from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st
from shardmill.transforms.format.columns.feature_column import feature_column
from shardmill.transforms.format.schema.arrow_types import feature_of
from shardmill.transforms.format.schema.schema import ColumnRule, Feature, Schema

from ...examples import decode_examples, encode_examples
from ...tiers import examples

INT64 = st.integers(-(1 << 63), (1 << 63) - 1)
VALUES: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    (pa.bool_(), st.booleans()),
    (pa.int8(), st.integers(-128, 127)),
    (pa.uint32(), st.integers(0, (1 << 32) - 1)),
    (pa.uint64(), st.integers(0, (1 << 63) - 1)),
    (pa.int64(), INT64),
    (pa.float16(), st.floats(width=16, allow_nan=False)),
    (pa.float32(), st.floats(width=32, allow_nan=False)),
    (pa.string(), st.text(max_size=20)),
    (pa.binary(), st.binary(max_size=20)),
    (pa.date32(), st.dates()),
    (pa.time64("us"), st.times()),
    (pa.timestamp("us", "UTC"), st.datetimes(timezones=st.just(dt.UTC))),
    (pa.timestamp("us"), st.datetimes()),
    (pa.duration("us"), st.timedeltas(dt.timedelta(-100_000), dt.timedelta(100_000))),
]


@st.composite
def columns(draw: st.DrawFn, rows: int) -> pa.Array:
    type_, values = draw(st.sampled_from(VALUES))
    shape = draw(st.sampled_from(["scalar", "list", "fixed"]))
    if shape == "list":
        type_, values = pa.list_(type_), st.lists(values, max_size=5)
    elif shape == "fixed":
        type_, values = pa.list_(type_, 3), st.lists(values, min_size=3, max_size=3)
    if draw(st.booleans()):
        values = st.one_of(st.none(), values)
    return pa.array(draw(st.lists(values, min_size=rows, max_size=rows)), type_)


@st.composite
def tables(draw: st.DrawFn) -> dict[str, pa.Array]:
    rows = draw(st.integers(1, 12))
    names = draw(st.lists(st.text("ab/é", max_size=4), unique=True, min_size=1, max_size=5))
    return {name: draw(columns(rows)) for name in names}


def encode(table: dict[str, pa.Array], schema: Schema) -> pa.LargeBinaryArray:
    converted = [feature_column(table[feature.name], feature) for feature in schema]
    assert not any(conversion.problems for conversion in converted)
    return encode_examples([conversion.column for conversion in converted], len(next(iter(table.values()))))


def schema_of(table: dict[str, pa.Array], **rule: Any) -> Schema:
    found: list[Feature] = []
    for name in sorted(table):
        field = pa.field(name, table[name].type, nullable=table[name].null_count > 0)
        found.append(feature_of(field, ColumnRule(**rule))[0])
    return Schema(tuple(found))


@settings(max_examples=examples(150), deadline=None)
@given(tables())
def test_what_the_encoder_wrote_decodes_to_the_same_arrays(table: dict[str, pa.Array]) -> None:
    schema = schema_of(table)
    batch = decode_examples(encode(table, schema), schema)
    batch.validate(full=True)
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        assert column.type == table[name].type
        assert column.to_pylist() == table[name].to_pylist()


def test_float64_comes_back_narrowed_or_exact_as_it_was_declared() -> None:
    table = {"x": pa.array([0.1, None, -2.5], pa.float64())}
    narrowed, exact = schema_of(table), schema_of(table, as_="bytes")
    assert decode_examples(encode(table, narrowed), narrowed).column(0).to_pylist() == [0.10000000149011612, None, -2.5]
    assert decode_examples(encode(table, exact), exact).column(0).equals(table["x"])


def test_a_dictionary_comes_back_as_its_values() -> None:
    table = {"x": pa.array(["b", None, "a", "b"]).dictionary_encode()}
    schema = schema_of(table)
    assert decode_examples(encode(table, schema), schema).column(0).equals(pa.array(["b", None, "a", "b"]))


def test_a_timestamp_comes_back_with_its_unit_and_timezone() -> None:
    table = {"x": pa.array([1, None, -5], pa.timestamp("ns", "Europe/Berlin"))}
    schema = schema_of(table, unit="ns")
    assert decode_examples(encode(table, schema), schema).column(0).equals(table["x"])
