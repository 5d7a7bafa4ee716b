"""Lists of any Arrow layout as flat values and offsets.

    list      offsets  0 2 2 5        values  a b c d e        sliced, so offsets need not begin at 0
    list view offsets  3 0 0, sizes 2 2 0                      in any order, overlapping
    fixed     every n values, also under nulls

become offsets that begin at 0 over exactly the values that are present.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import types

from ...errors import SchemaError
from ..batches.arrow_memory import I64, array_of, offsets_of, raw_values, valid_mask
from ..schema.arrow_types import is_list, meaning
from ..schema.column_types import is_string
from ..schema.schema import Feature
from ..wording.hints import set_column
from ..wording.printable import printable


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """The cells of a column: flat `values` of a plain type, `offsets` of lists, and which rows are `present`.

    Only the values of a scalar column may be null where that is no problem.
    """

    values: pa.Array
    offsets: I64 | None
    present: npt.NDArray[np.bool_] | None

    def row_of(self, position: int) -> int:
        if self.offsets is None:
            return position
        return int(np.searchsorted(self.offsets, position, "right")) - 1


def cells_of(array: pa.Array, feature: Feature) -> Cells:
    """Take the lists of an array apart. Raises `SchemaError` where its shape is not that of the feature."""
    array = plain_array(array)
    if types.is_null(array.type):
        absent = np.zeros(len(array), np.bool_)
        if feature.shape == ():
            return Cells(array, None, absent)
        return Cells(array.slice(0, 0), np.zeros(len(array) + 1, np.int64), absent)
    listed = is_list(array.type) or types.is_fixed_size_list(array.type)
    if listed != (feature.shape != ()):
        raise _shape_error(array.type, feature)
    if not listed:
        return Cells(array, None, valid_mask(array))
    cells = lists_of(array)
    if feature.shape != (-1,):
        _check_lengths(cells, array.type, feature)
    return cells


def plain_array(array: pa.Array) -> pa.Array:
    """Return the storage of an extension array, and the values of a dictionary array."""
    while isinstance(array, (pa.ExtensionArray, pa.DictionaryArray)):
        array = array.storage if isinstance(array, pa.ExtensionArray) else array.dictionary_decode()
    return array


def _shape_error(arrow: pa.DataType, feature: Feature) -> SchemaError:
    shape = "a scalar" if feature.shape == () else f"shape {list(feature.shape)}"
    return SchemaError(f'column "{printable(feature.name)}": the batch holds {arrow}, but the schema has {shape}')


def lists_of(array: pa.Array) -> Cells:
    """Take lists of any layout apart; those that are null have no values."""
    present = valid_mask(array)
    if types.is_fixed_size_list(array.type):
        size = array.type.list_size
        offsets = np.arange(len(array) + 1, dtype=np.int64) * size
        values = array.values.slice(array.offset * size, len(array) * size)
    elif types.is_list(array.type) or types.is_large_list(array.type):
        offsets = offsets_of(array, np.int32 if types.is_list(array.type) else np.int64)
        values = array.values.slice(offsets[0], offsets[-1] - offsets[0])
        offsets = offsets - offsets[0]
    else:
        return _list_views(array, present)
    if present is not None:
        lengths = np.diff(offsets)
        if bool(lengths[~present].any()):
            # What is under a null row is not a value: neither written nor checked.
            values = _selectable(values).take(array_of(np.flatnonzero(np.repeat(present, lengths))))
            offsets = _ends(np.where(present, lengths, 0))
    return Cells(plain_array(values), offsets, present)


def _selectable(values: pa.Array) -> pa.Array:
    """Return values of a type that Arrow can take and filter, which views are not."""
    if types.is_string_view(values.type):
        return values.cast(pa.large_string())
    if types.is_nested(values.type) and "list_view" in str(values.type):
        return _without_list_views(values)
    if types.is_nested(values.type) and "_view" in str(values.type):
        return values.cast(meaning(values.type))
    return values.cast(pa.large_binary()) if types.is_binary_view(values.type) else values


def cast_lists(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return an array as another type: list views too, and fields of structs by name, null where it lacks one.

    Arrow's own cast makes list views invalid, and takes fields by name from version 21 on.
    """
    if types.is_nested(array.type) and "list_view" in str(array.type):
        array = _without_list_views(array)
    if array.type != kind and "struct<" in str(kind):
        array = _by_name(array, kind)
    return array if array.type == kind else array.cast(kind)


