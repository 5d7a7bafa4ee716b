"""Which feature an Arrow column becomes, and which Arrow type a feature reads back as.

    Arrow                                       type            kind
    bool, int8 .. uint64                        the same        int64
    float16, float32, float64                   the same        float    (float64 is narrowed; `as: bytes`: bytes)
    string, large_string, string_view           string          bytes
    binary, large_, fixed-size, binary_view     binary          bytes
    date32, date64                              date            int64    days since 1970-01-01
    time32, time64, timestamp, duration         the same name   int64    in `unit`: us, unless declared
    null                                        string          bytes    never present
    dictionary, extension                       those of its values, of its storage

A list, large list or list view of these has shape (-1,), a fixed-size list (n,), a tensor its own shape. Nothing else
has a feature yet: decimals, maps, structs, unions, intervals and lists of lists are errors that name the column.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyarrow import types

from ...errors import SchemaError
from ..wording.printable import printable
from .schema import ColumnRule, Feature, Kind

UNITS: Final = ("s", "ms", "us", "ns")
DEFAULT_UNIT: Final = "us"

INTEGERS: Final = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS: Final = ("float16", "float32", "float64")
_ALIASES: Final = {"bytes": "binary", "int": "int64", "float": "float64", "double": "float64", "text": "string"}
_ARROW_NAMES: Final = {"halffloat": "float16", "float": "float32", "double": "float64"}
_STORED: Final = {
    "bool": pa.bool_(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "label": pa.int64(),
    "image": pa.binary(),
    "array_shape": pa.int64(),
    "array_data": pa.binary(),
    "float16": pa.float16(),
    "float32": pa.float32(),
}


def plain_type(arrow: pa.DataType) -> pa.DataType:
    """Return the type without its extension and dictionary: that of the values as they are stored."""
    while isinstance(arrow, pa.BaseExtensionType) or types.is_dictionary(arrow):
        arrow = arrow.storage_type if isinstance(arrow, pa.BaseExtensionType) else arrow.value_type
    return arrow


def is_list(arrow: pa.DataType) -> bool:
    """Return whether values of this plain type are lists of any length."""
    return bool(
        types.is_list(arrow)
        or types.is_large_list(arrow)
        or types.is_list_view(arrow)
        or types.is_large_list_view(arrow)
    )


def is_string(arrow: pa.DataType) -> bool:
    """Return whether this is one of Arrow's three string types."""
    return bool(types.is_string(arrow) or types.is_large_string(arrow) or types.is_string_view(arrow))


def is_binary(arrow: pa.DataType) -> bool:
    """Return whether this is one of Arrow's four binary types."""
    return bool(
        types.is_binary(arrow)
        or types.is_large_binary(arrow)
        or types.is_binary_view(arrow)
        or types.is_fixed_size_binary(arrow)
    )


def scalar_type_name(arrow: pa.DataType) -> str | None:
    """Return the `Feature.type` of plain scalars of this type; None if they have none."""
    if types.is_boolean(arrow):
        return "bool"
    if types.is_integer(arrow) or types.is_floating(arrow):
        return _ARROW_NAMES.get(str(arrow), str(arrow))
    if is_string(arrow) or types.is_null(arrow):
        return "string"
    if is_binary(arrow):
        return "binary"
    for test, name in (
        (types.is_date, "date"),
        (types.is_time, "time"),
        (types.is_timestamp, "timestamp"),
        (types.is_duration, "duration"),
    ):
        if test(arrow):
            return name
    return None


@dataclass(frozen=True, slots=True)
class ColumnLayout:
    """An Arrow type taken apart: the scalar type of its values, and the shape that holds them."""

    scalar: pa.DataType
    shape: tuple[int, ...]

    @classmethod
    def of(cls, name: str, arrow: pa.DataType) -> ColumnLayout:
        """Take the type of a column apart.

        Raises:
            SchemaError: the type has no feature.
        """
        why = why_unsupported(arrow)
        if why is not None:
            raise SchemaError(
                f'column "{printable(name)}": {arrow} is not supported, {why}; '
                "convert it before, or leave it out: input.exclude_columns"
            )
        if arrow.__class__ is pa.FixedShapeTensorType:
            return cls(plain_type(arrow.value_type), tuple(arrow.shape))
        plain = plain_type(arrow)
        if types.is_fixed_size_list(plain):
            return cls(plain_type(plain.value_type), (plain.list_size,))
        return cls(plain_type(plain.value_type), (-1,)) if is_list(plain) else cls(plain, ())


