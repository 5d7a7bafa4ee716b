"""Read `.npy` and `.npz` files: each file as one record, or the first axis of its arrays as the rows of a table.

                   .npy                                   .npz
rows: false        one record: `<feature>/shape` and      one record: both keys for each of its members
                   `<feature>/data`
rows: true         a column, named `feature`              a column for each member, all of one length
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...errors import SchemaError, SourceError, UsageError
from ...format.batches.rows import RowOrigin, Rows
from ...format.schema.arrow_types import feature_of
from ...format.schema.schema import Choice, ColumnRule, Schema
from ...format.wording.printable import nearest_name, printable
from ...inputs.contract.source import Frozen, Listing, ParallelMap, Piece, SourceEntry, Survey, Task
from ...inputs.files.open_file import DiskErrors, check_stamp, files_of, is_object
from ..registry.file_source import FileSource
from .npy import ArrayChoice, ArrayStream, NpyError, NpyHeader, NumpyLimits, open_arrays
from .records import column_of_array, column_type, few_headers, read_records, refuse_pairs, same_rows, survey_records

if TYPE_CHECKING:
    from ..registry.options import NumpyInput


@dataclass(frozen=True, slots=True)
class NumpySource(FileSource):
    """Read NumPy files."""

    typed = True

    options: NumpyInput
    limits: NumpyLimits = field(default_factory=NumpyLimits, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.options.rows and not self.options.feature:
            raise UsageError('input.feature: "" goes with rows: false; with rows: true it names the column')
        if self.rules and not self.options.rows:
            raise SchemaError(
                "schema.columns does not go with NumPy files whose arrays are records: the type is the array's own; "
                "set input.rows: true for arrays whose first axis is the row"
            )

    def survey(self, listing: Listing, run: ParallelMap) -> Survey:
        """Return the schema and the pieces: a file each, or with `rows` runs of rows of about 4 MiB.

        Without `rows` the first sound file sets the schema, and a file that differs is a reject when it is read. With
        `rows` all headers are read, and must agree, or a `SchemaError` or `SourceError` is raised.
        """
        if self.options.rows:
            return survey_rows(listing, run, self._choice, self.rules)
        return survey_records(listing, self._choice, self.settings.splits.call, told=self._is_told)

    def read(self, task: Task, frozen: Frozen) -> Iterator[Rows]:
        """Without `rows`, files that are damaged or of another dtype or rank are rejects; with it, a `SourceError`."""
        if self.options.rows:
            return read_rows(task, self._choice)
        return read_records(task, frozen, self._choice)

    @property
    def _is_told(self) -> bool:
        return "rows" in self.options.model_fields_set

    @property
    def _choice(self) -> ArrayChoice:
        return ArrayChoice(self.options.feature, self.selection, self.settings.limits.record_bytes, self.limits)


_BATCH_ROWS: Final = 32_000


@dataclass(frozen=True, slots=True, kw_only=True)
class NumpyPiece(Piece):
    """Rows `first_row` to `first_row + rows` of a `.npy` file, or all rows of a `.npz`."""

    rows: int


@dataclass(frozen=True, slots=True)
class _Layout:
    """What the headers of one file say: its rows, and for each column its little-endian dtype and its rows' shape."""

    name: str
    rows: int
    row_bytes: int
    columns: tuple[tuple[str, np.dtype[Any], tuple[int, ...]], ...]
    seekable: bool


