"""Turn what a Python caller holds into one stream of Arrow batches of an even size."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa

from ...errors import DataError, SchemaError, UsageError
from ...format.schema.arrow_checks import check_batch, fix_of_value, storage_column, storage_type, times_within
from ...format.schema.arrow_types import named_classes, with_classes
from ...format.wording.hints import Python
from ...format.wording.printable import nearest_name, printable
from ..numpy.records import column_of_array
from .rows import (
    CONVERSION_ERRORS,
    array_of_values,
    first_of,
    mixed_column_error,
    reason_of,
    refuse_rounded_integers,
    table_of_rows,
    tables_of_parts,
    tables_of_rows,
)

_NO_ROWS: Final = (str, bytes, bytearray, np.ndarray, set, frozenset)
"""What can be gone through and is neither a list nor an iterator of rows."""

_HUGGING_FACE_ROWS: Final = 1_000
"""Rows of a table that a Hugging Face dataset is asked for, as that package writes them; small ones are joined."""

_EMBEDDED_ROWS: Final = 16
"""Rows of which the files are read at once: pictures of 10 MB are then 160 MB."""


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """The sizes of even batches: those of fewer than `small_rows` are joined, larger ones than the others cut.

    Below that, encoding pays more for the batch than for its rows.
    """

    rows: int = 32_000
    bytes: int = 32 << 20
    small_rows: int = 4_000


_LIMITS: Final = BatchLimits()


@dataclass(frozen=True, slots=True, eq=False)
class MemoryTable:
    """Batches of one schema, which can be gone through once; `name` is what messages call the data.

    The metadata of the schema name the classes of its columns, as Hugging Face writes them. All rows are of `split`.
    """

    name: str
    schema: pa.Schema
    batches: Iterable[pa.RecordBatch]
    split: str | None = None
    warnings: tuple[str, ...] = ()

    def even_batches(self, columns: Sequence[str] | None) -> Iterator[pa.RecordBatch]:
        """Yield the chosen columns as batches of at most 32,000 rows and of about 32 MiB, checked.

        Dictionaries become their values, since an Arrow file may hold one dictionary only for each column. Raises
        `UsageError` where the data is not sound Arrow, or holds a value that its type does not have.
        """
        wanted = self.schema.names if columns is None else set(columns)
        chosen = [name for name in self.schema.names if name in wanted]
        indices = [self.schema.get_field_index(name) for name in chosen]
        for batch in even(self._checked()):
            arrays = [_plain(batch.column(index)) for index in indices]
            yield pa.RecordBatch.from_arrays(arrays, schema=_plain_schema(self.schema, indices))

    def _checked(self) -> Iterator[pa.RecordBatch]:
        for batch in self.batches:
            try:
                check_batch(batch)
            except pa.ArrowException as error:
                again = f"; {fix}" if (fix := fix_of_value(error)) else ""
                raise UsageError(f"{self.name}: it is not sound Arrow data: {printable(error)}{again}") from error
            yield batch

    def plain_schema(self, columns: Sequence[str] | None) -> pa.Schema:
        """Return the schema of `even_batches`. Raises `SchemaError` where a chosen column is not there."""
        for column in columns or ():
            if column not in self.schema.names:
                hint = nearest_name(column, self.schema.names)
                raise SchemaError(f'{self.name}: "{printable(column)}" is to be kept, but is not a column; {hint}')
        wanted = set(self.schema.names if columns is None else columns)
        chosen = [i for i, name in enumerate(self.schema.names) if name in wanted]
        return with_classes(_plain_schema(self.schema, chosen), named_classes(self.schema))


def memory_tables(data: object) -> list[MemoryTable]:
    """Take data as `memory_table` does; of a dict of the datasets of Hugging Face each with rows is a split."""
    if isinstance(data, Mapping) and any(_is_of(data, "datasets", f"{kind}DatasetDict") for kind in ("", "Iterable")):
        there = {name: one for name, one in data.items() if getattr(one, "num_rows", None) != 0} or data
        named = [(name, f"{printable(name)} of the Hugging Face datasets", one) for name, one in there.items()]
        if named:
            return [replace(memory_table(one), name=called, split=name) for name, called, one in named]
    return [memory_table(data)]


def memory_table(data: object) -> MemoryTable:
    """Take a pandas DataFrame, Arrow data, a dict of arrays, or a list or an iterator of dicts or of tables.

    A dataset of Hugging Face's `datasets` is taken as the Arrow tables that it gives. Arrow data is a table, a batch, a
    reader, or anything else that has `__arrow_c_stream__`. Raises `DataError` for anything else, `UsageError` where a
    dict's arrays differ in length or there is no row, `SchemaError` where two columns have one name or one cannot be
    converted.
    """
    if _is_pandas(data, "DataFrame"):
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
        table = _of_stream(data)
    elif _is_of(data, "datasets", "Dataset") or _is_of(data, "datasets", "IterableDataset"):
        table = _of_hugging_face(data)
    elif isinstance(data, Iterable) and not isinstance(data, _NO_ROWS):
        table = _of_items(data)
    else:
        raise _not_data(data)
    _refuse_duplicates(table.name, table.schema.names)
    return table


def _of_stream(data: Any) -> MemoryTable:
    try:
        reader = pa.RecordBatchReader.from_stream(data)
    except pa.ArrowException as error:
        raise _not_data(data) from error
    return MemoryTable("Arrow stream", reader.schema, reader)


def _of_hugging_face(data: Any) -> MemoryTable:
    """Take the rows of a dataset as it orders and picks them, as Arrow has them: pictures are `{bytes, path}`.

    The dataset's own package reads the files that paths without bytes name, for some rows at a time.
    """
    tables = data.with_format("arrow").iter(_HUGGING_FACE_ROWS)
    table, tables = first_of(tables)
    embed = getattr(sys.modules.get("datasets.table"), "embed_table_storage", None)
    if embed is not None and any(map(_may_name_files, table.schema.types)):
        tables = (embed(one.slice(start, _EMBEDDED_ROWS)) for one in tables for start in _starts(one))
    return MemoryTable("Hugging Face dataset", table.schema, (batch for one in tables for batch in one.to_batches()))


def _may_name_files(kind: pa.DataType) -> bool:
    inner = [kind.field(at).type for at in range(kind.num_fields)]
    names = {kind.field(at).name for at in range(kind.num_fields)}
    return (pa.types.is_struct(kind) and {"bytes", "path"} <= names) or any(map(_may_name_files, inner))


def _starts(table: pa.Table) -> range:
    return range(0, len(table), _EMBEDDED_ROWS)


def _of_items(data: Iterable[Any]) -> MemoryTable:
    """Take rows or tables one by one; a list of dicts is taken as a whole."""
    first, items = first_of(iter(data))
    if isinstance(first, Mapping):
        if isinstance(data, list | tuple):
            _check_rows(data)
            tables = iter([table_of_rows(data)])
        else:
            tables = tables_of_rows(items)
        name = "rows"
    elif isinstance(first, pa.RecordBatch | pa.Table) or _is_pandas(first, "DataFrame"):
        tables, name = tables_of_parts(items, _part_table), "tables"
    else:
        raise _not_data(data, f" of {printable(type(first).__name__)}")
    table, tables = first_of(tables)
    return MemoryTable(name, table.schema, (batch for table in tables for batch in table.to_batches()))


def _check_rows(rows: Sequence[object]) -> None:
    for number, row in enumerate(rows, 1):
        if not isinstance(row, Mapping):
            raise DataError(f"data: row {number:,} is a {printable(type(row).__name__)}, and the first one is a dict")


def _part_table(part: object) -> pa.Table:
    if not isinstance(part, pa.RecordBatch | pa.Table) and not _is_pandas(part, "DataFrame"):
        raise _not_data(part)
    table = memory_table(part)
    return pa.Table.from_batches(table.batches, table.schema)


def _not_data(data: object, of: str = "") -> DataError:
    """Return the error that says what data may be; of what is often passed, with the line that is right."""
    what = f"data is a {printable(type(data).__name__)}{of}"
    if _is_pandas(data, "Series"):
        named = Python('data=series.to_frame("name")')
        return DataError(f"{what}: one column without a table; make it one: {named}")
    if type(data).__name__ == "LazyFrame":
        return DataError(f"{what}: its rows are not there yet; collect them: {Python('data=frame.collect()')}")
    if isinstance(data, str | os.PathLike):
        call = Python(f"convert({printable(os.fspath(data))!r}, output=...)")
        return DataError(f"{what}: a path is the first argument: {call}")
    if isinstance(data, np.ndarray):
        named = Python('data={"x": array}')
        return DataError(f"{what}: give the array a name: {named}; its first axis is the row")
    return DataError(
        f"{what}; pass a pandas DataFrame, an Arrow table, a dict of NumPy arrays whose first axis is the row, or a "
        f"list or generator of dicts"
    )


def _is_pandas(data: object, name: str) -> bool:
    return _is_of(data, "pandas", name)


def _is_of(data: object, package: str, name: str) -> bool:
    """Recognise a class by its type's names, so that only the caller who made one imports its package."""
    return any(t.__name__ == name and t.__module__.split(".")[0] == package for t in type(data).__mro__)


