"""Read what a Python caller holds in memory: a DataFrame, Arrow data, a dict of NumPy arrays.

The data is written once, as one Arrow file, beside the staged output, and the workers map that file: a task names rows
of it as it would of any other file, on any runner, in any process.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import IO, Final

import pyarrow as pa

from ...errors import SchemaError, SourceError
from ...format.batches.rows import RowOrigin, Rows
from ...format.columns.flatten import refuse_unsupported, without_json
from ...format.columns.keys import is_flat
from ...format.schema.arrow_types import classes_in, feature_of, media_lines, named_fields
from ...format.schema.schema import Choice, ColumnRule, Schema
from ...format.wording.printable import NoColumnError, printable
from ...inputs.contract.source import (
    Frozen,
    ListedFile,
    Listing,
    ParallelMap,
    Piece,
    Recognised,
    Source,
    SourceEntry,
    Survey,
    Task,
    Traits,
)
from ...inputs.files.listing import list_file
from ...inputs.files.open_file import files_of
from .tables import MemoryTable, memory_tables

_SPOOLED_NS: Final = 0
"""The mtime of a spooled file: its name tells its content, so the same data is the same source at any time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPiece(Piece):
    """One record batch of the file."""

    batch: int


@dataclass(frozen=True, slots=True)
class SpooledFile:
    """Data as an Arrow file: what messages call it, the SHA-256 of the file, the split of its rows if it says one."""

    path: bytes
    name: str
    digest: str
    split: str | None = None


@dataclass(frozen=True, slots=True)
class MemorySource(Source):
    """Read spooled data: see `spool`."""

    typed = True

    files: tuple[SpooledFile, ...]
    rules: dict[str, ColumnRule] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    def with_rules(self, rules: dict[str, ColumnRule]) -> MemorySource:
        return replace(self, rules=rules)

    def list_files(self) -> Listing:
        entries = tuple(map(_listed, self.files))
        splits = sorted(one.split for one in self.files if one.split is not None)
        recognised = Recognised("none", lines=(f"splits {', '.join(splits)}, of the data",) if splits else ())
        size = sum(entry.bytes for entry in entries)
        return Listing("memory", entries, len(entries), size, traits=Traits(in_files=False), recognised=recognised)

    def survey(self, listing: Listing, run: ParallelMap) -> Survey:  # noqa: ARG002
        pieces: list[MemoryPiece] = []
        schemas: list[pa.Schema] = []
        nulls: Counter[str] = Counter()
        for index, entry in enumerate(listing.entries):
            with self._open(entry) as reader:
                first_row = 0
                for number in range(reader.num_record_batches):
                    batch = reader.get_batch(number)
                    rows = {"first_row": first_row, "rows": batch.num_rows, "bytes": batch.nbytes}
                    pieces.append(MemoryPiece(**entry.place(index), **rows, batch=number))
                    first_row += batch.num_rows
                    for column, name in zip(batch.columns, reader.schema.names, strict=True):
                        nulls[name] += column.null_count
                schemas.append(reader.schema)
            _refuse_others(schemas[0], schemas[-1], entry.name)
        schema, choices = self._schema(schemas[0], nulls)
        fields = [column.with_nullable(nulls[column.name] > 0) for column in schemas[0]]
        named = named_fields(fields, classes_in(schemas[0]))
        return Survey(Frozen(schema), choices, tuple(pieces), self.warnings, detected=media_lines(named), fields=named)

    def read(self, task: Task, frozen: Frozen) -> Iterator[Rows]:  # noqa: ARG002
        """Nothing is copied out of the mapped file. Raises `SourceError` where the file is gone or was changed."""
        ordinal = 0
        for pieces in files_of(task, MemoryPiece):
            with self._open(pieces[0]) as reader:
                for piece in pieces:
                    batch = reader.get_batch(piece.batch)
                    yield Rows(task.ordinal, ordinal, piece.entry, batch, RowOrigin(piece.name, piece.first_row + 1))
                    ordinal += 1

    def _schema(self, schema: pa.Schema, nulls: dict[str, int]) -> tuple[Schema, tuple[Choice, ...]]:
        for name in self.rules:
            if name not in schema.names:
                raise NoColumnError("schema.columns", name, schema.names)
        refuse_unsupported(without_json(schema, self.rules), self.files[0].name, _without)
        features, choices = [], []
        for column in filter(lambda one: is_flat(one.type), schema):
            count = nulls[column.name]
            feature, why = feature_of(column.with_nullable(count > 0), self.rules.get(column.name))
            features.append(feature)
            known = f"nullable: {count} nulls" if count else "not null: there are no nulls in it"
            choices.append(Choice(column.name, feature.type, f"{why}; {known}"))
        return Schema(tuple(sorted(features, key=lambda feature: feature.name))), tuple(choices)

    @contextmanager
    def _open(self, file: ListedFile) -> Iterator[pa.RecordBatchFileReader]:
        try:
            reader = pa.ipc.open_file(pa.memory_map(os.fsdecode(file.path)))
        except (pa.ArrowException, OSError) as error:
            raise SourceError(file.name, f"its spooled copy cannot be read: {printable(error)}; run again") from error
        with reader:
            yield reader


