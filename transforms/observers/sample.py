"""Take a sample of the rows of a split: those with the least keys, which depend on the place of a row alone.

    rows ──keys──▶ the 1,024 least of a batch ──merge──▶ of a task ──▶ of the dataset ──▶ histograms, quantiles

All features have their values of the same rows. A list gives several values while there is room, from places all
over it: the first of a sequence, of which fewer are taken the more rows there are. So what is left of a row depends on
the rows of the whole sample alone, and parts merge in any order. The values taken count for all of their list.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..format.batches.rows import FeatureColumn
from .distinct import U64, packed, short_texts, top_of, unpacked
from .figures import Bucket, ValueCount

ROWS: Final = 1024
"""Rows of a sample: a quantile is at most 3 % of the rows away, in 95 of 100 samples."""

BUCKETS: Final = 10
"""Of histograms and quantiles, as TFDV has them."""

VALUES: Final = 2 * ROWS
"""Values of all rows of a sample, of a feature whose rows are lists: each row has as many, a power of two."""

_WAITING: Final = 2 * ROWS


@dataclass(slots=True)
class _Part:
    """Some rows: their keys, and of each feature a line of values for each row.

    `weights` are how many values the row has, 0 where there is none in this place, and negative where the one taken is
    no finite number.
    """

    keys: U64
    values: dict[str, npt.NDArray[Any]]
    weights: dict[str, npt.NDArray[np.int64]]

    def __len__(self) -> int:
        return len(self.keys)

    def cut(self, width: int) -> None:
        for name, values in self.values.items():
            if values.shape[1] > width:
                self.values[name], self.weights[name] = values[:, :width], self.weights[name][:, :width]


@dataclass(slots=True)
class Sample:
    """The sample of one split: `parts` are reduced to one when it is looked at, or they are many.

    Rows of a batch wait until it is known which keys are too large anyway.
    """

    parts: list[_Part] = field(default_factory=list)
    waiting: list[tuple[U64, Sequence[FeatureColumn]]] = field(default_factory=list)
    most: int | None = None
    _is_reduced: bool = field(default=False, init=False)

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
                width = _width(sum(map(len, self.parts)) + len(rows))
                for column in columns:
                    part.values[column.name], part.weights[column.name] = _taken(column, rows, part.keys, width)
                self._append(part)
        self.waiting = []

    def values_of(self, name: str) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
        """Return the values of a feature, and how much each counts beside the others."""
        part = self._whole()
        if part is None or name not in part.values:
            return np.zeros(0), np.zeros(0, np.int64)
        weights = part.weights[name]
        there = weights > 0
        taken = np.maximum(np.count_nonzero(weights, axis=1), 1)[:, None]  # a power of two, or the whole list
        return part.values[name][there], (weights * _power_from(weights.shape[1]) // taken)[there]

    def to_json(self) -> dict[str, Any]:
        part = self._whole()
        if part is None:
            return {"keys": "", "features": {}}
        features: dict[str, dict[str, Any]] = {}
        for name, values in part.values.items():
            weights = part.weights[name]
            there = weights > 0
            if values.dtype == object:
                features[name] = {"values": [_text(one) for one in np.where(there, values, b"").ravel().tolist()]}
            else:
                features[name] = {"values": packed(np.where(there, values, values.dtype.type(0)))}
            if (weights != 1).any():
                features[name]["weights"] = packed(weights)
        return {"keys": packed(part.keys), "features": features}

    @classmethod
    def from_json(cls, document: Mapping[str, Any], kinds: Mapping[str, str]) -> Sample:
        part = _Part(unpacked(document["keys"], np.uint64), {}, {})
        for name, one in document["features"].items():
            if kinds[name] == "bytes":
                values = _texts([text.encode() for text in one["values"]])
            else:
                values = unpacked(one["values"], np.float32 if kinds[name] == "float" else np.int64)
            weights = unpacked(one["weights"], np.int64) if "weights" in one else np.ones(len(values), np.int64)
            width = len(values) // max(len(part), 1)
            if not (len(part) * width == len(values) == len(weights) and width <= VALUES):
                raise ValueError(f"the sample of {name} has another number of rows")
            part.values[name], part.weights[name] = values.reshape(-1, width), weights.reshape(-1, width)
        return cls([part] if len(part) else [])

    def _append(self, part: _Part) -> None:
        self.parts.append(part)
        self._is_reduced = False
        part.cut(_width(sum(map(len, self.parts))))
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
        if self._is_reduced:
            return first
        keys = np.concatenate([part.keys for part in self.parts])
        order = np.argsort(keys, kind="stable")[:ROWS]
        width = _width(len(order))
        values, weights = {}, {}
        for name in first.values:
            weights[name] = _together([part.weights[name] for part in self.parts], width)[order]
            values[name] = _together([part.values[name] for part in self.parts], width)[order]
            used = int(np.flatnonzero(weights[name].any(axis=0)).max(initial=0)) + 1
            values[name], weights[name] = values[name][:, :used], weights[name][:, :used]
        self.parts, self._is_reduced = [_Part(keys[order], values, weights)], True
        if len(order) == ROWS:
            self.most = int(keys[order[-1]])
        return self.parts[0]


def _width(rows: int) -> int:
    """Return how many values of each row of a list are taken.

    >>> _width(1), _width(5), _width(1024), _width(5000)
    (2048, 256, 2, 2)
    """
    return 1 << (VALUES // min(rows, ROWS)).bit_length() - 1


def _power_from(count: int) -> int:
    return 1 << (count - 1).bit_length()


def _together(parts: list[npt.NDArray[Any]], width: int) -> npt.NDArray[Any]:
    """Return the lines of all parts, each cut or filled up to the longest of `width` at most."""
    width = min(width, max(part.shape[1] for part in parts))
    whole = np.zeros((sum(map(len, parts)), width), parts[0].dtype)
    if whole.dtype == object:
        whole[:] = b""
    first = 0
    for part in parts:
        shown = part[:, :width]
        whole[first : first + len(part), : shown.shape[1]] = shown
        first += len(part)
    return whole


def _taken(
    column: FeatureColumn, rows: npt.NDArray[np.int64], keys: U64, width: int
) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
    """Return values of each of some rows, `width` of lists, and how many values the row has."""
    if column.offsets is None:
        weights, places = np.ones((len(rows), 1), np.int64), rows[:, None]
    else:
        starts = column.offsets[rows]
        weights, places = _spread(column.offsets[rows + 1] - starts, keys, width)
        places = np.where(weights > 0, places + starts[:, None], 0)
    if column.present is not None:
        weights = np.where(column.present[rows][:, None], weights, 0)
    if not len(column.values):
        return _nothing(weights.shape, column.kind), np.zeros(weights.shape, np.int64)
    values = column.values[places]
    if column.kind == "bytes":
        values = np.where(weights > 0, values, np.complex128(0)).ravel()  # what is under nulls may be any bytes
        return _texts(short_texts(values, column.buffers).to_pylist()).reshape(weights.shape), weights
    if column.kind == "float":
        finite = np.isfinite(values)
        return np.where(finite, values, np.float32(0)) + np.float32(0), np.where(finite, weights, -weights)
    return values, weights


def _spread(lengths: npt.NDArray[np.int64], keys: U64, width: int) -> tuple[npt.NDArray[np.int64], Any]:
    """Return for each list how many values it has, 0 where a place was before, and places in it.

    The first is by the row's key; the others are by the sequence of van der Corput, whose first 2, 4, 8 ... are
    evenly apart, and at different values of a list that has as many.
    """
    bits = width.bit_length() - 1
    steps = np.zeros(width, np.int64)
    for bit in range(bits):
        steps |= (np.arange(width) >> bit & 1) << bits - 1 - bit
    some = np.maximum(lengths, 1)
    first = (keys % some.astype(np.uint64)).astype(np.int64)
    places = (steps * some[:, None] >> bits) + first[:, None]
    places -= np.where(places >= some[:, None], some[:, None], 0)
    weights = np.repeat(lengths[:, None], width, 1)
    short = np.flatnonzero(lengths < width)
    order = np.argsort(places[short], axis=1, kind="stable")
    line = np.take_along_axis(places[short], order, 1)
    again = np.zeros(order.shape, bool)
    np.put_along_axis(again, order[:, 1:], line[:, 1:] == line[:, :-1], 1)
    weights[short] = np.where(again, 0, weights[short])
    return weights, places


def _text(value: Any) -> Any:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def _texts(texts: list[bytes]) -> npt.NDArray[Any]:
    found = np.empty(len(texts), object)
    found[:] = texts
    return found


def _nothing(shape: tuple[int, ...], kind: str) -> npt.NDArray[Any]:
    if kind == "bytes":
        return _texts([b""] * (shape[0] * shape[1])).reshape(shape)
    return np.zeros(shape, np.float32 if kind == "float" else np.int64)


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
