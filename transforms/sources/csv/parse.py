"""Parse chunks of CSV text into rows: typed columns, bad cells, and records that are no rows at all."""

from __future__ import annotations

import csv as lines_of_csv
import io
import itertools
import re
from codecs import BOM_UTF8
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import csv

from ...errors import SourceError
from ...format.batches.arrow_memory import BUFFER_LIMIT, beginning_of, binary_array
from ...format.batches.rejects import CellError, CellProblem, Reject
from ...format.schema.schema import Feature
from ...format.wording.hints import Add, Set, set_column
from ...format.wording.printable import VALUE_LIMIT, printable
from ...inputs.contract.selection import refuse_far_more
from ..registry.settings import Limits, wrong_signs
from ..text.cast import cast_column, cell_bytes, nullify, problem_of, text_type, type_noun, without_words
from ..text.lines import over_record_bytes
from ..text.open_text import BLOCK_BYTES, Cut, NotUtf8Error, encoding_hint, is_utf8, to_utf8
from .chunks import Chunk, CsvOrigin
from .dialect import CR, ESCAPE, LF, Dialect
from .obstacles import quotes_are_text
from .record_starts import TornCell, cell_delimiters, padded, record_ends, torn_cells, usual_text


@dataclass(frozen=True, slots=True)
class CsvLimits:
    """The largest field and record, in bytes, and the largest number of columns that are read; and sizes of the work.

    `block_bytes` are scanned at a time. A record of more than `long_bytes` is read block by block, and parsed by
    itself. `job_bytes` are scanned by one call: of 16 blocks, 2 GB are 120 items of work and not 1,900. Pieces are
    parsed together up to `joined_bytes`, so two by two: every call into the parser costs 0.2 ms, which is a tenth of
    what 1 MiB takes; with four the encoder's work falls out of the cache, and loses more than the parser gains. Up to
    `auto_bytes`, a fraction of a second, `infer: auto` reads the whole source.
    """

    field_bytes: int = 64 << 20
    record_bytes: int = 1 << 30
    columns: int = 100_000
    block_bytes: int = field(default=BLOCK_BYTES, repr=False)
    long_bytes: int = field(default=8 << 20, repr=False)
    job_bytes: int = field(default=16 << 20, repr=False)
    joined_bytes: int = field(default=9 << 18, repr=False)
    auto_bytes: int = field(default=64 << 20, repr=False)

    @classmethod
    def of(cls, limits: Limits) -> CsvLimits:
        return cls(limits.field_bytes, limits.record_bytes, limits.columns)


@dataclass(frozen=True, slots=True)
class Parser:
    """How the text of a source becomes cells: what all files of it share.

    `names` are all columns of a file in its order, `kept` those that are read. A record that `fills` ends with nulls
    where cells are missing; else it is a reject. A record whose cells are `again` is left out. `nulls` are the words
    of each column that are null, in quotes or not.
    """

    names: tuple[str, ...]
    kept: tuple[str, ...]
    dialect: Dialect
    encoding: str = "utf-8"
    null_values: tuple[str, ...] = ("",)
    fills: bool = False
    limits: CsvLimits = field(default_factory=CsvLimits)
    again: tuple[str, ...] = ()
    nulls: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def of_file(self, columns: tuple[str, ...], again: tuple[str, ...] = ()) -> Parser:
        """Return the parser of a file with these columns, which may be in another order, or not all that are read.

        Where it has none of these its first one is read, to count the rows.
        """
        own = frozenset(columns)
        kept = self.kept if own.issuperset(self.kept) else tuple(name for name in self.kept if name in own)
        return replace(self, names=columns, kept=kept or columns[:1], again=again)

    @property
    def blank_rows(self) -> bool:
        """Whether a blank line is a row: in a file of one column it is an empty cell."""
        return len(self.names) == 1