def survey_rows(listing: Listing, run: ParallelMap, choice: ArrayChoice, rules: dict[str, ColumnRule]) -> Survey:
    """Read all headers; return the schema that all files share, and the pieces."""
    refuse_pairs(few_headers(listing, choice))
    layouts = run(partial(_read_layout, choice=choice), listing.entries)
    first = layouts[0]
    for other in layouts[1:]:
        _compare(first, other)
    names = [name for name, _, _ in first.columns]
    for name in rules:
        if name not in names:
            raise SchemaError(
                f'schema.columns names "{printable(name)}", which is not an array; {nearest_name(name, names)}'
            )
    features, choices, fields = [], [], []
    for name, dtype, shape in first.columns:
        try:
            column = pa.field(name, column_type(name, dtype, shape), nullable=dtype.kind in "Mm" and not shape)
            feature, reason = feature_of(column, rules.get(name))
        except SchemaError as error:
            raise SchemaError(f"{first.name}: {error}") from error
        features.append(feature)
        fields.append(column)
        choices.append(Choice(name, feature.type, f"{reason}; dtype {dtype.name} by the header of {first.name}"))
    schema = Schema(tuple(sorted(features, key=lambda feature: feature.name)))
    pieces = listing.pieces(layouts, partial(_pieces, piece_bytes=choice.limits.piece))
    return Survey(Frozen(schema), tuple(choices), pieces, fields=tuple(fields))


def read_rows(task: Task, choice: ArrayChoice) -> Iterator[Rows]:
    """Batches have 32,000 rows and about 16 MiB at most."""
    ordinal = 0
    for pieces in files_of(task, NumpyPiece):
        first, stop = pieces[0], pieces[-1].first_row + pieces[-1].rows
        row = first.first_row
        for batch in _read_file(first, row, stop, choice):
            yield Rows(task.ordinal, ordinal, first.entry, batch, RowOrigin(first.name, row + 1))
            row += batch.num_rows
            ordinal += 1


def _read_layout(entry: SourceEntry, choice: ArrayChoice) -> _Layout:
    check_stamp(entry)
    try:
        with DiskErrors(entry.name), open_arrays(entry, choice, whole=False) as arrays:
            headers = {name: array.header for name, array in arrays.items()}
            seekable = not any(array.packed for array in arrays.values())
    except NpyError as error:
        raise SourceError(entry.name, str(error)) from error
    for name, header in headers.items():
        if not header.shape:
            raise SourceError(
                entry.name, f'array "{printable(name)}" is a scalar, and so has no rows; set input.rows: false'
            )
    if not headers:
        raise SourceError(entry.name, "it holds no array")
    lengths = {header.shape[0]: name for name, header in headers.items()}
    if len(lengths) > 1:
        (long, one), (short, other) = list(lengths.items())[:2]
        raise SourceError(
            entry.name, f'array "{printable(one)}" has {long} rows, and "{printable(other)}" has {short}; '
            f"with input.rows: true all arrays of a file have the same number; keep some: {same_rows(headers)}"
        )  # fmt: skip
    columns = tuple((name, header.dtype, header.shape[1:]) for name, header in headers.items())
    row_bytes = sum(prod(shape) * dtype.itemsize for _, dtype, shape in columns)
    return _Layout(entry.name, next(iter(lengths)), row_bytes, columns, seekable)


def _compare(first: _Layout, other: _Layout) -> None:
    """Raise SchemaError, with both files, the feature and both of what it has, where two files differ."""
    theirs = {name: (dtype, shape) for name, dtype, shape in other.columns}
    ours = {name: (dtype, shape) for name, dtype, shape in first.columns}
    for name in sorted(ours.keys() ^ theirs.keys()):
        has, lacks = (first, other) if name in ours else (other, first)
        raise SchemaError(f'{has.name} has an array "{printable(name)}", and {lacks.name} has none; convert them apart')
    for name, (dtype, shape) in ours.items():
        other_dtype, other_shape = theirs[name]
        if (_without_width(other_dtype), other_shape) != (_without_width(dtype), shape):
            raise SchemaError(
                f'array "{printable(name)}" has rows of {dtype.name} {shape} in {first.name}, and of '
                f"{other_dtype.name} {other_shape} in {other.name}; all files need one dtype and one shape"
            )


def _without_width(dtype: np.dtype[Any]) -> str:
    """Return a dtype without the width of its text, which is that of the longest value of a file."""
    return dtype.kind if dtype.kind in "SU" else dtype.str


