"""Walk from record to record through a damaged TFRecord file, and go on after each damage.

    data wrong        ├─ record ─┤▒▒▒▒▒▒▒▒▒▒├─ record ─┤     its length is right: the next one is after it
    header wrong      ├─ record ─┤▒▒ ─ ─ ─ ─├─ record ─┤     its length is not known: look on for the next header,
                                                             and see if the data up to there have their CRC
    bytes put in      ├─ record ─┤─ ─▒▒▒▒─ ─├─ record ─┤     both of it

A payload may itself hold framed records, which must not be taken for the file's. Within the data of a record whose
length is known none is believed, unless an intact one runs over the end (then bytes were cut out). After a header that
is lost, what was found is held back: if the data from that header to some later one have their CRC, they were one
record, and all in between was within it. That is tried for 16 MiB; only a record whose header *and* data are damaged,
and whose data hold records, can still be taken for several.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from io import FileIO
from typing import Final, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from ...format.tfrecord.framing import FOOTER_BYTES, FRAME_BYTES, HEADER_BYTES, Payloads, crc32c, unmask
from ...format.tfrecord.gzip_members import Form, InflateLimits, inflate
from ...format.tfrecord.scan import (
    LARGEST_RECORD_BYTES,
    WRONG_DATA,
    Scan,
    ScanStart,
    find_headers,
    is_record_header,
    likely_lengths,
    scan_records,
)
from ...format.wording.printable import printable_path
from ..storage.record_file import (
    HeldPieces,
    Path,
    PlainPieces,
    RecordRun,
    longest_record,
    open_on_disk,
    tell_form,
)

_PIECE_BYTES: Final = 2 << 20
_SEARCH_BYTES: Final = 1 << 20

_FIRST_STEP: Final = 4 << 10
"""How much is scanned at first after a damage, then twice as much each time: where there is one, there are more."""

_TRIED_BYTES: Final = 64 << 20
_TRIED_TIMES: Final = 16
"""What is found in a search is tried for so many bytes, and so many times those passed: a file can be made to hold a
million headers of long records."""

_HOLD_BYTES: Final = 16 << 20
_HOLD_HEADERS: Final = 8
_PADDING: Final = 256  # as in record_file: the decoder may look a key further


@dataclass(frozen=True, slots=True)
class DamagedRange:
    """Bytes `offset` to `end` of a file (of its contents, if it is compressed) in which something is wrong.

    `record` is the number of the record that begins there, from 1; after a lost header records are counted on as if
    one had been in the range. `records` is how many are lost at least: a range without a header may hold none, or many.
    `recovered` says that the record is whole but for its header, and nothing is lost.
    """

    record: int
    offset: int
    end: int
    reason: str
    records: int = 0
    recovered: bool = False

    def __str__(self) -> str:
        if self.recovered or self.records or self.end == self.offset:
            return self.reason
        return f"{self.reason}; no record can be read up to byte {self.end}"


Event: TypeAlias = RecordRun | DamagedRange
"""A run of intact records, all with the right CRC; or a damage. In the order of the file."""


class Pieces(Protocol):
    """Bytes that come one after the other; `left` is how many are left, None where that is not known."""

    left: int | None

    def read_into(self, target: memoryview) -> int:
        """Fill the target as far as there are bytes, and return how many there were."""


class _Window:
    """The bytes `start` to `stop` of a file that is read forward."""

    def __init__(self, pieces: Pieces, start: int) -> None:
        self._pieces = pieces
        self.data: npt.NDArray[np.uint8] = np.empty(0, np.uint8)
        self.start = self.stop = start
        self._ended = False

    @property
    def end(self) -> int | None:
        if self._ended:
            return self.stop
        return None if self._pieces.left is None else self.stop + self._pieces.left

    def need(self, upto: int, keep: int) -> bool:
        """Return whether the bytes up to an offset are at hand now; those before `keep` need not stay so."""
        while self.stop < upto and not self._ended:
            kept = self.stop - keep
            room = max(_PIECE_BYTES, min(upto - self.stop, kept))
            data = np.empty(kept + room + _PADDING, np.uint8)
            data[:kept] = self.data[keep - self.start : self.stop - self.start]
            count = self._pieces.read_into(data.data[kept : kept + room])
            data[kept + count :] = 0
            self._ended = count < room
            self.data, self.start, self.stop = data, keep, self.stop + count
        return upto <= self.stop

    def view(self, start: int, stop: int) -> npt.NDArray[np.uint8]:
        return self.data[start - self.start : min(stop, self.stop) - self.start]

    def head(self, offset: int) -> bytes:
        """Return the header's bytes at an offset, fewer at the end of what is at hand."""
        return self.view(offset, offset + HEADER_BYTES).tobytes()

    def crc(self, offset: int) -> int:
        return unmask(int.from_bytes(self.view(offset, offset + FOOTER_BYTES).tobytes(), "little"))