def _of_dataframe(frame: Any) -> MemoryTable:
    names = [str(name) for name in frame.columns]
    _refuse_duplicates("DataFrame", names)
    warnings = []
    kept = [printable(name) for name in frame.index.names if name is not None]
    if kept:
        warnings.append(f"DataFrame: its index ({', '.join(kept)}) is not written; reset_index() makes it columns")
    elif len(frame) and frame.index.dtype.kind not in "iu":  # whole numbers only say where a row was in another frame
        warnings.append("DataFrame: its index, which has no name, is not written; reset_index() makes it columns")
    try:
        table = pa.Table.from_pandas(frame.set_axis(names, axis=1), preserve_index=False)
        for index, field in enumerate(table.schema):
            if frame.dtypes.iloc[index].kind == "O" and times_within(field.type):
                column = array_of_values(frame.iloc[:, index], from_pandas=True)
                table = table.set_column(index, field.name, column)
    except CONVERSION_ERRORS as error:
        raise _mixed_frame(frame, names, error) from error
    for field in table.schema:
        if isinstance(field.type, pa.BaseExtensionType) and field.type.extension_name.startswith("pandas."):
            raise SchemaError(
                f'DataFrame: column "{printable(field.name)}": {field.type.extension_name} has no feature; '
                f"{_fix_of_extension(frame, names.index(field.name))}"
            )
    return MemoryTable("DataFrame", table.schema.remove_metadata(), table.to_batches(), warnings=tuple(warnings))


