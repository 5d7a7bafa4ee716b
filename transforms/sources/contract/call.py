"""The command that a user gave, for messages that propose another one or a call from Python, and its options."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Call:
    """The command that a user gave: `convert` or `append`, and the dataset's folder."""

    command: str = "convert"
    output: str = "out"

    def of_data(self, data: str) -> str:
        """Return the call from Python with an expression that gives the data.

        >>> Call("append", "out/a").of_data("frame")
        "append(data=frame, output='out/a')"
        """
        return f"{self.command}(data={data}, output={self.output!r})"


def typed_path(path: str) -> str:
    """Return a path relative to the working folder where it is below it; a URL as it is."""
    if "://" in path:
        return path
    relative = os.path.relpath(path)
    return os.path.abspath(path) if relative.startswith("..") else relative


def set_column(name: str, key: str, value: str) -> str:
    """Return the option that sets a key of a column.

    >>> print(set_column("price", "decimal", ","), set_column("unit price", "thousands", "."))
    --set schema.columns.price.decimal=, --set 'schema.columns."unit price".thousands=.'
    """
    return f"--set {shlex.quote(f'schema.columns.{_key(name)}.{key}={value}')}"


def set_constant(name: str, value: str) -> str:
    """Return the option that gives all rows one value."""
    return f"--set {shlex.quote(f'schema.constants.{_key(name)}={value}')}"


def _key(name: str) -> str:
    return name if name.isidentifier() and name.isascii() else json.dumps(name, ensure_ascii=False)


def set_list(key: str, values: Sequence[str]) -> str:
    """Return the option that sets a key to a list of texts.

    >>> print(set_list("input.null_values", ["", "-"]))
    --set 'input.null_values=["", "-"]'
    """
    return f"--set {shlex.quote(f'{key}={json.dumps(list(values), ensure_ascii=False)}')}"
