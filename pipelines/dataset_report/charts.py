"""Charts as SVG within the page: no script, no colours of their own, and words for those who do not see them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from ...transforms.format.wording.sizes import format_size
from ...transforms.statistics.figures import Bucket
from .markup import share, text_of

WIDTH: Final = 240
HEIGHT: Final = 56


def histogram(buckets: Sequence[Bucket], words: str, show: Callable[[float], str] = "{:,.4g}".format) -> str:
    """Return a histogram as one path; `words` say what it is of, and `show` gives the words for a value."""
    highest = max((bucket.count for bucket in buckets), default=0)
    low, high = (buckets[0].low, buckets[-1].high) if buckets else (0.0, 0.0)
    if not highest or not low < high:
        return ""
    path = []
    for bucket in buckets:
        left, right = ((edge - low) / (high - low) * WIDTH for edge in (bucket.low, bucket.high))
        top = HEIGHT - bucket.count / highest * HEIGHT
        if bucket.count:
            path.append(f"M{left:.0f} {HEIGHT}V{top:.1f}H{max(right - 1, left + 1):.0f}V{HEIGHT}z")
    most = max(buckets, key=lambda one: one.count)
    fullest = f"the fullest of {len(buckets)} parts from {show(most.low)} to {show(most.high)}"
    label = f"{words}: {show(low)} to {show(high)}, {fullest}"
    return (
        f'<figure><svg viewBox="0 0 {WIDTH} {HEIGHT}" role=img aria-label="{text_of(label)}">'
        f'<path d="{"".join(path)}"/></svg>'
        f"<figcaption><span>{text_of(show(low))}</span><span>{text_of(show(high))}</span></figcaption></figure>"
    )


def share_bar(part: int, whole: int) -> str:
    """Return a part as per cent of a whole, and beside it a bar that is filled as far."""
    width = 100 * part / whole if whole else 0
    return f'{share(part, whole)} <span class=bar aria-hidden=true><i style="width:{width:.1f}%"></i></span>'


def sizes(values: Sequence[int], target: int, words: str, bins: int = 40) -> str:
    """Return how many shards have which size, with a line at the target, if it is not 0; sizes are bytes."""
    if not values:
        return ""
    top = max(*values, target, 1)
    counts = [0] * bins
    for value in values:
        counts[min(value * bins // (top + 1), bins - 1)] += 1
    highest, step = max(counts), WIDTH * 2 / bins
    path = "".join(
        f"M{at * step:.1f} {HEIGHT}v{-count / highest * HEIGHT:.1f}h{step - 1:.1f}V{HEIGHT}z"
        for at, count in enumerate(counts)
        if count
    )
    line = f'<path class=target d="M{target / (top + 1) * WIDTH * 2:.1f} 0V{HEIGHT}"/>' if target else ""
    return (
        f'<figure class=wide><svg viewBox="0 0 {WIDTH * 2} {HEIGHT}" role=img aria-label="{text_of(words)}">'
        f'<path d="{path}"/>{line}</svg>'
        f"<figcaption><span>0</span><span>{format_size(top)}</span></figcaption></figure>"
    )
