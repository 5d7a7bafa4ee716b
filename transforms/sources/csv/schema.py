"""Choose the types of CSV columns: declared, or inferred from the rows that were read."""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import count, groupby

import pyarrow as pa
import pyarrow.compute as pc

from ...errors import SourceError
from ...format.buffers.arrow_memory import binary_array
from ...format.schema.arrow_types import feature_of
from ...format.schema.column_types import DEFAULT_UNIT, named_type
from ...format.schema.schema import Choice, ColumnRule, Feature
from ...format.wording.hints import Add, Set
from ...format.wording.printable import counted
from ..text.declared import declared_type
from ..text.open_text import is_transparent
from .header import NO_HEADER, FileHead
from .infer_types import Evidence, explain, join_evidence, look_at_columns
from .obstacles import CODE, GROUPED, Look, Obstacles
from .parse import TRIM, Cells, Parser, check_utf8, parse_cells
from .pieces import CsvPiece, read_chunks


@dataclass(frozen=True, slots=True)
class PieceEvidence:
    """What a piece says: the rows that were read of it, how many were too wide, and the evidence for each column.

    `too_wide`, `by_one`, `trailing` and `blank_quotes` are as in `Cells`.
    `again` is where the header comes again. `empty` are the rows that have no value in any of several columns, as a
    line of delimiters gives. `blanks` and
    `nul` are set for streams only: for plain files the scan finds them.
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


def look_at_piece(
    piece: CsvPiece, *, parser: Parser, encoding: str, limit: int | None, typed: Sequence[str], binary: bool
) -> PieceEvidence:
    """Return what a piece says of its columns' types, rows of the file from `limit` on aside."""
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
        )
        if limit is not None and joined.rows >= limit:
            break
    of_file = dict(zip(parser.kept, joined.columns, strict=True))
    columns = tuple(of_file.get(name, Evidence("null", joined.rows)) for name in shared)
    return replace(joined, columns=columns)


def _header_again(parser: Parser, cells: Cells) -> str:
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
    """Return the feature of each column that is kept, in file order, the reason of each, and what keeps some text.

    The last are what columns look like.

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
        names = pairs[0][0].columns
        rows = sum(found.rows for _, found in pairs)
        too_wide = sum(found.too_wide for _, found in pairs)
        title = partial(titles, pairs[0][0].entry, 2 * len(names))
        if max(rows / 2, 2) <= too_wide < rows and not names[0].startswith("#") and (lines := title()):
            raise SourceError(
                pairs[0][0].name,
                f"most rows have more than the {counted(len(names), 'column')} of the first line, which looks like a "
                f"title; to begin with the header: {Set('input.skip_lines', lines)}",
            )
        if rows and too_wide == rows:
            if lines := commented(pairs[0][0].entry):
                raise SourceError(
                    pairs[0][0].name,
                    f"the header is the last line of comments, as numpy.savetxt writes it; skip the lines before it: "
                    f"{Set('input.skip_lines', lines)}",
                )
            instead = f"{NO_HEADER} {Set('input.skip_lines', pairs[0][0].header_lines)}"
            if sum(found.trailing for _, found in pairs) == rows:
                last = next(name for i in count(len(names)) if (name := f"column_{i}") not in names)
                raise SourceError(
                    pairs[0][0].name,
                    f"every row that was read ({rows}) ends with a delimiter, and the header does not; take it off, or "
                    f"read an empty column more and leave it out: {instead} {Set('input.names', [*names, last])} "
                    f"{Set('input.exclude_columns', f'[{last}]')}",
                )
            also = ""
            if any(found.blank_quotes for _, found in pairs):
                also = f"; or, as a blank is before a quote, {TRIM}"
            elif sum(found.by_one for _, found in pairs) == rows:
                also = (
                    "; or, if the header lacks the name of the first column, as R writes it: "
                    f"{Set('input.row_names', 'row')}"
                )
            is_comment = heads[pairs[0][0].entry].cells[0].startswith("#")
            before = Set("input.comment", "#") if is_comment else Set("input.skip_lines", title() or "N")
            if len(names) == 1 and names[0].isdecimal():  # a count of the rows
                before, also = Set("input.skip_lines", pairs[0][0].header_lines), ""
            raise SourceError(
                pairs[0][0].name,
                f"every row that was read ({rows}) has more than the {counted(len(names), 'column')} of the header; "
                f"fix the header, skip lines before it ({before}), name the delimiter ({Add('--delimiter', 'SIGN')}), "
                f"or name the columns instead ({instead} {Set('input.names', '[a, b, ...]')}){also}",
            )
