"""Propose keys of `schema.columns` for a column of text in which most cells are rejects.

    "12 %", "7 %", "n/a"    float        strip: "%", null_values: ["n/a"]
    "yes", "No"             bool         true_values: [yes], false_values: [No]
    "2024-01-31T10:00Z"     timestamp    timezone: UTC
    "red", "green"          float        type: string

Keys are found by trying: they read every value that is looked at, and where other cells were read before, these too.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

import pyarrow as pa

from ...transforms.format.batches.arrow_memory import binary_array
from ...transforms.format.schema.arrow_types import feature_of
from ...transforms.format.schema.column_types import DEFAULT_UNIT, named_type
from ...transforms.format.wording.hints import Add, set_column
from ...transforms.sources.text.cast import bool_words, means_null, prove_column
from ...transforms.sources.text.written import ways_to_read

_WRITTEN: Final = ("strip", "decimal", "thousands", "negative", "format")
_INTEGER, _FLOAT, _DATE, _TIME = pa.int64(), pa.float64(), pa.date32(), pa.timestamp(DEFAULT_UNIT)
_TYPES: Final = (_INTEGER, _FLOAT, _DATE, _TIME)
_PLAIN: Final = {_INTEGER: ("1",), _FLOAT: ("1", "1.5"), _DATE: ("2024-01-31",)}
"""Cells of a type as they are read without keys."""


def keys_that_read(
    column: str, expected: str, values: Sequence[str], given: Mapping[str, Any], *, in_append: bool, in_all: bool
) -> str:
    """Return the options that read the values of a column, in words; nothing where its messages say better what to do.

    `expected` is what its cells were expected to be, `given` are its keys. With `in_all` no cell of it was read.
    """
    declared = named_type(given.get("type") or {"float": "float64"}.get(expected, expected))
    if declared is None or not declared.text or any(given.get(key) not in (None, False, True) for key in _WRITTEN):
        return ""
    target = declared.arrow(given.get("unit") or DEFAULT_UNIT, given.get("timezone"))
    nulls = [value for value in values if means_null(value)]
    named = {"null_values": [*given.get("null_values", ()), *nulls]} if nulls else {}
    values = [value for value in values if value not in nulls]
    keys: dict[str, Any] | None = {}
    it = "it"
    if values:
        keys = _keys_of(column, target, values, given)
        if keys is None and len(usual := _usual(values)) < len(values):
            keys, it = _keys_of(column, target, usual, given), "most of it"
        if keys is None and not in_append:
            keys = _other_type(column, target, values, given, in_all=in_all)
            it = "it"
            if keys is None:  # in a column of text NA is a word
                named, keys = {}, {"type": "string"}
    if keys is None:
        return ""
    also = keys.pop("also", None)
    unclear = "" if also is None else f" (no day is above 12: they may also be {also})"
    options = Add(*(set_column(column, key, value) for key, value in (named | keys).items()))
    return f"to read {it}: {options}{unclear}"


def _keys_of(
    column: str, target: pa.DataType, values: Sequence[str], given: Mapping[str, Any]
) -> dict[str, Any] | None:
    """Return the keys that read values as the type of their column, None where none do; `also` is another format."""
    if pa.types.is_boolean(target):
        own = [*given.get("true_values", ()), *given.get("false_values", ())]
        words = bool_words(list(dict.fromkeys([*own, *values])))
        return None if words is None else {"true_values": words[0], "false_values": words[1]}
    if pa.types.is_timestamp(target):
        cells = binary_array([value.encode() for value in values])
        home = target.tz or "UTC"
        counted = ((target.tz, unit) for unit in ("s", "ms", "us"))
        for zone, unit in ((home, target.unit), (target.tz, "ns"), (home, "ns"), ("UTC", target.unit), *counted):
            if prove_column(cells, pa.timestamp(unit, zone)) is not None:
                keys = {} if given.get("type") else {"type": _name(target)}
                keys |= {"timezone": zone} if zone != target.tz else {}
                return keys | ({"unit": unit} if unit != target.unit else {})
    feature, _ = feature_of(pa.field(column, target))
    for others in (_PLAIN.get(target, ()), ()):  # the column may have cells that are read without keys
        ways = [*islice((way for way in ways_to_read([*values, *others], feature) if way), 2)]
        if ways:
            also = {"also": ways[1]["format"]} if len(ways) > 1 and "format" in ways[0] else {}
            return {**ways[0], **also}
    return None


def _usual(values: Sequence[str]) -> list[str]:
    """Return the values without those that look like no other, up to a third: a typo is no reason for text."""
    shapes = [re.sub(r"[0-9]+", "0", value) for value in values]
    counts = Counter(shapes)
    alone = [value for value, shape in zip(values, shapes, strict=True) if counts[shape] == 1]
    return [value for value in values if value not in alone] if 3 * len(alone) <= len(values) else [*values]


def _other_type(
    column: str, target: pa.DataType, values: Sequence[str], given: Mapping[str, Any], *, in_all: bool
) -> dict[str, Any] | None:
    """Return the keys that read values as another type, None where that is text."""
    cells = binary_array([value.encode() for value in values])
    for other in _wider(target, in_all=in_all):
        name = _name(other)
        if prove_column(cells, other) is not None:
            return {"type": name}
        is_near = (other == _FLOAT and pa.types.is_integer(target)) or (other == _TIME and target == _DATE)
        keys = _keys_of(column, other, values, given) if is_near else None
        if keys is not None:
            return keys | {"type": name}
    return None


def _name(target: pa.DataType) -> str:
    return feature_of(pa.field("", target))[0].type


def _wider(target: pa.DataType, *, in_all: bool) -> Iterator[pa.DataType]:
    wide = {_INTEGER: (_FLOAT,), _DATE: (_TIME,)}
    if in_all:
        yield from (one for one in _TYPES if one.id != target.id)
    elif pa.types.is_integer(target) and target != _INTEGER:
        yield from (_INTEGER, _FLOAT)
    else:
        yield from wide.get(target, ())
