"""Splits by time: the rows before a day, those before another, and the rest.

    split: {before: {column: day, train: 2024-01-01, val: 2024-02-01, rest: test}}

    ── train ──┤ 2024-01-01 ├── val ──┤ 2024-02-01 ├── test ──▶

A bound is not before itself. A bound without a clock is midnight, in the time zone of the column if it has one. Of text
that is ISO 8601, and of a bound for it, what has no offset is in UTC.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from ...errors import SchemaError
from ..batches.arrow_memory import I64
from ..batches.rejects import CellError
from ..batches.rows import FeatureColumn
from ..schema.arrow_types import arrow_type_of
from ..schema.column_types import is_binary, is_string
from ..schema.schema import Feature, Schema
from ..wording.printable import printable
from .by_column import NO_SPLIT, no_value
from .by_hash import binary_values
from .splitter import Assigned, Candidates, Splitter, present_rows, scalar_feature

_KEY: Final = "split.before.column"
_DAY: Final = 86_400_000_000
_INT64_END: Final = 1 << 63
_MICROSECONDS: Final = {"s": 1_000_000, "ms": 1_000, "us": 1}
_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


@dataclass(frozen=True, slots=True)
class TimeSplits(Splitter):
    """Rows whose feature `column` is before a bound, in ISO 8601, go to its split; of `bounds` the first counts.

    Others go to `rest`; without it they are rejects, as nulls always are.
    """

    column: str
    bounds: tuple[tuple[str, str], ...]
    rest: str | None = None

    @property
    def reads(self) -> tuple[str, ...]:
        return (self.column,)

    @property
    def _names(self) -> tuple[str, ...]:
        names = (*(name for name, _ in self.bounds), *(() if self.rest is None else (self.rest,)))
        return tuple(dict.fromkeys(names))

    def check(self, schema: Schema) -> None:
        feature = scalar_feature(schema, self.column, _KEY)
        name = printable(self.column)
        kind = arrow_type_of(feature)
        if not (types.is_date(kind) or types.is_timestamp(kind) or is_string(kind) or is_binary(kind)):
            raise SchemaError(
                f'{_KEY}: "{name}" holds {feature.type}, which is no date; choose a column of dates, timestamps or '
                f"text in ISO 8601, or declare its type (schema.columns.{name}.type)"
            )
        offsets = [text for _, text in self.bounds if parse_moment(text).tzinfo is not None]
        if offsets and feature.kind != "bytes" and feature.timezone is None:
            raise SchemaError(
                f'split.before: {offsets[0]} has an offset, and "{name}" has no time zone; leave the offset out'
            )

    def problems(self, given: Candidates) -> list[tuple[int, CellError]]:
        places, bad = self._places(given)
        there = present_rows(given.columns[self.column], given.rows)
        missing = no_value(self.column, _KEY, "a date", are_records=given.are_records)
        wrong = [(row, missing) for row in np.flatnonzero(~there).tolist()]
        wrong += [
            (row, self._no_date(value, are_records=given.are_records)) for row, value in bad.items() if there[row]
        ]
        if self.rest is None:
            late = there & (places == len(self.bounds))
            late[list(bad)] = False
            wrong += [(row, self._late()) for row in np.flatnonzero(late).tolist()]
        return sorted(wrong, key=lambda problem: problem[0])

    def assign(self, given: Candidates) -> Assigned:
        names = self._names
        places, _ = self._places(given)
        splits = [names.index(name) for name, _ in self.bounds] + [0 if self.rest is None else names.index(self.rest)]
        return Assigned(names, np.array(splits, np.int64)[places])

    def _places(self, given: Candidates) -> tuple[I64, dict[int, str]]:
        """Return how many bounds each row is not before, and by row the texts that are no dates."""
        feature = scalar_feature(given.schema, self.column, _KEY)
        column = given.columns[self.column]
        known = [_bound(feature, text) for _, text in self.bounds]
        # Nanoseconds reach from 1677 to 2262: all rows are before a later bound, and none before an earlier one.
        bounds = np.array([max(bound, -_INT64_END) for bound in known if bound < _INT64_END], np.int64)
        values, bad = _moments(column, given.rows) if feature.kind == "bytes" else (column.values, {})
        return np.searchsorted(bounds, values, "right").astype(np.int64), bad

    def _no_date(self, value: str, *, are_records: bool) -> CellError:
        name, shown = printable(self.column), printable(value)
        text = f'"{shown}" is no date or time in ISO 8601'
        text += "" if are_records else f"; declare how it is written, like schema.columns.{name}.format=%d.%m.%Y"
        return CellError(self.column, NO_SPLIT, shown, "a date like 2024-01-31", text)

    def _late(self) -> CellError:
        split, bound = self.bounds[-1]
        text = f"not before {bound}, the bound of {split}; name the split of later rows, like split.before.rest=test"
        return CellError(self.column, NO_SPLIT, "a later time", f"before {bound}", text)


def parse_moment(text: str) -> dt.datetime:
    """Read ISO 8601, with a time zone if the text has an offset. Raises `ValueError` for other text."""
    return dt.datetime.fromisoformat(text.strip())


def microseconds(moment: dt.datetime) -> int:
    """Return the microseconds since 1970; without a time zone in UTC."""
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=dt.UTC)
    return (aware - _EPOCH) // dt.timedelta(microseconds=1)


def _bound(feature: Feature, text: str) -> int:
    moment = parse_moment(text)
    if feature.timezone is not None and moment.tzinfo is None:
        local = pc.assume_timezone(
            pa.scalar(moment, pa.timestamp("us")), feature.timezone, ambiguous="earliest", nonexistent="earliest"
        )
        micros = int(local.cast(pa.int64()).as_py())
    else:
        micros = microseconds(moment)
    if types.is_date(arrow_type_of(feature)):
        return -(-micros // _DAY)
    if feature.unit == "ns":
        return micros * 1000
    return -(-micros // _MICROSECONDS[feature.unit or "us"])


def _moments(column: FeatureColumn, rows: int) -> tuple[npt.NDArray[np.int64], dict[int, str]]:
    """Return text as microseconds since 1970, and by row the texts that are no dates."""
    there = present_rows(column, rows)
    texts = binary_values(column, rows).cast(pa.large_binary()).dictionary_encode()
    indices = pc.cast(texts.indices, pa.int64()).to_numpy(zero_copy_only=False)
    found = np.zeros(len(texts.dictionary), np.int64)
    wrong: dict[int, str] = {}
    for number, value in enumerate(texts.dictionary.to_pylist()):
        text = value.decode("utf-8", "backslashreplace")
        try:
            found[number] = microseconds(parse_moment(text))
        except ValueError:
            wrong[number] = text
    bad = {row: wrong[number] for row, number in enumerate(indices.tolist()) if number in wrong} if wrong else {}
    return found[indices], {row: text for row, text in bad.items() if there[row]}
