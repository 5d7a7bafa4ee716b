"""What NumPy files look like that are tables, where they would be read as records: one file is one record by default.

mnist.npz                  x_train (60000, 28, 28)  y_train (60000,)  x_test ...    arrays of one length are columns
x_train.npy  y_train.npy   the same in files of their own
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Mapping, Sequence
from typing import Final

from ...errors import SchemaError
from ...format.wording.printable import printable
from ..contract.source import SourceEntry
from .npy import NpyHeader
from .tables import Table, by_rows, find_tables, is_table

MOST_FILES: Final = 8
"""With more files than this, each one is certainly a record."""

_TOGETHER: Final = "convert them together, in Python: docs/guide.md, NumPy"

Headers = Mapping[str, NpyHeader]


def rows_warning(entry: SourceEntry, others: int, headers: Headers) -> tuple[str, ...]:
    """Return what a user should know of the first file that is read, if its arrays may be columns of a table.

    With `others` only of a `.npy` file: many `.npz` files are records, as a rule. Raises `SchemaError` where they are
    columns of one file, surely.
    """
    groups = {rows: names for rows, names in _by_rows(headers).items() if rows > 1}
    if not groups or (others and not entry.path.lower().endswith(b".npy")):
        return ()
    commands = ["--set input.rows=true"]
    if len(groups) > 1 or any(not header.shape for header in headers.values()):
        commands = [f"--set input.rows=true --set {_columns(names)}" for names in groups.values()]
    choices = ", or ".join(f"{command} ({rows:,} rows)" for command, rows in zip(commands, groups, strict=True))
    tables = [table for table in find_tables(headers) if is_table(table, headers)]
    if others:
        one = f"{entry.name} and {others:,} more: each file is one record with its whole array"
        return (f"{one}; if the first axis is the row: {choices[:-1]} in the first file)",)
    if not tables:
        return (f"{entry.name}: is one record with all of its arrays; if the first axis is the row: {choices}",)
    what = f"{entry.name}: {_sizes(tables, headers, {name: name for name in headers})}"
    one = "or keep one record with all arrays: --set input.rows=false"
    if len(groups) == 1:
        raise SchemaError(f"{what}; choose: {choices}; {one}")
    raise SchemaError(f"{what}; {_TOGETHER}; {one}")


def refuse_pairs(files: Sequence[tuple[SourceEntry, NpyHeader]]) -> None:
    """Raise `SchemaError` for `.npy` files that are columns of one table.

    Two have as many rows, of another kind of dtype or rank; or one has labels by its name.
    """
    folder = os.path.commonpath([os.path.dirname(os.path.abspath(entry.path)) for entry, _ in files]) if files else b""
    named = {os.fsdecode(os.path.relpath(os.path.abspath(e.path), folder))[: -len(".npy")]: e for e, _ in files}
    headers = dict(zip(named, (header for _, header in files), strict=True))
    tables = [table for table in find_tables(headers) if is_table(table, headers)]
    if tables:
        what = _sizes(tables, headers, {stem: entry.name for stem, entry in named.items()})
        raise SchemaError(f"{what}; separate files are not joined; {_TOGETHER}")


def _sizes(tables: Sequence[Table], headers: Headers, shown: Mapping[str, str]) -> str:
    parts, fix = [], ""
    for table in tables:
        rows = table.rows(headers)
        names = [printable(shown[name]) for name in rows]
        if len(set(rows.values())) == 1:
            parts.append(f"{' and '.join(names)}: {next(iter(rows.values())):,} rows each, of different types")
        else:
            parts.append(
                ", ".join(f"{name} has {rows:,} rows" for name, rows in zip(names, rows.values(), strict=True))
            )
            fix = "; they must be of one length: save both again with the same rows, in the same order"
    table_of = "one table" if len(tables) == 1 else "tables"
    return f"{'; '.join(parts)}: they look like columns of {table_of}{fix}"


def _by_rows(headers: Headers) -> dict[int, list[str]]:
    return dict(sorted(by_rows(headers).items(), reverse=True))


def same_rows(headers: Headers) -> str:
    return ", or ".join(f"--set {_columns(names)}" for names in _by_rows(headers).values())


def _columns(names: Sequence[str]) -> str:
    return shlex.quote(f"input.columns={json.dumps(list(names))}")
