"""Cut TFRecord files into pieces, and read the records of a piece that are kept.

With `order: source` the shard plan takes, from the start, as many records as go into S, and copies what is across two
parts. Records that are passed on as they are take the room that they took before: so where shards will end is known
before a record is read, but for the length of one record. A task that holds a little less than whole shards leaves
parts that the plan takes as they are, since nothing of the next task's fits in:

    records  ├┼─┼┼┼─┼──┼┼┼┼┼─┼┼──┼┼─┼┼┼──┼┼─┼┼┼┼─┼┼──┼─┤      gap: the distance of cut points, S / 256
    tasks    ├─ S - gap/2 ─┼─ S - gap/2 ─┼─ half ─┼─ half ─┤     of what is left, the plan makes halves (over S) or one

That is about speed only: cuts may be anywhere at the start of a record, and the shards are sound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...dataset.storage.record_file import ChecksummedFile, RecordRun, scan_file
from ...errors import SourceError
from ...format.batches.arrow_memory import take_rows
from ...format.batches.rejects import CellError, Place, Reject
from ...format.batches.rows import Narrowing, RowOrigin
from ...format.batches.summaries import ReadRange
from ...format.examples.decode_examples import NO_EXAMPLE, ExampleDecoder, other_message, parse_example
from ...format.examples.encode_rows import FramedRows, empty_batch
from ...format.schema.schema import Schema
from ...format.splits.shard_plan import CUTS_PER_SHARD, shards_of_a_task
from ...format.tfrecord.framing import FRAME_BYTES, HEADER_BYTES, Payloads, frame_records
from ...format.tfrecord.gzip_members import sniff_form
from ...format.tfrecord.scan import (
    LARGEST_RECORD_BYTES,
    WRONG_DATA,
    Damage,
    find_headers,
    is_record_header,
    scan_records,
)
from ...format.wording.hints import Command, Set
from ...format.wording.printable import printable
from ...inputs.contract.source import Frozen, ListedFile, Piece, SourceEntry
from ...inputs.files.open_file import ReadAt, expect, open_file, open_listed, open_unbuffered, read_at, size_of
from .picking import Picking

_GZIP_EXPANSION: Final = 4
"""Bytes of records for each compressed one, where nobody counted: tables reach 3 to 5."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordsPiece(Piece):
    """A range of a file (compressed: all of it).

    `answers_for` is how many records the file has, on its first piece, 0 on the others; None where nobody knows.
    Without `split` a rule says the split of each record. `check` says that each record is checked against the
    schema. `narrowed` is reported once for a dataset. `crc32c` is what a manifest states of the whole file. `classes`
    are features whose numbers are changed, with the new number of each class.
    """

    start: int
    stop: int | None
    split: str | None
    answers_for: int | None
    check: bool = False
    narrowed: tuple[Narrowing, ...] = ()
    crc32c: str | None = None
    classes: tuple[tuple[str, tuple[int, ...]], ...] = ()

    def rows_by_entry(self) -> dict[int, int | None]:
        """Return the records of the file, or 0 where another piece of it answers for them."""
        return {self.entry: self.answers_for}


def is_compressed(entry: SourceEntry) -> bool:
    with open_file(entry) as file:
        head = file.read(HEADER_BYTES)
    return not is_record_header(head) and sniff_form(head) is not None


def whole_file(
    entry: SourceEntry, index: int, split: str | None, records: int | None, *, compressed: bool
) -> RecordsPiece:
    """Return all of a file as one piece; `index` is its place in the listing."""
    return RecordsPiece(
        **entry.place(index), rows=records, first_row=0,
        bytes=entry.bytes, output_bytes=entry.bytes * (_GZIP_EXPANSION if compressed else 1), start=0, stop=None,
        split=split, answers_for=records,
    )  # fmt: skip


def cut_run(files: Sequence[RecordsPiece], shard_size: int | None) -> list[list[RecordsPiece]]:
    """Cut files of one split that follow each other into tasks, for shards of a size; without it each is a task."""
    if shard_size is None:
        return [[file] for file in files]
    ends = cut_stream(sum(file.bytes for file in files), shard_size)
    tasks: list[list[RecordsPiece]] = [[]]
    base = 0
    for file in files:
        at, ends_task = 0, False
        for end in (end - base for end in ends if base < end <= base + file.bytes):
            place = _record_start(file, max(end, at))
            if place is None:  # nothing begins between there and the end of the file
                ends_task = True
                break
            if place > at:
                tasks[-1].append(_range_of(file, at, place))
                tasks.append([])
                at = place
        tasks[-1].append(_range_of(file, at, file.bytes))
        if ends_task:
            tasks.append([])
        base += file.bytes
    return [task for task in tasks if task]


