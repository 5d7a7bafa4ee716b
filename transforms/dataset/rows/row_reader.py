"""Single records as dicts of values: what `to_pylist` gives of their batch, without making one.

A batch of one record costs a millisecond, whatever is in it. Values of numbers, text, bytes and times, and lists of
them, are made of what protobuf gives; a record that has anything else, or not what the schema says, is left to the
decoder.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyarrow import types

from ...format.encode.example_proto import parse_example
from ...format.schema.column_types import is_binary, is_string
from ...format.schema.schema import Feature, Schema
from .source_columns import SourceColumns

Convert = Callable[[Any], Any]

_OTHER: Final = object()


@dataclass(frozen=True, slots=True)
class _Reading:
    """How a feature is read: the list of its kind, how many values it has (None: any), None of a scalar, and each."""

    name: str
    kind: str
    count: int | None
    is_list: bool
    nullable: bool
    convert: Convert


@dataclass(frozen=True, slots=True)
class RowReader:
    """Reads columns that are plain, each a feature; `others` are the features that are not read."""

    readings: tuple[_Reading, ...]
    others: frozenset[str]

    @classmethod
    def plan(cls, schema: Schema, columns: SourceColumns, *, stored: bool = False) -> RowReader | None:
        """Return the reader of columns, None where one of them is not plain.

        Classes are their names and times Python's, or both are numbers as they are `stored`.
        """
        features = {feature.name: feature for feature in schema}
        readings = []
        for part in columns.parts:
            convert = None
            if part.kind is None and part.features == (part.field.name,):
                if part.names is None:
                    convert = _convert_of(part.field.type, stored=stored)
                else:
                    convert = int if stored else _name_of(part.names.to_pylist())
            if convert is None:
                return None
            readings.append(_reading(features[part.field.name], convert))
        return cls(tuple(readings), frozenset(features).difference(one.name for one in readings))

    def row(self, payload: bytes) -> dict[str, Any] | None:
        """Return the values of a record by column, None where the decoder has to look at it."""
        example = parse_example(payload)
        if example is None:
            return None
        features, row, seen = example.features.feature, {}, 0
        for one in self.readings:
            value: Any = None
            if one.name in features:
                seen += 1
                feature = features[one.name]
                if feature.WhichOneof("kind") != one.kind:
                    return None
                value = self._value(one, getattr(feature, one.kind).value)
            if value is _OTHER or (value is None and not one.nullable):
                return None
            row[one.name] = value
        if seen < len(features) and not self.others.issuperset(name for name in features if name not in row):
            return None
        return row

    @staticmethod
    def _value(one: _Reading, values: Sequence[Any]) -> Any:
        if one.count is not None and len(values) != one.count:
            return _OTHER
        try:
            found = [one.convert(value) for value in values]
        except (ValueError, OverflowError):  # text that is not UTF-8, or a number that the type does not hold
            return _OTHER
        return found if one.is_list else found[0]


def _reading(feature: Feature, convert: Convert) -> _Reading:
    count = 1 if feature.shape == () else None if feature.shape == (-1,) else math.prod(feature.shape)
    return _Reading(feature.name, f"{feature.kind}_list", count, feature.shape != (), feature.nullable, convert)


def _convert_of(kind: pa.DataType, *, stored: bool) -> Convert | None:
    """Return how a value of protobuf becomes one of an Arrow type, None where that is left to the decoder."""
    if pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind):
        kind = kind.value_type
    if pa.types.is_temporal(kind):
        return int if stored else time_of(kind)
    if kind in (pa.float32(), pa.float64()):
        return float
    if is_string(kind):
        return bytes.decode
    if is_binary(kind):
        return bytes
    if pa.types.is_boolean(kind):
        return _bool_of
    return _int_of(kind) if pa.types.is_integer(kind) else None


def _bool_of(value: int) -> bool:
    if value not in (0, 1):
        raise ValueError(value)
    return bool(value)


def _name_of(names: list[str]) -> Convert:
    def name(number: int) -> str:
        if not 0 <= number < len(names):
            raise ValueError(number)
        return names[number]

    return name


def _int_of(kind: pa.DataType) -> Convert | None:
    """Return the check of the range of a type; int64 needs none, and uint64 is stored in another way."""
    if kind == pa.int64():
        return int
    if kind == pa.uint64():
        return None
    limits = np.iinfo(kind.to_pandas_dtype())
    low, high = int(limits.min), int(limits.max)

    def check(value: int) -> int:
        if not low <= value <= high:
            raise ValueError(value)
        return value

    return check


_EPOCH: Final = datetime(1970, 1, 1)
_EPOCH_DAY: Final = _EPOCH.toordinal()
_STEPS: Final = {"s": timedelta(seconds=1), "ms": timedelta(milliseconds=1), "us": timedelta(microseconds=1)}


def time_of(kind: pa.DataType) -> Callable[[int], Any] | None:
    """Return what makes a number a value of a type of time, None where that is left to Arrow.

    Python has microseconds at most, so nanoseconds are left to Arrow, and what is before the year 1 or after 9999 too.
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
