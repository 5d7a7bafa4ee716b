"""Turn what a Python caller holds into one stream of Arrow batches of even size and one schema.

    a list of dicts          all rows decide the columns and their types
    an iterator of dicts     the first 4,000 rows (or 8 MiB of them) decide; later ones must fit
    an iterator of tables    the first one decides: record batches, Arrow tables, DataFrames

A key that a row lacks is a null. Of an iterator no more than a few thousand rows are in memory at once.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...errors import DataError, SchemaError, UsageError
from ...format.schema.arrow_types import (
    check_batch,
    common_type,
    fix_of_value,
    has_unit,
    in_unit,
    named_classes,
    storage_column,
    storage_type,
    times_within,
    with_classes,
)
from ...format.wording.hints import Python
from ...format.wording.printable import VALUE_LIMIT, nearest_name, printable
from ..numpy.records import column_of_array

# Name the values of a column that have no common type: which row, which value, and what to do.


CONVERSION_ERRORS: Final = (pa.ArrowException, ValueError, TypeError, OverflowError)

_EXACT: Final = 2**53
"""Up to here every integer is a float64."""

_ROUNDED: Final = "no float64 holds this integer exactly, and other values are float"


def mixed_column_error(
    where: str, name: object, values: Sequence[object], error: BaseException, *, fix: str, first_row: int = 1
) -> SchemaError:
    """Return the error of a column whose Python values pyarrow refused with `error`; None is null.

    `where` is what the data is called; rows count from `first_row`. `fix` ends the message.
    """
    column = f'{where}: column "{printable(name)}"'
    seen: dict[str, tuple[int, object]] = {}
    for row, value in enumerate(values, first_row):
        if value is not None:
            seen.setdefault(type(value).__name__, (row, value))
    odd = _odd_value(values, first_row, set(seen))
    if odd is not None:
        return SchemaError(f"{column}, {odd}; {fix}")
    if len(seen) > 1:
        kinds = ", ".join(f"{printable(kind)} ({_shown(*found)})" for kind, found in seen.items())
        return SchemaError(f"{column} has values of several types: {kinds}; {fix}")
    return SchemaError(f"{column}: {reason_of(error)}; {fix}")


def refuse_rounded_integers(name: str, values: Sequence[object], array: npt.NDArray[np.float64], *, fix: str) -> None:
    """Raise `SchemaError` for integers beyond 2**53 that NumPy rounded, since floats are beside them in a list."""
    if not (np.abs(array) >= _EXACT).any():
        return
    for row, cells in enumerate(np.array(values, object).reshape(len(array), -1), 1):
        for value in cells:
            if isinstance(value, int) and int(float(value)) != value:
                raise SchemaError(f'data: column "{printable(name)}", {_shown(row, value)}: {_ROUNDED}; {fix}')


def reason_of(error: BaseException) -> str:
    return "; ".join(printable(part) for part in error.args) or type(error).__name__


def _odd_value(values: Sequence[object], first_row: int, kinds: set[str]) -> str | None:
    """Return the value that does not fit, where it is not its type that differs from the others'."""
    if kinds == {"int", "float"}:
        for row, value in enumerate(values, first_row):
            if isinstance(value, int) and abs(value) > _EXACT:
                return f"{_shown(row, value)}: {_ROUNDED}"
    if len(kinds) == 1:
        for row, value in enumerate(values, first_row):
            try:
                pa.array([value])
            except CONVERSION_ERRORS as error:
                too_large = isinstance(value, int) and isinstance(error, OverflowError)
                return f"{_shown(row, value)}: {'no int64 holds it' if too_large else reason_of(error)}"
    return None


def _shown(row: int, value: object) -> str:
    start = value[:VALUE_LIMIT] if isinstance(value, str | bytes | list | tuple) else value
    return f"row {row:,}: {printable(repr(start))}"


_CHUNK_ROWS: Final = 4_000
_CHUNK_BYTES: Final = 8 << 20

_NUMBER_BYTES: Final = 8
"""What a value counts that has no length of its own; Python takes more for it."""

Row = Mapping[Any, Any]


def tables_of_rows(rows: Iterator[Row], *, chunk_rows: int = _CHUNK_ROWS) -> Iterator[pa.Table]:
    """Yield rows as tables of at most `chunk_rows`, all of one schema, which the first one decides.

    Raises `SchemaError` where a later row has another column, or a value that the column's type does not hold exactly;
    `DataError` where a key is not a string, or an item is no dict.
    """
    schema, number = None, 1
    for chunk in _chunks(rows, chunk_rows):
        table = _table(chunk, number)
        where = f"rows {number:,} to {number + len(chunk) - 1:,}"
        yield table if schema is None else _fitted(table, schema, where)
        schema, number = schema or table.schema, number + len(chunk)


def tables_of_parts(parts: Iterable[object], as_table: Callable[[object], pa.Table]) -> Iterator[pa.Table]:
    """Yield parts of one data set as tables of one schema, which the first one decides; `as_table` takes one part.

    Raises `SchemaError` where a later part has other columns, or values that a column's type does not hold exactly.
    """
    schema = None
    for number, part in enumerate(parts, 1):
        table = as_table(part)
        yield table if schema is None else _fitted(table, schema, f"part {number:,}")
        schema = schema or table.schema


