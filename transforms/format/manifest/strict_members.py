"""What the values of a JSON document must be: what is missing, of another kind, out of range or not known is refused.

A taker returns what a value stands for. Those of objects and lists are made of the takers of their members and items:

    object_of(ShardEntry, path=path(is_shard_path, "a path like a.tfrecord"), records=integer(1), ...)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import Any, Final, TypeAlias, TypeVar

from ..wording.printable import printable
from .naming import is_safe_path

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