@dataclass(frozen=True, slots=True, eq=False)
class CsvCells:
    """The parsed records of a chunk as binary columns, and the rejects among them; `utf8`: all text is known to be.

    `too_wide` of the rejects are, `by_one` by one cell, `trailing` by a delimiter at their end alone; `blank_quotes`
    have a blank before a quote. `dropped` records were left out.
    """

    columns: list[pa.Array]
    rows: int
    origin: CsvOrigin
    rejects: list[Reject]
    too_wide: int
    by_one: int
    trailing: int
    blank_quotes: int
    utf8: bool
    names: tuple[str, ...] = ()
    dropped: int = 0


def parse_cells(parser: Parser, chunk: Chunk, name: str, entry: int, *, located: bool = True) -> CsvCells:
    """Records of another width than the header are rejects. Raises `SourceError`: the text is not in its encoding."""
    origin = CsvOrigin(name, chunk, parser.dialect, located, parser.blank_rows)
    text = chunk.text
    rejects = _large_records(parser, origin, entry)
    dropped = _headers_again(parser, origin) if parser.again and chunk.size is None else []
    if rejects or dropped:
        text = _without_records(text, origin.starts(), sorted({*rejects, *dropped}))
    text = usual_text(text, parser.dialect)
    if parser.encoding != "utf-8":
        at = chunk.before.offset if located and text is chunk.text else None
        text = to_utf8(text, parser.encoding, name, at)
    whole = _one_record(parser, text)
    if chunk.torn and whole is None:
        text, torn = _without_torn_cells(parser, text)
        present = _present(origin, {*rejects, *dropped})
        for number, error in torn.items():
            record = number if present is None else present[number]
            rejects[record] = _rejected(entry, origin, record, error)
    # Arrow numbers the records that it is given; where some were taken out, look theirs up
    present = _present(origin, {*rejects, *dropped})
    utf8 = parser.encoding != "utf-8" or is_utf8(text)
    columns, invalid = _run_arrow(parser, text, utf8=utf8) if whole is None else (whole, [])
    if parser.fills and any(width < len(parser.names) for _, width, _ in invalid):
        columns, invalid = _fill(parser, text, invalid, utf8=utf8)
    too_wide = by_one = trailing = blank = 0
    for number, actual, row in invalid:
        record = number - 1 if present is None else present[number - 1]
        too_wide += actual > len(parser.names)
        by_one += actual == len(parser.names) + 1
        trailing += _is_trailing(parser, actual, row)
        blank += actual > len(parser.names) and _has_blank_quote(parser, row)
        rejects[record] = _rejected(entry, origin, record, _bad_width(parser, actual, row))
    origin = replace(origin, missing=tuple(sorted({*rejects, *dropped})))
    rows = len(columns[0]) if columns else 0
    columns = [
        without_words(column, parser.nulls.get(name, ())) for name, column in zip(parser.kept, columns, strict=True)
    ]
    found = [rejects[record] for record in sorted(rejects)]
    return CsvCells(columns, rows, origin, found, too_wide, by_one, trailing, blank, utf8, parser.names, len(dropped))


def _present(origin: CsvOrigin, rejects: Container[int]) -> list[int] | None:
    return [i for i in range(len(origin.starts())) if i not in rejects] if rejects else None


def cast_cells(
    parser: Parser, cells: CsvCells, features: dict[str, Feature], name: str, *, binary: bool = False
) -> tuple[pa.RecordBatch, list[CellProblem]]:
    """Cast parsed cells to the types of the features; bad cells become null and are returned, in row order.

    A feature that is no column of the file is null. `binary` says that a column is declared so, be it a feature or not:
    else text that is not UTF-8 raises `SourceError`.
    """
    types = ["binary"] if binary else [feature.type for feature in features.values()]
    checked = check_utf8(cells, types, name)
    problems: list[CellProblem] = []
    arrays: dict[str, pa.Array] = {}
    chunk = cells.origin.chunk
    long = {column: size for column, size in cells.origin.long_columns(parser.names) if cells.rows}
    large = len(chunk.text) > parser.limits.field_bytes
    for column, values in zip(parser.kept, cells.columns, strict=True):
        if column not in features:
            continue
        target = text_type(features[column])
        if large or column in long:
            values, found = _without_large_fields(values, column, target, parser.limits.field_bytes, long.get(column))
            problems += found
        if checked and target == pa.string():
            arrays[column] = values.view(target)
            continue
        arrays[column], found = cast_column(values, target, column, nulls=parser.nulls.get(column, ()))
        problems += found
    if len(problems) > 1:
        order = {column: i for i, column in enumerate(parser.kept)}
        problems.sort(key=lambda p: (p.row, order[p.error.column or ""]))
    for column, feature in features.items():
        if column not in arrays:
            arrays[column] = pa.nulls(cells.rows, text_type(feature))
    return pa.RecordBatch.from_arrays(list(arrays.values()), names=list(arrays)), problems


