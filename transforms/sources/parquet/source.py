"""Read Parquet files: row groups in parallel, chosen columns, several files as one table.

A reader holds a page of each of its columns, and more than once: row groups of many columns are read some at a time.

    columns 0 to 584     ──decode──▶ temporary file ─┐
    columns 585 to 1169  ──decode──▶ temporary file ─┼──▶ batches of all columns
    ...                                              ┘
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, BinaryIO, Final, cast

import pyarrow as pa
import pyarrow.parquet as pq

from ...errors import SourceError
from ...format.batches.rejects import CellProblem
from ...format.batches.rows import RowOrigin, Rows
from ...format.schema.arrow_types import check_batch, fix_of_value, in_unit, storage_batch, storage_type
from ...format.schema.column_types import DEFAULT_UNIT
from ...format.schema.schema import Schema
from ...format.wording.hints import Foreign
from ...format.wording.printable import printable
from ...inputs.contract.source import Frozen, Listing, ParallelMap, Piece, SourceEntry, Survey, Task
from ...inputs.contract.survey_columns import as_united, survey_columns
from ...inputs.files.open_file import OpenFile, ReadAt, expect, files_of, open_file, open_listed, read_at
from ..registry.file_source import TableSource
from .as_written import cast_as_written, exact_timestamps, footer_of_plain_lists, footer_of_raw_int96, has_int96
from .footer import (
    READ_ERRORS,
    WRITE_AGAIN,
    ChangeFooter,
    Footer,
    choose_columns,
    leaf_count,
    open_parquet,
    read_footer,
    unreadable,
)
from .pages import PackedSpans, PageBombError, check_pages, chunk_ranges

if TYPE_CHECKING:
    from ..registry.options import ParquetInput


BATCH_ROWS: Final = 32_000
"""Rows in a batch: larger ones were no faster to read and encode, smaller ones pay more per batch."""

BATCH_BYTES: Final = 8 << 20
"""Fewer rows where they are large: a batch should hold about this much, since a worker has several of them at a time in
one form or another. Two workers and rows of 256 floats peak at 750 MB with 32 MiB, 485 with 16, 379 with 8, and 8 is
the fastest of the three."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParquetPiece(Piece):
    """One row group of a file; `row_bytes` is what one row of the chosen columns takes uncompressed.

    `null_lists` says that a fixed-size list in it may be null; `spans` are the places of its chunks, packed.
    """

    row_group: int
    row_bytes: int
    null_lists: bool
    spans: PackedSpans

    @property
    def unpacked(self) -> int:
        return self.row_bytes * (self.rows or 0)


