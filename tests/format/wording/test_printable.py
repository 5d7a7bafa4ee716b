from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shardmill.transforms.format.wording.printable import (
    VALUE_LIMIT,
    escaped,
    printable,
    printable_path,
    redacted,
    safe_json,
)


@given(st.text(max_size=200) | st.binary(max_size=200))
def test_a_value_is_one_printable_line_of_at_most_80_characters(value: str | bytes) -> None:
    shown = printable(value)
    assert shown.isprintable()
    assert len(shown) <= VALUE_LIMIT == 80


def test_a_long_value_ends_where_it_was_cut() -> None:
    assert printable("x" * 80) == "x" * 80
    assert printable("x" * 81) == "x" * 79 + "…"


@given(st.binary(max_size=200))
def test_a_path_is_one_printable_line_whether_it_comes_as_bytes_or_as_text(path: bytes) -> None:
    shown = printable_path(path)
    assert shown.isprintable()
    assert shown == printable_path(path.decode("utf-8", "surrogateescape"))


@given(st.text(st.characters(codec="utf-8"), max_size=50).filter(str.isprintable))
def test_printable_text_is_shown_as_it_stands(text: str) -> None:
    assert escaped(text) == printable(text) == printable_path(text) == text


def test_only_the_characters_to_keep_are_kept() -> None:
    assert escaped("a\tb\nc\x1b[2J\udce9", keep="\n") == "a\\tb\nc\\x1b[2J\\udce9"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://ada:pw@host/a.csv?X-Amz-Signature=5f0c&x=1", "https://…@host/a.csv?…"),
        ("s3://key:se/cret@bucket/x", "s3://…@bucket/x"),
        ("https://host/a#access_token=5f0c", "https://host/a#…"),
        ("see gs://b/x?tok=1 and http://h/y.", "see gs://b/x?… and http://h/y."),
        ("/a?Signature=5f0c&Expires=7", "/a?Signature=…&Expires=7"),
        ("password=5f0c", "password=…"),
        ("/home/https:/ada:pw@host/a?x=5f0c: missing", "/home/https:/…@host/a?… missing"),
        ("AccountName=ada;AccountKey=5f0c;d==;EndpointSuffix=x", "AccountName=ada;AccountKey=…"),
        ("client_secret=5f0c&SharedAccessKey=5f0c&pwd=x", "client_secret=…&SharedAccessKey=…&pwd=…"),
        ("no secret: a=b, 12:30, c://", "no secret: a=b, 12:30, c://"),
    ],
)
def test_what_gives_access_is_left_out_of_what_is_shown(text: str, shown: str) -> None:
    assert redacted(text) == redacted(shown) == shown
    assert printable(text) == printable(text.encode()) == shown


def test_a_secret_that_is_longer_than_what_is_shown_is_left_out_whole() -> None:
    assert printable("s3://key:" + "x" * 500 + "@bucket/a") == "s3://…@bucket/a"


@given(st.recursive(st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=5))
def test_safe_json_is_the_same_document_without_what_a_terminal_might_obey(value: object) -> None:
    text = safe_json(json.dumps(value, ensure_ascii=False))
    assert json.loads(text) == value
    assert not any(sign in text for sign in "\x7f\x9b\u202e\u2028\ufeff\u200b")
    text.encode()