def _by_name(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return nested values whose structs have the fields of those in another type, in their order."""
    own, mask = array.type, array.is_null()
    if types.is_struct(own) and types.is_struct(kind):
        found = {field.name: array.field(index) for index, field in enumerate(own)}
        children = [
            _by_name(found[field.name], field.type) if field.name in found else pa.nulls(len(array), field.type)
            for field in kind
        ]
        fields = [field.with_type(child.type) for field, child in zip(kind, children, strict=True)]
        return pa.StructArray.from_arrays(children, fields=fields, mask=mask)
    if types.is_map(own) and types.is_map(kind):
        held, wanted = (pa.list_(pa.struct([one.key_field, one.item_field])) for one in (own, kind))
        pairs = _by_name(array.cast(held), wanted)
        return pa.MapArray.from_arrays(pairs.offsets.cast(pa.int32()), *pairs.values.flatten(), mask=mask)
    if types.is_fixed_size_list(own) and types.is_fixed_size_list(kind):
        flat = array.values.slice(array.offset * own.list_size, len(array) * own.list_size)
        return pa.FixedSizeListArray.from_arrays(_by_name(flat, kind.value_type), own.list_size, mask=mask)
    if is_list(own) and is_list(kind):
        cells = lists_of(array)
        assert cells.offsets is not None
        values = _by_name(cells.values, kind.value_type)
        return pa.LargeListArray.from_arrays(array_of(cells.offsets), values, mask=mask)
    return array


def _without_list_views(array: pa.Array) -> pa.Array:
    """Return nested values whose list views, at any depth, are lists: Arrow's own cast forgets the last offset."""
    kind = array.type
    mask = array.is_null()
    if types.is_struct(kind):
        children = [_selectable(plain_array(child)) for child in array.flatten()]
        fields = [field.with_type(child.type) for field, child in zip(kind, children, strict=True)]
        return pa.StructArray.from_arrays(children, fields=fields, mask=mask)
    if types.is_fixed_size_list(kind):
        flat = array.values.slice(array.offset * kind.list_size, len(array) * kind.list_size)
        return pa.FixedSizeListArray.from_arrays(_selectable(plain_array(flat)), kind.list_size, mask=mask)
    if types.is_map(kind):
        fields = [kind.key_field, kind.item_field]
        pairs = pa.list_(pa.field("entries", pa.struct(fields), nullable=False))
        lists = _without_list_views(array.cast(pairs))
        return pa.MapArray.from_arrays(lists.offsets.cast(pa.int32()), *lists.values.flatten(), mask=mask)
    cells = lists_of(array)
    assert cells.offsets is not None
    return pa.LargeListArray.from_arrays(array_of(cells.offsets), _selectable(cells.values), mask=mask)


def _list_views(array: pa.Array, present: npt.NDArray[np.bool_] | None) -> Cells:
    width = np.int64 if types.is_large_list_view(array.type) else np.int32
    starts = raw_values(array, width).astype(np.int64)
    sizes = np.frombuffer(array.buffers()[2], width, array.offset + len(array))[array.offset :].astype(np.int64)
    if present is not None:
        sizes = np.where(present, sizes, 0)
    offsets = _ends(sizes)
    positions = np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], sizes)
    return Cells(plain_array(_selectable(array.values).take(array_of(positions))), offsets, present)


NULLS_IN_LISTS: Final = "is in a list; fill or drop nulls before"


def item_for_null(kind: pa.DataType) -> str | int | bool | None:
    """Return a value that may stand for null among values of a type; None where a config can give none."""
    if types.is_boolean(kind):
        return False
    if types.is_integer(kind) or types.is_floating(kind):
        return 0
    return "unknown" if is_string(kind) else "1970-01-01" if types.is_date(kind) or types.is_timestamp(kind) else None


def nulls_in_lists(column: str, kind: pa.DataType) -> str:
    """Return what is wrong with a null among the items of a column's lists, which are of a type, and the fix."""
    item = item_for_null(kind)
    return NULLS_IN_LISTS if item is None else f"is in a list; fill such nulls: {set_column(column, 'null_item', item)}"


def _ends(lengths: I64) -> I64:
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def _check_lengths(cells: Cells, arrow: pa.DataType, feature: Feature) -> None:
    assert cells.offsets is not None
    lengths = np.diff(cells.offsets)
    if cells.present is not None:
        lengths = lengths[cells.present]
    if bool((lengths != math.prod(feature.shape)).any()):
        raise _shape_error(arrow, feature)
