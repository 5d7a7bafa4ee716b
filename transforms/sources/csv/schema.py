"""Choose the types of CSV columns: declared, or inferred from the rows that were looked at.

    no value  ->  int64  ->  float64  ->  string         each step takes all texts of the steps before it
    no value  ->  bool   ->  string

A text counts as a number only if the number is all that it says: `00123`, `+5` and integers beyond int64 make the
column a string. So does `-0` among integers, which have no such number; in a column that has floats too it is the
float -0.0. Dates are strings unless they are declared.
"""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from itertools import count, groupby
from typing import Final, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ...errors import SourceError
from ...format.batches.arrow_memory import array_of, beginning_of, binary_array, true_mask
from ...format.schema.arrow_types import feature_of
from ...format.schema.column_types import DEFAULT_UNIT, named_type
from ...format.schema.schema import Choice, ColumnRule, Feature
from ...format.wording.hints import Add, Set, set_column
from ...format.wording.printable import VALUE_LIMIT, counted, printable
from ..text.cast import cell_bytes, declared_type, first_problem, leading_zeros, nullify, prove_column
from ..text.open_text import is_transparent, is_utf8
from .header import NO_HEADER, CsvPiece, FileHead, read_chunks
from .obstacles import (
    CODE,
    GROUPED,
    NULL_OF_DUMPS,
    Look,
    Obstacles,
    QuoteSigns,
    find_obstacles,
    look_at_bools,
    look_at_escaped_nulls,
    look_at_escapes,
    look_at_floats,
    look_at_nulls,
    look_at_points,
    look_at_quotes,
    look_at_rows,
    look_at_text,
)
from .parse import TRIM, CsvCells, Parser, check_utf8, parse_cells

Kind = Literal["null", "int64", "float64", "bool", "string"]

AUTO_ROWS: Final = 10_000
"""Above `CsvLimits.auto_bytes`, `infer: auto` reads this many rows of each file."""

_SHOWN: Final = 5
_TRIED_ROWS: Final = 64
_DATE: Final = rb"[0-9]{4}-[0-9]{2}-[0-9]{2}(?![0-9])"
_INTEGER_LIKE: Final = r"^[+-]?[0-9]+$"
_NEGATIVE_ZERO: Final = b"-0"
_LONG: Final = 16
"""An integer of fewer characters is a float64."""

_MORE_DIGITS: Final = "has more digits than a float64 can hold"


@dataclass(frozen=True, slots=True)
class PieceEvidence:
    """What a piece says: the rows that were read of it, how many were too wide, and the evidence for each column.

    `too_wide`, `by_one`, `trailing` and `blank_quotes` are as in `CsvCells`.
    `again` is where the header comes again. `empty` are the rows that have no value in any of several columns, as a
    line of delimiters gives. `blanks` and `nul` are set for streams only: for plain files the scan finds them. `utf8`
    says whether text that is read in another encoding is UTF-8; None where it is ASCII. `signs` are of the quotes.
    `taken` are the cells of each column that a word of `input.null_values` made null, by the word.
    """

    rows: int
    too_wide: int
    columns: tuple[Evidence, ...]
    blanks: int = 0
    nul: bool = False
    empty: int = 0
    trailing: int = 0
    blank_quotes: int = 0
    by_one: int = 0
    again: str = ""
    utf8: bool | None = None
    signs: QuoteSigns = field(default_factory=QuoteSigns)
    taken: Counter[tuple[str, str]] = field(default_factory=Counter)


