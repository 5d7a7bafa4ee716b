"""Values of any Arrow type as JSON text."""

from __future__ import annotations

import base64
import json
from typing import Any

import pyarrow as pa
from pyarrow import types

from ..schema.column_types import is_string
from .keys import has_digits, is_any_list, stored_type


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
