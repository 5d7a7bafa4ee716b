"""Figures as the page shows them, with their exact values beside them; the template escapes all that is no `Markup`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup, escape

NOTHING: Final = "-"

LONGEST: Final = 200

_EXACT: Final = Markup('<data value="{}">{}</data>')
_BAR: Final = Markup('{} <span class=bar aria-hidden=true><i style="width:{:.1f}%"></i></span>')


@dataclass(frozen=True, slots=True)
class Table:
    """A table of the page; the first cell of a row is its head, and cells from `numbers_from` on are at the right."""

    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    numbers_from: int = 1


def shown(value: object, longest: int = LONGEST) -> str:
    r"""Return a value without control characters, and not too long.

    >>> shown("a\tb"), shown("abcdef", 4)
    ('a�b', 'abc…')
    """
    text = str(value)
    text = text if len(text) <= longest else text[: longest - 1] + "…"
    return "".join(c if c.isprintable() or c == " " else "�" for c in text)


def number(value: float | None) -> str:
    """Return a figure: whole numbers as they are, others with four digits and the exact value beside them.

    >>> number(12345), str(number(0.123456)), number(None)
    ('12,345', '<data value="0.123456">0.1235</data>', '-')
    """
    if value is None:
        return NOTHING
    if isinstance(value, int):
        return f"{value:,}"
    return _EXACT.format(repr(value), f"{value:,.4g}") if math.isfinite(value) else str(value)


def number_in_words(value: float | None, words: Callable[[float], str]) -> str:
    """Return a figure in words, its exact value beside them.

    >>> str(number_in_words(19753, lambda days: "2024-01-31"))
    '<data value="19753">2024-01-31</data>'
    """
    return NOTHING if value is None else _EXACT.format(repr(value), shown(words(value)))


def share(part: int, whole: int) -> str:
    """Return a part as per cent of a whole.

    >>> share(1, 8), share(0, 0)
    ('12.5 %', '-')
    """
    if not whole:
        return NOTHING
    percent = 100 * part / whole
    return f"{percent:.2g} %" if 0 < percent < 1 else f"{percent:.3g} %"


def share_bar(part: int, whole: int) -> str:
    return _BAR.format(share(part, whole), 100 * part / whole if whole else 0)


def joined(between: str, parts: Sequence[str]) -> str:
    """Return parts as one; those that are no `Markup` are escaped."""
    return escape(between).join(parts)
