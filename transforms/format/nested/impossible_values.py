"""Find values that their own type does not have: decimals of more digits than it, times of a day of 24 hours or more.

Files hold them, since a decimal and a time are stored as plain integers, and Arrow refuses a whole batch for one of
them. The rest of the batch is sound, so such a value is a problem of its row.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import pyarrow as pa
from pyarrow import types

from ..buffers.views import I64
from ..columns.lists import lists_of
from ..flow.rejects import CellError, CellProblem
from ..schema.arrow_checks import check_batch
from ..wording.printable import printable
from .flatten import as_lists, stored
from .keys import is_any_list

_SECONDS: Final = 86_400
_TICKS: Final = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_BITS: Final = ((128, 38), (256, 76))
"""The decimals that Parquet and Arrow have, and the most digits of each."""


def checked_batch(batch: pa.RecordBatch) -> tuple[pa.RecordBatch, tuple[CellProblem, ...]]:
    """Return a batch with null in each impossible cell, and the problems. Raises `pa.ArrowInvalid` if unsound."""
    try:
        check_batch(batch)
    except pa.ArrowInvalid:
        check_batch(batch, as_numbers=True)
    else:
        return batch, ()
    columns, problems = [], list[CellProblem]()
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        errors: dict[int, CellError] = {}
        for row, path, value, expected, text in _impossible(name, column, np.arange(len(column))):
            where = "" if path == name else f'"{printable(path)}": '
            error = CellError(name, "BAD_TYPE", value, expected, f"{where}{value} is not {expected}, {text}")
            errors.setdefault(row, error)  # a cell has one problem: of a list, its first
        problems += [CellProblem(row, error) for row, error in errors.items()]
        columns.append(_without(column, list(errors)) if errors else column)
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names), tuple(problems)


def _without(column: pa.Array, rows: list[int]) -> pa.Array:
    null = np.zeros(len(column), np.bool_)
    null[rows] = True
    return column.take(pa.array(np.arange(len(column)), pa.int64(), mask=null))


def _impossible(path: str, array: pa.Array, rows: I64) -> Iterator[tuple[int, str, str, str, str]]:
    """Yield the row, the path, the value of each impossible one, what is expected, and the fix; `rows` are theirs."""
    array = stored(array)
    kind = array.type
    if types.is_struct(kind):
        for child, values in zip(kind, array.flatten(), strict=True):
            yield from _impossible(f"{path}/{child.name}", values, rows)
    elif is_any_list(kind) or types.is_map(kind):
        cells = lists_of(as_lists(array))
        assert cells.offsets is not None
        yield from _impossible(path, cells.values, np.repeat(rows, np.diff(cells.offsets)))
    elif types.is_decimal(kind):
        expected = f"a value of decimal({kind.precision}, {kind.scale})"
        for row, value in zip(rows.tolist(), array.to_pylist(), strict=True):
            digits = 0 if value is None else len(value.as_tuple().digits)
            if digits > kind.precision:
                yield row, path, format(value, "f"), expected, _wider(digits, kind)
    elif types.is_time(kind):
        text = f"the type of its column (from 0 to less than 24 hours); correct it, or write duration[{kind.unit}]"
        ticks = array.cast(pa.int32() if types.is_time32(kind) else pa.int64()).fill_null(0)
        numbers = np.asarray(ticks).astype(np.int64)
        for at in np.flatnonzero((numbers < 0) | (numbers >= _SECONDS * _TICKS[kind.unit])).tolist():
            yield int(rows[at]), path, f"{numbers[at]} {kind.unit}", "a time of day", text


def _wider(digits: int, kind: pa.DataType) -> str:
    bits = next((bits for bits, most in _BITS if digits <= most), None)
    wider = "text" if bits is None else f"decimal{bits}({digits}, {kind.scale}) or wider"
    return f"the type of its column: it has {digits} digits; write the column as {wider}"
