from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shardmill.transforms.sources.archives.samples import joined_line, lines_of, object_line, text_of, value_of
from shardmill.transforms.sources.archives.tar import MemberError
from shardmill.transforms.sources.jsonl.values import LineError, parse_line

SCALARS = st.none() | st.booleans() | st.integers(-9, 10**12) | st.text(max_size=6)
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner))
OBJECTS = st.dictionaries(st.text(max_size=4), VALUES, max_size=4)
TEXTS = st.lists(st.tuples(st.sampled_from(["txt", "c.txt", "é"]), st.text(max_size=9)), unique_by=lambda one: one[0])


@given(fields=OBJECTS, texts=TEXTS, indent=st.none() | st.integers(0, 3), blanks=st.text(" \t\r\n", max_size=3))
def test_a_line_has_the_fields_of_the_json_and_the_texts_beside_it(
    fields: dict[str, Any], texts: list[tuple[str, str]], indent: int | None, blanks: str
) -> None:
    fields = {name: value for name, value in fields.items() if name not in dict(texts)}
    data = blanks + json.dumps(fields, indent=indent, ensure_ascii=False) + blanks
    line = joined_line(object_line(data.encode()), [(name, text_of(text.encode())) for name, text in texts])
    assert b"\n" not in line
    assert json.loads(line) == {**fields, **dict(texts)}


@given(data=st.text('{}[]":,a1 \n\\t', max_size=14), text=st.text('{}":, a', max_size=6))
def test_text_beside_it_makes_no_json_of_what_is_none(data: str, text: str) -> None:
    try:
        whole = isinstance(json.loads(data), dict)
    except ValueError:
        whole = False
    line = joined_line(object_line(data.encode()), [("txt", text_of(text.encode()))])
    if whole:
        assert parse_line(line, lambda _: False)["txt"].value == text
    else:
        with pytest.raises(LineError):
            parse_line(line, lambda _: False)


@pytest.mark.parametrize(
    ("data", "value"),
    [(b"3\n", 3), (b" -12 ", -12), (b"007", "007"), (b"+5", "+5"), (b"", ""), (b"1e3", "1e3"), (b"cat\n", "cat")],
)
def test_a_value_is_a_whole_number_as_json_writes_it_or_text_without_blanks(data: bytes, value: object) -> None:
    assert json.loads(value_of(data)) == value


def test_text_that_is_not_utf_8_is_named_by_its_byte() -> None:
    with pytest.raises(MemberError, match="is not UTF-8 at byte 2"):
        text_of(b"ab\xff")


def test_lines_are_the_texts() -> None:
    lines = lines_of([b"{}", b"", b"abc"])
    assert [lines.text[start:end] for start, end in zip(lines.starts, lines.ends, strict=True)] == [b"{}", b"", b"abc"]
