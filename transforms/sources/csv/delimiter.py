"""Detect the delimiter of CSV files from the first records of the first file that holds any.

    header      id;price;note        ';' gives 3 columns, ',' gives 1
    records     1;2,50;ok            ... and 3 again; ',' gives 2

A sign is the delimiter if the header has at least two columns by it, and nine tenths of the records as many. If no sign
is, it is the comma, with a word where blanks would do; if more than one is, or blanks cut a table of numbers, only the
person who has the file knows.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Final

from ...errors import InputError, SourceError
from ...format.wording.hints import Add, Set
from ...format.wording.printable import printable
from ...inputs.contract.source import SourceEntry
from ...inputs.files.file_names import suffixes_of
from ...inputs.files.listing import list_file, some_paths
from ..text.open_text import is_transparent, plain_encoding, sniff_text, stream_text
from .chunks import skip_lines, skip_sep_line
from .dialect import Dialect
from .record_starts import usual_text

SIGNS: Final = ",;\t|"
"""What files with the suffix .csv are delimited by, the most common first."""

_TAB_SUFFIXES: Final = tuple(suffix for suffix in suffixes_of("csv") if suffix.startswith(".tsv"))
_RECORDS: Final = 100
_TEXT_BYTES: Final = 1 << 18
_ALIGNED: Final = 3
"""Lines that blanks must cut alike: two lines of text may have as many words by chance."""

_WIDE: Final = 0.9
"""The share of records that must be as wide as the header: bad rows are rejects, and have no say."""


@dataclass(frozen=True, slots=True)
class Delimiter:
    """A delimiter, and where it was detected and how; no evidence where the suffix or the default says it."""

    sign: str
    evidence: str | None = None


@dataclass(frozen=True, slots=True)
class SampleOptions:
    """The options that say how the first records are to be read."""

    encoding: str = "utf-8"
    quote: str | None = '"'
    skip_lines: int = 0
    comment: str | None = None
    escape: str | None = None
    trim: bool = False
    row_names: str | None = None

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> SampleOptions:
        """Return those of a config that is not checked yet: a value that cannot be used has no say."""
        signs = {key: given[key] for key in ("quote", "comment", "escape") if _is_sign(given.get(key))}
        quote = None if "quote" in given and given["quote"] is None else signs.get("quote", '"')
        lines = given.get("skip_lines", 0)
        lines = lines if isinstance(lines, int) else 0
        encoding = given.get("encoding", "utf-8")
        trim, names = given.get("trim") is True, given.get("row_names")
        return cls(encoding, quote, lines, signs.get("comment"), signs.get("escape"), trim=trim, row_names=names)

    def dialect(self, delimiter: str) -> Dialect:
        return Dialect.of(delimiter, self.quote, self.escape, self.comment, trim=self.trim)


def _is_sign(value: object) -> bool:
    return isinstance(value, str) and len(value) == 1 and value.isascii()


def detect_delimiter(
    paths: Sequence[str], base: str = "", options: SampleOptions | None = None, ignore: Sequence[str] = ()
) -> Delimiter:
    """Return a tab if all CSV files that `paths` name are .tsv, else what the first records say.

    Paths that match nothing, and files that cannot be read, have no say: the listing and the survey refuse them. Raises
    `InputError` where more than one sign would do.
    """
    options = options or SampleOptions()
    try:
        files = some_paths(paths, base, suffixes_of("csv"), ignore=ignore)
        if files and all(_has_suffix(path, _TAB_SUFFIXES) for path in files):
            return Delimiter("\t")
        for path in files:
            if not _has_suffix(path, _TAB_SUFFIXES):
                entry = list_file(path, b"/" if not base else base.encode())
                named, text = _first_text(entry, options)
                if named:
                    return Delimiter(named)
                if text:
                    return _detect(entry.name, text, options)
    except (InputError, SourceError) as error:
        if isinstance(error, AmbiguousDelimiter):
            raise
    return Delimiter(",")


class AmbiguousDelimiter(InputError):
    """More than one sign gives whole columns."""


def _has_suffix(path: bytes, suffixes: tuple[str, ...]) -> bool:
    return path.decode("utf-8", "surrogateescape").lower().endswith(suffixes)


def _first_text(entry: SourceEntry, options: SampleOptions) -> tuple[str, str]:
    """Return the delimiter that a line `sep=;` names, and the first records, without comments and one that is cut.

    Lines above them that begin with # have no say either.
    """
    data, encoding = b"", options.encoding
    blocks = stream_text(entry, encoding, sniff_text(entry, encoding), whole=False)
    line, blocks = skip_sep_line(skip_lines(blocks, options.skip_lines)[2])
    if line:
        return line.strip(b'"\r\n')[-1:].decode("latin-1"), ""
    for block in blocks:
        data += block
        if len(data) >= _TEXT_BYTES:
            break
    if len(data) > _TEXT_BYTES:
        data = data[: data.rfind(b"\n", 0, _TEXT_BYTES) + 1] or data[:_TEXT_BYTES]
    if options.comment is not None:
        data = usual_text(data, replace(options, trim=False).dialect(","))
    data = re.sub(rb"\A(?:#[^\n]*\n)+(?=.)", b"", data)
    return "", data.decode(plain_encoding(encoding) if is_transparent(encoding) else "utf-8", "replace")


def _detect(name: str, text: str, options: SampleOptions) -> Delimiter:
    widths = {sign: [len(row) for row in _records(text, sign, options)] for sign in SIGNS}
    likely = [sign for sign in SIGNS if _is_delimiter(widths[sign])]
    if len(likely) > 1:
        likely = _without_doubt(likely, {sign: widths[sign][0] for sign in likely}, text)
    if len(likely) > 1:
        both = " and ".join(f'"{printable(sign)}" gives {widths[sign][0]}' for sign in likely)
        raise AmbiguousDelimiter(
            f"{name}: the delimiter is unclear: {both} columns in the first {len(widths[','])} records; declare it: "
            f"{Set('input.delimiter', likely[0])}"
        )
    if not likely:  # of ragged records, what the header says
        likely = [sign for sign in SIGNS if widths[sign] and widths[sign][0] > 1][:1]
    if not likely and (told := split_times(text, options)):
        raise AmbiguousDelimiter(f"{name}: is {told}; to read each line as one column: {_COMMA}")
    if not likely and (found := aligned_columns(text, options)) is not None:
        return _blanks(name, found, options)
    if not likely or likely == [","]:
        return Delimiter(",")
    columns, records = widths[likely[0]][0], len(widths[likely[0]])
    shown = printable(likely[0])
    return Delimiter(
        likely[0],
        f'{name}: the delimiter is "{shown}": {columns} columns in the first {records} records; if it is not: '
        f"{Set('input.delimiter', ',')}",
    )


_COMMA: Final = Set("input.delimiter", ",")
_COMMA_ELSEWHERE: Final = re.compile("(?<![0-9]),|,(?![0-9])")
"""A comma that is no decimal one."""


@dataclass(frozen=True, slots=True)
class Aligned:
    """Records that runs of blanks cut into as many columns each, after lines that are `before` the header.

    A header that `lacks` has one name less. Some column has `numbers` alone.
    """

    columns: int
    records: int
    before: int
    lacks: bool
    numbers: bool

    @property
    def keys(self) -> Add:
        lines = [Set("input.skip_lines", 1)] if self.before else []
        return Add(Set("input.trim", True), *lines, *([Set("input.row_names", "row")] if self.lacks else []))


def aligned_columns(text: str, options: SampleOptions) -> Aligned | None:
    options = replace(options, trim=True, comment=None)
    usual = usual_text(text.encode("utf-8", "replace"), options.dialect(" ")).decode("utf-8", "replace")
    rows = list(_records(usual, " ", options))
    before = int(len(rows) > 1 and len(rows[0]) == 1 and rows[0][0].isdecimal())
    rows = rows[before:]
    widths = [len(row) for row in rows]
    if len(rows) < _ALIGNED or widths[-1] < 2 or len(set(widths[1:])) > 1 or not 0 <= widths[-1] - widths[0] <= 1:
        return None
    numbers = any(all(_is_number(cell) for cell in column) for column in zip(*rows[1:], strict=True))
    lacks = widths[0] < widths[-1]
    if (lacks or before) and not numbers:  # lines of text, rather
        return None
    if lacks and widths[-1] == 2 and not _have_names([row[0] for row in rows[1:]], usual):
        return None
    return Aligned(widths[-1], len(rows), before, lacks and options.row_names is None, numbers)


_SPLIT_TIME: Final = re.compile(r"(?<= )(\d{4}-\d\d-\d\d) (\d\d:\d\d(?::\d\d(?:\.\d+)?)?)(?= |\r?$)", re.MULTILINE)


def split_times(text: str, options: SampleOptions) -> str:
    """Return what is wrong with a table of R whose times are two cells each, as it puts no quotes around them."""
    joined = _SPLIT_TIME.sub(r"\1T\2", text)
    if joined == text or (found := aligned_columns(joined, replace(options, row_names=None))) is None:
        return ""
    plain = aligned_columns(text, options)
    first = [line.split(" ", 1)[0] for line in text.splitlines()[1:] if line]
    named = first == [f'"{number}"' for number in range(1, len(first) + 1)]
    if plain is not None and (not plain.lacks or (named and not found.lacks)):  # days and times are columns
        return ""
    example = _SPLIT_TIME.search(text)
    assert example is not None
    return (
        f"a table that R wrote with times without quotes, such as {example[0]}: blanks cut each into two cells; "
        'write it in R with commas: write.csv(x, "x.csv", row.names = FALSE)'
    )


def _have_names(first: Sequence[str], text: str) -> bool:
    """Return whether rows have names as R writes them: quoted, or numbers from 1; text may begin with any word."""
    quoted = all(line.startswith('"') for line in text.splitlines()[-len(first) :])
    return quoted or first == [str(number) for number in range(1, len(first) + 1)]


def _blanks(name: str, found: Aligned, options: SampleOptions) -> Delimiter:
    """Return what is to be said of records that no sign cuts, and blanks do; they are the delimiter with `trim`.

    Raises `AmbiguousDelimiter` where they are a table: some column has numbers alone.
    """
    cut = f"{found.columns} columns in the first {found.records} records"
    if options.trim:
        return Delimiter(" ", f"{name}: the delimiter is a run of blanks: {cut}; if it is not: {_COMMA}")
    fix = str(found.keys)
    if found.before and options.skip_lines:
        fix = fix.replace("skip_lines=1", f"skip_lines={options.skip_lines + 1}")
    if not found.numbers:
        return Delimiter(
            ",", f"{name}: no delimiter, so a record is one column; blanks give {cut}; to cut there: {fix}"
        )
    also = ", after a line with a number alone" if found.before else ""
    also += ", with a header that lacks the name of the first" if found.lacks else ""
    raise AmbiguousDelimiter(
        f"{name}: no sign is the delimiter, and blanks give {cut}{also}; to cut there: {fix}; to read each line as one "
        f"column: {_COMMA}"
    )


def _is_number(cell: str) -> bool:
    try:
        return "_" not in cell and float(cell) == float(cell)
    except ValueError:
        return False


def _without_doubt(likely: Sequence[str], columns: Mapping[str, int], text: str) -> list[str]:
    """Return those of several signs that may be the delimiter, the one of the most columns first.

    A sign that ends each line and cuts nothing else is none, nor are decimal commas below a header with a comma in it.
    """
    lines = [line.rstrip() for line in text.splitlines()]
    ends = {sign for sign in likely if columns[sign] == 2 and all(line.endswith(sign) for line in lines)}
    found = sorted([sign for sign in likely if sign not in ends] or likely, key=lambda sign: -columns[sign])
    header, _, below = text.partition("\n")
    decimal = found[1:] == [","] and ", " in header and not _COMMA_ELSEWHERE.search(below)
    return found[:1] if decimal else found


def _is_delimiter(widths: Sequence[int]) -> bool:
    return bool(widths) and widths[0] > 1 and widths.count(widths[0]) >= _WIDE * len(widths)


def _records(text: str, sign: str, options: SampleOptions) -> Iterator[list[str]]:
    rows = csv.reader(
        io.StringIO(text, newline=""),
        delimiter=sign,
        quotechar=options.quote,
        quoting=csv.QUOTE_NONE if options.quote is None else csv.QUOTE_MINIMAL,
        escapechar=options.escape,
        skipinitialspace=options.trim,
    )
    try:
        yield from islice(filter(None, rows), _RECORDS)
    except csv.Error:  # a cell over the csv module's limit, or a NUL: what came before counts
        return
