"""Parse a line of JSON strictly, keep numbers as they are written, and find the type that values share.

pyarrow parses most lines. What it cannot parse, or what may lose something on the way, is parsed here: every number
keeps its text, every value its place in the line, and what is wrong is said with its place. Two values share a type:

    null  ->  bool | int64 -> float64 | string | list of one type | struct of some members        and nothing else
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import groupby
from json import decoder
from typing import Any, Final, TypeAlias, cast

import numpy as np
import pyarrow as pa

from ...format.wording.printable import printable

MOST_LEVELS: Final = 64
"""Arrow's files hold values that are nested so deeply; its parser dies where they are nested much deeper."""

BLANKS: Final = b" \t\r"
_BLANK: Final = frozenset(" \t\n\r")
_STRING: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_SHOWN: Final = 400


Words: TypeAlias = Mapping[str, Sequence[str]]
"""The words that are null, by column."""


class Number(str):
    """A number, as it is written; NaN and Infinity too."""

    __slots__ = ()


class Integer(Number):
    """A number without a fraction or an exponent."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Value:
    """A value of a line: numbers are `Number`s, objects dicts, arrays lists; `text` is how it is written."""

    value: Any
    text: str


class LineError(Exception):
    """A line is no record: the code of the reject, and what is wrong with it."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text


def _no_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise _twice(name)
            seen.add(name)
    return found


def _twice(name: str) -> LineError:
    return LineError("BAD_WIDTH", f'the key "{printable(name)}" comes twice: one value would be lost; remove one')


def _scanner(pairs: Callable[[list[tuple[str, Any]]], Any] | None) -> Callable[[str, int], tuple[Any, int]]:
    strict = json.JSONDecoder(
        parse_int=Integer, parse_float=Number, parse_constant=Number, object_pairs_hook=pairs, strict=True
    )
    return cast(Callable[[str, int], tuple[Any, int]], cast(Any, strict).scan_once)


_scan_string: Final[Callable[[str, int, bool], tuple[str, int]]] = cast(Any, decoder).scanstring
_scan_kept: Final = _scanner(_no_twins)
_scan_ignored: Final = _scanner(None)


def values_of_line(line: bytes) -> dict[str, Any]:
    """Return the values of the object in a line, as `parse_line` has them, in a third of its time."""
    if line.isascii() and b"\\" not in line:  # keys need no look of their own
        text = _decoded(line)
        with contextlib.suppress(ValueError, StopIteration):  # `parse_line` says what is wrong, and where
            values, end = _scan_kept(text, _skip(text, 0))
            if isinstance(values, dict) and _skip(text, end) == len(text):
                return values
    return {name: member.value for name, member in parse_line(line, lambda _: False).items()}


def without_nulls(members: dict[str, Any], nulls: Words) -> dict[str, Any]:
    """Return members of which those are None whose text is a word for null: a number is none."""
    for name in nulls.keys() & members.keys() if nulls else ():
        if isinstance(members[name], str) and not isinstance(members[name], Number) and members[name] in nulls[name]:
            members[name] = None
    return members


def _decoded(line: bytes) -> str:
    try:
        text = line.decode()
    except UnicodeDecodeError as error:
        raise LineError("BAD_UTF8", f"not UTF-8 at byte {error.start + 1} of the line; fix the file") from error
    if line.count(b"[") + line.count(b"{") > MOST_LEVELS and nested_levels(line) > MOST_LEVELS:
        raise LineError("UNSUPPORTED", f"values are nested more than {MOST_LEVELS} levels deep; flatten them before")
    return text


def parse_line(line: bytes, ignores: Callable[[str], bool]) -> dict[str, Value]:
    """Return the members without those ignored. Raises `LineError`: not one JSON object, or a key comes twice."""
    text = _decoded(line)
    try:
        return _members(text, ignores)
    except json.JSONDecodeError as error:
        raise _not_json(text, error.pos, error.msg[0].lower() + error.msg[1:]) from error
    except StopIteration as stop:
        raise _not_json(text, stop.value, "a value is missing or is none of JSON's") from stop