def look_at_piece(
    piece: CsvPiece, *, parser: Parser, encoding: str, limit: int | None, typed: Sequence[str], binary: bool
) -> PieceEvidence:
    """Return what a piece says of its columns' types, rows of the file from `limit` on aside."""
    taken = Counter[tuple[str, str]]()
    shared, parser = parser.kept, parser.of_file(piece.columns, piece.again)
    joined = PieceEvidence(0, 0, tuple(Evidence("null", 0) for _ in parser.kept))
    located = is_transparent(encoding)
    for _, chunk in read_chunks([piece], parser, encoding):
        cells = parse_cells(parser, chunk, piece.name, piece.entry, located=located)
        check_utf8(cells, ["binary"] if binary else [], piece.name)
        first = chunk.before.records + (chunk.before.blanks if parser.blank_rows else 0)
        rows = cells.rows if limit is None else max(min(cells.rows, limit - first), 0)
        if rows < cells.rows:
            cells = replace(cells, columns=[c.slice(0, rows) for c in cells.columns], rows=rows)
        taken += taken_by_words(parser, cells, piece)
        seen = look_at_columns(parser, cells, typed=typed)
        joined = PieceEvidence(
            joined.rows + rows + len(cells.rejects) + cells.dropped,
            joined.too_wide + cells.too_wide,
            tuple(join_evidence(a, b) for a, b in zip(joined.columns, seen, strict=True)),
            joined.blanks + (chunk.counts.blanks if chunk.counts else 0),
            joined.nul or (chunk.counts is not None and b"\0" in chunk.text),
            joined.empty + _count_empty(cells.columns),
            joined.trailing + cells.trailing,
            joined.blank_quotes + cells.blank_quotes,
            joined.by_one + cells.by_one,
            joined.again or _header_again(parser, cells),
            joined.utf8
            if parser.encoding == "utf-8" or chunk.text.isascii()
            else joined.utf8 is not False and is_utf8(chunk.text),
            joined.signs.plus(
                look_at_quotes(chunk.text, parser.dialect, partial(_shown_cell, cells=cells, parser=parser))
            ),
        )
        if limit is not None and joined.rows >= limit:
            break
    of_file = dict(zip(parser.kept, joined.columns, strict=True))
    columns = tuple(of_file.get(name, Evidence("null", joined.rows)) for name in shared)
    return replace(joined, columns=columns, taken=taken)


def taken_by_words(parser: Parser, cells: CsvCells, piece: CsvPiece) -> Counter[tuple[str, str]]:
    """Return how many cells of each column are null by which word; an empty cell has none."""
    found = Counter[tuple[str, str]]()
    if not any(parser.null_values) or not any(column.null_count for column in cells.columns):
        return found
    plain = replace(parser, null_values=tuple(word for word in parser.null_values if not word))
    origin = cells.origin
    texts = parse_cells(plain, origin.chunk, piece.name, piece.entry, located=origin.located).columns
    for name, text, column in zip(parser.kept, texts, cells.columns, strict=True):
        words = text.slice(0, cells.rows).filter(column.is_null()).drop_null()
        counts = pc.value_counts(words).to_pylist()
        found.update({(name, bytes(one["values"]).decode("utf-8", "replace")): one["counts"] for one in counts})
    return found


def taken_note(taken: Counter[tuple[str, str]], *, whole: bool) -> tuple[str, ...]:
    """Return the note of the cells that words for null in all columns took, the columns with the most of them first."""
    if not taken:
        return ()
    found = sorted(taken.items(), key=lambda item: (-item[1], item[0]))
    shown = ", ".join(
        f'{count:,} of "{printable(name)}" ("{printable(word)}")' for (name, word), count in found[:_SHOWN]
    )
    more = f" and {len(found) - _SHOWN:,} more" if len(found) > _SHOWN else ""
    rows = "" if whole else ", in the rows that were looked at"
    name, word = found[0][0]
    own = set_column(name, "null_values", [word])
    return (f"input.null_values made cells null{rows}: {shown}{more}; to name a word for one column alone: {own}",)


def _header_again(parser: Parser, cells: CsvCells) -> str:
    """Return the place of the first row that is the header again, as far as its columns are read."""
    wanted = [name.encode() for name in parser.kept]
    marks = (b"", BOM_UTF8) if cells.rows and parser.kept[0] == parser.names[0] else ()
    rows = [pc.index(cells.columns[0], binary_array([mark + wanted[0]])[0]).as_py() for mark in marks]
    for row in sorted(row for row in rows if row >= 0):
        if [column[row].as_py() for column in cells.columns[1:]] == wanted[1:]:
            place = cells.origin.place(row)
            return f"{place.source} row {place.row}"
    return ""


