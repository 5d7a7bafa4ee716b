"""JSON files that are one document: what their rows are, as an expression of Python that gives them.

[{"id": 1}, {"id": 2}]                             an array of objects, or of arrays
{"count": 2, "results": [{"id": 1}, {"id": 2}]}    the only array of objects of an object
{"train": [{"id": 1}], "test": [{"id": 2}]}        arrays by split
{"id": [1, 2], "n": ["a", "b"]}                    pandas: orient="list"
{"columns": ["id"], "index": [0], "data": [[1]]}   "split"
{"id": {"0": 1, "1": 2}, "n": {"0": "a"}}          "columns", the default
{"x": {"id": 1}, "y": {"id": 2}}                   "index": objects by their keys

Names of columns also say which files are no parts of one table.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, combinations
from typing import Any, Final

from ...inputs.files.file_names import SPLITS
from ...inputs.files.open_file import is_object

_MOST_JSON: Final = 16 << 20
_MOST_ROWS: Final = 8


def document_in(path: bytes) -> object:
    """Return the document of a file on the disk; None where it is none, or large."""
    if is_object(path) or not os.path.isfile(path) or os.path.getsize(path) > _MOST_JSON:
        return None
    try:
        with gzip.open(path) if path.endswith(b".gz") else open(path, "rb") as file:
            return json.loads(file.read(_MOST_JSON + 1))
    except (OSError, EOFError, zlib.error, ValueError, RecursionError):
        return None  # converting it says what is wrong


def has_splits(document: object) -> bool:
    """Return whether a document is an object of arrays of rows whose keys are names of splits."""
    if not isinstance(document, dict) or len(document) < 2:
        return False
    return all(_are_rows(value) and key.lower() in SPLITS for key, value in document.items())


def rows_of_document(document: object, read: str) -> str:
    """Return the expression of the rows of a document, which `read` gives; empty where it shows none.

    >>> rows_of_document({"n": 1, "data": [{"a": 1}]}, "read()")
    "read()['data']"
    """
    if isinstance(document, list):
        if document and all(isinstance(row, list) for row in document):
            return f"({{f'column_{{i}}': cell for i, cell in enumerate(row)}} for row in {read})"
        return read if _are_rows(document) else ""
    if not isinstance(document, dict) or not document:
        return ""
    if has_splits(document):
        return f"({{**row, 'split': split}} for split, rows in {read}.items() for row in rows)"
    rows = [key for key, value in document.items() if _are_rows(value)]
    if len(rows) == 1:
        return f"{read}[{rows[0]!r}]"
    return "" if rows else _rows_of_pandas(document, read)


def _rows_of_pandas(document: dict[str, Any], read: str) -> str:
    values, one = list(document.values()), f"for table in [{read}]"
    if {*document} - {"index"} == {"columns", "data"}:
        names, data = document["columns"], document["data"]
        fit = isinstance(names, list) and isinstance(data, list) and all(isinstance(row, list) for row in data)
        named = fit and all(isinstance(name, str) and len(row) == len(names) for row in data for name in names)
        return f"(dict(zip(table['columns'], row)) {one} for row in table['data'])" if named else ""
    if all(isinstance(value, list) for value in values):
        plain = not any(isinstance(cell, (dict, list)) for value in values for cell in value)
        even = plain and len({len(value) for value in values}) == 1
        return f"(dict(zip(table, row)) {one} for row in zip(*table.values()))" if even else ""
    if not all(isinstance(value, dict) for value in values):
        return ""
    keys = [list(value) for value in values]
    if all(name.isdigit() for name in keys[0]) and keys.count(keys[0]) == len(keys):
        return f"(dict(zip(table, row)) {one} for row in zip(*map(dict.values, table.values())))"
    return f"({{'key': key, **row}} for key, row in {read}.items())"


def columns_in_manifest(head: bytes) -> list[str] | None:
    """Return the columns that a manifest of Redshift's UNLOAD states for its parts; None for other files.

    >>> columns_in_manifest(b'{"entries": [{"url": "s3://b/0000_part_00"}]}'), columns_in_manifest(b'{"a": 1}')
    ([], None)
    """
    if not re.match(rb'\s*\{\s*"entries"\s*:\s*\[\s*\{\s*"url"', head):
        return None
    try:
        document = json.loads(head)
        return [str(one["name"]) for one in document["schema"]["elements"]]
    except (ValueError, KeyError, TypeError, RecursionError):
        return []


def columns_of_document(document: object) -> list[list[str]]:
    """Return the columns of the first rows of a document, an array of objects or an object with one; else none."""
    if isinstance(document, dict) and not has_splits(document):
        rows = [value for value in document.values() if _are_rows(value)]
        document = rows[0] if len(rows) == 1 else None
    return [[*row] for row in document[:_MOST_ROWS]] if isinstance(document, list) and _are_rows(document) else []


def tables_apart(each: Sequence[Sequence[Iterable[str]]]) -> bool:
    """Return whether rows of some files are those of several tables, by the columns of the first rows of each.

    Both of two tables have columns that the other lacks, and together few but ids. Tables of one or two
    columns show nothing, nor do rows that have few columns in common.

    >>> tables_apart([[["user_id", "name", "city"]], [["user_id", "stars", "text"]]])
    True
    """
    tables = list[set[str]]()
    for rows in filter(None, ([*map(set, some)] for some in each)):
        every = set().union(*rows)
        if 2 * len(set.intersection(*rows)) >= len(every) >= _FEWEST_COLUMNS:
            tables.append({name for name in every if _IDS.fullmatch(name) is None})
    both = ((one, other) for one, other in combinations(tables, 2) if one - other and other - one)
    return any(2 * len(one & other) < min(len(one), len(other)) for one, other in both)


def of_equal_columns(
    tables: Mapping[str, Sequence[str]], each: Mapping[str, Sequence[Iterable[str]]]
) -> dict[str, list[str]]:
    """Return the files of each table, those of equal columns together, by the first name that is not empty."""
    names, found = dict[frozenset[str], str](), dict[str, list[str]]()
    for name in sorted(tables, key=lambda one: (not one, one)):
        columns = frozenset(chain.from_iterable(each[name]))
        found.setdefault(names.setdefault(columns, name) if columns else name, []).extend(tables[name])
    return {name: sorted(some) for name, some in found.items()}


_FEWEST_COLUMNS: Final = 3
_IDS: Final = re.compile(r".*(?:^|_)id|.*I[dD]|_.*")
"""Names of columns that several tables have: ids, and what programs add, which begins with _."""


def _are_rows(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(one, dict) for one in value)