@dataclass(slots=True)
class _LostHeader:
    """A header that could not be read: `crc` is that of the bytes after it, up to `upto`; `held` what came before."""

    offset: int
    record: int
    held: int
    upto: int
    reason: str
    crc: int = 0


class RecordWalk:
    """The walk over one stretch of bytes; `record` and `offset` are where it is."""

    def __init__(self, pieces: Pieces, at: ScanStart, limit: int = LARGEST_RECORD_BYTES) -> None:
        self._window = _Window(pieces, at.offset)
        self.record, self.offset = at.record, at.offset
        self._limit = limit
        self._step = _PIECE_BYTES
        self._tried = 0
        self._begin = self._floor = at.offset  # bytes before it are not needed again
        self._held: list[Event] = []
        self._lost: list[_LostHeader] = []

    def events(self) -> Iterator[Event]:
        while self._need(self.offset + 1):
            self._floor = self.offset
            reason = self._scan()
            if reason:
                self._step = _FIRST_STEP
                if is_record_header(self._window.head(self.offset)):
                    self._pass_data(reason)
                else:
                    self._pass_header(reason)
            yield from self._settled()
        yield from self._held

    def _need(self, upto: int) -> bool:
        return self._window.need(upto, self._lost[0].offset if self._lost else self._floor)

    def _settled(self) -> Iterator[Event]:
        """Yield what no later find can undo."""
        self._forget(self.offset)
        stop = self._lost[0].held if self._lost else len(self._held)
        yield from self._held[:stop]
        del self._held[:stop]
        for lost in self._lost:
            lost.held -= stop

    def _scan(self) -> str:
        """Take the next records as far as they are in order; return what is wrong with the one after them, or ""."""
        window = self._window
        self._need(self.offset + self._step)
        left = None if window.end is None else window.end - self.offset
        size = min(self._step, window.stop - self.offset)
        at = ScanStart(self.record, self.offset)
        scan = scan_records(
            window.data[self.offset - window.start :], size, at=at, left=left, record_bytes_limit=self._limit
        )
        rows, reason = len(scan.payloads), "" if scan.broken is None else scan.broken.reason
        if scan.damaged and scan.damaged[-1] == rows - 1 and not self._follows(self.offset + scan.consumed):
            rows, reason = rows - 1, WRONG_DATA
        self._take(scan, rows)
        self._step = min(2 * self._step, _PIECE_BYTES) if rows else max(2 * self._step, scan.wanted)
        return reason

    def _follows(self, offset: int) -> bool:
        """Return whether a header is at an offset, or the file ends there: then the record before it ends there."""
        if not self._need(offset + HEADER_BYTES):
            return offset == self._window.stop
        return is_record_header(self._window.head(offset))

    def _take(self, scan: Scan, rows: int) -> None:
        """Take the first rows of a scan: runs of intact ones, and those with damaged data between them."""
        first, record = self.offset, self.record
        heads = scan.payloads.starts - HEADER_BYTES + first
        ends = scan.payloads.ends + FOOTER_BYTES + first
        start = 0
        for row in (*(row for row in scan.damaged if row < rows), rows):
            if row > start:
                payloads = Payloads(scan.payloads.data, scan.payloads.starts[start:row], scan.payloads.ends[start:row])
                self._held.append(RecordRun(record + start, int(heads[start]), payloads, scan.crcs[start:row]))
            if row < rows:
                self._held.append(DamagedRange(record + row, int(heads[row]), int(ends[row]), WRONG_DATA, 1))
            start = row + 1
        if rows:
            self.offset, self.record = int(ends[rows - 1]), record + rows

    def _pass_data(self, reason: str) -> None:
        """Pass a record whose header is sound, and whose data are not, or are not all there."""
        end = self.offset + self._length(self.offset) + FRAME_BYTES
        if end - self.offset > self._limit + FRAME_BYTES:
            self._pass_to(self._next_anchor(self.offset + HEADER_BYTES), reason, records=1)
        elif not self._need(end):
            self._pass_to(self._window.stop, reason, records=1)  # cut: what is left are its own data
        else:
            self._pass_to(self._crossing(self.offset + HEADER_BYTES, end) or end, reason, records=1)

    def _pass_to(self, end: int, reason: str, records: int) -> None:
        self._held.append(DamagedRange(self.record, self.offset, end, reason, records))
        self.offset, self.record = end, self.record + 1

    def _pass_header(self, reason: str) -> None:
        """Pass a header that cannot be read, and with it a record, or some, or bytes that are none."""
        head = self._window.head(self.offset)
        for length in likely_lengths(head, self._limit) if len(head) == HEADER_BYTES else ():
            end = self.offset + length + FRAME_BYTES
            if self._is_whole(self.offset, end):
                self._recover(self.offset, end, reason)
                return
        self._lost.append(_LostHeader(self.offset, self.record, len(self._held), self.offset + HEADER_BYTES, reason))
        if len(self._lost) > _HOLD_HEADERS:
            del self._lost[_HOLD_HEADERS // 2]
        end = self._next_anchor(self.offset + 1)
        if not self._recover_up_to(end):
            self._pass_to(end, reason, records=0)

    def _recover(self, start: int, end: int, reason: str) -> None:
        """Take the record from `start` to `end`, of which only the header is damaged."""
        view = self._window.view(start, end)
        payloads = Payloads(view, np.array([HEADER_BYTES], np.int64), np.array([len(view) - FOOTER_BYTES], np.int64))
        crcs = np.array([self._window.crc(end - FOOTER_BYTES)], np.uint32)
        reason = f"{reason}; its data are whole"
        self._held.append(DamagedRange(self.record, start, end, reason, recovered=True))
        self._held.append(RecordRun(self.record, start, payloads, crcs))
        self.offset, self.record = end, self.record + 1

    def _recover_up_to(self, end: int) -> bool:
        """Take what is between a lost header and a record at `end` (or the end of the file), if it is one record."""
        stop = end - FOOTER_BYTES
        for place, lost in enumerate(self._lost):
            if stop < lost.upto:
                continue
            lost.crc, lost.upto = crc32c(self._window.view(lost.upto, stop), lost.crc), stop
            if lost.crc == self._window.crc(stop):
                del self._held[lost.held :], self._lost[place:]
                self.record = lost.record
                self._recover(lost.offset, end, lost.reason)
                return True
        return False

    def _next_anchor(self, start: int) -> int:
        """Return where the next record begins that can be believed, or the end of the file."""
        for head in self._headers(start):
            end = head + self._length(head) + FRAME_BYTES
            if self._is_whole(head, end) or (self._need(end) and self._follows(end)):
                return head
        return self._window.stop

    def _crossing(self, start: int, end: int) -> int | None:
        """Return where intact records begin that follow each other up to or over the end of the record around them."""
        passed = start
        for head in self._headers(start, end):
            if head < passed:
                continue
            passed = head
            while passed < end and self._need(passed + HEADER_BYTES) and is_record_header(self._window.head(passed)):
                after = passed + self._length(passed) + FRAME_BYTES
                if after - passed > self._limit + FRAME_BYTES or not self._is_whole(passed, after):
                    break
                passed = after
            if passed >= end:
                return head
        return None

    def _headers(self, start: int, end: int | None = None) -> Iterator[int]:
        """Yield where headers are from `start` on, those before `end` (None: the end of the file)."""
        step = _FIRST_STEP
        while (end is None or start + HEADER_BYTES <= end) and self._need(start + HEADER_BYTES):
            self._need(start + step + HEADER_BYTES)
            stop = min(start + step, self._window.stop if end is None else end)
            last = stop + HEADER_BYTES - 1 if end is None else min(stop + HEADER_BYTES - 1, end)
            for place in find_headers(self._window.view(start, last), self._limit).tolist():
                yield start + int(place)
            start, step = stop, min(2 * step, _SEARCH_BYTES)
            if end is None:
                self._floor = start
                self._forget(start)

    def _forget(self, offset: int) -> None:
        while self._lost and offset - self._lost[0].offset > _HOLD_BYTES:
            del self._lost[0]

    def _length(self, offset: int) -> int:
        return int.from_bytes(self._window.head(offset)[:8], "little")

    def _is_whole(self, start: int, end: int) -> bool:
        known = self._window.end
        if (known is not None and end > known) or not self._need(end):
            return False
        self._tried += end - start
        if self._tried > _TRIED_BYTES + _TRIED_TIMES * (self._floor - self._begin):
            return False
        stop = end - FOOTER_BYTES
        return crc32c(self._window.view(start + HEADER_BYTES, stop)) == self._window.crc(stop)


# Every intact record of a damaged TFRecord file, and each damage; of a compressed file up to the first one.


_CHUNK_BYTES: Final = 16 << 10
"""What is inflated byte by byte where it is damaged: at most 16 MiB come of it."""


def walk_records(path: Path, *, limit: int | None = None, limits: InflateLimits | None = None) -> Iterator[Event]:
    """Yield every intact record of a TFRecord file, plain or compressed, and every damage, in the order of the file.

    `limit` is the longest record that is believed, in bytes (None: as `longest_record` says); `limits` are what a
    compressed file may become.
    """
    with open_on_disk(path, printable_path(os.fspath(path))) as file:
        form = _tell_form(file, os.fsencode(path))
        limit = longest_record(form) if limit is None else limit
        if form is None:
            file.seek(0)
            size = os.fstat(file.fileno()).st_size
            yield from RecordWalk(PlainPieces(file, size), ScanStart(), limit).events()
        else:
            yield from _walk_compressed(_inflated(file, form, limits), limit)


def is_compressed(path: Path) -> bool:
    with open_on_disk(path, printable_path(os.fspath(path))) as file:
        return _tell_form(file, os.fsencode(path)) is not None


def _tell_form(file: FileIO, name: bytes) -> Form | None:
    form = tell_form(file, 0)
    if name.endswith(b".gz"):
        return form or (None if is_record_header(file.read(HEADER_BYTES)) else "gzip")
    # A plain file whose first length is damaged may begin as if it was compressed, but nothing then comes of it.
    if form is not None and _inflated(file, form).read_into(memoryview(bytearray(1))):
        return form
    return None


def _inflated(file: FileIO, form: Form, limits: InflateLimits | None = None) -> HeldPieces:
    file.seek(0)
    chunks = iter(lambda: file.read(_CHUNK_BYTES), b"")
    return HeldPieces(inflate(chunks, form=form, limits=limits, to_last_byte=True))


def _walk_compressed(pieces: HeldPieces, limit: int) -> Iterator[Event]:
    """Yield what a compressed file holds up to its first damage, behind which nothing is found again."""
    walk = RecordWalk(pieces, ScanStart(), limit)
    last: Event | None = None
    for event in walk.events():
        if last is not None:
            yield last
        last = event
    cut = isinstance(last, DamagedRange) and not last.recovered and last.end == walk.offset
    if pieces.problem and isinstance(last, DamagedRange) and cut:  # the damage of the file is what cut that record
        yield replace(last, reason=pieces.problem)
        return
    if last is not None:
        yield last
    if pieces.problem:
        yield DamagedRange(walk.record, walk.offset, walk.offset, pieces.problem)
