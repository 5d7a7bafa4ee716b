"""The figures of a dataset, by split and feature: what `stats.json` states, and reports and comparisons are made of.

Statistics ──▶ splits["train"] ──▶ features["price"] ──▶ numbers.mean, missing, distinct.count, ...
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Level = Literal["basic", "full"]
"""What is counted: figures that cost next to nothing, or histograms, quantiles and distinct values too."""


@dataclass(frozen=True, slots=True)
class NumberFigures:
    """Figures of all finite values of a feature; infinities, and what is not a number, are counted apart.

    `deviation` is that of the whole population. Without a finite value the first four are None. Dates and times are
    the integers that records hold.
    """

    min: int | float | None
    max: int | float | None
    mean: float | None
    deviation: float | None
    zeros: int
    nan: int = 0
    infinite: int = 0


@dataclass(frozen=True, slots=True)
class LengthFigures:
    """Of lengths: of lists, in values, or of strings, in bytes. Without any, the first three are None."""

    min: int | None
    max: int | None
    mean: float | None
    total: int
    empty: int


@dataclass(frozen=True, slots=True)
class ImageFigures:
    """Of pictures: how many are of which format, and their sizes in pixels, where records state them."""

    formats: Mapping[str, int]
    height: NumberFigures | None = None
    width: NumberFigures | None = None


@dataclass(frozen=True, slots=True)
class ValueCount:
    """A value, and how often it occurs."""

    value: int | float | str
    count: int


@dataclass(frozen=True, slots=True)
class Bucket:
    """A part of a histogram: values from `low` to `high`, of which the last bucket alone includes `high`."""

    low: float
    high: float
    count: float


@dataclass(frozen=True, slots=True)
class Distinct:
    """How many values are different: counted up to 10,000, and estimated beyond (`exact` is False)."""

    count: int
    exact: bool


@dataclass(frozen=True, slots=True)
class FeatureFigures:
    """What is known of one feature in one split; the last four are of the level "full".

    present    records that have it; `missing` ones do not
    values     all its values, several for each record of a list
    lengths    of its lists; `sizes` are of its strings or bytes
    classes    counts a label by the names of its classes (by its number where it has no name)
    histogram  of a sample, as are `quantiles` (0 %, 10 %, ... 100 %)
    top        the most frequent values, which are estimated where `distinct` is
    """

    name: str
    kind: str
    type: str
    present: int
    missing: int
    values: int
    numbers: NumberFigures | None = None
    lengths: LengthFigures | None = None
    sizes: LengthFigures | None = None
    classes: Mapping[str, int] | None = None
    image: ImageFigures | None = None
    histogram: tuple[Bucket, ...] = ()
    quantiles: tuple[float, ...] = ()
    distinct: Distinct | None = None
    top: tuple[ValueCount, ...] = ()


@dataclass(frozen=True, slots=True)
class SplitFigures:
    """One split: its records, and its features by name, in the order of the schema."""

    name: str
    records: int
    features: Mapping[str, FeatureFigures]


@dataclass(frozen=True, slots=True)
class Statistics:
    """The figures of all splits of a dataset, by their names."""

    level: Level
    splits: Mapping[str, SplitFigures] = field(default_factory=dict)

    @property
    def records(self) -> int:
        return sum(split.records for split in self.splits.values())
