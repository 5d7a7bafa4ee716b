from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shardmill.transforms.format.wording.printable import format_duration, parse_duration

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}


@given(st.integers(0, 999_999_999), st.sampled_from(sorted(UNITS)))
def test_a_number_and_a_unit_are_so_many_seconds(number: int, unit: str) -> None:
    assert parse_duration(f"{number}{unit}") == number * UNITS[unit]


@pytest.mark.parametrize(
    "text", ["", "7", "d", "7 d", "7D", "-7d", "+7d", "1.5d", "7d ", "7dd", "1d2h", "\u0667d", "1y", "9" * 10 + "s"]
)
def test_anything_else_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration; write it like 7d"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(604800, "7 days"), (86400, "24 hours"), (7200, "2 hours"), (5400, "90 minutes"), (119, "119 seconds")],
)
def test_durations_for_people(seconds: int, text: str) -> None:
    assert format_duration(seconds) == text
