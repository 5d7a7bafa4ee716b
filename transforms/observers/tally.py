"""Count statistics of records by split and feature. Tallies of batches, tasks and datasets add up in any order.

batch ──add──▶ Tally ──merge──▶ of a task ──JSON──▶ of the run ──merge──▶ of the dataset ──▶ Statistics
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
from operator import mul
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..format.batches.arrow_memory import binary_array_of, ends_of, words_of
from ..format.batches.observers import Observation, Observer, Seen
from ..format.batches.rows import FeatureColumn
from ..format.schema.column_types import column_type
from ..format.schema.schema import Feature, Schema
from .distinct import U64, Values, keys_of_rows, top_of
from .exact_sums import (
    FEW,
    FLOAT_BITS,
    I64,
    sums_of_float_rows,
    sums_of_floats,
    sums_of_integer_rows,
    sums_of_integers,
)
from .figures import (
    Distinct,
    FeatureFigures,
    ImageFigures,
    LengthFigures,
    Level,
    NumberFigures,
    SplitFigures,
    Statistics,
)
from .sample import Sample, estimated_top, histogram_of, quantiles_of

_FLOAT: Final = "float"
_INT: Final = "int64"


@dataclass(slots=True)
class Numbers:
    """Counts of int64 or float32 values; `total` and `squares` are exact sums, of floats in units of 2**-149."""

    is_float: bool
    finite: int = 0
    min: int | float | None = None
    max: int | float | None = None
    zeros: int = 0
    nan: int = 0
    infinite: int = 0
    total: int = 0
    squares: int = 0

    def add(self, values: npt.NDArray[Any]) -> None:
        if not len(values):
            return
        if len(values) <= FEW and not self.is_float:
            self._add_few(values.tolist())
            return
        low, high = values.min().item(), values.max().item()
        if self.is_float and not math.isfinite(high - low):
            values = self._finite(values)
            if not len(values):
                return
            low, high = values.min().item(), values.max().item()
        if self.is_float:
            low, high = low + 0.0, high + 0.0  # -0.0 is 0.0
            total, squares = sums_of_floats(values)
        else:
            total, squares = sums_of_integers(values, low, high)
        self._take(len(values), low, high)
        self.zeros += len(values) - int(np.count_nonzero(values))
        self.total += total
        self.squares += squares

    @staticmethod
    def add_rows(numbers: Sequence[Numbers], table: npt.NDArray[Any]) -> None:
        """Add each row of a table of one kind to its numbers: with few values in each, calls for each take longest."""
        low, high = table.min(axis=1), table.max(axis=1)
        if numbers[0].is_float:
            low, high = low.astype(np.float64) + 0.0, high.astype(np.float64) + 0.0  # -0.0 is 0.0
            with np.errstate(invalid="ignore"):
                fine = np.isfinite(high - low)
            if not fine.all():
                for row in np.flatnonzero(~fine).tolist():
                    numbers[row].add(table[row])
                numbers, table, low, high = list(compress(numbers, fine)), table[fine], low[fine], high[fine]
            sums = sums_of_float_rows(table, np.maximum(-low, high))
        else:
            sums = sums_of_integer_rows(table, low, high)
        zeros = table.shape[1] - np.count_nonzero(table, axis=1)
        each = zip(numbers, low.tolist(), high.tolist(), zeros.tolist(), sums, strict=True)
        for one, least, most, nothing, (total, squares) in each:
            one._take(table.shape[1], least, most)
            one.zeros += nothing
            one.total += total
            one.squares += squares

    def _add_few(self, values: list[int]) -> None:
        self._take(len(values), min(values), max(values))
        self.zeros += values.count(0)
        self.total += sum(values)
        self.squares += sum(map(mul, values, values))

    def merge(self, other: Numbers) -> None:
        if other.finite:
            assert other.min is not None
            assert other.max is not None
            self._take(other.finite, other.min, other.max)
        self.zeros += other.zeros
        self.nan += other.nan
        self.infinite += other.infinite
        self.total += other.total
        self.squares += other.squares

    @property
    def figures(self) -> NumberFigures:
        """The figures of what is counted; sums are rounded here, and nowhere before."""
        mean = deviation = None
        if self.finite:
            unit = 1 << (FLOAT_BITS if self.is_float else 0)
            mean = self.total / (self.finite * unit)
            spread = self.finite * self.squares - self.total * self.total
            deviation = math.sqrt(max(spread, 0) / (self.finite * unit) ** 2)
        return NumberFigures(self.min, self.max, mean, deviation, self.zeros, self.nan, self.infinite)

    def to_json(self) -> list[Any]:
        """Return what is counted; sums are text, since they have more digits than JSON readers keep."""
        sums = [str(self.total), str(self.squares)]
        return [
            _FLOAT if self.is_float else _INT,
            self.finite,
            self.min,
            self.max,
            self.zeros,
            self.nan,
            self.infinite,
            *sums,
        ]

    @classmethod
    def from_json(cls, document: list[Any]) -> Numbers:
        kind, finite, low, high, zeros, nan, infinite, total, squares = document
        allowed = {_FLOAT: (int, float), _INT: (int,)}.get(kind, ())
        if finite and not (isinstance(low, allowed) and isinstance(high, allowed)):
            raise ValueError("numbers without a smallest or largest one")
        is_float = kind == _FLOAT
        return cls(is_float, int(finite), low, high, int(zeros), int(nan), int(infinite), int(total), int(squares))

    def _finite(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        finite = np.isfinite(values)
        nan = int(np.count_nonzero(np.isnan(values)))
        self.nan += nan
        self.infinite += len(values) - int(np.count_nonzero(finite)) - nan
        kept: npt.NDArray[Any] = values[finite]
        return kept

    def _take(self, finite: int, low: float, high: float) -> None:
        self.finite += finite
        self.min = low if self.min is None else min(self.min, low)
        self.max = high if self.max is None else max(self.max, high)


@dataclass(slots=True)
class Lengths:
    """Counts of lengths: how many there are, the smallest and largest, their sum, and how many are 0."""

    count: int = 0
    min: int = 0
    max: int = 0
    total: int = 0
    empty: int = 0

    def add(self, lengths: npt.NDArray[Any]) -> None:
        if len(lengths):
            least = int(lengths.min())
            empty = 0 if least else len(lengths) - int(np.count_nonzero(lengths))
            self.merge(Lengths(len(lengths), least, int(lengths.max()), int(lengths.sum(dtype=np.int64)), empty))

    def merge(self, other: Lengths) -> None:
        if other.count:
            self.min = min(self.min, other.min) if self.count else other.min
            self.max = max(self.max, other.max)
            self.count += other.count
            self.total += other.total
            self.empty += other.empty

    @property
    def figures(self) -> LengthFigures:
        if not self.count:
            return LengthFigures(None, None, None, 0, 0)
        return LengthFigures(self.min, self.max, self.total / self.count, self.total, self.empty)

    def to_json(self) -> list[int]:
        return [self.count, self.min, self.max, self.total, self.empty]

    @classmethod
    def from_json(cls, document: list[int]) -> Lengths:
        count, low, high, total, empty = map(int, document)
        return cls(count, low, high, total, empty)


# All features of all splits.


_LABEL: Final = "label"
_IMAGE: Final = "image"

_FEW_ROWS: Final = 1 << 10
_AT_ONCE: Final = 1 << 15
_MANY: Final = 8
"""At least this number of columns, of at most this number of rows, are counted together, up to a number of values."""


@dataclass(slots=True)
class FeatureTally:
    """What is counted of one feature in one split.

    `choices` are how often each value occurs, of classes and of formats of images: they are few. `distinct` are the
    values of other features, where they are counted too.
    """

    present: int = 0
    values: int = 0
    numbers: Numbers | None = None
    lengths: Lengths | None = None
    sizes: Lengths | None = None
    choices: dict[int | str, int] | None = None
    distinct: Values | None = None

    @classmethod
    def of(cls, feature: Feature, level: Level = "basic", *, is_format: bool = False) -> FeatureTally:
        is_sampled = level == "full" and not is_format and _is_sampled(feature)
        return cls(
            numbers=None if feature.kind == "bytes" else Numbers(feature.kind == "float"),
            lengths=Lengths() if -1 in feature.shape else None,
            sizes=Lengths() if feature.kind == "bytes" else None,
            choices={} if is_format or feature.type == _LABEL else None,
            distinct=Values() if is_sampled else None,
        )

    @property
    def kind(self) -> str:
        if self.numbers is None:
            return "bytes"
        return "float" if self.numbers.is_float else "int64"

    def is_plain(self, column: FeatureColumn) -> bool:
        """Whether of a column numbers alone are counted, one in each row."""
        whole = column.offsets is None and column.present is None and column.rows is None
        return whole and self.numbers is not None and self.choices is None and self.distinct is None

    def add(self, column: FeatureColumn, rows: int) -> None:
        values, there = column.values, column.present
        if column.rows is not None:
            rows = len(column.rows)
        self.present += rows if there is None else int(np.count_nonzero(there))
        if column.offsets is None:
            values = values if there is None else values[there]
        elif self.lengths is not None:
            lengths = np.diff(column.offsets)
            self.lengths.add(lengths if there is None else lengths[there])
        self.values += len(values)
        if self.numbers is not None:
            self.numbers.add(values)
        if self.sizes is not None:
            self.sizes.add(words_of(values)[:, 0])
        if self.choices is not None and len(values):
            for value, count in _choices(values, column):
                self.choices[value] = self.choices.get(value, 0) + count
        if self.distinct is not None:
            if column.kind == "bytes":
                self.distinct.add_views(values, column.buffers)
            else:
                self.distinct.add_numbers(values)

    def merge(self, other: FeatureTally) -> None:
        self.present += other.present
        self.values += other.values
        for own, more in ((self.numbers, other.numbers), (self.lengths, other.lengths), (self.sizes, other.sizes)):
            if own is not None and more is not None:
                own.merge(more)  # type: ignore[arg-type]
        if self.choices is not None:
            for value, count in (other.choices or {}).items():
                self.choices[value] = self.choices.get(value, 0) + count
        if self.distinct is not None and other.distinct is not None:
            self.distinct.merge(other.distinct)

    def to_json(self) -> dict[str, Any]:
        document: dict[str, Any] = {"present": self.present, "values": self.values}
        for name in ("numbers", "lengths", "sizes"):
            part = getattr(self, name)
            if part is not None:
                document[name] = part.to_json()
        if self.choices is not None:
            document["choices"] = [list(one) for one in sorted(self.choices.items())]
        if self.distinct is not None:
            document["distinct"] = self.distinct.to_json()
        return document

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> FeatureTally:
        found = cls(int(document["present"]), int(document["values"]))
        if "numbers" in document:
            found.numbers = Numbers.from_json(document["numbers"])
        if "lengths" in document:
            found.lengths = Lengths.from_json(document["lengths"])
        if "sizes" in document:
            found.sizes = Lengths.from_json(document["sizes"])
        if "choices" in document:
            found.choices = {value: int(count) for value, count in document["choices"]}
            sorted(found.choices)  # raises TypeError where text is among numbers
        if "distinct" in document:
            found.distinct = Values.from_json(document["distinct"])
        return found


@dataclass(slots=True)
class SplitTally:
    """What is counted of one split: its records, and each of its features; `sample` are some of its rows."""

    records: int = 0
    features: dict[str, FeatureTally] = field(default_factory=dict)
    sample: Sample | None = None

    def add_together(self, columns: Sequence[FeatureColumn], rows: int) -> None:
        """Count plain columns of one kind: many at once, since with few rows calls for each of them take longest."""
        if len(columns) < _MANY or not rows:
            for column in columns:
                self.features[column.name].add(column, rows)
            return
        tallies = [self.features[column.name] for column in columns]
        for tally in tallies:
            tally.present += rows
            tally.values += rows
        table = np.concatenate([column.values for column in columns]).reshape(len(columns), rows)
        Numbers.add_rows([tally.numbers for tally in tallies if tally.numbers is not None], table)

    def merge(self, other: SplitTally) -> None:
        self.records += other.records
        for name, counted in other.features.items():
            own = self.features.setdefault(name, counted)
            if own is not counted:  # one that an append has added has values in its own records alone
                own.merge(counted)
        if self.sample is not None and other.sample is not None:
            self.sample.merge(other.sample)

    def to_json(self) -> dict[str, Any]:
        features = {name: tally.to_json() for name, tally in self.features.items()}
        sample = {} if self.sample is None else {"sample": self.sample.to_json()}
        return {"records": self.records, "features": features} | sample

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> SplitTally:
        features = {name: FeatureTally.from_json(one) for name, one in document["features"].items()}
        kinds = {name: tally.kind for name, tally in features.items()}
        sample = Sample.from_json(document["sample"], kinds) if "sample" in document else None
        return cls(int(document["records"]), features, sample)


@dataclass(slots=True)
class Tally:
    """What is counted of records, by split."""

    level: Level = "basic"
    splits: dict[str, SplitTally] = field(default_factory=dict)

    def add(
        self, split: str, schema: Schema, columns: Sequence[FeatureColumn], rows: int, keys: U64 | None = None
    ) -> None:
        """Count some more records of a split, of all features of the schema; `keys` are those of the rows in a sample.

        A tally that is full needs keys (`distinct.keys_of_rows`).
        """
        tally = self.splits.get(split)
        if tally is None:
            formats = schema.format_features
            tallies = {one.name: FeatureTally.of(one, self.level, is_format=one.name in formats) for one in schema}
            sample = Sample() if self.level == "full" else None
            tally = self.splits[split] = SplitTally(0, tallies, sample)
        tally.records += rows
        waiting: dict[str, list[FeatureColumn]] = {"int64": [], "float": []}
        for column in columns:
            if rows > _FEW_ROWS or not tally.features[column.name].is_plain(column):
                tally.features[column.name].add(column, rows)
                continue
            waiting[column.kind].append(column)
            if len(waiting[column.kind]) * rows > _AT_ONCE:
                tally.add_together(waiting[column.kind], rows)
                waiting[column.kind] = []
        for columns_of_kind in waiting.values():
            tally.add_together(columns_of_kind, rows)
        if tally.sample is not None and keys is not None:
            tally.sample.add(keys, [one for one in columns if tally.features[one.name].distinct is not None])

    def merge(self, other: Tally) -> None:
        """Take over the counts of the other tally, which is not to be used after that."""
        for name, more in other.splits.items():
            tally = self.splits.setdefault(name, more)
            if tally is not more:
                tally.merge(more)

    def estimate(self) -> None:
        """Estimate from now on the values of features that have more than a few."""
        for split in self.splits.values():
            for feature in split.features.values():
                if feature.distinct is not None:
                    feature.distinct.estimate()

    def is_like(self, other: Tally) -> bool:
        kinds: dict[str, tuple[object, ...]] = {}
        for split in (*self.splits.values(), *other.splits.values()):
            for name, tally in split.features.items():
                own = tally.kind, tally.lengths is None, tally.choices is None
                if kinds.setdefault(name, own) != own:
                    return False
        return self.level == other.level

    @property
    def records(self) -> dict[str, int]:
        return {name: split.records for name, split in self.splits.items() if split.records}

    def to_json(self) -> dict[str, Any]:
        return {name: split.to_json() for name, split in sorted(self.splits.items())}

    @classmethod
    def from_json(cls, document: Mapping[str, Any], level: Level = "basic") -> Tally:
        """Read what `to_json` wrote of this level; what is something else raises ValueError, KeyError or the like."""
        found = cls(level, {name: SplitTally.from_json(split) for name, split in document.items()})
        if any((split.sample is None) != (level == "basic") for split in found.splits.values()):
            raise ValueError(f"a sample is there or lacking, and the level is {level}")
        return found

    def statistics(self, schema: Schema, labels: Mapping[str, Sequence[str]]) -> Statistics:
        splits = {
            name: _figures(name, split, schema, labels, self.level) for name, split in sorted(self.splits.items())
        }
        return Statistics(self.level, {name: split for name, split in splits.items() if split.records})


def _figures(
    name: str, split: SplitTally, schema: Schema, labels: Mapping[str, Sequence[str]], level: Level
) -> SplitFigures:
    features = {}
    for feature in schema:
        tally = split.features.get(feature.name) or FeatureTally.of(feature, level, is_format=False)
        features[feature.name] = FeatureFigures(
            feature.name,
            feature.kind,
            feature.type,
            tally.present,
            split.records - tally.present,
            tally.values,
            numbers=None if tally.numbers is None else tally.numbers.figures,
            lengths=None if tally.lengths is None else tally.lengths.figures,
            sizes=None if tally.sizes is None else tally.sizes.figures,
            classes=_by_name(tally, labels.get(feature.name, ())) if feature.type == _LABEL else None,
            image=_image(feature, split) if feature.type == _IMAGE else None,
            **_full_figures(feature.name, split, tally),
        )
    return SplitFigures(name, split.records, features)


def _is_sampled(feature: Feature) -> bool:
    """Return whether different values of a feature say something: not those of pictures, arrays and other bytes."""
    return feature.type != _LABEL and (feature.kind != "bytes" or column_type(feature).utf8)


def _full_figures(name: str, split: SplitTally, tally: FeatureTally) -> dict[str, Any]:
    if tally.distinct is None or split.sample is None:
        if split.sample is None or not tally.choices:
            return {}
        return {"distinct": Distinct(len(tally.choices), exact=True), "top": top_of(tally.choices)}
    values, weights = split.sample.values_of(name)
    distinct = tally.distinct.distinct()
    found: dict[str, Any] = {"distinct": distinct, "top": tally.distinct.top()}
    if not distinct.exact:  # an estimate may be above what there can be
        found["distinct"] = Distinct(min(distinct.count, tally.values), exact=False)
        found["top"] = estimated_top(values, weights, tally.values)
    numbers = tally.numbers
    if numbers is not None and numbers.min is not None and numbers.max is not None:
        ends = numbers.min, numbers.max
        found["histogram"] = histogram_of(values, weights, *ends, numbers.finite)
        found["quantiles"] = quantiles_of(values, weights, *ends)
    return found


def _choices(values: npt.NDArray[Any], column: FeatureColumn) -> Iterable[tuple[int | str, int]]:
    if column.kind == "bytes":
        counted = binary_array_of(values, column.buffers).value_counts()
        texts, counts = counted.field("values").to_pylist(), counted.field("counts").to_pylist()
        return [(text.decode("utf-8", "replace"), count) for text, count in zip(texts, counts, strict=True)]
    found, numbers = np.unique(values, return_counts=True)
    return zip(found.tolist(), numbers.tolist(), strict=True)


def _by_name(tally: FeatureTally, names: Sequence[str]) -> dict[str, int]:
    counts = dict(tally.choices or {})
    found = {name: counts.pop(number, 0) for number, name in enumerate(names)}
    return found | {str(number): count for number, count in sorted(counts.items())}


def _image(feature: Feature, split: SplitTally) -> ImageFigures | None:
    stem = feature.name.removesuffix("encoded")
    formats, height, width = (split.features.get(f"{stem}{name}") for name in ("format", "height", "width"))
    if formats is None or formats.choices is None:
        return None
    sizes = [None if one is None or one.numbers is None else one.numbers.figures for one in (height, width)]
    return ImageFigures({str(name): count for name, count in sorted(formats.choices.items())}, *sizes)


STATISTICS: Final = "statistics"


@dataclass(frozen=True, slots=True)
class CountValues(Observer):
    """Count the values of all features, by split; the shard plan takes the summary, so that `checks` states nothing."""

    name = STATISTICS

    level: Level = "basic"

    @property
    def takes_sparse(self) -> bool:
        """Whether columns may be sparse: a sample of rows needs them whole."""
        return self.level == "basic"

    def observe(self, seen: Seen) -> Observation:
        tally = Tally(self.level)
        batch = "task {} batch {}".format(*seen.number)
        for run in seen.runs:
            keys = keys_of_rows(batch, run.rows) if self.level == "full" else None
            for code, columns, some in _by_split(seen.splits[run.rows], run.columns):
                chosen = keys if keys is None or some is None else keys[some]
                rows = len(run.rows) if some is None else len(some)
                tally.add(seen.names[code], seen.schema, columns, rows, chosen)
        return Observation(tally)

    def merge(self, one: Any, other: Any) -> Tally:
        """Add the other tally to the first one, or to a new one if the first is JSON."""
        total = self.tally(one)
        total.merge(self.tally(other))
        return total

    def sealed(self, summary: Any) -> Any:
        return self.tally(summary).to_json()

    def tally(self, summary: Tally | Mapping[str, Any]) -> Tally:
        return summary if isinstance(summary, Tally) else Tally.from_json(summary, self.level)


def _by_split(
    codes: I64, columns: Sequence[FeatureColumn]
) -> Iterator[tuple[int, Sequence[FeatureColumn], I64 | None]]:
    """Yield the code of each split that rows are in, the values of these rows, and which they are, None for all."""
    counts = np.bincount(codes) if len(codes) else codes
    there = np.flatnonzero(counts).tolist()
    if len(there) == 1:
        yield there[0], columns, None
        return
    order = np.argsort(codes, kind="stable")
    ends = np.cumsum(counts)
    for code in there:
        rows = order[ends[code] - counts[code] : ends[code]]
        yield code, [_rows_of(column, rows) for column in columns], rows


def _rows_of(column: FeatureColumn, rows: I64) -> FeatureColumn:
    if column.rows is not None:
        taken = np.flatnonzero(np.isin(column.rows, rows))
        found = _rows_of(replace(column, rows=None), taken)
        return replace(found, rows=np.searchsorted(rows, column.rows[taken]))
    present = None if column.present is None else column.present[rows]
    if column.offsets is None:
        return replace(column, values=column.values[rows], present=present)
    lengths = np.diff(column.offsets)[rows]
    offsets = ends_of(lengths)
    positions = np.arange(offsets[-1]) + np.repeat(column.offsets[:-1][rows] - offsets[:-1], lengths)
    return replace(column, values=column.values[positions], offsets=offsets, present=present)
