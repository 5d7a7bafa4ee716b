"""Read JSON that anyone may have written: its size is measured before it is parsed, and RFC 8259 is kept strictly.

    {"a": [1, "[[", {"b": 2}]}      3 levels; what is in a string counts for nothing
    1      2        3

A parser makes an object of every value: `[[],[],[], ...` takes 24 times its size, and `[[[[ ...` all of the stack. So
the brackets and commas outside of strings are counted first, a window at a time. Then one key may not be twice in an
object (the last would win), and NaN and Infinity, which Python accepts, are not numbers; nor is 1e999, which it would
take for an infinity.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Collection
from typing import Any, Final, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from ..wording.printable import printable
from .naming import is_safe_path

MAX_DEPTH: Final = 80
"""Levels of arrays and objects: the deepest document, a manifest, has 6."""

MEMORY_LIMIT: Final = 768 << 20
"""Bytes that the values of a document may take in memory. A manifest of a million shards takes 600 MB."""

_CONTAINER_BYTES: Final = 256
_VALUE_BYTES: Final = 64
"""What Python takes for an object or array, and for a short value: never less than these, on a 64-bit machine."""

_WINDOW_BYTES: Final = 1 << 20
_QUOTE, _BACKSLASH, _COMMA = 0x22, 0x5C, 0x2C
_DEPTH_STEPS: Final = np.zeros(256, np.int8)
_DEPTH_STEPS[list(b"[{")] = 1
_DEPTH_STEPS[list(b"]}")] = -1

_Bytes = npt.NDArray[np.uint8]
_Flags = npt.NDArray[np.bool_]


class JsonError(ValueError):
    """The bytes are no JSON, or no JSON that is read here; the text says what is wrong and where."""


def parse_json(data: bytes, *, window_bytes: int = _WINDOW_BYTES) -> Any:
    """Raise `JsonError`: not UTF-8, no JSON, too deep, too large in memory, a key twice, or a NaN."""
    _check_shape(np.frombuffer(data, np.uint8), window_bytes)
    try:
        text = data.decode("utf-8")
        return json.loads(text, object_pairs_hook=_object, parse_constant=_constant, parse_float=_float)
    except JsonError:
        raise
    except UnicodeDecodeError as error:
        raise JsonError(f"byte {error.start} is not UTF-8") from error
    except json.JSONDecodeError as error:
        raise JsonError(f"line {error.lineno} column {error.colno}: {error.msg}") from error
    except ValueError as error:  # an integer of more digits than Python reads
        raise JsonError(printable(error)) from error


def is_readable(data: bytes, memory: int = MEMORY_LIMIT) -> bool:
    """Return whether `parse_json` takes a document of this shape."""
    try:
        _check_shape(np.frombuffer(data, np.uint8), _WINDOW_BYTES, memory)
    except JsonError:
        return False
    return True


def _check_shape(data: _Bytes, window_bytes: int, memory: int = MEMORY_LIMIT) -> None:
    """Refuse a document by its brackets and commas, before an object is made of any of it."""
    depth = containers = commas = 0
    inside = escapes = False  # in a string; the window before ended with a backslash that escapes
    for start in range(0, len(data), window_bytes):
        window = data[start : start + window_bytes]
        marks = _string_ends(window, escaped=escapes)
        escapes = _ends_in_escape(window, escaped=escapes)
        outside = (np.cumsum(marks, dtype=np.int32) & 1) == inside
        inside ^= bool(np.count_nonzero(marks) & 1)
        steps = np.where(outside, _DEPTH_STEPS[window], np.int8(0))
        deepest = depth + int(np.cumsum(steps, dtype=np.int32).max(initial=0))
        if deepest > MAX_DEPTH:
            raise JsonError(f"the document is nested too deeply: over {MAX_DEPTH} levels")
        depth += int(steps.sum(dtype=np.int64))
        containers += int(np.count_nonzero(steps > 0))
        commas += int(np.count_nonzero(outside & (window == _COMMA)))
        taken = containers * _CONTAINER_BYTES + commas * _VALUE_BYTES
        if taken > memory:
            raise JsonError(f"the document holds too many values: they would take over {memory} bytes of memory")


def _string_ends(window: _Bytes, *, escaped: bool) -> _Flags:
    """Return where strings begin and end: the quotes that no backslash escapes."""
    quotes: _Flags = window == _QUOTE
    slashes = window == _BACKSLASH
    if not escaped and not slashes.any():
        return quotes
    # A quote is escaped by an odd run of backslashes in front of it.
    places = np.arange(len(window), dtype=np.int32)
    plain = np.maximum.accumulate(np.where(slashes, np.int32(-1), places))  # the last other byte up to here
    run = np.concatenate((np.zeros(1, np.int32), (places - plain)[:-1]))  # backslashes in front of each byte
    if escaped:
        other = np.flatnonzero(~slashes)
        run[: (int(other[0]) if len(other) else len(window)) + 1] += 1
    quotes &= (run & 1) == 0
    return quotes


def _ends_in_escape(window: _Bytes, *, escaped: bool) -> bool:
    other = np.flatnonzero(window != _BACKSLASH)
    run = len(window) - 1 - int(other[-1]) if len(other) else len(window) + escaped
    return bool(run & 1)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise JsonError(f"{printable(twice)} appears twice in one object")
    return members


def _float(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise JsonError(f"{printable(text)} is beyond the largest number of 64 bits")
    return number


def _constant(text: str) -> Any:
    raise JsonError(f"{text} is not a JSON number")


# What the values of a JSON document must be: what is missing, of another kind, out of range or not known is refused.
#
# A taker returns what a value stands for. Those of objects and lists are made of the takers of their members and
# items:
#
#     object_of(ShardEntry, path=path(is_shard_path, "a path like a.tfrecord"), records=integer(1), ...)


INTEGER_LIMIT: Final = 1 << 63
"""Integers are below it: what Arrow, NumPy and other languages hold in 64 bits."""

T = TypeVar("T")
Take: TypeAlias = Callable[[Any], T]


class ManifestProblem(Exception):
    """What is wrong with a document, before it is known which file it is in: the place in it, and what to say of it."""

    def __init__(self, problem: str, place: str = "") -> None:
        super().__init__(f"{place or 'the document'}{problem}")
        self._problem, self._place = problem, place

    def inside(self, key: str | int) -> ManifestProblem:
        """Return the problem of the object or list that has what is wrong under a key."""
        outer = f"[{key}]" if isinstance(key, int) else printable(key)
        dot = "." if self._place and not self._place.startswith("[") else ""
        return ManifestProblem(self._problem, f"{outer}{dot}{self._place}")


def only(allowed: Callable[[Any], object], expected: str) -> Take[Any]:
    def take(value: Any) -> Any:
        if not allowed(value):
            raise ManifestProblem(f' is "{printable(value)}", not {expected}')
        return value

    return take


def text(pattern: re.Pattern[str] | None = None) -> Take[str]:
    if pattern is None:
        return only(lambda value: isinstance(value, str), "a string")
    return only(lambda value: isinstance(value, str) and pattern.fullmatch(value), f"of the form {pattern.pattern}")


def choice(*choices: str) -> Take[str]:
    return only(choices.__contains__, "one of " + ", ".join(choices))


def path(allowed: Callable[[str], bool], expected: str) -> Take[str]:
    safe = only(
        lambda value: isinstance(value, str) and is_safe_path(value),
        "a relative path of letters, digits and ._=/- that stays in the folder",
    )
    fitting = only(allowed, expected)
    return lambda value: fitting(safe(value))


def integer(least: int = 0, most: int = INTEGER_LIMIT - 1) -> Take[int]:
    last = "2**63 - 1" if most == INTEGER_LIMIT - 1 else most
    return only(lambda value: type(value) is int and least <= value <= most, f"an integer from {least} to {last}")


def number() -> Take[float]:
    small = only(
        lambda value: type(value) is float or (type(value) is int and abs(value) < INTEGER_LIMIT),
        "a number of 64 bits",
    )
    return lambda value: float(small(value))


def optional(take: Take[T]) -> Take[T | None]:
    return lambda value: None if value is None else take(value)


def items(take: Take[T]) -> Take[tuple[T, ...]]:
    whole = only(lambda value: isinstance(value, list), "a list")
    return lambda value: tuple(_inside(i, take, item) for i, item in enumerate(whole(value)))


def mapping(take: Take[T]) -> Take[dict[str, T]]:
    whole = only(lambda value: isinstance(value, dict), "an object")
    return lambda value: {key: _inside(key, take, item) for key, item in whole(value).items()}


def object_of(make: Callable[..., T], may_lack: Collection[str] = (), /, **members: Take[Any]) -> Take[T]:
    """Take an object of these members, in this order, and of no others; return what `make` makes of them.

    A key that is a keyword of Python is given to `make` with an underscore after it.
    """

    def take(value: Any) -> T:
        if not isinstance(value, dict):
            raise ManifestProblem(" is not an object")
        taken = {}
        for name, take_member in members.items():
            key = name.removesuffix("_")
            if key in value:
                taken[name] = _inside(key, take_member, value[key])
            elif key not in may_lack:
                raise ManifestProblem(" is missing", key)
        if len(taken) < len(value):
            unknown = next(key for key in value if key not in members and f"{key}_" not in members)
            raise ManifestProblem(" is not known", printable(unknown))
        return make(**taken)

    return take


def _inside(key: str | int, take: Take[T], value: Any) -> T:
    try:
        return take(value)
    except ManifestProblem as problem:
        raise problem.inside(key) from None
