"""Sizes in bytes, as people write them."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shardmill.transforms.format.wording.printable import format_size, parse_size


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("128MiB", 134217728),
        ("1GB", 1000000000),
        ("64KiB", 65536),
        ("1.5 KiB", 1536),
        ("4096", 4096),
        (4096, 4096),
        ("10 b", 10),
        ("2TiB", 2199023255552),
    ],
)
def test_a_size_is_a_number_and_a_unit(text: object, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("128M", '"128M": "M" is not a unit of size; write 128MiB or 128MB'),
        ("12 parsecs", '"12 parsecs": "parsecs" is not a unit of size; units: KiB MiB GiB KB MB GB'),
        ("big", '"big" is not a size; write it like 128MiB, 1GB or 4096'),
        ("-1MiB", '"-1MiB" is not a size; write it like 128MiB, 1GB or 4096'),
        (True, "True is not a size; write it like 128MiB, 1GB or 4096"),
        (1.5, "1.5 is not a size; write it like 128MiB, 1GB or 4096"),
        ("1.00001KiB", '"1.00001KiB" is not a whole number of bytes'),
        ("9999999999TiB", '"9999999999TiB" is more than 4 EiB'),
    ],
)
def test_what_is_no_size_is_refused_with_a_mend(text: object, problem: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(problem)}$"):
        parse_size(text)


@given(st.integers(0, 2**60))
def test_every_int_and_its_text_are_the_same_size(size: int) -> None:
    assert parse_size(size) == parse_size(str(size)) == size


@given(st.integers(0, 2**50))
def test_a_printed_size_is_right_within_its_last_digit(size: int) -> None:
    number, unit = format_size(size).split()
    scale = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}[unit]
    assert abs(float(number) * scale - size) <= 0.051 * scale
