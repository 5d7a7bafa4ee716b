"""How many rows of a run may be rejected: a number, or a share of those that are read."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final

from ...errors import UsageError
from ...format.wording.printable import quoted

_PERCENT: Final = re.compile(r"(?:100(?:\.0+)?|[0-9]{1,2}(?:\.[0-9]+)?) ?%")


def parse_max_rejects(value: object) -> int | str:
    """Return a number of rows, or a percentage of them as text; raise `ValueError` if it is neither.

    >>> parse_max_rejects("7"), parse_max_rejects("0.5 %")
    (7, '0.5%')
    """
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    if isinstance(value, str) and value.isdecimal():
        return int(value)
    if isinstance(value, str) and _PERCENT.fullmatch(value):
        return value.replace(" ", "")
    raise ValueError(f'{quoted(value)} is not a number of rows (0 or more) or a percentage of them ("1%")')


def rejects_allowed(max_rejects: int | str, rows_read: int) -> int:
    """Return how many rejects `max_rejects` allows; a percentage of the rows read is rounded down.

    >>> rejects_allowed(3, 10), rejects_allowed("1%", 250)
    (3, 2)
    """
    try:
        most = parse_max_rejects(max_rejects)
    except ValueError as error:
        raise UsageError(f"max_rejects: {error}") from error
    return most if isinstance(most, int) else int(Decimal(most.removesuffix("%")) * rows_read / 100)


def may_be_left_out(rejected: int, read: int) -> bool:
    """Return whether a message may propose to leave rejects out: of more than half the cause is to be fixed."""
    return 2 * rejected <= read
