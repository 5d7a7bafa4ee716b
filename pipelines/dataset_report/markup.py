"""Figures as the page shows them, with their exact values beside them; the template escapes all that is no `Markup`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup, escape

from ...transforms.format.wording.sizes import format_size
from ...transforms.observers.figures import Bucket

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


# Charts as paths of SVG: the template draws them, with words for those who do not see them.


WIDTH: Final = 240
HEIGHT: Final = 56


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart: what it shows in words, its path, the values at both ends, and its width; `mark` is a path of a line."""

    words: str
    path: str
    low: str
    high: str
    width: int = WIDTH
    height: int = HEIGHT
    mark: str = ""


def histogram(buckets: Sequence[Bucket], words: str, show: Callable[[float], str] = "{:,.4g}".format) -> Chart | None:
    """Return a histogram, None of no values; `words` say what it is of, and `show` gives the words for a value."""
    highest = max((bucket.count for bucket in buckets), default=0)
    low, high = (buckets[0].low, buckets[-1].high) if buckets else (0.0, 0.0)
    if not highest or not low < high:
        return None
    path = []
    for bucket in buckets:
        left, right = ((edge - low) / (high - low) * WIDTH for edge in (bucket.low, bucket.high))
        top = HEIGHT - bucket.count / highest * HEIGHT
        if bucket.count:
            path.append(f"M{left:.0f} {HEIGHT}V{top:.1f}H{max(right - 1, left + 1):.0f}V{HEIGHT}z")
    most = max(buckets, key=lambda one: one.count)
    fullest = f"the fullest of {len(buckets)} parts from {show(most.low)} to {show(most.high)}"
    label = f"{words}: {show(low)} to {show(high)}, {fullest}"
    return Chart(label, "".join(path), show(low), show(high))


def sizes(values: Sequence[int], target: int, words: str, bins: int = 40) -> Chart:
    """Return how many shards have which size, with a line at the target, if it is not 0; sizes are bytes."""
    top = max(*values, target, 1)
    counts = [0] * bins
    for value in values:
        counts[min(value * bins // (top + 1), bins - 1)] += 1
    highest, width = max(counts), WIDTH * 2
    step = width / bins
    path = "".join(
        f"M{at * step:.1f} {HEIGHT}v{-count / highest * HEIGHT:.1f}h{step - 1:.1f}V{HEIGHT}z"
        for at, count in enumerate(counts)
        if count
    )
    mark = f"M{target / (top + 1) * width:.1f} 0V{HEIGHT}" if target else ""
    return Chart(words, path, "0", format_size(top), width, mark=mark)