def check_utf8(cells: CsvCells, types: Sequence[str], name: str) -> bool:
    """Return whether all is known to be UTF-8: unknown if a column is binary. Raises `SourceError` if it is not."""
    if cells.utf8:
        return True
    if "binary" in types:
        return False
    try:
        cells.origin.chunk.text.decode()
    except UnicodeDecodeError as error:
        raise NotUtf8Error(name, not_utf8(cells.origin, cells.names, error.start)) from error
    return True


def not_utf8(origin: CsvOrigin, names: Sequence[str], at: int) -> str:
    """Return where text is not UTF-8, by line and column, and the fix; `at` is the byte in the chunk."""
    text = origin.chunk.text
    start, line = origin.line_of(at)
    quote = origin.dialect.quote
    outside = [text[start:at]] if quote is None else text[start:at].split(bytes([quote]))[::2]
    column = sum(part.count(bytes([origin.dialect.delimiter])) for part in outside)
    where, also = f"line {line}", ""
    if column < len(names):
        where += f', column "{printable(names[column])}"'
        also = f"; or read the column as bytes: {set_column(names[column], 'type', 'binary')}"
    byte = f" at byte {origin.chunk.before.offset + at}" if origin.located else ""
    return f"{where}: not UTF-8{byte} (0x{text[at]:02x}); {encoding_hint(text[at:])}{also}"


def _fill(
    parser: Parser, text: bytes, invalid: Sequence[_OtherWidth], *, utf8: bool
) -> tuple[list[pa.Array], list[_OtherWidth]]:
    """Parse text once more, with null cells where records have too few."""
    missing = {number - 1: len(parser.names) - width for number, width, _ in invalid if width < len(parser.names)}
    null = ""
    if null not in parser.null_values:
        null = "\1"  # a word that is nowhere in the text
        while null.encode() in text:
            null += "\1"
        parser = replace(parser, null_values=(*parser.null_values, null))
    return _run_arrow(parser, padded(text, parser.dialect, missing, null.encode()), utf8=utf8)


_ASCII_ONLY = bytes(range(128)) + b"?" * 128


_LARGE: Final = 8 << 20
"""Above that memory is given back as soon as it is free: Arrow's own pool keeps some."""

_OtherWidth = tuple[int, int, bytes]
"""The number of a record of another width, from 1, its width and its text."""


def _one_record(parser: Parser, text: bytes) -> list[pa.Array] | None:
    """Return the cells of a text that is one large record, without a copy: Arrow takes three times the text.

    None for any other text, and for a record with an escape, a torn cell or another width, which Arrow sees to.
    """
    dialect = parser.dialect
    if not parser.limits.long_bytes < len(text) <= BUFFER_LIMIT or (
        dialect.escape is not None and dialect.escape in text
    ):
        return None
    pattern, quote = _cell_pattern(dialect), bytes([dialect.quote or 0])
    nulls = {word.encode() for word in parser.null_values}
    longest, whole = max(map(len, nulls), default=0), len(text) - text.endswith((b"\n", b"\r")) - text.endswith(b"\r\n")
    cells, end = dict[str, pa.Array](), 0
    for number, name in enumerate(parser.names, 1):
        found = pattern.match(text, end, whole)
        if found is None or (found.end("sign") < 0) != (number == len(parser.names)):
            return None
        end, quoted = found.end(), found.start("quoted") >= 0
        start, stop = found.span("quoted" if quoted else "plain")
        cell: bytes | memoryview | None = memoryview(text)[start:stop]
        if quoted and text.find(quote, start, stop) >= 0:
            cell = text[start:stop].replace(2 * quote, quote)
        elif not quoted and stop - start <= longest and text[start:stop] in nulls:
            cell = None
        elif not quoted and (text.find(b"\n", start, stop) >= 0 or text.find(b"\r", start, stop) >= 0):
            return None
        cells[name] = binary_array([cell])
    return [cells[name] for name in parser.kept]


