"""Read one piece of a TFRecord file: runs of records become framed rows, and damaged ones rejects.

Numbers of records count in the file. A piece that begins in its middle does not know how many are before it; they are
counted only when something has to be said about one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...dataset.records.record_scan import ChecksummedFile, RecordRun, scan_file
from ...errors import SourceError
from ...format.buffers.arrow_memory import take_rows
from ...format.buffers.payloads import Payloads
from ...format.decode.decode_examples import NO_EXAMPLE, ExampleDecoder
from ...format.encode.framed_rows import FramedRows, empty_batch
from ...format.flow.observers import ReadRange
from ...format.flow.rejects import CellError, Place, Reject
from ...format.flow.rows import RowOrigin
from ...format.schema.schema import Schema
from ...format.tfrecord.framing import FRAME_BYTES, HEADER_BYTES
from ...format.tfrecord.scan import WRONG_DATA, Damage, is_record_header
from ...format.wording.hints import Command, Set
from ..contract.source import Frozen, ListedFile
from ..files.open_file import expect, open_file, open_listed, open_unbuffered, size_of
from .pieces import RecordsPiece

CUT_A_RECORD: Final = "a record was cut in two"
"""Part of the error that says that a place which looked like the start of a record was none."""

_FIXES: Final = {
    WRONG_DATA: "copy the file again",
    NO_EXAMPLE: f"to keep such records as they are: {Set('input.records', 'opaque')}",
}


def pass_over(_: Damage) -> None:
    """Leave damage to the reader of the file's records."""


def rows_without(count: int, left_out: Iterable[int]) -> npt.NDArray[np.int64]:
    return np.delete(np.arange(count), list(left_out))


def read_runs(
    file: ListedFile,
    start: int = 0,
    stop: int | None = None,
    *,
    on_damage: Callable[[Damage], None],
    check_crc: bool = True,
    record_bytes_limit: int | None = None,
    page_origin: int = 0,
    on_crc: Callable[[int], None] | None = None,
) -> Iterator[RecordRun]:
    """Yield the records of a listed file in runs, then call `on_crc` with the CRC32C of the bytes that were read.

    The rest is as in `scan_file`. Raises `SourceError` where it cannot be opened.
    """
    with open_listed(file, open_unbuffered) as opened:
        size = size_of(opened)
        expect(opened, [(start, size if stop is None else min(stop, size))])
        summed = ChecksummedFile(opened)
        yield from scan_file(
            opened if on_crc is None else summed,
            size,
            start,
            stop,
            on_damage=on_damage,
            check_crc=check_crc,
            record_bytes_limit=record_bytes_limit,
            page_origin=page_origin,
        )
        if on_crc is not None:
            on_crc(summed.crc)


@dataclass(frozen=True, slots=True, eq=False)
class RecordOrigin:
    """The origin of records of a run, of which there are the rows `rows`."""

    reader: PieceReader
    run: RecordRun
    rows: npt.NDArray[np.int64]

    def place(self, row: int) -> Place:
        return self.reader.place(self.run, int(self.rows[row]))

    def number(self, row: int) -> tuple[str, int | None]:
        place = self.place(row)
        return place.source, place.record


