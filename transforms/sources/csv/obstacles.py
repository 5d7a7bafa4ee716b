"""Find why a column of numbers became text, such as commas in numbers or a few `N/A`, and say the key that reads it.

A word that mostly means null may be declared null; any other is taken for a typo.
Only a column that is text, and whose first values are mostly numbers, is looked at for it.

Other text may look like something that a key of `schema.columns` reads, and numbers may be codes:

    [0.5, 0.25]        as: list
    iVBORw0KGgoAAA...  image: base64
    1.500              read as 1.5; in a file with ; the point may group thousands: decimal, thousands
     "a b"             input.trim: the quotes are part of the value, since a blank is in front
    {'k': 1}           stays text
    1e3                is read as 1000.0; as a code it is text: type: string
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ...format.batches.arrow_memory import array_of, beginning_of, binary_array, raw_values, true_mask
from ...format.columns.feature_column import item_for_null
from ...format.wording.hints import Add, Set, set_column
from ...format.wording.printable import printable
from ..text.cast import NUMBER, cell_bytes, means_null
from ..text.cell_lists import look_of
from .dialect import CR, LF, Dialect

_DECIMAL: Final = (
    r"^[+-]?(([0-9]*|[0-9]{1,3}([.][0-9]{3})+),[0-9]+([eE][+-]?[0-9]+)?|[1-9][0-9]{0,2}([.][0-9]{3}){2,})$"
)
_THOUSANDS: Final = r"^[+-]?[1-9][0-9]{0,2}(,[0-9]{3})+([.][0-9]+)?$"
_WHOLE: Final = r"^[+-]?([0-9]+|[1-9][0-9]{0,2}([.][0-9]{3})+)$"
_DOTS: Final = r"[.].*[.,]"

_LOOKED_AT: Final = 256
_MOST_WORDS: Final = 4
_LONGEST: Final = 20
_RARE: Final = 0.2
"""The share of values up to which other words are exceptions; more are codes."""

_SHOWN: Final = 5

CODE, LIST, NULL, OBJECT, PICTURE, QUOTES, ROWS = "code", "list", "null", "object", "picture", "quotes", "rows"
BOOLS, ESCAPES, GROUPED = "bools", "escapes", "grouped"
_BOOLS: Final = frozenset((b"true", b"false"))
NULL_OF_DUMPS: Final = b"\\N"
"""What MySQL and PostgreSQL write for null."""

_LOOKED_AT_OF_TEXT: Final = 20
_LONG: Final = 1 << 16
_CODE: Final = r"^[0-9]+[eE][0-9]+$"
_GROUPED: Final = r"^[+-]?[1-9][0-9]{0,2}[.][0-9]{3}$"
_PICTURE: Final = re.compile(
    r"(data:image/[a-z.+-]+;base64,)?(iVBORw0KGgo|/9j/|R0lGOD|UklGR[A-Za-z0-9+/]{6,10}XRUJQ|Qk)[A-Za-z0-9+/\s]{20,}"
)
_OBJECT: Final = re.compile(r"""\s*(\[\s*)?\{\s*("[^"]*"|'[^']*')\s*:.*\}(\s*\])?\s*""", re.DOTALL)
_ODD_NULLS: Final = r"\*+|[<>]=?\s*[0-9]+([.,][0-9]+)?"
"""Stars, and bounds such as `<0.3`: among numbers they are null as words for it are."""

_FIGURES: Final = re.compile(rb"[+-]?[0-9.,]+([eE][+-]?[0-9]+)?")
_QUOTES: Final = re.compile(r"""[ \t]+".*"[ \t]*""", re.DOTALL)
_OTHER_BACKSLASH: Final = r"""^(?:[^\\]|\\\\)*\\(?:[^nrt0bZN\\'"]|$)|\b[A-Za-z]:\\[^\\]"""
"""In the path of a drive, before another letter, or alone."""


def _may_be_null(word: str) -> bool:
    return means_null(word) or re.fullmatch(_ODD_NULLS, word) is not None


class GivenNulls(NamedTuple):
    """The words that are null now: in all columns, and those of each."""

    everywhere: Sequence[str] = ("",)
    of_column: Mapping[str, Sequence[str]] = MappingProxyType({})

    def options(self, found: Iterable[tuple[str, Iterable[str]]]) -> list[Set]:
        """Return the options by which columns take those of their words as null that mostly mean it.

        What dumps of databases write for null is named for all columns.
        """
        pairs = [(name, sorted(word for word in words if _may_be_null(word))) for name, words in found]
        of_dumps = NULL_OF_DUMPS.decode()
        options = (
            [Set("input.null_values", [*filter(None, self.everywhere), of_dumps])]
            if any(of_dumps in one for _, one in pairs)
            else []
        )
        for name, words in pairs:
            own = [word for word in words if word != of_dumps]
            options += [set_column(name, "null_values", [*self.of_column.get(name, ()), *own])] if own else []
        return options


@dataclass(frozen=True, slots=True)
class Commas:
    """Values with commas: one of them and its place, and whether all may be decimals, thousands; if dots precede.

    All numbers of the column may be `whole`.
    """

    shown: str
    decimal: bool
    thousands: bool
    dots: bool
    whole: bool = False

    def plus(self, more: Self | None) -> Self:
        if more is None:
            return self
        both = self.decimal and more.decimal, self.thousands and more.thousands
        whole = self.whole and more.whole
        return replace(self, decimal=both[0], thousands=both[1], dots=self.dots or more.dots, whole=whole)


@dataclass(frozen=True, slots=True)
class Obstacles:
    """The cells of a column that are no numbers: words and the place of the first of each.

    `odd` is how many cells hold a word that is not known to mean null.
    """

    words: Mapping[str, str] = field(default_factory=dict)
    commas: Commas | None = None
    odd: int = 0

    def plus(self, more: Self) -> Self | None:
        """Return what more rows say together with these; None of too many words."""
        words = {**self.words, **{word: place for word, place in more.words.items() if word not in self.words}}
        commas = self.commas.plus(more.commas) if self.commas else more.commas
        both = replace(self, words=words, commas=commas, odd=self.odd + more.odd)
        return both if len(words) <= _MOST_WORDS else None

    def are_exceptions(self, values: int) -> bool:
        """Return whether those that do not mean null are few among so many values."""
        return bool(self.words or self.commas) and self.odd <= _RARE * values


def find_obstacles(cells: pa.Array, place: Callable[[int], str]) -> tuple[npt.NDArray[np.int64], Obstacles] | None:
    """Return the rows that are not numbers, and what they hold; None where the first cells are not numbers mostly.

    `place` tells where a row is.
    """
    head = cells.slice(0, _LOOKED_AT)
    like = _count(pc.or_(_match(head, NUMBER), _match(head, f"{_DECIMAL}|{_THOUSANDS}")))
    if not like or 2 * like < len(head) - head.null_count:
        return None
    rows = np.flatnonzero(true_mask(pc.invert(_match(cells, NUMBER))))
    odd = cells.take(array_of(rows))
    comma = true_mask(_match(odd, f"{_DECIMAL}|{_THOUSANDS}"))
    others = odd.filter(array_of(~comma))
    counts = {bytes(one["values"]): one["counts"] for one in pc.value_counts(others).to_pylist()}
    if len(counts) > _MOST_WORDS or any(len(word) > _LONGEST or not _is_text(word) for word in counts):
        return None
    firsts = {word: rows[~comma][pc.index(others, binary_array([word])[0]).as_py()] for word in counts}
    commas = _commas(odd.filter(array_of(comma)), lambda row: place(int(rows[comma][row])))
    if commas is not None and commas.thousands:
        commas = replace(commas, whole=not _count(_match(cells, r"(?i)^[^a-z]*[.]|nan|inf|[0-9]e[0-9+-]")))
    elif commas is not None and commas.dots:
        commas = replace(commas, whole=len(cells) - cells.null_count - len(others) == _count(_match(cells, _WHOLE)))
    return rows, Obstacles(
        {word.decode(): place(int(row)) for word, row in firsts.items()},
        commas,
        sum(count for word, count in counts.items() if not _may_be_null(word.decode())),
    )


def obstacle_notes(
    found: Sequence[tuple[str, Obstacles]],
    nulls: GivenNulls,
    delimiter: str,
    again: str,
    without_first: str,
) -> tuple[str, ...]:
    """Return what is to be said of columns that stay text, one line of each kind, with what can be done.

    `again` is where the header comes again; `without_first` are the options that leave the first row out.
    """
    notes = []
    words = [item for _, one in found for item in one.words.items()]
    if without_first and any(
        set(word) == {"-"} and len(word) > 2 and place.endswith(" row 1") for word, place in words
    ):
        leave = f"{Set('input.header', True)} {without_first}"  # "--" among names looks like null
        return (f"the first row is a line of dashes below the header; to leave it out: {leave}",)
    for sign in ("decimal", "thousands"):
        chosen = [
            (name, one, one.commas) for name, one in found if one.commas and _sign_of(one.commas, delimiter) == sign
        ]
        if chosen:
            notes.append(_comma_note(sign, chosen, nulls))
    few = [(name, one) for name, one in found if one.commas is None]
    if again:
        stay = f"{_columns([name for name, _ in few])} text: " if few else ""
        notes.append(
            f"{stay}the header comes again ({again}), as in files that were "
            f"joined; to leave such lines out: {Set('input.repeated_header', 'drop')}"
        )
    elif few:
        note = _word_note(few, nulls)
        words = [item for _, one in few for item in one.words.items()]
        firsts = len(words) == len(few) and all(place.endswith(" row 1") for _, place in words)
        firsts = firsts and not all(_may_be_null(word) for word, _ in words)
        also = f"; if that row is no data, such as units, leave it out: {without_first}"
        notes.append(f"{note}{also}" if without_first and firsts else note)
    return tuple(notes)


def _comma_note(sign: str, found: Sequence[tuple[str, Obstacles, Commas]], nulls: GivenNulls) -> str:
    words = _words([one for _, one, _ in found])
    typos = ", ".join(shown for word, shown in words.items() if not _may_be_null(word))
    what = "a decimal comma" if sign == "decimal" else "commas between thousands"
    what = what if "," in found[0][2].shown.partition('" (')[0] else "points between thousands"
    options = []
    for name, one, commas in found[:_SHOWN]:
        options.append(set_column(name, sign, ","))
        options += [set_column(name, "thousands", ".")] if sign == "decimal" and commas.dots else []
        is_whole = commas.whole and commas.thousands == (sign != "decimal")
        options += [set_column(name, "type", "int64")] if is_whole else []
        options += nulls.options([(name, one.words)])
    first = f"fix {typos} in the file, then " if typos else ""
    more = "; the other columns alike" if len(found) > _SHOWN else ""
    return (
        f"{_columns([name for name, _, _ in found])} text: {found[0][2].shown} looks like a number with {what}, which "
        f"is not read as one unless it is declared; {first}{Add(*options)}{more}"
    )


def _word_note(found: Sequence[tuple[str, Obstacles]], given: GivenNulls) -> str:
    words = _words([one for _, one in found])
    nulls = [word for word in words if _may_be_null(word)]
    typos = [word for word in words if word not in nulls]
    fixes = []
    if nulls:
        which = f"{_quoted(nulls)} {'means' if len(nulls) == 1 else 'mean'}" if typos else "that means"
        options = given.options((name, one.words) for name, one in found[:_SHOWN])
        fixes.append(f"if {which} null: {Add(*options)}{'; the other columns alike' if len(found) > _SHOWN else ''}")
    if typos:
        which = _quoted(typos) if nulls else "it" if len(typos) == 1 else "them"
        fixes.append(f"fix {which} in the file, or name in null_values of the column what means null")
    shown = ", ".join(words.values())
    return f"{_columns([name for name, _ in found])} text: all are numbers but {shown}; {'; '.join(fixes)}"


def _words(found: Sequence[Obstacles]) -> dict[str, str]:
    """Return all words in the order of their text, each as it is shown, with its first place."""
    places = {word: place for one in reversed(found) for word, place in one.words.items()}
    return {word: f'"{printable(word)}" ({places[word]})' for word in sorted(places)}


def _quoted(words: Sequence[str]) -> str:
    return " and ".join(f'"{printable(word)}"' for word in words)


def _sign_of(commas: Commas, delimiter: str) -> str | None:
    """Return what the commas of a column are: where they may be both, what is usual beside the delimiter."""
    if commas.thousands and (not commas.decimal or delimiter == ","):
        return "thousands"
    return "decimal" if commas.decimal else None


def _columns(names: Sequence[str]) -> str:
    return f"column {_shown(names)} stays" if len(names) == 1 else f"columns {_shown(names)} stay"


def _shown(names: Sequence[str]) -> str:
    shown = ", ".join(f'"{printable(name)}"' for name in names[:_SHOWN])
    return shown + (f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else "")


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


@dataclass(frozen=True, slots=True)
class Look:
    """What the cells of a column look like, one of them and its place.

    `items` is the type of the items of lists, or the word that is null once a file's escape is taken out; `nulls` are
    among the items.
    """

    kind: str
    shown: str
    items: str = ""
    nulls: bool = False


def look_at_text(column: pa.Array, place: Callable[[int], str]) -> Look | None:
    head = column.slice(0, _LOOKED_AT_OF_TEXT)
    rows, sizes = np.flatnonzero(true_mask(head.is_valid())).tolist(), cell_bytes(head)
    if not rows:
        return None
    texts = [bytes(head[row].as_buffer()[: min(int(sizes[row]), _LONG)]).decode("utf-8", "replace") for row in rows]
    items = "" if sizes.max() > _LONG else look_of(texts)
    nulls = not items and sizes.max() <= _LONG and any("NULL" in text for text in texts)
    items = look_of(texts, nulls=True) if nulls else items
    kinds = {PICTURE: _PICTURE.match, OBJECT: _OBJECT.fullmatch, QUOTES: _QUOTES.fullmatch}
    found = LIST if items else next((kind for kind, match in kinds.items() if all(map(match, texts))), None)
    return None if found is None else Look(found, f'"{printable(texts[0])}" ({place(rows[0])})', items, nulls)


def look_at_rows(column: pa.Array, delimiter: int, columns: int, place: Callable[[int], str]) -> Look | None:
    """Return the first cell that spans lines and holds as many delimiters as that many rows have."""
    counts = (pc.count_substring(column, one).cast(pa.int64()) for one in ("\n", chr(delimiter)))
    lines, signs = (raw_values(count, np.int64) for count in counts)
    least = 2 if chr(delimiter) == "," else 1  # one line and one comma is an address
    found = (signs == lines * (columns - 1)) & (signs >= least)
    rows = np.flatnonzero(found & true_mask(column.is_valid()))
    if not len(rows):
        return None
    row = int(rows[0])
    return Look(ROWS, f'"{printable(beginning_of(column, row, _LONG))}" ({place(row)})')


def look_at_nulls(column: pa.Array, place: Callable[[int], str]) -> Look | None:
    row = pc.index(column, binary_array([NULL_OF_DUMPS])[0]).as_py()
    return None if row < 0 else Look(NULL, f'"{printable(NULL_OF_DUMPS)}" ({place(row)})', NULL_OF_DUMPS.decode())


def look_at_escaped_nulls(column: pa.Array, text: bytes, delimiter: int, place: Callable[[int], str]) -> Look | None:
    """Return the first null of databases in a file whose escape takes its backslash: an N that only they write there.

    `text` is what the column was parsed from; where it has an N by itself nobody can tell the two apart.
    """
    row = pc.index(column, binary_array([NULL_OF_DUMPS[1:]])[0]).as_py()
    ends = rb"[%b\r\n]" % re.escape(bytes([delimiter]))
    if row < 0 or re.search(rb"(?:^|%b)N(?:%b|$)" % (ends, ends), text):
        return None
    return Look(NULL, f'"{printable(NULL_OF_DUMPS)}" ({place(row)})', "N")


def look_at_bools(column: pa.Array, place: Callable[[int], str]) -> Look | None:
    """Return the first cell that means null in a column of true and false alone, as R writes `NA` beside `TRUE`."""
    head = {bytes(cell).lower() for cell in column.slice(0, _LOOKED_AT_OF_TEXT).drop_null().to_pylist()}
    if not head & _BOOLS or not all(cell in _BOOLS or _may_be_null(cell.decode("latin-1")) for cell in head):
        return None
    others = [one for one in column.drop_null().unique().to_pylist() if one.lower() not in _BOOLS]
    if len(others) != 1 or not _may_be_null(others[0].decode("latin-1")):
        return None
    row = pc.index(column, binary_array(others)[0]).as_py()
    return Look(BOOLS, f'"{printable(others[0])}" ({place(row)})', others[0].decode("latin-1"))


def look_at_escapes(column: pa.Array, place: Callable[[int], str], *, quotes: bool) -> Look | None:
    """Return the first cell with a line break, a tab or a backslash as databases write it: no other has a backslash.

    In a dump, as its nulls show, `quotes` have one too.
    """
    signs = r"\\[nrt\\'\"]" if quotes else r"\\[nrt\\]"
    rows = np.flatnonzero(true_mask(pc.match_substring_regex(column, signs)))
    if not len(rows) or pc.any(pc.match_substring_regex(column, _OTHER_BACKSLASH)).as_py():
        return None
    row = int(rows[0])
    return Look(ESCAPES, f'"{printable(beginning_of(column, row, _LONG))}" ({place(row)})')


def look_at_floats(column: pa.Array, place: Callable[[int], str]) -> Look | None:
    """Return the first cell that may be a code: digits, an `e`, and digits; programs write numbers otherwise."""
    rows = np.flatnonzero(true_mask(pc.invert(pc.match_substring(column, "."))))
    codes = rows[true_mask(pc.match_substring_regex(column.take(array_of(rows)), _CODE))] if len(rows) else rows
    if not len(codes):
        return None
    row = int(codes[0])
    return Look(CODE, f'"{printable(column[row].as_py())}" ({place(row)})')


def look_at_points(column: pa.Array, place: Callable[[int], str]) -> Look | None:
    """Return the first float if the point of each may group thousands: three digits come after it."""
    rows = np.flatnonzero(true_mask(pc.invert(pc.match_substring_regex(column, r"^[+-]?[0-9]+$"))))
    for some in (rows[:_LOOKED_AT], rows):  # mostly the first ones tell
        if not len(some) or not pc.all(_match(column.take(array_of(some)), _GROUPED)).as_py():
            return None
    row = int(rows[0])
    return Look(GROUPED, f'"{printable(column[row].as_py())}" ({place(row)})')


def grouped_notes(found: Sequence[tuple[str, Look]], kept_text: Sequence[tuple[str, Obstacles]]) -> tuple[str, ...]:
    """Return what is said of columns whose points may group thousands; a decimal comma in others is a sign of it."""
    if not found:
        return ()
    others = [name for name, one in kept_text if one.commas and one.commas.decimal][:_SHOWN]
    options = []
    grouped = [name for name, _ in found[:_SHOWN]]
    for name in (*others, *grouped):
        options += [set_column(name, "decimal", ","), set_column(name, "thousands", ".")]
        options += [set_column(name, "type", "int64")] if name in grouped else []
    columns = _shown([name for name, _ in found])
    why = f', as the comma of "{printable(others[0])}" suggests' if others else ""
    return (
        f"column{'' if len(found) == 1 else 's'} {columns}: {found[0][1].shown} is read as a decimal number; if "
        f"the point groups thousands{why}: {Add(*options)}{'; the other columns alike' if len(found) > _SHOWN else ''}",
    )


def look_notes(found: Sequence[tuple[str, Look]], nulls: GivenNulls) -> tuple[str, ...]:
    """Return what is to be said of columns by what they look like, a line of each kind."""
    kinds = defaultdict[tuple[str, str], list[tuple[str, Look]]](list)
    for name, look in found:
        kinds[look.kind, f"{look.items}{look.nulls}"].append((name, look))
    return tuple(_note(kind, group, nulls) for (kind, _), group in kinds.items())


def _note(kind: str, group: Sequence[tuple[str, Look]], nulls: GivenNulls) -> str:
    names, (first, look) = [name for name, _ in group], group[0]
    one = len(names) == 1
    columns = f"column{'' if one else 's'} {_shown(names)}"
    keys = {LIST: ("as", "list"), PICTURE: ("image", "base64"), CODE: ("type", "string")}
    options = [set_column(first, *keys[kind])] if kind in keys else []
    if look.nulls:  # a value for null is one of the type of the items
        typed = {"type": look.items, "null_item": item_for_null(pa.type_for_alias(look.items))}
        options += [set_column(first, *each) for each in typed.items()]
    fix = f"{Add(*options) if options else ''}{'' if one else '; the others alike'}"
    match kind:
        case "list":
            return (
                f"{columns} hold{'s' * one} lists as text, such as {look.shown}; to read lists of {look.items}: {fix}"
            )
        case "picture":
            return f"{columns} hold{'s' * one} pictures as base64, such as {look.shown}; to read them: {fix}"
        case "code":
            return f"{columns}: {look.shown} is read as a number; if such values are codes: {fix}"
        case "rows":
            said = f"{look.shown} holds what looks like whole rows; if its quotes are plain text"
            return f"{columns}: {said}: {Set('input.quote', None)}"
        case "null":  # which tells nulls from empty texts
            words = Set("input.null_values", [*filter(None, nulls.everywhere), look.items])
            return f"{columns}: {look.shown} is null in dumps of databases, and text here; to read null: {words}"
        case "bools":
            options = nulls.options((name, [look.items]) for name in names[:_SHOWN])
            more = "; the other columns alike" if len(names) > _SHOWN else ""
            return f"{columns}: all are true or false but {look.shown}; if that means null: {Add(*options)}{more}"
        case "escapes":
            said = f"{look.shown} holds a backslash as dumps of databases write line breaks, tabs and backslashes"
            read = Add(*(set_column(name, "escapes", True) for name in names[:_SHOWN]))
            more = "; the other columns alike" if len(names) > _SHOWN else ""
            return f"{columns}: {said}; to read the text itself: {read}{more}"
        case "quotes":
            why = "the quotes are part of the value, since a blank is in front"
            return f"{columns}: {look.shown}: {why}; to take both off: {Set('input.trim', True)}"
    return f"{columns} hold{'s' * one} objects as text, such as {look.shown}, and stay{'s' * one} text"


_QUOTES_IN: Final = 1 << 17
"""How much of a text is looked at for its quotes: of a piece of 2 MB all would take as long as to parse it."""


@dataclass(frozen=True, slots=True)
class QuoteSigns:
    """What the text says of its quotes, if no escape is declared.

    `lost` says which cell loses its quotes although quotes are text in this file, and why.
    `escaped` is a cell with a backslash before each quote; with `other` a backslash or quote is there that an escape
    does not explain.
    """

    lost: str = ""
    escaped: str = ""
    other: bool = False

    def plus(self, more: QuoteSigns) -> QuoteSigns:
        return QuoteSigns(self.lost or more.lost, self.escaped or more.escaped, self.other or more.other)


def look_at_quotes(text: bytes, dialect: Dialect, shown: Callable[[int, int], str]) -> QuoteSigns:
    """Look at the first rows of a text; `shown` returns the words for the cell between two offsets."""
    head = text if len(text) <= _QUOTES_IN else text[: text.rfind(b"\n", 0, _QUOTES_IN) + 1]
    quote = b"" if dialect.quote is None else bytes([dialect.quote])
    if dialect.escape is not None or not (b"\\" in head or (quote and quote in head)):
        return QuoteSigns()
    bare, other = _unexplained(head, dialect)
    found = re.search(rb'(?<!\\)(?:\\\\)*\\"', head) if b"\\" in head and not other else None
    lost = _lost_quotes(head, dialect, bare, shown) if bare >= 0 else ""
    if found is None or _unexplained(text, dialect)[1]:
        return QuoteSigns(lost, "", other or found is not None)
    return QuoteSigns(lost, shown(*_cell_around(head, found.end() - 1, dialect.delimiter)))


def _unexplained(text: bytes, dialect: Dialect) -> tuple[int, bool]:
    """Return where a quote is within a cell without a backslash, -1 if none is; and whether one, or a backslash, is."""
    ends = re.escape(bytes([dialect.delimiter])) + b"\r\n"
    rest = re.sub(rb"""\\[%b\\"']""" % ends, b"__", text) if b"\\" in text else text
    bare = -1 if dialect.quote is None else _bare_quote(rest, dialect.quote, dialect.delimiter)
    return bare, bare >= 0 or b"\\" in rest


def _lost_quotes(text: bytes, dialect: Dialect, bare: int, shown: Callable[[int, int], str]) -> str:
    """Return the first cell that is quoted as a whole, and the one around a quote that no program writes so."""
    assert dialect.quote is not None
    quote, ends = re.escape(bytes([dialect.quote])), re.escape(bytes([dialect.delimiter])) + b"\r\n"
    found = re.search(rb"(?:\A|(?<=[%b]))%b[^%b%b]+%b(?=[%b]|\Z)" % (ends, quote, ends, quote, quote, ends), text)
    if found is None or not quotes_are_text(text, dialect):
        return ""
    return (
        f"the quotes around {shown(found.start(), found.end())} are taken off, but quotes look like plain text, as in "
        f"{shown(*_cell_around(text, bare, dialect.delimiter))}"
    )


def _bare_quote(text: bytes, quote: int, delimiter: int) -> int:
    """Return where a quote is neither at an edge of a cell nor beside another quote; -1 if none is."""
    data = np.frombuffer(text, np.uint8)
    at = np.flatnonzero(data[1:-1] == quote) + 1
    edges = np.zeros(256, np.bool_)
    edges[[delimiter, quote, LF, CR]] = True
    at = at[~edges[data[at - 1]] & ~edges[data[at + 1]]]
    return int(at[0]) if len(at) else -1


def _cell_around(text: bytes, at: int, delimiter: int) -> tuple[int, int]:
    ends = [bytes([end]) for end in (delimiter, LF, CR)]
    stops = [stop for end in ends if (stop := text.find(end, at)) >= 0]
    return max(text.rfind(end, 0, at) for end in ends) + 1, min(stops, default=len(text))


def quotes_are_text(text: bytes, dialect: Dialect) -> bool:
    """Return whether each line is a row as wide as the first one without quotes, and no program quoted the cells.

    A program quotes all text of a column, or what needs it, and then writes each quote twice.
    """
    lines = [line for line in text[: text.rfind(b"\n") + 1 or len(text)].splitlines() if line.strip()]
    widths = {line.count(dialect.delimiter) for line in lines}
    if dialect.quote is None or dialect.is_odd or len(lines) < 2 or len(widths) != 1 or widths == {0}:
        return False
    quote, quoted, bare = bytes([dialect.quote]), set[int](), set[int]()
    for line in lines:
        for column, cell in enumerate(line.split(bytes([dialect.delimiter]))):
            if cell[:1] != quote:
                if column not in bare and cell and not _FIGURES.fullmatch(cell):
                    bare |= set() if _may_be_null(cell.decode("latin-1")) else {column}
            elif len(cell) > 1 and cell.endswith(quote):
                if 2 * quote in cell[1:-1]:
                    return False
                quoted.add(column)
    return quoted <= bare