def array_of_values(values: Any, *, from_pandas: bool | None = None) -> pa.Array:
    """Return Python values as an Arrow array; times of pandas that are in ns make it one of ns.

    Arrow takes them for Python's own datetimes, and cuts their nanoseconds off silently.
    """
    found = pa.array(values, from_pandas=from_pandas)
    if not times_within(found.type) or not any(_is_in_ns(value) for value in values):
        return found
    return pa.array(values, in_unit(found.type, "ns"), from_pandas=from_pandas)


def _is_in_ns(value: object) -> bool:
    if isinstance(value, Mapping):
        return any(map(_is_in_ns, value.values()))
    if isinstance(value, list | tuple):
        return any(map(_is_in_ns, value))
    return getattr(value, "unit", None) == "ns"


def first_of(items: Iterator[Any]) -> tuple[Any, Iterator[Any]]:
    """Return the first item, and an iterator that has it still. Raises `UsageError` where there is none."""
    try:
        first = next(items)
    except StopIteration:
        raise UsageError("data is empty: without a row its columns are not known") from None
    return first, chain([first], items)


def _chunks(rows: Iterator[Row], most: int) -> Iterator[list[Row]]:
    chunk: list[Row] = []
    size = 0
    for row in _checked(rows):
        chunk.append(row)
        size += sum(_size(value) for value in row.values())
        if len(chunk) == most or size >= _CHUNK_BYTES:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def _checked(rows: Iterable[object]) -> Iterator[Row]:
    for number, row in enumerate(rows, 1):
        if not isinstance(row, Mapping):
            raise DataError(f"data: row {number:,} is a {printable(type(row).__name__)}, and the first one is a dict")
        yield row


def _size(value: object) -> int:
    if isinstance(value, str | bytes | bytearray):
        return len(value)
    known = getattr(value, "nbytes", None)
    if isinstance(known, int):
        return known
    return _NUMBER_BYTES * (len(value) if isinstance(value, Sequence) else 1)


def _table(rows: Sequence[Row], first: int) -> pa.Table:
    """Return rows as a table: a column for each key, in the order in which they first appear."""
    names = dict.fromkeys(name for row in rows for name in row)
    for name in names:
        if not isinstance(name, str):
            raise DataError(f"data: the name {printable(name)} is a {type(name).__name__}; names are strings")
    return pa.table({name: _column(name, [row.get(name) for row in rows], first) for name in names})


def _column(name: str, values: list[Any], first: int) -> pa.Array:
    try:
        return array_of_values(values)
    except CONVERSION_ERRORS as error:
        fix = "give the column one type"
        raise mixed_column_error("data", name, values, error, fix=fix, first_row=first) from error


def _fitted(table: pa.Table, schema: pa.Schema, where: str) -> pa.Table:
    new = [name for name in table.column_names if name not in schema.names]
    if new:
        raise _misfit(
            where, new[0], " is new: the first rows decide the columns; give every row all keys (None for no value)"
        )
    columns = []
    for field in schema:
        if field.name not in table.column_names:
            columns.append(pa.nulls(len(table), field.type))
        else:
            columns.append(_fitted_column(table[field.name], field, where))
    return pa.Table.from_arrays(columns, schema=schema)


def _fitted_column(column: pa.ChunkedArray, field: pa.Field, where: str) -> pa.ChunkedArray:
    if column.type.equals(field.type):
        return column
    reason = f"is {column.type}, and {field.type} in the first rows"
    times = has_unit(column.type) and common_type(column.type, field.type) is not None
    if pa.types.is_null(column.type) or times or (_is_numeric(column.type) and _is_numeric(field.type)):
        try:
            return column.cast(field.type)  # checked: what the type does not hold exactly is an error
        except pa.ArrowException as error:
            reason = printable(error)
    raise _misfit(where, field.name, f": {reason}; give the column one type")


def _misfit(where: str, column: str, says: str) -> SchemaError:
    rows = Python("convert(data=list(rows))")
    also = f", or pass a list, whose rows all decide the type: {rows}" if where.startswith("rows") else ""
    return SchemaError(f'data: {where}: column "{printable(column)}"{says}{also}')


def _is_numeric(kind: pa.DataType) -> bool:
    while pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        kind = kind.value_type
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


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
        of_all = isinstance(data, list | tuple)
        tables = iter([_table(list(_checked(items)), 1)]) if of_all else tables_of_rows(items)
        name = "rows"
    elif isinstance(first, pa.RecordBatch | pa.Table) or _is_pandas(first, "DataFrame"):
        tables, name = tables_of_parts(items, _part_table), "tables"
    else:
        raise _not_data(data, f" of {printable(type(first).__name__)}")
    table, tables = first_of(tables)
    return MemoryTable(name, table.schema, (batch for table in tables for batch in table.to_batches()))


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
