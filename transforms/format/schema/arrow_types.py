"""Which feature an Arrow column becomes, and which Arrow type a feature reads back as.

`column_types` has the scalar types. A dictionary has the type of its values, an extension that of its storage. A column
of nulls is a string that is never present.

A list, large list or list view of these has shape (-1,), a fixed-size list (n,), a tensor its own shape. No one feature
holds anything else: `columns` makes several of it, or text.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
from pyarrow import types

from ...errors import SchemaError
from ..wording.hints import set_column
from ..wording.printable import printable
from .column_types import (
    DEFAULT_UNIT,
    TYPES,
    UNITS,
    ColumnType,
    Form,
    column_type,
    form_of,
    is_binary,
    is_string,
    like,
    named_type,
    natural_type,
)
from .schema import ColumnRule, Feature, Schema


def plain_type(arrow: pa.DataType) -> pa.DataType:
    """Return the type without its extension and dictionary: that of the values as they are stored."""
    while isinstance(arrow, pa.BaseExtensionType) or types.is_dictionary(arrow):
        arrow = arrow.storage_type if isinstance(arrow, pa.BaseExtensionType) else arrow.value_type
    return arrow


is_list: Final = like(*(make(pa.null()) for make in (pa.list_, pa.large_list, pa.list_view, pa.large_list_view)))
"""Whether values of a plain type are lists of any length."""


def type_words(kind: pa.DataType) -> str:
    """Return how a type is called on a screen: without its layout, which no record shows.

    >>> type_words(pa.large_list(pa.string_view())), type_words(pa.dictionary(pa.int8(), pa.large_string()))
    ('list<string>', 'dictionary of string')
    """
    if isinstance(kind, pa.FixedShapeTensorType):
        return f"tensor of {type_words(kind.value_type)}, shape {list(kind.shape)}"
    if isinstance(kind, pa.BaseExtensionType):
        return type_words(kind.storage_type)
    if types.is_dictionary(kind):
        return f"dictionary of {type_words(kind.value_type)}"
    if is_list(kind) or types.is_fixed_size_list(kind):
        size = f"[{kind.list_size}]" if types.is_fixed_size_list(kind) else ""
        return f"list<{type_words(kind.value_type)}>{size}"
    if types.is_struct(kind):
        return f"struct<{', '.join(f'{printable(one.name)}: {type_words(one.type)}' for one in kind)}>"
    if types.is_map(kind):
        return f"map<{type_words(kind.key_type)}, {type_words(kind.item_type)}>"
    if types.is_fixed_size_binary(kind):
        return str(kind)
    return "string" if is_string(kind) else "binary" if is_binary(kind) else str(kind)


@dataclass(frozen=True, slots=True)
class ColumnLayout:
    """An Arrow type taken apart: the scalar type of its values, and the shape that holds them."""

    scalar: pa.DataType
    shape: tuple[int, ...]

    @classmethod
    def of(cls, name: str, arrow: pa.DataType) -> ColumnLayout:
        """Raise `SchemaError` where the type has no feature."""
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
    return "no feature holds it" if natural_type(plain) is None else None


def schema_of(arrow: pa.Schema) -> Schema:
    """Return the features of columns, none of which is nested. Raises `SchemaError` where no feature holds a type."""
    return Schema(tuple(sorted((feature_of(field)[0] for field in arrow), key=lambda feature: feature.name)))


def feature_of(field: pa.Field, rule: ColumnRule | None = None) -> tuple[Feature, str]:
    """Return the feature that an Arrow column becomes, and the reason in words.

    `rule` is what the config declares of the column. It may widen or rename what the column is, never guess: `type` may
    turn a string into binary, binary into a string (then checked), an integer into its decimal text. Raises
    `SchemaError` where the column's type has no feature, or the rule does not fit it.
    """
    rule = rule or ColumnRule()
    name = field.name
    layout = ColumnLayout.of(name, field.type)
    natural = natural_type(layout.scalar)
    assert natural is not None  # ColumnLayout.of refuses it
    type_ = _declared_type(name, natural, rule)
    form = _declared_form(name, type_, rule)
    unit, timezone = _unit_and_timezone(name, type_, layout.scalar, rule)
    nullable = field.nullable if rule.nullable is None else rule.nullable
    if types.is_null(layout.scalar):
        nullable = True
    shape = layout.shape
    feature = Feature(name, form.kind, type_.name, shape, nullable, unit=unit, timezone=timezone, dtype=form.dtype)
    return feature, _reason(field.type, layout.scalar, form.note.format(unit=unit), rule)


def _declared_type(name: str, natural: ColumnType, rule: ColumnRule) -> ColumnType:
    if rule.type is None:
        return natural
    # Between integers and floats, `float` is what records hold.
    declared = TYPES.get(rule.type or "") or named_type("float32" if rule.type == "float" else rule.type)
    if declared is natural or (declared is not None and natural.name in declared.stays):
        return natural
    # Forms but the first keep values of the type itself alone.
    if declared is None or natural.name not in declared.reads or rule.as_ in [one.kind for one in declared.forms[1:]]:
        raise SchemaError(
            f'column "{printable(name)}": schema.columns declares type "{printable(rule.type)}", but it holds '
            f"{natural.name}; leave the type out, or convert the column before"
        )
    return declared


def _declared_form(name: str, type_: ColumnType, rule: ColumnRule) -> Form:
    form = type_.forms[0] if rule.as_ is None else type_.form(rule.as_)
    if form is None:
        raise SchemaError(
            f'column "{printable(name)}": "as: {printable(rule.as_)}" does not fit type {type_.name}; '
            f"the choices are {', '.join(form.kind for form in type_.forms)}"
        )
    return form


def default_unit(scalar: pa.DataType) -> str:
    """Return the unit in which times of a type are kept unless another is declared: ns stays ns.

    >>> default_unit(pa.time64("ns")), default_unit(pa.timestamp("s")), default_unit(pa.date32())
    ('ns', 'us', 'us')
    """
    return "ns" if getattr(scalar, "unit", None) == "ns" else DEFAULT_UNIT


def _unit_and_timezone(
    name: str, type_: ColumnType, scalar: pa.DataType, rule: ColumnRule
) -> tuple[str | None, str | None]:
    if not type_.unit:
        if rule.unit is not None or rule.timezone is not None:
            raise SchemaError(f'column "{printable(name)}": a unit or a timezone does not fit type {type_.name}')
        return None, None
    unit = rule.unit or default_unit(scalar)
    if unit not in UNITS:
        raise SchemaError(f'column "{printable(name)}": unit "{printable(unit)}" is none of {", ".join(UNITS)}')
    held = scalar.tz if types.is_timestamp(scalar) else None
    # A column without a timezone may be declared UTC, which moves no value; any other would have to.
    if rule.timezone not in (None, held) and not (type_.timezone and held is None and rule.timezone == "UTC"):
        utc = "" if held else f", or, if its times are UTC, declare that: {set_column(name, 'timezone', 'UTC')}"
        raise SchemaError(
            f'column "{printable(name)}": timezone "{printable(rule.timezone)}" is declared, but {scalar} is held; '
            f"leave the key out{utc}"
        )
    return unit, rule.timezone or held


def _reason(arrow: pa.DataType, scalar: pa.DataType, note: str, rule: ColumnRule) -> str:
    reason = type_words(arrow) if rule.type is None and rule.as_ is None else f"{type_words(arrow)}, as declared"
    return f"{reason}: no value, so never present" if types.is_null(scalar) else reason + note


WIDEST_FIXED_LIST: Final = 1 << 22
"""Values: Arrow keeps room for those of a null fixed-size list too, so a schema alone could take all memory."""


def arrow_type_of(feature: Feature) -> pa.DataType:
    """Return the Arrow type that a feature reads back as.

    Values have the type that they came from, but float64 that was narrowed is float32, and so says what it holds.
    A fixed shape is one flat fixed-size list, of more than 4 million values a plain list; fixed-size binary is binary.
    """
    arrow = form_of(feature).arrow or column_type(feature).arrow
    value = arrow(feature.unit or DEFAULT_UNIT, feature.timezone)
    if feature.shape == ():
        return value
    size = -1 if feature.shape == (-1,) else math.prod(feature.shape)
    return pa.list_(value, size if size <= WIDEST_FIXED_LIST else -1)


# The metadata of a table, as Hugging Face writes them, name classes of numbers, and sounds:
#
#     schema.metadata    huggingface: {"info": {"features": {"label": {"names": ["neg", "pos"], "_type": ...}}}}
#     label              0  1  1  -1       neg  pos  pos  no class
#     clip               {"_type": "Audio"}: {bytes, path} are no picture
#
# Source of the form: huggingface/datasets, `features.py`. A list of numbers has the classes of its items, a struct or
# a list of structs of objects those of its field of classes.


Classes: TypeAlias = Mapping[str, Sequence[str] | str]
"""The names of the classes of each column, by number; of a column of sounds or other media what they are.

