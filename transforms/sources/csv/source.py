"""Read CSV files: exact records in parallel, types from the rows that were looked at, every bad cell named."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from itertools import groupby
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from ...errors import ShardmillError
from ...format.batches.rejects import may_be_left_out
from ...format.batches.rows import Rows
from ...format.schema.schema import Feature, Schema
from ...format.wording.hints import Add, Set, set_column
from ...format.wording.printable import NoColumnError, counted
from ...inputs.contract.selection import apart_warning, capitals_warnings, files_apart, lacking_files, refuse_columns
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
from ...limits.turns import ROW_BYTES, taking_turns
from ...recipe.steps.where import Where
from ..registry.file_source import TableSource
from ..registry.settings import wrong_signs
from ..text.cast import as_cast, text_type
from ..text.open_text import (
    NotUtf8Error,
    TextJob,
    is_transparent,
    plain_encoding,
    text_jobs,
    times_wider,
    with_encodings,
)
from ..text.written import refuse_misfits
from .chunks import run_scan, unclosed_quote
from .dialect import ESCAPE
from .header import (
    CsvPiece,
    FileHead,
    check_count,
    commented_headers,
    commented_lines,
    compressed_files,
    dialect_of,
    file_pieces,
    first_and_more,
    header_warnings,
    narrower,
    read_chunks,
    read_head,
    refuse_data_as_header,
    refuse_names_of_other_headers,
    refuse_odd_first_line,
    sep_lines,
    shared_names,
    title_lines,
    with_plain_quotes,
)
from .obstacles import GROUPED, ROWS, GivenNulls, Obstacles, QuoteSigns, grouped_notes, look_notes, obstacle_notes
from .parse import QUOTES_ARE_TEXT, CsvLimits, Parser, cast_cells, parse_cells
from .proposed_calls import PandasCall, no_such_column, numbered_notes
from .record_starts import FileScan, fold_blocks
from .schema import AUTO_ROWS, PieceEvidence, choose_types, look_at_piece, refuse_wide_files, taken_note

if TYPE_CHECKING:
    from ..registry.options import CsvInput


_TAKEN: Final = 4
"""How many times the text of a chunk is in memory, at most, until its records are written: cells, values, records."""

_DECLARED: Final = "declare the dataset's type in schema.columns, or none"
"""What helps with an append of other types: where none is declared cells are cast."""


@dataclass(frozen=True, slots=True)
class CsvSource(TableSource):
    """Read CSV files."""

    options: CsvInput
    limits: CsvLimits = field(default_factory=CsvLimits)

    traits = Traits(may_be_empty=True)

    def survey(self, listing: Listing, run: ParallelMap) -> Survey:
        try:
            return self._survey(listing, run)
        except NotUtf8Error as error:
            raise with_encodings(error, listing.entries) from error

    def _names_of(self, heads: Sequence[FileHead]) -> tuple[str, ...]:
        call, assumed = self.settings.call, self._header_is_assumed
        return shared_names(heads, union=self.union, assumed=assumed, named=self.options.header, call=call)

    def _survey(self, listing: Listing, run: ParallelMap) -> Survey:
        read = partial(read_head, options=self.options, limits=self.limits, call=self.settings.call)
        heads = run(read, listing.entries)
        self._check_names(heads)
        for number, widest in narrower(heads):
            entry, cells, width = listing.entries[number], heads[number].cells, len(widest.cells)
            refuse_odd_first_line(entry, cells, self.options, self.limits, width, f"{widest.name} has")
        names = self._names_of(heads)
        of_files = [(head.name, head.names) for head in heads if head.names is not None and self.union]
        lacking = lacking_files(of_files)
        if self.options.header and self.options.names is not None:
            refuse_names_of_other_headers(heads)
        parser = self._parser(names, self.selection.pick(names, hint=partial(self._no_such_column, names)))
        self._check_rules(names)
        refuse_columns(f"{listing.entries[0].name}: ", len(parser.kept), self.limits.columns)
        scans = self._scan(listing.entries, heads, run)
        again = self.options.repeated_header == "drop"
        pieces = listing.pieces(heads, lambda i, entry, head: file_pieces(i, entry, head, scans.get(i), again=again))
        evidence, whole = self._look(listing, pieces, parser, run)
        of_file = partial(self._lines_before, listing.entries)
        refuse_wide_files(pieces, evidence, heads, partial(of_file, commented_lines), partial(of_file, title_lines))
        if whole:  # the rows of streams are known by now
            pairs = zip(pieces, evidence, strict=True)
            pieces = tuple(replace(p, rows=f.rows) if p.streamed else p for p, f in pairs)
        seen = [found for found in evidence if found.rows]
        features, choices, kept_text, looks = choose_types(
            parser, self.rules, seen, infer=self.settings.infer, whole=whole, lacking=lacking
        )
        unsure = self._header_is_assumed and self.options.header and self.settings.infer != "none"
        of_header = self._refused_header(heads, features) if unsure else ()
        schema = Schema(tuple(sorted(features, key=lambda feature: feature.name)))
        warnings = [*apart_warning(files_apart(of_files)), *capitals_warnings(of_files), *header_warnings(heads)]
        warnings += table_warnings(heads, scans, pieces, evidence)
        signs = reduce(QuoteSigns.plus, (found.signs for found in evidence), QuoteSigns())
        warnings += [f"{signs.lost}; if they are: {QUOTES_ARE_TEXT}"] if signs.lost else []
        warnings += _read_otherwise(pieces, evidence, self.options.encoding)
        fields = tuple(pa.field(feature.name, text_type(feature), feature.nullable) for feature in features)
        if all(one.nullable for one in fields) and not _drops_empty(
            self.options.where, fields
        ):  # else they are rejects
            warnings += _empty_rows(pieces, evidence, parser, whole=whole)
        nulls = GivenNulls(self.options.null_values, self._nulls)
        warnings += look_notes([(name, look) for name, look in looks if look.kind == ROWS], nulls)
        kept = tuple(p for p in pieces if p.rows != 0)
        detected = (
            *self.settings.detected,
            *compressed_files(heads),
            *sep_lines(heads),
            *commented_headers(heads),
            *of_header,
            *taken_note(sum((found.taken for found in evidence), Counter()), whole=whole),
            *self._escaped_quotes(signs),
            *self._notes(listing, kept_text, features, names, seen, kept),
            *grouped_notes([(name, look) for name, look in looks if look.kind == GROUPED], kept_text),
            *look_notes([one for one in looks if one[1].kind not in (ROWS, GROUPED)], nulls),
        )
        return Survey(Frozen(schema), choices, kept, tuple(warnings), detected=detected, fields=fields)

    def _refused_header(self, heads: Sequence[FileHead], features: Sequence[Feature]) -> tuple[str, ...]:
        renamed = self.options.names is not None
        return refuse_data_as_header(heads, features, self.rules, self.options.null_values, renamed=renamed)

    def cast_to(self, survey: Survey, dataset: DatasetSchema) -> Survey:
        cast = as_cast(self.rules, survey.frozen.schema, dataset)
        refuse_others(dataset, cast, _DECLARED)
        refuse_misfits(self.read, survey, cast, dataset)
        fields = tuple(pa.field(one.name, text_type(one), one.nullable) for one in dataset.schema)
        return replace(survey, frozen=replace(survey.frozen, schema=dataset.schema), fields=fields)

    def read(self, task: Task, frozen: Frozen) -> Iterator[Rows]:
        features = {feature.name: feature for feature in frozen.schema}
        ordinal = 0
        for pieces in files_of(task, CsvPiece):
            first = pieces[0]
            parser = self._parser(first.columns, [name for name in first.columns if name in features])
            parser = parser.of_file(first.columns, first.again)
            located = is_transparent(self.options.encoding)
            for piece, chunk in read_chunks(pieces, parser, self.options.encoding):
                with taking_turns(ROW_BYTES, _TAKEN * len(chunk.text)):
                    cells = parse_cells(parser, chunk, piece.name, piece.entry, located=located)
                    check_count(piece, chunk, cells.rows + len(cells.rejects) + cells.dropped, parser)
                    batch, problems = cast_cells(parser, cells, features, piece.name, binary=self._has_bytes)
                    yield Rows(
                        task.ordinal,
                        ordinal,
                        piece.entry,
                        batch,
                        cells.origin,
                        tuple(problems),
                        tuple(cells.rejects),
                        dropped={piece.entry: cells.dropped} if cells.dropped else {},
                    )
                ordinal += 1

    def _lines_before(self, entries: Sequence[SourceEntry], find: Callable[..., int], index: int, *more: int) -> int:
        return find(entries[index], self.options, self.limits, *more) if self.options.header else 0

    @property
    def _has_bytes(self) -> bool:
        """Whether some column, which need not be among those that are read, is declared as bytes."""
        return any(rule.type in ("binary", "bytes") for rule in self.rules.values())

    @property
    def _header_is_assumed(self) -> bool:
        return "header" not in self.options.model_fields_set

    def _parser(self, names: tuple[str, ...], kept: Sequence[str]) -> Parser:
        options = self.options
        inner = plain_encoding(options.encoding) if is_transparent(options.encoding) else "utf-8"
        nulls, fills = tuple(options.null_values), options.short_rows is None
        return Parser(names, tuple(kept), dialect_of(options), inner, nulls, fills, self.limits, nulls=self._nulls)

    @property
    def _nulls(self) -> dict[str, tuple[str, ...]]:
        return {name: rule.nulls for name, rule in self.rules.items() if rule.nulls}

    def _check_names(self, heads: Sequence[FileHead]) -> None:
        """Check that some file has each column that is named: that they differ is said after it."""
        if any(head.names is not None for head in heads[1:]):
            names = tuple(dict.fromkeys(name for head in heads for name in head.names or ()))
            replace(self.selection, exclude=()).pick(names, hint=partial(self._no_such_column, names))
            self._check_rules(names)

    def _check_rules(self, names: tuple[str, ...]) -> None:
        known = set(names)
        for name in self.rules:
            if name not in known and name not in self.elsewhere:
                hint = self._no_such_column(names, name)
                raise NoColumnError("schema.columns", name, names, hint=hint)

    def _no_such_column(self, names: tuple[str, ...], name: str) -> str:
        wanted = (self.options.columns or ()) if name in (self.options.columns or ()) else tuple(self.rules)
        return no_such_column(name, names, wanted, named=self.options.header or self.options.names is not None)

    def _notes(
        self,
        listing: Listing,
        kept_text: Sequence[tuple[str, Obstacles]],
        features: Sequence[Feature],
        names: tuple[str, ...],
        seen: Sequence[PieceEvidence],
        kept: Sequence[CsvPiece],
    ) -> tuple[str, ...]:
        options = self.options
        again = next((found.again for found in seen if found.again), "")
        lines = kept[0].header_lines if kept else 0
        named = options.header and options.names is None
        files = tuple(entry.name for entry in listing.entries)
        splits = tuple(entry.split or "" for entry in listing.entries)
        afterwards = self.settings.call.afterwards
        own = None if named else names
        call = PandasCall(
            files,
            options.delimiter,
            options.encoding,
            own,
            afterwards,
            partial(_given_to_pandas, options),
            splits if all(splits) else (),
        )
        skipped = Add(Set("input.skip_lines", lines), Set("input.names", [*map(str.strip, names)]))
        without_first = str(skipped) if named and len(files) == 1 else ""
        return (
            *obstacle_notes(
                kept_text, GivenNulls(options.null_values, self._nulls), options.delimiter, again, without_first
            ),
            *numbered_notes(features, names, call),
        )

    def _escaped_quotes(self, signs: QuoteSigns) -> tuple[str, ...]:
        given = self.options
        if signs.other or not signs.escaped:
            return ()
        if wrong_signs(given.delimiter, given.quote, "\\", given.comment, given.null_values, given.trim):
            return ()
        what = "each quote within a cell has a backslash before it, and the backslashes stay"
        return (f"{signs.escaped}: {what}; if they only escape quotes: {ESCAPE}",)

    def _scan(self, entries: Sequence[SourceEntry], heads: Sequence[FileHead], run: ParallelMap) -> dict[int, FileScan]:
        """Scan all plain files that hold a record: the scan of each, by its index in the listing."""
        jobs: list[tuple[int, TextJob]] = []
        for index, (entry, head) in enumerate(zip(entries, heads, strict=True)):
            if head.names is not None and not head.form.streamed:
                plan = text_jobs(entry, head.form.start, self.limits.job_bytes)
                jobs += [(index, job) for job in plan]
        block_bytes = self.limits.block_bytes * times_wider(max(len(head.names or ()) for head in heads))
        scan = partial(run_scan, dialect=dialect_of(self.options), block_bytes=block_bytes)
        blocks = run(scan, [job for _, job in jobs], heavy=True)
        scans = {}
        for index, group in groupby(zip(jobs, blocks, strict=True), key=lambda pair: pair[0][0]):
            entry, found = entries[index], (block for _, part in group for block in part)
            scans[index] = fold_blocks(found, heads[index].form.start, entry.bytes)
            if (open_at := scans[index].open_at) is not None:
                error = unclosed_quote(entry.name, open_at)
                raise with_plain_quotes(error, entry, heads[index].form, self.options)
        return scans

    def _look(
        self, listing: Listing, pieces: Sequence[CsvPiece], parser: Parser, run: ParallelMap
    ) -> tuple[list[PieceEvidence], bool]:
        infer = self.settings.infer
        whole = infer == "full" or (infer == "auto" and listing.bytes <= self.limits.auto_bytes)
        chosen = list(pieces) if whole else [p for p in pieces if p.first_row < AUTO_ROWS]
        limit = None if whole else AUTO_ROWS
        ruled = tuple(name for name, rule in self.rules.items() if rule.type)
        typed = tuple(parser.kept) if infer == "none" else ruled
        look = partial(
            look_at_piece,
            parser=parser,
            encoding=self.options.encoding,
            limit=limit,
            typed=typed,
            binary=self._has_bytes,
        )
        found = dict(zip((id(piece) for piece in chosen), run(look, chosen, heavy=whole), strict=True))
        unread = PieceEvidence(0, 0, ())
        return [found.get(id(piece), unread) for piece in pieces], whole


def table_warnings(
    heads: Sequence[FileHead],
    scans: dict[int, FileScan],
    pieces: Sequence[CsvPiece],
    evidence: Sequence[PieceEvidence],
) -> list[str]:
    """Return what a user must know of the files: no row, blank lines, NUL bytes; `evidence` is of each piece."""
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
            found.append(f"{head.name}: {counted(blanks, 'blank line')} skipped")
        if nul:
            found.append(f"{head.name}: holds NUL bytes; they are kept")
    return [*found, *_header_only(heads, pieces, evidence)]


def _header_only(
    heads: Sequence[FileHead], pieces: Sequence[CsvPiece], evidence: Sequence[PieceEvidence]
) -> Iterator[str]:
    full = {p.entry for p, e in zip(pieces, evidence, strict=True) if (e.rows if p.rows is None else p.rows)}
    names = [head.name for index, head in enumerate(heads) if head.names is not None and index not in full]
    if names:
        yield f"{first_and_more(names)}: holds a header only, and no row"


def _given_to_pandas(options: CsvInput) -> dict[str, object]:
    """Return the options of pandas by which it reads lines as they are read here."""
    given = {
        "skiprows": options.skip_lines or None,
        "header": 0 if options.header and options.names is not None else None,
        "quoting": 3 if options.quote is None else None,
        "quotechar": options.quote if options.quote != '"' else None,
        "escapechar": options.escape,
        "comment": options.comment,
        "skipinitialspace": options.trim or None,
    }
    return {key: value for key, value in given.items() if value is not None}


def _read_otherwise(pieces: Sequence[CsvPiece], evidence: Sequence[PieceEvidence], encoding: str) -> Iterator[str]:
    """Return which files are UTF-8, and read in another encoding: "ZÃ¼rich"."""
    found = dict[str, bool]()
    for piece, one in zip(pieces, evidence, strict=True):
        if one.utf8 is not None:
            found[piece.name] = found.get(piece.name, True) and one.utf8
    if names := [name for name, is_utf8 in found.items() if is_utf8]:
        what = f"{first_and_more(names)}: the text is UTF-8, and is read as {encoding}"
        yield f"{what}; to read it as UTF-8: {Set('input.encoding', 'utf-8')}"


def _drops_empty(where: str | None, fields: Sequence[pa.Field]) -> bool:
    """Return whether `input.where` leaves out rows without a value, as far as that shows before it is planned."""
    batch = pa.RecordBatch.from_arrays([pa.nulls(1, one.type) for one in fields], [one.name for one in fields])
    try:
        kept = None if where is None else Where(where).apply(batch, "").keep
    except (ShardmillError, KeyError, pa.ArrowException):
        return False
    return kept is not None and kept.to_pylist() != [True]


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
    if whole and key is not None and may_be_left_out(count, sum(found.rows for found in evidence)):
        reject = Add(set_column(key, "nullable", False), "--max-rejects", str(count))
        fix = f"; to reject {'it' if count == 1 else 'them'}: {reject}"
    which = "" if whole else " of those that were looked at"
    what = "1 row has no value, and becomes" if count == 1 else f"{count:,} rows{which} have no value, and become"
    yield f"{first_and_more(names)}: {what} {'an empty record' if count == 1 else 'empty records'}{fix}"
