"""Look at Arrow types and arrays that come from outside: what they mean, and whether they are sound."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa

from ..wording.printable import printable
from .arrow_types import is_list
from .column_types import UNITS, is_binary, is_string, natural_type

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
