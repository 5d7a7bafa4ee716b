"""How far the splits of a dataset differ, feature by feature."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Final

from ...transforms.format.wording.printable import printable
from ...transforms.statistics.figures import FeatureFigures, Statistics

SHOWN: Final = 15


@dataclass(frozen=True, slots=True)
class Difference:
    """The greatest difference of one kind between two splits of a feature, from 0 on; `words` say what it is."""

    feature: str
    size: float
    one: str
    other: str
    words: str


def differences(statistics: Statistics) -> list[Difference]:
    """Return the greatest difference of each feature and kind, the greatest first.

    Of means it is in standard deviations (of the split that has the greater one), and infinite where each split has one
    value alone; of classes the greatest difference of a class's share, known as the L-infinity distance, and of missing
    values that of their shares. Texts are as classes are, where they are counted exactly in both splits.
    """
    found: list[Difference] = []
    splits = [split for split in statistics.splits.values() if split.records]
    for name in splits[0].features if splits else ():
        pairs = [(a, b) for a, b in combinations(splits, 2) if name in a.features and name in b.features]
        each = [
            Difference(name, size, a.name, b.name, words)
            for a, b in pairs
            for size, words in _between(a.features[name], b.features[name])
            if size > 0
        ]
        kinds = {one.words.partition(":")[0] for one in each}
        found += [max((d for d in each if d.words.startswith(kind)), key=lambda d: d.size) for kind in kinds]
    return sorted(found, key=lambda one: (-one.size, one.feature, one.words))[:SHOWN]


def _between(one: FeatureFigures, other: FeatureFigures) -> list[tuple[float, str]]:
    found = []
    if one.classes is not None and other.classes is not None:
        totals = [sum(figures.classes.values()) for figures in (one, other) if figures.classes is not None]
        if all(totals):
            shares = {
                name: one.classes.get(name, 0) / totals[0] - other.classes.get(name, 0) / totals[1]
                for name in {**one.classes, **other.classes}
            }
            name = max(shares, key=lambda name: (abs(shares[name]), name))
            found.append((abs(shares[name]), f"class: share of {name}"))
    elif one.numbers is not None and other.numbers is not None:
        means = one.numbers.mean, other.numbers.mean
        spread = max(one.numbers.deviation or 0.0, other.numbers.deviation or 0.0)
        if means[0] is not None and means[1] is not None and spread > 0:
            found.append((abs(means[0] - means[1]) / spread, "mean: in standard deviations"))
        elif means[0] != means[1] and None not in means and min(one.values, other.values) > 1:
            found.append((math.inf, "mean: constant in each split"))
    else:
        shares_of_texts = [*_texts(one, other), *_texts(other, one)]
        found += [max(shares_of_texts)] if shares_of_texts else []
    missing = [figures.missing / max(figures.missing + figures.present, 1) for figures in (one, other)]
    found.append((abs(missing[0] - missing[1]), "missing: share of records"))
    return found


def _texts(one: FeatureFigures, other: FeatureFigures) -> Iterator[tuple[float, str]]:
    """Yield by how much, at least, the share of a text is greater in the first split; rare texts are not stated."""
    exact = all(figures.distinct is not None and figures.distinct.exact for figures in (one, other))
    if not exact or not one.values or not other.values:
        return
    known = {text.value: text.count for text in other.top}
    whole = other.distinct is not None and other.distinct.count == len(known)
    others = 0 if whole else min(known.values())
    for text in one.top:
        size = text.count / one.values - known.get(text.value, others) / other.values
        yield size, f"value: share of {printable(text.value)}"
