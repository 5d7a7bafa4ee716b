"""Read JSON lines: types of all values or of a sample, every bad line named by its place."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from glob import escape
from itertools import groupby
from typing import Final, Self

import pyarrow as pa

from ...errors import SourceError
from ...format.batches.rows import Rows
from ...format.schema.schema import Schema
from ...format.wording.hints import Foreign, Set
from ...format.wording.printable import counted, nearest_name
from ...inputs.contract.selection import apart_warning, files_apart
from ...inputs.contract.source import (
    DatasetSchema,
    Frozen,
    Listing,
    ParallelMap,
    SourceEntry,
    Survey,
    Task,
    Traits,
    refuse_others,
)
from ...inputs.files.open_file import files_of
from ..registry.file_source import FileSource
from ..text.lines import LineSizes, line_pieces, read_lines
from ..text.open_text import TextPiece, beside, times_wider
from ..text.written import refuse_misfits
from .columns import (
    AUTO_ROWS,
    MOST_ODD,
    Evidence,
    JsonFrozen,
    PieceEvidence,
    capitals_warnings,
    cast_schema,
    check_columns,
    choose_columns,
    field_of,
    ignores_others,
    joined_columns,
    key_fields,
    known_columns,
    look_at_piece,
    nested_columns,
    parser_of,
    told_of_members,
)
from .lanes import KEY_BYTES
from .parse import parse_in_parts

_WAVE: Final = 8
"""The pieces that are looked at before their keys are counted: 8 MiB may have half a million."""

_FEW: Final = 8
_COMPARED: Final = 16
"""The most files that are searched for keys which no other file has."""

_DECLARED: Final = "declare the dataset's type in schema.columns, or none"


@dataclass(frozen=True, slots=True)
class JsonLinesSource(FileSource):
    """Read JSON lines; `nested` are the nested columns of a dataset that is appended to, None where there is none."""

    sizes: LineSizes = field(default_factory=partial(LineSizes, json=True))
    nested: dict[str, pa.Field] | None = None

    traits = Traits(may_be_empty=True)

    paths_may_be_lists = True

    def following(self, dataset: DatasetSchema) -> Self:
        return replace(self, nested=nested_columns(dataset))

    def survey(self, listing: Listing, run: ParallelMap) -> Survey:
        pieces, blanks = line_pieces(listing.entries, self.sizes, run, blank_rows=False)
        evidence, found, names, whole = self._look(listing, pieces, run)
        self._refuse_no_lines(listing.entries, pieces, evidence)
        if whole:  # the rows of streams are known by now
            pieces = [replace(p, rows=f.rows) if p.streamed else p for p, f in zip(pieces, evidence, strict=True)]
        first = listing.entries[pieces[0].entry].name
        rows = sum(one.rows - one.rejects for one in evidence)
        found = known_columns(found, self.rules, whole=whole, name=first)
        kept = self.selection.pick(list(found), hint=lambda name: nearest_name(name, list(found)))
        chosen = choose_columns(
            found, kept, self.rules, rows=rows, infer=self.settings.infer, whole=whole, name=first,
            known=self.nested or {}, most_odd=MOST_ODD if self.nested is None else 1,
        )  # fmt: skip
        schema = Schema(tuple(sorted(chosen.features, key=lambda feature: feature.name)))
        # the keys of a line that is none are not known, not even where all lines were looked at
        all_known = whole and len(kept) < len(found) and not any(one.rejects for one in evidence)
        ignores = ignores_others(self.selection, all_known=all_known)
        without = tuple(name for name, evidence in found.items() if not evidence.values)
        mixed = tuple(one.name for one in chosen.nested if found[one.name].texts)
        frozen = JsonFrozen(
            schema, keys=key_fields(found), kept=len(kept), ignores=ignores, empty=without, nested=chosen.nested,
            mixed=mixed,
        )  # fmt: skip
        entries = listing.entries
        of_files = [(entries[entry].name, sorted(some)) for entry, some in sorted(names.items()) if some]
        apart = apart_warning(files_apart(of_files)) if len(entries) <= _COMPARED else ()
        warnings = (
            *apart,
            *capitals_warnings(found, kept, rows),
            *_passed(entries, pieces, evidence, blanks, whole=whole),
        )
        used = tuple(piece for piece in pieces if piece.rows != 0)
        return Survey(
            frozen, chosen.choices, used, warnings, detected=told_of_members(found, mixed), fields=chosen.fields
        )

    def cast_to(self, survey: Survey, dataset: DatasetSchema) -> Survey:
        frozen = survey.frozen
        empty = frozen.empty if isinstance(frozen, JsonFrozen) else ()
        cast = cast_schema(self.rules, frozen.schema, empty, dataset)
        refuse_others(dataset, cast, _DECLARED)
        refuse_misfits(self.read, survey, cast, dataset)
        new = {feature.name: field_of(feature) for feature in dataset.schema}
        fields = [new.pop(one.name, one) for one in survey.fields]
        return replace(survey, frozen=replace(frozen, schema=dataset.schema), fields=(*fields, *new.values()))

    def read(self, task: Task, frozen: Frozen) -> Iterator[Rows]:
        parser = parser_of(frozen, self.rules, self.settings.infer, self.sizes.record_bytes, self.selection)
        ordinal = 0
        for pieces in files_of(task, TextPiece):
            a_row = sum(piece.bytes for piece in pieces) // max(sum(piece.rows or 0 for piece in pieces), 1)
            wider = times_wider(min(len(parser.columns), a_row // KEY_BYTES))
            sizes, count = replace(self.sizes, joined_bytes=self.sizes.joined_bytes * wider), 0
            for piece, lines in read_lines(pieces, sizes, blank_rows=False):
                for rows in parse_in_parts(parser, lines, piece.name, piece.entry):
                    count += rows.batch.num_rows + len(rows.rejects)
                    yield Rows(task.ordinal, ordinal, piece.entry, rows.batch, rows.origin, rows.problems, rows.rejects)
                    ordinal += 1
            _check_count(pieces, count)

    def _refuse_no_lines(
        self, entries: Sequence[SourceEntry], pieces: Sequence[TextPiece], evidence: Sequence[PieceEvidence]
    ) -> None:
        """Raise `SourceError` for files without a line, and for a file none of whose read lines is an object."""
        if not any(one.rows for one in evidence):
            others = {1: "", 2: ", and so is the other file"}.get(
                len(entries), f", and so are the {len(entries) - 1} other files"
            )
            raise SourceError(entries[0].name, f"is empty{others}: there is no row")
        by_entry = groupby(zip(pieces, evidence, strict=True), key=lambda pair: pair[0].entry)
        found = {entry: reduce(PieceEvidence.plus, (one for _, one in group)) for entry, group in by_entry}
        bad = [entry for entry, one in found.items() if one.rows == one.rejects > 0]
        if bad:
            name, one = entries[bad[0]].name, found[bad[0]]
            has_rows = any(one.rows > one.rejects for one in found.values())
            leave = self._leaving_out([entries[entry].name for entry in bad], entries) if has_rows else ""
            first = one.first_reject.removeprefix(f"{name} ")
            raise SourceError(name, f"no line that was read ({one.rows}) is a row. {first}{leave}{_jq(one, name)}")

    def _leaving_out(self, names: Sequence[str], entries: Sequence[SourceEntry]) -> str:
        """Return how files are left out whose names no other file has."""
        ends = Counter(os.path.basename(entry.name) for entry in entries)
        alone = {os.path.basename(name) for name in names}
        if len(names) > _FEW or any(ends[one] > 1 for one in alone):
            return ""
        typed = [one for one in self.options.paths if os.path.basename(one) not in alone]
        ignore = Set("input.ignore", [*self.options.ignore, *sorted(map(escape, alone))])
        command = self.settings.call.reading(typed, *([] if {*typed} < {*self.options.paths} else [ignore]))
        return f"; other files have rows, and to leave {'it' if len(names) == 1 else 'such files'} out: {command}"

    def _look(
        self, listing: Listing, pieces: Sequence[TextPiece], run: ParallelMap
    ) -> tuple[list[PieceEvidence], dict[str, Evidence], dict[int, set[str]], bool]:
        """Return the rows of the pieces that inference reads, the columns of all, and whether those are all pieces.

        The keys of the first files are returned too, by the numbers of their entries.
        """
        whole = self.settings.infer == "full" or (
            self.settings.infer == "auto" and listing.bytes <= self.sizes.auto_bytes
        )
        chosen = list(pieces) if whole else [p for p in pieces if p.first_row < AUTO_ROWS]
        limit, most = None if whole else AUTO_ROWS, self.settings.limits.columns
        nulls = {name: rule.nulls for name, rule in self.rules.items() if rule.nulls}
        look = partial(look_at_piece, sizes=self.sizes, limit=limit, most_columns=most, nulls=nulls)
        found: dict[int, PieceEvidence] = {}
        columns: dict[str, Evidence] = {}
        names: dict[int, set[str]] = {}
        for start in range(0, len(chosen), _WAVE):
            looks = run(look, chosen[start : start + _WAVE], heavy=whole)
            columns = joined_columns((columns, *(one.columns for one in looks)))
            for piece, one in zip(chosen[start:], looks, strict=False):
                if piece.entry < _COMPARED:
                    names.setdefault(piece.entry, set()).update(one.columns)
            found |= {id(piece): replace(one, columns={}) for piece, one in zip(chosen[start:], looks, strict=False)}
            check_columns(chosen[0].name, columns, most)
        return [found.get(id(piece), PieceEvidence()) for piece in pieces], columns, names, whole


def _jq(found: PieceEvidence, name: str) -> str:
    newer, rows = "of version 1.7 or newer, which keeps all digits", beside(name, "rows")
    if "is an array" in found.first_reject:
        return f"; if the file is one array: {Foreign('jq', '-c', '.[]', name, to=rows)} ({newer})"
    many = Foreign("jq", "-c", ".", name, to=rows)
    return f"; if objects go over several lines: {many} ({newer})" if found.rows > 1 else ""


def _check_count(pieces: Sequence[TextPiece], count: int) -> None:
    """Raise `SourceError` where pieces did not give as many rows as lines were counted in them."""
    expected = [piece.rows for piece in pieces]
    if None not in expected and sum(rows or 0 for rows in expected) != count:
        first = pieces[0].first_row + 1
        raise SourceError(
            pieces[0].name, f"rows from {first} on: {sum(rows or 0 for rows in expected)} were counted, and {count} "
            "were read; please report it"
        )  # fmt: skip


def _passed(
    entries: Sequence[SourceEntry], pieces: Sequence[TextPiece], evidence: Sequence[PieceEvidence],
    blanks: Mapping[int, int], *, whole: bool,
) -> Iterator[str]:  # fmt: skip
    """Yield a line for each file with blank lines, and then for each without a row."""
    full = {piece.entry for piece in pieces if piece.rows != 0}
    seen = "" if whole else f" in the first {AUTO_ROWS:,} rows"
    streams = {p.entry: f.blanks for p, f in zip(pieces, evidence, strict=True) if p.streamed and f.blanks}
    skipped = [(entry, f"{counted(count, 'blank line')} skipped") for entry, count in blanks.items() if count]
    skipped += [(entry, f"{counted(count, 'blank line')} skipped{seen}") for entry, count in streams.items()]
    yield from (f"{entries[entry].name}: {text}" for entry, text in sorted(skipped) if entry in full)
    yield from (f"{entry.name}: is empty: no row" for index, entry in enumerate(entries) if index not in full)
