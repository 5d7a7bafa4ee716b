"""Values of any type as JSON lines and CSV have them.

times, dates, decimals   text, as Arrow writes it: 2024-02-29 12:00:00.000001Z, 12.50
durations                the number of their units
bytes                    base64
classes                  their names
float32                  the shortest decimals that are read back as the same float32
maps                     an object, if the keys are text, each once; else pairs
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from ...errors import UsageError
from ...format.nested.keys import is_any_list, stored_type
from ...format.schema.column_types import is_binary, is_string
from ...format.wording.printable import printable

_OUT_OF_RANGE = "<value out of range"
"""What Arrow writes for a time that its calendar does not have."""


def plain_array(name: str, values: pa.Array) -> pa.Array:
    """Return a column with the types that text has: numbers, bools, text, and lists, structs and maps of these.

    A time out of the range of dates is a `UsageError`.
    """
    found = _shortest(values.cast(_plain_type(values.type)))
    if _has_times(values.type) and _out_of_range(found):
        raise UsageError(
            f'column "{printable(name)}" holds times that no date says, over 32,767 years from now; export to .parquet'
        )
    return _encoded(found) if is_binary(found.type) else found


def plain_list(name: str, values: pa.Array) -> list[Any]:
    """Return a column as values that JSON has; null is None. Raises what `plain_array` does."""
    found = plain_array(name, values)
    items = found.to_pylist()
    return [_plain(value, found.type) for value in items] if types.is_nested(found.type) else items


def _plain_type(kind: pa.DataType) -> pa.DataType:
    kind = stored_type(kind)
    if types.is_temporal(kind) or types.is_decimal(kind):
        return pa.int64() if types.is_duration(kind) else pa.string()
    return pa.float32() if types.is_float16(kind) else _with_inner(kind, _plain_type)


def _with_inner(kind: pa.DataType, change: Callable[[pa.DataType], pa.DataType]) -> pa.DataType:
    """Return a nested type with other types of its values; any list is a list of any length."""
    if types.is_struct(kind):
        return pa.struct([field.with_type(change(field.type)) for field in kind])
    if types.is_map(kind):
        key, item = kind.key_field, kind.item_field
        return pa.map_(key.with_type(change(key.type)), item.with_type(change(item.type)))
    if is_any_list(kind):
        return pa.list_(kind.value_field.with_type(change(kind.value_type)))
    return kind


def _shortest(values: pa.Array) -> pa.Array:
    """Return float32 as the float64 of fewest digits that round to them."""
    shortest = _with_floats_as(pa.float64(), values.type)
    return values if shortest == values.type else values.cast(_with_floats_as(pa.string(), values.type)).cast(shortest)


def _with_floats_as(leaf: pa.DataType, kind: pa.DataType) -> pa.DataType:
    return leaf if kind == pa.float32() else _with_inner(kind, partial(_with_floats_as, leaf))


def without_types(schema: pa.Schema) -> list[str]:
    """Return the columns that text does not keep: it has bytes, times, dates, decimals and durations as other types."""
    return [one.name for one in schema if _holds(one.type, is_binary, types.is_temporal, types.is_decimal)]


def _has_times(kind: pa.DataType) -> bool:
    return _holds(kind, lambda one: types.is_temporal(one) and not types.is_duration(one))


def _holds(kind: pa.DataType, *tests: Callable[[pa.DataType], bool]) -> bool:
    """Return whether a type, or one within it, passes a test."""
    kind = stored_type(kind)
    children = (kind.field(index).type for index in range(kind.num_fields))
    return any(test(kind) for test in tests) or any(_holds(child, *tests) for child in children)


def _out_of_range(values: pa.Array) -> bool:
    if is_string(values.type):
        return bool(pc.any(pc.starts_with(values, _OUT_OF_RANGE)).as_py())
    if types.is_struct(values.type):
        return any(_out_of_range(one) for one in values.flatten())
    if types.is_map(values.type):
        return _out_of_range(values.keys) or _out_of_range(values.items)
    return types.is_list(values.type) and _out_of_range(values.flatten())


def _encoded(values: pa.Array) -> pa.Array:
    texts = [None if value is None else base64.b64encode(value).decode() for value in values.to_pylist()]
    return pa.array(texts, pa.string())


def _plain(value: Any, kind: pa.DataType) -> Any:
    if value is None:
        return None
    if is_binary(kind):
        return base64.b64encode(value).decode()
    if types.is_map(kind):
        pairs = [[_plain(key, kind.key_type), _plain(item, kind.item_type)] for key, item in value]
        if not is_string(kind.key_type):
            return pairs
        named = {str(key): item for key, item in pairs}
        return named if len(named) == len(pairs) else pairs
    if types.is_struct(kind):
        return {field.name: _plain(value[field.name], field.type) for field in kind}
    if types.is_list(kind) and (types.is_nested(kind.value_type) or is_binary(kind.value_type)):
        return [_plain(one, kind.value_type) for one in value]
    return value
