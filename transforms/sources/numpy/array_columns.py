"""Turn a NumPy array whose first axis is the row into an Arrow column."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...errors import SchemaError
from ...format.wording.printable import printable

_ARROW_UNITS: Final = {"M": ("D", "s", "ms", "us", "ns"), "m": ("s", "ms", "us", "ns")}


def column_type(name: str, dtype: npt.DTypeLike, shape: tuple[int, ...]) -> pa.DataType:
    """Return the Arrow type of a column whose rows have this dtype and shape (`()` for a scalar).

    One axis becomes a fixed-size list, more become a tensor, whose type keeps their sizes. Raises `SchemaError` where
    no feature can hold such rows.
    """
    value = _value_type(name, np.dtype(dtype))
    if not shape:
        return value
    if 0 in shape:
        raise SchemaError(f'column "{printable(name)}": rows of shape {shape} hold no values; leave the column out')
    size = int(np.prod(shape))
    if size >= 2**31:
        raise SchemaError(f'column "{printable(name)}": a row of shape {shape} has over 2**31 values')
    return pa.list_(value, size) if len(shape) == 1 else pa.fixed_shape_tensor(value, shape)


def column_of_array(name: str, array: npt.NDArray[Any]) -> pa.Array:
    """Return the rows of an array, of at least one axis, as an Arrow column; native C-ordered numbers are not copied.

    Big-endian and Fortran-ordered arrays are converted. NaN stays a value, NaT is a null. Raises `SchemaError` where no
    feature can hold such rows.
    """
    kind = column_type(name, array.dtype, array.shape[1:])
    flat = np.ascontiguousarray(array, array.dtype.newbyteorder("=")).reshape(-1)
    values = _values(name, flat)
    if array.ndim == 1:
        return values
    lists = pa.FixedSizeListArray.from_arrays(values, int(np.prod(array.shape[1:])))
    return pa.ExtensionArray.from_storage(kind, lists) if isinstance(kind, pa.BaseExtensionType) else lists


def _value_type(name: str, dtype: np.dtype[Any]) -> pa.DataType:
    where = f'column "{printable(name)}": dtype {printable(dtype)}'
    if dtype.kind in "Mm":
        unit, step = np.datetime_data(dtype)
        if unit not in _ARROW_UNITS[dtype.kind] or step != 1:
            choices = ", ".join(_ARROW_UNITS[dtype.kind])
            raise SchemaError(f"{where} has no feature; convert its unit to one of {choices}")
    elif dtype.kind in "US":
        return pa.string() if dtype.kind == "U" else pa.binary()
    elif dtype.kind not in "biuf" or dtype.char == "g":
        fix = "split it into real and imaginary parts" if dtype.kind == "c" else "convert it with astype"
        raise SchemaError(f"{where} has no feature in a table; {fix}")
    return pa.from_numpy_dtype(dtype.newbyteorder("="))


def _values(name: str, flat: npt.NDArray[Any]) -> pa.Array:
    """Out of buffers: `pa.array` imports pandas (1.4 s of CPU) to ask whether it was given a Series."""
    if flat.dtype.kind == "U":
        _check_text(name, flat.view(np.uint32))
    if flat.dtype.kind in "US":
        # Through Python: Arrow takes the fixed-width cells for C strings, and cuts them at the first NUL.
        return pa.array(flat.tolist(), _value_type(name, flat.dtype))
    kind, validity, nulls = _value_type(name, flat.dtype), None, 0
    if flat.dtype.kind in "Mm":
        missing = np.isnat(flat)
        nulls = int(missing.sum())
        validity = _bits(~missing) if nulls else None
        flat = _days(name, flat, missing) if pa.types.is_date32(kind) else flat.view(np.int64)
    data = _bits(flat) if flat.dtype.kind == "b" else pa.py_buffer(flat)
    return pa.Array.from_buffers(kind, len(flat), [validity, data], null_count=nulls)


def _check_text(name: str, codes: npt.NDArray[np.uint32]) -> None:
    bad = np.flatnonzero((codes > 0x10FFFF) | ((codes >= 0xD800) & (codes <= 0xDFFF)))
    if len(bad):
        raise SchemaError(
            f'column "{printable(name)}": {int(codes[bad[0]]):#x} is no Unicode character; save the text again'
        )


def _days(name: str, dates: npt.NDArray[Any], missing: npt.NDArray[np.bool_]) -> npt.NDArray[np.int32]:
    days = np.where(missing, 0, dates.view(np.int64))
    if days.size and (days.min() < -(2**31) or days.max() >= 2**31):
        # Arrow would wrap them around silently.
        raise SchemaError(f'column "{printable(name)}": a date is more than 2**31 days from 1970; use datetime64[s]')
    return days.astype(np.int32)


def _bits(flags: npt.NDArray[np.bool_]) -> pa.Buffer:
    return pa.py_buffer(np.packbits(flags, bitorder="little"))
