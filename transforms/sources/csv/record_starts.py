r"""Find where the records of a CSV file begin, block by block and in parallel, exactly.

A newline ends a record only outside quotes, and whether a block begins inside quotes is known only when all before it
has been read. So every block is scanned for both answers, and a fold over the blocks picks the true one (after Ge et
al., "Speculative Distributed CSV Data Parsing for Big Data Analytics", SIGMOD 2019).

Quote parity is not enough: Python's csv module and Arrow open a quoted field only at its first character. Look at runs
of quotes, not at single ones, and at the byte before each:

    run        state before     state after
    even       any              the same: `""` is an escaped quote, or an empty field
    odd        inside           outside
    odd        outside          inside, if the run is at the start of a field: after a delimiter or a line end
    odd        outside          outside, anywhere else: a stray quote, as in  5" disk

So an odd run at the start of a field toggles, and any other odd run ends in "outside" whatever was before: from the
first such run on, both answers are one. Counting toggles since the last such run gives every state at once:

    text     a,"x,y",5"z,"u          runs (odd):   T at 2   R at 6   R at 9   T at 12
    T count                                        1        1        1        2
    ... at the last R                              0        1        1        1
    state    (difference mod 2)                    inside   outside  outside  inside

LF, CRLF and a lone CR end a line. A block edge never cuts a run of quotes or a CRLF (`safe_cut`).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from ..text.open_text import Cut
from .dialect import (
    CR,
    LF,
    TAB,
    Bytes,
    Dialect,
    Flags,
    Positions,
    Solid,
    as_one_step,
    is_safe,
    line_starts,
    may_be_comments,
    without_escapes,
)
from .quote_bits import WINDOW_BYTES, HalfScan, Scratch, scan_bits


@dataclass(frozen=True, slots=True)
class BlockScan:
    """One scanned block: `start` is its offset in the file, `halves` what it holds by the state it begins in.

    `lines` counts its line ends, within quotes too; `complete` tells whether its last byte ends a line; `nul` whether
    it holds a NUL byte.
    """

    start: int
    lines: int
    complete: bool
    nul: bool
    halves: tuple[HalfScan, HalfScan]


@dataclass(frozen=True, slots=True)
class FileScan:
    """A whole file: its first record start in every block, its end, and the offset of a quote that never closes.

    `torn[i]` tells whether, from `cuts[i]` to the next one, text may follow a quote that closes a cell.
    """

    cuts: tuple[Cut, ...]
    end: Cut
    open_at: int | None
    nul: bool
    torn: tuple[bool, ...]

    def is_torn(self, offset: int) -> bool:
        return self.torn[bisect_right(self.cuts, offset, key=lambda cut: cut.offset) - 1]


@dataclass(frozen=True, slots=True, eq=False)
class RecordEnds:
    """The ends of records and blank lines in a text whose start state is known.

    `ends[i]` is the offset of the last byte of a line end, `blank[i]` whether the line is blank, `comment[i]` whether
    it is a comment (None: none is), `lines[i]` counts the line ends up to it, within quotes too. `inside` is the state
    at the end, `open_at` and `tail` as in `HalfScan`.
    """

    ends: Positions
    blank: Flags
    lines: Positions
    inside: bool
    open_at: int
    comment: Flags | None = None
    tail: bool = True

    @property
    def of_records(self) -> Flags:
        return ~self.blank if self.comment is None else ~(self.blank | self.comment)


def safe_cut(data: Bytes, position: int, dialect: Dialect) -> int:
    """Return the first offset at or after `position` where a block may begin: it cuts no run of quotes and no CRLF.

    It is `len(data)` if there is none: the caller then reads on, unless that is the end of the file.
    """
    size = len(data)
    if dialect.is_odd:
        text = data.tobytes()
        safe = (at for at in range(position, size) if is_safe(text[max(at - 2, 0) : at], text[at], dialect))
        return min(next(safe, size), size)
    while 0 < position < size:
        before, here = int(data[position - 1]), int(data[position])
        if before == here == dialect.quote:
            others = np.flatnonzero(data[position : position + 4096] != dialect.quote)
            position += int(others[0]) if len(others) else min(4096, size - position)
        elif (before, here) == (CR, LF):
            position += 1
        else:
            break
    return min(position, size)


def scan_block(data: Bytes, start: int, before: int, dialect: Dialect, scratch: Scratch | None = None) -> BlockScan:
    """Scan one block of at least one byte; `before` is the byte in front of it, LF at the start of the file."""
    well_formed = None if dialect.is_odd else scan_bits(data, before, dialect, scratch)
    lines, *halves = well_formed or scan_runs(data, before, dialect)
    nul = int(data.min()) == 0
    complete = bool(without_escapes(data, dialect)[-1] in (LF, CR))
    return BlockScan(start, lines, complete, nul, (halves[0], halves[1]))


def scan_runs(data: Bytes, before: int, dialect: Dialect) -> tuple[int, HalfScan, HalfScan]:
    """Return the number of line ends and both halves of any block, from the offsets of its quotes and line ends."""
    marks = _mark(data, before, dialect)
    index = np.searchsorted(marks.positions, marks.ends) if len(marks.positions) else None
    halves = tuple(_half(marks, index, _states(marks.toggles, inside)) for inside in (False, True))
    return marks.lines, halves[0], halves[1]


def fold_blocks(blocks: Iterable[BlockScan], start: int, size: int) -> FileScan:
    """Pick the true half of every block, in order; `start` is where the text begins, `size` where the file ends."""
    cuts = [Cut(start, 0, 0, 0)]
    torn = [False]
    records = blanks = lines = 0
    inside, complete, nul, tail = False, True, False, True
    open_at = -1
    for block in blocks:
        half = block.halves[inside]
        torn[-1] |= half.torn
        if half.first_end >= 0:
            torn.append(half.torn)
            first = Cut(
                offset=block.start + half.first_end + 1,
                records=records + (not half.first_blank and not half.first_comment),
                blanks=blanks + half.first_blank,
                lines=lines + half.first_lines,
            )
            cuts.append(first)
        records, blanks, lines = records + half.records, blanks + half.blanks, lines + block.lines
        if half.open_at >= 0:
            open_at = block.start + half.open_at
        inside, complete, nul, tail = half.inside, block.complete, nul or block.nul, half.tail
    if not complete or inside:
        records, lines = records + (tail or inside), lines + (not complete)
    end = Cut(size, records, blanks, lines)
    return FileScan(tuple(cuts), end, open_at if inside else None, nul, tuple(torn))


def record_ends(data: Bytes, dialect: Dialect, *, before: int = LF, inside: bool = False) -> RecordEnds:
    marks = _mark(data, before, dialect)
    ends, blank, states = marks.ends, marks.blank, _states(marks.toggles, inside)
    comment, tail = marks.comments(states), marks.tail(states)
    lines = np.arange(1, len(ends) + 1) if marks.all_ends is None else np.searchsorted(marks.all_ends, ends, "right")
    true: slice | Flags
    if len(states) == 1:
        true = slice(0, 0) if inside else slice(None)
    else:
        true = ~states[np.searchsorted(marks.positions, ends)]
    open_at = _open_at(marks.positions, states)
    found = None if comment is None else comment[true]
    return RecordEnds(ends[true], blank[true], lines[true], bool(states[-1]), open_at, found, tail)


@dataclass(frozen=True, slots=True)
class TornCell:
    """A cell of usual text whose closing quote, at `closed`, is followed by text; it is `text[start:stop]`.

    `record` counts from 0, `column` the cells before it in its record.
    """

    record: int
    column: int
    start: int
    closed: int
    stop: int


def torn_cells(data: Bytes, dialect: Dialect, starts: Callable[[], Positions]) -> list[TornCell]:
    """Return the first torn cell of each record that has one; `starts` are those of the records.

    A cell is closed by an odd run of quotes inside, and by an even one at the start of a field.
    """
    data = without_escapes(data, dialect)
    quotes = _positions(data, dialect.quote) if dialect.quote is not None else np.empty(0, np.int64)
    is_fence = np.zeros(256, bool)
    is_fence[[dialect.delimiter, LF, CR]] = True
    if _in_pairs(data, quotes, is_fence):
        return []
    firsts = quotes[np.diff(quotes, prepend=-2) != 1]
    lengths = np.diff(np.searchsorted(quotes, firsts), append=len(quotes))
    opens, odd = (firsts == 0) | is_fence[data[firsts - 1]], (lengths & 1).astype(bool)
    states = _states(opens[odd], inside=False)
    after = firsts + lengths
    closes = np.where(states[np.searchsorted(firsts[odd], firsts)], odd, opens & ~odd)
    closed = after[closes & (after < len(data)) & ~is_fence.take(data.take(after, mode="clip"))] - 1
    if not len(closed):
        return []
    begins = starts()
    records, first = np.unique(np.searchsorted(begins, closed, "right") - 1, return_index=True)
    closed = closed[first]
    edges = np.flatnonzero(is_fence[data])
    edges = edges[~states[np.searchsorted(firsts[odd], edges)]]
    delimiters = edges[data[edges] == dialect.delimiter]
    columns = np.searchsorted(delimiters, closed) - np.searchsorted(delimiters, begins[records])
    edges = np.concatenate([[-1], edges, [len(data)]])
    at = np.searchsorted(edges, closed)
    found = (records, columns, edges[at - 1] + 1, closed, edges[at])
    return [TornCell(*cell) for cell in zip(*(part.tolist() for part in found), strict=True)]


def _in_pairs(data: Bytes, quotes: Positions, is_fence: Flags) -> bool:
    """Return whether every second quote opens a cell or follows one, and each other closes it or precedes one."""
    if not len(quotes):
        return True
    around = is_fence.copy()
    around[data[quotes[0]]] = True
    before, after = quotes[0::2] - 1, quotes[1::2] + 1
    before, after = before[before >= 0], after[after < len(data)]
    return bool(around[data[after]].all()) and bool(around[data[before]].all())


def first_odd_run(data: Bytes, dialect: Dialect) -> int:
    """Return where the first odd run of quotes begins, in a text without escapes; -1 if there is none."""
    positions, _ = _odd_runs(data, LF, dialect, None)
    return int(positions[0]) if len(positions) else -1


def quote_states(data: Bytes, dialect: Dialect) -> tuple[Positions, Flags]:
    """Return the offsets of the odd runs of quotes in records without comments and escapes, and the states between."""
    positions, toggles = _odd_runs(data, LF, dialect, Solid.of(data, dialect.blanks))
    return positions, _states(toggles, inside=False)


def cell_delimiters(data: Bytes, dialect: Dialect) -> Positions:
    data = without_escapes(data, dialect)
    delimiters = _positions(data, dialect.delimiter)
    positions, states = quote_states(data, dialect)
    return delimiters[~states[np.searchsorted(positions, delimiters)]]


@dataclass(frozen=True, slots=True, eq=False)
class _Marks:
    """The line ends and odd runs of a text.

    Lines, one more than there are ends, begin at `starts`; `may_be` are those that are comments if they begin outside
    quotes. `rest` tells whether there is more than blanks after the last line end; `all_ends` are the line ends with
    those that are escaped. What a dialect does not need is None.
    """

    ends: Positions
    blank: Flags
    positions: Positions
    toggles: Flags
    starts: Positions | None = None
    may_be: Flags | None = None
    rest: bool = True
    all_ends: Positions | None = None

    @property
    def lines(self) -> int:
        """The number of line ends, those that are escaped too."""
        return len(self.ends if self.all_ends is None else self.all_ends)

    def line_of(self, end: int) -> int:
        return end + 1 if self.all_ends is None else int(np.searchsorted(self.all_ends, self.ends[end], "right"))

    def comments(self, states: Flags) -> Flags | None:
        if self.starts is None or self.may_be is None:
            return None
        return self.may_be[:-1] & ~states[np.searchsorted(self.positions, self.starts[:-1])]

    def tail(self, states: Flags) -> bool:
        if self.starts is None or states[np.searchsorted(self.positions, self.starts[-1])]:
            return True
        return self.rest and not (self.may_be is not None and bool(self.may_be[-1]))


def _mark(data: Bytes, before: int, dialect: Dialect) -> _Marks:
    all_ends = None if dialect.escape is None else _line_ends(data, before)[0]
    data = without_escapes(data, dialect)
    solid = Solid.of(data, dialect.blanks) if dialect.trim else None
    ends, blank = _line_ends(data, before)
    positions, toggles = _odd_runs(data, before, dialect, solid)
    if not len(data) or (solid is None and dialect.comment is None):
        return _Marks(ends, blank, positions, toggles, all_ends=all_ends)
    starts, rest, may_be = line_starts(ends), True, None
    if solid is not None:
        stops = np.append(ends - ((data[ends] == LF) & (data[ends - 1] == CR) & (ends > 0)), len(data))
        empty = ~solid.has_any(starts, stops)
        empty[0] &= before in (LF, CR)  # or the line began in the block before
        blank, rest = empty[:-1], not empty[-1]
    if dialect.comment is not None:
        may_be = may_be_comments(data, starts, dialect, solid)
        positions, toggles = as_one_step(positions, toggles, ends, starts, may_be)
    return _Marks(ends, blank, positions, toggles, starts, may_be, rest, all_ends)


def _positions(data: Bytes, byte: int) -> Positions:
    """Return the offsets of a byte.

    In windows that reuse one small mask: a mask of the whole block would be fresh pages every time, and to have the
    kernel map those costs seven times the comparison.
    """
    mask = np.empty(min(len(data), WINDOW_BYTES), bool)
    found = []
    for start in range(0, len(data), WINDOW_BYTES):
        part = data[start : start + WINDOW_BYTES]
        hits = np.equal(part, byte, out=mask[: len(part)])
        if hits.any():  # most blocks hold no CR and no quote: to say so costs a fifth of looking for positions
            found.append(np.flatnonzero(hits) + start)
    return np.concatenate(found) if found else np.empty(0, np.int64)


def _line_ends(data: Bytes, before: int) -> tuple[Positions, Flags]:
    """Return the offsets of the last bytes of all line ends, and which of them end a line with nothing in it."""
    ends = _positions(data, LF)
    returns = _positions(data, CR)
    if not len(returns) and before != CR:
        blank = np.empty(len(ends), bool)
        if len(ends):
            blank[0] = ends[0] == 0 and before == LF
            np.equal(ends[1:] - ends[:-1], 1, out=blank[1:])
        return ends, blank
    follows = np.minimum(returns + 1, len(data) - 1)
    alone = returns[(data[follows] != LF) | (follows == returns)]
    if len(alone):
        ends = np.sort(np.concatenate([ends, alone]))
    padded = np.concatenate([np.array([LF, before], np.uint8), data])  # padded[i + 1] is the byte before data[i]
    paired = (data[ends] == LF) & (padded[ends + 1] == CR) & (ends > 0)
    earlier = padded[ends + 1 - paired]
    return ends, (earlier == LF) | (earlier == CR)


def _odd_runs(data: Bytes, before: int, dialect: Dialect, solid: Solid | None) -> tuple[Positions, Flags]:
    """Return the offsets of the odd runs of quotes, and which of them are at the start of a field."""
    none = np.empty(0, np.int64), np.empty(0, bool)
    if dialect.quote is None:
        return none
    quotes = _positions(data, dialect.quote)
    if not len(quotes):
        return none
    opens = np.empty(len(quotes), bool)  # the first quote of each run
    opens[0] = True
    np.not_equal(quotes[1:] - quotes[:-1], 1, out=opens[1:])
    if not opens.all():
        firsts = np.flatnonzero(opens)
        lengths = np.diff(firsts, append=len(quotes))
        quotes = quotes[firsts[(lengths & 1).astype(bool)]]
        if not len(quotes):
            return none
    if solid is not None and dialect.delimiter not in dialect.blanks:
        earlier = solid.before(data, quotes, before)
        return quotes, (earlier == dialect.delimiter) | (earlier == LF) | (earlier == CR)
    earlier = data[quotes - 1]  # of a run at offset 0 this is the last byte of the block: fixed in the next lines
    if quotes[0] == 0:
        earlier[0] = before
    opens = (earlier == dialect.delimiter) | (earlier == LF) | (earlier == CR)
    return quotes, opens if solid is None else opens | (earlier == TAB)


def _states(toggles: Flags, inside: bool) -> Flags:  # noqa: FBT001 - the start state is what the function is about
    """Return the state before the first odd run and after each: element i holds between run i - 1 and run i."""
    states = np.empty(len(toggles) + 1, bool)
    states[0] = inside
    if len(toggles):
        counts = np.cumsum(toggles, dtype=np.int32)
        # counts never fall, so the largest count seen at a reset is that of the last reset
        base = np.maximum.accumulate(np.where(toggles, np.int32(-1), counts))
        parity = (counts - np.where(base < 0, np.int32(-inside), base)) & 1
        states[1:] = parity.astype(bool)
    return states


def _half(marks: _Marks, index: Positions | None, states: Flags) -> HalfScan:
    ends, blank, comments, tail = marks.ends, marks.blank, marks.comments(states), marks.tail(states)
    inside = bool(states[-1])
    true = None if index is None else ~states[index]
    open_at = -1 if index is None else _open_at(marks.positions, states)
    count = (0 if inside else len(ends)) if true is None else int(np.count_nonzero(true))
    if not count:
        return HalfScan(inside, 0, 0, -1, False, 0, open_at, False, tail)
    first = 0 if true is None else int(np.argmax(true))
    blanks = int(np.count_nonzero(blank if true is None else true & blank))
    if comments is None:
        records, first_comment = count - blanks, False
    else:
        records, first_comment = count - blanks - int(np.count_nonzero(comments)), bool(comments[first])
    return HalfScan(
        inside,
        records,
        blanks,
        int(ends[first]),
        bool(blank[first]),
        marks.line_of(first),
        open_at,
        first_comment,
        tail,
    )


def _open_at(positions: Positions, states: Flags) -> int:
    """Return the offset of the run that led inside for the last time, if the text ends there; else -1."""
    if not states[-1]:
        return -1
    turns = np.flatnonzero(states[1:] & ~states[:-1])
    return int(positions[turns[-1]]) if len(turns) else -1


# Write records of an odd dialect as Arrow reads them: without comments, and without blanks around cells.
#
#     raw      # made by x \n  1 ,  "a b" , c\n        trim, comment: "#"
#     usual    1,"a b",c\n
#
# Arrow takes escapes itself, and so they stay.


def usual_text(text: bytes, dialect: Dialect) -> bytes:
    """Return whole records as they are without comments, and without blanks around cells; others as they are."""
    if not dialect.is_odd:
        return text
    if dialect.comment is not None:
        text = _without_comments(text, dialect)
    if dialect.trim and text:
        text = _without_blanks(np.frombuffer(text, np.uint8), dialect)
    if dialect.escape is not None and (len(text) - len(text.rstrip(bytes([dialect.escape])))) % 2:
        text += bytes([dialect.escape])  # at the end of the file it escapes nothing, and stays
    return text


def padded(text: bytes, dialect: Dialect, missing: dict[int, int], cell: bytes) -> bytes:
    """Return usual text in which some records have more cells at their end: how many, by the number of the record."""
    data = np.frombuffer(text, np.uint8)
    found = record_ends(data, dialect)
    ends, masked = found.ends[found.of_records], without_escapes(data, dialect)
    more = bytes([dialect.delimiter]) + cell
    parts, done = [], 0
    for record in sorted(missing):
        end = int(ends[record]) if record < len(ends) else len(text)
        end -= end > 0 and end < len(text) and bytes(masked[end - 1 : end + 1]) == b"\r\n"
        parts += [text[done:end], more * missing[record]]
        done = end
    return b"".join([*parts, text[done:]])


def _without_comments(text: bytes, dialect: Dialect) -> bytes:
    data = np.frombuffer(text, np.uint8)
    found = record_ends(data, dialect)
    starts = np.concatenate([np.zeros(1, np.int64), found.ends + 1])
    comments = np.zeros(len(found.ends), bool) if found.comment is None else found.comment
    if found.tail and not comments.any():
        return text
    begins, ends = starts[:-1][comments], starts[1:][comments]
    if not found.tail:
        begins, ends = np.append(begins, starts[-1]), np.append(ends, len(text))
    return data[_ranges_removed(len(text), begins, ends)].tobytes()


def _without_blanks(data: Bytes, dialect: Dialect) -> bytes:
    masked = without_escapes(data, dialect)
    blank = np.isin(masked, np.frombuffer(dialect.blanks, np.uint8))
    edges = np.flatnonzero(np.diff(blank, prepend=False, append=False))
    begins, ends = edges[::2], edges[1::2]
    positions, states = quote_states(masked, dialect)
    outside = ~states[np.searchsorted(positions, begins)]
    begins, ends = begins[outside], ends[outside]
    fences = [LF, CR] if dialect.delimiter in dialect.blanks else [LF, CR, dialect.delimiter]
    left = (begins == 0) | np.isin(masked[np.maximum(begins - 1, 0)], fences)
    right = (ends == len(data)) | np.isin(masked[np.minimum(ends, len(data) - 1)], fences)
    edge = left | right
    if dialect.delimiter not in dialect.blanks:
        return data[_ranges_removed(len(data), begins[edge], ends[edge])].tobytes()
    data = data.copy()
    data[begins] = dialect.delimiter  # of a run between two cells the first blank stays
    return data[_ranges_removed(len(data), begins + ~edge, ends)].tobytes()


def _ranges_removed(size: int, begins: Positions, ends: Positions) -> Flags:
    steps = np.zeros(size + 1, np.int8)
    np.add.at(steps, begins, 1)
    np.add.at(steps, ends, -1)
    kept: Flags = np.cumsum(steps[:-1], dtype=np.int8) == 0
    return kept