def why_unsupported(arrow: pa.DataType) -> str | None:
    """Return why no feature holds values of an Arrow type, None if one does.

    >>> why_unsupported(pa.list_(pa.int8())), why_unsupported(pa.map_(pa.string(), pa.int8()))
    (None, 'no feature holds it')
    """
    if arrow.__class__ is pa.FixedShapeTensorType:
        permuted = arrow.permutation is not None and list(arrow.permutation) != sorted(arrow.permutation)
        return "its dimensions are permuted" if permuted else None
    plain = plain_type(arrow)
    if is_list(plain) or types.is_fixed_size_list(plain):
        plain = plain_type(plain.value_type)
    return "no feature holds it" if scalar_type_name(plain) is None else None


def refuse_unsupported(columns: Iterable[pa.Field], name: str, leave_out: Callable[[Sequence[str]], str]) -> None:
    """Refuse the columns of a source that no feature holds, all at once.

    `leave_out` says how to leave columns out, given their names.

    Raises:
        SchemaError: there are any.
    """
    columns = list(columns)
    found = [(column, why) for column in columns if (why := why_unsupported(column.type)) is not None]
    if not found:
        return
    gone = [column.name for column, _ in found]
    others = len(gone) < len(columns)
    if len(found) == 1:
        ((column, why),) = found
        fix = f"convert it before{f', or leave it out: {leave_out(gone)}' if others else ''}"
        raise SchemaError(f'{name}: column "{printable(column.name)}": {column.type} is not supported, {why}; {fix}')
    lines = "".join(f'  "{printable(column.name)}": {column.type}, {why}\n' for column, why in found)
    fix = f"convert them before{f', or leave them out: {leave_out(gone)}' if others else ''}"
    raise SchemaError(f"{name}: {len(found)} columns are not supported:\n{lines}{fix}")


def feature_of(field: pa.Field, rule: ColumnRule | None = None) -> tuple[Feature, str]:
    """Return the feature that an Arrow column becomes, and the reason in words.

    `rule` is what the config declares of the column. It may widen or rename what the column is, never guess: `type`
    may turn a string into binary, binary into a string (then checked), an integer into its decimal text.

    Raises:
        SchemaError: the column's type has no feature, or the rule does not fit it.
    """
    rule = rule or ColumnRule()
    name = field.name
    layout = ColumnLayout.of(name, field.type)
    natural = scalar_type_name(layout.scalar)
    assert natural is not None  # ColumnLayout.of refuses it
    type_ = _declared_type(name, natural, rule)
    kind, dtype = _kind_and_dtype(name, type_, rule)
    unit, timezone = _unit_and_timezone(name, type_, layout.scalar, rule)
    nullable = field.nullable if rule.nullable is None else rule.nullable
    if types.is_null(layout.scalar):
        nullable = True
    feature = Feature(name, kind, type_, layout.shape, nullable, unit=unit, timezone=timezone, dtype=dtype)
    return feature, _reason(field.type, layout.scalar, feature, rule)


def _declared_type(name: str, natural: str, rule: ColumnRule) -> str:
    if rule.type is None:
        return natural
    declared = _ALIASES.get(rule.type, rule.type)
    if natural in FLOATS and declared in FLOATS[min(FLOATS.index(natural), 1) :]:
        return natural  # records hold float32 in any case
    if natural in (*INTEGERS, "bool") and declared in ("float32", "float64") and rule.as_ != "bytes":
        return "float32" if rule.type == "float" else declared
    fits = (
        declared == natural
        or (natural in INTEGERS and (declared == "string" or _holds(declared, natural)))
        or (natural == "bool" and declared in INTEGERS)
        or {natural, declared} == {"string", "binary"}
    )
    if not fits:
        raise SchemaError(
            f'column "{printable(name)}": schema.columns declares type "{printable(rule.type)}", but it holds '
            f"{natural}; leave the type out, or convert the column before"
        )
    return declared


