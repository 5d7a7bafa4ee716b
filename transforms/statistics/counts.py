"""What is counted of the numbers and of the lengths of one feature in one split, of any number of batches."""

from __future__ import annotations

import math
from dataclasses import dataclass
from operator import mul
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from .exact_sums import FLOAT_BITS, sums_of_floats, sums_of_integers
from .figures import LengthFigures, NumberFigures

I64 = npt.NDArray[np.int64]

_FLOAT: Final = "float"
_INT: Final = "int64"
_FEW: Final = 32
"""So many integers are added up sooner one by one: each call of numpy takes as long as ten of them."""


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
        if len(values) <= _FEW and not self.is_float:
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
