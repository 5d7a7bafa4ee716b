"""What NumPy files look like that are tables, where they would be read as records: one file is one record by default.

mnist.npz                  x_train (60000, 28, 28)  y_train (60000,)  x_test ...    arrays of one length are columns
x_train.npy  y_train.npy   the same in files of their own
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ...errors import SchemaError
from ...format.wording.hints import Set
from ...format.wording.printable import printable
from ..contract.source import SourceEntry
from .npy import NpyHeader

MOST_FILES: Final = 8
"""With more files than this, each one is certainly a record."""

_TOGETHER: Final = "convert them together, in Python: docs/guide.md, NumPy"

Headers = Mapping[str, NpyHeader]


def rows_warning(entry: SourceEntry, others: int, headers: Headers) -> tuple[str, ...]:
    """Return what a user should know of the first file that is read, if its arrays may be columns of a table.

    With `others` only of a `.npy` file, or where few `.npz` files surely hold columns: many are records, as a rule.
    Raises `SchemaError` where they are columns of one file, surely.
    """
    groups = {rows: names for rows, names in _by_rows(headers).items() if rows > 1}
    tables = _tables(headers)
    are_columns = entry.path.lower().endswith(b".npy") or (tables and others < MOST_FILES)
    if not groups or (others and not are_columns):
        return ()
    commands = [f"{Set('input.rows', True)}"]
    if len(groups) > 1 or any(not header.shape for header in headers.values()):
        commands = [f"{Set('input.rows', True)} {_columns(names)}" for names in groups.values()]
    choices = ", or ".join(f"{command} ({rows:,} rows)" for command, rows in zip(commands, groups, strict=True))
    if others:
        arrays = "array" if len(headers) == 1 else "arrays"
        one = f"{entry.name} and {others:,} more: each file is one record with its whole {arrays}"
        return (f"{one}; if the first axis is the row: {choices[:-1]} in the first file)",)
    if not tables:
        return (f"{entry.name}: is one record with all of its arrays; if the first axis is the row: {choices}",)
    what = f"{entry.name}: {_sizes(tables, {name: name for name in headers})}"
    one = f"or keep one record with all arrays: {Set('input.rows', False)}"
    if len(groups) == 1:
        raise SchemaError(f"{what}; choose: {choices}; {one}")
    raise SchemaError(f"{what}; {_TOGETHER}; {one}")


def refuse_pairs(files: Sequence[tuple[SourceEntry, NpyHeader]]) -> None:
    """Raise `SchemaError` for `.npy` files that are columns of one table."""
    names = {str(number): entry.name for number, (entry, _) in enumerate(files)}
    tables = _tables(dict(zip(names, (header for _, header in files), strict=True)))
    if tables:
        raise SchemaError(f"{_sizes(tables, names)}; separate files are not joined; {_TOGETHER}")


def _tables(headers: Headers) -> dict[int, list[str]]:
    """Return the arrays that are columns of tables, surely: as many rows, of another kind of dtype or rank."""
    return {
        rows: names
        for rows, names in _by_rows(headers).items()
        if rows > 1 and len({(headers[name].dtype.kind, len(headers[name].shape)) for name in names}) > 1
    }


def _sizes(tables: Mapping[int, Sequence[str]], shown: Mapping[str, str]) -> str:
    parts = [
        f"{' and '.join(printable(shown[name]) for name in names)}: {rows:,} rows each, of different types"
        for rows, names in tables.items()
    ]
    return f"{'; '.join(parts)}: they look like columns of {'one table' if len(tables) == 1 else 'tables'}"


def _by_rows(headers: Headers) -> dict[int, list[str]]:
    """Return the arrays by their number of rows, the most first."""
    groups: dict[int, list[str]] = {}
    for name, header in headers.items():
        if header.shape:
            groups.setdefault(header.shape[0], []).append(name)
    return dict(sorted(groups.items(), reverse=True))


def same_rows(headers: Headers) -> str:
    return ", or ".join(str(_columns(names)) for names in _by_rows(headers).values())


def _columns(names: Sequence[str]) -> Set:
    return Set("input.columns", names)
