"""Any Arrow column as plain feature values: what the encoder writes, and the cells that it must not.

    pa.Array ──storage, dictionary values──▶ list layout ──▶ flat values ──▶ FeatureColumn
               (of any supported type)        offsets          │             int64[], float32[] or views
                                              presence         └──▶ problems: rows that have no exact feature

Every value is exact or a problem; only float64 is narrowed, and reported.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import types

from ...errors import SchemaError
from ..buffers.arrow_memory import valid_mask
from ..flow.blocks import Narrowing
from ..flow.feature_values import FeatureColumn
from ..flow.rejects import CellError, CellProblem
from ..schema.column_types import Form, form_of
from ..schema.schema import Feature, Schema
from ..wording.hints import set_column
from ..wording.printable import printable
from .bytes import bytes_values
from .lists import Cells, cells_of
from .numbers import BadValues, float_values, int64_values

DEFAULT_FIELD_BYTES: Final = 64 << 20


@dataclass(frozen=True, slots=True, eq=False)
class Conversion:
    """A column, what is wrong with it by row, and what its float64 values lost."""

    column: FeatureColumn
    problems: tuple[CellProblem, ...] = ()
    narrowing: Narrowing | None = None


def columns_of(batch: pa.RecordBatch, schema: Schema, names: Collection[str]) -> dict[str, FeatureColumn]:
    """Return some features of existing records, whose batch is of the schema, by name."""
    wanted = (feature for feature in schema if feature.name in names)
    return {feature.name: feature_column(batch[feature.name], feature).column for feature in wanted}


def feature_column(
    array: pa.Array,
    feature: Feature,
    *,
    excused: Collection[int] = (),
    field_bytes_limit: int = DEFAULT_FIELD_BYTES,
) -> Conversion:
    """Return the values of one feature from an Arrow array of any supported type, with any offset.

    `excused` are rows whose cell is known to be bad, and is null for that reason. There is at most one problem a row.
    Raises `SchemaError` where the array's type or shape is not that of the feature.
    """
    cells = cells_of(array, feature)
    form = form_of(feature)
    _check_type(cells.values.type, feature, form)
    bad: list[BadValues] = []
    narrowing = None
    buffers: tuple[pa.Buffer, ...] = ()
    values: npt.NDArray[Any]
    written = cells.values
    if form.write is not None and not types.is_null(written.type):
        written = form.write(written)
    if types.is_null(written.type):
        values = np.zeros(
            len(cells.values), {"int64": np.int64, "float": np.float32, "bytes": np.complex128}[feature.kind]
        )
    elif feature.kind == "int64":
        values, bad = int64_values(written, feature)
    elif feature.kind == "float":
        values, bad, narrowing = float_values(written, feature)
    else:
        values, buffers, bad = bytes_values(written, feature, field_bytes_limit)
    column = FeatureColumn(feature.name, feature.kind, values, buffers, cells.offsets, cells.present)
    problems = tuple(_problems(cells, feature, bad, excused))
    return Conversion(column, problems, narrowing)


def absent_column(feature: Feature, rows: int, *, excused: Collection[int] = ()) -> Conversion:
    return feature_column(pa.nulls(rows), feature, excused=excused)


def _check_type(scalar: pa.DataType, feature: Feature, form: Form) -> None:
    if not (form.takes(scalar) or types.is_null(scalar)):
        raise SchemaError(
            f'column "{printable(feature.name)}": the batch holds {scalar}, '
            f"but the schema has {feature.type} as {feature.kind} list"
        )


def _problems(cells: Cells, feature: Feature, bad: list[BadValues], excused: Collection[int]) -> Iterator[CellProblem]:
    """Yield at most one problem a row, of a list its first; none of `excused` rows, whose cell is known to be bad."""
    by_row: dict[int, CellError] = {}
    if cells.offsets is not None and cells.values.null_count:
        bad = [_null_values(cells.values, feature), *bad]
    for values in bad:
        for position in values.positions.tolist():
            row = cells.row_of(position)
            if row not in excused:
                by_row.setdefault(row, values.error(feature.name, position))
    if cells.present is not None and not feature.nullable:
        for row in np.flatnonzero(~cells.present).tolist():
            if row not in excused:
                by_row.setdefault(row, _not_null_error(feature))
    for row in sorted(by_row):
        yield CellProblem(row, by_row[row])


def _null_values(values: pa.Array, feature: Feature) -> BadValues:
    valid = valid_mask(values)
    positions = np.zeros(0, np.int64) if valid is None else np.flatnonzero(~valid)
    return BadValues(
        positions, "NULL_IN_LIST", feature.type, lambda _: "null", "is in a list; fill or drop nulls before"
    )


def _not_null_error(feature: Feature) -> CellError:
    return CellError(
        feature.name,
        "DECLARED_NOT_NULL",
        "null",
        feature.type,
        f"null, but the schema says that it never is; declare it: {set_column(feature.name, 'nullable', 'true')}",
        "null, but the dataset's schema says that it never is: give it a value",
    )
