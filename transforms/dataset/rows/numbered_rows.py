"""Rows of a dataset by their number, in the columns that are wanted; another process opens its own files."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...errors import DamageError, UsageError
from ...format.buffers.payloads import Payloads
from ...format.decode.decode_examples import ExampleDecoder, ExampleError
from ...format.manifest.manifest import ShardEntry
from ...format.schema.schema import Schema
from ...format.wording.printable import printable_path
from ..generations.opened_generation import OpenedGeneration
from .record_access import RecordAccess
from .row_reader import RowReader
from .source_columns import SourceColumns

Numbers = Sequence[int] | npt.NDArray[np.integer]


class NumberedRows:
    """The rows of the shards `entries`, from 0 in their order; threads may share it."""

    def __init__(self, generation: OpenedGeneration, entries: Sequence[ShardEntry]) -> None:
        self.generation, self.entries = generation, tuple(entries)
        self.path, self.manifest = generation.path, generation.manifest
        self.access = RecordAccess(generation, self.entries)
        self._plans: dict[tuple[str, ...] | None, tuple[SourceColumns, ExampleDecoder]] = {}

    def __reduce__(self) -> tuple[type[NumberedRows], tuple[object, ...]]:
        return type(self), (self.generation, self.entries)

    def __len__(self) -> int:
        return len(self.access)

    @property
    def schema(self) -> Schema:
        if self.manifest.schema is None:
            where = printable_path(self.path)
            raise UsageError(f"{where}: its records are plain bytes without a schema; use records()")
        return self.manifest.schema

    @cached_property
    def digest(self) -> str:
        """What is the same for the same rows in the same order, wherever they are: of the shards and their CRCs."""
        shards = ((entry.path, entry.records, entry.crc32c) for entry in self.entries)
        return hashlib.blake2b(repr([*shards]).encode(), digest_size=8).hexdigest()

    def plan(self, columns: Sequence[str] | None) -> tuple[SourceColumns, ExampleDecoder]:
        key = None if columns is None else tuple(columns)
        if key not in self._plans:
            plan = SourceColumns.plan(self.manifest, self.schema, columns, printable_path(self.path))
            self._plans[key] = plan, ExampleDecoder(self.schema, plan.features)
        return self._plans[key]

    @cached_property
    def _reader(self) -> RowReader | None:
        """What reads a row of all columns, None where one of them takes a batch."""
        return RowReader.plan(self.schema, self.plan(None)[0])

    def row(self, number: int) -> dict[str, Any]:
        row = None if self._reader is None else self._reader.row(self.access.record(number))
        found: dict[str, Any] = self.take([number], None).to_pylist()[0] if row is None else row
        return found

    def take(self, numbers: Numbers, columns: Sequence[str] | None) -> pa.RecordBatch:
        self.plan(columns)
        return self.decode(self.access.take(numbers), numbers, columns)

    def decode(self, payloads: Payloads, numbers: Numbers, columns: Sequence[str] | None) -> pa.RecordBatch:
        """Return records as columns; `numbers` are theirs, for messages."""
        plan, decoder = self.plan(columns)
        found = decoded(payloads, decoder, lambda row: self.access.place(int(numbers[row])))
        batches = [plan.batch(batch, printable_path(self.path)) for _, batch in found]
        return joined(batches) if batches else pa.RecordBatch.from_pylist([], plan.schema)


def decoded(
    payloads: Payloads, decoder: ExampleDecoder, place: Callable[[int], str]
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield records as batches, each with the row of its first one; `place` gives the place of a row for a message."""
    for first in range(0, len(payloads), decoder.rows_at_once):
        try:
            batch = decoder.decode(payloads.tail(first).head(decoder.rows_at_once))
        except ExampleError as error:
            raise DamageError(f"{place(first + error.row)}: {error.reason}") from error
        yield first, batch


def joined(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Return the rows of batches, of which there is at least one, as one.

    Raise `UsageError` if a column has more than 2 GiB of text or bytes, which Arrow does not hold in one.
    """
    if len(batches) == 1:
        return batches[0]
    table = pa.Table.from_batches(batches).combine_chunks()
    parts = table.to_batches()
    if len(parts) > 1:
        raise UsageError(f"{len(table):,} rows have more than 2 GiB of text or bytes in a column; take fewer at once")
    return parts[0] if parts else batches[0]
