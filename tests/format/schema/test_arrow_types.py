from __future__ import annotations

import pyarrow as pa
import pytest
from shardmill.transforms.errors import SchemaError
from shardmill.transforms.format.schema.arrow_types import arrow_type_of, feature_of, type_words
from shardmill.transforms.format.schema.schema import ColumnRule, Feature


@pytest.mark.parametrize(
    ("arrow", "kind", "type_", "shape", "back"),
    [
        (pa.bool_(), "int64", "bool", (), pa.bool_()),
        (pa.int8(), "int64", "int8", (), pa.int8()),
        (pa.uint64(), "int64", "uint64", (), pa.uint64()),
        (pa.float16(), "float", "float16", (), pa.float16()),
        (pa.float32(), "float", "float32", (), pa.float32()),
        (pa.float64(), "float", "float64", (), pa.float32()),
        (pa.string(), "bytes", "string", (), pa.string()),
        (pa.large_string(), "bytes", "string", (), pa.string()),
        (pa.string_view(), "bytes", "string", (), pa.string()),
        (pa.binary(), "bytes", "binary", (), pa.binary()),
        (pa.large_binary(), "bytes", "binary", (), pa.binary()),
        (pa.binary_view(), "bytes", "binary", (), pa.binary()),
        (pa.binary(4), "bytes", "binary", (), pa.binary()),
        (pa.dictionary(pa.int8(), pa.string()), "bytes", "string", (), pa.string()),
        (pa.date32(), "int64", "date", (), pa.date32()),
        (pa.date64(), "int64", "date", (), pa.date32()),
        (pa.time32("s"), "int64", "time", (), pa.time64("us")),
        (pa.timestamp("ms", "Europe/Paris"), "int64", "timestamp", (), pa.timestamp("us", "Europe/Paris")),
        (pa.duration("s"), "int64", "duration", (), pa.duration("us")),
        (pa.null(), "bytes", "string", (), pa.string()),
        (pa.list_(pa.int32()), "int64", "int32", (-1,), pa.list_(pa.int32())),
        (pa.large_list(pa.string()), "bytes", "string", (-1,), pa.list_(pa.string())),
        (pa.list_view(pa.float32()), "float", "float32", (-1,), pa.list_(pa.float32())),
        (pa.list_(pa.dictionary(pa.int8(), pa.string())), "bytes", "string", (-1,), pa.list_(pa.string())),
        (pa.list_(pa.int64(), 3), "int64", "int64", (3,), pa.list_(pa.int64(), 3)),
        (pa.fixed_shape_tensor(pa.float32(), (2, 3)), "float", "float32", (2, 3), pa.list_(pa.float32(), 6)),
        (pa.uuid(), "bytes", "binary", (), pa.binary()),
    ],
)
def test_a_type_has_its_feature_and_the_feature_reads_back(
    arrow: pa.DataType, kind: str, type_: str, shape: tuple[int, ...], back: pa.DataType
) -> None:
    feature, reason = feature_of(pa.field("x", arrow))
    assert (feature.kind, feature.type, feature.shape, feature.nullable) == (kind, type_, shape, True)
    assert reason.startswith(type_words(arrow))
    assert arrow_type_of(feature) == back


@pytest.mark.parametrize(
    "arrow",
    [
        pa.decimal128(10, 2),
        pa.map_(pa.string(), pa.int64()),
        pa.struct([("a", pa.int64())]),
        pa.list_(pa.list_(pa.int64())),
        pa.list_(pa.struct([("a", pa.int64())])),
        pa.list_(pa.list_(pa.int64(), 2), 3),
        pa.dense_union([pa.field("a", pa.int64())]),
        pa.month_day_nano_interval(),
        pa.run_end_encoded(pa.int32(), pa.int64()),
        pa.fixed_shape_tensor(pa.float32(), (2, 3), permutation=[1, 0]),
    ],
)
def test_a_type_without_a_feature_is_an_error_that_names_the_column_and_the_type(arrow: pa.DataType) -> None:
    with pytest.raises(SchemaError) as raised:
        feature_of(pa.field("price", arrow))
    assert 'column "price"' in str(raised.value)
    assert str(arrow) in str(raised.value)
    assert "input.exclude_columns" in str(raised.value)


