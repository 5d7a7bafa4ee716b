"""Cut CSV files into chunks of whole records, and say where each row of a chunk is in its file.

A plain file is scanned in parallel, in jobs of many blocks; a stream is cut as it comes.

    file    |h|--------|--------|--------|--------|----|     blocks of 1 MiB, scanned in any order
    cuts      ^  ^        ^         ^       ^                the header's end, and the first record start of each block
    chunks    |--|--------|---------|-------|----------|     whole records, with the rows and lines before each known
"""

from __future__ import annotations

import io
import itertools
import re
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from ...errors import SourceError
from ...format.batches.rejects import Place
from ...inputs.files.open_file import SHORTER, DiskErrors, OpenFile, expect, open_unbuffered
from ..text.open_text import BLOCK_BYTES, Cut, TextJob
from .dialect import CR, ESCAPE, LF, Dialect, without_escapes
from .quote_bits import Scratch
from .record_starts import BlockScan, RecordEnds, first_odd_run, quote_states, record_ends, safe_cut, scan_block

_EDGE_BYTES: Final = 4096
"""Read at once to find a safe edge; runs of quotes are short."""

_HEAD_BYTES: Final = 400
"""How much is kept of a cell, or of a record, that is too large."""

_CUT_CHARACTER: Final = re.compile(rb"[\xc0-\xff]?[\x80-\xbf]{0,3}\Z")
"""What may be a part of a character at the end of text."""


_SEP_LINE: Final = re.compile(rb'("?)sep=([^\r\n"])\1(\r\n|\r|\n|\Z)', re.IGNORECASE)
_SEP_BYTES: Final = 16


@dataclass(frozen=True, slots=True)
class LongCell:
    """A cell over the limit: where its beginning is in the text that was kept, and the bytes that it has."""

    at: int
    size: int


@dataclass(frozen=True, slots=True)
class StreamLimits:
    """What a stream may hold: a record of more than `record_bytes` is an error, or, where `rejects`, is not kept.

    Of a cell of more than `field_bytes` only the beginning is kept. A record of more than `long_bytes` is read step by
    step, so that neither the search for its end nor that for such a cell needs all of it.
    """

    field_bytes: int = 64 << 20
    record_bytes: int = 1 << 30
    block_bytes: int = BLOCK_BYTES
    long_bytes: int = 8 << 20
    rejects: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Chunk:
    """Whole records: their bytes as they are in the text, and what is before them.

    `before` counts from the first data record, so without the header; its `offset` is that of the chunk. `counts` is
    what the chunk itself holds, where that is known. `header_lines` are those of the file that come before its data.
    Where `torn` is false, no text follows a quote that closes a cell. A record that was not held as a whole is a chunk
    by itself: `size` are its bytes in the file, and of the `long` cells `text` has the beginning.
    """

    text: bytes
    before: Cut
    counts: Cut | None = None
    header_lines: int = 0
    torn: bool = True
    size: int | None = None
    long: tuple[LongCell, ...] = ()


