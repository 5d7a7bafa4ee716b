"""Read Arrow files, Feather too: record batches, chosen columns, several files as one table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Final, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ...errors import SchemaError, SourceError
from ...format.batches.arrow_memory import raw_values, valid_mask
from ...format.batches.rows import RowOrigin, Rows
from ...format.schema.arrow_types import (
    check_batch,
    check_names,
    fix_of_value,
    named_classes,
    period_mark,
    storage_batch,
    storage_type,
    with_classes,
)
from ...format.wording.hints import Foreign
from ...format.wording.printable import printable
from ...inputs.contract.selection import Selection
from ...inputs.contract.source import Frozen, ListedFile, Listing, ParallelMap, Piece, SourceEntry, Survey, Task
from ...inputs.contract.survey_columns import as_united, survey_columns
from ...inputs.files.open_file import check_stamp, files_of, is_object, open_file, open_listed
from ...limits.turns import ROW_BYTES, Turn
from ..registry.file_source import TableSource
from ..registry.settings import Limits
from .messages import (
    FEATHER_V1,
    FILE_MAGIC,
    BatchPlace,
    DamagedFile,
    TooLarge,
    TooManyRows,
    arrays_in,
    batches_of_file,
    batches_of_stream,
    count_columns,
    dictionaries_have_nulls,
    refuse_free_rows,
    unpacked_bytes,
)

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
                rows = Rows(task.ordinal, ordinal, piece.entry, storage_batch(batch), origin)
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


READ_ERRORS: Final = (pa.ArrowException, OSError, ValueError, TypeError, MemoryError, OverflowError, DamagedFile)

Form = Literal["file", "stream", "stream in turn"]


@dataclass(frozen=True, slots=True)
class ArrowHead:
    """The data of one file that planning needs.

    `schema` has the chosen columns, `columns` the names of all; a column is nullable where there are nulls in it, and
    `null_reasons` says so.
    """

    name: str
    columns: tuple[str, ...]
    schema: pa.Schema
    null_reasons: tuple[str, ...]
    form: Form
    batches: tuple[BatchPlace, ...]


@contextmanager
def open_arrow(file: ListedFile, *, mapped: bool = False) -> Iterator[pa.NativeFile]:
    """Open a file; a local one may be mapped, so that a record batch of any size takes no memory of its own."""
    if is_object(file.path):
        with open_listed(file, open_file) as opened, pa.PythonFile(opened, mode="r") as data:
            yield data
        return
    try:
        data = pa.memory_map(file.path) if mapped else pa.OSFile(file.path)
    except OSError as error:
        raise SourceError(file.name, f"cannot be read: {printable(error)}") from error
    with data:
        yield data


def read_head(entry: SourceEntry, selection: Selection, limits: Limits) -> ArrowHead:
    """Return what a file says of its chosen columns and its record batches."""
    check_stamp(entry)
    if entry.bytes == 0:
        raise SourceError(entry.name, "is empty (0 bytes), so it is not an Arrow file")
    try:
        with open_arrow(entry) as data:
            form, places = _batches(data, entry, selection, limits.columns)
            refuse_free_rows(data, entry.bytes, places)
            schema = schema_of(data, form)
            chosen = [schema.field(index) for index in choose_columns(schema, selection, entry.name)]
            for column in chosen:
                check_names(column.type)
            fields, reasons = _nulls(schema, chosen, places)
            kinds = [i for i, field in enumerate(fields) if pa.types.is_dictionary(field.type)]
            if form != "stream" and dictionaries_have_nulls(
                data, entry.bytes, limits.batch_bytes, in_turn=form != "file"
            ):
                for i in kinds:
                    fields[i], reasons[i] = fields[i].with_nullable(True), "nulls among the values of dictionaries"
    except (SourceError, SchemaError):
        raise
    except TooManyRows as error:
        raise SourceError(entry.name, str(error)) from error
    except TooLarge as error:
        raise too_large(entry.name, error, form) from error
    except READ_ERRORS as error:
        raise SourceError(entry.name, f"is not a sound Arrow file: {printable(error)}") from error
    named = with_classes(pa.schema(fields), named_classes(schema))
    return ArrowHead(entry.name, tuple(schema.names), named, tuple(reasons), form, tuple(places))


def too_large(name: str, error: TooLarge, form: Form) -> SourceError:
    """Return the error of a file with a batch that takes too much memory, and the program that writes it again."""
    kind, batches = ("file", "map(r.get_batch, range(r.num_record_batches))") if form == "file" else ("stream", "r")
    program = (
        f"import sys, pyarrow as pa; r = pa.ipc.open_{kind}(sys.argv[1]); w = pa.ipc.new_file(sys.argv[2], r.schema); "
        f"[w.write_batch(b.slice(i, 1000)) for b in {batches} for i in range(0, b.num_rows, 1000)]; w.close()"
    )
    return SourceError(name, f"{error}{Foreign('python', '-c', program, name, 'new.arrow')}")


def schema_of(data: pa.NativeFile, form: Form) -> pa.Schema:
    data.seek(0)
    if form == "file":
        with pa.ipc.open_file(data) as reader:
            return reader.schema
    return pa.ipc.open_stream(data).schema


def choose_columns(schema: pa.Schema, selection: Selection, name: str) -> list[int]:
    """Raise `SchemaError` where a chosen column is not there, `SourceError` where two columns have one name."""
    twice = [column for column, count in Counter(schema.names).items() if count > 1]
    if twice:
        raise SourceError(name, f'two columns are named "{printable(twice[0])}"; rename one of them')
    wanted = set(selection.pick_of_file(schema.names, where=f"{name}: "))
    return [index for index, column in enumerate(schema.names) if column in wanted]


def read_batches(
    data: pa.NativeFile, form: Form, columns: Sequence[int], places: Sequence[tuple[int, int]], size: int, most: int
) -> Iterator[pa.RecordBatch]:
    """Yield the chosen columns of record batches, given by their numbers and offsets; all of a stream in turn.

    What compressed ones take is known before they are inflated, and the largest are alone over all workers. Raises
    `TooLarge` where a batch takes more than `most` bytes.
    """
    schema = schema_of(data, form)
    if form == "stream in turn":
        found, _ = batches_of_stream(data, size)
        places = [(number, place.start) for number, place in enumerate(found)]
    inflated = [_inflated_bytes(data, schema, columns, one, size, most) for one in places]
    batches = _read_batches(data, form, columns, places)
    with Turn(ROW_BYTES) as turn:
        for taken in inflated:
            turn.take(taken)
            batch = next(batches)
            yield batch
            del batch
            turn.give_back()
        yield from batches


def _inflated_bytes(
    data: pa.NativeFile, schema: pa.Schema, columns: Sequence[int], place: tuple[int, int], size: int, most: int
) -> int:
    number, start = place
    inflated = unpacked_bytes(data, start, size, schema, columns)
    if inflated > most:
        raise TooLarge(f"its record batch {number}", inflated, most)
    return inflated


def _read_batches(
    data: pa.NativeFile, form: Form, columns: Sequence[int], places: Sequence[tuple[int, int]]
) -> Iterator[pa.RecordBatch]:
    data.seek(0)
    own = pa.system_memory_pool()  # which gives back what is large as soon as it is freed
    with ExitStack() as stack:
        if form == "file":
            options = pa.ipc.IpcReadOptions(included_fields=list(columns), use_threads=False)
            reader = stack.enter_context(pa.ipc.open_file(data, options=options, memory_pool=own))
            for number, _ in places:
                yield reader.get_batch(number)
            return
        options = pa.ipc.IpcReadOptions(use_threads=False)
        stream = stack.enter_context(pa.ipc.open_stream(data, options=options, memory_pool=own))
        if form == "stream in turn":
            for batch in stream:
                yield batch.select(list(columns))
                del batch
            return
        for _, start in places:
            data.seek(start)
            yield pa.ipc.read_record_batch(pa.ipc.read_message(data), stream.schema).select(list(columns))


def _batches(
    data: pa.NativeFile, entry: SourceEntry, selection: Selection, most_columns: int
) -> tuple[Form, list[BatchPlace]]:
    head = data.read(8)
    if head.startswith(FEATHER_V1):
        program = "import sys, pyarrow.feather as f; f.write_feather(f.read_table(sys.argv[1]), sys.argv[2])"
        again = Foreign("python", "-c", program, entry.name, "new.feather")
        raise SourceError(entry.name, f"is a file of Feather V1, which is not read; write it again: {again}")
    stream = not head.startswith(FILE_MAGIC)
    selection.check_width(entry.name, count_columns(data, entry.bytes, most_columns, stream=stream), most_columns)
    if not stream:
        return "file", batches_of_file(data, entry.bytes)
    found, in_turn = batches_of_stream(data, entry.bytes)
    return ("stream in turn" if in_turn else "stream"), found


def _nulls(
    schema: pa.Schema, chosen: Sequence[pa.Field], places: Sequence[BatchPlace]
) -> tuple[list[pa.Field], list[str]]:
    first, where = 0, {}
    for column in schema:
        where[column.name] = first
        first += arrays_in(column.type)
    for place in places:
        if len(place.nulls) != first:
            raise DamagedFile(
                f"the record batch at byte {place.start} has {len(place.nulls)} arrays instead of {first}"
            )
    fields, reasons = [], []
    for column in chosen:
        kind = storage_type(column.type)
        # Runs have no nulls of their own: the array of their values does, which is the second within.
        runs = pa.types.is_run_end_encoded(column.type)
        nulls = sum(place.nulls[where[column.name] + 2 * runs] for place in places)
        counted = f"{nulls:,} {'run of ' * runs}null{'s' * (nulls != 1)}"
        reasons.append(counted if nulls else "no nulls")
        # A column of nulls is nullable without rows too; what a union holds is not counted.
        nullable = bool(nulls) or pa.types.is_null(kind) or pa.types.is_union(kind)
        fields.append(pa.field(column.name, kind, nullable, metadata=period_mark(column)))
    return fields, reasons
