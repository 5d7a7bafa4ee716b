"""Read what planning needs of an Arrow file: its columns, its record batches, its nulls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Final, Literal

import pyarrow as pa

from ...errors import SchemaError, SourceError
from ...format.schema.arrow_checks import check_names, period_mark, storage_type
from ...format.schema.arrow_types import named_classes, with_classes
from ...format.wording.hints import Foreign
from ...format.wording.printable import printable
from ...inputs.contract.selection import Selection
from ...inputs.contract.source import ListedFile, SourceEntry
from ...inputs.files.open_file import check_stamp, is_object, open_file, open_listed
from ...limits.turns import ROW_BYTES, Turn
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
    """Return the chosen columns as they are stored, with what their metadata count, and the reasons in words."""
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