def _members(text: str, ignores: Callable[[str], bool]) -> dict[str, Value]:
    at = _skip(text, 0)
    if text[at : at + 1] != "{":
        raise _no_object(text, at)
    members: dict[str, Value] = {}
    at = _skip(text, at + 1)
    if text[at : at + 1] == "}":
        return _ended(text, at, members)
    while True:
        if text[at : at + 1] != '"':
            raise _not_json(text, at, "a key in double quotes is missing")
        name, at = _scan_string(text, at + 1, True)
        at = _skip(text, at)
        if text[at : at + 1] != ":":
            raise _not_json(text, at, "the sign : is missing after a key")
        at = _skip(text, at + 1)
        ignored = ignores(name)
        value, end = (_scan_ignored if ignored else _scan_kept)(text, at)
        if not ignored:
            if name in members:
                raise _twice(name)
            if not name.isascii():
                _check_text(name, name)
            members[name] = Value(value, text[at:end])
        at = _skip(text, end)
        sign = text[at : at + 1]
        if sign == "}":
            return _ended(text, at, members)
        if sign != ",":
            raise _not_json(text, at, "the sign , or } is missing after a value")
        at = _skip(text, at + 1)


def _ended(text: str, at: int, members: dict[str, Value]) -> dict[str, Value]:
    end = _skip(text, at + 1)
    if end < len(text):
        shown = printable(text[end : end + 20])
        raise LineError("CORRUPT", f"more follows the object, from character {end + 1} on: {shown}; one a line")
    return members


def _check_text(text: str, name: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise LineError("BAD_UTF8", f'the key "{printable(name)}" holds half a character; fix the file') from error


def _skip(text: str, at: int) -> int:
    while text[at : at + 1] in _BLANK:
        at += 1
    return at


def _not_json(text: str, at: int, what: str) -> LineError:
    if at >= len(text):
        return LineError("CORRUPT", f"not JSON: the line ends too soon: {printable(text[-_SHOWN:])}; {_FIX}")
    shown = printable(text[at : at + 20])
    return LineError("CORRUPT", f"not JSON at character {at + 1}: {what}: {shown}; {_FIX}")


_FIX: Final = "fix the line: each must be one whole JSON object"


def _no_object(text: str, at: int) -> LineError:
    kind = {"[": "an array", '"': "a string", "": "nothing"}.get(text[at : at + 1], "no object")
    return LineError("CORRUPT", f"the line is {kind}: {printable(text[at : at + _SHOWN])}; {_FIX}")


def nested_levels(line: bytes) -> int:
    """Return how deeply brackets are nested, those in strings left out; up to the first error it is exact.

    >>> nested_levels(b'{"a": ["[[[", [1]]}')
    3
    """
    opens = line.count(b"[") + line.count(b"{")
    return opens if opens < 2 else _levels(line)


def _levels(line: bytes) -> int:
    data = np.frombuffer(_STRING.sub(b"", line), np.uint8)
    steps = ((data & 0xDF) == ord("[")).astype(np.int64) - ((data & 0xDF) == ord("]"))
    return int(np.cumsum(steps).max(initial=0))


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
    """Return the type of a value as `parse_line` gives it; an integer is one also where it is beyond int64."""
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


def same_kind(one: pa.DataType, other: pa.DataType) -> bool:
    """Return whether values of two types are of one kind: of any type, what they hold within left out.

    >>> same_kind(pa.int64(), pa.float64()), same_kind(pa.int64(), pa.string()), same_kind(pa.null(), pa.string())
    (True, False, True)
    """
    nulls = pa.types.is_null(one) or pa.types.is_null(other)
    both = any(test(one) and test(other) for test in (is_list, pa.types.is_struct, _is_number))
    return nulls or both or bool(one == other)


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def shared_type(one: pa.DataType, other: pa.DataType, texts: list[tuple[str, ...]] | None = None) -> pa.DataType:
    """Return the type that holds the values of two.

    With `texts` it is text of scalars of two kinds: those of the members that are added there.

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
        inner = texts if pa.types.is_struct(one.value_type) else None  # numbers of classes beside names of them
        return pa.list_(shared_type(one.value_type, other.value_type, inner))
    if pa.types.is_struct(one) and pa.types.is_struct(other):
        members = {field.name: field.type for field in one}
        for field in other:
            within = None if texts is None else list[tuple[str, ...]]()
            try:
                members[field.name] = shared_type(members.get(field.name, pa.null()), field.type, within)
            except MixedTypes as error:
                raise error.of(field.name) from error
            if texts is not None:
                texts += [(field.name, *path) for path in within or ()]
        return pa.struct([pa.field(name, kind) for name, kind in members.items()])
    if texts is not None and not one.num_fields and not other.num_fields:
        texts.append(())
        return pa.string()
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


def holds_objects(kind: pa.DataType) -> bool:
    return holds_objects(kind.value_type) if is_list(kind) else bool(pa.types.is_struct(kind))


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
