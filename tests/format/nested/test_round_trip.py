"""Nested columns and decimals: taken apart into features, encoded, decoded, and put together again."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from shardmill.transforms.format.columns.feature_column import feature_column
from shardmill.transforms.format.columns.flatten import Disagreement, assemble, flatten_column
from shardmill.transforms.format.columns.keys import ranks_of, type_document, type_of_document, unheld
from shardmill.transforms.format.schema.arrow_types import feature_of
from shardmill.transforms.format.schema.schema import ColumnRule, Schema

from ...examples import decode_examples, encode_examples
from ...tiers import examples

LEAVES = {
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.int8(): st.integers(-128, 127),
    pa.bool_(): st.booleans(),
    pa.float32(): st.floats(width=32, allow_nan=False),
    pa.string(): st.text(max_size=3),
    pa.large_string(): st.text(max_size=3),
    pa.binary(): st.binary(max_size=3),
    pa.timestamp("ns", "UTC"): st.datetimes(
        dt.datetime(1970, 1, 1), dt.datetime(2200, 1, 1), timezones=st.just(dt.UTC)
    ),
    pa.date32(): st.dates(),
    pa.decimal128(9, 3): st.integers(-(10**9) + 1, 10**9 - 1).map(lambda n: Decimal(n).scaleb(-3)),
    pa.decimal256(50, 0): st.integers(-(10**50) + 1, 10**50 - 1).map(Decimal),
    pa.dictionary(pa.int32(), pa.string()): st.text(max_size=2),
}


def lists_of(inner: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[pa.DataType]:
    """Return nested types around others; within a list nothing is null, which no list of features can hold."""
    fields = st.lists(inner, min_size=1, max_size=3)
    return st.one_of(
        inner.map(lambda kind: pa.list_(pa.field("item", kind, nullable=False))),
        inner.map(lambda kind: pa.large_list(pa.field("item", kind, nullable=False))),
        st.tuples(inner, st.integers(1, 3)).map(lambda pair: pa.list_(pa.field("item", pair[0], False), pair[1])),
        fields.map(lambda kinds: pa.struct([pa.field(f"f{i}", kind) for i, kind in enumerate(kinds)])),
        st.tuples(st.sampled_from([pa.string(), pa.int64()]), inner).map(lambda pair: pa.map_(*pair)),
    )


KINDS = st.recursive(st.sampled_from(list(LEAVES)), lists_of, max_leaves=5)


def values_of(kind: pa.DataType, *, listed: bool = False) -> st.SearchStrategy[Any]:
    """Return values of a type, with nulls where they can be told: not within lists."""
    types = pa.types
    if types.is_struct(kind):
        found: st.SearchStrategy[Any] = st.fixed_dictionaries(
            {field.name: values_of(field.type, listed=listed) for field in kind}
        )
    elif types.is_map(kind):
        pair = st.tuples(values_of(kind.key_type, listed=True), values_of(kind.item_type, listed=True))
        found = st.lists(pair, max_size=3)
    elif types.is_fixed_size_list(kind):
        size = kind.list_size
        found = st.lists(values_of(kind.value_type, listed=True), min_size=size, max_size=size)
    elif types.is_list(kind) or types.is_large_list(kind):
        found = st.lists(values_of(kind.value_type, listed=True), max_size=3)
    else:
        return LEAVES[kind] if listed else st.none() | LEAVES[kind]
    return found if listed else st.none() | found


COLUMNS = KINDS.flatmap(
    lambda kind: st.tuples(st.just(kind), st.lists(values_of(kind), min_size=1, max_size=5), st.integers(0, 2))
)


def encoded_and_decoded(array: pa.Array) -> dict[str, pa.Array]:
    """Return the features of a column, by name, as a dataset gives them back."""
    flat = flatten_column("x", array, nullable=True)
    assert flat.problems == ()
    features = {}
    for column in flat.columns:
        rule = ColumnRule(unit="ns") if "timestamp" in str(column.values.type) else None
        features[column.name] = feature_of(pa.field(column.name, column.values.type, column.nullable), rule)[0]
    converted = [feature_column(column.values, features[column.name]) for column in flat.columns]
    assert not any(conversion.problems for conversion in converted)
    schema = Schema(tuple(features[name] for name in sorted(features)))
    batch = decode_examples(encode_examples([one.column for one in converted], len(array)), schema)
    return dict(zip(batch.schema.names, batch.columns, strict=True))


def put_together(array: pa.Array) -> pa.Array:
    back = assemble("x", type_of_document(type_document(array.type)), encoded_and_decoded(array))
    back.validate(full=True)
    return back


@settings(max_examples=examples(250), deadline=None)
@given(drawn=COLUMNS)
def test_a_column_of_any_type_comes_back_as_it_was(drawn: tuple[pa.DataType, list[Any], int]) -> None:
    kind, values, cut = drawn
    assume(unheld(kind) is None and cut < len(values))
    array = pa.array(values, kind).slice(cut)
    assert put_together(array).to_pylist() == array.to_pylist()


def in_views(kind: pa.DataType) -> pa.DataType:
    """Return a type whose lists of any length are list views."""
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(in_views(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, in_views(kind.item_type))
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(in_views(kind.value_type), kind.list_size)
    listed = pa.types.is_list(kind) or pa.types.is_large_list(kind)
    return pa.list_view(in_views(kind.value_type)) if listed else kind


@settings(max_examples=examples(100), deadline=None)
@given(drawn=COLUMNS)
def test_list_views_at_any_depth_come_back_as_lists(drawn: tuple[pa.DataType, list[Any], int]) -> None:
    kind, values, cut = drawn
    assume(unheld(kind) is None and cut < len(values))
    array = pa.array(values, in_views(kind)).slice(cut)
    assert put_together(array).to_pylist() == array.to_pylist()


LISTS = pa.array([[[1, 2], []], None, [[3]], []], pa.list_(pa.list_(pa.int16())))
BOXES = pa.array([[[0.0, 0.5, 1.0, 1.0]], None, []], pa.list_(pa.list_(pa.float32(), 4)))
STRUCTS = pa.array([{"a": 1, "b": {"c": "x"}}, None, {"a": None, "b": None}])
EVENTS = pa.array([[{"t": 1, "w": ["a"]}, {"t": 2, "w": []}], None, []])
TAGS = pa.array([[("k", 1), ("k", 2)], None, []], pa.map_(pa.string(), pa.int32()))
VIEWS = pa.array([[("k", "v")], None, [("l", None)]], pa.map_(pa.string(), pa.string_view()))
UNKNOWN = pa.array([{"a": None, "b": 1}, None])
CUBES = pa.array([[[[1], []], []]], pa.list_(pa.list_(pa.list_(pa.int64()))))
KEYS: dict[str, tuple[pa.Array, dict[str, list[Any]]]] = {
    "lists of lists": (
        LISTS,
        {
            "x/present": [1, 0, 1, 1],
            "x/ragged_flat_values": [[1, 2], None, [3], []],
            "x/ragged_row_lengths_0": [[2, 0], None, [1], []],
        },
    ),
    "three levels": (
        CUBES,
        {
            "x/present": [1],
            "x/ragged_flat_values": [[1]],
            "x/ragged_row_lengths_0": [[2, 0]],
            "x/ragged_row_lengths_1": [[1, 0]],
        },
    ),
    "lists of fixed-size lists": (BOXES, {"x": [[0.0, 0.5, 1.0, 1.0], None, []]}),
    "structs": (
        STRUCTS,
        {"x/present": [1, 0, 1], "x/a": [1, None, None], "x/b/present": [1, 0, 0], "x/b/c": ["x", None, None]},
    ),
    "lists of structs": (
        EVENTS,
        {
            "x/present": [1, 0, 1],
            "x/t": [[1, 2], None, []],
            "x/w/ragged_flat_values": [["a"], None, []],
            "x/w/ragged_row_lengths_0": [[1, 0], None, []],
        },
    ),
    "maps": (TAGS, {"x/present": [1, 0, 1], "x/key": [["k", "k"], None, []], "x/value": [[1, 2], None, []]}),
    "a child that nobody knows": (UNKNOWN, {"x/present": [1, 0], "x/a": [None, None], "x/b": [1, None]}),
    "decimals": (pa.array([Decimal("1.50"), None], pa.decimal128(9, 2)), {"x": ["1.50", None]}),
    "small decimals": (pa.array([Decimal("1E-8")], pa.decimal128(9, 8)), {"x": ["0.00000001"]}),
    "decimals of thousands": (pa.array([Decimal("1200")], pa.decimal128(9, -2)), {"x": ["1200"]}),
}


@pytest.mark.parametrize("case", KEYS)
def test_the_keys_are_those_of_tfds_and_present_stands_where_they_cannot_tell(case: str) -> None:
    array, keys = KEYS[case]
    assert {name: column.to_pylist() for name, column in encoded_and_decoded(array).items()} == keys
    assert put_together(array).to_pylist() == array.to_pylist()


def test_views_of_text_within_maps_are_taken_as_text() -> None:
    assert put_together(VIEWS.slice(0, 2)).to_pylist() == [[("k", "v")], None]


def test_a_column_that_is_never_null_has_no_present() -> None:
    flat = flatten_column("x", EVENTS.drop_null(), nullable=False)
    assert [column.name for column in flat.columns] == ["x/t", "x/w/ragged_flat_values", "x/w/ragged_row_lengths_0"]
    assert not any(column.nullable for column in flat.columns)


@pytest.mark.parametrize(
    ("values", "rows"),
    [
        (pa.array([[[1]], [None, [2]], None], pa.list_(pa.list_(pa.int64()))), [1]),
        (pa.array([[{"w": [1]}], [{"w": [2]}, {"w": None}]]), [1]),
        (pa.array([[[1, 2]], [None]], pa.list_(pa.list_(pa.int64(), 2))), [1]),
        (pa.array([[[1], [2]], None, [None, [3]]], pa.list_(pa.list_(pa.int64(), 1), 2)), [2]),
    ],
)
def test_a_list_that_is_null_within_a_list_is_a_problem_of_its_row(values: pa.Array, rows: list[int]) -> None:
    problems = flatten_column("x", values, nullable=True).problems
    assert [(problem.row, problem.error.code) for problem in problems] == [(row, "NULL_IN_LIST") for row in rows]


class TestDecimals:
    VALUES = pa.array([Decimal("1.50"), None, Decimal("-0.01"), Decimal("-92233720368547758.08")], pa.decimal128(20, 2))

    @pytest.mark.parametrize("kind", [pa.decimal128(20, 2), pa.decimal256(40, 2), pa.decimal64(18, 2)])
    def test_scaled_they_are_the_integers_without_the_point(self, kind: pa.DataType) -> None:
        values = self.VALUES.slice(0, 3).cast(kind)
        (flat,) = flatten_column("x", values.slice(1), nullable=True, as_="scaled").columns
        assert flat.values.to_pylist() == [None, -1]
        back = type_of_document(type_document(kind))
        assert assemble("x", back, {"x": flat.values}).to_pylist() == [None, Decimal("-0.01")]

    def test_the_whole_range_of_int64_is_held_and_what_is_beyond_is_a_problem(self) -> None:
        beyond = pa.array([Decimal("92233720368547758.08")], pa.decimal128(20, 2))
        flat = flatten_column("x", pa.concat_arrays([self.VALUES, beyond]), nullable=True, as_="scaled")
        assert flat.columns[0].values.to_pylist()[:4] == [150, None, -1, -(2**63)]
        assert [(problem.row, problem.error.code) for problem in flat.problems] == [(4, "INT_OVERFLOW")]

    def test_lists_of_them_are_scaled_too(self) -> None:
        lists = pa.array([[Decimal("1.10"), Decimal("2.20")], [], None], pa.list_(pa.decimal128(9, 2)))
        for values in (lists, lists.slice(1)):
            (flat,) = flatten_column("x", values, nullable=True, as_="scaled").columns
            assert flat.values.to_pylist() == [[110, 220], [], None][3 - len(values) :]
            assert assemble("x", lists.type, {"x": flat.values}).to_pylist() == values.to_pylist()

    def test_as_floats_they_are_the_nearest(self) -> None:
        (flat,) = flatten_column("x", self.VALUES.slice(0, 3), nullable=True, as_="float").columns
        assert flat.values.to_pylist() == [1.5, None, -0.01]


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        (TAGS, ['[["k",1],["k",2]]', None, "{}"]),
        (pa.array([[(1, "a")], []], pa.map_(pa.int64(), pa.string())), ['[[1,"a"]]', "[]"]),
        (pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int32())), ['{"a":1}']),
        (STRUCTS.slice(0, 2), ['{"a":1,"b":{"c":"x"}}', None]),
        (pa.array([[{"d": dt.date(2024, 2, 1), "b": b"\xff"}]]), ['[{"b":"/w==","d":"2024-02-01"}]']),
    ],
)
def test_as_json_a_column_is_one_text(values: pa.Array, texts: list[str | None]) -> None:
    (flat,) = flatten_column("x", values, nullable=True, as_="json").columns
    assert [json.loads(text) if text else None for text in flat.values.to_pylist()] == [
        json.loads(text) if text else None for text in texts
    ]


@pytest.mark.parametrize(
    "broken",
    [
        {"x/ragged_row_lengths_0": [[2, 0], None, [2], []]},
        {"x/ragged_row_lengths_0": [[3, -1], None, [1], []]},
        {"x/ragged_flat_values": [[1], None, [3], []]},
    ],
)
def test_features_that_do_not_hold_one_column_are_refused(broken: dict[str, list[Any]]) -> None:
    features = KEYS["lists of lists"][1] | broken
    with pytest.raises(Disagreement):
        assemble("x", LISTS.type, {name: pa.array(values) for name, values in features.items()})


def test_lists_of_another_length_than_their_type_has_are_refused() -> None:
    kind = pa.list_(pa.list_(pa.int64()), 2)
    features = {"x/ragged_flat_values": pa.array([[1], [2]]), "x/ragged_row_lengths_0": pa.array([[1], [1]])}
    with pytest.raises(Disagreement):
        assemble("x", kind, features)


def test_leaves_of_one_list_that_differ_in_length_are_refused() -> None:
    features = {"x/key": pa.array([["a"]]), "x/value": pa.array([[1, 2]])}
    with pytest.raises(Disagreement):
        assemble("x", TAGS.type, features)


def deep(levels: int) -> pa.DataType:
    return pa.int64() if not levels else pa.struct([("a", deep(levels - 1))])


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        (pa.struct([]), "a struct without fields has no values"),
        (pa.list_(pa.list_(pa.int64(), 0)), "lists of length 0 have no values"),
        (deep(40), "it has more than 20 levels"),
        (pa.list_(pa.struct([("a", pa.struct([]))])), "a struct without fields has no values"),
        (pa.month_day_nano_interval(), "no feature holds it"),
        (pa.map_(pa.string(), pa.dense_union([pa.field("a", pa.int8())])), "no feature holds it"),
        (pa.list_(pa.list_(pa.int8(), 1 << 12), 1 << 12), "its shape is too large"),
        (pa.fixed_shape_tensor(pa.int8(), (2, 3), permutation=[1, 0]), "its dimensions are permuted"),
    ],
)
def test_what_no_features_hold_is_known_by_its_type(kind: pa.DataType, why: str) -> None:
    assert unheld(kind) == why


def test_lists_of_lists_are_known_by_their_keys() -> None:
    keys = ["a/ragged_flat_values", "b/ragged_flat_values", "b/ragged_row_lengths_0", "b/ragged_row_lengths_1"]
    assert ranks_of(keys) == {"b": 3}
