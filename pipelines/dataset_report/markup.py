"""Pieces of HTML: everything that comes from data is escaped here, and figures keep their exact values."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from html import escape
from typing import Final

NOTHING: Final = "-"
"""What stands for a figure that there is none of."""

LONGEST: Final = 200
"""Characters of a value that are shown."""


def text_of(value: object, longest: int = LONGEST) -> str:
    """Return a value as text of a page: escaped, without control characters, and not too long."""
    text = str(value)
    text = text if len(text) <= longest else text[: longest - 1] + "…"
    return escape("".join(c if c.isprintable() or c == " " else "�" for c in text), quote=True)


def number(value: float | None) -> str:
    """Return a figure: whole numbers as they are, others with four digits and the exact value beside them.

    >>> number(12345), number(0.123456), number(None)
    ('12,345', '<data value="0.123456">0.1235</data>', '-')
    """
    if value is None:
        return NOTHING
    if isinstance(value, int):
        return f"{value:,}"
    if not math.isfinite(value):
        return str(value)
    return f'<data value="{value!r}">{value:,.4g}</data>'


def number_in_words(value: float | None, words: Callable[[float], str]) -> str:
    """Return a figure in words, its exact value beside them.

    >>> number_in_words(19753, lambda days: "2024-01-31")
    '<data value="19753">2024-01-31</data>'
    """
    return NOTHING if value is None else f'<data value="{value!r}">{text_of(words(value))}</data>'


def share(part: int, whole: int) -> str:
    """Return a part as per cent of a whole.

    >>> share(1, 8), share(0, 0)
    ('12.5 %', '-')
    """
    if not whole:
        return NOTHING
    percent = 100 * part / whole
    return f"{percent:.2g} %" if 0 < percent < 1 else f"{percent:.3g} %"


def table(caption: str, head: Sequence[str], rows: Iterable[Sequence[str]], *, numbers_from: int = 1) -> str:
    """Return a table that scrolls by itself where it is too wide; cells are HTML, and the first of a row its head.

    Cells from column `numbers_from` on are numbers, at the right.
    """
    columns = "".join(f'<th scope="col">{name}</th>' for name in head)
    body = "".join(
        f'<tr><th scope="row">{row[0]}</th>'
        + "".join(
            f"<td>{cell}</td>" if at < numbers_from else f"<td class=n>{cell}</td>"
            for at, cell in enumerate(row[1:], 1)
        )
        + "</tr>"
        for row in rows
    )
    label = text_of(caption)
    return (
        f'<div class=scroll tabindex=0 role=region aria-label="{label}"><table><caption>{label}</caption>'
        f"<thead><tr>{columns}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def section(name: str, title: str, *parts: str) -> str:
    """Return a part of the page under its heading, at the anchor `name`."""
    return f'<section id="{name}" aria-labelledby="h-{name}"><h2 id="h-{name}">{title}</h2>{"".join(parts)}</section>'


def note(text: str) -> str:
    """Return a line of words; `text` is HTML."""
    return f"<p>{text}</p>"
