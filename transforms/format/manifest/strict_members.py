"""One JSON object, taken member by member: what is missing, of another kind, out of range or not known is refused."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, TypeVar

from ..wording.printable import printable
from .naming import is_safe_path

INTEGER_LIMIT: Final = 1 << 63
"""Integers are below it: what Arrow, NumPy and other languages hold in 64 bits."""

T = TypeVar("T")


class Wrong(Exception):
    """What is wrong with a document, before it is known which file it is in."""


class Members:
    """The members of one JSON object, taken one by one; what was not taken is unknown, and refused."""

    def __init__(self, value: Any, where: str) -> None:
        if not isinstance(value, dict):
            raise Wrong(f"{where or 'the document'} is not an object")
        self._members = dict(value)
        self._where = where

    def any(self, key: str) -> Any:
        """Take a value of any kind."""
        if key not in self._members:
            raise Wrong(f"{self._name(key)} is missing")
        return self._members.pop(key)

    def text(self, key: str, pattern: re.Pattern[str] | None = None) -> str:
        """Take a string, which matches the pattern."""
        value = self.any(key)
        if not isinstance(value, str) or (pattern is not None and pattern.fullmatch(value) is None):
            raise self._bad(key, value, "a string" if pattern is None else f"of the form {pattern.pattern}")
        return value

    def choice(self, key: str, *choices: str) -> str:
        """Take a string that is one of the choices."""
        value = self.text(key)
        if value not in choices:
            raise self._bad(key, value, "one of " + ", ".join(choices))
        return value

    def path(self, key: str, allowed: Callable[[str], bool], example: str) -> str:
        """Take a path that stays in the folder, and is allowed."""
        value = self.text(key)
        if not is_safe_path(value):
            raise self._bad(key, value, "a relative path of letters, digits and ._=/- that stays in the folder")
        if not allowed(value):
            raise self._bad(key, value, f"a path like {example}")
        return value

    def integer(self, key: str, least: int = 0) -> int:
        """Take an integer from `least` on, below 2**63."""
        value = self.any(key)
        if type(value) is not int or not least <= value < INTEGER_LIMIT:
            raise self._bad(key, value, f"an integer from {least} to 2**63 - 1")
        return value

    def number(self, key: str) -> float:
        """Take a number."""
        value = self.any(key)
        if type(value) not in (int, float):
            raise self._bad(key, value, "a number")
        return float(value)

    def optional(self, key: str, take: Callable[[str], T]) -> T | None:
        """Take null, or else what `take` takes."""
        if key in self._members and self._members[key] is None:
            del self._members[key]
            return None
        return take(key)

    def taken(self, key: str, take: Callable[[Any], T | None]) -> T | None:
        """Take what `take` makes of the value, if it makes anything of it."""
        value = take(self._members.get(key))
        if value is not None:
            del self._members[key]
        return value

    def items(self, key: str, take: Callable[[Any, str], T]) -> tuple[T, ...]:
        """Take a list, each item of it with its place."""
        value = self.any(key)
        if not isinstance(value, list):
            raise self._bad(key, value, "a list")
        return tuple(take(item, f"{self._name(key)}[{i}]") for i, item in enumerate(value))

    def mapping(self, key: str, take: Callable[[Any, str], T]) -> dict[str, T]:
        """Take an object of any keys, each value of it with its place."""
        value = self.any(key)
        if not isinstance(value, dict):
            raise self._bad(key, value, "an object")
        return {name: take(item, f"{self._name(key)}.{printable(name)}") for name, item in value.items()}

    def members(self, key: str) -> Members:
        """Take an object."""
        return Members(self.any(key), self._name(key))

    def end(self) -> None:
        """Refuse what was not taken."""
        if self._members:
            raise Wrong(f"{self._name(printable(next(iter(self._members))))} is not known")

    def _name(self, key: str) -> str:
        return f"{self._where}.{key}" if self._where else key

    def _bad(self, key: str, value: Any, expected: str) -> Wrong:
        return Wrong(f'{self._name(key)} is "{printable(value)}", not {expected}')
