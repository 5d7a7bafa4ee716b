r"""Scan a block of CSV text for both start states with one bit a byte, where its quotes are well-formed.

Every mask is packed into 64-bit words, so that one operation on 1 MiB takes a few microseconds. In well-formed text
the state is the parity of the quotes so far, a prefix XOR:

    text       a , " x " " , y " , b \n
    quotes     0 0 1 0 1 1 0 0 1 0 0 0
    parity     0 0 1 1 0 1 1 1 0 0 0 0      inside where 1, if the block begins outside

Parity goes wrong only at a run of quotes that is met outside and does not stand at the start of a field. A look at all
runs finds such strays. Taking a block for what it is not (outside for inside) makes its closing quotes strays: at the
first odd one the false answer ends in "outside", as the true one does, and is the same from there on.

    text       x y " , " z " , 1 \n
    inside     1 1 0 0 1 1 0 0 0 0          true: no stray
    outside    0 0[0]0 1 1 0 0 0 0          false: the quote in brackets is a stray, and both agree behind it

A block with a stray in both answers (`5" disk`), or with a CR, is left to `csv_split`, which takes any text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Words = npt.NDArray[np.uint64]

LF: Final = 10
CR: Final = 13
WINDOW_BYTES: Final = 1 << 17
"""Bytes compared at a time: the mask stays in the cache, and in memory that the process has already."""

_MANY_EVEN_STRAYS: Final = 64
"""After this many escaped quotes in a row a block is left to the general scan, rather than walked in Python."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """The bytes that shape a record: the delimiter, and the quote, None where nothing is quoted."""

    delimiter: int = ord(",")
    quote: int | None = ord('"')


@dataclass(frozen=True, slots=True)
class HalfScan:
    """What a block holds if it begins in one of the two states.

    `inside` is the state at its end. `records` and `blanks` count the non-blank records and the blank lines that end
    in it. `first_end` is the offset in the block of the line end that ends the first of either, -1 if none does;
    `first_blank` tells which it is, and `first_lines` counts the line ends up to it, within quotes too. `open_at` is
    the offset of the quote that opened the field which is open at the end, -1 if it was open from the start.
    """

    inside: bool
    records: int
    blanks: int
    first_end: int
    first_blank: bool
    first_lines: int
    open_at: int


@dataclass(frozen=True, slots=True, eq=False)
class _Masks:
    """One bit a byte: line ends, blank lines, run starts, stray candidates, and the parity with and without itself."""

    ends: Words
    blank: Words
    runs: Words
    odd_places: Words
    parity: Words
    earlier: Words


def scan_bits(data: Bytes, before: int, dialect: Dialect) -> tuple[int, HalfScan, HalfScan] | None:
    """Return the number of line ends and both halves; None if the text needs the general scan.

    The block holds no CR, and the dialect has a quote; `before` is the byte in front of the block.
    """
    masks = _masks(data, before, dialect)
    strays = [masks.odd_places & ~masks.earlier, masks.odd_places & masks.earlier]  # by start state
    found = [bool(mask.any()) for mask in strays]
    if all(found):
        return None
    lines = int(np.bitwise_count(masks.ends).sum())
    states = [masks.parity, ~masks.parity]
    earlier = [masks.earlier, ~masks.earlier]
    true = int(found[0])  # the answer without a stray
    turn = -1
    if found[1 - true]:
        turn = _first_odd(data, strays[1 - true], dialect)
        if turn == -2:
            return None
    halves = [HalfScan(False, 0, 0, -1, False, 0, -1)] * 2
    for start in (0, 1):
        outside, openings = ~states[start], masks.runs & ~earlier[start]
        if start != true and turn >= 0:
            outside = _spliced(outside, ~states[true], turn)
            openings = _spliced(openings, masks.runs & ~earlier[true], turn)
        halves[start] = _half(masks, outside, openings, len(data))
    return lines, halves[0], halves[1]


def _masks(data: Bytes, before: int, dialect: Dialect) -> _Masks:
    assert dialect.quote is not None
    quotes, ends, delimiters = _packed(data, (dialect.quote, LF, dialect.delimiter))
    parity = _prefix_xor(quotes)
    runs = quotes & ~_shifted(quotes, carry=False)
    at_field = _shifted(ends | delimiters, carry=before in (LF, CR, dialect.delimiter))
    blank = ends & _shifted(ends, carry=before in (LF, CR))
    return _Masks(ends, blank, runs, runs & ~at_field, parity, parity ^ quotes)


def _packed(data: Bytes, values: tuple[int, ...]) -> list[Words]:
    """Return for each value one bit a byte, in words of 64; the last word is filled with zeros."""
    size = -(-len(data) // 64) * 8
    masks = [np.zeros(size, np.uint8) for _ in values]
    hits = np.empty(min(len(data), WINDOW_BYTES), bool)
    for start in range(0, len(data), WINDOW_BYTES):
        part = data[start : start + WINDOW_BYTES]
        for value, mask in zip(values, masks, strict=True):
            bits = np.packbits(np.equal(part, value, out=hits[: len(part)]), bitorder="little")
            mask[start // 8 : start // 8 + len(bits)] = bits
    return [mask.view("<u8") for mask in masks]


def _shifted(mask: Words, *, carry: bool) -> Words:
    """Return a mask moved on by one byte; `carry` is the bit that comes in at the start."""
    moved = mask << np.uint64(1)
    moved[1:] |= mask[:-1] >> np.uint64(63)
    moved[0] |= np.uint64(carry)
    return moved


def _prefix_xor(mask: Words) -> Words:
    """Return for each bit the parity of all bits up to it: six steps in the word, then word by word."""
    parity = mask.copy()
    for step in (1, 2, 4, 8, 16, 32):
        parity ^= parity << np.uint64(step)
    tops = np.bitwise_xor.accumulate(parity >> np.uint64(63))
    parity[1:] ^= np.uint64(0) - tops[:-1]  # all ones where the words before hold an odd number
    return parity


def _first_odd(data: Bytes, strays: Words, dialect: Dialect) -> int:
    """Return the offset of the first odd run among the strays; -1 if there is none, -2 if it takes too long to tell."""
    tried = 0
    indices: list[int] = np.flatnonzero(strays)[:_MANY_EVEN_STRAYS].tolist()
    for index in indices:
        word = int(strays[index])
        while word:
            at = stop = index * 64 + (word & -word).bit_length() - 1
            while stop < len(data) and data[stop] == dialect.quote:
                stop += 1
                if stop - at > _MANY_EVEN_STRAYS:
                    return -2
            if (stop - at) % 2:
                return at
            word &= word - 1
            tried += 1
    return -2 if tried >= _MANY_EVEN_STRAYS else -1


def _spliced(first: Words, then: Words, turn: int) -> Words:
    """Return `first` up to the bit `turn`, and `then` from there on."""
    index, bit = divmod(turn, 64)
    spliced = then.copy()
    spliced[:index] = first[:index]
    low = np.uint64((1 << bit) - 1)
    spliced[index] = (first[index] & low) | (then[index] & ~low)
    return spliced


def _half(masks: _Masks, outside: Words, openings: Words, size: int) -> HalfScan:
    index, bit = divmod(size - 1, 64)
    inside = not (int(outside[index]) >> bit) & 1
    open_at = -1
    if inside:
        words = np.flatnonzero(openings)
        if len(words):
            open_at = int(words[-1]) * 64 + int(openings[words[-1]]).bit_length() - 1
    true = masks.ends & outside
    count = int(np.bitwise_count(true).sum())
    if not count:
        return HalfScan(inside, 0, 0, -1, False, 0, open_at)
    blanks = int(np.bitwise_count(true & masks.blank).sum())
    word = int(np.argmax(true != 0))
    lowest = int(true[word]) & -int(true[word])
    up_to = int(masks.ends[word]) & (2 * lowest - 1)
    lines = int(np.bitwise_count(masks.ends[:word]).sum()) + up_to.bit_count()
    first_blank = bool(int(masks.blank[word]) & lowest)
    return HalfScan(inside, count - blanks, blanks, word * 64 + lowest.bit_length() - 1, first_blank, lines, open_at)
