"""Labels as the numbers that records hold, where a test is about these."""

from __future__ import annotations

from typing import Any, TypeVar

import pyarrow as pa

Rows = TypeVar("Rows", pa.Table, pa.RecordBatch)


def in_numbers(rows: Rows) -> Rows:
    """Return rows whose labels, which read as names, are the numbers of their classes."""
    for at, field in enumerate(rows.schema):
        kind = field.type
        if pa.types.is_dictionary(kind) or (pa.types.is_list(kind) and pa.types.is_dictionary(kind.value_type)):
            column = rows.column(at)
            plain = pa.int64() if pa.types.is_dictionary(kind) else pa.list_(pa.int64())
            chunked = isinstance(column, pa.ChunkedArray)
            numbers = pa.chunked_array([_numbers(one) for one in column.chunks], plain) if chunked else _numbers(column)
            rows = rows.set_column(at, pa.field(field.name, plain, field.nullable), numbers)
    return rows


def _numbers(column: Any) -> Any:
    if pa.types.is_dictionary(column.type):
        return column.indices
    children = [column.values.indices]
    return pa.Array.from_buffers(
        pa.list_(pa.int64()), len(column), column.buffers()[:2], offset=column.offset, children=children
    )