def _mixed_frame(frame: Any, names: Sequence[str], error: BaseException) -> SchemaError:
    """Return the error that names the first column without a type of Arrow, its values and what makes it one."""
    for index, name in enumerate(names):
        column = frame.iloc[:, index]
        try:
            pa.array(column, from_pandas=True)
        except CONVERSION_ERRORS as reason:
            values = [None if missing else value for value, missing in zip(column, column.isna(), strict=True)]
            label = _label_of(frame.columns[index])
            return mixed_column_error("DataFrame", name, values, reason, fix=_fix_of(column, label))
    return SchemaError(f"DataFrame: {reason_of(error)}; give each column one type, as with astype")


def _label_of(name: Any) -> str:
    return f"frame[{printable(repr(name) if isinstance(name, str) else name)}]"


def _fix_of_extension(frame: Any, index: int) -> str:
    label = _label_of(frame.columns[index])
    if type(frame.dtypes.iloc[index]).__name__ == "PeriodDtype":
        return f"to have the times at which its periods begin: {Python(f'{label} = {label}.dt.to_timestamp()')}"
    return f"to have text: {Python(f'{label} = {label}.astype(str)')}"


def _fix_of(column: Any, label: str) -> str:
    """Return the line of Python that makes a column of a frame one that is read with the same values."""
    kinds = {type(value) for value in column if value is not None}
    if type(column.dtype).__name__ == "SparseDtype":
        return f"read its values: {Python(f'{label} = {label}.sparse.to_dense()')}"
    if kinds == {np.ndarray}:
        return f"make lists of the arrays: {Python(f'{label} = [array.tolist() for array in {label}]')}"
    if any(issubclass(kind, complex | np.complexfloating) for kind in kinds):
        return "split it into a column of real and one of imaginary parts"
    text = f'{label} = {label}.astype("string")'
    return f"give the column one type, as with {Python(text)}"


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
    if hasattr(value, "columns") or hasattr(value, "column_names"):
        one = Python(f"data=tables[{printable(repr(name))}]")
        raise DataError(f"data is a dict of tables, of which each would be one column; give one: {one}")
    if isinstance(value, np.ma.MaskedArray):
        raise UsageError(f'data: array "{printable(name)}" is masked; fill it, or pass an Arrow table with nulls')
    try:
        array = np.asarray(value)
    except CONVERSION_ERRORS as error:
        if not isinstance(value, list | tuple):
            raise UsageError(f'data: "{printable(name)}" is not an array: {printable(error)}') from error
        array = np.empty(len(value), object)  # lists of unequal length, which NumPy makes no array of
        array[:] = value
    if array.ndim == 0:
        raise UsageError(f'data: "{printable(name)}" is a scalar; the first axis of all arrays is the row')
    fix = "give the array one type, as with array.astype(str)"
    if isinstance(value, list | tuple) and array.dtype == np.float64:
        refuse_rounded_integers(name, value, array, fix=fix)
    if array.dtype.kind != "O":
        return column_of_array(name, array)
    try:
        return array_of_values(array)
    except CONVERSION_ERRORS as error:
        raise mixed_column_error("data", name, list(array), error, fix=fix) from error


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


def even(batches: Iterable[pa.RecordBatch], limits: BatchLimits = _LIMITS) -> Iterator[pa.RecordBatch]:
    """Cut large batches and join small ones; neither depends on anything but the batches' own sizes."""
    most = limits.small_rows
    small: list[pa.RecordBatch] = []
    small_rows = small_bytes = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        if small and (batch.num_rows >= most or small_rows >= most or small_bytes >= limits.bytes):
            yield from _joined(small, limits)
            small, small_rows, small_bytes = [], 0, 0
        if batch.num_rows >= most:
            yield from _cut(batch, limits)
        else:
            small.append(batch)
            small_rows += batch.num_rows
            small_bytes += batch.nbytes
    yield from _joined(small, limits)


def _cut(batch: pa.RecordBatch, limits: BatchLimits) -> Iterator[pa.RecordBatch]:
    row_bytes = batch.nbytes // batch.num_rows + 1
    step = min(max(limits.bytes // row_bytes, 1), limits.rows)
    for start in range(0, batch.num_rows, step):
        yield batch.slice(start, step)


def _joined(batches: list[pa.RecordBatch], limits: BatchLimits) -> Iterator[pa.RecordBatch]:
    if len(batches) == 1:
        yield from _cut(batches[0], limits)
    elif batches:
        for batch in pa.Table.from_batches(batches).combine_chunks().to_batches():
            yield from _cut(batch, limits)
