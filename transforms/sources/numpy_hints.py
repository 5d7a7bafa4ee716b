"""What NumPy files look like that are tables, where they would be read as records: one file is one record by default.

mnist.npz                  x_train (60000, 28, 28)  y_train (60000,)  x_test ...    arrays of one length are columns
x_train.npy  y_train.npy   the same in files of their own
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from typing import Final

from ..errors import SchemaError
from ..format.printable import printable
from .npy import NpyHeader

MOST_FILES: Final = 8
"""Of more files each one is a record, surely."""

Headers = Mapping[str, NpyHeader]


def rows_warning(name: str, headers: Headers) -> tuple[str, ...]:
    """Return what a user should know of the one file that is read, if its arrays look like columns of a table."""
    groups = {rows: names for rows, names in _by_rows(headers).items() if rows > 1}
    if not groups:
        return ()
    commands = ["--set input.rows=true"]
    if len(groups) > 1 or any(not header.shape for header in headers.values()):
        commands = [f"--set input.rows=true --set {_columns(names)}" for names in groups.values()]
    choices = ", or ".join(f"{command} ({rows:,} rows)" for command, rows in zip(commands, groups, strict=True))
    return (f"{name}: is one record with all of its arrays; if the first axis is the row: {choices}",)


def refuse_pairs(files: Sequence[tuple[str, NpyHeader]]) -> None:
    """Refuse `.npy` files, given as the user may name them, that are columns of one table.

    Raises:
        SchemaError: two files have as many rows, of another kind of dtype or rank.
    """
    for rows, names in _by_rows(dict(files)).items():
        kinds = {(header.dtype.kind, len(header.shape)) for name, header in files if name in names}
        if rows > 1 and len(kinds) > 1:
            loaded = ", ".join(f"{_stem(name)!r}: np.load({name!r}, mmap_mode='r')" for name in names)
            raise SchemaError(
                f"{' and '.join(map(printable, names))}: {rows:,} rows each, of different types: they look like "
                f"columns of one table, and separate files are not joined; in Python (import numpy as np): "
                f"convert(data={{{loaded}}}, output='out')"
            )


def _by_rows(headers: Headers) -> dict[int, list[str]]:
    groups: dict[int, list[str]] = {}
    for name, header in headers.items():
        if header.shape:
            groups.setdefault(header.shape[0], []).append(name)
    return dict(sorted(groups.items(), reverse=True))


def same_rows(headers: Headers) -> str:
    """Return how to keep only arrays of as many rows."""
    return ", or ".join(f"--set {_columns(names)}" for names in _by_rows(headers).values())


def _columns(names: Sequence[str]) -> str:
    return shlex.quote(f"input.columns={json.dumps(list(names))}")


def _stem(name: str) -> str:
    return name.rpartition("/")[2].removesuffix(".npy")
