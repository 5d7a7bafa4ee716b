"""The splits of files that were recognised, in the survey of their source and in its rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..format.flow.rows import Rows
from ..format.manifest.naming import is_split_name
from ..format.wording.hints import Add, Set
from ..format.wording.printable import quoted
from ..recognise.names import split_of_folder
from ..recognise.splits import UNUSED, not_used
from ..sources.contract.source import Frozen, Listing, Survey


def in_splits(survey: Survey, listing: Listing) -> Survey:
    """Return the survey of files that have splits; where the source itself splits rows, it knows better.

    What the user says of all rows comes before both.
    """
    recognised = listing.recognised
    survey = replace(survey, warnings=(*survey.warnings, *recognised.warnings))
    if recognised.said and survey.frozen.splits:
        detected = (*survey.detected, *not_used(survey.frozen.splits, recognised.said, recognised.split))
        frozen, rule = replace(survey.frozen, splits=()), survey.rule and UNUSED
        return replace(survey, frozen=frozen, split_rows={}, detected=detected, rule=rule)
    names = tuple(sorted({entry.split for entry in listing.entries if entry.split is not None}))
    if names and survey.frozen.splits:
        return survey
    survey = replace(survey, detected=(*recognised.lines, *survey.detected))
    if not names:
        return survey
    codes = bytes(names.index(entry.split or "") for entry in listing.entries)
    frozen = replace(survey.frozen, splits=names, by_entry=codes)
    return replace(survey, frozen=frozen, split_rows=_split_rows(survey, frozen))


def _split_rows(survey: Survey, frozen: Frozen) -> dict[str, int]:
    """Return the rows of each split, where all are known; else their bytes, which say as much of their shares."""
    known = all(piece.rows is not None for piece in survey.pieces)
    rows = dict.fromkeys(frozen.splits, 0)
    for piece in survey.pieces:
        rows[frozen.splits[frozen.by_entry[piece.entry]]] += (piece.rows or 0) if known else piece.bytes
    return rows


def told_by_column(batch: pa.RecordBatch) -> tuple[str, ...]:
    """Return what to say of the first column of text whose values are all names of splits, of two at least."""
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)) or not len(column):
            continue
        # as bytes: the encoder refuses those that are not UTF-8
        if split_of_folder(_texts(column.slice(0, 1))[0]) is None:
            continue
        values = _texts(pc.unique(column.cast(pa.large_binary())))
        if len(values) < 2 or len(values) > _MOST_SPLITS or None in map(split_of_folder, values):
            continue
        names = [] if all(map(is_split_name, values)) else [Set("split.names", {one: one.lower() for one in values})]
        said = f"column {quoted(name)} holds names of splits: {', '.join(values)}; to split by it"
        return (f"{said}: {Add(Set('split.column', name), *names)}",)
    return ()


_MOST_SPLITS: Final = 8


def _texts(column: pa.Array) -> list[str]:
    """Return the texts of a column as they are shown; a null is empty."""
    return [(value or b"").decode("utf-8", "replace") for value in column.cast(pa.large_binary()).to_pylist()]


def rows_in_splits(batches: Iterator[Rows], frozen: Frozen) -> Iterator[Rows]:
    """Yield batches with the split of each row, which is that of its file; without one where all rows go to one."""
    if not frozen.by_entry:
        for rows in batches:
            yield rows if rows.split_codes is None else replace(rows, split_codes=None)
            del rows  # and so below: what is large is freed before more is read
        return
    codes = np.frombuffer(frozen.by_entry, np.uint8).astype(np.int64)
    for rows in batches:
        found = np.full(rows.batch.num_rows, rows.entry, np.int64) if isinstance(rows.entry, int) else rows.entry
        rejects = (replace(one, split=frozen.splits[codes[one.entry]]) for one in rows.rejects)
        yield replace(rows, split_codes=codes[found], rejects=tuple(rejects))
        del rows
