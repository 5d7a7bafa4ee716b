"""Read CSV files: exact records in parallel, types proven, every bad cell and row named by its place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby
from typing import Final, Literal

import pyarrow as pa

from ...errors import UsageError
from ...format.flow.rows import Rows
from ...format.schema.schema import ColumnRule, Schema
from ...format.wording.nearest import NoColumnError
from ...format.wording.printable import printable
from ..contract.call import Call
from ..contract.lacking import apart_warning, files_apart, lacking_files
from ..contract.selection import Selection, refuse_columns
from ..contract.source import Frozen, Listing, ParallelMap, SourceEntry, Survey, Task, Traits
from ..files.listing import list_entries
from ..files.partitions import check_folders
from ..files.stamp import check_stamp
from ..registry.conform import DatasetSchema, refuse_others
from ..registry.formats import suffixes_of
from ..text.declared import as_cast, text_type
from ..text.misfits import refuse_misfits
from ..text.open_text import is_transparent, plain_encoding
from .header import (
    FileHead,
    HeadOptions,
    compressed_files,
    header_warnings,
    read_head,
    refuse_data_as_header,
    refuse_names_of_other_headers,
    shared_names,
)
from .hints import PandasCall, no_such_column
from .infer_types import AUTO_ROWS
from .obstacles import Obstacles, obstacle_notes
from .parse import CsvLimits, Parser, cast_cells, parse_cells
from .pieces import CsvPiece, check_count, file_pieces, read_chunks
from .records.chunks import ScanJob, plan_scan, run_scan, unclosed_quote
from .records.quote_bits import Dialect
from .records.record_starts import FileScan, fold_blocks
from .schema import PieceEvidence, choose_types, look_at_piece, refuse_wide_files
from .signs import wrong_signs
from .warnings import table_warnings

_DECLARED: Final = "declare the dataset's type in schema.columns, or none"
"""What helps with an append of other types: where none is declared cells are cast."""


@dataclass(frozen=True, slots=True)
class CsvSource:
    """Read CSV files; raise `UsageError` where the delimiter, a sign or the encoding cannot be used.

    paths             files, folders and globs, relative to the folder `base`
    quote             None reads quotes as text
    names             the column names where `header` is false, or instead of the header
    columns           the columns to keep (None: all); `exclude` are those to leave out: names or globs
    null_values       the unquoted cells that are null
    skip_lines        the lines before the header
    comment           what begins lines that are no records
    escape            the character after it means itself
    trim              blanks around cells are no part of them
    fill_short_rows   rows with too few cells end with nulls; else they are rejects
    infer             `auto`, `full` or `none`
    rules             declared types, by column
    partitions        who reads columns in the names of folders (`year=2024`): `read`, a recipe; `none`, nobody;
                      None refuses them
    union             the columns of files may differ; `elsewhere` are those that a dataset has
    check_header      a first record that looks like data is not a header
    detected          what was found out about the files before, for the user
    call              what the user typed, for what a message proposes
    """

    paths: tuple[str, ...]
    base: str = ""
    delimiter: str = ","
    quote: str | None = '"'
    header: bool = True
    names: tuple[str, ...] | None = None
    columns: tuple[str, ...] | None = None
    exclude: tuple[str, ...] = ()
    encoding: str = "utf-8"
    null_values: tuple[str, ...] = ("",)
    skip_lines: int = 0
    comment: str | None = None
    escape: str | None = None
    trim: bool = False
    fill_short_rows: bool = False
    infer: str = "auto"
    rules: dict[str, ColumnRule] = field(default_factory=dict)
    limits: CsvLimits = field(default_factory=CsvLimits)
    partitions: Literal["none", "read"] | None = None
    union: bool = False
    elsewhere: tuple[str, ...] = ()
    check_header: bool = False
    detected: tuple[str, ...] = field(default=(), compare=False, repr=False)
    call: Call = field(default_factory=Call, compare=False, repr=False)

    def __post_init__(self) -> None:
        others = {"quote": self.quote, "escape": self.escape, "comment": self.comment}
        for key, sign in {"delimiter": self.delimiter, **others}.items():
            if sign is not None and (len(sign) != 1 or not sign.isascii() or sign in "\r\n\0"):
                raise UsageError(f'input.{key}: "{printable(sign)}" is not one ASCII character that is not a line end')
        if why := wrong_signs(self.delimiter, **others, null_values=self.null_values, trim=self.trim):
            raise UsageError(f"input: {why}")
        try:
            plain_encoding(self.encoding)
        except LookupError as error:
            raise UsageError(
                f'input.encoding: "{printable(self.encoding)}" is not an encoding that Python knows'
            ) from error

    @property
    def selection(self) -> Selection:
        return Selection(self.columns, self.exclude, self.union, self.elsewhere)

    def selecting(self, selection: Selection) -> CsvSource:
        return replace(self, columns=selection.columns, exclude=selection.exclude)

    def following(self, dataset: DatasetSchema) -> CsvSource:
        return replace(self, elsewhere=dataset.may_lack) if self.union else self

    def list_files(self) -> Listing:
        listing = list_entries(
            self.paths, self.base, suffixes_of("csv"), file_format="csv", traits=Traits(may_be_empty=True)
        )
        return check_folders(listing, self.paths, self.call, self.partitions)

    def survey(self, listing: Listing, run: ParallelMap) -> Survey:
        """Scan all plain files for their records, infer the types, and return pieces of about 1 MiB."""
        heads = run(partial(read_head, options=self._head_options()), listing.entries)
        self._check_names(heads)
        names = shared_names(heads, union=self.union)
        of_files = [(head.name, head.names) for head in heads if head.names is not None and self.union]
        lacking = lacking_files(of_files)
        if self.header and self.names is not None:
            refuse_names_of_other_headers(heads)
        parser = self._parser(names, self.selection.pick(names, hint=partial(self._no_such_column, names)))
        self._check_rules(names)
        refuse_columns(f"{listing.entries[0].name}: ", len(parser.kept), self.limits.columns)
        scans = self._scan(listing.entries, heads, run)
        pieces = [
            piece
            for index, (entry, head) in enumerate(zip(listing.entries, heads, strict=True))
            for piece in file_pieces(index, entry, head, scans.get(index))
        ]
        evidence, whole = self._look(listing, pieces, parser, run)
        refuse_wide_files(pieces, evidence)
        if whole:  # the rows of streams are known by now
            pieces = [replace(p, rows=f.rows) if p.streamed else p for p, f in zip(pieces, evidence, strict=True)]
        seen = [found for found in evidence if found.rows]
        features, choices, kept_text = choose_types(
            parser, self.rules, seen, infer=self.infer, whole=whole, lacking=lacking
        )
        unsure = self.check_header and self.header and self.infer != "none"
        renamed = self.names is not None
        of_header = (
            refuse_data_as_header(heads, features, self.rules, self.null_values, renamed=renamed) if unsure else ()
        )
        schema = Schema(tuple(sorted(features, key=lambda feature: feature.name)))
        warnings = [*apart_warning(files_apart(of_files)), *header_warnings(heads)]
        warnings += table_warnings(heads, scans, pieces, evidence, parser, whole=whole)
        kept = tuple(p for p in pieces if p.rows != 0)
        detected = (*self.detected, *compressed_files(heads), *of_header, *self._notes(listing, kept_text, names))
        fields = tuple(pa.field(feature.name, text_type(feature), feature.nullable) for feature in features)
        return Survey(Frozen(schema), choices, kept, tuple(warnings), detected=detected, fields=fields)

    def cast_to(self, survey: Survey, dataset: DatasetSchema) -> Survey:
        cast = as_cast(self.rules, survey.frozen.schema, dataset)
        refuse_others(dataset, cast, _DECLARED)
        refuse_misfits(self.read, survey, cast, dataset)
        fields = tuple(pa.field(one.name, text_type(one), one.nullable) for one in dataset.schema)
        return replace(survey, frozen=replace(survey.frozen, schema=dataset.schema), fields=fields)

    def read(self, task: Task, frozen: Frozen) -> Iterator[Rows]:
        features = {feature.name: feature for feature in frozen.schema}
        ordinal = 0
        for _, group in groupby(task.pieces, key=lambda piece: piece.entry):
            pieces = [piece for piece in group if isinstance(piece, CsvPiece)]
            first = pieces[0]
            check_stamp(first)
            parser = self._parser(first.columns, [name for name in first.columns if name in features])
            parser = parser.of_file(first.columns)
            located = is_transparent(self.encoding)
            for piece, chunk in read_chunks(pieces, parser, self.encoding):
                cells = parse_cells(parser, chunk, piece.name, piece.entry, located=located)
                check_count(piece, chunk, cells.rows + len(cells.rejects), parser)
                batch, problems = cast_cells(parser, cells, features, piece.name, binary=self._has_bytes)
                yield Rows(
                    task.ordinal, ordinal, piece.entry, batch, cells.origin, tuple(problems), tuple(cells.rejects)
                )
                ordinal += 1
            check_stamp(first)

    @property
    def _has_bytes(self) -> bool:
        """Whether some column, which need not be among those that are read, is declared as bytes."""
        return any(rule.type in ("binary", "bytes") for rule in self.rules.values())

    def _dialect(self) -> Dialect:
        quote, escape, comment = (None if s is None else ord(s) for s in (self.quote, self.escape, self.comment))
        return Dialect(ord(self.delimiter), quote, escape, comment, self.trim)

    def _head_options(self) -> HeadOptions:
        limits = self.limits
        return HeadOptions(
            self._dialect(),
            self.encoding,
            self.header,
            self.names,
            limits.field_bytes,
            limits.record_bytes,
            limits.columns,
            self.skip_lines,
            self.call,
        )

    def _parser(self, names: tuple[str, ...], kept: Sequence[str]) -> Parser:
        inner = plain_encoding(self.encoding) if is_transparent(self.encoding) else "utf-8"
        return Parser(names, tuple(kept), self._dialect(), inner, self.null_values, self.fill_short_rows, self.limits)

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
        wanted = (self.columns or ()) if name in (self.columns or ()) else tuple(self.rules)
        return no_such_column(name, names, wanted, named=self.header or self.names is not None)

    def _notes(
        self, listing: Listing, kept_text: Sequence[tuple[str, Obstacles]], names: tuple[str, ...]
    ) -> tuple[str, ...]:
        named = self.header and self.names is None
        files = tuple(entry.name for entry in listing.entries)
        call = PandasCall(files, self.delimiter, self.encoding, None if named else names, self.call)
        return obstacle_notes(kept_text, self.null_values, self.delimiter, call)

    def _scan(self, entries: Sequence[SourceEntry], heads: Sequence[FileHead], run: ParallelMap) -> dict[int, FileScan]:
        """Scan all plain files that hold a record: the scan of each, by its index in the listing."""
        jobs: list[tuple[int, ScanJob]] = []
        for index, (entry, head) in enumerate(zip(entries, heads, strict=True)):
            if head.names is not None and not head.form.streamed:
                plan = plan_scan(entry, head.form.start, self.limits.job_bytes)
                jobs += [(index, job) for job in plan]
        scan = partial(run_scan, dialect=self._dialect(), block_bytes=self.limits.block_bytes)
        blocks = run(scan, [job for _, job in jobs], heavy=True)
        scans = {}
        for index, group in groupby(zip(jobs, blocks, strict=True), key=lambda pair: pair[0][0]):
            entry, found = entries[index], (block for _, part in group for block in part)
            scans[index] = fold_blocks(found, heads[index].form.start, entry.bytes)
            if (open_at := scans[index].open_at) is not None:
                raise unclosed_quote(entry.name, open_at)
        return scans

    def _look(
        self, listing: Listing, pieces: Sequence[CsvPiece], parser: Parser, run: ParallelMap
    ) -> tuple[list[PieceEvidence], bool]:
        whole = self.infer == "full" or (self.infer == "auto" and listing.bytes <= self.limits.auto_bytes)
        chosen = list(pieces) if whole else [p for p in pieces if p.first_row < AUTO_ROWS]
        limit = None if whole else AUTO_ROWS
        typed = tuple(parser.kept) if self.infer == "none" else tuple(n for n, r in self.rules.items() if r.type)
        look = partial(
            look_at_piece, parser=parser, encoding=self.encoding, limit=limit, typed=typed, binary=self._has_bytes
        )
        found = dict(zip((id(piece) for piece in chosen), run(look, chosen, heavy=whole), strict=True))
        unread = PieceEvidence(0, 0, ())
        return [found.get(id(piece), unread) for piece in pieces], whole
