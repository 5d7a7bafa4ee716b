"""Charts as paths of SVG: the template draws them, with words for those who do not see them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from ...transforms.format.wording.sizes import format_size
from ...transforms.statistics.figures import Bucket

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
