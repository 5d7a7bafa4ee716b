from __future__ import annotations

import json
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shardmill.transforms.format.manifest.strict_json import MAX_DEPTH, JsonError, parse_json

text = st.text(alphabet=st.sampled_from(list('a"\\[]{},:\x00\u2028é')), max_size=8)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=8,
)


@given(values, st.booleans(), st.sampled_from([1, 2, 3, 7, 1 << 20]))
def test_whatever_json_writes_is_read_back_however_it_is_cut_into_windows(
    value: Any, ascii_: bool, window: int
) -> None:
    assert parse_json(json.dumps(value, ensure_ascii=ascii_).encode(), window_bytes=window) == value


@given(st.text(alphabet=st.sampled_from(list('"\\[],a')), max_size=30), st.sampled_from([1, 2, 5, 1 << 20]))
def test_any_text_is_read_as_pythons_parser_reads_it_or_is_an_error(document: str, window: int) -> None:
    try:
        expected: Any = json.loads(document)
    except ValueError:
        expected = JsonError
    try:
        assert parse_json(document.encode(), window_bytes=window) == expected
    except JsonError:
        assert expected is JsonError


def test_brackets_in_strings_are_no_depth() -> None:
    assert parse_json(b'["' + b"[{" * 1000 + b'\\"[", 1]') == ["[{" * 1000 + '"[', 1]


def test_depth_is_capped() -> None:
    deepest = b"[" * MAX_DEPTH + b"]" * MAX_DEPTH
    assert json.dumps(parse_json(deepest)).encode() == deepest
    with pytest.raises(JsonError, match="nested too deeply: over 80 levels"):
        parse_json(b"[" + deepest + b"]")
    with pytest.raises(JsonError, match="nested too deeply"):
        parse_json(b'{"a":' * 100_000)


@pytest.mark.parametrize("unit", [b"[],", b'{"":0},', b"1.5,", b'"ab",'])
def test_a_document_that_would_fill_the_memory_is_refused_before_it_is_parsed(unit: bytes) -> None:
    data = b"[" + unit * (80_000_000 // len(unit)) + b"0]"
    tracemalloc.start()
    try:
        with pytest.raises(JsonError, match="too many values"):
            parse_json(data)
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b'{"a": 1, "b": 2, "a": 3}', "a appears twice in one object"),
        (b'{"a": NaN}', "NaN is not a JSON number"),
        (b"[-Infinity]", "-Infinity is not a JSON number"),
        (b"[" + b"9" * 5000 + b"]", "digits"),
        (b'["\xff"]', "byte 2 is not UTF-8"),
        (b"[1,", "line 1 column 4"),
        (b"", "line 1 column 1"),
    ],
)
def test_what_is_no_json_by_the_letter_is_refused(data: bytes, problem: str) -> None:
    with pytest.raises(JsonError, match=problem):
        parse_json(data)
