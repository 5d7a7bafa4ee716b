"""Make nested columns flat, and put them together again; also JSON text of a column, and times in another unit.

See `keys` for what flat columns are called.

    [[[1, 2], []], null, [[3]]]      ragged_flat_values    [1, 2]   null  [3]
     0 rows       1     2            ragged_row_lengths_0  [2, 0]   null  [1]
                                     present                1        0     1

A null within a list is a problem of its row, as it is in a list of scalars: neither TFDS nor TensorFlow has a place for
it.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from ...errors import SchemaError
from ..batches.arrow_memory import I64, array_of, ends_of, raw_values, valid_mask
from ..batches.rejects import CellError, CellProblem
from ..schema.arrow_types import has_unit, run_values
from ..schema.column_types import Test, is_string, natural_type
from ..schema.schema import ColumnRule, Feature
from ..wording.hints import Add, set_column
from ..wording.printable import printable
from .feature_column import NULLS_IN_LISTS, lists_of, nulls_in_lists, plain_array
from .keys import (
    FLAT_VALUES,
    PRESENT,
    ROW_LENGTHS,
    grid_of,
    has_digits,
    is_any_list,
    is_flat,
    is_scalar,
    stored_type,
    unheld,
)
from .numbers import decimal_floats, decimal_text, from_scaled, int64_values, scaled_integers

JSON: Final = "json"

RowOf: TypeAlias = Callable[[I64], I64]


@dataclass(frozen=True, slots=True, eq=False)
class FlatColumn:
    """One of the columns that a nested one becomes; `nullable` says whether its key may be absent."""

    name: str
    values: pa.Array
    nullable: bool


@dataclass(frozen=True, slots=True, eq=False)
class Flattened:
    """The columns that a nested one becomes, and its rows that they cannot hold."""

    columns: tuple[FlatColumn, ...]
    problems: tuple[CellProblem, ...]


@dataclass(frozen=True, slots=True, eq=False)
class _Levels:
    """The lists that elements are in: `ends[k]` are the offsets of the rows in the elements of level k.

    `lengths` are those of the lists of level 1 and above, which have no rows of their own. `present` says which rows
    have a value, None if all do.
    """

    ends: tuple[I64, ...]
    lengths: tuple[I64, ...]
    present: npt.NDArray[np.bool_] | None
    nullable: bool

    def inner(self, offsets: I64) -> _Levels:
        return replace(self, ends=(*self.ends, offsets[self.ends[-1]]), lengths=(*self.lengths, np.diff(offsets)))

    def row_of(self, positions: I64) -> I64:
        return np.searchsorted(self.ends[-1], positions, "right") - 1

    def as_lists(self, values: pa.Array, ends: I64) -> pa.Array:
        mask = None if self.present is None else pa.array(~self.present)
        return pa.LargeListArray.from_arrays(array_of(ends), values, mask=mask)


@dataclass(slots=True, eq=False)
class _Flattener:
    """Goes down a column; what it finds is in `columns` and `bad`. `source` is what a config calls the column."""

    as_: str | None
    source: str | None
    columns: list[FlatColumn] = field(default_factory=list)
    bad: dict[tuple[int, str], CellError] = field(default_factory=dict)

    def rows(self, name: str, array: pa.Array, *, nullable: bool) -> None:
        if is_flat(array.type):
            if is_any_list(array.type):
                cells = lists_of(array)
                assert cells.offsets is not None
                self._no_nulls(name, cells.values, _Levels((cells.offsets,), (), None, nullable).row_of)
            self._add(name, array, nullable=nullable)
            return
        array = stored(array)
        kind = array.type
        if self.as_ == JSON:
            self._add(name, as_json(array), nullable=nullable)
        elif types.is_struct(kind):
            if nullable:
                self._add(f"{name}/{PRESENT}", array.is_valid().cast(pa.int64()), nullable=False)
            for child, values in zip(kind, array.flatten(), strict=True):
                self.rows(f"{name}/{child.name}", values, nullable=nullable or child.nullable)
        elif _is_grid(kind):
            self._grid(name, array, nullable=nullable)
        elif is_any_list(kind) or types.is_map(kind):
            self._lists(name, array, nullable=nullable)
        else:
            self._add(name, self._scalars(name, array, lambda positions: positions), nullable=nullable)

    def _lists(self, name: str, array: pa.Array, *, nullable: bool) -> None:
        array = as_lists(array)
        simple = is_scalar(grid_of(array.type.value_type)[1])
        cells = lists_of(array)
        assert cells.offsets is not None
        levels = _Levels((cells.offsets,), (), cells.present, nullable)
        if nullable and not simple:
            self._add(f"{name}/{PRESENT}", array.is_valid().cast(pa.int64()), nullable=False)
        self._elements(name, cells.values, levels)

    def _grid(self, name: str, array: pa.Array, *, nullable: bool) -> None:
        sizes, _ = grid_of(array.type)
        rows = np.flatnonzero(np.asarray(array.is_valid()))
        dense = array.take(array_of(rows)) if array.null_count else array
        flat = self._unfolded(name, dense, lambda positions: rows[positions])
        storage = pa.FixedSizeListArray.from_arrays(flat, math.prod(sizes))
        if array.null_count:
            null = np.asarray(array.is_null())
            storage = storage.take(pa.array(np.cumsum(~null) - 1, pa.int64(), mask=null))
        kind = pa.fixed_shape_tensor(flat.type, sizes)
        self._add(name, pa.ExtensionArray.from_storage(kind, storage), nullable=nullable)

    def _elements(self, name: str, array: pa.Array, levels: _Levels) -> None:
        array = stored(array)
        kind = array.type
        sizes, inner = grid_of(kind)
        if types.is_struct(kind):
            for child, values in zip(kind, array.flatten(), strict=True):
                self._elements(f"{name}/{child.name}", values, levels)
        elif is_scalar(inner):
            self._leaf(name, self._unfolded(name, array, levels.row_of), levels, math.prod(sizes))
        else:
            self._no_nulls(name, array, levels.row_of)
            cells = lists_of(as_lists(array))
            assert cells.offsets is not None
            self._elements(name, cells.values, levels.inner(cells.offsets))

    def _leaf(self, name: str, values: pa.Array, levels: _Levels, width: int) -> None:
        rank, ends = len(levels.ends), levels.ends[-1] * width
        if rank == 1:
            self._add(name, levels.as_lists(values, ends), nullable=levels.nullable)
            return
        self._add(f"{name}/{FLAT_VALUES}", levels.as_lists(values, ends), nullable=levels.nullable)
        for level, lengths in enumerate(levels.lengths):
            found = levels.as_lists(pa.array(lengths, pa.int64()), levels.ends[level])
            self._add(f"{name}/{ROW_LENGTHS}{level}", found, nullable=levels.nullable)

    def _scalars(self, name: str, array: pa.Array, row_of: RowOf) -> pa.Array:
        if not types.is_decimal(array.type):
            return array
        if self.as_ == "float":
            return decimal_floats(array)
        if self.as_ == "scaled":
            integers, over = scaled_integers(array)
            for position, row in zip(over.tolist(), row_of(over).tolist(), strict=True):
                value = str(array[position].as_py())
                text = f"{value} is out of the range of int64 once it is scaled; leave `as` out: text is exact"
                self.bad.setdefault((row, name), CellError(name, "INT_OVERFLOW", value, "int64", text))
            return integers
        return decimal_text(array)

    def _unfolded(self, name: str, array: pa.Array, row_of: RowOf) -> pa.Array:
        while types.is_fixed_size_list(array.type):
            self._no_nulls(name, array, row_of)
            size = array.type.list_size
            array = stored(array.values.slice(array.offset * size, len(array) * size))
            row_of = partial(_row_of_list, row_of, size)
        self._no_nulls(name, array, row_of)
        return self._scalars(name, array, row_of)

    def _no_nulls(self, name: str, array: pa.Array, row_of: RowOf) -> None:
        if array.null_count:
            plain = f"null {nulls_in_lists(name, array.type) if name == self.source else NULLS_IN_LISTS}"
            fix = (
                ""
                if self.source is None
                else f", or keep the column as JSON text: {set_column(self.source, 'as', 'json')}"
            )
            error = CellError(name, "NULL_IN_LIST", "null", str(array.type), plain + fix, plain)
            for row in np.unique(row_of(np.flatnonzero(np.asarray(array.is_null())))).tolist():
                self.bad.setdefault((row, name), error)

    def _add(self, name: str, values: pa.Array, *, nullable: bool) -> None:
        self.columns.append(FlatColumn(name, values, nullable))


def flatten_column(
    name: str, array: pa.Array, *, nullable: bool, as_: str | None = None, source: str | None = None
) -> Flattened:
    """Return the flat columns of one that is nested or a decimal; `as_` is the form that a config declares.

    A column that one feature holds comes back as it is. `source` is the name by which a config declares its form.
    """
    found = _Flattener(as_, source)
    if not nullable and array.null_count and not types.is_decimal(stored_type(array.type)):
        for row in np.flatnonzero(np.asarray(array.is_null())).tolist():
            text = "null, but the schema says that it never is: give it a value"
            found.bad[row, name] = CellError(name, "DECLARED_NOT_NULL", "null", "a value", text)
    found.rows(name, array, nullable=nullable)
    return Flattened(
        tuple(found.columns),
        tuple(CellProblem(row, error) for (row, _), error in sorted(found.bad.items(), key=_place)),
    )


def _place(item: tuple[tuple[int, str], CellError]) -> tuple[int, str]:
    return item[0]


def empty_array(kind: pa.DataType) -> pa.Array:
    return pa.nulls(0, kind) if not isinstance(kind, pa.BaseExtensionType) else pa.array([], kind)


def stored(array: pa.Array) -> pa.Array:
    while stored_type(array.type) != array.type:
        array = plain_array(array)
        if types.is_run_end_encoded(array.type):
            array = run_values(array)
    return array


def as_lists(array: pa.Array) -> pa.Array:
    """Return maps as lists of structs of `key` and `value`, and lists as they are."""
    if not types.is_map(array.type):
        return array
    key = pa.field("key", array.type.key_type, nullable=False)
    value = array.type.item_field.with_name("value")
    return array.cast(pa.list_(pa.field("item", pa.struct([key, value]), nullable=False)))


def _row_of_list(row_of: RowOf, size: int, positions: I64) -> I64:
    return row_of(positions // size)


def _is_grid(kind: pa.DataType) -> bool:
    sizes, inner = grid_of(kind)
    return len(sizes) > 1 and not types.is_decimal(inner) and is_scalar(inner)


# Nested columns and decimals from the features that hold them: what `flatten` took apart, put together again.


Columns = Mapping[str, pa.Array]


class Disagreement(ValueError):
    """The features of a nested column do not agree: `name` is one of them."""

    def __init__(self, name: str) -> None:
        super().__init__(f'the features of "{name}" do not have as many values as those beside it')
        self.name = name


def assemble(name: str, kind: pa.DataType, columns: Columns) -> pa.Array:
    """Return a column of decoded features by name. Raises `Disagreement` where they do not hold one column."""
    try:
        return _rows(name, kind, columns)
    except pa.ArrowInvalid as error:
        raise Disagreement(name) from error


def _rows(name: str, kind: pa.DataType, columns: Columns) -> pa.Array:
    sizes, inner = grid_of(kind)
    if types.is_struct(kind):
        children = [_rows(f"{name}/{child.name}", child.type, columns) for child in kind]
        mask = None if f"{name}/{PRESENT}" not in columns else _absent(columns[f"{name}/{PRESENT}"])
        return pa.StructArray.from_arrays(children, fields=list(kind), mask=mask)
    if sizes and is_scalar(inner) and not (types.is_decimal(inner) and len(sizes) > 1):
        return _regrouped(columns[name], kind, sizes, inner)
    if is_any_list(kind) or types.is_map(kind):
        return _lists(name, kind, columns)
    return _scalars(columns[name], kind)


def _regrouped(array: pa.Array, kind: pa.DataType, sizes: tuple[int, ...], inner: pa.DataType) -> pa.Array:
    found = _folded(_scalars(array.drop_null().flatten(), inner), kind, sizes)
    return _with_nulls(found, array.is_null()) if array.null_count else found


def _with_nulls(values: pa.Array, absent: pa.Array) -> pa.Array:
    null = np.asarray(absent)
    return values.take(pa.array(np.cumsum(~null) - 1, pa.int64(), mask=null))


def _folded(values: pa.Array, kind: pa.DataType, sizes: tuple[int, ...]) -> pa.Array:
    wanted = []
    for _ in sizes:
        wanted.append(kind)
        kind = kind.value_type
    for one in reversed(wanted):
        values = pa.FixedSizeListArray.from_arrays(values, type=one)
    return values


@dataclass(frozen=True, slots=True, eq=False)
class _Leaf:
    """The values of one leaf, and the lists that they are in: `ends` of rows, and `lengths` of each level below."""

    values: pa.Array
    ends: I64
    lengths: tuple[I64, ...]
    absent: pa.Array


def _lists(name: str, kind: pa.DataType, columns: Columns) -> pa.Array:
    leaves: dict[str, _Leaf] = {}
    _gather(name, _element(kind), 1, columns, leaves)
    first = next(iter(leaves.values()))
    for leaf_name, leaf in leaves.items():
        if not np.array_equal(leaf.ends, first.ends):
            raise Disagreement(leaf_name)
    values = _elements(name, _element(kind), 1, leaves)
    absent = _absent(columns[f"{name}/{PRESENT}"]) if f"{name}/{PRESENT}" in columns else first.absent
    return _as_kind(first.ends, values, kind, absent)


def _gather(name: str, kind: pa.DataType, rank: int, columns: Columns, leaves: dict[str, _Leaf]) -> None:
    sizes, inner = grid_of(kind)
    if types.is_struct(kind):
        for child in kind:
            _gather(f"{name}/{child.name}", child.type, rank, columns, leaves)
    elif is_scalar(inner):
        leaves[name] = _leaf(name, inner, rank, math.prod(sizes), columns)
    else:
        _gather(name, _element(kind), rank + 1, columns, leaves)


def _leaf(name: str, kind: pa.DataType, rank: int, width: int, columns: Columns) -> _Leaf:
    if rank == 1:
        column = columns[name]
        ends = list_ends(column) // width
        return _Leaf(_scalars(column.flatten(), kind), ends, (), column.is_null())
    column = columns[f"{name}/{FLAT_VALUES}"]
    levels = [columns[f"{name}/{ROW_LENGTHS}{level}"] for level in range(rank - 1)]
    lengths = tuple(np.asarray(level.flatten()).astype(np.int64) for level in levels)
    ends = list_ends(levels[0])
    inside = ends
    for level, below in zip(lengths, [*levels[1:], column], strict=True):
        if len(level) and int(level.min()) < 0:
            raise Disagreement(name)
        inside = ends_of(level)[inside]
        if not np.array_equal(inside * (width if below is column else 1), list_ends(below)):
            raise Disagreement(name)
    return _Leaf(_scalars(column.flatten(), kind), ends, lengths, column.is_null())


def _elements(name: str, kind: pa.DataType, rank: int, leaves: Mapping[str, _Leaf]) -> pa.Array:
    sizes, inner = grid_of(kind)
    if types.is_struct(kind):
        children = [_elements(f"{name}/{child.name}", child.type, rank, leaves) for child in kind]
        return pa.StructArray.from_arrays(children, fields=list(kind))
    if is_scalar(inner):
        return _folded(leaves[name].values, kind, sizes)
    below = [leaf for key, leaf in leaves.items() if key == name or key.startswith(f"{name}/")]
    lengths = below[0].lengths[rank - 1]
    if any(not np.array_equal(leaf.lengths[rank - 1], lengths) for leaf in below):
        raise Disagreement(name)
    return _as_kind(ends_of(lengths), _elements(name, _element(kind), rank + 1, leaves), kind, None)


def _as_kind(ends: I64, values: pa.Array, kind: pa.DataType, absent: pa.Array | None) -> pa.Array:
    mask = absent if absent is not None and pc.any(absent).as_py() else None
    if types.is_fixed_size_list(kind):
        found = pa.FixedSizeListArray.from_arrays(values, type=kind)  # to cast lists to it ends Arrow 25 by a signal
        if len(found) != len(ends) - 1 - (0 if mask is None else pc.sum(mask).as_py()):
            raise pa.ArrowInvalid(f"{len(values)} values are not lists of {kind.list_size}")
        return found if mask is None else _with_nulls(found, mask)
    offsets = pa.array(ends.astype(np.int32), mask=None if mask is None else np.append(np.asarray(mask), False))
    if types.is_map(kind):
        return pa.MapArray.from_arrays(offsets, values.field(0), values.field(1), type=kind)
    return pa.ListArray.from_arrays(offsets, values, type=kind)


def _element(kind: pa.DataType) -> pa.DataType:
    return pa.struct([kind.key_field, kind.item_field]) if types.is_map(kind) else kind.value_type


def _scalars(values: pa.Array, kind: pa.DataType) -> pa.Array:
    if types.is_null(kind):
        return pa.nulls(len(values))
    if types.is_decimal(kind) and types.is_integer(values.type):
        return from_scaled(values, kind)
    return values if values.type == kind else values.cast(kind)


def list_ends(lists: pa.Array) -> I64:
    """Return 0, and where the values of each list end in those of all; a null has none."""
    sizes, valid = pc.list_value_length(lists), valid_mask(lists)
    lengths = raw_values(sizes, np.int32 if types.is_int32(sizes.type) else np.int64).astype(np.int64)
    return ends_of(lengths if valid is None else np.where(valid, lengths, 0))


def _absent(present: pa.Array) -> pa.Array:
    return pc.fill_null(pc.equal(present, 0), True)


# Give the times of a column another unit, exactly, also those in lists, structs and maps.
#
#     timestamp[us]               timestamp[ns]
#     {t: 2020-01-01, n: 1}  ->   {t: 2020-01-01, n: 1}
#     {t: 1600-01-01, n: 2}       null, and a problem of row 1: beyond the int64 range in ns
#
# The files of one source may count times in different units, and each file is read in its own.


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


# Values of any Arrow type as JSON text.


def as_json(values: pa.Array) -> pa.Array:
    """Return each value as a JSON document; null stays null.

    Maps whose keys are text, each once, are objects; others are lists of pairs. Bytes are base64, and what JSON has no
    type for is text as Python writes it.
    """
    texts = [None if value is None else _text(_plain(value, values.type)) for value in values.to_pylist()]
    return pa.array(texts, pa.string())


def has_json(kind: pa.DataType) -> bool:
    """Return whether pyarrow gives values of a type to Python: of two kinds of intervals and odd decimals it does not.

    >>> has_json(pa.list_(pa.month_day_nano_interval()))
    True
    """
    kind = stored_type(kind)
    if str(kind) in ("month_interval", "day_time_interval"):  # types that pyarrow has no names for
        return False
    if not has_digits(kind):
        return False
    return all(has_json(kind.field(index).type) for index in range(kind.num_fields))


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_other)


def _other(value: Any) -> str:
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)


def _plain(value: Any, kind: pa.DataType) -> Any:
    if value is None:
        return None
    kind = stored_type(kind)
    if types.is_map(kind):
        pairs = [(_plain(key, kind.key_type), _plain(item, kind.item_type)) for key, item in value]
        named = dict(pairs) if is_string(kind.key_type) else {}
        return named if len(named) == len(pairs) and is_string(kind.key_type) else pairs
    if types.is_struct(kind):
        return {field.name: _plain(value[field.name], field.type) for field in kind}
    if is_any_list(kind):
        return [_plain(one, kind.value_type) for one in value]
    return value


# Refuse the columns that no features hold, all of them at once, with what to do.


def refuse_unsupported(columns: Iterable[pa.Field], name: str, leave_out: Callable[[Sequence[str]], str]) -> None:
    """Raise a `SchemaError` with the columns of the source `name` ("" if unknown) that no features hold.

    `leave_out` says how to leave columns out, given their names.
    """
    columns = list(columns)
    found = [(column, why) for column in columns if (why := unheld(column.type)) is not None]
    if not found:
        return
    where = f"{name}: " if name else ""
    fix = _fix([column for column, _ in found], leave_out if len(found) < len(columns) else None)
    if len(found) == 1:
        ((column, why),) = found
        shown = printable(str(column.type))
        raise SchemaError(f'{where}column "{printable(column.name)}": {shown} is not supported, {why}; {fix}')
    lines = "".join(f'  "{printable(c.name)}": {printable(str(c.type))}, {why}\n' for c, why in found)
    raise SchemaError(f"{where}{len(found)} columns are not supported:\n{lines}{fix}")


def _fix(found: Sequence[pa.Field], leave_out: Callable[[Sequence[str]], str] | None) -> str:
    """Return what to do with columns; `leave_out` is None where there are no others."""
    one = len(found) == 1
    them = "it" if one else "them"
    texts = [column.name for column in found if has_json(column.type)]
    ways = []
    if texts:
        of = them if len(texts) == len(found) else ", ".join(f'"{printable(name)}"' for name in texts)
        ways.append(f"keep {of} as JSON text: {Add(*(set_column(name, 'as', 'json') for name in texts))}")
    if leave_out is not None:
        ways.append(f"leave {them} out: {leave_out([column.name for column in found])}")
    return ("; or " if one else ", or ").join(ways) or f"convert {them} before"


def without_json(columns: Iterable[pa.Field], rules: Mapping[str, ColumnRule]) -> list[pa.Field]:
    kept = {name for name, rule in rules.items() if rule.as_ == "json"}
    return [column for column in columns if column.name not in kept or not has_json(column.type)]