def _count_empty(columns: Sequence[pa.Array]) -> int:
    if len(columns) < 2 or not all(column.null_count for column in columns):
        return 0
    return int(pc.sum(reduce(pc.and_, (column.is_null() for column in columns))).as_py() or 0)


def choose_types(
    parser: Parser,
    rules: Mapping[str, ColumnRule],
    evidence: Sequence[PieceEvidence],
    *,
    infer: str,
    whole: bool,
    lacking: Mapping[str, str],
) -> tuple[list[Feature], tuple[Choice, ...], list[tuple[str, Obstacles]], list[tuple[str, Look]]]:
    """Return the feature of each column that is kept, in file order, its reason, what keeps it text, and its look.

    `lacking` says in which files a column is missing. Raises `SchemaError` where a declared type cannot be read from
    text, or does not fit what else is declared.
    """
    rows = sum(piece.rows for piece in evidence)
    features, choices, kept_text, looks = [], [], [], []
    for index, name in enumerate(parser.kept):
        found = reduce(join_evidence, (piece.columns[index] for piece in evidence), Evidence("null", 0))
        rule = rules.get(name)
        if rule is not None and rule.type is not None:
            arrow, reason = declared_type(name, rule), "declared"
            rule = ColumnRule(None, rule.as_, rule.unit, rule.timezone, rule.nullable)
        elif infer == "none":
            arrow, reason = pa.string(), "infer is none: every column is text unless it is declared"
        else:
            kind = "string" if found.kind == "null" else found.kind
            inferred = named_type(kind)
            assert inferred is not None
            arrow, reason = inferred.arrow(DEFAULT_UNIT, None), explain(found, rows, whole=whole)
            if found.obstacles is not None and found.obstacles.are_exceptions(rows - found.nulls):
                kept_text.append((name, found.obstacles))
            elif found.look is not None and (found.look.kind in (CODE, GROUPED)) == (found.kind == "float64"):
                looks.append((name, found.look))
        nullable = found.nulls > 0 or not whole or found.kind == "null" or name in lacking
        feature, how = feature_of(pa.field(name, arrow, nullable), rule)
        features.append(feature)
        why = [f"{reason} ({how})" if how != str(arrow) else reason, *([lacking[name]] if name in lacking else [])]
        choices.append(Choice(name, feature.type, "; ".join(why), found.nulls))
    return features, tuple(choices), kept_text, looks


_FIRST_LINE: Final = ("looks like a title; to begin with the header", "is a comment; to leave comments out")


def refuse_wide_files(
    pieces: Sequence[CsvPiece],
    evidence: Sequence[PieceEvidence],
    heads: Sequence[FileHead],
    commented: Callable[[int], int],
    titles: Callable[[int, int], int],
) -> None:
    """Raise `SourceError` for a file whose rows, all that were read, have more columns than its header.

    `commented` gives the lines of a file before a header that is in comments, 0 where there is none; `titles` those
    before a header of so many columns, where a title is the first line.
    """
    for _, group in groupby(zip(pieces, evidence, strict=True), key=lambda pair: pair[0].entry):
        pairs = list(group)
        piece = pairs[0][0]
        names = piece.columns
        rows = sum(found.rows for _, found in pairs)
        too_wide = sum(found.too_wide for _, found in pairs)
        cells = heads[piece.entry].cells
        is_comment, is_title = cells[0].startswith("#"), len(cells) > 1 and not any(cells[1:])
        title = partial(titles, piece.entry, len(names) + 1 if is_title else 2 * len(names))
        is_header = names[0].startswith("#") and not is_comment
        if max(rows / 2, 2) <= too_wide < rows + is_title and not is_header and (lines := title()):
            what = _FIRST_LINE[is_comment]
            fix = Set("input.comment", "#") if is_comment else Set("input.skip_lines", lines)
            raise SourceError(
                piece.name,
                f"most rows have more than the {counted(len(names), 'column')} of the first line, which {what}: {fix}",
            )
        if rows and too_wide == rows:
            if lines := commented(piece.entry):
                raise SourceError(
                    piece.name,
                    f"the header is the last line of comments, as numpy.savetxt writes it; skip the lines before it: "
                    f"{Set('input.skip_lines', lines)}",
                )
            instead = f"{NO_HEADER} {Set('input.skip_lines', piece.header_lines)}"
            if sum(found.trailing for _, found in pairs) == rows:
                last = next(name for i in count(len(names)) if (name := f"column_{i}") not in names)
                raise SourceError(
                    piece.name,
                    f"every row that was read ({rows}) ends with a delimiter, and the header does not; take it off, or "
                    f"read an empty column more and leave it out: {instead} {Set('input.names', [*names, last])} "
                    f"{Set('input.exclude_columns', f'[{last}]')}",
                )
            also = f"; or, as a blank is before a quote, {TRIM}" if any(one.blank_quotes for _, one in pairs) else ""
            if not also and sum(found.by_one for _, found in pairs) == rows:
                also = (
                    "; or, if the header lacks the name of the first column, as R writes it: "
                    f"{Set('input.row_names', 'row')}"
                )
            before = Set("input.comment", "#") if is_comment else Set("input.skip_lines", title() or "N")
            if len(names) == 1 and names[0].isdecimal():  # a count of the rows
                before, also = Set("input.skip_lines", piece.header_lines), ""
            raise SourceError(
                piece.name,
                f"every row that was read ({rows}) has more than the {counted(len(names), 'column')} of the header; "
                f"fix the header, skip lines before it ({before}), name the delimiter ({Add('--delimiter', 'SIGN')}), "
                f"or name the columns instead ({instead} {Set('input.names', '[a, b, ...]')}){also}",
            )


