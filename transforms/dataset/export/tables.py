"""Write rows as a table: Parquet, Arrow, JSON lines or CSV, some rows at a time.

.parquet             row groups of about 64 MiB, zstd; Arrow's schema is in the footer
.arrow .feather      Arrow IPC's file format, as it is
.jsonl .ndjson       an object for each row, with every column
.csv                 columns of single values
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import BinaryIO, Final

import pyarrow as pa
from pyarrow import types

from ...errors import UsageError
from ...format.nested.keys import stored_type
from ...format.wording.printable import printable
from .exported_rows import ExportedRows
from .plain_values import plain_array, plain_list

_ROW_GROUP_BYTES: Final = 64 << 20
"""Of Arrow memory: what readers of Parquet like, and all that is held of a dataset."""

Write = Callable[[ExportedRows, BinaryIO], None]


def write_parquet(rows: ExportedRows, file: BinaryIO) -> None:
    """Write rows as Parquet."""
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
    """Write rows in the file format of Arrow IPC, which is Feather V2."""
    with pa.ipc.new_file(file, rows.schema) as writer:
        for _, batch in rows.batches():
            writer.write_batch(batch)


def write_json_lines(rows: ExportedRows, file: BinaryIO) -> None:
    """Write each row as a line with a JSON object; a null is `null`.

    Raises:
        UsageError: a time is out of the range of dates.
    """
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
    """Write rows as CSV with a header: text in quotes, a null as nothing.

    Raises:
        UsageError: a column holds lists or objects, or a time is out of the range of dates.
    """
    import pyarrow.csv as csv

    nested = [field.name for field in rows.schema if types.is_nested(stored_type(field.type))]
    if nested:
        names = ", ".join(printable(name) for name in nested)
        raise UsageError(
            f"CSV has no lists and objects, which {names} hold; export to .jsonl or .parquet, or choose others with "
            f"--columns"
        )
    empty = {field.name: plain_array(field.name, pa.nulls(0, field.type)) for field in rows.schema}
    schema = pa.schema([field.with_type(empty[field.name].type) for field in rows.schema])
    with csv.CSVWriter(file, schema) as writer:
        for _, batch in rows.batches():
            columns = [plain_array(*pair) for pair in zip(schema.names, batch.columns, strict=True)]
            writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema))


TABLES: Final[dict[str, Write]] = {
    ".parquet": write_parquet,
    ".arrow": write_arrow,
    ".feather": write_arrow,
    ".jsonl": write_json_lines,
    ".ndjson": write_json_lines,
    ".csv": write_csv,
}
"""The tables by the end of their names."""
