"""Labels as the numbers that records hold, where a test is about these."""

from __future__ import annotations

from typing import TypeVar

import pyarrow as pa

Rows = TypeVar("Rows", pa.Table, pa.RecordBatch)


def in_numbers(rows: Rows) -> Rows:
    """Return rows whose labels, which read as names, are the numbers of their classes."""
    for at, field in enumerate(rows.schema):
        if pa.types.is_dictionary(field.type):
            column = rows.column(at)
            chunked = isinstance(column, pa.ChunkedArray)
            numbers = (
                pa.chunked_array([chunk.indices for chunk in column.chunks], pa.int64()) if chunked else column.indices
            )
            rows = rows.set_column(at, pa.field(field.name, pa.int64(), field.nullable), numbers)
    return rows
