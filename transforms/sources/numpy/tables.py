"""Tables whose columns are NumPy arrays of their own.

x_train.npy  y_train.npy     columns x, y of a split        the same with folders: train/x.npy, and in one mnist.npz
x_test.npy   y_test.npy      columns x, y of another
a.npy  b.npy                 a table, if they have as many rows
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from ..files.partitions import is_split_folder
from .npy import NpyHeader

_LABELS: Final = frozenset({"y", "label", "labels", "target", "targets", "class", "classes"})
"""Words of names that say that an array has a value for each row of another."""

_WORDS: Final = re.compile(r"[_\-./]")
_ENDS: Final = (
    re.compile(r"(?P<column>.+)[_\-./](?P<split>[^_\-./]+)"),
    re.compile(r"(?P<split>[^_\-./]+)[_\-./](?P<column>.+)"),
)


@dataclass(frozen=True, slots=True)
class Table:
    """Arrays that look like columns: their names by the names of the columns."""

    columns: Mapping[str, str]

    def rows(self, headers: Mapping[str, NpyHeader]) -> dict[str, int]:
        return {name: headers[name].shape[0] for name in self.columns.values()}


def find_tables(headers: Mapping[str, NpyHeader]) -> list[Table]:
    """Return the arrays that look like columns of tables, the longest table first, whether or not they are as long."""
    tables = _by_split([name for name, header in headers.items() if header.shape])
    return sorted(tables or _tables_by_rows(headers), key=lambda table: -max(table.rows(headers).values()))


def is_table(table: Table, headers: Mapping[str, NpyHeader]) -> bool:
    """Return whether arrays of one table are columns, surely: as many rows, of another kind of dtype or rank."""
    kinds = {(headers[name].dtype.kind, len(headers[name].shape)) for name in table.columns.values()}
    rows = set(table.rows(headers).values())
    return len(kinds) > 1 and max(rows) > 1 and (len(rows) == 1 or any(map(_is_label, table.columns)))


def _by_split(names: Iterable[str]) -> list[Table]:
    """Return a table for each split, where all names state one and all splits have the same columns."""
    for pattern in _ENDS:
        found: dict[str, dict[str, str]] = {}
        for name in names:
            match = pattern.fullmatch(name)
            if match is None or not is_split_folder(os.fsencode(match["split"])):
                break
            found.setdefault(match["split"].lower(), {})[match["column"]] = name
        else:
            columns = {tuple(sorted(table)) for table in found.values()}
            if len(found) > 1 and len(columns) == 1 and len(columns.pop()) > 1:
                return [Table(table) for table in found.values()]
    return []


def by_rows(headers: Mapping[str, NpyHeader]) -> dict[int, list[str]]:
    groups: dict[int, list[str]] = {}
    for name, header in headers.items():
        if header.shape:
            groups.setdefault(header.shape[0], []).append(name)
    return groups


def _tables_by_rows(headers: Mapping[str, NpyHeader]) -> list[Table]:
    """Return a table for each number of rows; labels of another number are with the first one."""
    groups = by_rows(headers)
    lone = [names[0] for names in groups.values() if len(names) == 1]
    pairs = [names for names in groups.values() if len(names) > 1]
    if sum(map(_is_label, lone)) == 1 and len(lone) == 2:
        pairs.append(sorted(lone, key=_is_label))
    return [Table({name: name for name in names}) for names in pairs]


def _is_label(name: str) -> bool:
    return not _LABELS.isdisjoint(_WORDS.split(name.lower()))
