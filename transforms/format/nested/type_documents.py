"""Arrow types as the manifest states them: see `columns[].type` in docs/format.md.

Layout is left out: what is read back has the same values, text as `string`, a dictionary as its values.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa
from pyarrow import types

from ..schema.arrow_types import is_list
from ..schema.column_types import TYPES, natural_type
from .keys import grid_of, is_scalar, stored_type

_DECIMAL: Final = re.compile(r"decimal\(([0-9]+), (-?[0-9]+)\)")
_WITH_UNIT: Final = re.compile(r"([a-z]+)\[(s|ms|us|ns)(?:, (.+))?\]")
_WIDEST_DECIMAL128: Final = 38


def type_document(kind: pa.DataType) -> Any:
    """Return a type as the manifest states it.

    >>> type_document(pa.list_(pa.field("item", pa.decimal128(9, 2), nullable=False)))
    {'list': {'name': 'item', 'type': 'decimal(9, 2)', 'nullable': False}}
    """
    kind = stored_type(kind)
    if is_list(kind) or types.is_fixed_size_list(kind):
        document: dict[str, Any] = {"list": _field_document(kind.value_field)}
        return document | ({"size": kind.list_size} if types.is_fixed_size_list(kind) else {})
    if types.is_struct(kind):
        return {"struct": [_field_document(field) for field in kind]}
    if types.is_map(kind):
        return {"map": [_field_document(kind.key_field), _field_document(kind.item_field)]}
    return _leaf_document(kind)


def _field_document(field: pa.Field) -> dict[str, Any]:
    return {"name": field.name, "type": type_document(field.type), "nullable": field.nullable}


def _leaf_document(kind: pa.DataType) -> str:
    if types.is_decimal(kind):
        return f"decimal({kind.precision}, {kind.scale})"
    if types.is_null(kind):
        return "null"
    known = natural_type(kind)
    assert known is not None, kind
    zone = f", {kind.tz}" if known.timezone and kind.tz else ""
    return f"{known.name}[{kind.unit}{zone}]" if known.unit else known.name


def with_floats(document: Any) -> Any:
    """Return a type whose decimals are kept as floats.

    >>> with_floats({"list": {"name": "item", "type": "decimal(9, 2)", "nullable": False}})
    {'list': {'name': 'item', 'type': 'float32', 'nullable': False}}
    """
    return _with_leaves(document, lambda leaf: "float32" if _DECIMAL.fullmatch(leaf) else leaf)


def as_stored(document: Any) -> Any:
    """Return a type with float32 for float64, which is what records hold of it.

    >>> as_stored({"list": {"name": "item", "type": "float64", "nullable": False}})
    {'list': {'name': 'item', 'type': 'float32', 'nullable': False}}
    """
    return _with_leaves(document, lambda leaf: "float32" if leaf == "float64" else leaf)


def _with_leaves(document: Any, change: Callable[[str], str]) -> Any:
    if isinstance(document, str):
        return change(document)
    if isinstance(document, dict):
        return {key: value if key == "name" else _with_leaves(value, change) for key, value in document.items()}
    return [_with_leaves(one, change) for one in document] if isinstance(document, list) else document


def inner_shapes(name: str, document: Any) -> dict[str, tuple[int, ...]]:
    """Return the leaves of a column that are lists of fixed-size lists, with the shape of those.

    >>> box = {"name": "item", "type": {"list": {"name": "item", "type": "float32", "nullable": True}, "size": 4}}
    >>> inner_shapes("box", {"list": box | {"nullable": True}})
    {'box': (4,)}
    """
    found: dict[str, tuple[int, ...]] = {}

    def visit(name: str, kind: pa.DataType, *, listed: bool) -> None:
        sizes, inner = grid_of(kind)
        if types.is_struct(kind) or types.is_map(kind):
            fields = kind if types.is_struct(kind) else (kind.key_field, kind.item_field)
            for field in fields:
                visit(f"{name}/{field.name}", field.type, listed=listed or types.is_map(kind))
        elif is_scalar(inner):
            found.update({name: sizes} if sizes and listed else {})
        else:
            visit(name, kind.value_type, listed=True)

    visit(name, type_of_document(document), listed=False)
    return found


def type_of_document(document: Any) -> pa.DataType:
    if isinstance(document, str):
        return _type_of_leaf(document)
    if "list" in document:
        return pa.list_(_field_of(document["list"]), document.get("size", -1))
    if "struct" in document:
        return pa.struct([_field_of(field) for field in document["struct"]])
    key, value = map(_field_of, document["map"])
    return pa.map_(key, value)


def _field_of(document: dict[str, Any]) -> pa.Field:
    return pa.field(document["name"], type_of_document(document["type"]), document["nullable"])


def _type_of_leaf(name: str) -> pa.DataType:
    if name == "null":
        return pa.null()
    decimal, timed = _DECIMAL.fullmatch(name), _WITH_UNIT.fullmatch(name)
    if decimal is not None:
        precision, scale = int(decimal[1]), int(decimal[2])
        return (pa.decimal128 if precision <= _WIDEST_DECIMAL128 else pa.decimal256)(precision, scale)
    word, unit, zone = timed.groups() if timed is not None else (name, "", None)
    return TYPES[word].arrow(unit, zone)
