"""Warnings about CSV files that are read all the same: one line for all files, or one a file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...format.wording.hints import Add, set_column
from .header import FileHead
from .parse import Parser
from .pieces import CsvPiece
from .records.record_starts import FileScan
from .schema import PieceEvidence


def table_warnings(
    heads: Sequence[FileHead],
    scans: dict[int, FileScan],
    pieces: Sequence[CsvPiece],
    evidence: Sequence[PieceEvidence],
    parser: Parser,
    *,
    whole: bool,
) -> list[str]:
    """Return what a user must know of the files: no row, no value in a row, blank lines, NUL bytes.

    `evidence` is of each piece; it is of all rows if `whole`.
    """
    found = []
    streams = {p.entry: e for p, e in zip(pieces, evidence, strict=True) if p.streamed}
    for index, head in enumerate(heads):
        if head.names is None:
            found.append(f"{head.name}: is empty: no header and no row")
            continue
        blanks, nul, blank_rows = 0, False, len(head.names) == 1
        if index in scans:
            blanks, nul = scans[index].end.blanks - head.data.blanks * blank_rows, scans[index].nul
        elif index in streams:
            blanks, nul = streams[index].blanks, streams[index].nul
        if blanks and not blank_rows:
            found.append(f"{head.name}: {blanks} blank line{'s' * (blanks > 1)} skipped")
        if nul:
            found.append(f"{head.name}: holds NUL bytes; they are kept")
    return [*found, *_header_only(heads, pieces, evidence), *_empty_rows(pieces, evidence, parser, whole=whole)]


def _header_only(
    heads: Sequence[FileHead], pieces: Sequence[CsvPiece], evidence: Sequence[PieceEvidence]
) -> Iterator[str]:
    full = {p.entry for p, e in zip(pieces, evidence, strict=True) if (e.rows if p.rows is None else p.rows)}
    names = [head.name for index, head in enumerate(heads) if head.names is not None and index not in full]
    if names:
        yield f"{_some(names)}: holds a header only, and no row"


def _empty_rows(
    pieces: Sequence[CsvPiece], evidence: Sequence[PieceEvidence], parser: Parser, *, whole: bool
) -> Iterator[str]:
    """Return how many rows have no value at all, and how to reject them if a column has no other nulls."""
    count = sum(found.empty for found in evidence)
    if not count:
        return
    names = list(dict.fromkeys(p.name for p, found in zip(pieces, evidence, strict=True) if found.empty))
    seen = [found for found in evidence if found.rows]
    key = next((c for i, c in enumerate(parser.kept) if sum(e.columns[i].nulls for e in seen) == count), None)
    fix = ""
    if whole and key is not None:
        reject = Add(set_column(key, "nullable", False), "--max-rejects", str(count))
        fix = f"; to reject {'it' if count == 1 else 'them'}: {reject}"
    which = "" if whole else " of those that were looked at"
    what = "1 row has no value, and becomes" if count == 1 else f"{count:,} rows{which} have no value, and become"
    yield f"{_some(names)}: {what} {'an empty record' if count == 1 else 'empty records'}{fix}"


def _some(names: Sequence[str]) -> str:
    return names[0] + (f" and {len(names) - 1:,} more" if len(names) > 1 else "")
