"""Turn any Arrow column into plain feature values, and find the cells that have no exact one.

    pa.Array ──storage, dictionary values──▶ list layout ──▶ flat values ──▶ FeatureColumn
               (of any supported type)        offsets          │             int64[], float32[] or views
                                              presence         └──▶ problems: rows that have no exact feature

Every value is exact or a problem; only float64 is narrowed, and reported.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import types

from ...errors import SchemaError
from ..batches.arrow_memory import (
    BUFFER_LIMIT,
    I64,
    Views,
    array_of,
    ends_of,
    inline_views,
    offsets_of,
    raw_values,
    reference_views,
    valid_mask,
    words_of,
)
from ..batches.rejects import CellError, CellProblem
from ..batches.rows import FeatureColumn, Narrowing
from ..schema.arrow_types import is_list, meaning
from ..schema.column_types import Form, column_type, form_of, is_string
from ..schema.schema import Feature, Schema
from ..wording.hints import Set, set_column
from ..wording.printable import VALUE_LIMIT, printable
from .numbers import BadValues, float_values, int64_values

DEFAULT_FIELD_BYTES: Final = 64 << 20


@dataclass(frozen=True, slots=True, eq=False)
class Conversion:
    """A column, what is wrong with it by row, and what its float64 values lost."""

    column: FeatureColumn
    problems: tuple[CellProblem, ...] = ()
    narrowing: Narrowing | None = None


def columns_of(batch: pa.RecordBatch, schema: Schema, names: Collection[str]) -> dict[str, FeatureColumn]:
    """Return some features of existing records, whose batch is of the schema, by name."""
    wanted = (feature for feature in schema if feature.name in names)
    return {feature.name: feature_column(batch[feature.name], feature).column for feature in wanted}


_SAME: Final[dict[tuple[int, str, str], npt.DTypeLike]] = {
    (pa.int64().id, "int64", "int64"): np.dtype(np.int64),
    (pa.float32().id, "float32", "float"): np.dtype(np.float32),
}
"""Arrow values that are those of a feature as they are, by types and kind."""


def feature_column(
    array: pa.Array,
    feature: Feature,
    *,
    excused: Collection[int] = (),
    field_bytes_limit: int = DEFAULT_FIELD_BYTES,
) -> Conversion:
    """Return the values of one feature from an Arrow array of any supported type, with any offset.

    `excused` are rows whose cell is known to be bad, and is null for that reason. There is at most one problem a row.
    Raises `SchemaError` where the array's type or shape is not that of the feature.
    """
    same = _SAME.get((array.type.id, feature.type, feature.kind))
    if same is not None and feature.shape == () and not array.null_count:
        return Conversion(FeatureColumn(feature.name, feature.kind, raw_values(array, same)))
    cells = cells_of(array, feature)
    form = form_of(feature)
    _check_type(cells.values.type, feature, form)
    bad: list[BadValues] = []
    narrowing = None
    buffers: tuple[pa.Buffer, ...] = ()
    values: npt.NDArray[Any]
    written = cells.values
    if form.write is not None and not types.is_null(written.type):
        written = form.write(written)
    if types.is_null(written.type):
        values = np.zeros(
            len(cells.values), {"int64": np.int64, "float": np.float32, "bytes": np.complex128}[feature.kind]
        )
    elif feature.kind == "int64":
        values, bad = int64_values(written, feature)
    elif feature.kind == "float":
        values, bad, narrowing = float_values(written, feature)
    else:
        values, buffers, bad = bytes_values(written, feature, field_bytes_limit)
    column = FeatureColumn(feature.name, feature.kind, values, buffers, cells.offsets, cells.present)
    problems = tuple(_problems(cells, feature, bad, excused))
    return Conversion(column, problems, narrowing)


def _check_type(scalar: pa.DataType, feature: Feature, form: Form) -> None:
    if not (form.takes(scalar) or types.is_null(scalar)):
        raise SchemaError(
            f'column "{printable(feature.name)}": the batch holds {scalar}, '
            f"but the schema has {feature.type} as {feature.kind} list"
        )


def _problems(cells: Cells, feature: Feature, bad: list[BadValues], excused: Collection[int]) -> Iterator[CellProblem]:
    """Yield at most one problem a row, of a list its first; none of `excused` rows, whose cell is known to be bad."""
    by_row: dict[int, CellError] = {}
    if cells.offsets is not None and cells.values.null_count:
        bad = [_null_values(cells.values, feature), *bad]
    for values in bad:
        for position in values.positions.tolist():
            row = cells.row_of(position)
            if row not in excused:
                by_row.setdefault(row, values.error(feature.name, position))
    if cells.present is not None and not feature.nullable:
        for row in np.flatnonzero(~cells.present).tolist():
            if row not in excused:
                by_row.setdefault(row, _not_null_error(feature))
    for row in sorted(by_row):
        yield CellProblem(row, by_row[row])


def _null_values(values: pa.Array, feature: Feature) -> BadValues:
    valid = valid_mask(values)
    positions = np.zeros(0, np.int64) if valid is None else np.flatnonzero(~valid)
    says = nulls_in_lists(feature.name, values.type)
    return BadValues(positions, "NULL_IN_LIST", feature.type, lambda _: "null", says)


def _not_null_error(feature: Feature) -> CellError:
    return CellError(
        feature.name,
        "DECLARED_NOT_NULL",
        "null",
        feature.type,
        f"null, but the schema says that it never is; declare it: {set_column(feature.name, 'nullable', 'true')}",
        "null, but the dataset's schema says that it never is: give it a value",
    )


# Lists of any Arrow layout as flat values and offsets.
#
#     list      offsets  0 2 2 5        values  a b c d e        sliced, so offsets need not begin at 0
#     list view offsets  3 0 0, sizes 2 2 0                      in any order, overlapping
#     fixed     every n values, also under nulls
#
# become offsets that begin at 0 over exactly the values that are present.


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
            offsets = ends_of(np.where(present, lengths, 0))
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
    offsets = ends_of(sizes)
    positions = np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], sizes)
    return Cells(plain_array(_selectable(array.values).take(array_of(positions))), offsets, present)


NULLS_IN_LISTS: Final = "is in a list; fill or drop nulls before"


def item_for_null(kind: pa.DataType) -> str | int | bool | None:
    """Return a value that may stand for null among values of a type, and is none; None where a config can give none."""
    if types.is_boolean(kind):
        return False
    if types.is_integer(kind):
        return -1 if types.is_signed_integer(kind) else 0
    if types.is_floating(kind):
        return "nan"
    return "unknown" if is_string(kind) else "1970-01-01" if types.is_date(kind) or types.is_timestamp(kind) else None


def nulls_in_lists(column: str, kind: pa.DataType) -> str:
    """Return what is wrong with a null among the items of a column's lists, which are of a type, and the fix."""
    item = item_for_null(kind)
    return NULLS_IN_LISTS if item is None else f"is in a list; fill such nulls: {set_column(column, 'null_item', item)}"