def _holds(wide: str, narrow: str) -> bool:
    """Return whether one integer type holds all values of another one."""
    if wide not in INTEGERS:
        return False
    bits, needed = (int(name.removeprefix("u").removeprefix("int")) for name in (wide, narrow))
    if wide[0] == narrow[0]:
        return bits >= needed
    return wide[0] == "i" and bits > needed


def _kind_and_dtype(name: str, type_: str, rule: ColumnRule) -> tuple[Kind, str | None]:
    if rule.as_ is not None and not (type_ == "float64" and rule.as_ == "bytes") and rule.as_ != _default_kind(type_):
        raise SchemaError(
            f'column "{printable(name)}": "as: {printable(rule.as_)}" does not fit type {type_}; '
            f"the choices are {'float, bytes' if type_ == 'float64' else _default_kind(type_)}"
        )
    if type_ == "float64" and rule.as_ == "bytes":
        return "bytes", "<f8"
    return _default_kind(type_), None


def _default_kind(type_: str) -> Kind:
    if type_ in FLOATS:
        return "float"
    return "bytes" if type_ in ("string", "binary", "image", "array_data") else "int64"


def _unit_and_timezone(name: str, type_: str, scalar: pa.DataType, rule: ColumnRule) -> tuple[str | None, str | None]:
    if type_ not in ("time", "timestamp", "duration"):
        if rule.unit is not None or rule.timezone is not None:
            raise SchemaError(f'column "{printable(name)}": a unit or a timezone does not fit type {type_}')
        return None, None
    unit = rule.unit or DEFAULT_UNIT
    if unit not in UNITS:
        raise SchemaError(f'column "{printable(name)}": unit "{printable(unit)}" is none of {", ".join(UNITS)}')
    held = scalar.tz if type_ == "timestamp" else None
    # A column without a timezone may be declared UTC, which moves no value; any other would have to.
    if rule.timezone not in (None, held) and not (type_ == "timestamp" and held is None and rule.timezone == "UTC"):
        raise SchemaError(
            f'column "{printable(name)}": timezone "{printable(rule.timezone)}" is declared, but {scalar} is held'
        )
    return unit, rule.timezone or held


def _reason(arrow: pa.DataType, scalar: pa.DataType, feature: Feature, rule: ColumnRule) -> str:
    reason = str(arrow) if rule.type is None and rule.as_ is None else f"{arrow}, as declared"
    if types.is_null(scalar):
        return f"{reason}: no value, so never present"
    if feature.type == "float64" and feature.kind == "float":
        return f"{reason}, narrowed to float32 (as: bytes keeps it exact)"
    if feature.dtype is not None:
        return f"{reason}, kept exact as bytes of {feature.dtype}"
    if feature.unit is not None:
        return f"{reason} in {feature.unit}"
    if feature.type == "date":
        return f"{reason} in days"
    return reason


WIDEST_FIXED_LIST: Final = 1 << 22
"""Values: Arrow keeps room for those of a null fixed-size list too, so a schema alone could take all memory."""


def arrow_type_of(feature: Feature) -> pa.DataType:
    """Return the Arrow type that a feature reads back as.

    Values have the type that they came from, but float64 that was narrowed is float32, and so says what it holds.
    A fixed shape is one flat fixed-size list, of more than 4 million values a plain list; fixed-size binary is binary.
    """
    value = _scalar_type_of(feature)
    if feature.shape == ():
        return value
    size = -1 if feature.shape == (-1,) else math.prod(feature.shape)
    return pa.list_(value, size if size <= WIDEST_FIXED_LIST else -1)


def _scalar_type_of(feature: Feature) -> pa.DataType:
    unit = feature.unit or DEFAULT_UNIT
    if feature.type == "float64":
        return pa.float64() if feature.kind == "bytes" else pa.float32()
    if feature.type in INTEGERS:
        return pa.type_for_alias(feature.type)
    if feature.type == "time":
        return pa.time32(unit) if unit in ("s", "ms") else pa.time64(unit)
    if feature.type == "timestamp":
        return pa.timestamp(unit, feature.timezone)
    if feature.type == "duration":
        return pa.duration(unit)
    if feature.type not in _STORED:
        raise SchemaError(f"feature {json.dumps(feature.name)}: type {json.dumps(feature.type)} is unknown")
    return _STORED[feature.type]
