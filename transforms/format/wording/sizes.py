"""Sizes in bytes, as people write them."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final

DEFAULT_SHARD_SIZE: Final = "128MiB"

LEAST_SHARD_BYTES: Final = 64 << 10
"""Below this, framing and file systems cost more than the records, and cut points are closer than a record is long."""

_UNITS: Final = {
    "B": 1,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KIB": 2**10,
    "MIB": 2**20,
    "GIB": 2**30,
    "TIB": 2**40,
}
_SIZE: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?) *([A-Za-z]*)")
_LARGEST: Final = 2**62
"""A size is added to others in int64 arithmetic, so it stays well below 2**63."""


def check_shard_size(size: int) -> int:
    """Raise `ValueError` where the size of shards is too small."""
    if size < LEAST_SHARD_BYTES:
        raise ValueError(f"{size} bytes is too small; the least is {LEAST_SHARD_BYTES >> 10}KiB")
    return size


def parse_size(value: object) -> int:
    """Return a size in bytes: an int, or a number and a unit (`128MiB` is 128 * 2**20, `1GB` is 10**9).

    The case of the unit does not matter; a bare `M` is refused, since it could be either.

    >>> parse_size("64KiB"), parse_size("1.5 GB"), parse_size(7)
    (65536, 1500000000, 7)

    Raises:
        ValueError: the value is not a size; the text says what one looks like.
    """
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        raise ValueError(f"{value!r} is not a size; write it like 128MiB, 1GB or 4096")
    match = _SIZE.fullmatch(str(value).strip())
    if match is None:
        raise ValueError(f'"{value}" is not a size; write it like 128MiB, 1GB or 4096')
    number, unit = match.groups()
    scale = 1 if not unit else _UNITS.get(unit.upper())
    if scale is None:
        fix = (
            f"write {number}{unit.upper()}iB or {number}{unit.upper()}B"
            if len(unit) == 1
            else "units: KiB MiB GiB KB MB GB"
        )
        raise ValueError(f'"{value}": "{unit}" is not a unit of size; {fix}')
    size = Decimal(number) * scale
    if size != int(size):
        raise ValueError(f'"{value}" is not a whole number of bytes')
    if size > _LARGEST:
        raise ValueError(f'"{value}" is more than 4 EiB')
    return int(size)


def format_size(size: int) -> str:
    """Return a size for people, with three digits or so.

    >>> format_size(65536), format_size(188204), format_size(0)
    ('64.0 KiB', '183.8 KiB', '0 B')
    """
    if size < 2**10:
        return f"{size} B"
    value = float(size)
    for unit in ("KiB", "MiB", "GiB"):
        value /= 2**10
        if value < 1023.95:
            return f"{value:.1f} {unit}"
    return f"{value / 2**10:.1f} TiB"


# Durations, as people write them.


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
