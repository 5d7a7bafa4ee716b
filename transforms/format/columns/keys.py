"""The keys of nested columns, as TFDS writes them and `tf.io.RaggedFeature` reads them; their types in the manifest.

    struct             NAME/child for each child, at any depth
    list of structs    NAME/child for each child, a list each
    map                a list of structs of `key` and `value`, in the order of the source
    lists of lists     NAME/ragged_flat_values, and NAME/ragged_row_lengths_0, _1, ... from the outermost inwards
    decimal            NAME, exact text (`as: float` or `scaled` on request)

A fixed-size list in a list stays flat, as in TFDS a sequence of boxes is. Where a column may be null, and its keys
alone cannot tell that from a list without values, `NAME/present` is beside them, int64, 0 or 1. That is so for
structs, lists of structs, maps, and lists of lists.

TFDS 4.9: `core/example_serializer.py`, `core/features/sequence_feature.py`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from typing import Any, Final

import pyarrow as pa
from pyarrow import types

from ..schema.arrow_types import is_list, plain_type, why_unsupported
from ..schema.column_types import TYPES, natural_type

FLAT_VALUES: Final = "ragged_flat_values"
ROW_LENGTHS: Final = "ragged_row_lengths_"
PRESENT: Final = "present"
MASK: Final = "mask"

DEEPEST: Final = 20
"""Levels of a nested type: a manifest states each in three levels of JSON, of which readers take 80."""

_MOST_DIGITS: Final = {32: 9, 64: 18, 128: 38, 256: 76}
"""Digits of a decimal, by the bits of its width."""

LARGEST_GRID: Final = 1 << 22
"""Values of a fixed shape: a larger one is a mistake, and a null of it would take all memory."""


def stored_type(kind: pa.DataType) -> pa.DataType:
    """Return a type without what only says how its values are laid out: extension, dictionary, run ends."""
    while True:
        plain = plain_type(kind)
        if not types.is_run_end_encoded(plain):
            return plain
        kind = plain.value_type


def is_any_list(kind: pa.DataType) -> bool:
    return is_list(kind) or types.is_fixed_size_list(kind)


def is_flat(kind: pa.DataType) -> bool:
    return why_unsupported(kind) is None and not types.is_run_end_encoded(plain_type(kind))


def grid_of(kind: pa.DataType) -> tuple[tuple[int, ...], pa.DataType]:
    """Return the sizes of fixed-size lists within each other, the outermost first, and the type of their values.

    >>> grid_of(pa.list_(pa.list_(pa.int8(), 3), 2))
    ((2, 3), DataType(int8))
    """
    sizes = []
    kind = stored_type(kind)
    while types.is_fixed_size_list(kind):
        sizes.append(kind.list_size)
        kind = stored_type(kind.value_type)
    return tuple(sizes), kind


def is_scalar(kind: pa.DataType) -> bool:
    return types.is_decimal(kind) or (not types.is_nested(kind) and is_flat(kind))


def unheld(kind: pa.DataType, depth: int = 0) -> str | None:
    """Return why no features hold a column of a type, None if some do; `depth` are the levels above it.

    >>> unheld(pa.map_(pa.string(), pa.list_(pa.decimal128(9, 2)))), unheld(pa.struct([]))
    (None, 'a struct without fields has no values')
    """
    if is_flat(kind) and not (depth and 0 in grid_of(kind)[0]):
        return None
    if isinstance(kind, pa.FixedShapeTensorType):
        return why_unsupported(kind)
    kind = stored_type(kind)
    if depth > DEEPEST:
        return f"it has more than {DEEPEST} levels"
    if types.is_struct(kind):
        if not kind.num_fields:
            return "a struct without fields has no values"
        return next((why for field in kind if (why := unheld(field.type, depth + 1))), None)
    if types.is_map(kind):
        return unheld(kind.key_type, depth + 1) or unheld(kind.item_type, depth + 1)
    if is_any_list(kind):
        sizes, _ = grid_of(kind)
        if 0 in sizes:
            return "lists of length 0 have no values"
        return "its shape is too large" if math.prod(sizes) > LARGEST_GRID else unheld(kind.value_type, depth + 1)
    if is_scalar(kind):
        return None if has_digits(kind) else "Arrow writes no digits of decimals of such a scale"
    return why_unsupported(kind) or "no feature holds it"


def has_digits(kind: pa.DataType) -> bool:
    """Return whether Arrow can write the digits of a stored type: not of decimals whose scale is beyond their width.

    >>> has_digits(pa.decimal128(9, 38)), has_digits(pa.decimal128(9, 39))
    (True, False)
    """
    return not types.is_decimal(kind) or abs(kind.scale) <= _MOST_DIGITS[kind.bit_width]


def has_decimals(kind: pa.DataType) -> bool:
    kind = stored_type(kind)
    if types.is_struct(kind):
        return any(has_decimals(field.type) for field in kind)
    if types.is_map(kind):
        return has_decimals(kind.key_type) or has_decimals(kind.item_type)
    return has_decimals(kind.value_type) if is_any_list(kind) else bool(types.is_decimal(kind))


def ranks_of(keys: Iterable[str]) -> dict[str, int]:
    """Return the columns whose values are lists of lists, by the keys of a schema, and how many levels they have.

    >>> ranks_of(["a", "m/ragged_flat_values", "m/ragged_row_lengths_0"])
    {'m': 2}
    """
    known = set(keys)
    found = {}
    for key in sorted(known):
        name, _, last = key.rpartition("/")
        if last == FLAT_VALUES and name:
            levels = 0
            while f"{name}/{ROW_LENGTHS}{levels}" in known:
                levels += 1
            if levels:
                found[name] = levels + 1
    return found


# Arrow types as the manifest states them: see `columns[].type` in docs/format.md.
#
# Layout is left out: what is read back has the same values, text as `string`, a dictionary as its values.


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