A field of structs has the path of its names: `m/k`.
"""

CLASSES: Final = b"classes"
MEDIA: Final = b"media"
WITHIN: Final = b"within"
"""The keys of the metadata that say so here: of a schema of all of its columns, of a field of itself, or within it."""

OBJECT_CLASSES: Final = ("categories", "category", "label", "labels")
"""The fields of objects that hold their classes."""

_HUGGING_FACE: Final = b"huggingface"
_MEDIA: Final = ("Audio", "Video", "Pdf", "Nifti")
_LISTS: Final = ("List", "LargeList", "Sequence")


def named_classes(schema: pa.Schema) -> dict[str, list[str] | str]:
    try:
        features = json.loads((schema.metadata or {})[_HUGGING_FACE])["info"]["features"]
    except (KeyError, TypeError, ValueError, RecursionError):
        return {}
    return classes_of_features(features)


def classes_of_features(features: Any) -> dict[str, list[str] | str]:
    """Return what features say of each column, as Hugging Face's `datasets` writes them in JSON."""
    if not isinstance(features, dict):
        return {}
    found = {**dict(_within(features)), **{name: names_of(one) for name, one in features.items()}}
    return {name: names for name, names in found.items() if names}


def _within(fields: Any, above: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the fields of structs that have classes, by the paths of their names, with these."""
    for name, one in fields.items():
        path, inner = f"{above}{name}", _item(one)
        if isinstance(inner, dict) and inner.get("_type") is None:
            yield from _within(inner, f"{path}/")
        elif above and isinstance(names := names_of(inner), list):
            yield path, names


def _item(feature: Any) -> Any:
    if isinstance(feature, list) and len(feature) == 1:
        return _item(feature[0])
    is_list = isinstance(feature, dict) and feature.get("_type") in _LISTS
    return _item(feature.get("feature")) if is_list else feature


def with_classes(schema: pa.Schema, classes: Classes) -> pa.Schema:
    """Return the schema that says so of its columns, and nothing else beside."""
    held = {name: one for name, one in classes.items() if name in schema.names or _column_of(name) in schema.names}
    texts = {name: one for name, one in held.items() if isinstance(one, str)}
    named = {name: one for name, one in held.items() if name not in texts}
    metadata = {key: json.dumps(one).encode() for key, one in ((CLASSES, named), (MEDIA, texts)) if one}
    return schema.with_metadata(metadata or None)


def classes_in(schema: pa.Schema) -> dict[str, list[str] | str]:
    found = schema.metadata or {}
    return {name: one for key in (CLASSES, MEDIA) for name, one in json.loads(found.get(key, b"{}")).items()}


def named_fields(fields: Iterable[pa.Field], classes: Classes) -> tuple[pa.Field, ...]:
    """Return fields of which each says so of itself."""
    found = []
    for one in fields:
        said = classes.get(one.name)
        key = MEDIA if isinstance(said, str) else CLASSES
        inner = {path: names for path, names in classes.items() if path != one.name and _column_of(path) == one.name}
        more = ({} if said is None else {key: json.dumps(said).encode()}) | (
            {WITHIN: json.dumps(inner).encode()} if inner and types.is_nested(one.type) else {}
        )
        found.append(one.with_metadata({**(one.metadata or {}), **more}) if more else one)
    return tuple(found)


def _column_of(path: str) -> str:
    return path.partition("/")[0]


def classes_within(field: pa.Field) -> dict[str, list[str]]:
    """Return the classes of the fields within a field, by their paths below it, as it says."""
    found = json.loads((field.metadata or {}).get(WITHIN, b"{}"))
    return {path.partition("/")[2]: names for path, names in found.items()}


def with_classes_within(field: pa.Field, other: pa.Field) -> pa.Field:
    """Return the field that says of the fields within it what another one says of those within that."""
    found = (other.metadata or {}).get(WITHIN)
    return field.with_metadata({WITHIN: found}) if found else field


def with_own_classes(field: pa.Field, names: Sequence[str] | None) -> pa.Field:
    """Return the field that says it has these classes; where there are none, as it is."""
    return field.with_metadata({CLASSES: json.dumps(names).encode()}) if names else field


def classes_of(field: pa.Field) -> tuple[str, ...]:
    return tuple(json.loads((field.metadata or {}).get(CLASSES, b"[]")))


def media_of(field: pa.Field) -> str:
    """Return what a field says that it holds in place of pictures: Audio, Video; empty if it says nothing."""
    found: str = json.loads((field.metadata or {}).get(MEDIA, b'""'))
    return found


def media_lines(fields: Iterable[pa.Field]) -> tuple[str, ...]:
    """Return what to say of the columns of sounds and other media."""
    said = "whose bytes are kept as they are, and not looked at"
    return tuple(f"{printable(one.name)}: {kind}, {said}" for one in fields if (kind := media_of(one)))


def names_of(feature: Any) -> Any:
    """Return the names of the classes of a feature, what other media it is, None for all others."""
    if isinstance(feature, list):  # as older releases write lists
        return names_of(feature[0]) if len(feature) == 1 else None
    if not isinstance(feature, dict):
        return None
    kind = feature.get("_type")
    if kind == "ClassLabel":
        names = feature.get("names")
        right = isinstance(names, list) and all(isinstance(one, str) for one in names) and len({*names}) == len(names)
        return names if right else None
    if kind in _MEDIA:
        return str(kind)
    if kind in _LISTS:
        return names_of(feature.get("feature"))
    return next((names_of(feature[key]) for key in OBJECT_CLASSES if key in feature), None) if kind is None else None


# Look at Arrow types and arrays that come from outside: what they mean, and whether they are sound.


_WIDEST_INTEGER: Final = 64
_BARE = (
    (pa.types.is_string, pa.binary()), (pa.types.is_large_string, pa.large_binary()), (pa.types.is_date64, pa.int64()),
)  # fmt: skip
"""Types whose values the encoder looks at, which has a row to name: text that is not UTF-8, dates with times."""


_BEYOND_TYPE: Final = (
    ("does not fit in precision", "write the column as a decimal of more digits, or as text"),
    ("acceptable range", "write the column as a duration, or as text"),
)
"""What Arrow says of a decimal or a time of day that its type does not have, and the fix."""

PERIOD: Final = b"pandas.period"
"""What pandas calls its Periods in Arrow, and the key of the metadata that say so here."""

_VIEWED: Final = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}
"""Types whose values Arrow neither takes nor decodes, and those of the same values."""


def storage_type(kind: pa.DataType) -> pa.DataType:
    """Return the type that an extension type (uuid, json, ...) is stored as; a tensor stays one, for its shape.

    Runs become the values that they stand for. A dictionary of views, as polars writes categories, becomes one of plain
    text: Arrow cannot decode the former.
    """
    if isinstance(kind, pa.BaseExtensionType):
        return kind if isinstance(kind, pa.FixedShapeTensorType) else storage_type(kind.storage_type)
    if pa.types.is_run_end_encoded(kind):
        return _VIEWED.get(kind.value_type) or storage_type(kind.value_type)
    return _without_viewed_words(kind)


def _without_viewed_words(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(kind):
        plain = _VIEWED.get(kind.value_type)
        return kind if plain is None else pa.dictionary(kind.index_type, plain, kind.ordered)
    if pa.types.is_struct(kind):
        fields = [one.with_type(_without_viewed_words(one.type)) for one in kind]
        return kind if fields == list(kind) else pa.struct(fields)
    if is_list(kind) or pa.types.is_fixed_size_list(kind):
        value = _without_viewed_words(kind.value_type)
        return kind if value == kind.value_type else with_value_type(kind, value)
    return kind


def period_mark(column: pa.Field) -> dict[bytes, bytes] | None:
    """Return the metadata that say of a column that its numbers are Periods of pandas, by what pandas writes."""
    name = (column.metadata or {}).get(b"ARROW:extension:name", b"")
    if isinstance(column.type, pa.BaseExtensionType):  # pandas is loaded
        name = column.type.extension_name.encode()
    return {PERIOD: b""} if name == PERIOD else None


def storage_column(column: pa.Array) -> pa.Array:
    """Return an array as `storage_type` has it; most arrays as they are."""
    wanted = storage_type(column.type)
    while isinstance(column, pa.ExtensionArray) and column.type != wanted:
        column = column.storage
    if column.type == wanted:
        return column
    if isinstance(column, pa.RunEndEncodedArray):
        return storage_column(run_values(column))
    if isinstance(column, pa.DictionaryArray):
        values = column.dictionary.cast(wanted.value_type)
        return pa.DictionaryArray.from_arrays(column.indices, values, ordered=wanted.ordered)
    return pa.array(column.to_pylist(), wanted)  # within a list or a struct, which is rare


def storage_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch whose columns are as `storage_column` has them: the same one, where they are so."""
    columns = batch.columns  # pyarrow makes them again at each look
    stored = [storage_column(column) for column in columns]
    if all(new is old for new, old in zip(stored, columns, strict=True)):
        return batch
    return pa.RecordBatch.from_arrays(stored, names=batch.schema.names)


def run_values(column: pa.RunEndEncodedArray) -> pa.Array:
    """Return the values that runs stand for; Arrow's own decoding takes no nested ones."""
    places = np.arange(column.offset, column.offset + len(column))
    runs = np.searchsorted(np.asarray(column.run_ends), places, "right")
    plain = _VIEWED.get(column.values.type)
    return (column.values if plain is None else column.values.cast(plain)).take(pa.array(runs, pa.int64()))


def meaning(kind: pa.DataType) -> pa.DataType:
    """Return one type for all types that hold the same values in another layout.

    Two files of one table may well differ in them, by the version of what wrote them: `large_string`, a string view
    and a dictionary of strings become `string`, and every list of variable length becomes `list`.

    >>> meaning(pa.dictionary(pa.int8(), pa.large_string()))
    DataType(string)
    """
    if pa.types.is_dictionary(kind):
        return meaning(kind.value_type)
    if is_string(kind):
        return pa.string()
    if is_binary(kind):
        return pa.binary()
    if is_list(kind):
        return pa.list_(meaning(kind.value_type))
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(meaning(kind.value_type), kind.list_size)
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(meaning(field.type)) for field in kind])
    if pa.types.is_map(kind):
        fields = (kind.key_field, kind.item_field)
        return pa.map_(*(field.with_type(meaning(field.type)) for field in fields))
    return kind


