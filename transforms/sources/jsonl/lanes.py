"""Parse JSON lines in two ways: most with pyarrow at once, and the rest one by one in Python.

pyarrow is given nothing but lines that begin with `{` and end with `}`, are UTF-8, and are not nested deeply: on `null`
and on deep nesting its parser dies. Between such lines the newline is one between two objects, since inside of an
object or array `}` is never followed by `{`. So if as many rows come back as there are lines, each line was one object.

    lines   {..}{..}{..}{bad}{..}{..}{..}{..}
    fast    |------------------ refused -----|      pyarrow refuses the text, or what it gives is in doubt:
    fast    |--------| |- refused --| |------|      16 parts of it are tried,
    slow               {bad}{..}                    and of those that are small each line
"""

from __future__ import annotations

import json as python_json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Final, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import json

from ...format.batches.arrow_memory import binary_array, raw_values, valid_mask
from ...limits.turns import ROW_BYTES, taking_turns
from ..text.lines import I64, MOST_VALUES, Lines
from ..text.open_text import Cut, is_utf8
from .values import BLANKS, MOST_LEVELS, is_list, nested_levels

T = TypeVar("T")

_PARTS: Final = 16
_SMALL: Final = 128
"""Lines that are not parted further: a call of pyarrow takes as long as Python takes for 30."""

_TRIES: Final = 3
"""The parts that are tried if all are refused: then pyarrow refuses most lines."""

_VALUE_BYTES: Final = 128
"""About what Python takes for a value."""

_TEXT_TIMES: Final = 4
"""How many times its bytes a text takes while it is parsed, at most."""


def both_lanes(
    lines: Lines, records: int, fast: Callable[[bytes, I64], T | None] | None, slow: Callable[[I64], T]
) -> Iterator[T]:
    """Yield what becomes of the first records of some lines, given by their numbers; in order but for odd ones.

    `fast` gets the text of whole lines and may refuse it; `slow` may not. Without `fast` all lines are for `slow`.
    """
    index = lines.records[:records]

    def slowly(part: I64) -> T:
        start, end = int(lines.starts[index[part[0]]]), int(lines.ends[index[part[-1]]])
        values = _VALUE_BYTES * lines.text.count(b",", start, end)
        with taking_turns(ROW_BYTES, max(values, _TEXT_TIMES * (end - start))):
            return slow(part)

    def quickly(text: bytes, part: I64) -> T | None:
        with taking_turns(ROW_BYTES, _TEXT_TIMES * len(text)):
            return None if fast is None else fast(text, part)

    if not len(index):
        return
    if fast is None:
        yield slowly(np.arange(len(index)))
        return
    odd = _odd_lines(lines, index)
    if not odd.any():
        yield from _tried(lines.text, lines.starts[index], lines.ends[index], np.arange(len(index)), quickly, slowly)
        return
    yield slowly(np.flatnonzero(odd))
    good = np.flatnonzero(~odd)
    if len(good):
        spans = zip(lines.starts[index[good]], lines.ends[index[good]], strict=True)
        text = b"\n".join([lines.text[start:end] for start, end in spans])
        sizes = lines.ends[index[good]] - lines.starts[index[good]]
        ends = np.cumsum(sizes + 1) - 1
        yield from _tried(text, ends - sizes, ends, good, quickly, slowly)


def _tried(
    text: bytes, starts: I64, ends: I64, part: I64, fast: Callable[[bytes, I64], T | None], slow: Callable[[I64], T]
) -> Iterator[T]:
    whole = starts[0] == 0 and int(ends[-1]) + 2 >= len(text) and not text[ends[-1] :].strip(b"\r\n")
    found = fast(text if whole else text[starts[0] : ends[-1]], part)
    if found is not None:
        yield found
    else:
        yield from _parted(text, starts, ends, part, fast, slow)