@lru_cache
def _cell_pattern(dialect: Dialect) -> re.Pattern[bytes]:
    """Return what matches a cell, quoted or plain, and the sign that follows it unless it is the last one."""
    sign = re.escape(bytes([dialect.delimiter]))
    plain, quoted = rb"(?P<plain>[^%b]*+)" % sign, rb"(?P<quoted>(?!))|"
    if dialect.quote is not None:
        quote = re.escape(bytes([dialect.quote]))
        quoted = rb"%b(?P<quoted>[^%b]*+(?:%b%b[^%b]*+)*+)%b|" % ((quote,) * 6)
        plain = rb"(?!%b)%b" % (quote, plain)
    return re.compile(rb"(?:%b%b)(?:(?P<sign>%b)|\Z)" % (quoted, plain, sign))


def _run_arrow(parser: Parser, text: bytes, *, utf8: bool = True) -> tuple[list[pa.Array], list[_OtherWidth]]:
    if utf8:
        return _read_csv(parser, text)
    # Arrow hands over a record of another width as text, and fails where it is none.
    if not _read_csv(parser, text.translate(_ASCII_ONLY))[1]:
        return _read_csv(parser, text)
    # Let each byte be a character.
    wide = text.decode("latin-1").encode()
    nulls = tuple(value.encode().decode("latin-1") for value in parser.null_values)
    columns, invalid = _read_csv(replace(parser, null_values=nulls), wide, "latin-1")
    return [_narrowed(column) for column in columns], invalid


def _narrowed(column: pa.Array) -> pa.Array:
    """Return the bytes of which each is a character of the column's text."""
    cells = column.to_pylist()
    return pa.array([None if cell is None else cell.decode().encode("latin-1") for cell in cells], pa.binary())


_ROOM: Final = 64
"""Blanks and blank lines around a header that comes again."""

_NULL_N: Final = Set("input.null_values", "[\\N]")
TRIM: Final = f"if blanks around cells are no part of them: {Set('input.trim', True)}"

QUOTES_ARE_TEXT: Final = Set("input.quote", None)

_EXACT_CELLS: Final = 32_768
"""Cells that pyarrow parses one by one; of later ones before version 26 a NUL is misread (apache/arrow#50481)."""


