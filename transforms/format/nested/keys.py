"""The keys of nested columns, as TensorFlow Datasets writes them and `tf.io.RaggedFeature` reads them.

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
from collections.abc import Iterable
from typing import Final

import pyarrow as pa
from pyarrow import types

from ..schema.arrow_types import is_list, plain_type, why_unsupported

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