@dataclass(frozen=True, slots=True)
class Evidence:
    """What some rows say of a column: its type, its nulls, and for text a value that is nothing else, and its row.

    `obstacles` are the values without which text would be numbers, where they are few. With `float_elsewhere` these are
    integers and `-0`, text by themselves and floats in a column that has floats in other rows. `rounded` is an integer
    that float64 does not hold, and its row: beside floats these are text. `look` is what the first cells look like.
    """

    kind: Kind
    nulls: int
    because: str = ""
    obstacles: Obstacles | None = None
    float_elsewhere: bool = False
    rounded: str = ""
    look: Look | None = None


def look_at_columns(parser: Parser, cells: CsvCells, *, typed: Sequence[str] = ()) -> tuple[Evidence, ...]:
    """Return the evidence of one chunk; columns named in `typed` are declared, and only their nulls are counted."""
    return tuple(
        Evidence("string", column.null_count) if name in typed else _look_at(column, cells)
        for name, column in zip(parser.kept, cells.columns, strict=True)
    )


def join_evidence(first: Evidence, second: Evidence) -> Evidence:
    """Return what two pieces of evidence say together.

    >>> join_evidence(Evidence("int64", 0), Evidence("float64", 2)).kind
    'float64'
    """
    if first == second and not first.nulls and first.kind != "string":  # thousands of columns, each in many pieces
        return first
    look = first.look or second.look
    if look is not None and look.kind == GROUPED:  # all floats look so, or none
        floats = [one.look for one in (first, second) if one.kind == "float64"]
        look = next((one for one in floats if one is None or one.kind != GROUPED), look)
    return replace(_join(first, second), look=look)


def _join(first: Evidence, second: Evidence) -> Evidence:
    nulls, rounded = first.nulls + second.nulls, first.rounded or second.rounded
    first, second = _beside(first, second), _beside(second, first)
    kinds: set[Kind] = {first.kind, second.kind}
    kinds.discard("null")
    if len(kinds) <= 1:
        kind: Kind = next(iter(kinds), "null")
    elif kinds == {"int64", "float64"}:
        kind = "float64"
    else:
        kind = "string"
    because = first.because if first.kind == kind else second.because if second.kind == kind else ""
    if kinds == {"int64", "float64"} and rounded:
        return Evidence("string", nulls, f"{rounded} {_MORE_DIGITS}")
    if kind == "string" and not because and len(kinds) > 1:
        because = " and ".join(f"{name} values" for name in sorted(kinds)) + " in one column"
    if kind != "string":
        return Evidence(kind, nulls, because, rounded=rounded)
    elsewhere = all(one.float_elsewhere or one.kind in ("null", "int64") for one in (first, second))
    return Evidence(kind, nulls, because, _join_obstacles(first, second), elsewhere)


