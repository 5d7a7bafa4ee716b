"""Read files whose lines are their records: count lines in parallel, cut files into pieces, read whole lines.

LF ends a line, with or without a CR before it; the last line may lack its end. A line of blanks alone is no record,
where a format says so. What a job counts are the lines that begin in it, so that jobs need nothing of each other:

    file    |--------|--------|--------|----|     jobs of many blocks of 1 MiB
    lines   |-----|------|---|---------|----|     counted where they begin, and read on to their end
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

import numpy as np
import numpy.typing as npt

from ...errors import SourceError
from ...format.batches.arrow_memory import BUFFER_LIMIT
from ...format.batches.rejects import Place
from ...format.wording.hints import Set
from ...inputs.contract.source import ParallelMap, SourceEntry
from ...inputs.files.open_file import SHORTER, DiskErrors, OpenFile, expect, open_file, open_unbuffered, read_blocks
from .open_text import BLOCK_BYTES, Cut, TextJob, TextPiece, joined, sniff_text, stream_text, text_jobs

I64 = npt.NDArray[np.int64]

_LF: Final = 10
_CR: Final = 13
_BLANKS: Final = b" \t\r"
_AS_UTF8: Final = "write it as UTF-8: {rewrite}"
_HEAD_BYTES: Final = 400
"""How much of a line that is too large is kept for its message."""

MOST_VALUES: Final = 2_000_000
"""The most values in a line of JSON: Python takes 128 bytes for each where pyarrow refuses the line."""

_TOKENS: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+"|,', re.DOTALL)

_ESCAPE: Final = re.compile(rb"\\\\.", re.DOTALL)
_ESCAPE_BYTES: Final = 5
"""How many bytes an escape takes in JSON more than what it stands for, at most."""


@dataclass(frozen=True, slots=True)
class LineSizes:
    """Sizes of the work: a line of more than `record_bytes` is not read, `job_bytes` are counted by one call.

    Nor is a line with a value of more than `field_bytes`: the line itself, or in a line of `json` one of its values.
    Pieces are read together up to `joined_bytes`, as CSV does; `block_bytes` are in a piece. Of more than `auto_bytes`
    types are found in the first lines.
    """

    record_bytes: int = 1 << 30
    field_bytes: int = 64 << 20
    json: bool = False
    block_bytes: int = field(default=BLOCK_BYTES, repr=False)
    job_bytes: int = field(default=16 << 20, repr=False)
    joined_bytes: int = field(default=9 << 18, repr=False)
    auto_bytes: int = field(default=64 << 20, repr=False)


@dataclass(frozen=True, slots=True)
class LineBlock:
    """The lines that begin in a block: where they start and stop, how many they are, and how many are blank."""

    start: int
    stop: int
    lines: int
    blanks: int


@dataclass(frozen=True, slots=True, eq=False)
class Lines:
    """Some whole lines of a file: line i is `text[starts[i] : ends[i]]`, without its line end.

    `before` is what is before them in the file. `blank` marks those that are no records. `large` is the size of the
    one line that was not read since it, or a value in it of more than `field_bytes`, is too large; `text` is its
    beginning then.
    """

    text: bytes
    before: Cut
    starts: I64
    ends: I64
    blank: npt.NDArray[np.bool_]
    large: int | None = None
    field_bytes: int | None = None

    @property
    def records(self) -> I64:
        return np.flatnonzero(~self.blank)

    def too_large(self, line: int, record_bytes: int) -> tuple[str, str] | None:
        """Return the code and the message of a line that is too large; None for one that is not known to be."""
        size = self.large or int(self.ends[line] - self.starts[line])
        if size > record_bytes:
            return "RECORD_TOO_LARGE", over_record_bytes(size, record_bytes)
        if self.large is not None:
            said = f"a value in its {size} bytes is more than limits.field_bytes ({self.field_bytes}); raise it: "
            return "FIELD_TOO_LARGE", f"{said}{Set('limits.field_bytes', size)}"
        if self.has_many_values(line):
            said = f"more than {MOST_VALUES:,} values in one line of JSON; "
            return "RECORD_TOO_LARGE", f"{said}write arrays of that size as .npy files or Parquet"
        return None

    def has_many_values(self, line: int) -> bool:
        """Return whether a line of JSON has more than `MOST_VALUES` values: commas within text are none."""
        start, end = int(self.starts[line]), int(self.ends[line])
        if end - start <= 2 * MOST_VALUES or self.text.count(b",", start, end) < MOST_VALUES:
            return False
        commas = (1 for token in _TOKENS.finditer(self.text, start, end) if token.group() == b",")
        return sum(itertools.islice(commas, MOST_VALUES)) == MOST_VALUES

    def place(self, name: str, record: int, *, located: bool = True) -> Place:
        """Return the place of a record, counted from 0 here; offsets mean nothing unless `located`."""
        index = int(self.records[record])
        offset = self.before.offset + int(self.starts[index]) if located else None
        return Place(name, row=self.before.records + record + 1, line=self.before.lines + index + 1, offset=offset)


@dataclass(frozen=True, slots=True, eq=False)
class LineOrigin:
    """The places of a batch of lines: their numbers in the file, and their offsets."""

    source: str
    rows: I64
    lines: I64
    offsets: I64

    def place(self, row: int) -> Place:
        return Place(self.source, row=int(self.rows[row]), line=int(self.lines[row]), offset=int(self.offsets[row]))

    def number(self, row: int) -> tuple[str, int]:
        return self.source, int(self.rows[row])


def over_record_bytes(size: int, limit: int) -> str:
    """Return what is wrong with the text of a record, and a limit that the record has room in: it has names, too."""
    most = min(2 * size, BUFFER_LIMIT)
    return f"{size} bytes are more than limits.record_bytes ({limit}); raise it: {Set('limits.record_bytes', most)}"


def origin_of(lines: Lines, name: str, kept: npt.NDArray[np.int64]) -> LineOrigin:
    before, index = lines.before, lines.records[kept]
    return LineOrigin(name, before.records + kept + 1, before.lines + index + 1, before.offset + lines.starts[index])


def line_pieces(
    entries: Sequence[SourceEntry], sizes: LineSizes, run: ParallelMap, *, blank_rows: bool
) -> tuple[list[TextPiece], Counter[int]]:
    """Return the pieces of some files: about 1 MiB of whole lines each, counted; a compressed file is one.

    The counts are those of the blank lines of the other files.
    """
    forms = run(partial(sniff_text, encoding="utf-8", fix=_AS_UTF8), entries)
    jobs = [
        (index, job)
        for index, (entry, form) in enumerate(zip(entries, forms, strict=True))
        if not form.streamed
        for job in text_jobs(entry, form.start, sizes.job_bytes)
    ]
    count = partial(count_lines, block_bytes=sizes.block_bytes, blank_rows=blank_rows)
    counted = run(count, [job for _, job in jobs], heavy=True)
    blocks: dict[int, list[LineBlock]] = {}
    for (index, _), found in zip(jobs, counted, strict=True):
        blocks.setdefault(index, []).extend(found)
    pieces = []
    for index, (entry, form) in enumerate(zip(entries, forms, strict=True)):
        if form.streamed:
            pieces.append(_piece(index, entry, Cut(form.start, 0, 0, 0), entry.bytes, None))
        else:
            pieces += _pieces(index, entry, blocks.get(index, ()))
    return pieces, Counter({index: sum(one.blanks for one in found) for index, found in blocks.items()})


def _pieces(index: int, entry: SourceEntry, blocks: Iterable[LineBlock]) -> Iterator[TextPiece]:
    records = blanks = lines = 0
    for block in blocks:
        found = block.lines - block.blanks
        if found:
            yield _piece(index, entry, Cut(block.start, records, blanks, lines), block.stop, found)
        records, blanks, lines = records + found, blanks + block.blanks, lines + block.lines


def _piece(index: int, entry: SourceEntry, before: Cut, stop: int, rows: int | None) -> TextPiece:
    return TextPiece(
        **entry.place(index),
        rows=rows,
        first_row=before.records,
        bytes=stop - before.offset,
        before=before,
        stop=stop,
        streamed=rows is None,
    )


def count_lines(job: TextJob, block_bytes: int, *, blank_rows: bool) -> list[LineBlock]:
    with DiskErrors(job.name), open_unbuffered(job) as file:
        expect(file, [(max(job.start - 1, 0), job.stop)])
        return list(_count(file, job, block_bytes, blank_rows=blank_rows))


def _count(file: OpenFile, job: TextJob, block_bytes: int, *, blank_rows: bool) -> Iterator[LineBlock]:
    at, edge = job.start, job.start
    if at > job.text_start:
        at, _ = _line_end(file, at - 1, job.stop, block_bytes)
    while at < job.stop:
        while edge <= at:
            edge += block_bytes
        file.seek(at)
        size = min(edge, job.stop) - at
        text = file.read(size)
        if len(text) != size:
            raise SourceError(job.name, SHORTER)
        stop, blank_end = at + size, True
        if text[-1] != _LF:  # the last line began here, and ends later
            stop, blank_end = _line_end(file, stop, job.stamp.size, block_bytes)
        starts, ends = line_bounds(text)
        blanks = 0
        if not blank_rows:
            blank = blank_lines(text, starts, ends)
            blanks = int(blank.sum()) - (bool(blank[-1]) and not blank_end)
        yield LineBlock(at, stop, len(starts), blanks)
        at = stop


def _line_end(file: OpenFile, at: int, most: int, block_bytes: int) -> tuple[int, bool]:
    """Return the offset after the first line end from `at` on, or `most`; and whether all before it is blank."""
    blank, size = True, 4096
    file.seek(at)
    while at < most:
        text = file.read(min(size, most - at))
        if not text:
            break
        found = text.find(b"\n")
        blank = blank and not text[: len(text) if found < 0 else found].strip(_BLANKS)
        if found >= 0:
            return at + found + 1, blank
        at, size = at + len(text), min(4 * size, block_bytes)
    return most, blank


def line_bounds(text: bytes) -> tuple[I64, I64]:
    """Return where each line of a text starts and ends, line ends left out."""
    data = np.frombuffer(text, np.uint8)
    ends = np.flatnonzero(data == _LF)
    starts = np.concatenate([np.zeros(1, np.int64), ends + 1])
    if not text or text[-1] == _LF:
        starts = starts[:-1]
    else:
        ends = np.append(ends, len(text))
    if b"\r" in text:
        ends = ends - ((ends > starts) & (data[np.maximum(ends, 1) - 1] == _CR))
    return starts, ends


def blank_lines(text: bytes, starts: I64, ends: I64) -> npt.NDArray[np.bool_]:
    blank: npt.NDArray[np.bool_] = starts == ends
    if len(starts):
        data = np.frombuffer(text, np.uint8)
        first = data[np.minimum(starts, len(data) - 1)]
        for index in np.flatnonzero(~blank & np.isin(first, list(_BLANKS))).tolist():
            blank[index] = not text[starts[index] : ends[index]].strip(_BLANKS)
    return blank


def read_lines(pieces: Sequence[TextPiece], sizes: LineSizes, *, blank_rows: bool) -> Iterator[tuple[TextPiece, Lines]]:
    """Yield the lines of pieces of one file, in order; small pieces that follow each other come as one."""
    for piece in pieces:
        if piece.streamed:
            form = sniff_text(piece, "utf-8", _AS_UTF8)
            text = stream_text(piece, "utf-8", form, fix=_AS_UTF8)
            for lines in cut_lines(text, piece.before, sizes, blank_rows=blank_rows):
                yield piece, lines
    plain = [piece for piece in pieces if not piece.streamed]
    if not plain:
        return
    most = max(sizes.joined_bytes, 2 * sizes.block_bytes)
    with DiskErrors(plain[0].name), open_file(plain[0]) as file:
        expect(file, [(plain[0].before.offset, plain[-1].stop)])
        for piece in joined(plain, sizes.joined_bytes):
            file.seek(piece.before.offset)
            # a piece at once, but for one that is a large line
            blocks = read_blocks(file, piece.stop - piece.before.offset, most, piece.name)
            for lines in cut_lines(blocks, piece.before, sizes, blank_rows=blank_rows):
                yield piece, lines


def cut_lines(blocks: Iterable[bytes], start: Cut, sizes: LineSizes, *, blank_rows: bool) -> Iterator[Lines]:
    """Yield whole lines as blocks of text bring them; a line that is too large comes by itself."""
    held, before, most = _Held(sizes), start, sizes.record_bytes + len(b"\r\n")
    for block in blocks:
        cut = block.rfind(b"\n") + 1
        first = block.find(b"\n") + 1
        if cut and held.size and (held.large or held.size + first > most):
            held.add(block[:first])
            yield held.whole(before, blank_rows=blank_rows)
            before = _after(before, held.last)
            block, cut, held = block[first:], cut - first, _Held(sizes)
        if not cut:
            held.add(block)
            continue
        held.end(block[:cut])
        yield held.whole(before, blank_rows=blank_rows)
        before = _after(before, held.last)
        held = _Held(sizes)
        held.add(block[cut:])
    if held.size:
        yield held.whole(before, blank_rows=blank_rows)


class _Held:
    """Text that waits for the end of its line; of a line that is too large only the beginning is kept."""

    def __init__(self, sizes: LineSizes) -> None:
        self.sizes = sizes
        self.value = _Value()
        self.parts: list[bytes] = []
        self.size = 0
        self.large = self.blank = False
        self.tail = b""
        self.last = Cut(0, 0, 0, 0)

    def add(self, text: bytes) -> None:
        if not text:
            return
        self.size += len(text)
        self.tail = (self.tail + text[-2:])[-2:]
        if self.large:
            self.blank = self.blank and not text.rstrip(b"\n").strip(_BLANKS)
            return
        self.parts.append(text)
        if self._is_large():
            self.large = True
            self.blank = not any(part.strip(_BLANKS) for part in self.parts)
            self.parts = [b"".join(self.parts[:2])[:_HEAD_BYTES]]

    def end(self, text: bytes) -> None:
        self.size += len(text)
        self.parts.append(text)

    def _is_large(self) -> bool:
        sizes, end = self.sizes, len(b"\r\n")
        if self.size <= sizes.field_bytes + end or not sizes.json:
            return self.size > min(sizes.record_bytes, sizes.field_bytes) + end
        if self.size > sizes.record_bytes + end:
            return True
        for part in self.parts if not self.value.seen else self.parts[-1:]:
            self.value.add(part)
        return self.value.size > sizes.field_bytes

    def whole(self, before: Cut, *, blank_rows: bool) -> Lines:
        text, self.parts = b"".join(self.parts), []  # a line of many blocks is held once
        if self.large:
            one = np.zeros(1, np.int64)
            blank = self.blank and not blank_rows
            self.last = Cut(self.size, not blank, blank, 1)
            size = self.size - (len(self.tail) - len(self.tail.removesuffix(b"\n").removesuffix(b"\r")))
            return Lines(text, before, one, one + len(text), np.array([blank]), size, self.sizes.field_bytes)
        starts, ends = line_bounds(text)
        which = np.zeros(len(starts), np.bool_) if blank_rows else blank_lines(text, starts, ends)
        blanks = int(which.sum())
        self.last = Cut(self.size, len(starts) - blanks, blanks, len(starts))
        return Lines(text, before, starts, ends, which)


class _Value:
    """How many bytes the value has at least that the text of a JSON line ends in: those after its last `"` or `,`."""

    def __init__(self) -> None:
        self.seen = False
        self.size = 0
        self.inside = False
        self.escaped = False

    def add(self, text: bytes) -> None:
        self.seen = True
        if self.escaped:
            text = b"_" + text[1:]
        whole = _ESCAPE.sub(b"__", text) if b"\\" in text else text
        self.escaped = whole.endswith(b"\\")
        self.inside ^= bool(whole.count(b'"') & 1)
        start = whole.rfind(b'"') + 1
        if not self.inside:
            start = max(start, whole.rfind(b",") + 1)
        if start:
            self.size = 0
        self.size += len(text) - start - _ESCAPE_BYTES * text.count(b"\\", start)


def _after(before: Cut, last: Cut) -> Cut:
    return replace(
        before,
        offset=before.offset + last.offset,
        records=before.records + last.records,
        blanks=before.blanks + last.blanks,
        lines=before.lines + last.lines,
    )
