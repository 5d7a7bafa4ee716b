"""Guess which name was probably meant, and list the first of many names."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import Final

from ...errors import SchemaError
from .printable import printable

_SHOWN: Final = 10
"""This many names are listed where none is near: more would bury the message."""


def nearest(name: str, choices: Iterable[str]) -> str | None:
    """Return the lowercase choice that `name` was most likely meant to be, or None if none is near."""
    return next(iter(difflib.get_close_matches(name.lower(), list(choices), n=1)), None)


def nearest_name(name: str, known: Sequence[str]) -> str:
    """Return a hint that ends a message about a name that is not known.

    >>> nearest_name("prcie", ["id", "price"])
    'did you mean "price"?'
    >>> nearest_name("zip", ["id", "price"])
    'there are: id, price'
    """
    near = difflib.get_close_matches(name, known, n=1)
    if near:
        return f'did you mean "{printable(near[0])}"?'
    return f"there are: {first_names(known, _SHOWN)}" if known else "there are none"


class NoColumnError(SchemaError):
    """A key of the config names something that is not a column; `hint` ends the message.

    >>> str(NoColumnError("schema.columns", "prcie", ["id", "price"]))
    'schema.columns names "prcie", which is not a column; did you mean "price"?'
    """

    def __init__(self, key: str, name: str, known: Sequence[str], hint: str | None = None) -> None:
        ending = nearest_name(name, known) if hint is None else hint
        super().__init__(f'{key} names "{printable(name)}", which is not a column; {ending}')
        self.key, self.name = key, name
        self._given = (key, name, tuple(known), hint)

    def __reduce__(self) -> tuple[type[NoColumnError], tuple[str, str, Sequence[str], str | None]]:
        return type(self), self._given


def first_names(names: Sequence[str], count: int, others: int = 0) -> str:
    """Return the first names as a message lists them, and how many more there are, with `others` that are not here.

    >>> first_names(["a", "b", "c"], 2)
    'a, b and 1 more'
    """
    more = max(len(names) - count, 0) + others
    return ", ".join(printable(name) for name in names[:count]) + (f" and {more:,} more" if more else "")
