r"""Scan a block of CSV for both cases, that it begins inside quotes and that it does not, with one bit a byte.

Every mask is packed into 64-bit words, so that one operation on 1 MiB takes a few microseconds. In well-formed text
the state is the parity of the quotes so far, a prefix XOR:

    text       a , " x " " , y " , b \n
    quotes     0 0 1 0 1 1 0 0 1 0 0 0
    parity     0 0 1 1 0 1 1 1 0 0 0 0      inside where 1, if the block begins outside

Parity goes wrong only at a run of quotes that is met outside and is not at the start of a field. A look at all
runs finds such strays: the first quote of the run, which toggles, is inside by its own parity. Taking a block for what
it is not (outside for inside) makes its closing quotes strays: at the first odd one the false answer ends in "outside",
as the true one does, and is the same from there on.

    text       x y " , " z " , 1 \n
    inside     1 1 0 0 1 1 0 0 0 0          true: no stray
    outside    0 0[0]0 1 1 0 0 0 0          false: the quote in brackets is a stray, and both agree after it

A CRLF ends a line with its LF. A block with a stray in both answers (`5" disk`), or with a lone CR, is left to
`record_starts`, which takes any text.

All masks and temporaries of a block are in one `Scratch`, which the next block uses again: memory that is fresh costs
more to map than to fill.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from .dialect import CR, LF, Bytes, Dialect

Words = npt.NDArray[np.uint64]

WINDOW_BYTES: Final = 1 << 18
"""Bytes compared at a time: the mask stays in the cache, and in memory that the process has already."""

_MANY_EVEN_STRAYS: Final = 64
"""After this many escaped quotes in a row a block is left to the general scan, rather than walked in Python."""

_ONE: Final = np.uint64(1)
_TOP: Final = np.uint64(63)
_STEPS: Final = tuple(np.uint64(step) for step in (2, 4, 8, 16, 32))
_NEAR_WORDS: Final = 64
"""What is looked for in a mask is looked for in the first 4 KiB of text first."""


@dataclass(frozen=True, slots=True)
class HalfScan:
    """What a block holds if it begins in one of the two states.

    `inside` is the state at its end. `records` and `blanks` count the non-blank records and the blank lines that end
    in it. `first_end` is the offset in the block of the line end that ends the first of either, -1 if none does;
    `first_blank` tells which it is, and `first_lines` counts the line ends up to it, within quotes too. `open_at` is
    the offset of the quote that opened the field which is open at the end, -1 if it was open from the start. With
    `first_comment` the first line that ends is a comment; `tail` tells whether what follows the last line end, if
    anything does, is of a record. Where `torn` is false, no text follows a quote that closes a cell.
    """

    inside: bool
    records: int
    blanks: int
    first_end: int
    first_blank: bool
    first_lines: int
    open_at: int
    first_comment: bool = False
    tail: bool = True
    torn: bool = field(default=True, compare=False)


@dataclass(slots=True, eq=False)
class Scratch:
    """Memory for the text and the masks of one block, used again by the next; for one thread at a time."""

    hits: npt.NDArray[np.bool_] = field(default_factory=lambda: np.empty(WINDOW_BYTES, bool))
    _text: bytearray = field(default_factory=bytearray)
    _words: list[Words] = field(default_factory=list)
    _size: int = 0
    _taken: int = 0

    def begin(self, size: int) -> None:
        """Take back all that was given out; masks have `size` words from now on."""
        self._size, self._taken = size, 0

    def text(self, size: int) -> memoryview:
        if len(self._text) < size:
            self._text = bytearray(size)
        return memoryview(self._text)[:size]

    def words(self) -> Words:
        """Return a mask of any content."""
        if self._taken == len(self._words):
            self._words.append(np.empty(0, np.uint64))
        if len(self._words[self._taken]) < self._size:
            self._words[self._taken] = np.empty(self._size, np.uint64)
        self._taken += 1
        return self._words[self._taken - 1][: self._size]

    @contextmanager
    def spare(self) -> Iterator[Words]:
        """Lend a mask; the one that was lent last comes back first."""
        taken = self._taken
        yield self.words()
        self._taken = taken


@dataclass(frozen=True, slots=True, eq=False)
class _Lines:
    """One bit a byte: the LFs that end lines, those that end a blank line, and the CRs (None: there is none)."""

    ends: Words
    blank: Words | None
    returns: Words | None


def scan_bits(
    data: Bytes, before: int, dialect: Dialect, scratch: Scratch | None = None
) -> tuple[int, HalfScan, HalfScan] | None:
    """Return the number of line ends and both halves; None if the text needs the general scan.

    The block holds a byte at least; `before` is the byte in front of it.
    """
    scratch = scratch or Scratch()
    scratch.begin(-(-len(data) // 64))
    lines = None if before == CR else _lines(data, before, scratch)
    if lines is None:
        return None
    quotes = None if dialect.quote is None else _packed(data, dialect.quote, scratch)
    count = int(np.bitwise_count(lines.ends).sum())
    # a quote before the block closed a cell, if that is outside
    follows = before == dialect.quote and int(data[0]) not in (dialect.delimiter, LF, CR)
    if quotes is None:
        outside = replace(_half(lines, lines.ends, -1, inside=False), torn=follows)
        return count, outside, HalfScan(True, 0, 0, -1, False, 0, -1, torn=False)
    parity = _prefix_xor(quotes, scratch)
    fences = _fences(data, dialect, lines, quotes, scratch)
    torn = _torn(len(data), fences, quotes, parity, scratch)
    strays = _strays(before, dialect, fences, quotes, parity, scratch)
    found = [bool(mask.any()) for mask in strays]
    if all(found):
        return None
    true = int(found[0])  # the start state of the answer without a stray
    turn = _first_odd(data, strays[1 - true], dialect) if found[1 - true] else -1
    if turn is None:
        return None
    inner = np.bitwise_and(lines.ends, parity, out=scratch.words())
    ends = [np.bitwise_xor(lines.ends, inner, out=scratch.words()), inner]  # those outside, by start state
    if turn >= 0:
        ends[1 - true] = _spliced(ends[1 - true], ends[true], turn)
    odd = bool(int(parity[-1]) >> 63)  # the last word is filled up with zeros, which change no parity
    halves = []
    for start in (0, 1):
        # after a turn both answers are one: that one opened what is open at the end, since a turn ends in "outside"
        like = true if turn >= 0 else start
        inside = odd != bool(like)
        open_at = _last_opening(quotes, parity, like) if inside else -1
        half = _half(lines, ends[start], open_at, inside=inside)
        halves.append(replace(half, torn=found[start] or torn[start] or (follows and not start)))
    return count, halves[0], halves[1]


def _lines(data: Bytes, before: int, scratch: Scratch) -> _Lines | None:
    """Return the line ends; None if a CR is alone."""
    ends, returns = _packed(data, LF, scratch), _packed(data, CR, scratch)
    if ends is None:
        ends = scratch.words()
        ends[:] = 0
    blank = _shifted(ends, scratch.words(), scratch, carry=before == LF)  # where lines begin
    if returns is not None:
        paired = _shifted(returns, scratch.words(), scratch, carry=False)
        paired &= ends
        if np.bitwise_count(paired).sum() != np.bitwise_count(returns).sum():
            return None
        blank |= _shifted(returns & blank, paired, scratch, carry=False)
    blank &= ends
    return _Lines(ends, blank if blank.any() else None, returns)


def _packed(data: Bytes, value: int, scratch: Scratch) -> Words | None:
    """Return one bit a byte, set where it is `value`, in words of 64 filled up with zeros; None if none is set."""
    mask = None
    for start in range(0, len(data), WINDOW_BYTES):
        part = data[start : start + WINDOW_BYTES]
        hits = np.equal(part, value, out=scratch.hits[: len(part)])
        if mask is None:
            if not hits.any():  # to tell is cheaper than to pack: most blocks hold no CR, and many no quote
                continue
            mask = scratch.words()
            mask[: start // 64] = 0
            mask[-1] = 0
        bits = np.packbits(hits, bitorder="little")
        mask.view(np.uint8)[start // 8 : start // 8 + len(bits)] = bits
    return mask


def _shifted(mask: Words, out: Words, scratch: Scratch, *, carry: bool) -> Words:
    """Return a mask moved on by one byte; `carry` is the bit that comes in at the start."""
    with scratch.spare() as tops:
        np.right_shift(mask, _TOP, out=tops)
        np.left_shift(mask, _ONE, out=out)
        out[1:] |= tops[:-1]
        out[0] |= np.uint64(carry)
    return out


def _prefix_xor(mask: Words, scratch: Scratch) -> Words:
    """Return for each bit the parity of all bits up to it: six steps in the word, then word by word."""
    parity = scratch.words()
    with scratch.spare() as moved, scratch.spare() as tops:
        np.left_shift(mask, _ONE, out=moved)
        np.bitwise_xor(mask, moved, out=parity)
        for step in _STEPS:
            np.left_shift(parity, step, out=moved)
            np.bitwise_xor(parity, moved, out=parity)
        np.right_shift(parity, _TOP, out=moved)
        np.bitwise_xor.accumulate(moved, out=tops)
        np.negative(tops, out=tops)  # all ones where the words up to here hold an odd number
        np.bitwise_xor(parity[1:], tops[:-1], out=parity[1:])
    return parity


def _fences(data: Bytes, dialect: Dialect, lines: _Lines, quotes: Words, scratch: Scratch) -> Words:
    delimiters = _packed(data, dialect.delimiter, scratch)
    fences = np.bitwise_or(lines.ends, quotes, out=scratch.words())
    for mask in (delimiters, lines.returns):
        if mask is not None:
            fences |= mask
    return fences


def _torn(size: int, fences: Words, quotes: Words, parity: Words, scratch: Scratch) -> tuple[bool, bool]:
    """Return, by start state, whether text follows a quote that closes a cell, but for the last byte of the block."""
    last = np.uint64(1 << (size - 1) % 64)
    with scratch.spare() as apart, scratch.spare() as closing:
        np.right_shift(fences, _ONE, out=apart)
        np.left_shift(fences[1:], _TOP, out=closing[:-1])
        apart[:-1] |= closing[:-1]
        np.invert(apart, out=apart)
        apart &= quotes
        apart[-1] &= ~last
        inside = bool(np.bitwise_and(apart, parity, out=closing).any())
        return bool(np.bitwise_xor(apart, closing, out=apart).any()), inside


def _strays(
    before: int, dialect: Dialect, fences: Words, quotes: Words, parity: Words, scratch: Scratch
) -> tuple[Words, Words]:
    """Return, by start state, the first quotes of runs that are outside, and not at the start of a field.

    The masks are written over `fences`, which nobody may need any more.
    """
    odd_places = _shifted(fences, scratch.words(), scratch, carry=before in (LF, dialect.delimiter))
    odd_places &= quotes
    odd_places ^= quotes
    # a quote that is met outside is inside by its own parity
    first = np.bitwise_and(odd_places, parity, out=fences)
    return first, np.bitwise_xor(odd_places, first, out=odd_places)


def _first_odd(data: Bytes, strays: Words, dialect: Dialect) -> int | None:
    """Return the offset of the first odd run among the strays; -1 if there is none, None if the search is too long."""
    tried = 0
    for index in _set_words(strays):
        word = int(strays[index])
        while word:
            at = stop = index * 64 + (word & -word).bit_length() - 1
            while stop < len(data) and data[stop] == dialect.quote:
                stop += 1
                if stop - at > _MANY_EVEN_STRAYS:
                    return None
            if (stop - at) % 2:
                return at
            word &= word - 1
            tried += 1
        if tried >= _MANY_EVEN_STRAYS:
            return None
    return -1


def _set_words(mask: Words) -> Iterator[int]:
    """Yield the indices of the words that are not 0, first from the nearest words: mostly the first one decides."""
    yield from np.flatnonzero(mask[:_NEAR_WORDS]).tolist()
    yield from (np.flatnonzero(mask[_NEAR_WORDS:]) + _NEAR_WORDS).tolist()


def _spliced(first: Words, then: Words, turn: int) -> Words:
    index, bit = divmod(turn, 64)
    spliced = then.copy()
    spliced[:index] = first[:index]
    low = np.uint64((1 << bit) - 1)
    spliced[index] = (first[index] & low) | (then[index] & ~low)
    return spliced


def _last_opening(quotes: Words, parity: Words, start: int) -> int:
    """Return the offset of the last quote that is met outside and begins a run; -1 if there is none."""
    for index in range(len(quotes) - 1, -1, -1):
        word, state = int(quotes[index]), int(parity[index])
        if word:
            runs = word & ~(word << 1 | (int(quotes[index - 1]) >> 63 if index else 0))
            opening = runs & (state if start == 0 else ~state)
            if opening:
                return index * 64 + opening.bit_length() - 1
    return -1


def _half(lines: _Lines, true: Words, open_at: int, *, inside: bool) -> HalfScan:
    """Return the half whose line ends outside quotes are `true`."""
    count = int(np.bitwise_count(true).sum())
    if not count:
        return HalfScan(inside, 0, 0, -1, False, 0, open_at)
    blank = lines.blank
    blanks = 0 if blank is None else int(np.bitwise_count(true & blank).sum())
    word = next(_set_words(true))
    lowest = int(true[word]) & -int(true[word])
    up_to = int(lines.ends[word]) & (2 * lowest - 1)
    before = int(np.bitwise_count(lines.ends[:word]).sum()) + up_to.bit_count()
    first_blank = blank is not None and bool(int(blank[word]) & lowest)
    return HalfScan(inside, count - blanks, blanks, word * 64 + lowest.bit_length() - 1, first_blank, before, open_at)