def _parted(
    text: bytes, starts: I64, ends: I64, part: I64, fast: Callable[[bytes, I64], T | None], slow: Callable[[I64], T]
) -> Iterator[T]:
    if len(part) <= _SMALL:
        yield slow(part)
        return
    step, taken = max(-(-len(part) // _PARTS), _SMALL), False
    for number, start in enumerate(range(0, len(part), step)):
        if number == _TRIES and not taken:
            yield slow(part[start:])
            return
        some = slice(start, start + step)
        found = fast(text[starts[start] : ends[some][-1]], part[some])
        if found is not None:
            taken = True
            yield found
        else:
            yield from _parted(text, starts[some], ends[some], part[some], fast, slow)


def _odd_lines(lines: Lines, index: I64) -> npt.NDArray[np.bool_]:
    if lines.large is not None or not len(index):
        return np.ones(len(index), np.bool_)
    data = np.frombuffer(lines.text, np.uint8)
    starts, ends = lines.starts[index], lines.ends[index]
    odd: npt.NDArray[np.bool_] = (data[starts] != ord("{")) | (data[ends - 1] != ord("}"))
    for row in np.flatnonzero(odd).tolist():
        line = lines.text[starts[row] : ends[row]].strip(BLANKS)
        odd[row] = line[:1] != b"{" or line[-1:] != b"}"
    for row in np.flatnonzero(ends - starts > 2 * MOST_VALUES).tolist():
        odd[row] = odd[row] or lines.has_many_values(int(index[row]))
    if not is_utf8(lines.text):
        for row in range(len(index)):
            odd[row] = odd[row] or not is_utf8(lines.text[starts[row] : ends[row]])
    brackets = np.flatnonzero((data & 0xDF) == ord("["))  # a brace is a bracket but for one bit
    if len(brackets) - len(index) >= MOST_LEVELS:
        count = np.searchsorted(brackets, ends) - np.searchsorted(brackets, starts)
        for row in np.flatnonzero(count > MOST_LEVELS).tolist():
            odd[row] = odd[row] or nested_levels(lines.text[starts[row] : ends[row]]) > MOST_LEVELS
    return odd


_LARGE: Final = 8 << 20
"""Above that memory is given back as soon as it is free: Arrow's own pool keeps some."""

_EXACT: Final = 2.0**53
"""The first integer after which float64 leaves some out."""

_LONG_INTEGER: Final = r"[:,\[ \t]-?[0-9]{16,}[ \t\r,}\]]"
_TINY: Final = r"[eE]-[0-9]{3}"
_MANY_ZEROS: Final = b"0" * 200
"""With fewer zeros and an exponent of two digits a number is above the smallest float64, 5e-324."""

_ODD_WORD: Final = r"[:,\[ \t](-NaN|-?Inf)[ \t\r,}\]]"
"""What pyarrow takes for numbers, and Python does not."""


@dataclass(frozen=True)
class ParsedText:
    """What pyarrow made of some text, and the question whether it lost anything; with `ignores` it skipped values."""

    text: bytes
    table: pa.Table
    ignores: bool

    @property
    def in_doubt(self) -> bool:
        """Whether a number may have been changed: only its text shows whether it was."""
        doubts = any(self._doubts(chunk) for column in self.table.columns for chunk in column.chunks)
        return doubts or (self.ignores and self._has_odd_word)

    def _doubts(self, array: pa.Array) -> bool:
        if is_list(array.type):
            return self._doubts(array.flatten())
        if pa.types.is_struct(array.type):
            return any(self._doubts(array.field(index)) for index in range(array.type.num_fields))
        if not pa.types.is_float64(array.type) or array.null_count == len(array):
            return False
        values = raw_values(array, np.float64)
        if (valid := valid_mask(array)) is not None:
            values = values[valid]
        if not values.all() and self._has_tiny:
            return True
        with np.errstate(invalid="ignore"):
            large = np.abs(values) >= _EXACT
        if large.any() and self._has_long_integer:
            return True
        return not np.isfinite(values).all() and self._has_odd_word

    @cached_property
    def _cell(self) -> pa.Array:
        return binary_array([self.text])

    def _has(self, pattern: str) -> bool:
        return bool(pc.match_substring_regex(self._cell, pattern)[0].as_py())

    @cached_property
    def _has_tiny(self) -> bool:
        return _MANY_ZEROS in self.text or self._has(_TINY)

    @cached_property
    def _has_long_integer(self) -> bool:
        return self._has(_LONG_INTEGER)

    @cached_property
    def _has_odd_word(self) -> bool:
        return (b"Inf" in self.text or b"-NaN" in self.text) and self._has(_ODD_WORD)


CELLS: Final = 4 << 20
"""Objects times keys that pyarrow parses at a time: it takes 8 bytes for each, also where an object lacks the key."""

KEY_BYTES: Final = 6
"""No key takes fewer bytes, with its value: `"a":1,`."""

_EQUAL_PARTS: Final = 4
_SEED_LINES: Final = (256, 64, 16, 4, 1)
_STRINGS: Final = re.compile(rb'"((?:[^"\\]++|\\.)*+)"([ \t\r\n]*+:)?', re.DOTALL)

_MANY_CELLS: Final = 20_000
_SPARSE: Final = 8
"""Above so many cells per value, pyarrow takes longer than Python."""


def count_of(sign: bytes, text: bytes) -> int:
    """Return how often a byte occurs in a text: for frequent ones NumPy takes a fifth of the time of `bytes.count`."""
    return int(np.count_nonzero(np.frombuffer(text, np.uint8) == ord(sign)))


def may_be_inferred(text: bytes) -> bool:
    return count_of(b"{", text) * (len(text) // KEY_BYTES + 1) <= CELLS


def seed_of(text: bytes) -> bytes | None:
    """Return the first lines of a text, as many as `may_be_inferred`; None where not even one may."""
    for count in _SEED_LINES:
        end = 0
        for _ in range(count):
            end = text.find(b"\n", end) + 1
            if not end:
                break
        seed = text[: end or len(text)]
        if may_be_inferred(seed):
            return seed
    return None


def is_sparse(text: bytes, cells: int) -> bool:
    """Return whether the lines of a text, of so many rows times keys, are parsed sooner by Python than by pyarrow."""
    return cells > _MANY_CELLS and cells > _SPARSE * count_of(b":", text)


def parts_by_cells(lines: Lines, known: Mapping[str, int]) -> Iterator[tuple[Lines, frozenset[str] | None]]:
    """Yield lines in parts whose rows times keys are at most `CELLS`, each with the `known` keys that are in it.

    Sparse lines, of which each key costs more than its values, come in parts three times as large. A known key counts
    for as many as its objects have. None stands for all of them: keys are not counted where a few equal parts do.
    """
    index, total = lines.records, sum(known.values())
    cells = len(index) * total
    most = 3 * CELLS if cells > CELLS and is_sparse(lines.text, cells) else CELLS
    if cells <= most or lines.large is not None:
        yield lines, None
        return
    parts = -(-cells // most)
    if parts <= _EQUAL_PARTS:
        cuts = [len(index) * part // parts for part in range(parts + 1)]
        yield from ((_some_lines(lines, index, first, stop), None) for first, stop in pairwise(cuts))
        return
    step, wanted = max(most // total, 1), known.keys()
    first, keys = 0, frozenset[str]()
    for start in range(0, len(index), step):
        stop = min(start + step, len(index))
        more = wanted & keys_in(lines.text[lines.starts[index[start]] : lines.ends[index[stop - 1]]])
        if (stop - first) * sum(known[key] for key in keys | more) > most and start > first:
            yield _some_lines(lines, index, first, start), keys
            first, keys = start, frozenset()
        keys |= more
    yield _some_lines(lines, index, first, len(index)), keys


def keys_in(text: bytes) -> set[str]:
    """Return all keys of the objects in a text, and maybe more."""
    found = {name for name, colon in _STRINGS.findall(text) if colon}
    keys = {name.decode("utf-8", "replace") for name in found if b"\\" not in name}
    for name in found:
        if b"\\" in name:
            try:
                keys.add(python_json.loads(b'"%s"' % name))
            except ValueError:  # the line is a reject
                continue
    return keys


def _some_lines(lines: Lines, index: I64, first: int, stop: int) -> Lines:
    low, high = int(index[first]), int(index[stop - 1]) + 1
    start, end = int(lines.starts[low]), int(lines.ends[high - 1])
    before = Cut(
        lines.before.offset + start, lines.before.records + first, lines.before.blanks + low - first,
        lines.before.lines + low,
    )  # fmt: skip
    starts, ends = lines.starts[low:high] - start, lines.ends[low:high] - start
    return replace(
        lines, text=lines.text[start:end], before=before, starts=starts, ends=ends, blank=lines.blank[low:high]
    )


def run_arrow(text: bytes, rows: int | None, schema: pa.Schema | None, unexpected: str) -> pa.Table | None:
    """Parse some lines with pyarrow; None where it refuses them, or what it gives is in doubt.

    `rows` None stands for any number.
    """
    try:
        table = json.read_json(
            pa.py_buffer(text),
            read_options=json.ReadOptions(use_threads=False, block_size=len(text) + 1),
            parse_options=json.ParseOptions(
                explicit_schema=schema, newlines_in_values=False, unexpected_field_behavior=unexpected
            ),
            memory_pool=pa.system_memory_pool() if len(text) > _LARGE else None,
        )
    except pa.ArrowInvalid:  # some line of it is bad: which one the caller finds out
        return None
    if (
        table.num_rows != (table.num_rows if rows is None else rows)
        or ParsedText(text, table, unexpected == "ignore").in_doubt
    ):
        return None
    return table