def cut_stream(size: int, shard_size: int) -> list[int]:
    """Return where the tasks of a stream of `size` bytes should end, the last at its end.

    >>> cut_stream(1000, 256), cut_stream(200, 256), cut_stream(0, 256)
    ([256, 512, 756, 1000], [200], [])
    """
    gap = shard_size // CUTS_PER_SHARD
    most = shards_of_a_task(size, shard_size)
    ends: list[int] = []
    start = 0
    while start < size:
        rest = size - start
        over = rest - (2 * shard_size - gap)
        if over > 0:
            start += min(most, -(-over // shard_size)) * shard_size - gap // 2
        elif rest > shard_size:
            start += rest // 2
        else:
            start = size
        ends.append(start)
    return ends


def _record_start(file: RecordsPiece, offset: int) -> int | None:
    with open_unbuffered(file) as opened:
        return find_record_start(read_at(opened), offset, file.bytes)


def _range_of(file: RecordsPiece, start: int, stop: int) -> RecordsPiece:
    rows = None if file.rows is None else file.rows * (stop - start) // file.bytes
    return replace(
        file, start=start, stop=None if stop == file.bytes else stop, bytes=stop - start, output_bytes=stop - start,
        rows=rows, answers_for=file.answers_for if start == 0 or file.answers_for is None else 0,
        narrowed=file.narrowed if start == 0 else (),
    )  # fmt: skip


# A header proves itself: 8 bytes of length and the CRC of them. By chance one place of four thousand million looks
# like one, and a chain of headers that lead to each other is no chance. But a record may hold a TFRecord file,
# headers and all: so a start that was found is believed only when the reader of the range before it has come to end
# there, exactly. The first range begins at the start of the file, so by induction all are right.


_WINDOW_BYTES: Final = 256 << 10
_SEARCHED_BYTES: Final = 4 << 20
"""Beyond this no start is looked for: the file is cut elsewhere, or not at all."""

_CHAIN: Final = 8


def find_record_start(read: ReadAt, offset: int, size: int) -> int | None:
    """Return where the first record at or after `offset` seems to begin in a file of `size` bytes, or None."""
    for start in range(offset, min(offset + _SEARCHED_BYTES, size), _WINDOW_BYTES):
        window = read(min(_WINDOW_BYTES + HEADER_BYTES - 1, size - start), start)
        for place in find_headers(np.frombuffer(window, np.uint8), size).tolist():
            if _leads_on(read, start + place, size):
                return int(start + place)
    return None


def _leads_on(read: ReadAt, place: int, size: int) -> bool:
    """Return whether a header leads to another, and that to the next, or to the end of the file."""
    for _ in range(_CHAIN):
        if place == size:
            return True
        head = read(HEADER_BYTES, place)
        if not is_record_header(head):
            return False
        place += int.from_bytes(head[:8], "little") + FRAME_BYTES
    return place <= size


# Numbers of records count in the file. A piece that begins in its middle does not know how many are before it; they
# are counted only when something has to be said about one.


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
    `looked_at` are the features by which a rule says the split of a record. `picking` says which records are kept.
    """

    piece: RecordsPiece
    frozen: Frozen
    record_bytes: int
    before: int = 0
    looked_at: tuple[str, ...] = ()
    picking: Picking | None = None
    _damages: list[Damage] = field(default_factory=list)
    _before: int | None = None
    _first: int = 0

    def read(self, task: int, first: int) -> Iterator[FramedRows]:
        """Start at ordinal `first` of the task. Raises `SourceError` where the framing is damaged."""
        piece = self.piece
        decoder = None
        if piece.check or self._wanted:
            columns = None if piece.check else self._wanted
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
            payloads, sums = renumbered(run, piece.classes, reasons) if piece.classes else (run.payloads, run.crcs)
            batch = None if decoder is None else self._look(decoder, payloads, reasons)
            rejected = rejected or bool(reasons)
            yield self._framed(task, ordinal, run, payloads, sums, reasons, formats, batch)
            ordinal += 1
        if self._damages:
            raise self._broken(self._damages[0])
        if piece.crc32c is not None and not rejected:  # damage that was found and counted explains another checksum
            yield self._end(task, ordinal, ReadRange(piece.entry, piece.start, piece.bytes, crcs[0], piece.crc32c))

    @property
    def _wanted(self) -> tuple[str, ...]:
        more = () if self.picking is None else self.picking.columns.features
        return tuple(dict.fromkeys([*self.looked_at, *more]))

    def _look(self, decoder: ExampleDecoder, payloads: Payloads, reasons: dict[int, str]) -> pa.RecordBatch:
        """Return the features that are looked at of the records without damage, and add to `reasons` what is wrong."""
        sound = rows_without(len(payloads), reasons)
        found = decoder.try_decode(payloads.take(sound) if reasons else payloads)
        reasons |= {int(sound[problem.row]): problem.reason for problem in found.problems}
        batch = found.batch.select(list(self._wanted))
        if not found.problems:
            return batch
        return take_rows(batch, rows_without(len(sound), (problem.row for problem in found.problems)))

    def _framed(
        self,
        task: int,
        ordinal: int,
        run: RecordRun,
        payloads: Payloads,
        crcs: npt.NDArray[np.uint32],
        reasons: dict[int, str],
        formats: ExampleDecoder | None,
        batch: pa.RecordBatch | None,
    ) -> FramedRows:
        piece = self.piece
        rejects = tuple(self._reject(run, row, reasons[row]) for row in sorted(reasons))
        rows = rows_without(len(run), reasons)
        dropped: dict[int, int] = {}
        if self.picking is not None and batch is not None:
            gone = self.picking.left_out(batch, piece.name)
            if gone.any():
                dropped[piece.entry] = int(gone.sum())
                rows, batch = rows[~gone], take_rows(batch, np.flatnonzero(~gone))
        if reasons or dropped:
            payloads, crcs = payloads.take(rows), crcs[rows]
        found: tuple[str, ...] = ()
        if formats is not None:
            columns = formats.try_decode(payloads).batch.columns
            found = tuple(sorted({str(one) for values in columns for one in values.unique().to_pylist() if one}))
        return FramedRows(
            task, ordinal, piece.entry,
            empty_batch(len(rows)) if batch is None or not self.looked_at else batch.select(list(self.looked_at)),
            RecordOrigin(self, run, rows), rejects=rejects, split=piece.split, payloads=payloads, crcs=crcs,
            image_formats=found, narrowed=piece.narrowed if ordinal == self._first else (), dropped=dropped,
        )  # fmt: skip

    def _end(self, task: int, ordinal: int, read: ReadRange) -> FramedRows:
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
        fixes = _FIXES if not self._wanted else {WRONG_DATA: _FIXES[WRONG_DATA]}  # plain bytes have no features
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


def renumbered(
    run: RecordRun, classes: Iterable[tuple[str, tuple[int, ...]]], reasons: dict[int, str]
) -> tuple[Payloads, npt.NDArray[np.uint32]]:
    """Return the records of a run with other numbers of classes, and their CRC32Cs; all else stays in them.

    Records that have no such number stay as they are, and `reasons` say why. A number below 0 is no class, and stays.
    """
    features, records = dict(classes), []
    for row, record in enumerate(run.payloads):
        example = None if row in reasons or other_message(record) else parse_example(record)
        if example is None:
            reasons.setdefault(row, NO_EXAMPLE)
            records.append(record)
            continue
        for name, numbers in features.items():
            values = example.features.feature[name].int64_list.value if name in example.features.feature else []
            if any(number >= len(numbers) for number in values):
                reasons[row] = f'feature "{printable(name)}" holds class {max(values)}, and {len(numbers)} have names'
            else:
                values[:] = [number if number < 0 else numbers[number] for number in values]
        records.append(example.SerializeToString(deterministic=True))
    framed = b"".join(frame_records(pa.array(records, pa.large_binary())).buffers)
    scan = scan_records(np.frombuffer(framed, np.uint8), check_crc=False, record_bytes_limit=LARGEST_RECORD_BYTES)
    return scan.payloads, scan.crcs


def _formats_decoder(schema: Schema) -> ExampleDecoder | None:
    names = schema.format_features
    return ExampleDecoder(schema, names) if names else None
