"""JSON files that are one document: what their rows are, as an expression of Python that gives them.

[{"id": 1}, {"id": 2}]                             an array of objects, or of arrays
{"count": 2, "results": [{"id": 1}, {"id": 2}]}    the only array of objects of an object
{"train": [{"id": 1}], "test": [{"id": 2}]}        arrays by split
{"id": [1, 2], "n": ["a", "b"]}                    pandas: orient="list"
{"columns": ["id"], "index": [0], "data": [[1]]}   "split"
{"id": {"0": 1, "1": 2}, "n": {"0": "a"}}          "columns", the default
{"x": {"id": 1}, "y": {"id": 2}}                   "index": objects by their keys
"""

from __future__ import annotations

import gzip
import json
import os
import zlib
from typing import Any, Final

from .open_file import is_object
from .skipped_names import SPLITS

_MOST_JSON: Final = 16 << 20


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


def _are_rows(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(one, dict) for one in value)