def _beside(evidence: Evidence, other: Evidence) -> Evidence:
    is_float = evidence.float_elsewhere and other.kind == "float64"
    return Evidence("float64", evidence.nulls) if is_float else evidence


def explain(evidence: Evidence, rows: int, *, whole: bool) -> str:
    """Return the reason for a column's type in words: `rows` were read, all there are if `whole`."""
    seen = f"{rows:,} row{'' if rows == 1 else 's'}"
    seen = seen if whole else f"the first {seen}"
    nulls = f", {evidence.nulls:,} null" if evidence.nulls else ""
    if evidence.kind == "null":
        text = f"no value in {seen}; declare the type if there will be one"
    elif evidence.kind == "string":
        text = f"{evidence.because or 'text'}; {seen}{nulls}"
    else:
        what = {"int64": "an integer", "float64": "a number", "bool": "true or false"}[evidence.kind]
        text = f"every value is {what} in {seen}{nulls}"
    return text if whole else text + "; nullable, since not all rows were read"


_COMMA_IN_CELL: Final = re.compile(rb"[\t\n][^\t\n,]{0,12}[0-9],[0-9]{1,2}[^\t\n,0-9]{0,6}[\t\r\n]")
_ENOUGH_TEXT: Final = 1 << 16


def _look_at_points(column: pa.Array, cells: CsvCells) -> Look | None:
    """Look at points where decimal commas may be: between semicolons, or between tabs where a cell shows one."""
    delimiter, text = cells.origin.dialect.delimiter, cells.origin.chunk.text
    look = look_at_points(column, partial(_place, cells=cells)) if delimiter in b";\t" else None
    return look if delimiter == ord(";") or (look and _COMMA_IN_CELL.search(text, 0, _ENOUGH_TEXT)) else None


def _look_at(column: pa.Array, cells: CsvCells) -> Evidence:
    nulls, place = column.null_count, partial(_place, cells=cells)
    if nulls == len(column):
        return Evidence("null", nulls)
    if _is_all(column, pa.int64()):
        return Evidence("int64", nulls, rounded=_rounded(column, cells))
    if _is_all(column, pa.float64()):
        odd = _odd_integer(column, cells)
        if odd is None:
            look = look_at_floats(column, place)
            return Evidence("float64", nulls, look=look or _look_at_points(column, cells))
        zeros = nullify(column, _true_rows(pc.equal(column, _NEGATIVE_ZERO)))
        elsewhere = zeros.null_count > nulls and (zeros.null_count == len(zeros) or _is_all(zeros, pa.int64()))
        return Evidence("string", nulls, odd, _obstacles(column, cells), elsewhere)
    if _is_all(column, pa.bool_()):
        return Evidence("bool", nulls)
    origin = cells.origin
    look = look_at_text(column, place) if origin.chunk.before.records == 0 else None
    if look is None and origin.dialect.quote is not None and origin.dialect.quote in origin.chunk.text:
        look = look_at_rows(column, origin.dialect.delimiter, len(cells.names), place)
    look = look or look_at_bools(column, place)
    of_dumps = origin.dialect.delimiter == ord("\t") or NULL_OF_DUMPS in origin.chunk.text
    if look is None and of_dumps and origin.dialect.escape is None and b"\\" in origin.chunk.text:
        look = look_at_escapes(column, place, quotes=NULL_OF_DUMPS in origin.chunk.text)
    if look is None and NULL_OF_DUMPS in origin.chunk.text and b'"' + NULL_OF_DUMPS not in origin.chunk.text:
        look = look_at_nulls(column, place)
        if look is None and origin.dialect.escape is not None:
            text, sign = origin.chunk.text, origin.dialect.delimiter
            look = look_at_escaped_nulls(column, text, sign, place)
    return Evidence("string", nulls, _why_text(column, cells), _obstacles(column, cells), look=look)


def _rounded(column: pa.Array, cells: CsvCells) -> str:
    if int(cell_bytes(column).max()) < _LONG:
        return ""
    problem = first_problem(column, pa.float64())
    return "" if problem is None else _shown(column, problem[0], cells)


