"""The first rows of a whole source, exactly: later pieces are left out, and reading ends within the last one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ..format.flow.rows import Rows
from ..sources.contract.source import LastRow, LazyPieces, Limit, Piece, Source, Survey, Task


def first_rows(source: Source, survey: Survey, limit: int) -> Survey:
    """Return the survey of the first rows of a source.

    A piece whose rows nobody knows yet is read to count them, up to `limit` rows in all.
    """
    if isinstance(survey.pieces, LazyPieces):
        pieces = survey.pieces.first(limit)
        kept = pieces.rows_by_entry()
        partial = frozenset(entry for entry, rows in survey.pieces.rows_by_entry().items() if kept.get(entry) != rows)
        return replace(survey, pieces=pieces, limit=Limit(limit, None, partial))
    left, count, last = limit, 0, None
    for piece in survey.pieces:
        if left == 0:
            break
        rows = piece.rows if piece.rows is not None else _count(source, survey, piece, left)
        if rows > left or (rows == left and piece.rows is None):
            last = LastRow(piece.entry, piece.first_row + left)
        left -= min(rows, left)
        count += 1
    partial = frozenset(piece.entry for piece in survey.pieces[count:]) | ({last.entry} if last is not None else set())
    return replace(survey, pieces=survey.pieces[:count], tasks=None, limit=Limit(limit, last, partial))


def _count(source: Source, survey: Survey, piece: Piece, most: int) -> int:
    rows = 0
    for batch in source.read(Task(0, (piece,)), survey.frozen):
        rows += batch.batch.num_rows + len(batch.rejects)
        if rows >= most:
            return most
    return rows


def until(batches: Iterator[Rows], last: LastRow) -> Iterator[Rows]:
    for rows in batches:
        if rows.entry != last.entry:
            yield rows
            continue
        numbers = [rows.origin.place(row).row for row in (0, rows.batch.num_rows - 1)] if rows.batch.num_rows else []
        refused = [reject.place.row or 0 for reject in rows.rejects]
        if max([number or 0 for number in numbers] + refused, default=0) < last.row:
            yield rows
            continue
        yield _cut(rows, last)
        return


def _cut(rows: Rows, last: LastRow) -> Rows:
    count = _first_after(rows, last.row)
    return replace(
        rows,
        batch=rows.batch.slice(0, count),
        problems=tuple(problem for problem in rows.problems if problem.row < count),
        rejects=tuple(reject for reject in rows.rejects if (reject.place.row or 0) <= last.row),
        split_codes=None if rows.split_codes is None else np.asarray(rows.split_codes)[:count],
    )


def _first_after(rows: Rows, last: int) -> int:
    """Return how many rows of a batch are not after row `last` of their file: places grow, so by halving."""
    low, high = 0, rows.batch.num_rows
    while low < high:
        middle = (low + high) // 2
        if (rows.origin.place(middle).row or 0) <= last:
            low = middle + 1
        else:
            high = middle
    return low
