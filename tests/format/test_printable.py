from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from shardmill.transforms.format.printable import VALUE_LIMIT, escaped, printable, printable_path


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