def _obstacles(column: pa.Array, cells: CsvCells) -> Obstacles | None:
    found = find_obstacles(column, partial(_place, cells=cells))
    if found is None or _is_text(nullify(column, found[0]), cells):
        return None
    return found[1]


def _is_text(column: pa.Array, cells: CsvCells) -> bool:
    """Return whether a column without words is text all the same: such numbers would lose something."""
    numbers = _is_all(column, pa.int64()) or (_is_all(column, pa.float64()) and _odd_integer(column, cells) is None)
    return not numbers and column.null_count < len(column)


def _join_obstacles(first: Evidence, second: Evidence) -> Obstacles | None:
    found = [Obstacles() if e.kind in ("null", "int64", "float64") else e.obstacles for e in (first, second)]
    return None if found[0] is None or found[1] is None else found[0].plus(found[1])


def _is_all(column: pa.Array, target: pa.DataType) -> bool:
    # Arrow's cast makes a message for every cell that fails, so that a failing column costs ten times a good one
    head = column.slice(0, _TRIED_ROWS)
    return all(prove_column(part, target) is not None for part in (head, column))


def _odd_integer(column: pa.Array, cells: CsvCells) -> str | None:
    """Return why a column of floats is not one: a cell that looks like an integer and is none, or a leading zero."""
    zeros = leading_zeros(column)
    if len(zeros):
        return f"{_shown(column, int(zeros[0]), cells)} has a leading zero, which a number would lose"
    # most floats have a point: only the others are checked against the pattern, which takes longer than the cast
    rows = _true_rows(pc.invert(pc.match_substring(column, ".")))
    rows = rows[_true_rows(pc.match_substring_regex(column.take(array_of(rows)), _INTEGER_LIKE))]
    problem = first_problem(column.take(array_of(rows)), pa.int64()) if len(rows) else None
    if problem is not None and len(rows) < len(column) - column.null_count:  # beside floats "-0" is one
        rows = rows[_true_rows(pc.not_equal(column.take(array_of(rows)), _NEGATIVE_ZERO))]
        problem = first_problem(column.take(array_of(rows)), pa.int64()) if len(rows) else None
    if problem is None:
        return None
    row, code = int(rows[problem[0]]), problem[1]
    what = "is beyond int64" if code == "INT_OVERFLOW" else "is not how an integer is written"
    return f"{_shown(column, row, cells)} {what}"


def _true_rows(flags: pa.Array) -> npt.NDArray[np.int64]:
    return np.flatnonzero(true_mask(flags))


def _why_text(column: pa.Array, cells: CsvCells) -> str:
    problem = first_problem(column, pa.float64())
    if problem is not None:
        shown = _shown(column, problem[0], cells)
        if re.match(_DATE, _beginning(column, problem[0])):
            return f"{shown} looks like a date; dates stay text unless declared (type: date or timestamp)"
        if problem[1] == "PRECISION_LOSS":
            is_int64 = prove_column(column.slice(problem[0], 1), pa.int64()) is not None
            return f"{shown} {_MORE_DIGITS if is_int64 else 'is beyond int64'}"
        return f"text, e.g. {shown}"
    return _odd_integer(column, cells) or "text"


def _shown(column: pa.Array, row: int, cells: CsvCells) -> str:
    return f'"{printable(_beginning(column, row))}" ({_place(row, cells)})'


def _beginning(column: pa.Array, row: int) -> bytes:
    """Return what is shown of a cell at the most, without a copy of the whole."""
    return beginning_of(column, row, 4 * (VALUE_LIMIT + 1))


def _shown_cell(begin: int, end: int, *, cells: CsvCells, parser: Parser) -> str:
    """Return a cell as it is written, by its offsets in the chunk, and its place."""
    origin = cells.origin
    record = max(int(np.searchsorted(origin.starts(), begin, "right")) - 1, 0)
    shown = printable(origin.chunk.text[begin:end].decode(parser.encoding, "replace"))
    return f"{shown} ({origin.source} row {origin.place_of_record(record).row})"


def _place(row: int, cells: CsvCells) -> str:
    place = cells.origin.place(row)
    return f"{place.source} row {place.row}"
