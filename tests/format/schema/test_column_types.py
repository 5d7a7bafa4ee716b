"""The table of types: each of them goes to records and back, as protobuf reads them, in every form and unit."""

from __future__ import annotations

import struct
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from shardmill.transforms.format.columns.feature_column import feature_column
from shardmill.transforms.format.examples.decode_examples import Example, feature_values
from shardmill.transforms.format.schema.arrow_types import arrow_type_of, feature_of
from shardmill.transforms.format.schema.column_types import TYPES, UNITS, ColumnType, Form, named_type, natural_type
from shardmill.transforms.format.schema.schema import ColumnRule, Feature, Schema

from ...examples import decode_examples, encode_examples

SAMPLES: dict[tuple[str, str], tuple[list[Any], list[Any]]] = {
    ("bool", "int64"): ([True, False], [1, 0]),
    ("int8", "int64"): ([-(2**7), 2**7 - 1], [-(2**7), 2**7 - 1]),
    ("int16", "int64"): ([-(2**15), 2**15 - 1], [-(2**15), 2**15 - 1]),
    ("int32", "int64"): ([-(2**31), 2**31 - 1], [-(2**31), 2**31 - 1]),
    ("int64", "int64"): ([-(2**63), 2**63 - 1], [-(2**63), 2**63 - 1]),
    ("uint8", "int64"): ([0, 2**8 - 1], [0, 2**8 - 1]),
    ("uint16", "int64"): ([0, 2**16 - 1], [0, 2**16 - 1]),
    ("uint32", "int64"): ([0, 2**32 - 1], [0, 2**32 - 1]),
    ("uint64", "int64"): ([0, 2**63 - 1], [0, 2**63 - 1]),
    ("float16", "float"): ([0.5, -65504.0], [0.5, -65504.0]),
    ("float32", "float"): ([0.25, 2.0**-149], [0.25, 2.0**-149]),
    ("float64", "float"): ([0.1, -2.5], [float(np.float32(0.1)), -2.5]),
    ("float64", "bytes"): ([0.1, 1e300], [struct.pack("<d", 0.1), struct.pack("<d", 1e300)]),
    ("float64", "int64"): ([-(2.0**63), 16777217.0], [-(2**63), 16777217]),
    ("string", "bytes"): (["", "né"], [b"", "né".encode()]),
    ("binary", "bytes"): ([b"", b"\xff\x00"], [b"", b"\xff\x00"]),
    ("date", "int64"): ([-1, 19_000], [-1, 19_000]),
    ("time", "int64"): ([0, 86_399], [0, 86_399]),
    ("timestamp", "int64"): ([-1, 86_400], [-1, 86_400]),
    ("duration", "int64"): ([-5, 86_400], [-5, 86_400]),
    ("label", "int64"): ([0, 9], [0, 9]),
    ("image", "bytes"): ([b"\xff\xd8", b"GIF"], [b"\xff\xd8", b"GIF"]),
    ("array_shape", "int64"): ([2, 3], [2, 3]),
    ("array_data", "bytes"): ([b"\1\0", b"\0\1"], [b"\1\0", b"\0\1"]),
}
"""By type and kind: two values as Arrow has them (of times their numbers), and what a record holds for them."""

CASES = [
    pytest.param(type_, form, unit, id=f"{type_.name}-{form.kind}-{unit}")
    for type_ in TYPES.values()
    for form, unit in product(type_.forms, UNITS if type_.unit else (None,))
]


def in_arrow(values: list[Any], type_: pa.DataType) -> pa.Array:
    """Return values and a null; of times, the values are their numbers."""
    if pa.types.is_temporal(type_) and not pa.types.is_interval(type_):
        return pa.array([*values, None], pa.int32() if type_.bit_width == 32 else pa.int64()).view(type_)
    return pa.array([*values, None], type_)


def shaped(values: pa.Array, shape: tuple[int, ...]) -> pa.Array:
    """Return three rows, one of them null: scalars, or lists of the two values."""
    if shape == ():
        return values
    two = values.slice(0, 2)
    if shape == (-1,):
        return pa.ListArray.from_arrays(pa.array([0, 2, None, 2], pa.int32()), two)
    return pa.FixedSizeListArray.from_arrays(pa.concat_arrays([two, two, two]), 2, mask=pa.array([False, True, False]))


@pytest.mark.parametrize("shape", [(), (-1,), (2,)], ids=["scalar", "list", "fixed"])
@pytest.mark.parametrize(("type_", "form", "unit"), CASES)
def test_protobuf_reads_the_values_of_every_type_and_they_come_back_as_arrow(
    type_: ColumnType, form: Form, unit: str | None, shape: tuple[int, ...]
) -> None:
    values, kept = SAMPLES[type_.name, form.kind]
    zone = "UTC" if type_.timezone else None
    feature = Feature("x", form.kind, type_.name, shape, True, unit=unit, timezone=zone, dtype=form.dtype)
    given = in_arrow(values, type_.arrow(unit or "us", zone))
    column = shaped(given, shape)
    converted = feature_column(column, feature)
    assert not converted.problems
    records = encode_examples([converted.column], 3)
    features = [Example.FromString(record.as_py()).features.feature for record in records]
    found = [feature_values(one["x"]) if "x" in one else None for one in features]
    rows = {(): [kept[:1], kept[1:], None], (-1,): [kept, [], None], (2,): [kept, None, kept]}[shape]
    assert found == [None if row is None else (form.kind, row) for row in rows]
    back = decode_examples(records, Schema((feature,))).column(0)
    back.validate(full=True)
    assert back.type == arrow_type_of(feature)
    value_type = back.type.value_type if shape else back.type
    assert back.to_pylist() == shaped(given.cast(value_type), shape).to_pylist()


@pytest.mark.parametrize(("type_", "form", "unit"), CASES)
def test_a_column_of_the_arrow_type_of_a_type_has_this_type_and_its_other_forms_on_request(
    type_: ColumnType, form: Form, unit: str | None
) -> None:
    if type_.declarable:
        rule = ColumnRule(as_=None if form is type_.forms[0] else form.kind, unit=unit)
        feature, _ = feature_of(pa.field("x", type_.arrow(unit or "us", None)), rule)
        assert (feature.type, feature.kind, feature.unit, feature.dtype) == (type_.name, form.kind, unit, form.dtype)
    else:
        assert natural_type(type_.arrow("us", None)) is not type_


def test_every_type_and_form_has_samples_here() -> None:
    assert list(SAMPLES) == [(type_.name, form.kind) for type_ in TYPES.values() for form in type_.forms]


def test_a_name_in_a_config_is_that_of_one_type_and_types_that_others_read_are_there() -> None:
    names = [(name, type_) for type_ in TYPES.values() if type_.declarable for name in type_.names]
    assert len(dict(names)) == len(names)
    assert all(named_type(name) is type_ for name, type_ in names)
    assert named_type("image") is None
    assert {name for type_ in TYPES.values() for name in (*type_.reads, *type_.stays)} < set(TYPES)


def test_a_type_reads_the_integers_of_which_it_holds_every_value() -> None:
    assert set(TYPES["int32"].reads) == {"bool", "int8", "int16", "uint8", "uint16"}
    assert set(TYPES["uint64"].reads) == {"bool", "uint8", "uint16", "uint32"}
