"""Write rows as a table: Parquet, Arrow, JSON lines or CSV, some rows at a time.

.parquet             row groups of about 64 MiB, zstd; Arrow's schema is in the footer
.arrow .feather      Arrow IPC's file format, as it is
.jsonl .ndjson       an object for each row, with every column
.csv                 columns of single values
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import BinaryIO, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from ...errors import UsageError
from ...format.buffers.arrow_memory import offsets_of
from ...format.nested.keys import stored_type
from ...format.schema.column_types import is_string
from ...format.wording.hints import Add
from ...format.wording.printable import printable
from .exported_rows import ExportedRows
from .plain_values import plain_array, plain_list

_ROW_GROUP_BYTES: Final = 64 << 20
"""Of Arrow memory: what readers of Parquet like, and all that is held of a dataset."""

Write = Callable[[ExportedRows, BinaryIO], None]


def write_parquet(rows: ExportedRows, file: BinaryIO) -> None:
    import pyarrow.parquet as pq

    schema = pa.schema([_for_parquet(field) for field in rows.schema])
    with pq.ParquetWriter(file, schema, compression="zstd") as writer:
        for table in _row_groups(rows):
            writer.write_table(table.cast(schema), row_group_size=max(len(table), 1))


def _for_parquet(field: pa.Field) -> pa.Field:
    """Return a field whose values pyarrow itself reads back: it refuses lists of a fixed size where some are null.

    Within lists there are no nulls.
    """
    if types.is_fixed_size_list(field.type) and field.nullable:
        return field.with_type(pa.list_(field.type.value_field))
    if types.is_struct(field.type):
        children = [_for_parquet(child.with_nullable(child.nullable or field.nullable)) for child in field.type]
        return field.with_type(pa.struct(children))
    return field


def _row_groups(rows: ExportedRows) -> Iterator[pa.Table]:
    held: list[pa.RecordBatch] = []
    size = 0
    for _, batch in rows.batches():
        held.append(batch)
        size += batch.nbytes
        if size >= _ROW_GROUP_BYTES:
            yield pa.Table.from_batches(held, rows.schema)
            held, size = [], 0
    if held:
        yield pa.Table.from_batches(held, rows.schema)


def write_arrow(rows: ExportedRows, file: BinaryIO) -> None:
    with pa.ipc.new_file(file, rows.schema) as writer:
        for _, batch in rows.batches():
            writer.write_batch(batch)


def write_json_lines(rows: ExportedRows, file: BinaryIO) -> None:
    for _, batch in rows.batches():
        file.write(json_lines(rows.schema.names, batch.columns))


def json_lines(names: list[str], columns: Iterable[pa.Array]) -> bytes:
    r"""Return rows as lines of JSON.

    >>> json_lines(["a"], [pa.array([1, None])])
    b'{"a": 1}\n{"a": null}\n'
    """
    values = [plain_list(name, column) for name, column in zip(names, columns, strict=True)]
    encode = json.JSONEncoder(ensure_ascii=False).encode
    return "".join(encode(dict(zip(names, row, strict=True))) + "\n" for row in zip(*values, strict=True)).encode()


def write_csv(rows: ExportedRows, file: BinaryIO) -> None:
    """Write rows as CSV with a header: text in quotes, a null as nothing, a float with a point or an exponent."""
    nested = [field.name for field in rows.schema if types.is_nested(stored_type(field.type))]
    if nested:
        names = ", ".join(printable(name) for name in nested)
        raise UsageError(
            f"CSV has no lists and objects, which {names} hold; export to .jsonl or .parquet, or choose others with "
            f"{Add('--columns')}"
        )
    names = rows.schema.names
    file.write(csv_lines([pa.array([name]) for name in names]))
    for _, batch in rows.batches():
        file.write(csv_lines([plain_array(*pair) for pair in zip(names, batch.columns, strict=True)]))


def csv_lines(columns: Sequence[pa.Array]) -> pa.Buffer:
    r"""Return rows of plain columns as lines of CSV.

    Arrow's own writer has no point in floats that are whole numbers: they are read back as integers, and -0 as text.

    >>> csv_lines([pa.array([1.0, -0.0, 1e20]), pa.array(['a "b" c', "", None]), pa.array([1, 2, 3])]).to_pybytes()
    b'1.0,"a ""b"" c",1\n-0.0,"",2\n1e+20,,3\n'
    """
    if not columns:
        return pa.py_buffer(b"")
    rows = _joined(",", *map(_csv_cells, columns), null_handling="replace", null_replacement="")
    lines = _joined("\n", rows, "").cast(pa.large_binary())
    if not len(lines):
        return pa.py_buffer(b"")
    first, last = offsets_of(lines, np.int64)[[0, -1]].tolist()
    return lines.buffers()[2].slice(first, last - first)


def _csv_cells(values: pa.Array) -> pa.Array:
    text = values.cast(pa.large_string())
    if is_string(values.type):
        return _joined("", '"', pc.replace_substring(text, '"', '""'), '"')
    if types.is_floating(values.type):  # Arrow writes the fewest digits that give the value again
        return pc.if_else(pc.match_substring_regex(text, "^-?[0-9]+$"), _joined("", text, ".0"), text)
    return text


def _joined(separator: str, *parts: pa.Array | str, **options: str) -> pa.Array:
    texts = [pa.scalar(part, pa.large_string()) if isinstance(part, str) else part for part in (*parts, separator)]
    return pc.binary_join_element_wise(*texts, **options)


OF_TEXT: Final = (".jsonl", ".ndjson", ".csv")
"""Tables that keep no types."""

TABLES: Final[dict[str, Write]] = {
    ".parquet": write_parquet,
    ".arrow": write_arrow,
    ".feather": write_arrow,
    ".jsonl": write_json_lines,
    ".ndjson": write_json_lines,
    ".csv": write_csv,
}