@dataclass(frozen=True, slots=True)
class ParquetSource(TableSource):
    """Read Parquet files; `batch_bytes` is about what a batch holds."""

    options: ParquetInput
    batch_bytes: int = field(default=BATCH_BYTES, compare=False, repr=False)

    typed = True

    def survey(self, listing: Listing, run: ParallelMap) -> Survey:
        footers = run(
            partial(
                read_footer,
                selection=self.selection.of_one_among(len(listing.entries)),
                units={name: rule.unit for name, rule in self.rules.items()},
                most_columns=self.settings.limits.columns,
            ),
            listing.entries,
        )
        survey = survey_columns(footers, listing.pieces(footers, _pieces), self.rules, self.selection)
        return replace(survey, remarks=_remarks(footers) if self.options.checksums else ())

    def read(self, task: Task, frozen: Frozen) -> Iterator[Rows]:
        ordinal = 0
        for pieces in files_of(task, ParquetPiece):
            for batch, problems, piece, done in self._read_file(pieces, frozen.schema):
                origin = RowOrigin(piece.name, piece.first_row + done + 1, piece.row_group)
                yield as_united(Rows(task.ordinal, ordinal, piece.entry, batch, origin, problems), frozen)
                ordinal += 1

    def _read_file(
        self, pieces: Sequence[ParquetPiece], schema: Schema
    ) -> Iterator[tuple[pa.RecordBatch, tuple[CellProblem, ...], ParquetPiece, int]]:
        """Yield the batches of row groups of one file: each with its problems, its piece, and the rows done of that."""
        first = pieces[0]
        seen_row_bytes = 0
        with open_listed(first, open_file) as opened, ExitStack() as stack:
            null_lists = any(piece.null_lists for piece in pieces)
            columns = self._open_columns(stack, first, opened, schema, null_lists=null_lists)
            for piece in pieces:
                # A footer tells the size of a dictionary, not of the text it stands for: what was seen counts too.
                batch_rows = self.batch_bytes // max(piece.row_bytes, seen_row_bytes, 1)
                batch_rows = min(max(batch_rows, 1), BATCH_ROWS)
                expect(opened, chunk_ranges(piece.spans), in_turn=True)
                for batch, problems, done in _read_row_group(columns, read_at(opened), piece, batch_rows):
                    if piece is not pieces[-1]:
                        seen_row_bytes = max(seen_row_bytes, batch.nbytes // batch.num_rows)
                    yield batch, problems, piece, done

    def _open_columns(
        self, stack: ExitStack, piece: ParquetPiece, opened: OpenFile, schema: Schema, *, null_lists: bool
    ) -> _Columns:
        """Open the file of a piece, and where its footer has to be another, open it again."""
        at_once = columns_at_once(len(schema), piece.unpacked)

        def open_with(*changes: ChangeFooter) -> pq.ParquetFile:
            file = open_parquet(piece, opened, checksums=self.options.checksums, columns=at_once, changes=changes)
            return stack.enter_context(file)

        file = open_with()
        schema_arrow = file.schema_arrow  # pyarrow makes it again at each look
        fields, leaves = choose_columns(schema_arrow, self.selection, piece.name)
        counts = [leaf_count(schema_arrow.field(index).type) for index in fields]
        int96 = self._int96_types(file, fields, leaves, schema)
        changes = [footer_of_raw_int96] if int96 else []
        if int96:
            file = open_with(*changes)
        written = None
        if null_lists:
            schema_arrow = file.schema_arrow
            written = pa.schema([schema_arrow.field(index) for index in fields])
            file = open_with(*changes, footer_of_plain_lists)
        return _Columns(piece.name, file, leaves, counts, written, int96)

    def _int96_types(
        self, file: pq.ParquetFile, fields: Sequence[int], leaves: Sequence[int], schema: Schema
    ) -> dict[int, pa.DataType]:
        """Return the types of the chosen columns with INT96 among their leaves, by position."""
        units = {name: rule.unit for name, rule in self.rules.items()}
        units |= {feature.name: feature.unit for feature in schema}
        found, first = {}, 0
        arrow, parquet = file.schema_arrow, file.schema  # pyarrow makes both again at each look
        for position, index in enumerate(fields):
            field = arrow.field(index)
            last = first + leaf_count(field.type)
            if has_int96(parquet, leaves[first:last]):
                found[position] = in_unit(storage_type(field.type), units.get(field.name) or DEFAULT_UNIT)
            first = last
        return found


@dataclass(frozen=True, slots=True, eq=False)
class _Columns:
    """The chosen columns of an open file, and what they become after decoding.

    `counts` are how many of the leaves each has. `written` is the schema to cast to, where the file was opened without
    its own; `int96` are the types of columns in which times come as raw INT96 values, by position.
    """

    name: str
    file: pq.ParquetFile
    leaves: list[int]
    counts: list[int]
    written: pa.Schema | None
    int96: dict[int, pa.DataType]

    def batches(self, piece: ParquetPiece, rows: int) -> Iterator[pa.RecordBatch]:
        def read(leaves: Sequence[int]) -> Iterator[pa.RecordBatch]:
            batches: Iterator[pa.RecordBatch] = self.file.reader.iter_batches(
                rows, row_groups=[piece.row_group], column_indices=leaves, use_threads=False
            )
            return batches

        at_once = columns_at_once(len(self.leaves), piece.unpacked)
        if at_once == len(self.leaves):
            return read(self.leaves)
        return side_by_side(read, slices_of(self.leaves, self.counts, at_once))

    def finish(self, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, tuple[CellProblem, ...]]:
        """Return a decoded batch in the types of the survey, and the problems that this shows."""
        batch = storage_batch(batch) if self.written is None else _as_written(batch, self.written, self.name)
        if not self.int96:
            return batch, ()
        columns = batch.columns
        problems: tuple[CellProblem, ...] = ()
        for position, kind in self.int96.items():
            columns[position], found = exact_timestamps(batch.schema.names[position], columns[position], kind)
            problems += found
        return pa.RecordBatch.from_arrays(columns, names=batch.schema.names), problems


def _read_row_group(
    columns: _Columns, read: ReadAt, piece: ParquetPiece, batch_rows: int
) -> Iterator[tuple[pa.RecordBatch, tuple[CellProblem, ...], int]]:
    """Yield the batches of one row group, each with its problems and the number of rows before it."""
    done = 0
    for batch in _decoded(columns, read, piece, batch_rows):
        yield *columns.finish(batch), done
        done += batch.num_rows
    if done != piece.rows:
        raise SourceError(
            piece.name, f"row group {piece.row_group} is damaged: its footer says {piece.rows} rows, its pages do not; "
            f"{WRITE_AGAIN}"
        )  # fmt: skip


def _decoded(columns: _Columns, read: ReadAt, piece: ParquetPiece, batch_rows: int) -> Iterator[pa.RecordBatch]:
    """Yield the batches of one row group as they are decoded; only errors of decoding are damage of the file."""
    done = 0
    try:
        check_pages(read, piece.spans, piece.rows or 0)
        for batch in columns.batches(piece, batch_rows):
            if not batch.num_rows:
                continue
            if isinstance(piece.rows, int) and done + batch.num_rows > piece.rows:
                break
            check_batch(batch)
            yield batch
            done += batch.num_rows
    except PageBombError as error:
        column = printable(columns.file.schema.column(columns.leaves[error.chunk]).path)
        raise SourceError(
            piece.name, f'row group {piece.row_group}: column "{column}": {error}, against decompression bombs; if the '
            f"file is to be trusted, write it again: {_unpack(piece.name, error.rows)}"
        ) from error  # fmt: skip
    except READ_ERRORS as error:
        if isinstance(error, SourceError):
            raise
        where = f"row group {piece.row_group} (rows from {piece.first_row + done + 1})"
        if "UTF8" in str(error):
            # Arrow refuses the dictionary as a whole, so no row can be named.
            fix = "write the column as plain text or as bytes"
            raise SourceError(piece.name, f"{where}: text that is not UTF-8 in a dictionary; {fix}") from error
        if (fix_of := fix_of_value(error)) is not None:
            raise SourceError(piece.name, f"{where}: {printable(error)}; {fix_of}") from error
        raise SourceError(piece.name, unreadable(error, f"{where} is damaged")) from error


def _unpack(name: str, rows: int) -> Foreign:
    """Return the command that writes a file so that no page of it is small for its values, with so many rows a time."""
    program = (
        "import sys, pyarrow.parquet as p; f = p.ParquetFile(sys.argv[1]); "
        'w = p.ParquetWriter(sys.argv[2], f.schema_arrow, use_dictionary=False, compression="NONE"); '
        f"[w.write_batch(b) for b in f.iter_batches({rows})]; w.close()"
    )
    return Foreign("python", "-c", program, name, "new.parquet")


def _as_written(batch: pa.RecordBatch, written: pa.Schema, name: str) -> pa.RecordBatch:
    columns = []
    for column, wanted in zip(batch.columns, written, strict=True):
        try:
            columns.append(cast_as_written(column, wanted.type))
        except pa.ArrowInvalid as error:
            where = f'column "{printable(wanted.name)}" is {wanted.type} by the Arrow schema in the footer'
            text = f"{where}, and its values are not: {printable(error)}; write the file again"
            raise SourceError(name, text) from error
    return pa.RecordBatch.from_arrays(columns, names=written.names)


def _pieces(index: int, entry: SourceEntry, footer: Footer) -> Iterator[ParquetPiece]:
    first_row = 0
    for number, group in enumerate(footer.groups):
        yield ParquetPiece(
            **entry.place(index),
            rows=group.rows,
            first_row=first_row,
            bytes=group.bytes,
            row_group=number,
            row_bytes=group.row_bytes,
            null_lists=group.null_lists,
            spans=group.spans,
        )
        first_row += group.rows


def _remarks(footers: Sequence[Footer]) -> tuple[str, ...]:
    """Return notes that apply to nearly every file, and so are not shown on screens: few writers add checksums."""
    bare = [footer.name for footer in footers if footer.checksums is False]
    if not bare:
        return ()
    others = f" and {len(bare) - 1} more" if len(bare) > 1 else ""
    return (
        f"{bare[0]}{others}: no checksums present in the pages: damage that decodes cannot be noticed; "
        "writers add them on request (pyarrow: write_page_checksum=True)",
    )


_READERS_BYTES: Final = 192 << 20
_AT_ONCE_BYTES: Final = 64 << 20
"""Readers that would hold more than the first are opened for some columns at a time, which hold the second."""

_PAGE_BYTES: Final = 1 << 20
"""What writers put into a page, or into a dictionary."""

_COPIES: Final = 3
"""A page as it is in the file, unpacked, and its dictionary: so much a column took of 8,000 to 1,000,000 values."""

_LEAST_BYTES: Final = 16 << 10
_FEWEST: Final = 16
_BUFFER_BYTES: Final = 1 << 20

Read = Callable[[Sequence[int]], Iterator[pa.RecordBatch]]


def columns_at_once(columns: int, unpacked: int) -> int:
    """Return how many columns of a row group, whose values take so many bytes, are to be read at once."""
    held = _COPIES * min(unpacked // max(columns, 1), _PAGE_BYTES) + _LEAST_BYTES
    return columns if columns * held <= _READERS_BYTES else min(max(_AT_ONCE_BYTES // held, _FEWEST), columns)


def slices_of(leaves: Sequence[int], counts: Sequence[int], at_once: int) -> list[Sequence[int]]:
    """Return the leaves in slices of so many; those of one column, of which `counts` has the numbers, stay together.

    >>> slices_of([0, 1, 2, 5], [1, 2, 1], 2)
    [[0], [1, 2], [5]]
    """
    slices, start, end = [], 0, 0
    for count in counts:
        if end > start and end + count - start > at_once:
            slices.append(leaves[start:end])
            start = end
        end += count
    return [*slices, leaves[start:]]


def side_by_side(read: Read, slices: Sequence[Sequence[int]]) -> Iterator[pa.RecordBatch]:
    """Yield batches of the columns of all slices, each slice being read to its end first.

    Raises `pa.ArrowInvalid` where slices differ in their rows.
    """
    with ExitStack() as stack:
        files = [cast(BinaryIO, stack.enter_context(tempfile.TemporaryFile())) for _ in slices]
        streams = [_kept(read(leaves), file) for leaves, file in zip(slices, files, strict=True)]
        parts: list[pa.RecordBatch | None] = [None] * len(streams)
        while True:
            parts = [_next_rows(stream, part) for stream, part in zip(streams, parts, strict=True)]
            there = [part for part in parts if part is not None]
            if not there:
                return
            if len(there) < len(parts):
                raise pa.ArrowInvalid("its columns differ in their rows")
            rows = min(part.num_rows for part in there)
            arrays = [array for part in there for array in part.slice(0, rows).columns]
            yield pa.RecordBatch.from_arrays(arrays, names=[name for part in there for name in part.schema.names])
            parts = [part.slice(rows) for part in there]


def _next_rows(stream: Iterator[pa.RecordBatch], part: pa.RecordBatch | None) -> pa.RecordBatch | None:
    while part is None or not part.num_rows:
        part = next(stream, None)
        if part is None:
            return None
    return part


def _kept(batches: Iterator[pa.RecordBatch], file: BinaryIO) -> Iterator[pa.RecordBatch]:
    """Write batches into a file, and return what reads them again."""
    writer: pa.ipc.RecordBatchStreamWriter | None = None
    out = pa.BufferedOutputStream(pa.PythonFile(file, "w"), _BUFFER_BYTES)
    for batch in batches:
        try:
            writer = writer or pa.ipc.new_stream(out, batch.schema)
            writer.write_batch(batch)
        except OSError as error:
            raise _not_kept(error) from error
    if writer is None:
        return iter(())
    try:
        writer.close()
        out.detach()  # flushed, where closing would close the file
    except OSError as error:
        raise _not_kept(error) from error
    file.seek(0)
    return iter(pa.ipc.open_stream(pa.PythonFile(file, "r")))


def _not_kept(error: OSError) -> SourceError:
    why = str(error) if error.errno is None else os.strerror(error.errno)
    return SourceError(
        tempfile.gettempdir(),
        f"the folder for temporary files takes no columns of a wide row group: {why}; free some space, or let TMPDIR "
        "name another folder",
    )
