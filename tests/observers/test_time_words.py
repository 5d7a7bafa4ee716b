"""Times and durations in words."""

from __future__ import annotations

import pyarrow as pa
import pytest
from shardmill.transforms.observers.figures import TimeWords


@pytest.mark.parametrize(
    ("unit", "number", "words"),
    [
        ("s", 5400, "1:30:00"),
        ("s", 5401, "1:30:01"),
        ("s", 90_061, "1 day, 1:01:01"),
        ("s", -(10**9), "-11,574 days, 1:46:40"),
        ("ms", 90_061_005, "1 day, 1:01:01.005"),
        ("us", 1_500_000, "0:00:01.5"),
        ("ns", 1_500_000_001, "0:00:01.500000001"),
        ("us", 2500, "2.5 ms"),
        ("s", 0, "0 s"),
        ("s", 5400.5, "1.5 h"),
        ("s", 5400.0, "1:30:00"),
    ],
)
def test_a_duration_has_all_its_digits_but_for_means_and_parts_of_a_second(
    unit: str, number: float, words: str
) -> None:
    assert TimeWords(pa.duration(unit)).value(number) == words
