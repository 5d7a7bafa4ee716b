"""Rows by their number as dicts of NumPy values: torch's map-style dataset, and grain's `RandomAccessDataSource`."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from ...format.wording.printable import printable
from ..rows.numbered_rows import NumberedRows
from .numpy_columns import NumpyColumns, Ragged, Values
from .single_rows import SingleRows


class RowSource:
    """What has a length and rows by number, one or many at a time; threads may share it, and processes get their own.

    A row is a dict: numbers and fixed shapes are NumPy values, lists of any length are arrays, text is str. Where a
    column may be null, `NAME/present` says whether it is not. Times are NumPy's, or of the dtype `times`.
    """

    def __init__(
        self,
        rows: NumberedRows,
        columns: Sequence[str] | None,
        *,
        decode: bool,
        times: np.dtype[np.int64] | None = None,
    ) -> None:
        self._rows, self._times = rows, times
        self._numpy = NumpyColumns.plan(rows.schema, columns, decode=decode)
        self._decodes = decode
        self._single = SingleRows.plan(rows, self._numpy, rows.plan(self._numpy.columns)[0], times)

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(RowSource, decode=self._decodes, times=self._times), (self._rows, self._numpy.columns)

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        """Return what the rows are of, wherever they are: checkpoints of grain compare it."""
        name, generation = self._rows.manifest.name, self._rows.manifest.generation
        columns = "all columns" if self._numpy.columns is None else ", ".join(self._numpy.columns)
        what = f"{len(self):,} rows of shards {self._rows.digest}, {columns}, decode={self._decodes}"
        return f"<RowSource {printable(name)}: generation {generation}, {what}>"

    def __getitem__(self, index: int) -> dict[str, Any]:
        """Return the row of a number.

        Raises:
            IndexError: there is none.
            DamageError: its shard is missing, damaged or cut, or the record is not an Example of the schema.
        """
        number = operator.index(index)
        row = None if self._single is None else self._single.row(self._rows.access.record(number))
        return self.__getitems__([number])[0] if row is None else row

    def __getitems__(self, indices: Sequence[int]) -> list[dict[str, Any]]:
        numbers = np.asarray(indices, np.int64)
        columns = self._numpy.read_filled(self._rows.take(numbers, self._numpy.columns))
        each = {name: _each(self._timed(values), len(numbers)) for name, values in columns.items()}
        return [{name: values[row] for name, values in each.items()} for row in range(len(numbers))]

    def _timed(self, values: Values) -> Values:
        if isinstance(values, Ragged):
            return Ragged(self._timed(values.values), values.row_splits)
        return values.view(self._times) if self._times is not None and values.dtype.kind in "mM" else values


def _each(values: Values, count: int) -> Sequence[Any]:
    if not isinstance(values, Ragged):
        return values  # type: ignore[return-value]  # an array is one
    splits = values.row_splits.tolist()
    if not isinstance(values.values, Ragged):
        return [values.values[splits[row] : splits[row + 1]] for row in range(count)]
    inner = _each(values.values, len(values.values.row_splits) - 1)
    return [inner[splits[row] : splits[row + 1]] for row in range(count)]