@pytest.mark.parametrize(
    ("arrow", "rule", "feature"),
    [
        (pa.float64(), ColumnRule(as_="bytes"), Feature("x", "bytes", "float64", nullable=True, dtype="<f8")),
        (pa.float64(), ColumnRule(as_="float"), Feature("x", "float", "float64", nullable=True)),
        (pa.float64(), ColumnRule(type="float"), Feature("x", "float", "float64", nullable=True)),
        (pa.string(), ColumnRule(type="bytes"), Feature("x", "bytes", "binary", nullable=True)),
        (pa.binary(), ColumnRule(type="string"), Feature("x", "bytes", "string", nullable=True)),
        (pa.uint64(), ColumnRule(type="string"), Feature("x", "bytes", "string", nullable=True)),
        (pa.int8(), ColumnRule(type="int64", nullable=False), Feature("x", "int64", "int64")),
        (pa.int32(), ColumnRule(type="int"), Feature("x", "int64", "int64", nullable=True)),
        (pa.uint8(), ColumnRule(type="int16"), Feature("x", "int64", "int16", nullable=True)),
        (pa.uint8(), ColumnRule(type="uint32"), Feature("x", "int64", "uint32", nullable=True)),
        (pa.float64(), ColumnRule(type="float32"), Feature("x", "float", "float64", nullable=True)),
        (pa.float32(), ColumnRule(type="float64"), Feature("x", "float", "float32", nullable=True)),
        (pa.float16(), ColumnRule(type="float32"), Feature("x", "float", "float16", nullable=True)),
        (pa.bool_(), ColumnRule(type="float"), Feature("x", "float", "float32", nullable=True)),
        (pa.bool_(), ColumnRule(type="int8"), Feature("x", "int64", "int8", nullable=True)),
        (pa.int64(), ColumnRule(type="float32"), Feature("x", "float", "float32", nullable=True)),
        (pa.int64(), ColumnRule(type="double"), Feature("x", "float", "float64", nullable=True)),
        (pa.list_(pa.int8()), ColumnRule(type="float"), Feature("x", "float", "float32", (-1,), nullable=True)),
        (
            pa.timestamp("ns"),
            ColumnRule(unit="ns", timezone="UTC"),
            Feature("x", "int64", "timestamp", nullable=True, unit="ns", timezone="UTC"),
        ),
    ],
)
def test_a_rule_changes_what_it_declares(arrow: pa.DataType, rule: ColumnRule, feature: Feature) -> None:
    assert feature_of(pa.field("x", arrow), rule)[0] == feature


@pytest.mark.parametrize(
    ("arrow", "rule", "says"),
    [
        (pa.string(), ColumnRule(type="int64"), 'declares type "int64"'),
        (pa.uint64(), ColumnRule(type="int64"), 'declares type "int64"'),
        (pa.int64(), ColumnRule(type="int32"), 'declares type "int32"'),
        (pa.int8(), ColumnRule(type="uint16"), 'declares type "uint16"'),
        (pa.int64(), ColumnRule(type="double", as_="bytes"), 'declares type "double"'),
        (pa.int64(), ColumnRule(type="float16"), 'declares type "float16"'),
        (pa.float64(), ColumnRule(type="float16"), 'declares type "float16"'),
        (pa.float64(), ColumnRule(type="int64"), 'declares type "int64"'),
        (pa.string(), ColumnRule(type="float"), 'declares type "float"'),
        (pa.float32(), ColumnRule(as_="bytes"), '"as: bytes" does not fit type float32'),
        (pa.float32(), ColumnRule(as_="int64"), '"as: int64" does not fit type float32'),
        (pa.string(), ColumnRule(unit="us"), "a unit or a timezone does not fit"),
        (pa.timestamp("us"), ColumnRule(unit="days"), "is none of s, ms, us, ns"),
        (pa.timestamp("us"), ColumnRule(timezone="Asia/Tokyo"), 'timezone "Asia/Tokyo" is declared'),
    ],
)
def test_a_rule_that_does_not_fit_is_an_error(arrow: pa.DataType, rule: ColumnRule, says: str) -> None:
    with pytest.raises(SchemaError, match=says):
        feature_of(pa.field("x", arrow), rule)


def test_an_unknown_feature_type_has_no_arrow_type() -> None:
    with pytest.raises(SchemaError, match='feature "x": type "money" is unknown'):
        arrow_type_of(Feature("x", "int64", "money"))


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (pa.large_string(), "string"),
        (pa.binary_view(), "binary"),
        (pa.binary(4), "fixed_size_binary[4]"),
        (pa.large_list_view(pa.large_list(pa.string_view())), "list<list<string>>"),
        (pa.list_(pa.field("element", pa.float32()), 3), "list<float>[3]"),
        (pa.dictionary(pa.int8(), pa.large_string()), "dictionary of string"),
        (
            pa.struct({"x": pa.large_binary(), "b": pa.map_(pa.string(), pa.int8())}),
            "struct<x: binary, b: map<string, int8>>",
        ),
        (pa.fixed_shape_tensor(pa.int16(), [2, 3]), "tensor of int16, shape [2, 3]"),
        (pa.uuid(), "fixed_size_binary[16]"),
        (pa.timestamp("us", "UTC"), "timestamp[us, tz=UTC]"),
    ],
)
def test_a_type_is_called_by_what_it_holds_and_not_by_its_layout(kind: pa.DataType, words: str) -> None:
    assert type_words(kind) == words
