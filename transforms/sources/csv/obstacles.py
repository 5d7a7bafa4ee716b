"""Find why a column of numbers is read as text: commas in the numbers, or a few words such as `N/A`.

Only a column that is text, and whose first values are mostly numbers, is looked at for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ...format.wording.printable import printable
from .cast import NUMBER
from .hints import PandasCall, set_list

_DECIMAL: Final = r"^[+-]?([0-9]+|[0-9]{1,3}([.][0-9]{3})+),[0-9]+([eE][+-]?[0-9]+)?$"
_THOUSANDS: Final = r"^[+-]?[1-9][0-9]{0,2}(,[0-9]{3})+([.][0-9]+)?$"
_DOTS: Final = r"[.].*,"

_NULLS: Final = frozenset((
    "-", "--", ".", "?", "??", "na", "n/a", "n.a.", "n.a", "#n/a", "nan", "null", "nil", "none", "missing", "unknown",
    "(null)", "<na>", "<null>", "\\n",
))  # fmt: skip
"""Words, in lowercase, that mostly mean null: also where they are many."""

_LOOKED_AT: Final = 256
_MOST_WORDS: Final = 4
_LONGEST: Final = 20
_SELDOM: Final = 0.2
"""The share of values up to which other words are exceptions; more are codes."""

_SHOWN: Final = 5


@dataclass(frozen=True, slots=True)
class Commas:
    """Values with commas: one of them and its place, and whether all may be decimals, thousands; if dots precede."""

    shown: str
    decimal: bool
    thousands: bool
    dots: bool

    def plus(self, more: Self | None) -> Self:
        """Return what more rows say together with these."""
        if more is None:
            return self
        both = self.decimal and more.decimal, self.thousands and more.thousands
        return replace(self, decimal=both[0], thousands=both[1], dots=self.dots or more.dots)


@dataclass(frozen=True, slots=True)
class Obstacles:
    """The cells of a column that are no numbers: `odd` cells with these words and places; in quotes if `quoted`."""

    odd: int = 0
    words: tuple[tuple[str, str], ...] = ()
    commas: Commas | None = None
    quoted: bool = False

    def plus(self, more: Self) -> Self | None:
        """Return what more rows say together with these; None of too many words."""
        words = {**dict(more.words), **dict(self.words)}
        if len(words) > _MOST_WORDS:
            return None
        return replace(
            self,
            odd=self.odd + more.odd,
            words=tuple(sorted(words.items())),
            commas=self.commas.plus(more.commas) if self.commas else more.commas,
            quoted=self.quoted or more.quoted,
        )

    def are_told(self, values: int) -> bool:
        """Return whether they are exceptions among so many values, or mean null."""
        nulls = all(word.lower() in _NULLS for word, _ in self.words)
        return bool(self.words or self.commas) and (nulls or self.odd <= _SELDOM * values)


def find_obstacles(
    cells: pa.Array, place: Callable[[int], str], text: bytes, quote: int | None
) -> tuple[npt.NDArray[np.int64], Obstacles] | None:
    """Return the rows that are not numbers, and what they hold; None where the first cells are not numbers mostly.

    `place` tells where a row is; `text` is what the cells were parsed from.
    """
    head = cells.slice(0, _LOOKED_AT)
    like = _count(pc.or_(_match(head, NUMBER), _match(head, f"{_DECIMAL}|{_THOUSANDS}")))
    if not like or 2 * like < len(head) - head.null_count:
        return None
    rows = np.flatnonzero(pc.invert(_match(cells, NUMBER)).fill_null(False).to_numpy(zero_copy_only=False))
    odd = cells.take(pa.array(rows))
    comma = _match(odd, f"{_DECIMAL}|{_THOUSANDS}").to_numpy(zero_copy_only=False).astype(bool)
    others = odd.filter(pa.array(~comma))
    words = [bytes(word) for word in pc.unique(others).to_pylist()] if len(others) else []
    if len(words) > _MOST_WORDS or any(len(word) > _LONGEST or not _is_text(word) for word in words):
        return None
    firsts = {word: rows[~comma][pc.index(others, pa.scalar(word, cells.type)).as_py()] for word in words}
    sign = b"" if quote is None else bytes([quote])
    return rows, Obstacles(
        len(others),
        tuple(sorted((word.decode(), place(int(row))) for word, row in firsts.items())),
        _commas(odd.filter(pa.array(comma)), lambda row: place(int(rows[comma][row]))),
        bool(sign) and any(sign + word + sign in text for word in words),
    )


def obstacle_notes(
    found: Sequence[tuple[str, Obstacles]], null_values: Sequence[str], delimiter: str, call: PandasCall
) -> tuple[str, ...]:
    """Return what is to be said of columns that stay text, one line of each kind, with what can be done."""
    notes = []
    commas = [(name, one.commas, one) for name, one in found if one.commas is not None]
    for sign in ("decimal", "thousands"):
        chosen = [(name, held, one) for name, held, one in commas if _sign_of(held, delimiter) == sign]
        if chosen:
            words = sorted({word for _, _, one in chosen for word, _ in one.words})
            dots = any(held.dots for _, held, _ in chosen)
            what = "a decimal comma" if sign == "decimal" else "commas between thousands"
            options = call.with_numbers(
                decimal="," if sign == "decimal" else ".",
                thousands="," if sign == "thousands" else "." if dots else None,
                nulls=words,
            )
            notes.append(
                f"{_columns([name for name, _, _ in chosen])} text: {chosen[0][1].shown} looks like a number with "
                f"{what}, which is not read as one; in Python: {options}"
            )
    few = [(name, one) for name, one in found if one.commas is None]
    if few:
        places = dict(reversed([pair for _, one in few for pair in one.words]))
        words = sorted(places)
        shown = ", ".join(f'"{printable(word)}" ({places[word]})' for word in words)
        if any(one.quoted for _, one in few):
            fix = f"what is in quotes is never null here; in Python: {call.with_numbers(nulls=words)}"
        else:
            fix = f"if that means null, in all columns: {set_list('input.null_values', [*null_values, *words])}"
        notes.append(f"{_columns([name for name, _ in few])} text: all are numbers but {shown}; {fix}")
    return tuple(notes)


def _sign_of(commas: Commas, delimiter: str) -> str | None:
    """Return what the commas of a column are: where they may be both, what is usual beside the delimiter."""
    if commas.thousands and (not commas.decimal or delimiter == ","):
        return "thousands"
    return "decimal" if commas.decimal else None


def _columns(names: Sequence[str]) -> str:
    shown = ", ".join(f'"{printable(name)}"' for name in names[:_SHOWN])
    more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    return f"column {shown} stays" if len(names) == 1 else f"columns {shown}{more} stay"


def _commas(cells: pa.Array, place: Callable[[int], str]) -> Commas | None:
    if not len(cells):
        return None
    return Commas(
        f'"{printable(cells[0].as_py())}" ({place(0)})',
        bool(pc.all(_match(cells, _DECIMAL)).as_py()),
        bool(pc.all(_match(cells, _THOUSANDS)).as_py()),
        bool(pc.any(_match(cells, _DOTS)).as_py()),
    )


def _is_text(word: bytes) -> bool:
    try:
        return word.decode().isprintable()
    except UnicodeDecodeError:
        return False


def _match(cells: pa.Array, pattern: str) -> pa.Array:
    return pc.match_substring_regex(cells, pattern)


def _count(flags: pa.Array) -> int:
    return int(pc.sum(flags).as_py() or 0)
