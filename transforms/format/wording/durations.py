"""Durations, as people write them."""

from __future__ import annotations

import re
from typing import Final

_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_DURATION: Final = re.compile(r"([0-9]{1,9})([a-z])")


def parse_duration(text: str) -> int:
    """Return a duration in seconds: a whole number and one unit of s, m (minutes), h, d, w.

    >>> parse_duration("7d"), parse_duration("90m"), parse_duration("0s")
    (604800, 5400, 0)

    Raises:
        ValueError: the text is not a duration; it says what one looks like.
    """
    match = _DURATION.fullmatch(text)
    if match is None or match[2] not in _SECONDS:
        raise ValueError(f'"{text}" is not a duration; write it like 7d, 36h, 90m or 0s (units: s m h d w)')
    return int(match[1]) * _SECONDS[match[2]]


def format_duration(seconds: int) -> str:
    """Return a duration for people, in the largest unit that it has two of, rounded down.

    >>> format_duration(604800), format_duration(90), format_duration(0)
    ('7 days', '90 seconds', '0 seconds')
    """
    for name, unit in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * unit:
            return f"{seconds // unit} {name}"
    return f"{seconds} seconds"
