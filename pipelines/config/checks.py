"""Values of the config that take several forms: what they may be, and what they are read as."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from ...transforms.format.wording.printable import quoted
from ...transforms.sources.registry.options import check_classes

_YEARS: Final = frozenset("Yy")
_DAYS: Final = frozenset("dmjbB")
_FORMAT_PARTS: Final = _YEARS | _DAYS | frozenset("HIMSpfzaA")
"""The parts of a format that Arrow and Python read alike."""


_EMPTY_CHECKS: Final = {
    "duplicates": "write duplicates: {} to compare whole records",
    "leaks": "write leaks: {columns: [user]} to compare a column",
}


def empty_checks(checks: Mapping[str, object]) -> list[str]:
    """Return what is wrong with checks that are named, and say nothing: such a key would be no check.

    >>> empty_checks({"duplicates": None, "leaks": {"columns": ["user"]}})
    ['duplicates: is empty; write duplicates: {} to compare whole records, or leave the key out']
    """
    empty = [key for key in _EMPTY_CHECKS if key in checks and checks[key] is None]
    return [f"{key}: is empty; {_EMPTY_CHECKS[key]}, or leave the key out" for key in empty]


def check_sign(value: str) -> str:
    if len(value) != 1 or value.isalnum() or value in "+-":
        raise ValueError(f'{quoted(value)} is not one sign, like "," or "."')
    return value


def check_format(value: str | list[str] | None) -> str | list[str] | None:
    for one in [value] if isinstance(value, str) else value or []:
        parts = re.findall(r"%(.?)", one.replace("%%", ""))
        if not parts or not _FORMAT_PARTS.issuperset(parts) or len(set(parts)) < len(parts):
            raise ValueError(
                f'{quoted(one)} is no format of dates and times, like "%d.%m.%Y" or "%Y-%m-%d %H:%M:%S"; its parts, '
                f"each once, are {' '.join(f'%{part}' for part in sorted(_FORMAT_PARTS))}"
            )
        if not _YEARS.intersection(parts) and _DAYS.intersection(parts):
            raise ValueError(f"{quoted(one)} has no year (%Y or %y): a day of no year is no date")
    if value == []:
        raise ValueError('is empty; give at least one, like ["%d.%m.%Y"]')
    return value


def check_null(value: object) -> object:
    words = ("absent", "drop_row", "error", "mask")
    if isinstance(value, str) and value in words:
        return value
    if isinstance(value, dict) and list(value) == ["fill"] and isinstance(value["fill"], str | bool | int | float):
        return value
    raise ValueError(f"{quoted(value)} is none of {', '.join(words)}, and not {{fill: VALUE}}")


def check_label(value: object) -> bool | str | list[str]:
    if isinstance(value, bool) or value == "numeric":
        return value
    if not isinstance(value, list) or not value:
        raise ValueError(f"{quoted(value)} is neither true nor a list of classes, like [cat, dog], and not numeric")
    return check_classes(value)
