"""Cut the text of CSV files into chunks of whole records, and say where each row of a chunk is in its file.

A plain file is scanned in parallel, in jobs of many blocks; a stream is cut as it comes.

    file    |h|--------|--------|--------|--------|----|     blocks of 1 MiB, scanned in any order
    cuts      ^  ^        ^         ^       ^                the header's end, and the first record start of each block
    chunks    |--|--------|---------|-------|----------|     whole records, with the rows and lines before each known
"""

from __future__ import annotations

import itertools
import re
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from ....errors import SourceError
from ....format.flow.rejects import Place
from ...contract.source import ListedFile, Stamp
from ...files.open_file import OpenFile, expect, open_unbuffered
from ...text.open_text import BLOCK_BYTES
from ...text.pieces import Cut
from .quote_bits import CR, LF, Dialect, Scratch
from .record_starts import BlockScan, record_ends, safe_cut, scan_block

_EDGE_BYTES: Final = 4096
"""Read at once to find a safe edge; runs of quotes are short."""


@dataclass(frozen=True, slots=True)
class ScanJob:
    """A part of a file to scan: nominal bounds, which the scan moves to safe cuts; the text begins at `text_start`."""

    path: bytes
    name: str
    stamp: Stamp
    text_start: int
    start: int
    stop: int

    @property
    def size(self) -> int:
        """The size of the file when it was listed."""
        return self.stamp.size


@dataclass(frozen=True, slots=True, eq=False)
class Chunk:
    """Whole records: their bytes as they are in the text, and what is before them.

    `before` counts from the first data record, so without the header; its `offset` is that of the chunk. `counts` is
    what the chunk itself holds, where that is known; its `offset` is the chunk's size. `header_lines` are those of the
    file that come before its data. Where `torn` is false, no text follows a quote that closes a cell.
    """

    text: bytes
    before: Cut
    counts: Cut | None = None
    header_lines: int = 0
    torn: bool = True


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
        """Return the file, the row, its line and offset; `row` counts from 0 in the batch."""
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
        """Return where each record of the chunk starts."""
        return self._layout()[0]

    def sizes(self) -> npt.NDArray[np.int64]:
        """Return the bytes of each record, its line end and blank lines after it included."""
        return np.diff(self.starts(), append=len(self.chunk.text))

    def _layout(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        if self._starts is None or self._lines is None:
            found = record_ends(np.frombuffer(self.chunk.text, np.uint8), self.dialect)
            starts = np.concatenate([[0], found.ends + 1])
            lines = np.concatenate([[0], found.lines])
            rows = found.of_records | found.blank if self.blank_rows else found.of_records
            keep = np.append(rows, starts[-1] < len(self.chunk.text) and found.tail)
            self._starts, self._lines = starts[keep], lines[keep]
        return self._starts, self._lines


def plan_scan(file: ListedFile, text_start: int, job_bytes: int) -> list[ScanJob]:
    """Return the scan jobs of a plain file, of so many bytes each."""
    edges = [*range(text_start, file.stamp.size, job_bytes), file.stamp.size]
    return [ScanJob(file.path, file.name, file.stamp, text_start, a, b) for a, b in itertools.pairwise(edges)]


def run_scan(job: ScanJob, dialect: Dialect, block_bytes: int) -> list[BlockScan]:
    """Scan the blocks of one job.

    Raises:
        SourceError: the file cannot be read, or ends too soon.
    """
    try:
        with open_unbuffered(job) as file:
            expect(file, [(max(job.start - 1, 0), job.stop - 1)])  # the end is looked at first, and by itself
            return list(_scan_blocks(file, job, dialect, block_bytes))
    except OSError as error:
        raise SourceError(job.name, f"cannot be read: {error.strerror}") from error


class _Threads(threading.local):
    """What each thread that scans keeps from job to job."""

    def __init__(self) -> None:
        self.scratch = Scratch()


_threads = _Threads()


def _scan_blocks(file: OpenFile, job: ScanJob, dialect: Dialect, block_bytes: int) -> Iterator[BlockScan]:
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
            raise SourceError(job.name, "became shorter while it was read; run again")
        data = np.frombuffer(view, np.uint8)
        before = int(data[0]) if begin < low else LF
        yield scan_block(data[low - begin :], low, before, dialect, scratch)
        low = high


def _safe_edge(file: OpenFile, job: ScanJob, at: int, dialect: Dialect) -> int:
    """Return the first offset at or after `at` that cuts no run of quotes and no CRLF."""
    while job.text_start < at < job.size:
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


def cut_stream(
    blocks: Iterable[bytes], name: str, dialect: Dialect, start: int, record_bytes: int, block_bytes: int = BLOCK_BYTES
) -> Iterator[tuple[bytes, Cut]]:
    """Yield chunks of about 1 MiB of whole records, each with its offset and what it holds; the last may lack its end.

    Raises:
        SourceError: a quote is never closed, or a record is larger than `record_bytes`.
    """
    held, offset, wanted = b"", start, block_bytes
    gathered, size = list[bytes](), 0  # joined when there is enough of them: a long record is not copied for each block
    tail = b"\r" if dialect.quote is None else bytes([dialect.quote, CR])
    for block in blocks:
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
            yield held[:end], Cut(offset, records, blanks, int(found.lines[-1]))
            held, offset, wanted = held[end:], offset + end, block_bytes
        elif len(held) > record_bytes:
            opened = f"; a quote opens at byte {offset + found.open_at}: is it ever closed?" if found.inside else ""
            raise SourceError(
                name, f"the record at byte {offset} is larger than limits.record_bytes ({record_bytes} bytes){opened}"
            )
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
        yield held, Cut(offset, records, blanks, lines + rest)


def skip_lines(blocks: Iterator[bytes], count: int) -> tuple[int, int, Iterator[bytes]]:
    """Return the bytes of the first lines, their number, fewer than `count` at most, and the blocks after them."""
    held, ends = b"", list[int]()
    if not count:
        return 0, 0, blocks
    for block in blocks:
        held += block
        ends = [match.end() for match in itertools.islice(re.finditer(rb"\r\n|\r|\n", held), count)]
        if len(ends) == count and ends[-1] < len(held):  # after a CR at the end an LF may follow
            return ends[-1], count, itertools.chain([held[ends[-1] :]], blocks)
    return len(held), len(ends), iter(())


def unclosed_quote(name: str, offset: int) -> SourceError:
    """Return the error of a quoted field that runs to the end of the file."""
    return SourceError(
        name,
        f"the quote at byte {offset} is never closed: all that follows it would be one value; close it, or, where "
        "quotes are plain text, set another input.quote; where a backslash escapes them: --set 'input.escape=\\'",
    )
