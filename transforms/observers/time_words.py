"""Figures of days, times and durations in words: records hold them as integers, and statistics count those."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyarrow import types

from ..format.schema.column_types import DEFAULT_UNIT, column_type
from ..format.schema.schema import Feature

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
