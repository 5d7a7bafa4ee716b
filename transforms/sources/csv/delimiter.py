"""Detect the delimiter of CSV files from the first records of the first file that holds any.

    header      id;price;note        ';' gives 3 columns, ',' gives 1
    records     1;2,50;ok            ... and 3 again; ',' gives 2

A sign is the delimiter if the header has at least two columns by it, and nine tenths of the records as many. If no sign
is, it is the comma, with a word where blanks would do; if more than one is, only the person who has the file knows.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from ...errors import InputError, SourceError
from ...format.wording.printable import printable
from ..contract.source import SourceEntry
from ..files.listing import expand_paths, list_file
from ..registry.formats import suffixes_of
from ..text.open_text import is_transparent, plain_encoding, sniff_text, stream_text
from .records.chunks import skip_lines
from .records.quote_bits import Dialect
from .records.usual_text import usual_text

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

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> SampleOptions:
        """Return those of a config that is not checked yet: a value that cannot be used has no say."""
        signs = {key: given[key] for key in ("quote", "comment", "escape") if _is_sign(given.get(key))}
        quote = None if "quote" in given and given["quote"] is None else signs.get("quote", '"')
        lines = given.get("skip_lines", 0)
        lines = lines if isinstance(lines, int) else 0
        encoding = given.get("encoding", "utf-8")
        return cls(encoding, quote, lines, signs.get("comment"), signs.get("escape"), given.get("trim") is True)

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
        files, _ = expand_paths(paths, base, suffixes_of("csv"), names_only=True, ignore=ignore)
        if files and all(_has_suffix(path, _TAB_SUFFIXES) for path in files):
            return Delimiter("\t")
        for path in files:
            if not _has_suffix(path, _TAB_SUFFIXES):
                entry = list_file(path, b"/" if not base else base.encode())
                if text := _first_text(entry, options):
                    return _detect(entry.name, text, options)
    except (InputError, SourceError) as error:
        if isinstance(error, AmbiguousDelimiter):
            raise
    return Delimiter(",")


class AmbiguousDelimiter(InputError):
    """More than one sign gives whole columns."""


def _has_suffix(path: bytes, suffixes: tuple[str, ...]) -> bool:
    return path.decode("utf-8", "surrogateescape").lower().endswith(suffixes)


def _first_text(entry: SourceEntry, options: SampleOptions) -> str:
    """Return the first records of a file, without comments and one that is cut; no text if there is none."""
    data, encoding = b"", options.encoding
    blocks = stream_text(entry, encoding, sniff_text(entry, encoding), whole=False)
    for block in skip_lines(blocks, options.skip_lines)[2]:
        data += block
        if len(data) >= _TEXT_BYTES:
            break
    if len(data) > _TEXT_BYTES:
        data = data[: data.rfind(b"\n", 0, _TEXT_BYTES) + 1] or data[:_TEXT_BYTES]
    if options.comment is not None:
        data = usual_text(data, replace(options, trim=False).dialect(","))
    return data.decode(plain_encoding(encoding) if is_transparent(encoding) else "utf-8", "replace")


def _detect(name: str, text: str, options: SampleOptions) -> Delimiter:
    widths = {sign: _widths(text, sign, options) for sign in SIGNS}
    likely = [sign for sign in SIGNS if _is_delimiter(widths[sign])]
    if len(likely) > 1:
        both = " and ".join(f'"{printable(sign)}" gives {widths[sign][0]}' for sign in likely)
        raise AmbiguousDelimiter(
            f"{name}: the delimiter is unclear: {both} columns in the first {len(widths[','])} records; declare it: "
            f"--set 'input.delimiter={printable(likely[0])}'"
        )
    if not likely:  # of ragged records, what the header says
        likely = [sign for sign in SIGNS if widths[sign] and widths[sign][0] > 1][:1]
    if not likely and (found := _aligned(text, options)) is not None:
        return _blanks(name, *found, options)
    if not likely or likely == [","]:
        return Delimiter(",")
    columns, records = widths[likely[0]][0], len(widths[likely[0]])
    shown = printable(likely[0])
    return Delimiter(
        likely[0],
        f'{name}: the delimiter is "{shown}": {columns} columns in the first {records} records; if it is not: '
        f"--set input.delimiter=,",
    )


def _aligned(text: str, options: SampleOptions) -> tuple[int, int] | None:
    """Return the columns and the records of text that runs of blanks cut into as many cells each."""
    options = replace(options, trim=True, comment=None)
    dialect = options.dialect(" ")
    usual = usual_text(text.encode("utf-8", "replace"), dialect).decode("utf-8", "replace")
    widths = _widths(usual, " ", options)
    return (widths[0], len(widths)) if len(widths) >= _ALIGNED and len(set(widths)) == 1 and widths[0] > 1 else None


def _blanks(name: str, columns: int, records: int, options: SampleOptions) -> Delimiter:
    """Return what is to be said of records that no sign cuts, and blanks do; they are the delimiter with `trim`."""
    found = f"{columns} columns in the first {records} records"
    if options.trim:
        evidence = f"{name}: the delimiter is a run of blanks: {found}; if it is not: --set input.delimiter=,"
        return Delimiter(" ", evidence)
    plain = f"{name}: no delimiter, so a record is one column; blanks give {found}"
    return Delimiter(",", f"{plain}; to cut there: --set input.trim=true")


def _is_delimiter(widths: Sequence[int]) -> bool:
    return bool(widths) and widths[0] > 1 and widths.count(widths[0]) >= _WIDE * len(widths)


def _widths(text: str, sign: str, options: SampleOptions) -> list[int]:
    """Return how many columns the first records have by a sign; blank lines are none."""
    rows = csv.reader(
        io.StringIO(text, newline=""),
        delimiter=sign,
        quotechar=options.quote,
        quoting=csv.QUOTE_NONE if options.quote is None else csv.QUOTE_MINIMAL,
        escapechar=options.escape,
        skipinitialspace=options.trim,
    )
    widths = []
    try:
        for row in rows:
            if row:
                widths.append(len(row))
            if len(widths) == _RECORDS:
                break
    except csv.Error:  # a cell over the csv module's limit, or a NUL: what came before counts
        pass
    return widths
