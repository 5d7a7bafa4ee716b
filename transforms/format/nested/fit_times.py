"""Give the times of a column another unit, exactly, also those in lists, structs and maps.

    timestamp[us]               timestamp[ns]
    {t: 2020-01-01, n: 1}  ->   {t: 2020-01-01, n: 1}
    {t: 1600-01-01, n: 2}       null, and a problem of row 1: beyond the int64 range in ns

The files of one source may count times in different units, and each file is read in its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from pyarrow import types

from ..batches.arrow_memory import I64, array_of, valid_mask
from ..batches.rejects import CellError, CellProblem
from ..columns.lists import lists_of
from ..columns.numbers import int64_values
from ..schema.arrow_types import has_unit
from ..schema.column_types import Test, natural_type
from ..schema.schema import Feature
from ..wording.printable import printable
from .flatten import as_lists, stored
from .keys import is_any_list, stored_type

Convert: TypeAlias = Callable[[pa.Array, Feature], tuple[I64, list[tuple[int, CellError]]]]
"""Returns scalars as numbers of a feature's unit, and the positions of those that have none, with what is wrong."""


def fit_times(
    name: str, column: pa.Array, kind: pa.DataType, convert: Convert | None = None, takes: Test = has_unit
) -> tuple[pa.Array, tuple[CellProblem, ...]]:
    """Return a column whose times have the units of `kind`, and its rows with a time that has no exact one there.

    The cells of these rows are null. `convert` makes times of scalars of the types that it `takes`. Fields of structs
    are found by name; everything else stays as it is.
    """
    fitter = _Fitter(name, convert or _in_other_unit, takes)
    found = fitter.visit(name, column, kind, np.arange(len(column)))
    if fitter.errors:
        null = np.zeros(len(found), np.bool_)
        null[list(fitter.errors)] = True
        found = found.take(pa.array(np.arange(len(found)), pa.int64(), mask=null))
    return found, tuple(CellProblem(row, error) for row, error in sorted(fitter.errors.items()))


def _in_other_unit(values: pa.Array, feature: Feature) -> tuple[I64, list[tuple[int, CellError]]]:
    ticks, bad = int64_values(values, feature)
    return ticks, [(at, one.error(feature.name, at)) for one in bad for at in one.positions.tolist()]


@dataclass(frozen=True, slots=True, eq=False)
class _Fitter:
    """Goes down a column called `name`; a row has one error: of several, the first."""

    name: str
    convert: Convert
    takes: Test
    errors: dict[int, CellError] = field(default_factory=dict)

    def visit(self, path: str, array: pa.Array, wanted: pa.DataType, rows: I64) -> pa.Array:
        """Return values with the units of a type; `rows` are those of the values, -1 where a null is above them."""
        if array.type == wanted:
            return array
        array, wanted = stored(array), stored_type(wanted)
        kind = array.type
        if types.is_struct(kind) and types.is_struct(wanted):
            fields = {one.name: one.type for one in wanted}
            children = [
                self.visit(f"{path}/{one.name}", values, fields.get(one.name, one.type), rows)
                for one, values in zip(kind, array.flatten(), strict=True)
            ]
            own = [one.with_type(child.type) for one, child in zip(kind, children, strict=True)]
            return pa.StructArray.from_arrays(children, fields=own, mask=array.is_null())
        if types.is_map(kind) and types.is_map(wanted):
            return self._map(path, array, wanted, rows)
        if types.is_fixed_size_list(kind) and (is_any_list(wanted)):
            size, valid = kind.list_size, valid_mask(array)
            rows = np.repeat(rows if valid is None else np.where(valid, rows, -1), size)
            flat = array.values.slice(array.offset * size, len(array) * size)
            if valid is not None:  # what is below a null is no value
                flat = flat.take(pa.array(np.arange(len(flat)), pa.int64(), mask=np.repeat(~valid, size)))
            values = self.visit(path, flat, wanted.value_type, rows)
            return pa.FixedSizeListArray.from_arrays(values, size, mask=array.is_null())
        if is_any_list(kind) and is_any_list(wanted):
            cells = lists_of(array)
            assert cells.offsets is not None
            values = self.visit(path, cells.values, wanted.value_type, np.repeat(rows, np.diff(cells.offsets)))
            return pa.LargeListArray.from_arrays(array_of(cells.offsets), values, mask=array.is_null())
        return self._scalars(path, array, wanted, rows) if has_unit(wanted) and self.takes(kind) else array

    def _map(self, path: str, array: pa.Array, wanted: pa.DataType, rows: I64) -> pa.Array:
        cells = lists_of(as_lists(array))
        assert cells.offsets is not None
        pairs = pa.struct([pa.field("key", wanted.key_type, nullable=False), ("value", wanted.item_type)])
        values = self.visit(path, cells.values, pairs, np.repeat(rows, np.diff(cells.offsets)))
        null = np.append(np.asarray(array.is_null()), False)
        offsets = pa.array(cells.offsets.astype(np.int32), mask=null if array.null_count else None)
        return pa.MapArray.from_arrays(offsets, values.field(0), values.field(1))

    def _scalars(self, path: str, array: pa.Array, wanted: pa.DataType, rows: I64) -> pa.Array:
        known = natural_type(wanted)
        assert known is not None
        feature = Feature(self.name, "int64", known.name, (), unit=wanted.unit)
        ticks, errors = self.convert(array, feature)
        where = "" if path == self.name else f'"{printable(path)}": '
        for at, error in errors:
            if rows[at] >= 0:
                self.errors.setdefault(int(rows[at]), _within(error, where))
        null = np.asarray(array.is_null())
        unused = null.copy()
        unused[[at for at, _ in errors]] = True
        ticks = np.where(unused, 0, ticks)
        narrow = wanted.bit_width < ticks.itemsize * 8
        return pa.array(ticks.astype(np.int32) if narrow else ticks, mask=null if null.any() else None).view(wanted)


def _within(error: CellError, where: str) -> CellError:
    also = error.append_message
    return replace(error, message=where + error.message, append_message=None if also is None else where + also)