def _check_lengths(cells: Cells, arrow: pa.DataType, feature: Feature) -> None:
    assert cells.offsets is not None
    lengths = np.diff(cells.offsets)
    if cells.present is not None:
        lengths = lengths[cells.present]
    if bool((lengths != math.prod(feature.shape)).any()):
        raise _shape_error(arrow, feature)


# Strings and bytes as views into the column's own memory, checked.


Checked = tuple[Views, tuple[pa.Buffer, ...], list[BadValues]]


def bytes_values(values: pa.Array, feature: Feature, field_bytes_limit: int, *, reach: int = BUFFER_LIMIT) -> Checked:
    """Return views of strings, bytes or exact float64 values, and the buffers they refer to.

    What is under nulls is arbitrary. A buffer beyond the `reach` of views is sliced.
    """
    if types.is_float64(values.type):
        exact = raw_values(values, "<f8").view(np.uint32).reshape(-1, 2)
        return inline_views(exact, 8), (), []
    type_ = column_type(feature)
    limit = BUFFER_LIMIT if type_.own_limit else min(field_bytes_limit, BUFFER_LIMIT)
    bad = _too_large(values, limit)
    if bad:
        return np.zeros(len(values), np.complex128), (), bad  # its rows are dropped, and the others come again
    views, buffers = _views(values, reach)
    # A type says what is promised: bytes that the schema calls a string are checked as one.
    if type_.utf8:
        bad = _bad_utf8(values, feature)
    return views, buffers, bad


