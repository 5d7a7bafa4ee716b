"""Records as NumPy arrays: the arrays that features stand for, and what a caller counts on of them.

emb/shape  [2, 3]         ─┐
emb/data   24 bytes, "<f4" ─┴─▶  "emb": float32 of shape (2, 3)
grid       6 values, (2, 3) ──▶  "grid": int16 of shape (2, 3)
stops      any number       ──▶  "stops": int64 of shape (n,)
taken      1 value          ──▶  "taken": datetime64[us] of shape ()
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...errors import DamageError, SchemaError, UsageError
from ...format.schema.column_types import DEFAULT_UNIT, form_of
from ...format.schema.schema import Feature, Schema
from ...format.wording.printable import printable

_MAX_RANK: Final = 64
"""NumPy's own limit."""

_LONGEST_AXIS: Final = 2**31
"""Beside an axis of length 0 any other length is right by the count of bytes; NumPy refuses what is far over this."""

_Array = np.ndarray
_Column = list["_Array | None"]


@dataclass(frozen=True, slots=True)
class ArrayPlan:
    """One array of a record: its name, dtype and rank (None where the schema does not say), and its features.

    `shape_name` is None where the values of the feature are the array's elements, else `data_name` holds raw bytes.
    """

    name: str
    dtype: np.dtype
    rank: int | None
    data_name: str
    shape_name: str | None
    shape: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ArrayReader:
    """Turns decoded batches into one dict of arrays for each record."""

    plans: tuple[ArrayPlan, ...]

    @property
    def features(self) -> list[str]:
        return [name for plan in self.plans for name in (plan.data_name, plan.shape_name) if name is not None]

    @classmethod
    def plan(
        cls,
        schema: Schema,
        columns: Sequence[str] | None,
        dtypes: Mapping[str, npt.DTypeLike],
        ranks: Mapping[str, int],
    ) -> ArrayReader:
        known = {plan.name: plan for plan in array_plans(schema)}
        for name in (*(columns or ()), *dtypes, *ranks):
            if name not in known:
                choices = ", ".join(json.dumps(choice) for choice in known) or "none"
                raise UsageError(
                    f'feature "{printable(name)}" is not an array of numbers or times; arrays are: {choices}'
                )
        for name, dtype in dtypes.items():
            _check_dtype(known[name], np.dtype(dtype))
        for name, rank in ranks.items():
            _check_rank(known[name], rank)
        return cls(tuple(known.values() if columns is None else (known[name] for name in columns)))

    def read(self, batch: pa.RecordBatch, place: str, first_record: int) -> Iterator[dict[str, _Array]]:
        """Yield the arrays of each record of a batch; they are read-only views of it.

        `place` is the printable name of the shard, and `first_record` the number of the batch's first record in it.
        """
        columns = [(plan.name, self.column(plan, batch, place, first_record)) for plan in self.plans]
        for row in range(batch.num_rows):
            yield {name: array for name, values in columns if (array := values[row]) is not None}

    def column(self, plan: ArrayPlan, batch: pa.RecordBatch, place: str, first_record: int) -> _Column:
        """Return one array of each record, None where it is absent; takes what `read` does."""
        data = batch.column(plan.data_name)
        if plan.shape_name is None:
            return _value_arrays(plan, data)
        shapes = batch.column(plan.shape_name)
        arrays: _Column = []
        for row, (shape, value) in enumerate(zip(shapes, data, strict=True)):
            if not shape.is_valid and not value.is_valid:
                arrays.append(None)
                continue
            where = f'{place} record {first_record + row}: feature "{printable(plan.name)}"'
            if not (shape.is_valid and value.is_valid):
                raise DamageError(f"{where}: only one of its shape and its data is there")
            arrays.append(_restored(plan, shape.as_py(), value.as_buffer(), where))
        return arrays


def array_plans(schema: Schema) -> Iterator[ArrayPlan]:
    features = {feature.name: feature for feature in schema}
    for feature in schema:
        if feature.type == "array_data":
            name, shape_name = _pair_names(feature.name)
            if shape_name in features and feature.dtype is not None:
                yield ArrayPlan(name, np.dtype(feature.dtype), feature.rank, feature.name, shape_name)
        elif (dtype := _dtype(feature)) is not None:
            yield ArrayPlan(feature.name, dtype, len(feature.shape), feature.name, None, feature.shape)


def _pair_names(data_name: str) -> tuple[str, str]:
    folder = data_name.removesuffix("data")
    return folder.removesuffix("/"), folder + "shape"


def _dtype(feature: Feature) -> np.dtype | None:
    dtype = form_of(feature).numpy
    return None if dtype is None else np.dtype(dtype.format(unit=feature.unit or DEFAULT_UNIT))


def _check_dtype(plan: ArrayPlan, asked: np.dtype) -> None:
    if asked != plan.dtype:
        raise SchemaError(
            f'feature "{printable(plan.name)}": asked for dtype {asked} ({asked.str}), its arrays are {plan.dtype} '
            f"({plan.dtype.str}): ask for that, and convert with astype"
        )


def _check_rank(plan: ArrayPlan, asked: int) -> None:
    if plan.rank is not None and asked != plan.rank:
        raise SchemaError(
            f'feature "{printable(plan.name)}": asked for rank {asked}, its arrays have rank {plan.rank}: '
            f"ask for that, and convert with reshape"
        )


def _restored(plan: ArrayPlan, shape: list[int], data: pa.Buffer, where: str) -> _Array:
    if len(shape) > _MAX_RANK:
        raise DamageError(f"{where}: its shape has {len(shape)} axes; arrays have {_MAX_RANK} at most")
    wanted = math.prod(shape) * plan.dtype.itemsize
    if min(shape, default=0) < 0 or wanted != data.size or max(shape, default=0) > _LONGEST_AXIS:
        raise DamageError(f"{where}: {data.size} bytes do not fill shape {shape} of {plan.dtype}, which takes {wanted}")
    if plan.rank is not None and len(shape) != plan.rank:
        raise DamageError(f"{where}: its shape {shape} has rank {len(shape)}, the schema states {plan.rank}")
    return np.frombuffer(data, plan.dtype).reshape(shape)


def _value_arrays(plan: ArrayPlan, column: pa.Array) -> _Column:
    dense = column.drop_null()
    present: Iterator[_Array]
    if plan.shape == (-1,):
        values = _numbers(dense.values, plan.dtype)
        ends = dense.offsets.to_numpy()
        present = (values[start:end] for start, end in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True))
    else:
        values = _numbers(dense.flatten() if plan.shape else dense, plan.dtype)
        present = iter(values.reshape(len(dense), *plan.shape))
        if not plan.shape:
            present = (np.asarray(value) for value in values)
    return [next(present) if valid else None for valid in column.is_valid().to_pylist()]


def _numbers(values: pa.Array, dtype: np.dtype) -> _Array:
    """Return flat values without nulls as NumPy has them; times by way of their numbers, as not all have a twin."""
    if dtype.kind in "mM":
        stored = pa.int32() if values.type.bit_width == 32 else pa.int64()
        return np.asarray(values.view(stored)).astype(np.int64).view(dtype)
    return np.asarray(values.to_numpy(zero_copy_only=False))
