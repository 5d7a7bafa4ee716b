"""Turn what a Python caller holds into one stream of Arrow batches of an even size."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from ..errors import SchemaError, UsageError
from ..format.printable import printable
from .array_columns import column_of_array
from .arrow_checks import check_batch, storage_column, storage_type
from .nearest import nearest_name

BATCH_ROWS: Final = 32_000
BATCH_BYTES: Final = 32 << 20

_SMALL_ROWS: Final = 4_000
"""Batches of fewer rows are joined: below that, encoding pays more for the batch than for its rows."""

_CONVERSION_ERRORS: Final = (pa.ArrowException, ValueError, TypeError, OverflowError)


@dataclass(frozen=True, slots=True, eq=False)
class MemoryTable:
    """Batches of one schema, which can be gone through once; `name` is what messages call the data."""

    name: str
    schema: pa.Schema
    batches: Iterable[pa.RecordBatch]
    warnings: tuple[str, ...] = ()

    def even_batches(self, columns: Sequence[str] | None) -> Iterator[pa.RecordBatch]:
        """Yield the chosen columns as batches of at most 32,000 rows and of about 32 MiB, checked.

        Dictionaries become their values, since an Arrow file may hold one dictionary only for each column.

        Raises:
            UsageError: the data is not sound Arrow.
        """
        chosen = self.schema.names if columns is None else [name for name in self.schema.names if name in set(columns)]
        indices = [self.schema.get_field_index(name) for name in chosen]
        for batch in _even(self._checked()):
            arrays = [_plain(batch.column(index)) for index in indices]
            yield pa.RecordBatch.from_arrays(arrays, schema=_plain_schema(self.schema, indices))

    def _checked(self) -> Iterator[pa.RecordBatch]:
        for batch in self.batches:
            try:
                check_batch(batch)
            except pa.ArrowException as error:
                raise UsageError(f"{self.name}: it is not sound Arrow data: {printable(error)}") from error
            yield batch

    def plain_schema(self, columns: Sequence[str] | None) -> pa.Schema:
        """Return the schema of `even_batches`.

        Raises:
            SchemaError: a chosen column is not there.
        """
        for column in columns or ():
            if column not in self.schema.names:
                hint = nearest_name(column, self.schema.names)
                raise SchemaError(f'{self.name}: "{printable(column)}" is to be kept, but is no column; {hint}')
        wanted = set(self.schema.names if columns is None else columns)
        return _plain_schema(self.schema, [i for i, name in enumerate(self.schema.names) if name in wanted])


def memory_table(data: object) -> MemoryTable:
    """Take a pandas DataFrame, Arrow data, or a dict of arrays.

    Arrow data is a table, a batch, a reader, or anything else that has `__arrow_c_stream__`.

    Raises:
        UsageError: it is none of these, or a dict's arrays differ in length.
        SchemaError: two columns have one name, or a column cannot be converted.
    """
    if _is_dataframe(data):
        table = _of_dataframe(data)
    elif isinstance(data, Mapping):
        table = _of_arrays(data)
    elif isinstance(data, pa.RecordBatch):
        table = MemoryTable("Arrow batch", data.schema, [data])
    elif isinstance(data, pa.Table):
        table = MemoryTable("Arrow table", data.schema, data.to_batches())
    elif isinstance(data, pa.RecordBatchReader):
        table = MemoryTable("Arrow reader", data.schema, data)
    elif hasattr(data, "__arrow_c_stream__"):
        reader = pa.RecordBatchReader.from_stream(data)
        table = MemoryTable("Arrow stream", reader.schema, reader)
    else:
        raise UsageError(
            f"data is a {printable(type(data).__name__)}; pass a pandas DataFrame, an Arrow table, "
            "or a dict of NumPy arrays whose first axis is the row"
        )
    _refuse_duplicates(table.name, table.schema.names)
    return table


def _is_dataframe(data: object) -> bool:
    """Tell a DataFrame by its type's names, so that pandas is imported by nobody but the caller who made one."""
    return any(t.__name__ == "DataFrame" and t.__module__.split(".")[0] == "pandas" for t in type(data).__mro__)


