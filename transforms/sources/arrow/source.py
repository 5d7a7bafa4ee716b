"""Read Arrow files: record batches, chosen columns, several files of one schema."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ...errors import SchemaError, SourceError
from ...format.batches.rows import RowOrigin, Rows
from ...format.batches.arrow_memory import raw_values, valid_mask
from ...format.schema.arrow_checks import check_batch, fix_of_value, storage_column
from ...format.wording.printable import printable
from ...inputs.contract.source import Frozen, Listing, ParallelMap, Piece, SourceEntry, Survey, Task
from ...inputs.contract.survey_columns import as_united, survey_columns
from ...inputs.files.open_file import files_of
from ..registry.file_source import TableSource
from .head import (
    READ_ERRORS,
    ArrowHead,
    Form,
    choose_columns,
    open_arrow,
    read_batches,
    read_head,
    schema_of,
    too_large,
)
from .messages import TooLarge

BATCH_ROWS: Final = 32_000
BATCH_BYTES: Final = 8 << 20
"""What a batch holds at most, as those of Parquet do: a record batch of a file may be of any size."""


MAPPED_BYTES: Final = 128 << 20
"""A file with a larger record batch is mapped: polars writes a table of any size as one. A mapped file that is cut
meanwhile kills the process, so that others are read."""


_TEXTS: Final = (
    pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary
)  # fmt: skip
_LISTS: Final = (
    pa.types.is_list, pa.types.is_large_list, pa.types.is_map, pa.types.is_list_view, pa.types.is_large_list_view
)  # fmt: skip
_SHARING: Final = (
    pa.types.is_dictionary, pa.types.is_run_end_encoded, pa.types.is_string_view, pa.types.is_binary_view,
    pa.types.is_list_view, pa.types.is_large_list_view,
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrowPiece(Piece):
    """One record batch of a file; all of them, where a stream is read in turn: see `batches_of_stream`.

    `batch` is its number, `start` the offset of its message.
    """

    form: str
    batch: int
    start: int


@dataclass(frozen=True, slots=True)
class ArrowSource(TableSource):
    """Read Arrow files in the file or the stream format, and Feather files, which are the same."""

    typed = True

    def survey(self, listing: Listing, run: ParallelMap) -> Survey:
        look = partial(
            read_head, selection=self.selection.of_one_among(len(listing.entries)), limits=self.settings.limits
        )
        heads = run(look, listing.entries)
        return survey_columns(heads, listing.pieces(heads, _pieces), self.rules, self.selection)

    def read(self, task: Task, frozen: Frozen) -> Iterator[Rows]:
        ordinal = 0
        for pieces in files_of(task, ArrowPiece):
            for batch, piece, done in self._read_file(pieces):
                origin = RowOrigin(piece.name, piece.first_row + done + 1)
                rows = Rows(task.ordinal, ordinal, piece.entry, _as_stored(batch), origin)
                del batch
                yield as_united(rows, frozen)
                del rows
                ordinal += 1

    def _read_file(self, pieces: Sequence[ArrowPiece]) -> Iterator[tuple[pa.RecordBatch, ArrowPiece, int]]:
        """Yield batches of one file: each with its piece, and the rows done of that."""
        first = pieces[0]
        done, piece = 0, first
        try:
            large = any(one.bytes > MAPPED_BYTES for one in pieces)
            with open_arrow(first, mapped=large) as data:
                form = _form(first.form)
                columns = choose_columns(schema_of(data, form), self.selection, first.name)
                places = [(one.batch, one.start) for one in pieces]
                owners = iter(pieces)
                most = self.settings.limits.batch_bytes
                for batch in read_batches(data, form, columns, places, first.stamp.size, most):
                    if form != "stream in turn":
                        piece, done = next(owners), 0
                    for part in _parts(batch):
                        check_batch(part)
                        yield part, piece, done
                        done += part.num_rows
                        del part
                    if form != "stream in turn":
                        _check_rows(piece, done)
                    del batch
                _check_rows(piece, done)
        except (SourceError, SchemaError):
            raise
        except TooLarge as error:
            raise too_large(first.name, error, _form(first.form)) from error
        except READ_ERRORS as error:
            where = f"its record batch {piece.batch} (rows from {piece.first_row + done + 1})"
            fix = fix_of_value(error)
            said = (
                f"{where}: {printable(error)}; {fix}"
                if fix
                else f"{where} is damaged: {printable(error)}; copy or write the file again"
            )
            raise SourceError(first.name, said) from error


def _pieces(index: int, entry: SourceEntry, head: ArrowHead) -> Iterator[ArrowPiece]:
    whole = head.form == "stream in turn"
    rows = sum(place.rows for place in head.batches)
    spans = [(0, 0, entry.bytes, rows)] if whole and rows else []
    if not whole:
        spans = [(i, one.start, one.stop - one.start, one.rows) for i, one in enumerate(head.batches) if one.rows]
    first_row = 0
    for number, start, size, count in spans:
        yield ArrowPiece(
            **entry.place(index),
            rows=count,
            first_row=first_row,
            bytes=size,
            form=head.form,
            batch=number,
            start=start,
        )
        first_row += count


def _form(name: str) -> Form:
    forms: dict[str, Form] = {"file": "file", "stream": "stream"}
    return forms.get(name, "stream in turn")


def _parts(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yield parts that fit memory as features. Raises `pa.ArrowInvalid` where buffers are too short to be measured."""
    batch.validate()
    average = batch.nbytes // max(batch.num_rows, 1)
    try:
        repeated = [values_bytes(column) for column in batch.columns if _repeats(column.type)]
    except IndexError as error:
        raise pa.ArrowInvalid(f"an index or offset is out of bounds: {error}") from error
    if not repeated:
        step = min(max(BATCH_BYTES // max(average, 1), 1), BATCH_ROWS)
        for start in range(0, batch.num_rows, step):
            yield batch.slice(start, step)
        return
    ends = np.cumsum(np.sum(repeated, axis=0) + average)
    start = 0
    while start < batch.num_rows:
        done = int(ends[start - 1]) if start else 0
        stop = int(np.searchsorted(ends, done + BATCH_BYTES, "right"))
        stop = min(max(stop, start + 1), start + BATCH_ROWS)
        yield batch.slice(start, stop - start)
        start = stop


def _repeats(kind: pa.DataType) -> bool:
    """Return whether rows of a type may share values, so that they take more bytes than the array does."""
    if isinstance(kind, pa.BaseExtensionType):
        return _repeats(kind.storage_type)
    if any(test(kind) for test in _SHARING):
        return True
    return any(_repeats(kind.field(index).type) for index in range(kind.num_fields))


def values_bytes(array: pa.Array) -> npt.NDArray[np.int64]:
    """Return about how many bytes the values of each row take, those that rows share counted in each."""
    kind = array.type
    if isinstance(array, pa.ExtensionArray):
        return values_bytes(array.storage)
    if pa.types.is_dictionary(kind):
        of_value = np.append(values_bytes(array.dictionary), 0)
        indices = pc.fill_null(array.indices.cast(pa.int64()), len(of_value) - 1)
        found: npt.NDArray[np.int64] = of_value[raw_values(indices, np.int64)]
        return found
    if pa.types.is_run_end_encoded(kind):
        ends = np.clip(array.run_ends.to_numpy() - array.offset, 0, len(array))
        return np.repeat(values_bytes(array.values), np.diff(ends, prepend=0))
    if pa.types.is_string_view(kind) or pa.types.is_binary_view(kind):
        lengths = np.frombuffer(array.buffers()[1], np.int32)[::4][array.offset : array.offset + len(array)]
        valid = valid_mask(array)
        return np.maximum(lengths if valid is None else np.where(valid, lengths, 0), 0).astype(np.int64)
    if any(test(kind) for test in _TEXTS):
        lengths = pc.fill_null(pc.binary_length(array).cast(pa.int64()), 0)
        return raw_values(lengths, np.int64)
    if pa.types.is_struct(kind):
        parts = [values_bytes(array.field(index)) for index in range(kind.num_fields)]
        return sum(parts, np.zeros(len(array), np.int64))
    if any(test(kind) for test in _LISTS):
        inner = np.concatenate([[0], np.cumsum(values_bytes(array.values))])
        starts = array.offsets.to_numpy()[: len(array)]
        sizes = np.diff(array.offsets.to_numpy()) if not _is_view(kind) else array.sizes.to_numpy()
        spans: npt.NDArray[np.int64] = inner[starts + sizes] - inner[starts]
        return spans
    return np.full(len(array), 8, np.int64)


def _is_view(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list_view(kind) or pa.types.is_large_list_view(kind))


def _check_rows(piece: ArrowPiece, done: int) -> None:
    if done != piece.rows:
        raise SourceError(
            piece.name,
            f"its record batch {piece.batch} is damaged: its metadata say {piece.rows} rows, and it has {done}",
        )


def _as_stored(batch: pa.RecordBatch) -> pa.RecordBatch:
    columns = [storage_column(column) for column in batch.columns]
    if not columns:
        return batch  # its rows are all that it has
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)
