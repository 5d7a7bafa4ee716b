"""Give the batches of files whose columns differ the columns of all of them, where they are read as one table.

    a.parquet  id: int64  x: int32                  id: int64  x: double  y: string
    b.parquet             x: double  y: string      null       x: double  y: string

An integer becomes a float where that is exact: up to 2**53 for double, which holds all integers of 32 bits.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...format.buffers.arrow_memory import raw_values, valid_mask
from ...format.flow.rejects import CellError, CellProblem
from ...format.flow.rows import Rows
from ...format.schema.arrow_types import is_list
from ..contract.source import Frozen, UnitedFrozen

_EXACT: Final = 1 << 53
"""Every integer up to here has a float64 of its own."""

_WIDEST: Final = 64


def as_united(rows: Rows, frozen: Frozen) -> Rows:
    """Return a batch of one file with the columns of all files: null where it has none, and floats for integers."""
    if not isinstance(frozen, UnitedFrozen):
        return rows
    batch = rows.batch
    own = dict(zip(batch.schema.names, batch.columns, strict=True))
    arrays: list[pa.Array] = []
    problems = list(rows.problems)
    for one in frozen.fields:
        if one.name not in own:
            arrays.append(pa.nulls(batch.num_rows, one.type))
            continue
        array, found = _promoted(own[one.name], one)
        arrays.append(array)
        problems += found
    united = pa.RecordBatch.from_arrays(arrays, names=frozen.fields.names)
    return replace(rows, batch=united, problems=tuple(sorted(problems, key=lambda problem: problem.row)))


def _promoted(column: pa.Array, wanted: pa.Field) -> tuple[pa.Array, list[CellProblem]]:
    """Return a column with floats for integers, or of its type where it has none, and the integers that are no float.

    Other types stay as the file has them: what is encoded of them is the same.
    """
    kind = column.type
    if not _must_change(kind, wanted.type):
        return column, []
    wide = pa.types.is_integer(kind) and kind.bit_width == _WIDEST
    if not wide:
        return column.cast(wanted.type), []
    signed = pa.types.is_signed_integer(kind)
    raw = raw_values(column, np.int64 if signed else np.uint64)
    far = (raw > _EXACT) | (raw < -_EXACT) if signed else raw > _EXACT
    valid = valid_mask(column)
    rows = np.flatnonzero(far if valid is None else far & valid)
    problems = [_not_exact(int(row), int(raw[row]), wanted) for row in rows]
    if problems:
        column = pc.if_else(pa.array(far), pa.scalar(None, kind), column)
    return column.cast(wanted.type), problems


def _must_change(kind: pa.DataType, wanted: pa.DataType) -> bool:
    if pa.types.is_null(kind):
        return not pa.types.is_null(wanted)
    if pa.types.is_integer(kind):
        return bool(pa.types.is_floating(wanted))
    both_lists = all(is_list(one) or pa.types.is_fixed_size_list(one) for one in (kind, wanted))
    return both_lists and _must_change(kind.value_type, wanted.value_type)


def _not_exact(row: int, value: int, wanted: pa.Field) -> CellProblem:
    text = (
        f"{value} is not exact as {wanted.type}, the type of the column in another file; write it with one type in all "
        "files, or convert them apart"
    )
    return CellProblem(row, CellError(wanted.name, "PRECISION_LOSS", str(value), str(wanted.type), text))
