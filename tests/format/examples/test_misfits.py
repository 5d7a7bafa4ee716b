from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

import pytest
from shardmill.transforms.errors import DamageError
from shardmill.transforms.format.examples.decode_examples import ExampleDecoder, ExampleError
from shardmill.transforms.format.schema.schema import Feature, Schema

from ...examples import decode_examples, example_from_values


def serialize(entries: Sequence[tuple[str, str, Sequence[Any]]]) -> bytes:
    values = {name: list(values) for name, _, values in entries}
    kinds = {name: kind for name, kind, _ in entries}
    return example_from_values(values, kinds).SerializeToString(deterministic=True)


# --- records that do not fit

AGE = Schema((Feature("age", "int64", "uint8"), Feature("name", "bytes", "string", nullable=True)))


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (b"\x0a\xff", "it is not a tf.train.Example"),
        (b"garbage", "it is not a tf.train.Example"),
        (b"", 'feature "age" is missing, and the schema does not let it be'),
        (serialize([("age", "none", [])]), 'feature "age" is missing, and the schema does not let it be'),
        (serialize([("age", "float", [1])]), 'feature "age" holds float values, where the schema has int64'),
        (serialize([("age", "int64", [1, 2])]), 'feature "age" holds 2 values, where the schema has 1'),
        (serialize([("age", "int64", [])]), 'feature "age" holds 0 values, where the schema has 1'),
        (serialize([("age", "int64", [300])]), 'feature "age": 300 does not fit the type uint8'),
        (serialize([("age", "int64", [-1])]), 'feature "age": -1 does not fit the type uint8'),
        (
            serialize([("age", "int64", [3]), ("name", "bytes", [b"\xff\x1b[2J"])]),
            'feature "name": \\xff\\x1b[2J does not fit the type string',
        ),
        (
            serialize([("age", "int64", [3]), ("name", "bytes", ["a", "b"])]),
            'feature "name" holds 2 values, where the schema has 1',
        ),
    ],
)
def test_a_record_that_does_not_fit_is_named_with_the_reason(payload: bytes, reason: str) -> None:
    good = serialize([("age", "int64", [200]), ("name", "bytes", ["é"])])
    decoded = ExampleDecoder(AGE).try_decode([good, payload, good])
    assert [(p.row, p.reason) for p in decoded.problems] == [(1, reason)]
    fine = {"age": 200, "name": "é"}
    assert decoded.batch.to_pylist() == [fine, {"age": None, "name": None}, fine]
    with pytest.raises(ExampleError) as caught:
        decode_examples([good, payload, good], AGE)
    assert (caught.value.row, caught.value.reason) == (1, reason)
    assert isinstance(caught.value, DamageError)
    assert str(pickle.loads(pickle.dumps(caught.value))) == f"record 1 of the batch: {reason}"


def test_values_in_lists_must_fit_too() -> None:
    schema = Schema((Feature("x", "int64", "int8", (-1,)), Feature("y", "bytes", "string", (2,), nullable=True)))
    bad = [
        serialize([("x", "int64", [1, 200])]),
        serialize([("x", "int64", [1]), ("y", "bytes", ["a"])]),
        serialize([("x", "int64", [1]), ("y", "bytes", ["a", b"\xff"])]),
    ]
    good = serialize([("x", "int64", [1, -2]), ("y", "bytes", ["a", "b"])])
    decoded = ExampleDecoder(schema).try_decode([good, *bad, good])
    decoded.batch.validate(full=True)
    assert [(p.row, p.reason) for p in decoded.problems] == [
        (1, 'feature "x": [1, 200] does not fit the type int8'),
        (2, 'feature "y" holds 1 values, where the schema has 2'),
        (3, "feature \"y\": [b'a', b'\\xff'] does not fit the type string"),
    ]
    assert decoded.batch.to_pylist()[0] == decoded.batch.to_pylist()[4] == {"x": [1, -2], "y": ["a", "b"]}
