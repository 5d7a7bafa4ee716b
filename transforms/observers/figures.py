"""The figures of a dataset, by split and feature: what `stats.json` states, reports show and comparisons compare.

Statistics ──▶ splits["train"] ──▶ features["price"] ──▶ numbers.mean, missing, distinct.count, ...
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

import pyarrow as pa
from pyarrow import types

from ..format.schema.column_types import DEFAULT_UNIT, column_type
from ..format.schema.schema import Feature

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


# Figures of days, times and durations in words: records hold them as integers, and statistics count those.


_PER_SECOND: Final = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_DAY: Final = 86_400
_SPANS: Final = (("days", _DAY), ("h", 3600), ("min", 60), ("s", 1), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9))


@dataclass(frozen=True, slots=True)
class TimeWords:
    """Shows the integers of a feature as what they mean: `kind` is the Arrow type that they are read as."""

    kind: pa.DataType
    timezone: str | None = None

    @classmethod
    def of(cls, feature: Feature) -> TimeWords | None:
        if feature.kind != "int64":
            return None
        kind = column_type(feature).arrow(feature.unit or DEFAULT_UNIT, None)
        return cls(kind, feature.timezone) if types.is_temporal(kind) else None

    @property
    def has_zero(self) -> bool:
        """Whether the integer 0 says something: it is no duration, but the first day of 1970."""
        return bool(types.is_duration(self.kind))

    def value(self, number: float) -> str:
        """Return a value in words; a mean, which no integer need be, to a millisecond, and of days to a day.

        >>> TimeWords(pa.date32()).value(19753), TimeWords(pa.timestamp("ms")).value(1_706_702_400_500.0)
        ('2024-01-31', '2024-01-31 12:00:00.5')
        >>> TimeWords(pa.time64("us")).value(47_107_500_000), TimeWords(pa.duration("s")).value(90_061)
        ('13:05:07.5', '1 day, 1:01:01')
        """
        if types.is_duration(self.kind):
            return self._duration(number)
        if isinstance(number, float):
            step = 1 if types.is_date(self.kind) else max(self._per_second // 1000, 1)
            number = round(number / step) * step
        found = self._text(int(number))
        if found.startswith("<") or not found:
            return f"{number:,}"
        found = found.rstrip("0").removesuffix(".") if "." in found else found
        return f"{found} UTC" if self.timezone is not None else found

    def _duration(self, number: float) -> str:
        """Return a duration with all its digits; one under a second, or a mean between, in the largest unit."""
        seconds, rest = divmod(abs(int(number)), self._per_second)
        if number != int(number) or not seconds:
            return self.span(number)
        days, of_day = divmod(seconds, _DAY)
        parts = [] if not days else ["1 day"] if days == 1 else [f"{days:,} days"]
        fraction = f"{rest:0{len(str(self._per_second)) - 1}d}".rstrip("0") if rest else ""
        clock = f"{of_day // 3600}:{of_day // 60 % 60:02d}:{of_day % 60:02d}{f'.{fraction}' if fraction else ''}"
        return f"{'-' if number < 0 else ''}{', '.join([*parts, clock])}"

    def span(self, number: float) -> str:
        """Return a duration, or a deviation, in the largest unit that it reaches.

        >>> TimeWords(pa.date32()).span(3.25), TimeWords(pa.timestamp("us")).span(-2500)
        ('3.25 days', '-2.5 ms')
        """
        seconds = number * _DAY if types.is_date(self.kind) else number / self._per_second
        name, unit = next((span for span in _SPANS if abs(seconds) >= span[1]), _SPANS[-1] if seconds else _SPANS[3])
        return f"{seconds / unit:,.4g} {name}"

    def _text(self, number: int) -> str:
        """Return what Arrow prints for a value, "" or words in brackets where it is none of the type."""
        if types.is_time(self.kind) and not 0 <= number < _DAY * self._per_second:
            return ""
        try:
            return str(pa.scalar(number, _storage(self.kind)).cast(self.kind).cast(pa.string()).as_py())
        except (pa.ArrowInvalid, OverflowError):
            return ""

    @property
    def _per_second(self) -> int:
        return _PER_SECOND[self.kind.unit]


def _storage(kind: pa.DataType) -> pa.DataType:
    return pa.int32() if kind.bit_width == 32 else pa.int64()
