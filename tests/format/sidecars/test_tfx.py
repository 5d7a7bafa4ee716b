from __future__ import annotations

import pytest
from shardmill.transforms.format.schema.schema import Feature, Schema
from shardmill.transforms.format.sidecars.sidecar_files import schema_text


def text_of(feature: Feature, labels: dict[str, tuple[str, ...]] | None = None) -> str:
    return schema_text(Schema((feature,)), labels).decode()


def test_a_schema_is_this_text() -> None:
    schema = Schema(
        (
            Feature("fare", "float", "float32", shape=(2, 3)),
            Feature("image/class/label", "int64", "label"),
            Feature("note", "bytes", "string", nullable=True),
            Feature("stops", "int64", "int16", shape=(-1,)),
        )
    )
    assert schema_text(schema, {"image/class/label": ("cat", "dog")}).decode() == (
        'feature {\n  name: "fare"\n  type: FLOAT\n  presence { min_fraction: 1.0 min_count: 1 }\n'
        "  shape {\n    dim { size: 2 }\n    dim { size: 3 }\n  }\n}\n"
        'feature {\n  name: "image/class/label"\n  type: INT\n  presence { min_fraction: 1.0 min_count: 1 }\n'
        '  shape { }\n  int_domain {\n    name: "image/class/label"\n    min: 0\n    max: 1\n'
        "    is_categorical: true\n  }\n}\n"
        'feature {\n  name: "note"\n  type: BYTES\n  presence { min_count: 0 }\n  value_count { min: 1 max: 1 }\n}\n'
        'feature {\n  name: "stops"\n  type: INT\n  presence { min_count: 0 }\n  value_count { min: 0 }\n'
        "  int_domain { min: -32768 max: 32767 }\n}\n"
    )


def test_a_nullable_fixed_shape_has_a_count_of_values_and_no_shape() -> None:
    text = text_of(Feature("a", "float", "float32", shape=(2, 3), nullable=True))
    assert "value_count { min: 6 max: 6 }" in text
    assert "shape" not in text


@pytest.mark.parametrize(
    ("feature", "domain"),
    [
        (Feature("a", "int64", "bool"), "bool_domain { }"),
        (Feature("a", "int64", "date"), "time_domain { integer_format: UNIX_DAYS }"),
        (Feature("a", "int64", "timestamp", unit="us"), "time_domain { integer_format: UNIX_MICROSECONDS }"),
        (Feature("a", "int64", "timestamp", unit="ns"), "time_domain { integer_format: UNIX_NANOSECONDS }"),
        (Feature("a", "int64", "uint64"), "int_domain { min: 0 max: 9223372036854775807 }"),
        (Feature("a", "bytes", "image"), "image_domain { }"),
    ],
)
def test_a_type_that_says_more_than_its_kind_has_a_domain(feature: Feature, domain: str) -> None:
    assert f"  {domain}\n" in text_of(feature)


def test_a_name_cannot_end_its_literal() -> None:
    assert '  name: "a\\"\\\\\\n\\001é"\n' in text_of(Feature('a"\\\n\x01é', "int64", "int64"))
