"""Days, points of time, times of day and durations of Python, by the numbers that records hold: what `as_py` gives.

Python has microseconds at most, so nanoseconds are left to Arrow, and what is before the year 1 or after 9999 too.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyarrow import types

_EPOCH: Final = datetime(1970, 1, 1)
_EPOCH_DAY: Final = _EPOCH.toordinal()
_STEPS: Final = {"s": timedelta(seconds=1), "ms": timedelta(milliseconds=1), "us": timedelta(microseconds=1)}


def time_of(kind: pa.DataType) -> Callable[[int], Any] | None:
    """Return what makes a number a value of a type of time, None where that is left to Arrow.

    What it returns raises ValueError or OverflowError where Python has no such value.

    >>> time_of(pa.timestamp("s"))(86400), time_of(pa.date32())(1), time_of(pa.timestamp("ns"))
    (datetime.datetime(1970, 1, 2, 0, 0), datetime.date(1970, 1, 2), None)
    """
    if types.is_date32(kind):
        return _day
    step = None if types.is_date64(kind) or types.is_interval(kind) else _STEPS.get(kind.unit)
    if step is None:
        return None
    if types.is_duration(kind):
        return lambda number: number * step
    if types.is_time(kind):
        return lambda number: _time_of_day(number * step)
    if kind.tz is None:
        return lambda number: _EPOCH + number * step
    zone = pa.array(np.zeros(1, np.int64)).view(kind)[0].as_py().tzinfo
    epoch = _EPOCH.replace(tzinfo=UTC)
    return lambda number: (epoch + number * step).astimezone(zone)


def _day(number: int) -> date:
    return date.fromordinal(_EPOCH_DAY + number)


def _time_of_day(since_midnight: timedelta) -> time:
    if since_midnight.days:
        raise ValueError(since_midnight)
    return (_EPOCH + since_midnight).time()
