"""The dialect of a CSV file, and what `escape`, `trim` and `comment` change about where records begin.

- Escape: a run of an even number of escapes is text, and an odd run takes the meaning of the byte after it. All of
  these bytes become one that means nothing. No block edge cuts a run from the byte after it.
- Trim: the byte before a run of quotes is the first one that is no blank, and a line of blanks is blank. No block
  edge follows a blank.
- Comment: whether a line that begins with the sign is a comment depends on the state at its start. Blocks begin where
  lines do, so that none begins within a comment. To the states the line is one step, whatever it holds:

      begins    it is                    ends
      outside   a comment                outside, its quotes being no quotes
      inside    a line of a quoted cell  outside, if its quotes end so: then it is one odd run that ends in "outside"
                                         inside, if not: then it changes nothing in either state
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from ...format.wording.hints import Set

Bytes = npt.NDArray[np.uint8]

LF: Final = 10
CR: Final = 13
TAB: Final = 9


@dataclass(frozen=True, slots=True)
class Dialect:
    """The bytes that shape a record: the delimiter, and the quote, None where nothing is quoted.

    The byte after an `escape` means itself. A line that begins with `comment` is no record. With `trim` blanks around
    a cell are no part of it, and where the delimiter is a blank, a run of them is one delimiter.
    """

    delimiter: int = ord(",")
    quote: int | None = ord('"')
    escape: int | None = None
    comment: int | None = None
    trim: bool = False

    @classmethod
    def of(cls, delimiter: str, quote: str | None, escape: str | None, comment: str | None, *, trim: bool) -> Dialect:
        """Return the dialect of these signs, one ASCII character each."""
        quoting, escaping, commenting = (None if sign is None else ord(sign) for sign in (quote, escape, comment))
        return cls(ord(delimiter), quoting, escaping, commenting, trim)

    @property
    def blanks(self) -> bytes:
        """The bytes that are no part of a cell at its edges: none without `trim`."""
        return b"" if not self.trim else b" " if self.delimiter == TAB else b" \t"

    @property
    def is_odd(self) -> bool:
        return self.trim or self.escape is not None or self.comment is not None

    @property
    def usual(self) -> Dialect:
        """The dialect of text without comments, and without blanks around cells."""
        return replace(self, comment=None, trim=False)


Positions = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

ESCAPE: Final = Set("input.escape", "\\")
_MEANS_NOTHING: Final = b"x_01234567"


def without_escapes(data: Bytes, dialect: Dialect) -> Bytes:
    """Return the text with a byte that means nothing in the place of all escapes, and of what each escapes."""
    if dialect.escape is None:
        return data
    escapes = np.flatnonzero(data == dialect.escape)
    if not len(escapes):
        return data
    opens = np.append(True, escapes[1:] - escapes[:-1] != 1)
    firsts = np.flatnonzero(opens)
    lengths = np.diff(firsts, append=len(escapes))
    escaped = (escapes[firsts] + lengths)[(lengths & 1).astype(bool)]
    signs = {dialect.delimiter, dialect.quote, dialect.escape, dialect.comment}
    filler = next(byte for byte in _MEANS_NOTHING if byte not in signs)
    masked = data.copy()
    masked[escapes] = filler
    masked[escaped[escaped < len(data)]] = filler
    return masked


def is_safe(before: bytes, here: int, dialect: Dialect) -> bool:
    """Return whether a block may begin at a byte; `before` are the two before it, fewer at the start of the text."""
    if not before:
        return True
    last = before[-1]
    if last == here == dialect.quote or (last == CR and here == LF):
        return False
    if dialect.comment is not None and last not in (LF, CR):
        return False
    return (dialect.escape is None or dialect.escape not in before) and last not in dialect.blanks


@dataclass(frozen=True, slots=True, eq=False)
class Solid:
    """Where the bytes are that are no blanks: for each byte, the offset of the last one up to it, -1 for none."""

    last: Positions

    @classmethod
    def of(cls, data: Bytes, blanks: bytes) -> Solid:
        solid = np.ones(len(data), bool)
        for blank in blanks:
            solid &= data != blank
        return cls(np.maximum.accumulate(np.where(solid, np.arange(len(data)), -1)))

    def before(self, data: Bytes, positions: Positions, first: int) -> Bytes:
        """Return the byte before each position that is no blank; `first` is the one before the text."""
        at = np.where(positions > 0, self.last[positions - 1], -1)
        return np.where(at >= 0, data[at], np.uint8(first))

    def has_any(self, starts: Positions, stops: Positions) -> Flags:
        return (stops > starts) & (self.last[np.maximum(stops - 1, 0)] >= starts)

    def first_from(self, starts: Positions) -> Positions:
        """Return the first one at or after each position, or what comes close: the end of its line or of the text."""
        return np.searchsorted(self.last, starts)


def line_starts(ends: Positions) -> Positions:
    return np.concatenate([np.zeros(1, np.int64), ends + 1])


def may_be_comments(data: Bytes, starts: Positions, dialect: Dialect, solid: Solid | None) -> Flags:
    """Return which lines begin with the sign of comments, after blanks if those are no part of cells."""
    at = starts if solid is None else solid.first_from(starts)
    inside = at < len(data)
    found: Flags = inside & (data[np.where(inside, at, 0)] == dialect.comment)
    return found


def as_one_step(
    positions: Positions, toggles: Flags, ends: Positions, starts: Positions, comments: Flags
) -> tuple[Positions, Flags]:
    """Return the odd runs, with one at most in place of those of each line that may be a comment."""
    lines = np.searchsorted(ends, positions)
    within = comments[lines]
    if not within.any():
        return positions, toggles
    turns = np.cumsum(toggles)
    resets = np.maximum.accumulate(np.where(toggles, -1, np.arange(len(toggles))))
    odd = np.unique(lines[within])
    first, stop = np.searchsorted(lines, odd), np.searchsorted(lines, odd, "right")
    reset = resets[stop - 1]
    since: Positions = turns[stop - 1] - np.where(reset >= first, turns[reset], turns[first] - toggles[first])
    # from inside to outside: by an odd number of toggles, or by a reset and an even number after it
    leaves = (since & 1).astype(bool) == (reset < first)
    steps = starts[odd[leaves]]
    positions = np.concatenate([positions[~within], steps])
    toggles = np.concatenate([toggles[~within], np.zeros(len(steps), bool)])
    order = np.argsort(positions, kind="stable")
    return positions[order], toggles[order]
