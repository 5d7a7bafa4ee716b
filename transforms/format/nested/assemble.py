"""Nested columns and decimals from the features that hold them: what `flatten` took apart, put together again."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from ..batches.arrow_memory import I64
from .flatten import from_scaled
from .keys import FLAT_VALUES, PRESENT, ROW_LENGTHS, grid_of, is_any_list, is_scalar

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
    """Return values with nulls between them, where rows are absent."""
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
        ends = _ends(column) // width
        return _Leaf(_scalars(column.flatten(), kind), ends, (), column.is_null())
    column = columns[f"{name}/{FLAT_VALUES}"]
    levels = [columns[f"{name}/{ROW_LENGTHS}{level}"] for level in range(rank - 1)]
    lengths = tuple(np.asarray(level.flatten()).astype(np.int64) for level in levels)
    ends = _ends(levels[0])
    inside = ends
    for level, below in zip(lengths, [*levels[1:], column], strict=True):
        if len(level) and int(level.min()) < 0:
            raise Disagreement(name)
        inside = _summed(level)[inside]
        if not np.array_equal(inside * (width if below is column else 1), _ends(below)):
            raise Disagreement(name)
    return _Leaf(_scalars(column.flatten(), kind), ends, lengths, column.is_null())


def _elements(name: str, kind: pa.DataType, rank: int, leaves: Mapping[str, _Leaf]) -> pa.Array:
    """Return the elements of the lists of one level, one after the other over all rows."""
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
    return _as_kind(_summed(lengths), _elements(name, _element(kind), rank + 1, leaves), kind, None)


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


def _ends(lists: pa.Array) -> I64:
    return _summed(np.asarray(pc.fill_null(pc.list_value_length(lists), 0)).astype(np.int64))


def _summed(lengths: I64) -> I64:
    ends = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=ends[1:])
    return ends


def _absent(present: pa.Array) -> pa.Array:
    return pc.fill_null(pc.equal(present, 0), True)
