from __future__ import annotations

import pytest
from google.protobuf import descriptor_pool
from shardmill.transforms.format.examples.decode_examples import Example, feature_values, iter_features, parse_example

from ...examples import example_from_values


def test_an_example_has_the_bytes_that_the_protocol_defines() -> None:
    example = example_from_values({"s": ["hi", b"\xff"], "i": [1, -1], "f": 1.5})
    assert example.SerializeToString(deterministic=True) == (
        b"\x0a\x35"
        b"\x0a\x0d\x0a\x01f\x12\x08\x12\x06\x0a\x04\x00\x00\xc0\x3f"
        b"\x0a\x14\x0a\x01i\x12\x0f\x1a\x0d\x0a\x0b\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"
        b"\x0a\x0e\x0a\x01s\x12\x09\x0a\x07\x0a\x02hi\x0a\x01\xff"
    )


def test_an_empty_list_is_present_and_a_feature_without_kind_too() -> None:
    example = example_from_values({"e": [], "n": 0}, kinds={"e": "float", "n": "none"})
    again = parse_example(example.SerializeToString())
    assert again is not None
    assert [(name, feature_values(f)[0], list(feature_values(f)[1])) for name, f in iter_features(again)] == [
        ("e", "float", []),
        ("n", "none", []),
    ]


def test_an_empty_list_without_a_kind_is_refused() -> None:
    with pytest.raises(ValueError, match="feature 'e': an empty list has no kind"):
        example_from_values({"e": []})


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(ValueError, match="kind 'double' is none of int64, float, bytes, none"):
        example_from_values({"e": 1.0}, kinds={"e": "double"})


def test_a_payload_that_is_no_example_parses_to_none() -> None:
    assert parse_example(b"\x0a\xff") is None
    assert parse_example(b"") is not None


def test_the_message_is_not_registered_in_the_default_pool() -> None:
    with pytest.raises(KeyError):
        descriptor_pool.Default().FindMessageTypeByName("tensorflow.Example")  # type: ignore[no-untyped-call]
    assert Example.DESCRIPTOR.full_name == "tensorflow.Example"  # type: ignore[attr-defined]
