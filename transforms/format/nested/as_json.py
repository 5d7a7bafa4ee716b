"""Values of any Arrow type as JSON text."""

from __future__ import annotations

import base64
import json
from typing import Any

import pyarrow as pa
from pyarrow import types

from ..schema.column_types import is_string


def as_json(values: pa.Array) -> pa.Array:
    """Return each value as a JSON document; null stays null.

    Maps whose keys are text, each once, are objects; others are lists of pairs. Bytes are base64, and what JSON has no
    type for is text as Python writes it.
    """
    texts = [None if value is None else _text(_plain(value, values.type)) for value in values.to_pylist()]
    return pa.array(texts, pa.string())


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_other)


def _other(value: Any) -> str:
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)


def _plain(value: Any, kind: pa.DataType) -> Any:
    """Return a value whose maps are objects or lists of pairs."""
    if value is None:
        return None
    if types.is_map(kind):
        pairs = [(_plain(key, kind.key_type), _plain(item, kind.item_type)) for key, item in value]
        named = dict(pairs) if is_string(kind.key_type) else {}
        return named if len(named) == len(pairs) and is_string(kind.key_type) else pairs
    if types.is_struct(kind):
        return {field.name: _plain(value[field.name], field.type) for field in kind}
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return [_plain(one, kind.value_type) for one in value]
    return value