@dataclass(slots=True, eq=False)
class CsvOrigin:
    """The places of a chunk's rows in the file; scans the chunk when it is first asked.

    `located` tells whether offsets mean anything to a user. `missing` are the records of the chunk that are not in the
    batch, in order. Blank lines are rows if `blank_rows`.
    """

    source: str
    chunk: Chunk
    dialect: Dialect
    located: bool = True
    blank_rows: bool = False
    missing: tuple[int, ...] = ()
    _starts: npt.NDArray[np.int64] | None = field(default=None, repr=False)
    _lines: npt.NDArray[np.int64] | None = field(default=None, repr=False)

    def place(self, row: int) -> Place:
        return self.place_of_record(self._record(row))

    def number(self, row: int) -> tuple[str, int]:
        """Return the file and the row, without a look at the text."""
        return self.source, self._rows_before() + self._record(row) + 1

    def _record(self, row: int) -> int:
        for gap in self.missing:
            row += gap <= row
        return row

    def _rows_before(self) -> int:
        before = self.chunk.before
        return before.records + (before.blanks if self.blank_rows else 0)

    def place_of_record(self, record: int) -> Place:
        """Return the place of a record, counted from 0 in the chunk."""
        before, rows = self.chunk.before, self._rows_before()
        starts, lines = self._layout()
        offset = before.offset + int(starts[record]) if self.located else None
        return Place(self.source, row=rows + record + 1, line=before.lines + int(lines[record]) + 1, offset=offset)

    def line_of(self, offset: int) -> tuple[int, int]:
        """Return where the record of a byte of the chunk starts, and the line of the file that the byte is on."""
        starts, lines = self._layout()
        record = max(int(np.searchsorted(starts, offset, "right")) - 1, 0)
        start = int(starts[record])
        inside = self.chunk.text.count(b"\n", start, offset)
        return start, self.chunk.header_lines + self.chunk.before.lines + int(lines[record]) + inside + 1

    def starts(self) -> npt.NDArray[np.int64]:
        return self._layout()[0]

    def sizes(self) -> npt.NDArray[np.int64]:
        """Return the bytes of each record, its line end and blank lines after it included."""
        size = self.chunk.size
        return np.diff(self.starts(), append=len(self.chunk.text)) if size is None else np.array([size])

    def long_columns(self, names: Sequence[str]) -> Iterator[tuple[str, int]]:
        """Yield the column of each cell of the chunk of which only the beginning is there, and its bytes."""
        for cell in self.chunk.long:
            text = without_escapes(np.frombuffer(self.chunk.text[: cell.at], np.uint8), self.dialect)
            runs, inside = quote_states(text, replace(self.dialect, comment=None))
            signs = np.flatnonzero(text == self.dialect.delimiter)
            if self.dialect.delimiter in self.dialect.blanks:
                signs = signs[np.diff(signs, prepend=-1) != 1]
            column = int(np.count_nonzero(~inside[np.searchsorted(runs, signs)]))
            if column < len(names):
                yield names[column], cell.size

    def _layout(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        counts = self.chunk.counts
        if counts is not None and counts.records == 1 and not counts.blanks and self.dialect.comment is None:
            self._starts = self._lines = np.zeros(1, np.int64)
        if self._starts is None or self._lines is None:
            found = record_ends(np.frombuffer(self.chunk.text, np.uint8), self.dialect)
            starts = np.concatenate([[0], found.ends + 1])
            lines = np.concatenate([[0], found.lines])
            rows = found.of_records | found.blank if self.blank_rows else found.of_records
            keep = np.append(rows, starts[-1] < len(self.chunk.text) and found.tail)
            self._starts, self._lines = starts[keep], lines[keep]
        return self._starts, self._lines


def run_scan(job: TextJob, dialect: Dialect, block_bytes: int) -> list[BlockScan]:
    with DiskErrors(job.name), open_unbuffered(job) as file:
        expect(file, [(max(job.start - 1, 0), job.stop - 1)])  # the end is looked at first, and by itself
        return list(_scan_blocks(file, job, dialect, block_bytes))


class _Threads(threading.local):
    """What each thread that scans keeps from job to job."""

    def __init__(self) -> None:
        self.scratch = Scratch()


_threads = _Threads()


def _scan_blocks(file: OpenFile, job: TextJob, dialect: Dialect, block_bytes: int) -> Iterator[BlockScan]:
    scratch = _threads.scratch
    stop = _safe_edge(file, job, job.stop, dialect)
    low = _safe_edge(file, job, job.start, dialect)
    for nominal in (*range(job.start + block_bytes, job.stop, block_bytes), job.stop):
        high = stop if nominal == job.stop else _safe_edge(file, job, nominal, dialect)
        if high <= low:  # a run of quotes over a whole block
            continue
        begin = max(low - 1, job.text_start)  # the byte in front of a block tells where its first field starts
        view = scratch.text(high - begin)
        file.seek(begin)
        if file.readinto(view) != len(view):
            raise SourceError(job.name, SHORTER)
        data = np.frombuffer(view, np.uint8)
        before = int(data[0]) if begin < low else LF
        yield scan_block(data[low - begin :], low, before, dialect, scratch)
        low = high


def _safe_edge(file: OpenFile, job: TextJob, at: int, dialect: Dialect) -> int:
    """Return the first offset at or after `at` that cuts no run of quotes and no CRLF."""
    while job.text_start < at < job.stamp.size:
        back = min(2 if dialect.is_odd else 1, at - job.text_start)
        file.seek(at - back)
        data = np.frombuffer(file.read(_EDGE_BYTES), np.uint8)
        if len(data) < back + 1:
            break
        cut = safe_cut(data, back, dialect)
        at += cut - back
        if cut < len(data):
            break
    return at


class Records(NamedTuple):
    """Whole records of a stream: their text, what they hold, and the bytes that they have in the stream.

    The `offset` of `counts` is that of the records. One record that has `long` cells, or is too large, comes by itself.
    """

    text: bytes
    counts: Cut
    size: int
    long: tuple[LongCell, ...] = ()


def cut_stream(
    blocks: Iterable[bytes], name: str, dialect: Dialect, start: int, limits: StreamLimits
) -> Iterator[Records]:
    """Yield chunks of about 1 MiB of whole records; the last may lack its end."""
    held, offset, wanted = b"", start, limits.block_bytes
    gathered, size = list[bytes](), 0  # joined when there is enough of them: a long record is not copied for each block
    tail = b"\r" if dialect.quote is None else bytes([dialect.quote, CR])
    source = iter(blocks)
    for block in source:
        gathered.append(block)
        size += len(block)
        if size < wanted:
            continue
        held = b"".join(gathered)
        # what follows decides what a run of quotes, or a CR, at the end of the block means
        found = record_ends(np.frombuffer(held.rstrip(tail), np.uint8), dialect)
        if len(found.ends):
            end = int(found.ends[-1]) + 1
            blanks = int(np.count_nonzero(found.blank))
            records = int(np.count_nonzero(found.of_records))
            yield Records(held[:end], Cut(offset, records, blanks, int(found.lines[-1])), end)
            held, offset, wanted = held[end:], offset + end, limits.block_bytes
        elif len(held) > min(limits.long_bytes, limits.field_bytes, limits.record_bytes):
            record, gathered = _LongRecord(name, dialect, offset, limits), []
            held = record.read(itertools.chain([held], source))
            yield record.records()
            offset, wanted = offset + record.size, limits.block_bytes
        else:
            wanted = 2 * len(held)
        gathered, size = [held], len(held)
    held = b"".join(gathered)
    if held:
        data = np.frombuffer(held, np.uint8)
        found = record_ends(data, dialect)
        if found.inside:
            raise unclosed_quote(name, offset + found.open_at)
        blanks = int(np.count_nonzero(found.blank))
        rest = not len(found.ends) or int(found.ends[-1]) + 1 < len(held)
        lines = int(found.lines[-1]) if len(found.ends) else 0
        records = int(np.count_nonzero(found.of_records)) + (rest and found.tail)
        yield Records(held, Cut(offset, records, blanks, lines + rest), len(held))


_STILL_INSIDE: Final = RecordEnds(np.empty(0, np.int64), np.empty(0, bool), np.empty(0, np.int64), True, -1)


class _LongRecord:
    """A record whose end is far: read block by block, and of its cells over the limit only the beginning is kept.

    The state at the end of what was read is known, so that nothing is read twice. `_cell_at` is where the cell
    there begins at the latest, in the kept text; its value has at least `_cell_bytes`.
    """

    def __init__(self, name: str, dialect: Dialect, offset: int, limits: StreamLimits) -> None:
        self.name, self.dialect, self.offset, self.limits = name, dialect, offset, limits
        self.size = self._lines = 0
        self._is_row, self._is_blank, self._ends_in_record = True, True, True
        self._text, self._long = io.BytesIO(), list[LongCell]()
        self._before, self._inside, self._open_at = LF, False, 0
        self._cell_at = self._cell_bytes = 0
        self._in_long_cell = self._is_dropped = False

    def read(self, blocks: Iterator[bytes]) -> bytes:
        """Read to the end of the record, and return what follows it in the last block. Raises as `cut_stream` does."""
        left = b""
        for block in blocks:
            text = left + block
            if not self.size:
                self._begin(text)
            stop = self._safe_stop(text)
            if end := self._scan(text[:stop]):
                return text[end:]
            left = text[stop:]
            self._check_size()
        if left and (end := self._scan(left)):
            return left[end:]
        if self._inside:
            raise unclosed_quote(self.name, self.offset + self._open_at)
        self._end_cell()
        self._is_row, self._is_blank = self._is_row and self._ends_in_record and not self._is_blank, False
        self._lines += 1
        return b""

    def records(self) -> Records:
        """Return the record; a comment and a blank line are none."""
        counts = Cut(self.offset, int(self._is_row and not self._is_blank), int(self._is_blank), self._lines)
        return Records(self._text.getvalue(), counts, self.size, tuple(self._long))

    def _begin(self, text: bytes) -> None:
        """Look whether it is a comment, of which nothing is kept; within one that is none, no line begins a comment."""
        comment, self.dialect = self.dialect.comment, replace(self.dialect, comment=None)
        blanks = self.dialect.blanks
        if comment is not None and (text.lstrip(blanks) if blanks else text)[:1] == bytes([comment]):
            self.dialect = replace(self.dialect, quote=None, escape=None)
            self._is_row, self._is_dropped = False, True

    def _check_size(self) -> None:
        most = self.limits.record_bytes
        if self.size <= most or self._is_dropped:
            return
        if not self.limits.rejects:
            at = self.offset + self._open_at
            opened = f"; a quote opens at byte {at}: is it ever closed?" if self._inside else ""
            raise SourceError(
                self.name,
                f"the record at byte {self.offset} is larger than limits.record_bytes ({most} bytes){opened}",
            )
        self._keep_only(min(_HEAD_BYTES, self._text.tell()))
        self._long, self._is_dropped = [], True

    def _safe_stop(self, text: bytes) -> int:
        """Return where a text may be cut: no run of quotes is, nor a CRLF, nor an escape from what it escapes."""
        quote, escape = self.dialect.quote, self.dialect.escape
        stop = len(text.rstrip(b"\r" if quote is None else bytes([quote, CR])))
        if not stop and quote is not None and len(text) > 2 and text.count(quote) == len(text):
            # a run of quotes: the first may open a cell, and inside a cell two are one that is text
            opens = not self._inside and self._before in (LF, CR, self.dialect.delimiter)
            stop = (len(text) - 1 - opens) // 2 * 2 + opens
        if escape is not None:
            stop -= (stop - len(text[:stop].rstrip(bytes([escape])))) & 1
        return stop

    def _scan(self, text: bytes) -> int:
        """Read on, and return where the record ends in the text; 0 if it does not."""
        if not text:
            return 0
        data = np.frombuffer(text, np.uint8)
        masked = without_escapes(data, self.dialect)
        if self._inside and bytes([self.dialect.quote or 0]) not in text:
            found = _STILL_INSIDE
        else:
            found = record_ends(data, self.dialect, before=self._before, inside=self._inside)
        end = int(found.ends[0]) + 1 if len(found.ends) else 0
        text = text[:end] if end else text
        self._lines += int(found.lines[0]) if end else text.count(b"\n") + text.count(b"\r") - text.count(b"\r\n")
        self._is_blank = self._is_blank and not text.strip(self.dialect.blanks + b"\r\n")
        self._ends_in_record = found.tail
        if not self._is_dropped:
            self._keep(text, masked[: len(text)].tobytes(), found)
        if found.open_at >= 0:
            self._open_at = self.size + found.open_at
        self._inside, self.size = found.inside, self.size + len(text)
        blanks = b"" if self.dialect.delimiter in self.dialect.blanks else self.dialect.blanks
        solid = masked[: len(text)].tobytes().rstrip(blanks) if blanks else masked[-1:].tobytes()
        self._before = solid[-1] if solid else self._before
        return end

    def _keep(self, text: bytes, masked: bytes, found: RecordEnds) -> None:
        """Keep text, but for what is of a cell over the limit; `masked` is the text without escapes."""
        start, ends = 0, len(found.ends) > 0
        if self._in_long_cell:
            start = self._cell_end(masked, ends=ends)
            self._cell_bytes += self._value_bytes(masked[:start], self._inside, text[:start])
            if start == len(text) and not ends:
                return
            self._end_cell()
        before = self._text.tell()
        self._text.write(memoryview(text)[start:])
        if ends:
            return
        inside, begins = found.inside, found.open_at + 1
        if not inside:
            sign, quote = self.dialect.delimiter, self.dialect.quote
            last = masked.rfind(bytes([sign]))
            first = (masked.lstrip(self.dialect.blanks) if self.dialect.blanks else masked)[:1]
            may_open = self._before in (LF, CR, sign) and quote is not None and first == bytes([quote])
            goes_on = last < 0 and start == 0 and not self._inside and not may_open
            begins = 0 if goes_on else max(last, -1 if quote is None else masked.rfind(bytes([quote]))) + 1
        if begins:
            self._cell_at, self._cell_bytes = before + begins - start, 0
        if not inside and not self._cell_bytes and self.dialect.trim:  # blanks before a value are no part of it
            blanks = len(masked) - len(masked[begins:].lstrip(self.dialect.blanks)) - begins
            if blanks and not begins and blanks == len(text):
                self._keep_only(before + 1)
            begins += blanks
            self._cell_at = min(before + begins - start, self._text.tell())
        self._cell_bytes += self._value_bytes(masked[begins:], inside, text[begins:])
        if self._cell_bytes > self.limits.field_bytes:
            self._shorten()

    def _cell_end(self, masked: bytes, *, ends: bool) -> int:
        """Return where the cell over the limit ends: at its closing quote, a delimiter, or the end of the record."""
        if self._inside:
            at = first_odd_run(np.frombuffer(masked, np.uint8), self.dialect)
            run = masked[at:]
            return len(masked) if at < 0 else at + len(run) - len(run.lstrip(run[:1])) - 1
        at = masked.find(bytes([self.dialect.delimiter]))
        return at if at >= 0 else len(masked.rstrip(b"\r\n")) if ends else len(masked)

    def _value_bytes(self, masked: bytes, inside: bool, text: bytes) -> int:  # noqa: FBT001 - a state
        """Return how many bytes some text is of a value, or a few less where escapes are used."""
        quote, escape = self.dialect.quote, self.dialect.escape
        twice = masked.count(quote) // 2 if inside and quote is not None else 0
        return len(masked) - twice - (0 if escape is None else text.count(escape))

    def _end_cell(self) -> None:
        if self._in_long_cell:
            self._long.append(LongCell(self._cell_at, self._cell_bytes))
            self._in_long_cell = False

    def _shorten(self) -> None:
        """Keep of the last cell only its beginning, up to a quote, an escape, or a part of a character."""
        at = self._cell_at
        kept = bytes(self._text.getbuffer()[at : at + _HEAD_BYTES])
        quote, escape = self.dialect.quote, self.dialect.escape
        signs = re.escape(bytes(sign for sign in (quote, escape) if sign is not None))
        other = b"[^%b]" % signs if signs else b"."
        pair = b"" if escape is None else b"|%b." % re.escape(bytes([escape]))
        head = re.match(b"(?:%b%b)*" % (other, pair), _CUT_CHARACTER.sub(b"", kept), re.DOTALL)
        self._keep_only(at + (len(head[0]) if head else 0))
        self._in_long_cell = True

    def _keep_only(self, size: int) -> None:
        self._text.seek(size)
        self._text.truncate()


def skip_lines(blocks: Iterator[bytes], count: int) -> tuple[int, int, Iterator[bytes]]:
    """Return the bytes of the first lines, their number, fewer than `count` at most, and the blocks after them."""
    held, size, lines = b"", 0, 0
    if not count:
        return 0, 0, blocks
    for block in blocks:
        if lines == count:
            return size, count, itertools.chain([block], blocks)
        held += block
        ends = [match.end() for match in itertools.islice(re.finditer(rb"\r\n|\r|\n", held), count - lines)]
        if len(ends) == count - lines and ends[-1] < len(held):  # after a CR at the end an LF may follow
            return size + ends[-1], count, itertools.chain([held[ends[-1] :]], blocks)
        done = len(held) - held.endswith(b"\r")
        lines += sum(end <= done for end in ends)
        held, size = held[done:], size + done
    return size + len(held), lines + bool(held), iter(())


def skip_sep_line(blocks: Iterator[bytes]) -> tuple[bytes, Iterator[bytes]]:
    """Return the first line where it names the delimiter, as Excel's `sep=;` does, else no bytes; and what follows."""
    head = b""
    for block in blocks:
        head += block
        if len(head) >= _SEP_BYTES:
            break
    found = _SEP_LINE.match(head)
    line = b"" if found is None else found[0]
    return line, itertools.chain([head[len(line) :]] if len(head) > len(line) else [], blocks)


class UnclosedQuoteError(SourceError):
    """A quote has no end in its file."""


def unclosed_quote(name: str, offset: int) -> UnclosedQuoteError:
    return UnclosedQuoteError(
        name,
        f"the quote at byte {offset} is never closed: all that follows it would be one value; close it, or, where "
        "quotes are plain text, set another input.quote; where a backslash escapes them: "
        f"{ESCAPE}",
    )