def _listed(file: SpooledFile) -> SourceEntry:
    entry, fingerprint = list_file(file.path, b"/"), f"sha256:{file.digest}"
    return replace(entry, name=file.name, fingerprint=fingerprint, mtime_ns=_SPOOLED_NS, split=file.split)


def _refuse_others(known: pa.Schema, other: pa.Schema, name: str) -> None:
    if not known.equals(other, check_metadata=True):
        one, two = (
            f"{dict(zip(each.names, map(str, each.types), strict=True))} {classes_in(each)}" for each in (other, known)
        )
        raise SchemaError(
            f"{name}: its columns, types or classes ({printable(one)}) are not those of the first split "
            f"({printable(two)}); cast one of them to the features of the other"
        )


def _without(names: Sequence[str]) -> str:
    return f"give the data without {', '.join(map(printable, names))}"


def spool(
    data: object,
    folder: str | bytes,
    *,
    columns: Sequence[str] | None = None,
    rules: dict[str, ColumnRule] | None = None,
) -> MemorySource:
    """Write data to an Arrow file in a folder, which is made if need be, and return the source that reads it.

    `data` is a pandas DataFrame, an Arrow table, batch or reader (or anything with `__arrow_c_stream__`), or a dict of
    NumPy arrays whose first axis is the row. The file has the name of its content, so that the same data twice is
    one file. In a DataFrame NaN is a null, as pandas means it; in arrays it is a value.

    Raises:
        UsageError: `data` is none of these, or its arrays differ in length.
        SchemaError: two columns have one name, or a column cannot be converted.
    """
    tables, target = memory_tables(data), os.fsencode(folder)
    os.makedirs(target, exist_ok=True)
    files = tuple(_spooled(table, target, columns) for table in tables)
    return MemorySource(files, dict(rules or {}), tuple(line for table in tables for line in table.warnings))


def _spooled(table: MemoryTable, target: bytes, columns: Sequence[str] | None) -> SpooledFile:
    handle, part = tempfile.mkstemp(suffix=b".part", dir=target)
    try:
        with os.fdopen(handle, "wb") as file:
            digest = _write(table, columns, _HashingFile(file))
        path = os.path.join(target, b"data-%s.arrow" % digest[:16].encode())
        os.utime(part, ns=(_SPOOLED_NS, _SPOOLED_NS))
        os.replace(part, path)
    except BaseException:
        os.unlink(part)
        raise
    return SpooledFile(os.path.abspath(path), table.name, digest, table.split)


class _HashingFile:
    """A binary file that hashes what is written to it, so that it need not be read again for its name."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._digest = hashlib.sha256()
        self.closed = False

    def write(self, data: bytes) -> int:
        self._digest.update(data)
        return self._file.write(data)

    def flush(self) -> None:
        self._file.flush()

    def close(self) -> None:
        self.closed = True

    def hexdigest(self) -> str:
        return self._digest.hexdigest()


def _write(table: MemoryTable, columns: Sequence[str] | None, file: _HashingFile) -> str:
    """Write the batches as they come, uncompressed, so that they can be mapped; return the file's SHA-256."""
    schema = table.plain_schema(columns)
    with pa.PythonFile(file, "w") as sink, pa.ipc.new_file(sink, schema) as writer:
        for batch in table.even_batches(columns):
            writer.write_batch(batch)
    return file.hexdigest()
