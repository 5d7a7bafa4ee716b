"""Read each NumPy file as a record of shapes and bytes, columns of arrays for `source`, and guess which they hold."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...errors import RunError, SchemaError
from ...format.batches.rejects import CellError, Place, Reject
from ...format.batches.rows import Rows
from ...format.schema.schema import Choice, Feature, Schema
from ...format.wording.hints import Set
from ...format.wording.printable import first_names, printable
from ...inputs.contract.selection import Call, typed_path
from ...inputs.contract.source import Frozen, Listing, Piece, SourceEntry, Survey, Task
from ...inputs.files.open_file import DiskErrors, check_stamp, is_object
from ...recognise.evidence.names import split_in_words
from .npy import ArrayChoice, ArrayStream, NpyError, NpyHeader, dtype_text, open_arrays

_BATCH_FILES: Final = 4000


@dataclass(frozen=True, slots=True)
class FileOrigin:
    """The origin of rows that are a whole file each."""

    sources: tuple[str, ...]

    def place(self, row: int) -> Place:
        return Place(self.sources[row])

    def number(self, row: int) -> tuple[str, None]:
        return self.sources[row], None


@dataclass(frozen=True, slots=True)
class _Expected:
    """What the schema says of one array."""

    dtype: str
    rank: int

    def __str__(self) -> str:
        return f"dtype {np.dtype(self.dtype).name} and rank {self.rank}"


@dataclass(slots=True)
class _Batch:
    """What has been read and not been yielded yet."""

    expected: dict[str, _Expected]
    pieces: list[Piece] = field(default_factory=list)
    rejects: list[Reject] = field(default_factory=list)
    arrays: list[tuple[tuple[NpyHeader, memoryview], ...]] = field(default_factory=list)
    bytes: int = 0

    def rows(self, task: int, ordinal: int) -> Rows:
        entries = np.array([piece.entry for piece in self.pieces], np.int64)
        origin = FileOrigin(tuple(piece.name for piece in self.pieces))
        return Rows(task, ordinal, entries, self._record_batch(), origin, rejects=tuple(self.rejects))

    def _record_batch(self) -> pa.RecordBatch:
        columns: dict[str, pa.Array] = {}
        for index, (name, expected) in enumerate(self.expected.items()):
            arrays = [row[index] for row in self.arrays]
            columns[shape_key(name)] = _shapes([header.shape for header, _ in arrays], expected.rank)
            columns[data_key(name)] = _binary([data for _, data in arrays])
        return pa.RecordBatch.from_pydict(columns)


def shape_key(name: str) -> str:
    return f"{name}/shape" if name else "shape"


def data_key(name: str) -> str:
    return f"{name}/data" if name else "data"


def survey_records(listing: Listing, choice: ArrayChoice, call: Call, *, told: bool) -> Survey:
    """Take the schema from the first sound file; every file is a piece of one row.

    `told` says that the user asked for records; a line of Python makes the `call`. Raises `SchemaError` where no file
    is sound, or the files, or the arrays of the only one, look like columns of one table.
    """
    refuse_pairs([(entry, header) for entry, header in few_headers(listing, choice) if not header.is_for_rows])
    first, headers, choices = _first_headers(listing, choice)
    features = _features(headers)
    pieces = tuple(_piece(index, entry) for index, entry in enumerate(listing.entries))
    warnings = () if told else rows_warning(first, len(listing.entries) - 1, headers, call)
    return Survey(Frozen(Schema(tuple(sorted(features, key=lambda f: f.name)))), tuple(choices), pieces, warnings)


def few_headers(listing: Listing, choice: ArrayChoice) -> list[tuple[SourceEntry, NpyHeader]]:
    """Return entry and header of each sound `.npy` file, where there are several, but few."""
    if not 2 <= len(listing.entries) <= MOST_FILES:
        return []
    found = []
    for entry in listing.entries:
        if not entry.path.lower().endswith(b".npy"):
            continue
        with suppress(NpyError, OSError), open_arrays(entry, choice, whole=False) as arrays:  # said when it is read
            found += [(entry, array.header) for array in arrays.values()][:1]  # a .npz of another suffix has several
    return found


def read_records(task: Task, frozen: Frozen, choice: ArrayChoice) -> Iterator[Rows]:
    """Yield the files of a task as rows; what is damaged, or of another dtype or rank, is a reject."""
    expected = _expected(frozen.schema)
    batch, ordinal = _Batch(expected), 0
    for piece in task.pieces:
        # A large array is a batch of its own: it then refers to what was read, without a copy.
        if batch.pieces and (batch.bytes + piece.bytes > choice.limits.file_batch or len(batch.pieces) >= _BATCH_FILES):
            yield batch.rows(task.ordinal, ordinal)
            batch, ordinal = _Batch(expected), ordinal + 1
        check_stamp(piece)
        try:
            arrays = _load(piece, choice, expected)
        except _RejectError as error:
            batch.rejects.append(Reject(piece.entry, Place(piece.name), error.errors))
        else:
            batch.pieces.append(piece)
            batch.arrays.append(arrays)
            batch.bytes += sum(len(data) for _, data in arrays)
        check_stamp(piece)
    if batch.pieces or batch.rejects:
        yield batch.rows(task.ordinal, ordinal)


class _RejectError(Exception):
    """A file that is a reject, with what is wrong in it."""

    def __init__(self, *errors: CellError) -> None:
        super().__init__(*errors)
        self.errors = errors


def _load(
    piece: Piece, choice: ArrayChoice, expected: dict[str, _Expected]
) -> tuple[tuple[NpyHeader, memoryview], ...]:
    try:
        with DiskErrors(piece.name), open_arrays(piece, choice, whole=True) as arrays:
            errors = _differences(arrays, expected)
            if errors:
                raise _RejectError(*errors)
            return tuple((arrays[name].header, _data_of(arrays[name])) for name in expected)
    except NpyError as error:
        raise _RejectError(CellError(None, error.code, error.value, error.expected, str(error))) from error


def _data_of(array: ArrayStream) -> memoryview:
    data = array.read_exactly(array.header.data_bytes)
    if array.packed:
        array.read_to_end()
    return array.header.little_c_bytes(data)


def _differences(arrays: dict[str, ArrayStream], expected: dict[str, _Expected]) -> list[CellError]:
    if arrays.keys() != expected.keys():
        held, wanted = printable(", ".join(arrays)), printable(", ".join(expected))
        message = f"its arrays are {held or 'none'}; the first file has {wanted}"
        return [CellError(None, "BAD_WIDTH", held, wanted, message)]
    errors = []
    for name, array in arrays.items():
        found, wants = _Expected(dtype_text(array.header.dtype), len(array.header.shape)), expected[name]
        if found != wants:
            message = f'"{printable(data_key(name))}" has {found}; the schema has {wants}'
            errors.append(CellError(data_key(name), "BAD_DTYPE", str(found), str(wants), message))
    return errors


def _expected(schema: Schema) -> dict[str, _Expected]:
    expected = {}
    for feature in schema:
        if feature.type == "array_data":
            assert feature.dtype is not None
            assert feature.rank is not None
            name = "" if feature.name == "data" else feature.name.removesuffix("/data")
            expected[name] = _Expected(feature.dtype, feature.rank)
    return expected


def _first_headers(listing: Listing, choice: ArrayChoice) -> tuple[SourceEntry, dict[str, NpyHeader], list[Choice]]:
    first_problem, damaged = "", True
    for entry in listing.entries:
        try:
            with DiskErrors(entry.name), open_arrays(entry, choice, whole=False) as arrays:
                headers = {name: array.header for name, array in arrays.items()}
            for header in headers.values():
                header.check_whole()
        except NpyError as error:
            first_problem = first_problem or f"{entry.name}: {error}"
            damaged = damaged and error.code in ("CORRUPT", "TRUNCATED")
            continue
        if headers:
            return entry, headers, [_choice(name, header, entry) for name, header in headers.items()]
        first_problem, damaged = first_problem or f"{entry.name}: it holds no array", False
    error_type = RunError if damaged else SchemaError  # nothing but damage: no config fixes it
    raise error_type(f"none of the files holds an array that can be written ({len(listing.entries)}); {first_problem}")


def _features(headers: dict[str, NpyHeader]) -> list[Feature]:
    features = []
    for name, header in headers.items():
        rank = len(header.shape)
        dtype = dtype_text(header.dtype)
        features.append(Feature(shape_key(name), "int64", "array_shape", (rank,) if rank else (-1,)))
        features.append(Feature(data_key(name), "bytes", "array_data", dtype=dtype, rank=rank))
    return features


def _choice(name: str, header: NpyHeader, entry: SourceEntry) -> Choice:
    reason = f"dtype {header.dtype.name}, rank {len(header.shape)}, as in {entry.name}; all other files need the same"
    return Choice(name or data_key(name), "array_data", reason)


def _piece(index: int, entry: SourceEntry) -> Piece:
    plain = entry.path.lower().endswith(b".npy")
    return Piece(
        **entry.place(index),
        rows=1,
        first_row=0,
        bytes=entry.bytes,
        output_bytes=entry.bytes if plain else None,
    )


def _shapes(shapes: list[tuple[int, ...]], rank: int) -> pa.Array:
    if rank:
        return column_of_array("shape", np.array(shapes, np.int64).reshape(-1, rank))
    offsets = pa.py_buffer(np.zeros(len(shapes) + 1, np.int32))
    none = column_of_array("shape", np.empty(0, np.int64))
    return pa.Array.from_buffers(pa.list_(pa.int64()), len(shapes), [None, offsets], children=[none])


def _binary(blobs: list[memoryview]) -> pa.Array:
    offsets = np.cumsum([0, *(len(data) for data in blobs)], dtype=np.int64)
    data = pa.py_buffer(blobs[0] if len(blobs) == 1 else b"".join(blobs))
    return pa.Array.from_buffers(pa.large_binary(), len(blobs), [None, pa.py_buffer(offsets), data])


# Turn a NumPy array whose first axis is the row into an Arrow column.


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


# What NumPy files look like that are tables, where they would be read as records: one file is one record by default.
#
# mnist.npz                  x_train (60000, 28, 28)  y_train (60000,)  x_test ...    arrays of one length are columns
# x_train.npy  y_train.npy   the same in files of their own


MOST_FILES: Final = 8
"""With more files than this, each one is certainly a record."""

_TOGETHER: Final = "convert them together, in Python: docs/guide.md, NumPy"

Headers = Mapping[str, NpyHeader]


def rows_warning(entry: SourceEntry, others: int, headers: Headers, call: Call) -> tuple[str, ...]:
    """Return what a user should know of the first file that is read, if its arrays may be columns of a table.

    A line of Python makes the `call`; `others` are the files besides the first one.

        one .npy or .npz           a warning, or where its arrays are surely columns (`_tables`) a `SchemaError`
        several .npy               a warning
        a few .npz                 a warning, if each holds one array, or arrays that are surely columns
        many .npz                  nothing: they are records
    """
    groups = {rows: names for rows, names in _by_rows(headers).items() if rows > 1}
    tables = _tables(headers)
    are_few = others < MOST_FILES and (tables or len(headers) == 1)
    are_columns = are_few or entry.path.lower().endswith(b".npy")
    if not groups or (others and not are_columns):
        return ()
    commands = [f"{Set('input.rows', True)}"]
    if len(groups) > 1 or any(not header.shape for header in headers.values()):
        commands = [f"{Set('input.rows', True)} {_columns(names)}" for names in groups.values()]
    choices = ", or ".join(f"{command} ({rows:,} rows)" for command, rows in zip(commands, groups, strict=True))
    if others:
        arrays = "array" if len(headers) == 1 else "arrays"
        one = f"{entry.name} and {others:,} more: each file is one record with its whole {arrays}"
        return (f"{one}; if the first axis is the row: {choices[:-1]} in the first file)",)
    if not tables:
        return (f"{entry.name}: is one record with all of its arrays; if the first axis is the row: {choices}",)
    what = f"{entry.name}: {_sizes(tables, {name: name for name in headers})}"
    one = f"or keep one record with all arrays: {Set('input.rows', False)}"
    if lines := _by_split(entry.path, headers, call):
        raise SchemaError(f"{what}, of splits by their names; {lines}; {one}")
    if len(groups) == 1:
        raise SchemaError(f"{what}; choose: {choices}; {one}")
    raise SchemaError(f"{what}; {_TOGETHER}; {one}")


def _by_split(path: bytes, headers: Headers, call: Call) -> str:
    splits, others = defaultdict[str, dict[str, str]](dict), list[str]()
    for name in headers:
        if split := split_in_words(name):
            rest = "_".join(part for part in re.split(r"[_.\- ]", name) if split_in_words(part) is None)
            splits[split][rest or "x"] = name
        else:
            others.append(printable(name))
    lengths = [{headers[name].shape[:1] for name in names.values()} for names in splits.values()]
    columns = {tuple(sorted(names)) for names in splits.values()}
    whole = len(columns) == 1 and sum(map(len, splits.values())) + len(others) == len(headers)
    if len(splits) < 2 or not whole or any(len(one) > 1 or () in one for one in lengths) or is_object(path):
        return ""
    file, lines = typed_path(os.fsdecode(path)), list[str]()
    for split in sorted(splits, key=lambda one: one != "train"):
        cells = ", ".join(f"{key!r}: numpy.load({file!r})[{name!r}]" for key, name in splits[split].items())
        made = replace(call, command="append") if lines else call
        lines.append(str(made.of_data(f"{{{cells}}}", output__split=split)))
    without = f" (without {first_names(others, MOST_FILES)})" if others else ""
    return f"to convert each split, in Python{without}: {'; '.join(lines)}"


def refuse_pairs(files: Sequence[tuple[SourceEntry, NpyHeader]]) -> None:
    """Raise `SchemaError` for `.npy` files that are columns of one table."""
    names = {str(number): entry.name for number, (entry, _) in enumerate(files)}
    tables = _tables(dict(zip(names, (header for _, header in files), strict=True)))
    if tables:
        raise SchemaError(f"{_sizes(tables, names)}; separate files are not joined; {_TOGETHER}")


def _tables(headers: Headers) -> dict[int, list[str]]:
    """Return the arrays that are columns of tables, surely: as many rows, of another kind of dtype or rank."""
    return {
        rows: names
        for rows, names in _by_rows(headers).items()
        if rows > 1 and len({(headers[name].dtype.kind, len(headers[name].shape)) for name in names}) > 1
    }


def _sizes(tables: Mapping[int, Sequence[str]], shown: Mapping[str, str]) -> str:
    parts = [
        f"{' and '.join(printable(shown[name]) for name in names)}: {rows:,} rows each, of different types"
        for rows, names in tables.items()
    ]
    return f"{'; '.join(parts)}: they look like columns of {'one table' if len(tables) == 1 else 'tables'}"


def _by_rows(headers: Headers) -> dict[int, list[str]]:
    groups: dict[int, list[str]] = {}
    for name, header in headers.items():
        if header.shape:
            groups.setdefault(header.shape[0], []).append(name)
    return dict(sorted(groups.items(), reverse=True))


def same_rows(headers: Headers) -> str:
    return ", or ".join(str(_columns(names)) for names in _by_rows(headers).values())


def _columns(names: Sequence[str]) -> Set:
    return Set("input.columns", names)
