from __future__ import annotations

import hashlib
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shardmill.transforms.errors import SchemaError, UsageError
from shardmill.transforms.format.batches.arrow_memory import I64
from shardmill.transforms.format.batches.rows import FeatureColumn
from shardmill.transforms.format.columns.feature_column import feature_column
from shardmill.transforms.format.schema.arrow_types import feature_of
from shardmill.transforms.format.schema.schema import Feature, Schema
from shardmill.transforms.format.splits.by_row import HashSplits


def column(array: pa.Array) -> FeatureColumn:
    return feature_column(array, feature_of(pa.field("id", array.type))[0]).column


def no_payload(rows: I64) -> list[bytes]:
    raise AssertionError(f"rows {rows} have a key")


def slow_code(text: bytes, fractions: list[Decimal], word: int = 0) -> int:
    number = int.from_bytes(hashlib.sha256(text).digest()[8 * word : 8 * word + 8], "big")
    total = Decimal(0)
    for code, fraction in enumerate(fractions):
        total += fraction
        if number < int(total * 2**64):
            return code
    raise AssertionError("the fractions do not add up to 1")


@given(
    st.lists(st.integers(1, 99), min_size=1, max_size=5),
    st.lists(st.binary(max_size=20), max_size=30),
    st.sampled_from([0, 1]),
)
def test_rows_go_where_exact_arithmetic_sends_them(weights: list[int], keys: list[bytes], word: int) -> None:
    fractions = [Decimal(weight) / 1000 for weight in weights]
    fractions.append(1 - sum(fractions))
    rule = HashSplits.by_fraction({f"s{i}": float(fraction) for i, fraction in enumerate(fractions)}, "id", word)
    codes = rule.codes(column(pa.array(keys, pa.binary())), len(keys), no_payload)
    assert codes.tolist() == [slow_code(key, fractions, word) for key in keys]


def test_the_splits_of_these_keys_are_frozen() -> None:
    rule = HashSplits.by_fraction({"train": 0.6, "val": 0.3, "test": 0.1}, "id")
    codes = rule.codes(column(pa.array([str(i) for i in range(24)])), 24, no_payload)
    assert "".join(rule.names[code][0:2] + " " for code in codes) == (
        "tr tr va tr tr te te tr tr tr tr tr tr tr tr va va tr tr tr te tr tr tr "
    )


def test_an_int_and_its_digits_go_the_same_way() -> None:
    rule = HashSplits.by_fraction({"a": 0.5, "b": 0.5}, "id")
    numbers = [-(2**63), -1, 0, 7, 2**63 - 1, *range(100, 200)]
    as_ints = rule.codes(column(pa.array(numbers)), len(numbers), no_payload)
    as_texts = rule.codes(column(pa.array([str(n) for n in numbers])), len(numbers), no_payload)
    assert as_ints.tolist() == as_texts.tolist()
    assert 0 < as_ints.sum() < len(numbers)


def test_a_float_key_is_hashed_as_its_four_bytes() -> None:
    rule = HashSplits.by_fraction({"a": 0.5, "b": 0.5}, "id")
    values = np.arange(50, dtype="<f4") / 3
    codes = rule.codes(column(pa.array(values)), 50, no_payload)
    assert codes.tolist() == [slow_code(value.tobytes(), [Decimal("0.5")] * 2) for value in values]


def test_a_row_without_the_key_is_hashed_as_its_record() -> None:
    rule = HashSplits.by_fraction({"a": 0.5, "b": 0.5}, "id")
    records = [b"%d" % i for i in range(40)]
    expected = [slow_code(record, [Decimal("0.5")] * 2) for record in records]

    def given_rows(rows: I64) -> list[bytes]:
        return [records[row] for row in rows.tolist()]

    assert rule.codes(column(pa.nulls(40, pa.int64())), 40, given_rows).tolist() == expected
    assert HashSplits.by_fraction({"a": 0.5, "b": 0.5}).codes(None, 40, given_rows).tolist() == expected
    every_third = pa.array([None if i % 3 else i for i in range(40)], pa.int64())
    assert rule.codes(column(every_third), 40, given_rows).tolist() == expected


def test_decimals_that_floats_cannot_add_add_up() -> None:
    assert HashSplits.by_fraction({f"s{i}": 0.1 for i in range(10)}).names[9] == "s9"


@pytest.mark.parametrize(
    ("names", "fractions", "key", "says"),
    [
        (("a", "b"), (0.5, 0.6), None, "add up to 1.1, not to 1: a: 0.5, b: 0.6"),
        (("a", "b"), (1.0, 0.0), None, "above 0"),
        (("a", "b"), (1.5, -0.5), None, "above 0"),
        (("a", "a"), (0.5, 0.5), None, "names must differ"),
        (("a", "b"), (), None, "needs a fraction"),
    ],
)
def test_wrong_fractions_are_an_error(
    names: tuple[str, ...], fractions: tuple[float, ...], key: str | None, says: str
) -> None:
    with pytest.raises(UsageError, match=says):
        HashSplits(names, fractions, key)


def test_a_key_that_is_no_scalar_feature_is_an_error_with_the_choices() -> None:
    schema = Schema((Feature("emb", "float", "float32", (-1,)), Feature("id", "int64", "int64")))
    HashSplits.by_fraction({"a": 1.0}, "id").check(schema)
    with pytest.raises(
        SchemaError, match=r'split.key: "emb" holds several values a row, and one is needed; there are: id'
    ):
        HashSplits.by_fraction({"a": 1.0}, "emb").check(schema)