def _of_dataframe(frame: Any) -> MemoryTable:
    names = [str(name) for name in frame.columns]
    _refuse_duplicates("DataFrame", names)
    warnings = []
    kept = [printable(name) for name in frame.index.names if name is not None]
    if kept:
        warnings.append(f"DataFrame: its index ({', '.join(kept)}) is not written; reset_index() makes it columns")
    try:
        table = pa.Table.from_pandas(frame.set_axis(names, axis=1), preserve_index=False)
    except _CONVERSION_ERRORS as error:
        raise SchemaError(f"DataFrame: {_told(error)}; give the column one type, as with astype") from error
    for field in table.schema:
        if isinstance(field.type, pa.BaseExtensionType) and field.type.extension_name.startswith("pandas."):
            raise SchemaError(
                f'DataFrame: column "{printable(field.name)}": {field.type.extension_name} has no feature; '
                "convert it, as with astype"
            )
    return MemoryTable("DataFrame", table.schema.remove_metadata(), table.to_batches(), tuple(warnings))


def _of_arrays(arrays: Mapping[Any, Any]) -> MemoryTable:
    if not arrays:
        raise UsageError("data is an empty dict: name at least one array")
    columns: dict[str, pa.Array] = {}
    for name, array in arrays.items():
        if not isinstance(name, str):
            raise UsageError(f"data: the name {printable(name)} is a {type(name).__name__}; names are strings")
        columns[name] = _array_column(name, array)
    lengths = {len(column): name for name, column in columns.items()}
    if len(lengths) > 1:
        (rows, name), (other_rows, other) = list(lengths.items())[:2]
        raise UsageError(
            f'data: array "{printable(name)}" has {rows} rows, and "{printable(other)}" has {other_rows}; '
            "the first axis of all arrays is the row"
        )
    table = pa.Table.from_pydict(columns)
    return MemoryTable("arrays", table.schema, table.to_batches())


def _array_column(name: str, value: Any) -> pa.Array:
    if isinstance(value, np.ma.MaskedArray):
        raise UsageError(f'data: array "{printable(name)}" is masked; fill it, or pass an Arrow table with nulls')
    try:
        array = np.asarray(value)
    except _CONVERSION_ERRORS as error:
        raise UsageError(f'data: "{printable(name)}" is no array: {printable(error)}') from error
    if array.ndim == 0:
        raise UsageError(f'data: "{printable(name)}" is a scalar; the first axis of all arrays is the row')
    if array.dtype.kind != "O":
        return column_of_array(name, array)
    try:
        return pa.array(array)
    except _CONVERSION_ERRORS as error:
        raise SchemaError(
            f'column "{printable(name)}": its Python objects have no common type ({_told(error)}); '
            "convert it with astype"
        ) from error


def _told(error: BaseException) -> str:
    return "; ".join(printable(part) for part in error.args) or type(error).__name__


def _refuse_duplicates(what: str, names: Sequence[str]) -> None:
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise SchemaError(f'{what}: two columns are named "{printable(twice[0])}"; rename one of them')


def _plain(column: pa.Array) -> pa.Array:
    column = storage_column(column)
    return column.dictionary_decode() if isinstance(column, pa.DictionaryArray) else column


def _plain_schema(schema: pa.Schema, indices: Sequence[int]) -> pa.Schema:
    fields = []
    for index in indices:
        kind = storage_type(schema.field(index).type)
        fields.append(schema.field(index).with_type(kind.value_type if pa.types.is_dictionary(kind) else kind))
    return pa.schema(fields)


def _even(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Cut large batches and join small ones; neither depends on anything but the batches' own sizes."""
    small: list[pa.RecordBatch] = []
    small_rows = small_bytes = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        if small and (batch.num_rows >= _SMALL_ROWS or small_rows >= _SMALL_ROWS or small_bytes >= BATCH_BYTES):
            yield from _joined(small)
            small, small_rows, small_bytes = [], 0, 0
        if batch.num_rows >= _SMALL_ROWS:
            yield from _cut(batch)
        else:
            small.append(batch)
            small_rows += batch.num_rows
            small_bytes += batch.nbytes
    yield from _joined(small)


def _cut(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    row_bytes = batch.nbytes // batch.num_rows + 1
    step = min(max(BATCH_BYTES // row_bytes, 1), BATCH_ROWS)
    for start in range(0, batch.num_rows, step):
        yield batch.slice(start, step)


def _joined(batches: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    if len(batches) == 1:
        yield from _cut(batches[0])
    elif batches:
        for batch in pa.Table.from_batches(batches).combine_chunks().to_batches():
            yield from _cut(batch)