def _pieces(index: int, entry: SourceEntry, layout: _Layout, piece_bytes: int) -> Iterator[NumpyPiece]:
    step = max(piece_bytes // max(layout.row_bytes, 1), 1) if layout.seekable else max(layout.rows, 1)
    for first_row in range(0, layout.rows, step):
        rows = min(step, layout.rows - first_row)
        yield NumpyPiece(
            **entry.place(index),
            rows=rows,
            first_row=first_row,
            bytes=rows * layout.row_bytes if layout.seekable else entry.bytes,
        )


def _read_file(piece: NumpyPiece, start: int, stop: int, choice: ArrayChoice) -> Iterator[pa.RecordBatch]:
    try:
        with DiskErrors(piece.name), open_arrays(piece, choice, whole=False) as arrays:
            readers = {name: _RowReader.of(array, piece.path, (start, stop), choice) for name, array in arrays.items()}
            row_bytes = sum(reader.row_bytes for reader in readers.values())
            step = min(max(choice.limits.row_batch // max(row_bytes, 1), 1), _BATCH_ROWS)
            for row in range(start, stop, step):
                count = min(step, stop - row)
                columns = {name: column_of_array(name, reader.read(row, count)) for name, reader in readers.items()}
                yield pa.RecordBatch.from_pydict(columns)
            for array in arrays.values():
                if array.packed:
                    array.read_to_end()
    except ValueError as error:  # NpyError and SchemaError, and what mmap raises of a file that was just cut
        raise SourceError(piece.name, str(error)) from error


@dataclass(frozen=True, slots=True)
class _RowReader:
    """Reads runs of rows of one array, from front to back.

    In C order the rows follow each other and are read, so that a file of any size passes through little memory. In
    Fortran order a row is scattered over the whole file:

        C   r0 r0 r0 | r1 r1 r1 | r2 r2 r2          Fortran   r0 r1 r2 | r0 r1 r2 | r0 r1 r2

    so the file is mapped for each run, copied from and unmapped; a packed one must be unpacked as a whole, and one in a
    store fetched.
    """

    header: NpyHeader
    array: ArrayStream
    path: bytes
    loaded: npt.NDArray[Any] | None

    @classmethod
    def of(cls, array: ArrayStream, path: bytes, rows: tuple[int, int], choice: ArrayChoice) -> _RowReader:
        """Return what reads the rows of an array from the first to before the last."""
        header = array.header
        scattered = header.fortran_order and len(header.shape) > 1
        loaded = None
        if (array.packed or is_object(path)) and scattered:
            if array.size > choice.record_bytes:
                how = "unpacked" if array.packed else "fetched"
                raise NpyError(
                    "RECORD_TOO_LARGE", f"an array in Fortran order is {how} as a whole, and {array.size} bytes "
                    f"are over limits.record_bytes = {choice.record_bytes}; save it in C order",
                )  # fmt: skip
            data = array.read_exactly(header.data_bytes)
            loaded = np.frombuffer(data, header.stored_dtype).reshape(header.shape, order="F")
        elif not array.packed and not scattered:
            row_bytes = cls(header, array, path, None).row_bytes
            place = array.file.seek(rows[0] * row_bytes, 1)
            array.expect(place, place + (rows[1] - rows[0]) * row_bytes)
        return cls(header, array, path, loaded)

    @property
    def row_bytes(self) -> int:
        return prod(self.header.shape[1:]) * self.header.stored_dtype.itemsize

    def read(self, row: int, count: int) -> npt.NDArray[Any]:
        header = self.header
        if self.loaded is not None:
            return self.loaded[row : row + count]
        if header.fortran_order and len(header.shape) > 1:
            mapped = np.memmap(self.path, header.stored_dtype, "r", header.data_offset, shape=header.shape, order="F")
            return np.array(mapped[row : row + count], order="C")
        data = self.array.read_exactly(count * self.row_bytes)
        return np.frombuffer(data, header.stored_dtype).reshape((count, *header.shape[1:]))
