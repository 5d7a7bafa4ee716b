"""Hold batches to the columns that were planned, before the steps and after: a schema is fixed before the first row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import pyarrow as pa

from ..errors import RunError
from ..format.columns.lists import cast_lists
from ..format.flow.rows import Rows
from ..format.nested.fit_times import fit_times
from ..format.schema.arrow_types import is_list
from ..format.schema.column_types import is_binary, is_string
from ..format.wording.printable import printable
from .step import Column


def is_untyped(kind: pa.DataType) -> bool:
    """Return whether a type is that of nulls, or of lists of nothing else: what `pa.array([])` has."""
    return bool(pa.types.is_null(kind) or (is_list(kind) and is_untyped(kind.value_type)))


def as_surveyed(rows: Rows, fields: pa.Schema) -> Rows:
    """Return a batch whose columns have the types of the survey: those of one file may be narrower, or null.

    A time that has no exact number of the surveyed unit is a problem of its row.
    """
    batch, problems = rows.batch, list(rows.problems)
    wanted = [fields.field(name).type for name in batch.schema.names]
    if batch.schema.types == wanted:
        return rows
    arrays = []
    for name, column, kind in zip(batch.schema.names, batch.columns, wanted, strict=True):
        fitted, found = fit_times(name, column, kind)
        arrays.append(fitted if fitted.type == kind else cast_lists(fitted, kind))
        problems += found
    return replace(rows, batch=pa.RecordBatch.from_arrays(arrays, names=batch.schema.names), problems=tuple(problems))


def as_planned(batch: pa.RecordBatch, planned: Mapping[str, Column], file: str) -> pa.RecordBatch:
    """Return a batch whose columns have the planned types, where these hold the values as they are.

    Raises `RunError` where columns are missing, new, or of another type.
    """
    where = f" in rows of {file}" if file else ""
    names = batch.schema.names
    if len(names) != len(planned) or set(names) != set(planned):
        raise RunError(f"map: the columns are {_shown(names)}{where}, and {_shown(planned)} were planned")
    arrays = []
    for name, array in zip(names, batch.columns, strict=True):
        column = planned[name]
        wanted = array.type if column.origin is not None else column.field.type
        if array.type != wanted:
            try:
                array = array.cast(wanted) if _holds(wanted, array.type) else None
            except pa.ArrowInvalid:
                array = None
            if array is None:
                raise RunError(
                    f'map: column "{printable(name)}" is {batch[name].type}{where}, and {wanted} was planned '
                    f"({column.reason}); give every batch the same types, as in pa.array(values, pa.int64())"
                )
        arrays.append(array)
    return pa.RecordBatch.from_arrays(arrays, names=names)


def _holds(wanted: pa.DataType, kind: pa.DataType) -> bool:
    """Return whether a type can hold the values of another unchanged, or a cast says that it does not."""
    if pa.types.is_dictionary(kind):
        return _holds(wanted, kind.value_type)
    if is_list(wanted) and is_list(kind):
        return _holds(wanted.value_type, kind.value_type)
    return bool(
        kind == wanted
        or pa.types.is_null(kind)
        or (pa.types.is_integer(kind) and pa.types.is_integer(wanted))
        or (pa.types.is_floating(kind) and pa.types.is_floating(wanted) and kind.bit_width <= wanted.bit_width)
        or (is_string(kind) and is_string(wanted))
        or (is_binary(kind) and is_binary(wanted))
    )


def _shown(names: Iterable[str]) -> str:
    return ", ".join(f'"{printable(name)}"' for name in names)