def common_type(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """Return the type that holds all values of two types exactly, None if there is none: integers and floats widen.

    Of two units of time it is the finer one: far times are rejects there. The fields of structs are found by name, and
    are in the order of the first.

    >>> common_type(pa.int32(), pa.int64()), common_type(pa.uint8(), pa.int8()), common_type(pa.int64(), pa.float64())
    (DataType(int64), DataType(int16), None)
    """
    one, other = meaning(one), meaning(other)
    if one == other:
        return one
    if (is_list(one) and is_list(other)) or (_fixed_size(one) == _fixed_size(other) is not None):
        value = common_type(one.value_type, other.value_type)
        return None if value is None else with_value_type(one, value)
    if pa.types.is_nested(one) and pa.types.is_nested(other):
        return _type_of_fields(one, other, common_type, common_type)
    if pa.types.is_floating(one) and pa.types.is_floating(other):
        return max(one, other, key=lambda kind: kind.bit_width)
    if has_unit(one) and has_unit(other):
        finer = in_unit(one, max(one.unit, other.unit, key=UNITS.index))
        return finer if finer == in_unit(other, finer.unit) else None
    if not (pa.types.is_integer(one) and pa.types.is_integer(other)):
        return None
    narrow, wide = sorted((one, other), key=lambda kind: (kind.bit_width, pa.types.is_signed_integer(kind)))
    if pa.types.is_signed_integer(wide) and (narrow.bit_width < wide.bit_width or pa.types.is_signed_integer(narrow)):
        return wide
    if pa.types.is_unsigned_integer(narrow) and pa.types.is_unsigned_integer(wide):
        return wide
    bits = 2 * wide.bit_width  # one is signed, and the unsigned one is as wide or wider
    return pa.type_for_alias(f"int{bits}") if bits <= _WIDEST_INTEGER else None


def promoted_type(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """Return a type for the values of two types, where these may also be integers and floats, or of no type (null).

    It is the smallest float that holds both; but for int64 and uint64 it holds all integers of their type exactly.

    >>> promoted_type(pa.int16(), pa.float32()), promoted_type(pa.int64(), pa.float32())
    (DataType(float), DataType(double))
    """
    one, other = meaning(one), meaning(other)
    if pa.types.is_null(one) or pa.types.is_null(other):
        return other if pa.types.is_null(one) else one
    if (is_list(one) and is_list(other)) or (_fixed_size(one) == _fixed_size(other) is not None):
        value = _promoted_in_list(one.value_type, other.value_type)
        return None if value is None else with_value_type(one, value)
    if pa.types.is_nested(one) and pa.types.is_nested(other):
        return _type_of_fields(one, other, _promoted_within, _promoted_in_list, union=True)
    integers = [kind for kind in (one, other) if pa.types.is_integer(kind)]
    floats = [kind for kind in (one, other) if pa.types.is_floating(kind)]
    if not integers or not floats:
        return common_type(one, other)
    holds = {8: pa.float16(), 16: pa.float32()}.get(integers[0].bit_width, pa.float64())
    return max(holds, floats[0], key=lambda kind: kind.bit_width)


def without_nulls(kind: pa.DataType, wanted: pa.DataType) -> pa.DataType:
    """Return the type with those of `wanted` for its parts of no type (null): values of lists, fields of structs.

    >>> without_nulls(pa.struct({"a": pa.null()}), pa.struct({"a": pa.int8()})).field("a").type
    DataType(int8)
    """
    if pa.types.is_null(kind):
        return wanted
    if is_list(kind) and is_list(wanted):
        return with_value_type(kind, without_nulls(kind.value_type, wanted.value_type))
    if pa.types.is_struct(kind) and pa.types.is_struct(wanted):
        types = {field.name: field.type for field in wanted}
        return pa.struct([one.with_type(without_nulls(one.type, types.get(one.name, one.type))) for one in kind])
    return kind


def _promoted_within(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """Return the promoted type of values within others, where no integer is looked at: floats that hold all of them."""
    value = promoted_type(one, other)
    wide = any(kind in (pa.int64(), pa.uint64()) for kind in (one, other))
    return None if wide and value is not None and pa.types.is_floating(value) else value


def _promoted_in_list(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """Return the promoted type of values in lists: structs have the same fields there, as a list holds no null."""
    one, other = meaning(one), meaning(other)
    if pa.types.is_struct(one) and pa.types.is_struct(other):
        return _type_of_fields(one, other, _promoted_in_list, _promoted_in_list)
    return _promoted_within(one, other)


_Common: TypeAlias = Callable[[pa.DataType, pa.DataType], pa.DataType | None]


def _type_of_fields(
    one: pa.DataType, other: pa.DataType, of_fields: _Common, of_items: _Common, *, union: bool = False
) -> pa.DataType | None:
    """Return the struct or map that holds the values of two; with `union` a struct may lack fields of the other."""
    if pa.types.is_map(one) and pa.types.is_map(other):
        key, item = of_items(one.key_type, other.key_type), of_items(one.item_type, other.item_type)
        return None if key is None or item is None else pa.map_(key, one.item_field.with_type(item))
    if not (pa.types.is_struct(one) and pa.types.is_struct(other)):
        return None
    own, theirs = ({field.name: field for field in kind} for kind in (one, other))
    if len(own) < one.num_fields or len(theirs) < other.num_fields or not (union or own.keys() == theirs.keys()):
        return None
    fields = []
    for name in own | theirs:
        if name not in own or name not in theirs:
            fields.append((own | theirs)[name].with_nullable(True))
            continue
        kind = of_fields(own[name].type, theirs[name].type)
        if kind is None:
            return None
        fields.append(own[name].with_type(kind).with_nullable(own[name].nullable or theirs[name].nullable))
    return pa.struct(fields)


def _fixed_size(kind: pa.DataType) -> int | None:
    return kind.list_size if pa.types.is_fixed_size_list(kind) else None


def has_unit(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) or pa.types.is_time(kind) or pa.types.is_duration(kind))


def times_within(kind: pa.DataType) -> set[str]:
    """Return the units of the times among the values of a type, at any depth.

    >>> times_within(pa.struct({"a": pa.int8(), "b": pa.list_(pa.timestamp("ns"))}))
    {'ns'}
    """
    found: set[str] = set()

    def note(time: pa.DataType) -> str:
        found.add(time.unit)
        return str(time.unit)

    in_unit(kind, note)
    return found


def in_unit(kind: pa.DataType, unit: str | Callable[[pa.DataType], str]) -> pa.DataType:
    """Return a type whose times, at any depth, are in one unit, or each in that which a function returns.

    >>> in_unit(pa.list_(pa.timestamp("ns")), "us")
    ListType(list<item: timestamp[us]>)
    """
    if has_unit(kind):
        known = natural_type(kind)
        assert known is not None
        return known.arrow(unit if isinstance(unit, str) else unit(kind), getattr(kind, "tz", None))
    of = partial(in_unit, unit=unit)
    if isinstance(kind, pa.FixedShapeTensorType):
        value = of(kind.value_type)
        return kind if value == kind.value_type else pa.fixed_shape_tensor(value, kind.shape)
    if pa.types.is_dictionary(kind):
        value = of(kind.value_type)
        return kind if value == kind.value_type else value
    if is_list(kind) or pa.types.is_fixed_size_list(kind):
        value = of(kind.value_type)
        return kind if value == kind.value_type else with_value_type(kind, value)
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(of(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(*(field.with_type(of(field.type)) for field in (kind.key_field, kind.item_field)))
    return kind


def check_batch(batch: pa.RecordBatch) -> None:
    """Check every offset, length and index of a batch, so that nothing is read outside of its buffers.

    Text is looked at as bytes, and dates in milliseconds as integers: what they hold is the encoder's question, which
    has a row to name in its answer. Raises `pa.ArrowInvalid`, which names the column, also for a value that its own
    type does not have: a decimal of more digits, a time of 24 hours.
    """
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if isinstance(column, pa.ExtensionArray):
            column = column.storage
        bare = _without_text(column.type)
        try:
            (column if bare == column.type else column.view(bare)).validate(full=True)
        except pa.ArrowInvalid as error:
            raise pa.ArrowInvalid(f'column "{printable(name)}": {str(error).rpartition("Invalid: ")[2]}') from error


def fix_of_value(error: BaseException) -> str | None:
    """Return what to write in place of a value that its type does not have, None where it is something else."""
    return next((fix for words, fix in _BEYOND_TYPE if words in str(error)), None)


def check_names(kind: pa.DataType) -> None:
    """Raise `UnicodeDecodeError` for a name that is not UTF-8: pyarrow decodes it where it is first asked for."""
    if isinstance(kind, pa.BaseExtensionType):
        check_names(kind.storage_type)
    elif pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        check_names(kind.value_type)
    else:
        for field in (kind.field(index) for index in range(kind.num_fields)):
            _ = field.name
            check_names(field.type)


def _without_text(kind: pa.DataType) -> pa.DataType:
    """Return the type with the same buffers whose text is plain bytes, and whose dates are integers."""
    for test, bare in _BARE:
        if test(kind):
            return bare
    if pa.types.is_string_view(kind):
        return pa.binary_view()
    if pa.types.is_dictionary(kind):
        return pa.dictionary(kind.index_type, _without_text(kind.value_type), kind.ordered)
    if is_list(kind) or pa.types.is_fixed_size_list(kind):
        return with_value_type(kind, _without_text(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_without_text(field.type)) for field in kind])
    return kind


def with_value_type(kind: pa.DataType, value: pa.DataType) -> pa.DataType:
    """Return the list type of the same layout whose values have another type.

    >>> with_value_type(pa.large_list(pa.int8()), pa.int64())
    LargeListType(large_list<item: int64>)
    """
    field = kind.value_field.with_type(value)
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(field, kind.list_size)
    return next(make for test, make in _MAKE_LIST if test(kind))(field)


_MAKE_LIST: tuple[tuple[Callable[[pa.DataType], bool], Callable[[pa.Field], pa.DataType]], ...] = (
    (pa.types.is_list, pa.list_),
    (pa.types.is_large_list, pa.large_list),
    (pa.types.is_list_view, pa.list_view),
    (pa.types.is_large_list_view, pa.large_list_view),
)
