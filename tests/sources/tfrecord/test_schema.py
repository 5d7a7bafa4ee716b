"""The schema of foreign Examples: true of every record, and no narrower."""

from __future__ import annotations

import pytest
from shardmill.transforms.errors import SchemaError
from shardmill.transforms.format.schema.schema import Feature, Schema
from shardmill.transforms.format.tfrecord.framing import Payloads
from shardmill.transforms.recognise.evidence.names import split_in_name
from shardmill.transforms.sources.tfrecord.schema import Observation, Places, observe_together, widened_by

from ...examples import example_from_values


def observed(*records: dict[str, object], kinds: dict[str, str] | None = None) -> Observation:
    seen = Observation("x")
    payloads = [
        example_from_values(record, kinds).SerializeToString(deterministic=i % 2 == 0)  # type: ignore[arg-type]
        for i, record in enumerate(records)
    ]
    seen.add(Payloads.from_bytes(payloads[:1]))
    seen.add(Payloads.from_bytes(payloads[1:]))
    return seen


def test_shapes_and_nulls_are_those_of_all_records() -> None:
    many = [{"z": i, "s": "text", "pair": [1.0, 2.0], "list": list(range(i % 3 + 1))} for i in range(200)]
    seen = observed(*many, {"z": 1, "pair": [0.5, 0.5], "list": [1], "late": b"x"})
    assert seen.schema() == Schema(
        (
            Feature("late", "bytes", "binary", (), nullable=True),
            Feature("list", "int64", "int64", (-1,)),
            Feature("pair", "float", "float32", (2,)),
            Feature("s", "bytes", "binary", (), nullable=True),
            Feature("z", "int64", "int64", ()),
        )
    )
    assert (seen.records, seen.bad) == (201, 0)


def test_an_empty_list_is_a_list() -> None:
    assert observed({"a": []}, {"a": [1]}, kinds={"a": "int64"}).schema().features[0].shape == (-1,)
    assert observed({"a": []}, {"a": []}, kinds={"a": "int64"}).schema().features[0].shape == (-1,)


def test_what_is_no_example_is_counted() -> None:
    seen = Observation("x")
    seen.add(Payloads.from_bytes([b"\xff\xff", example_from_values({"a": 1}).SerializeToString()]))
    assert (seen.records, seen.bad, len(seen.schema())) == (1, 1, 1)


def test_a_feature_of_two_kinds_has_no_schema() -> None:
    with pytest.raises(SchemaError, match='feature "a" holds int64 values in some records and bytes values in others'):
        observed({"a": 1}, {"a": "x"})


def test_what_one_file_lacks_is_nullable_in_all() -> None:
    both = observe_together([observed({"a": 1, "b": 1}, {"a": 1, "b": 1}), observed({"a": 1}, {"a": [1, 2]})], "both")
    assert both.schema() == Schema(
        (Feature("a", "int64", "int64", (-1,)), Feature("b", "int64", "int64", (), nullable=True))
    )


def located(name: str, *records: dict[str, object]) -> Observation:
    """Return what is seen of records, of which record i is said to begin at byte 100 i; each third one is odd."""
    seen = Observation(name)
    payloads = [
        example_from_values(record).SerializeToString(deterministic=i % 3 > 0)  # type: ignore[arg-type]
        for i, record in enumerate(records)
    ]
    for first, stop in ((0, 90), (90, 150), (150, len(payloads))):
        numbers = tuple(range(first, min(stop, len(payloads))))
        seen.add(Payloads.from_bytes(payloads[first:stop]), Places(numbers, tuple(100 * one for one in numbers)))
    return seen


def test_the_records_that_make_a_schema_wider_are_counted_and_the_first_one_is_named() -> None:
    sound = {"a": 1, "b": [1.0, 2.0], "c": "x"}
    one = located(
        "one", *[sound] * 120, {"a": 1, "b": [1.0, 2.0]}, *[sound] * 40, {"a": 1, "b": [1.0], "c": "x"}, sound
    )
    two = located("two", *[sound] * 10, {**sound, "d": 1}, *[{**sound, "c": ["x", "y"]}] * 3)
    three = located("three", {"b": [1.0, 2.0], "c": "x"}, {"b": [1.0, 2.0], "c": "x"})
    assert list(widened_by([one, two, three, located("none")])) == [
        'feature "a" may be null: 2 of 179 records lack it, first three record 0 at byte 0',
        'feature "b" is a list of any length: 1 of 179 records has another number of values than 2, first one record '
        "161 at byte 16100",
        'feature "c" may be null: 1 of 179 records lacks it, first one record 120 at byte 12000',
        'feature "c" is a list of any length: 3 of 178 records have another number of values than 1, first two record '
        "11 at byte 1100",
        'feature "d" may be null: 178 of 179 records lack it, first one record 0 at byte 0',
    ]
    assert list(widened_by([located("one", *[sound] * 200)])) == []


def test_lists_that_are_of_any_length_by_design_are_not_called_widened() -> None:
    ragged = [{"a": list(range(i % 20)) or [1]} for i in range(200)]
    halves = [{"a": [1] * (i % 2 + 1)} for i in range(200)]
    assert list(widened_by([located("x", *ragged)])) == list(widened_by([located("x", *halves)])) == []


@pytest.mark.parametrize(
    ("name", "split"),
    [
        ("train-00000-of-00010.tfrecord", "train"),
        ("val-3.tfrecord.gz", "val"),
        ("train-of-thought-00001.tfrecord", None),
        ("cats-00001.tfrecord", None),
        ("train.tfrecord", None),
        ("mnist-test.tfrecord-00000-of-00001", "test"),
        ("train.tfrecord-00003-of-00010", "train"),
        ("mnist-test-a.tfrecord-00000-of-00001", None),
    ],
)
def test_only_a_well_known_name_and_a_number_state_a_split(name: str, split: str | None) -> None:
    assert split_in_name(name) == split