def _read_csv(parser: Parser, text: bytes, encoding: str = "utf-8") -> tuple[list[pa.Array], list[_OtherWidth]]:
    if b"\0" not in text:
        return _read_part(parser, text, encoding)
    found = record_ends(np.frombuffer(text, np.uint8), parser.dialect.usual)
    rows = max(_EXACT_CELLS // len(parser.names), 1)
    stops = found.ends[rows - 1 :: rows] + 1
    parts, invalid, done = [], list[_OtherWidth](), 0
    for start, stop in itertools.pairwise(np.unique([0, *stops.tolist(), len(text)]).tolist()):
        columns, odd = _read_part(parser, text[start:stop], encoding)
        parts.append(columns)
        invalid += [(done + number, width, record) for number, width, record in odd]
        done += len(columns[0]) + len(odd)
    return [pa.concat_arrays(column) for column in zip(*parts, strict=True)], invalid


def _read_part(parser: Parser, text: bytes, encoding: str) -> tuple[list[pa.Array], list[_OtherWidth]]:
    invalid: list[_OtherWidth] = []

    def skip(row: Any) -> str:
        invalid.append((row.number, row.actual_columns, row.text.encode(encoding)))
        return "skip"

    if not text:
        return [pa.array([], pa.binary()) for _ in parser.kept], invalid
    quote, escape = parser.dialect.quote, parser.dialect.escape
    if text.endswith(bytes([parser.dialect.delimiter])):
        text += b"\n"  # or an empty cell at the end is null or not as the cell before it is quoted
    table = csv.read_csv(
        pa.py_buffer(text),
        # one block: it must hold the largest record whole
        read_options=csv.ReadOptions(use_threads=False, block_size=len(text) + 1, column_names=parser.names),
        parse_options=csv.ParseOptions(
            delimiter=chr(parser.dialect.delimiter),
            quote_char=False if quote is None else chr(quote),
            escape_char=False if escape is None else chr(escape),
            newlines_in_values=True,
            ignore_empty_lines=not parser.blank_rows,
            invalid_row_handler=skip,
        ),
        convert_options=_convert_options(parser.kept, parser.null_values),
        memory_pool=pa.system_memory_pool() if len(text) > _LARGE else None,
    )
    return [column.combine_chunks() if column.num_chunks != 1 else column.chunk(0) for column in table.columns], invalid


@lru_cache(maxsize=8)
def _convert_options(kept: tuple[str, ...], null_values: tuple[str, ...]) -> csv.ConvertOptions:
    # the same for all chunks of a source: to make them takes as long as to cast a column of a chunk
    return csv.ConvertOptions(
        check_utf8=False,
        column_types=dict.fromkeys(kept, pa.binary()),
        include_columns=kept,
        null_values=null_values,
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )


def _is_trailing(parser: Parser, actual: int, row: bytes) -> bool:
    return actual == len(parser.names) + 1 and row.rstrip(b"\r\n").endswith(bytes([parser.dialect.delimiter]))


def _rejected(entry: int, origin: CsvOrigin, record: int, error: CellError) -> Reject:
    """Return the reject of a record; of one of several lines, which quotes may have joined, it says which they are."""
    place, starts, text = origin.place_of_record(record), origin.starts(), origin.chunk.text
    stop = int(starts[record + 1]) if record + 1 < len(starts) else len(text)
    more = text[int(starts[record]) : stop].strip(b"\r\n").count(b"\n")
    if more and place.line is not None:
        first = origin.chunk.header_lines + place.line
        error = replace(error, message=f"lines {first} to {first + more} of the file are one row: {error.message}")
    return Reject(entry, place, (error,))


def _has_blank_quote(parser: Parser, row: bytes) -> bool:
    """Return whether cells of a record begin with a blank and a quote, and the record is right without such blanks."""
    delimiter, quote = parser.dialect.delimiter, parser.dialect.quote
    if quote is None or quote not in row or delimiter in b" \t":
        return False
    sign, mark = bytes([delimiter]), bytes([quote])
    if not re.search(b"(^|%b)[ \t]+%b" % (re.escape(sign), re.escape(mark)), row):
        return False
    trimmed = re.sub(b"[ \t]*%b[ \t]*" % re.escape(sign), lambda _: sign, row.strip()).decode("latin-1")
    lines = io.StringIO(trimmed, newline="")
    try:
        rows = [*lines_of_csv.reader(lines, delimiter=chr(delimiter), quotechar=chr(quote), strict=True)]
    except lines_of_csv.Error:
        return False  # a quote is open
    return [*map(len, rows)] == [len(parser.names)]


_NOTE: Final = re.compile(rb"\(.*[0-9].*\)|(?i:[0-9]+ rows?\b.*|.*\brows? (?:affected|selected|in set)\b.*)|-+|=+")
"""What programs of databases write below a table: how many rows it has."""


def _bad_width(parser: Parser, actual: int, row: bytes) -> CellError:
    wanted, dialect, shown = len(parser.names), parser.dialect, printable(row)
    plural = "" if actual == 1 else "s"
    if actual < wanted:
        fix = (
            f"add the cells that it lacks ({Set('input.short_rows', None)} makes them null), or quote the value whose "
            "line break cuts the row"
        )
        if all(map(str.isdecimal, parser.names[:2])):
            counts = Add("--no-header", Set("input.skip_lines", 1))
            fix = f"if the first line holds counts, as scikit-learn writes it: {counts}; else {fix}"
        elif actual == 1 and _NOTE.fullmatch(row.strip()):
            fix = f"it looks like a note below the rows; to leave it out: {Add('--max-rejects', '1')}; else {fix}"
        elif row.rstrip(b"\r\n").endswith(b"\\") and dialect.escape is None:
            fix = f"if a backslash escapes the line break, as in dumps of MySQL: {ESCAPE}; else {fix}"
    elif _is_trailing(parser, actual, row):
        fix = f'take the delimiter "{printable(chr(dialect.delimiter))}" off its end'
    else:
        fix = f'quote the values that hold the delimiter "{printable(chr(dialect.delimiter))}"'
        if parser.names[0].startswith("#") and dialect.comment is None:
            fix += f"; or, if lines that begin with # are comments: {Set('input.comment', '#')}"
        elif wanted == 1:
            fix += f"; or, if the header is further down: {Set('input.skip_lines', 'N')}"
        elif b'\\"' in row and dialect.escape is None:
            fix += f"; or, if a backslash escapes quotes: {ESCAPE}"
        elif b"\\" + bytes([dialect.delimiter]) in row and dialect.escape is None:
            fix += f"; or, if a backslash escapes the delimiter: {ESCAPE}"
        elif _has_blank_quote(parser, row):
            fix = f"a blank is before a quote, so that the value is not quoted; {TRIM}"
    message = f"has {actual} column{plural} instead of {wanted}: {shown}; fix the row: {fix}"
    return CellError(None, "BAD_WIDTH", shown, f"{wanted} columns", message)


def _headers_again(parser: Parser, origin: CsvOrigin) -> list[int]:
    """Return the records that are the header: as long as it at least, and no longer than with quotes and a mark."""
    names = [name.encode(parser.encoding) for name in parser.again]
    least = sum(map(len, names)) + len(names) - 1
    starts, sizes, longest, found = origin.starts(), origin.sizes(), max(names, key=len), []
    for record in np.flatnonzero((sizes >= least) & (sizes <= least + 2 * len(names) + _ROOM)).tolist():
        begin = int(starts[record])
        text = origin.chunk.text[begin : begin + int(sizes[record])].strip(b"\r\n").removeprefix(BOM_UTF8)
        if longest in text:
            cells = header_cells(text, parser.dialect, parser.encoding, origin.source, len(names), header=False)
            found += [record] if cells == parser.again else []
    return found


def _large_records(parser: Parser, origin: CsvOrigin, entry: int) -> dict[int, Reject]:
    if (origin.chunk.size or len(origin.chunk.text)) <= parser.limits.record_bytes:
        return {}
    sizes = origin.sizes()
    limit = parser.limits.record_bytes
    large = np.flatnonzero(sizes > limit).tolist()
    text, rejects = origin.chunk.text, {}
    for record in large:
        begin, size = int(origin.starts()[record]), int(sizes[record])
        shown = printable(text[begin : begin + 400])
        message = over_record_bytes(size, limit)
        error = CellError(None, "RECORD_TOO_LARGE", shown, f"at most {limit} bytes", message)
        rejects[record] = Reject(entry, origin.place_of_record(record), (error,))
    return rejects


def _without_records(text: bytes, starts: npt.NDArray[np.int64], records: Iterable[int]) -> bytes:
    """Return a text without some of its records, in order; it starts with the first one, or blank lines."""
    edges, parts, done = [*starts.tolist(), len(text)], [], 0
    for record in records:
        parts.append(text[done : edges[record]])
        done = edges[record + 1]
    return b"".join([*parts, text[done:]])


def _without_torn_cells(parser: Parser, text: bytes) -> tuple[bytes, dict[int, CellError]]:
    """Cut the records out of usual text in which text follows a closing quote: Arrow would read another value."""
    dialect = parser.dialect.usual
    if dialect.quote is None or dialect.quote not in text:
        return text, {}
    usual = CsvOrigin("", Chunk(text, Cut(0, 0, 0, 0)), dialect, blank_rows=parser.blank_rows)
    torn = torn_cells(np.frombuffer(text, np.uint8), dialect, usual.starts)
    if not torn:
        return text, {}
    plain = quotes_are_text(text, dialect)
    errors = {cell.record: _torn_cell(parser, text, cell, plain=plain) for cell in torn}
    return _without_records(text, usual.starts(), errors), errors


def _torn_cell(parser: Parser, text: bytes, cell: TornCell, *, plain: bool) -> CellError:
    dialect, quote = parser.dialect, text[cell.closed : cell.closed + 1]
    after = text[cell.closed + 1 : cell.stop]
    signs = (chr(dialect.delimiter), quote.decode())
    others = (None if dialect.comment is None else chr(dialect.comment), parser.null_values)
    backslash = text[cell.closed - 1 : cell.closed] == b"\\" and dialect.escape is None
    joins = b"\n" in text[cell.start : cell.closed]
    if text[cell.start : cell.closed + 1] == quote + b"N" + bytes([dialect.delimiter]) + quote:
        null = f"{quote.decode()}N is the null of MySQL and Cloud SQL in files with quotes"
        again = "export them with a backslash as the escape (gcloud sql export csv --escape=5C)"
        fix = f"{null}; {again}, and then: {_NULL_N}"
    elif not (after.strip(b" \t") or joins) and not wrong_signs(*signs, None, *others, trim=True):
        fix = TRIM
    elif backslash and not wrong_signs(*signs, "\\", *others, trim=dialect.trim):
        fix = f"if a backslash escapes quotes: {ESCAPE}"
    else:
        fix = f"write each quote within the value twice: {2 * quote.decode()}"
        fix = f"close the quote that opens it, or quote the value and {fix}" if joins else fix
        if plain:
            fix = f"if quotes are plain text, as each line is a row without them: {QUOTES_ARE_TEXT}; or {fix}"
    names = parser.names
    column = names[cell.column] if cell.column < len(names) else None
    shown = printable(text[cell.start : cell.stop])
    message = f"{shown} has text after its closing quote; {fix}"
    return CellError(column, "BAD_QUOTE", shown, "no text after the closing quote", message)


def _without_large_fields(
    values: pa.Array, column: str, target: pa.DataType, limit: int, size: int | None
) -> tuple[pa.Array, list[CellProblem]]:
    """Make cells over the limit null; `size` is that of a single one that is there with its beginning alone."""
    sizes = cell_bytes(values) if size is None else np.array([size])
    rows = np.flatnonzero(sizes > limit)
    if not len(rows):
        return values, []
    found = []
    for row in rows.tolist():
        size = int(sizes[row])
        text = (
            f"is {size} bytes long, more than limits.field_bytes ({limit}); raise it: {Set('limits.field_bytes', size)}"
        )
        cell = beginning_of(values, row, 4 * VALUE_LIMIT)
        found.append(problem_of(row, cell, "FIELD_TOO_LARGE", text, column, type_noun(target)))
    return nullify(values, rows), found


def header_cells(
    text: bytes, dialect: Dialect, encoding: str, name: str, most: int, *, header: bool
) -> tuple[str, ...]:
    """Raise `SourceError`: not in its encoding, or text follows a closing quote; `SchemaError`: far over `most` cells.

    `header` says that the cells are names, and not a first row.
    """
    text = usual_text(text, dialect)
    text = to_utf8(text, encoding, name, None if encoding != "utf-8" else 0).rstrip(b"\r\n") + b"\n"
    one = Parser(("f0",), ("f0",), dialect, null_values=())
    torn = _without_torn_cells(one, text)[1] if header else {}
    if torn:
        raise SourceError(name, f"the header: {torn[0].message}")
    if not {dialect.quote, dialect.escape, CR} & {*text} and text.count(b"\n") == 1:  # Arrow takes 0.3 ms to begin
        found = text[:-1].split(bytes([dialect.delimiter]))
        refuse_far_more(name, len(found), most)
        return tuple(cell.decode() for cell in found)
    data = np.frombuffer(text, np.uint8).copy()
    delimiters = cell_delimiters(data, dialect.usual)
    refuse_far_more(name, len(delimiters) + 1, most)
    data[delimiters] = LF  # a cell a line: for each column Arrow takes 5 KB
    (cells,), _ = _run_arrow(one, data.tobytes())
    return tuple(cell.decode() for cell in cells.to_pylist())
