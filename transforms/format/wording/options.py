"""Options of the command line that messages propose, quoted so that they work as they are pasted."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence


def set_column(name: str, key: str, value: str) -> str:
    """Return the option that sets a key of a column.

    >>> print(set_column("price", "decimal", ","), set_column("unit price", "thousands", "."))
    --set schema.columns.price.decimal=, --set 'schema.columns."unit price".thousands=.'
    """
    return f"--set {shlex.quote(f'schema.columns.{_key(name)}.{key}={value}')}"


def set_constant(name: str, value: str) -> str:
    return f"--set {shlex.quote(f'schema.constants.{_key(name)}={value}')}"


def _key(name: str) -> str:
    return name if name.isidentifier() and name.isascii() else json.dumps(name, ensure_ascii=False)


def set_list(key: str, values: Sequence[str]) -> str:
    """Return the option that sets a key to a list of texts.

    >>> print(set_list("input.null_values", ["", "-"]))
    --set 'input.null_values=["", "-"]'
    """
    return f"--set {shlex.quote(f'{key}={json.dumps(list(values), ensure_ascii=False)}')}"
