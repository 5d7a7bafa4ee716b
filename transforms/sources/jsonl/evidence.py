"""Find the columns of JSON lines and their types: what some lines show, and what several of them show together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import NoneType
from typing import Any, Final

import numpy as np
import pyarrow as pa

from ...errors import SchemaError
from ...format.buffers.arrow_memory import true_mask
from ...format.wording.hints import Set, set_column
from ...format.wording.printable import printable
from ..text.lines import I64, Lines, LineSizes, read_lines
from ..text.pieces import TextPiece
from .lanes import CELLS, both_lanes, count_of, is_sparse, keys_in, may_be_inferred, run_arrow, seed_of
from .strict import LineError, values_of_line
from .types import (
    MixedTypes,
    as_found,
    count_features,
    count_keys,
    is_list,
    noun,
    shared_type,
    type_of,
    type_of_all,
)

AUTO_ROWS: Final = 10_000
"""Above `LineSizes.auto_bytes`, `infer: auto` reads this many rows of each file."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What some lines show of a column: its type, how many values it has, and the place of the first one.

    `mixed` are two types that nothing holds together, each with the place of a value, of the member `within`.
    """

    type: pa.DataType
    values: int
    place: str
    mixed: tuple[tuple[pa.DataType, str], tuple[pa.DataType, str]] | None = None
    within: tuple[str, ...] = ()

    def plus(self, more: Evidence) -> Evidence:
        values, place = self.values + more.values, self.place or more.place
        if self.mixed or more.mixed:
            first = self if self.mixed else more
            return Evidence(self.type, values, place, first.mixed, first.within)
        try:
            return Evidence(shared_type(self.type, more.type), values, place)
        except MixedTypes as error:
            one, other = error.types
            return Evidence(self.type, values, place, ((one, self.place), (other, more.place)), error.within)

    @classmethod
    def of_all(cls, found: Sequence[Evidence]) -> Evidence:
        """Return what several show together, which takes as long as they are, and not as wide as they become."""
        if len(found) == 1:
            return found[0]
        if not any(one.mixed for one in found):
            try:
                kind = type_of_all(one.type for one in found)
            except MixedTypes:
                pass  # the halves show which two it is
            else:
                place = next((one.place for one in found if one.place), "")
                return cls(kind, sum(one.values for one in found), place)
        half = len(found) // 2
        return cls.of_all(found[:half]).plus(cls.of_all(found[half:]))


@dataclass(frozen=True, slots=True)
class PieceEvidence:
    """What a piece shows: the lines that were read of it, those that are none, why the first is none, its columns."""

    rows: int = 0
    rejects: int = 0
    first_reject: str = ""
    columns: Mapping[str, Evidence] = field(default_factory=dict)

    def plus(self, more: PieceEvidence) -> PieceEvidence:
        return PieceEvidence(
            self.rows + more.rows,
            self.rejects + more.rejects,
            self.first_reject or more.first_reject,
            joined_columns((self.columns, more.columns)),
        )


def all_evidence(parts: Iterable[PieceEvidence]) -> PieceEvidence:
    """Return what several pieces show together; columns are in the order in which they are met."""
    found = list(parts)
    first = next((one.first_reject for one in found if one.first_reject), "")
    rows, rejects = sum(one.rows for one in found), sum(one.rejects for one in found)
    return PieceEvidence(rows, rejects, first, joined_columns(one.columns for one in found))


def joined_columns(found: Iterable[Mapping[str, Evidence]]) -> dict[str, Evidence]:
    """Return the columns of several parts of a source, in the order in which they are met."""
    columns: dict[str, Evidence] = {}
    for part in found:
        for name, evidence in part.items():
            columns[name] = columns[name].plus(evidence) if name in columns else evidence
    return columns


def look_at_piece(piece: TextPiece, *, sizes: LineSizes, limit: int | None, most_columns: int) -> PieceEvidence:
    """Return what a piece shows of its columns; rows of the file from `limit` on are not looked at."""
    found = PieceEvidence()
    for _, lines in read_lines([piece], sizes, blank_rows=False):
        index = lines.records
        records = len(index)
        if limit is not None:
            records = max(min(records, limit - lines.before.records), 0)
        number = _Numbers(piece.name, lines.before.lines, index)
        found = found.plus(look_at_lines(lines, records, number, sizes.record_bytes))
        check_columns(piece.name, found.columns, most_columns)
        if limit is not None and lines.before.records + len(index) >= limit:
            break
    return found


def check_columns(name: str, columns: Mapping[str, Evidence], most: int) -> None:
    """Raise `SchemaError` for more than `most` keys, those of objects within included."""
    count = sum(count_features(one.type) for one in columns.values())
    if count > most:
        raise SchemaError(
            f"{name}: {count} keys are more than limits.columns ({most}), as if each were a value; keep some: "
            f"input.columns, or raise it: {Set('limits.columns', count)}"
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Numbers:
    """How messages call the records of some lines: by the number of their line in its file."""

    name: str
    before: int
    index: I64

    def __call__(self, record: int) -> str:
        return f"{self.name} line {self.before + int(self.index[record]) + 1}"


def look_at_lines(lines: Lines, records: int, place: Callable[[int], str], record_bytes: int) -> PieceEvidence:
    """Return what the first records of some lines show; `place` says how messages call one, given its number."""
    work = _Look(lines, lines.records, place, record_bytes)
    return all_evidence(both_lanes(lines, records, work.fast, work.slow))


@dataclass(slots=True, eq=False)
class _Look:
    """How to look at some lines; `known` are the types of the keys that pyarrow found so far.

    Where a text may have many keys, pyarrow is given the known ones, which bounds the memory that it takes. Lines are
    `sparse` where each has few of the keys: Python then takes less time than pyarrow, one line after the other.
    """

    lines: Lines
    index: I64
    place: Callable[[int], str]
    record_bytes: int
    known: dict[str, pa.DataType] = field(default_factory=dict)
    sparse: bool = False

    def fast(self, text: bytes, part: I64) -> PieceEvidence | None:
        if len(text) > self.record_bytes:
            return None
        table = self._parsed(text, len(part))
        if table is None:
            return None
        columns = {}
        for name, column in zip(table.column_names, table.columns, strict=True):
            values, kind = len(column) - column.null_count, as_found(column.type)
            place = ""
            if values:
                first = int(np.argmax(true_mask(column.is_valid().combine_chunks()))) if column.null_count else 0
                place = self.place(int(part[first]))
            columns[name] = Evidence(kind, values, place)
        return PieceEvidence(len(part), columns=columns)

    def _parsed(self, text: bytes, rows: int) -> pa.Table | None:
        small = may_be_inferred(text)
        if not small and not self.known and not self.sparse and (seed := seed_of(text)) is not None:
            self.sparse = is_sparse(seed, count_of(b"{", seed) * len(keys_in(seed)))
            if not self.sparse:
                self._learn(run_arrow(seed, None, None, "infer"))
        if self.sparse:
            return None
        table = None
        if self.known and count_of(b"{", text) * count_keys(self.known.values()) <= CELLS:
            schema = pa.schema(list(self.known.items()))
            table = run_arrow(text, rows, schema, "error")
        if table is None and small:
            table = run_arrow(text, rows, None, "infer")
            self._learn(table)
        return table

    def _learn(self, table: pa.Table | None) -> None:
        for column in () if table is None else table.schema:
            kind = as_found(column.type)
            try:
                self.known[column.name] = shared_type(self.known.get(column.name, pa.null()), kind)
            except MixedTypes:  # which the evidence will say
                continue

    def slow(self, part: I64) -> PieceEvidence:
        columns: dict[str, Evidence] = {}
        nested: dict[str, list[Evidence]] = {}
        counts = Counter[tuple[str, type]]()  # of the values of a key that are of one kind
        rejects, first, any_nested = 0, "", False
        for record in part.tolist():
            try:
                members = self._members(record)
            except LineError as error:
                rejects, first = rejects + 1, first or f"{self.place(record)}: {error.text}"
                continue
            known = len(counts)
            counts.update(zip(members, map(type, members.values()), strict=True))
            for name, value in members.items() if len(counts) > known or any_nested else ():
                is_nested = isinstance(value, (list, dict))
                if counts[name, type(value)] > 1 and not is_nested:
                    continue
                any_nested = any_nested or is_nested
                before, found = columns.get(name), self._evidence(value, record)
                if name in nested or (before is not None and found.type.num_fields):
                    nested.setdefault(name, [before or found]).append(found)
                else:
                    columns[name] = found if before is None else before.plus(found)
        columns |= {name: Evidence.of_all(found) for name, found in nested.items()}
        for (name, kind), count in counts.items():
            if count > 1 and kind not in (list, dict, NoneType):
                one = columns[name]
                columns[name] = Evidence(one.type, one.values + count - 1, one.place, one.mixed, one.within)
        return PieceEvidence(len(part), rejects, first, columns)

    def _members(self, record: int) -> dict[str, Any]:
        lines, index = self.lines, self.index[record]
        if (large := lines.too_large(int(index), self.record_bytes)) is not None:
            raise LineError(*large)
        return values_of_line(lines.text[lines.starts[index] : lines.ends[index]])

    def _evidence(self, value: Any, record: int) -> Evidence:
        place = self.place(record) if value is not None else ""
        try:
            return Evidence(type_of(value), int(value is not None), place)
        except MixedTypes as error:
            one, other = error.types
            return Evidence(pa.null(), 1, place, ((one, place), (other, place)), error.within)


def explain(evidence: Evidence, rows: int, *, whole: bool) -> str:
    """Return the reason for a column's type in words: `rows` were read, all there are if `whole`."""
    seen = f"{rows:,} row{'' if rows == 1 else 's'}"
    seen = seen if whole else f"the first {seen}"
    nulls = rows - evidence.values
    also = f", {nulls:,} null or absent" if nulls else ""
    if evidence.type == pa.null():
        text = f"no value in {seen}; declare the type if there will be one"
    else:
        text = f"every value is {noun(evidence.type)} in {seen}{also}"
    return text if whole else f"{text}; nullable, since not all rows were read"


def refuse_mixed(name: str, evidence: Evidence) -> None:
    """Raise `SchemaError` for a column whose values have types that nothing holds together."""
    if evidence.mixed is None:
        return
    (one, here), (other, there) = evidence.mixed
    of = f' of "{printable(".".join((name, *evidence.within)))}"' if evidence.within else ""
    what = f"{here}: a value{of} is {noun(one)}, and in {there} {noun(other)}"
    if here == there:
        what = f"{here}: an array{of} holds {noun(one)} and {noun(other)}"
    empty = any(is_list(kind) and pa.types.is_null(kind.value_type) for kind in (one, other))
    fix = "write null where there is no value" if empty else "fix one"
    raise SchemaError(
        f'column "{printable(name)}": {what}; {fix}, or keep the text of all values: '
        f"{set_column(name, 'type', 'string')}"
    )
