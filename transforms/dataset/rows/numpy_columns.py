"""Give records as NumPy values: an array for each column of a batch, or the arrays that were stored.

Nothing is copied where Arrow and NumPy hold the same.

column of the batch                   what it becomes
numbers, times, booleans; labels      an array; classes are their numbers; with nulls a `numpy.ma.MaskedArray`
fixed shape (2, 3)                    an array of (rows, 2, 3)
lists of any length                   `Ragged(values, row_splits)`: row i is `values[row_splits[i]:row_splits[i + 1]]`
structs; lists of structs             an array for each field, `NAME/FIELD`; for lists each of them is ragged
text, bytes, decimals                 an array of objects, None where null
`NAME/shape` and `NAME/data`          the arrays `NAME`: (rows, ...) where all have one shape, else an array of objects
pictures, decoded                     likewise: (rows, height, width, channels), else an array of objects

Of lists that may be null, `NAME/present` says which are not. Rows for training are filled: there no array is masked,
each column that may be null has its `NAME/present`, and what is null is NaN, zero, or empty.
"""

from __future__ import annotations

import decimal
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from ...errors import DamageError, SchemaError, UsageError
from ...format.schema.column_types import DEFAULT_UNIT, form_of
from ...format.schema.schema import Feature, Schema
from ...format.wording.printable import printable
from ...pictures.codec import Codec, decode
from ...pictures.facts import ImageProblem
from ...pictures.structure import READABLE_FORMATS, ImageCheck

# Columns of a batch.


Array = npt.NDArray[Any]

PRESENT: Final = "/present"


class Ragged(NamedTuple):
    """Lists of any length, one after the other: row i is `values[row_splits[i]:row_splits[i + 1]]`.

    `values` is an array, or `Ragged` where lists are nested; `row_splits` are int64, one more than rows.
    """

    values: Any
    row_splits: Any


Values = Array | Ragged


@dataclass(frozen=True, slots=True)
class NumpyColumns:
    """How the columns of a batch become arrays. `pictures` are those to decode, `shapes` those of fixed shape."""

    columns: tuple[str, ...] | None
    shapes: Mapping[str, tuple[int, ...]]
    arrays: Mapping[str, ArrayPlan]
    pictures: frozenset[str]

    @classmethod
    def plan(cls, schema: Schema, columns: Sequence[str] | None, *, decode: bool) -> NumpyColumns:
        """Return the plan for the columns that are wanted: those of the source, features, or arrays by their names."""
        if isinstance(columns, str):
            raise UsageError(f'columns is a list of names: ["{printable(columns)}"]')
        pairs = {plan.name: plan for plan in array_plans(schema) if plan.shape_name is not None}
        if columns is not None:
            columns = [part for name in columns for part in _parts(name, pairs)]
            for plan in pairs.values():
                if (plan.data_name in columns) != (plan.shape_name in columns):
                    raise UsageError(f'{printable(plan.data_name)}: ask for the array "{printable(plan.name)}" instead')
        fixed = {feature.name: feature.shape for feature in schema if feature.shape and -1 not in feature.shape}
        pictures = frozenset(feature.name for feature in schema if decode and feature.type == "image")
        arrays = {plan.data_name: plan for plan in pairs.values()}
        return cls(None if columns is None else tuple(columns), fixed, arrays, pictures)

    def read(self, batch: pa.RecordBatch) -> dict[str, Values]:
        """Return the arrays of a batch, which are read-only where they are views of it."""
        found: dict[str, Values] = {}
        shapes = {plan.shape_name for plan in self.arrays.values()}
        for field, column in zip(batch.schema, batch.columns, strict=True):
            name = field.name
            if name in self.arrays:
                plan = self.arrays[name]
                found[plan.name] = stacked(ArrayReader((plan,)).column(plan, batch, "the batch", 1))
            elif name in self.pictures and types.is_binary(column.type):
                found[name] = stacked(decode_pictures(name, column.to_pylist()))
            elif name not in shapes:
                if field.nullable and _is_list(column.type) and name not in self.shapes:
                    found[name + PRESENT] = _validity(column)
                found.update(_converted(name, column, self.shapes.get(name)))
        return found

    def read_filled(self, batch: pa.RecordBatch) -> dict[str, Values]:
        found = self.read(batch)
        shapes = {plan.shape_name for plan in self.arrays.values()}
        fills: dict[str, object] = {}
        for field, column in zip(batch.schema, batch.columns, strict=True):
            if field.name in shapes:
                continue
            name = self.arrays[field.name].name if field.name in self.arrays else field.name
            for inner, present in _presents(name, column, may_be_null=field.nullable):
                found.setdefault(inner, present)
            fills |= _fills(name, field.type)
        return {name: _filled(values, fills.get(name)) for name, values in found.items()}


