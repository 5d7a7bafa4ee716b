"""A sample of the rows of a split: those with the least keys, which depend on nothing but the place of a row.

    rows ──keys──▶ the 1,024 least of a batch ──merge──▶ of a task ──▶ of the dataset ──▶ histograms, quantiles

All features have their values of the same rows. One value of a list is taken, which counts as often as the list is
long. Where a split has no more rows than that, the sample is the whole of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..format.flow.feature_values import FeatureColumn
from .distinct import short_texts, top_of
from .figures import Bucket, ValueCount
from .hashes import U64, packed, unpacked

ROWS: Final = 1024
"""Rows of a sample: a quantile is at most 3 % of the rows away, in 95 of 100 samples."""

BUCKETS: Final = 10
"""Of histograms and quantiles, as TFDV has them."""

_WAITING: Final = 2 * ROWS


@dataclass(slots=True)
class _Part:
    """Some rows: their keys, and of each feature values and how much each counts, 0 where there is none."""

    keys: U64
    values: dict[str, npt.NDArray[Any]]
    weights: dict[str, npt.NDArray[np.int64]]

    def __len__(self) -> int:
        return len(self.keys)


@dataclass(slots=True)
class Sample:
    """The sample of one split: `parts` are reduced to one when it is looked at, or they are many.

    Rows of a batch wait until it is known which keys are too large anyway.
    """

    parts: list[_Part] = field(default_factory=list)
    waiting: list[tuple[U64, Sequence[FeatureColumn]]] = field(default_factory=list)
    most: int | None = None

    def add(self, keys: U64, columns: Sequence[FeatureColumn]) -> None:
        """Take those of some more rows that have the least keys; `columns` are the features that are sampled."""
        self.waiting.append((keys, columns))

    def merge(self, other: Sample) -> None:
        """Take those of other rows; of equal keys the own come first."""
        self._take_waiting()
        for part in other.parts:
            self._append(part)
        self.waiting = other.waiting
        self._take_waiting()

    def _take_waiting(self) -> None:
        for keys, columns in self.waiting:
            rows = np.arange(len(keys)) if self.most is None else np.flatnonzero(keys < np.uint64(self.most))
            if len(rows) > ROWS:
                rows = rows[np.argpartition(keys[rows], ROWS)[:ROWS]]
            if len(rows):
                part = _Part(keys[rows], {}, {})
                for column in columns:
                    part.values[column.name], part.weights[column.name] = _taken(column, rows, part.keys)
                self._append(part)
        self.waiting = []

    def values_of(self, name: str) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
        """Return the values of a feature, and how much each counts."""
        part = self._whole()
        if part is None or name not in part.values:
            return np.zeros(0), np.zeros(0, np.int64)
        there = part.weights[name] > 0
        return part.values[name][there], part.weights[name][there]

    def to_json(self) -> dict[str, Any]:
        """Return the sample, which `from_json` reads."""
        part = self._whole()
        if part is None:
            return {"keys": "", "features": {}}
        features: dict[str, dict[str, Any]] = {}
        for name, values in part.values.items():
            weights = part.weights[name]
            there = weights > 0
            if values.dtype == object:
                features[name] = {"values": [_text(one) for one in np.where(there, values, b"").tolist()]}
            else:
                features[name] = {"values": packed(np.where(there, values, values.dtype.type(0)))}
            if (weights != 1).any():
                features[name]["weights"] = packed(weights)
        return {"keys": packed(part.keys), "features": features}

    @classmethod
    def from_json(cls, document: Mapping[str, Any], kinds: Mapping[str, str]) -> Sample:
        """Read what `to_json` wrote; `kinds` are those of the features."""
        part = _Part(unpacked(document["keys"], np.uint64), {}, {})
        for name, one in document["features"].items():
            if kinds[name] == "bytes":
                values = _texts([text.encode() for text in one["values"]])
            else:
                values = unpacked(one["values"], np.float32 if kinds[name] == "float" else np.int64)
            weights = unpacked(one["weights"], np.int64) if "weights" in one else np.ones(len(values), np.int64)
            if not len(part) == len(values) == len(weights):
                raise ValueError(f"the sample of {name} has another number of rows")
            part.values[name], part.weights[name] = values, weights
        return cls([part] if len(part) else [])

    def _append(self, part: _Part) -> None:
        self.parts.append(part)
        if sum(map(len, self.parts)) > _WAITING or (self.most is None and sum(map(len, self.parts)) >= ROWS):
            self._reduced()

    def _whole(self) -> _Part | None:
        """Return the rows with the least keys, in their order."""
        self._take_waiting()
        return self._reduced()

    def _reduced(self) -> _Part | None:
        if not self.parts:
            return None
        first = self.parts[0]
        keys = np.concatenate([part.keys for part in self.parts])
        order = np.argsort(keys, kind="stable")[:ROWS]
        values, weights = {}, {}
        for name in first.values:
            values[name] = np.concatenate([part.values[name] for part in self.parts])[order]
            weights[name] = np.concatenate([part.weights[name] for part in self.parts])[order]
        self.parts = [_Part(keys[order], values, weights)]
        if len(order) == ROWS:
            self.most = int(keys[order[-1]])
        return self.parts[0]


def _taken(column: FeatureColumn, rows: npt.NDArray[np.int64], keys: U64) -> tuple[npt.NDArray[Any], Any]:
    """Return a value of each of some rows, and how much it counts."""
    weights = np.ones(len(rows), np.int64)
    places = rows
    if column.offsets is not None:
        weights = column.offsets[rows + 1] - column.offsets[rows]
        places = column.offsets[rows] + (keys % np.maximum(weights, 1).astype(np.uint64)).astype(np.int64)
        places = np.where(weights > 0, places, 0)
    if column.present is not None:
        weights = np.where(column.present[rows], weights, 0)
    if not len(column.values):
        return _nothing(len(rows), column.kind), np.zeros(len(rows), np.int64)
    values = column.values[places]
    if column.kind == "bytes":
        values = np.where(weights > 0, values, np.complex128(0))  # what is under nulls may be any bytes
        return _texts(short_texts(values, column.buffers).to_pylist()), weights
    if column.kind == "float":
        finite = np.isfinite(values)
        return np.where(finite, values, np.float32(0)) + np.float32(0), np.where(finite, weights, 0)
    return values, weights


def _text(value: Any) -> Any:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def _texts(texts: list[bytes]) -> npt.NDArray[Any]:
    found = np.empty(len(texts), object)
    found[:] = texts
    return found


def _nothing(count: int, kind: str) -> npt.NDArray[Any]:
    if kind == "bytes":
        return _texts([b""] * count)
    return np.zeros(count, np.float32 if kind == "float" else np.int64)


def histogram_of(
    values: npt.NDArray[Any], weights: npt.NDArray[np.int64], low: float, high: float, count: int
) -> tuple[Bucket, ...]:
    """Return the histogram of `count` values from `low` to `high`, by a sample of them."""
    if not len(values):
        return ()
    edges = np.linspace(float(low), float(high), BUCKETS + 1) if low < high else np.array([float(low), float(high)])
    if not np.isfinite(edges).all() or (np.diff(edges) <= 0).any():
        edges = np.array([float(low), float(high)])
    places = np.clip(np.searchsorted(edges, values.astype(np.float64), "right") - 1, 0, len(edges) - 2)
    totals = np.zeros(len(edges) - 1, np.int64)
    np.add.at(totals, places, weights)
    whole = int(weights.sum())
    shares = [int(total) * count / whole for total in totals]
    return tuple(map(Bucket, edges[:-1].tolist(), edges[1:].tolist(), shares))


def quantiles_of(
    values: npt.NDArray[Any], weights: npt.NDArray[np.int64], low: float, high: float
) -> tuple[float, ...]:
    """Return what 0 %, 10 %, ... 100 % of the values are at most; the first and last are `low` and `high`."""
    if not len(values):
        return ()
    order = np.argsort(values, kind="stable")
    ends = np.cumsum(weights[order])
    whole = int(ends[-1])
    places = [int(np.searchsorted(ends, -(-whole * part // BUCKETS))) for part in range(1, BUCKETS)]
    return (float(low), *(float(values[order[place]]) for place in places), float(high))


def estimated_top(values: npt.NDArray[Any], weights: npt.NDArray[np.int64], count: int) -> tuple[ValueCount, ...]:
    """Return the most frequent of `count` values by a sample, but for those that it has once."""
    found: Counter[Any] = Counter()
    times: Counter[Any] = Counter()
    for value, weight in zip(map(_text, values.tolist()), weights.tolist(), strict=True):
        found[value] += weight
        times[value] += 1
    whole = sum(found.values())
    top = top_of({value: total for value, total in found.items() if times[value] > 1})
    return tuple(replace(one, count=round(one.count * count / whole)) for one in top)
