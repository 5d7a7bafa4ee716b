"""What is said of an expression that does not fit the columns."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest
from shardmill.transforms.errors import SchemaError
from shardmill.transforms.recipe.step import Column
from shardmill.transforms.recipe.steps.where import Where

FIELDS = pa.schema(
    {
        "l": pa.list_(pa.int64()), "s": pa.struct({"a": pa.int64()}), "m": pa.map_(pa.string(), pa.int64()),
        "z": pa.timestamp("us", "UTC"), "n": pa.timestamp("us"), "d": pa.date32(), "t": pa.time64("us"),
        "u": pa.duration("us"), "x": pa.string(), "i": pa.int64(), "b": pa.bool_(), "y": pa.binary(),
        "c": pa.decimal128(9, 2),
    }
)  # fmt: skip
COLUMNS = [Column(field, field.name) for field in FIELDS]
BY_FUNCTION = "filter the rows by a function of yours, in Python: convert(..., map=function)"
OF_A_LIST = f"of a list only length(l) and is_null(l) are known here, or {BY_FUNCTION}"
DECLARE = "or declare another type of the column: --set schema.columns.{}.type=TYPE"
ZONED = 'the column has a time zone: write times with one, like z > "2024-01-31T12:00:00Z"'


@pytest.mark.parametrize(
    ("expression", "part", "fix"),
    [
        ("contains(l, 'a')", "contains(l, 'a') does not fit: l is list<int64>", f"contains takes text; {OF_A_LIST}"),
        ("i > 1 and lower(l) == 'a'", "lower(l) does not fit: l is list<int64>", f"lower takes text; {OF_A_LIST}"),
        ("l == 1 or i > 1", "l == 1 does not fit: l is list<int64>", OF_A_LIST),
        ("l in [1]", "l in [1] does not fit: l is list<int64>", OF_A_LIST),
        (
            "contains(i, 'a')",
            "contains(i, 'a') does not fit: i is int64",
            "contains takes text; compare with a value, like i == 5",
        ),
        (
            "contains(x, 5)",
            "contains(x, 5) does not fit: x is string",
            'contains takes text in quotes as its second argument: contains(x, "a")',
        ),
        ("z > '2024-01-01'", "z > '2024-01-01' does not fit: z is timestamp[us, tz=UTC]", ZONED),
        ("z in ['2024-01-01']", "z in ['2024-01-01'] does not fit: z is timestamp[us, tz=UTC]", ZONED),
        (
            "n > '2024-01-01Z'",
            "n > '2024-01-01Z' does not fit: n is timestamp[us]",
            'the column has no time zone: write times without one, like n > "2024-01-31T12:00:00"',
        ),
        (
            "z - n > 5",
            "z - n does not fit: z is timestamp[us, tz=UTC], n is timestamp[us]",
            "one has a time zone, and the other has none: schema.columns.NAME.timezone gives one",
        ),
        (
            "d > 5",
            "d > 5 does not fit: d is date32[day]",
            f'compare with a value, like d == "2024-01-31"; {DECLARE.format("d")}',
        ),
        (
            "t > 'noon'",
            "t > 'noon' does not fit: t is time64[us]",
            f'compare with a value, like t == "12:00:00"; {DECLARE.format("t")}',
        ),
        ("x > 5", "x > 5 does not fit: x is string", f'compare with a value, like x == "a"; {DECLARE.format("x")}'),
        (
            "length(x) == '5'",
            "length(x) == '5' does not fit: length(x) is int64",
            "compare with a value, like length(x) == 5",
        ),
        (
            "c == '1.50'",
            "c == '1.50' does not fit: c is decimal128(9, 2)",
            f"compare with a value, like c == 1.5; {DECLARE.format('c')}",
        ),
        ("b == 1", "b == 1 does not fit: b is bool", f"compare with a value, like b == True; {DECLARE.format('b')}"),
        ("u > 5", "u > 5 does not fit: u is duration[us]", f"{BY_FUNCTION}; {DECLARE.format('u')}"),
        (
            "x == y",
            "x == y does not fit: x is string, y is binary",
            "both sides must be of one kind; schema.columns.NAME.type declares that of a column",
        ),
        (
            "x in ['a', 1]",
            "x in ['a', 1] does not fit: x is string",
            "the list has text and numbers; write all in quotes, or none",
        ),
        ("x in []", "x in [] does not fit: x is string", "give a value in the list"),
        (
            "i and b",
            "i and b does not fit: i is int64, b is bool",
            "`and` and `or` join what is true or false: compare each side with a value",
        ),
        ("not i", "not i does not fit: i is int64", "`not` turns what is true or false: compare with a value"),
        (
            "i + x > 1",
            "i + x does not fit: i is int64, x is string",
            f"+ - * and / compute with numbers, or {BY_FUNCTION}",
        ),
        ("length(i) > 1", "length(i) does not fit: i is int64", "length takes text or a list"),
        ("s == 1", "s == 1 does not fit: s is struct<a: int64>", "compare a field of it, as s.a"),
        ("s.b == 1", "s.b does not fit: s is struct<a: int64>", 'there is no field "b"; there are: a'),
        (
            "x.a == 1",
            "x.a does not fit: x is string",
            'only structs have fields; a column whose name has a dot is col("x.a")',
        ),
        (
            "m == 1",
            "m == 1 does not fit: m is map<string, int64>",
            f"of a map only is_null(m) is known here, or {BY_FUNCTION}",
        ),
        ("i > 99999999999999999999", "99999999999999999999 does not fit", "it is beyond the integers of 64 bits"),
    ],
)
def test_the_part_that_does_not_fit_is_named_with_its_types_and_what_to_write(
    expression: str, part: str, fix: str
) -> None:
    with pytest.raises(SchemaError) as caught:
        Where(expression).plan(COLUMNS)
    assert str(caught.value) == f"input.where: {part}; {fix}"


def test_times_of_a_day_are_compared_with_text() -> None:
    times = pa.array([dt.time(11, 59), dt.time(12, 30), None], pa.time64("us"))
    batch = pa.RecordBatch.from_arrays([times], names=["t"])
    for expression, wanted in {"t >= '12:00'": [False, True, None], "t in ['11:59:00']": [True, False, None]}.items():
        keep = Where(expression).apply(batch, "").keep
        assert keep is not None
        assert keep.to_pylist() == wanted