def joined_columns(parts: Sequence[Mapping[str, Values]]) -> dict[str, Values]:
    """Return the arrays of several batches, of which there is at least one, one after the other."""
    if len(parts) == 1:
        return dict(parts[0])
    return {name: _joined([part[name] for part in parts]) for name in parts[0]}


def _joined(parts: Sequence[Values]) -> Values:
    ragged = [part for part in parts if isinstance(part, Ragged)]
    if ragged:
        ends = np.cumsum([0, *(part.row_splits[-1] for part in ragged)])
        splits = [part.row_splits[1:] + end for part, end in zip(ragged, ends[:-1], strict=True)]
        return Ragged(_joined([part.values for part in ragged]), np.concatenate([[0], *splits]).astype(np.int64))
    arrays = [part for part in parts if isinstance(part, np.ndarray)]
    if len({(array.shape[1:], array.dtype) for array in arrays}) > 1:
        return objects([value for array in arrays for value in array])
    if not any(isinstance(array, np.ma.MaskedArray) for array in arrays):
        return np.concatenate(arrays)
    mask = np.concatenate([np.ma.getmaskarray(array) for array in arrays])
    return np.ma.masked_array(np.concatenate([np.ma.getdata(array) for array in arrays]), mask)


def stacked(arrays: Sequence[Array | None]) -> Array:
    """Return arrays of one shape and dtype as one, and others as an array of objects, where None stays None."""
    first = arrays[0] if arrays else None
    if first is not None and all(a is not None and (a.shape, a.dtype) == (first.shape, first.dtype) for a in arrays):
        return np.stack([array for array in arrays if array is not None])
    return objects(arrays)


def objects(values: Sequence[Any]) -> Array:
    found = np.empty(len(values), object)
    for at, value in enumerate(values):  # at once, arrays of one shape would become an array of more axes
        found[at] = value
    return found


def _parts(name: str, pairs: Mapping[str, ArrayPlan]) -> tuple[str, ...]:
    if name not in pairs:
        return (name,)
    plan = pairs[name]
    assert plan.shape_name is not None
    return plan.shape_name, plan.data_name


def _is_list(kind: pa.DataType) -> bool:
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_map(kind))


def _validity(column: pa.Array) -> Array:
    if not column.null_count:
        return np.ones(len(column), bool)
    return np.asarray(column.is_valid().to_numpy(zero_copy_only=False))


def _converted(name: str, column: pa.Array, shape: tuple[int, ...] | None = None) -> Iterator[tuple[str, Values]]:
    kind = column.type
    if types.is_map(kind):
        column = _entries(column)
        kind = column.type
    if types.is_struct(kind):
        for field, child in zip(kind, column.flatten(), strict=True):
            yield from _converted(f"{name}/{field.name}", child)
    elif types.is_fixed_size_list(kind) or (shape is not None and _is_list(kind)):
        yield name, _fixed(column, shape)
    elif _is_list(kind):
        values, splits = _lists(column)
        yield from ((inner, Ragged(found, splits)) for inner, found in _converted(name, values))
    else:
        yield name, _flat(column)


def _entries(column: pa.Array) -> pa.Array:
    pairs = pa.StructArray.from_arrays([column.keys, column.items], ["key", "value"])
    return pa.Array.from_buffers(
        pa.list_(pairs.type), len(column), column.buffers()[:2], offset=column.offset, children=[pairs]
    )


def _lists(column: pa.Array) -> tuple[pa.Array, Array]:
    """Return the values of lists, and where each list begins and the last one ends; a null list is empty."""
    if column.null_count:
        sizes = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False)
        splits = np.concatenate(([0], np.cumsum(sizes, dtype=np.int64)))
        return column.flatten(), splits
    offsets = column.offsets.to_numpy()
    return column.flatten(), (offsets - offsets[0]).astype(np.int64)


def _fixed(column: pa.Array, shape: tuple[int, ...] | None) -> Array:
    """Return lists of one length as an array of (rows, *shape), masked where a row is null."""
    kind = column.type
    if not types.is_fixed_size_list(kind):  # very long ones are plain lists
        lengths = shape or ()
        if column.null_count:
            return objects([None if v is None else np.asarray(v).reshape(lengths) for v in column.to_pylist()])
        return np.asarray(_flat(column.flatten())).reshape(len(column), *lengths)
    size = kind.list_size
    values = _flat(column.values.slice(column.offset * size, len(column) * size))
    found = values.reshape(len(column), *(shape or (size,)))
    if not column.null_count or found.dtype == object:
        return found
    mask = np.broadcast_to(~_validity(column).reshape(-1, *[1] * (found.ndim - 1)), found.shape)
    return np.ma.masked_array(np.ma.getdata(found), mask)


