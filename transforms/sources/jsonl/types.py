"""The types of JSON values: which one two values share, what pyarrow parses a column as, and how types are called.

null  ->  bool | int64 -> float64 | string | list of one type | struct of some members        and nothing else
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from itertools import groupby
from typing import Any, Final

import pyarrow as pa

from .strict import Integer, Number

_LISTS: Final = (pa.types.is_list, pa.types.is_large_list)


class MixedTypes(Exception):
    """Two values of one column have types that nothing holds together; `within` are the members that they are of."""

    def __init__(self, one: pa.DataType, other: pa.DataType, within: tuple[str, ...] = ()) -> None:
        super().__init__(f"{one} and {other}")
        self.types = one, other
        self.within = within

    def of(self, member: str) -> MixedTypes:
        return MixedTypes(*self.types, (member, *self.within))


def is_list(kind: pa.DataType) -> bool:
    return any(test(kind) for test in _LISTS)


def type_of(value: Any) -> pa.DataType:
    """Return the type of a value as `strict` gives it; an integer is one also where it is beyond int64."""
    if value is None:
        return pa.null()
    if isinstance(value, bool):
        return pa.bool_()
    if isinstance(value, Number):
        return pa.int64() if isinstance(value, Integer) else pa.float64()
    if isinstance(value, str):
        return pa.string()
    if isinstance(value, dict):
        return pa.struct([pa.field(name, _type_of_member(name, item)) for name, item in value.items()])
    return pa.list_(type_of_all(type_of(item) for item in value))


def _type_of_member(name: str, value: Any) -> pa.DataType:
    try:
        return type_of(value)
    except MixedTypes as error:
        raise error.of(name) from error


def shared_type(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    """Return the type that holds the values of two.

    >>> shared_type(pa.list_(pa.int64()), pa.list_(pa.float64()))
    ListType(list<item: double>)

    Raises:
        MixedTypes: there is none.
    """
    if one == other or pa.types.is_null(other):
        return one
    if pa.types.is_null(one):
        return other
    if {one, other} == {pa.int64(), pa.float64()}:
        return pa.float64()
    if is_list(one) and is_list(other):
        return pa.list_(shared_type(one.value_type, other.value_type))
    if pa.types.is_struct(one) and pa.types.is_struct(other):
        members = {field.name: field.type for field in one}
        for field in other:
            try:
                members[field.name] = shared_type(members.get(field.name, pa.null()), field.type)
            except MixedTypes as error:
                raise error.of(field.name) from error
        return pa.struct([pa.field(name, kind) for name, kind in members.items()])
    raise MixedTypes(one, other)


def type_of_all(kinds: Iterable[pa.DataType]) -> pa.DataType:
    """Return `shared_type` of several; each member of an object is looked at once."""
    different = [kind for kind, _ in groupby(kinds) if not pa.types.is_null(kind)]
    if len(different) > 1 and all(map(pa.types.is_struct, different)):
        members: dict[str, list[pa.DataType]] = {}
        for kind in different:
            for field in kind:
                members.setdefault(field.name, []).append(field.type)
        fields = []
        for name, found in members.items():
            try:
                fields.append(pa.field(name, type_of_all(found)))
            except MixedTypes as error:
                raise error.of(name) from error
        return pa.struct(fields)
    if len(different) > 1 and all(map(is_list, different)):
        return pa.list_(type_of_all([kind.value_type for kind in different]))
    return reduce(shared_type, different, pa.null())


def count_keys(kinds: Iterable[pa.DataType]) -> int:
    return sum(1 + count_keys(kind.field(i).type for i in range(kind.num_fields)) for kind in kinds)


def count_features(kind: pa.DataType) -> int:
    if is_list(kind):
        return count_features(kind.value_type)
    if pa.types.is_struct(kind):
        return sum(count_features(kind.field(i).type) for i in range(kind.num_fields))
    return 1


def fits(found: pa.DataType, wanted: pa.DataType) -> bool:
    try:
        both: pa.DataType = shared_type(wire_type(wanted), found)
    except MixedTypes:
        return False
    return bool(both == wire_type(wanted))


def as_found(kind: pa.DataType) -> pa.DataType:
    """Return the type of JSON for one that pyarrow inferred: it takes text that looks like a time for one."""
    if is_list(kind):
        return pa.list_(as_found(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, as_found(field.type)) for field in kind])
    known = (pa.types.is_null, pa.types.is_boolean, pa.types.is_int64, pa.types.is_float64)
    return kind if any(test(kind) for test in known) else pa.string()


def wire_type(kind: pa.DataType) -> pa.DataType:
    """Return the type as which values are parsed that become those of `kind`.

    Floats are parsed as float64, whatever their width; what JSON has no values of is text.
    """
    if is_list(kind):
        return pa.list_(wire_type(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, wire_type(field.type)) for field in kind])
    if pa.types.is_floating(kind):
        return pa.float64()
    return kind if pa.types.is_integer(kind) or pa.types.is_boolean(kind) else pa.string()


def noun(kind: pa.DataType) -> str:
    """Return how values of a type are called.

    >>> noun(pa.list_(pa.int64()))
    'a list of integers'
    """
    if is_list(kind) and pa.types.is_null(kind.value_type):
        return "a list without values"
    if is_list(kind):
        inner = noun(kind.value_type).removeprefix("an ").removeprefix("a ")
        plural = {"true or false": "bools", "text": "texts", "null": "nulls"}.get(inner, f"{inner}s")
        return f"a list of {plural}" if " of " not in inner else "a list of lists"
    if pa.types.is_struct(kind):
        return "an object"
    if pa.types.is_integer(kind):
        return "an integer"
    if pa.types.is_floating(kind):
        return "a number"
    if pa.types.is_boolean(kind):
        return "true or false"
    return "null" if pa.types.is_null(kind) else "text"
