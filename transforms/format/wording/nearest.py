"""Guess which name was probably meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import Final

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
    shown = ", ".join(printable(column) for column in known[:_SHOWN])
    more = f" and {len(known) - _SHOWN} more" if len(known) > _SHOWN else ""
    return f"there are: {shown}{more}" if known else "there are none"