def _flat(column: pa.Array) -> Array:
    kind = column.type
    if types.is_dictionary(kind):
        column, kind = column.indices, kind.index_type
    dtype = numpy_type_of(kind)
    if dtype is None:
        is_text = types.is_string(kind) or types.is_binary(kind)
        return np.asarray(column.to_numpy(zero_copy_only=False)) if is_text else objects(column.to_pylist())
    if types.is_boolean(kind):
        found = np.asarray((column.fill_null(False) if column.null_count else column).to_numpy(zero_copy_only=False))
    else:
        data = column.buffers()[1]
        width = dtype.itemsize if not types.is_date32(kind) and not types.is_time32(kind) else 4
        stored = np.dtype("<i4") if width == 4 and dtype.kind in "mM" else dtype
        found = np.frombuffer(data, stored, len(column), column.offset * width) if data else np.empty(0, stored)
        if stored != dtype:
            found = found.astype(np.int64).view(dtype)
    return np.ma.masked_array(found, ~_validity(column)) if column.null_count else found


def numpy_type_of(kind: pa.DataType) -> np.dtype[Any] | None:
    if types.is_date32(kind):
        return np.dtype("datetime64[D]")
    if types.is_date64(kind):
        return np.dtype("datetime64[ms]")
    if types.is_timestamp(kind):
        return np.dtype(f"datetime64[{kind.unit}]")
    if types.is_time(kind) or types.is_duration(kind):
        return np.dtype(f"timedelta64[{kind.unit}]")
    if types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind):
        found: np.dtype[Any] = np.dtype(kind.to_pandas_dtype())
        return found
    return None


def _presents(name: str, column: pa.Array, *, may_be_null: bool) -> Iterator[tuple[str, Array]]:
    """Yield which rows have a column, where they may lack it, and each field of a struct likewise."""
    if may_be_null:
        yield name + PRESENT, _validity(column)
    if types.is_struct(column.type):
        for field, child in zip(column.type, column.flatten(), strict=True):
            yield from _presents(f"{name}/{field.name}", child, may_be_null=may_be_null or field.nullable)


def _fills(name: str, kind: pa.DataType) -> dict[str, object]:
    if types.is_map(kind):
        return _fills(f"{name}/key", kind.key_type) | _fills(f"{name}/value", kind.item_type)
    if types.is_struct(kind):
        return {key: fill for field in kind for key, fill in _fills(f"{name}/{field.name}", field.type).items()}
    if _is_list(kind) or types.is_fixed_size_list(kind):
        return _fills(name, kind.value_type)
    return {name: _fill_of(kind)}


def _fill_of(kind: pa.DataType) -> object:
    if types.is_string(kind) or types.is_large_string(kind):
        return ""
    if types.is_decimal(kind):
        return decimal.Decimal(0)
    return b"" if types.is_binary(kind) or types.is_large_binary(kind) else None


def _filled(values: Values, fill: object) -> Values:
    if isinstance(values, Ragged):
        return Ragged(_filled(values.values, fill), values.row_splits)
    if isinstance(values, np.ma.MaskedArray):
        return np.asarray(values.filled(np.nan if values.dtype.kind == "f" else np.zeros(1, values.dtype)[0]))
    if values.dtype == object and fill is not None:
        return objects([fill if value is None else value for value in values])
    return values


_CHECK: Final = ImageCheck("header", READABLE_FORMATS, pixels_limit=1 << 30, loads_others=False)


def decode_pictures(name: str, pictures: Sequence[bytes | None]) -> list[npt.NDArray[Any] | None]:
    """Return the pixels of the pictures of the feature `name`: height x width x channels, uint8, or uint16 of 16 bits.

    A picture has 1 (gray), 2, 3 (RGB) or 4 channels, as it is stored: neither is its EXIF orientation applied, nor are
    its colours changed; but CMYK becomes RGB, and a palette the colours that are in it. None stays None.
    """
    codec = Codec.installed()
    return [None if picture is None else _decode(name, row, picture, codec) for row, picture in enumerate(pictures)]


def _decode(name: str, row: int, picture: bytes, codec: Codec) -> npt.NDArray[Any]:
    try:
        facts = _CHECK.check(picture)
        return np.asarray(decode(picture, facts, codec, (facts.width, facts.height), gray=False)[0])
    except ImageProblem as problem:
        raise DamageError(f'feature "{printable(name)}", picture {row + 1} of the batch: {problem}') from problem


# Records as NumPy arrays: the arrays that features stand for, and what a caller counts on of them.
#
# emb/shape  [2, 3]         ─┐
# emb/data   24 bytes, "<f4" ─┴─▶  "emb": float32 of shape (2, 3)
# grid       6 values, (2, 3) ──▶  "grid": int16 of shape (2, 3)
# stops      any number       ──▶  "stops": int64 of shape (n,)
# taken      1 value          ──▶  "taken": datetime64[us] of shape ()


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