@dataclass(slots=True)
class PieceReader:
    """Reads one piece: runs of records become framed rows.

    `before` is how many bytes of records the task has had before: where the piece begins in what is written of it.
    `looked_at` are the features by which a rule says the split of a record.
    """

    piece: RecordsPiece
    frozen: Frozen
    record_bytes: int
    before: int = 0
    looked_at: tuple[str, ...] = ()
    _damages: list[Damage] = field(default_factory=list)
    _before: int | None = None
    _first: int = 0

    def read(self, task: int, first: int) -> Iterator[FramedRows]:
        """Start at ordinal `first` of the task. Raises `SourceError` where the framing is damaged."""
        piece = self.piece
        decoder = None
        if piece.check or self.looked_at:
            columns = None if piece.check else self.looked_at
            decoder = ExampleDecoder(self.frozen.schema, columns, refuse_other_messages=True)
        formats = _formats_decoder(self.frozen.schema)
        ordinal = self._first = first
        crcs: list[int] = []
        rejected = False
        for run in read_runs(
            piece, piece.start, piece.stop, on_damage=self._damages.append, record_bytes_limit=self.record_bytes,
            page_origin=piece.start - self.before, on_crc=crcs.append if piece.crc32c is not None else None,
        ):  # fmt: skip
            reasons = {damage.record - run.first_record: damage.reason for damage in self._take_damages(run)}
            batch = None if decoder is None else self._look(decoder, run, reasons)
            rejected = rejected or bool(reasons)
            yield self._framed(task, ordinal, run, reasons, formats, batch)
            ordinal += 1
        if self._damages:
            raise self._broken(self._damages[0])
        if piece.crc32c is not None and not rejected:  # damage that was found and counted explains another checksum
            yield self._end(task, ordinal, ReadRange(piece.entry, piece.start, piece.bytes, crcs[0], piece.crc32c))

    def _look(self, decoder: ExampleDecoder, run: RecordRun, reasons: dict[int, str]) -> pa.RecordBatch:
        """Return the features that are looked at of the records without damage, and add to `reasons` what is wrong."""
        sound = rows_without(len(run), reasons)
        found = decoder.try_decode(run.payloads.take(sound) if reasons else run.payloads)
        reasons |= {int(sound[problem.row]): problem.reason for problem in found.problems}
        batch = found.batch.select(list(self.looked_at))
        if not found.problems:
            return batch
        return take_rows(batch, rows_without(len(sound), (problem.row for problem in found.problems)))

    def _framed(
        self,
        task: int,
        ordinal: int,
        run: RecordRun,
        reasons: dict[int, str],
        formats: ExampleDecoder | None,
        batch: pa.RecordBatch | None,
    ) -> FramedRows:
        piece, payloads, crcs = self.piece, run.payloads, run.crcs
        rejects = tuple(self._reject(run, row, reasons[row]) for row in sorted(reasons))
        rows = rows_without(len(run), reasons)
        if reasons:
            payloads, crcs = payloads.take(rows), crcs[rows]
        found: tuple[str, ...] = ()
        if formats is not None:
            columns = formats.try_decode(payloads).batch.columns
            found = tuple(sorted({str(one) for values in columns for one in values.unique().to_pylist() if one}))
        return FramedRows(
            task, ordinal, piece.entry, empty_batch(len(rows)) if batch is None or not self.looked_at else batch,
            RecordOrigin(self, run, rows), rejects=rejects, split=piece.split, payloads=payloads, crcs=crcs,
            image_formats=found, narrowed=piece.narrowed if ordinal == self._first else (),
        )  # fmt: skip

    def _end(self, task: int, ordinal: int, read: ReadRange) -> FramedRows:
        """Return a batch without records, which states the checksum of all that was read."""
        nothing = Payloads.from_bytes([])
        return FramedRows(
            task, ordinal, self.piece.entry, empty_batch(0), RowOrigin(self.piece.name, 1), split=self.piece.split,
            payloads=nothing, crcs=np.empty(0, np.uint32), read=read,
        )  # fmt: skip

    def _take_damages(self, run: RecordRun) -> list[Damage]:
        """Return the damages of this run's records; what is after them is kept."""
        stop = run.first_record + len(run)
        taken = [damage for damage in self._damages if damage.record < stop]
        self._damages[:] = [damage for damage in self._damages if damage.record >= stop]
        return taken

    def _reject(self, run: RecordRun, row: int, reason: str) -> Reject:
        piece = self.piece
        fixes = _FIXES if not self.looked_at else {WRONG_DATA: _FIXES[WRONG_DATA]}  # plain bytes have no features
        fix = next((fix for start, fix in fixes.items() if reason.startswith(start)), None)
        text = f"{reason}; {fix}" if fix else reason
        error = CellError(None, "CORRUPT", "", "a record that is whole and of the schema", text)
        return Reject(piece.entry, self.place(run, row), (error,), piece.split)

    def place(self, run: RecordRun, row: int) -> Place:
        number = self._records_before() + run.first_record + row
        return Place(self.piece.name, record=number, offset=int(run.offsets[row]))

    def _records_before(self) -> int:
        """Return how many records the file has before the piece: counted when something has to be said about one."""
        if self._before is None:
            start = self.piece.start
            runs = read_runs(self.piece, 0, start, check_crc=False, on_damage=pass_over) if start else ()
            self._before = sum(len(run) for run in runs)
        return self._before

    def _broken(self, damage: Damage) -> SourceError:
        piece = self.piece
        if piece.stop is not None and piece.stop < piece.stamp[0]:
            with open_file(piece) as file:
                file.seek(damage.offset)
                head = file.read(HEADER_BYTES)
            length = int.from_bytes(head[:8], "little") + FRAME_BYTES
            if is_record_header(head) and piece.stop < damage.offset + length <= piece.stamp[0]:
                return SourceError(piece.name, f"{CUT_A_RECORD} at byte {piece.stop}: it holds what looks like records")
        damage = Damage(self._records_before() + damage.record, damage.offset, damage.reason)
        fix = f"nothing behind it can be read in turn; {Command('salvage')} copies the intact records of a file"
        return SourceError(piece.name, f"{damage}; {fix}")


def _formats_decoder(schema: Schema) -> ExampleDecoder | None:
    names = schema.format_features
    return ExampleDecoder(schema, names) if names else None
