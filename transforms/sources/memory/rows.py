"""Turn rows that a Python caller has as dicts, or tables that come one by one, into Arrow batches of one schema.

    a list of dicts          all rows decide the columns and their types
    an iterator of dicts     the first 4,000 rows (or 8 MiB of them) decide; later ones must fit
    an iterator of tables    the first one decides: record batches, Arrow tables, DataFrames

A key that a row lacks is a null. Of an iterator no more than a few thousand rows are in memory at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...errors import DataError, SchemaError, UsageError
from ...format.schema.arrow_checks import common_type, has_unit, in_unit, times_within
from ...format.wording.hints import Python
from ...format.wording.printable import VALUE_LIMIT, printable

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


def table_of_rows(rows: Sequence[Row]) -> pa.Table:
    """Return rows as a table: a column for each key, in the order in which they first appear.

    Raises `SchemaError` where a column's values have no common type, `DataError` where a key is not a string.
    """
    return _table(rows, 1)


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
    for number, row in enumerate(rows, 1):
        if not isinstance(row, Mapping):
            raise DataError(f"data: row {number:,} is a {printable(type(row).__name__)}, and the first one is a dict")
        chunk.append(row)
        size += sum(_size(value) for value in row.values())
        if len(chunk) == most or size >= _CHUNK_BYTES:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def _size(value: object) -> int:
    if isinstance(value, str | bytes | bytearray):
        return len(value)
    known = getattr(value, "nbytes", None)
    if isinstance(known, int):
        return known
    return _NUMBER_BYTES * (len(value) if isinstance(value, Sequence) else 1)


def _table(rows: Sequence[Row], first: int) -> pa.Table:
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