def _views(values: pa.Array, reach: int) -> tuple[Views, tuple[pa.Buffer, ...]]:
    if types.is_large_binary(values.type) or types.is_large_string(values.type):
        data = values.buffers()[2]
        if data is not None and data.size > reach:
            offsets = offsets_of(values, np.int64)
            span = data.slice(int(offsets[0]), int(offsets[-1] - offsets[0]))
            return reference_views(offsets[:-1] - offsets[0], np.diff(offsets), span, 0), (span,)
    array = values if types.is_binary_view(values.type) else values.cast(pa.binary_view())
    if not len(array):
        return np.zeros(0, np.complex128), ()
    _, views, *buffers = array.buffers()
    return np.frombuffer(views, np.complex128, len(array), array.offset * 16), tuple(buffers)


def value_lengths(values: pa.Array) -> I64:
    """Return the length in bytes of each value; under nulls it is arbitrary."""
    arrow = values.type
    if types.is_fixed_size_binary(arrow):
        return np.full(len(values), arrow.byte_width, np.int64)
    if types.is_binary_view(arrow) or types.is_string_view(arrow):
        lengths = raw_values(values, np.complex128)
        return words_of(lengths)[:, 0].astype(np.int64)
    wide = types.is_large_binary(arrow) or types.is_large_string(arrow)
    return np.diff(offsets_of(values, np.int64 if wide else np.int32))


def _too_large(values: pa.Array, limit: int) -> list[BadValues]:
    lengths = value_lengths(values)
    if not len(lengths) or int(lengths.max()) <= limit:
        return []
    valid = valid_mask(values)
    over = np.flatnonzero(lengths > limit if valid is None else (lengths > limit) & valid)
    if not len(over):
        return []
    raised = Set("limits.field_bytes", int(lengths[over].max()))
    says = f"is longer than {limit} bytes; raise the limit: {raised}"
    return [BadValues(over, "FIELD_TOO_LARGE", f"at most {limit} bytes", lambda i: f"{lengths[i]} bytes", says)]


def _bad_utf8(values: pa.Array, feature: Feature) -> list[BadValues]:
    """Find the values that are not UTF-8: first whether all are ASCII, then whether all are valid, then which not."""
    if _all_ascii(values):
        return []
    strings = values if is_string(values.type) else _as_strings(values)
    if strings is not None and _is_valid(strings):
        return []
    shown = _starts_of(values)
    bad = [row for row, value in enumerate(_bytes_of(values)) if value is not None and not _is_utf8(value)]
    if not bad:
        return []
    fix = f"declare it as bytes: {set_column(feature.name, 'type', 'bytes')}"
    return [BadValues(np.array(bad, np.int64), "BAD_UTF8", "UTF-8 text", shown, "is not UTF-8", fix)]


def _all_ascii(values: pa.Array) -> bool:
    """Return whether a column's memory is ASCII alone, where it is in one piece: a tenth of the cost of validation."""
    arrow = values.type
    if not (types.is_string(arrow) or types.is_large_string(arrow) or types.is_binary(arrow)):
        return False
    offsets = offsets_of(values, np.int64 if types.is_large_string(arrow) else np.int32)
    data = values.buffers()[2]
    if data is None or offsets[0] == offsets[-1]:
        return True
    text: npt.NDArray[np.uint8] = np.frombuffer(data, np.uint8)[offsets[0] : offsets[-1]]
    whole = len(text) & ~7
    words = text[:whole].view(np.uint64)
    return not (int(np.bitwise_or.reduce(words)) & 0x8080808080808080 or int(np.bitwise_or.reduce(text[whole:])) & 0x80)


def _as_strings(values: pa.Array) -> pa.Array | None:
    try:
        return values.cast(pa.string())
    except pa.ArrowInvalid:
        return None


def _is_valid(strings: pa.Array) -> bool:
    try:
        strings.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _bytes_of(values: pa.Array) -> list[bytes | None]:
    found: list[bytes | None] = values.cast(pa.large_binary()).to_pylist()
    return found


def _is_utf8(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def _starts_of(values: pa.Array) -> Callable[[int], str]:
    raw = values.cast(pa.large_binary())

    def show(position: int) -> str:
        # Cut before it is decoded: a cell may be megabytes long.
        return printable(raw[position].as_py()[: 4 * VALUE_LIMIT + 4])

    return show
